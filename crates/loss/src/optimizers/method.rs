//! What every optimizer says about itself, and does.

use std::fmt;

use super::lazy_weights::{LazyWeights, MissedSteps};
use crate::invalid::{InvalidHyperparameter, Parameter};
use crate::range::Range;

/// The numbers of an optimizer, in the order of its [parameters](Method::PARAMETERS), and zeros.
pub(crate) type Values = [f64; 3];

/// An optimizer with its numbers.
pub trait Method: Copy + fmt::Display {
    /// The name that the option `optimizer` has.
    const NAME: &'static str;

    /// How many numbers it remembers of each weight, at most two.
    const MOMENTS: usize;

    /// Its default learning rate, if its steps do not grow with the gradient. None: the model's, or one that follows
    /// from the rows.
    const LEARNING_RATE: Option<f64>;

    /// Its numbers.
    const PARAMETERS: &'static [Parameter];

    /// Checks the numbers.
    fn validate(self) -> Result<(), InvalidHyperparameter>;

    /// The numbers.
    fn values(self) -> Values;

    /// What it does in one step.
    type Rule: Rule;

    /// One step of parameters that are stepped at `rate`, given what [`count_step`](Method::count_step) has made of
    /// [0, 0] so far.
    fn rule(self, unbiased: [f64; 2], rate: f32) -> Self::Rule;

    /// Counts a step.
    #[inline(always)]
    fn count_step(self, unbiased: [f64; 2]) -> [f64; 2] {
        unbiased
    }

    /// Brings the weights of features up to date that have missed steps.
    fn catch_up(self, steps: &MissedSteps, weights: &mut LazyWeights, features: impl Iterator<Item = usize>);
}

/// One step of an optimizer.
pub trait Rule: Copy {
    /// Whether a step is a multiple of the gradient: without a gradient a parameter stays as it is,
    /// and nothing is remembered.
    const IS_PLAIN: bool;

    /// The learning rate.
    fn rate(self) -> f32;

    /// Steps one parameter along `gradient`, which points downhill.
    /// A moment that is not there is as if it was 0 and stayed so.
    fn step_one(self, w: &mut f32, first: Option<&mut f32>, second: Option<&mut f32>, gradient: f32);

    /// Steps parameters along `share` times `gradient`.
    fn step(self, parameters: &mut [f32], first: &mut [f32], second: &mut [f32], gradient: &[f32], share: f32);
}

/// The range of the factors by which moments fade.
pub(super) const UNIT: Range = Range::from(0.0).below(1.0);

/// More steps than that are not made one by one, lest factors next to 1 take for ever: what is left of the moments
/// then, a trace of it unless beta1 is above 0.999, moves the weight no more.
pub(super) const CATCH_UP_STEPS: u32 = 1 << 15;
