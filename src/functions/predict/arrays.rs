//! Features as an array, and as a pair of sparse arrays.

use super::input::{FeatureInput, InputTuple};
use crate::errors::{ArgumentError, Error, PredictError, Result};
use crate::models::{FeatureKind, Model};
use crate::options::rows::Unseen;
use crate::pg::call::function::Call;
use crate::pg::catalog::types::type_name;
use crate::pg::values::array::{ArrayFault, ArrayReader};
use crate::pg::values::number::NumberFault;
use crate::pg::values::sparse::{Beyond, Quick, SparseFault, SparseReader};
use crate::pg::values::typed::TypedDatum;
use pgrx::pg_sys::Oid;
use std::cell::Cell;

/// An array with all features, argument 1 of the call.
pub struct DenseInput<'a>(pub Call<'a>);

/// An array of indices and one of values: features that are not there are 0.
pub struct SparseInput<'a>(pub TypedDatum<'a>, pub TypedDatum<'a>);

impl FeatureInput for DenseInput<'_> {
    fn read(self, model: &Model, into: &mut InputTuple) -> Result<()> {
        refuse_categories(model)?;
        // never NULL: the function is STRICT
        let Some(array) = self.0.argument(1) else { return Err(ArgumentError::NullArgument("features").into()) };
        self.0.remembering(
            || array_reader(self.0.type_of(1)),
            |reader| read_dense(model, *reader, array, into, &Names::Places),
        )
    }
}

impl FeatureInput for SparseInput<'_> {
    fn read(self, model: &Model, into: &mut InputTuple) -> Result<()> {
        refuse_categories(model)?;
        let reader = sparse_reader(model, self.0.type_oid(), self.1.type_oid())?;
        read_sparse(model, reader, (self.0, self.1), into, &Names::Places)
    }
}

/// The names of features in messages.
pub enum Names<'a> {
    /// by their place in the array that was given
    Places,
    /// as elements of this column
    Column(&'a str),
}

impl Names<'_> {
    fn of(&self, place: i64) -> String {
        match self {
            Names::Places => place.to_string(),
            Names::Column(name) => format!("{name}[{place}]"),
        }
    }
}

/// Reads an array with all features.
pub fn read_dense(
    model: &Model,
    reader: ArrayReader,
    array: TypedDatum<'_>,
    into: &mut InputTuple,
    names: &Names,
) -> Result<()> {
    let features = into.make_dense(model.dim())?;
    reader.read(array, features).map_err(|fault| array_fault(model, fault, names))
}

/// Reads a pair of arrays. For a model that was trained on dense features it becomes a dense tuple, so that it is
/// standardized like one.
pub fn read_sparse(
    model: &Model,
    reader: SparseReader,
    (indices, values): (TypedDatum<'_>, TypedDatum<'_>),
    into: &mut InputTuple,
    names: &Names,
) -> Result<()> {
    if reader.read_quickly(indices, values, |len| into.make_sparse(len))? != Quick::Read {
        let entries = reader.read_thoroughly(indices, values).map_err(|fault| sparse_fault(model, fault, names))?;
        let (to_indices, to_values) = into.make_sparse(entries.len())?;
        for (i, (index, value)) in entries.into_iter().enumerate() {
            (to_indices[i], to_values[i]) = (index, value);
        }
    }
    if model.feature_kind.index_base().is_none() {
        into.make_dense(model.dim())?.fill(0.0);
        for (index, value) in into.indices.iter().zip(&into.values) {
            into.dense[*index as usize] = *value;
        }
    }
    Ok(())
}

/// A reader of pairs of arrays of these types, for indices as the model has them. For a model that was trained on
/// arrays or columns, they count from 1.
pub fn sparse_reader(model: &Model, indices: Oid, values: Oid) -> Result<SparseReader> {
    let base = model.feature_kind.index_base().unwrap_or(1);
    let beyond = match model.unseen {
        Unseen::Error => Beyond::Fault,
        Unseen::Zero => Beyond::Drop,
    };
    array_reader(values)?;
    SparseReader::new(indices, values, base, model.dim(), beyond)
        .ok_or_else(|| PredictError::IndexType(type_name(indices)).into())
}

/// A reader for arrays of this type; the last one is remembered.
fn array_reader(array: Oid) -> Result<ArrayReader> {
    thread_local! {
        static LAST: Cell<Option<(Oid, ArrayReader)>> = const { Cell::new(None) };
    }
    if let Some((oid, reader)) = LAST.get()
        && oid == array
    {
        return Ok(reader);
    }
    let reader = ArrayReader::new(array).ok_or_else(|| PredictError::Type(type_name(array)))?;
    LAST.set(Some((array, reader)));
    Ok(reader)
}

/// Refuses arrays for a model with columns of categories: their places in an array are not defined.
pub fn refuse_categories(model: &Model) -> Result<()> {
    match &model.feature_kind {
        FeatureKind::Columns(_) if model.feature_kind.has_categories() => {
            Err(PredictError::NeedsRow { model_id: model.id, columns: model.features.join(", ") }.into())
        }
        _ => Ok(()),
    }
}

fn array_fault(model: &Model, fault: ArrayFault, names: &Names) -> Error {
    match fault {
        ArrayFault::Length(given) => PredictError::Length { model_id: model.id, expected: model.dim(), given }.into(),
        ArrayFault::Dimensions(n) => PredictError::Dimensions(n).into(),
        ArrayFault::Null(i) => PredictError::Null(names.of(i as i64)).into(),
        ArrayFault::Number(i, fault) => number_fault(fault, names.of(i as i64)),
    }
}

fn sparse_fault(model: &Model, fault: SparseFault, names: &Names) -> Error {
    match fault {
        SparseFault::Indices(ArrayFault::Null(i)) => PredictError::NullIndex(i).into(),
        SparseFault::Indices(fault) | SparseFault::Values(fault) => array_fault(model, fault, names),
        SparseFault::Lengths(indices, values) => PredictError::Lengths { indices, values }.into(),
        SparseFault::Below(index) => {
            PredictError::IndexBelow { index, base: model.feature_kind.index_base().unwrap_or(1) }.into()
        }
        SparseFault::Beyond(index) => {
            let last = model.dim() as i64 - 1 + i64::from(model.feature_kind.index_base().unwrap_or(1));
            PredictError::IndexBeyond { model_id: model.id, index, last }.into()
        }
        SparseFault::Twice(index) => PredictError::IndexTwice(index).into(),
        SparseFault::Value(index, fault) => number_fault(fault, names.of(index)),
    }
}

/// What is wrong with a number that was given for a feature.
pub fn number_fault(fault: NumberFault, feature: String) -> Error {
    match fault {
        NumberFault::NotFinite(value) => PredictError::NotFinite { feature, value }.into(),
        NumberFault::OutOfRange(value) => PredictError::OutOfRange { feature, value }.into(),
    }
}
