//! The JSON form of a model, docs/reference/model-format.md: written, and read from whoever gives it, who is trusted with nothing.

use super::NewModel;
use super::features::FeatureKind;
use super::model::{Model, as_numbers};
use crate::errors::{ArgumentError, Error, ModelError, ResourceError, Result, excerpt};
use crate::limits::MAX_JSONB_BYTES;
use crate::models::table::{Key, ModelTable};
use crate::options::limits::check_name;
use crate::options::rows::Unseen;
use crate::pg::catalog::types::{existing_base_type, qualified_type_name};
use crate::pg::check_for_interrupts;
use crate::pg::values::jsonb::{self, Unreadable};
use crate::pg::values::number::NumberType;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgrx::datum::JsonString;
use pgrx::pg_sys;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sgd::{Hidden, ModelKind, ModelParameters, Network, Standardizer};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use tuples::pause::pausing;

/// The version of the form that is written, and the only one that is read.
const VERSION: u64 = 1;

/// The key of the version, which tells that an object is a model.
const TAG: &str = "corgipile_model";

/// All keys, as messages list them.
const KEYS: [&str; 23] = [
    TAG,
    "name",
    "model",
    "source",
    "label",
    "label_type",
    "classes",
    "features",
    "feature_kind",
    "categories",
    "index_base",
    "hidden_layers",
    "activation",
    "output",
    "weights",
    "intercepts",
    "feature_mean",
    "feature_scale",
    "hyperparameters",
    "skipped",
    "preparation_seconds",
    "shuffle_bytes",
    "history",
];

/// Elements that an array of texts may have: a column has no more categories.
const MAX_TEXTS: usize = 1_000_000;

/// Bytes that `hyperparameters` and `history` may have: they become trees in memory, where JSON takes several times its size.
const MAX_RECORD_BYTES: usize = 1 << 20;
const MAX_HISTORY_BYTES: usize = 64 << 20;

/// A model as its JSON form says it, all of it checked.
pub struct ModelDocument {
    pub name: Option<String>,
    pub kind: ModelKind,
    source: String,
    pub label: String,
    pub label_type: pg_sys::Oid,
    pub label_type_name: String,
    pub classes: Option<Vec<String>>,
    pub features: Vec<String>,
    pub feature_kind: FeatureKind,
    hyperparameters: Map<String, Value>,
    pub linear: ModelParameters,
    pub standardizer: Option<Standardizer>,
    skipped: u64,
    preparation: Duration,
    shuffle_bytes: Option<u64>,
    history: Vec<Epoch>,
    pub skips_nulls: bool,
    pub unseen: Unseen,
}

/// An epoch of corgipile.training_history. Whatever else stood there would break that view for all who see the model.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Epoch {
    epoch: i32,
    loss: Option<f64>,
    accuracy: Option<f64>,
    learning_rate: Option<f64>,
    tuples: Option<i64>,
    seconds: Option<f64>,
    r2: Option<f64>,
    shuffle_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_loss: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_score: Option<f64>,
}

impl ModelDocument {
    /// Reads a JSON text.
    ///
    /// # Errors
    /// [`ModelError::InvalidModel`], [`ArgumentError::InvalidArgument`] if it is no object.
    pub fn read(text: &str) -> Result<ModelDocument> {
        let keys = Keys::read(text)?;
        let kind: String = keys.required("model", "a text")?;
        let kind: ModelKind = kind.parse().map_err(|_| {
            let hint = format!("Known models are: {}.", ModelKind::known());
            invalid("model", format!("is \"{}\", which is unknown", excerpt(&kind)), Some(hint))
        })?;
        let (label_type_name, label_type) = keys.label_type()?;
        let classes = keys.classes(kind, label_type)?;
        let linear = keys.linear(kind, classes.as_deref())?;
        let standardizer = keys.standardizer(linear.dim)?;
        let (features, feature_kind) = keys.features(linear.dim)?;
        let hyperparameters: Map<String, Value> =
            keys.short("hyperparameters", MAX_RECORD_BYTES, "an object")?.unwrap_or_default();
        let option = |key: &str, other: &str| match hyperparameters.get(key).map(Value::as_str) {
            None | Some(Some("error")) => Ok(false),
            Some(Some(word)) if word == other => Ok(true),
            _ => Err(invalid("hyperparameters", format!("says {key}, but neither \"error\" nor \"{other}\""), None)),
        };
        Ok(ModelDocument {
            name: keys.read_as("name", "a text")?,
            source: keys.read_as("source", "a text")?.unwrap_or_default(),
            label: keys.required("label", "a text")?,
            skipped: keys.count("skipped")?.unwrap_or(0),
            preparation: keys.seconds("preparation_seconds")?,
            shuffle_bytes: keys.count("shuffle_bytes")?,
            history: keys
                .short("history", MAX_HISTORY_BYTES, "an array of epochs with numbers of corgipile.training_history")?
                .unwrap_or_default(),
            skips_nulls: option("nulls", "skip")?,
            unseen: if option("unseen", "zero")? { Unseen::Zero } else { Unseen::Error },
            kind,
            label_type,
            label_type_name,
            classes,
            features,
            feature_kind,
            hyperparameters,
            linear,
            standardizer,
        })
    }

    /// Stores it under a name, or else under its own, and returns its id.
    ///
    /// # Errors
    /// Those of [`super::store`], and [`ArgumentError::InvalidArgument`] for a name that cannot be.
    pub fn store(self, name: Option<&str>) -> Result<i64> {
        let name = name.or(self.name.as_deref());
        name.map_or(Ok(()), check_name)?;
        super::check_can_store("corgipile_import()", name)?;
        super::store(NewModel {
            name,
            kind: self.kind,
            source: &self.source,
            label: &self.label,
            label_type: self.label_type,
            classes: self.classes,
            features: &self.features,
            feature_kind: self.feature_kind,
            hyperparameters: Value::Object(self.hyperparameters),
            linear: self.linear,
            standardizer: self.standardizer,
            skipped: self.skipped,
            preparation: self.preparation,
            shuffle_bytes: self.shuffle_bytes,
            history: serde_json::to_string(&self.history).expect("plain values are always JSON"),
            training_state: None,
        })
    }
}

/// The members of the object, not yet parsed.
struct Keys<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Keys<'a> {
    fn read(text: &'a str) -> Result<Keys<'a>> {
        let keys: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(|_| ArgumentError::InvalidArgument {
                argument: "model",
                reason: "it is not a JSON object".to_owned(),
                hint: Some(FORM_HINT.to_owned()),
            })?;
        let keys = Keys(keys);
        // The version first: another one may have other keys.
        let version: u64 = keys.required(TAG, "a version number")?;
        if version != VERSION {
            let hint = format!("This corgipile reads version {VERSION}; a later one may read others.");
            return Err(invalid(TAG, format!("is {version}, a version that is unknown"), Some(hint)));
        }
        match keys.0.keys().find(|key| !KEYS.contains(&key.as_str())) {
            None => Ok(keys),
            Some(key) => {
                let hint = format!("Known keys are: {}.", KEYS.join(", "));
                Err(invalid(&excerpt(key), "is unknown".to_owned(), Some(hint)))
            }
        }
    }

    /// The value of a key that has to be there.
    fn required<T: DeserializeOwned>(&self, key: &str, what: &str) -> Result<T> {
        self.read_as(key, what)?.ok_or_else(|| missing(key))
    }

    /// The value of a key, None if it is not there.
    fn read_as<T: DeserializeOwned>(&self, key: &str, what: &str) -> Result<Option<T>> {
        let Some(raw) = self.0.get(key) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|error| match Unreadable::from_error(&error) {
            Some(Unreadable::TooDeep) => {
                let hint = format!("Objects and arrays may be nested in {} levels.", Unreadable::LEVELS);
                invalid(key, Unreadable::TooDeep.reason().to_owned(), Some(hint))
            }
            Some(fault) => invalid(key, fault.reason().to_owned(), None),
            None => invalid(key, format!("is not {what}"), None),
        })
    }

    /// As [`Keys::read_as`], of a value of so many bytes at most.
    fn short<T: DeserializeOwned>(&self, key: &str, bytes: usize, what: &str) -> Result<Option<T>> {
        let given = self.0.get(key).map_or(0, |raw| raw.get().len());
        if given > bytes {
            return Err(invalid(key, format!("has {given} bytes, more than {bytes}"), None));
        }
        self.read_as(key, what)
    }

    /// A whole number of SQL's bigint from 0.
    fn count(&self, key: &str) -> Result<Option<u64>> {
        let count: Option<u64> = self.read_as(key, "a whole number from 0")?;
        match count {
            Some(count) if i64::try_from(count).is_err() => Err(invalid(key, format!("is {count}, too large"), None)),
            count => Ok(count),
        }
    }

    fn seconds(&self, key: &str) -> Result<Duration> {
        let seconds: f64 = self.read_as(key, "a number of seconds")?.unwrap_or(0.0);
        Duration::try_from_secs_f64(seconds).map_err(|_| invalid(key, "is no time that can be".to_owned(), None))
    }

    fn texts(&self, key: &str) -> Result<Option<Vec<String>>> {
        let texts: Option<Texts> = self.read_as(key, &format!("an array of at most {MAX_TEXTS} texts"))?;
        Ok(texts.map(|Texts(texts)| texts))
    }

    fn label_type(&self) -> Result<(String, pg_sys::Oid)> {
        const KEY: &str = "label_type";
        let name: String = self.required(KEY, "a text")?;
        match jsonb::type_named(&name) {
            Some(oid) => Ok((name, oid)),
            None => {
                let hint = "Create the type, or say \"text\": labels are texts then.".to_owned();
                Err(invalid(KEY, format!("is \"{}\", and there is no such type", excerpt(&name)), Some(hint)))
            }
        }
    }

    fn classes(&self, kind: ModelKind, label_type: pg_sys::Oid) -> Result<Option<Vec<String>>> {
        const KEY: &str = "classes";
        let refuse = |reason: String| Err(invalid(KEY, reason, None));
        let classes = match (self.texts(KEY)?, kind) {
            (None, ModelKind::Linear) => return Ok(None),
            (Some(_), ModelKind::Linear) => {
                return refuse("must not be there: a linear model has no classes".to_owned());
            }
            (None, _) => return Err(missing(KEY)),
            (Some(classes), _) => classes,
        };
        match (kind, classes.len()) {
            (ModelKind::Softmax | ModelKind::Mlp, 2..) | (_, 2) => {}
            (ModelKind::Softmax | ModelKind::Mlp, n) => {
                return refuse(format!("has {n} elements, and must have 2 or more"));
            }
            (_, n) => return refuse(format!("has {n} elements, and must have 2 for model {}", kind.name())),
        }
        if classes.iter().collect::<HashSet<_>>().len() < classes.len() {
            return refuse("has an element twice".to_owned());
        }
        let numbers = as_numbers(label_type, &classes);
        let is_number = existing_base_type(label_type).and_then(NumberType::from_oid).is_some();
        if is_number && !numbers.is_some_and(|numbers| numbers.iter().all(|number| number.is_finite())) {
            return refuse("are not the numbers that label_type says".to_owned());
        }
        Ok(Some(classes))
    }

    fn linear(&self, kind: ModelKind, classes: Option<&[String]>) -> Result<ModelParameters> {
        let outputs = if kind == ModelKind::Softmax { classes.map_or(0, <[String]>::len) } else { 1 };
        let network = self.network(kind)?;
        let intercepts: Vec<f32> = self.floats("intercepts")?.ok_or_else(|| missing("intercepts"))?;
        let weights: Vec<f32> = self.floats("weights")?.ok_or_else(|| missing("weights"))?;
        if let Some(network) = network {
            return of_network(network, classes.map_or(0, <[String]>::len), weights, intercepts);
        }
        if intercepts.len() != outputs {
            let reason = format!("has {} numbers, and must have {outputs}", intercepts.len());
            let hint = "A softmax model has an intercept per class, any other model one.".to_owned();
            return Err(invalid("intercepts", reason, Some(hint)));
        }
        if weights.is_empty() || !weights.len().is_multiple_of(outputs) {
            let reason = format!("has {} numbers, and must have {outputs} for each feature", weights.len());
            let hint =
                "A softmax model has a weight per feature and class, any other model one per feature.".to_owned();
            return Err(invalid("weights", reason, Some(hint)));
        }
        Ok(ModelParameters { dim: weights.len() / outputs, outputs, weights, intercepts, network: None })
    }

    /// What a network is made of; None for other models.
    fn network(&self, kind: ModelKind) -> Result<Option<Network>> {
        const KEYS: [&str; 3] = ["hidden_layers", "activation", "output"];
        if kind != ModelKind::Mlp {
            return match KEYS.into_iter().find(|key| self.0.contains_key(*key)) {
                Some(key) => Err(invalid(key, "must not be there: it belongs to model mlp".to_owned(), None)),
                None => Ok(None),
            };
        }
        let sizes = format!("an array of one to {} whole numbers from 1", Hidden::MAX_LAYERS);
        let hidden: Hidden = self.required("hidden_layers", &sizes)?;
        if hidden.sizes().iter().any(|size| i32::try_from(*size).is_err()) {
            return Err(invalid("hidden_layers", "has a size that is too large".to_owned(), None));
        }
        let activation = self.required("activation", "\"sigmoid\", \"relu\" or \"tanh\"")?;
        let output = self.required("output", "\"sigmoid\" or \"softmax\"")?;
        Ok(Some(Network { hidden, activation, output }))
    }

    fn standardizer(&self, dim: usize) -> Result<Option<Standardizer>> {
        let (mean, scale) = match (self.floats("feature_mean")?, self.floats("feature_scale")?) {
            (None, None) => return Ok(None),
            (Some(mean), Some(scale)) => (mean, scale),
            (None, _) => return Err(missing("feature_mean")),
            (_, None) => return Err(missing("feature_scale")),
        };
        for (key, numbers) in [("feature_mean", &mean), ("feature_scale", &scale)] {
            if numbers.len() != dim {
                let reason = format!("has {} numbers, and the model {dim} features", numbers.len());
                return Err(invalid(key, reason, None));
            }
        }
        match scale.iter().find(|scale: &&f64| **scale <= 0.0) {
            Some(scale) => {
                Err(invalid("feature_scale", format!("has the number {scale}, and all must be above 0"), None))
            }
            None => Ok(Some(Standardizer { mean, scale })),
        }
    }

    fn features(&self, dim: usize) -> Result<(Vec<String>, FeatureKind)> {
        let kind: String = self.required("feature_kind", "a text")?;
        let features = self.texts("features")?.ok_or_else(|| missing("features"))?;
        let categories: Option<BTreeMap<String, Texts>> =
            self.read_as("categories", &format!("an object of arrays of at most {MAX_TEXTS} texts"))?;
        let categories = categories.map(|columns| {
            Value::Object(columns.into_iter().map(|(column, Texts(values))| (column, Value::from(values))).collect())
        });
        let index_base: Option<i32> = self.read_as("index_base", "0 or 1")?;
        let feature_kind = FeatureKind::read(&kind, &features, categories.as_ref(), index_base).ok_or_else(|| {
            let hint = "\"array\" goes with one column, \"sparse\" with two and with index_base 0 or 1, \"columns\" with one or \
                        more, and with categories of these columns, each of them once.";
            let reason = format!("is \"{}\", which does not fit features, categories and index_base", excerpt(&kind));
            invalid("feature_kind", reason, Some(hint.to_owned()))
        })?;
        match feature_kind.dim() {
            Some(known) if known != dim => {
                let reason = format!("has numbers for {dim} features, but features and categories are {known}");
                Err(invalid("weights", reason, None))
            }
            _ => Ok((features, feature_kind)),
        }
    }

    /// Numbers as base64, or as an array of numbers.
    fn floats<T: Number>(&self, key: &str) -> Result<Option<Vec<T>>> {
        let Some(raw) = self.0.get(key) else { return Ok(None) };
        let refuse = |reason: String| invalid(key, reason, None);
        let numbers: Vec<T> = if raw.get().starts_with('"') {
            let text: Option<&str> = serde_json::from_str(raw.get()).ok();
            let bytes = text.and_then(|text| STANDARD.decode(text).ok());
            let bytes = bytes.ok_or_else(|| refuse("is neither base64 nor an array of numbers".to_owned()))?;
            if !bytes.len().is_multiple_of(size_of::<T>()) {
                return Err(refuse(format!(
                    "has {} bytes, which are not numbers of {} each",
                    bytes.len(),
                    size_of::<T>()
                )));
            }
            pausing(bytes.chunks_exact(size_of::<T>())).map(T::from_bytes).collect()
        } else {
            let numbers: Option<Vec<f64>> = serde_json::from_str(raw.get()).ok();
            let reason = || format!("is neither an array of numbers of type {} nor base64", T::NAME);
            numbers.ok_or_else(|| refuse(reason()))?.into_iter().map(T::from_number).collect()
        };
        let wrong = pausing(&numbers).position(|number| !number.is_finite());
        match wrong {
            Some(place) => Err(refuse(format!("has no finite number of type {} at place {}", T::NAME, place + 1))),
            None => Ok(Some(numbers)),
        }
    }
}

/// A network of these numbers.
fn of_network(network: Network, classes: usize, weights: Vec<f32>, intercepts: Vec<f32>) -> Result<ModelParameters> {
    let outputs = network.outputs(classes);
    let expected = network.intercepts(outputs);
    if intercepts.len() != expected {
        let reason = format!("has {} numbers, and must have {expected}", intercepts.len());
        let hint = "A network has an intercept for each unit of its hidden layers, and for each output.".to_owned();
        return Err(invalid("intercepts", reason, Some(hint)));
    }
    let Some((dim, outputs)) = network.sizes(weights.len(), intercepts.len()) else {
        let rest = network.weights(0, outputs);
        let reason = format!(
            "has {} numbers, and must have {} for each feature and {rest} for the layers behind the first",
            weights.len(),
            network.hidden.sizes()[0]
        );
        return Err(invalid("weights", reason, None));
    };
    Ok(ModelParameters { dim, outputs, weights, intercepts, network: Some(network) })
}

/// A number of a model.
trait Number: Copy {
    /// of the type in SQL
    const NAME: &'static str;

    /// From as many bytes as it has, little-endian.
    fn from_bytes(bytes: &[u8]) -> Self;

    fn extend(self, bytes: &mut Vec<u8>);

    /// The nearest number; an infinite one if it is too large.
    fn from_number(number: f64) -> Self;

    fn is_finite(self) -> bool;
}

macro_rules! number {
    ($float:ty, $name:literal) => {
        impl Number for $float {
            const NAME: &'static str = $name;

            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("chunks of the size of a number"))
            }

            fn extend(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn from_number(number: f64) -> Self {
                number as Self
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}

number!(f32, "real");
number!(f64, "double precision");

/// An array of texts, not longer than any that training makes.
struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = Texts;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an array of texts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> std::result::Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = elements.next_element()? {
                    if texts.len() == MAX_TEXTS {
                        return Err(serde::de::Error::custom("too many"));
                    }
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        deserializer.deserialize_seq(Elements)
    }
}

const FORM_HINT: &str = "corgipile_export() gives such objects; docs/reference/model-format.md describes them.";

fn invalid(key: &str, reason: String, hint: Option<String>) -> Error {
    ModelError::InvalidModel { key: key.to_owned(), reason, hint: hint.unwrap_or_else(|| FORM_HINT.to_owned()) }.into()
}

fn missing(key: &str) -> Error {
    invalid(key, "is missing".to_owned(), None)
}

/// The JSON form of a model that the user may use.
///
/// # Errors
/// [`ModelError::ModelTooLarge`], [`ModelError::CorruptModel`], [`ResourceError::OutOfMemory`]
pub fn write(model: &Model) -> Result<String> {
    let (record, history) = described(model)?;
    let sgd::ParametersView { weights, intercepts, .. } = model.linear();
    let (mean, scale) = model.scaling().unwrap_or_default();
    let base64_len = |bytes: usize| bytes.div_ceil(3) * 4;
    let numbers = base64_len(size_of_val(weights)) + base64_len(size_of_val(mean)) + base64_len(size_of_val(scale));
    if numbers > MAX_JSONB_BYTES {
        return Err(ModelError::ModelTooLarge(numbers).into());
    }
    let mut text = Value::Object(record).to_string();
    let room = numbers + base64_len(size_of_val(intercepts)) + history.len() + 200;
    text.try_reserve_exact(room).map_err(|_| ResourceError::OutOfMemory(room))?;
    text.truncate(text.len() - 1); // the brace
    push(&mut text, "weights", weights);
    push(&mut text, "intercepts", intercepts);
    if !mean.is_empty() {
        push(&mut text, "feature_mean", mean);
        push(&mut text, "feature_scale", scale);
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
        put("classes", if model.kind == ModelKind::Linear { Value::Null } else { json!(model.classes) });
        put("features", json!(model.features));
        put("feature_kind", json!(model.feature_kind.name()));
        put("categories", json!(model.feature_kind.categories(&model.features)));
        put("index_base", json!(model.feature_kind.index_base()));
        if let Some(network) = model.linear().network {
            put("hidden_layers", json!(network.hidden));
            put("activation", json!(network.activation));
            put("output", json!(network.output));
        }
        // it was readable when the model was read
        put("hyperparameters", row.json(c"hyperparameters").ok().flatten().unwrap_or(Value::Null));
        put("skipped", json!(row.get::<i64>(c"skipped")));
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
