//! corgipile_profile() and corgipile_drift(): what the features of a model were like, and how far those of other rows
//! are from that. The rows are read here or on the servers that have them.

use super::model_functions::model_and_source;
use errors::{OrRaise, PredictError, Result, TrainingError};
use model::{self, Kept, Model};
use options::call;
use pg::call::function::Call;
use pg::values::varlena::Value;
use pgrx::prelude::*;
use sgd::profile::{Ends, FeatureProfile, FeatureShape, Profile};
use train::feature_profile::{self, MeasuredFeatures, measure_features, shapes_of};
use train::features_there;

#[pg_extern(sql = false)]
fn corgipile_profile(call: Call<'_>) -> Value<'_> {
    profile(call).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_drift(call: Call<'_>) {
    drift(call).or_raise();
}

/// Keeps with the model what the features of these rows are like.
fn profile(call: Call<'_>) -> Result<Value<'_>> {
    let (model, source) = model_and_source(call)?;
    model::check_may_change(model.id)?;
    let ends = if call.get(3).unwrap_or(false) { Ends::Extremes } else { Ends::Hundredths };
    let profile = measure(call, &model, &source, None)?.finish(&shapes_of(&model)?, ends);
    model::keep_profile(model.id, &profile)?;
    Ok(call.row(&[(profile.rows as i64).into(), (profile.features.len() as i32).into()]))
}

/// Goes through the rows of `source`, here or where they are, and measures their features, with the bins of a profile
/// if there is one.
fn measure(call: Call<'_>, model: &Model, source: &str, like: Option<&Profile>) -> Result<MeasuredFeatures> {
    let nodes = call::nodes(call.get(2))?;
    let mut rows = feature_profile::plan(model, source)?;
    let (measured, decoder) = match features_there(model, like, &mut rows, &nodes)? {
        Some(measured) => (measured, rows.decoder),
        None => {
            let mut buffers = rows.start();
            (measure_features(model, like, &mut buffers)?, buffers.into_decoder())
        }
    };
    if measured.rows() == 0 {
        return Err(TrainingError::no_rows("compare", decoder.skipped()).into());
    }
    Ok(measured)
}

/// Gives a row for each feature.
fn drift(call: Call<'_>) -> Result<()> {
    let (model, source) = model_and_source(call)?;
    let shapes = shapes_of(&model)?;
    let Kept { skipped, profile, .. } = model::kept(&model)?;
    let kept = profile.ok_or_else(|| PredictError::NoProfile(model.in_error()))?;
    let new = measure(call, &model, &source, Some(&kept))?.finish(&shapes, Ends::default());
    // a training that has left out rows with NULLs has met none
    let knows_no_nulls = skipped > 0 && kept.features.iter().all(|feature| feature.missing == 0.0);
    let features = shapes.iter().zip(kept.features.iter().zip(&new.features)).enumerate();
    call.return_rows(features.map(|(i, (shape, (before, now)))| {
        let drift = before.drift(now, kept.rows, new.rows);
        let reasons =
            [(drift.shifted, "shifted"), (drift.missing && !knows_no_nulls, "nulls"), (drift.unseen, "unknown")];
        let reasons: Vec<&str> = reasons.iter().filter(|(applies, _)| *applies).map(|(_, reason)| *reason).collect();
        let unseen = matches!(shape, FeatureShape::Categories(_)).then_some(now.unseen as i64);
        [
            model.feature_name(i).into(),
            (!reasons.is_empty()).then(|| reasons.join(", ")).into(),
            drift.psi.into(),
            drift.ks.into(),
            number_of(before, before.mean).into(),
            number_of(now, now.mean).into(),
            number_of(before, before.deviation).into(),
            number_of(now, now.deviation).into(),
            (!knows_no_nulls).then_some(before.missing).into(),
            now.missing.into(),
            unseen.into(),
        ]
    }));
    Ok(())
}

/// A mean or deviation, if there are values.
fn number_of(feature: &FeatureProfile, number: Option<f64>) -> Option<f64> {
    number.filter(|_| feature.missing < 1.0)
}
