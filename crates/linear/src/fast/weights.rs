//! The weights of tuples.

use tuples::Batch;

/// The weights of a batch's tuples: looked up without a branch, also without any and all are 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weights<'a> {
    weights: &'a [f32],
    /// of places: 0 if all tuples have the same weight
    mask: usize,
}

impl<'a> Weights<'a> {
    #[inline(always)]
    pub(super) fn new(batch: &'a Batch) -> Weights<'a> {
        match batch.weights() {
            None => Weights { weights: &[1.0], mask: 0 },
            Some(weights) => Weights { weights, mask: usize::MAX },
        }
    }

    /// Whether there are any.
    #[inline(always)]
    pub(super) fn are_given(self) -> bool {
        self.mask != 0
    }

    /// That of tuple `i`.
    #[inline(always)]
    pub(super) fn of(self, i: usize) -> f32 {
        self.weights[i & self.mask]
    }
}
