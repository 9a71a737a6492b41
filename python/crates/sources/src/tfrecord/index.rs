//! Finds records, and reads the indexes that other programs leave beside TFRecord files.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use source::SourceError;

use super::checked_length;
use crate::index::scan::{Input, Row, Scan};
use crate::index::{Entry, Index, IndexedFormat};

/// The format, as far as an index is concerned.
#[derive(Clone, Copy, Debug)]
pub struct TfRecord;

impl IndexedFormat for TfRecord {
    fn name(&self) -> &'static str {
        "tfrecord"
    }

    fn scanner(&self) -> Box<dyn Scan> {
        Box::new(Scanner)
    }

    /// `data.tfrecord` may have `data.tfrecord.tfindex`, `data.tfindex` and so on: there is no rule.
    fn foreign_places(&self, file: &Path) -> Vec<PathBuf> {
        let endings = ["tfindex", "index", "idx"];
        let appended = endings.map(|ending| {
            let mut name = file.as_os_str().to_owned();
            name.push(format!(".{ending}"));
            PathBuf::from(name)
        });
        appended.into_iter().chain(endings.map(|ending| file.with_extension(ending))).collect()
    }

    fn foreign(&self, place: &Path, file: &Path, size: u64) -> Result<Index, SourceError> {
        foreign(place, file, size)
    }
}

struct Scanner;

impl Scan for Scanner {
    fn next(&mut self, input: &mut Input) -> Result<Option<Row>, SourceError> {
        let start = input.position();
        if input.left() == 0 {
            return Ok(None);
        }
        if input.left() < 12 {
            return Err(input.damaged(start, "the file ends within the header of a record"));
        }
        let mut header = [0; 12];
        input.read(&mut header)?;
        let length = checked_length(header);
        let length =
            length.ok_or_else(|| input.damaged(start, "there is no record: the length's checksum is wrong"))?;
        if length.checked_add(4).is_none_or(|length| length > input.left()) {
            return Err(input.damaged(start, format!("the file ends within a record of {length} bytes")));
        }
        input.skip(length + 4)?;
        Ok(Some(Row { end: input.position(), most: [0, 0] }))
    }
}

/// How long a unit is at least, as in our own index.
const UNIT_BYTES: u64 = 128 << 10;

/// Reads what `tfrecord2idx` of NVIDIA's DALI and of the package tfrecord write: a line for each record, with its
/// offset and its length with the checksums.
fn foreign(place: &Path, file: &Path, size: u64) -> Result<Index, SourceError> {
    let io = |error| SourceError::Io { path: place.to_owned(), error };
    let refused = |line: u64, what: &str| {
        let (place, file) = (place.display(), file.display());
        SourceError::Invalid(format!(
            "{place}, line {line}: {what}, so that it is no index of {file} as it is now; delete it, or build one of \
             ours, which goes before it, with `python -m corgipile index {file}`"
        ))
    };
    let mut index = Index::default();
    let (mut start, mut unit) = (0, Entry { end: 0, rows: 0, most: [0, 0] });
    let mut lines = 0;
    for line in BufReader::new(File::open(place).map_err(io)?).lines() {
        lines += 1;
        let line = line.map_err(io)?;
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(offset)), Some(Ok(length)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
            return Err(refused(lines, "does not have the offset and the length of a record"));
        };
        let end = offset.saturating_add(length);
        if offset != unit.end || end > size || length < 16 {
            return Err(refused(lines, "has a record where none can be"));
        }
        unit = Entry { end, rows: unit.rows + 1, most: [0, 0] };
        if end - start >= UNIT_BYTES {
            index.entries.push(unit);
            start = end;
            unit.rows = 0;
        }
    }
    if unit.rows > 0 {
        index.entries.push(unit);
    }
    if index.end() != size {
        return Err(refused(lines, "ends before the file"));
    }
    Ok(index)
}
