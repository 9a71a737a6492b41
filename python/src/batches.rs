//! Batches as dictionaries of numpy's arrays, to which their memory is given.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use loading::{Batch, Column, ColumnKind, Layout, Values};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

/// A batch by the names of its columns.
pub(crate) fn to_dict<'py>(py: Python<'py>, layout: &Layout, batch: Batch) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for ((name, kind), column) in layout.columns().iter().zip(batch.columns) {
        let array = match (kind, column) {
            (ColumnKind::Fixed { native, view, shape }, Column::Fixed(values)) => {
                let array = numbers(py, values, shape, batch.rows)?;
                if native == view { array } else { array.call_method1("view", (view,))? }
            }
            (_, Column::Object(array)) => objects(py, &array)?,
            _ => return Err(PyValueError::new_err(format!("column {name:?} has changed its type"))),
        };
        dict.set_item(name, array)?;
    }
    Ok(dict)
}

/// An array of numbers, those of each row in this shape.
pub(crate) fn numbers<'py>(
    py: Python<'py>,
    values: Values,
    shape: &[usize],
    rows: usize,
) -> PyResult<Bound<'py, PyAny>> {
    macro_rules! array {
        ($($name:ident),*) => {
            match values {
                $(Values::$name(values) if shape.is_empty() => Ok(values.into_pyarray(py).into_any()),
                Values::$name(values) => {
                    let shape: Vec<usize> = [rows].into_iter().chain(shape.iter().copied()).collect();
                    Ok(values.into_pyarray(py).reshape(shape)?.into_any())
                })*
            }
        };
    }
    array!(I1, I2, I4, I8, U1, U2, U4, U8, F4, F8)
}

/// An array of objects: text, bytes, or arrays.
pub(crate) fn objects<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let object = |row: usize| -> PyResult<Py<PyAny>> {
        if array.is_null(row) {
            return Ok(py.None());
        }
        let text = |text: &str| Ok(PyString::new(py, text).into_any().unbind());
        let bytes = |bytes: &[u8]| Ok(PyBytes::new(py, bytes).into_any().unbind());
        match array.data_type() {
            DataType::Utf8 => text(array.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => text(array.as_string::<i64>().value(row)),
            DataType::Utf8View => text(array.as_string_view().value(row)),
            DataType::Binary => bytes(array.as_binary::<i32>().value(row)),
            DataType::LargeBinary => bytes(array.as_binary::<i64>().value(row)),
            DataType::BinaryView => bytes(array.as_binary_view().value(row)),
            DataType::List(_) => list(py, &array.as_list::<i32>().value(row)),
            DataType::LargeList(_) => list(py, &array.as_list::<i64>().value(row)),
            DataType::FixedSizeList(..) => list(py, &array.as_fixed_size_list().value(row)),
            other => Err(PyValueError::new_err(format!("there are no objects for values of type {other}"))),
        }
    };
    let objects = (0..array.len()).map(object).collect::<PyResult<Vec<_>>>()?;
    Ok(PyArray1::from_vec(py, objects).into_any())
}

/// The items of a list of any length: numbers, or objects.
fn list(py: Python<'_>, items: &ArrayRef) -> PyResult<Py<PyAny>> {
    if !Values::are_numbers(items) {
        return objects(py, items).map(Bound::unbind);
    }
    let (values, view) = Values::of(items).map_err(PyValueError::new_err)?;
    let rows = values.len();
    let array = numbers(py, values, &[], rows)?;
    Ok(match view {
        None => array.unbind(),
        Some(view) => array.call_method1("view", (view,))?.unbind(),
    })
}
