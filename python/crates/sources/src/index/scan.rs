//! Looks through a file for where its rows begin.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use source::{Cancel, SourceError};

use super::{Cut, Entry, Index, IndexedFormat};
use crate::OnError;
use crate::dataset::is_skipped;
use crate::files::DataFile;

/// How often progress is reported, and the build may be stopped.
const TICK_BYTES: u64 = 1 << 20;

/// A row that was found.
#[doc(hidden)]
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// The byte behind it. What follows is found the same when a new scanner begins there.
    pub end: u64,
    pub most: [u32; 2],
}

/// Finds rows. It sees a file from its beginning, or from the end of any row.
#[doc(hidden)]
pub trait Scan: Send {
    /// Where the first row begins.
    fn begin(&mut self, _input: &mut Input) -> Result<u64, SourceError> {
        Ok(0)
    }

    /// The next row; none at the end of the file.
    fn next(&mut self, input: &mut Input) -> Result<Option<Row>, SourceError>;
}

/// A file that is read through.
#[doc(hidden)]
pub struct Input {
    pub(crate) file: DataFile,
    reader: BufReader<File>,
    at: u64,
}

impl Input {
    pub(crate) fn open(file: &DataFile) -> Result<Self, SourceError> {
        Ok(Self { reader: BufReader::with_capacity(256 << 10, file.open()?), file: file.clone(), at: 0 })
    }

    pub(crate) fn seek(&mut self, to: u64) -> Result<(), SourceError> {
        self.reader.seek(SeekFrom::Start(to)).map_err(|error| self.file.io(error))?;
        self.at = to;
        Ok(())
    }

    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    pub(crate) fn left(&self) -> u64 {
        self.file.size.saturating_sub(self.at)
    }

    pub(crate) fn damaged(&self, offset: u64, what: impl Into<String>) -> SourceError {
        self.file.damaged(offset, what)
    }

    /// Fills the buffer, of which the file has enough.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.reader.read_exact(buffer).map_err(|error| self.failed(error))?;
        self.at += buffer.len() as u64;
        Ok(())
    }

    pub(crate) fn skip(&mut self, bytes: u64) -> Result<(), SourceError> {
        self.reader.seek_relative(bytes as i64).map_err(|error| self.failed(error))?;
        self.at += bytes;
        Ok(())
    }

    /// What is in the buffer, which is nothing at the end of the file only.
    pub(crate) fn buffered(&mut self) -> Result<&[u8], SourceError> {
        self.reader.fill_buf().map_err(|error| self.file.io(error))
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.at += bytes as u64;
    }

    fn failed(&self, error: io::Error) -> SourceError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => SourceError::Changed { path: self.file.path.clone() },
            _ => self.file.io(error),
        }
    }
}

/// Finds the runs of rows of the rest of a file. `found` gets each of them; `tick` gets how far it is.
pub(crate) fn scan(
    scanner: &mut dyn Scan,
    input: &mut Input,
    mut cut: Cut,
    found: &mut dyn FnMut(Entry) -> Result<(), SourceError>,
    tick: &mut dyn FnMut(u64) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let empty = Entry { end: 0, rows: 0, most: [0, 0] };
    let mut run = empty;
    let mut next_tick = input.position() + TICK_BYTES;
    loop {
        let row = match scanner.next(input) {
            Ok(Some(row)) => row,
            end => {
                // What was found before the end, or before damage, are rows.
                if run.rows > 0 {
                    found(run)?;
                }
                return end.map(|_| ());
            }
        };
        let [a, b] = run.most;
        run = Entry { end: row.end, rows: run.rows + 1, most: [a.max(row.most[0]), b.max(row.most[1])] };
        if cut.ends(row.end).0 {
            found(run)?;
            run = empty;
        }
        if input.position() >= next_tick {
            tick(input.position())?;
            next_tick = input.position() + TICK_BYTES;
        }
    }
}

/// The index of a file that is not kept.
pub(super) fn whole(
    file: &DataFile,
    format: &dyn IndexedFormat,
    on_error: OnError,
    cancel: &Cancel,
) -> Result<Index, SourceError> {
    let mut scanner = format.scanner();
    let mut input = Input::open(file)?;
    let first = scanner.begin(&mut input)?;
    input.seek(first)?;
    let mut entries = Vec::new();
    let scanned = scan(
        &mut *scanner,
        &mut input,
        Cut::new(file.size, first),
        &mut |entry| {
            entries.push(entry);
            Ok(())
        },
        &mut |_| cancel.check(),
    );
    Ok(Index { first, entries, damage: damage(scanned, on_error)? })
}

/// Where the search had to stop, if that is to be passed over.
pub(super) fn damage(
    scanned: Result<(), SourceError>,
    on_error: OnError,
) -> Result<Option<(u64, String)>, SourceError> {
    match scanned {
        Err(SourceError::Damaged { offset, what, .. }) if on_error == OnError::Skip => Ok(Some((offset, what))),
        Err(error) => {
            debug_assert!(!is_skipped(on_error, &error));
            Err(error)
        }
        Ok(()) => Ok(None),
    }
}
