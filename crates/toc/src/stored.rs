//! What the bytes of all encodings begin with: a header with a checksum.
//!
//! FORMAT.md describes every byte.

use crate::bytes::Reader;
use crate::values::Kind;
use crate::{Encoding, Error, limits};

/// The version of bytes without exceptions, and of those with them.
const VERSION: u8 = 1;
const VERSION_OF_EXCEPTIONS: u8 = 2;
/// Length of the header, and where in it the checksum is.
pub(crate) const HEADER: usize = 16;
const CHECKSUM: std::ops::Range<usize> = 12..16;
/// Bytes of a value, by the flags: 0 for decimals, without and with exceptions.
const VALUE_BYTES: [u8; 4] = [8, 4, 0, 0];
const DECIMALS: u8 = 2;
const EXCEPTIONS: u8 = 3;

/// What the header of a compressed mini-batch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// How it is compressed.
    pub encoding: Encoding,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub columns: usize,
    /// Bytes of a stored value: 8, or 4 if all are exactly f32; 0 if they are stored as decimals of fewer bits.
    pub value_bytes: u8,
    /// Whether some values are kept at eight bytes among decimals.
    pub exceptions: bool,
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
    if !matches!(version, VERSION | VERSION_OF_EXCEPTIONS) {
        return Err(Error::Version(version));
    }
    let encoding = *Encoding::ALL.get(usize::from(encoding)).ok_or(Error::Malformed("an unknown encoding"))?;
    let value_bytes = *VALUE_BYTES.get(usize::from(flags)).ok_or(Error::Malformed("an unknown flag"))?;
    let exceptions = flags == EXCEPTIONS;
    if reserved != 0 || exceptions != (version == VERSION_OF_EXCEPTIONS) {
        return Err(Error::Malformed("an unknown flag"));
    }
    if value_bytes == 0 && matches!(encoding, Encoding::Gzip | Encoding::Snappy) {
        return Err(Error::Malformed("an unknown flag"));
    }
    let mut rest = Reader(&header[4..]);
    let (rows, columns) = (rest.u32()? as usize, rest.u32()? as usize);
    let info = Info { encoding, rows, columns, value_bytes, exceptions, bytes: bytes.len() };
    limits::check(rows, columns, if encoding.holds_zeros() { info.entries() } else { 0 })?;
    Ok(info)
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
pub(crate) fn begin(encoding: Encoding, rows: usize, columns: usize, kind: Kind) -> Vec<u8> {
    let encoding = Encoding::ALL.iter().position(|other| *other == encoding).expect("all are among ALL");
    let (version, flags) = match kind.value_bytes() {
        0 if kind.has_exceptions() => (VERSION_OF_EXCEPTIONS, EXCEPTIONS),
        0 => (VERSION, DECIMALS),
        4 => (VERSION, 1),
        _ => (VERSION, 0),
    };
    let mut out = vec![version, encoding as u8, flags, 0];
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
