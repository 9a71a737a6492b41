//! Keys of JSON objects as features: `data->price` is a number, `data->>colour` a text, and `data->size->width` a
//! number of an object within.
//!
//! The name of a feature says where it is and what it is, as in SQL. In training PostgreSQL reads it, in the query that
//! reads the source; in prediction its functions are called here. A key that is missing is NULL, as is a null of JSON.

use super::jsonb::JsonType;
use super::typed::TypedDatum;
use crate::catalog::names::quote_literal;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// A key, by the keys that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonKey {
    path: Vec<String>,
    is_text: bool,
}

/// What stands between a column and a key, and between keys.
const ARROW: &str = "->";

impl JsonKey {
    /// A key that these keys lead to, as a text or as a number; None of keys that no name of a feature can have.
    pub fn new(path: &[String], is_text: bool) -> Option<JsonKey> {
        let can_be_named = |key: &String| !key.is_empty() && !key.starts_with('>') && !key.contains(ARROW);
        let is_path = !path.is_empty() && path.iter().all(can_be_named);
        is_path.then(|| JsonKey { path: path.to_vec(), is_text })
    }

    /// Column and key, if a feature is called like one.
    pub fn split(feature: &str) -> Option<(&str, JsonKey)> {
        let (column, keys) = feature.split_once(ARROW)?;
        let mut path: Vec<String> = keys.split(ARROW).map(str::to_owned).collect();
        let last = path.last_mut()?;
        let is_text = last.starts_with('>');
        if is_text {
            last.remove(0);
        }
        Some((column, JsonKey::new(&path, is_text)?)).filter(|_| !column.is_empty())
    }

    /// What the feature is called that is this key of a column.
    pub fn of_column(&self, column: &str) -> String {
        let (last, before) = self.path.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
        let arrow = if self.is_text { "->>" } else { ARROW };
        let before: String = before.iter().map(|key| format!("{ARROW}{key}")).collect();
        format!("{column}{before}{arrow}{last}")
    }

    /// Is it a text?
    pub fn is_category(&self) -> bool {
        self.is_text
    }

    /// The type of the feature.
    pub fn type_oid(&self) -> pg_sys::Oid {
        if self.is_text { pg_sys::TEXTOID } else { pg_sys::FLOAT8OID }
    }

    /// The expression of a column of JSON, which is written as SQL writes it. As numbers, true is 1 and false is 0.
    pub fn sql(&self, column: &str) -> String {
        let keys: Vec<String> = self.path.iter().map(|key| quote_literal(key)).collect();
        let text = format!("({column} OPERATOR(pg_catalog.#>>) ARRAY[{}]::pg_catalog.text[])", keys.join(", "));
        match self.is_text {
            true => text,
            false => format!("CASE {text} WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE {text}::pg_catalog.float8 END"),
        }
    }

    /// The key of a value, of type text or float8; None if it is missing. An ERROR if it should be a number and is not.
    pub fn of_value<'a>(&self, json: JsonType, value: TypedDatum<'a>) -> Option<TypedDatum<'a>> {
        let function = match json {
            JsonType::Json => pg_sys::json_extract_path_text,
            JsonType::Jsonb => pg_sys::jsonb_extract_path_text,
        };
        // SAFETY: a value of the type that the function takes, which is looked at when the type is chosen, and an array
        // of texts. What it gives is a text, in the memory context of the call, which the value is in, too.
        unsafe {
            let path = self.path.clone().into_datum();
            let text = pgrx::direct_function_call_as_datum(function, &[Some(value.datum()), path])?;
            if self.is_text {
                return Some(TypedDatum::new(text, pg_sys::TEXTOID));
            }
            let text = pg_sys::text_to_cstring(text.cast_mut_ptr());
            let number = match CStr::from_ptr(text).to_bytes() {
                b"true" => 1.0,
                b"false" => 0.0,
                _ => {
                    let input = pg_sys::Oid::from(pg_sys::F_FLOAT8IN);
                    return Some(TypedDatum::new(
                        pg_sys::OidInputFunctionCall(input, text, pg_sys::FLOAT8OID, -1),
                        pg_sys::FLOAT8OID,
                    ));
                }
            };
            Some(TypedDatum::new(pg_sys::Datum::from(f64::to_bits(number)), pg_sys::FLOAT8OID))
        }
    }
}
