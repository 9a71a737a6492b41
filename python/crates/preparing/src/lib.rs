//! What is done to rows once, before many jobs get them.
//!
//! A [`Recipe`] is a list of steps: pictures are decoded, resized and cropped, columns are dropped, functions of Python
//! are called, in [`Processes`] of their own. Jobs with equal recipes share the result. A [`slot`] holds rows as
//! one run of bytes, which any number of processes look at without a copy.
//!
//! It guarantees that what is wrong with a row is an error that names row and column, and that neither a damaged
//! picture, nor one that says that it is huge, nor a function that crashes does harm to anything but its rows.

#![forbid(unsafe_code)]

mod apply;
mod picture;
pub mod processes;
mod recipe;
pub mod slot;

use arrow::array::RecordBatch;
use source::Cancel;

pub use picture::Filter;
pub use processes::Processes;
pub use recipe::{Recipe, Step};

/// Why rows cannot be prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", row.map(|row| format!("row {row}: ")).unwrap_or_default())]
pub struct PrepareError {
    /// Which row of the batch is to blame, from 0; None if all are.
    pub row: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl PrepareError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { row: None, what: what.into() }
    }

    pub(crate) fn in_row(row: usize, what: impl Into<String>) -> Self {
        Self { row: Some(row), what: what.into() }
    }

    /// The same of rows of which those of the batch are a part that begins with this one.
    #[must_use]
    pub fn behind(self, rows: u64) -> Self {
        Self { row: self.row.map(|row| row.saturating_add(usize::try_from(rows).unwrap_or(usize::MAX))), ..self }
    }

    pub(crate) fn cancelled() -> Self {
        Self::new("preparing was cancelled")
    }
}

/// Rows as they were prepared.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// All of them.
    pub batch: RecordBatch,
    /// Those of them that could not be prepared, in their order: what the batch has in their places means nothing.
    pub damaged: Vec<PrepareError>,
}

/// Functions of Python that take rows and give rows.
pub trait Callables: Send + Sync {
    /// How many calls may be under way at a time.
    fn at_a_time(&self) -> usize;

    /// Calls a function, which is named as `module:function`, with these rows.
    ///
    /// # Errors
    /// What the function raised, or why it cannot be called.
    fn call(&self, callable: &str, batch: &RecordBatch, cancel: &Cancel) -> Result<RecordBatch, PrepareError>;
}
