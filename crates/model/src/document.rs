//! A model as a JSON document, docs/reference/model-format.md: written, and read from anybody, who is trusted with
//! nothing.

use super::features::Texts;
use super::keyed_values::{DOCUMENT_HINT, Fault, KeyedValues, Read, required};
use super::model::{Held, Model};
use super::parts::{EpochRecord, Fitted, Kept, Numbers};
use super::table::{self, Float, FloatArray, read_floats};
use errors::limits::MAX_JSONB_BYTES;
use errors::{ArgumentError, INLINE_MODEL_ID, ModelError, Result, excerpt};
use pg::values::jsonb;
use pgrx::datum::JsonString;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the documents that are written, and the only one that is read.
const VERSION: u64 = 1;

/// The key of the version. An object with this key is a model.
const TAG: &str = "corgipile_model";

/// Bytes that these keys may have: they become trees in memory, where JSON takes several times its size.
const MAX_BYTES: [(&str, usize); 3] = [("hyperparameters", 1 << 20), ("history", 64 << 20), ("profile", 64 << 20)];

/// A model that is given as a document, all of it checked.
pub struct Document {
    pub model: Model,
    pub fitted: Fitted,
    /// as it is named
    pub label_type: String,
    pub kept: Kept,
    pub history: Vec<EpochRecord>,
}

impl Document {
    pub fn read(text: &str) -> Result<Document> {
        let members = Members::read(text)?;
        let (fitted, numbers, kept) = (Fitted::read(&members)?, Numbers::read(&members)?, Kept::read(&members)?);
        let (label_type, history) = (members.get("label_type")?, members.json("history")?);
        members.check_keys()?;
        let model = Model::new(INLINE_MODEL_ID, &fitted, Held::Own(numbers))?;
        kept.check(&model.feature_kind, model.dim())?;
        let (label_type, history) = (label_type.unwrap_or_default(), history.unwrap_or_default());
        Ok(Document { model, fitted, label_type, kept, history })
    }
}

/// The members of an object, not yet parsed.
struct Members<'a> {
    values: BTreeMap<String, &'a RawValue>,
    /// those that were asked for
    known: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Members<'a> {
    fn read(text: &'a str) -> Result<Members<'a>> {
        let values = serde_json::from_str(text).map_err(|_| ArgumentError::InvalidArgument {
            argument: "model",
            reason: "it is not a JSON object".to_owned(),
            hint: Some(DOCUMENT_HINT.to_owned()),
        })?;
        let members = Members { values, known: RefCell::default() };
        // The version first: another one may have other keys.
        match required(TAG, members.json(TAG)?)? {
            VERSION => Ok(members),
            version => {
                let hint = format!(
                    "This version of corgipile reads version {VERSION} of the format; a later one may read others."
                );
                Err(Fault::new(TAG, format!("is {version}, an unknown version")).with_hint(hint).into())
            }
        }
    }

    /// Refuses keys that were not asked for.
    fn check_keys(&self) -> Result<()> {
        let known = self.known.borrow();
        match self.values.keys().find(|key| !known.contains(key.as_str())) {
            None => Ok(()),
            Some(key) => {
                let hint = format!("Known keys are: {}.", known.iter().copied().collect::<Vec<_>>().join(", "));
                Err(Fault::new(&excerpt(key), "is unknown").with_hint(hint).into())
            }
        }
    }

    /// What `parse` makes of the value of a key; its error is what is wrong with it.
    fn parse<T>(&self, key: &'static str, parse: impl FnOnce(&str) -> std::result::Result<T, Fault>) -> Read<T> {
        self.known.borrow_mut().insert(key);
        let Some(text) = self.values.get(key).map(|value| value.get()) else { return Ok(None) };
        match MAX_BYTES.iter().find(|(limited, bytes)| *limited == key && text.len() > *bytes) {
            Some((_, bytes)) => Err(Fault::new(key, format!("has {} bytes, more than {bytes}", text.len()))),
            None => parse(text).map(Some),
        }
    }
}

impl KeyedValues for Members<'_> {
    fn get<T: FromDatum + IntoDatum + DeserializeOwned>(&self, key: &'static str) -> Read<T> {
        self.json(key)
    }

    fn list<T: DeserializeOwned>(&self, key: &'static str) -> Read<Vec<T>>
    where
        Vec<Option<T>>: FromDatum + IntoDatum,
    {
        Ok(self.json(key)?.map(|Texts(elements)| elements))
    }

    fn floats<T: Float>(&self, key: &'static str) -> Read<FloatArray<T>> {
        self.parse(key, |text| read_floats(text).map_err(|reason| Fault::new(key, reason)))
    }

    fn json<T: DeserializeOwned>(&self, key: &'static str) -> Read<T> {
        self.parse(key, |text| serde_json::from_str(text).map_err(|error| Fault::of_json(key, &error)))
    }

    fn type_oid(&self, key: &'static str) -> Read<pg_sys::Oid> {
        let Some(name) = self.get::<String>(key)? else { return Ok(None) };
        jsonb::type_named(&name).map(Some).ok_or_else(|| {
            let reason = format!("is \"{}\", a type that does not exist", excerpt(&name));
            Fault::new(key, reason).with_hint("Create the type, or use \"text\" to get the labels as text.")
        })
    }
}

#[derive(Serialize)]
struct Written<'a> {
    corgipile_model: u64,
    #[serde(flatten)]
    fitted: &'a Fitted,
    #[serde(flatten)]
    numbers: &'a Numbers,
    #[serde(flatten)]
    kept: &'a Kept,
    history: &'a RawValue,
}

/// The JSON document of a model that the user may use.
pub fn export(model: &Model) -> Result<String> {
    let found = table::find(model.id, |row| {
        let history: Option<JsonString> = row.get(c"history");
        Ok((Fitted::read(row)?, Numbers::read(row)?, Kept::read(row)?, history))
    });
    let found: std::result::Result<_, Fault> = found.ok_or(ModelError::NoModelId(model.id))?;
    let (fitted, numbers, kept, history) = found.map_err(|fault| fault.of_row(model.id))?;
    let Numbers { weights, feature_mean, feature_scale, feature_fill, .. } = &numbers;
    let scaling = [feature_mean, feature_scale].into_iter().flatten().map(|numbers| numbers.base64_len());
    let fill = feature_fill.as_ref().map_or(0, |fill| fill.base64_len());
    let bytes = weights.base64_len() + scaling.sum::<usize>() + fill;
    if bytes > MAX_JSONB_BYTES {
        return Err(ModelError::ModelTooLarge(bytes).into());
    }
    let history = history.map_or_else(|| "[]".to_owned(), |JsonString(history)| history);
    let history = RawValue::from_string(history).map_err(|error| Fault::of_json("history", &error).of_row(model.id))?;
    let written =
        Written { corgipile_model: VERSION, fitted: &fitted, numbers: &numbers, kept: &kept, history: &history };
    let mut json = allocation::Bytes::default();
    allocation::reserve(&mut json.0, bytes + history.get().len());
    serde_json::to_writer(&mut json, &written).expect("plain values are always JSON");
    Ok(String::from_utf8(json.0).expect("JSON is UTF-8"))
}
