//! Newton's method: the exact optimum of a loss with two derivatives, in a few passes over the tuples, whatever their
//! order.
//!
//! A pass adds up loss, gradient and Hessian at one point ([`Sums`]); between two passes [`Descent`] makes a step, of
//! which the next pass tells whether it was too long. Everything is in f64.
//!
//! Guarantees: the same bits for the same sequence of tuples, however it is cut and whatever instructions the processor
//! has; the objective never grows from one accepted point to the next, so that no start and no data make it diverge;
//! features that others determine keep their weights, and do no harm. It prevents that a model of the least loss takes
//! hundreds of epochs of small steps, and a reader who compares it with a textbook's result.

mod cholesky;
mod descent;
mod distributions;
mod engine;
mod inference;
mod sums;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use distributions::{two_sided_quantile, two_sided_tail};
pub(crate) use engine::NewtonEngine;
pub use inference::{Estimate, Estimates, Inference, Weighting};

/// Features that are combinations of others, or nearly, so that rows do not tell their weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collinearity {
    /// The features, each of which those before it determine.
    pub features: Vec<usize>,
    /// A lower bound of the condition number of the Hessian, whose features are brought to variance 1; 1 without such
    /// features.
    pub condition: f64,
}

impl Collinearity {
    /// Of features, and the share of the variance of each that the others leave.
    fn of(features: impl Iterator<Item = (usize, f64)>) -> Collinearity {
        let (features, shares): (Vec<usize>, Vec<f64>) = features.unzip();
        Collinearity { features, condition: 1.0 / shares.into_iter().fold(1.0, f64::min) }
    }
}

/// Multiplications between two pauses: some milliseconds.
const PER_PAUSE: usize = 1 << 24;

/// How a model's loss is made small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Solver {
    /// Steps along the gradients of a tuple or a mini-batch.
    #[default]
    Sgd,
    /// Steps by gradient and Hessian of all tuples.
    Newton,
}

impl Solver {
    /// Their names, the default first.
    pub const NAMES: [&'static str; 2] = ["sgd", "newton"];

    /// Features that a Hessian may have: of more, its squares take hundreds of megabytes, and steps minutes.
    pub const MAX_FEATURES: usize = 2_000;

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// That of this name.
    pub fn named(name: &str) -> Option<Solver> {
        [Solver::Sgd, Solver::Newton].into_iter().find(|solver| solver.name() == name)
    }
}
