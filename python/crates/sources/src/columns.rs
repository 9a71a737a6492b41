//! Which columns are read, and in which types they are given, whatever the file has them in.
//!
//! Readers of batches meet few types only: dictionaries become their values, long and view types the plain ones,
//! decimals doubles. All lists' items are called `item`, so that files of different writers agree.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, ListArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use source::SourceError;

use crate::files::DataFile;

/// The type in which a column of type `of` is given.
pub(crate) fn plain(of: &DataType) -> DataType {
    convert(of, &|item| Field::new("item", plain(item.data_type()), true))
}

/// The same, but for names of lists' items, which stay. Parquet's reader takes it for a hint.
pub(crate) fn plain_of_reader(of: &DataType) -> DataType {
    convert(of, &|item| item.as_ref().clone().with_data_type(plain_of_reader(item.data_type())))
}

fn convert(of: &DataType, item: &dyn Fn(&FieldRef) -> Field) -> DataType {
    match of {
        DataType::Dictionary(_, values) => convert(values, item),
        DataType::RunEndEncoded(_, values) => convert(values.data_type(), item),
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            DataType::Float64
        }
        DataType::List(of) | DataType::LargeList(of) | DataType::ListView(of) | DataType::LargeListView(of) => {
            DataType::List(Arc::new(item(of)))
        }
        DataType::FixedSizeList(of, length) => DataType::FixedSizeList(Arc::new(item(of)), *length),
        other => other.clone(),
    }
}

/// The fields of a file that are read, in the order asked for, with the types in which they are given.
pub(crate) fn choose(all: &Schema, columns: Option<&[String]>, file: &DataFile) -> Result<Vec<Field>, SourceError> {
    let mut names: Vec<&str> = all.fields().iter().map(|field| field.name().as_str()).collect();
    if let Some(columns) = columns {
        names = columns.iter().map(String::as_str).collect();
    }
    if names.is_empty() {
        return Err(file.schema("there is no column to read"));
    }
    let mut seen = HashSet::new();
    names
        .into_iter()
        .map(|name| {
            if !seen.insert(name) {
                return Err(file.schema(format!("column {name:?} is there, or asked for, twice")));
            }
            let field = all.field_with_name(name).map_err(|_| file.schema(lacks(name, all)))?;
            let of = plain(field.data_type());
            if !is_given(&of) {
                let what = format!(
                    "column {name:?} is of type {of}, which has no array; leave it out by naming others in columns"
                );
                return Err(file.schema(what));
            }
            Ok(Field::new(name, of, true))
        })
        .collect()
}

fn lacks(name: &str, all: &Schema) -> String {
    const SHOWN: usize = 20;
    let names: Vec<&str> = all.fields().iter().map(|field| field.name().as_str()).collect();
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    format!("there is no column {name:?}; there are {}{more}", names[..names.len().min(SHOWN)].join(", "))
}

fn is_given(of: &DataType) -> bool {
    match of {
        DataType::List(item) | DataType::FixedSizeList(item, _) => is_given(item.data_type()),
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) | DataType::Interval(_) => false,
        _ => true,
    }
}

/// The fields, a column that has no value in any file as one of missing numbers.
pub(crate) fn settled(fields: Vec<Field>) -> Vec<Field> {
    let settled = |field: Field| match field.data_type() {
        DataType::Null => field.with_data_type(DataType::Float64),
        _ => field,
    };
    fields.into_iter().map(settled).collect()
}

/// The fields that fit the files before and this one. A column without a value in one file (of type null) takes the
/// type it has in another one.
///
/// `whole`: no columns were named, so that a file must not have more of them than the first one.
pub(crate) fn agree(
    so_far: &[Field],
    mine: &[Field],
    whole: bool,
    first: &DataFile,
    file: &DataFile,
) -> Result<Vec<Field>, SourceError> {
    if whole && let Some(more) = mine.iter().find(|field| so_far.iter().all(|other| other.name() != field.name())) {
        let (name, first) = (more.name(), first.path.display());
        return Err(
            file.schema(format!("has the column {name:?}, which {first} has not; name the columns to read in columns"))
        );
    }
    so_far
        .iter()
        .map(|field| {
            let name = field.name();
            let Some(other) = mine.iter().find(|other| other.name() == name) else {
                return Err(file.schema(format!("there is no column {name:?}, which {} has", first.path.display())));
            };
            let (of, other) = (field.data_type(), other.data_type());
            let both = common(of, other).ok_or_else(|| {
                file.schema(format!("column {name:?} is of type {other}, in {} of type {of}", first.path.display()))
            })?;
            Ok(Field::new(name, both, true))
        })
        .collect()
}

fn common(one: &DataType, other: &DataType) -> Option<DataType> {
    match (one, other) {
        _ if one == other => Some(one.clone()),
        (DataType::Null, of) | (of, DataType::Null) => Some(of.clone()),
        (DataType::List(item), DataType::List(other) | DataType::FixedSizeList(other, _))
        | (DataType::FixedSizeList(item, _), DataType::List(other)) => {
            let item = common(item.data_type(), other.data_type())?;
            Some(DataType::List(Arc::new(Field::new("item", item, true))))
        }
        _ => None,
    }
}

/// The batch with the columns of `schema`, in its order and types.
pub(crate) fn conform(
    batch: &RecordBatch,
    schema: &SchemaRef,
    first_row: u64,
    file: &DataFile,
) -> Result<RecordBatch, SourceError> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| {
            let name = field.name();
            let column = batch.column_by_name(name).ok_or_else(|| file.schema(lacks(name, batch.schema_ref())))?;
            given_as(column, field.data_type()).map_err(|error| match error {
                Misfit::Length { row, length, other } => file.schema(format!(
                    "column {name:?} has {other} values in row {}, where the others have {length}; \
                 with lists=\"ragged\" rows may differ",
                    first_row + row as u64
                )),
                Misfit::Cast(error) => file.schema(format!("column {name:?}: {error}")),
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &rows).map_err(|error| file.schema(error.to_string()))
}

/// Why an array cannot be given in a type.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// A list of another length than the others.
    Length {
        row: usize,
        length: usize,
        other: String,
    },
    Cast(arrow::error::ArrowError),
}

/// The array in the type `to`, which is a plain one.
pub(crate) fn given_as(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, Misfit> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    match (array.data_type(), to) {
        (DataType::List(_), DataType::List(item)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            Ok(Arc::new(ListArray::new(item.clone(), offsets, given_as(&values, item.data_type())?, nulls)))
        }
        (DataType::FixedSizeList(_, length), DataType::FixedSizeList(item, asked)) if length == asked => {
            let (_, length, values, nulls) = array.as_fixed_size_list().clone().into_parts();
            Ok(Arc::new(FixedSizeListArray::new(item.clone(), length, given_as(&values, item.data_type())?, nulls)))
        }
        (DataType::List(_), DataType::FixedSizeList(item, length)) => as_fixed(array.as_list(), item, *length),
        (DataType::FixedSizeList(..), DataType::List(item)) => {
            let (_, length, values, nulls) = array.as_fixed_size_list().clone().into_parts();
            let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(length as usize, array.len()));
            Ok(Arc::new(ListArray::new(item.clone(), offsets, given_as(&values, item.data_type())?, nulls)))
        }
        (from, _) => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let nearer = plain(from);
            if nearer == *to || matches!(from, DataType::Null) {
                return cast_with_options(array, to, &options).map_err(Misfit::Cast);
            }
            if nearer == *from {
                let what = format!("is of type {from}, not {to}");
                return Err(Misfit::Cast(arrow::error::ArrowError::CastError(what)));
            }
            given_as(&cast_with_options(array, &nearer, &options).map_err(Misfit::Cast)?, to)
        }
    }
}

fn as_fixed(lists: &ListArray, item: &FieldRef, length: i32) -> Result<ArrayRef, Misfit> {
    let rows = lists.len();
    let misfit = |row, other| Misfit::Length { row, length: length as usize, other };
    if let Some(row) = (0..rows).find(|&row| lists.is_null(row)) {
        return Err(misfit(row, "no".into()));
    }
    if let Some(row) = (0..rows).find(|&row| lists.value_length(row) != length) {
        return Err(misfit(row, lists.value_length(row).to_string()));
    }
    let first = lists.value_offsets()[0] as usize;
    let values = given_as(&lists.values().slice(first, rows * length as usize), item.data_type())?;
    Ok(Arc::new(
        FixedSizeListArray::try_new_with_length(item.clone(), length, values, None, rows).map_err(Misfit::Cast)?,
    ))
}
