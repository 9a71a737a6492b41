//! Features as a column of indices and a column of values, or as a column of sparse vectors, which have both.

use super::columns::FIRST_FEATURE;
use errors::RowFault;
use errors::limits::MAX_WEIGHTS;
use options::rows::Unseen;
use pg::catalog::types::base_type;
use pg::executor::query::Column;
use pg::tuples::row::Row;
use pg::values::sparse::{Beyond, Quick, SparseFault, SparseReader};
use pg::values::sparse_vector::{INDEX_BASE, SparseVectorReader};
use pg::values::typed::TypedDatum;
use tuples::{Batch, OutOfMemory};

pub struct SparseColumns {
    source: SparseSource,
    /// how many dimensions there may be
    dim: usize,
    /// may there be no others?
    fixed: bool,
    /// are these a model's?
    of_model: bool,
}

enum SparseSource {
    /// columns of indices and of values
    Pair {
        reader: SparseReader,
        indices: String,
        values: String,
    },
    Vectors {
        reader: SparseVectorReader,
        column: String,
    },
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
        let (fixed, dim) = (dim.is_some(), dim.unwrap_or(limit));
        let reader = SparseReader::new(index_type, value_type, base, dim, beyond)?;
        let source = SparseSource::Pair { reader, indices: indices.name.clone(), values: values.name.clone() };
        Some(SparseColumns { source, dim, fixed, of_model: of_model.is_some() })
    }

    /// A column of sparse vectors, of this many dimensions if a model says it; else of as many as the first that is
    /// met.
    pub fn of_vectors(reader: SparseVectorReader, column: String, of_model: Option<usize>) -> SparseColumns {
        let source = SparseSource::Vectors { reader, column };
        let is_known = of_model.is_some();
        SparseColumns { source, dim: of_model.unwrap_or(MAX_WEIGHTS), fixed: is_known, of_model: is_known }
    }

    /// Are there indices in one column, and values in another?
    pub fn is_pair(&self) -> bool {
        matches!(self.source, SparseSource::Pair { .. })
    }

    /// Does a vector have to say how many dimensions there are, and none has yet?
    #[inline]
    pub fn lack_dim(&self) -> bool {
        !self.fixed && !self.is_pair()
    }

    /// Takes the number of dimensions from a row, if a vector says it and it is not known yet. True if no row can say
    /// more.
    #[inline]
    pub fn learn_dim(&mut self, row: Row<'_>) -> bool {
        if let (SparseSource::Vectors { reader, .. }, false) = (&self.source, self.fixed) {
            let found = row.get(FIRST_FEATURE).and_then(|vector| reader.dimensions(vector).ok());
            self.fix_dim(found.filter(|found| *found <= self.dim));
        }
        !self.lack_dim()
    }

    /// Says how many dimensions there are, if it is known.
    pub fn fix_dim(&mut self, dim: Option<usize>) {
        (self.dim, self.fixed) = (dim.unwrap_or(self.dim), self.fixed || dim.is_some());
    }

    /// Dimensions, if they were said.
    pub fn fixed_dim(&self) -> Option<usize> {
        self.fixed.then_some(self.dim)
    }

    /// Sets how many dimensions there may be, if they were not said.
    pub fn set_limit(&mut self, limit: usize) {
        if !self.fixed {
            self.dim = limit;
            if let SparseSource::Pair { reader, .. } = &mut self.source {
                reader.set_dim(limit);
            }
        }
    }

    /// How many dimensions there may be.
    pub fn limit(&self) -> usize {
        self.dim
    }

    /// What the user calls dimension 0.
    pub fn base(&self) -> i64 {
        match &self.source {
            SparseSource::Pair { reader, .. } => reader.base(),
            SparseSource::Vectors { .. } => INDEX_BASE.into(),
        }
    }

    /// Are the values of a type that takes long to be made into `real`s?
    pub fn convert(&self) -> bool {
        matches!(&self.source, SparseSource::Pair { reader, .. } if reader.converts())
    }

    /// Appends a tuple with this label to `batch`; says whether entries beyond the model's were dropped.
    #[inline]
    pub fn read(&self, row: Row<'_>, label: f32, batch: &mut Batch) -> Result<bool, SparseError> {
        let null = || SparseError::Null(RowFault::NullFeatures);
        let first = row.get(FIRST_FEATURE).ok_or_else(null)?;
        match &self.source {
            SparseSource::Pair { reader, .. } => {
                let values = row.get(FIRST_FEATURE + 1).ok_or_else(null)?;
                match reader.read_quickly(first, values, |entries| batch.push_sparse(label, entries))? {
                    Quick::Read => Ok(false),
                    Quick::Unusual { took_room } => {
                        if took_room {
                            batch.pop();
                        }
                        self.read_thoroughly(reader, (first, values), label, batch)
                    }
                }
            }
            SparseSource::Vectors { reader, .. } => {
                self.read_vector(reader, first, label, batch)?;
                Ok(false)
            }
        }
    }

    /// Appends the tuple that a sparse vector is.
    #[inline]
    fn read_vector(
        &self,
        reader: &SparseVectorReader,
        vector: TypedDatum<'_>,
        label: f32,
        batch: &mut Batch,
    ) -> Result<(), SparseError> {
        reader.with(vector, |vector| {
            let vector = vector.map_err(|fault| self.explain(fault))?;
            if !self.fixed || vector.dimensions() != self.dim {
                return Err(self.explain(SparseFault::Dimensions(vector.dimensions())));
            }
            let (indices, values) = batch.push_sparse(label, vector.len())?;
            vector.read(indices, values).map_err(|fault| {
                batch.pop();
                self.explain(fault)
            })
        })
    }

    #[cold]
    fn read_thoroughly(
        &self,
        reader: &SparseReader,
        (indices, values): (TypedDatum<'_>, TypedDatum<'_>),
        label: f32,
        batch: &mut Batch,
    ) -> Result<bool, SparseError> {
        let entries = reader.read_thoroughly(indices, values).map_err(|fault| self.explain(fault))?;
        push(batch, label, &entries)?;
        Ok(entries.len() < reader.count(indices))
    }

    #[cold]
    fn explain(&self, fault: SparseFault) -> SparseError {
        let [indices, values] = match &self.source {
            SparseSource::Pair { indices, values, .. } => [indices, values],
            SparseSource::Vectors { column, .. } => [column, column],
        };
        let fault = match fault {
            SparseFault::Dimensions(dimensions) if !self.fixed => {
                RowFault::TooManyDimensions { dimensions, limit: self.dim }
            }
            fault => RowFault::of_sparse(fault, [indices, values], (self.base(), self.dim), |index| {
                format!("{values}[{index}]")
            }),
        };
        match fault {
            RowFault::NullElement(..) => SparseError::Null(fault),
            RowFault::IndexBeyond { column, index, last, .. } => {
                let (said, of_model) = (self.fixed, self.of_model);
                SparseError::Row(RowFault::IndexBeyond { column, index, last, said, of_model })
            }
            fault => SparseError::Row(fault),
        }
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
