//! What the user chooses: the model, and how it is trained.
//!
//! Guarantees: whatever [`Hyperparameters::validate`] lets pass has a learning rate above 0 in the first epoch and an L2
//! penalty that shrinks weights without turning their sign. It prevents a run whose parameters can only diverge.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which loss a linear model minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// Logistic regression: ln(1 + e^(-y z)).
    Logistic,
    /// Linear support vector machine: the hinge loss max(0, 1 - y z).
    Svm,
}

impl ModelKind {
    /// All of them.
    pub const ALL: [ModelKind; 2] = [ModelKind::Logistic, ModelKind::Svm];

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            ModelKind::Logistic => "logistic",
            ModelKind::Svm => "svm",
        }
    }

    /// All names, for the hint of an error: "logistic, svm".
    pub fn known() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No model is called this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown model \"{0}\"")]
pub struct UnknownModel(pub String);

impl FromStr for ModelKind {
    type Err = UnknownModel;

    fn from_str(name: &str) -> Result<ModelKind, UnknownModel> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| UnknownModel(name.to_owned()))
    }
}

/// How a model is trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Hyperparameters {
    /// The loss to be minimised.
    pub kind: ModelKind,
    /// Step size in the first epoch, above 0.
    pub learning_rate: f64,
    /// Factor by which the step size changes from epoch to epoch, in (0, 1].
    pub decay: f64,
    /// Strength of the penalty l2/2 |w|² on the weights, not on the intercept; at least 0.
    pub l2: f64,
}

/// A hyperparameter is out of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{name} {reason}")]
pub struct InvalidHyperparameter {
    /// The field of [`Hyperparameters`].
    pub name: &'static str,
    /// What it should be, such as "must be finite and greater than 0".
    pub reason: &'static str,
}

impl Hyperparameters {
    /// The defaults: learning rate 0.01, decay 0.95, no penalty.
    pub fn new(kind: ModelKind) -> Hyperparameters {
        Hyperparameters { kind, learning_rate: 0.01, decay: 0.95, l2: 0.0 }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`InvalidHyperparameter`] for the first that is out of its range. `learning_rate * l2` must be less than 1,
    /// because the penalty multiplies the weights by 1 - learning_rate * l2 at every step; `l2` is blamed.
    pub fn validate(&self) -> Result<(), InvalidHyperparameter> {
        let invalid = |name, reason| Err(InvalidHyperparameter { name, reason });
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return invalid("learning_rate", "must be finite and greater than 0");
        }
        if !(self.decay > 0.0 && self.decay <= 1.0) {
            return invalid("decay", "must be greater than 0 and at most 1");
        }
        if !(self.l2.is_finite() && self.l2 >= 0.0) {
            return invalid("l2", "must be finite and at least 0");
        }
        if self.learning_rate * self.l2 >= 1.0 {
            return invalid("l2", "times learning_rate must be less than 1");
        }
        Ok(())
    }

    /// The step size in `epoch`, counted from 1: learning_rate * decay^(epoch - 1).
    pub fn learning_rate_at(&self, epoch: u32) -> f64 {
        self.learning_rate * self.decay.powf(f64::from(epoch) - 1.0)
    }
}
