//! SQL's number types as Rust floats.

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
    pub fn of(oid: pg_sys::Oid) -> Option<NumberType> {
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

    /// The value as a double: exact but for bigint and numeric, which are rounded; `numeric` may be NaN or infinite.
    #[inline]
    pub fn read(self, datum: pg_sys::Datum) -> f64 {
        match self {
            NumberType::Bool => f64::from(datum.value() as u8 != 0),
            NumberType::Int2 => datum.value() as i16 as f64,
            NumberType::Int4 => datum.value() as i32 as f64,
            NumberType::Int8 => datum.value() as i64 as f64,
            NumberType::Float4 => f32::from_bits(datum.value() as u32) as f64,
            NumberType::Float8 => f64::from_bits(datum.value() as u64),
            NumberType::Numeric => numeric(datum),
        }
    }
}

#[cold]
fn numeric(datum: pg_sys::Datum) -> f64 {
    // SAFETY: the datum is a numeric; numeric_float8_no_overflow takes any, also one with a short header or compressed,
    // and gives infinity where numeric_float8 would raise an error without a row.
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
