//! Features that are parts of a column's values: parts of dates, and keys of JSON objects.

use super::date_part::{DatePart, TimeType};
use super::json_key::JsonKey;
use super::jsonb::JsonType;
use super::typed::TypedDatum;
use pgrx::pg_sys;

/// A part, by the name of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// of a date or time
    Date(DatePart),
    /// of a JSON object
    Key(JsonKey),
}

/// A part, and the type that it is a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypedPart {
    /// of a date or time of this type
    Date(DatePart, TimeType),
    /// of a JSON object of this type
    Key(JsonKey, JsonType),
}

impl Part {
    /// Column and part, if a feature is called like one.
    pub fn split(feature: &str) -> Option<(&str, Part)> {
        let date = || DatePart::split(feature).map(|(column, part)| (column, Part::Date(part)));
        JsonKey::split(feature).map(|(column, key)| (column, Part::Key(key))).or_else(date)
    }

    /// The part of values of this type, if they have it; for a domain, give its base type.
    pub fn of_type(self, base: pg_sys::Oid) -> Option<TypedPart> {
        match self {
            Part::Date(part) => {
                TimeType::from_oid(base).filter(|time| time.has(part)).map(|time| TypedPart::Date(part, time))
            }
            Part::Key(key) => JsonType::from_oid(base).map(|json| TypedPart::Key(key, json)),
        }
    }
}

impl TypedPart {
    /// Is each value a category?
    pub fn is_category(&self) -> bool {
        match self {
            TypedPart::Date(part, _) => part.is_category(),
            TypedPart::Key(key, _) => key.is_category(),
        }
    }

    /// The type of the feature, as SQL gives it.
    pub fn type_oid(&self) -> pg_sys::Oid {
        match self {
            TypedPart::Date(part, _) => part.type_oid(),
            TypedPart::Key(key, _) => key.type_oid(),
        }
    }

    /// The type of what [`TypedPart::of_value`] gives.
    pub fn type_of_value(&self) -> pg_sys::Oid {
        match self {
            // a literal, as it were
            TypedPart::Date(part, _) if part.is_category() => pg_sys::UNKNOWNOID,
            part => part.type_oid(),
        }
    }

    /// The expression of a column, which is written as SQL writes it.
    pub fn sql(&self, column: &str) -> String {
        match self {
            TypedPart::Date(part, time) => part.sql(column, *time),
            TypedPart::Key(key, _) => key.sql(column),
        }
    }

    /// The part of a value; None if it has none.
    #[inline]
    pub fn of_value<'a>(&self, value: TypedDatum<'a>) -> Option<TypedDatum<'a>> {
        match self {
            TypedPart::Date(part, time) => Some(part.of_value(*time, value)),
            TypedPart::Key(key, json) => key.of_value(*json, value),
        }
    }
}

/// Is it a type of which features may be parts? For a domain, give its base type.
pub fn has_parts(base: pg_sys::Oid) -> bool {
    TimeType::from_oid(base).is_some() || JsonType::from_oid(base).is_some()
}
