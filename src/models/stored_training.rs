//! The state from which a training is continued, kept beside its model.

use crate::errors::{ModelError, Result};
use crate::models::table::{Key, ModelTable};
use pgrx::datum::JsonString;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A training that may be continued.
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
    let table = ModelTable::open();
    let record = table.find(&Key::Id(id), |row| row.json(c"hyperparameters"));
    table.close();
    record.and_then(|record| record.ok().flatten()?.get("weight")?.as_str().map(str::to_owned))
}

/// A larger state is not kept: model and state are one row.
pub const MAX_STATE_BYTES: usize = 256 << 20;

/// The training of a model that the user may use, as far as it is kept.
///
/// # Errors
/// [`ModelError::NoModelId`], [`ModelError::CorruptModel`]
pub fn stored_training(id: i64) -> Result<StoredTraining> {
    let table = ModelTable::open();
    let stored = table.find(&Key::Id(id), |row| {
        let state: Option<Vec<u8>> = row.get(c"training_state");
        let record = row.json(c"hyperparameters");
        let history: Option<JsonString> = row.get(c"history");
        let source: Option<String> = row.get(c"source");
        (state, source.unwrap_or_default(), record, history)
    });
    table.close();
    let (state, source, record, history) = stored.ok_or(ModelError::NoModelId(id))?;
    let corrupt = |what: &str| ModelError::CorruptModel(id, what.to_owned()).into();
    let record = match record {
        Ok(Some(Value::Object(record))) => record,
        Ok(_) => return Err(corrupt("hyperparameters are no object")),
        Err(fault) => return Err(corrupt(&format!("hyperparameters {}", fault.reason_of_several()))),
    };
    let history = history.and_then(|JsonString(text)| serde_json::from_str(&text).ok());
    Ok(StoredTraining { state, source, record, history: history.ok_or_else(|| corrupt("history is no array"))? })
}
