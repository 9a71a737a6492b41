//! CSV: units are runs of rows between two entries of an index. Rows are found and read by the same parser.
//!
//! Types are those of a sample of rows that can be read: a row that is an error, or is skipped, says nothing of them.

mod decode;
mod lines;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Schema};
use regex::Regex;
use source::{Cancel, SourceError};

pub use lines::CsvLines;

use crate::columns::choose;
use crate::dataset::Dataset;
use crate::files::{self, DataFile, Fingerprint};
use crate::index::IndexOptions;
use crate::indexed::{self, IndexedFiles};
use crate::{OnError, index};
use decode::Decoder;

/// How many units are looked at to see which types the columns have.
const UNITS_LOOKED_AT: usize = 32;

/// How a data set of CSV files is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// The columns, in this order; all of them without.
    pub columns: Option<Vec<String>>,
    /// Whether the first row of each file has the columns' names. Without, they are `column_1` and so on.
    pub header: bool,
    /// What is between two values.
    pub delimiter: u8,
    /// What is around values that have a delimiter or an end of line.
    pub quote: u8,
    /// Types of columns, which else are those of a sample.
    pub types: BTreeMap<String, DataType>,
    /// Words that stand for a missing value, as an empty field always does.
    pub nulls: Vec<String>,
    /// What becomes of rows that do not fit.
    pub on_error: OnError,
    /// Where indexes are.
    pub index: IndexOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            columns: None,
            header: true,
            delimiter: b',',
            quote: b'"',
            types: BTreeMap::new(),
            nulls: Vec::new(),
            on_error: OnError::Raise,
            index: IndexOptions::default(),
        }
    }
}

impl Options {
    /// What an index of such a file depends on.
    pub fn lines(&self) -> CsvLines {
        CsvLines { header: self.header, delimiter: self.delimiter, quote: self.quote }
    }

    fn null(&self) -> Result<Regex, SourceError> {
        let words: Vec<String> = self.nulls.iter().map(|word| regex::escape(word)).collect();
        let either = format!("^(|{})$", words.join("|"));
        Regex::new(&either).map_err(|error| SourceError::Invalid(format!("null_values: {error}")))
    }
}

/// Opens the files that the patterns match as one data set.
///
/// # Errors
/// No file matches, one is compressed, headers differ, or an index is missing or of another file.
pub fn open(paths: &[String], options: &Options, cancel: &Cancel) -> Result<Dataset, SourceError> {
    let found = files::find(paths, &["csv", "tsv"])?;
    let mut print = Fingerprint::new("csv");
    print.files(&found);
    let Options { columns, header, delimiter, quote, types, nulls, .. } = options;
    print.text(&format!("{columns:?} {header} {delimiter} {quote} {types:?} {nulls:?}"));
    let format: &dyn index::IndexedFormat = &options.lines();
    let mut found = indexed::find(found, format, &options.index, options.on_error, cancel)?;
    let null = options.null()?;
    let names = names(&mut found, options)?;
    let hint = other_delimiter(&found, &names, options)?;
    let types = types_of(&found, &names, options, &null)?;
    let all = schema_of(&names, types);
    let chosen = choose(&all, columns.as_deref(), &found.files[0]).map_err(|error| match (error, &hint) {
        (SourceError::Schema { path, what }, Some(hint)) => {
            SourceError::Schema { path, what: format!("{what}; {hint}") }
        }
        (error, _) => error,
    });
    let schema = Arc::new(Schema::new(chosen?));
    let mut decoder = Decoder::new(all, schema.clone(), options.lines(), null, options.on_error);
    found.skipped.messages.extend(hint.iter().map(|hint| format!("{}: {hint}", found.files[0].path.display())));
    decoder.hint = hint;
    Ok(found.dataset(decoder, schema, print.finish(), options.on_error))
}

fn schema_of(names: &[String], types: impl IntoIterator<Item = DataType>) -> Schema {
    Schema::new(names.iter().zip(types).map(|(name, of)| Field::new(name, of, true)).collect::<Vec<_>>())
}

/// The columns' names, which must be the same in all files. A file with others is left out where that is asked for.
fn names(found: &mut IndexedFiles, options: &Options) -> Result<Vec<String>, SourceError> {
    let (mut names, mut differ) = (None::<(usize, Vec<String>)>, Vec::new());
    for at in 0..found.files.len() {
        let file = &found.files[at];
        let mine = match options.header {
            true => lines::first_row(file, &options.lines()),
            // Without a header only the number of fields has to be the same.
            false => width(found, at, &options.lines()).map(|width| width.map(|width| vec![String::new(); width])),
        };
        match (mine, &names) {
            (Ok(None), _) => {}
            (Ok(Some(mine)), None) => names = Some((at, mine)),
            (Ok(Some(mine)), Some((_, names))) if *names == mine => {}
            (Ok(Some(mine)), Some((first, names))) => {
                differ.push((at, drift(file, &found.files[*first], names, &mine)));
            }
            (Err(error), _) => differ.push((at, error)),
        }
    }
    for (at, error) in differ {
        let rows = found.leave_out(at);
        found.skipped.skip(options.on_error, error, rows)?;
    }
    let (_, names) =
        names.ok_or_else(|| found.files[0].schema("there is no row, so that no one knows what columns there are"))?;
    if options.header {
        return Ok(names);
    }
    Ok((1..=names.len()).map(|number| format!("column_{number}")).collect())
}

/// A hint, if there is one column, in whose name, or first rows, another character looks like the delimiter.
fn other_delimiter(found: &IndexedFiles, names: &[String], options: &Options) -> Result<Option<String>, SourceError> {
    let [name] = names else { return Ok(None) };
    let mut text = name.clone().into_bytes();
    if !options.header {
        found.sample(1, &mut |chunk| {
            text = chunk.bytes.split(|&byte| byte == b'\n').next().unwrap_or_default().to_vec();
            Ok(())
        })?;
    }
    let other = [';', '\t', '|', ','].into_iter().find(|&other| text.contains(&(other as u8)));
    Ok(other.filter(|&other| other as u8 != options.delimiter).map(|other| {
        let delimiter = char::from(options.delimiter);
        format!("there is one column where {delimiter:?} is between values: is delimiter={other:?} meant?")
    }))
}

/// The number of fields that most of a file's first rows have; None if there is no row.
fn width(found: &IndexedFiles, file: usize, lines: &CsvLines) -> Result<Option<usize>, SourceError> {
    let mut rows_of_width = BTreeMap::<_, usize>::new();
    found.first_of(file, &mut |chunk| {
        for (place, fields) in lines.places(chunk.bytes) {
            let is_right = lines.stray_quote(&chunk.bytes[place]).is_none();
            *rows_of_width.entry((is_right, fields)).or_default() += 1;
        }
        Ok(())
    })?;
    let most = rows_of_width.into_iter().max_by_key(|&((is_right, _), rows)| (is_right, rows));
    Ok(most.map(|((_, fields), _)| fields))
}

fn drift(file: &DataFile, first: &DataFile, names: &[String], mine: &[String]) -> SourceError {
    let first = first.path.display();
    let what = match names.iter().zip(mine).find(|(name, mine)| name != mine) {
        Some((name, mine)) => format!("column {mine:?} is where {first} has {name:?}"),
        None => format!("has {} columns, {first} has {}", mine.len(), names.len()),
    };
    file.schema(what)
}

/// The columns' types: as asked for, or the narrowest that takes all values of the sample.
fn types_of(
    found: &IndexedFiles,
    names: &[String],
    options: &Options,
    null: &Regex,
) -> Result<Vec<DataType>, SourceError> {
    if let Some(name) = options.types.keys().find(|name| !names.contains(name)) {
        return Err(SourceError::Invalid(format!(
            "types: there is no column {name:?}; there are {}",
            names.join(", ")
        )));
    }
    let as_text = |name| options.types.get(name).cloned().unwrap_or(DataType::Utf8);
    let all = schema_of(names, names.iter().map(as_text));
    let decoder = Decoder::new(all.clone(), all.into(), options.lines(), null.clone(), OnError::Skip);
    let format = Format::default().with_delimiter(options.delimiter).with_quote(options.quote);
    let (plain, with_words) = (format.clone().with_null_regex(null.clone()), format.with_null_regex(words(null)?));
    let mut types = vec![DataType::Null; names.len()];
    found.sample(UNITS_LOOKED_AT, &mut |chunk| {
        let rows = decoder.readable(chunk);
        let infer = |format: &Format| format.infer_schema(&*rows, None).map_err(|error| error.to_string());
        let inferred = infer(&plain).and_then(|(schema, _)| Ok((schema, infer(&with_words)?.0)));
        let (schema, without) = inferred.map_err(|what| chunk.damaged(0, what))?;
        for ((of, field), without) in types.iter_mut().zip(schema.fields()).zip(without.fields()) {
            let is_number = matches!(without.data_type(), DataType::Null | DataType::Int64 | DataType::Float64);
            let mine = match field.data_type() {
                DataType::Utf8 if is_number => &DataType::Float64,
                other => other,
            };
            *of = either(of, mine);
        }
        Ok(())
    })?;
    let asked = |(name, of): (&String, DataType)| match options.types.get(name) {
        Some(asked) => asked.clone(),
        // a value that comes later is a number, or an error
        None if of == DataType::Null => DataType::Float64,
        None => of,
    };
    Ok(names.iter().zip(types).map(asked).collect())
}

/// What is missing, or one of the words that are numbers: COPY writes `Infinity`, and others `inf`.
fn words(null: &Regex) -> Result<Regex, SourceError> {
    let either = format!("{null}|^[+-]?(?i:inf|infinity|nan)$");
    Regex::new(&either).map_err(|error| SourceError::Invalid(format!("null_values: {error}")))
}

fn either(one: &DataType, other: &DataType) -> DataType {
    match (one, other) {
        _ if one == other => one.clone(),
        (DataType::Null, of) | (of, DataType::Null) => of.clone(),
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => DataType::Float64,
        _ => DataType::Utf8,
    }
}
