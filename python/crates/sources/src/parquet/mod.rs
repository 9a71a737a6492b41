//! Parquet: units are row groups, or runs of pages of huge ones where the file says where its pages are.

mod kept;
mod open;
mod pages;
mod read;
mod straight;

use source::{Cancel, SourceError};

use crate::{Dataset, OnError};

/// A row group that takes more memory than two of these is split into parts of about this size.
const PART_BYTES: u64 = 8 << 20;

/// How a data set of Parquet files is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// The columns, in this order; all of them without.
    pub columns: Option<Vec<String>>,
    /// What becomes of damaged row groups and files.
    pub on_error: OnError,
    /// Lists whose rows all have the same length are given as such.
    pub fixed_lists: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { columns: None, on_error: OnError::Raise, fixed_lists: true }
    }
}

/// Opens the files that the patterns match as one data set.
///
/// # Errors
/// No file matches, one of them is damaged, a column is missing, or files differ.
pub fn open(paths: &[String], options: Options, cancel: &Cancel) -> Result<Dataset, SourceError> {
    open::open(paths, options, PART_BYTES, cancel)
}
