//! A value of an argument that is given by its own name, or as a key of `options`.

use super::keys::not;
use crate::errors::{ArgumentError, Result};
use serde_json::Value;

/// The place of an argument, of the type that it has in SQL.
pub enum Given<'a> {
    Text(&'a mut Option<String>),
    Number(&'a mut Option<f64>),
    Integer(&'a mut Option<i32>),
    Seed(&'a mut Option<i64>),
    Names(&'a mut Option<Vec<Option<String>>>),
    Json(&'a mut Option<Value>),
}

impl Given<'_> {
    /// Gives the argument what `options` say.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidOption`] if it is of another type,
    /// [`ArgumentError::GivenTwice`] if the argument has another value.
    pub fn give(&mut self, name: &str, value: &Value) -> Result<()> {
        match self {
            Given::Text(place) => give(place, name, text(value), "a string", value),
            Given::Number(place) => give(place, name, value.as_f64(), "a number", value),
            Given::Integer(place) => give(place, name, integer(value), "a whole number of type int", value),
            Given::Seed(place) => give(place, name, value.as_i64(), "a whole number of type bigint", value),
            Given::Names(place) => give(place, name, names(value), "an array of strings", value),
            Given::Json(place) => give(place, name, Some(value.clone()), "JSON", value),
        }
    }

    /// Gives the argument what is recorded with a model, if it has no value and this is one.
    pub fn fill(&mut self, recorded: &Value) {
        match self {
            Given::Text(place) => fill(place, || text(recorded)),
            Given::Number(place) => fill(place, || recorded.as_f64()),
            Given::Integer(place) => fill(place, || integer(recorded)),
            Given::Seed(place) => fill(place, || recorded.as_i64()),
            Given::Names(place) => fill(place, || names(recorded)),
            Given::Json(place) => fill(place, || Some(recorded.clone())),
        }
    }
}

fn give<T: PartialEq>(place: &mut Option<T>, name: &str, value: Option<T>, what: &str, given: &Value) -> Result<()> {
    let value = value.ok_or_else(|| not(name, what, given))?;
    if place.as_ref().is_some_and(|given| *given != value) {
        return Err(ArgumentError::GivenTwice(name.to_owned()).into());
    }
    *place = Some(value);
    Ok(())
}

fn fill<T>(place: &mut Option<T>, value: impl FnOnce() -> Option<T>) {
    if place.is_none() {
        *place = value();
    }
}

/// Whole numbers are texts too: an id, or a size in bytes.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|number| number.to_string()))
}

fn integer(value: &Value) -> Option<i32> {
    i32::try_from(value.as_i64()?).ok()
}

fn names(value: &Value) -> Option<Vec<Option<String>>> {
    value.as_array()?.iter().map(|name| name.as_str().map(|name| Some(name.to_owned()))).collect()
}

/// Are both the same, with numbers by their value: 1 is 1.0?
pub fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}
