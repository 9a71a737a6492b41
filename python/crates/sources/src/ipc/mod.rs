//! Arrow's own format: units are record batches. Files know where these are; a stream is looked through for them, from
//! one header to the next.
//!
//! Files are mapped into memory, so that of huge batches that are not compressed only the rows asked for are copied.

mod bytes;
mod decode;
mod messages;

use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, FixedSizeListArray, RecordBatch, RecordBatchOptions, make_array,
};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use source::{Cancel, SourceError, Unit};

use crate::OnError;
use crate::columns::{agree, choose, conform, given_as, settled};
use crate::dataset::{Dataset, KEPT_BYTES, Opened, Part, SkippedFiles, UnitReader};
use crate::files::{self, DataFile, Fingerprint};
use crate::indexed::memory;
use crate::layout;
use crate::pool::Pool;
use decode::Batches;

/// A batch of more rows than this is kept once it was checked, since it is read in parts.
const KEPT_ROWS: u64 = 16 << 10;

/// How many batches are looked at to see whether lists have the same length.
const BATCHES_LOOKED_AT: usize = 8;

/// How a data set of Arrow files is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// The columns, in this order; all of them without.
    pub columns: Option<Vec<String>>,
    /// Map files into memory. A file that is cut off while it is mapped ends the process; without, bytes are copied.
    pub memory_map: bool,
    /// Lists whose rows all have the same length are given as such.
    pub fixed_lists: bool,
    /// What becomes of damaged batches and files.
    pub on_error: OnError,
}

impl Default for Options {
    fn default() -> Self {
        Self { columns: None, memory_map: true, fixed_lists: true, on_error: OnError::Raise }
    }
}

/// Opens the files and streams that the patterns match as one data set.
///
/// # Errors
/// No file matches, one of them is damaged, a column is missing, or files differ.
pub fn open(paths: &[String], options: &Options, cancel: &Cancel) -> Result<Dataset, SourceError> {
    let found = files::find(paths, &["arrow", "arrows", "feather", "ipc"])?;
    let mut print = Fingerprint::new("arrow");
    print.files(&found);
    print.text(&format!("{:?} {}", options.columns, options.fixed_lists));
    let (opened, fields, skipped) = open_all(found, options, cancel)?;
    let mut places = Vec::new();
    let mut units = Vec::new();
    for (file, batches) in opened.iter().enumerate() {
        for (batch, &unit) in batches.units.iter().enumerate() {
            places.push((file, batch));
            units.push(unit);
        }
    }
    let kept = places.iter().map(|_| Mutex::new(None)).collect();
    let schema = Arc::new(Schema::new(settled(fields)));
    let is_exact = opened.iter().all(Batches::is_exact);
    let mut reader = Reader { files: opened, places, schema, kept, keeps_all: false, pool: Arc::default() };
    reader.keeps_all = !is_exact && reader.bytes(&units) <= KEPT_BYTES;
    if options.fixed_lists {
        reader.schema = reader.with_fixed_lists(&units)?;
    }
    let schema = reader.schema.clone();
    let whole_runs = (!is_exact && !reader.keeps_all).then(|| units.clone());
    let (fingerprint, on_error) = (print.finish(), options.on_error);
    Ok(Dataset::new(reader, Opened { schema, units, whole_runs, fingerprint, on_error, skipped }))
}

type Files = (Vec<Batches>, Vec<Field>, SkippedFiles);

fn open_all(found: Vec<DataFile>, options: &Options, cancel: &Cancel) -> Result<Files, SourceError> {
    let columns = options.columns.as_deref();
    let (mut files, mut fields, mut skipped) = (Vec::<Batches>::new(), Vec::new(), SkippedFiles::default());
    for file in found {
        cancel.check()?;
        let read = Batches::open(file, options.memory_map, cancel).map_err(|error| (error, 0)).and_then(|batches| {
            let rows = batches.units.iter().map(|unit: &Unit| unit.rows).sum();
            let mine = choose(&batches.schema, columns, &batches.file).map_err(|error| (error, rows))?;
            let agreed = match files.first() {
                Some(first) => agree(&fields, &mine, columns.is_none(), &first.file, &batches.file),
                None => Ok(mine),
            };
            agreed.map(|agreed| (batches, agreed)).map_err(|error| (error, rows))
        });
        match read {
            Ok((batches, agreed)) => {
                fields = agreed;
                files.push(batches);
            }
            // The first file says what columns there are: if it has not what is asked for, nothing is right.
            Err((error @ SourceError::Schema { .. }, _)) if files.is_empty() && skipped.messages.is_empty() => {
                return Err(error);
            }
            Err((error, rows)) => skipped.skip(options.on_error, error, rows)?,
        }
    }
    if files.is_empty() {
        return Err(SourceError::Invalid(format!("no file could be read: {}", skipped.messages.join("; "))));
    }
    for batches in &mut files {
        batches.project(&fields);
    }
    Ok((files, fields, skipped))
}

struct Reader {
    files: Vec<Batches>,
    /// The file of each unit, and which of its batches it is.
    places: Vec<(usize, usize)>,
    schema: SchemaRef,
    kept: Vec<Mutex<Option<RecordBatch>>>,
    /// Whether all batches fit into memory.
    keeps_all: bool,
    pool: Arc<Pool>,
}

impl Reader {
    /// About how many bytes of memory all batches take, by what one of them does.
    fn bytes(&self, units: &[Unit]) -> u64 {
        let largest = (0..units.len()).max_by_key(|&unit| units[unit].rows);
        let read = largest.and_then(|unit| self.batch(unit, units[unit].rows).ok());
        let rows: u64 = units.iter().map(|unit| unit.rows).sum();
        read.map_or(u64::MAX, |batch| memory(&batch) as u64 / (batch.num_rows() as u64).max(1) * rows)
    }

    /// A batch as the file has it. It is kept if it is read in parts and fits into memory, or lies in the mapped file.
    fn batch(&self, unit: usize, rows: u64) -> Result<RecordBatch, SourceError> {
        let (file, batch) = self.places[unit];
        let batches = &self.files[file];
        let all = batches.units[batch].rows;
        let keeps = if batches.is_mapped() && batches.is_uncompressed(batch) {
            all >= KEPT_ROWS
        } else {
            self.keeps_all && rows < all
        };
        if !keeps {
            return batches.read(batch);
        }
        let mut kept = self.kept[unit].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &*kept {
            Some(batch) => Ok(batch.clone()),
            None => {
                let read = batches.read(batch)?;
                *kept = Some(read.clone());
                Ok(read)
            }
        }
    }

    /// The schema, those lists as fixed-size ones whose rows have the same length in some of the batches. Should
    /// another one differ, reading it is an error that says so.
    fn with_fixed_lists(&self, units: &[Unit]) -> Result<SchemaRef, SourceError> {
        let filled: Vec<usize> = (0..units.len()).filter(|&unit| units[unit].rows > 0).collect();
        let lists = self.schema.fields().iter().any(|field| matches!(field.data_type(), DataType::List(_)));
        if !lists || filled.is_empty() {
            return Ok(self.schema.clone());
        }
        // Anyone who reads a batch gets the error.
        let read = |at: usize| self.batch(filled[at], units[filled[at]].rows).ok();
        let sample: Vec<RecordBatch> = layout::spread(filled.len(), BATCHES_LOOKED_AT).filter_map(read).collect();
        let fields = self.schema.fields().iter().map(|field| {
            let DataType::List(item) = field.data_type() else { return field.as_ref().clone() };
            let columns: Vec<_> = sample.iter().filter_map(|batch| batch.column_by_name(field.name())).collect();
            let lists: Vec<_> = columns.iter().filter_map(|column| given_as(column, field.data_type()).ok()).collect();
            let length = lists.first().map_or(0, |lists| lists.as_list::<i32>().value_length(0));
            let fixed = DataType::FixedSizeList(item.clone(), length);
            if length > 0 && lists.iter().all(|lists| given_as(lists, &fixed).is_ok()) {
                Field::new(field.name(), fixed, true)
            } else {
                field.as_ref().clone()
            }
        });
        Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }
}

impl UnitReader for Reader {
    fn read(&self, unit: usize, rows: std::ops::Range<u64>, _: &Cancel) -> Result<Part, SourceError> {
        let batches = &self.files[self.places[unit].0];
        batches.file.open()?; // it is still the same
        let batch = self.batch(unit, rows.end - rows.start)?;
        if rows.end > batch.num_rows() as u64 {
            return Err(SourceError::Changed { path: batches.file.path.clone() });
        }
        let part = batch.slice(rows.start as usize, (rows.end - rows.start) as usize);
        let part = conform(&part, &self.schema, rows.start, &batches.file)?;
        if !batches.is_mapped() {
            return Ok(part.into());
        }
        // What is given away does not lie in the mapped file: it may be kept longer than the file is left alone.
        let columns = part.columns().iter().map(|column| in_memory(column, &self.pool)).collect::<Result<Vec<_>, _>>();
        let count = RecordBatchOptions::new().with_row_count(Some(part.num_rows()));
        let batch = columns.and_then(|columns| RecordBatch::try_new_with_options(self.schema.clone(), columns, &count));
        Ok(batch.map_err(|error| batches.file.damaged(0, error.to_string()))?.into())
    }

    fn file(&self, unit: usize) -> &Path {
        &self.files[self.places[unit].0].file.path
    }
}

/// A copy of a column of a file that is mapped.
fn in_memory(array: &ArrayRef, pool: &Arc<Pool>) -> Result<ArrayRef, ArrowError> {
    // (Of one array alone the library would make no copy.)
    flat(array, pool).map_or_else(|| concat(&[array, &array.slice(0, 0)]), Ok)
}

/// The same of rows of numbers of which none is missing, in memory that is used again.
fn flat(array: &ArrayRef, pool: &Arc<Pool>) -> Option<ArrayRef> {
    if array.null_count() > 0 {
        return None;
    }
    if let Some(lists) = array.as_fixed_size_list_opt() {
        let (item, length, values, _) = lists.clone().into_parts();
        let lists = FixedSizeListArray::try_new_with_length(item, length, flat(&values, pool)?, None, array.len());
        return Some(Arc::new(lists.ok()?));
    }
    let data = array.to_data();
    let width = array.data_type().primitive_width()?;
    let numbers = data.buffers()[0].get(data.offset() * width..(data.offset() + data.len()) * width)?;
    let copy = pool.filled(numbers.len(), |to| {
        to.copy_from_slice(numbers);
        Some(())
    })?;
    let data = ArrayData::builder(array.data_type().clone()).len(array.len()).add_buffer(copy).build();
    data.ok().map(make_array)
}
