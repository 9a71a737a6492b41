//! Stores models in the table.

use super::extension_lock::keep_extension;
use super::parts::{Fitted, Kept, Numbers};
use super::shared;
use super::table::{self, Field, Taken};
use errors::{ModelError, Result};
use pgrx::datum::JsonString;
use pgrx::{JsonB, Uuid, pg_sys};
use serde::Serialize;
use serde_json::Value;

pub struct NewModel {
    pub fitted: Fitted,
    pub numbers: Numbers,
    pub kept: Kept,
    /// JSON: an object per epoch
    pub history: String,
    /// the state from which its training can be continued, if it is to be kept
    pub training_state: Option<Vec<u8>>,
    /// of a model that another server has published: it keeps its identity, and its name means it
    pub published_as: Option<Uuid>,
    /// are the names [locked](super::lock_groups) already?
    pub is_locked: bool,
    /// a model of another group under the same name, whose grants a new name has
    pub granted_like: Option<i64>,
}

/// Raises PostgreSQL's own error if no model could be stored, because the transaction is read-only, before any work is
/// done for one; and keeps the extension from being dropped until it is stored. `function` is what was called.
pub fn check_can_store(function: &str) {
    table::check_may_write(function);
    keep_extension();
}

/// Stores a model as the current user's, as the next version if there are others of this name, and returns its id.
pub fn store(new: NewModel) -> Result<i64> {
    let NewModel { fitted, numbers, kept, is_locked, granted_like, .. } = new;
    let announced = shared::enabled().then(|| numbers.clone());
    let name = fitted.name.as_deref();
    let mut fields = vec![
        Field::new("model", Some(fitted.model)),
        Field::new("label", Some(fitted.label)),
        Field::object("label_type", pg_sys::REGTYPEOID, fitted.label_type),
        Field::new("classes", fitted.classes),
        Field::new("features", Some(fitted.features)),
        Field::new("feature_kind", Some(fitted.feature_kind)),
        Field::new("categories", fitted.categories.as_ref().map(json)),
        Field::new("index_base", fitted.index_base),
        Field::new("hidden_layer_sizes", fitted.hidden_layer_sizes),
        Field::new("activation", fitted.activation),
        Field::new("output", fitted.output),
        Field::new("hyperparameters", Some(JsonB(Value::Object(fitted.hyperparameters)))),
        Field::new("calibration_rows", fitted.calibration_rows),
        Field::new("calibration_scores", fitted.calibration_scores),
        Field::new("sigmoid_slopes", fitted.sigmoid_slopes),
        Field::new("sigmoid_offsets", fitted.sigmoid_offsets),
        Field::new("weights", Some(numbers.weights)),
        Field::new("intercepts", Some(numbers.intercepts)),
        Field::new("feature_mean", numbers.feature_mean),
        Field::new("feature_scale", numbers.feature_scale),
        Field::new("feature_fill", numbers.feature_fill),
        Field::new("source", Some(kept.source)),
        Field::new("skipped", Some(kept.skipped)),
        Field::new("imputed", kept.imputed),
        Field::new("preparation_seconds", Some(kept.preparation_seconds)),
        Field::new("shuffle_bytes", kept.shuffle_bytes),
        Field::new("profile", kept.profile.as_ref().map(json)),
        Field::new("history", Some(JsonString(new.history))),
        Field::new("training_state", new.training_state),
    ];
    if let Some(identity) = new.published_as {
        fields.push(Field::new("identity", Some(identity)));
        fields.push(Field::new("published", Some(true)));
        fields.push(Field::new("deployed", Some(true)));
    }
    let stored = table::insert(name, (is_locked, granted_like), fields);
    if let (Ok(key), Some(numbers)) = (&stored, announced) {
        shared::announce(key, numbers.arrays());
    }
    stored.map(|key| key.model).map_err(|taken| match (taken, name.unwrap_or_default().to_owned()) {
        (Taken::Name, name) => ModelError::VersionConflict(name).into(),
        (Taken::Id, _) => ModelError::SequenceBehind.into(),
    })
}

/// A value of type jsonb.
pub(super) fn json(value: &impl Serialize) -> JsonB {
    JsonB(serde_json::to_value(value).expect("plain values are always JSON"))
}
