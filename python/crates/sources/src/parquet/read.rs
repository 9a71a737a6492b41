//! Reads a part of a row group.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection};
use source::{Cancel, SourceError};

use super::kept::Kept;
use super::open::leaves;
use super::pages::Pages;
use super::straight::Straight;
use crate::columns::conform;
use crate::dataset::{Part, UnitReader};
use crate::files::DataFile;
use crate::pool::Pool;

/// A file and what its footer says.
pub(super) struct Footer {
    pub(super) file: DataFile,
    pub(super) metadata: ArrowReaderMetadata,
    pub(super) columns: ProjectionMask,
    /// By columns of the schema, those that lie in the file as they do in memory.
    pub(super) straight: Vec<Option<Straight>>,
}

/// A unit: this many rows of a row group, from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) group: usize,
    pub(super) first: u64,
    pub(super) rows: u64,
}

pub(super) struct Reader {
    pub(super) files: Vec<Footer>,
    pub(super) places: Vec<Place>,
    pub(super) schema: SchemaRef,
    pub(super) pool: Arc<Pool>,
    /// None where not all units fit into memory.
    pub(super) kept: Option<Kept>,
}

impl UnitReader for Reader {
    fn read(&self, unit: usize, rows: Range<u64>, cancel: &Cancel) -> Result<Part, SourceError> {
        let Place { file, group, first, .. } = self.places[unit];
        let (footer, of_unit) = (&self.files[file], rows.clone());
        let rows = first + rows.start..first + rows.end;
        let mut columns = footer.read_straight(group, &rows, &self.pool)?;
        if columns.iter().any(Option::is_none) {
            let read = self.decoded(unit, of_unit, &columns, cancel)?;
            let missing = columns.iter_mut().filter(|column| column.is_none());
            missing.zip(read.columns()).for_each(|(column, read)| *column = Some(read.clone()));
        }
        let columns = columns.into_iter().flatten().collect();
        let count = RecordBatchOptions::new().with_row_count(Some((rows.end - rows.start) as usize));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &count);
        Ok(batch.map_err(|error| footer.file.schema(error.to_string()))?.into())
    }

    fn file(&self, unit: usize) -> &Path {
        &self.files[self.places[unit].file].file.path
    }
}

impl Reader {
    /// The columns that are not there, of some rows of a unit: of a part of it, they are a part of what is kept.
    fn decoded(
        &self,
        unit: usize,
        rows: Range<u64>,
        columns: &[Option<ArrayRef>],
        cancel: &Cancel,
    ) -> Result<RecordBatch, SourceError> {
        let place = self.places[unit];
        let footer = &self.files[place.file];
        let (schema, mask) = self.others(footer, columns);
        let decode = |rows: &Range<u64>| {
            let rows = place.first + rows.start..place.first + rows.end;
            let batch = footer.read(place.group, rows.clone(), &mask)?;
            conform(&batch, &schema, rows.start, &footer.file)
        };
        if let Some(kept) = self.kept.as_ref().filter(|_| rows != (0..place.rows)) {
            let key = (unit, columns.iter().map(Option::is_none).collect());
            // what is wrong with other rows of the unit is reported to their reader
            if let Ok(part) = kept.rows(key, &rows, cancel, || decode(&(0..place.rows))) {
                return Ok(part);
            }
            cancel.check()?;
        }
        decode(&rows)
    }

    /// The columns that are not there: their part of the schema, and what to read of the file.
    fn others(&self, footer: &Footer, columns: &[Option<ArrayRef>]) -> (SchemaRef, ProjectionMask) {
        if columns.iter().all(Option::is_none) {
            return (self.schema.clone(), footer.columns.clone());
        }
        let missing = (0..columns.len()).filter(|&column| columns[column].is_none()).collect::<Vec<_>>();
        let fields: Vec<Field> = missing.iter().map(|&column| self.schema.field(column).clone()).collect();
        let leaves = leaves(footer.metadata.metadata(), &fields);
        (Arc::new(Schema::new(fields)), ProjectionMask::leaves(footer.metadata.parquet_schema(), leaves))
    }
}

impl Footer {
    /// The columns, as far as they can be read without the library.
    fn read_straight(
        &self,
        group: usize,
        rows: &Range<u64>,
        pool: &Arc<Pool>,
    ) -> Result<Vec<Option<ArrayRef>>, SourceError> {
        if self.straight.iter().all(Option::is_none) {
            return Ok(vec![None; self.straight.len()]);
        }
        let pages = Pages::open(&self.file)?;
        let metadata = self.metadata.metadata();
        let read = |straight: &Option<Straight>| straight.as_ref()?.read(&pages, metadata, group, rows, pool);
        Ok(self.straight.iter().map(read).collect())
    }

    /// Rows of a row group, in the types of the file.
    pub(super) fn read(
        &self,
        group: usize,
        rows: Range<u64>,
        columns: &ProjectionMask,
    ) -> Result<RecordBatch, SourceError> {
        let pages = Pages::open(&self.file)?;
        // The library checks what it reads, but not every length in it: damage may also come as a panic.
        let read = catch_unwind(AssertUnwindSafe(|| self.read_group(pages.clone(), group, rows.clone(), columns)));
        let what = match read {
            Ok(Ok(batch)) if batch.num_rows() as u64 == rows.end - rows.start => return Ok(batch),
            Ok(Ok(batch)) => parquet::errors::ParquetError::General(format!(
                "row group {group} has {} of the rows {} to {}",
                batch.num_rows(),
                rows.start,
                rows.end
            )),
            Ok(Err(error)) => error,
            Err(_) => parquet::errors::ParquetError::General(format!("row group {group} cannot be decoded")),
        };
        Err(pages.error(&self.file, what))
    }

    fn read_group(
        &self,
        pages: Pages,
        group: usize,
        rows: Range<u64>,
        columns: &ProjectionMask,
    ) -> parquet::errors::Result<RecordBatch> {
        let all = self.metadata.metadata().row_group(group).num_rows() as usize;
        let rows = rows.start as usize..rows.end as usize;
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, self.metadata.clone())
            .with_projection(columns.clone())
            .with_batch_size(rows.len())
            .with_row_groups(vec![group]);
        if rows != (0..all) {
            builder = builder.with_row_selection(RowSelection::from_consecutive_ranges([rows].into_iter(), all));
        }
        let batches = builder.build()?.collect::<Result<Vec<_>, _>>()?;
        match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) => Ok(batch),
            Err(batches) => {
                let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
                Ok(concat_batches(&schema, &batches)?)
            }
        }
    }
}
