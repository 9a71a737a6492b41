//! A table: which relations have its rows, how its columns are selected, and how many rows are on its pages.

use std::ops::Range;

use ::postgres::Client;
use ::postgres::error::SqlState;
use source::{Cancel, SourceError};

use super::Options;
use super::columns::{Column, column};
use super::connect::refused;
use crate::files::Fingerprint;

/// A unit has this many pages, 512 kB; of tables that make fewer units than the second number, as many fewer.
const MOST_PAGES: i64 = 64;
const UNITS_OF_SMALL_TABLES: i64 = 256;

/// This many pages are counted by one statement, 32 MB, so that Ctrl-C is heard soon.
const COUNTED_AT_ONCE: i64 = 64 * MOST_PAGES;

/// Rows are counted by this many runs of pages of a table at least, or by pages: a few runs for each of 2560 blocks.
const RUNS: i64 = 1 << 14;

pub(super) struct Table {
    /// The name as SQL has it, quoted where that is needed.
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    filter: Option<String>,
    relations: Vec<Relation>,
}

/// A relation with pages: the table or a partition.
struct Relation {
    /// What stands in FROM, and what else rows must meet to be of this relation.
    from: String,
    only: String,
    pages: i64,
    /// Changes when the relation is rewritten.
    file: u32,
}

/// Pages of a relation, with the rows that the snapshot sees and the filter lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pages {
    relation: usize,
    pub(super) first: i64,
    pub(super) end: i64,
    pub(super) rows: u64,
    /// The sum of the numbers of the transactions that wrote the rows: another one if a row is another.
    version: u64,
}

/// Units, and the runs of pages that each consists of.
pub(super) struct Counted {
    pub(super) units: Vec<Pages>,
    /// All runs, one unit's behind the other's, and where those of each unit begin.
    pub(super) runs: Vec<Pages>,
    first_runs: Vec<usize>,
}

impl Counted {
    /// The pages that have some rows of a unit, counted from its first one, and how many of their rows are before
    /// these.
    pub(super) fn pages_of(&self, unit: usize, rows: &Range<u64>) -> (Pages, u64) {
        let end = self.first_runs.get(unit + 1).copied().unwrap_or(self.runs.len());
        let runs = &self.runs[self.first_runs[unit]..end];
        let (mut before, mut pages) = (0, None::<Pages>);
        for run in runs {
            let read = pages.map_or(0, |pages| pages.rows);
            if before + read >= rows.end && pages.is_some() {
                break;
            }
            match &mut pages {
                None if before + run.rows <= rows.start => before += run.rows,
                None => pages = Some(*run),
                Some(pages) => (pages.end, pages.rows) = (run.end, pages.rows + run.rows),
            }
        }
        (pages.unwrap_or(self.units[unit]), if pages.is_some() { before } else { 0 })
    }
}

/// How many pages a run has in a table of this many: a power of 2, which a whole unit has.
fn pages_of_run(pages: i64) -> i64 {
    1 << (pages / RUNS).clamp(1, MOST_PAGES).ilog2()
}

impl Table {
    pub(super) fn find(client: &mut Client, options: &Options) -> Result<Self, SourceError> {
        let query = "SELECT c.oid, c.oid::regclass::text, c.relkind::text, row_security_active(c.oid) \
                     FROM pg_class c WHERE c.oid = $1::text::regclass";
        let row = client.query_one(query, &[&options.table]).map_err(|error| match error.code() {
            Some(&SqlState::INVALID_NAME) => SourceError::Invalid(format!(
                "{:?} is not the name of a table; a query is read with server_shuffle=True",
                options.table
            )),
            _ => refused(error),
        })?;
        let (oid, name, kind, secured): (u32, String, String, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
        if !matches!(kind.as_str(), "r" | "p" | "m") {
            return Err(SourceError::Invalid(format!(
                "{name} is not a table, partitioned table or materialized view, and has no pages to read in blocks; \
                 let the server shuffle it (server_shuffle=True), or make it a table: CREATE TABLE ... AS SELECT * FROM {name}"
            )));
        }
        let columns = select(client, &name, &name, options.columns.as_deref())?;
        let relations = relations(client, oid, &name, secured)?;
        let table = Self { name, columns, filter: options.filter.clone(), relations };
        // What is not allowed, and a wrong filter, is refused even if there is no page.
        let filter = table.filter.as_ref().map(|filter| format!("WHERE ({filter}\n)")).unwrap_or_default();
        let probe = format!("SELECT ctid, {} FROM {} {filter} LIMIT 0", table.selected(), table.name);
        // prepared, it is one statement; run, what is not allowed is refused
        let probe = client.prepare(&probe).map_err(refused)?;
        client.query(&probe, &[]).map_err(refused)?;
        if let Some(filter) = &table.filter {
            one_condition(client, &table.name, filter)?;
        }
        Ok(table)
    }

    /// All units, with their rows counted. What they are depends on the snapshot only, not on how many pages somebody
    /// has added since: anyone who shares the snapshot has the same units.
    pub(super) fn pages(&self, client: &mut Client, cancel: &Cancel) -> Result<Counted, SourceError> {
        let counted = pages_of_run(self.relations.iter().map(|relation| relation.pages).sum());
        let runs = self.count(client, counted, cancel)?;
        let units = joined(&runs, MOST_PAGES).units.len() as i64;
        let step = (units * MOST_PAGES / UNITS_OF_SMALL_TABLES).clamp(1, MOST_PAGES);
        let wanted = if step < MOST_PAGES { 1 } else { pages_of_run(units * MOST_PAGES) };
        // of pages that somebody has added, or that have no rows any more
        let runs = if wanted < counted { self.count(client, wanted, cancel)? } else { runs };
        Ok(joined(&runs, step))
    }

    /// Runs of this many pages, a power of 2.
    fn count(&self, client: &mut Client, step: i64, cancel: &Cancel) -> Result<Vec<Pages>, SourceError> {
        let mut runs: Vec<Pages> = Vec::new();
        for (at, relation) in self.relations.iter().enumerate() {
            let range =
                self.condition(relation, "format('(%s,0)', s)::tid", &format!("format('(%s,0)', s + {step})::tid"));
            let query = format!(
                "SELECT s, n.rows, n.version FROM generate_series($1::bigint, $2::bigint - 1, $3::bigint) s, LATERAL \
                 (SELECT count(*) AS rows, coalesce(sum(xmin::text::bigint), 0)::bigint AS version FROM {} {range}) n \
                 ORDER BY s",
                relation.from
            );
            let query = client.prepare(&query).map_err(refused)?;
            for first in (0..relation.pages).step_by(COUNTED_AT_ONCE as usize) {
                cancel.check()?;
                let end = (first + COUNTED_AT_ONCE).min(relation.pages);
                for row in client.query(&query, &[&first, &end, &step]).map_err(refused)? {
                    let (first, rows, version): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
                    let end = first + step;
                    runs.push(Pages { relation: at, first, end, rows: rows as u64, version: version as u64 });
                }
            }
        }
        Ok(runs)
    }

    /// What copies the rows of some pages out.
    pub(super) fn copy(&self, pages: &Pages) -> String {
        let relation = &self.relations[pages.relation];
        let (first, end) = (format!("'({},0)'::tid", pages.first), format!("'({},0)'::tid", pages.end));
        let range = self.condition(relation, &first, &end);
        format!("COPY (SELECT {} FROM {} {range}) TO STDOUT (FORMAT binary)", self.selected(), relation.from)
    }

    fn selected(&self) -> String {
        self.columns.iter().map(|column| column.select.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn condition(&self, relation: &Relation, first: &str, end: &str) -> String {
        // A comment at the end of the filter must not hide the bracket behind it.
        let filter = self.filter.as_ref().map(|filter| format!(" AND ({filter}\n)")).unwrap_or_default();
        format!("WHERE ctid >= {first} AND ctid < {end}{}{filter}", relation.only)
    }

    /// Adds what rows there are and which versions of them.
    pub(super) fn print(&self, pages: &[Pages], print: &mut Fingerprint) {
        for relation in &self.relations {
            print.number(u64::from(relation.file));
        }
        for unit in pages {
            for number in [unit.relation as u64, unit.first as u64, unit.rows, unit.version] {
                print.number(number);
            }
        }
    }
}

/// Units of this many pages, up to the last one of each relation that has a row. Runs are of fewer pages.
fn joined(runs: &[Pages], step: i64) -> Counted {
    let mut counted = Counted { units: Vec::new(), runs: Vec::new(), first_runs: Vec::new() };
    for of_relation in runs.chunk_by(|one, other| one.relation == other.relation) {
        let last = of_relation.iter().rposition(|run| run.rows > 0).map_or(0, |last| last + 1);
        // the unit that has the last row has all of its pages
        let end = of_relation[..last].last().map_or(0, |run| (run.first / step + 1) * step);
        for run in of_relation.iter().filter(|run| run.first < end) {
            match counted.units.last_mut().filter(|unit| unit.relation == run.relation && run.first < unit.end) {
                Some(unit) => {
                    (unit.rows, unit.version) = (unit.rows + run.rows, unit.version.wrapping_add(run.version))
                }
                None => {
                    counted.first_runs.push(counted.runs.len());
                    counted.units.push(Pages { end: run.first + step, ..*run });
                }
            }
            counted.runs.push(*run);
        }
    }
    counted
}

/// Refuses what is not a condition by itself, but fits between brackets, such as `a) OR (b`: it would let rows of other
/// pages through, and rows come twice. What fits between CASE and THEN as well has no bracket without its other one.
pub(super) fn one_condition(client: &mut Client, table: &str, filter: &str) -> Result<(), SourceError> {
    let probe = format!("SELECT 1 FROM {table} WHERE CASE WHEN {filter}\nTHEN true END");
    client.prepare(&probe).map(drop).map_err(|error| {
        SourceError::Invalid(format!("where: {filter:?} is not one condition of SQL: {}", refused(error)))
    })
}

/// The columns that are read, and how they are selected. `name` is what stands in messages.
pub(super) fn select(
    client: &mut Client,
    from: &str,
    name: &str,
    columns: Option<&[String]>,
) -> Result<Vec<Column>, SourceError> {
    let all = client.prepare(&format!("SELECT * FROM {from} LIMIT 0")).map_err(refused)?;
    let names: Vec<String> = match columns {
        Some(columns) => columns.to_vec(),
        None => all.columns().iter().map(|column| column.name().to_owned()).collect(),
    };
    if names.is_empty() {
        return Err(SourceError::Invalid(format!("there is no column of {name} to read")));
    }
    names
        .iter()
        .enumerate()
        .map(|(at, wanted)| {
            if names[..at].contains(wanted) {
                return Err(SourceError::Invalid(format!("column {wanted:?} is asked for twice")));
            }
            let found = all.columns().iter().find(|column| column.name() == wanted).ok_or_else(|| {
                let names: Vec<&str> = all.columns().iter().map(|column| column.name()).collect();
                SourceError::Invalid(format!("{name} has no column {wanted:?}; it has {}", names.join(", ")))
            })?;
            Ok(column(wanted, found.type_()))
        })
        .collect()
}

/// The relations that have the rows: the table with what inherits from it, or its partitions.
///
/// A partition is read by itself if the user may do that; else through the table, as are tables with row security.
fn relations(client: &mut Client, oid: u32, name: &str, secured: bool) -> Result<Vec<Relation>, SourceError> {
    let query = "WITH RECURSIVE family(oid) AS (
                     SELECT $1::oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN family f ON i.inhparent = f.oid)
                 SELECT c.oid, c.oid::regclass::text, c.relkind::text, pg_relation_filenode(c.oid),
                     pg_relation_size(c.oid) / current_setting('block_size')::bigint,
                     has_table_privilege(c.oid, 'SELECT')
                 FROM family JOIN pg_class c USING (oid) ORDER BY c.oid <> $1, c.oid";
    let mut relations = Vec::new();
    for row in client.query(query, &[&oid]).map_err(refused)? {
        let (part, part_name, kind): (u32, String, String) = (row.get(0), row.get(1), row.get(2));
        match kind.as_str() {
            "p" => continue,
            "r" | "m" => {}
            _ => {
                return Err(SourceError::Invalid(format!(
                    "{part_name}, a part of {name}, is a foreign table, which has no pages"
                )));
            }
        }
        let (file, pages): (Option<u32>, Option<i64>) = (row.get(3), row.get(4));
        let direct = row.get::<_, bool>(5) && !secured;
        let (from, only) = if direct {
            (format!("ONLY {part_name}"), String::new())
        } else {
            (name.to_owned(), format!(" AND tableoid = {part}"))
        };
        relations.push(Relation { from, only, pages: pages.unwrap_or(0), file: file.unwrap_or(0) });
    }
    Ok(relations)
}
