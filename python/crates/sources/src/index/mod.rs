//! Where rows begin in files that do not say it themselves.
//!
//! An index has an entry for every unit, a run of rows of 128 kB or more, so that that of a file of 100 GB takes 20 MB;
//! of small files it has finer ones, so that a block of few rows is read without the rows next to it.
//! It lies next to its file, or in a directory of its own, and knows size and time of change of the file: one of
//! another file, or of the file as it was, is refused. Building it goes on where it was interrupted.

mod build;
mod file;
pub(crate) mod scan;

use std::path::{Path, PathBuf};

use source::{Cancel, SourceError};

use crate::OnError;
use crate::files::DataFile;
use scan::{Input, Scan};

pub use build::{Built, already_built, build};

/// A file of at most this many bytes is looked through when it is opened, if it has no index.
pub(crate) const SCANNED_BYTES: u64 = 256 << 20;

/// A unit ends with the first row that makes it at least so long.
pub(crate) const UNIT_BYTES: u64 = 128 << 10;

/// About this many runs of rows a data set has whose places are known, unless its units are smaller than these runs: a
/// few for each of 2560 blocks.
const RUNS: u64 = 1 << 14;

/// Where runs of rows end: where a unit does, and in between so that there are enough of them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cut {
    run_bytes: u64,
    unit: u64,
    run: u64,
    units: u64,
}

impl Cut {
    /// For a file whose first row begins at `first`, of a data set of this many bytes.
    pub(crate) fn new(bytes: u64, first: u64) -> Cut {
        Cut { run_bytes: bytes / RUNS, unit: first, run: first, units: 0 }
    }

    /// Whether the row that ends here is the last one of its run, and of its unit.
    pub(crate) fn ends(&mut self, end: u64) -> (bool, bool) {
        let ends_unit = end - self.unit >= UNIT_BYTES;
        let ends_run = ends_unit || end - self.run >= self.run_bytes;
        if ends_unit {
            self.unit = end;
            self.units += 1;
        }
        if ends_run {
            self.run = end;
        }
        (ends_run, ends_unit)
    }

    /// How many units there are if the last row is among those so far.
    fn units(&self) -> u64 {
        self.units + u64::from(self.run > self.unit)
    }
}

/// What index files are called: the file's name and this.
pub const ENDING: &str = ".cpindex";

/// Where indexes are, and whether they are built where they are missing.
#[derive(Clone, Debug, Default)]
pub struct IndexOptions {
    /// Build and keep an index where it is missing or not of the file as it is now.
    pub build: bool,
    /// The directory of indexes; else they lie next to their files.
    pub directory: Option<PathBuf>,
    /// The index, if the data set is one file: ours or another program's.
    pub file: Option<PathBuf>,
}

impl IndexOptions {
    /// Where the index of a file is.
    pub fn place(&self, file: &Path) -> PathBuf {
        if let Some(index) = &self.file {
            return index.clone();
        }
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(ENDING);
        match &self.directory {
            Some(directory) => directory.join(name),
            None => file.with_file_name(name),
        }
    }
}

/// A format whose files need an index.
pub trait IndexedFormat: Send + Sync {
    /// Its name, as in the index.
    fn name(&self) -> &'static str;

    /// What else decides where rows begin, in words: an index that was built with something else is refused.
    fn settings(&self) -> String {
        String::new()
    }

    /// Finds rows, one after the other.
    #[doc(hidden)]
    fn scanner(&self) -> Box<dyn Scan>;

    /// Where other programs leave their indexes of a file.
    #[doc(hidden)]
    fn foreign_places(&self, _file: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Reads the index of another program.
    #[doc(hidden)]
    fn foreign(&self, place: &Path, input: &mut Input) -> Result<Index, SourceError> {
        let (place, file) = (place.display(), input.file.path.display());
        Err(SourceError::Invalid(format!(
            "{place} is not an index of corgipile; build one with `python -m corgipile index {file}`"
        )))
    }
}

/// A run of rows: it begins where the one before ends.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The byte behind the last row.
    pub end: u64,
    pub rows: u64,
    /// The greatest of two numbers that the format finds in the rows.
    pub most: [u32; 2],
}

/// Where the units of a file are.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Where the first row begins.
    pub first: u64,
    pub entries: Vec<Entry>,
    /// Where and why rows could not be found any more, if that was to be passed over.
    pub damage: Option<(u64, String)>,
}

impl Index {
    pub(crate) fn end(&self) -> u64 {
        self.entries.last().map_or(self.first, |entry| entry.end)
    }
}

/// The index of a file: ours, another program's, a new one, or, of a small file, what a look through it gives.
pub(crate) fn find(
    file: &DataFile,
    format: &dyn IndexedFormat,
    options: &IndexOptions,
    on_error: OnError,
    cancel: &Cancel,
) -> Result<Index, SourceError> {
    let place = options.place(&file.path);
    let found = match file::read(&place, file, format) {
        Ok(Some(index)) => Some(index),
        _ if options.file.is_some() && file::is_foreign(&place)? => {
            Some(format.foreign(&place, &mut Input::open(file)?)?)
        }
        Ok(None) => {
            let places = format.foreign_places(&file.path);
            let place = places.into_iter().find(|place| place.is_file());
            place.map(|place| format.foreign(&place, &mut Input::open(file)?)).transpose()?
        }
        Err(_) if options.build => None,
        Err(error) => return Err(error),
    };
    let index = match found {
        Some(index) => index,
        None if options.build => {
            build(&file.path, format, options, on_error, &mut |_, _| {}, cancel)?;
            let built = file::read(&place, file, format)?;
            built.ok_or_else(|| SourceError::Changed { path: file.path.clone() })?
        }
        None if file.size <= SCANNED_BYTES => scan::whole(file, format, on_error, cancel)?,
        None => {
            let (path, gigabytes) = (file.path.display(), file.size as f64 / 1e9);
            return Err(SourceError::Invalid(format!(
                "{path} has {gigabytes:.1} GB and no index; build one once with `python -m corgipile index {path}`, or \
                 with index=\"build\" when it is opened"
            )));
        }
    };
    match &index.damage {
        Some((offset, what)) if on_error == OnError::Raise => Err(file.damaged(*offset, what)),
        _ => Ok(index),
    }
}
