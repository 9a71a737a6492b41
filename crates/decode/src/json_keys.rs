//! Which keys of a column of JSON objects are features: those that the first rows of the source have.
//!
//! A key whose values are numbers or booleans is a number, one whose values are texts is a category, and keys of
//! objects within are taken by their paths. What cannot be either, or tells rows apart, is left out and reported.
//! Nothing here reads a table as a whole, and PostgreSQL counts, so that large objects take no memory here.

use super::column_facts::{FIRST_CHARACTERS, FIRST_ROWS, NEARLY_UNIQUE_FIRST, UNIQUE_TEXTS};
use errors::{Result, some_of};
use pg::call::spi::{Connection, Sees};
use pg::catalog::names::quote_identifier;
use pg::settings::with_scans_from_the_start;
use pg::values::json_key::JsonKey;

/// Keys of a column that are features at most: the most frequent ones. A query reads no more than 1,600 columns.
const MOST: usize = 500;

/// Levels of objects that are entered.
const LEVELS: usize = 16;

/// A key and its values.
struct Met {
    path: Vec<String>,
    numbers: i64,
    texts: i64,
    arrays: i64,
    /// distinct texts
    distinct: i64,
}

/// The features that the keys of column `name` are, behind FROM `from`, which are reported in a notice.
pub fn keys_of(name: &str, from: &str) -> Result<Vec<String>> {
    let all = look(name, from)?;
    let (mut features, mut left_out, mut texts) = (Vec::new(), Vec::new(), 0);
    for met in &all {
        let is_prefix = |other: &Met| other.path.len() > met.path.len() && other.path.starts_with(&met.path);
        let values = (met.numbers + met.texts) as f64;
        let is_text = met.texts > 0;
        let why = match JsonKey::new(&met.path, is_text) {
            _ if met.arrays > 0 => Some("array"),
            _ if all.iter().any(is_prefix) => Some("an object in some rows"),
            None => Some("cannot be named"),
            // nulls alone
            _ if values == 0.0 => Some("null"),
            _ if is_text && values >= UNIQUE_TEXTS && met.distinct as f64 >= NEARLY_UNIQUE_FIRST * values => {
                Some("nearly unique")
            }
            _ if features.len() == MOST => Some("rare"),
            Some(key) => {
                features.push(key.of_column(name));
                texts += usize::from(is_text);
                None
            }
        };
        left_out.extend(why.map(|why| format!("{} ({why})", met.path.join("->"))));
    }
    features.sort_unstable();
    left_out.sort_unstable();
    if !all.is_empty() {
        let counted = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        let (numbers, texts) = (features.len() - texts, counted(texts, "category", "categories"));
        let left_out = if left_out.is_empty() { String::new() } else { format!("; left out: {}", some_of(&left_out)) };
        pg::notice(
            format!("keys of {name} in the first rows: {}, {texts}{left_out}", counted(numbers, "number", "numbers")),
            "To change this, name keys as features: data->price is a number, data->>colour a text.",
        );
    }
    Ok(features)
}

/// The keys of the first rows, the most frequent first.
fn look(name: &str, from: &str) -> Result<Vec<Met>> {
    let entries = |value: &str| {
        format!(
            "pg_catalog.jsonb_each(CASE pg_catalog.jsonb_typeof({value}) WHEN 'object' THEN {value} END) AS e(key, value)"
        )
    };
    let column = quote_identifier(name);
    let sql = format!(
        "WITH RECURSIVE leaves(path, value) AS (
             SELECT ARRAY[e.key], e.value
               FROM (SELECT {column}::pg_catalog.jsonb AS v FROM {from} LIMIT {FIRST_ROWS}) AS s, LATERAL {first}
              UNION ALL
             SELECT pg_catalog.array_append(l.path, e.key), e.value FROM leaves AS l, LATERAL {next}
              WHERE pg_catalog.cardinality(l.path) OPERATOR(pg_catalog.<) {LEVELS})
         SELECT path, numbers, texts, arrays, distinct_texts
           FROM (SELECT l.path,
                        pg_catalog.count(*) FILTER (WHERE t.kind OPERATOR(pg_catalog.=) ANY (ARRAY['number', 'boolean'])) AS numbers,
                        pg_catalog.count(*) FILTER (WHERE t.kind OPERATOR(pg_catalog.=) 'string') AS texts,
                        pg_catalog.count(*) FILTER (WHERE t.kind OPERATOR(pg_catalog.=) 'array') AS arrays,
                        pg_catalog.count(DISTINCT pg_catalog.\"left\"(l.value OPERATOR(pg_catalog.#>>) '{{}}', {FIRST_CHARACTERS}))
                            FILTER (WHERE t.kind OPERATOR(pg_catalog.=) 'string') AS distinct_texts
                   FROM leaves AS l, LATERAL pg_catalog.jsonb_typeof(l.value) AS t(kind)
                  WHERE t.kind OPERATOR(pg_catalog.<>) 'object' GROUP BY l.path) AS k
          ORDER BY numbers OPERATOR(pg_catalog.+) texts DESC, path",
        first = entries("s.v"),
        next = entries("l.value"),
    );
    let connection = Connection::open();
    let rows = with_scans_from_the_start(|| connection.run(&sql, Sees::Statement))?;
    let count = |row: usize, column: usize| rows.get::<i64>(row, column).unwrap_or_default();
    let met = |row: usize| Met {
        path: rows.get::<Vec<String>>(row, 0).unwrap_or_default(),
        numbers: count(row, 1),
        texts: count(row, 2),
        arrays: count(row, 3),
        distinct: count(row, 4),
    };
    let found = (0..rows.len()).map(met).collect();
    drop(rows);
    connection.close();
    Ok(found)
}
