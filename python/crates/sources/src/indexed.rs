//! Reads formats that have an index: the bytes of a unit, and what the format makes of them.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use arrow::array::{Array, RecordBatch};
use source::{Cancel, SourceError, Unit};

use crate::dataset::{Part, SkippedFiles, UnitReader};
use crate::files::DataFile;
use crate::index::{self, Index, IndexOptions, IndexedFormat};
use crate::{OnError, layout};

/// The bytes of a unit.
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
}

/// The files of a data set with where their units are.
pub(crate) struct IndexedFiles {
    pub(crate) files: Vec<DataFile>,
    places: Vec<Place>,
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
    let (mut files, mut places, mut skipped) = (Vec::new(), Vec::new(), SkippedFiles::default());
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
        places.extend(units_of(&index, files.len(), &file)?);
        files.push(file);
    }
    if files.is_empty() {
        return Err(SourceError::Invalid(format!("no file could be read: {}", skipped.messages.join("; "))));
    }
    Ok(IndexedFiles { files, places, skipped, most })
}

fn units_of(index: &Index, file: usize, of: &DataFile) -> Result<Vec<Place>, SourceError> {
    let mut offset = index.first;
    index
        .entries
        .iter()
        .map(|entry| {
            let bytes = u32::try_from(entry.end - offset);
            let bytes = bytes.map_err(|_| of.damaged(offset, "a row has more than 4 GB"))?;
            let place = Place { file: file as u32, bytes, offset, rows: entry.rows as u32 };
            offset = entry.end;
            Ok(place)
        })
        .collect()
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
            self.with(unit, &mut |chunk| see(chunk))?;
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

    /// The units, whose sizes are estimated by the rows of one of them.
    pub(crate) fn units(&self, decoder: &dyn Decode) -> Vec<Unit> {
        let mut factor = 2.0;
        let measured = self.sample(1, &mut |chunk| {
            let part = decoder.decode(chunk, 0..chunk.rows)?;
            factor = memory(&part.batch) as f64 / chunk.bytes.len().max(1) as f64;
            Ok(())
        });
        // Whoever reads the unit is told what is wrong with it.
        drop(measured);
        let unit =
            |place: &Place| Unit { rows: u64::from(place.rows), bytes: (f64::from(place.bytes) * factor) as u64 };
        self.places.iter().map(unit).collect()
    }

    fn with<T>(
        &self,
        unit: usize,
        use_it: &mut dyn FnMut(&Chunk<'_>) -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let place = self.places[unit];
        let file = &self.files[place.file as usize];
        let bytes = bytes_of(file, &file.open()?, place.offset, place.bytes as usize)?;
        use_it(&Chunk { file, offset: place.offset, bytes: &bytes, rows: place.rows as usize })
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

pub(crate) struct IndexedReader<D> {
    pub(crate) files: IndexedFiles,
    pub(crate) decoder: D,
}

impl<D: Decode> UnitReader for IndexedReader<D> {
    fn read(&self, unit: usize, rows: Range<u64>, _: &Cancel) -> Result<Part, SourceError> {
        self.files.with(unit, &mut |chunk| self.decoder.decode(chunk, rows.start as usize..rows.end as usize))
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
