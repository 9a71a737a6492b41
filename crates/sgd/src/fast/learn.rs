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
        match self.0.rates.bound {
            Some(_) => self.of_length::<true, S>(simd),
            None => self.of_length::<false, S>(simd),
        }
    }
}

impl<L: Pointwise, W: Weights> Weighted<'_, L, W> {
    #[inline(always)]
    fn of_length<const BOUNDED: bool, S: Simd>(self, simd: S) {
        match self.0.state.weights.len() {
            1 => self.narrow::<1, BOUNDED, S>(simd),
            2 => self.narrow::<2, BOUNDED, S>(simd),
            3 => self.narrow::<3, BOUNDED, S>(simd),
            NARROW => self.narrow::<NARROW, BOUNDED, S>(simd),
            _ => wide::<BOUNDED, S, L, W>(simd, self.0, self.1),
        }
    }

    #[inline(always)]
    fn narrow<const N: usize, const BOUNDED: bool, S: Simd>(self, simd: S) {
        match self.0.rates.penalty {
            false => narrow::<N, false, BOUNDED, S, L, W>(simd, self.0, self.1),
            true => narrow::<N, true, BOUNDED, S, L, W>(simd, self.0, self.1),
        }
    }
}
