//! Values in bytes: as f64, as f32 if all are exactly that, or as decimals if all have few digits and that takes less.

use tuples::pause::{self, pausing};

use crate::bytes::{Packed, Reader, packed_bytes, put_packed};
use crate::number::{Number, narrow, widen};
use crate::{Error, Info, Rows};

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Eight bytes each.
    Eight,
    /// Four bytes each.
    Four,
    /// Integers that are divided by a power of ten: each as its distance from the least, in as few bits as will do.
    Decimal { exponent: u8, min: i64, width: u32 },
}

/// Highest power of ten that decimals are divided by: it is exact, and so are all powers below.
const MAX_EXPONENT: u8 = 15;
/// Integers are below this, so that a product with a power of ten is off by far less than a half.
const MAX_INTEGER: f64 = (1u64 << 50) as f64;
/// Bytes of exponent and least integer.
const DECIMAL_HEADER: usize = 1 + 8;

/// 10 to the power of `exponent`.
fn power(exponent: u8) -> f64 {
    10f64.powi(i32::from(exponent))
}

/// The integer that becomes exactly `value` when it is divided by `power`, a power of ten: none for -0.0.
#[inline]
fn integer(value: f64, power: f64) -> Option<i64> {
    let nearest = (value * power).round();
    let integer = nearest as i64;
    (nearest.abs() < MAX_INTEGER && (integer as f64 / power).to_bits() == value.to_bits()).then_some(integer)
}

/// What there is to know about values for choosing how they are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    all_narrow: bool,
    /// Exponent, least and greatest integer, if all are decimals.
    decimal: Option<(u8, i64, i64)>,
}

impl Summary {
    pub(crate) fn from_values(values: impl Iterator<Item = f64> + Clone) -> Summary {
        Summary { all_narrow: pausing(values.clone()).all(|value| narrow(value).is_some()), decimal: decimal(values) }
    }

    /// Of the entries of rows: of all, or of those that are not zero.
    pub(crate) fn from_rows(rows: &Rows, zeros: bool) -> Summary {
        let summary = Summary::from_values(rows.values().iter().copied());
        if zeros && (rows.nnz() as u64) < rows.entries() { summary.with_zero() } else { summary }
    }

    /// Of these values and 0.
    pub(crate) fn with_zero(self) -> Summary {
        let decimal = self.decimal.map(|(exponent, min, max)| (exponent, min.min(0), max.max(0)));
        Summary { decimal, ..self }
    }

    /// How `n` such values are stored best.
    pub(crate) fn kind(self, n: usize) -> Kind {
        let plain = if self.all_narrow { Kind::Four } else { Kind::Eight };
        let Some((exponent, min, max)) = self.decimal else { return plain };
        let Ok(range) = u32::try_from(max - min) else { return plain };
        let decimal = Kind::Decimal { exponent, min, width: u32::BITS - range.leading_zeros() };
        if decimal.bytes(n) < plain.bytes(n) { decimal } else { plain }
    }

    /// How values are stored whose bytes are compressed as they are.
    pub(crate) fn plain_kind(self) -> Kind {
        if self.all_narrow { Kind::Four } else { Kind::Eight }
    }
}

fn decimal(values: impl Iterator<Item = f64> + Clone) -> Option<(u8, i64, i64)> {
    // what is exact with one exponent is exact with a higher one
    let mut exponent = 0;
    for value in pausing(values.clone()) {
        while integer(value, power(exponent)).is_none() {
            exponent += 1;
            if exponent > MAX_EXPONENT {
                return None;
            }
        }
    }
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for value in pausing(values) {
        let integer = integer(value, power(exponent))?;
        (min, max) = (min.min(integer), max.max(integer));
    }
    Some(if min > max { (0, 0, 0) } else { (exponent, min, max) })
}

impl Kind {
    /// Bytes of each value, 0 if it is not a whole number of them.
    pub(crate) fn value_bytes(self) -> u8 {
        match self {
            Kind::Eight => 8,
            Kind::Four => 4,
            Kind::Decimal { .. } => 0,
        }
    }

    /// Bytes that [`put`](Kind::put) appends for `n` values.
    pub(crate) fn bytes(self, n: usize) -> usize {
        4 + match self {
            Kind::Eight => 8 * n,
            Kind::Four => 4 * n,
            Kind::Decimal { width, .. } => DECIMAL_HEADER + packed_bytes(n, width),
        }
    }

    /// Appends the number of values and the values.
    pub(crate) fn put(self, out: &mut Vec<u8>, values: &[f64]) {
        out.extend_from_slice(&(values.len() as u32).to_le_bytes());
        self.put_plain(out, values);
    }

    /// Appends values without their number.
    pub(crate) fn put_plain(self, out: &mut Vec<u8>, values: &[f64]) {
        allocation::reserve(out, self.bytes(values.len()));
        match self {
            Kind::Eight => {
                pause::parts(values).flatten().for_each(|value| out.extend_from_slice(&value.to_bits().to_le_bytes()))
            }
            Kind::Four => {
                let four = |value: &f64| narrow(*value).expect("all are exactly f32").to_le_bytes();
                pause::parts(values).flatten().for_each(|value| out.extend_from_slice(&four(value)));
            }
            Kind::Decimal { exponent, min, width } => {
                out.push(exponent);
                out.extend_from_slice(&min.to_le_bytes());
                let distance = |value: &f64| ((*value * power(exponent)).round() as i64 - min) as u32;
                put_packed(out, width, values.iter().map(distance));
            }
        }
    }
}

/// Values, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values<'a> {
    Eight(&'a [[u8; 8]]),
    Four(&'a [[u8; 4]]),
    Decimal { power: f64, min: i64, distances: Packed<'a> },
}

impl<'a> Values<'a> {
    /// Of bytes that are values of eight or four bytes and nothing else.
    pub(crate) fn from_plain(bytes: &'a [u8], value_bytes: u8) -> Result<Values<'a>, Error> {
        const CUT: Error = Error::Malformed("a value is cut off");
        match (value_bytes, bytes.as_chunks(), bytes.as_chunks()) {
            (8, (values, []), _) => Ok(Values::Eight(values)),
            (4, _, (values, [])) => Ok(Values::Four(values)),
            _ => Err(CUT),
        }
    }

    /// What [`Kind::put`] appended.
    pub(crate) fn read(info: &Info, reader: &mut Reader<'a>) -> Result<Values<'a>, Error> {
        let n = reader.u32()? as usize;
        if info.value_bytes > 0 {
            let bytes = n.checked_mul(usize::from(info.value_bytes)).ok_or(Error::Malformed("too many values"))?;
            return Values::from_plain(reader.take(bytes)?, info.value_bytes);
        }
        let exponent = reader.byte()?;
        let min = i64::from_le_bytes(*reader.take(8)?.first_chunk().expect("eight bytes"));
        let distances = reader.packed(n)?;
        if exponent > MAX_EXPONENT || min.unsigned_abs() >= 1 << 50 {
            return Err(Error::Malformed("a decimal out of range"));
        }
        // equal values take no bits, and must not be more than the entries that there can be
        if distances.width() == 0 && n as u64 > info.entries().clamp(1, crate::limits::MAX_ENTRIES) {
            return Err(Error::Malformed("too many values"));
        }
        Ok(Values::Decimal { power: power(exponent), min, distances })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Eight(values) => values.len(),
            Values::Four(values) => values.len(),
            Values::Decimal { distances, .. } => distances.len(),
        }
    }

    /// The values as numbers of another kind.
    pub(crate) fn to_vec<T: Number>(self) -> Vec<T> {
        match self {
            Values::Eight(values) => {
                allocation::collect(values.iter().map(|bytes| T::from_f64(f64::from_le_bytes(*bytes))))
            }
            Values::Four(values) => {
                allocation::collect(values.iter().map(|bytes| T::from_f64(widen(u32::from_le_bytes(*bytes)))))
            }
            Values::Decimal { power, min, distances } => {
                distances.map(|distance| T::from_f64((min + i64::from(distance)) as f64 / power))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decimals_are_found_and_come_back(
            integers in prop::collection::vec(-99_999i64..100_000, 1..50),
            exponent in 0u8..=15,
            odd in prop::option::of(any::<f64>()),
        ) {
            let mut values: Vec<f64> = integers.iter().map(|x| *x as f64 / power(exponent)).collect();
            values.extend(odd);
            let kind = Summary::from_values(values.iter().copied()).kind(values.len());
            if odd.is_none() && values.len() > 8 {
                prop_assert!(matches!(kind, Kind::Decimal { width: ..=18, .. }), "{:?} of {:?}", kind, values);
            }
            let mut bytes = Vec::new();
            kind.put(&mut bytes, &values);
            prop_assert_eq!(bytes.len(), kind.bytes(values.len()));
            let value_bytes = kind.value_bytes();
            let info = Info { encoding: crate::Encoding::Csr, rows: 1, columns: 50, value_bytes, bytes: 0 };
            let read = Values::read(&info, &mut Reader(&bytes)).unwrap().to_vec::<f64>();
            let bits = |x: &f64| x.to_bits();
            prop_assert!(read.iter().map(bits).eq(values.iter().map(bits)));
        }
    }
}
