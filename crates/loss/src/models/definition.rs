//! What every model says about itself.

use super::objective::Objective;
use crate::range::Range;
use crate::{Design, Optimizer, Schedule};

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

/// How a decision becomes what a regression predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The decision is the prediction.
    Identity,
    /// The decision is the logarithm of the prediction, which is above 0; targets are at least 0.
    Logarithm,
}

impl Link {
    /// What a decision predicts; with [`Link::Logarithm`] infinite above 709.78.
    #[inline]
    pub fn prediction(self, decision: f32) -> f64 {
        match self {
            Link::Identity => f64::from(decision),
            Link::Logarithm => f64::from(decision).exp(),
        }
    }
}

/// A number that a loss has of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossNumber {
    /// The name by which users know it.
    pub name: &'static str,
    /// What it may be.
    pub range: Range,
    /// What it is unless the user says otherwise.
    pub default: f64,
}

/// How loss and its number change when targets and predictions are multiplied by a factor: by which power of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetUnits {
    /// of the loss
    pub loss: i32,
    /// of the loss's number
    pub number: i32,
}

/// What a model starts from unless the user says otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) learning_rate: f64,
    /// of the rate from epoch to epoch
    pub(crate) decay: f64,
    /// that for tuples of length 1, of a rate that follows from the tuples
    pub(crate) automatic_rate: f64,
    /// the part of itself that such a rate falls to over the epochs that follow from the tuples
    pub(crate) automatic_fall: f64,
    pub(crate) batch_size: u32,
    pub(crate) optimizer: Optimizer,
    /// What a network is made of; None for linear models.
    pub(crate) design: Option<Design>,
}

impl Defaults {
    pub(crate) const LINEAR: Defaults = Defaults {
        learning_rate: 0.01,
        decay: Schedule::DECAY,
        automatic_rate: 1.0,
        automatic_fall: 0.01,
        batch_size: 1,
        optimizer: Optimizer::Sgd,
        design: None,
    };
}

/// The loss of a tuple, and its derivatives by the decision.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Derivatives {
    /// the loss itself
    pub loss: f64,
    /// the first derivative
    pub first: f64,
    /// the second derivative
    pub second: f64,
}

impl Derivatives {
    /// Those of this many tuples like it.
    #[inline(always)]
    pub fn times(self, weight: f64) -> Derivatives {
        Derivatives { loss: weight * self.loss, first: weight * self.first, second: weight * self.second }
    }
}

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

    /// How a decision becomes a prediction, of a regression.
    const LINK: Link = Link::Identity;

    /// The number that its loss has, if it has one.
    const LOSS_NUMBER: Option<LossNumber> = None;

    /// Whether the number is a multiple of the scale of the residuals, which is found along with the model.
    const FOLLOWS_RESIDUALS: bool = false;

    /// How its loss changes with the units of the targets, of a regression.
    const TARGET_UNITS: TargetUnits = TargetUnits { loss: 2, number: 0 };

    /// A bound of the second derivative of its loss by a decision, for those tuples whose
    /// [`bend`](super::objective::Pointwise::bend) is 1. A loss with corners says how far a step may move a
    /// decision: the distance from one margin to the other.
    const CURVATURE: f64;

    /// Whether the first derivative of its loss by a decision jumps somewhere, of a linear model.
    const HAS_CORNERS: bool = false;

    /// Whether its loss has a second derivative by its one decision everywhere, so that Newton's method can be used.
    const IS_SMOOTH: bool = false;

    /// Loss and derivatives at this decision, to the rounding of f64 and the same bits on every machine.
    #[inline(always)]
    fn derivatives(_z: f64, _y: f64) -> Derivatives {
        unreachable!("a loss without a second derivative")
    }

    /// The loss of a tuple with these decisions, to the rounding of f64, if this is the [number](Model::LOSS_NUMBER) of
    /// the loss.
    fn exact_loss(decisions: &[f32], y: f64, number: f64) -> f64;

    /// The least mean loss of a model that says the same of every tuple, if classes have these shares of the tuples,
    /// which add up to 1; None of a model without classes.
    fn constant_loss(_shares: &[f64]) -> Option<f64> {
        None
    }

    /// What it starts from unless the user says otherwise.
    fn defaults() -> Defaults {
        Defaults::LINEAR
    }
}

/// A model without hidden layers.
pub(crate) trait LinearModel: Model + Objective {
    /// What it minimises, if this is the [number](Model::LOSS_NUMBER) of the loss.
    fn objective(number: f32) -> Self;
}
