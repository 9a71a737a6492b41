//! What every schedule says about itself.

use std::fmt;

use crate::invalid::{InvalidHyperparameter, Parameter};

/// The numbers of a schedule, in the order of its [parameters](Rule::PARAMETERS); None for one that is left open,
/// or that there is not.
pub(crate) type Values = [Option<f64>; 2];

/// A schedule with its numbers.
pub(crate) trait Rule: Copy + fmt::Display {
    /// The name that the option `schedule` has.
    const NAME: &'static str;

    /// Its numbers.
    const PARAMETERS: &'static [Parameter];

    /// Checks the numbers.
    fn validate(self) -> Result<(), InvalidHyperparameter>;

    /// The numbers.
    fn values(self) -> Values;

    /// The learning rate in `epoch`, counted from 1, of which the first is `first`.
    fn learning_rate(self, first: f64, epoch: u32) -> f64;
}
