//! Stores models in the table.

use super::extension_lock::keep_extension;
use super::features::FeatureKind;
use super::profiles::profile_field;
use super::shared::{self, Arrays};
use super::table::{self, Field, FloatArray, Taken};
use crate::errors::{ModelError, Result};
use pgrx::datum::JsonString;
use pgrx::{JsonB, Uuid, pg_sys};
use serde_json::Value;
use sgd::conformal::Calibration;
use sgd::platt::Sigmoids;
use sgd::profile::Profile;
use sgd::{ModelKind, ModelParameters, Standardizer};
use std::time::Duration;

/// A model to be stored, with its name and the record of its training.
pub struct NewModel<'a> {
    pub name: Option<&'a str>,
    pub kind: ModelKind,
    pub source: &'a str,
    pub label: &'a str,
    pub label_type: pg_sys::Oid,
    /// ascending; of two, the first is the negative class; None for `linear`
    pub classes: Option<Vec<String>>,
    /// names of the feature columns
    pub features: &'a [String],
    pub feature_kind: FeatureKind,
    pub hyperparameters: Value,
    pub linear: ModelParameters,
    pub standardizer: Option<Standardizer>,
    /// by feature, what stands for NULLs
    pub fill: Option<Vec<f32>>,
    /// rows left out in each epoch
    pub skipped: u64,
    /// rows in which NULLs of features were imputed; None if it does not impute
    pub imputed: Option<u64>,
    pub preparation: Duration,
    /// space that the copy of a full shuffle took, if one was made
    pub shuffle_bytes: Option<u64>,
    /// JSON: an object per epoch
    pub history: String,
    /// the state from which its training can be continued, if it is to be kept
    pub training_state: Option<Vec<u8>>,
    /// scores of rows that were held out, if the model was calibrated
    pub calibration: Option<Calibration>,
    /// what its decisions say of probabilities, if that was fitted
    pub sigmoids: Option<Sigmoids>,
    /// what its features were like, if that is kept
    pub profile: Option<Profile>,
    /// of a model that another server has published: it keeps its identity, and its name means it
    pub published_as: Option<Uuid>,
}

/// Raises PostgreSQL's own error if no model could be stored, because the transaction is read-only, before any work is
/// done for one; and keeps the extension from being dropped until it is stored. `function` is what was called.
pub fn check_can_store(function: &str) {
    table::prevent_if_read_only(function);
    keep_extension();
}

/// Stores a model as the current user's, as the next version if there are others of this name, and returns its id.
///
/// # Errors
/// [`ModelError::VersionConflict`] if a transaction that this one does not see has stored one with this name meanwhile;
/// [`ModelError::SequenceBehind`] if the number that the sequence gives is another model's.
pub fn store(new: NewModel) -> Result<i64> {
    let (mean, scale) = new.standardizer.map(|s| (s.mean, s.scale)).unzip();
    let announced = shared::enabled().then(|| (new.linear.clone(), mean.clone(), scale.clone(), new.fill.clone()));
    let (mean, scale) = (mean.map(FloatArray), scale.map(FloatArray));
    let name = new.name;
    let mut fields = vec![
        Field::new("model", Some(new.kind.name())),
        Field::new("source", Some(new.source)),
        Field::new("label", Some(new.label)),
        Field::object("label_type", pg_sys::REGTYPEOID, new.label_type),
        Field::new("classes", new.classes),
        Field::new("features", Some(new.features.to_vec())),
        Field::new("feature_kind", Some(new.feature_kind.name())),
        Field::new("categories", new.feature_kind.categories(new.features).map(JsonB)),
        Field::new("index_base", new.feature_kind.index_base().map(|base| base as i32)),
        Field::new("hyperparameters", Some(JsonB(new.hyperparameters))),
        Field::new("weights", Some(FloatArray(new.linear.weights))),
        Field::new("intercepts", Some(FloatArray(new.linear.intercepts))),
        Field::new("feature_mean", mean),
        Field::new("feature_scale", scale),
        Field::new("feature_fill", new.fill.map(FloatArray)),
        Field::new("imputed", new.imputed.map(|rows| rows as i64)),
        Field::new("skipped", Some(new.skipped as i64)),
        Field::new("preparation_seconds", Some(new.preparation.as_secs_f64())),
        Field::new("shuffle_bytes", new.shuffle_bytes.map(|bytes| bytes as i64)),
        Field::new("history", Some(JsonString(new.history))),
    ];
    if let Some(network) = new.linear.network {
        let sizes: Vec<i32> = network.hidden.sizes().iter().map(|size| *size as i32).collect();
        fields.push(Field::new("hidden_layers", Some(sizes)));
        fields.push(Field::new("activation", Some(network.activation.name())));
        fields.push(Field::new("output", Some(network.output.name())));
    }
    if let Some(bytes) = new.training_state {
        fields.push(Field::new("training_state", Some(bytes)));
    }
    if let Some(calibration) = new.calibration {
        fields.extend(calibration_fields(&calibration));
    }
    if let Some(sigmoids) = new.sigmoids {
        fields.push(Field::new("sigmoid_slopes", Some(FloatArray(sigmoids.slopes()))));
        fields.push(Field::new("sigmoid_offsets", Some(FloatArray(sigmoids.offsets()))));
    }
    if let Some(profile) = &new.profile {
        fields.push(profile_field(profile));
    }
    if let Some(identity) = new.published_as {
        fields.push(Field::new("identity", Some(identity)));
        fields.push(Field::new("published", Some(true)));
        fields.push(Field::new("deployed", Some(true)));
    }
    let stored = table::insert(name, fields);
    if let (Ok(key), Some((linear, mean, scale, fill))) = (&stored, announced) {
        let (mean, scale, fill) = (mean.unwrap_or_default(), scale.unwrap_or_default(), fill.unwrap_or_default());
        let (weights, intercepts) = (&linear.weights[..], &linear.intercepts[..]);
        shared::announce(key, Arrays { weights, intercepts, mean: &mean, scale: &scale, fill: &fill });
    }
    stored.map(|key| key.model).map_err(|taken| match (taken, name.unwrap_or_default().to_owned()) {
        (Taken::Name, name) => ModelError::VersionConflict(name).into(),
        (Taken::Id, _) => ModelError::SequenceBehind.into(),
    })
}

/// The columns of a calibration.
pub(super) fn calibration_fields(calibration: &Calibration) -> [Field; 2] {
    [
        Field::new("calibration_rows", Some(calibration.rows() as i64)),
        Field::new("calibration_scores", Some(FloatArray(allocation::copy(calibration.scores())))),
    ]
}
