//! Rows of any plan, kept in a temporary file to be read again in any order.
//!
//! The file is a sequence of pages of about a heap page's size, each a run of minimal tuples; it counts against
//! temp_file_limit, and goes away with the query even after an error (the resource owner sees to it).

use super::fixed_layout::{Destination, Run, Uniform};
use super::row::{Layout, Row};
use super::toast::Toast;
use crate::errors::RowAt;
use crate::pg::executor::custom_scan::Slot;
use pgrx::prelude::*;

/// Bytes of one page of the spool, unless a single tuple is larger.
const PAGE: usize = pg_sys::BLCKSZ as usize;

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
    /// the column that has the row's number in the source, from 0, if the rows are in another order
    number: Option<usize>,
}

impl Spool {
    /// An empty spool for rows of this type, which must outlive it.
    pub fn new(descriptor: pg_sys::TupleDesc) -> Spool {
        Spool {
            // SAFETY: belongs to the current resource owner and memory context, those of the running query.
            file: unsafe { pg_sys::BufFileCreateTemp(false) },
            descriptor,
            ends: Vec::new(),
            rows_until: Vec::new(),
            rows: 0,
            buffer: Vec::new(),
            used: 0,
            tuples: Vec::new(),
            current: 0,
            number: None,
        }
    }

    /// An empty spool for rows of this type, of which the given column has the row's number in the source, from 0.
    pub(in crate::pg) fn numbered(descriptor: pg_sys::TupleDesc, number: usize) -> Spool {
        Spool { number: Some(number), ..Spool::new(descriptor) }
    }

    /// A layout for the columns of the spooled rows.
    pub fn layout(&self, columns: &[usize]) -> Option<Layout> {
        // SAFETY: the descriptor outlives the spool, and the layout is used with it.
        unsafe { Layout::new(self.descriptor, columns) }
    }

    /// Appends a row.
    pub fn push(&mut self, row: Slot) {
        // SAFETY: a minimal tuple begins with its length; the copy is freed as soon as its bytes are taken.
        unsafe {
            let mut free = false;
            let tuple = pg_sys::ExecFetchSlotMinimalTuple(row.0, &mut free);
            let len = (*tuple).t_len as usize;
            let space = len.next_multiple_of(8);
            if self.used > 0 && self.used + space > PAGE {
                self.finish_page();
            }
            if self.buffer.len() * 8 < self.used + space {
                self.buffer.resize((self.used + space).max(PAGE) / 8, 0);
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
        self.ends.push(self.bytes() + self.used as u64);
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
    pub fn load(&mut self, page: u32) -> usize {
        crate::pg::check_for_interrupts();
        self.current = page as usize;
        let start = self.current.checked_sub(1).map_or(0, |before| self.ends[before]);
        let bytes = (self.ends[self.current] - start) as usize;
        self.buffer.resize(self.buffer.len().max(bytes.div_ceil(8)), 0);
        self.tuples.clear();
        // SAFETY: the place was written by finish_page; the buffer has room for the page. Tuples lie one behind the other,
        // each beginning with its length.
        unsafe {
            // The file goes on in another after each gigabyte; the seek finds out in which.
            let failed = pg_sys::BufFileSeek(self.file, 0, start as i64, SEEK_SET) != 0;
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
        self.tuples.len()
    }

    /// Row `i` of the page, decoded as far as `layout` wants, with what it has in a TOAST table: rows of a table are
    /// spooled with pointers to it.
    #[inline]
    pub fn row<'a>(&mut self, i: usize, layout: &'a mut Layout, toast: &mut Toast) -> Row<'a> {
        let (start, tuples) = (self.buffer.as_mut_ptr().cast::<u8>(), &self.tuples);
        // SAFETY: a minimal tuple is a heap tuple without its first MINIMAL_TUPLE_OFFSET bytes, which nobody reads; it
        // stays where it is until the next load.
        unsafe {
            let tuple = |i: usize| start.add(tuples[i]).wrapping_sub(MINIMAL_TUPLE_OFFSET).cast();
            toast.row(i, tuples.len(), tuple, layout)
        }
    }

    /// Copies rows before `end`, from the last to the first, as far as they are as `uniform` says.
    pub fn copy_run(&self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        let (start, tuples) = (self.buffer.as_ptr().cast::<u8>(), &self.tuples[..end]);
        // SAFETY: as in row().
        unsafe { uniform.copy(end, |i| start.add(tuples[i]).wrapping_sub(MINIMAL_TUPLE_OFFSET), to) }
    }

    /// Which row of the source this is.
    pub fn at(&self, i: usize) -> RowAt {
        let number = match self.number {
            Some(column) => self.column(i, column).value() as u64,
            None => self.current.checked_sub(1).map_or(0, |before| self.rows_until[before]) + i as u64,
        };
        RowAt::Number(number + 1)
    }

    /// A column, never NULL, of row `i` of the page.
    fn column(&self, i: usize, column: usize) -> pg_sys::Datum {
        // SAFETY: as in row(); the arrays are as long as the descriptor says.
        unsafe {
            let columns = (*self.descriptor).natts as usize;
            let (mut values, mut nulls) = (vec![pg_sys::Datum::null(); columns], vec![false; columns]);
            let tuple = self.buffer.as_ptr().cast::<u8>().add(self.tuples[i]).wrapping_sub(MINIMAL_TUPLE_OFFSET);
            let mut tuple = pg_sys::HeapTupleData { t_data: tuple.cast_mut().cast(), ..Default::default() };
            pg_sys::heap_deform_tuple(&mut tuple, self.descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            values[column]
        }
    }

    /// Puts row `i` of the page into a slot for minimal tuples.
    pub fn store(&mut self, i: usize, slot: Slot) {
        // SAFETY: the tuple stays until the next load, and the slot's reader is done with it by then.
        unsafe { pg_sys::ExecStoreMinimalTuple(self.tuple(i), slot.0, false) };
    }

    fn tuple(&mut self, i: usize) -> pg_sys::MinimalTuple {
        let at = self.tuples[i];
        // SAFETY: offsets were found by load() within the buffer.
        unsafe { self.buffer.as_mut_ptr().cast::<u8>().add(at).cast() }
    }

    /// Deletes the file.
    pub fn end(self) {
        // SAFETY: opened in new, closed once.
        unsafe { pg_sys::BufFileClose(self.file) }
    }
}

/// SEEK_SET, the same on every POSIX system.
const SEEK_SET: i32 = 0;

/// MINIMAL_TUPLE_OFFSET of htup_details.h
const MINIMAL_TUPLE_OFFSET: usize = std::mem::offset_of!(pg_sys::HeapTupleHeaderData, t_infomask2)
    - std::mem::offset_of!(pg_sys::MinimalTupleData, t_infomask2);
