//! The rows of one page, as the decoder reads them raw.

use crate::errors::RowAt;
use crate::operators::decoder::PageRows;
use crate::pg::tuples::fixed_layout::{Destination, Run, Uniform};
use crate::pg::tuples::heap::PageScan;
use crate::pg::tuples::row::{Layout, Row};
use crate::pg::tuples::spool::Spool;
use crate::pg::tuples::toast::Toast;
use crate::pg::values::array::ArrayReader;

/// A page of the heap whose rows are read raw.
pub struct HeapPage<'a> {
    pub scan: &'a mut PageScan,
    pub layout: &'a mut Layout,
    pub toast: &'a mut Toast,
    pub rows: usize,
    /// must it be said in which table a row is?
    pub names_table: bool,
}

impl PageRows for HeapPage<'_> {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline]
    fn row(&mut self, i: usize) -> Row<'_> {
        self.scan.row(i, self.layout, self.toast)
    }

    fn at(&self, i: usize) -> RowAt {
        if self.names_table { self.scan.at_in_table(i) } else { self.scan.at(i) }
    }

    fn uniform(&self, arrays: ArrayReader, len: usize) -> Option<Uniform> {
        self.layout.uniform(arrays, len)
    }

    #[inline]
    fn copy_run(&mut self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        self.scan.copy_run(end, uniform, to)
    }

    #[inline]
    fn prefetch_next(&self, i: usize) {
        self.scan.prefetch_next(i);
    }
}

/// A page of the spool.
pub struct SpoolPage<'a> {
    pub spool: &'a mut Spool,
    pub layout: &'a mut Layout,
    pub toast: &'a mut Toast,
    pub rows: usize,
}

impl PageRows for SpoolPage<'_> {
    fn len(&self) -> usize {
        self.rows
    }

    fn row(&mut self, i: usize) -> Row<'_> {
        self.spool.row(i, self.layout, self.toast)
    }

    fn at(&self, i: usize) -> RowAt {
        self.spool.at(i)
    }

    fn uniform(&self, arrays: ArrayReader, len: usize) -> Option<Uniform> {
        self.layout.uniform(arrays, len)
    }

    fn copy_run(&mut self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        self.spool.copy_run(end, uniform, to)
    }

    fn prefetch_next(&self, _i: usize) {} // a page is copied before it is read: that puts it into the cache
}
