//! TFRecord: records with checksums, each as its bytes or decoded as a `tf.train.Example`.
//!
//! A record is its length (8 bytes), a checksum of that (4), the bytes, a checksum of them (4). Checksums are CRC-32C,
//! rotated and moved by a constant.

mod columns;
mod example;
mod index;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use source::{Cancel, SourceError};

pub use columns::{Feature, Kind, Length};
pub use index::TfRecord;

use crate::dataset::{Dataset, Part, is_skipped};
use crate::files::{self, Fingerprint};
use crate::index::IndexOptions;
use crate::indexed::{self, Chunk, Decode, IndexedFiles};
use crate::{OnError, tfrecord};

/// The column of whole records.
const RECORD: &str = "record";

/// How many units are looked at to see which features there are.
const UNITS_LOOKED_AT: usize = 16;

/// How a data set of TFRecord files is read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The features that become columns, in this order; without, all that are in a sample of the records.
    pub features: Option<Vec<Feature>>,
    /// Of those, the ones with these names.
    pub columns: Option<Vec<String>>,
    /// Give the bytes of records, and do not decode them.
    pub raw: bool,
    /// Features that have the same number of values in the sample are given so; else all are lists.
    pub fixed_lists: bool,
    /// What becomes of damaged records.
    pub on_error: OnError,
    /// Where indexes are.
    pub index: IndexOptions,
}

/// Opens the files that the patterns match as one data set.
///
/// # Errors
/// No file matches, an index is missing or of another file, or the records are no examples.
pub fn open(paths: &[String], options: &Options, cancel: &Cancel) -> Result<Dataset, SourceError> {
    let found = files::find(paths, &["tfrecord", "tfrecords"])?;
    let mut print = Fingerprint::new("tfrecord");
    print.files(&found);
    print.text(&format!("{:?} {:?} {} {}", options.features, options.columns, options.raw, options.fixed_lists));
    let found = indexed::find(found, &TfRecord, &options.index, options.on_error, cancel)?;
    let decoder = if options.raw { Decoder::raw(options) } else { Decoder::of_examples(&found, options)? };
    let schema = decoder.schema.clone();
    Ok(found.dataset(decoder, schema, print.finish(), options.on_error))
}

struct Decoder {
    schema: SchemaRef,
    /// None: records are given as they are.
    features: Option<Vec<Feature>>,
    on_error: OnError,
}

impl Decoder {
    fn raw(options: &Options) -> Self {
        let schema = Arc::new(Schema::new(vec![Field::new(RECORD, DataType::Binary, true)]));
        Self { schema, features: None, on_error: options.on_error }
    }

    fn of_examples(found: &IndexedFiles, options: &Options) -> Result<Self, SourceError> {
        let mut features = match &options.features {
            Some(features) => features.clone(),
            None => {
                let columns = options.columns.as_deref();
                tfrecord::columns::look(found, options.fixed_lists, columns, options.on_error, UNITS_LOOKED_AT)?
            }
        };
        if let Some(columns) = &options.columns {
            features = columns
                .iter()
                .map(|name| {
                    let feature = features.iter().find(|feature| feature.name == *name);
                    feature.cloned().ok_or_else(|| {
                        let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
                        SourceError::Invalid(format!(
                            "no record has a feature {name:?}; there are {}",
                            names.join(", ")
                        ))
                    })
                })
                .collect::<Result<_, _>>()?;
        }
        let fields: Vec<Field> = features.iter().map(Feature::field).collect();
        Ok(Self { schema: Arc::new(Schema::new(fields)), features: Some(features), on_error: options.on_error })
    }
}

impl Decode for Decoder {
    fn decode(&self, chunk: &Chunk<'_>, rows: Range<usize>) -> Result<Part, SourceError> {
        let mut trouble = None;
        let mut columns = Columns::new(self);
        let mut records = Records::of(chunk);
        for record in records.by_ref().skip(rows.start).take(rows.len()) {
            let added = record.and_then(|record| {
                let bytes = record.checked(chunk)?;
                columns.push(bytes).map_err(|what| chunk.damaged(record.at, what))
            });
            match added {
                Ok(()) => {}
                Err(error) if is_skipped(self.on_error, &error) => trouble = trouble.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        if rows.end == chunk.rows && records.at < chunk.bytes.len() {
            let what = format!("there are more than the {} records that the index knows here", chunk.rows);
            return Err(chunk.damaged(records.at, what));
        }
        let batch = RecordBatch::try_new(self.schema.clone(), columns.finish());
        let batch = batch.map_err(|error| chunk.damaged(0, error.to_string()))?;
        let missing = rows.len() != batch.num_rows() && trouble.is_none();
        if missing { Err(SourceError::Changed { path: chunk.file.path.clone() }) } else { Ok(Part { batch, trouble }) }
    }
}

/// The columns being filled.
enum Columns<'a> {
    Raw(BinaryBuilder),
    Examples(columns::Builder<'a>),
}

impl<'a> Columns<'a> {
    fn new(decoder: &'a Decoder) -> Self {
        match &decoder.features {
            None => Self::Raw(BinaryBuilder::new()),
            Some(features) => Self::Examples(columns::Builder::new(features)),
        }
    }

    fn push(&mut self, record: &[u8]) -> Result<(), String> {
        match self {
            Self::Raw(records) => {
                records.append_value(record);
                Ok(())
            }
            Self::Examples(builder) => builder.push(record),
        }
    }

    fn finish(self) -> Vec<ArrayRef> {
        match self {
            Self::Raw(mut records) => vec![Arc::new(records.finish())],
            Self::Examples(builder) => builder.finish(),
        }
    }
}

/// A record of a chunk.
#[derive(Clone, Copy)]
struct Record<'a> {
    /// Where in the chunk it begins.
    at: usize,
    bytes: &'a [u8],
    checksum: u32,
}

impl<'a> Record<'a> {
    fn checked(&self, chunk: &Chunk<'_>) -> Result<&'a [u8], SourceError> {
        if masked_checksum(self.bytes) != self.checksum {
            return Err(chunk.damaged(self.at, "the record's checksum is wrong"));
        }
        Ok(self.bytes)
    }
}

/// The records of a chunk, one after the other. Behind a damaged length nothing is found any more.
struct Records<'a> {
    chunk: &'a Chunk<'a>,
    at: usize,
}

impl<'a> Records<'a> {
    fn of(chunk: &'a Chunk<'a>) -> Self {
        Self { chunk, at: 0 }
    }

    fn read(&self) -> Option<Record<'a>> {
        let bytes = self.chunk.bytes.get(self.at..)?;
        let length = checked_length(bytes.get(..12)?.try_into().ok()?)?;
        let length = usize::try_from(length).ok()?;
        let checksum = bytes.get(length.checked_add(12)?..length.checked_add(16)?)?;
        Some(Record {
            at: self.at,
            bytes: &bytes[12..12 + length],
            checksum: u32::from_le_bytes(checksum.try_into().ok()?),
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.chunk.bytes.len() {
            return None;
        }
        let at = self.at;
        Some(match self.read() {
            Some(record) => {
                self.at += record.bytes.len() + 16;
                Ok(record)
            }
            None => {
                self.at = self.chunk.bytes.len();
                Err(self.chunk.damaged(at, "the length of the record is wrong"))
            }
        })
    }
}

/// The length in a record's first twelve bytes, if its checksum is right.
fn checked_length(header: [u8; 12]) -> Option<u64> {
    let (length, checksum) = header.split_at(8);
    let right = masked_checksum(length).to_le_bytes() == checksum;
    right.then(|| {
        u64::from_le_bytes([header[0], header[1], header[2], header[3], header[4], header[5], header[6], header[7]])
    })
}

fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}
