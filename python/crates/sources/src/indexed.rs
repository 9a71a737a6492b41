//! Reads formats that have an index: the bytes of a unit, and what the format makes of them.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use source::{Cancel, SourceError, Unit};

use crate::dataset::{Dataset, Opened, Part, SkippedFiles, UnitReader};
use crate::files::DataFile;
use crate::index::{self, Cut, Index, IndexOptions, IndexedFormat};
use crate::{OnError, layout};

/// The bytes of a unit, or of some of its runs.
pub(crate) struct Chunk<'a> {
    pub(crate) file: &'a DataFile,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
    /// How many rows the index says it has.
    pub(crate) rows: usize,
}

impl Chunk<'_> {
    /// Damage at a byte of the chunk.
    pub(crate) fn damaged(&self, at: usize, what: impl Into<String>) -> SourceError {
        self.file.damaged(self.offset + at as u64, what)
    }
}

/// Makes rows of bytes.
pub(crate) trait Decode: Send + Sync {
    /// Some rows of a chunk.
    fn decode(&self, chunk: &Chunk<'_>, rows: Range<usize>) -> Result<Part, SourceError>;
}

/// A unit: bytes of a file.
#[derive(Clone, Copy)]
struct Place {
    file: u32,
    bytes: u32,
    offset: u64,
    rows: u32,
    /// Its runs.
    first_run: u32,
    runs: u32,
}

/// Rows of a unit whose place is known: where they end, in bytes and rows of the unit.
#[derive(Clone, Copy, Default)]
struct Run {
    bytes: u32,
    rows: u32,
}

/// The files of a data set with where their units are.
pub(crate) struct IndexedFiles {
    pub(crate) files: Vec<DataFile>,
    places: Vec<Place>,
    runs: Vec<Run>,
    pub(crate) skipped: SkippedFiles,
    /// The greatest of two numbers that the format finds in rows, over all files.
    pub(crate) most: [u32; 2],
}

/// Finds files and their indexes.
pub(crate) fn find(
    found: Vec<DataFile>,
    format: &dyn IndexedFormat,
    options: &IndexOptions,
    on_error: OnError,
    cancel: &Cancel,
) -> Result<IndexedFiles, SourceError> {
    let (mut files, mut places, mut runs, mut skipped) = (Vec::new(), Vec::new(), Vec::new(), SkippedFiles::default());
    let bytes = found.iter().map(|file| file.size).sum();
    let mut most = [0, 0];
    for file in found {
        cancel.check()?;
        let index = refuse_compressed(&file).and_then(|()| index::find(&file, format, options, on_error, cancel));
        let index = match index {
            Ok(index) => index,
            Err(error) => {
                skipped.skip(on_error, error, 0)?;
                continue;
            }
        };
        if let Some((offset, what)) = &index.damage {
            skipped.messages.push(format!("the rest left out: {}", file.damaged(*offset, what)));
        }
        for entry in &index.entries {
            most = [most[0].max(entry.most[0]), most[1].max(entry.most[1])];
        }
        units_of(&index, files.len(), &file, bytes, &mut places, &mut runs)?;
        files.push(file);
    }
    if files.is_empty() {
        return Err(SourceError::Invalid(format!("no file could be read: {}", skipped.messages.join("; "))));
    }
    Ok(IndexedFiles { files, places, runs, skipped, most })
}

/// Adds the units of a file of a data set of this many bytes, and their runs.
fn units_of(
    index: &Index,
    file: usize,
    of: &DataFile,
    bytes: u64,
    places: &mut Vec<Place>,
    runs: &mut Vec<Run>,
) -> Result<(), SourceError> {
    let begin = |offset, runs: &Vec<Run>| Place {
        file: file as u32,
        bytes: 0,
        offset,
        rows: 0,
        first_run: runs.len() as u32,
        runs: 0,
    };
    let mut cut = Cut::new(bytes, index.first);
    let mut unit = begin(index.first, runs);
    for (at, entry) in index.entries.iter().enumerate() {
        unit.bytes =
            u32::try_from(entry.end - unit.offset).map_err(|_| of.damaged(unit.offset, "a row has more than 4 GB"))?;
        unit.rows += entry.rows as u32;
        let (ends_run, ends_unit) = cut.ends(entry.end);
        let is_last = at + 1 == index.entries.len();
        if ends_run || is_last {
            runs.push(Run { bytes: unit.bytes, rows: unit.rows });
            unit.runs += 1;
        }
        if ends_unit || is_last {
            places.push(unit);
            unit = begin(entry.end, runs);
        }
    }
    Ok(())
}

impl IndexedFiles {
    /// Leaves out the rows of a file, and says how many these are.
    pub(crate) fn leave_out(&mut self, file: usize) -> u64 {
        let of_file = |place: &Place| place.file as usize == file;
        let rows = self.places.iter().filter(|place| of_file(place)).map(|place| u64::from(place.rows)).sum();
        self.places.retain(|place| !of_file(place));
        rows
    }

    /// Hands out the bytes of at most `count` units, from all over the files: to see what rows look like.
    pub(crate) fn sample(
        &self,
        count: usize,
        see: &mut dyn FnMut(&Chunk<'_>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        for unit in layout::spread(self.places.len(), count) {
            self.with(unit, see)?;
        }
        Ok(())
    }

    /// Hands out the bytes of the first unit of a file, if it has one.
    pub(crate) fn first_of(
        &self,
        file: usize,
        see: &mut dyn FnMut(&Chunk<'_>) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let first = self.places.iter().position(|place| place.file as usize == file);
        first.map_or(Ok(()), |unit| self.with(unit, see))
    }

    /// The data set with these rows. The sizes of units and their runs are estimated by the rows of one unit.
    pub(crate) fn dataset(
        mut self,
        decoder: impl Decode + 'static,
        schema: SchemaRef,
        fingerprint: u64,
        on_error: OnError,
    ) -> Dataset {
        let mut factor = 2.0;
        let measured = self.sample(1, &mut |chunk| {
            let part = decoder.decode(chunk, 0..chunk.rows)?;
            factor = memory(&part.batch) as f64 / chunk.bytes.len().max(1) as f64;
            Ok(())
        });
        // Anyone who reads the unit gets the error.
        drop(measured);
        let unit = |rows: u32, bytes: u32| Unit { rows: rows.into(), bytes: (f64::from(bytes) * factor) as u64 };
        let mut runs = Vec::with_capacity(self.runs.len());
        for place in &self.places {
            let mut before = Run::default();
            for run in self.runs_of(place) {
                runs.push(unit(run.rows - before.rows, run.bytes - before.bytes));
                before = *run;
            }
        }
        let units = self.places.iter().map(|place| unit(place.rows, place.bytes)).collect();
        let skipped = std::mem::take(&mut self.skipped);
        let opened = Opened { schema, units, whole_runs: Some(runs), fingerprint, on_error, skipped };
        Dataset::new(IndexedReader { files: self, decoder }, opened)
    }

    fn runs_of(&self, place: &Place) -> &[Run] {
        &self.runs[place.first_run as usize..][..place.runs as usize]
    }

    /// Hands out the bytes of a unit.
    fn with<T>(
        &self,
        unit: usize,
        use_it: &mut dyn FnMut(&Chunk<'_>) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let rows = self.places[unit].rows as usize;
        self.with_rows(unit, 0..rows, |chunk, _| use_it(chunk))
    }

    /// Hands out the bytes of the runs that have some rows of a unit, and which of their rows these are.
    fn with_rows<T>(
        &self,
        unit: usize,
        rows: Range<usize>,
        use_it: impl FnOnce(&Chunk<'_>, Range<usize>) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let place = self.places[unit];
        let runs = self.runs_of(&place);
        let first = runs.partition_point(|run| run.rows as usize <= rows.start);
        let before = if first == 0 { Run::default() } else { runs[first - 1] };
        let last = runs.get(runs.partition_point(|run| (run.rows as usize) < rows.end)).copied().unwrap_or(before);
        let file = &self.files[place.file as usize];
        let offset = place.offset + u64::from(before.bytes);
        let bytes = bytes_of(file, &file.open()?, offset, last.bytes.saturating_sub(before.bytes) as usize)?;
        let chunk = Chunk { file, offset, bytes: &bytes, rows: last.rows.saturating_sub(before.rows) as usize };
        use_it(&chunk, rows.start - before.rows as usize..rows.end - before.rows as usize)
    }
}

/// Bytes of a file, which were there when it was opened.
pub(crate) fn bytes_of(file: &DataFile, opened: &File, offset: u64, length: usize) -> Result<Vec<u8>, SourceError> {
    let mut bytes = vec![0; length];
    opened.read_exact_at(&mut bytes, offset).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => SourceError::Changed { path: file.path.clone() },
        _ => file.io(error),
    })?;
    Ok(bytes)
}

/// About how many bytes of memory a batch takes.
pub(crate) fn memory(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum()
}

struct IndexedReader<D> {
    files: IndexedFiles,
    decoder: D,
}

impl<D: Decode> UnitReader for IndexedReader<D> {
    fn read(&self, unit: usize, rows: Range<u64>, _: &Cancel) -> Result<Part, SourceError> {
        let rows = rows.start as usize..rows.end as usize;
        self.files.with_rows(unit, rows, |chunk, rows| self.decoder.decode(chunk, rows))
    }

    fn file(&self, unit: usize) -> &Path {
        &self.files.files[self.files.places[unit].file as usize].path
    }
}

/// Compressed files can be read from their beginning only.
pub(crate) fn refuse_compressed(file: &DataFile) -> Result<(), SourceError> {
    const KINDS: [(&[u8], &str, &str); 4] = [
        (b"\x1f\x8b", "gzip", "gunzip --keep"),
        (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
        (b"BZh", "bzip2", "bunzip2 --keep"),
        (b"\xfd7zXZ", "xz", "unxz --keep"),
    ];
    let mut start = Vec::new();
    file.open()?.take(6).read_to_end(&mut start).map_err(|error| file.io(error))?;
    match KINDS.iter().find(|(magic, ..)| start.starts_with(magic)) {
        None => Ok(()),
        Some((_, name, command)) => Err(SourceError::Invalid(format!(
            "{path} is compressed with {name}, and can be read from its beginning only; decompress it \
             (`{command} {path}`), or convert it to Parquet, which is compressed in parts",
            path = file.path.display()
        ))),
    }
}
