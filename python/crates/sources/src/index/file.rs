//! An index file: a header that says of what, entries, and an end with a checksum, without which it is not finished.
//!
//! All numbers are little-endian. Header: `corgidx1`, size, time of change, first row's byte; name and settings of
//! the format, each with its length. Entry: end, rows, two numbers of 32 bits. End: an entry whose end is 2^64 - 1,
//! with the number of entries; where and why the file is damaged, or 0 and nothing; a hash of all that.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use source::SourceError;

use super::{Entry, Index, IndexedFormat};
use crate::files::{DataFile, Fingerprint};

const MAGIC: &[u8; 8] = b"corgidx1";
pub(super) const ENTRY_BYTES: usize = 24;

/// The header, but for where the first row begins, which is behind the rest.
fn identity(file: &DataFile, format: &dyn IndexedFormat) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(file.size.to_le_bytes());
    bytes.extend(file.modified.to_le_bytes());
    for text in [format.name(), &format.settings()] {
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

pub(super) fn header(file: &DataFile, format: &dyn IndexedFormat, first: u64) -> Vec<u8> {
    let mut bytes = identity(file, format);
    bytes.extend(first.to_le_bytes());
    bytes
}

pub(super) fn entry(entry: &Entry) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..8].copy_from_slice(&entry.end.to_le_bytes());
    bytes[8..16].copy_from_slice(&entry.rows.to_le_bytes());
    bytes[16..20].copy_from_slice(&entry.most[0].to_le_bytes());
    bytes[20..].copy_from_slice(&entry.most[1].to_le_bytes());
    bytes
}

/// The end behind `so_far`.
pub(super) fn end(so_far: &[u8], entries: u64, damage: Option<&(u64, String)>) -> Vec<u8> {
    let mut bytes = entry(&Entry { end: u64::MAX, rows: entries, most: [0, 0] }).to_vec();
    let (offset, what) = damage.map_or((0, ""), |(offset, what)| (*offset, what));
    bytes.extend(offset.to_le_bytes());
    bytes.extend((what.len() as u32).to_le_bytes());
    bytes.extend(what.as_bytes());
    let mut hash = Fingerprint::new("");
    hash.bytes(so_far);
    hash.bytes(&bytes);
    bytes.extend(hash.finish().to_le_bytes());
    bytes
}

/// Takes bytes from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn entry(&mut self) -> Option<Entry> {
        Some(Entry { end: self.u64()?, rows: self.u64()?, most: [self.u32()?, self.u32()?] })
    }
}

/// What an unfinished index has, if it is one of this file: where the first row begins, the entries, how many bytes
/// they take.
pub(super) fn unfinished(
    bytes: &[u8],
    file: &DataFile,
    format: &dyn IndexedFormat,
) -> Option<(u64, Vec<Entry>, usize)> {
    let identity = identity(file, format);
    let mut rest = Bytes(bytes.strip_prefix(identity.as_slice())?);
    let first = rest.u64()?;
    let mut entries = Vec::new();
    while let Some(entry) = rest.entry() {
        let before = entries.last().map_or(first, |entry: &Entry| entry.end);
        if entry.end <= before || entry.end > file.size {
            break;
        }
        entries.push(entry);
    }
    let used = identity.len() + 8 + entries.len() * ENTRY_BYTES;
    Some((first, entries, used))
}

/// Whether the file at `place`, which must be there, is not an index of ours.
pub(super) fn is_foreign(place: &Path) -> Result<bool, SourceError> {
    let mut start = Vec::new();
    let read = File::open(place).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    read.map_err(|error| SourceError::Io { path: place.to_owned(), error })?;
    Ok(start != MAGIC)
}

/// The index at `place`, if there is one.
pub(super) fn read(place: &Path, file: &DataFile, format: &dyn IndexedFormat) -> Result<Option<Index>, SourceError> {
    let bytes = match std::fs::read(place) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SourceError::Io { path: place.to_owned(), error }),
    };
    let again = format!("build it again with `python -m corgipile index --force {}`", file.path.display());
    let refused = |what: String| SourceError::Invalid(format!("{}: {what}; {again}", place.display()));
    let Some((of, name, settings)) = origin(&bytes) else {
        return Err(refused("is not an index of corgipile, or of another version".into()));
    };
    if name != format.name() {
        return Err(refused(format!("is the index of a file of the format {name}, not {}", format.name())));
    }
    if settings != format.settings() {
        if settings.is_empty() {
            return Err(refused("was built by another version".into()));
        }
        return Err(refused(format!("was built with {settings}, not {}", format.settings())));
    }
    if of != (file.size, file.modified) {
        let size = of.0;
        return Err(refused(format!(
            "is not of {} as it is now, but of a file of {size} bytes or of another time",
            file.path.display()
        )));
    }
    finished(&bytes, file, format).map(Some).ok_or_else(|| refused("is damaged or cut off".into()))
}

/// Size and time of change of the file, name and settings of the format.
fn origin(bytes: &[u8]) -> Option<((u64, u64), String, String)> {
    let mut rest = Bytes(bytes.strip_prefix(MAGIC)?);
    Some(((rest.u64()?, rest.u64()?), rest.text()?, rest.text()?))
}

fn finished(bytes: &[u8], file: &DataFile, format: &dyn IndexedFormat) -> Option<Index> {
    let (first, entries, used) = unfinished(bytes, file, format)?;
    let mut rest = Bytes(bytes.get(used..)?);
    let last = rest.entry()?;
    let damage = (rest.u64()?, rest.text()?);
    let damage = (!damage.1.is_empty()).then_some(damage);
    let whole = last.end == u64::MAX && last.rows == entries.len() as u64;
    let same = bytes[used..] == end(&bytes[..used], last.rows, damage.as_ref());
    (whole && same).then_some(Index { first, entries, damage })
}
