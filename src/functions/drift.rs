//! corgipile_profile() and corgipile_drift(): what the features of a model were like, and how far those of other rows
//! are from that. The rows are read here or on the servers that have them.

use crate::errors::{ArgumentError, OrRaise, PredictError, Result, TrainingError};
use crate::models::{self, Kept, Model};
use crate::operators::feature_profile::{self, MeasuredFeatures, measure_features, shapes_of};
use crate::operators::sgd::features_there;
use crate::options::call;
use pg::call::function::Call;
use pg::catalog::relation::Relation;
use pg::values::varlena::Value;
use pgrx::prelude::*;
use sgd::profile::{Ends, FeatureProfile, FeatureShape, Profile};
use std::rc::Rc;

#[pg_extern(sql = false)]
fn corgipile_profile(call: Call<'_>) -> Value {
    profile(call, of_id(call), text(call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_profile_by_name(call: Call<'_>) -> Value {
    profile(call, of_name(call), text(call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_profile_relation(call: Call<'_>) -> Value {
    profile(call, of_id(call), relation(call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_profile_relation_by_name(call: Call<'_>) -> Value {
    profile(call, of_name(call), relation(call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_drift(call: Call<'_>) {
    drift(call, of_id(call), text(call)).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_drift_by_name(call: Call<'_>) {
    drift(call, of_name(call), text(call)).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_drift_relation(call: Call<'_>) {
    drift(call, of_id(call), relation(call)).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_drift_relation_by_name(call: Call<'_>) {
    drift(call, of_name(call), relation(call)).or_raise();
}

fn of_id(call: Call<'_>) -> Result<Rc<Model>> {
    models::by_id(call.get(0).ok_or(ArgumentError::NullArgument("model_id"))?)
}

fn of_name(call: Call<'_>) -> Result<Rc<Model>> {
    let name: String = call.get(0).ok_or(ArgumentError::NullArgument("name"))?;
    models::by_name_or_id(name)
}

fn text(call: Call<'_>) -> Result<String> {
    call.get(1).ok_or_else(|| ArgumentError::NullArgument("source").into())
}

fn relation(call: Call<'_>) -> Result<String> {
    Ok(Relation::name_of_oid(call.get(1).ok_or(ArgumentError::NullArgument("source"))?)?)
}

/// Keeps with the model what the features of these rows are like.
fn profile(call: Call<'_>, model: Result<Rc<Model>>, source: Result<String>) -> Result<Value> {
    let (model, source) = (model?, source?);
    models::check_may_change(model.id)?;
    let ends = if call.get(3).unwrap_or(false) { Ends::Extremes } else { Ends::Hundredths };
    let profile = measure(call, &model, &source, None)?.finish(&shapes_of(&model)?, ends);
    models::keep_profile(model.id, &profile)?;
    Ok(call.row(&[(profile.rows as i64).into(), (profile.features.len() as i32).into()]))
}

/// Goes through the rows of `source`, here or where they are, and measures their features, with the bins of a profile
/// if there is one.
///
/// # Errors
/// Whatever can be wrong with source and rows; those of the nodes.
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

/// Columns of corgipile_drift().
const COLUMNS: usize = 11;

/// Gives a row for each feature.
fn drift(call: Call<'_>, model: Result<Rc<Model>>, source: Result<String>) -> Result<()> {
    let (model, source) = (model?, source?);
    let shapes = shapes_of(&model)?;
    let Kept { skipped, profile, .. } = models::kept(&model)?;
    let kept = profile.ok_or_else(|| PredictError::NoProfile(model.in_error()))?;
    let new = measure(call, &model, &source, Some(&kept))?.finish(&shapes, Ends::default());
    // a training that has left out rows with NULLs has met none
    let knows_no_nulls = skipped > 0 && kept.features.iter().all(|feature| feature.missing == 0.0);
    let mut features = shapes.iter().zip(kept.features.iter().zip(&new.features)).enumerate();
    call.return_rows(COLUMNS, |row| {
        let Some((i, (shape, (before, now)))) = features.next() else { return false };
        let drift = before.drift(now, kept.rows, new.rows);
        let reasons =
            [(drift.shifted, "shifted"), (drift.missing && !knows_no_nulls, "missing"), (drift.unseen, "unseen")];
        let reasons: Vec<&str> = reasons.iter().filter(|(applies, _)| *applies).map(|(_, reason)| *reason).collect();
        let unseen = matches!(shape, FeatureShape::Categories(_)).then_some(now.unseen as i64);
        row.clone_from_slice(&[
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
        ]);
        true
    });
    Ok(())
}

/// A mean or deviation, if there are values.
fn number_of(feature: &FeatureProfile, number: Option<f64>) -> Option<f64> {
    number.filter(|_| feature.missing < 1.0)
}
