//! Data sets: rows of a source, cut into elements.
//!
//! It guarantees that all jobs of a data set mean the same rows by an element, whichever columns they want.

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;
use joader::ElementSet;
use loading::Size;
use predicate::Predicate;
use shuffle::Blocks;
use source::{Cancel, Source, SourceError};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Opens sources: who starts a server or a job knows how.
pub trait Opener: Send + Sync {
    /// The rows that a text tells.
    ///
    /// # Errors
    /// Why it could not be made.
    fn open(&self, source: &str) -> Result<Arc<dyn Opened>, SourceError>;

    /// Makes that what [`Opened::passing`] tells can be opened also when its rows' first opener has gone. None if
    /// that needs nothing.
    ///
    /// # Errors
    /// Why it cannot.
    fn hold(&self, _passing: &str) -> Result<Option<Box<dyn Held>>, SourceError> {
        Ok(None)
    }
}

/// What keeps rows as they are, as long as it is there.
pub trait Held: Send {
    /// The text by which they are opened.
    fn source(&self) -> &str;
}

/// Rows whose columns can be had by themselves. They stay the same rows: a table is read under one snapshot.
pub trait Opened: Send + Sync {
    /// These columns, or all of them.
    ///
    /// # Errors
    /// If there is no such column.
    fn columns(&self, columns: Option<&[String]>) -> Result<Arc<dyn Source>, SourceError>;

    /// The text by which others find just these rows as long as they are open here, if that is another than the one
    /// that they were opened by: a table's has the snapshot.
    fn passing(&self) -> Option<String> {
        None
    }
}

/// Bytes of an element at most, if no one chose: large enough that a column of it is read in a piece.
const DEFAULT_BYTES: u64 = 1 << 20;

/// How many elements there are at least then, if there are as many rows: a buffer of a tenth of a thousand mixes sorted
/// rows nearly as a full shuffle does (`make bench PARTS=joader`).
const DEFAULT_ELEMENTS: u64 = 1000;

/// What rows and elements depend on: the source with the data set's columns, and how many of both there are.
pub(crate) fn fingerprint_of(all: &dyn Source, rows: u64, elements: u64) -> u64 {
    // FNV-1a, which never changes
    let numbers = [all.fingerprint(), rows, elements];
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Rows under a name.
pub struct DataSet {
    opened: Arc<dyn Opened>,
    columns: Vec<String>,
    all: Arc<dyn Source>,
    elements: Blocks,
    bytes: u64,
    selections: Mutex<HashMap<String, Arc<Selection>>>,
}

/// The rows that a condition chooses.
pub struct Selection {
    /// Elements with such rows.
    pub elements: ElementSet,
    /// How many rows there are.
    pub rows: u64,
    /// Which rows; None for all.
    chosen: Option<BooleanBuffer>,
}

impl Selection {
    /// A bit for each of an element's rows; None if all are chosen.
    pub fn of(&self, rows: Range<u64>) -> Option<BooleanBuffer> {
        let bits = self.chosen.as_ref()?.slice(rows.start as usize, (rows.end - rows.start) as usize);
        (bits.count_set_bits() < bits.len()).then_some(bits)
    }
}

impl DataSet {
    /// These columns of a source (all, if none exist), in elements of this size.
    ///
    /// # Errors
    /// What the source says, or that there are too many elements of this size.
    pub fn new(opened: Arc<dyn Opened>, columns: Vec<String>, element_size: &str) -> Result<DataSet, SourceError> {
        let all = opened.columns((!columns.is_empty()).then_some(&columns))?;
        let size = match element_size {
            "" => Size::Auto,
            text => text.parse().map_err(|error| SourceError::Invalid(format!("element_size: {error}")))?,
        };
        let bytes: u64 = all.units().iter().map(|unit| unit.bytes).sum();
        let by_default = || Size::Bytes((bytes / DEFAULT_ELEMENTS).clamp(1, DEFAULT_BYTES));
        let size = if size == Size::Auto { by_default() } else { size };
        let elements = loading::elements(&*all, size)?;
        Ok(DataSet { opened, columns, all, elements, bytes, selections: Mutex::default() })
    }

    /// Rows in all.
    pub fn rows(&self) -> u64 {
        self.elements.tuples()
    }

    /// About how many bytes of memory they take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many elements there are.
    pub fn elements(&self) -> u32 {
        self.elements.len()
    }

    /// The rows of an element, and none of one that is not there.
    pub fn rows_of(&self, element: u32) -> Range<u64> {
        if element < self.elements.len() { self.elements.tuples_of(element) } else { 0..0 }
    }

    /// How many of the chosen rows are in these elements.
    pub fn rows_in(&self, selection: &Selection, elements: &ElementSet) -> u64 {
        let of = |range: &Range<u32>| {
            let rows = self.rows_of(range.start).start..self.rows_of(range.end - 1).end;
            selection.of(rows.clone()).map_or(rows.end - rows.start, |bits| bits.count_set_bits() as u64)
        };
        elements.ranges().iter().map(of).sum()
    }

    /// Where each element begins; empty if each is one row.
    pub fn starts(&self) -> Vec<u64> {
        if u64::from(self.elements()) == self.rows() {
            return Vec::new();
        }
        (0..self.elements()).map(|element| self.rows_of(element).start).collect()
    }

    /// What rows and elements depend on.
    pub fn fingerprint(&self) -> u64 {
        fingerprint_of(&*self.all, self.rows(), self.elements().into())
    }

    /// See [`Opened::passing`]; empty without it.
    pub fn passing(&self) -> String {
        self.opened.passing().unwrap_or_default()
    }

    /// Some columns of the same rows, or all of the data set's.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn source(&self, columns: &[String]) -> Result<Arc<dyn Source>, SourceError> {
        if columns.is_empty() {
            return Ok(self.all.clone());
        }
        if !self.columns.is_empty()
            && let Some(unknown) = columns.iter().find(|column| !self.columns.contains(column))
        {
            let known = self.columns.join(", ");
            return Err(SourceError::Invalid(format!("columns: the data set has no {unknown:?}, but {known}")));
        }
        self.opened.columns(Some(columns))
    }

    /// The rows that a condition chooses, all if it is empty. They are looked for once, by reading the columns that it
    /// names.
    ///
    /// # Errors
    /// If the condition is invalid, or rows cannot be read.
    pub fn selection(&self, condition: &str, cancel: &Cancel) -> Result<Arc<Selection>, SourceError> {
        let condition = condition.trim();
        if condition.is_empty() {
            let elements = self.with_rows(|_| true)?;
            return Ok(Arc::new(Selection { elements, rows: self.rows(), chosen: None }));
        }
        let known = || self.selections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(selection) = known().get(condition) {
            return Ok(selection.clone());
        }
        let selection = Arc::new(self.select(condition, cancel)?);
        known().insert(condition.to_owned(), selection.clone());
        Ok(selection)
    }

    fn with_rows(&self, wanted: impl Fn(u32) -> bool) -> Result<ElementSet, SourceError> {
        let has_rows = |element: &u32| !self.rows_of(*element).is_empty() && wanted(*element);
        let ranges = (0..self.elements()).filter(has_rows).map(|element| element..element + 1);
        ElementSet::from_ranges(ranges).map_err(|error| SourceError::Invalid(error.to_string()))
    }

    fn select(&self, condition: &str, cancel: &Cancel) -> Result<Selection, SourceError> {
        let invalid = |error: &dyn std::fmt::Display| SourceError::Invalid(format!("where: {error}"));
        let every = self.opened.columns(None)?;
        let predicate = Predicate::parse(condition, &every.schema()).map_err(|error| invalid(&error))?;
        let columns = predicate.columns();
        let source = if columns.is_empty() { self.all.clone() } else { self.opened.columns(Some(columns))? };
        let mut chosen = BooleanBufferBuilder::new(self.rows() as usize);
        for element in 0..self.elements() {
            cancel.check()?;
            let rows = self.rows_of(element);
            let batch = source.read(rows.clone(), cancel)?;
            if batch.num_rows() as u64 != rows.end - rows.start {
                let what = "rows are damaged and were skipped, so that no one knows which ones a condition means: \
                            read without on_error=\"skip\", or without a condition";
                return Err(SourceError::Invalid(format!("where: {what}")));
            }
            chosen.append_buffer(&predicate.chosen(&batch).map_err(|error| invalid(&error))?);
        }
        let chosen = chosen.finish();
        let has_chosen = |element: u32| {
            let rows = self.rows_of(element);
            chosen.slice(rows.start as usize, (rows.end - rows.start) as usize).count_set_bits() > 0
        };
        let elements = self.with_rows(has_chosen)?;
        let rows = chosen.count_set_bits() as u64;
        Ok(Selection { elements, rows, chosen: Some(chosen) })
    }
}
