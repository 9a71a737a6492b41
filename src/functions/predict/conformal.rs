//! corgipile_predict_interval() and corgipile_predict_set(): what holds the truth with a stated probability, by the
//! scores of rows that were held out of training.

use super::given::GivenFeatures;
use super::input::decide;
use errors::{ArgumentError, PredictError, Result};
use loss::Link;
use model::{Model, Policies};
use sgd::conformal::{Calibration, belongs, class_scores, interval as interval_around};

/// The lowest and the highest number of the interval.
pub fn interval(model: &Model, policies: Policies, given: GivenFeatures<'_>) -> Result<Option<[f64; 2]>> {
    let coverage = coverage(&given)?;
    if model.kind.is_classifier() {
        return Err(PredictError::NoIntervals(model.in_error()).into());
    }
    let threshold = calibration(model)?.threshold(coverage);
    let link = model.kind.link();
    let bounds = decide(model, policies, given, |z| {
        let prediction = link.prediction(z[0]);
        prediction.is_finite().then(|| interval_around(prediction, threshold))
    })?;
    // targets of a logarithmic link are at least 0
    let least = if link == Link::Logarithm { 0.0 } else { f64::NEG_INFINITY };
    match bounds {
        Some(None) => Err(PredictError::DecisionOutOfRange { model: model.in_error(), row: None }.into()),
        bounds => Ok(bounds.flatten().map(|(low, high)| [low.max(least), high])),
    }
}

/// The labels of the set, in the ascending order of all labels.
pub fn set(model: &Model, policies: Policies, given: GivenFeatures<'_>) -> Result<Option<Vec<String>>> {
    let coverage = coverage(&given)?;
    if !model.kind.is_classifier() {
        return Err(PredictError::NoLabels { model: model.in_error(), kind: model.kind }.into());
    }
    let threshold = calibration(model)?.threshold(coverage);
    let mut scores = vec![0.0; model.classes.len()];
    decide(model, policies, given, |z| {
        class_scores(model.kind, &model.linear(), z, &mut scores);
        let chosen = model.classes.iter().zip(&scores).filter(|(_, score)| belongs(**score, threshold));
        chosen.map(|(class, _)| class.clone()).collect()
    })
}

fn calibration(model: &Model) -> Result<&Calibration> {
    model.calibration.as_ref().ok_or_else(|| PredictError::NotCalibrated(model.in_error()).into())
}

fn coverage(given: &GivenFeatures<'_>) -> Result<f64> {
    let coverage = given.coverage();
    if coverage > 0.0 && coverage < 1.0 {
        return Ok(coverage);
    }
    Err(ArgumentError::InvalidArgument {
        argument: "coverage",
        reason: format!("{coverage} is not above 0 and below 1"),
        hint: Some("With 0.9, intervals and sets contain the true value in nine of ten cases.".to_owned()),
    }
    .into())
}
