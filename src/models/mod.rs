//! Models: kept in table corgipile.models, used through a cache of this backend.
//!
//! The table is the truth. A model is looked up again whenever anything could have changed what the statement sees or
//! what its user may do, so that the cache never shows a model that was deleted, rolled back or taken away.

mod cache;

use crate::error::{Error, Result};
use crate::pg::model_table::{self, Field, Key, ModelRow, ModelTable};
use crate::pg::number::NumberType;
use crate::pg::relation::existing_base_type;
use pgrx::datum::JsonString;
use pgrx::{JsonB, pg_sys};
use serde_json::Value;
use sgd::{LinearModel, ModelKind, Standardizer};
use std::rc::Rc;
use std::time::Duration;

/// A trained model, ready to predict.
pub struct Model {
    pub id: i64,
    pub kind: ModelKind,
    pub linear: LinearModel,
    pub standardizer: Option<Standardizer>,
    /// ascending; the first is the negative class
    pub classes: [String; 2],
    /// the classes as numbers, unless they are text
    pub values: Option<[f64; 2]>,
    pub label: String,
    pub features: Vec<String>,
    pub skips_nulls: bool,
}

/// A model to be stored, and what it is to be known by.
pub struct NewModel<'a> {
    pub name: Option<&'a str>,
    pub kind: ModelKind,
    pub source: &'a str,
    pub label: &'a str,
    pub label_type: pg_sys::Oid,
    /// ascending; the first is the negative class
    pub classes: [String; 2],
    pub features: &'a [String],
    /// are they the elements of one array column?
    pub array_features: bool,
    pub hyperparameters: Value,
    pub linear: LinearModel,
    pub standardizer: Option<Standardizer>,
    /// rows left out in each epoch
    pub skipped: u64,
    pub preparation: Duration,
    /// JSON: an object per epoch
    pub history: String,
}

/// Fails if a model with this name could not be stored, before any work is done for it.
///
/// # Errors
/// [`Error::ModelExists`]; PostgreSQL's own if the transaction is read-only.
pub fn check_can_store(name: Option<&str>) -> Result<()> {
    model_table::prevent_if_read_only("corgipile_train()");
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
    let (mean, scale) = new.standardizer.map(|s| (s.mean, s.scale)).unzip();
    let name = new.name;
    let id = model_table::insert(vec![
        Field::new("name", new.name),
        Field::object("owner", pg_sys::REGROLEOID, model_table::current_user()),
        Field::new("model", Some(new.kind.name())),
        Field::new("source", Some(new.source)),
        Field::new("label", Some(new.label)),
        Field::object("label_type", pg_sys::REGTYPEOID, new.label_type),
        Field::new("classes", Some(new.classes.to_vec())),
        Field::new("features", Some(new.features.to_vec())),
        Field::new("array_features", Some(new.array_features)),
        Field::new("hyperparameters", Some(JsonB(new.hyperparameters))),
        Field::new("weights", Some(new.linear.weights)),
        Field::new("intercept", Some(new.linear.intercept)),
        Field::new("feature_mean", mean),
        Field::new("feature_scale", scale),
        Field::new("skipped", Some(new.skipped as i64)),
        Field::new("preparation_seconds", Some(new.preparation.as_secs_f64())),
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

impl Model {
    /// Reads a row of the table, trusting nothing: an administrator may have written it.
    fn read(id: i64, row: &ModelRow) -> Result<Model> {
        let corrupt = |what: &str| Error::CorruptModel(id, what.to_owned());
        let kind: String = row.get(c"model").ok_or_else(|| corrupt("model is NULL"))?;
        let weights = elements(row.get(c"weights")).ok_or_else(|| corrupt("weights are NULL"))?;
        let linear = LinearModel { weights, intercept: row.get(c"intercept").ok_or_else(|| corrupt("no intercept"))? };
        if !linear.is_finite() {
            return Err(corrupt("weights are not finite"));
        }
        let dim = linear.weights.len();
        let standardizer = match (elements(row.get(c"feature_mean")), elements(row.get(c"feature_scale"))) {
            (Some(mean), Some(scale)) => Some(Standardizer { mean, scale }),
            (None, None) => None,
            _ => return Err(corrupt("there is one of feature_mean and feature_scale")),
        };
        if let Some(Standardizer { mean, scale }) = &standardizer {
            let sound = |scale: &f64| scale.is_finite() && *scale > 0.0;
            if mean.len() != dim
                || scale.len() != dim
                || !scale.iter().all(sound)
                || !mean.iter().all(|m| m.is_finite())
            {
                return Err(corrupt("feature_mean and feature_scale do not fit the weights"));
            }
        }
        let features: Vec<String> = elements(row.get(c"features")).ok_or_else(|| corrupt("features are NULL"))?;
        if features.len() != if row.get(c"array_features") == Some(true) { 1 } else { dim } {
            return Err(corrupt("features do not fit the weights"));
        }
        let classes: Vec<String> = elements(row.get(c"classes")).ok_or_else(|| corrupt("classes are NULL"))?;
        let classes: [String; 2] = classes.try_into().map_err(|_| corrupt("there are not two classes"))?;
        let label_type = row.get(c"label_type").unwrap_or(pg_sys::Oid::INVALID);
        let options: Option<JsonB> = row.get(c"hyperparameters");
        Ok(Model {
            id,
            kind: kind.parse().map_err(|_| corrupt("unknown kind of model"))?,
            linear,
            standardizer,
            values: numbers(label_type, &classes),
            classes,
            label: row.get(c"label").ok_or_else(|| corrupt("label is NULL"))?,
            features,
            skips_nulls: options.is_some_and(|JsonB(options)| options["nulls"] == "skip"),
        })
    }

    /// Number of features.
    pub fn dim(&self) -> usize {
        self.linear.weights.len()
    }

    /// Bytes of memory, roughly.
    fn bytes(&self) -> usize {
        self.dim() * if self.standardizer.is_some() { 20 } else { 4 } + 1024
    }

    /// w·x + b for raw features, which are standardized in place if the model was trained so.
    pub fn decision(&self, features: &mut [f32]) -> f32 {
        if let Some(standardizer) = &self.standardizer {
            standardizer.apply(features);
        }
        self.linear.decision(features)
    }
}

/// The elements of an array, None if one of them is NULL.
fn elements<T>(array: Option<Vec<Option<T>>>) -> Option<Vec<T>> {
    array?.into_iter().collect()
}

/// The classes as numbers, if the label's type has numbers.
fn numbers(label_type: pg_sys::Oid, classes: &[String; 2]) -> Option<[f64; 2]> {
    let number = |class: &String| match class.as_str() {
        "t" => Some(1.0),
        "f" => Some(0.0),
        class => class.parse().ok(),
    };
    NumberType::of(existing_base_type(label_type)?)?;
    Some([number(&classes[0])?, number(&classes[1])?])
}
