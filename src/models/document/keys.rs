//! The members of a model's JSON document, and the errors about them.

use super::number::Number;
use crate::errors::{ArgumentError, Error, ModelError, Result, excerpt};
use crate::models::features::Buckets;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pg::values::jsonb::Unreadable;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;
use tuples::pause::pausing;

/// The version of the documents that are written, and the only one that is read.
pub const VERSION: u64 = 1;

/// The key of the version. An object with this key is a model.
pub const TAG: &str = "corgipile_model";

/// All keys, as messages list them.
const KEYS: [&str; 30] = [
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
    "feature_fill",
    "hyperparameters",
    "skipped",
    "imputed",
    "preparation_seconds",
    "shuffle_bytes",
    "history",
    "calibration_rows",
    "calibration_scores",
    "sigmoid_slopes",
    "sigmoid_offsets",
    "profile",
];

/// Elements that an array of texts may have: a column has no more categories.
pub const MAX_TEXTS: usize = 1_000_000;

/// The members of the object, not yet parsed.
pub struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Members<'a> {
    pub fn read(text: &'a str) -> Result<Members<'a>> {
        let keys: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(|_| ArgumentError::InvalidArgument {
                argument: "model",
                reason: "it is not a JSON object".to_owned(),
                hint: Some(DOCUMENT_HINT.to_owned()),
            })?;
        let keys = Members(keys);
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

    /// Is this key there?
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The value of a key that has to be there.
    pub fn required<T: DeserializeOwned>(&self, key: &str, what: &str) -> Result<T> {
        self.read_as(key, what)?.ok_or_else(|| missing(key))
    }

    /// The value of a key, None if it is not there.
    pub fn read_as<T: DeserializeOwned>(&self, key: &str, what: &str) -> Result<Option<T>> {
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

    /// As [`Members::read_as`], of a value of so many bytes at most.
    pub fn short<T: DeserializeOwned>(&self, key: &str, bytes: usize, what: &str) -> Result<Option<T>> {
        let given = self.0.get(key).map_or(0, |raw| raw.get().len());
        if given > bytes {
            return Err(invalid(key, format!("has {given} bytes, more than {bytes}"), None));
        }
        self.read_as(key, what)
    }

    /// A whole number of SQL's bigint from 0.
    pub fn count(&self, key: &str) -> Result<Option<u64>> {
        let count: Option<u64> = self.read_as(key, "a whole number from 0")?;
        match count {
            Some(count) if i64::try_from(count).is_err() => Err(invalid(key, format!("is {count}, too large"), None)),
            count => Ok(count),
        }
    }

    pub fn seconds(&self, key: &str) -> Result<Duration> {
        let seconds: f64 = self.read_as(key, "a number of seconds")?.unwrap_or(0.0);
        Duration::try_from_secs_f64(seconds).map_err(|_| invalid(key, "is no time that can be".to_owned(), None))
    }

    pub fn texts(&self, key: &str) -> Result<Option<Vec<String>>> {
        let texts: Option<Texts<String>> = self.read_as(key, &format!("an array of at most {MAX_TEXTS} texts"))?;
        Ok(texts.map(|Texts(texts)| texts))
    }

    /// Numbers as base64, or as an array of numbers.
    pub fn floats<T: Number>(&self, key: &str) -> Result<Option<Vec<T>>> {
        let Some(raw) = self.0.get(key) else { return Ok(None) };
        let refuse = |reason: String| invalid(key, reason, None);
        let numbers: Vec<T> = if raw.get().starts_with('"') {
            let text: Option<&str> = serde_json::from_str(raw.get()).ok();
            let bytes = text.and_then(decode);
            let bytes = bytes.ok_or_else(|| refuse("is neither base64 nor an array of numbers".to_owned()))?;
            if !bytes.len().is_multiple_of(size_of::<T>()) {
                return Err(refuse(format!(
                    "has {} bytes, which are not numbers of {} each",
                    bytes.len(),
                    size_of::<T>()
                )));
            }
            allocation::collect(pausing(bytes.chunks_exact(size_of::<T>())).map(T::from_bytes))
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

/// An array of texts, not longer than any that training makes.
pub struct Texts<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Texts<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = Texts<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an array of texts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> std::result::Result<Texts<T>, A::Error> {
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
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

/// What is said of a column of categories: values, or a number of buckets.
pub enum TextsOrBuckets {
    Texts(Vec<Option<String>>),
    Buckets(Buckets),
}

impl<'de> Deserialize<'de> for TextsOrBuckets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = TextsOrBuckets;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an array of texts, or an object")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> std::result::Result<TextsOrBuckets, A::Error> {
                let texts = Texts::deserialize(SeqAccessDeserializer::new(elements));
                texts.map(|Texts(texts)| TextsOrBuckets::Texts(texts))
            }

            fn visit_map<A: MapAccess<'de>>(self, keys: A) -> std::result::Result<TextsOrBuckets, A::Error> {
                Buckets::deserialize(MapAccessDeserializer::new(keys)).map(TextsOrBuckets::Buckets)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The hint about documents in general.
const DOCUMENT_HINT: &str = "corgipile_export() gives such objects; docs/reference/model-format.md describes them.";

/// The error about a key.
pub fn invalid(key: &str, reason: String, hint: Option<String>) -> Error {
    ModelError::InvalidModel { key: key.to_owned(), reason, hint: hint.unwrap_or_else(|| DOCUMENT_HINT.to_owned()) }
        .into()
}

/// The error about a key that is not there.
pub fn missing(key: &str) -> Error {
    invalid(key, "is missing".to_owned(), None)
}

/// The bytes of a text in base64; None if it is none.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = allocation::zeros(base64::decoded_len_estimate(text.len()));
    let len = STANDARD.decode_slice(text, &mut bytes).ok()?;
    bytes.truncate(len);
    Some(bytes)
}
