//! LIBSVM: a row a line, `LABEL [qid:QUERY] INDEX:VALUE ... [# COMMENT]`, given sparse or dense.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use source::{Cancel, SourceError};

use crate::OnError;
use crate::dataset::{Dataset, Part, is_skipped};
use crate::files::{self, Fingerprint};
use crate::index::scan::{Input, Row, Scan};
use crate::index::{IndexOptions, IndexedFormat};
use crate::indexed::{self, Chunk, Decode};

/// How a data set of LIBSVM files is read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Rows are given as `x`, with this many numbers (0: as many as the greatest index says); else as `indices` and
    /// `values`.
    pub dense: Option<usize>,
    /// Whether the first feature is 0 and not 1; else whether any index is 0 tells, in a line that is not wrong.
    pub zero_based: Option<bool>,
    /// What becomes of damaged lines.
    pub on_error: OnError,
    /// Where indexes are.
    pub index: IndexOptions,
}

/// Numbers of a dense row, at most: 64 MB. Longer ones are barely meant, and take more memory than there may be.
pub const MOST_DENSE: usize = 1 << 24;

/// Opens the files that the patterns match as one data set.
///
/// # Errors
/// No file matches, one is compressed, or an index is missing or of another file.
pub fn open(paths: &[String], options: &Options, cancel: &Cancel) -> Result<Dataset, SourceError> {
    let found = files::find(paths, &["libsvm", "svm", "svmlight", "txt"])?;
    let mut print = Fingerprint::new("libsvm");
    print.files(&found);
    print.text(&format!("{:?} {:?}", options.dense, options.zero_based));
    let found = indexed::find(found, &LibSvm, &options.index, options.on_error, cancel)?;
    let [from_1, beyond_from_0] = found.most;
    let base = i64::from(!options.zero_based.unwrap_or(beyond_from_0 > 0));
    // where features begin at 1, lines with a 0 are wrong
    let greatest = if base == 1 { from_1 } else { from_1.max(beyond_from_0.saturating_sub(1)) };
    let dense =
        options.dense.map(|asked| if asked == 0 { (i64::from(greatest) + 1 - base).max(0) as usize } else { asked });
    if let Some(length) = dense.filter(|length| *length > MOST_DENSE) {
        let why = format!("dense: rows of {length} numbers are longer than {MOST_DENSE}: leave dense out");
        return Err(SourceError::Invalid(why));
    }
    let on_error = options.on_error;
    let mut decoder = Decoder { schema: schema(dense, false), dense, base, with_query: false, on_error };
    found.sample(1, &mut |chunk| {
        let mut rows = Rows::default();
        lines(chunk.bytes).for_each(|(_, line)| drop(decoder.push(line, &mut rows)));
        decoder.with_query = rows.queries.iter().any(Option::is_some);
        Ok(())
    })?;
    decoder.schema = schema(dense, decoder.with_query);
    let schema = decoder.schema.clone();
    Ok(found.dataset(decoder, schema, print.finish(), on_error))
}

fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", of, true))
}

fn schema(dense: Option<usize>, with_query: bool) -> SchemaRef {
    let mut fields = vec![Field::new("label", DataType::Float64, true)];
    if with_query {
        fields.push(Field::new("qid", DataType::Int64, true));
    }
    match dense {
        Some(length) => {
            fields.push(Field::new("x", DataType::FixedSizeList(item(DataType::Float32), length as i32), true))
        }
        None => {
            fields.push(Field::new("indices", DataType::List(item(DataType::Int32)), true));
            fields.push(Field::new("values", DataType::List(item(DataType::Float32)), true));
        }
    }
    Arc::new(Schema::new(fields))
}

/// The format, as far as an index is concerned: it keeps the greatest index of a feature in lines without a feature 0,
/// and one more than that in the others. Lines that are wrong do not count.
#[derive(Clone, Copy, Debug)]
pub struct LibSvm;

impl IndexedFormat for LibSvm {
    fn name(&self) -> &'static str {
        "libsvm"
    }

    fn settings(&self) -> String {
        "lines that are not wrong".into()
    }

    fn scanner(&self) -> Box<dyn Scan> {
        let (schema, dense) = (schema(None, true), Some(i32::MAX as usize + 1));
        let any = Decoder { schema, dense, base: 0, with_query: true, on_error: OnError::Raise };
        Box::new(Scanner { line: Vec::new(), any, row: Rows::default() })
    }
}

struct Scanner {
    line: Vec<u8>,
    /// Takes every line that is right for features from 0 or from 1 on.
    any: Decoder,
    row: Rows,
}

impl Scanner {
    /// What the index keeps of a line.
    fn extremes(&mut self) -> [u32; 2] {
        self.row.indices.clear();
        self.row.values.clear();
        if self.any.entries(content(&self.line), &mut self.row).is_err() {
            return [0, 0];
        }
        let greatest = self.row.indices.iter().max().map_or(0, |&index| index as u32);
        if self.row.indices.contains(&0) { [0, greatest + 1] } else { [greatest, 0] }
    }
}

impl Scan for Scanner {
    fn next(&mut self, input: &mut Input) -> Result<Option<Row>, SourceError> {
        loop {
            self.line.clear();
            loop {
                let buffered = input.buffered()?;
                let end = memchr::memchr(b'\n', buffered);
                let read = end.map_or(buffered.len(), |end| end + 1);
                self.line.extend(&buffered[..read]);
                input.consume(read);
                if end.is_some() || read == 0 {
                    break;
                }
            }
            if self.line.is_empty() {
                return Ok(None);
            }
            if !content(&self.line).is_empty() {
                return Ok(Some(Row { end: input.position(), most: self.extremes() }));
            }
        }
    }
}

/// What of a line is no comment.
fn content(line: &[u8]) -> &[u8] {
    memchr::memchr(b'#', line).map_or(line, |comment| &line[..comment]).trim_ascii()
}

/// The lines with something in them, and where they begin.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    let all = bytes.split_inclusive(|&byte| byte == b'\n').map(move |line| {
        start += line.len();
        (start - line.len(), content(line))
    });
    all.filter(|(_, line)| !line.is_empty())
}

struct Decoder {
    schema: SchemaRef,
    dense: Option<usize>,
    base: i64,
    with_query: bool,
    on_error: OnError,
}

/// Rows so far, one behind the other.
#[derive(Default)]
struct Rows {
    labels: Vec<f64>,
    queries: Vec<Option<i64>>,
    indices: Vec<i32>,
    values: Vec<f32>,
    ends: Vec<i32>,
}

impl Decoder {
    /// Adds a line. One that is wrong leaves no trace.
    fn push(&self, line: &[u8], rows: &mut Rows) -> Result<(), String> {
        let before = rows.indices.len();
        let added = self.entries(line, rows);
        match added {
            Ok((label, query)) => {
                rows.labels.push(label);
                rows.queries.push(query);
                rows.ends.push(rows.indices.len() as i32);
                Ok(())
            }
            Err(what) => {
                rows.indices.truncate(before);
                rows.values.truncate(before);
                Err(what)
            }
        }
    }

    fn entries(&self, line: &[u8], rows: &mut Rows) -> Result<(f64, Option<i64>), String> {
        let line = str::from_utf8(line).map_err(|_| "the line is not valid UTF-8")?;
        let mut words = line.split_ascii_whitespace();
        let label = words.next().unwrap_or_default();
        let label = label.parse().map_err(|_| match label.strip_prefix('\u{feff}') {
            Some(_) => {
                "the file begins with a byte order mark (BOM), which LIBSVM files do not have: remove its first \
                        three bytes, as with tail -c +4 FILE"
                    .to_owned()
            }
            None => format!("the label {label:?} is not a number"),
        })?;
        let (mut query, begin, mut greatest) = (None, rows.indices.len(), -1);
        for word in words {
            let (index, value) = word.split_once(':').ok_or_else(|| format!("{word:?} is not INDEX:VALUE"))?;
            if index == "qid" {
                query = Some(value.parse().map_err(|_| format!("{word:?} is not a query's number"))?);
                continue;
            }
            let place = index.parse::<i64>().map_err(|_| format!("{word:?} has no index"))? - self.base;
            let value = value.parse().map_err(|_| format!("{word:?} has no number"))?;
            let limit = self.dense.map_or(i64::from(i32::MAX), |length| length as i64);
            if place < 0 || place >= limit {
                let last = limit - 1 + self.base;
                let hint = if place == -1 { "; if features begin at 0, say zero_based=True" } else { "" };
                return Err(format!("the index of {word:?} is not from {} to {last}{hint}", self.base));
            }
            // Most files have them in order.
            if place <= greatest && rows.indices[begin..].contains(&(place as i32)) {
                return Err(format!("the index of {word:?} appears twice"));
            }
            greatest = greatest.max(place);
            rows.indices.push(place as i32);
            rows.values.push(value);
        }
        Ok((label, query))
    }

    fn columns(&self, rows: Rows) -> Vec<ArrayRef> {
        let count = rows.labels.len();
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Float64Array::from(rows.labels))];
        if self.with_query {
            columns.push(Arc::new(Int64Array::from(rows.queries)));
        }
        let Some(length) = self.dense else {
            let offsets = OffsetBuffer::new([0].into_iter().chain(rows.ends).collect::<Vec<_>>().into());
            let (indices, values) = (Int32Array::from(rows.indices), Float32Array::from(rows.values));
            columns.push(Arc::new(ListArray::new(item(DataType::Int32), offsets.clone(), Arc::new(indices), None)));
            columns.push(Arc::new(ListArray::new(item(DataType::Float32), offsets, Arc::new(values), None)));
            return columns;
        };
        let mut dense = vec![0.0; count * length];
        let mut entry = 0;
        for (row, &end) in rows.ends.iter().enumerate() {
            for at in entry..end as usize {
                dense[row * length + rows.indices[at] as usize] = rows.values[at];
            }
            entry = end as usize;
        }
        let values = Arc::new(Float32Array::from(dense));
        let list = FixedSizeListArray::try_new_with_length(item(DataType::Float32), length as i32, values, None, count);
        columns.push(Arc::new(list.expect("as many numbers as rows have were made")));
        columns
    }
}

impl Decode for Decoder {
    fn decode(&self, chunk: &Chunk<'_>, rows: Range<usize>) -> Result<Part, SourceError> {
        let (mut read, mut trouble, mut seen) = (Rows::default(), None, 0);
        for (at, line) in lines(chunk.bytes).skip(rows.start).take(rows.len()) {
            seen += 1;
            match self.push(line, &mut read).map_err(|what| chunk.damaged(at, what)) {
                Ok(()) => {}
                Err(error) if is_skipped(self.on_error, &error) => trouble = trouble.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        if seen != rows.len() {
            return Err(SourceError::Changed { path: chunk.file.path.clone() });
        }
        let batch = RecordBatch::try_new(self.schema.clone(), self.columns(read));
        Ok(Part { batch: batch.map_err(|error| chunk.damaged(0, error.to_string()))?, trouble })
    }
}
