//! The choice of the kernel for a stretch of the order.

use loss::models::Pointwise;
use simd::{Kernel, Level, Simd};

use super::narrow::narrow;
use super::task::Learn;
use super::wide::wide;

/// Learns from rows of up to [`SHORT`] chunks.
struct Short<'a, L>(Learn<'a, L>);

/// The same of longer rows.
struct Long<'a, L>(Learn<'a, L>);

/// Rows of up to as many chunks keep the weights in registers.
const NARROW: usize = 4;

/// Rows of up to as many chunks do so in registers of half a chunk.
const SHORT: usize = 2;

impl<L: Pointwise> Learn<'_, L> {
    /// Takes the state to the end of the range.
    pub(crate) fn run_on(self, level: Level) {
        match self.state.weights.len() {
            ..=SHORT => level.run_short(Short(self)),
            _ => level.run(Long(self)),
        }
    }

    /// Loops of their own are for what most trainings are: with a penalty, steps may be bounded or not.
    #[inline(always)]
    fn narrow<const N: usize, S: Simd>(self, simd: S) {
        match (self.rates.penalty, self.rates.bound) {
            (false, None) => narrow::<N, false, false, S, L>(simd, self),
            (false, Some(_)) => narrow::<N, false, true, S, L>(simd, self),
            (true, _) => narrow::<N, true, true, S, L>(simd, self),
        }
    }
}

impl<L: Pointwise> Kernel for Short<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.0.state.weights.len() {
            SHORT => self.0.narrow::<SHORT, S>(simd),
            _ => self.0.narrow::<1, S>(simd),
        }
    }
}

impl<L: Pointwise> Kernel for Long<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match (self.0.state.weights.len(), self.0.rates.bound) {
            (3, _) => self.0.narrow::<3, S>(simd),
            (NARROW, _) => self.0.narrow::<NARROW, S>(simd),
            (_, None) => wide::<false, S, L>(simd, self.0),
            (_, Some(_)) => wide::<true, S, L>(simd, self.0),
        }
    }
}
