//! A sample of a source's rows, read in one query as the user's own: what columns are is decided by it, before and
//! after ANALYZE alike, and the same table always gives the same sample.
//!
//! Of a table these are rows of random blocks, or all rows if it is small, and so of a view or query that filters and
//! computes on one; of another query or a foreign table the first rows. It is bounded in rows, and in bytes of each
//! value. A query that sorts or aggregates much before its first row is not run for it.

use super::column_facts::{Kind, kind_of};
use errors::Result;
use facts::{DateOrder, Distinct, Meaning, Numbers, Texts};
use pg::PAGE_BYTES;
use pg::catalog::names::quote_identifier;
use pg::catalog::sampled::sampled_pages;
use pg::catalog::types::{base_type, type_bytes};
use pg::executor::custom_scan::Flags;
use pg::executor::query::{Column, Planned, Query, Running};
use pg::settings::{reads_days_first, with_scans_from_the_start};
use pg::snapshot::Snapshot;
use pg::values::number::NumberType;
use pg::values::typed::TypedDatum;

/// What some rows of a source say about its columns.
pub struct Sample {
    pub extent: Extent,
    /// rows that were read
    pub rows: u64,
    columns: Vec<(String, ColumnSample)>,
}

/// Which rows of the source a sample has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extent {
    All,
    /// those of some of its blocks, drawn at random; this is their share
    Blocks(f64),
    First,
}

pub struct ColumnSample {
    pub nulls: u64,
    pub values: Values,
}

/// The values of a column in a sample.
pub enum Values {
    Numbers(Numbers),
    /// also of an enum
    Texts(Box<Texts>),
    /// of a date or time, with one of them as a text
    Times(Distinct, Option<String>),
    /// of another type, with one of them as a text
    Other(Option<String>),
}

#[derive(Clone, Copy)]
pub struct Sampled<'a> {
    /// all columns of the source
    pub columns: &'a [Column],
    /// the text behind FROM
    pub from: &'a str,
}

/// Rows that suffice, and values of all columns that are read at most; but no fewer rows than the least.
const ROWS: usize = 3000;
const VALUES: usize = 60_000;
const LEAST_ROWS: usize = 1000;
/// Blocks of a sample: fewer would depend on chance, as rows of a block are alike; more would take long.
const LEAST_BLOCKS: usize = 48;
const MOST_BLOCKS: usize = 512;
/// A table that has at most this many times the blocks is read as a whole.
const ALL: f64 = 1.5;
/// A sample of blocks with fewer rows says nothing: the table has room for rows rather than rows.
const TOO_FEW: u64 = 30;
/// Rows of blocks after which no more is read, if rows are smaller than expected.
const MOST_ROWS: usize = 4 * ROWS;
/// Any number, the same each time.
const SEED: f64 = 1.0;
/// Characters of a text that are read, of one that is only an example, and bytes of a value that is made one.
const CHARACTERS: usize = 200;
const EXAMPLE: usize = 60;
const EXAMPLE_BYTES: usize = 1000;
/// What the first rows of a query may cost, in units of seq_page_cost: a fraction of a second.
const MOST_COST: f64 = 20_000.0;
/// Bytes that a row takes next to its values, and a value of variable length.
const ROW_BYTES: usize = 28;
const VALUE_BYTES: usize = 16;

impl Sample {
    /// Reads these columns of a source; None if that would take long, unless it has to be done.
    pub fn read(source: Sampled, wanted: &[&Column], has_to: bool) -> Result<Option<Sample>> {
        let limit = (VALUES / wanted.len().max(1)).clamp(LEAST_ROWS, ROWS);
        let items: Vec<String> = wanted.iter().map(|column| expression(column)).collect();
        let sql = format!("SELECT {} FROM {}", items.join(", "), source.from);
        let read = |extent: Extent, mut query: Query, most: usize| {
            if let Extent::Blocks(share) = extent {
                query.sample_blocks((100.0 * share) as f32, SEED);
            }
            let planned = query.plan_plainly();
            let is_cheap = has_to || planned.cost_of_rows(most) <= MOST_COST;
            is_cheap.then(|| Sample::run(extent, planned, most, wanted))
        };
        let query = Query::analyze(&sql)?;
        if let Some(pages) = query.only_table().and_then(sampled_pages) {
            let blocks = (limit / rows_in_block(source.columns)).clamp(LEAST_BLOCKS, MOST_BLOCKS) as f64;
            let share = blocks / pages.max(1) as f64;
            if ALL * share >= 1.0 {
                return Ok(read(Extent::All, query, usize::MAX));
            }
            let Some(mut sample) = read(Extent::Blocks(share), query, MOST_ROWS) else { return Ok(None) };
            // if the query filters the rows, more blocks have enough
            let more =
                (share * limit as f64 / sample.rows.max(1) as f64).min(MOST_BLOCKS as f64 / pages as f64).min(1.0);
            if 2 * sample.rows < limit as u64 && more > share {
                let more = read(Extent::Blocks(more), Query::analyze(&sql)?, MOST_ROWS);
                sample = more.unwrap_or(sample);
            }
            if sample.rows >= TOO_FEW {
                return Ok(Some(sample));
            }
        }
        let sample = read(Extent::First, Query::analyze(&sql)?, limit);
        Ok(sample.map(|sample| match sample.rows < limit as u64 {
            true => Sample { extent: Extent::All, ..sample },
            false => sample,
        }))
    }

    /// Runs the query, up to this many rows.
    fn run(extent: Extent, planned: Planned, limit: usize, wanted: &[&Column]) -> Sample {
        let mut collected: Vec<Collected> = wanted.iter().map(|column| Collected::new(column)).collect();
        let mut rows = 0;
        let running = Snapshot::with_active(|snapshot| Running::start(planned, snapshot, 0, Flags::NONE));
        with_scans_from_the_start(|| {
            running.run_rows(|| {
                while rows < limit
                    && let Some(slot) = running.row()
                {
                    slot.with_row(|row| {
                        collected.iter_mut().enumerate().for_each(|(i, column)| column.add(row.get(i)));
                    });
                    rows += 1;
                }
            });
        });
        running.finish();
        let column = |(column, collected): (&&Column, Collected)| (column.name.clone(), collected.sample(rows as u64));
        Sample { extent, rows: rows as u64, columns: wanted.iter().zip(collected).map(column).collect() }
    }

    /// A column that was read.
    pub fn column(&self, name: &str) -> Option<&ColumnSample> {
        self.columns.iter().find(|(column, _)| column == name).map(|(_, sample)| sample)
    }

    /// Have these columns been given no types? Then all are texts but the label, which may be a cast, and half of
    /// them or more are numbers.
    pub fn is_untyped<'a>(&self, columns: impl Iterator<Item = &'a Column>, label: &str) -> bool {
        const FEW: usize = 3;
        let (mut texts, mut numbers) = (0, 0);
        for column in columns.filter(|column| !column.is_key && column.name != label) {
            if kind_of(column.type_oid) != Kind::Text {
                return false;
            }
            texts += 1;
            let sample = self.column(&column.name).map(|sample| &sample.values);
            let is_number =
                matches!(sample, Some(Values::Texts(texts)) if matches!(texts.meaning, Meaning::Numbers(_)));
            numbers += usize::from(is_number);
        }
        texts >= FEW && 2 * numbers >= texts
    }

    /// Rows of the source in all, of which these are some; None if that is not known.
    pub fn all_rows(&self) -> Option<f64> {
        match self.extent {
            Extent::All => Some(self.rows as f64),
            Extent::Blocks(share) => Some(self.rows as f64 / share),
            Extent::First => None,
        }
    }

    /// How it was drawn, for people; None if it has all rows.
    pub fn describe(&self) -> Option<String> {
        match self.extent {
            Extent::All => None,
            Extent::Blocks(_) => Some(format!("by a sample of {} rows", self.rows)),
            Extent::First => Some(format!("by the first {} rows", self.rows)),
        }
    }
}

/// The values of a column that were read so far, without NULLs.
enum Collected {
    /// of type bigint: not all of them are doubles
    Integers(Vec<i64>),
    Numbers(NumberType, Vec<f64>),
    Texts(Vec<String>),
    /// dates and times as texts
    Times(Vec<String>),
    /// how many, and one of them
    Other(usize, Option<String>),
}

impl Collected {
    fn new(column: &Column) -> Collected {
        match NumberType::from_oid(base_type(column.type_oid)) {
            Some(NumberType::Int8) => Collected::Integers(Vec::new()),
            Some(number) => Collected::Numbers(number, Vec::new()),
            None if is_of_texts(column) => Collected::Texts(Vec::new()),
            None if kind_of(column.type_oid) == Kind::Time => Collected::Times(Vec::new()),
            None => Collected::Other(0, None),
        }
    }

    fn add(&mut self, value: Option<TypedDatum<'_>>) {
        let Some(value) = value else { return };
        match self {
            Collected::Integers(integers) => integers.extend(value.to_rust::<i64>()),
            Collected::Numbers(number, numbers) => numbers.push(number.read(value)),
            Collected::Texts(texts) | Collected::Times(texts) => texts.extend(value.to_rust::<String>()),
            Collected::Other(values, example) => {
                *values += 1;
                *example = example.take().or_else(|| value.to_rust()).filter(|text: &String| !text.is_empty());
            }
        }
    }

    /// What they say, of this many rows.
    fn sample(self, rows: u64) -> ColumnSample {
        let order = if reads_days_first() { DateOrder::Dmy } else { DateOrder::Mdy };
        let (values, of) = match self {
            Collected::Integers(integers) => (integers.len(), Values::Numbers(Numbers::of_integers(integers))),
            Collected::Numbers(_, numbers) => (numbers.len(), Values::Numbers(Numbers::of(numbers))),
            Collected::Texts(texts) => (texts.len(), Values::Texts(Box::new(Texts::of(texts, order)))),
            Collected::Times(times) => (times.len(), of_times(times)),
            Collected::Other(values, example) => (values, Values::Other(example)),
        };
        ColumnSample { nulls: rows - values as u64, values: of }
    }
}

fn of_times(mut times: Vec<String>) -> Values {
    times.sort_unstable();
    let runs = || times.chunk_by(|a, b| a == b).map(|run| run.len() as u64);
    Values::Times(Distinct::of_runs(runs()), times.first().cloned())
}

fn is_of_texts(column: &Column) -> bool {
    matches!(kind_of(column.type_oid), Kind::Text | Kind::Enum)
}

/// What is read of a column: NULL where it is NULL.
fn expression(column: &Column) -> String {
    let name = quote_identifier(&column.name);
    match NumberType::from_oid(base_type(column.type_oid)) {
        // read as it is: a number without a counterpart in another type would be an error
        Some(_) => name,
        None if is_of_texts(column) => format!("pg_catalog.\"left\"({name}::pg_catalog.text, {CHARACTERS})"),
        None => format!(
            "CASE WHEN pg_catalog.pg_column_size({name}) OPERATOR(pg_catalog.>) {EXAMPLE_BYTES} THEN '' \
             ELSE pg_catalog.\"left\"({name}::pg_catalog.text, {EXAMPLE}) END"
        ),
    }
}

/// About how many rows a block has, by the types of the columns alone.
fn rows_in_block(columns: &[Column]) -> usize {
    let bytes: usize = columns.iter().map(|column| type_bytes(column.type_oid).unwrap_or(VALUE_BYTES)).sum();
    (PAGE_BYTES as usize / (ROW_BYTES + bytes)).max(1)
}
