//! What is wrong with the source of rows: a table or a query.

use super::nearest::did_you_mean;
use super::report::{Code, Report};
use super::words::excerpt;

/// What is wrong with the source of rows: a table or a query.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("source must be a table or exactly one SELECT")]
    NotOneSelect,
    #[error("source \"{}\" is neither the name of a table nor a query", excerpt(text))]
    /// `nearest` is a sentence
    NotAName { text: String, nearest: Option<String> },
    #[error("relation \"{name}\" does not exist")]
    UnknownTable { name: String, nearest: Option<String> },
    #[error("source must not modify data or lock rows")]
    NotReadOnly,
    #[error("column \"{column}\" does not exist in the source")]
    UndefinedColumn { column: String, columns: Vec<String> },
    #[error("column \"{0}\" is ambiguous in the source")]
    AmbiguousColumn(String),
    #[error("{role} column \"{column}\" has type {type_name}")]
    ColumnType { role: &'static str, column: String, type_name: String, hint: &'static str },
    #[error("there is no relation with OID {0}")]
    NoRelation(u32),
    #[error("\"{name}\" has no pages of its own to be read")]
    NoFiles { name: String, partitioned: bool },
    #[error("\"{0}\" is a temporary table of another session")]
    OtherTemporary(String),
    #[error("the table has {pages} pages, too few to measure how fast blocks are read")]
    TooFewPages { pages: u32, least: u32 },
    #[error("could not read file \"{0}\": {1}")]
    File(String, String),
    #[error("there are no features in the source")]
    NoFeatures { hint: String },
    #[error("the tables of the source have too many pages together")]
    TooManyPages,
    #[error("relation \"{0}\" does not exist")]
    /// although it did when it was looked up
    Dropped(String),
    #[error("the table whose rows corgipile_shuffle() gives does not exist")]
    /// any more; its name is not known
    DroppedRowType,
    #[error("name of the training source changed while it was being looked up")]
    SourceChanged,
    #[error("table {0} was replaced, or given a rule, when it was made")]
    TableReplaced(String),
    #[error("page {page} of relation \"{table}\" is damaged: a line pointer points out of it")]
    DamagedPage { table: String, page: u32 },
}

impl Report for SourceError {
    fn sqlstate(&self) -> Code {
        match self {
            SourceError::NoRelation(_) | SourceError::UnknownTable { .. } => Code::ERRCODE_UNDEFINED_TABLE,
            SourceError::NotAName { .. } => Code::ERRCODE_INVALID_NAME,
            SourceError::NoFiles { .. } => Code::ERRCODE_WRONG_OBJECT_TYPE,
            SourceError::TooFewPages { .. } => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            SourceError::File(..) => Code::ERRCODE_IO_ERROR,
            SourceError::NotOneSelect => Code::ERRCODE_SYNTAX_ERROR,
            SourceError::NotReadOnly | SourceError::OtherTemporary(_) => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            SourceError::UndefinedColumn { .. } | SourceError::NoFeatures { .. } => Code::ERRCODE_UNDEFINED_COLUMN,
            SourceError::AmbiguousColumn(_) => Code::ERRCODE_AMBIGUOUS_COLUMN,
            SourceError::ColumnType { .. } => Code::ERRCODE_DATATYPE_MISMATCH,
            SourceError::TooManyPages => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            SourceError::Dropped(_) | SourceError::DroppedRowType => Code::ERRCODE_UNDEFINED_TABLE,
            SourceError::SourceChanged | SourceError::TableReplaced(_) => Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
            SourceError::DamagedPage { .. } => Code::ERRCODE_DATA_CORRUPTED,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            SourceError::NotAName { nearest, .. } => Some(after(
                nearest,
                "A query begins with SELECT, WITH, VALUES, TABLE or (; a name with blanks or capitals is quoted: '\"My Table\"'.",
            )),
            SourceError::UnknownTable { nearest, .. } => Some(after(
                nearest,
                "A table that is not in the search path needs its schema; a name with blanks or capitals is quoted: '\"My Table\"'.",
            )),
            SourceError::Dropped(_) => fixed("It was dropped while the statement waited for it."),
            SourceError::DroppedRowType => fixed("It was dropped; prepare the statement anew, or run DISCARD PLANS."),
            SourceError::NoFiles { partitioned: true, .. } => fixed("Measure one of its partitions."),
            SourceError::NoFiles { .. } => fixed("Tables, materialized views and TOAST tables have some."),
            SourceError::TooFewPages { least, .. } => Some(format!("It takes {least} pages at least.")),
            SourceError::TableReplaced(_) => {
                fixed("Call it again. If it stays so, look for an event trigger on CREATE TABLE.")
            }
            SourceError::NotOneSelect => {
                fixed("Give the name of a table or view, or one SELECT, VALUES or WITH query.")
            }
            SourceError::UndefinedColumn { columns, .. } if columns.is_empty() => fixed("The source has no columns."),
            SourceError::UndefinedColumn { column, columns } => {
                let help = help_with_column(column, columns);
                Some(after(&help, &format!("The source has the columns {}.", columns.join(", "))))
            }
            SourceError::AmbiguousColumn(_) => fixed("Give the columns of the source query different names."),
            SourceError::ColumnType { hint, .. } => fixed(hint),
            SourceError::NoFeatures { hint } => Some(hint.clone()),
            SourceError::DamagedPage { .. } => fixed(
                "Restore the table from a backup; verify_heapam() of the extension amcheck finds what else is damaged.",
            ),
            SourceError::TooManyPages => fixed("There may be 2^32: leave some partitions out with a query."),
            SourceError::NotReadOnly => {
                fixed("Change rows by a statement of its own before, and leave FOR UPDATE and the like out.")
            }
            SourceError::OtherTemporary(_) => fixed("Only the session that made it can read it."),
            SourceError::NoRelation(_) => fixed("It may have been dropped meanwhile."),
            SourceError::SourceChanged => fixed("Run the statement again."),
            _ => None,
        }
    }
}

/// A sentence after another one, if there is that.
fn after(first: &Option<String>, then: &str) -> String {
    first.iter().map(|first| format!("{first} ")).chain([then.to_owned()]).collect()
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
