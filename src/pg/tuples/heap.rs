//! Heap pages in any order, each giving the tuples that a snapshot sees.
//!
//! heapgetpage() does the reading, pruning, visibility checks and conflict checks of a sequential scan. A page whose
//! tuples everybody sees needs none of that but the reading, which is then done here, one page ahead: the next page
//! comes to the processor while the rows of this one are read.

use super::fixed_layout::{Destination, Run, Uniform};
use super::page::Line;
use super::row::{Layout, Row};
use super::toast::Toast;
use crate::errors::{Error, RowAt, SourceError};
use crate::pg::compat::{count_hit, files_of, heap_page, snapshots_expire};
use crate::pg::executor::custom_scan::Slot;
use pgrx::prelude::*;
use std::ops::Range;

/// An open relation with the heap access method.
#[derive(Clone, Copy)]
pub struct HeapRelation(pg_sys::Relation);

impl HeapRelation {
    /// The relation, unless it is NULL or not a heap.
    ///
    /// # Safety
    /// `relation` is NULL, or open and locked for as long as the result is used.
    pub(in crate::pg) unsafe fn new(relation: pg_sys::Relation) -> Option<HeapRelation> {
        // SAFETY: the relcache entry of an open relation.
        let heap = unsafe { !relation.is_null() && (*relation).rd_tableam == pg_sys::GetHeapamTableAmRoutine() };
        heap.then_some(HeapRelation(relation))
    }

    /// Pages of the relation at this moment.
    pub fn pages(self) -> u32 {
        // SAFETY: the relation is open.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.0, pg_sys::ForkNumber::MAIN_FORKNUM) }
    }

    /// A layout for the attributes `columns`, counted from 0.
    pub fn layout(self, columns: &[usize]) -> Option<Layout> {
        // SAFETY: rd_att lives as long as the relation is open; columns are attribute numbers of a plan on it.
        unsafe { Layout::new((*self.0).rd_att, columns) }
    }

    /// Pages that the tablespace may be asked for in advance (effective_io_concurrency).
    fn io_concurrency(self) -> u32 {
        // SAFETY: looks into the tablespace's options and the setting.
        unsafe { pg_sys::get_tablespace_io_concurrency((*(*self.0).rd_rel).reltablespace).max(0) as u32 }
    }
}

/// A heap scan that is told page by page where to go.
pub struct PageScan {
    relation: HeapRelation,
    scan: pg_sys::HeapScanDesc,
    page: *const u8,
    /// handed to slots, which keep the pointer
    tuple: Box<pg_sys::HeapTupleData>,
    io_concurrency: u32,
    /// did the last pages asked for in advance have to come from disk?
    cold: bool,
    asked: u32,
    /// may a page's own word be taken for it that everybody sees all its tuples?
    use_all_visible: bool,
    /// pages that are left to heapgetpage() before the next one is looked at here
    recheck_after: u32,
    /// the page that will be loaded next, pinned, and its number
    ahead: Option<(u32, pg_sys::Buffer)>,
    /// where that page lies; this page if it is not known
    ahead_page: *const u8,
    /// cache lines of it to be fetched for each row of this one
    lines_per_row: usize,
    /// in which buffer each page was when it was read here last, 0 if it was not; empty if there are fewer buffers than
    /// pages
    buffers: Vec<pg_sys::Buffer>,
    /// pages that are searched for before the next one is guessed to be in the buffer behind its predecessor's
    guess_backoff: u32,
    /// is the ring of buffers that of several scans?
    shares_ring: bool,
}

impl PageScan {
    /// Starts a scan; big tables get a bulk-read ring of buffers, as a sequential scan does.
    pub fn begin(relation: HeapRelation, snapshot: pg_sys::Snapshot) -> PageScan {
        let flags = pg_sys::ScanOptions::SO_TYPE_SEQSCAN
            | pg_sys::ScanOptions::SO_ALLOW_PAGEMODE
            | pg_sys::ScanOptions::SO_ALLOW_STRAT;
        // SAFETY: the relation is an open heap, the snapshot that of the running statement.
        let scan = unsafe {
            pg_sys::heap_beginscan(relation.0, snapshot, 0, std::ptr::null_mut(), std::ptr::null_mut(), flags)
        };
        let scan: pg_sys::HeapScanDesc = scan.cast();
        // SAFETY: the scan has just begun; the number of buffers is fixed.
        let remembered = unsafe { Some((*scan).rs_nblocks).filter(|pages| *pages <= pg_sys::NBuffers as u32) };
        PageScan {
            relation,
            scan,
            page: std::ptr::null(),
            tuple: Box::default(),
            io_concurrency: relation.io_concurrency(),
            cold: true,
            asked: 0,
            // SAFETY: the snapshot is valid; the others are settings of the backend. What is left out of heapgetpage()
            // is the rest of its condition and the checks that only these settings turn on.
            use_all_visible: unsafe {
                !(*snapshot).takenDuringRecovery
                    && pg_sys::XactIsoLevel != pg_sys::XACT_SERIALIZABLE as i32
                    && !snapshots_expire()
            },
            recheck_after: 0,
            ahead: None,
            ahead_page: std::ptr::null(),
            lines_per_row: 0,
            buffers: vec![pg_sys::InvalidBuffer as pg_sys::Buffer; remembered.unwrap_or_default() as usize],
            guess_backoff: 0,
            shares_ring: false,
        }
    }

    /// Starts scans of relations that are read by turns, as parts of one table: if they are big together, they share a ring.
    pub fn begin_all(relations: &[HeapRelation], snapshot: pg_sys::Snapshot) -> Vec<PageScan> {
        let mut scans: Vec<_> = relations.iter().map(|relation| PageScan::begin(*relation, snapshot)).collect();
        let pages: u64 = scans.iter().map(|scan| u64::from(scan.pages())).sum();
        // SAFETY: a plain variable, fixed when the server starts.
        let buffers = unsafe { pg_sys::NBuffers } as u64;
        if pages > buffers {
            scans.iter_mut().for_each(|scan| scan.buffers = Vec::new());
        }
        if pages > buffers / 4 && scans.len() > 1 {
            // SAFETY: a ring of its own, if a scan has one, is not used before it is freed; the shared one lives as long as the
            // memory context in which the scans were begun, and end() takes it away from them.
            unsafe {
                let ring = pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD);
                for scan in &mut scans {
                    let own = std::mem::replace(&mut (*scan.scan).rs_strategy, ring);
                    if !own.is_null() {
                        pg_sys::FreeAccessStrategy(own);
                    }
                    scan.shares_ring = true;
                }
            }
        }
        scans
    }

    /// Pages of the scan, fixed when it began. Pages that come later hold nothing that the snapshot sees.
    pub fn pages(&self) -> u32 {
        // SAFETY: the scan is open.
        unsafe { (*self.scan).rs_nblocks }
    }

    /// How many pages ahead it pays to ask; 0 turns asking off.
    pub fn io_concurrency(&self) -> u32 {
        self.io_concurrency
    }

    /// Asks the operating system for pages that will be loaded soon. Asking for a cached page costs as much as reading
    /// it: while pages turn out to be cached, only one in 16 is asked for.
    pub fn prefetch(&mut self, pages: Range<u32>) {
        for page in pages {
            self.asked = self.asked.wrapping_add(1);
            if !self.cold && !self.asked.is_multiple_of(16) {
                continue;
            }
            // SAFETY: the page is one of the relation's.
            let result = unsafe { pg_sys::PrefetchBuffer(self.relation.0, pg_sys::ForkNumber::MAIN_FORKNUM, page) };
            self.cold = result.initiated_io;
        }
    }

    /// Reads a page and returns how many of its tuples the snapshot sees. The page stays pinned until the next load, which
    /// will most likely be that of `next`. Interrupts are taken here.
    #[inline]
    pub fn load(&mut self, page: u32, next: Option<u32>) -> usize {
        crate::pg::check_for_interrupts();
        // SAFETY: the scan is open and in page mode; rs_cbuf is pinned from here on.
        unsafe {
            if self.recheck_after > 0 {
                self.recheck_after -= 1;
                self.load_visible(page);
            } else if !(self.use_all_visible && self.load_all_visible(page)) {
                self.recheck_after = PAGES_IN_DOUBT;
                self.load_visible(page);
            }
            self.page = pg_sys::BufferGetPage((*self.scan).rs_cbuf).cast();
            let rows = (*self.scan).rs_ntuples as usize;
            self.pin_ahead(next, rows);
            rows
        }
    }

    /// heapgetpage(), and a look at the line pointers that it has followed.
    unsafe fn load_visible(&mut self, page: u32) {
        // SAFETY: the page is one of the relation's; afterwards it is pinned, and those line pointers stay.
        unsafe {
            heap_page(self.scan, page);
            let scan = &*self.scan;
            let start: *const u8 = pg_sys::BufferGetPage(scan.rs_cbuf).cast();
            let visible = &scan.rs_vistuples[..scan.rs_ntuples as usize];
            if !visible.iter().fold(true, |sound, number| sound & Line::of(start, *number).is_within_page()) {
                self.raise_damaged();
            }
        }
    }

    /// Raises an error: a line pointer of the page that is being read points out of it.
    #[cold]
    fn raise_damaged(&self) -> ! {
        // SAFETY: the scan and its relation are open.
        unsafe {
            let table = crate::pg::catalog::relation::name_of((*self.relation.0).rd_id);
            Error::from(SourceError::DamagedPage { table, page: (*self.scan).rs_cblock }).raise()
        }
    }

    /// heapgetpage() for a page that says that everybody sees all its tuples; false if it does not say so.
    unsafe fn load_all_visible(&mut self, page: u32) -> bool {
        // SAFETY: rs_cbuf is our pin, or invalid. While the page is locked nobody moves its line pointers, and as long as
        // it is pinned those of visible tuples stay.
        unsafe {
            let buffer = self.take_ahead(page).unwrap_or_else(|| self.read(page));
            let scan = &mut *self.scan;
            let before = std::mem::replace(&mut scan.rs_cbuf, buffer);
            if before != pg_sys::InvalidBuffer as pg_sys::Buffer {
                pg_sys::ReleaseBuffer(before);
            }
            scan.rs_cblock = page;
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
            let start: *const u8 = pg_sys::BufferGetPage(buffer).cast();
            let header = start.cast::<pg_sys::PageHeaderData>();
            let all_visible = u32::from((*header).pd_flags) & pg_sys::PD_ALL_VISIBLE != 0;
            let mut sound = true;
            if all_visible {
                let (lines, within_page) = Line::all(start);
                // more than there is room for in a page are damaged, too
                sound = within_page & (lines.len() <= scan.rs_vistuples.len());
                let mut tuples = 0;
                for (number, line) in (1..).zip(lines).take(scan.rs_vistuples.len()) {
                    // always written, and left there if it points to a tuple: lines that do not are rare, but anywhere
                    scan.rs_vistuples[tuples] = number;
                    tuples += usize::from(line.is_normal());
                }
                scan.rs_ntuples = tuples as i32;
            }
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32);
            if !sound {
                self.raise_damaged();
            }
            all_visible
        }
    }

    /// Pins a page: in the buffer where it was in the epoch before if it is still there, or, in the first epoch, where it is
    /// if the table came into memory in sequence. That saves the search for it, which costs as much as to decode a dozen
    /// rows. Otherwise with the scan's ring of buffers.
    unsafe fn read(&mut self, page: u32) -> pg_sys::Buffer {
        let (relation, fork) = (self.relation.0, pg_sys::ForkNumber::MAIN_FORKNUM);
        let (known, guessed) = match self.buffers.get(page as usize) {
            Some(0) => (self.buffer_behind_predecessor(page), true),
            Some(known) => (*known, false),
            None => (0, false),
        };
        // SAFETY: the page is one of the relation's; the buffer is one that existed. Buffers of temporary tables (below
        // 0) are not asked for: ReadRecentBuffer() looked them up among the shared ones before 15.4.
        unsafe {
            if known > 0 && pg_sys::ReadRecentBuffer(files_of(relation), fork, page, known) {
                count_hit(relation);
                self.buffers[page as usize] = known;
                return known;
            }
            if guessed && known > 0 {
                self.guess_backoff = GUESS_AGAIN;
            }
            let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
            let buffer = pg_sys::ReadBufferExtended(relation, fork, page, mode, (*self.scan).rs_strategy);
            if let Some(known) = self.buffers.get_mut(page as usize) {
                *known = buffer;
            }
            buffer
        }
    }

    /// The buffer behind that of the page before this one; 0 if there is none, or guesses have turned out wrong of late.
    fn buffer_behind_predecessor(&mut self, page: u32) -> pg_sys::Buffer {
        if self.guess_backoff > 0 {
            self.guess_backoff -= 1;
            return 0;
        }
        let before = page.checked_sub(1).map_or(0, |before| self.buffers[before as usize]);
        // SAFETY: the number of buffers is fixed.
        if before > 0 && before < unsafe { pg_sys::NBuffers } { before + 1 } else { 0 }
    }

    /// Pins the page that comes after this one, of `rows` rows. No other is pinned ahead: as long as load() looks at pages
    /// here, it takes the pin, and while in doubt there is none.
    unsafe fn pin_ahead(&mut self, next: Option<u32>, rows: usize) {
        self.lines_per_row = 0;
        if let (Some(next), 0) = (next.filter(|_| self.use_all_visible), self.recheck_after) {
            // SAFETY: the page is pinned until it is taken or let go.
            unsafe {
                let buffer = self.read(next);
                self.ahead = Some((next, buffer));
                self.ahead_page = pg_sys::BufferGetPage(buffer).cast();
            }
            self.lines_per_row = PAGE_LINES.div_ceil(rows.max(1));
        }
    }

    /// The pin of the page that was pinned ahead, if it is this one; another is let go.
    unsafe fn take_ahead(&mut self, page: u32) -> Option<pg_sys::Buffer> {
        let (number, buffer) = self.ahead.take()?;
        if number == page {
            return Some(buffer);
        }
        // SAFETY: our pin.
        unsafe { pg_sys::ReleaseBuffer(buffer) };
        None
    }

    /// Visible tuple `i` of the page, decoded as far as `layout` wants, with what it has in a TOAST table.
    #[inline]
    pub fn row<'a>(&mut self, i: usize, layout: &'a mut Layout, toast: &mut Toast) -> Row<'a> {
        // SAFETY: i is below what load() returned; the pinned page keeps its tuples in place, and the caller decodes the
        // row before the next load.
        unsafe {
            let rows = (*self.scan).rs_ntuples as usize;
            toast.row(i, rows, |i| self.page.add(self.line_pointer(i).0).cast_mut().cast(), layout)
        }
    }

    /// Copies visible tuples before `end`, from the last to the first, as far as they are as `uniform` says.
    #[inline]
    pub fn copy_run(&self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        // SAFETY: as in row(); `end` is at most what load() returned, or this panics.
        unsafe {
            assert!(end <= (*self.scan).rs_ntuples as usize);
            let tuple = |i| {
                self.prefetch_next(i);
                self.page.add(self.line_pointer(i).0)
            };
            uniform.copy(end, tuple, to)
        }
    }

    /// Visible tuple `i` of the page is being read: brings a share of the next page closer to the processor.
    #[inline]
    pub fn prefetch_next(&self, i: usize) {
        #[cfg(target_arch = "x86_64")]
        for line in 0..self.lines_per_row {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            // SAFETY: a prefetch of any address does no harm.
            unsafe {
                let done = (*self.scan).rs_ntuples as usize - 1 - i; // rows are read from the last to the first
                let line = done * self.lines_per_row + line;
                _mm_prefetch::<_MM_HINT_T1>(self.ahead_page.wrapping_add(line * 64).cast());
            }
        }
    }

    /// Where visible tuple `i` of the page stands.
    pub fn at(&self, i: usize) -> RowAt {
        // SAFETY: i is below what load() returned.
        unsafe { RowAt::Ctid((*self.scan).rs_cblock, (*self.scan).rs_vistuples[i]) }
    }

    /// As [`PageScan::at`], with the table.
    pub fn at_in_table(&self, i: usize) -> RowAt {
        // SAFETY: i is below what load() returned; the relation is open.
        unsafe {
            let table = (*self.relation.0).rd_id.to_u32();
            RowAt::CtidOf(table, (*self.scan).rs_cblock, (*self.scan).rs_vistuples[i])
        }
    }

    /// Puts visible tuple `i` of the page into a slot for heap tuples.
    pub fn store(&mut self, i: usize, slot: Slot) {
        // SAFETY: as in row(); the slot takes a pin of its own, and self.tuple stays where it is.
        unsafe {
            let (at, len) = self.line_pointer(i);
            let scan = &*self.scan;
            self.tuple.t_data = self.page.add(at).cast_mut().cast();
            self.tuple.t_len = len as u32;
            self.tuple.t_tableOid = (*self.relation.0).rd_id;
            pgrx::itemptr::item_pointer_set_all(&mut self.tuple.t_self, scan.rs_cblock, scan.rs_vistuples[i]);
            pg_sys::ExecStoreBufferHeapTuple(&mut *self.tuple, slot.0, scan.rs_cbuf);
        }
    }

    /// Offset in the page and length of visible tuple `i`.
    #[inline]
    unsafe fn line_pointer(&self, i: usize) -> (usize, usize) {
        // SAFETY: the line pointer was looked at when the page was loaded.
        unsafe {
            let number = (&raw const (*self.scan).rs_vistuples).cast::<pg_sys::OffsetNumber>().add(i).read();
            let line = Line::of(self.page, number);
            (line.offset(), line.len())
        }
    }

    /// Lets go of the page, and of the one ahead, until the next load.
    pub fn leave(&mut self) {
        // SAFETY: the pins are ours.
        unsafe {
            if let Some((_, buffer)) = self.ahead.take() {
                pg_sys::ReleaseBuffer(buffer);
            }
            let invalid = pg_sys::InvalidBuffer as pg_sys::Buffer;
            let buffer = std::mem::replace(&mut (*self.scan).rs_cbuf, invalid);
            if buffer != invalid {
                pg_sys::ReleaseBuffer(buffer);
            }
        }
    }

    /// Ends the scan and lets go of its page.
    pub fn end(mut self) {
        self.leave();
        // SAFETY: begun in begin, ended once.
        unsafe {
            if self.shares_ring {
                (*self.scan).rs_strategy = std::ptr::null_mut();
            }
            pg_sys::heap_endscan(self.scan.cast());
        }
    }
}

/// Pages that are left to heapgetpage() after one with tuples that not everybody sees: to find out costs a second look
/// for the buffer.
const PAGES_IN_DOUBT: u32 = 15;

/// Pages that are searched for after a wrong guess.
const GUESS_AGAIN: u32 = 15;

/// Cache lines of a page.
const PAGE_LINES: usize = pg_sys::BLCKSZ as usize / 64;
