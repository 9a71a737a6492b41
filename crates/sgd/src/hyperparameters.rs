//! What the user chooses: the model, and how it is trained.
//!
//! Guarantees: whatever [`Hyperparameters::validate`] lets pass has a learning rate above 0 in the first epoch and an
//! L2 penalty that shrinks weights without turning their sign. It prevents a run whose parameters can only diverge.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_from_its_name() {
        for kind in ModelKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.to_string(), kind.name());
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        assert_eq!(ModelKind::known(), "logistic, svm");
    }

    #[test]
    fn an_unknown_name_is_refused_and_quoted() {
        let error = "Logistic".parse::<ModelKind>().unwrap_err();
        assert_eq!(error, UnknownModel("Logistic".to_owned()));
        assert_eq!(error.to_string(), "unknown model \"Logistic\"");
    }

    #[test]
    fn the_defaults_are_valid() {
        let hyper = Hyperparameters::new(ModelKind::Svm);
        assert_eq!((hyper.learning_rate, hyper.decay, hyper.l2), (0.01, 0.95, 0.0));
        assert_eq!(hyper.validate(), Ok(()));
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let valid = Hyperparameters::new(ModelKind::Logistic);
        let refused = |hyper: Hyperparameters| hyper.validate().unwrap_err().name;
        for learning_rate in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(Hyperparameters { learning_rate, ..valid }), "learning_rate");
        }
        for decay in [0.0, -0.5, 1.000_001, f64::NAN] {
            assert_eq!(refused(Hyperparameters { decay, ..valid }), "decay");
        }
        for l2 in [-1e-9, f64::NAN, f64::INFINITY, 100.0] {
            assert_eq!(refused(Hyperparameters { l2, ..valid }), "l2");
        }
        assert_eq!(Hyperparameters { decay: 1.0, l2: 99.9, ..valid }.validate(), Ok(()));
    }

    #[test]
    fn the_learning_rate_decays_from_the_second_epoch_on() {
        let hyper = Hyperparameters { learning_rate: 0.8, decay: 0.5, ..Hyperparameters::new(ModelKind::Svm) };
        assert_eq!([1, 2, 3].map(|epoch| hyper.learning_rate_at(epoch)), [0.8, 0.4, 0.2]);
        assert_eq!(hyper.learning_rate_at(u32::MAX), 0.0);
    }

    #[test]
    fn hyperparameters_survive_json() {
        let hyper = Hyperparameters { kind: ModelKind::Svm, learning_rate: 0.1, decay: 0.3, l2: 1e-7 };
        let json = serde_json::to_string(&hyper).unwrap();
        assert_eq!(serde_json::from_str::<Hyperparameters>(&json).unwrap(), hyper);
    }
}
