//! What all kinds of columns have in common: how they are found, and errors about them.

use errors::{Error, Result, RowFault, SourceError};
use pg::catalog::types::{is_enum, type_name};
use pg::executor::query::Column;
use pg::values::number::NumberFault;
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
    SourceError::ColumnType { role, column: column.name.clone(), type_name: type_name(column.type_oid), hint }.into()
}

/// Is this a type of categories? For a domain, give its base type.
pub fn is_category(base: pg_sys::Oid) -> bool {
    [pg_sys::TEXTOID, pg_sys::VARCHAROID, pg_sys::BPCHAROID].contains(&base) || is_enum(base)
}

/// What is wrong with a number in this column.
#[cold]
pub fn number_fault(fault: NumberFault, name: String) -> Box<RowFault> {
    Box::new(match fault {
        NumberFault::NotFinite(value) => RowFault::NotFinite(name, value),
        NumberFault::OutOfRange(value) => RowFault::OutOfRange(name, value),
    })
}
