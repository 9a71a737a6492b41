//! Values out of line (TOAST), fetched for many rows at once.
//!
//! detoast_attr() opens the TOAST table, searches its index and visits its pages for one value; the values of rows on
//! one page mostly lie side by side. Here the index is read once for all of them, each page of the TOAST table is
//! visited once, in ascending order, and what it has of any of them is copied. Memory is bounded: what a page refers to
//! is fetched in groups of rows.
//!
//! Rows are seen as detoast_attr() sees them, under a TOAST snapshot. A value that is in any way not as it should be (a
//! chunk is missing, or has another size), or so large that nothing is gained, is left where it is: its reader calls
//! detoast_attr(), with its errors.
#![expect(ffi_unwind_calls, reason = "one barrier around all calls for a group of rows")]

pub(super) mod guardless;
mod index;
mod pages;
mod value;

use super::prefetch::Prefetcher;
use super::row::{Layout, Row};
use crate::compat::{begin_index_scan, snapshots_expire, toast_snapshot};
use crate::detoasted;
use crate::interrupts::check_for_interrupts;
use guardless::{index_endscan, toast_close_indexes, toast_open_indexes};
use index::find_chunks;
use pages::copy_chunks;
use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use std::ops::Range;
use value::{Chunk, Value};

/// Fetches the values of a scan's wanted columns. What was fetched stays until the next group of rows.
pub struct Toast {
    /// a ring of buffers for TOAST tables that are large, as for a scan of them
    ring: pg_sys::BufferAccessStrategy,
    /// the page's values out of line, row by row
    values: Vec<Value>,
    /// index of each row's first, and how many there are
    starts: Vec<usize>,
    /// where each group of rows ends; empty if the page has not been looked at
    groups: Vec<usize>,
    /// the rows whose values are here
    fetched: Range<usize>,
    /// those values, one after the other, as varlenas
    bytes: Vec<u64>,
    /// for use within a call: the values to be fetched by table and id, and their chunks
    sorted: Vec<usize>,
    /// values that others, the second of each pair, are as well
    aliases: Vec<(usize, usize)>,
    chunks: Vec<Chunk>,
    prefetcher: Prefetcher,
}

/// Bytes that are fetched at once, unless one row has more:
/// they should stay in the processor's cache until they are read.
const GROUP_BYTES: usize = 256 << 10;

impl Toast {
    /// Called while the query's own memory is the current one.
    pub fn new() -> Toast {
        Toast {
            // SAFETY: allocates in the current memory context.
            ring: unsafe { pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD) },
            values: Vec::new(),
            starts: Vec::new(),
            groups: Vec::new(),
            fetched: 0..0,
            bytes: Vec::new(),
            sorted: Vec::new(),
            aliases: Vec::new(),
            chunks: Vec::new(),
            prefetcher: Prefetcher::new(),
        }
    }

    /// Another page was loaded.
    pub fn forget(&mut self) {
        self.groups.clear();
        self.fetched = 0..0;
    }

    /// Row `i` of the `rows` rows of a page, whose tuples `tuple` gives, with its values out of line.
    ///
    /// # Safety
    /// The tuples are of the layout's row type, and stay where they are. So does self, as long as the row is used.
    #[inline]
    pub(crate) unsafe fn row<'a>(
        &mut self,
        i: usize,
        rows: usize,
        tuple: impl Fn(usize) -> pg_sys::HeapTupleHeader,
        layout: &'a mut Layout,
    ) -> Row<'a> {
        // SAFETY: the caller's promise.
        unsafe {
            layout.read(tuple(i));
            if layout.out_of_line().next().is_some() {
                self.complete(i, rows, tuple, layout);
            }
            layout.row()
        }
    }

    /// Fetches the values of row `i`, unless they are there, and puts them into the row that `layout` has read.
    ///
    /// # Safety
    /// As of [`Toast::row`]: the tuples are of the layout's row type, and stay where they are.
    unsafe fn complete(
        &mut self,
        i: usize,
        rows: usize,
        tuple: impl Fn(usize) -> pg_sys::HeapTupleHeader,
        layout: &mut Layout,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            if !self.fetched.contains(&i) {
                if self.groups.is_empty() {
                    self.look_at_page(rows, &tuple, layout);
                }
                let group = self.groups.partition_point(|end| *end <= i);
                let start = group.checked_sub(1).map_or(0, |before| self.groups[before]);
                self.fetched = 0..0;
                self.fetch(self.starts[start]..self.starts[self.groups[group]]);
                self.fetched = start..self.groups[group];
                layout.read(tuple(i));
            }
        }
        let bytes = self.bytes.as_ptr().cast::<u8>();
        for value in &self.values[self.starts[i]..self.starts[i + 1]] {
            if value.is_whole() {
                // SAFETY: these bytes are what the column's pointer stands for,
                // and stay until the next group is fetched.
                unsafe { layout.replace(value.column, bytes.wrapping_add(value.at).into()) };
            }
        }
    }

    /// Finds the values that the page's rows have out of line, and divides the rows into groups.
    ///
    /// # Safety
    /// As of [`Toast::row`]: the tuples are of the layout's row type, and stay where they are.
    unsafe fn look_at_page(
        &mut self,
        rows: usize,
        tuple: &impl Fn(usize) -> pg_sys::HeapTupleHeader,
        layout: &mut Layout,
    ) {
        self.values.clear();
        self.starts.clear();
        let mut bytes = 0;
        for row in 0..rows {
            self.starts.push(self.values.len());
            // SAFETY: the caller's promise; the layout finds pointers of this kind.
            unsafe {
                layout.read(tuple(row));
                self.values.extend(layout.out_of_line().map(|(column, pointer)| Value::at(column, pointer)));
            }
            bytes += self.values[self.starts[row]..].iter().map(Value::space).sum::<usize>();
            if bytes > GROUP_BYTES {
                // the row itself begins the next group, unless it is alone
                bytes = self.values[self.starts[row]..].iter().map(Value::space).sum();
                if row > self.groups.last().copied().unwrap_or(0) {
                    self.groups.push(row);
                }
            }
        }
        self.starts.push(self.values.len());
        self.groups.push(rows);
    }

    fn fetch(&mut self, range: Range<usize>) {
        check_for_interrupts();
        // each page would have to be asked whether it is too young for the snapshot
        if snapshots_expire() {
            return;
        }
        self.plan(range);
        let mut rest = 0..self.sorted.len();
        while !rest.is_empty() {
            let table = self.values[self.sorted[rest.start]].table;
            let same = rest.clone().take_while(|i| self.values[self.sorted[*i]].table == table).count();
            self.fetch_from(table, rest.start..rest.start + same);
            rest.start += same;
        }
        for (i, other) in &self.aliases {
            let Value { at, copied, is_strange, .. } = self.values[*other];
            let value = &mut self.values[*i];
            (value.at, value.copied, value.is_strange) = (at, copied, is_strange);
        }
    }

    /// Makes room for these values, and finds out which of them are the same.
    fn plan(&mut self, range: Range<usize>) {
        let mut end = 0;
        self.sorted.clear();
        for (i, value) in self.values.iter_mut().enumerate().take(range.end).skip(range.start) {
            if value.is_worthwhile() {
                (value.found, value.copied, value.is_strange, value.at) = (0, 0, false, end);
                end += value.space();
                self.sorted.push(i);
            }
        }
        detoasted::count(self.sorted.len() as u64);
        let words = self.bytes.len().max(end / 8);
        allocation::resize(&mut self.bytes, words, 0);
        let values = &self.values;
        let key = |i: usize| (values[i].table, values[i].id);
        self.sorted.sort_unstable_by_key(|i| key(*i));
        self.aliases.clear();
        self.sorted.dedup_by(|i, before| {
            let same = key(*i) == key(*before);
            if same {
                self.aliases.push((*i, *before));
            }
            same
        });
    }

    /// Fetches values of one TOAST table: those in this part of `sorted`.
    fn fetch_from(&mut self, table: u32, range: Range<usize>) {
        let chunks = self.sorted[range.clone()].iter().map(|i| self.values[*i].chunks).sum();
        self.chunks.clear();
        allocation::reserve(&mut self.chunks, chunks);
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        // SAFETY: table, index, snapshot and scan as in heap_fetch_toast_slice(). What an ERROR leaves open is closed
        // by the resource owner; none of the frames that it jumps over owns anything.
        unsafe {
            let relation = pg_sys::table_open(table.into(), lock);
            let mut room = pg_sys::SnapshotData::default();
            let snapshot = pg_guard_ffi_boundary(|| {
                let (mut indexes, mut n) = (std::ptr::null_mut(), 0);
                let valid = toast_open_indexes(relation, lock, &mut indexes, &mut n);
                let snapshot = toast_snapshot(&mut room);
                let scan = begin_index_scan(relation, *indexes.add(valid as usize), snapshot, 2);
                (*scan).xs_want_itup = true;
                find_chunks(scan, &self.sorted[range], &mut self.values, &mut self.chunks);
                index_endscan(scan);
                toast_close_indexes(indexes, n, lock);
                snapshot
            });
            if !self.chunks.is_sorted_by_key(|chunk| chunk.place) {
                self.chunks.sort_unstable_by_key(|chunk| chunk.place);
            }
            self.prefetch(relation);
            let pages = pg_sys::RelationGetNumberOfBlocksInFork(relation, pg_sys::ForkNumber::MAIN_FORKNUM);
            let large = pages > pg_sys::NBuffers as u32 / 4;
            let ring = if large { self.ring } else { std::ptr::null_mut() };
            let bytes = self.bytes.as_mut_ptr().cast();
            pg_guard_ffi_boundary(|| {
                copy_chunks(relation, snapshot, ring, &mut self.chunks, &mut self.values, bytes);
            });
            pg_sys::table_close(relation, lock);
        }
    }

    /// Asks the operating system for the pages of the chunks.
    ///
    /// # Safety
    /// The relation is open, and the chunks' table.
    unsafe fn prefetch(&mut self, relation: pg_sys::Relation) {
        // SAFETY: the caller's promise; looks into its tablespace's options and the setting (effective_io_concurrency).
        if unsafe { pg_sys::get_tablespace_io_concurrency((*(*relation).rd_rel).reltablespace) } == 0 {
            return;
        }
        let mut last = None;
        for Chunk { place: (page, _), .. } in &self.chunks {
            if last.replace(page) != Some(page) {
                // SAFETY: the caller's promise; the index says that the page is one of the table's.
                unsafe { self.prefetcher.ask_for(relation, *page) };
            }
        }
    }
}
