//! Hyperparameters out of their ranges.

/// A hyperparameter is out of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{name} {reason}")]
pub struct InvalidHyperparameter {
    /// The argument or option: the name of the field, wherever it is.
    pub name: &'static str,
    /// What it should be, such as "must be finite and greater than 0".
    pub reason: &'static str,
}

/// Whether a number is finite and greater than 0.
pub(crate) fn positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// Blames a hyperparameter unless it is sound.
pub(crate) fn require(sound: bool, name: &'static str, reason: &'static str) -> Result<(), InvalidHyperparameter> {
    if sound { Ok(()) } else { Err(InvalidHyperparameter { name, reason }) }
}

/// A number that belongs to an optimizer or a schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// The name of its option.
    pub name: &'static str,
    /// What it is unless the user says otherwise; None where that depends on other hyperparameters.
    pub default: Option<f64>,
    /// What it should be, such as "greater than 0 and at most 1".
    pub range: &'static str,
}
