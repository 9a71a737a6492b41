//! What a kernel is given: a stretch of the order to learn from.

use std::ops::Range;

use tuples::Batch;

use super::state::State;

/// The numbers that an epoch fixes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    /// The learning rate.
    pub(super) learning_rate: f32,
    /// The factor that the penalty puts on the weights with every step.
    pub(super) shrink: f64,
    /// Whether there is a penalty, be its factor next to 1.
    pub(super) penalty: bool,
}

impl Rates {
    pub(crate) fn new(learning_rate: f64, l2: f64) -> Rates {
        Rates { learning_rate: learning_rate as f32, shrink: 1.0 - learning_rate * l2, penalty: l2 > 0.0 }
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
