//! SQL's number types as Rust floats.

use super::typed::TypedDatum;
use super::varlena::header;
use pgrx::{IntoDatum, pg_sys};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

/// A type whose values are numbers to a learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberType {
    /// type boolean: 0 and 1
    Bool,
    /// type smallint
    Int2,
    /// type integer
    Int4,
    /// type bigint
    Int8,
    /// type real
    Float4,
    /// type double precision
    Float8,
    /// type numeric
    Numeric,
    /// type money: the amount, with as many decimals as lc_monetary says
    Money,
    /// type interval: its seconds, as EXTRACT(epoch) gives them
    Interval,
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
            pg_sys::MONEYOID => Some(NumberType::Money),
            pg_sys::INTERVALOID => Some(NumberType::Interval),
            _ => None,
        }
    }

    /// Bytes of a value; None if that differs from value to value, or if they are no number by themselves.
    pub(crate) fn width(self) -> Option<usize> {
        match self {
            NumberType::Bool => Some(1),
            NumberType::Int2 => Some(2),
            NumberType::Int4 | NumberType::Float4 => Some(4),
            NumberType::Int8 | NumberType::Float8 => Some(8),
            NumberType::Numeric | NumberType::Money | NumberType::Interval => None,
        }
    }

    /// The value as a double, of a column that is written as SQL writes it.
    pub fn sql(self, column: &str) -> String {
        match self {
            NumberType::Bool => format!("{column}::pg_catalog.int4::pg_catalog.float8"),
            NumberType::Money => format!("{column}::pg_catalog.numeric::pg_catalog.float8"),
            NumberType::Interval => format!("pg_catalog.date_part('epoch', {column})"),
            _ => format!("{column}::pg_catalog.float8"),
        }
    }

    /// Can its values have fractions?
    #[inline]
    pub fn has_fractions(self) -> bool {
        use NumberType::{Float4, Float8, Interval, Money, Numeric};
        matches!(self, Float4 | Float8 | Numeric | Money | Interval)
    }

    /// The value as a double: exact but for bigint and numeric, which are rounded; `numeric` may be NaN or infinite. A
    /// value of another type gives another number, or, where a numeric is wanted, an ERROR.
    #[inline(always)]
    pub fn read(self, value: TypedDatum<'_>) -> f64 {
        match self {
            NumberType::Numeric => numeric(value),
            NumberType::Interval => {
                let datum = value.of_type(pg_sys::INTERVALOID);
                // SAFETY: the type has just been compared.
                unsafe { seconds(datum) }
            }
            by_value => by_value.read_bits(value.bits()),
        }
    }

    /// As [`NumberType::read`], of an element of an array of these numbers.
    ///
    /// # Safety
    /// The datum is a value of this type.
    pub(crate) unsafe fn read_element(self, datum: pg_sys::Datum) -> f64 {
        match self {
            // SAFETY: the caller's promise.
            NumberType::Numeric => unsafe { numeric_to_double(datum) },
            // SAFETY: the caller's promise.
            NumberType::Interval => unsafe { seconds(datum) },
            by_value => by_value.read_bits(datum.value() as u64),
        }
    }

    /// The number that these bits are, of a type that is passed by value.
    #[inline(always)]
    pub(crate) fn read_bits(self, bits: u64) -> f64 {
        match self {
            NumberType::Bool => f64::from(bits as u8 != 0),
            NumberType::Int2 => f64::from(bits as i16),
            NumberType::Int4 => f64::from(bits as i32),
            NumberType::Int8 => bits as i64 as f64,
            NumberType::Float4 => f64::from(f32::from_bits(bits as u32)),
            NumberType::Money => amount(bits as i64),
            NumberType::Float8 | NumberType::Numeric | NumberType::Interval => f64::from_bits(bits),
        }
    }
}

/// The amount that a value of type money is.
fn amount(units: i64) -> f64 {
    thread_local! {
        static KNOWN: RefCell<Option<(CString, f64)>> = const { RefCell::new(None) };
    }
    // SAFETY: a setting that is always there, and stays as it is until the next statement.
    let locale = unsafe { CStr::from_ptr(pg_sys::GetConfigOption(c"lc_monetary".as_ptr(), false, false)) };
    KNOWN.with_borrow_mut(|known| match known {
        Some((name, per_unit)) if name.as_c_str() == locale => units as f64 / *per_unit,
        _ => {
            let per_unit = units_per_amount();
            *known = Some((locale.to_owned(), per_unit));
            units as f64 / per_unit
        }
    })
}

/// How many units of type money are an amount of 1: 100 where amounts have two decimals.
#[cold]
fn units_per_amount() -> f64 {
    const UNITS: i64 = 10_000_000_000;
    // SAFETY: the function takes an int8, which money is, and gives a numeric.
    unsafe {
        let amount = pg_sys::DirectFunctionCall1Coll(Some(cash_numeric), pg_sys::Oid::INVALID, UNITS.into());
        UNITS as f64 / numeric_to_double(amount)
    }
}

/// The seconds of an interval, as EXTRACT(epoch) gives them: a year has 365.25 days, and a month 30.
///
/// # Safety
/// The datum is an interval.
#[cold]
unsafe fn seconds(datum: pg_sys::Datum) -> f64 {
    const DAY: f64 = 86_400.0;
    // SAFETY: the caller's promise.
    let pg_sys::Interval { time, day, month } = unsafe { *datum.cast_mut_ptr::<pg_sys::Interval>() };
    // PostgreSQL 17 has infinite ones
    match (time, day, month) {
        (i64::MAX, i32::MAX, i32::MAX) => return f64::INFINITY,
        (i64::MIN, i32::MIN, i32::MIN) => return f64::NEG_INFINITY,
        _ => {}
    }
    let days = 365.25 * f64::from(month / 12) + 30.0 * f64::from(month % 12) + f64::from(day);
    days * DAY + time as f64 / 1e6
}

#[inline]
fn numeric(value: TypedDatum<'_>) -> f64 {
    let datum = value.of_type(pg_sys::NUMERICOID);
    // SAFETY: the type has just been compared.
    unsafe { numeric_to_double(datum) }
}

/// A numeric as a double.
///
/// # Safety
/// The datum is a numeric.
#[inline]
unsafe fn numeric_to_double(datum: pg_sys::Datum) -> f64 {
    // SAFETY: the caller's promise: a value of variable length.
    let quick = unsafe { header::content_at(datum.cast_mut_ptr::<u8>()) }.and_then(decimal);
    // SAFETY: the caller's promise.
    quick.unwrap_or_else(|| unsafe { numeric_by_text(datum) })
}

/// A numeric as a double, by way of its text.
///
/// # Safety
/// The datum is a numeric.
#[cold]
unsafe fn numeric_by_text(datum: pg_sys::Datum) -> f64 {
    // SAFETY: numeric_float8_no_overflow takes any numeric, also one with a short header or compressed, and gives
    // infinity where numeric_float8 would raise an error without a row.
    unsafe {
        let result: pg_sys::Datum =
            pg_sys::DirectFunctionCall1Coll(Some(numeric_float8_no_overflow), pg_sys::Oid::INVALID, datum);
        f64::from_bits(result.value() as u64)
    }
}

/// The number that the bytes of a numeric, without their header, stand for, if it is an integer below 2⁵³ times or
/// divided by a power of ten that a double holds exactly, as are all of up to 15 digits that are not very large or
/// small: then one operation rounds it as reading its text would, to the same bits. None of any other.
#[inline]
pub(super) fn decimal(bytes: &[u8]) -> Option<f64> {
    // numeric.c: a word with the sign, the weight (how many digits of base 10,000 are before the point, less 1), which
    // has a word of its own in the long form, and the digits
    const SPECIAL: u16 = 0xc000;
    const SHORT: u16 = 0x8000;
    const LONG_MINUS: u16 = 0x4000;
    const SHORT_MINUS: u16 = 0x2000;
    let word = |at: usize| bytes.get(at..at + 2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    let head = word(0)?;
    let (is_negative, weight, digits) = match head & SPECIAL {
        SPECIAL => return None,
        SHORT => (head & SHORT_MINUS != 0, (head << 9) as i16 >> 9, &bytes[2..]),
        sign => (sign == LONG_MINUS, word(2)? as i16, &bytes[4..]),
    };
    let (digits, _) = digits.as_chunks::<2>();
    let Some((last, before)) = digits.split_last() else { return Some(0.0) };
    let digit = |digit: &[u8; 2]| u64::from(u16::from_le_bytes(*digit));
    // 16 decimals and the last digit's own do not overflow
    if before.len() > 4 {
        return None;
    }
    let whole = before.iter().fold(0u64, |sum, next| sum * 10_000 + digit(next));
    let (mut last, mut share, mut power) = (digit(last), 10_000u64, 4 * (i32::from(weight) - before.len() as i32));
    while last % 10 == 0 && share > 1 {
        (last, share, power) = (last / 10, share / 10, power + 1);
    }
    let integer = whole.checked_mul(share)?.checked_add(last).filter(|integer| *integer < 1 << f64::MANTISSA_DIGITS)?;
    let power_of_ten = *POWERS_OF_TEN.get(power.unsigned_abs() as usize)?;
    let magnitude = if power < 0 { integer as f64 / power_of_ten } else { integer as f64 * power_of_ten };
    Some(if is_negative { -magnitude } else { magnitude })
}

/// Those that a double holds exactly.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

unsafe extern "C-unwind" {
    fn numeric_float8_no_overflow(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
    fn cash_numeric(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
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

/// Is this the type of a literal without a type, or of a text, as which drivers send a parameter whose type they leave
/// open?
pub fn is_text(type_oid: pg_sys::Oid) -> bool {
    [pg_sys::UNKNOWNOID, pg_sys::TEXTOID, pg_sys::VARCHAROID].contains(&type_oid)
}

/// The number that a text stands for, or the text if it is not one.
pub fn number_of_text(text: TypedDatum<'_>) -> Result<TypedDatum<'static>, String> {
    // SAFETY: a C string; a float8 is passed by value.
    unsafe {
        let text = CStr::from_ptr(c_string(text)).to_string_lossy();
        let number: f64 = text.trim().parse().map_err(|_| text.into_owned())?;
        Ok(TypedDatum::new(number.into_datum().unwrap_or(pg_sys::Datum::null()), pg_sys::FLOAT8OID))
    }
}

/// The array of numbers that a text stands for; None if it does not begin with `{`, or with `[` as in JSON and as
/// pgvector writes it. An ERROR if it then is not one.
pub fn numbers_of_text(text: TypedDatum<'_>) -> Option<TypedDatum<'_>> {
    let c_string = c_string(text);
    // SAFETY: array_in takes a C string, and gives an array of the element type; `text` is valid as long as the memory
    // context in which the array is made, that of the call.
    unsafe {
        let bytes = CStr::from_ptr(c_string).to_bytes().trim_ascii_start();
        let braces = match bytes.first()? {
            // bounds before the array, as in [0:1]={1,2}
            b'[' if !bytes.contains(&b'=') => String::from_utf8_lossy(bytes).replace('[', "{").replace(']', "}"),
            b'{' | b'[' => String::from_utf8_lossy(bytes).into_owned(),
            _ => return None,
        };
        let braces = CString::new(braces).ok()?;
        let function = pg_sys::Oid::from(pg_sys::F_ARRAY_IN);
        let array = pg_sys::OidInputFunctionCall(function, braces.as_ptr().cast_mut(), pg_sys::FLOAT8OID, -1);
        Some(TypedDatum::new(array, pg_sys::FLOAT8ARRAYOID))
    }
}

/// The C string of a value of a type that [`is_text`].
fn c_string(text: TypedDatum<'_>) -> *mut c_char {
    // SAFETY: a value of type unknown is a C string; varchar is text in memory.
    unsafe {
        match text.type_oid() {
            pg_sys::UNKNOWNOID => text.datum().cast_mut_ptr(),
            pg_sys::VARCHAROID => pg_sys::text_to_cstring(text.datum().cast_mut_ptr()),
            _ => pg_sys::text_to_cstring(text.of_type(pg_sys::TEXTOID).cast_mut_ptr()),
        }
    }
}
