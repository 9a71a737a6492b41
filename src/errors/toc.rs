//! What is wrong with compressed mini-batches and products of them.

use pg::errors::{Code, Report};

/// What is wrong with compressed mini-batches and products of them.
#[derive(Debug, thiserror::Error)]
pub enum TocError {
    #[error("a mini-batch cannot be compressed: {0}")]
    NotCompressible(String),
    #[error("the bytes are no value of type corgipile.toc: {0}")]
    MalformedTocBytes(String),
    #[error("a value of type corgipile.toc is damaged: {0}")]
    DamagedToc(String),
    #[error("an array of {0} elements is too large")]
    TooManyElements(usize),
    #[error("{0} in an array that is to be a vector or a matrix")]
    NotAMatrix(String),
    #[error("malformed value of type corgipile.toc: {0}")]
    MalformedToc(String),
    #[error("element ({row}, {column}) is not in a matrix of {rows} rows and {columns} columns")]
    NoElement { row: i32, column: i32, rows: usize, columns: usize },
    #[error("a matrix of {rows} rows and {columns} columns cannot be multiplied with {with} numbers")]
    Product { rows: usize, columns: usize, with: String },
    #[error("there are no arrays of type {0}, which the label has")]
    LabelArray(String),
}

impl Report for TocError {
    fn sqlstate(&self) -> Code {
        match self {
            TocError::MalformedTocBytes(_) => Code::ERRCODE_INVALID_BINARY_REPRESENTATION,
            TocError::DamagedToc(_) => Code::ERRCODE_DATA_CORRUPTED,
            TocError::NotAMatrix(_) => Code::ERRCODE_ARRAY_ELEMENT_ERROR,
            TocError::LabelArray(_) => Code::ERRCODE_DATATYPE_MISMATCH,
            TocError::NotCompressible(_) | TocError::TooManyElements(_) => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            TocError::MalformedToc(_) => Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            TocError::NoElement { .. } | TocError::Product { .. } => Code::ERRCODE_ARRAY_ELEMENT_ERROR,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            TocError::NotCompressible(_) => fixed("Lower batch_rows."),
            TocError::NotAMatrix(_) => fixed("A vector has one dimension, a matrix two, and neither has NULLs."),
            TocError::MalformedTocBytes(_) | TocError::MalformedToc(_) => {
                fixed("Make such values with corgipile_compress() or corgipile_toc().")
            }
            TocError::NoElement { .. } => fixed("Rows and columns count from 1."),
            TocError::Product { .. } => fixed("A * v takes a number for each column, v * A a number for each row."),
            TocError::LabelArray(_) => fixed("Cast the label to a type that has arrays, in a query as source."),
            TocError::TooManyElements(_) => fixed("Take fewer rows at a time."),
            TocError::DamagedToc(_) => fixed("Make the value again from the rows that it came from."),
        }
    }
}
