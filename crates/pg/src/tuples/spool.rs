//! Rows of any plan, kept in a temporary file to be read again in any order.
//!
//! The file is a sequence of pages of about a heap page's size, each a run of minimal tuples; it counts against
//! temp_file_limit, and goes away with the query even after an error (the resource owner sees to it).

use super::fixed_layout::{Destination, Run, Uniform};
use super::row::{Layout, Row};
use super::slot::{LentRows, Slot};
use super::toast::Toast;
use crate::interrupts::check_for_interrupts;
use crate::tuples::place::RowAt;
use pgrx::prelude::*;
use std::marker::PhantomData;

/// Bytes of one page of the spool, unless a single tuple is larger.
const PAGE: usize = pg_sys::BLCKSZ as usize;

/// The type of rows: which columns they have.
#[derive(Clone, Copy)]
pub struct RowType<'a>(pg_sys::TupleDesc, PhantomData<&'a ()>);

impl RowType<'_> {
    /// The row type that a descriptor describes.
    ///
    /// # Safety
    /// The descriptor stays as long as it is borrowed.
    pub(crate) unsafe fn new<'a>(descriptor: pg_sys::TupleDesc) -> RowType<'a> {
        RowType(descriptor, PhantomData)
    }

    pub(crate) fn descriptor(self) -> pg_sys::TupleDesc {
        self.0
    }
}

/// Rows, once written and then read by page.
pub struct Spool {
    file: *mut pg_sys::BufFile,
    descriptor: pg_sys::TupleDesc,
    /// where each page ends in the file; a word per page, for a table of 100 GB has over ten million
    ends: Vec<u64>,
    /// rows on all pages up to and with each, unless rows have their numbers with them
    rows_until: Vec<u64>,
    /// rows pushed so far
    rows: u64,
    /// the page that is being written, or was read last; in words, to be aligned for tuples
    buffer: Vec<u64>,
    /// bytes of it that are in use while writing
    used: usize,
    /// offsets of the tuples on the page that was read last
    tuples: Vec<usize>,
    /// number of that page
    current: usize,
    /// rows on the page that was read last, 0 while writing
    loaded: usize,
    /// the column that has the row's number in the source, from 0, if the rows are in another order
    number: Option<usize>,
    lent: LentRows,
}

impl Spool {
    /// An empty spool for rows of this type. It belongs to the current memory context and resource owner, those of the
    /// running query.
    pub fn new(row_type: RowType<'_>) -> Spool {
        // SAFETY: the descriptor is there, and copied.
        let (file, descriptor) =
            unsafe { (pg_sys::BufFileCreateTemp(false), pg_sys::CreateTupleDescCopy(row_type.descriptor())) };
        Spool {
            file,
            descriptor,
            ends: Vec::new(),
            rows_until: Vec::new(),
            rows: 0,
            buffer: Vec::new(),
            used: 0,
            tuples: Vec::new(),
            current: 0,
            loaded: 0,
            number: None,
            lent: LentRows::default(),
        }
    }

    /// An empty spool for rows of this type, of which the given column has the row's number in the source, from 0.
    pub(super) fn numbered(row_type: RowType<'_>, number: usize) -> Spool {
        Spool { number: Some(number), ..Spool::new(row_type) }
    }

    /// A layout for the columns of the spooled rows.
    #[inline]
    pub fn layout(&self, columns: &[usize]) -> Option<Layout> {
        // SAFETY: the descriptor lives as long as the query, and a layout is read with the spool only.
        unsafe { Layout::new(self.descriptor, columns) }
    }

    /// Appends a row of the spool's type. An ERROR if it has not as many columns.
    #[inline]
    pub fn push(&mut self, row: Slot<'_>) {
        self.loaded = 0;
        // SAFETY: the slot holds a row; a minimal tuple begins with its length, and the copy is freed as soon as its
        // bytes are taken.
        unsafe {
            if (*(*row.0).tts_tupleDescriptor).natts != (*self.descriptor).natts {
                error!("the spool received a row of another type");
            }
            let mut free = false;
            let tuple = pg_sys::ExecFetchSlotMinimalTuple(row.0, &mut free);
            let len = (*tuple).t_len as usize;
            let space = len.next_multiple_of(8);
            if self.used > 0 && self.used + space > PAGE {
                self.finish_page();
            }
            if self.buffer.len() * 8 < self.used + space {
                allocation::resize(&mut self.buffer, (self.used + space).max(PAGE) / 8, 0);
            }
            let to = self.buffer.as_mut_ptr().cast::<u8>().add(self.used);
            std::ptr::copy_nonoverlapping(tuple.cast::<u8>(), to, len);
            self.used += space;
            self.rows += 1;
            if free {
                pg_sys::pfree(tuple.cast());
            }
        }
    }

    /// Ends writing.
    pub fn finish(&mut self) {
        if self.used > 0 {
            self.finish_page();
        }
    }

    fn finish_page(&mut self) {
        // SAFETY: the buffer holds `used` bytes; the file is open, and its place is the end.
        unsafe { pg_sys::BufFileWrite(self.file, self.buffer.as_mut_ptr().cast(), self.used) };
        let end = self.bytes() + self.used as u64;
        allocation::push(&mut self.ends, end);
        if self.number.is_none() {
            self.rows_until.push(self.rows);
        }
        self.used = 0;
    }

    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Pages written.
    pub fn pages(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Reads a page and returns how many rows it has.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn load(&mut self, page: u32) -> usize {
        check_for_interrupts();
        // SAFETY: the query goes on.
        unsafe { self.lent.recall() };
        self.loaded = 0;
        self.current = page as usize;
        let start = self.current.checked_sub(1).map_or(0, |before| self.ends[before]);
        let bytes = (self.ends[self.current] - start) as usize;
        let words = self.buffer.len().max(bytes.div_ceil(8));
        allocation::resize(&mut self.buffer, words, 0);
        self.tuples.clear();
        // SAFETY: the place was written by finish_page; the buffer has room for the page. Tuples lie one behind the
        // other, each beginning with its length.
        unsafe {
            // The file goes on in another after each gigabyte; the seek finds out in which.
            let failed = pg_sys::BufFileSeek(self.file, 0, start as i64, libc::SEEK_SET) != 0;
            let start = self.buffer.as_mut_ptr().cast::<u8>();
            if failed || pg_sys::BufFileRead(self.file, start.cast(), bytes) != bytes {
                error!("could not read the spool of the training source back");
            }
            let mut at = 0;
            while at < bytes {
                self.tuples.push(at);
                at += (*start.add(at).cast::<pg_sys::MinimalTupleData>()).t_len.next_multiple_of(8) as usize;
            }
        }
        self.loaded = self.tuples.len();
        self.loaded
    }

    /// Which row of the source this is.
    #[inline]
    pub fn at(&self, i: usize) -> RowAt {
        let number = match self.number {
            Some(column) => self.column(i, column).value() as u64,
            None => self.current.checked_sub(1).map_or(0, |before| self.rows_until[before]) + i as u64,
        };
        RowAt::Number(number + 1)
    }

    /// Where row `i` of the page would begin as a heap tuple.
    #[inline]
    fn heap_tuple(&self, i: usize) -> *const u8 {
        self.buffer.as_ptr().cast::<u8>().wrapping_add(self.tuples[i]).wrapping_sub(MINIMAL_TUPLE_OFFSET)
    }

    /// A column, never NULL, of row `i` of the page.
    fn column(&self, i: usize, column: usize) -> pg_sys::Datum {
        assert!(i < self.loaded);
        // SAFETY: the tuple is on the page that was loaded; a minimal tuple is a heap tuple without its first bytes,
        // which no one reads. The arrays are as long as the descriptor says.
        unsafe {
            let columns = (*self.descriptor).natts as usize;
            let (mut values, mut nulls) = (vec![pg_sys::Datum::null(); columns], vec![false; columns]);
            let tuple = self.heap_tuple(i).cast_mut().cast();
            let mut tuple = pg_sys::HeapTupleData { t_data: tuple, ..Default::default() };
            pg_sys::heap_deform_tuple(&mut tuple, self.descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            values[column]
        }
    }

    /// Puts row `i` of the page into a slot for minimal tuples, where it stays until another page is loaded.
    pub fn store(&mut self, i: usize, slot: Slot<'_>) {
        assert!(i < self.loaded);
        self.lent.lend(slot);
        // SAFETY: load() has found the tuple in the buffer, where it stays until the next load empties the slot.
        unsafe {
            let tuple = self.buffer.as_mut_ptr().cast::<u8>().add(self.tuples[i]).cast();
            pg_sys::ExecStoreMinimalTuple(tuple, slot.0, false);
        }
    }

    /// Deletes the file. Slots that have one of its rows are emptied.
    pub fn end(mut self) {
        // SAFETY: opened in new, closed once, while the query goes on.
        unsafe {
            self.lent.recall();
            pg_sys::BufFileClose(self.file);
        }
    }
}

/// The rows of the page of a spool that was loaded last, decoded as far as a layout wants. No other page is loaded as
/// long as they are read.
pub struct SpoolRows<'a> {
    spool: &'a Spool,
    layout: &'a mut Layout,
    toast: &'a mut Toast,
}

impl<'a> SpoolRows<'a> {
    /// The rows of the page that was loaded last, with what they have in TOAST tables: rows of a table are spooled with
    /// pointers to it.
    ///
    /// # Panics
    /// If the layout is one for other rows.
    pub fn new(spool: &'a Spool, layout: &'a mut Layout, toast: &'a mut Toast) -> SpoolRows<'a> {
        assert!(layout.descriptor() == spool.descriptor, "a layout for these rows");
        toast.forget();
        SpoolRows { spool, layout, toast }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.spool.loaded
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn row(&mut self, i: usize) -> Row<'_> {
        let rows = self.spool.loaded;
        assert!(i < rows);
        let spool = self.spool;
        // SAFETY: the tuples lie in the spool's buffer as long as it is borrowed, and are of the layout's row type. A
        // minimal tuple is a heap tuple without its first bytes, which no one reads.
        unsafe { self.toast.row(i, rows, |i| spool.heap_tuple(i).cast_mut().cast(), self.layout) }
    }

    /// The layout of the rows.
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.layout
    }

    /// Copies rows before `end`, from the last to the first, as far as they are as `uniform` says.
    ///
    /// # Panics
    /// If `uniform` is for other rows, or there are fewer.
    #[inline]
    pub fn copy_run(&self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        assert!(end <= self.spool.loaded && uniform.descriptor == self.layout.descriptor());
        // SAFETY: up to `end` these are rows of the loaded page, of the type for which `uniform` was made.
        unsafe { uniform.copy(end, |i| self.spool.heap_tuple(i), to) }
    }

    /// Which row of the source row `i` is.
    #[inline]
    pub fn at(&self, i: usize) -> RowAt {
        self.spool.at(i)
    }
}

/// MINIMAL_TUPLE_OFFSET of htup_details.h
const MINIMAL_TUPLE_OFFSET: usize = std::mem::offset_of!(pg_sys::HeapTupleHeaderData, t_infomask2)
    - std::mem::offset_of!(pg_sys::MinimalTupleData, t_infomask2);
