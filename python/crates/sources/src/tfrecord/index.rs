//! Finds records, and reads the indexes that other programs leave next to TFRecord files.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use source::SourceError;

use super::checked_length;
use crate::index::scan::{Input, Row, Scan};
use crate::index::{Cut, Entry, Index, IndexedFormat, SCANNED_BYTES};

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

    fn foreign(&self, place: &Path, input: &mut Input) -> Result<Index, SourceError> {
        foreign(place, input)
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

/// The runs of records, as they are found.
struct Runs {
    index: Index,
    cut: Cut,
    rows: u64,
}

impl Runs {
    /// Takes a record that ends here.
    fn push(&mut self, end: u64) {
        self.rows += 1;
        if self.cut.ends(end).0 {
            self.close(end);
        }
    }

    fn close(&mut self, end: u64) {
        if self.rows > 0 {
            self.index.entries.push(Entry { end, rows: self.rows, most: [0, 0] });
        }
        self.rows = 0;
    }
}

/// An index of another program's.
struct Foreign<'a> {
    place: &'a Path,
    file: PathBuf,
    size: u64,
}

impl Foreign<'_> {
    fn refused(&self, line: usize, what: &str) -> SourceError {
        let (place, file) = (self.place.display(), self.file.display());
        SourceError::Invalid(format!(
            "{place}, line {line}: {what}, so that it is not an index of {file} as it is now; do without it, or build one \
             of ours with `python -m corgipile index {file}`"
        ))
    }

    /// Where the lines' parts of the file end, each of which begins where the one before ends.
    fn ends(&self) -> Result<Vec<u64>, SourceError> {
        let io = |error| SourceError::Io { path: self.place.to_owned(), error };
        let mut ends = Vec::new();
        let mut last = 0;
        for (line, text) in (1..).zip(BufReader::new(File::open(self.place).map_err(io)?).lines()) {
            let text = match text {
                Err(error) if error.kind() == ErrorKind::InvalidData => return Err(self.refused(line, "is not text")),
                text => text.map_err(io)?,
            };
            let mut numbers = text.split_whitespace().map(str::parse::<u64>);
            let (Some(Ok(offset)), Some(Ok(length)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
                return Err(self.refused(line, "does not have the offset and the length of a record or a block"));
            };
            let end = offset.saturating_add(length);
            if offset != last || end > self.size || length < 16 {
                return Err(self.refused(line, "has a record where none can be"));
            }
            ends.push(end);
            last = end;
        }
        if last != self.size {
            return Err(self.refused(ends.len().max(1), "ends before the file"));
        }
        Ok(ends)
    }
}

/// Reads what `tfrecord2idx` of NVIDIA's DALI and of the package tfrecord write: a line for each record, with its
/// offset and its length with the checksums. CorgiPile's authors call that a block index; lines may also be blocks of
/// several records, which are counted here.
fn foreign(place: &Path, input: &mut Input) -> Result<Index, SourceError> {
    let of = Foreign { place, file: input.file.path.clone(), size: input.left() };
    let ends = of.ends()?;
    let mut runs = Runs { index: Index::default(), cut: Cut::new(of.size, 0), rows: 0 };
    // A damaged record is for the one that reads it.
    let first = Scanner.next(input).ok().flatten().map(|row| row.end);
    let has_blocks = first.zip(ends.first()).is_some_and(|(record, line)| record < *line);
    if !has_blocks {
        ends.iter().for_each(|end| runs.push(*end));
    } else if of.size > SCANNED_BYTES {
        return Err(of.refused(1, "has a block of several records, which no one has counted, and the file is large"));
    } else {
        input.seek(0)?;
        for (line, &end) in (1..).zip(&ends) {
            while input.position() < end {
                if let Some(row) = Scanner.next(input)? {
                    runs.push(row.end);
                }
            }
            if input.position() != end {
                return Err(of.refused(line, "ends within a record"));
            }
        }
    }
    runs.close(of.size);
    Ok(runs.index)
}
