//! WebDataset: tar files in which files of the same name but for the ending are a sample.

mod tar;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Int64Builder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use source::{Cancel, SourceError};

use crate::OnError;
use crate::dataset::{Dataset, Part, is_skipped};
use crate::files::{self, Fingerprint};
use crate::index::scan::{Input, Row, Scan};
use crate::index::{IndexOptions, IndexedFormat};
use crate::indexed::{self, Chunk, Decode, IndexedFiles};
use tar::{Member, next_member};

/// The column of samples' names.
const KEY: &str = "__key__";

/// How many units are looked at to see which endings there are.
const UNITS_LOOKED_AT: usize = 16;

/// How a data set of tar files is read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The endings that become columns, in this order: one of several in `jpg;png`; `__key__` is the sample's name.
    /// Without, all that are in a sample of the data.
    pub columns: Option<Vec<String>>,
    /// What becomes of samples that cannot be read.
    pub on_error: OnError,
    /// Where indexes are.
    pub index: IndexOptions,
}

/// Opens the files that the patterns match as one data set.
///
/// # Errors
/// No file matches, one is not a tar file or compressed, or an index is missing or of another file.
pub fn open(paths: &[String], options: &Options, cancel: &Cancel) -> Result<Dataset, SourceError> {
    let found = files::find(paths, &["tar"])?;
    let mut print = Fingerprint::new("webdataset");
    print.files(&found);
    print.text(&format!("{:?}", options.columns));
    let found = indexed::find(found, &WebDataset, &options.index, options.on_error, cancel)?;
    let names = match &options.columns {
        Some(names) if names.is_empty() => return Err(SourceError::Invalid("columns has no name".into())),
        Some(names) => names.clone(),
        None => endings(&found, options.on_error)?,
    };
    let decoder = Decoder::new(names, options.on_error);
    let schema = decoder.schema.clone();
    Ok(found.dataset(decoder, schema, print.finish(), options.on_error))
}

/// The endings in a sample of the data, but for those of samples that are wrong.
fn endings(found: &IndexedFiles, on_error: OnError) -> Result<Vec<String>, SourceError> {
    let (mut endings, mut trouble) = (BTreeSet::new(), None);
    found.sample(UNITS_LOOKED_AT, &mut |chunk| {
        let samples = match samples(chunk) {
            Err(error) if is_skipped(on_error, &error) => return Ok(()),
            samples => samples?,
        };
        for (key, files) in samples {
            let names: Vec<String> = files.iter().map(|(ending, _)| ending.clone()).collect();
            match Decoder::new(names.clone(), on_error).values(chunk, &key, &files) {
                Ok(_) => endings.extend(names),
                Err(error) => trouble = trouble.take().or(Some(error)),
            }
        }
        Ok(())
    })?;
    if endings.is_empty() {
        let none = || SourceError::Invalid("there is no sample; say in columns which endings there are".into());
        return Err(trouble.unwrap_or_else(none));
    }
    Ok([KEY.to_owned()].into_iter().chain(endings).collect())
}

/// What a file of this ending has, by WebDataset's own conventions.
fn type_of(ending: &str) -> DataType {
    match ending.rsplit('.').next().unwrap_or(ending) {
        "cls" | "cls2" | "index" | "inx" | "id" => DataType::Int64,
        "txt" | "text" | "transcript" | "json" | KEY => DataType::Utf8,
        _ => DataType::Binary,
    }
}

/// The format, as far as an index is concerned.
#[derive(Clone, Copy, Debug)]
pub struct WebDataset;

impl IndexedFormat for WebDataset {
    fn name(&self) -> &'static str {
        "webdataset"
    }

    fn scanner(&self) -> Box<dyn Scan> {
        Box::new(Scanner { sample: None, end: 0, done: false })
    }
}

/// Where a sample ends is known when the next one begins, so that the scanner is one file ahead.
struct Scanner {
    sample: Option<String>,
    end: u64,
    done: bool,
}

impl Scan for Scanner {
    fn next(&mut self, input: &mut Input) -> Result<Option<Row>, SourceError> {
        let ended = |end| Ok(Some(Row { end, most: [0, 0] }));
        while !self.done {
            let member = match next_member(input) {
                Ok(Some(member)) => member,
                Ok(None) => break,
                // The files of a sample that came whole do not make a whole sample, unless another one begins.
                Err(error) => return Err(error),
            };
            let Some((key, _)) = split(&member.name) else { continue };
            let before = self.end;
            self.end = member.end();
            match &self.sample {
                Some(sample) if sample == key => {}
                Some(_) => {
                    self.sample = Some(key.to_owned());
                    return ended(before);
                }
                None => self.sample = Some(key.to_owned()),
            }
        }
        self.done = true;
        if self.sample.take().is_some() { ended(self.end) } else { Ok(None) }
    }
}

/// A sample's name and a file's ending: what is before and behind the first dot of the file's name.
fn split(path: &str) -> Option<(&str, &str)> {
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = name + path[name..].find('.')?;
    (dot > name).then(|| (&path[..dot], &path[dot + 1..]))
}

type Sample = Vec<(String, Member)>;

/// The samples of a chunk with their files, each where it begins.
fn samples(chunk: &Chunk<'_>) -> Result<Vec<(String, Sample)>, SourceError> {
    let mut samples: Vec<(String, Sample)> = Vec::new();
    let mut bytes = tar::Bytes { chunk, at: 0 };
    while let Some(member) = next_member(&mut bytes)? {
        let Some((key, ending)) = split(&member.name) else { continue };
        let file = (ending.to_lowercase(), member.clone());
        match samples.last_mut() {
            Some((last, files)) if last == key => files.push(file),
            _ => samples.push((key.to_owned(), vec![file])),
        }
    }
    Ok(samples)
}

struct Decoder {
    schema: SchemaRef,
    names: Vec<String>,
    on_error: OnError,
}

/// A value of a sample, before it is known whether all of them are right.
enum Value<'a> {
    Number(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    None,
}

impl Decoder {
    fn new(names: Vec<String>, on_error: OnError) -> Self {
        let fields: Vec<Field> = names.iter().map(|name| Field::new(name, type_of(name), true)).collect();
        Self { schema: Arc::new(Schema::new(fields)), names, on_error }
    }

    fn values<'a>(&self, chunk: &Chunk<'a>, key: &'a str, files: &Sample) -> Result<Vec<Value<'a>>, SourceError> {
        for (at, (ending, member)) in files.iter().enumerate() {
            if files[..at].iter().any(|(other, _)| other == ending) {
                return Err(chunk.file.damaged(member.start, format!("sample {key:?} has two files .{ending}")));
            }
        }
        self.names
            .iter()
            .zip(self.schema.fields())
            .map(|(name, field)| {
                if name == KEY {
                    return Ok(Value::Text(key));
                }
                let file = name.split(';').find_map(|ending| files.iter().find(|(other, _)| other == ending));
                let Some((_, member)) = file else { return Ok(Value::None) };
                let start = (member.data - chunk.offset) as usize;
                let bytes = &chunk.bytes[start..start + member.size as usize];
                let damaged = |what: &str| chunk.file.damaged(member.start, format!("{}: {what}", member.name));
                match field.data_type() {
                    DataType::Binary => Ok(Value::Bytes(bytes)),
                    of => {
                        let text = str::from_utf8(bytes).map_err(|_| damaged("is not valid UTF-8"))?;
                        if *of == DataType::Utf8 {
                            return Ok(Value::Text(text));
                        }
                        text.trim()
                            .parse()
                            .map(Value::Number)
                            .map_err(|_| damaged(&format!("{:?} is not an integer", text.trim())))
                    }
                }
            })
            .collect()
    }
}

enum Column {
    Numbers(Int64Builder),
    Texts(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Column {
    fn of(field: &Field) -> Self {
        match field.data_type() {
            DataType::Int64 => Self::Numbers(Int64Builder::new()),
            DataType::Utf8 => Self::Texts(StringBuilder::new()),
            _ => Self::Bytes(BinaryBuilder::new()),
        }
    }

    fn push(&mut self, value: &Value<'_>) {
        match (self, value) {
            (Self::Numbers(into), Value::Number(value)) => into.append_value(*value),
            (Self::Texts(into), Value::Text(value)) => into.append_value(value),
            (Self::Bytes(into), Value::Bytes(value)) => into.append_value(value),
            (Self::Numbers(into), _) => into.append_null(),
            (Self::Texts(into), _) => into.append_null(),
            (Self::Bytes(into), _) => into.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Numbers(mut values) => Arc::new(values.finish()),
            Self::Texts(mut values) => Arc::new(values.finish()),
            Self::Bytes(mut values) => Arc::new(values.finish()),
        }
    }
}

impl Decode for Decoder {
    fn decode(&self, chunk: &Chunk<'_>, rows: Range<usize>) -> Result<Part, SourceError> {
        let mut columns: Vec<Column> = self.schema.fields().iter().map(|field| Column::of(field)).collect();
        let samples = samples(chunk)?;
        let mut trouble = None;
        let asked = samples.get(rows).ok_or_else(|| SourceError::Changed { path: chunk.file.path.clone() })?;
        for (key, files) in asked {
            match self.values(chunk, key, files) {
                Ok(values) => columns.iter_mut().zip(&values).for_each(|(column, value)| column.push(value)),
                Err(error) if is_skipped(self.on_error, &error) => trouble = trouble.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        let batch = RecordBatch::try_new(self.schema.clone(), columns.into_iter().map(Column::finish).collect());
        Ok(Part { batch: batch.map_err(|error| chunk.damaged(0, error.to_string()))?, trouble })
    }
}
