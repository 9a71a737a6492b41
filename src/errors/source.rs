//! What is wrong with the source of rows: a table or a query.

use pg::errors::{Code, Report, did_you_mean};

/// What is wrong with the source of rows: a table or a query.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("column \"{column}\" does not exist in the source")]
    UndefinedColumn { column: String, columns: Vec<String> },
    #[error("column \"{0}\" is ambiguous in the source")]
    AmbiguousColumn(String),
    #[error("{role} column \"{column}\" has type {type_name}")]
    ColumnType { role: &'static str, column: String, type_name: String, hint: &'static str },
    #[error("the table has {pages} pages, too few to measure how fast blocks are read")]
    TooFewPages { pages: u32, least: u32 },
    #[error("there are no features in the source")]
    NoFeatures { hint: String },
    #[error("the tables of the source have too many pages together")]
    TooManyPages,
}

impl Report for SourceError {
    fn sqlstate(&self) -> Code {
        match self {
            SourceError::TooFewPages { .. } => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            SourceError::UndefinedColumn { .. } | SourceError::NoFeatures { .. } => Code::ERRCODE_UNDEFINED_COLUMN,
            SourceError::AmbiguousColumn(_) => Code::ERRCODE_AMBIGUOUS_COLUMN,
            SourceError::ColumnType { .. } => Code::ERRCODE_DATATYPE_MISMATCH,
            SourceError::TooManyPages => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            SourceError::TooFewPages { least, .. } => Some(format!("It takes {least} pages at least.")),
            SourceError::UndefinedColumn { columns, .. } if columns.is_empty() => fixed("The source has no columns."),
            SourceError::UndefinedColumn { column, columns } => {
                let help = help_with_column(column, columns).map_or_else(String::new, |help| help + " ");
                Some(help + &format!("The source has the columns {}.", columns.join(", ")))
            }
            SourceError::AmbiguousColumn(_) => fixed("Give the columns of the source query different names."),
            SourceError::ColumnType { hint, .. } => fixed(hint),
            SourceError::NoFeatures { hint } => Some(hint.clone()),
            SourceError::TooManyPages => fixed("There may be 2^32: leave some partitions out with a query."),
        }
    }
}

/// What the user probably meant by a column that is not there.
fn help_with_column(column: &str, columns: &[String]) -> Option<String> {
    let parts: Vec<&str> = column.split(',').map(str::trim).collect();
    if parts.len() > 1 && parts.iter().all(|part| columns.iter().any(|column| column == part)) {
        return Some(format!("Give each name by itself: '{{{}}}'.", parts.join(",")));
    }
    let nearest = did_you_mean(column, columns.iter().map(String::as_str));
    let is_default = column == "label";
    nearest.or(is_default.then(|| "Say which column to predict: label => '...'.".to_owned()))
}
