//! SQL's number types as Rust floats.

use super::typed::TypedDatum;
use pgrx::pg_sys;

/// A type whose values are numbers to a learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberType {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
}

impl NumberType {
    /// The number type with this OID; for a domain, give its base type.
    pub fn from_oid(oid: pg_sys::Oid) -> Option<NumberType> {
        match oid {
            pg_sys::BOOLOID => Some(NumberType::Bool),
            pg_sys::INT2OID => Some(NumberType::Int2),
            pg_sys::INT4OID => Some(NumberType::Int4),
            pg_sys::INT8OID => Some(NumberType::Int8),
            pg_sys::FLOAT4OID => Some(NumberType::Float4),
            pg_sys::FLOAT8OID => Some(NumberType::Float8),
            pg_sys::NUMERICOID => Some(NumberType::Numeric),
            _ => None,
        }
    }

    /// Can its values have fractions?
    pub fn has_fractions(self) -> bool {
        matches!(self, NumberType::Float4 | NumberType::Float8 | NumberType::Numeric)
    }

    /// The value as a double: exact but for bigint and numeric, which are rounded; `numeric` may be NaN or infinite. A
    /// value of another type gives another number, or, where a numeric is wanted, an ERROR.
    #[inline(always)]
    pub fn read(self, value: TypedDatum<'_>) -> f64 {
        match self {
            NumberType::Numeric => numeric(value),
            by_value => by_value.read_bits(value.bits()),
        }
    }

    /// As [`NumberType::read`], of an element of an array of these numbers.
    ///
    /// # Safety
    /// The datum is a value of this type.
    pub(in crate::pg) unsafe fn read_element(self, datum: pg_sys::Datum) -> f64 {
        match self {
            // SAFETY: the caller's promise.
            NumberType::Numeric => unsafe { numeric_to_double(datum) },
            by_value => by_value.read_bits(datum.value() as u64),
        }
    }

    /// The number that these bits are, of a type that is passed by value.
    #[inline(always)]
    fn read_bits(self, bits: u64) -> f64 {
        match self {
            NumberType::Bool => f64::from(bits as u8 != 0),
            NumberType::Int2 => f64::from(bits as i16),
            NumberType::Int4 => f64::from(bits as i32),
            NumberType::Int8 => bits as i64 as f64,
            NumberType::Float4 => f64::from(f32::from_bits(bits as u32)),
            NumberType::Float8 | NumberType::Numeric => f64::from_bits(bits),
        }
    }
}

#[cold]
fn numeric(value: TypedDatum<'_>) -> f64 {
    let datum = value.of_type(pg_sys::NUMERICOID);
    // SAFETY: the type has just been compared.
    unsafe { numeric_to_double(datum) }
}

/// A numeric as a double.
///
/// # Safety
/// The datum is a numeric.
unsafe fn numeric_to_double(datum: pg_sys::Datum) -> f64 {
    // SAFETY: numeric_float8_no_overflow takes any numeric, also one with a short header or compressed, and gives
    // infinity where numeric_float8 would raise an error without a row.
    unsafe {
        let result: pg_sys::Datum =
            pg_sys::DirectFunctionCall1Coll(Some(numeric_float8_no_overflow), pg_sys::Oid::INVALID, datum);
        f64::from_bits(result.value() as u64)
    }
}

unsafe extern "C-unwind" {
    fn numeric_float8_no_overflow(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
}

/// Why a number is no feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NumberFault {
    /// NaN or an infinity
    NotFinite(f64),
    /// finite, but not as a `real`
    OutOfRange(f64),
}

/// A double as the `real` that the learner works with.
#[inline]
pub fn narrow(value: f64) -> Result<f32, NumberFault> {
    let narrowed = value as f32;
    if narrowed.is_finite() {
        Ok(narrowed)
    } else if value.is_finite() {
        Err(NumberFault::OutOfRange(value))
    } else {
        Err(NumberFault::NotFinite(value))
    }
}
