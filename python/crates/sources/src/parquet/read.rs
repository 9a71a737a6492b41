//! Reads a part of a row group.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection};
use source::{Cancel, SourceError};

use super::pages::Pages;
use crate::columns::conform;
use crate::dataset::{Part, UnitReader};
use crate::files::DataFile;

/// A file and what its footer says.
pub(super) struct Footer {
    pub(super) file: DataFile,
    pub(super) metadata: ArrowReaderMetadata,
    pub(super) columns: ProjectionMask,
}

/// A unit: rows of a row group, from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) group: usize,
    pub(super) first: u64,
}

pub(super) struct Reader {
    pub(super) files: Vec<Footer>,
    pub(super) places: Vec<Place>,
    pub(super) schema: SchemaRef,
}

impl UnitReader for Reader {
    fn read(&self, unit: usize, rows: Range<u64>, _: &Cancel) -> Result<Part, SourceError> {
        let Place { file, group, first } = self.places[unit];
        let footer = &self.files[file];
        let rows = first + rows.start..first + rows.end;
        let batch = footer.read(group, rows.clone(), &footer.columns)?;
        Ok(conform(&batch, &self.schema, rows.start, &footer.file)?.into())
    }
}

impl Footer {
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
                let schema =
                    batches.first().map_or_else(|| Arc::new(arrow::datatypes::Schema::empty()), RecordBatch::schema);
                Ok(concat_batches(&schema, &batches)?)
            }
        }
    }
}
