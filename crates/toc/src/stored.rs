//! What the bytes of all encodings begin with: a header with a checksum, and the values.
//!
//! docs/toc-format.md describes every byte.

use crate::bytes::Reader;
use crate::number::{Number, narrow, widen};
use crate::{Encoding, Error, limits};

const VERSION: u8 = 1;
/// Length of the header, and where in it the checksum is.
pub(crate) const HEADER: usize = 16;
const CHECKSUM: std::ops::Range<usize> = 12..16;
/// Flag: values take four bytes.
const NARROW: u8 = 1;

/// What the header of a compressed mini-batch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// How it is compressed.
    pub encoding: Encoding,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub columns: usize,
    /// Bytes of a stored value: 4 if all are exactly f32, else 8.
    pub value_bytes: u8,
    /// Length of the compressed form.
    pub bytes: usize,
}

impl Info {
    /// Entries of the matrix, zeros included.
    pub fn entries(&self) -> u64 {
        self.rows as u64 * self.columns as u64
    }

    /// How much smaller it is than all entries at eight bytes each.
    pub fn ratio(&self) -> f64 {
        self.entries() as f64 * 8.0 / self.bytes as f64
    }
}

/// Reads the header, and nothing else: neither the checksum nor what follows is looked at.
///
/// # Errors
/// If it is too short, of another version, or states what is not within the limits.
pub fn info(bytes: &[u8]) -> Result<Info, Error> {
    let header: &[u8; HEADER] = bytes.first_chunk().ok_or(Error::Malformed("it is shorter than its header"))?;
    let [version, encoding, flags, reserved, ..] = *header;
    if version != VERSION {
        return Err(Error::Version(version));
    }
    let encoding = *Encoding::ALL.get(usize::from(encoding)).ok_or(Error::Malformed("an unknown encoding"))?;
    if flags & !NARROW != 0 || reserved != 0 {
        return Err(Error::Malformed("an unknown flag"));
    }
    let mut rest = Reader(&header[4..]);
    let (rows, columns) = (rest.u32()? as usize, rest.u32()? as usize);
    let info = Info { encoding, rows, columns, value_bytes: value_bytes(flags & NARROW != 0), bytes: bytes.len() };
    limits::check(rows, columns, if encoding.holds_zeros() { info.entries() } else { 0 })?;
    Ok(info)
}

fn value_bytes(narrow: bool) -> u8 {
    if narrow { 4 } else { 8 }
}

/// The header, and what follows it if the checksum is right.
pub(crate) fn open(bytes: &[u8]) -> Result<(Info, Reader<'_>), Error> {
    let info = info(bytes)?;
    let stated = Reader(&bytes[CHECKSUM]).u32()?;
    if checksum(bytes) != stated { Err(Error::Checksum) } else { Ok((info, Reader(&bytes[HEADER..]))) }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CHECKSUM.start]);
    hasher.update(&bytes[CHECKSUM.end..]);
    hasher.finalize()
}

/// A header without its checksum.
pub(crate) fn begin(encoding: Encoding, rows: usize, columns: usize, narrow: bool) -> Vec<u8> {
    let encoding = Encoding::ALL.iter().position(|other| *other == encoding).expect("all are among ALL");
    let mut out = vec![VERSION, encoding as u8, if narrow { NARROW } else { 0 }, 0];
    out.extend_from_slice(&(rows as u32).to_le_bytes());
    out.extend_from_slice(&(columns as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out
}

/// Writes the checksum: nothing may change from here on.
pub(crate) fn seal(mut out: Vec<u8>) -> Vec<u8> {
    let checksum = checksum(&out);
    out[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// Whether all values are exactly f32.
pub(crate) fn all_narrow(mut values: impl Iterator<Item = f64>) -> bool {
    values.all(|value| narrow(value).is_some())
}

/// Appends values of four or eight bytes, without their number.
pub(crate) fn put_plain(out: &mut Vec<u8>, values: impl Iterator<Item = f64>, four: bool) {
    for value in values {
        match narrow(value) {
            Some(bits) if four => out.extend_from_slice(&bits.to_le_bytes()),
            _ => out.extend_from_slice(&value.to_bits().to_le_bytes()),
        }
    }
}

/// Appends the number of values and the values.
pub(crate) fn put_values(out: &mut Vec<u8>, values: &[f64], four: bool) {
    out.extend_from_slice(&(values.len() as u32).to_le_bytes());
    put_plain(out, values.iter().copied(), four);
}

/// Bytes that [`put_values`] appends.
pub(crate) fn values_bytes(n: usize, narrow: bool) -> usize {
    4 + n * usize::from(value_bytes(narrow))
}

/// Values of four or eight bytes, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    bytes: &'a [u8],
    four: bool,
}

impl<'a> Values<'a> {
    /// Of bytes that are a whole number of values.
    pub(crate) fn of(bytes: &'a [u8], value_bytes: u8) -> Result<Values<'a>, Error> {
        if !bytes.len().is_multiple_of(usize::from(value_bytes)) {
            return Err(Error::Malformed("a value is cut off"));
        }
        Ok(Values { bytes, four: value_bytes == 4 })
    }

    /// What [`put_values`] appended.
    pub(crate) fn read(info: &Info, reader: &mut Reader<'a>) -> Result<Values<'a>, Error> {
        let n = reader.u32()? as usize;
        let bytes = n.checked_mul(usize::from(info.value_bytes)).ok_or(Error::Malformed("too many values"))?;
        Values::of(reader.take(bytes)?, info.value_bytes)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / if self.four { 4 } else { 8 }
    }

    /// The values as numbers of another kind.
    #[inline]
    pub(crate) fn to_vec<T: Number>(self) -> Vec<T> {
        if self.four {
            self.bytes.as_chunks().0.iter().map(|bytes| T::from_f64(widen(u32::from_le_bytes(*bytes)))).collect()
        } else {
            self.bytes.as_chunks().0.iter().map(|bytes| T::from_f64(f64::from_le_bytes(*bytes))).collect()
        }
    }
}
