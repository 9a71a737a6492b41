//! Arrays of numpy as a source, without a copy of their numbers.

use crate::errors;
use crate::sources::Source;
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, FixedSizeListArray, PrimitiveArray, RecordBatch, StringArray,
    make_array,
};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use bytes::Bytes;
use loading::Memory;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// The bytes of an array, which is kept alive as long as anybody reads them.
struct BytesOfArray {
    _array: Py<PyArray1<u8>>,
    start: *const u8,
    length: usize,
}

// SAFETY: the memory is that of a numpy array, whose reference count keeps it where it is; nothing here writes to it.
#[allow(unsafe_code)]
unsafe impl Send for BytesOfArray {}
// SAFETY: as above; the reference itself is given back by `Py`, which may be dropped in any thread.
#[allow(unsafe_code)]
unsafe impl Sync for BytesOfArray {}

impl AsRef<[u8]> for BytesOfArray {
    #[allow(unsafe_code)]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `start` and `length` are those of an array that is contiguous and alive (`_array`). Python can
        // write into it meanwhile, as into any array that is given to a library: the documentation asks not to.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// The bytes of an array, which is kept alive as long as they are.
pub(crate) fn bytes_of(array: &Bound<'_, PyArray1<u8>>) -> PyResult<Buffer> {
    let view = array.try_readonly()?;
    let slice = view.as_slice()?;
    if slice.is_empty() {
        return Ok(Buffer::from_vec(Vec::<u64>::new()));
    }
    let owner = BytesOfArray { start: slice.as_ptr(), length: slice.len(), _array: array.clone().unbind() };
    Ok(Buffer::from(Bytes::from_owner(owner)))
}

fn numbers<T: ArrowPrimitiveType>(buffer: Buffer) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(buffer), None))
}

/// The numbers of numpy's type `code` in memory.
fn array(code: &str, buffer: Buffer) -> PyResult<ArrayRef> {
    Ok(match code {
        "i1" => numbers::<Int8Type>(buffer),
        "i2" => numbers::<Int16Type>(buffer),
        "i4" => numbers::<Int32Type>(buffer),
        "i8" => numbers::<Int64Type>(buffer),
        "u1" => numbers::<UInt8Type>(buffer),
        "u2" => numbers::<UInt16Type>(buffer),
        "u4" => numbers::<UInt32Type>(buffer),
        "u8" => numbers::<UInt64Type>(buffer),
        "f2" => numbers::<Float16Type>(buffer),
        "f4" => numbers::<Float32Type>(buffer),
        "f8" => numbers::<Float64Type>(buffer),
        "b1" => Arc::new(BooleanArray::from_iter(buffer.iter().map(|byte| Some(*byte != 0)))),
        _ => return Err(PyTypeError::new_err(format!("arrays of type {code} cannot be read"))),
    })
}

/// The values of a column.
#[derive(FromPyObject)]
pub enum Values<'py> {
    /// Numbers, by their bytes.
    Bytes(Bound<'py, PyArray1<u8>>),
    /// Text.
    Texts(Vec<Option<String>>),
    /// Bytes.
    Strings(Vec<Option<Vec<u8>>>),
}

/// A column of values of numpy's type `code`, in this shape.
pub(crate) fn column(code: &str, shape: &[usize], values: Values<'_>) -> PyResult<ArrayRef> {
    let mut array: ArrayRef = match (code, values) {
        ("str", Values::Texts(texts)) => Arc::new(StringArray::from_iter(texts)),
        ("bytes", Values::Strings(strings)) => Arc::new(BinaryArray::from_iter(strings)),
        // nothing but missing values looks like text
        ("bytes", Values::Texts(texts)) => Arc::new(BinaryArray::from_iter(texts.into_iter().map(|_| None::<&[u8]>))),
        (_, Values::Bytes(bytes)) if code.starts_with('M') || code.starts_with('m') => time(code, bytes_of(&bytes)?)?,
        (_, Values::Bytes(bytes)) => self::array(code, bytes_of(&bytes)?)?,
        _ => return Err(PyTypeError::new_err(format!("values that are no {code}"))),
    };
    for length in shape.iter().rev() {
        let field = Arc::new(Field::new_list_field(array.data_type().clone(), false));
        let length = i32::try_from(*length).map_err(|_| PyValueError::new_err("an array's dimension is too long"))?;
        let lists = FixedSizeListArray::try_new(field, length, array, None);
        array = Arc::new(lists.map_err(|error| PyValueError::new_err(error.to_string()))?);
    }
    Ok(array)
}

/// Days, which numpy counts in numbers twice as long.
fn days(buffer: Buffer) -> PyResult<ArrayRef> {
    let numbers = ScalarBuffer::<i64>::from(buffer);
    let day = |&day: &i64| match day {
        i64::MIN => Ok(None),
        day => i32::try_from(day).map(Some).map_err(|_| PyValueError::new_err(format!("day {day} is too far away"))),
    };
    Ok(Arc::new(numbers.iter().map(day).collect::<PyResult<Date32Array>>()?))
}

/// Moments and durations, as numpy has them: `M8[us]`.
fn time(code: &str, buffer: Buffer) -> PyResult<ArrayRef> {
    use arrow::datatypes::TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let unit = match &code[2..] {
        "[s]" => Second,
        "[ms]" => Millisecond,
        "[us]" => Microsecond,
        "[ns]" => Nanosecond,
        "[D]" if code.starts_with('M') => return days(buffer),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "arrays of type {code} cannot be read: use {}seconds, or parts of them (ms, us, ns)",
                if code.starts_with('M') { "days, " } else { "" }
            )));
        }
    };
    let of = if code.starts_with('M') { DataType::Timestamp(unit, None) } else { DataType::Duration(unit) };
    let data = numbers::<Int64Type>(buffer).to_data().into_builder().data_type(of).build();
    data.map(make_array).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Rows of arrays in memory. Of each: its name, numpy's type, the lengths of its dimensions but the first, its values.
#[pyfunction]
pub fn memory(columns: Vec<(String, String, Vec<usize>, Values<'_>)>, fingerprint: u64) -> PyResult<Source> {
    let mut arrays = Vec::with_capacity(columns.len());
    for (name, code, shape, values) in columns {
        let array = column(&code, &shape, values).map_err(|error| {
            Python::attach(|py| PyTypeError::new_err(format!("column {name:?}: {}", error.value(py))))
        })?;
        arrays.push((name, array));
    }
    let rows = RecordBatch::try_from_iter(arrays)
        .map_err(|error| errors::of_source(source::SourceError::Invalid(error.to_string())))?;
    Ok(Source(Arc::new(Memory::new(rows, fingerprint))))
}
