//! What a data set must tell so that its rows can be read in blocks, in any order, by several threads at once.
//!
//! The loader knows nothing of file formats, and the formats know nothing of orders: they meet in [`Source`]. Rows come
//! as Arrow's record batches, which every format's library reads into, and which numpy can look at without a copy.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, SchemaRef};

/// A run of rows that is cheap to read by itself: a row group, a page of it, a record batch of an Arrow file, a
/// stretch between two entries of an index, a run of pages of a table.
///
/// Blocks of the loader are runs of whole units where units are small, and parts of units where they are huge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// How many rows it has; 0 is allowed.
    pub rows: u64,
    /// About how many bytes of memory its rows take once they are read.
    pub bytes: u64,
}

/// Rows that can be read in blocks. Everything but the reading was found when it was opened, and does not change.
pub trait Source: Send + Sync {
    /// Names and types of the columns that are read.
    fn schema(&self) -> SchemaRef;

    /// The units in the order of the rows: together they are all the rows, numbered from 0.
    fn units(&self) -> &[Unit];

    /// The smallest runs of rows that can be read without reading more than them, in the order of the rows. None: any
    /// rows can be, whatever the units are.
    ///
    /// A block that is as large as suits consists of whole ones, so that an epoch reads each of them once.
    fn whole_runs(&self) -> Option<&[Unit]> {
        None
    }

    /// Rows `rows`, in their order: as many as asked for, except those that were skipped as damaged on request.
    ///
    /// May be called by several threads at once. It looks at `cancel` at least once per unit.
    ///
    /// # Errors
    /// What could not be read, by file and offset.
    fn read(&self, rows: Range<u64>, cancel: &Cancel) -> Result<RecordBatch, SourceError>;

    /// What the rows, their number and order, depend on: paths, sizes and times of change of files, the columns, the
    /// filter, a snapshot. A position in an epoch of one source means nothing in another one, which this tells.
    fn fingerprint(&self) -> u64;

    /// What a row is called in messages: its file and its number there, from 0.
    fn place(&self, row: u64) -> String {
        format!("row {row}")
    }

    /// How many damaged rows were skipped so far, where that was asked for.
    fn skipped(&self) -> u64 {
        0
    }

    /// What was said about skipped rows and files, the first of them.
    fn messages(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The rows that have all of their values, where arrays have no place for a missing one: those of integers and truth
/// values, and of lists of them. None if all rows have.
pub fn complete_rows(array: &ArrayRef) -> Option<NullBuffer> {
    let lists = |values: &ArrayRef, of: &dyn Fn(usize) -> Range<usize>| {
        let values = complete_rows(values)?;
        let is_complete = |row| of(row).all(|at| values.is_valid(at));
        Some(NullBuffer::new(BooleanBuffer::collect_bool(array.len(), is_complete)))
    };
    let rows = match array.data_type() {
        of if has_no_place(of) && !of.is_nested() => array.logical_nulls(),
        DataType::FixedSizeList(item, length) => {
            let is_kept = has_no_place(item.data_type());
            let rows =
                lists(array.as_fixed_size_list().values(), &|row| row * *length as usize..(row + 1) * *length as usize);
            NullBuffer::union(rows.as_ref(), array.nulls().filter(|_| is_kept))
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            lists(list.values(), &|row| offsets[row] as usize..offsets[row + 1] as usize)
        }
        _ => None,
    };
    rows.filter(|rows| rows.null_count() > 0)
}

/// Whether arrays of this type, or of fixed-size lists of it, have no place for a missing value.
fn has_no_place(of: &DataType) -> bool {
    match of {
        DataType::FixedSizeList(item, _) => has_no_place(item.data_type()),
        of => of.is_integer() || matches!(of, DataType::Boolean | DataType::FixedSizeBinary(_)),
    }
}

/// What is to be said of a value of a column that is missing, and what to do about it.
pub fn missing(column: &str) -> String {
    format!(
        "column {column:?}: a value is missing, and arrays of integers and truth values have no place for that: say in \
         fill_value what it becomes (nan makes the column one of floating point numbers), or leave such rows out"
    )
}

/// Tells threads that read to stop.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    /// Asks the readers to stop at the next unit.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// [`SourceError::Cancelled`] once somebody asked for it.
    pub fn check(&self) -> Result<(), SourceError> {
        if self.0.load(Ordering::Relaxed) { Err(SourceError::Cancelled) } else { Ok(()) }
    }
}

/// Why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file is damaged, cut off, or not of the format.
    #[error("{}, byte {offset}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A file lacks a column, or has it with another type than the first file.
    #[error("{}: {what}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Which column, and what is wrong with it.
        what: String,
    },
    /// What was asked for is invalid: no file matches, an unknown column, a bad option.
    #[error("{0}")]
    Invalid(String),
    /// A file changed since it was opened.
    #[error("{} changed while it was read; open the data set again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The system refused to open or read a file.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The database refused.
    #[error("database: {0}")]
    Database(String),
    /// [`Cancel::cancel`] was called.
    #[error("reading was cancelled")]
    Cancelled,
}
