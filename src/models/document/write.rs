//! Writes a model's JSON document, docs/reference/model-format.md.

use super::keys::{TAG, VERSION};
use super::number::Number;
use crate::errors::{ModelError, Result};
use crate::limits::MAX_JSONB_BYTES;
use crate::models::model::Model;
use crate::models::table::{Key, ModelTable};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pg::catalog::types::{existing_base_type, qualified_type_name};
use pg::check_for_interrupts;
use pgrx::datum::JsonString;
use serde_json::{Map, Value, json};

/// The JSON document of a model that the user may use.
///
/// # Errors
/// [`ModelError::ModelTooLarge`], [`ModelError::CorruptModel`]
pub fn export(model: &Model) -> Result<String> {
    let (record, history) = described(model)?;
    let sgd::ParametersView { weights, intercepts, .. } = model.linear();
    let (mean, scale) = model.scaling().unwrap_or_default();
    let base64_len = |bytes: usize| bytes.div_ceil(3) * 4;
    let fill = base64_len(model.fill().map_or(0, size_of_val));
    let numbers =
        base64_len(size_of_val(weights)) + base64_len(size_of_val(mean)) + base64_len(size_of_val(scale)) + fill;
    if numbers > MAX_JSONB_BYTES {
        return Err(ModelError::ModelTooLarge(numbers).into());
    }
    let mut text = Value::Object(record).to_string();
    let scores = base64_len(model.calibration.as_ref().map_or(0, |calibration| size_of_val(calibration.scores())));
    let sigmoids = 2 * base64_len(model.sigmoids.as_ref().map_or(0, |sigmoids| size_of_val(sigmoids.all())));
    let room = numbers + base64_len(size_of_val(intercepts)) + scores + sigmoids + history.len() + 300;
    allocation::grow(room, || text.try_reserve_exact(room));
    text.truncate(text.len() - 1); // the brace
    push(&mut text, "weights", weights);
    push(&mut text, "intercepts", intercepts);
    if !mean.is_empty() {
        push(&mut text, "feature_mean", mean);
        push(&mut text, "feature_scale", scale);
    }
    if let Some(fill) = model.fill() {
        push(&mut text, "feature_fill", fill);
    }
    if let Some(calibration) = &model.calibration {
        text.push_str(&format!(",\"calibration_rows\":{}", calibration.rows()));
        push(&mut text, "calibration_scores", calibration.scores());
    }
    if let Some(sigmoids) = &model.sigmoids {
        push(&mut text, "sigmoid_slopes", &sigmoids.slopes());
        push(&mut text, "sigmoid_offsets", &sigmoids.offsets());
    }
    text.push_str(",\"history\":");
    text.push_str(&history);
    text.push('}');
    Ok(text)
}

/// All of a model but its numbers, and its history.
fn described(model: &Model) -> Result<(Map<String, Value>, String)> {
    let table = ModelTable::open();
    let found = table.find(&Key::Id(model.id), |row| {
        let mut record = Map::new();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                record.insert(key.to_owned(), value);
            }
        };
        put(TAG, json!(VERSION));
        put("name", json!(row.get::<String>(c"name")));
        put("model", json!(model.kind.name()));
        put("source", json!(row.get::<String>(c"source")));
        put("label", json!(model.label));
        let label_type = row.get(c"label_type").filter(|oid| existing_base_type(*oid).is_some());
        put("label_type", json!(label_type.map_or_else(|| "pg_catalog.text".to_owned(), qualified_type_name)));
        put("classes", if model.kind.is_classifier() { json!(model.classes) } else { Value::Null });
        put("features", json!(model.features));
        put("feature_kind", json!(model.feature_kind.name()));
        put("categories", json!(model.feature_kind.categories(&model.features)));
        put("index_base", json!(model.feature_kind.index_base()));
        if let Some(network) = model.linear().network {
            put("hidden_layers", json!(network.hidden));
            put("activation", json!(network.activation));
            put("output", json!(network.output));
        }
        // the model was read from it, so that it is readable
        put("hyperparameters", row.json(c"hyperparameters").ok().flatten().unwrap_or(Value::Null));
        put("profile", row.json(c"profile").ok().flatten().unwrap_or(Value::Null));
        put("skipped", json!(row.get::<i64>(c"skipped")));
        put("imputed", json!(row.get::<i64>(c"imputed")));
        put("preparation_seconds", json!(row.get::<f64>(c"preparation_seconds")));
        put("shuffle_bytes", json!(row.get::<i64>(c"shuffle_bytes")));
        let history: Option<JsonString> = row.get(c"history");
        (record, history.map_or_else(|| "[]".to_owned(), |JsonString(history)| history))
    });
    table.close();
    found.ok_or(ModelError::NoModelId(model.id).into())
}

/// Adds a key with numbers as base64.
fn push<T: Number>(text: &mut String, key: &str, numbers: &[T]) {
    const CHUNK: usize = 3072; // a multiple of 3: the base64 of each chunk but the last ends without padding
    text.push_str(",\"");
    text.push_str(key);
    text.push_str("\":\"");
    let mut bytes = Vec::with_capacity(CHUNK * size_of::<T>());
    for chunk in numbers.chunks(CHUNK) {
        check_for_interrupts();
        bytes.clear();
        chunk.iter().for_each(|number| number.extend(&mut bytes));
        STANDARD.encode_string(&bytes, text);
    }
    text.push('"');
}
