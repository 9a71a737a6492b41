//! Makes columns of rows.

use std::borrow::Cow;
use std::io::Cursor;
use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::csv::ReaderBuilder;
use arrow::datatypes::{Schema, SchemaRef};
use regex::Regex;
use source::SourceError;

use super::CsvLines;
use crate::OnError;
use crate::columns::conform;
use crate::dataset::{Part, is_skipped};
use crate::indexed::{Chunk, Decode};

pub(super) struct Decoder {
    schema: SchemaRef,
    lines: CsvLines,
    on_error: OnError,
    /// What may be wrong with all rows.
    pub(super) hint: Option<String>,
    builder: Box<dyn Fn() -> ReaderBuilder + Send + Sync>,
}

impl Decoder {
    pub(super) fn new(all: Schema, schema: SchemaRef, lines: CsvLines, null: Regex, on_error: OnError) -> Self {
        let read = |field: &arrow::datatypes::FieldRef| schema.field_with_name(field.name()).is_ok();
        let projection: Vec<usize> = (0..all.fields().len()).filter(|&at| read(&all.fields()[at])).collect();
        let all: SchemaRef = all.into();
        let builder = move || {
            ReaderBuilder::new(all.clone())
                .with_header(false)
                .with_delimiter(lines.delimiter)
                .with_quote(lines.quote)
                .with_null_regex(null.clone())
                .with_projection(projection.clone())
        };
        Self { schema, lines, on_error, hint: None, builder: Box::new(builder) }
    }

    fn read(&self, bytes: &[u8], rows: Range<usize>) -> Result<RecordBatch, String> {
        let builder = (self.builder)().with_bounds(rows.start, rows.end).with_batch_size(rows.len().max(1));
        let reader = builder.build_buffered(Cursor::new(bytes)).map_err(|error| error.to_string())?;
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let read: usize = batches.iter().map(RecordBatch::num_rows).sum();
        match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) if read == rows.len() => Ok(batch),
            _ => Err(format!("{read} rows are read where there are {}", rows.len())),
        }
    }

    /// The rows of a chunk that can be read.
    pub(super) fn readable<'a>(&self, chunk: &Chunk<'a>) -> Cow<'a, [u8]> {
        let is_right =
            |bytes: &[u8], rows| self.lines.stray_quote(bytes).is_none() && self.read(bytes, 0..rows).is_ok();
        if is_right(chunk.bytes, chunk.rows) {
            return chunk.bytes.into();
        }
        let rows = self.lines.places(chunk.bytes).into_iter().map(|(place, _)| &chunk.bytes[place]);
        rows.filter(|row| is_right(row, 1)).collect::<Vec<_>>().concat().into()
    }

    /// Reads rows one by one, to see which of them is wrong.
    fn one_by_one(&self, chunk: &Chunk<'_>, rows: Range<usize>) -> Result<Part, SourceError> {
        let mut trouble = None;
        let mut batches = Vec::new();
        for (place, _) in self.lines.places(chunk.bytes).into_iter().skip(rows.start).take(rows.len()) {
            let bytes = &chunk.bytes[place.clone()];
            let read = match self.lines.stray_quote(bytes) {
                Some(at) => Err(chunk.damaged(place.start + at, CsvLines::STRAY)),
                None => self.read(bytes, 0..1).map_err(|what| self.damaged(chunk, place.start, &what)),
            };
            match read.and_then(|batch| conform(&batch, &self.schema, 0, chunk.file)) {
                Ok(batch) => batches.push(batch),
                Err(error) if is_skipped(self.on_error, &error) => trouble = trouble.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        let batch = concat_batches(&self.schema, &batches).map_err(|error| chunk.damaged(0, error.to_string()))?;
        if batch.num_rows() == rows.len() || trouble.is_some() {
            return Ok(Part { batch, trouble });
        }
        Err(SourceError::Changed { path: chunk.file.path.clone() })
    }

    fn damaged(&self, chunk: &Chunk<'_>, at: usize, what: &str) -> SourceError {
        let what = what.split_once(" error: ").map_or(what, |(_, what)| what);
        // The library counts lines from where it began.
        let what = what.split(" at line ").next().unwrap_or(what).replace(" for line 1", "");
        let hint = match &self.hint {
            Some(hint) => format!("; {hint}"),
            None if what.contains("parsing") => "; types are those of a sample, unless types says what they are".into(),
            None => String::new(),
        };
        chunk.damaged(at, format!("{what}{hint}"))
    }
}

impl Decode for Decoder {
    fn decode(&self, chunk: &Chunk<'_>, rows: Range<usize>) -> Result<Part, SourceError> {
        // the parser that follows takes any quote for something
        if self.lines.stray_quote(chunk.bytes).is_some() {
            return self.one_by_one(chunk, rows);
        }
        match self.read(chunk.bytes, rows.clone()) {
            Ok(batch) => Ok(conform(&batch, &self.schema, 0, chunk.file)?.into()),
            Err(_) => self.one_by_one(chunk, rows),
        }
    }
}
