//! Tables of PostgreSQL: units are runs of pages, read by `COPY` of a range of `ctid`, under one snapshot.
//!
//! Anyone who opens a table exports a snapshot, and every connection of every thread and process reads under it: all
//! epochs of all ranks see the same rows, whatever is done to the table meanwhile. The extension is not needed.
//!
//! How many rows the pages have is counted when the table is opened, which reads it once: the numbers of batches, which
//! ranks must have equally many of, depend on it. An epoch reads each page once where blocks consist of whole pages.

mod columns;
mod connect;
mod copy;
mod passwords;
mod settings;
mod shuffled;
mod table;
mod tls;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use source::{Cancel, SourceError, Unit};

use crate::columns::{conform, given_as};
use crate::dataset::{Dataset, Opened, Part, SkippedFiles, UnitReader};
use crate::files::{DataFile, Fingerprint};
use crate::indexed::memory;
use crate::{OnError, layout};
use columns::{Column, Columns};
use connect::Connections;
pub use connect::HeldSnapshot;
pub use settings::has_password;
pub use shuffled::{Epoch, Shuffle, Shuffled};
use table::{Counted, Pages, Table};

/// How many units are looked at to see whether arrays have the same length, and how wide rows are.
const UNITS_LOOKED_AT: usize = 8;

/// How a table is read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the database is: a connection string or URI. What it does not say is taken from where libpq takes it.
    pub connection: String,
    /// The table, as in SQL: with its schema, or found by the search path; quoted where that is needed.
    pub table: String,
    /// The columns, in this order; all of them without.
    pub columns: Option<Vec<String>>,
    /// A condition in SQL that rows must meet.
    pub filter: Option<String>,
    /// A snapshot that somebody else has exported and holds.
    pub snapshot: Option<String>,
    /// Arrays that have the same length in a sample are given so; else all are lists.
    pub fixed_lists: bool,
}

/// An opened table, and the snapshot that it is read under.
pub struct OpenedTable {
    /// Its rows.
    pub data: Dataset,
    /// The snapshot's name, for others who should read the same rows.
    pub snapshot: String,
}

/// Opens a table.
///
/// # Errors
/// What the database refuses; a table that has no pages of its own, such as a view; a column of a type that
/// has no array.
pub fn open(options: &Options, cancel: &Cancel) -> Result<OpenedTable, SourceError> {
    let connections = Connections::open(&options.connection, options.snapshot.as_deref(), cancel)?;
    let table = connections.with(cancel, |client| Table::find(client, options))?;
    let pages = connections.with(cancel, |client| table.pages(client, cancel))?;
    let mut print = Fingerprint::new("postgres");
    print.text(&format!("{} {:?} {:?} {}", options.table, options.columns, options.filter, options.fixed_lists));
    table.print(&pages.units, &mut print);
    let schema = Arc::new(Schema::new(table.columns.iter().map(Column::field).collect::<Vec<_>>()));
    // Errors name the table where those of files name a path.
    let place = DataFile { path: format!("table {}", table.name).into(), size: 0, modified: 0 };
    let snapshot = connections.snapshot().to_owned();
    let mut reader = Reader { connections, table, pages, schema, place };
    let bytes_per_row = reader.look(options.fixed_lists, cancel)?;
    let units = |pages: &[Pages]| {
        pages.iter().map(|pages| Unit { rows: pages.rows, bytes: pages.rows * bytes_per_row }).collect::<Vec<_>>()
    };
    let (units, whole_runs) = (units(&reader.pages.units), Some(units(&reader.pages.runs)));
    let (fingerprint, on_error, skipped) = (print.finish(), OnError::Raise, SkippedFiles::default());
    let opened = Opened { schema: reader.schema.clone(), units, whole_runs, fingerprint, on_error, skipped };
    Ok(OpenedTable { data: Dataset::new(reader, opened), snapshot })
}

/// The schema with those lists as fixed-size ones that have the same length in all rows of a sample.
fn with_fixed_lists(schema: &SchemaRef, sample: &[RecordBatch]) -> SchemaRef {
    let first = sample.iter().find(|batch| batch.num_rows() > 0);
    let fields = schema.fields().iter().enumerate().map(|(at, field)| {
        let DataType::List(item) = field.data_type() else { return field.as_ref().clone() };
        let length = first.map_or(0, |batch| batch.column(at).as_list::<i32>().value_length(0));
        let fixed = DataType::FixedSizeList(item.clone(), length);
        let same = length > 0 && sample.iter().all(|batch| given_as(batch.column(at), &fixed).is_ok());
        if same { Field::new(field.name(), fixed, true) } else { field.as_ref().clone() }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

struct Reader {
    connections: Connections,
    table: Table,
    pages: Counted,
    schema: SchemaRef,
    place: DataFile,
}

impl Reader {
    /// Finds out how many bytes a row takes, and which arrays have the same length in all rows of a sample.
    fn look(&mut self, fixed_lists: bool, cancel: &Cancel) -> Result<u64, SourceError> {
        let units = &self.pages.units;
        let filled: Vec<usize> = (0..units.len()).filter(|&unit| units[unit].rows > 0).collect();
        let mut sample = Vec::new();
        for at in layout::spread(filled.len(), UNITS_LOOKED_AT) {
            let unit = filled[at];
            sample.push(self.batch(unit, &(0..units[unit].rows), cancel)?);
        }
        let rows: usize = sample.iter().map(|batch| batch.num_rows()).sum();
        let bytes: usize = sample.iter().map(memory).sum();
        if fixed_lists && rows > 0 {
            self.schema = with_fixed_lists(&self.schema, &sample);
        }
        Ok((bytes / rows.max(1)) as u64)
    }

    /// Rows of a unit, in the types of the table.
    fn batch(&self, unit: usize, rows: &Range<u64>, cancel: &Cancel) -> Result<RecordBatch, SourceError> {
        let (pages, before) = self.pages.pages_of(unit, rows);
        let query = self.table.copy(&pages);
        let bytes = self.connections.with(cancel, |client| copy::read(client, &query, cancel))?;
        let mut columns = Columns::new(&self.table.columns, pages.rows as usize);
        copy::each_row(&bytes, &mut |fields| columns.push(fields)).map_err(SourceError::Database)?;
        let batch = columns.finish().map_err(|error| SourceError::Database(error.to_string()))?;
        if batch.num_rows() as u64 != pages.rows {
            let (read, counted) = (batch.num_rows(), pages.rows);
            return Err(SourceError::Database(format!(
                "pages {} to {} of {} gave {read} rows, and {counted} when they were counted: is the filter volatile?",
                pages.first, pages.end, self.table.name
            )));
        }
        Ok(batch.slice((rows.start - before) as usize, (rows.end - rows.start) as usize))
    }
}

impl UnitReader for Reader {
    fn read(&self, unit: usize, rows: Range<u64>, cancel: &Cancel) -> Result<Part, SourceError> {
        let part = self.batch(unit, &rows, cancel)?;
        Ok(conform(&part, &self.schema, rows.start, &self.place)?.into())
    }

    fn file(&self, _: usize) -> &Path {
        &self.place.path
    }
}
