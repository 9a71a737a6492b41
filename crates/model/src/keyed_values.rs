//! Where a model is read from: a row of the table or a document. The columns of the one are the keys of the other.

use super::table::{Float, FloatArray};
use errors::{Error, ModelError, excerpt};
use pg::values::jsonb::Unreadable;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use serde::de::DeserializeOwned;

/// What is wrong with a column or key.
#[derive(Debug)]
pub struct Fault {
    key: String,
    reason: String,
    hint: Option<String>,
}

/// A value, None if it is not there.
pub type Read<T> = Result<Option<T>, Fault>;

pub trait KeyedValues {
    /// A text or a number.
    fn get<T: FromDatum + IntoDatum + DeserializeOwned>(&self, key: &'static str) -> Read<T>;

    fn list<T: DeserializeOwned>(&self, key: &'static str) -> Read<Vec<T>>
    where
        Vec<Option<T>>: FromDatum + IntoDatum;

    fn floats<T: Float>(&self, key: &'static str) -> Read<FloatArray<T>>;

    fn json<T: DeserializeOwned>(&self, key: &'static str) -> Read<T>;

    fn type_oid(&self, key: &'static str) -> Read<pg_sys::Oid>;
}

pub fn required<T>(key: &str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or_else(|| Fault::missing(key))
}

impl Fault {
    pub fn new(key: &str, reason: impl Into<String>) -> Fault {
        Fault { key: key.to_owned(), reason: reason.into(), hint: None }
    }

    pub fn missing(key: &str) -> Fault {
        Fault::new(key, "is missing")
    }

    /// A value that is no JSON, or not the JSON that it should be.
    pub fn of_json(key: &str, error: &serde_json::Error) -> Fault {
        if let Some(unreadable) = Unreadable::from_error(error) {
            return Fault::unreadable(key, unreadable);
        }
        let words = error.to_string();
        let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
        let words = if words.len() > 200 { excerpt(words) } else { words.to_owned() };
        Fault::new(key, format!("cannot be read: {words}"))
    }

    /// A value that PostgreSQL can read and Rust cannot.
    pub fn unreadable(key: &str, unreadable: Unreadable) -> Fault {
        let hint = format!("Objects and arrays may be nested at most {} levels deep.", Unreadable::LEVELS);
        Fault { hint: Some(hint).filter(|_| unreadable == Unreadable::TooDeep), ..Fault::new(key, unreadable.reason()) }
    }

    /// With another hint than that about documents in general.
    pub fn with_hint(self, hint: impl Into<String>) -> Fault {
        Fault { hint: Some(hint.into()), ..self }
    }

    pub fn of_row(self, id: i64) -> Error {
        ModelError::CorruptModel(id, format!("column {} {}", self.key, self.reason)).into()
    }
}

/// The error about a document.
impl From<Fault> for Error {
    fn from(Fault { key, reason, hint }: Fault) -> Error {
        ModelError::InvalidModel { key, reason, hint: hint.unwrap_or_else(|| DOCUMENT_HINT.to_owned()) }.into()
    }
}

pub const DOCUMENT_HINT: &str =
    "corgipile_export() returns such objects; docs/reference/model-format.md describes them.";
