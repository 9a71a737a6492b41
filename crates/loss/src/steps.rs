//! When steps are made by several processes that learn one model.

use crate::{Hyperparameters, Solver};

/// When trainers that learn together make their steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// each for itself after every tuple; after a buffer their mean is taken
    ByTuple,
    /// after this many tuples of all
    ByMiniBatch(usize),
    /// after as many whole mini-batches of all as there are processes
    ByWholeMiniBatches,
    /// at the end of an epoch
    AtEnd,
}

impl Hyperparameters {
    /// When a trainer makes a step that learns together with others.
    pub fn steps(&self) -> Steps {
        match *self {
            Hyperparameters { solver: Solver::Newton, .. } => Steps::AtEnd,
            Hyperparameters { batch_size: 1, .. } => Steps::ByTuple,
            Hyperparameters { batch_size: Hyperparameters::WHOLE_MINI_BATCHES, .. } => Steps::ByWholeMiniBatches,
            Hyperparameters { batch_size, .. } => Steps::ByMiniBatch(batch_size as usize),
        }
    }
}
