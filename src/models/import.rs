//! Stores models that are given as values.

use super::document::ModelDocument;
use super::store::{NewModel, check_can_store, store};
use crate::errors::Result;
use crate::options::model_name::check_name;
use pg::values::jsonb::Jsonb;
use pgrx::Uuid;
use serde_json::Value;

/// Stores a model that is given as a value as the current user's, and returns its id. Without a name it gets that of
/// the value, if there is one.
///
/// # Errors
/// Those of [`ModelDocument::read`] and [`store`];
/// [`ArgumentError::InvalidArgument`](crate::errors::Error::InvalidArgument) for a name that cannot be.
pub fn import(value: Jsonb, name: Option<&str>) -> Result<i64> {
    let document = value.with_text(ModelDocument::read)?;
    let name = name.map(str::to_owned).or_else(|| document.name.clone());
    name.as_deref().map_or(Ok(()), check_name)?;
    check_can_store("corgipile_import()");
    store_document(document, name.as_deref(), None)
}

/// Stores it under this name, and returns its id; with an identity if another server has published it.
///
/// # Errors
/// Those of [`store`].
pub(super) fn store_document(document: ModelDocument, name: Option<&str>, published_as: Option<Uuid>) -> Result<i64> {
    store(NewModel {
        name,
        kind: document.kind,
        source: &document.source,
        label: &document.label,
        label_type: document.label_type,
        classes: document.classes,
        features: &document.features,
        feature_kind: document.feature_kind,
        hyperparameters: Value::Object(document.hyperparameters),
        linear: document.linear,
        standardizer: document.standardizer,
        fill: document.fill,
        skipped: document.skipped,
        imputed: document.imputed,
        preparation: document.preparation,
        shuffle_bytes: document.shuffle_bytes,
        history: serde_json::to_string(&document.history).expect("plain values are always JSON"),
        training_state: None,
        calibration: document.calibration,
        sigmoids: document.sigmoids,
        profile: document.profile,
        published_as,
    })
}
