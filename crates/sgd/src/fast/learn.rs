//! The choice of the kernel for a stretch of the order.

use simd::{Kernel, Level, Simd};

use super::narrow::narrow;
use super::task::Learn;
use super::weights::{Unweighted, Weights};
use super::wide::wide;
use crate::models::Pointwise;

/// The same, with the weights of the tuples.
struct Weighted<'a, L, W>(Learn<'a, L>, W);

/// Rows of up to as many chunks keep the weights in registers.
const NARROW: usize = 4;

/// Rows of up to as many chunks do so in registers of half a chunk.
const HALF: usize = 2;

impl<L: Pointwise> Learn<'_, L> {
    /// Takes the state to the end of the range.
    pub(crate) fn run_on(self, level: Level) {
        let level = if self.state.weights.len() <= HALF { level.at_most_avx2() } else { level };
        match self.batch.weights() {
            None => {
                self.state.accumulator.weights.fill(1.0);
                level.run(Weighted(self, Unweighted));
            }
            Some(weights) => level.run(Weighted(self, weights)),
        }
    }
}

impl<L: Pointwise, W: Weights> Kernel for Weighted<'_, L, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Weighted(learn, weights) = self;
        match (learn.state.weights.len(), learn.rates.penalty) {
            (1, false) => narrow::<1, false, S, L, W>(simd, learn, weights),
            (1, true) => narrow::<1, true, S, L, W>(simd, learn, weights),
            (2, false) => narrow::<2, false, S, L, W>(simd, learn, weights),
            (2, true) => narrow::<2, true, S, L, W>(simd, learn, weights),
            (3, false) => narrow::<3, false, S, L, W>(simd, learn, weights),
            (3, true) => narrow::<3, true, S, L, W>(simd, learn, weights),
            (NARROW, false) => narrow::<NARROW, false, S, L, W>(simd, learn, weights),
            (NARROW, true) => narrow::<NARROW, true, S, L, W>(simd, learn, weights),
            _ => wide(simd, learn, weights),
        }
    }
}
