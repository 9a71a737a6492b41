//! Builds an index that survives interruption: entries go to a file next to the one to be, which is renamed at the end.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use source::{Cancel, SourceError};

use super::scan::{Input, damage, scan};
use super::{Cut, Entry, Index, IndexOptions, IndexedFormat, file};
use crate::OnError;
use crate::files::DataFile;

/// What was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Where the index is.
    pub path: PathBuf,
    /// How many rows the file has.
    pub rows: u64,
    /// How many units they are in.
    pub units: u64,
    /// Where an interrupted search was taken up, or 0.
    pub resumed_at: u64,
    /// Where and why rows could not be found any more, if that was to be passed over.
    pub damage: Option<(u64, String)>,
}

/// Builds the index of a file, over one that is there. `progress` gets how many bytes are done, of how many.
///
/// Interrupted in any way, it goes on where it was when it is called again, if the file has not changed.
///
/// # Errors
/// The file is damaged (unless that is skipped), or one of the files cannot be read or written.
pub fn build(
    path: &Path,
    format: &dyn IndexedFormat,
    options: &IndexOptions,
    on_error: OnError,
    progress: &mut dyn FnMut(u64, u64),
    cancel: &Cancel,
) -> Result<Built, SourceError> {
    let data = DataFile::find(path.to_owned())?;
    let place = options.place(path);
    let (mut part, waited) = Unfinished::open(&place, cancel)?;
    if waited && let Ok(Some(index)) = file::read(&place, &data, format) {
        part.remove()?;
        return Ok(built(place, index));
    }
    let mut scanner = format.scanner();
    let mut input = Input::open(&data)?;
    let is_taken_up = part.take_up(&data, format)?;
    if !is_taken_up {
        let first = scanner.begin(&mut input)?;
        part.start(&data, format, first)?;
    }
    let (resumed_at, cut) = (if is_taken_up { part.end } else { 0 }, part.cut);
    input.seek(part.end)?;
    let part = std::cell::RefCell::new(part);
    let scanned = scan(&mut *scanner, &mut input, cut, &mut |entry| part.borrow_mut().push(entry), &mut |at| {
        progress(at, data.size);
        cancel.check()
    });
    let mut part = part.into_inner();
    // Whatever has happened: what was found is kept.
    part.write()?;
    let damage = damage(scanned, on_error)?;
    data.open()?; // it has not changed meanwhile
    progress(data.size, data.size);
    let (rows, units) = (part.rows, part.cut.units());
    part.finish(&place, damage.as_ref())?;
    Ok(Built { path: place, rows, units, resumed_at, damage })
}

/// The index that a file has already.
///
/// # Errors
/// What is there is not an index of the file as it is now.
pub fn already_built(
    path: &Path,
    format: &dyn IndexedFormat,
    options: &IndexOptions,
) -> Result<Option<Built>, SourceError> {
    let place = options.place(path);
    let index = file::read(&place, &DataFile::find(path.to_owned())?, format)?;
    Ok(index.map(|index| built(place, index)))
}

/// What somebody else has built.
fn built(path: PathBuf, index: Index) -> Built {
    let rows = index.entries.iter().map(|entry| entry.rows).sum();
    let mut cut = Cut::new(0, index.first);
    index.entries.iter().for_each(|entry| _ = cut.ends(entry.end));
    Built { path, rows, units: cut.units(), resumed_at: index.end(), damage: index.damage }
}

/// The file of an index that is not finished yet, locked against others who build it.
struct Unfinished {
    path: PathBuf,
    file: File,
    /// All that the file has, and what is still to be written of it from `written` on.
    bytes: Vec<u8>,
    written: usize,
    end: u64,
    rows: u64,
    entries: u64,
    cut: Cut,
}

/// This many bytes of entries are written at a time: those of about 100 MB of data.
const WRITTEN_BYTES: usize = 16 << 10;

impl Unfinished {
    /// The file, and whether somebody else who built it was waited for.
    fn open(place: &Path, cancel: &Cancel) -> Result<(Self, bool), SourceError> {
        let mut path = place.as_os_str().to_owned();
        path.push(".part");
        let path = PathBuf::from(path);
        let io = |error| SourceError::Io { path: path.clone(), error };
        let mut waited = false;
        loop {
            let mut file =
                File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
            while let Err(error) = file.try_lock() {
                match error {
                    TryLockError::WouldBlock => cancel.check()?,
                    TryLockError::Error(error) => return Err(io(error)),
                }
                waited = true;
                std::thread::sleep(Duration::from_millis(100));
            }
            // Who held it may have finished, and then what is locked is an index already.
            let still =
                std::fs::metadata(&path).is_ok_and(|now| file.metadata().is_ok_and(|mine| mine.ino() == now.ino()));
            if still {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(io)?;
                let unfinished =
                    Self { path, file, written: 0, bytes, end: 0, rows: 0, entries: 0, cut: Cut::default() };
                return Ok((unfinished, waited));
            }
        }
    }

    /// Goes on with what the file has, if it is about this data file.
    fn take_up(&mut self, data: &DataFile, format: &dyn IndexedFormat) -> Result<bool, SourceError> {
        let Some((first, entries, used)) = file::unfinished(&self.bytes, data, format) else { return Ok(false) };
        self.cut = Cut::new(data.size, first);
        entries.iter().for_each(|entry| _ = self.cut.ends(entry.end));
        self.bytes.truncate(used);
        self.written = used;
        self.end = entries.last().map_or(first, |entry| entry.end);
        self.rows = entries.iter().map(|entry| entry.rows).sum();
        self.entries = entries.len() as u64;
        self.truncate()?;
        Ok(true)
    }

    fn start(&mut self, data: &DataFile, format: &dyn IndexedFormat, first: u64) -> Result<(), SourceError> {
        self.bytes = file::header(data, format, first);
        self.written = 0;
        self.end = first;
        self.cut = Cut::new(data.size, first);
        self.truncate()
    }

    fn truncate(&mut self) -> Result<(), SourceError> {
        let cut = self.file.set_len(self.written as u64).and_then(|()| self.file.seek(SeekFrom::End(0)));
        cut.map(|_| ()).map_err(|error| self.io(error))
    }

    fn push(&mut self, entry: Entry) -> Result<(), SourceError> {
        self.bytes.extend(file::entry(&entry));
        self.end = entry.end;
        self.rows += entry.rows;
        self.entries += 1;
        self.cut.ends(entry.end);
        if self.bytes.len() - self.written >= WRITTEN_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), SourceError> {
        self.file.write_all(&self.bytes[self.written..]).map_err(|error| self.io(error))?;
        self.written = self.bytes.len();
        Ok(())
    }

    fn finish(mut self, place: &Path, damage: Option<&(u64, String)>) -> Result<(), SourceError> {
        let end = file::end(&self.bytes, self.entries, damage);
        self.bytes.extend(end);
        self.write()?;
        let renamed = self.file.sync_data().and_then(|()| std::fs::rename(&self.path, place));
        renamed.map_err(|error| self.io(error))
    }

    fn remove(self) -> Result<(), SourceError> {
        std::fs::remove_file(&self.path).map_err(|error| self.io(error))
    }

    fn io(&self, error: io::Error) -> SourceError {
        SourceError::Io { path: self.path.clone(), error }
    }
}
