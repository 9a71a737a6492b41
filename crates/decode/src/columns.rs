//! What all kinds of columns have in common: how they are found, and errors about them.

use errors::{Error, Result, SourceError};
use pg::catalog::names::quote_identifier;
use pg::catalog::types::{base_type, is_enum, is_range, type_name};
use pg::executor::query::Column;
use pg::values::record::is_citext;
use pgrx::pg_sys;

/// The place of the first feature in a row, behind the label.
pub const FIRST_FEATURE: usize = 1;

/// What features may be, as hints say it.
pub const FEATURE_TYPES: &str = "Features can be any number of columns of numbers, booleans, text, enums, arrays of numbers or of \
     text, pgvector's vectors, tsvector or bytes; or an array of indices and one of values.";

pub fn column<'a>(columns: &'a [Column], name: &str) -> Result<&'a Column> {
    let mut found = columns.iter().filter(|c| c.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (Some(_), Some(_)) => Err(SourceError::AmbiguousColumn(name.to_owned()).into()),
        (None, _) => Err(SourceError::UndefinedColumn {
            column: name.to_owned(),
            columns: columns.iter().map(|c| c.name.clone()).collect(),
        }
        .into()),
    }
}

/// The error about a column of a type that cannot be.
pub fn column_type(role: &'static str, column: &Column, hint: &'static str) -> Error {
    let (column, type_name) = (column.name.clone(), type_name(column.type_oid));
    SourceError::ColumnType { role, column, type_name, hint: hint.into() }.into()
}

/// Is this a type of categories? For a domain, give its base type.
pub fn is_category(base: pg_sys::Oid) -> bool {
    [pg_sys::TEXTOID, pg_sys::VARCHAROID, pg_sys::BPCHAROID].contains(&base) || is_enum(base) || is_citext(base)
}

/// Expressions of a column x that can be features, where its type, here the base type, cannot.
pub fn use_of(base: pg_sys::Oid) -> Option<&'static str> {
    Some(match base {
        pg_sys::INETOID | pg_sys::CIDROID => "masklen(x) as a number or host(x) as a text",
        pg_sys::MACADDROID | pg_sys::MACADDR8OID => "trunc(x)::text",
        pg_sys::POINTOID => "(x)[0] and (x)[1]",
        pg_sys::BOXOID | pg_sys::CIRCLEOID => "area(x)",
        pg_sys::TIMEOID | pg_sys::TIMETZOID => "EXTRACT(hour FROM x)",
        pg_sys::BITOID => "(x)::int8",
        pg_sys::UUIDOID => "(x)::text",
        base if is_range(base) => "lower(x) and upper(x)",
        _ => return None,
    })
}

/// The error about a column that cannot be a feature by its type.
pub fn no_feature(column: &Column) -> Error {
    let base = base_type(column.type_oid);
    let hint = match use_of(base) {
        Some(expressions) => format!("Select {} in a query as source.", of_column(expressions, &column.name)),
        None => FEATURE_TYPES.to_owned(),
    };
    let (column, type_name) = (column.name.clone(), type_name(column.type_oid));
    SourceError::ColumnType { role: "feature", column, type_name, hint: hint.into() }.into()
}

/// The same expressions of a column of this name.
pub fn of_column(expressions: &str, name: &str) -> String {
    let name = quote_identifier(name);
    expressions.replace("(x)", &format!("({name})")).replace("FROM x", &format!("FROM {name}"))
}
