//! Types of columns by the names that users give them.

use arrow::datatypes::{DataType, TimeUnit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sources::tfrecord::{Feature, Kind, Length};

/// The type of a column of a CSV file.
pub(crate) fn column(name: &str, of: &str) -> PyResult<DataType> {
    Ok(match of {
        "bool" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "str" => DataType::Utf8,
        "date" => DataType::Date32,
        "datetime" => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => {
            return Err(PyValueError::new_err(format!(
                "types: column {name:?} cannot be of type {of:?}; there are bool, int8 to int64, uint8 to uint64, float32, \
                 float64, str, date and datetime"
            )));
        }
    })
}

/// A feature of examples: `bytes`, `float32` or `int64`, of which there is one, or `[3]` of them, or `[]` any number.
pub(crate) fn feature(name: &str, of: &str) -> PyResult<Feature> {
    let refused = || {
        PyValueError::new_err(format!(
            "features: {name:?} cannot be {of:?}; say bytes, float32 or int64 for one value, float32[3] for three, float32[] \
             for any number"
        ))
    };
    let (kind, brackets) = of.split_once('[').map_or((of, None), |(kind, length)| (kind, Some(length)));
    let kind = match kind {
        "bytes" => Kind::Bytes,
        "float32" => Kind::Float,
        "int64" => Kind::Integer,
        _ => return Err(refused()),
    };
    let length = match brackets {
        None => Length::One,
        Some("]") => Length::Ragged,
        Some(length) => {
            let length = length.strip_suffix(']').and_then(|length| length.parse().ok());
            Length::Fixed(length.filter(|&length| length > 0 && i32::try_from(length).is_ok()).ok_or_else(refused)?)
        }
    };
    Ok(Feature { name: name.to_owned(), kind, length })
}
