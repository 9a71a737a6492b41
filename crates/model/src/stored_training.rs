//! The state from which a training is continued, kept besides its model.

use super::keyed_values::{Fault, KeyedValues};
use super::model::Model;
use super::parts::Kept;
use crate::table;
use errors::{ModelError, Result};
use pgrx::datum::JsonString;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub struct StoredTraining {
    /// None if nothing was kept
    pub state: Option<Vec<u8>>,
    /// what the model was trained on, as it was named
    pub source: String,
    /// how the model was trained
    pub record: Map<String, Value>,
    /// an object per epoch, as text: of a million epochs all numbers would take a gigabyte
    pub history: Vec<Box<RawValue>>,
}

/// The column that rows had their weights in when this model was trained, if there was one.
pub fn weight_column(id: i64) -> Option<String> {
    let record = table::find(id, |row| row.json::<Map<String, Value>>("hyperparameters"));
    record.and_then(|record| record.ok().flatten()?.get("weight")?.as_str().map(str::to_owned))
}

/// A larger state is not kept: model and state are one row.
pub const MAX_STATE_BYTES: usize = 256 << 20;

/// The training of a model that the user may use, as far as it is kept.
pub fn stored_training(id: i64) -> Result<StoredTraining> {
    let stored = table::find(id, |row| {
        let state: Option<Vec<u8>> = row.get(c"training_state");
        let record = row.json("hyperparameters");
        let history: Option<JsonString> = row.get(c"history");
        let source: Option<String> = row.get(c"source");
        (state, source.unwrap_or_default(), record, history)
    });
    let (state, source, record, history) = stored.ok_or(ModelError::NoModelId(id))?;
    let record = record.map_err(|fault| fault.of_row(id))?.unwrap_or_default();
    let history = history.and_then(|JsonString(text)| serde_json::from_str(&text).ok());
    let history = history.ok_or_else(|| Fault::new("history", "is no array").of_row(id))?;
    Ok(StoredTraining { state, source, record, history })
}

/// What is kept of the training of a model that the user may use, and no prediction reads; nothing of one that is not
/// stored.
pub fn kept(model: &Model) -> Result<Kept> {
    let kept = table::find(model.id, |row| Kept::read(row)).unwrap_or_else(|| Ok(Kept::default()));
    let checked = kept.and_then(|kept: Kept| kept.check(&model.feature_kind, model.dim()).map(|()| kept));
    checked.map_err(|fault| fault.of_row(model.id))
}
