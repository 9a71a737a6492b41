//! What is predicted: a value, a label, or probabilities.

use super::input::{FeatureInput, class, decide};
use crate::error::{Error, Result};
use crate::models::Model;
use sgd::{ModelKind, probability};

/// The value of `linear`; of other models the class as a number.
///
/// # Errors
/// Those of [`decide`]; [`Error::TextLabels`]
pub fn value(model: &Model, features: impl FeatureInput) -> Result<f64> {
    if model.kind == ModelKind::Linear {
        return decide(model, features, |z| f64::from(z[0]));
    }
    let Some(values) = &model.values else { return Err(Error::TextLabels(model.id)) };
    decide(model, features, |z| values[class(z)])
}

/// The class as text.
///
/// # Errors
/// Those of [`decide`]; [`Error::NoLabels`]
pub fn label(model: &Model, features: impl FeatureInput) -> Result<String> {
    if model.kind == ModelKind::Linear {
        return Err(Error::NoLabels(model.id));
    }
    decide(model, features, |z| model.classes[class(z)].clone())
}

/// The probability of each class, in their ascending order.
///
/// # Errors
/// Those of [`decide`]; [`Error::NoProbabilities`]
pub fn probabilities(model: &Model, features: impl FeatureInput) -> Result<Vec<f64>> {
    match model.kind {
        ModelKind::Svm => Err(Error::NoProbabilities { model_id: model.id, kind: "an SVM" }),
        ModelKind::Linear => Err(Error::NoProbabilities { model_id: model.id, kind: "a linear regression" }),
        ModelKind::Logistic => decide(model, features, |z| vec![probability(-z[0]), probability(z[0])]),
        ModelKind::Softmax | ModelKind::Mlp => decide(model, features, |z| {
            let mut probabilities = vec![0.0; model.classes.len()];
            model.linear().probabilities(z, &mut probabilities);
            probabilities
        }),
    }
}
