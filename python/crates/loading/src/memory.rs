//! Rows that are in memory already.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use source::{Cancel, Source, SourceError, Unit};
use std::ops::Range;

/// Rows in memory, as one unit: any part of them is cheap to read.
pub struct Memory {
    rows: RecordBatch,
    units: [Unit; 1],
    fingerprint: u64,
}

impl Memory {
    /// These rows. `fingerprint` tells them from others.
    pub fn new(rows: RecordBatch, fingerprint: u64) -> Memory {
        let bytes: usize = rows.columns().iter().map(|column| column.get_array_memory_size()).sum();
        let unit = Unit { rows: rows.num_rows() as u64, bytes: bytes as u64 };
        Memory { rows, units: [unit], fingerprint }
    }
}

impl Source for Memory {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn read(&self, rows: Range<u64>, cancel: &Cancel) -> Result<RecordBatch, SourceError> {
        cancel.check()?;
        if rows.start > rows.end || rows.end > self.units[0].rows {
            return Err(SourceError::Invalid(format!("rows {rows:?} of {}", self.units[0].rows)));
        }
        Ok(self.rows.slice(rows.start as usize, (rows.end - rows.start) as usize))
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}
