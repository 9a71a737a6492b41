//! Rows as one run of bytes, and processes that prepare them, for Python.

use crate::arrays::{Values as Given, bytes_of, column};
use crate::batches::{numbers, objects};
use crate::errors::SourceError;
use arrow::array::{Array, ArrayRef, AsArray, LargeListArray, RecordBatch, make_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use loading::Values;
use numpy::{PyArray1, PyArrayMethods};
use preparing::processes::BOUND;
use preparing::slot::{self, Encoded};
use preparing::{Callables, Processes};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use source::Cancel;
use std::sync::Arc;
use std::time::Duration;

/// A column by its name, numpy's type, the lengths of its dimensions but the first, its values, and, if each row is a
/// list of them, how many it has: -1 for a list that is missing.
type Column<'py> = (String, String, Vec<usize>, Given<'py>, Option<Vec<i64>>);

/// The values of nested lists of one length, with the lengths from the outside in, and without lists that are missing:
/// all their values are.
fn leaves(array: &ArrayRef) -> PyResult<(ArrayRef, Vec<usize>)> {
    let list = match array.data_type() {
        DataType::FixedSizeBinary(width) => return Ok((array.clone(), vec![usize::try_from(*width)?])),
        DataType::FixedSizeList(..) => array.as_fixed_size_list(),
        _ => return Ok((array.clone(), Vec::new())),
    };
    let width = usize::try_from(list.value_length())?;
    let mut values = list.values().clone();
    if let Some(nulls) = list.nulls().filter(|nulls| nulls.null_count() > 0) {
        let missing = NullBuffer::union(Some(&nulls.expand(width)), values.nulls());
        let data = values.to_data().into_builder().nulls(missing).build();
        values = make_array(data.map_err(|error| PyValueError::new_err(error.to_string()))?);
    }
    let (leaf, inner) = leaves(&values)?;
    Ok((leaf, [width].into_iter().chain(inner).collect()))
}

/// A column as an array that no one else has.
fn array<'py>(py: Python<'py>, of: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let (leaf, shape) = leaves(of)?;
    if Values::are_numbers(&leaf) {
        let (values, view) = Values::of(&leaf).map_err(PyValueError::new_err)?;
        let array = numbers(py, values, &shape, of.len())?;
        return match view {
            None => Ok(array),
            Some(view) => array.call_method1("view", (view,)),
        };
    }
    match of.data_type() {
        DataType::Dictionary(_, values) => {
            let plain = cast(of, values).map_err(|error| PyValueError::new_err(error.to_string()))?;
            objects(py, &plain)
        }
        _ => objects(py, of),
    }
}

fn to_dict<'py>(py: Python<'py>, rows: &RecordBatch) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        let array = array(py, column)
            .map_err(|error| PyValueError::new_err(format!("column {:?}: {}", field.name(), error.value(py))))?;
        dict.set_item(field.name(), array)?;
    }
    Ok(dict)
}

fn to_rows(py: Python<'_>, columns: Vec<Column<'_>>) -> PyResult<RecordBatch> {
    let one = |(code, shape, values, lengths): (String, Vec<usize>, Given<'_>, Option<Vec<i64>>)| {
        let array = column(&code, &shape, values)?;
        lengths.map_or(Ok(array.clone()), |lengths| lists(array, &lengths))
    };
    let mut arrays = Vec::with_capacity(columns.len());
    for (name, code, shape, values, lengths) in columns {
        let array = one((code, shape, values, lengths))
            .map_err(|error| PyTypeError::new_err(format!("column {name:?}: {}", error.value(py))))?;
        arrays.push((name, array, true));
    }
    RecordBatch::try_from_iter_with_nullable(arrays).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn lists(values: ArrayRef, lengths: &[i64]) -> PyResult<ArrayRef> {
    let nulls: NullBuffer = lengths.iter().map(|length| *length >= 0).collect();
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| usize::try_from(*length).unwrap_or(0)));
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let lists = LargeListArray::try_new(field, offsets, values, Some(nulls));
    lists.map(|lists| Arc::new(lists) as ArrayRef).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The rows in some bytes, as arrays by the names of columns, which are copies.
#[pyfunction]
pub fn slot_to_dict<'py>(py: Python<'py>, bytes: &Bound<'py, PyArray1<u8>>) -> PyResult<Bound<'py, PyDict>> {
    let bytes = bytes_of(bytes)?;
    let rows = slot::decode(bytes::Bytes::from_owner(bytes));
    to_dict(py, &rows.map_err(|error| SourceError::new_err(error.to_string()))?)
}

/// Rows that are ready to be written somewhere as one run of bytes.
#[pyclass(frozen, module = "corgipile._native")]
pub struct Slot(Encoded);

#[pymethods]
impl Slot {
    /// How many bytes there are.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn write(&self, to: &Bound<'_, PyArray1<u8>>) -> PyResult<()> {
        let mut to = to.try_readwrite()?;
        let mut to = to.as_slice_mut()?;
        self.0.write(&mut to).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

/// Rows of arrays, whose numbers are not copied before they are written.
#[pyfunction]
pub fn dict_to_slot(py: Python<'_>, columns: Vec<Column<'_>>) -> PyResult<Slot> {
    let rows = to_rows(py, columns)?;
    Encoded::new(&rows).map(Slot).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Processes that call functions with rows, as a server does to prepare them.
#[pyclass(frozen, module = "corgipile._native")]
pub struct Preparers {
    processes: Processes,
    cancel: Cancel,
}

#[pymethods]
impl Preparers {
    #[new]
    #[pyo3(signature = (python, number, *, seconds = BOUND.as_secs_f64(), variables = Vec::new()))]
    fn new(python: String, number: usize, seconds: f64, variables: Vec<(String, String)>) -> PyResult<Self> {
        let bound = Duration::try_from_secs_f64(seconds);
        let bound = bound.map_err(|error| PyValueError::new_err(format!("seconds: {error}")))?;
        let processes = Processes::new(python, number).bound(bound);
        let processes = variables.into_iter().fold(processes, |to, (name, value)| to.variable(name, value));
        Ok(Self { processes, cancel: Cancel::default() })
    }

    /// Calls a function, `module:function`, with these columns, and gives its.
    fn call<'py>(&self, py: Python<'py>, callable: &str, columns: Vec<Column<'py>>) -> PyResult<Bound<'py, PyDict>> {
        let rows = to_rows(py, columns)?;
        let prepared = py.detach(|| self.processes.call(callable, &rows, &self.cancel));
        to_dict(py, &prepared.map_err(|error| PyRuntimeError::new_err(error.to_string()))?)
    }

    /// Ends the calls under way, and all later ones.
    fn cancel(&self) {
        self.cancel.cancel();
    }
}
