//! What is wrong with compressed mini-batches and products of them.

use pg::errors::{Code, Report};

#[derive(Debug, thiserror::Error, Report)]
pub enum TocError {
    #[error("a mini-batch cannot be compressed: {0}")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "Lower batch_rows.")]
    NotCompressible(String),
    #[error("invalid bytes for type corgipile.toc: {0}")]
    #[report(ERRCODE_INVALID_BINARY_REPRESENTATION => "Create such values with corgipile_compress() or corgipile_toc().")]
    MalformedTocBytes(String),
    #[error("a value of type corgipile.toc is damaged: {0}")]
    #[report(ERRCODE_DATA_CORRUPTED => "Create the value again from its rows.")]
    DamagedToc(String),
    #[error("an array of {0} elements is too large")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "Take fewer rows at a time.")]
    TooManyElements(usize),
    #[error("{0} in an array for a vector or a matrix")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "A vector has one dimension, a matrix two, and neither has NULLs.")]
    NotAMatrix(String),
    #[error("malformed value of type corgipile.toc: {0}")]
    #[report(ERRCODE_INVALID_TEXT_REPRESENTATION => "Create such values with corgipile_compress() or corgipile_toc().")]
    MalformedToc(String),
    #[error("element ({row}, {column}) is not in a matrix of {rows} rows and {columns} columns")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Rows and columns count from 1.")]
    NoElement { row: i32, column: i32, rows: usize, columns: usize },
    #[error("a matrix of {rows} rows and {columns} columns cannot be multiplied with {with} numbers")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "A * v takes a number for each column, v * A a number for each row.")]
    Product { rows: usize, columns: usize, with: String },
    #[error("a matrix of {} rows and {} columns and one of {} rows and {} columns do not have the same shape", .0[0], .0[1], .1[0], .1[1])]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Use two matrices of the same numbers of rows and columns.")]
    Shapes([usize; 2], [usize; 2]),
    #[error("the label has type {0}, which has no array type")]
    #[report(ERRCODE_DATATYPE_MISMATCH => "Cast the label to a type that has arrays, in a query as source.")]
    LabelArray(String),
}
