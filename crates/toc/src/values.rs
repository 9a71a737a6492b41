//! Values in bytes: as f64, as f32 if all are exactly that, or as decimals if that takes less. Values that are no
//! decimals of few digits, or are far from the others, are exceptions among these, as in ALP (Afroozeh, Kuffo and
//! Boncz, SIGMOD 2024), so that one of them does not spoil the others.

use std::collections::VecDeque;

use tuples::pause::{self, pausing};

use crate::bytes::{Layout, Packed, Reader, packed_bytes, put_packed};
use crate::number::{Number, narrow, widen};
use crate::{Error, Info, Rows};

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Eight bytes each.
    Eight,
    /// Four bytes each.
    Four,
    /// Integers that are divided by a power of ten: each as its distance from the least, which is at most the range, in
    /// as few bits as will do. The exceptions, of which it says how many there are, take eight bytes and their place.
    Decimal { exponent: u8, min: i64, range: u32, exceptions: usize },
}

/// Highest power of ten that decimals are divided by: it is exact, and so are all powers below.
const MAX_EXPONENT: u8 = 15;
/// Integers are below this, so that a product with a power of ten is off by far less than a half.
const MAX_INTEGER: f64 = (1u64 << 50) as f64;
/// Bytes of exponent and least integer.
const DECIMAL_HEADER: usize = 1 + 8;

/// 10 to the power of `exponent`.
#[inline]
fn power(exponent: u8) -> f64 {
    const POWERS: [f64; MAX_EXPONENT as usize + 1] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    POWERS[usize::from(exponent)]
}

/// The nearest integer if it is below 2^51; without the call of a function that `round` is on older processors.
#[inline]
fn nearest(x: f64) -> f64 {
    const ONES: f64 = (3u64 << 51) as f64;
    x + ONES - ONES
}

/// The integer that becomes exactly `value` when it is divided by `power`, a power of ten: none for -0.0.
#[inline]
fn integer(value: f64, power: f64) -> Option<i64> {
    let integer = nearest(value * power);
    (integer.abs() < MAX_INTEGER && (integer / power).to_bits() == value.to_bits()).then_some(integer as i64)
}

/// Bits of the place of an exception among `n` values.
fn place_width(n: usize) -> u32 {
    u32::BITS - (n.saturating_sub(1) as u32).leading_zeros()
}

/// Bytes of a number of exceptions among `n` values.
fn exception_bytes(n: usize, exceptions: usize) -> usize {
    if exceptions == 0 { 0 } else { 4 + packed_bytes(exceptions, place_width(n)) + 8 * exceptions }
}

/// The least exponent with which a value is an integer. What is exact with one exponent is exact with a higher one, as
/// long as the integer is not too large.
fn least_exponent(value: f64) -> Option<u8> {
    if integer(value, 1.0).is_some() {
        return Some(0);
    }
    let size = value.abs();
    let highest = (1..=MAX_EXPONENT).rev().find(|exponent| size * power(*exponent) < MAX_INTEGER)?;
    integer(value, power(highest))?;
    (1..=highest).find(|exponent| integer(value, power(*exponent)).is_some())
}

/// What there is to know about values for choosing how they are stored.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    all_narrow: bool,
    /// The decimals, by their least exponent and their [size](size).
    decimals: Vec<[Decimals; SIZES]>,
    /// How many are no decimals.
    others: usize,
}

/// Sizes of decimals of one sign: each is 16 times the one before, from 2^-52, which is below 10^-15, to 2^50.
const MAGNITUDES: usize = 26;
/// Sizes of decimals: negative ones, 0, positive ones.
const SIZES: usize = 2 * MAGNITUDES + 1;

/// A number that grows with a decimal, and is the same for those of a sign that are about as large.
#[inline]
fn size(value: f64) -> usize {
    if value == 0.0 {
        return MAGNITUDES;
    }
    let exponent = (value.to_bits() >> 52 & 0x7FF) as usize;
    let magnitude = (exponent.saturating_sub(1023 - 52) / 4).min(MAGNITUDES - 1);
    if value > 0.0 { MAGNITUDES + 1 + magnitude } else { MAGNITUDES - 1 - magnitude }
}

/// How many decimals there are, the least and the greatest.
#[derive(Debug, Clone, Copy)]
struct Decimals {
    n: usize,
    min: f64,
    max: f64,
}

impl Decimals {
    const NONE: Decimals = Decimals { n: 0, min: f64::INFINITY, max: f64::NEG_INFINITY };

    fn and(self, other: Decimals) -> Decimals {
        Decimals { n: self.n + other.n, min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl Summary {
    pub(crate) fn from_values(values: impl Iterator<Item = f64>) -> Summary {
        let mut summary = Summary { all_narrow: true, decimals: Vec::new(), others: 0 };
        // the same value often follows itself
        let (mut last, mut n) = (0.0, 0);
        for value in pausing(values) {
            if value.to_bits() != f64::to_bits(last) {
                summary.add(last, n);
                (last, n) = (value, 0);
            }
            n += 1;
        }
        summary.add(last, n);
        summary
    }

    /// Of all entries of rows, zeros included.
    pub(crate) fn from_entries(rows: &Rows) -> Summary {
        Summary::from_values(rows.values().iter().copied()).with_zeros(rows.zeros())
    }

    #[inline]
    fn add(&mut self, value: f64, n: usize) {
        if n == 0 {
            return;
        }
        self.all_narrow = self.all_narrow && narrow(value).is_some();
        let Some(exponent) = least_exponent(value).map(usize::from) else {
            self.others += n;
            return;
        };
        if self.decimals.len() <= exponent {
            self.decimals.resize(exponent + 1, [Decimals::NONE; SIZES]);
        }
        let decimals = &mut self.decimals[exponent][size(value)];
        *decimals = decimals.and(Decimals { n, min: value, max: value });
    }

    /// Of these values and a number of zeros.
    pub(crate) fn with_zeros(mut self, n: usize) -> Summary {
        self.add(0.0, n);
        self
    }

    /// How the values are stored best.
    pub(crate) fn kind(&self) -> Kind {
        let n = self.decimals.iter().flatten().map(|decimals| decimals.n).sum::<usize>() + self.others;
        let mut best = self.plain_kind();
        let mut below = [Decimals::NONE; SIZES];
        for (exponent, decimals) in (0..).zip(&self.decimals) {
            if decimals.iter().all(|decimals| decimals.n == 0) {
                continue;
            }
            below.iter_mut().zip(decimals).for_each(|(below, decimals)| *below = below.and(*decimals));
            let mut sizes: VecDeque<Decimals> = below.into_iter().filter(|decimals| decimals.n > 0).collect();
            // the greatest or the least may be exceptions, too: those of which there are fewer
            while let (Some(first), Some(last)) = (sizes.front(), sizes.back()) {
                let first_is_rarer = first.n < last.n;
                let all = sizes.iter().copied().fold(Decimals::NONE, Decimals::and);
                if exception_bytes(n, n - all.n) >= best.bytes(n) {
                    break;
                }
                let ends = [all.min, all.max].map(|value| integer(value, power(exponent)));
                if let [Some(min), Some(max)] = ends
                    && let Ok(range) = u32::try_from(max - min)
                {
                    let kind = Kind::Decimal { exponent, min, range, exceptions: n - all.n };
                    best = if kind.bytes(n) < best.bytes(n) { kind } else { best };
                }
                if first_is_rarer {
                    sizes.pop_front()
                } else {
                    sizes.pop_back()
                };
            }
        }
        best
    }

    /// How values are stored whose bytes are compressed as they are.
    pub(crate) fn plain_kind(&self) -> Kind {
        if self.all_narrow { Kind::Four } else { Kind::Eight }
    }
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

    /// Whether some values are exceptions.
    pub(crate) fn has_exceptions(self) -> bool {
        matches!(self, Kind::Decimal { exceptions: 1.., .. })
    }

    /// Bytes that [`put`](Kind::put) appends for `n` values.
    pub(crate) fn bytes(self, n: usize) -> usize {
        4 + match self {
            Kind::Eight => 8 * n,
            Kind::Four => 4 * n,
            Kind::Decimal { range, exceptions, .. } => {
                DECIMAL_HEADER + packed_bytes(n, Layout::Bits.width(range)) + exception_bytes(n, exceptions)
            }
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
            Kind::Decimal { exponent, min, range, exceptions } => {
                out.push(exponent);
                out.extend_from_slice(&min.to_le_bytes());
                let power = power(exponent);
                let within = |value: &f64| {
                    let distance = integer(*value, power).and_then(|integer| u32::try_from(integer - min).ok());
                    distance.filter(|distance| *distance <= range)
                };
                let distance = |value: &f64| match exceptions {
                    0 => (nearest(*value * power) as i64 - min) as u32,
                    _ => within(value).unwrap_or(0),
                };
                put_packed(out, Layout::Bits.width(range), values.iter().map(distance));
                if exceptions > 0 {
                    let others = || values.iter().enumerate().filter(|(_, value)| within(value).is_none());
                    out.extend_from_slice(&(exceptions as u32).to_le_bytes());
                    put_packed(out, place_width(values.len()), others().map(|(place, _)| place as u32));
                    others().for_each(|(_, value)| out.extend_from_slice(&value.to_bits().to_le_bytes()));
                }
            }
        }
    }
}

/// Values, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values<'a> {
    Eight(&'a [[u8; 8]]),
    Four(&'a [[u8; 4]]),
    Decimal { power: f64, min: i64, distances: Packed<'a>, exceptions: Exceptions<'a> },
}

/// Values among decimals that are not decimals: their places, ascending, and they themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exceptions<'a> {
    places: Packed<'a>,
    values: &'a [[u8; 8]],
}

impl<'a> Exceptions<'a> {
    /// Those among `n` values, if there are any.
    fn read(info: &Info, n: usize, reader: &mut Reader<'a>) -> Result<Exceptions<'a>, Error> {
        let exceptions = if info.exceptions { reader.u32()? as usize } else { 0 };
        if exceptions == 0 {
            return Ok(Exceptions { places: Packed::NONE, values: &[] });
        }
        // places of a width of 0 take no bytes, however many they are
        if exceptions > n {
            return Err(Error::Malformed("more exceptions than values"));
        }
        let places = reader.packed(exceptions)?;
        let bytes = exceptions.checked_mul(8).ok_or(Error::Malformed("too many values"))?;
        let values = reader.take(bytes)?.as_chunks().0;
        let (mut next, mut is_sound) = (0, true);
        places.each(|place| {
            is_sound &= u64::from(place) >= next && (place as usize) < n;
            next = u64::from(place) + 1;
        });
        if !is_sound {
            return Err(Error::Malformed("an exception of a value that does not exist"));
        }
        Ok(Exceptions { places, values })
    }
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
        let exceptions = Exceptions::read(info, n, reader)?;
        Ok(Values::Decimal { power: power(exponent), min, distances, exceptions })
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
            Values::Decimal { power, min, distances, exceptions } => {
                let mut all = distances.map(|distance| T::from_f64((min + i64::from(distance)) as f64 / power));
                for (i, bytes) in exceptions.values.iter().enumerate() {
                    all[exceptions.places.get(i) as usize] = T::from_f64(f64::from_le_bytes(*bytes));
                }
                all
            }
        }
    }
}

/// That each value can be one of the `users` that have a number of it: equal ones take no bits, and nothing else bounds
/// how many there are.
pub(crate) fn check_used(values: &Values<'_>, users: usize) -> Result<(), Error> {
    if values.len() > users { Err(Error::Malformed("more values than uses of them")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn come_back(values: &[f64], kind: Kind) {
        let mut bytes = Vec::new();
        kind.put(&mut bytes, values);
        assert_eq!(bytes.len(), kind.bytes(values.len()));
        let (value_bytes, exceptions) = (kind.value_bytes(), kind.has_exceptions());
        let info = Info { encoding: crate::Encoding::Csr, rows: 1, columns: 50, value_bytes, exceptions, bytes: 0 };
        let mut reader = Reader(&bytes);
        let read = Values::read(&info, &mut reader).unwrap().to_vec::<f64>();
        assert_eq!(reader.end(), Ok(()));
        let bits = |x: &f64| x.to_bits();
        assert!(read.iter().map(bits).eq(values.iter().map(bits)), "{values:?} {read:?} {kind:?}");
    }

    proptest! {
        #[test]
        fn decimals_are_found_and_come_back(
            integers in prop::collection::vec(-99_999i64..100_000, 1..50),
            exponent in 0u8..=15,
            // no decimals
            odd in prop::collection::vec((0u32..1000, any::<prop::sample::Index>()), 0..4),
        ) {
            let mut values: Vec<f64> = integers.iter().map(|x| *x as f64 / power(exponent)).collect();
            for (value, place) in &odd {
                values.insert(place.index(values.len() + 1), f64::from(3 * value + 1) / 3.0);
            }
            let kind = Summary::from_values(values.iter().copied()).kind();
            if integers.len() > 24 {
                prop_assert!(matches!(kind, Kind::Decimal { range: ..200_000, .. }), "{:?} of {:?}", kind, values);
            }
            come_back(&values, kind);
        }
    }

    #[test]
    fn one_value_far_away_does_not_spoil_the_others() {
        let mut values: Vec<f64> = (0..1000).map(|i| f64::from(2000 + i % 200) / 4.0).collect();
        let bytes = |values: &[f64]| Summary::from_values(values.iter().copied()).kind().bytes(values.len());
        let before = bytes(&values);
        // above and below, within the range of 32 bits and beyond, and with more digits than the others at once
        for (i, value) in [1e6, -4e12, 0.0, 1e14, -5e4, 0.123].into_iter().enumerate() {
            values[9 * i] = value;
            let kind = Summary::from_values(values.iter().copied()).kind();
            assert!(matches!(kind, Kind::Decimal { exponent: 2, .. }) && kind.has_exceptions(), "{kind:?}");
            assert!(bytes(&values) <= before + 6 + 10 * (i + 1), "{kind:?}");
            come_back(&values, kind);
        }
        // as many far away as near are one range of decimals: these take fewer bits than eight bytes
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i % 2 * 1_000_000 + i % 200)).collect();
        let kind = Summary::from_values(values.iter().copied()).kind();
        assert!(matches!(kind, Kind::Decimal { exponent: 0, range: 1_000_199, exceptions: 0, .. }), "{kind:?}");
        come_back(&values, kind);
    }

    #[test]
    fn one_value_without_end_does_not_spoil_the_others() {
        let mut values: Vec<f64> = (0..1000).map(|i| f64::from(i % 200) / 4.0).collect();
        let bytes = |values: &[f64]| Summary::from_values(values.iter().copied()).kind().bytes(values.len());
        let before = bytes(&values);
        for (i, value) in [1.0 / 3.0, f64::NAN, -0.0, 1e300, f64::INFINITY, 0.1 + 0.2].into_iter().enumerate() {
            values[7 * i] = value;
            let kind = Summary::from_values(values.iter().copied()).kind();
            assert!(matches!(kind, Kind::Decimal { exponent: 2, .. }) && kind.has_exceptions(), "{kind:?}");
            assert!(bytes(&values) <= before + 6 + 10 * (i + 1));
            come_back(&values, kind);
        }
        // if all are exceptions, none is
        let values: Vec<f64> = (1..50).map(|i| 1.0 / f64::from(3 * i)).collect();
        assert_eq!(Summary::from_values(values.iter().copied()).kind(), Kind::Eight);
    }

    #[test]
    fn few_bytes_cannot_claim_many_equal_values() {
        let kind = Kind::Decimal { exponent: 0, min: 7, range: 0, exceptions: 0 };
        // no pair in the tree, no code; no entry and no code
        for (encoding, rest) in [(crate::Encoding::Toc, &[0; 8][..]), (crate::Encoding::Cvi, &[0; 3][..])] {
            for (n, sound) in [(0, true), (1, false), (1 << 26, false)] {
                let mut bytes = crate::stored::begin(encoding, 1 << 12, 1 << 20, kind);
                bytes.extend_from_slice(&u32::to_le_bytes(n));
                bytes.extend_from_slice(&[0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
                bytes.extend_from_slice(rest);
                assert_eq!(crate::decode(&crate::stored::seal(bytes)).is_ok(), sound, "{encoding} {n}");
            }
        }
    }

    #[test]
    fn exceptions_that_contradict_themselves_are_refused() {
        let values = [0.5, 1.0 / 3.0, 1.5, 0.25, 1.0 / 7.0, 2.5, 3.0, 7.5, 1.0, 2.0, 4.0, 3.5, 2.25, 1.75];
        let kind = Summary::from_values(values.iter().copied()).kind();
        let (mut bytes, info) = (
            Vec::new(),
            Info { encoding: crate::Encoding::Csr, rows: 1, columns: 50, value_bytes: 0, exceptions: true, bytes: 0 },
        );
        kind.put(&mut bytes, &values);
        assert!(kind.has_exceptions(), "{kind:?}");
        // two exceptions: places of 4 bits in one byte before the 16 bytes of the values
        let places = bytes.len() - 17;
        assert_eq!(bytes[places], 0x41);
        for (changed, sound) in [(0x41, true), (0x14, false), (0x44, false), (0xE1, false), (0x10, true)] {
            bytes[places] = changed;
            assert_eq!(Values::read(&info, &mut Reader(&bytes)).is_ok(), sound, "{changed:x}");
        }
    }
}
