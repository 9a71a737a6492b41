//! What all formats have in common: parts of units become one batch, and what is damaged is an error or is counted.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{FieldRef, SchemaRef};
use source::{Cancel, Source, SourceError, Unit, complete_rows, missing};

use crate::layout::Layout;

/// How many messages about skipped rows and files are kept.
const MESSAGES: usize = 20;

/// A data set that takes no more memory than this is kept once it is decoded, as far as its units are read in parts
/// and a part costs as much as the whole.
pub(crate) const KEPT_BYTES: u64 = 128 << 20;

/// What becomes of rows that cannot be read because a file is damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The error is the caller's.
    #[default]
    Raise,
    /// The rows are left out and counted.
    Skip,
}

/// What was read of a unit.
pub struct Part {
    /// The rows that could be read.
    pub batch: RecordBatch,
    /// Why the others could not, at the first of them.
    pub trouble: Option<SourceError>,
}

impl From<RecordBatch> for Part {
    fn from(batch: RecordBatch) -> Self {
        Self { batch, trouble: None }
    }
}

/// Reads rows of one unit.
pub trait UnitReader: Send + Sync {
    /// Rows `rows` of unit `unit`, counted from its first one; fewer of them if some were skipped, which only a reader
    /// does that was opened so.
    ///
    /// # Errors
    /// What could not be read, by file and offset.
    fn read(&self, unit: usize, rows: Range<u64>, cancel: &Cancel) -> Result<Part, SourceError>;

    /// The file of a unit.
    fn file(&self, unit: usize) -> &Path;
}

/// An opened data set of any format.
pub struct Dataset {
    reader: Box<dyn UnitReader>,
    schema: SchemaRef,
    layout: Layout,
    whole_runs: Option<Vec<Unit>>,
    fingerprint: u64,
    on_error: OnError,
    skips_missing: bool,
    skipped: AtomicU64,
    messages: Mutex<Vec<String>>,
}

/// What a format has found when it opened its files.
pub(crate) struct Opened {
    pub(crate) schema: SchemaRef,
    pub(crate) units: Vec<Unit>,
    /// What must be read whole: see [`Source::whole_runs`].
    pub(crate) whole_runs: Option<Vec<Unit>>,
    pub(crate) fingerprint: u64,
    pub(crate) on_error: OnError,
    pub(crate) skipped: SkippedFiles,
}

/// The files that were left out when a data set was opened.
#[derive(Default)]
pub(crate) struct SkippedFiles {
    pub(crate) rows: u64,
    pub(crate) messages: Vec<String>,
}

impl SkippedFiles {
    /// Leaves a file out because of `error`, if that is asked for and the file is to blame. `rows`: as far as they are
    /// known.
    pub(crate) fn skip(&mut self, on_error: OnError, error: SourceError, rows: u64) -> Result<(), SourceError> {
        if !is_skipped(on_error, &error) {
            return Err(error);
        }
        self.rows += rows;
        self.messages.push(format!("left out: {error}"));
        Ok(())
    }
}

/// Whether the error is about damaged data, and such data are to be skipped.
pub(crate) fn is_skipped(on_error: OnError, error: &SourceError) -> bool {
    on_error == OnError::Skip && matches!(error, SourceError::Damaged { .. } | SourceError::Schema { .. })
}

impl Dataset {
    pub(crate) fn new(reader: impl UnitReader + 'static, opened: Opened) -> Self {
        let Opened { schema, units, whole_runs, fingerprint, on_error, skipped } = opened;
        Self {
            reader: Box::new(reader),
            schema,
            layout: Layout::new(units),
            whole_runs,
            fingerprint,
            on_error,
            skips_missing: on_error == OnError::Skip,
            skipped: AtomicU64::new(skipped.rows),
            messages: Mutex::new(skipped.messages),
        }
    }

    /// Rows with missing values are not skipped: somebody fills these in.
    pub fn keep_missing(&mut self) {
        self.skips_missing = false;
    }

    /// The rows that have all values, if others are to be skipped.
    fn complete(&self, unit: usize, batch: RecordBatch) -> Result<RecordBatch, SourceError> {
        let incomplete = |(column, field): (&ArrayRef, &FieldRef)| Some((complete_rows(column)?, field.name().clone()));
        let columns = batch.columns().iter().zip(batch.schema_ref().fields()).filter_map(incomplete);
        let both = |(rows, name), (others, _)| (NullBuffer::union(Some(&rows), Some(&others)).unwrap_or(rows), name);
        let Some((rows, name)) = columns.reduce(both).filter(|_| self.skips_missing) else { return Ok(batch) };
        let path = self.reader.file(unit).to_owned();
        self.count_skipped(rows.null_count() as u64, &SourceError::Schema { path, what: missing(&name) });
        let batch = filter_record_batch(&batch, &BooleanArray::new(rows.into_inner(), None));
        batch.map_err(|error| SourceError::Invalid(error.to_string()))
    }

    fn count_skipped(&self, rows: u64, why: &SourceError) {
        self.skipped.fetch_add(rows, Ordering::Relaxed);
        if let Ok(mut messages) = self.messages.lock()
            && messages.len() < MESSAGES
        {
            messages.push(format!("{rows} rows skipped: {why}"));
        }
    }
}

impl Source for Dataset {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn units(&self) -> &[Unit] {
        self.layout.units()
    }

    fn whole_runs(&self) -> Option<&[Unit]> {
        self.whole_runs.as_deref()
    }

    fn read(&self, rows: Range<u64>, cancel: &Cancel) -> Result<RecordBatch, SourceError> {
        let mut batches = Vec::new();
        for (unit, part) in self.layout.parts(rows)? {
            cancel.check()?;
            let count = part.end - part.start;
            if count == 0 {
                continue;
            }
            match self.reader.read(unit, part, cancel) {
                Ok(Part { batch, trouble }) => {
                    if let Some(trouble) = trouble {
                        self.count_skipped(count - batch.num_rows() as u64, &trouble);
                    }
                    batches.push(self.complete(unit, batch)?);
                }
                Err(error) if is_skipped(self.on_error, &error) => self.count_skipped(count, &error),
                Err(error) => return Err(error),
            }
        }
        if batches.len() == 1 {
            return Ok(batches.remove(0));
        }
        concat_batches(&self.schema, &batches).map_err(|error| {
            SourceError::Invalid(format!("this many rows do not fit one batch: {error}; ask for smaller blocks"))
        })
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn place(&self, row: u64) -> String {
        let Some((unit, part)) = self.layout.parts(row..row + 1).ok().and_then(|mut parts| parts.next()) else {
            return format!("row {row}");
        };
        let path = self.reader.file(unit);
        let before = (0..unit).rev().take_while(|&unit| self.reader.file(unit) == path);
        let before: u64 = before.map(|unit| self.layout.units()[unit].rows).sum();
        format!("{}, row {}", path.display(), before + part.start)
    }

    fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    fn messages(&self) -> Vec<String> {
        self.messages.lock().map(|messages| messages.clone()).unwrap_or_default()
    }
}
