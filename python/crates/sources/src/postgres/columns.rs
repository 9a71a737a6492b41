//! Types of PostgreSQL as arrays, and filling these with what `COPY` sends.

use std::sync::Arc;

use ::postgres::types::{Kind, Type};
use arrow::array::{
    ArrayBuilder, ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Float32Builder, Float64Builder, Int16Builder,
    Int32Builder, Int64Builder, ListArray, NullBufferBuilder, RecordBatch, StringBuilder, Time64MicrosecondBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::error::ArrowError;

use super::copy::field;

/// From 1970, where arrays count from, to 2000, where PostgreSQL does.
const DAYS: i32 = 10_957;
const MICROSECONDS: i64 = DAYS as i64 * 86_400_000_000;

/// What is wrong with a date or time that an array has no place for.
const NO_NUMBER: &str = "a value is infinite, or too far away, and arrays of dates and times have no place for that: leave \
                         the column out by naming others in columns, or such rows by where=\"isfinite(...)\"";

/// A column that is read.
pub(super) struct Column {
    name: String,
    /// The expression that gives it.
    pub(super) select: String,
    of: DataType,
    is_list: bool,
}

impl Column {
    pub(super) fn field(&self) -> Field {
        Field::new(&self.name, if self.is_list { DataType::List(self.item()) } else { self.of.clone() }, true)
    }

    /// The expression with the column's name.
    pub(super) fn named(&self) -> String {
        format!("{} AS {}", self.select, quoted(&self.name))
    }

    fn item(&self) -> Arc<Field> {
        Arc::new(Field::new("item", self.of.clone(), true))
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// How a column of a type is selected, and what it becomes. What has no array of its own is given as text: `char(n)`
/// without the blanks at its end, which do not count where PostgreSQL compares.
pub(super) fn column(name: &str, of: &Type) -> Column {
    let quoted = quoted(name);
    let (element, is_list) = match of.kind() {
        Kind::Array(element) => (element, true),
        _ => (of, false),
    };
    let brackets = if is_list { "[]" } else { "" };
    let (of, select) = match plain(element) {
        Some(of) => (of, quoted),
        None if *element == Type::NUMERIC => (DataType::Float64, format!("{quoted}::float8{brackets}")),
        None if *element == Type::OID => (DataType::Int64, format!("{quoted}::bigint{brackets}")),
        // pgvector's
        None if matches!(element.name(), "vector" | "halfvec") && !is_list => {
            return Column {
                name: name.into(),
                select: format!("{quoted}::real[]"),
                of: DataType::Float32,
                is_list: true,
            };
        }
        None => (DataType::Utf8, format!("{quoted}::text{brackets}")),
    };
    Column { name: name.into(), select, of, is_list }
}

fn plain(of: &Type) -> Option<DataType> {
    Some(match *of {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        Type::TEXT | Type::VARCHAR | Type::NAME => DataType::Utf8,
        Type::BYTEA => DataType::Binary,
        Type::DATE => DataType::Date32,
        Type::TIME => DataType::Time64(TimeUnit::Microsecond),
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        _ => return None,
    })
}

/// Values of one type.
enum Values {
    Bool(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N], String> {
    bytes.try_into().map_err(|_| format!("the database sent {} bytes where {N} are expected", bytes.len()))
}

/// Hands out this many numbers of `N` bytes, each behind its length, if all of them are such.
fn each<const N: usize>(count: i64, bytes: &[u8], mut push: impl FnMut([u8; N])) -> bool {
    let numbers = || bytes.chunks_exact(4 + N).map(|number| number.split_at(4));
    let is_right = count.checked_mul(4 + N as i64) == Some(bytes.len() as i64)
        && numbers().all(|(length, _)| length.first_chunk() == Some(&(N as u32).to_be_bytes()));
    if is_right {
        numbers().filter_map(|(_, number)| number.first_chunk()).for_each(|number| push(*number));
    }
    is_right
}

impl Values {
    fn new(of: &DataType, rows: usize) -> Self {
        match of {
            DataType::Boolean => Self::Bool(BooleanBuilder::with_capacity(rows)),
            DataType::Int16 => Self::Int16(Int16Builder::with_capacity(rows)),
            DataType::Int32 => Self::Int32(Int32Builder::with_capacity(rows)),
            DataType::Int64 => Self::Int64(Int64Builder::with_capacity(rows)),
            DataType::Float32 => Self::Float32(Float32Builder::with_capacity(rows)),
            DataType::Float64 => Self::Float64(Float64Builder::with_capacity(rows)),
            DataType::Binary => Self::Bytes(BinaryBuilder::new()),
            DataType::Date32 => Self::Date(Date32Builder::with_capacity(rows)),
            DataType::Time64(_) => Self::Time(Time64MicrosecondBuilder::with_capacity(rows)),
            DataType::Timestamp(_, zone) => {
                Self::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows).with_timezone_opt(zone.clone()))
            }
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Adds a value. What is infinitely early or late, or too far away, has no number.
    fn push(&mut self, value: Option<&[u8]>) -> Result<(), String> {
        let Some(bytes) = value else {
            self.push_null();
            return Ok(());
        };
        match self {
            Self::Bool(values) => values.append_value(exact::<1>(bytes)? != [0]),
            Self::Int16(values) => values.append_value(i16::from_be_bytes(exact(bytes)?)),
            Self::Int32(values) => values.append_value(i32::from_be_bytes(exact(bytes)?)),
            Self::Int64(values) => values.append_value(i64::from_be_bytes(exact(bytes)?)),
            Self::Float32(values) => values.append_value(f32::from_be_bytes(exact(bytes)?)),
            Self::Float64(values) => values.append_value(f64::from_be_bytes(exact(bytes)?)),
            Self::Text(values) => {
                let text = str::from_utf8(bytes).map_err(|_| "a text is not valid UTF-8: is client_encoding set?")?;
                values.append_value(text);
            }
            Self::Bytes(values) => values.append_value(bytes),
            Self::Date(values) => values.append_value(match i32::from_be_bytes(exact(bytes)?) {
                i32::MIN | i32::MAX => return Err(NO_NUMBER.into()),
                days => days.checked_add(DAYS).ok_or(NO_NUMBER)?,
            }),
            Self::Time(values) => values.append_value(i64::from_be_bytes(exact(bytes)?)),
            Self::Timestamp(values) => values.append_value(match i64::from_be_bytes(exact(bytes)?) {
                i64::MIN | i64::MAX => return Err(NO_NUMBER.into()),
                microseconds => microseconds.checked_add(MICROSECONDS).ok_or(NO_NUMBER)?,
            }),
        }
        Ok(())
    }

    /// Adds this many numbers of an array, each behind its length, if none is missing: true if it did. They are the
    /// most of what tables of features have.
    fn push_all(&mut self, count: i64, bytes: &[u8]) -> bool {
        match self {
            Self::Int32(values) => each(count, bytes, |number| values.append_value(i32::from_be_bytes(number))),
            Self::Int64(values) => each(count, bytes, |number| values.append_value(i64::from_be_bytes(number))),
            Self::Float32(values) => each(count, bytes, |number| values.append_value(f32::from_be_bytes(number))),
            Self::Float64(values) => each(count, bytes, |number| values.append_value(f64::from_be_bytes(number))),
            _ => false,
        }
    }

    fn push_null(&mut self) {
        match self {
            Self::Bool(values) => values.append_null(),
            Self::Int16(values) => values.append_null(),
            Self::Int32(values) => values.append_null(),
            Self::Int64(values) => values.append_null(),
            Self::Float32(values) => values.append_null(),
            Self::Float64(values) => values.append_null(),
            Self::Text(values) => values.append_null(),
            Self::Bytes(values) => values.append_null(),
            Self::Date(values) => values.append_null(),
            Self::Time(values) => values.append_null(),
            Self::Timestamp(values) => values.append_null(),
        }
    }

    fn builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Self::Bool(values) => values,
            Self::Int16(values) => values,
            Self::Int32(values) => values,
            Self::Int64(values) => values,
            Self::Float32(values) => values,
            Self::Float64(values) => values,
            Self::Text(values) => values,
            Self::Bytes(values) => values,
            Self::Date(values) => values,
            Self::Time(values) => values,
            Self::Timestamp(values) => values,
        }
    }
}

/// Columns that are being filled.
pub(super) struct Columns<'a> {
    columns: &'a [Column],
    values: Vec<Values>,
    /// Of lists, where each row's values end, and which rows are NULL.
    lists: Vec<Option<(Vec<i32>, NullBufferBuilder)>>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(columns: &'a [Column], rows: usize) -> Self {
        let values = columns.iter().map(|column| Values::new(&column.of, rows)).collect();
        let lists =
            columns.iter().map(|column| column.is_list.then(|| (vec![0], NullBufferBuilder::new(rows)))).collect();
        Self { columns, values, lists }
    }

    pub(super) fn push(&mut self, fields: &[Option<&[u8]>]) -> Result<(), String> {
        if fields.len() != self.columns.len() {
            return Err(format!(
                "the database sent {} columns where {} are expected",
                fields.len(),
                self.columns.len()
            ));
        }
        let into = self.columns.iter().zip(&mut self.values).zip(&mut self.lists);
        for (&bytes, ((column, values), list)) in fields.iter().zip(into) {
            let told = |what: String| format!("column {:?}: {what}", column.name);
            let Some((ends, nulls)) = list else {
                values.push(bytes).map_err(told)?;
                continue;
            };
            if let Some(bytes) = bytes {
                elements(bytes, values).ok_or("the database sent an array that is cut off")?.map_err(told)?;
            }
            nulls.append(bytes.is_some());
            ends.push(i32::try_from(values.builder().len()).map_err(|_| "this many values do not fit one batch")?);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for ((column, mut values), list) in self.columns.iter().zip(self.values).zip(self.lists) {
            let array = values.builder().finish();
            arrays.push(match list {
                None => array,
                Some((ends, mut nulls)) => {
                    let offsets = OffsetBuffer::new(ends.into());
                    Arc::new(ListArray::try_new(column.item(), offsets, array, nulls.finish())?)
                }
            });
        }
        let schema = Schema::new(self.columns.iter().map(Column::field).collect::<Vec<_>>());
        RecordBatch::try_new(schema.into(), arrays)
    }
}

/// Adds the elements of an array, those of several dimensions in a row.
fn elements(bytes: &[u8], values: &mut Values) -> Option<Result<(), String>> {
    let mut rest = bytes;
    let mut number = || -> Option<i32> {
        let (number, behind) = rest.split_first_chunk::<4>()?;
        rest = behind;
        Some(i32::from_be_bytes(*number))
    };
    let dimensions = number()?;
    let _has_null = number()?;
    let _type = number()?;
    let mut count = i64::from(dimensions > 0);
    for _ in 0..dimensions {
        count = count.checked_mul(i64::from(number()?))?;
        let _lower_bound = number()?;
    }
    if values.push_all(count, rest) {
        return Some(Ok(()));
    }
    for _ in 0..count {
        if let Err(what) = values.push(field(&mut rest)?) {
            return Some(Err(what));
        }
    }
    Some(Ok(()))
}
