//! The features of the tuples, in the form that they have.

use crate::dense::Dense;
use crate::mini_batches::MiniBatches;
use crate::sparse::Sparse;

#[derive(Debug)]
pub(super) enum Rows {
    Dense(Dense),
    Sparse(Sparse),
    MiniBatches(MiniBatches),
}

pub(super) const DENSE_ONLY: &str = "a batch of dense tuples";
pub(super) const SPARSE_ONLY: &str = "a batch of sparse tuples";
pub(super) const MINI_BATCHES_ONLY: &str = "a batch of mini-batches";

/// Dense tuples that were appended together and wait for their contents.
#[derive(Debug)]
pub struct RowsMut<'a> {
    pub(super) dim: usize,
    pub(super) stride: usize,
    pub(super) labels: &'a mut [f32],
    pub(super) rows: &'a mut [f32],
}

impl RowsMut<'_> {
    /// How many tuples there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// All labels, and all rows, [`Batch::stride`](crate::Batch::stride) floats apart,
    /// of which the first `dim` floats each are to be written.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [f32], &mut [f32], usize) {
        (self.labels, self.rows, self.stride)
    }

    /// Label and features (`dim` long) of the `i`th of these tuples.
    ///
    /// # Panics
    /// If there is no `i`th.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> (&mut f32, &mut [f32]) {
        let start = i * self.stride;
        (&mut self.labels[i], &mut self.rows[start..start + self.dim])
    }
}
