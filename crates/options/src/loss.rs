//! What a linear regression or an SVM minimises: the option `loss`, and the number that a loss has of its own.

use choices::{Choice, choice};
use loss::ModelKind;
use serde_json::{Map, Value};

choice! {
    /// What a linear regression or an SVM minimises.
    Loss {
        /// half of the squared error
        Squared = "squared_error",
        /// half of the squared error up to a threshold, a line beyond
        Huber = "huber",
        /// the error beyond a tube
        EpsilonInsensitive = "epsilon_insensitive",
        /// the pinball loss
        Quantile = "quantile",
        /// half of Poisson's deviance, of targets that are at least 0
        Poisson = "poisson",
        /// of an SVM: how far the margin is below 1
        Hinge = "hinge",
        SquaredHinge = "squared_hinge",
    }
}

/// The key of a record with the threshold that a loss had in the end, which followed the residuals, in units of the
/// label.
pub const THRESHOLD: &str = "loss_threshold";

impl Loss {
    /// That of a kind of model; None if it is neither a linear regression nor an SVM.
    pub fn of(kind: ModelKind) -> Option<Loss> {
        match kind {
            ModelKind::Linear => Some(Loss::Squared),
            ModelKind::Huber => Some(Loss::Huber),
            ModelKind::EpsilonInsensitive => Some(Loss::EpsilonInsensitive),
            ModelKind::Quantile => Some(Loss::Quantile),
            ModelKind::Poisson => Some(Loss::Poisson),
            ModelKind::Svm | ModelKind::SvmOneVsRest => Some(Loss::Hinge),
            ModelKind::SquaredHinge | ModelKind::SquaredHingeOneVsRest => Some(Loss::SquaredHinge),
            ModelKind::Logistic | ModelKind::Softmax | ModelKind::Mlp | ModelKind::MlpRegression => None,
        }
    }

    /// Has what has the least loss a good R², too? A quantile is not a mean, and of counts the large ones decide R².
    pub fn goes_with_r2(self) -> bool {
        !matches!(self, Loss::Quantile | Loss::Poisson)
    }

    /// The model that this loss makes of one that leaves the loss open; None if the loss is not one of such models.
    pub fn of_model(self, model: ModelKind) -> Option<ModelKind> {
        // the first has one decision
        let kind = ModelKind::ALL.into_iter().find(|kind| Loss::of(*kind) == Some(self))?;
        match model {
            ModelKind::Linear => (!kind.is_classifier()).then_some(kind),
            ModelKind::Svm => kind.is_classifier().then_some(kind),
            ModelKind::SvmOneVsRest => kind.one_vs_rest(),
            _ => None,
        }
    }

    /// The losses that a model of this kind may be given.
    pub fn choices(model: ModelKind) -> Vec<&'static str> {
        let all = Loss::names().into_iter().filter_map(Loss::named);
        match Loss::of(model) {
            Some(_) if matches!(model, ModelKind::Linear | ModelKind::Svm | ModelKind::SvmOneVsRest) => {
                all.filter(|loss| loss.of_model(model).is_some()).map(Loss::name).collect()
            }
            own => own.map(Loss::name).into_iter().collect(),
        }
    }
}

/// The number of the loss that a model of this kind has, in units of the label, by the record of its training; the
/// default if that does not say it. None if the record says what it cannot be.
pub fn number_of_record(kind: ModelKind, record: Option<&Map<String, Value>>) -> Option<f64> {
    let Some(number) = kind.loss_number() else { return Some(0.0) };
    let key = if kind.follows_residuals() { THRESHOLD } else { number.name };
    match record.and_then(|record| record.get(key)) {
        None => Some(number.default),
        Some(value) => value.as_f64().filter(|value| number.range.contains(*value)),
    }
}
