//! A heap scan that gets each page from its caller.

use super::buffers::{KnownBuffers, NO_BUFFER, all_buffers};
use super::relation::HeapRelation;
use super::stream::PageStream;
use super::visibility::{Page, Visibility};
use crate::catalog::names::name_of;
use crate::compat::{READ_STREAMS, heap_page, snapshots_expire};
use crate::errors::{Error, raise};
use crate::interrupts::check_for_interrupts;
use crate::snapshot::Snapshot;
use crate::tuples::page::Line;
use crate::tuples::place::RowAt;
use crate::tuples::prefetch::{PAGE_LINES, Prefetcher, are_cold, fetch_line};
use crate::tuples::slot::{LentRows, Slot};
use pgrx::prelude::*;
use std::ops::Range;

/// A heap scan that gets each page from its caller.
pub struct PageScan {
    /// of which relation; open as long as the scan is
    relation: pg_sys::Relation,
    scan: pg_sys::HeapScanDesc,
    page: *const u8,
    /// handed to slots, which keep the pointer
    tuple: Box<pg_sys::HeapTupleData>,
    lent: LentRows,
    io_concurrency: u32,
    prefetcher: Prefetcher,
    /// may pages be read here, and their own word be taken for it that everybody sees all their tuples?
    reads_here: bool,
    visibility: Visibility,
    ahead: PageAhead,
    buffers: KnownBuffers,
    stream: PageStream,
    /// is the ring of buffers that of several scans?
    shares_ring: bool,
}

/// The page that will be loaded next.
struct PageAhead {
    /// its number, and its pin, if it is known
    pinned: Option<(u32, pg_sys::Buffer)>,
    /// where it is in memory
    page: *const u8,
    /// cache lines of it to be fetched for each row of the page that is being read
    lines_per_row: usize,
}

impl PageScan {
    /// Starts a scan; big tables get a bulk-read ring of buffers, as a sequential scan does.
    /// It keeps the relation open.
    pub fn begin(relation: HeapRelation<'_>, snapshot: Snapshot<'_>) -> PageScan {
        let flags = pg_sys::ScanOptions::SO_TYPE_SEQSCAN
            | pg_sys::ScanOptions::SO_ALLOW_PAGEMODE
            | pg_sys::ScanOptions::SO_ALLOW_STRAT
            // heap_endscan() unregisters the snapshot
            | pg_sys::ScanOptions::SO_TEMP_SNAPSHOT;
        let io_concurrency = relation.io_concurrency();
        let relation = relation.entry();
        // SAFETY: the relation is an open heap, and the snapshot is there; both are registered for the scan, until it
        // or the transaction ends. The others are settings of the backend: what is left out of heapgetpage() is the
        // rest of its condition, and the checks that only these settings turn on.
        let (scan, pages, reads_here, visibility) = unsafe {
            let snapshot = pg_sys::RegisterSnapshot(snapshot.as_ptr());
            let none = std::ptr::null_mut();
            let scan: pg_sys::HeapScanDesc =
                pg_sys::heap_beginscan(relation, snapshot, 0, none, std::ptr::null_mut(), flags).cast();
            let reads_here = !(*snapshot).takenDuringRecovery
                && pg_sys::XactIsoLevel != pg_sys::XACT_SERIALIZABLE as i32
                && !snapshots_expire();
            (scan, (*scan).rs_nblocks, reads_here, Visibility::new(snapshot, (*relation).rd_id))
        };
        PageScan {
            relation,
            scan,
            page: std::ptr::null(),
            tuple: Box::default(),
            lent: LentRows::default(),
            io_concurrency,
            prefetcher: Prefetcher::new(),
            reads_here,
            visibility,
            ahead: PageAhead { pinned: None, page: std::ptr::null(), lines_per_row: 0 },
            buffers: KnownBuffers::new(pages),
            stream: PageStream::default(),
            shares_ring: false,
        }
    }

    /// Starts scans of relations that are read by turns, as parts of one table: if they are big together,
    /// they share a ring.
    pub fn begin_all(relations: &[HeapRelation<'_>], snapshot: Snapshot<'_>) -> Vec<PageScan> {
        let mut scans: Vec<_> = relations.iter().map(|relation| PageScan::begin(*relation, snapshot)).collect();
        let pages: u64 = scans.iter().map(|scan| u64::from(scan.pages())).sum();
        let buffers = u64::from(all_buffers());
        if pages > buffers {
            scans.iter_mut().for_each(|scan| scan.buffers.forget());
        }
        if pages > buffers / 4 && scans.len() > 1 {
            // SAFETY: a ring of its own, if a scan has one, is not used before it is freed; the shared one lives as
            // long as the memory context in which the scans were begun, and end() takes it away from them.
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
    #[inline]
    pub fn pages(&self) -> u32 {
        // SAFETY: the scan is open.
        unsafe { (*self.scan).rs_nblocks }
    }

    /// How many pages ahead it pays to ask; 0 turns asking off.
    pub fn io_concurrency(&self) -> u32 {
        self.io_concurrency
    }

    /// Asks for pages that will be loaded soon, in this order.
    pub fn prefetch(&mut self, pages: Range<u32>) {
        let pages = pages.start..pages.end.min(self.pages());
        if READ_STREAMS && self.reads_here {
            // SAFETY: the relation is open as long as the scan is, and had this many pages when it began.
            if unsafe { are_cold(self.relation, pages.clone()) } {
                self.stream.expect(pages);
            }
            return;
        }
        for page in pages {
            // SAFETY: the relation is open as long as the scan is, and had this many pages when it began.
            unsafe { self.prefetcher.ask_for(self.relation, page) };
        }
    }

    /// The relation's row type.
    pub(super) fn descriptor(&self) -> pg_sys::TupleDesc {
        // SAFETY: the relation is open as long as the scan is.
        unsafe { (*self.relation).rd_att }
    }

    /// How many visible tuples the page has that was loaded last.
    #[inline]
    pub(super) fn rows(&self) -> usize {
        if self.page.is_null() {
            return 0;
        }
        // SAFETY: the scan is open.
        unsafe { (*self.scan).rs_ntuples as usize }
    }

    /// Reads a page and returns how many of its tuples the snapshot sees. The page stays pinned until the next load,
    /// which will most likely be that of `next`. Interrupts are taken here.
    ///
    /// # Panics
    /// If the scan has no such pages.
    #[inline]
    pub fn load(&mut self, page: u32, next: Option<u32>) -> usize {
        check_for_interrupts();
        assert!(page < self.pages() && next.is_none_or(|next| next < self.pages()), "pages of the scan");
        // SAFETY: the scan is open and in page mode, and the page one of its own; rs_cbuf is pinned from here on.
        unsafe {
            match self.reads_here {
                true => self.load_here(page),
                false => self.load_visible(page),
            }
            self.page = pg_sys::BufferGetPage((*self.scan).rs_cbuf).cast();
            let rows = (*self.scan).rs_ntuples as usize;
            self.pin_ahead(next, rows);
            rows
        }
    }

    /// heapgetpage(), and a look at the line pointers that it has followed.
    ///
    /// # Safety
    /// The page is one of the relation's.
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
            let table = name_of((*self.relation).rd_id);
            raise(&Error::DamagedPage { table, page: (*self.scan).rs_cblock })
        }
    }

    /// What heapgetpage() does, where neither conflicts nor the age of the snapshot are to be looked for.
    ///
    /// # Safety
    /// The page is one of the relation's.
    unsafe fn load_here(&mut self, page: u32) {
        // SAFETY: rs_cbuf is our pin, or invalid. While the page is locked no one moves its line pointers, and as long
        // as it is pinned those of visible tuples stay.
        unsafe {
            let buffer = self.take_ahead(page).unwrap_or_else(|| self.read(page));
            let scan = &mut *self.scan;
            let before = std::mem::replace(&mut scan.rs_cbuf, buffer);
            if before != NO_BUFFER {
                pg_sys::ReleaseBuffer(before);
            }
            scan.rs_cblock = page;
            let start: *const u8 = pg_sys::BufferGetPage(buffer).cast();
            let header = start.cast::<pg_sys::PageHeaderData>();
            if !all_visible(header) && (*header).pd_prune_xid != pg_sys::InvalidTransactionId {
                pg_sys::heap_page_prune_opt(self.relation, buffer);
            }
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
            let (lines, within_page) = Line::all(start);
            // more than there is room for in a page are damaged, too
            let sound = within_page & (lines.len() <= scan.rs_vistuples.len());
            let tuples = match (sound, all_visible(header)) {
                (false, _) => 0,
                (_, true) => tuples_of(lines, &mut scan.rs_vistuples),
                (_, false) => {
                    let page = Page { number: page, buffer, start };
                    self.visibility.of_page(page, lines, &mut scan.rs_vistuples)
                }
            };
            scan.rs_ntuples = tuples as _;
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32);
            if !sound {
                self.raise_damaged();
            }
        }
    }

    /// Pins a page.
    ///
    /// # Safety
    /// The page is one of the relation's.
    unsafe fn read(&mut self, page: u32) -> pg_sys::Buffer {
        // SAFETY: the caller's promise; the scan's own memory lasts as long as the scan, and its ring stays from the
        // first page on.
        unsafe {
            let ring = (*self.scan).rs_strategy;
            let memory = pg_sys::GetMemoryChunkContext(self.scan.cast());
            match self.stream.take(page, self.relation, ring, memory) {
                Some(buffer) => {
                    self.buffers.found(page, buffer);
                    buffer
                }
                None => self.buffers.read(self.relation, page, ring),
            }
        }
    }

    /// Pins the page that comes after this one, of `rows` rows, if load() reads pages here, where it takes the pin.
    ///
    /// # Safety
    /// That page is one of the relation's.
    unsafe fn pin_ahead(&mut self, next: Option<u32>, rows: usize) {
        self.ahead.lines_per_row = 0;
        if let Some(next) = next.filter(|_| self.reads_here) {
            // SAFETY: the caller's promise; the page is pinned until it is taken or unpinned.
            unsafe {
                let buffer = self.read(next);
                self.ahead.pinned = Some((next, buffer));
                self.ahead.page = pg_sys::BufferGetPage(buffer).cast();
            }
            self.ahead.lines_per_row = PAGE_LINES.div_ceil(rows.max(1));
        }
    }

    /// The pin of the page that was pinned ahead, if it is this one; another is unpinned.
    fn take_ahead(&mut self, page: u32) -> Option<pg_sys::Buffer> {
        let (number, buffer) = self.ahead.pinned.take()?;
        if number == page {
            return Some(buffer);
        }
        // SAFETY: our pin.
        unsafe { pg_sys::ReleaseBuffer(buffer) };
        None
    }

    /// Visible tuple `i` of the page is being read: brings a share of the next page closer to the processor.
    #[inline]
    pub(super) fn prefetch_next(&self, i: usize) {
        // rows are read from the last to the first
        let done = self.rows().wrapping_sub(1).wrapping_sub(i);
        for line in 0..self.ahead.lines_per_row {
            fetch_line(self.ahead.page, done.wrapping_mul(self.ahead.lines_per_row).wrapping_add(line));
        }
    }

    /// The number of visible tuple `i` in its page.
    #[inline]
    fn number(&self, i: usize) -> pg_sys::OffsetNumber {
        assert!(i < self.rows());
        // SAFETY: this many numbers were written when the page was loaded.
        unsafe { (*self.scan).rs_vistuples[i] }
    }

    /// Where visible tuple `i` of the page stands.
    #[inline]
    pub fn at(&self, i: usize) -> RowAt {
        // SAFETY: the scan is open.
        RowAt::Ctid(unsafe { (*self.scan).rs_cblock }, self.number(i))
    }

    /// As [`PageScan::at`], with the table.
    #[inline]
    pub fn at_in_table(&self, i: usize) -> RowAt {
        // SAFETY: the scan is open, and so is its relation.
        let (table, page) = unsafe { ((*self.relation).rd_id.to_u32(), (*self.scan).rs_cblock) };
        RowAt::CtidOf(table, page, self.number(i))
    }

    /// Puts visible tuple `i` of the page into a slot for heap tuples. It stays there, whatever the scan does, until
    /// the slot is used otherwise or the scan ends.
    pub fn store(&mut self, i: usize, slot: Slot<'_>) {
        self.lent.lend(slot);
        let number = self.number(i);
        // SAFETY: there is such a tuple in the pinned page. The slot takes a pin of its own, and self.tuple stays where
        // it is until end() has emptied the slot.
        unsafe {
            let line = Line::of(self.page, number);
            let scan = &*self.scan;
            self.tuple.t_data = self.page.add(line.offset()).cast_mut().cast();
            self.tuple.t_len = line.len() as u32;
            self.tuple.t_tableOid = (*self.relation).rd_id;
            pgrx::itemptr::item_pointer_set_all(&mut self.tuple.t_self, scan.rs_cblock, number);
            pg_sys::ExecStoreBufferHeapTuple(&mut *self.tuple, slot.0, scan.rs_cbuf);
        }
    }

    /// Where visible tuple `i` of the page begins.
    ///
    /// # Safety
    /// There is such a tuple.
    #[inline(always)]
    pub(super) unsafe fn tuple(&self, i: usize) -> *const u8 {
        // SAFETY: the caller's promise; its line pointer was looked at when the page was loaded.
        unsafe {
            let number = (&raw const (*self.scan).rs_vistuples).cast::<pg_sys::OffsetNumber>().add(i).read();
            self.page.add(Line::of(self.page, number).offset())
        }
    }

    /// Unpins the page, and the one ahead, until the next load.
    pub fn unpin(&mut self) {
        self.page = std::ptr::null();
        // SAFETY: the pins are ours.
        unsafe {
            self.stream.unpin();
            if let Some((_, buffer)) = self.ahead.pinned.take() {
                pg_sys::ReleaseBuffer(buffer);
            }
            let buffer = std::mem::replace(&mut (*self.scan).rs_cbuf, NO_BUFFER);
            if buffer != NO_BUFFER {
                pg_sys::ReleaseBuffer(buffer);
            }
        }
    }

    /// Ends the scan and unpins its page. Slots that have one of its tuples are emptied.
    pub fn end(mut self) {
        self.unpin();
        // SAFETY: begun in begin, ended once, while the query goes on.
        unsafe {
            self.stream.end();
            self.lent.recall();
            if self.shares_ring {
                (*self.scan).rs_strategy = std::ptr::null_mut();
            }
            pg_sys::heap_endscan(self.scan.cast());
        }
    }
}

/// Does the page say that everybody sees all its tuples?
///
/// # Safety
/// It is a page in a buffer that is pinned.
unsafe fn all_visible(page: *const pg_sys::PageHeaderData) -> bool {
    // SAFETY: the caller's promise; others may change the page at the same time.
    unsafe { u32::from((&raw const (*page).pd_flags).read_volatile()) & pg_sys::PD_ALL_VISIBLE != 0 }
}

/// Puts the numbers of all lines that point to tuples to the front of `tuples`, which has room for them, and says how
/// many there are.
fn tuples_of(lines: &[Line], tuples: &mut [pg_sys::OffsetNumber]) -> usize {
    let mut count = 0;
    for (number, line) in (1..).zip(lines).take(tuples.len()) {
        // always written, and left there if it points to a tuple: lines that do not are rare, but anywhere
        tuples[count] = number;
        count += usize::from(line.is_normal());
    }
    count
}
