//! What every model says about itself.

use super::objective::Objective;
use crate::network::Design;
use crate::{Optimizer, Schedule};

/// What labels and decisions mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Two classes: labels are -1 and 1, and the sign of the one decision is the class.
    Binary,
    /// Labels are numbers, and the one decision is the prediction.
    Regression,
    /// Any number of classes: labels are their numbers from 0, and the greatest decision is that of the class.
    Classes,
}

/// What a model starts from unless the user says otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) learning_rate: f64,
    /// of the rate from epoch to epoch
    pub(crate) decay: f64,
    /// that for tuples of length 1, of a rate that follows from the tuples
    pub(crate) automatic_rate: f64,
    pub(crate) batch_size: u32,
    pub(crate) optimizer: Optimizer,
    /// What a network is made of; None for linear models.
    pub(crate) design: Option<Design>,
}

impl Defaults {
    /// Those of a linear model.
    pub(crate) const LINEAR: Defaults = Defaults {
        learning_rate: 0.01,
        decay: Schedule::DECAY,
        automatic_rate: 1.0,
        batch_size: 1,
        optimizer: Optimizer::Sgd,
        design: None,
    };
}

/// The loss of a tuple, and its derivatives by the decision.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Derivatives {
    pub(crate) loss: f64,
    pub(crate) first: f64,
    pub(crate) second: f64,
}

impl Derivatives {
    /// Those of so many tuples like it.
    #[inline(always)]
    pub(crate) fn times(self, weight: f64) -> Derivatives {
        Derivatives { loss: weight * self.loss, first: weight * self.first, second: weight * self.second }
    }
}

/// A model.
pub(crate) trait Model {
    /// The name by which users know it.
    const NAME: &'static str;

    /// What else users may call it.
    const ALIASES: &'static [&'static str];

    /// What it is, in an error: "an SVM".
    const DESCRIPTION: &'static str;

    /// What labels and decisions mean.
    const TASK: Task;

    /// Whether its decisions stand for probabilities.
    const HAS_PROBABILITIES: bool;

    /// A bound of the second derivative of its loss by a decision. A loss with corners says how far a step may move a
    /// decision: the distance from one margin to the other.
    const CURVATURE: f64;

    /// Whether its loss has a second derivative by its one decision everywhere, so that Newton's method can be used.
    const IS_SMOOTH: bool = false;

    /// Loss and derivatives at this decision, to the rounding of f64 and the same bits on every machine.
    ///
    /// # Panics
    /// If it is not [smooth](Model::IS_SMOOTH).
    #[inline(always)]
    fn derivatives(_z: f64, _y: f64) -> Derivatives {
        unreachable!("a loss without a second derivative")
    }

    /// The loss of a tuple with these decisions, to the rounding of f64.
    fn exact_loss(decisions: &[f32], y: f32) -> f64;

    /// The least mean loss of a model that says the same of every tuple, if classes have these shares of the tuples,
    /// which add up to 1; None of a model without classes.
    fn constant_loss(shares: &[f64]) -> Option<f64>;

    /// What it starts from unless the user says otherwise.
    fn defaults() -> Defaults {
        Defaults::LINEAR
    }
}

/// A model without hidden layers.
pub(crate) trait LinearModel: Model + Objective {
    /// What it minimises.
    fn objective() -> Self;
}
