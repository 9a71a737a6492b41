//! corgipile_compress(): makes a table of compressed mini-batches. corgipile_compression_report():
//! compares the encodings.

use decode::compressed_type;
use decode::default_features::Takes;
use decode::is_vector;
use errors::limits::MAX_WEIGHTS;
use errors::{ArgumentError, ModelError, OrRaise, Result, TocError, TrainingError};
use model::extension_lock::keep_extension;
use options::columns::OtherColumns;
use options::columns::check_features;
use options::parse::argument_choice;
use options::rows::NullRows;
use options::shuffling::Shuffling;
use pg::call::arguments::Arguments;
use pg::call::function::Call;
use pg::call::spi::{Connection, Sees};
use pg::catalog::names::quote_identifier;
use pg::catalog::new_table::NewName;
use pg::catalog::types::qualified_type_name;
use pg::values::array::AnyArray;
use pg::values::varlena::{Bytes, Value};
use pg::{check_for_interrupts, require_utf8};
use pgrx::prelude::*;
use scan::Source;
use scan::mini_batches::{BatchSpec, MiniBatches};
use serde_json::{Map, Value as Json, json};
use shuffle::BufferSize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use toc::{Encoding, Rows};

/// The largest number of rows of a mini-batch.
const MAX_ROWS: i32 = 1_000_000;

/// Bytes of the buffer in which rows are mixed, at least: it is needed only once.
const MIXED: u64 = 256 << 20;

/// Mini-batches that a report looks at.
const REPORTED: u64 = 1000;

/// The arguments about the source, which both functions have.
struct CompressRequest {
    source: String,
    label: String,
    features: Option<Vec<String>>,
    batch_rows: usize,
    nulls: NullRows,
    index_base: u32,
    dimensions: Option<usize>,
    shuffling: Shuffling,
}

struct Places {
    label: usize,
    features: usize,
    batch_rows: usize,
    order: usize,
    /// and behind it index_base, dimensions, nulls
    seed: usize,
}

impl CompressRequest {
    fn of(arguments: &Arguments, places: &Places) -> Result<CompressRequest> {
        require_utf8()?;
        let label: String = arguments.get(places.label).ok_or(ArgumentError::NullArgument("label"))?;
        let features: Option<Vec<Option<String>>> = arguments.get(places.features);
        let features = features.map(|names| check_features(names, &label)).transpose()?;
        let order: String = arguments.get(places.order).ok_or(ArgumentError::NullArgument("shuffle"))?;
        let shuffling = Shuffling::parse(Some(order), arguments.get(places.seed), None, None)?;
        if !shuffling.strategy.permutes() {
            let reason = format!("{} returns some rows twice and others never", shuffling.strategy);
            return Err(ArgumentError::InvalidArgument { argument: "shuffle", reason, hint: None }.into());
        }
        let index_base = within("index_base", arguments.get(places.seed + 1), 0..=1)?;
        let dimensions: Option<i32> = arguments.get(places.seed + 2);
        let dimensions =
            dimensions.map(|given| within("dimensions", Some(given), 1..=MAX_WEIGHTS as i32)).transpose()?;
        let nulls: String = arguments.get(places.seed + 3).ok_or(ArgumentError::NullArgument("nulls"))?;
        Ok(CompressRequest {
            source: arguments.get(0).ok_or(ArgumentError::NullArgument("source"))?,
            label,
            features,
            batch_rows: within("batch_rows", arguments.get(places.batch_rows), 1..=MAX_ROWS)? as usize,
            nulls: argument_choice("nulls", &nulls)?,
            index_base: index_base as u32,
            dimensions: dimensions.map(|dimensions| dimensions as usize),
            shuffling,
        })
    }

    /// The features, and the source.
    fn resolve(&mut self) -> Result<(Source, Vec<String>)> {
        let mut source = Source::resolve(&self.source)?;
        // rows that share a mini-batch stay together for good, and a buffer of a few pages would barely mix them
        self.shuffling.buffer_size = match source.bytes() {
            Some(bytes) if bytes / 10 >= MIXED => BufferSize::Percent(10.0),
            _ => BufferSize::Bytes(MIXED),
        };
        let features =
            source.features(self.features.as_deref(), &self.label, &OtherColumns::default(), Takes::Numbers)?;
        Ok((source, features))
    }

    /// The name of the column of compressed features: that of the only column of vectors, if there is one.
    fn matrices_name<'a>(&self, source: &Source, features: &'a [String]) -> Result<&'a str> {
        Ok(match features {
            [only] if is_vector(source.type_of(only)?) => only,
            _ if self.label == "features" => "compressed_features",
            _ => "features",
        })
    }

    fn spec<'a>(&'a self, features: &'a [String]) -> BatchSpec<'a> {
        BatchSpec {
            label: &self.label,
            features,
            nulls: self.nulls,
            index_base: self.index_base,
            dimensions: self.dimensions,
        }
    }
}

fn within(argument: &'static str, given: Option<i32>, range: std::ops::RangeInclusive<i32>) -> Result<i32> {
    let number = given.ok_or(ArgumentError::NullArgument(argument))?;
    if range.contains(&number) {
        return Ok(number);
    }
    let reason = format!("{number} is not between {} and {}", range.start(), range.end());
    Err(ArgumentError::InvalidArgument { argument, reason, hint: None }.into())
}

/// The encoding with this name; None is the smallest of each mini-batch.
pub fn encoding(name: &str) -> Result<Option<Encoding>> {
    if name.eq_ignore_ascii_case("auto") {
        return Ok(None);
    }
    name.parse().map(Some).map_err(|_| {
        let names: Vec<String> = Encoding::ALL.iter().map(Encoding::to_string).collect();
        ArgumentError::Unknown {
            what: "encodings",
            given: name.to_owned(),
            known: format!("auto, {}", names.join(", ")),
        }
        .into()
    })
}

/// Numbers that an encoding may have to hold: compressing them takes seconds.
const MAX_NUMBERS: u64 = 1 << 24;

/// The bytes of a mini-batch.
pub fn encode(rows: &toc::Rows, encoding: Option<Encoding>) -> Result<Vec<u8>> {
    let holds_zeros = matches!(encoding, Some(Encoding::Den | Encoding::Dvi | Encoding::Gzip | Encoding::Snappy));
    let numbers = if holds_zeros { rows.len() as u64 * rows.columns() as u64 } else { rows.nnz() as u64 };
    if numbers > MAX_NUMBERS {
        let zeros = if holds_zeros { "" } else { " other than 0" };
        return Err(
            TocError::NotCompressible(format!("it has {numbers} numbers{zeros}, more than {MAX_NUMBERS}")).into()
        );
    }
    let encoded = match encoding {
        Some(encoding) => toc::encode(rows, encoding),
        None => toc::encode_smallest(rows),
    };
    encoded.map_err(|error| TocError::NotCompressible(error.to_string()).into())
}

/// Totals of the table that was written.
#[derive(Default)]
struct Written {
    seed: i64,
    batches: i64,
    rows: i64,
    cells: f64,
    bytes: i64,
    skipped: u64,
    /// mini-batches by their encoding
    encodings: BTreeMap<String, i64>,
    time: Duration,
}

#[pg_extern(sql = false)]
fn corgipile_compress(call: Call<'_>) -> Value<'_> {
    let written = compress(&call.arguments()).or_raise();
    let encodings: Map<String, Json> = written.encodings.into_iter().map(|(name, n)| (name, json!(n))).collect();
    call.row(&[
        written.batches.into(),
        written.rows.into(),
        written.bytes.into(),
        (written.bytes > 0).then(|| written.cells * 8.0 / written.bytes as f64).into(),
        written.time.as_secs_f64().into(),
        (written.skipped as i64).into(),
        Json::Object(encodings).into(),
        written.seed.into(),
    ])
}

/// The definition of the column of labels, and its type.
fn labels_column(name: &str, label_type: pg_sys::Oid) -> Result<(String, pg_sys::Oid)> {
    let type_name = qualified_type_name(label_type);
    let definition = format!("{} {type_name}[] NOT NULL", quote_identifier(name));
    Ok((definition, AnyArray::of_elements(label_type).ok_or(TocError::LabelArray(type_name))?))
}

/// Reads the source and writes the table.
fn compress(arguments: &Arguments) -> Result<Written> {
    let start = Instant::now();
    model::table::check_is_own("corgipile_compress()");
    keep_extension();
    let places = Places { label: 2, features: 3, batch_rows: 4, order: 6, seed: 7 };
    let mut request = CompressRequest::of(arguments, &places)?;
    let destination: String = arguments.get(1).ok_or(ArgumentError::NullArgument("destination"))?;
    let encoding = encoding(&arguments.get::<String>(5).ok_or(ArgumentError::NullArgument("encoding"))?)?;
    let not_a_name = || {
        let reason = "it is not a name of one or two parts".into();
        ArgumentError::InvalidArgument { argument: "destination", reason, hint: None }
    };
    let destination = NewName::read(&destination)?.ok_or_else(not_a_name)?;
    let (source, features) = request.resolve()?;
    let mut batches = MiniBatches::open(&source, &request.spec(&features), &request.shuffling)?;
    if batches.must_count() {
        batches.count()?;
    }
    let connection = Connection::open();
    let toc_type = compressed_type().ok_or(ModelError::NoModelTable("corgipile.toc".into()))?;
    let columns = [
        labels_column(&request.label, batches.label().type_oid)?,
        (format!("{} corgipile.toc NOT NULL", quote_identifier(request.matrices_name(&source, &features)?)), toc_type),
    ];
    let table = destination.create(&connection, &columns, Sees::AndOwn)?;
    let mut written = Written { seed: request.shuffling.seed, ..Written::default() };
    while let Some((labels, rows)) = batches.next(request.batch_rows)? {
        check_for_interrupts();
        let bytes = encode(rows, encoding)?;
        let info = toc::info(&bytes).map_err(|error| TocError::NotCompressible(error.to_string()))?;
        written.batches += 1;
        written.rows += rows.len() as i64;
        written.cells += rows.len() as f64 * rows.columns() as f64;
        written.bytes += bytes.len() as i64;
        *written.encodings.entry(info.encoding.to_string()).or_default() += 1;
        let value = Bytes::new(connection.context(), &bytes)?;
        table.insert(&[labels.typed(), value.typed(toc_type)]);
        value.free();
    }
    written.skipped = batches.skipped();
    batches.finish();
    table.finish();
    connection.close();
    if written.rows == 0 {
        return Err(TrainingError::NoRows("compress").into());
    }
    written.time = start.elapsed();
    Ok(written)
}

/// Totals of an encoding over the mini-batches of a sample.
#[derive(Default, Clone)]
struct EncodingTotals {
    batches: i64,
    cells: f64,
    /// in the layout of the paper, and as it is stored
    bytes: i64,
    stored: i64,
    time: Duration,
    /// a mini-batch has too many numbers for the encoding
    impossible: bool,
}

#[pg_extern(sql = false)]
fn corgipile_compression_report(call: Call<'_>) {
    let totals = report(&call.arguments()).or_raise();
    call.return_rows(totals.into_iter().map(|(name, totals)| {
        let EncodingTotals { batches, cells, bytes, stored, time, impossible } = totals;
        let [bytes, stored] = [bytes, stored].map(|bytes| (!impossible).then_some(bytes));
        let ratio = |bytes: Option<i64>| bytes.filter(|bytes| *bytes > 0).map(|bytes| cells * 8.0 / bytes as f64);
        let time = time.as_secs_f64();
        [
            name.into(),
            batches.into(),
            bytes.into(),
            ratio(bytes).into(),
            stored.into(),
            ratio(stored).into(),
            time.into(),
        ]
    }));
}

/// Compresses a sample of mini-batches in every way.
fn report(arguments: &Arguments) -> Result<Vec<(String, EncodingTotals)>> {
    let places = Places { label: 1, features: 2, batch_rows: 3, order: 4, seed: 5 };
    let mut request = CompressRequest::of(arguments, &places)?;
    let (source, features) = request.resolve()?;
    let wanted = REPORTED as f64 * request.batch_rows as f64;
    if let Some(rows) = source.estimated_rows().filter(|rows| *rows > wanted) {
        request.shuffling.sample = Some(wanted / rows);
    }
    let mut batches = MiniBatches::open(&source, &request.spec(&features), &request.shuffling)?;
    if batches.must_count() {
        batches.count()?;
    }
    let mut all = vec![EncodingTotals::default(); Encoding::ALL.len()];
    let mut auto = EncodingTotals::default();
    let mut seen = 0;
    while let Some((_, rows)) = batches.next(request.batch_rows)? {
        // the rest at the end is smaller than the other mini-batches
        if seen == REPORTED || (seen > 0 && rows.len() < request.batch_rows) {
            break;
        }
        seen += 1;
        let cells = rows.len() as f64 * rows.columns() as f64;
        let mut smallest = i64::MAX;
        for (encoding, totals) in Encoding::ALL.iter().zip(&mut all) {
            check_for_interrupts();
            let bytes = totals.encode(rows, *encoding);
            if !matches!(encoding, Encoding::Gzip | Encoding::Snappy) {
                smallest = smallest.min(bytes.unwrap_or(i64::MAX));
            }
        }
        let start = Instant::now();
        let stored = encode(rows, None)?.len() as i64;
        auto.time += start.elapsed();
        auto.add(cells, smallest, stored);
    }
    batches.finish();
    if seen == 0 {
        return Err(TrainingError::NoRows("compress").into());
    }
    let named = Encoding::ALL.iter().map(Encoding::to_string).zip(all);
    Ok(named.chain([("auto".to_owned(), auto)]).collect())
}

impl EncodingTotals {
    /// Compresses a mini-batch, and gives its bytes in the layout of the paper. None if it has too many numbers.
    fn encode(&mut self, rows: &Rows, encoding: Encoding) -> Option<i64> {
        let start = Instant::now();
        let encoded = if self.impossible { None } else { encode(rows, Some(encoding)).ok() };
        self.time += start.elapsed();
        let Some(stored) = encoded.map(|bytes| bytes.len() as i64) else {
            self.impossible = true;
            self.batches += 1;
            return None;
        };
        let bytes = toc::paper_bytes(rows, encoding) as i64;
        self.add(rows.len() as f64 * rows.columns() as f64, bytes, stored);
        Some(bytes)
    }

    fn add(&mut self, cells: f64, bytes: i64, stored: i64) {
        self.batches += 1;
        self.cells += cells;
        self.bytes += bytes;
        self.stored += stored;
    }
}
