//! Heap pages in any order, each giving the tuples that a snapshot sees.
//!
//! heapgetpage() does the reading, pruning, visibility checks and conflict checks of a sequential scan; all that is
//! new here is who says which page is next.

use super::custom_scan::Slot;
use super::row::{Layout, Row};
use crate::error::RowAt;
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
    pub(super) unsafe fn new(relation: pg_sys::Relation) -> Option<HeapRelation> {
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
        PageScan {
            relation,
            scan: scan.cast(),
            page: std::ptr::null(),
            tuple: Box::default(),
            io_concurrency: relation.io_concurrency(),
            cold: true,
            asked: 0,
        }
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

    /// Reads a page and returns how many of its tuples the snapshot sees. The page stays pinned until the next load.
    /// Interrupts are taken here.
    #[inline]
    pub fn load(&mut self, page: u32) -> usize {
        // SAFETY: the scan is open and in page mode; rs_cbuf is pinned from here on.
        unsafe {
            pg_sys::heapgetpage(self.scan.cast(), page);
            self.page = pg_sys::BufferGetPage((*self.scan).rs_cbuf).cast();
            (*self.scan).rs_ntuples as usize
        }
    }

    /// Visible tuple `i` of the page, decoded as far as `layout` wants.
    #[inline]
    pub fn row<'a>(&mut self, i: usize, layout: &'a mut Layout) -> Row<'a> {
        // SAFETY: i is below what load() returned; the pinned page keeps the tuple in place, and the caller decodes the
        // row before the next load.
        unsafe {
            let (at, _) = self.line_pointer(i);
            layout.read(self.page.add(at).cast_mut().cast())
        }
    }

    /// Visible tuple `i` of the page will be read soon: brings its first cache lines closer.
    #[inline]
    pub fn prefetch_row(&self, i: usize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: i is below what load() returned; a prefetch of any address does no harm.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let (at, len) = self.line_pointer(i);
            for line in (0..len.min(MAX_PREFETCH)).step_by(64) {
                _mm_prefetch::<_MM_HINT_T0>(self.page.wrapping_add(at + line).cast());
            }
        }
    }

    /// Where visible tuple `i` of the page stands.
    pub fn at(&self, i: usize) -> RowAt {
        // SAFETY: i is below what load() returned.
        unsafe { RowAt::Ctid((*self.scan).rs_cblock, (*self.scan).rs_vistuples[i]) }
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
        // SAFETY: line pointers are 32 bits each, behind the page header: 15 of offset, 2 of flags, 15 of length.
        unsafe {
            let number = (&raw const (*self.scan).rs_vistuples).cast::<pg_sys::OffsetNumber>().add(i).read();
            let line = self.page.add(PAGE_HEADER).cast::<u32>().add(number as usize - 1).read();
            ((line & 0x7fff) as usize, (line >> 17) as usize)
        }
    }

    /// Ends the scan and lets go of its page.
    pub fn end(self) {
        // SAFETY: begun in begin, ended once.
        unsafe { pg_sys::heap_endscan(self.scan.cast()) }
    }
}

/// Bytes of a tuple to be fetched in advance; of a longer one, the processor itself fetches the rest.
#[cfg(target_arch = "x86_64")]
const MAX_PREFETCH: usize = 512;

/// SizeOfPageHeaderData
const PAGE_HEADER: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);
