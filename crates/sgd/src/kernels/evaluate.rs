//! The decisions of a model over all rows of a batch.

use tuples::{Batch, LANES};

use super::dispatch::Kernel;
use super::{Chunk, dot};

/// Appends the decision for every row, by place, to `decisions`.
pub(crate) struct Decisions<'a> {
    /// As many chunks as a row has, 0 where the row has its constant 1.
    pub(crate) weights: &'a [Chunk],
    /// To be added to the dot product.
    pub(crate) intercept: f32,
    /// The rows.
    pub(crate) batch: &'a Batch,
    /// What comes out.
    pub(crate) decisions: &'a mut Vec<f32>,
}

impl Kernel for Decisions<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (rows, _) = self.batch.rows().as_chunks::<LANES>();
        for row in rows.chunks_exact(self.weights.len()) {
            self.decisions.push(dot(self.weights, row) + self.intercept);
        }
    }
}
