//! Models: kept in table corgipile.stored_models, used through a cache of this backend.
//!
//! The table is the truth. A model is looked up again whenever anything could have changed what the statement sees or
//! what its user may do, so that the cache never shows a model that was deleted, rolled back or taken away.

mod cache;
mod document;
pub mod extension_lock;
mod features;
mod inline;
mod management;
mod model;
mod names;
pub mod shared;
mod stored_training;
pub mod table;

use crate::errors::{Error, ModelError, Result};
use crate::models::extension_lock::keep_extension;
use crate::pg::values::jsonb::Jsonb;
pub use document::write as export;
pub use features::{Categories, ColumnKind, FeatureKind};
pub use inline::given;
pub use management::{ModelSelector, comment, deploy, drop, grant, rename, revoke};
pub use model::Model;
use names::{Claim, resolve};
use pgrx::datum::JsonString;
use pgrx::{JsonB, pg_sys};
use serde_json::Value;
use sgd::{ModelKind, ModelParameters, Standardizer};
use shared::{Arrays, Stat};
use std::rc::Rc;
use std::time::Duration;
pub use stored_training::{MAX_STATE_BYTES, StoredTraining, past};
use table::{Field, FloatArray, Key, ModelRow, ModelTable, Taken};

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
    pub linear: ModelParameters,
    pub standardizer: Option<Standardizer>,
    /// rows left out in each epoch
    pub skipped: u64,
    pub preparation: Duration,
    /// space that the copy of a full shuffle took, if one was made
    pub shuffle_bytes: Option<u64>,
    /// JSON: an object per epoch
    pub history: String,
    /// what its training goes on from, if that is to be kept
    pub training_state: Option<Vec<u8>>,
}

/// Raises PostgreSQL's own error if no model could be stored, because the transaction is read-only, before any work is done for one;
/// and keeps the extension from being dropped until it is stored. `function` is what was called.
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
    let announced = shared::enabled().then(|| (new.linear.clone(), mean.clone(), scale.clone()));
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
    let stored = table::insert(name, fields);
    if let (Ok(key), Some((linear, mean, scale))) = (&stored, announced) {
        let (mean, scale) = (mean.unwrap_or_default(), scale.unwrap_or_default());
        let (weights, intercepts) = (&linear.weights[..], &linear.intercepts[..]);
        shared::announce(key, Arrays { weights, intercepts, mean: &mean, scale: &scale });
    }
    stored.map(|key| key.model).map_err(|taken| match (taken, name.unwrap_or_default().to_owned()) {
        (Taken::Name, name) => ModelError::VersionConflict(name).into(),
        (Taken::Id, _) => ModelError::SequenceBehind.into(),
    })
}

/// Stores a model that is given as a value as the current user's, and returns its id. Without a name it gets that of the value,
/// if there is one.
///
/// # Errors
/// Those of [`document::ModelDocument::read`] and [`store`].
pub fn import(value: Jsonb, name: Option<&str>) -> Result<i64> {
    value.with_text(document::ModelDocument::read)?.store(name)
}

/// The model with this id, if the current user may use it.
///
/// # Errors
/// [`ModelError::NoModelId`], [`ModelError::ModelPermission`], [`ModelError::CorruptModel`]
pub fn by_id(id: i64) -> Result<Rc<Model>> {
    find(Key::Id(id))
}

/// The model that this name means to the current user ([`names`]): the deployed version, else the latest.
///
/// # Errors
/// As [`by_id`], with [`ModelError::NoModelName`], [`ModelError::AmbiguousModel`] and [`ModelError::OwnerNeeded`].
pub fn by_name(name: &str) -> Result<Rc<Model>> {
    find(Key::Name(name.to_owned()))
}

/// The model that a text means, which is a name or an id. A number is an id, unless the user has a model of that name: whoever
/// calls a model `12` must not take the place of model 12.
///
/// # Errors
/// As [`by_name`].
pub fn by_name_or_id(text: &str) -> Result<Rc<Model>> {
    let Ok(id) = text.parse() else { return by_name(text) };
    let table = ModelTable::open();
    let is_own = names::is_own(&table, text);
    table.close();
    if is_own { by_name(text) } else { by_id(id) }
}

fn find(key: Key) -> Result<Rc<Model>> {
    cache::find(key, |key| {
        let table = ModelTable::open();
        let found = id_of(&table, key).and_then(|id| {
            let model = table.find(&Key::Id(id), |row| {
                if Claim::of(row).is_none() {
                    return Err(ModelError::ModelPermission(id).into());
                }
                cache::version(id, row.version(), || load(id, row))
            });
            model.unwrap_or_else(|| Err(not_found(key)))
        });
        table.close();
        match found {
            Err(Error::Model(ModelError::NoModelId(_)) | Error::Model(ModelError::NoModelName(_)))
                if is_stored_later(key) =>
            {
                Err(ModelError::LaterModel(not_found(key).to_string()).into())
            }
            found => found,
        }
    })
}

/// Has another transaction stored, and committed, a model for this key that the running statement does not see but the current
/// user may use?
fn is_stored_later(key: &Key) -> bool {
    let Some(table) = ModelTable::open_latest() else { return false };
    let id = id_of(&table, key);
    let found = id.is_ok_and(|id| table.find(&Key::Id(id), |row| Claim::of(row).is_some()).unwrap_or(false));
    table.close();
    found
}

/// The id that a key means to the current user.
fn id_of(table: &ModelTable, key: &Key) -> Result<i64> {
    match key {
        Key::Id(id) => Ok(*id),
        Key::Name(name) => resolve(table, name).map(|named| named.id),
    }
}

/// The model in a row, its numbers in shared memory if there is any and others may see the row.
fn load(id: i64, row: &ModelRow) -> Result<Model> {
    if !shared::enabled() || !row.is_committed() {
        return Model::read(id, row);
    }
    match shared::claim(&row.shared_key(id)) {
        shared::Claim::Found(shared) => Model::read_around(id, row, shared),
        shared::Claim::Private => Model::read(id, row),
        shared::Claim::Load(loading) => {
            let model = Model::read(id, row)?;
            let shared = loading.publish(model.arrays());
            Ok(match shared {
                Some(shared) => model.moved_to(shared),
                None => model,
            })
        }
    }
}

fn not_found(key: &Key) -> Error {
    match key {
        Key::Id(id) => ModelError::NoModelId(*id).into(),
        Key::Name(name) => ModelError::NoModelName(name.clone()).into(),
    }
}

/// What shared memory knows of models in this database that the current user may use.
pub fn stats() -> Vec<Stat> {
    let stats = shared::stats();
    if stats.is_empty() {
        return stats;
    }
    let table = ModelTable::open();
    let may_use = |stat: &Stat| table.find(&Key::Id(stat.model), |row| Claim::of(row).is_some()).unwrap_or(false);
    let stats = stats.into_iter().filter(may_use).collect();
    table.close();
    stats
}

/// A row of the table was changed or deleted.
pub fn forget(id: i64) {
    shared::forget(id);
}
