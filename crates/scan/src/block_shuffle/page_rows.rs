//! The rows of one page, as the decoder reads them raw.

use decode::PageRows;
use errors::RowAt;
use pg::tuples::fixed_layout::{Destination, Run, Uniform};
use pg::tuples::heap::HeapRows;
use pg::tuples::row::Row;
use pg::tuples::spool::SpoolRows;
use pg::values::number::NumberType;
use pg::values::vector::VectorReader;

/// A page of the heap whose rows are read raw.
pub struct HeapPage<'a> {
    pub rows: HeapRows<'a>,
    /// must it be said in which table a row is?
    pub names_table: bool,
}

impl PageRows for HeapPage<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn row(&mut self, i: usize) -> Row<'_> {
        self.rows.row(i)
    }

    fn at(&self, i: usize) -> RowAt {
        self.rows.at(i, self.names_table)
    }

    fn uniform(&self, vectors: VectorReader, len: usize) -> Option<Uniform> {
        self.rows.layout().uniform(vectors, len)
    }

    fn uniform_columns(&self, numbers: &[NumberType]) -> Option<Uniform> {
        self.rows.layout().uniform_columns(numbers)
    }

    #[inline]
    fn copy_run(&mut self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        self.rows.copy_run(end, uniform, to)
    }

    #[inline]
    fn prefetch_next(&self, i: usize) {
        self.rows.prefetch_next(i);
    }
}

pub struct SpoolPage<'a>(pub SpoolRows<'a>);

impl PageRows for SpoolPage<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn row(&mut self, i: usize) -> Row<'_> {
        self.0.row(i)
    }

    fn at(&self, i: usize) -> RowAt {
        self.0.at(i)
    }

    fn uniform(&self, vectors: VectorReader, len: usize) -> Option<Uniform> {
        self.0.layout().uniform(vectors, len)
    }

    fn uniform_columns(&self, numbers: &[NumberType]) -> Option<Uniform> {
        self.0.layout().uniform_columns(numbers)
    }

    fn copy_run(&mut self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        self.0.copy_run(end, uniform, to)
    }

    fn prefetch_next(&self, _i: usize) {} // a page is copied before it is read: that puts it into the cache
}
