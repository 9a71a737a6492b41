//! CSV: units are runs of rows between two entries of an index. Rows are found and read by the same parser.

mod decode;
mod lines;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::csv::reader::Format;
use arrow::datatypes::{DataType, Field, Schema};
use regex::Regex;
use source::{Cancel, SourceError};

pub use lines::CsvLines;

use crate::columns::{choose, settled};
use crate::dataset::{Dataset, Opened};
use crate::files::{self, DataFile, Fingerprint};
use crate::index::IndexOptions;
use crate::indexed::{self, IndexedFiles, IndexedReader};
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
        Regex::new(&either).map_err(|error| SourceError::Invalid(format!("nulls: {error}")))
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
    let types = types_of(&found, &names, options, &null)?;
    let all = Schema::new(names.iter().zip(types).map(|(name, of)| Field::new(name, of, true)).collect::<Vec<_>>());
    let schema = Arc::new(Schema::new(settled(choose(&all, columns.as_deref(), &found.files[0])?)));
    let decoder = Decoder::new(all, schema.clone(), options.lines(), null, options.on_error);
    let (units, skipped) = (found.units(&decoder), std::mem::take(&mut found.skipped));
    let opened = Opened { schema, units, fingerprint: print.finish(), on_error: options.on_error, skipped };
    Ok(Dataset::new(IndexedReader { files: found, decoder }, opened))
}

/// The columns' names, which must be the same in all files. A file with others is left out where that is asked for.
fn names(found: &mut IndexedFiles, options: &Options) -> Result<Vec<String>, SourceError> {
    let (mut names, mut differ) = (None::<Vec<String>>, Vec::new());
    for (at, file) in found.files.iter().enumerate() {
        let Some(mine) = first_row(file, options)? else { continue };
        match &names {
            None => names = Some(mine),
            Some(names) if *names == mine => {}
            Some(names) => differ.push((at, drift(file, &found.files[0], names, &mine))),
        }
    }
    for (at, error) in differ {
        let rows = found.leave_out(at);
        found.skipped.skip(options.on_error, error, rows)?;
    }
    let names =
        names.ok_or_else(|| found.files[0].schema("there is no row, so that nobody knows what columns there are"))?;
    if options.header {
        return Ok(names);
    }
    Ok((1..=names.len()).map(|number| format!("column_{number}")).collect())
}

fn first_row(file: &DataFile, options: &Options) -> Result<Option<Vec<String>>, SourceError> {
    let row = lines::first_row(file, &options.lines())?;
    // Without a header only the number of fields has to be the same.
    Ok(row.map(|fields| if options.header { fields } else { vec![String::new(); fields.len()] }))
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
    let format =
        Format::default().with_delimiter(options.delimiter).with_quote(options.quote).with_null_regex(null.clone());
    let mut types = vec![DataType::Null; names.len()];
    found.sample(UNITS_LOOKED_AT, &mut |chunk| {
        // A row with too few or too many fields is an error when it is read; here it only says nothing.
        if let Ok((schema, _)) = format.infer_schema(chunk.bytes, None) {
            for (of, field) in types.iter_mut().zip(schema.fields()) {
                *of = either(of, field.data_type());
            }
        }
        Ok(())
    })?;
    let asked = |(name, of): (&String, DataType)| options.types.get(name).cloned().unwrap_or(of);
    Ok(names.iter().zip(types).map(asked).collect())
}

fn either(one: &DataType, other: &DataType) -> DataType {
    match (one, other) {
        _ if one == other => one.clone(),
        (DataType::Null, of) | (of, DataType::Null) => of.clone(),
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => DataType::Float64,
        _ => DataType::Utf8,
    }
}
