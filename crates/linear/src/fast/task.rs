//! What a kernel is given: a stretch of the order to learn from.

use std::ops::Range;

use loss::Hyperparameters;
use tuples::Batch;

use super::state::State;

/// The numbers that an epoch fixes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    pub(super) learning_rate: f32,
    /// The factor that the penalty puts on the weights with every step.
    pub(super) shrink: f64,
    /// Whether there is a penalty, be its factor next to 1.
    pub(super) penalty: bool,
    /// The learning rate times the bound of the loss's second derivative, if steps are bounded.
    pub(super) bound: Option<f32>,
}

impl Rates {
    /// Those of this learning rate.
    pub(crate) fn new(hyper: &Hyperparameters, rate: f64) -> Rates {
        Rates {
            learning_rate: rate as f32,
            shrink: 1.0 - hyper.penalty_rate(rate) * hyper.l2,
            penalty: hyper.l2 > 0.0,
            bound: hyper.bounded.then(|| (rate * hyper.kind.curvature()) as f32),
        }
    }
}

/// One stretch of the order to learn from.
pub(crate) struct Learn<'a, L> {
    /// To be taken along.
    pub(crate) state: &'a mut State,
    /// What to minimise.
    pub(crate) loss: L,
    /// The step sizes.
    pub(crate) rates: Rates,
    /// Tuples of the state's number of features, with labels -1 and 1.
    pub(crate) batch: &'a Batch,
    /// Places in the order of the batch.
    pub(crate) range: Range<usize>,
}

/// The `step` along a row of which the `square` of the length, with the constant 1, is known. Its loss bends by
/// curvature * square at most along it, so that a step of 1 / that does not go beyond the least loss on the way: this
/// one never does, whatever the rate. Of a squared loss it is exactly the step of the proximal point method.
#[inline(always)]
pub(super) fn bounded(step: f32, bound: f32, square: f32) -> f32 {
    step / (1.0 + bound * square)
}
