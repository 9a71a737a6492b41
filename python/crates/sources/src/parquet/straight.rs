//! Columns whose numbers lie in the file as they do in memory: they are read from where they are to where they are
//! wanted, the bytes of the rows asked for and no others.
//!
//! The library reads a page as a whole, and turns a level of each number into one of its own even where no number is
//! missing and all rows have the same length. For a block of a few wide rows that is many times the bytes and many
//! times the work. So it is asked once for where the pages of a row group begin, and their levels are compared with
//! what they are if nothing is missing. Compressed pages, those with a checksum and those in another encoding than the
//! plain one are left to the library, and so is any damage.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::pages::{At, Pages};
use crate::pool::Pool;

/// Bytes of a page that are looked at first: the levels of a few long rows are no longer.
const LEVELS: usize = 4 << 10;

/// A column of fixed width.
pub(super) struct Straight {
    /// The column of Parquet.
    leaf: usize,
    /// In which type its rows are given.
    given: DataType,
    /// Numbers of a row, or bytes where the number is one.
    each: usize,
    /// Bytes of a number.
    width: usize,
    max_def: i16,
    max_rep: i16,
    /// The pages of each row group; none where the library has to read it.
    groups: Vec<OnceLock<Option<Vec<PageAt>>>>,
}

/// A page of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageAt {
    first_row: u64,
    rows: u64,
    /// Where in the file its numbers are; none if they are encoded.
    numbers: Option<u64>,
}

impl Straight {
    /// The column `leaf` of a file, which has it in the type `of`, if it can be read so where it is given as `given`.
    pub(super) fn new(metadata: &ParquetMetaData, leaf: usize, of: &DataType, given: &DataType) -> Option<Self> {
        let (item_of, item, length) = match (of, given) {
            (DataType::List(of) | DataType::FixedSizeList(of, _), DataType::FixedSizeList(item, length)) => {
                (of.data_type(), item.data_type(), usize::try_from(*length).ok()?)
            }
            _ => (of, given, 1),
        };
        let column = metadata.file_metadata().schema_descr().column(leaf);
        let (each, width) = match (item, column.physical_type()) {
            (DataType::Int32 | DataType::UInt32, Type::INT32) | (DataType::Float32, Type::FLOAT) => (length, 4),
            (DataType::Int64 | DataType::UInt64, Type::INT64) | (DataType::Float64, Type::DOUBLE) => (length, 8),
            (DataType::FixedSizeBinary(bytes), Type::FIXED_LEN_BYTE_ARRAY) if *bytes == column.type_length() => {
                (length, usize::try_from(*bytes).ok()?)
            }
            _ => return None,
        };
        let lists = i16::from(matches!(given, DataType::FixedSizeList(..)));
        // Parquet has the lowest byte of a number first
        let fits = cfg!(target_endian = "little")
            && item == item_of
            && each > 0
            && width > 0
            && column.max_rep_level() == lists;
        fits.then(|| Straight {
            leaf,
            given: given.clone(),
            each,
            width,
            max_def: column.max_def_level(),
            max_rep: column.max_rep_level(),
            groups: (0..metadata.num_row_groups()).map(|_| OnceLock::new()).collect(),
        })
    }

    /// Rows of a row group; none if the library has to read them, or to say why they cannot be read.
    pub(super) fn read(
        &self,
        file: &Pages,
        metadata: &ParquetMetaData,
        group: usize,
        rows: &Range<u64>,
        pool: &Arc<Pool>,
    ) -> Option<ArrayRef> {
        // Several threads may look for the pages. If one waited for the other, it would for ever in a process that was
        // forked off meanwhile.
        let pages = match self.groups[group].get() {
            Some(pages) => pages,
            None => {
                _ = self.groups[group].set(self.pages_of(file, metadata, group));
                self.groups[group].get()?
            }
        };
        let pages = pages.as_ref()?;
        let of_row = self.each * self.width;
        let count = (rows.end - rows.start) as usize;
        let first = pages.partition_point(|page| page.first_row + page.rows <= rows.start);
        let wanted = pages[first..].iter().take_while(|page| page.first_row < rows.end);
        if wanted.clone().any(|page| page.numbers.is_none()) {
            return None;
        }
        let numbers = pool.filled(count * of_row, |mut to| {
            for page in wanted {
                let part = page.first_row.max(rows.start)..(page.first_row + page.rows).min(rows.end);
                let (now, later) = to.split_at_mut((part.end - part.start) as usize * of_row);
                let skipped = (part.start - page.first_row) * of_row as u64;
                file.read_exact_at(now, page.numbers? + skipped).ok()?;
                to = later;
            }
            to.is_empty().then_some(())
        })?;
        self.array(numbers, count)
    }

    fn array(&self, numbers: Buffer, rows: usize) -> Option<ArrayRef> {
        let of = |of: &DataType, count| ArrayData::builder(of.clone()).len(count).add_buffer(numbers.clone()).build();
        let data = match &self.given {
            DataType::FixedSizeList(item, _) => {
                let items = of(item.data_type(), rows * self.each).ok()?;
                ArrayData::builder(self.given.clone()).len(rows).add_child_data(items).build()
            }
            given => of(given, rows),
        };
        data.ok().map(make_array)
    }

    /// Where the pages of a row group are; none if a row lacks numbers or has others than it should, or if something
    /// is wrong, which the reader of the rows gets as an error.
    fn pages_of(&self, file: &Pages, metadata: &ParquetMetaData, group: usize) -> Option<Vec<PageAt>> {
        let group = metadata.row_group(group);
        let column = group.column(self.leaf);
        if column.compression() != Compression::UNCOMPRESSED {
            return None;
        }
        let rows = usize::try_from(group.num_rows()).ok()?;
        let look = || {
            let beginnings = Arc::new(Beginnings { file: file.clone(), last: Mutex::default() });
            let mut reader = SerializedPageReader::new(beginnings.clone(), column, rows, None).ok()?;
            let mut pages = Vec::new();
            let mut first_row = 0;
            while let Some(page) = reader.get_next_page().ok()? {
                let (start, length) = beginnings.last();
                if let Some(page) = self.page(file, &page, start, length, first_row)? {
                    first_row += page.rows;
                    pages.push(page);
                }
            }
            (first_row == rows as u64).then_some(pages)
        };
        catch_unwind(AssertUnwindSafe(look)).ok().flatten()
    }

    /// The page of data whose bytes are at `start`; none inside for a page of something else.
    fn page(&self, file: &Pages, page: &Page, start: u64, length: u64, first_row: u64) -> Option<Option<PageAt>> {
        let (beginning, lengths) = match page {
            Page::DictionaryPage { .. } => return Some(None),
            Page::DataPage { buf, def_level_encoding, rep_level_encoding, .. } => {
                let is_known = |encoding: &Encoding, max| max == 0 || *encoding == Encoding::RLE;
                if !is_known(def_level_encoding, self.max_def) || !is_known(rep_level_encoding, self.max_rep) {
                    return None;
                }
                (buf, None)
            }
            Page::DataPageV2 { buf, rep_levels_byte_len, def_levels_byte_len, .. } => {
                (buf, Some([*rep_levels_byte_len as usize, *def_levels_byte_len as usize]))
            }
        };
        let numbers = u64::from(page.num_values());
        let each = self.each as u64;
        if !numbers.is_multiple_of(each) {
            return None;
        }
        let mut levels = Levels { file, beginning, start, length, at: 0 };
        let regular = levels.are(self.max_rep, lengths.map(|[reps, _]| reps), numbers, Some(each))?
            && levels.are(self.max_def, lengths.map(|[_, defs]| defs), numbers, None)?;
        let end = levels.at as u64 + numbers * self.width as u64;
        if !regular || (page.encoding() == Encoding::PLAIN && end > length) {
            return None;
        }
        let numbers_at = (page.encoding() == Encoding::PLAIN).then_some(start + levels.at as u64);
        Some(Some(PageAt { first_row, rows: numbers / each, numbers: numbers_at }))
    }
}

/// A file of which the library is given the beginnings of pages only: pages that are not compressed it does not look
/// into.
struct Beginnings {
    file: Pages,
    /// Where the last page is.
    last: Mutex<(u64, u64)>,
}

impl Beginnings {
    fn last(&self) -> (u64, u64) {
        *self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Length for Beginnings {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Beginnings {
    type T = std::io::BufReader<At>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len()) {
            return Err(ParquetError::EOF(format!("a page ends behind byte {}", self.len())));
        }
        *self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = (start, length as u64);
        self.file.get_bytes(start, length.min(LEVELS))
    }
}

/// The levels at the beginning of a page, one kind after the other.
struct Levels<'a> {
    file: &'a Pages,
    beginning: &'a Bytes,
    start: u64,
    length: u64,
    at: usize,
}

impl Levels<'_> {
    /// Whether the next levels are all `max`, but for the first one of every this many, which is 0. `bytes`: how long
    /// they are, if it does not stand in front of them. None if they are damaged.
    fn are(&mut self, max: i16, bytes: Option<usize>, numbers: u64, zero_every: Option<u64>) -> Option<bool> {
        if max == 0 {
            self.at += bytes.unwrap_or(0);
            return Some(true);
        }
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => u32::from_le_bytes(self.next(4)?.as_ref().try_into().ok()?) as usize,
        };
        let levels = self.next(bytes)?;
        Some(Wanted { level: max as u64, zero_every }.are(&levels, numbers))
    }

    fn next(&mut self, count: usize) -> Option<Bytes> {
        let range = self.at..self.at.checked_add(count)?;
        if range.end as u64 > self.length {
            return None;
        }
        let next = match self.beginning.get(range.clone()) {
            Some(_) => self.beginning.slice(range.clone()),
            None => self.file.get_bytes(self.start + range.start as u64, count).ok()?,
        };
        self.at = range.end;
        Some(next)
    }
}

/// The levels of numbers of which none is missing, in rows of the same length.
struct Wanted {
    level: u64,
    zero_every: Option<u64>,
}

impl Wanted {
    fn at(&self, i: u64) -> u64 {
        if self.zero_every.is_some_and(|every| i.is_multiple_of(every)) { 0 } else { self.level }
    }

    fn are_all(&self, level: u64, range: Range<u64>) -> bool {
        match self.zero_every {
            Some(every) if level == self.level => range.start.next_multiple_of(every) >= range.end,
            None => level == self.level,
            _ => range.into_iter().all(|i| self.at(i) == level),
        }
    }

    /// Whether they are what Parquet's runs say.
    fn are(&self, mut runs: &[u8], count: u64) -> bool {
        let bits = u64::BITS - self.level.leading_zeros();
        let mut done = 0;
        while done < count {
            let Some(header) = variable(&mut runs) else { return false };
            let (length, bytes) = if header & 1 == 0 {
                (header >> 1, u64::from(bits.div_ceil(8)))
            } else {
                let eights = header >> 1;
                (eights.saturating_mul(8), eights.saturating_mul(bits.into()))
            };
            let Some((levels, rest)) = usize::try_from(bytes).ok().and_then(|bytes| runs.split_at_checked(bytes))
            else {
                return false;
            };
            let length = length.min(count - done);
            let is_right = if header & 1 == 0 {
                let level = levels.iter().rev().fold(0, |level, byte| level << 8 | u64::from(*byte));
                self.are_all(level, done..done + length)
            } else {
                (0..length).all(|i| self.at(done + i) == packed(levels, i * u64::from(bits), bits))
            };
            if !is_right || length == 0 {
                return false;
            }
            done += length;
            runs = rest;
        }
        true
    }
}

/// A number in groups of seven bits, the lowest first.
fn variable(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for group in 0..5 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << (7 * group);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// This many bits from a place on; they are in two bytes at most.
fn packed(bytes: &[u8], place: u64, bits: u32) -> u64 {
    let byte = |i: u64| bytes.get(i as usize).map_or(0, |byte| u32::from(*byte));
    let two = byte(place / 8) | byte(place / 8 + 1) << 8;
    u64::from(two >> (place % 8) & ((1 << bits) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::DataFile;
    use arrow::array::{Array, AsArray, FixedSizeListArray, RecordBatch};
    use arrow::datatypes::Float32Type;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ArrowReaderMetadata;
    use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

    /// Rows 25 to 95 of a hundred lists of three numbers, in a file that was written so: none if the library is needed.
    fn read(properties: WriterPropertiesBuilder, missing: Option<usize>) -> Option<ArrayRef> {
        let row = |row| (Some(row) != missing).then(|| [0, 1, 2].map(|i| Some((3 * row + i) as f32)));
        let x: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>((0..100).map(row), 3));
        let batch = RecordBatch::try_from_iter_with_nullable([("x", x.clone(), true)]).unwrap();
        let path = tempfile::NamedTempFile::with_suffix(".parquet").unwrap();
        let properties = properties.set_data_page_row_count_limit(10).set_write_batch_size(5).build();
        let mut writer = ArrowWriter::try_new(path.reopen().unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let file = Pages::open(&DataFile::find(path.path().to_owned()).unwrap()).unwrap();
        let metadata = ArrowReaderMetadata::load(&file, Default::default()).unwrap();
        let straight = Straight::new(metadata.metadata(), 0, x.data_type(), x.data_type()).unwrap();
        straight.read(&file, metadata.metadata(), 0, &(25..95), &Arc::default())
    }

    #[test]
    fn plain_pages_are_read_straight_and_others_left_to_the_library() {
        let plain = || WriterProperties::builder().set_dictionary_enabled(false);
        let got = read(plain(), None).unwrap();
        let numbers = got.as_fixed_size_list().values().as_primitive::<Float32Type>().values().to_vec();
        assert_eq!(numbers, (75..285).map(|number| number as f32).collect::<Vec<_>>());
        assert!(read(plain(), Some(50)).is_none(), "a row is missing");
        assert!(read(plain().set_compression(Compression::SNAPPY), None).is_none());
        assert!(read(WriterProperties::builder(), None).is_none(), "a dictionary");
    }

    #[test]
    fn runs_and_packed_levels_are_compared_one_by_one() {
        let rows = |every, count, runs: &[u8]| Wanted { level: 1, zero_every: Some(every) }.are(runs, count);
        // 0 1 1 1 1 1 1 1 packed, then sixteen times 1
        let runs = [0x03, 0xfe, 0x20, 0x01];
        assert!(rows(24, 24, &runs));
        assert!(!rows(12, 24, &runs) && !rows(1, 24, &runs));
        assert!(!rows(25, 25, &runs), "there are 24");
        assert!(!rows(24, 24, &runs[..3]), "cut off");
        assert!(rows(1, 9, &[0x12, 0x00]), "rows of one number");
        let present = |count, runs: &[u8]| Wanted { level: 3, zero_every: None }.are(runs, count);
        // 3 3 3 3 3 3 3 3 packed in two bits, with one that is 2, and twice 3
        assert!(present(10, &[0x03, 0xff, 0xff, 0x04, 0x03]));
        assert!(!present(10, &[0x03, 0xff, 0xef, 0x04, 0x03]));
        assert!(!present(10, &[0x03, 0xff, 0xff, 0x04, 0x02]));
        assert!(!present(1, &[0x00, 0x03]), "an empty run");
        assert!(!present(1, &[0xff; 6]), "a length without end");
    }
}
