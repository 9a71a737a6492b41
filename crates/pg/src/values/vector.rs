//! Vectors of numbers, whatever their type: SQL arrays, pgvector's `vector` and `halfvec`, and `bytea`, whose bytes are
//! numbers from 0 to 255.
//!
//! What is no SQL array is read as it lies, without a function of pgvector's. Of such a value nothing is believed: how
//! many numbers it says to have is compared with how many bytes it has before any of them is read, so that a value of
//! another layout is a fault and no more.

use super::array::{ArrayFault, ArrayReader, Prefix};
use super::number::{NumberFault, NumberType};
use super::number_copy::copy;
use super::typed::TypedDatum;
use super::varlena::{header, with_content};
use crate::catalog::types::{base_type, base_type_of_extension};
use crate::detoasted;
use pgrx::pg_sys;
use std::ffi::CStr;

/// Reads vectors of one type.
#[derive(Debug, Clone, Copy)]
pub enum VectorReader {
    /// an array of numbers
    Array(ArrayReader),
    /// numbers back to back, and the type's OID
    Packed(Packed, pg_sys::Oid),
}

/// Numbers back to back in a value of variable length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packed {
    /// pgvector's vector: single-precision floats
    Floats,
    /// pgvector's halfvec: half-precision floats
    Halves,
    /// bytea: a number for each byte
    Bytes,
}

/// The extension whose types are read.
pub(super) const PGVECTOR: &CStr = c"vector";

/// What a vector or halfvec begins with: how many numbers there are in two bytes, and two bytes of 0.
const HEADER: usize = 4;

impl VectorReader {
    /// A reader for vectors of this type, which may be a domain, if it is one of vectors.
    pub fn new(type_oid: pg_sys::Oid) -> Option<VectorReader> {
        let packed = |packed| VectorReader::Packed(packed, type_oid);
        ArrayReader::new(type_oid).map(VectorReader::Array).or_else(|| Packed::of_type(type_oid).map(packed))
    }

    /// How many numbers the vector has.
    #[inline]
    pub fn len(&self, vector: TypedDatum<'_>) -> Result<usize, ArrayFault> {
        match self {
            VectorReader::Array(reader) => reader.len(vector),
            VectorReader::Packed(packed, type_oid) => with_bytes_of(vector, *type_oid, |bytes| packed.len(bytes)),
        }
    }

    /// Copies the vector's numbers to `out`, which is as long as the vector should be.
    #[inline(always)]
    pub fn read(&self, vector: TypedDatum<'_>, out: &mut [f32]) -> Result<(), ArrayFault> {
        match self {
            VectorReader::Array(reader) => reader.read(vector, out),
            VectorReader::Packed(packed, type_oid) => with_bytes_of(vector, *type_oid, |bytes| packed.read(bytes, out)),
        }
    }

    /// As [`VectorReader::read`], with a number for each NULL.
    ///
    /// # Errors
    /// Those of [`VectorReader::read`], but for [`ArrayFault::Null`].
    #[inline]
    pub fn read_with_nulls(&self, vector: TypedDatum<'_>, out: &mut [f32], null: f32) -> Result<(), ArrayFault> {
        match self {
            VectorReader::Array(reader) => reader.read_with_nulls(vector, out, null),
            VectorReader::Packed(..) => self.read(vector, out), // only an array has NULLs
        }
    }

    /// Appends the vector's numbers to `out` as doubles; nothing if there is a fault.
    pub fn read_doubles(&self, vector: TypedDatum<'_>, out: &mut Vec<f64>) -> Result<(), ArrayFault> {
        match self {
            VectorReader::Array(reader) => reader.read_doubles(vector, out),
            VectorReader::Packed(packed, type_oid) => {
                with_bytes_of(vector, *type_oid, |bytes| packed.read_doubles(bytes, out))
            }
        }
    }

    /// The type of the numbers, if they are those of an array.
    pub fn element(&self) -> Option<NumberType> {
        match self {
            VectorReader::Array(reader) => Some(reader.element()),
            VectorReader::Packed(..) => None,
        }
    }

    /// Are the numbers no `real`s?
    pub fn converts(&self) -> bool {
        match self {
            VectorReader::Array(reader) => reader.element() != NumberType::Float4,
            VectorReader::Packed(packed, _) => *packed != Packed::Floats,
        }
    }

    /// What a vector of `len` numbers begins with, behind its length word, and the numbers' type, if that is one of
    /// fixed length.
    pub(crate) fn prefix(&self, len: usize) -> Option<(Prefix, NumberType)> {
        match self {
            VectorReader::Array(reader) => Some((reader.prefix(len), reader.element())),
            // sixteen bytes are compared: there have to be this many
            VectorReader::Packed(Packed::Floats, _) if len >= 3 => {
                let header = u128::from(u16::try_from(len).ok()?);
                Some((Prefix { header, mask: u32::MAX.into(), len: HEADER }, NumberType::Float4))
            }
            VectorReader::Packed(..) => None,
        }
        .filter(|(_, number)| number.width().is_some())
    }
}

impl Packed {
    /// How values of this type, which may be a domain, hold numbers, if they do.
    fn of_type(type_oid: pg_sys::Oid) -> Option<Packed> {
        let base = base_type(type_oid);
        if base == pg_sys::BYTEAOID {
            return Some(Packed::Bytes);
        }
        match base_type_of_extension(base, PGVECTOR)?.as_str() {
            "vector" => Some(Packed::Floats),
            "halfvec" => Some(Packed::Halves),
            _ => None,
        }
    }

    /// Bytes of a number.
    fn width(self) -> usize {
        match self {
            Packed::Floats => 4,
            Packed::Halves => 2,
            Packed::Bytes => 1,
        }
    }

    #[inline(always)]
    fn numbers(self, bytes: &[u8]) -> Result<&[u8], ArrayFault> {
        if self == Packed::Bytes {
            return Ok(bytes);
        }
        let (header, numbers) = bytes.split_first_chunk::<HEADER>().ok_or(ArrayFault::Damaged)?;
        let [len, unused] = [[header[0], header[1]], [header[2], header[3]]].map(u16::from_le_bytes);
        let fits = unused == 0 && numbers.len() == usize::from(len) * self.width();
        if fits { Ok(numbers) } else { Err(ArrayFault::Damaged) }
    }

    fn len(self, bytes: &[u8]) -> Result<usize, ArrayFault> {
        Ok(self.numbers(bytes)?.len() / self.width())
    }

    #[inline(always)]
    fn read(self, bytes: &[u8], out: &mut [f32]) -> Result<(), ArrayFault> {
        let numbers = self.numbers(bytes)?;
        if numbers.len() != out.len() * self.width() {
            return Err(ArrayFault::Length(numbers.len() / self.width()));
        }
        let at = numbers.as_ptr();
        let finite = match self {
            // SAFETY: there are as many numbers of this width as `out` has.
            Packed::Floats => unsafe { copy(at, out, |v: f32| v) },
            Packed::Halves => simd::widen_halves(numbers, out),
            // SAFETY: as above.
            Packed::Bytes => unsafe { copy(at, out, |v: u8| f32::from(v)) },
        };
        if finite { Ok(()) } else { Err(not_finite(out)) }
    }

    fn read_doubles(self, bytes: &[u8], out: &mut Vec<f64>) -> Result<(), ArrayFault> {
        let numbers = self.numbers(bytes)?;
        match self {
            Packed::Floats => {
                let floats = numbers.as_chunks().0.iter();
                allocation::extend(out, floats.map(|float| f64::from(f32::from_le_bytes(*float))));
            }
            Packed::Halves => {
                let double = |half: &[u8; 2]| f64::from(simd::widen_half(u16::from_le_bytes(*half)));
                allocation::extend(out, numbers.as_chunks().0.iter().map(double));
            }
            Packed::Bytes => allocation::extend(out, numbers.iter().copied().map(f64::from)),
        }
        Ok(())
    }
}

#[cold]
fn not_finite(numbers: &[f32]) -> ArrayFault {
    let at = numbers.iter().position(|number| !number.is_finite()).unwrap_or_default();
    ArrayFault::Number(at + 1, NumberFault::NotFinite(numbers[at].into()))
}

/// Shows `f` the bytes of a value of this type behind its header, detoasted if need be.
#[inline(always)]
pub(super) fn with_bytes_of<R>(value: TypedDatum<'_>, type_oid: pg_sys::Oid, f: impl FnOnce(&[u8]) -> R) -> R {
    let datum = value.of_type(type_oid);
    // SAFETY: the type, which has just been compared, is one of variable length; the value stays while `f` runs.
    unsafe {
        if let Some(bytes) = header::content_at(datum.cast_mut_ptr::<u8>()) {
            return f(bytes);
        }
        detoasted::count(1);
        with_content(datum, f)
    }
}
