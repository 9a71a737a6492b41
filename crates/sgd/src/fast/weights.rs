//! The weights of tuples.

/// Where the weights of tuples come from.
pub(super) trait Weights: Copy {
    /// Whether there are any.
    const WEIGHTED: bool;

    /// `number` times the weight of tuple `i`.
    fn times(self, i: usize, number: f32) -> f32;
}

/// All are 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unweighted;

impl Weights for Unweighted {
    const WEIGHTED: bool = false;

    #[inline(always)]
    fn times(self, _: usize, number: f32) -> f32 {
        number
    }
}

impl Weights for &[f32] {
    const WEIGHTED: bool = true;

    #[inline(always)]
    fn times(self, i: usize, number: f32) -> f32 {
        self[i] * number
    }
}
