//! Kinds of values, and what columns become when they are computed with.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};

use crate::PredicateError;

/// What can be compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whole numbers of 64 bits.
    Whole,
    /// Whole numbers of 64 bits without a sign.
    Natural,
    /// Whole numbers of either kind, which are only compared.
    Wide,
    /// Floating point numbers.
    Real,
    /// Text.
    Text,
    /// Days since 1970.
    Day,
    /// Such parts of a second since 1970 in UTC.
    Moment(TimeUnit),
    /// True or false.
    Truth,
}

impl Kind {
    /// What a column of this type holds; None if nothing is known of it but whether it is there.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        use DataType::*;
        Some(match data_type {
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 => Self::Whole,
            UInt64 => Self::Natural,
            Float16 | Float32 | Float64 | Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Self::Real,
            Utf8 | LargeUtf8 | Utf8View => Self::Text,
            Boolean => Self::Truth,
            Date32 | Date64 => Self::Day,
            Timestamp(unit, _) => Self::Moment(*unit),
            Dictionary(_, values) => return Self::of(values),
            _ => return None,
        })
    }

    /// How users call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole | Self::Natural | Self::Wide | Self::Real => "a number",
            Self::Text => "text",
            Self::Day => "a date",
            Self::Moment(_) => "a timestamp",
            Self::Truth => "true or false",
        }
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Whole | Self::Natural | Self::Wide | Self::Real)
    }

    /// The type of its arrays. Text may be of the other two types of text, too.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Whole | Self::Day | Self::Moment(_) => DataType::Int64,
            Self::Natural => DataType::UInt64,
            Self::Wide => DataType::Decimal128(20, 0),
            Self::Real => DataType::Float64,
            Self::Text => DataType::LargeUtf8,
            Self::Truth => DataType::Boolean,
        }
    }

    /// The values of a column of this kind, in the type of the kind.
    pub(crate) fn read(self, column: &ArrayRef) -> Result<ArrayRef, PredicateError> {
        let column = match column.data_type() {
            DataType::Dictionary(_, values) => cast(column, values)?,
            _ => column.clone(),
        };
        match self {
            Self::Text => Ok(column),
            // a number of days, then of 64 bits
            Self::Day => cast(&cast(&cast(&column, &DataType::Date32)?, &DataType::Int32)?, &DataType::Int64),
            _ => cast(&column, &self.data_type()),
        }
    }

    /// Makes values of one kind those of another one.
    pub(crate) fn convert(self, values: &ArrayRef, to: Self) -> Result<ArrayRef, PredicateError> {
        let factor = match (self, to) {
            (Self::Day, Self::Moment(unit)) => 24 * 60 * 60 * parts(unit),
            (Self::Moment(from), Self::Moment(to)) => parts(to) / parts(from),
            _ => return cast(values, &to.data_type()),
        };
        let multiplied = |value: i64| value.checked_mul(factor).ok_or_else(|| out_of_range("a timestamp"));
        let values: &Int64Array = values.as_primitive();
        let values: PrimitiveArray<Int64Type> = values.try_unary::<_, Int64Type, _>(multiplied)?;
        Ok(std::sync::Arc::new(values))
    }
}

/// How many of them a second has.
pub(crate) fn parts(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

pub(crate) fn out_of_range(what: &str) -> PredicateError {
    PredicateError::Evaluation(format!("{what} is out of range"))
}

/// Another type of the same values; one that it cannot hold is an error.
pub(crate) fn cast(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, PredicateError> {
    if values.data_type() == to {
        return Ok(values.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(values, to, &options).map_err(|error| PredicateError::Evaluation(error.to_string()))
}
