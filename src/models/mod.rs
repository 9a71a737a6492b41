//! Models: kept in table corgipile.models, used through a cache of this backend.
//!
//! The table is the truth. A model is looked up again whenever anything could have changed what the statement sees or
//! what its user may do, so that the cache never shows a model that was deleted, rolled back or taken away.

mod cache;
mod features;
mod model;

use crate::error::{Error, Result};
use crate::pg::model_table::{self, Field, FloatArray, Key, ModelTable};
pub use features::{Categories, ColumnKind, FeatureKind};
pub use model::{Model, Unseen};
use pgrx::datum::JsonString;
use pgrx::{JsonB, pg_sys};
use serde_json::Value;
use sgd::{LinearModel, ModelKind, Standardizer};
use std::rc::Rc;
use std::time::Duration;

/// A model to be stored, and what it is to be known by.
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
    pub linear: LinearModel,
    pub standardizer: Option<Standardizer>,
    /// rows left out in each epoch
    pub skipped: u64,
    pub preparation: Duration,
    /// space that the copy of a full shuffle took, if one was made
    pub shuffle_bytes: Option<u64>,
    /// JSON: an object per epoch
    pub history: String,
}

/// Fails if a model with this name could not be stored, before any work is done for it. `function` is what was called.
///
/// # Errors
/// [`Error::ModelExists`]; PostgreSQL's own if the transaction is read-only.
pub fn check_can_store(function: &str, name: Option<&str>) -> Result<()> {
    model_table::prevent_if_read_only(function);
    let Some(name) = name else { return Ok(()) };
    let table = ModelTable::open();
    let found = table.find(&Key::Name(name.to_owned()), |_| ());
    table.close();
    if found.is_some() { Err(Error::ModelExists(name.to_owned())) } else { Ok(()) }
}

/// Stores a model as the current user's and returns its id.
///
/// # Errors
/// [`Error::ModelExists`] if somebody else has stored one with this name meanwhile.
pub fn store(new: NewModel) -> Result<i64> {
    let (mean, scale) = new.standardizer.map(|s| (FloatArray(s.mean), FloatArray(s.scale))).unzip();
    let name = new.name;
    let id = model_table::insert(vec![
        Field::new("name", new.name),
        Field::object("owner", pg_sys::REGROLEOID, model_table::current_user()),
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
        Field::new("skipped", Some(new.skipped as i64)),
        Field::new("preparation_seconds", Some(new.preparation.as_secs_f64())),
        Field::new("shuffle_bytes", new.shuffle_bytes.map(|bytes| bytes as i64)),
        Field::new("history", Some(JsonString(new.history))),
    ]);
    id.ok_or_else(|| Error::ModelExists(name.unwrap_or_default().to_owned()))
}

/// The model with this id, if the current user may use it.
///
/// # Errors
/// [`Error::NoModelId`], [`Error::ModelPermission`], [`Error::CorruptModel`]
pub fn by_id(id: i64) -> Result<Rc<Model>> {
    find(Key::Id(id))
}

/// The model with this name, if the current user may use it.
///
/// # Errors
/// As [`by_id`], with [`Error::NoModelName`].
pub fn by_name(name: &str) -> Result<Rc<Model>> {
    find(Key::Name(name.to_owned()))
}

fn find(key: Key) -> Result<Rc<Model>> {
    cache::find(key, |key| {
        let table = ModelTable::open();
        let found = table.find(key, |row| {
            let id: i64 = row.get(c"model_id").unwrap_or_default();
            let owner = row.get(c"owner").unwrap_or(pg_sys::Oid::INVALID);
            if !model_table::has_privileges_of(owner) {
                return Err(Error::ModelPermission(id));
            }
            cache::version(id, row.version(), || Model::read(id, row))
        });
        table.close();
        found.unwrap_or_else(|| {
            Err(match key {
                Key::Id(id) => Error::NoModelId(*id),
                Key::Name(name) => Error::NoModelName(name.clone()),
            })
        })
    })
}
