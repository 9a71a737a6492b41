//! What is known of a source's columns before its rows are read: by the catalogs and by a sample of the rows. ANALYZE
//! is asked only where no sample was read, so that it does not change what features are. Nothing here reads a table as
//! a whole.

use super::sample::{ColumnSample, Extent, Sample, Values};
use super::{is_category, is_vector};
use facts::{Code, Distinct, Meaning, NumberStyle, NumberTexts, Numbers, Variants};
use pg::call::spi::{Connection, Sees};
use pg::catalog::names::{name_of, quote_identifier};
use pg::catalog::relation::{Uniqueness, uniqueness};
use pg::catalog::statistics::{ColumnStatistics, column_statistics};
use pg::catalog::types::{base_type, is_enum};
use pg::executor::query::Column;
use pg::settings::with_scans_from_the_start;
use pg::values::array::ArrayReader;
use pg::values::bag::BagReader;
use pg::values::jsonb::JsonType;
use pg::values::number::NumberType;
use pg::values::record::is_citext;
use pg::values::vector::VectorReader;
use pgrx::pg_sys;
use std::collections::HashSet;

/// What is known of a column.
pub struct Facts {
    pub kind: Kind,
    /// why it tells rows apart, if it does
    pub identity: Option<Identity>,
    pub distinct: Option<DistinctValues>,
    /// what its values are if they are texts
    pub meaning: Meaning,
    /// how its texts are numbers, if that is what they are: then its kind is that of numbers
    pub style: Option<NumberStyle>,
    /// rows of the sample in which it is NULL, and all of them, if there is one
    pub nulls: Option<(u64, u64)>,
    /// numbers that are probably codes
    pub codes: Vec<Code>,
    /// texts that are probably one category
    pub variants: Option<Variants>,
    /// are its first arrays of different lengths?
    pub is_ragged: bool,
}

/// What the values of a column are, as far as features go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Number {
        is_whole: bool,
    },
    Boolean,
    Text,
    Enum,
    /// or another vector
    Array,
    /// of sparse vectors
    Sparse,
    /// lexemes, or arrays of texts
    Words,
    Json,
    /// which are numbers if there is no other vector
    Bytes,
    /// a point in time, or a stretch of it
    Time,
    Other,
}

/// Why a column says nothing about any row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    NoValue,
    Constant,
}

/// Why a column tells rows apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    Name,
    Catalog(Uniqueness),
    /// almost no value comes twice, and they are at about even distances
    Values,
}

/// How many values a column has that are not NULL, and how many of them are distinct.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistinctValues {
    pub rows: f64,
    pub distinct: f64,
    pub certainty: Certainty,
}

/// How sure the counts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// all rows were counted
    Exact,
    /// estimated by a part of the rows, or by ANALYZE
    Estimated,
    /// by the first rows of a source of unknown size
    Guessed,
}

/// Rows that a whole-numbered column needs for its values to be unique by more than chance.
const UNIQUE_NUMBERS: f64 = 1000.0;
/// The same for texts.
pub const UNIQUE_TEXTS: f64 = 100.0;
/// The share of distinct values from which on numbers are unique.
const UNIQUE: f64 = 0.99;
/// The same for texts of the first rows, which repeat less.
pub const NEARLY_UNIQUE_FIRST: f64 = UNIQUE;
/// The same for texts.
const NEARLY_UNIQUE: f64 = 0.9;
/// How many times its first rows a source is taken to have of unknown size.
const UNCOUNTED: f64 = 10.0;
/// The share of distinct values below which a column does not identify rows, whatever it is called.
const REPEATED: f64 = 0.5;
/// The share of distinct dates up to which they are periods.
const PERIODS: f64 = 0.1;
/// The share of rows, and how many of them, from which on it is said of a column whether it is NULL.
const OFTEN: f64 = 0.1;
const OFTEN_ROWS: u64 = 20;
/// Rows that it takes for a column to say nothing because it is the same in all of them.
const FEW_ROWS: u64 = 20;
/// Columns that identify rows, whatever is in them.
const NAMES_OF_IDENTITIES: [&str; 10] =
    ["id", "uuid", "guid", "rowid", "row_id", "rownum", "row_num", "row_number", "rownames", "row_names"];
/// Rows of a source that are looked at first, and the characters of each text.
pub const FIRST_ROWS: usize = 1000;
pub const FIRST_CHARACTERS: usize = 200;

/// What the facts of a column are taken from.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub sample: Option<&'a Sample>,
    /// the relation that the source is, if it is one
    pub relation: Option<pg_sys::Oid>,
    /// have the columns been given no types?
    pub is_untyped: bool,
}

/// What is known of these columns of a source.
pub fn facts_of(columns: &[&Column], known: Known) -> Vec<Facts> {
    columns.iter().map(|column| facts_of_column(column, known)).collect()
}

/// The same of one column.
pub fn facts_of_column(column: &Column, Known { sample, relation, is_untyped }: Known) -> Facts {
    let kind = kind_of(column.type_oid);
    let sampled = sample.and_then(|sample| Some((sample, sample.column(&column.name)?)));
    let analyzed = || column.origin.and_then(|(table, column)| column_statistics(table, column));
    let statistics = if sample.is_none() { analyzed() } else { None };
    let (meaning, codes, variants) = match sampled.map(|(_, column)| &column.values) {
        Some(Values::Texts(texts)) if kind == Kind::Text => {
            // upper and lower case are one category of citext
            let variants = texts.variants.clone().filter(|_| !is_citext(base_type(column.type_oid)));
            (texts.meaning.clone(), Vec::new(), variants)
        }
        Some(Values::Numbers(numbers)) => (Meaning::Plain, numbers.codes.clone(), None),
        _ => (Meaning::Plain, Vec::new(), None),
    };
    let as_numbers = match &meaning {
        // a text that numbers others, such as shop_id, is no amount
        Meaning::Numbers(numbers)
            if numbers.are_amounts(is_untyped) && !(numbers.numbers.is_whole && is_called_code(column)) =>
        {
            Some(numbers)
        }
        _ => None,
    };
    let codes = as_numbers.map_or(codes, |numbers| numbers.numbers.codes.clone());
    let kind = as_numbers.map_or(kind, |numbers| Kind::Number { is_whole: numbers.numbers.is_whole });
    let (distinct, are_even) = match (sampled, &statistics) {
        (Some((sample, column)), _) => (distinct_in(sample, column), are_even(sample, column)),
        (None, Some(statistics)) => {
            (Some(distinct_by(statistics)), Numbers::of(statistics.bounds.clone()).are_even(false))
        }
        (None, None) => (None, false),
    };
    // an id is one with and without codes among the numbers
    let of_values = match (as_numbers, sample) {
        (Some(NumberTexts { numbers, .. }), Some(sample)) => {
            (Some(distinct_of(sample, numbers.counts)), are_even_in(sample, numbers))
        }
        _ => (distinct, are_even),
    };
    let identity = identity(column, kind, of_values, relation);
    let style = as_numbers.map(NumberTexts::style);
    let nulls = sampled.map(|(sample, column)| (column.nulls, sample.rows));
    Facts { kind, identity, distinct, meaning, style, nulls, codes, variants, is_ragged: false }
}

fn distinct_in(sample: &Sample, column: &ColumnSample) -> Option<DistinctValues> {
    let counts = match &column.values {
        Values::Numbers(numbers) => numbers.counts,
        Values::Texts(texts) => texts.counts,
        Values::Times(counts, _) => *counts,
        Values::Other(_) => return None,
    };
    Some(distinct_of(sample, counts))
}

fn distinct_of(sample: &Sample, counts: Distinct) -> DistinctValues {
    let certainty = match sample.extent {
        Extent::All => Certainty::Exact,
        Extent::Blocks(_) => Certainty::Estimated,
        Extent::First => Certainty::Guessed,
    };
    let all = sample.all_rows().unwrap_or(UNCOUNTED * sample.rows as f64);
    let rows = all * counts.values as f64 / sample.rows.max(1) as f64;
    DistinctValues { rows, distinct: counts.estimate(rows), certainty }
}

fn are_even(sample: &Sample, column: &ColumnSample) -> bool {
    matches!(&column.values, Values::Numbers(numbers) if are_even_in(sample, numbers))
}

fn are_even_in(sample: &Sample, numbers: &Numbers) -> bool {
    numbers.are_even(matches!(sample.extent, Extent::Blocks(_)))
}

fn distinct_by(statistics: &ColumnStatistics) -> DistinctValues {
    let ColumnStatistics { rows, distinct, .. } = *statistics;
    DistinctValues { rows, distinct, certainty: Certainty::Estimated }
}

impl Facts {
    /// Takes its texts for texts, although they are numbers.
    pub fn into_texts(self) -> Facts {
        match self.style {
            Some(_) => Facts { kind: Kind::Text, style: None, codes: Vec::new(), ..self },
            None => self,
        }
    }

    /// Is it in all rows NULL, or in all of them the same, and no number? That is known of small tables alone.
    pub fn says_nothing(&self) -> Option<Nothing> {
        // of numbers, an option says what becomes of NULLs, and those that are the same cost one weight of 0
        let (nulls, rows) = self.nulls.filter(|(_, rows)| *rows >= FEW_ROWS && !self.is_number())?;
        let known = self.distinct.filter(|known| known.certainty == Certainty::Exact)?;
        match known.distinct {
            _ if nulls == rows => Some(Nothing::NoValue),
            distinct if distinct <= 1.0 && nulls == 0 => Some(Nothing::Constant),
            _ => None,
        }
    }

    fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Number { .. } | Kind::Boolean)
    }

    /// Do many rows have the same date? Then it is a period, and says something of other rows; else it is the time of
    /// an event, whose parts say less of later events than they cost.
    pub fn has_periods(&self) -> bool {
        self.distinct.is_some_and(|known| known.distinct <= PERIODS * known.rows)
    }

    /// Is it in many rows NULL, and in many not?
    pub fn is_often_null(&self) -> bool {
        let is_often = |count: u64, rows: u64| count >= OFTEN_ROWS && count as f64 >= OFTEN * rows as f64;
        self.nulls.is_some_and(|(nulls, rows)| is_often(nulls, rows) && is_often(rows - nulls, rows))
    }

    /// Have all rows the same value, as far as is known?
    pub fn is_constant(&self) -> bool {
        self.distinct.is_some_and(|known| known.rows >= 2.0 && known.distinct <= 1.0)
    }

    /// Its numbers with NULL in place of codes, as SQL writes it; None if there are no codes.
    pub fn without_codes(&self, column: &Column) -> Option<String> {
        let name = quote_identifier(&column.name);
        let name = self.style.and_then(|_| self.meaning.expression(&name)).unwrap_or(name);
        let values: Vec<String> = self.codes.iter().map(|code| code.value.to_string()).collect();
        match values.as_slice() {
            [] => None,
            [only] => Some(format!("NULLIF({name}, {only})")),
            several => Some(format!("CASE WHEN {name} NOT IN ({}) THEN {name} END", several.join(", "))),
        }
    }

    /// Have most of its texts a category of their own?
    pub fn hardly_recurs(&self) -> bool {
        let is_rare = |known: DistinctValues| known.rows >= UNIQUE_TEXTS && known.distinct > REPEATED * known.rows;
        self.kind == Kind::Text && self.distinct.is_some_and(is_rare)
    }

    /// Do two rows rarely have the same text?
    pub fn are_nearly_unique(&self) -> bool {
        let is_nearly =
            |known: DistinctValues| known.rows >= UNIQUE_TEXTS && known.distinct >= NEARLY_UNIQUE * known.rows;
        self.kind == Kind::Text && self.distinct.is_some_and(is_nearly)
    }
}

/// What the values of this type are.
pub fn kind_of(type_oid: pg_sys::Oid) -> Kind {
    let base = base_type(type_oid);
    if is_vector(type_oid) {
        let is_sparse = VectorReader::new(type_oid).is_none();
        return match base {
            pg_sys::BYTEAOID => Kind::Bytes,
            _ if is_sparse => Kind::Sparse,
            _ => Kind::Array,
        };
    }
    if BagReader::new(type_oid, pg_sys::Oid::INVALID).is_some() {
        return Kind::Words;
    }
    match (NumberType::from_oid(base), base) {
        (Some(NumberType::Bool), _) => Kind::Boolean,
        (Some(NumberType::Int2 | NumberType::Int4 | NumberType::Int8), _) => Kind::Number { is_whole: true },
        (Some(_), _) => Kind::Number { is_whole: false },
        (None, base) if is_enum(base) => Kind::Enum,
        (None, base) if is_category(base) => Kind::Text,
        (
            None,
            pg_sys::DATEOID
            | pg_sys::TIMEOID
            | pg_sys::TIMETZOID
            | pg_sys::TIMESTAMPOID
            | pg_sys::TIMESTAMPTZOID
            | pg_sys::INTERVALOID,
        ) => Kind::Time,
        (None, base) if JsonType::from_oid(base).is_some() => Kind::Json,
        (None, _) => Kind::Other,
    }
}

/// Why a column tells rows apart. Only whole numbers and texts can: a measured number is unique by its digits.
fn identity(
    column: &Column,
    kind: Kind,
    (distinct, are_even): (Option<DistinctValues>, bool),
    relation: Option<pg_sys::Oid>,
) -> Option<Identity> {
    let is_whole = kind == Kind::Number { is_whole: true };
    if !is_whole && kind != Kind::Text {
        return None;
    }
    let table = column.origin.map(|(table, _)| table).or(relation).map(name_of);
    let repeats = distinct.is_some_and(|known| known.rows >= 2.0 && known.distinct < REPEATED * known.rows);
    if is_name_of_identity(&column.name, table.as_deref(), repeats) {
        return Some(Identity::Name);
    }
    if let Some(unique) = column.origin.and_then(|(table, column)| uniqueness(table, column)) {
        return Some(Identity::Catalog(unique));
    }
    let enough = if column.name.to_lowercase().ends_with("id") { 2.0 } else { UNIQUE_NUMBERS };
    let is_unique = |known: DistinctValues| known.rows >= enough && known.distinct >= UNIQUE * known.rows && are_even;
    (is_whole && distinct.is_some_and(is_unique)).then_some(Identity::Values)
}

/// Is it called like what numbers something, as in shop_id, shopId or zip_code?
pub(super) fn is_called_code(column: &Column) -> bool {
    let name = column.name.as_str();
    let lower = name.to_lowercase();
    name.ends_with("ID")
        || name.ends_with("Id")
        || ["_id", "code", "zip", "fips"].iter().any(|end| lower.ends_with(end))
}

/// Does a column with this name identify the rows of its table, or whatever an id identifies? If its values repeat, the
/// other names may mean something else.
fn is_name_of_identity(name: &str, table: Option<&str>, repeats: bool) -> bool {
    let name = name.to_lowercase();
    if NAMES_OF_IDENTITIES.contains(&name.as_str()) {
        return true;
    }
    if repeats {
        return false;
    }
    if name == "index" {
        return true;
    }
    let (Some(stem), Some(table)) = (name.strip_suffix("_id"), table.map(str::to_lowercase)) else { return false };
    let singular = match table.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => table.strip_suffix('s').unwrap_or(&table).to_owned(),
    };
    stem == table || stem == singular
}

/// The columns whose arrays of numbers have different lengths in the first rows of a table.
pub fn ragged<'a>(columns: &[&'a Column], from: &str) -> errors::Result<HashSet<&'a str>> {
    let arrays = columns.iter().filter(|column| ArrayReader::new(column.type_oid).is_some());
    let names: Vec<&str> = arrays.map(|column| column.name.as_str()).collect();
    if names.is_empty() {
        return Ok(HashSet::new());
    }
    let lengths = |name: &&str| format!("pg_catalog.cardinality({})", quote_identifier(name));
    let lengths: Vec<String> = names.iter().map(lengths).collect();
    let connection = Connection::open();
    let sql = format!("SELECT {} FROM {from} LIMIT {FIRST_ROWS}", lengths.join(", "));
    let rows = with_scans_from_the_start(|| connection.run(&sql, Sees::Statement))?;
    let is_ragged = |column: &usize| {
        let mut lengths = (0..rows.len()).filter_map(|row| rows.get::<i32>(row, *column));
        lengths.next().is_some_and(|first| lengths.any(|length| length != first))
    };
    let found = (0..names.len()).filter(is_ragged).map(|column| names[column]).collect();
    drop(rows);
    connection.close();
    Ok(found)
}
