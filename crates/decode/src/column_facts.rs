//! What is known of a source's columns before its rows are read: by the catalogs, by ANALYZE, and, of texts in a table
//! that ANALYZE has not seen, by the first rows. Nothing here reads a table as a whole.

use super::{is_category, is_vector};
use errors::Result;
use pg::call::spi::{Connection, Sees};
use pg::catalog::names::{name_of, quote_identifier};
use pg::catalog::relation::{Uniqueness, has_places, uniqueness};
use pg::catalog::statistics::{ColumnStatistics, column_statistics};
use pg::catalog::types::{base_type, is_enum};
use pg::executor::query::Column;
use pg::settings::with_scans_from_the_start;
use pg::values::array::ArrayReader;
use pg::values::bag::BagReader;
use pg::values::jsonb::JsonType;
use pg::values::number::NumberType;
use pg::values::vector::VectorReader;
use pgrx::pg_sys;
use std::collections::HashSet;

/// What is known of a column.
pub struct Facts {
    pub kind: Kind,
    /// why it tells rows apart, if it does
    pub identity: Option<Identity>,
    pub texts: Option<Texts>,
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

/// Why a column tells rows apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    Name,
    Catalog(Uniqueness),
    /// ANALYZE has met almost no value twice, and at about even distances
    Statistics,
}

/// What is known of a column of texts by some of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texts {
    pub are_nearly_unique: bool,
    pub are_numbers: bool,
    /// how many categories there are, by ANALYZE
    pub categories: Option<u64>,
}

/// Rows that a whole-numbered column needs for its values to be unique by more than chance.
const UNIQUE_NUMBERS: f64 = 1000.0;
/// The same for texts.
pub const UNIQUE_TEXTS: f64 = 100.0;
/// The share of distinct values from which on numbers are unique: ANALYZE estimates it.
const UNIQUE: f64 = 0.99;
/// The same for texts of the first rows.
pub const NEARLY_UNIQUE_FIRST: f64 = UNIQUE;
/// The same for texts, by ANALYZE. Of the first rows it has to be more: fewer rows repeat less.
const NEARLY_UNIQUE: f64 = 0.9;
/// How far the distribution of unique numbers may be from that of numbers at even distances, at any of them: numbers
/// that were counted up are even, but for gaps, and random ones, too; amounts are not.
const EVEN: f64 = 0.15;
/// The share of distinct values below which a column does not identify rows, whatever it is called.
const REPEATED: f64 = 0.5;
/// Columns that identify rows, whatever is in them.
const NAMES_OF_IDENTITIES: [&str; 10] =
    ["id", "uuid", "guid", "rowid", "row_id", "rownum", "row_num", "row_number", "rownames", "row_names"];
/// Rows that are looked at for texts that ANALYZE has not seen, and the characters of each.
pub const FIRST_ROWS: usize = 1000;
pub const FIRST_CHARACTERS: usize = 200;

/// What is known of these columns of a source: of what stands behind FROM, and of the relation that it is,
/// if it is one.
pub fn facts_of(columns: &[&Column], from: &str, relation: Option<pg_sys::Oid>) -> Result<Vec<Facts>> {
    let analyzed = |column: &&Column| column.origin.and_then(|(table, column)| column_statistics(table, column));
    let statistics: Vec<Option<ColumnStatistics>> = columns.iter().map(analyzed).collect();
    let kinds: Vec<Kind> = columns.iter().map(|column| kind_of(column.type_oid)).collect();
    let is_unknown = |i: &usize| kinds[*i] == Kind::Text && statistics[*i].is_none();
    let unknown: Vec<usize> = (0..columns.len()).filter(is_unknown).collect();
    let mut looked = vec![None; columns.len()];
    if !unknown.is_empty() && relation.is_some_and(has_places) {
        let names: Vec<&str> = unknown.iter().map(|i| columns[*i].name.as_str()).collect();
        for (i, texts) in unknown.iter().zip(look(&names, from)?) {
            looked[*i] = Some(texts);
        }
    }
    let ragged = match relation.is_some_and(has_places) {
        true => ragged(columns, from)?,
        false => HashSet::new(),
    };
    let facts = |i: usize| Facts {
        kind: kinds[i],
        is_ragged: ragged.contains(columns[i].name.as_str()),
        identity: identity(columns[i], kinds[i], statistics[i].as_ref(), relation),
        texts: looked[i].or_else(|| statistics[i].as_ref().map(texts_of_statistics)).filter(|_| kinds[i] == Kind::Text),
    };
    Ok((0..columns.len()).map(facts).collect())
}

fn kind_of(type_oid: pg_sys::Oid) -> Kind {
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
    statistics: Option<&ColumnStatistics>,
    relation: Option<pg_sys::Oid>,
) -> Option<Identity> {
    let is_whole = kind == Kind::Number { is_whole: true };
    if !is_whole && kind != Kind::Text {
        return None;
    }
    let table = column.origin.map(|(table, _)| table).or(relation).map(name_of);
    let repeats = statistics.is_some_and(|known| known.rows >= 2.0 && known.distinct < REPEATED * known.rows);
    if is_name_of_identity(&column.name, table.as_deref(), repeats) {
        return Some(Identity::Name);
    }
    if let Some(unique) = column.origin.and_then(|(table, column)| uniqueness(table, column)) {
        return Some(Identity::Catalog(unique));
    }
    let enough = if column.name.to_lowercase().ends_with("id") { 2.0 } else { UNIQUE_NUMBERS };
    let is_unique = |known: &ColumnStatistics| {
        known.rows >= enough && known.distinct >= UNIQUE * known.rows && are_even(&known.bounds)
    };
    (is_whole && statistics.is_some_and(is_unique)).then_some(Identity::Statistics)
}

/// Are values, of which as many rows lie between each two, at about even distances?
fn are_even(bounds: &[f64]) -> bool {
    let [first, .., last] = bounds else { return true };
    let steps = (bounds.len() - 1) as f64;
    let away = |(i, bound): (usize, &f64)| ((bound - first) / (last - first) - i as f64 / steps).abs();
    bounds.iter().enumerate().map(away).all(|away| away <= EVEN)
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

fn texts_of_statistics(statistics: &ColumnStatistics) -> Texts {
    let ColumnStatistics { rows, distinct, texts, .. } = statistics;
    Texts {
        are_nearly_unique: *rows >= UNIQUE_TEXTS && *distinct >= NEARLY_UNIQUE * rows,
        are_numbers: are_numbers(texts.iter().map(String::as_str)),
        categories: Some(distinct.round() as u64),
    }
}

/// The columns whose arrays of numbers have different lengths in the first rows of a table.
fn ragged<'a>(columns: &[&'a Column], from: &str) -> Result<HashSet<&'a str>> {
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

/// Looks at the first rows of a table, for these columns of texts.
fn look(names: &[&str], from: &str) -> Result<Vec<Texts>> {
    let beginning =
        |name: &&str| format!("pg_catalog.\"left\"({}::pg_catalog.text, {FIRST_CHARACTERS})", quote_identifier(name));
    let beginnings: Vec<String> = names.iter().map(beginning).collect();
    let connection = Connection::open();
    let sql = format!("SELECT {} FROM {from} LIMIT {FIRST_ROWS}", beginnings.join(", "));
    let rows = with_scans_from_the_start(|| connection.run(&sql, Sees::Statement))?;
    let texts_of_column = |column: usize| {
        let texts: Vec<String> = (0..rows.len()).filter_map(|row| rows.get(row, column)).collect();
        let distinct: HashSet<&str> = texts.iter().map(String::as_str).collect();
        let count = texts.len() as f64;
        Texts {
            are_nearly_unique: count >= UNIQUE_TEXTS && distinct.len() as f64 >= NEARLY_UNIQUE_FIRST * count,
            are_numbers: are_numbers(distinct.iter().copied()),
            categories: None,
        }
    };
    let found = (0..names.len()).map(texts_of_column).collect();
    drop(rows);
    connection.close();
    Ok(found)
}

/// Are there several texts, each a number as SQL reads it?
fn are_numbers<'a>(mut texts: impl Iterator<Item = &'a str>) -> bool {
    let is_number = |text: &str| {
        let digits = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        text.trim().chars().all(digits) && text.trim().parse::<f64>().is_ok_and(f64::is_finite)
    };
    let mut count = 0;
    texts.all(|text| {
        count += 1;
        is_number(text)
    }) && count > 1
}
