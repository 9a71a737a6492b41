//! Features that are parts of a column's values, or what these say: parts of dates, keys of JSON objects, numbers and
//! dates in texts, and whether there is a value at all.

use super::date_part::{DatePart, TimeType, number};
use super::json_key::JsonKey;
use super::jsonb::JsonType;
use super::number::NumberType;
use super::text_part::{self, is_text};
use super::typed::TypedDatum;
use facts::{DayOrder, NumberStyle};
use pgrx::pg_sys;

/// A part, by the name of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// of a date or time
    Date(DatePart),
    /// of a JSON object
    Key(JsonKey),
    /// the number that a text says
    Number(NumberStyle),
    /// of the date that a text says
    TextDate(DayOrder, DatePart),
    /// 1 if there is no value, else 0
    IsNull,
}

/// A part, and the type that it is a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypedPart {
    /// of a date or time of this type
    Date(DatePart, TimeType),
    /// of a JSON object of this type
    Key(JsonKey, JsonType),
    /// the number that a text says, or a number of this type
    Number(NumberStyle, Option<NumberType>),
    /// of the date that a text says
    TextDate(DayOrder, DatePart),
    /// 1 if there is no value, else 0
    IsNull,
}

/// What a column is followed by in the name of the feature that says whether it is NULL.
const IS_NULL: &str = " IS NULL";

/// What the feature is called that says whether this column is NULL.
pub fn is_null_of_column(column: &str) -> String {
    format!("{column}{IS_NULL}")
}

impl Part {
    /// Column and part, if a feature is called like one.
    pub fn split(feature: &str) -> Option<(&str, Part)> {
        let is_null = || feature.strip_suffix(IS_NULL).filter(|column| !column.is_empty());
        JsonKey::split(feature)
            .map(|(column, key)| (column, Part::Key(key)))
            .or_else(|| is_null().map(|column| (column, Part::IsNull)))
            .or_else(|| text_part::split_number(feature).map(|(column, style)| (column, Part::Number(style))))
            .or_else(|| {
                text_part::split_date(feature).map(|(column, order, part)| (column, Part::TextDate(order, part)))
            })
            .or_else(|| DatePart::split(feature).map(|(column, part)| (column, Part::Date(part))))
    }

    /// The part of values of this type, if they have it; for a domain, give its base type.
    pub fn of_type(self, base: pg_sys::Oid) -> Option<TypedPart> {
        match self {
            Part::Date(part) => {
                TimeType::from_oid(base).filter(|time| time.has(part)).map(|time| TypedPart::Date(part, time))
            }
            Part::Key(key) => JsonType::from_oid(base).map(|json| TypedPart::Key(key, json)),
            Part::Number(style) if is_text(base) => Some(TypedPart::Number(style, None)),
            Part::Number(style) => NumberType::from_oid(base).map(|number| TypedPart::Number(style, Some(number))),
            Part::TextDate(order, part) => is_text(base).then_some(TypedPart::TextDate(order, part)),
            Part::IsNull => Some(TypedPart::IsNull),
        }
    }
}

impl TypedPart {
    /// Is each value a category?
    pub fn is_category(&self) -> bool {
        match self {
            TypedPart::Date(part, _) | TypedPart::TextDate(_, part) => part.is_category(),
            TypedPart::Key(key, _) => key.is_category(),
            TypedPart::Number(..) | TypedPart::IsNull => false,
        }
    }

    /// May it be NULL where the column is not?
    pub fn may_be_missing(&self) -> bool {
        matches!(self, TypedPart::Key(..) | TypedPart::Number(_, None) | TypedPart::TextDate(..))
    }

    /// The type of the feature, as SQL gives it.
    pub fn type_oid(&self) -> pg_sys::Oid {
        match self {
            TypedPart::Date(part, _) | TypedPart::TextDate(_, part) => part.type_oid(),
            TypedPart::Key(key, _) => key.type_oid(),
            TypedPart::Number(..) | TypedPart::IsNull => pg_sys::FLOAT8OID,
        }
    }

    /// The type of what [`TypedPart::of_value`] gives.
    pub fn type_of_value(&self) -> pg_sys::Oid {
        match self {
            // a literal, as it were
            TypedPart::Date(part, _) | TypedPart::TextDate(_, part) if part.is_category() => pg_sys::UNKNOWNOID,
            part => part.type_oid(),
        }
    }

    /// The expression of a column, which is written as SQL writes it.
    pub fn sql(&self, column: &str) -> String {
        match self {
            TypedPart::Date(part, time) => part.sql(column, *time),
            TypedPart::Key(key, _) => key.sql(column),
            TypedPart::Number(style, None) => text_part::number_sql(column, *style),
            TypedPart::Number(_, Some(number)) => number.sql(column),
            TypedPart::TextDate(order, part) => text_part::date_sql(column, *order, *part),
            TypedPart::IsNull => format!("CASE WHEN {column} IS NULL THEN 1 ELSE 0 END::pg_catalog.float8"),
        }
    }

    /// The part of a value, or of NULL; None if that is NULL.
    #[inline]
    pub fn of<'a>(&self, value: Option<TypedDatum<'a>>) -> Option<TypedDatum<'a>> {
        match (self, value) {
            (TypedPart::IsNull, value) => Some(number(f64::from(u8::from(value.is_none())))),
            (_, None) => None,
            (TypedPart::Date(part, time), Some(value)) => Some(part.of_value(*time, value)),
            (TypedPart::Key(key, json), Some(value)) => key.of_value(*json, value),
            (TypedPart::Number(style, None), Some(value)) => text_part::number_of_value(*style, value),
            (TypedPart::Number(_, Some(of)), Some(value)) => Some(number(of.read(value))),
            (TypedPart::TextDate(order, part), Some(value)) => text_part::date_of_value(*order, *part, value),
        }
    }
}
