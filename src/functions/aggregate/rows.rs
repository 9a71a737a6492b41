//! Rows of the transition functions: arrays and vectors, read into a row that is kept from call to call.

use super::state::{Failure, StateMut};
use errors::{AggregateError, Result, RowAt, RowFault};
use pg::call::function::Call;
use pg::catalog::names::place_of;
use pg::catalog::types::type_name;
use pg::values::sparse::{Beyond, Quick, SparseFault, SparseReader};
use pg::values::sparse_vector::{INDEX_BASE, SparseVectorReader};
use pg::values::typed::TypedDatum;
use pg::values::vector::VectorReader;
use std::convert::Infallible;

/// The places of the arguments.
const LABEL: usize = 2;
const FEATURES: usize = 3;
const INDICES: usize = 3;
const VALUES: usize = 4;

type Learned = std::result::Result<(), Failure>;

/// Rows of a label and one value.
pub enum Vectors {
    Dense(Dense),
    Sparse(SparseVectors),
}

impl Vectors {
    /// For the types that this call has.
    pub fn of(call: Call<'_>) -> Result<Vectors> {
        let given = call.type_of(FEATURES);
        let dense = VectorReader::new(given).map(|vectors| Vectors::Dense(Dense { vectors, features: Vec::new() }));
        let sparse = || SparseVectorReader::new(given).map(|vectors| Vectors::Sparse(SparseVectors::new(vectors)));
        dense.or_else(sparse).ok_or_else(|| AggregateError::FeatureType(type_name(given)).into())
    }

    /// Learns from one row, or counts it as skipped.
    #[inline(always)]
    pub fn learn(&mut self, state: &mut StateMut, call: Call<'_>) -> Result<()> {
        match self {
            Vectors::Dense(rows) => rows.learn(state, call),
            Vectors::Sparse(rows) => rows.learn(state, call),
        }
    }
}

/// Rows of a label and an array or another vector.
pub struct Dense {
    vectors: VectorReader,
    features: Vec<f32>,
}

impl Dense {
    #[inline(always)]
    fn learn(&mut self, state: &mut StateMut, call: Call<'_>) -> Result<()> {
        if state.is_sparse() {
            return Err(AggregateError::StateKind { sparse: true }.into());
        }
        allocation::resize(&mut self.features, state.dim(), 0.0);
        self.try_learn(state, call).or_else(|failure| skip_or_raise(state, failure))
    }

    #[inline(always)]
    fn try_learn(&mut self, state: &mut StateMut, call: Call<'_>) -> Learned {
        let label = call.double(LABEL).ok_or(RowFault::NullLabel)?;
        let features = call.argument(FEATURES).ok_or(RowFault::NullFeatures)?;
        let dim = self.features.len();
        let fault = |fault| RowFault::of_vector(fault, dim, |i| format!("number {i}"));
        self.vectors.read(features, &mut self.features).map_err(fault)?;
        state.learn_dense(label, &mut self.features)
    }
}

/// Rows of a label and a sparse vector.
pub struct SparseVectors {
    vectors: SparseVectorReader,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl SparseVectors {
    fn new(vectors: SparseVectorReader) -> SparseVectors {
        SparseVectors { vectors, indices: Vec::new(), values: Vec::new() }
    }

    #[inline(always)]
    fn learn(&mut self, state: &mut StateMut, call: Call<'_>) -> Result<()> {
        if !state.is_sparse() {
            return Err(AggregateError::StateKind { sparse: false }.into());
        }
        self.try_learn(state, call).or_else(|failure| skip_or_raise(state, failure))
    }

    #[inline(always)]
    fn try_learn(&mut self, state: &mut StateMut, call: Call<'_>) -> Learned {
        let label = call.double(LABEL).ok_or(RowFault::NullLabel)?;
        let features = call.argument(FEATURES).ok_or(RowFault::NullFeatures)?;
        let dim = state.dim();
        let fault = |fault| sparse_fault(fault, INDEX_BASE.into(), dim);
        self.vectors.with(features, |vector| {
            let vector = vector.map_err(fault)?;
            if vector.dimensions() != dim {
                return Err(fault(SparseFault::Dimensions(vector.dimensions())));
            }
            allocation::resize(&mut self.indices, vector.len(), 0);
            allocation::resize(&mut self.values, vector.len(), 0.0);
            vector.read(&mut self.indices, &mut self.values).map_err(fault)
        })?;
        state.learn_sparse(label, &self.indices, &mut self.values)
    }
}

/// Rows of a label and two arrays.
pub struct Sparse {
    arrays: SparseReader,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Sparse {
    /// For the types that this call has, and indices from `base` to `base + dim - 1`.
    pub fn of(call: Call<'_>, base: u32, dim: usize) -> Result<Sparse> {
        let (indices, values) = (call.type_of(INDICES), call.type_of(VALUES));
        let arrays = SparseReader::new(indices, values, base, dim, Beyond::Fault)
            .ok_or_else(|| AggregateError::FeatureType(format!("{} and {}", type_name(indices), type_name(values))))?;
        Ok(Sparse { arrays, indices: Vec::new(), values: Vec::new() })
    }

    /// Learns from one row, or counts it as skipped.
    #[inline(always)]
    pub fn learn(&mut self, state: &mut StateMut, call: Call<'_>) -> Result<()> {
        if !state.is_sparse() {
            return Err(AggregateError::StateKind { sparse: false }.into());
        }
        if self.arrays.dim() != state.dim() || self.arrays.base() != i64::from(state.index_base()) {
            // another group of a GROUP BY, with another model
            *self = Sparse::of(call, state.index_base(), state.dim())?;
        }
        self.try_learn(state, call).or_else(|failure| skip_or_raise(state, failure))
    }

    #[inline(always)]
    fn try_learn(&mut self, state: &mut StateMut, call: Call<'_>) -> Learned {
        let label = call.double(LABEL).ok_or(RowFault::NullLabel)?;
        let (Some(indices), Some(values)) = (call.argument(INDICES), call.argument(VALUES)) else {
            return Err(RowFault::NullFeatures.into());
        };
        self.read(indices, values).map_err(|fault| sparse_fault(fault, self.arrays.base(), self.arrays.dim()))?;
        state.learn_sparse(label, &self.indices, &mut self.values)
    }

    #[inline(always)]
    fn read(&mut self, indices: TypedDatum<'_>, values: TypedDatum<'_>) -> std::result::Result<(), SparseFault> {
        let Sparse { arrays, indices: to_indices, values: to_values } = self;
        let (room_indices, room_values) = (&mut *to_indices, &mut *to_values);
        let Ok(quick) = arrays.read_quickly(indices, values, move |len| {
            allocation::resize(room_indices, len, 0);
            allocation::resize(room_values, len, 0.0);
            Ok::<_, Infallible>((room_indices.as_mut_slice(), room_values.as_mut_slice()))
        });
        if quick != Quick::Read {
            let entries = arrays.read_thoroughly(indices, values)?;
            (*to_indices, *to_values) = entries.into_iter().unzip();
        }
        Ok(())
    }
}

/// Handles a row with a fault: it is left out and counted if the fault is a NULL and the state allows it.
#[cold]
fn skip_or_raise(state: &mut StateMut, failure: Failure) -> Result<()> {
    let fault = match failure {
        Failure::Row(fault) => fault,
        Failure::State(error) => return Err(error),
    };
    let at = RowAt::Number(state.next_row());
    if fault.is_null() && state.skip() { Ok(()) } else { Err(Box::new(fault).at(place_of(at)).into()) }
}

fn sparse_fault(fault: SparseFault, base: i64, dim: usize) -> RowFault {
    RowFault::of_sparse(fault, ["indices", "feature_values"], (base, dim), |index| format!("with index {index}"))
}
