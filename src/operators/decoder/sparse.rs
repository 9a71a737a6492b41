//! Features as a column of indices and a column of values.

use super::columns::number_fault;
use crate::errors::RowFault;
use crate::options::rows::Unseen;
use crate::pg::catalog::types::base_type;
use crate::pg::executor::query::Column;
use crate::pg::values::array::ArrayFault;
use crate::pg::values::sparse::{Beyond, Quick, SparseFault, SparseReader};
use crate::pg::values::typed::TypedDatum;
use tuples::{Batch, OutOfMemory};

/// The two columns.
pub struct SparseColumns {
    reader: SparseReader,
    indices: String,
    values: String,
    /// may there be no other dimensions than the reader's?
    fixed: bool,
    /// are these a model's?
    of_model: bool,
}

/// Why a row has not become a tuple.
pub enum SparseError {
    /// an element is NULL
    Null(RowFault),
    Row(RowFault),
    OutOfMemory(OutOfMemory),
}

impl From<OutOfMemory> for SparseError {
    fn from(e: OutOfMemory) -> SparseError {
        SparseError::OutOfMemory(e)
    }
}

impl SparseColumns {
    /// Columns of indices from `base` and of values; None if their types are others. `dim` is how many dimensions there
    /// are, if that is said, and `limit` how many there may be if not.
    /// Those of a model come with what to do beyond them.
    pub fn new(
        [indices, values]: [&Column; 2],
        base: u32,
        dim: Option<usize>,
        limit: usize,
        of_model: Option<Unseen>,
    ) -> Option<SparseColumns> {
        let beyond = if of_model == Some(Unseen::Zero) { Beyond::Drop } else { Beyond::Fault };
        let (index_type, value_type) = (base_type(indices.type_oid), base_type(values.type_oid));
        Some(SparseColumns {
            reader: SparseReader::new(index_type, value_type, base, dim.unwrap_or(limit), beyond)?,
            indices: indices.name.clone(),
            values: values.name.clone(),
            fixed: dim.is_some(),
            of_model: of_model.is_some(),
        })
    }

    /// Dimensions, if they were said.
    pub fn fixed_dim(&self) -> Option<usize> {
        self.fixed.then(|| self.reader.dim())
    }

    /// Sets how many dimensions there may be, if they were not said.
    pub fn set_limit(&mut self, limit: usize) {
        if !self.fixed {
            self.reader.set_dim(limit);
        }
    }

    /// How many dimensions there may be.
    pub fn limit(&self) -> usize {
        self.reader.dim()
    }

    /// What the user calls dimension 0.
    pub fn base(&self) -> i64 {
        self.reader.base()
    }

    /// Are the values of a type that takes long to be made into `real`s?
    pub fn convert(&self) -> bool {
        self.reader.converts()
    }

    /// Appends a tuple with this label to `batch`; says whether entries beyond the model's were dropped.
    ///
    /// # Errors
    /// [`SparseError`]; the batch is then as it was.
    #[inline]
    pub fn read(
        &self,
        indices: TypedDatum<'_>,
        values: TypedDatum<'_>,
        label: f32,
        batch: &mut Batch,
    ) -> Result<bool, SparseError> {
        match self.reader.read_quickly(indices, values, |entries| batch.push_sparse(label, entries))? {
            Quick::Read => Ok(false),
            Quick::Unusual { took_room } => {
                if took_room {
                    batch.pop();
                }
                self.read_thoroughly(indices, values, label, batch)
            }
        }
    }

    #[cold]
    fn read_thoroughly(
        &self,
        indices: TypedDatum<'_>,
        values: TypedDatum<'_>,
        label: f32,
        batch: &mut Batch,
    ) -> Result<bool, SparseError> {
        let entries = self.reader.read_thoroughly(indices, values).map_err(|fault| self.explain(fault))?;
        push(batch, label, &entries)?;
        Ok(entries.len() < self.reader.count(indices))
    }

    #[cold]
    fn explain(&self, fault: SparseFault) -> SparseError {
        let of_array = |column: &String, fault| match fault {
            ArrayFault::Null(i) => SparseError::Null(RowFault::NullElement(column.clone(), i)),
            ArrayFault::Dimensions(n) => SparseError::Row(RowFault::ColumnDimensions(column.clone(), n)),
            // neither is found by looking at elements
            ArrayFault::Length(n) => SparseError::Row(RowFault::Length(n, n)),
            ArrayFault::Number(i, fault) => SparseError::Row(*number_fault(fault, format!("{}[{i}]", self.values))),
        };
        let column = self.indices.clone();
        SparseError::Row(match fault {
            SparseFault::Indices(fault) => return of_array(&self.indices, fault),
            SparseFault::Values(fault) => return of_array(&self.values, fault),
            SparseFault::Lengths(indices, values) => {
                RowFault::Lengths { columns: [column, self.values.clone()], lengths: [indices, values] }
            }
            SparseFault::Below(index) => RowFault::IndexBelow { column, index, base: self.base() },
            SparseFault::Beyond(index) => RowFault::IndexBeyond {
                column,
                index,
                last: self.base() + self.reader.dim() as i64 - 1,
                said: self.fixed,
                of_model: self.of_model,
            },
            SparseFault::Twice(index) => RowFault::IndexTwice { column, index },
            SparseFault::Value(index, fault) => *number_fault(fault, format!("{}[{index}]", self.values)),
        })
    }
}

/// Appends a tuple with these entries.
pub fn push(batch: &mut Batch, label: f32, entries: &[(u32, f32)]) -> Result<(), OutOfMemory> {
    let (indices, values) = batch.push_sparse(label, entries.len())?;
    for ((index, value), entry) in indices.iter_mut().zip(values).zip(entries) {
        (*index, *value) = *entry;
    }
    Ok(())
}
