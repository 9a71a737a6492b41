//! What is wrong with the source of rows: a table or a query.

use pg::errors::{Code, Report, did_you_mean};
use std::borrow::Cow;

#[derive(Debug, thiserror::Error, Report)]
pub enum SourceError {
    #[error("column \"{column}\" does not exist in the source")]
    #[report(ERRCODE_UNDEFINED_COLUMN => match columns.is_empty() {
        true => "The source has no columns.".to_owned(),
        false => help_with_column(column, columns) + &format!("The source has the columns {}.", columns.join(", ")),
    })]
    UndefinedColumn { column: String, columns: Vec<String> },
    #[error("column \"{0}\" is ambiguous in the source")]
    #[report(ERRCODE_AMBIGUOUS_COLUMN => "Give the columns of the source query different names.")]
    AmbiguousColumn(String),
    #[error("{role} column \"{column}\" has type {type_name}")]
    #[report(ERRCODE_DATATYPE_MISMATCH => "{hint}")]
    ColumnType { role: &'static str, column: String, type_name: String, hint: Cow<'static, str> },
    #[error("the table has {pages} pages, too few to measure how fast blocks are read")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE => "At least {least} pages are needed.{}", match pages {
        0 => " A distributed table has its rows on its nodes: measure one of its shards there.",
        _ => "",
    })]
    TooFewPages { pages: u32, least: u32 },
    #[error("the source has no features")]
    #[report(ERRCODE_UNDEFINED_COLUMN => "{hint}")]
    NoFeatures { hint: String },
    #[error("the tables of the source have too many pages together")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "The limit is 2^32: leave some partitions out with a query.")]
    TooManyPages,
}

/// What the user probably meant by a column that is not there, as a sentence before others.
fn help_with_column(column: &str, columns: &[String]) -> String {
    let parts: Vec<&str> = column.split(',').map(str::trim).collect();
    if parts.len() > 1 && parts.iter().all(|part| columns.iter().any(|column| column == part)) {
        return format!("Give the names as an array: '{{{}}}'. ", parts.join(","));
    }
    let nearest = did_you_mean(column, columns.iter().map(String::as_str));
    let is_default = column == "label";
    let help = nearest.or(is_default.then(|| "Name the column to predict: label => '...'.".to_owned()));
    help.map_or_else(String::new, |help| help + " ")
}
