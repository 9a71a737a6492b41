//! Tuples that go from one process to another.

use super::Batch;
use super::rows::Rows;
use crate::OutOfMemory;
use crate::dense::{Dense, Memory};
use crate::sparse::{Sparse, SparseParts};

/// Tuples that another process has decoded: what [`Batch::adopt_rows`] needs of them besides dense rows.
#[derive(Debug)]
pub struct TupleColumns<'a> {
    /// by place, one for each tuple
    pub labels: &'a [f32],
    /// by place; None if all are 1
    pub weights: Option<&'a [f32]>,
    /// places to learn from, one after the other
    pub order: &'a [u32],
}

impl Batch {
    /// Makes this a batch of dense tuples with `dim` features whose rows lie in `rows`, one [`stride`](Batch::stride)
    /// after the other, complete with their constant 1.
    ///
    /// # Errors
    /// [`OutOfMemory`]; then the batch is empty.
    ///
    /// # Panics
    /// If there are fewer rows than labels, or other numbers of weights than of labels, or the order has a place
    /// without a tuple.
    pub fn adopt_rows(
        &mut self,
        dim: usize,
        rows: Box<dyn Memory>,
        others: &TupleColumns<'_>,
    ) -> Result<(), OutOfMemory> {
        self.rows = Rows::Dense(Dense::adopt(dim, rows));
        assert!(self.dense_rows().capacity >= others.labels.len(), "a row for each label");
        self.copy_columns(others)
    }

    /// Makes this a batch of sparse tuples with copies of these rows.
    ///
    /// # Errors
    /// [`OutOfMemory`]; then the batch is empty.
    ///
    /// # Panics
    /// If there are not as many rows as labels and weights, or the rows do not end where the entries do, or the order
    /// has a place without a tuple.
    pub fn copy_rows(&mut self, rows: &SparseParts<'_>, others: &TupleColumns<'_>) -> Result<(), OutOfMemory> {
        assert!(rows.ends.len() == others.labels.len(), "a row for each label");
        let mut sparse = match std::mem::replace(&mut self.rows, Rows::Sparse(Sparse::new())) {
            Rows::Sparse(sparse) => sparse,
            Rows::Dense(_) | Rows::MiniBatches(_) => Sparse::new(),
        };
        sparse.copy_from(rows)?;
        self.rows = Rows::Sparse(sparse);
        self.copy_columns(others)
    }

    fn copy_columns(&mut self, others: &TupleColumns<'_>) -> Result<(), OutOfMemory> {
        let len = others.labels.len();
        assert!(others.weights.is_none_or(|weights| weights.len() == len), "a weight for each label");
        self.len = 0;
        self.columns.copy_from(others.labels, others.weights)?;
        self.len = len;
        self.set_order(others.order)
    }

    /// Lets go of memory that is not the process's own, and of all tuples.
    pub fn release(&mut self) {
        self.clear();
        if let Rows::Dense(dense) = &mut self.rows {
            let allocator = dense.allocator.take();
            *dense = Dense::new(dense.dim);
            dense.allocator = allocator;
        }
    }

    /// The memory in which the dense rows lie, if it is not the process's own.
    pub fn memory(&self) -> Option<&dyn Memory> {
        match &self.rows {
            Rows::Dense(dense) => dense.memory(),
            Rows::Sparse(_) | Rows::MiniBatches(_) => None,
        }
    }

    /// All sparse rows, to be copied elsewhere; None if the tuples are not sparse.
    pub fn sparse_parts(&self) -> Option<SparseParts<'_>> {
        match &self.rows {
            Rows::Dense(_) | Rows::MiniBatches(_) => None,
            Rows::Sparse(sparse) => Some(sparse.parts()),
        }
    }
}
