//! Values of Rust's own on their way into a row that PostgreSQL gets.

use super::typed::{TypedDatum, is_same_in_memory};
use pgrx::{IntoDatum, JsonB, pg_sys};

/// One column of a row: owned, until it becomes a datum where the row is made.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputValue {
    /// NULL of any type
    Null,
    /// of type boolean
    Bool(bool),
    /// of type integer
    Int(i32),
    /// of type bigint, or a time as its microseconds
    Bigint(i64),
    /// of type double precision
    Double(f64),
    /// of type oid or one like it
    Oid(pg_sys::Oid),
    /// of type text
    Text(String),
    /// of type jsonb
    Json(serde_json::Value),
    /// an array of float8, of which elements may be NULL
    Doubles(Vec<Option<f64>>),
}

impl OutputValue {
    /// The value as a datum in the current memory context, or None for NULL, for a column of type `declared`. An ERROR
    /// if it is no value of such a column.
    pub(crate) fn datum_for(&self, declared: pg_sys::Oid) -> Option<pg_sys::Datum> {
        let (datum, own) = match self {
            OutputValue::Null => return None,
            OutputValue::Bool(value) => (value.into_datum(), pg_sys::BOOLOID),
            OutputValue::Int(value) => (value.into_datum(), pg_sys::INT4OID),
            OutputValue::Bigint(value) => (value.into_datum(), pg_sys::INT8OID),
            OutputValue::Double(value) => (value.into_datum(), pg_sys::FLOAT8OID),
            OutputValue::Oid(value) => (value.into_datum(), pg_sys::OIDOID),
            OutputValue::Text(value) => (value.as_str().into_datum(), pg_sys::TEXTOID),
            OutputValue::Json(value) => (JsonB(value.clone()).into_datum(), pg_sys::JSONBOID),
            OutputValue::Doubles(values) => (values.clone().into_datum(), pg_sys::FLOAT8ARRAYOID),
        };
        if !is_same_in_memory(own, declared) {
            pgrx::error!("a column of type {} cannot hold {self:?}", declared.to_u32());
        }
        datum
    }
}

/// Writes a value of another row into a column of type `declared`. An ERROR if it is no value of such a column.
pub(crate) fn datum_of(value: TypedDatum<'_>, declared: pg_sys::Oid) -> pg_sys::Datum {
    if !is_same_in_memory(value.type_oid(), declared) {
        pgrx::error!(
            "a column of type {} cannot hold a value of type {}",
            declared.to_u32(),
            value.type_oid().to_u32()
        );
    }
    value.datum()
}

impl<T: Into<OutputValue>> From<Option<T>> for OutputValue {
    fn from(value: Option<T>) -> OutputValue {
        value.map_or(OutputValue::Null, Into::into)
    }
}

/// Conversions that only wrap the value.
macro_rules! from {
    ($($type:ty => $variant:ident),+) => {
        $(impl From<$type> for OutputValue {
            fn from(value: $type) -> OutputValue {
                OutputValue::$variant(value)
            }
        })+
    };
}

from!(bool => Bool, i32 => Int, i64 => Bigint, f64 => Double, pg_sys::Oid => Oid, String => Text,
      serde_json::Value => Json);

impl From<&str> for OutputValue {
    fn from(value: &str) -> OutputValue {
        OutputValue::Text(value.to_owned())
    }
}
