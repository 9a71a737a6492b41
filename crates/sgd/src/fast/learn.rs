//! The choice of the kernel for a stretch of the order.

use simd::{Kernel, Level, Simd};

use super::narrow::narrow;
use super::task::Learn;
use super::weights::{Unweighted, Weights};
use super::wide::wide;
use crate::models::Pointwise;

/// The same, with the weights of the tuples, of rows of up to [`SHORT`] chunks.
struct Short<'a, L, W>(Learn<'a, L>, W);

/// The same of longer rows.
struct Long<'a, L, W>(Learn<'a, L>, W);

/// Rows of up to as many chunks keep the weights in registers.
const NARROW: usize = 4;

/// Rows of up to as many chunks do so in registers of half a chunk.
const SHORT: usize = 2;

impl<L: Pointwise> Learn<'_, L> {
    /// Takes the state to the end of the range.
    pub(crate) fn run_on(self, level: Level) {
        match self.batch.weights() {
            None => {
                self.state.accumulator.weights.fill(1.0);
                self.of_length(level, Unweighted);
            }
            Some(weights) => self.of_length(level, weights),
        }
    }

    fn of_length<W: Weights>(self, level: Level, of_tuples: W) {
        match self.state.weights.len() {
            ..=SHORT => level.run_short(Short(self, of_tuples)),
            _ => level.run(Long(self, of_tuples)),
        }
    }

    #[inline(always)]
    fn narrow<const N: usize, S: Simd, W: Weights>(self, simd: S, of_tuples: W) {
        match (self.rates.penalty, self.rates.bound) {
            (false, None) => narrow::<N, false, false, S, L, W>(simd, self, of_tuples),
            (false, Some(_)) => narrow::<N, false, true, S, L, W>(simd, self, of_tuples),
            (true, None) => narrow::<N, true, false, S, L, W>(simd, self, of_tuples),
            (true, Some(_)) => narrow::<N, true, true, S, L, W>(simd, self, of_tuples),
        }
    }
}

impl<L: Pointwise, W: Weights> Kernel for Short<'_, L, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.0.state.weights.len() {
            SHORT => self.0.narrow::<SHORT, S, W>(simd, self.1),
            _ => self.0.narrow::<1, S, W>(simd, self.1),
        }
    }
}

impl<L: Pointwise, W: Weights> Kernel for Long<'_, L, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match (self.0.state.weights.len(), self.0.rates.bound) {
            (3, _) => self.0.narrow::<3, S, W>(simd, self.1),
            (NARROW, _) => self.0.narrow::<NARROW, S, W>(simd, self.1),
            (_, None) => wide::<false, S, L, W>(simd, self.0, self.1),
            (_, Some(_)) => wide::<true, S, L, W>(simd, self.0, self.1),
        }
    }
}
