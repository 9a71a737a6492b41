//! What is predicted: a value, a label, or probabilities; nothing for features with a NULL that is skipped.

use super::input::{FeatureInput, class, decide};
use errors::{PredictError, Result};
use model::{Model, Policies};

/// The number that a regression predicts; of other models the class as a number.
pub fn value(model: &Model, policies: Policies, features: impl FeatureInput) -> Result<Option<f64>> {
    if !model.kind.is_classifier() {
        let predicted = decide(model, policies, features, |z| model.kind.link().prediction(z[0]))?;
        return match predicted {
            // e to the power of a decision
            Some(infinite) if !infinite.is_finite() => {
                Err(PredictError::DecisionOutOfRange { model: model.in_error(), row: None }.into())
            }
            predicted => Ok(predicted),
        };
    }
    let Some(values) = &model.values else { return Err(PredictError::TextLabels(model.in_error()).into()) };
    decide(model, policies, features, |z| values[class(z)])
}

/// The class as text.
pub fn label(model: &Model, policies: Policies, features: impl FeatureInput) -> Result<Option<String>> {
    if !model.kind.is_classifier() {
        return Err(PredictError::NoLabels { model: model.in_error(), kind: model.kind }.into());
    }
    decide(model, policies, features, |z| model.classes[class(z)].clone())
}

/// The probability of each class, in their ascending order.
pub fn probabilities(model: &Model, policies: Policies, features: impl FeatureInput) -> Result<Option<Vec<f64>>> {
    if !model.has_probabilities() {
        return Err(PredictError::NoProbabilities { model: model.in_error(), kind: model.kind }.into());
    }
    decide(model, policies, features, |z| {
        let mut probabilities = vec![0.0; model.classes.len()];
        model.probabilities(z, &mut probabilities);
        probabilities
    })
}
