//! Hyperparameters out of their ranges.

use std::borrow::Cow;

use crate::range::Range;

/// A hyperparameter is out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} {reason}")]
pub struct InvalidHyperparameter {
    /// The argument or option: the name of the field, wherever it is.
    pub name: &'static str,
    /// What it should be, such as "must be finite and greater than 0".
    pub reason: Cow<'static, str>,
}

/// Blames a hyperparameter unless it is in its range.
pub(crate) fn within(range: Range, number: f64, name: &'static str) -> Result<(), InvalidHyperparameter> {
    let blame = || InvalidHyperparameter { name, reason: format!("must be {}", range.words()).into() };
    range.contains(number).then_some(()).ok_or_else(blame)
}

/// Blames a hyperparameter unless it is sound.
pub(crate) fn require(sound: bool, name: &'static str, reason: &'static str) -> Result<(), InvalidHyperparameter> {
    if sound { Ok(()) } else { Err(InvalidHyperparameter { name, reason: reason.into() }) }
}

/// A number that belongs to an optimizer or a schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// The name of its option.
    pub name: &'static str,
    /// What it is unless the user says otherwise; None where that depends on other hyperparameters.
    pub default: Option<f64>,
    /// What it may be.
    pub range: Range,
}
