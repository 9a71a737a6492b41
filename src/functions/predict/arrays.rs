//! Features as an array or another vector, as a pair of sparse arrays, and as a sparse vector.

use super::input::{InputTuple, fill, no_answer};
use errors::{Error, PredictError, Result};
use model::{FeatureKind, Model, Policies};
use options::rows::Unseen;
use pg::call::function::Call;
use pg::catalog::types::type_name;
use pg::values::array::{ArrayFault, ArrayReader};
use pg::values::number::{NumberFault, is_text, numbers_of_text};
use pg::values::sparse::{Beyond, Quick, SparseFault, SparseReader};
use pg::values::sparse_vector::SparseVectorReader;
use pg::values::typed::TypedDatum;
use pg::values::vector::VectorReader;
use pgrx::pg_sys::{FLOAT8ARRAYOID, Oid};

/// Reads an array of indices and one of values. False if there is no answer to them.
pub fn read_sparse_pair(
    model: &Model,
    policies: Policies,
    (indices, values): (TypedDatum<'_>, TypedDatum<'_>),
    into: &mut InputTuple,
) -> Result<bool> {
    refuse_categories(model)?;
    let reader = sparse_reader(model, policies, indices.type_oid(), values.type_oid())?;
    read_sparse(model, policies, reader, (indices, values), into, &Names::Places)
}

/// Reads argument 1 of the call as an array if it is a text that begins as one. None if it is not, or if the model was
/// trained on categories, which are texts. Else as [`read_dense`].
pub fn read_text(model: &Model, policies: Policies, call: Call<'_>, into: &mut InputTuple) -> Result<Option<bool>> {
    if !is_text(call.type_of(1)) || model.feature_kind.has_categories() {
        return Ok(None);
    }
    thread_local! {
        static READER: VectorReader = VectorReader::new(FLOAT8ARRAYOID).expect("an array of numbers is a vector");
    }
    let Some(array) = call.argument(1).and_then(numbers_of_text) else { return Ok(None) };
    read_dense(model, policies, READER.with(|reader| *reader), array, into, &Names::Places).map(Some)
}

/// The names of features in messages.
pub enum Names<'a> {
    /// by their place in the array that was given, or as the column that the model has there
    Places,
    /// as elements of this column
    Column(&'a str),
}

impl Names<'_> {
    fn of(&self, model: &Model, place: i64) -> String {
        match self {
            Names::Places => {
                let are_columns = matches!(model.feature_kind, FeatureKind::Columns(_));
                let place_in_columns = usize::try_from(place - 1).ok().filter(|i| are_columns && *i < model.dim());
                place_in_columns.map_or_else(|| place.to_string(), |i| model.feature_name(i))
            }
            Names::Column(name) => format!("{name}[{place}]"),
        }
    }
}

/// Reads an array with all features. False if it has a NULL because of which there is no answer.
pub fn read_dense(
    model: &Model,
    policies: Policies,
    reader: VectorReader,
    array: TypedDatum<'_>,
    into: &mut InputTuple,
    names: &Names,
) -> Result<bool> {
    let features = into.make_dense(model.dim())?;
    match reader.read(array, features) {
        Ok(()) => Ok(true),
        Err(ArrayFault::Null(_)) => read_with_nulls(model, policies, (reader, array), features, names),
        Err(fault) => Err(array_fault(model, fault, names)),
    }
}

/// As [`read_dense`], of an array that has NULLs.
#[cold]
fn read_with_nulls(
    model: &Model,
    policies: Policies,
    (reader, array): (VectorReader, TypedDatum<'_>),
    features: &mut [f32],
    names: &Names,
) -> Result<bool> {
    // no feature that was read is NaN
    reader.read_with_nulls(array, features, f32::NAN).map_err(|fault| array_fault(model, fault, names))?;
    for (i, feature) in features.iter_mut().enumerate().filter(|(_, feature)| feature.is_nan()) {
        match fill(model, policies, i, || names.of(model, i as i64 + 1))? {
            Some(value) => *feature = value,
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// Reads a pair of arrays. For a model that was trained on dense features it becomes a dense tuple, so that it is
/// standardized like one. False if a NULL is among them because of which there is no answer.
pub fn read_sparse(
    model: &Model,
    policies: Policies,
    reader: SparseReader,
    (indices, values): (TypedDatum<'_>, TypedDatum<'_>),
    into: &mut InputTuple,
    names: &Names,
) -> Result<bool> {
    if reader.read_quickly(indices, values, |len| into.make_sparse(len))? != Quick::Read {
        let entries = match reader.read_thoroughly(indices, values) {
            Ok(entries) => entries,
            Err(fault @ (SparseFault::Indices(ArrayFault::Null(_)) | SparseFault::Values(ArrayFault::Null(_)))) => {
                return no_answer(policies, || sparse_fault(model, fault, names));
            }
            Err(fault) => return Err(sparse_fault(model, fault, names)),
        };
        let (to_indices, to_values) = into.make_sparse(entries.len())?;
        for (i, (index, value)) in entries.into_iter().enumerate() {
            (to_indices[i], to_values[i]) = (index, value);
        }
    }
    spread(model, into)?;
    Ok(true)
}

/// Makes a sparse tuple a dense one if the model was trained on dense features.
fn spread(model: &Model, into: &mut InputTuple) -> Result<()> {
    if model.feature_kind.index_base().is_none() {
        into.make_dense(model.dim())?.fill(0.0);
        for (index, value) in into.indices.iter().zip(&into.values) {
            into.dense[*index as usize] = *value;
        }
    }
    Ok(())
}

/// Reads a sparse vector that is one value, as [`read_sparse`] does a pair.
pub fn read_sparse_vector(
    model: &Model,
    reader: SparseVectorReader,
    vector: TypedDatum<'_>,
    into: &mut InputTuple,
    names: &Names,
) -> Result<()> {
    reader.with(vector, |vector| {
        let fault = |fault| sparse_fault(model, fault, names);
        let vector = vector.map_err(fault)?;
        if vector.dimensions() != model.dim() {
            return Err(fault(SparseFault::Dimensions(vector.dimensions())));
        }
        let (indices, values) = into.make_sparse(vector.len())?;
        vector.read(indices, values).map_err(fault)
    })?;
    spread(model, into)
}

/// A reader of pairs of arrays of these types, for indices as the model has them. For a model that was trained on
/// arrays or columns, they count from 1.
pub fn sparse_reader(model: &Model, policies: Policies, indices: Oid, values: Oid) -> Result<SparseReader> {
    let base = model.feature_kind.index_base().unwrap_or(1);
    let beyond = match policies.unseen {
        Unseen::Error => Beyond::Fault,
        Unseen::Zero => Beyond::Drop,
    };
    SparseReader::new(indices, values, base, model.dim(), beyond).ok_or_else(|| match ArrayReader::new(values) {
        Some(_) => PredictError::IndexType(type_name(indices)).into(),
        None => PredictError::Type(type_name(values)).into(),
    })
}

/// Refuses arrays for a model with columns of categories: their places in an array are not defined.
pub fn refuse_categories(model: &Model) -> Result<()> {
    match &model.feature_kind {
        FeatureKind::Columns(_) if model.feature_kind.has_categories() => {
            Err(PredictError::NeedsRow(model.in_error()).into())
        }
        _ => Ok(()),
    }
}

/// Reads the vector of a column next to others, whose features begin at `first`. False if it has a NULL, or is one,
/// because of which there is no answer.
pub fn read_vector(
    model: &Model,
    policies: Policies,
    (reader, vector): (VectorReader, Option<TypedDatum<'_>>),
    (name, first): (&str, usize),
    out: &mut [f32],
) -> Result<bool> {
    let names = Names::Column(name);
    let faulty = |fault, len| match fault {
        ArrayFault::Length(given) => {
            PredictError::Vector { model: model.in_error(), column: name.to_owned(), expected: len, given }.into()
        }
        fault => array_fault(model, fault, &names),
    };
    let len = out.len();
    match vector.map(|vector| (vector, reader.read(vector, out))) {
        Some((_, Ok(()))) => return Ok(true),
        Some((vector, Err(ArrayFault::Null(_)))) => {
            reader.read_with_nulls(vector, out, f32::NAN).map_err(|fault| faulty(fault, len))?;
        }
        Some((_, Err(fault))) => return Err(faulty(fault, len)),
        None => out.fill(f32::NAN),
    }
    for (i, feature) in out.iter_mut().enumerate().filter(|(_, feature)| feature.is_nan()) {
        let name = || if vector.is_none() { name.to_owned() } else { names.of(model, i as i64 + 1) };
        match fill(model, policies, first + i, name)? {
            Some(value) => *feature = value,
            None => return Ok(false),
        }
    }
    Ok(true)
}

pub fn array_fault(model: &Model, fault: ArrayFault, names: &Names) -> Error {
    match fault {
        ArrayFault::Length(given) => {
            PredictError::Length { model: model.in_error(), expected: model.dim(), given }.into()
        }
        ArrayFault::Dimensions(n) => PredictError::Dimensions(n).into(),
        ArrayFault::Null(i) => null(model, names.of(model, i as i64)),
        ArrayFault::Number(i, fault) => number_fault(model, fault, names.of(model, i as i64)),
        ArrayFault::Damaged => PredictError::DamagedVector.into(),
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
            PredictError::IndexBeyond { model: model.in_error(), index, last }.into()
        }
        SparseFault::Twice(index) => PredictError::IndexTwice(index).into(),
        SparseFault::Value(index, fault) => number_fault(model, fault, names.of(model, index)),
        SparseFault::Damaged => PredictError::DamagedVector.into(),
        SparseFault::Dimensions(given) => array_fault(model, ArrayFault::Length(given), names),
    }
}

pub fn null(model: &Model, feature: String) -> Error {
    PredictError::Null { model: model.in_error(), feature }.into()
}

/// What is wrong with a number that was given for a feature.
pub fn number_fault(model: &Model, fault: NumberFault, feature: String) -> Error {
    let model = model.in_error();
    match fault {
        NumberFault::NotFinite(value) => PredictError::NotFinite { model, feature, value }.into(),
        NumberFault::OutOfRange(value) => PredictError::OutOfRange { model, feature, value }.into(),
    }
}
