//! What is predicted: a value, a label, or probabilities; nothing for features with a NULL that is skipped.

use super::input::{FeatureInput, class, decide};
use errors::{PredictError, Result};
use model::{Model, Policies};

/// Probabilities of this many classes need no memory of their own.
const FEW: usize = 16;

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

/// What `f` makes of the class as text.
pub fn label<R>(
    model: &Model,
    policies: Policies,
    features: impl FeatureInput,
    f: impl FnOnce(&str) -> R,
) -> Result<Option<R>> {
    if !model.kind.is_classifier() {
        return Err(PredictError::NoLabels { model: model.in_error(), kind: model.kind }.into());
    }
    decide(model, policies, features, |z| f(&model.classes[class(z)]))
}

/// What `f` makes of the probability of each class, in their ascending order.
pub fn probabilities<R>(
    model: &Model,
    policies: Policies,
    features: impl FeatureInput,
    f: impl FnOnce(&[f64]) -> R,
) -> Result<Option<R>> {
    if !model.has_probabilities() {
        return Err(PredictError::NoProbabilities { model: model.in_error(), kind: model.kind }.into());
    }
    decide(model, policies, features, |z| {
        let (mut few, mut many) = ([0.0; FEW], Vec::new());
        let probabilities = match few.get_mut(..model.classes.len()) {
            Some(few) => few,
            None => {
                allocation::resize(&mut many, model.classes.len(), 0.0);
                &mut many
            }
        };
        model.probabilities(z, probabilities);
        f(probabilities)
    })
}
