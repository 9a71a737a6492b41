//! The part that a row is in, for the folds of a search.
//!
//! A pass over all rows counts them first: by class and key, by group or by time. In that pass the tag of a row that is
//! drawn by itself is its key; from then on a tag is the number of a part.

use super::columns::{column, column_type};
use errors::{Result, RowAt, RowFault};
use options::folds::{FoldSpec, FoldsBy};
use pg::executor::query::Column;
use pg::tuples::row::Row;
use pg::values::tid::row_at;
use pg::values::typed::TypedDatum;
use pg::values::value_hash::{Chronology, ValueHash};
use serde::{Deserialize, Serialize};
use shuffle::{Cuts, FoldKeys, FoldRule, Strata, ValueCounts, part_of_key};
use std::collections::HashMap;

/// The parts of rows that are being decoded.
pub struct Folds {
    rule: FoldRule,
    keys: FoldKeys,
    by: By,
    /// where a row has tableoid, and ctid behind it, if it comes from a copy
    place: Option<usize>,
    /// the table that is named
    table: Option<u32>,
}

enum By {
    /// each row by itself; by its class, too, if it is stratified
    Row {
        stratified: bool,
        state: RowState,
    },
    Group {
        hash: ValueHash,
        place: usize,
        state: GroupState,
    },
    Time {
        chronology: Chronology,
        place: usize,
        state: TimeState,
    },
}

enum RowState {
    Counting(Strata),
    Cut(Cuts),
    /// by the key alone
    Drawn,
}

enum GroupState {
    Counting(ValueCounts),
    /// None: there are too many groups, so that each is drawn by itself
    Dealt(Option<HashMap<u64, u32>>),
}

enum TimeState {
    Counting(ValueCounts),
    /// the first value of each stretch but the first
    Cut(Vec<u64>),
}

/// Where a pass over all rows has cut them, for other processes that read the same rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FoundCuts {
    /// of each class, the keys before which its rows are cut
    Classes(Vec<u32>),
    /// the part of each group; None: by their keys
    Groups(Option<Vec<(u64, u32)>>),
    Times(Vec<u64>),
}

const TIMES: &str = "A time must be a date, a timestamp or a number.";
const GROUPS: &str = "Groups must have a type that can be hashed, such as numbers, text, dates or uuid.";

impl Folds {
    /// For rows with the columns of `spec` at the places that `next` gives. There may be `many` classes; without a pass
    /// before the first epoch rows are drawn by their keys alone.
    pub fn new(
        spec: &FoldSpec,
        columns: &[Column],
        mut next: impl FnMut() -> usize,
        (many, counts): (bool, bool),
    ) -> Result<Folds> {
        let by = match &spec.by {
            FoldsBy::Row { stratified } => {
                let state = if counts { RowState::Counting(Strata::new(many)) } else { RowState::Drawn };
                By::Row { stratified: *stratified, state }
            }
            FoldsBy::Group(name) => {
                let column = column(columns, name)?;
                let hash = ValueHash::new(column.type_oid, column.collation);
                let hash = hash.ok_or_else(|| column_type("group", column, GROUPS))?;
                By::Group { hash, place: next(), state: GroupState::Counting(ValueCounts::default()) }
            }
            FoldsBy::Time(name) => {
                let column = column(columns, name)?;
                let chronology = Chronology::new(column.type_oid);
                let chronology = chronology.ok_or_else(|| column_type("time", column, TIMES))?;
                By::Time { chronology, place: next(), state: TimeState::Counting(ValueCounts::default()) }
            }
        };
        let place = spec.reads_place.map(|_| {
            let place = next();
            next();
            place
        });
        Ok(Folds { rule: spec.rule, keys: FoldKeys::new(spec.seed), by, place, table: spec.reads_place })
    }

    /// The part of the tag that depends on a row's columns.
    pub fn of_row(&mut self, row: Row<'_>) -> std::result::Result<u32, RowFault> {
        let Folds { rule, keys, by, place, table } = self;
        match by {
            By::Row { state, .. } => {
                let at = place.and_then(|place| Some(row_at(row.get(place)?, row.get(place + 1)?)));
                // a row of the table itself, and not of a partition, is identified as where its pages are read
                let at = at.map(|at| match at {
                    RowAt::CtidOf(of, block, offset) if Some(of) == *table => RowAt::Ctid(block, offset),
                    at => at,
                });
                Ok(at.map_or(0, |at| tag(*keys, state, *rule, at)))
            }
            By::Group { hash, place, state } => {
                let value = hash.hash(row.get(*place).ok_or(RowFault::NullGroup)?);
                Ok(match state {
                    GroupState::Counting(counts) => {
                        counts.add(value);
                        0
                    }
                    GroupState::Dealt(Some(parts)) => parts.get(&value).copied().unwrap_or_default(),
                    GroupState::Dealt(None) => part_of_key(keys.key(value), rule.parts()),
                })
            }
            By::Time { chronology, place, state } => {
                let time: TypedDatum<'_> = row.get(*place).ok_or(RowFault::NullTime)?;
                let time = chronology.place(time);
                Ok(match state {
                    TimeState::Counting(counts) => {
                        counts.add(time);
                        0
                    }
                    TimeState::Cut(cuts) => cuts.partition_point(|cut| *cut <= time) as u32,
                })
            }
        }
    }

    /// The part of the tag that depends on a row's place.
    #[inline]
    pub fn of_place(&self, at: RowAt) -> u32 {
        match &self.by {
            By::Row { state, .. } if self.place.is_none() => tag(self.keys, state, self.rule, at),
            _ => 0,
        }
    }

    /// Counts rows with these labels by the class of each, or makes their tags, which were keys, the numbers of their
    /// parts.
    pub fn finish(&mut self, tags: &mut [u32], labels: &[f32], class: impl Fn(f32) -> usize) {
        let By::Row { stratified, state } = &mut self.by else { return };
        let class = |label: f32| if *stratified { class(label) } else { 0 };
        let tuples = tags.iter_mut().zip(labels);
        match state {
            RowState::Counting(strata) => tuples.for_each(|(key, label)| strata.add(class(*label), *key)),
            RowState::Cut(cuts) => tuples.for_each(|(tag, label)| *tag = cuts.part(class(*label), *tag)),
            RowState::Drawn => {}
        }
    }

    /// All rows were counted. The classes that were met have this order from now on.
    pub fn close(&mut self, classes: &[u32]) {
        let parts = self.rule.parts();
        match &mut self.by {
            By::Row { stratified, state } => {
                let order = if *stratified { classes } else { &[0] };
                if let RowState::Counting(strata) = std::mem::replace(state, RowState::Drawn) {
                    *state = RowState::Cut(strata.cuts(order, parts));
                }
            }
            By::Group { state, .. } => {
                if let GroupState::Counting(counts) = state {
                    *state = GroupState::Dealt(counts.balanced(parts));
                }
            }
            By::Time { state, .. } => {
                if let TimeState::Counting(counts) = state {
                    *state = TimeState::Cut(counts.stretches(parts));
                }
            }
        }
    }

    /// Where rows are cut, once all were counted; None if each is drawn by its key alone.
    pub fn cuts(&self) -> Option<FoundCuts> {
        match &self.by {
            By::Row { state: RowState::Cut(cuts), .. } => Some(FoundCuts::Classes(cuts.keys().to_vec())),
            By::Group { state: GroupState::Dealt(parts), .. } => {
                let parts = parts.as_ref().map(|parts| parts.iter().map(|(group, part)| (*group, *part)).collect());
                Some(FoundCuts::Groups(parts))
            }
            By::Time { state: TimeState::Cut(cuts), .. } => Some(FoundCuts::Times(cuts.clone())),
            _ => None,
        }
    }

    /// Takes over where another process has cut the rows.
    pub fn adopt(&mut self, found: Option<&FoundCuts>) {
        match (&mut self.by, found) {
            (By::Row { state, .. }, Some(FoundCuts::Classes(keys))) => {
                *state = RowState::Cut(Cuts::from_keys(keys.clone(), self.rule.parts()));
            }
            (By::Row { state, .. }, _) => *state = RowState::Drawn,
            (By::Group { state, .. }, Some(FoundCuts::Groups(parts))) => {
                *state = GroupState::Dealt(parts.as_ref().map(|parts| parts.iter().copied().collect()));
            }
            (By::Time { state, .. }, Some(FoundCuts::Times(cuts))) => *state = TimeState::Cut(cuts.clone()),
            (By::Group { .. } | By::Time { .. }, _) => {}
        }
    }
}

/// The tag of a row that is drawn by itself: its key, or its part.
#[inline]
fn tag(keys: FoldKeys, state: &RowState, rule: FoldRule, at: RowAt) -> u32 {
    let key = keys.key(at.identity());
    if matches!(state, RowState::Drawn) { part_of_key(key, rule.parts()) } else { key }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use pg::testing::value;
    use pgrx::prelude::*;

    #[pg_test]
    fn test_equal_values_have_one_hash_and_later_ones_a_greater_place() {
        let hash = |text, name, collation| {
            let value = value(text, name);
            ValueHash::new(value.type_oid(), collation).map(|hash| hash.hash(value))
        };
        let (none, c) = (pg_sys::Oid::INVALID, pg_sys::C_COLLATION_OID);
        assert_eq!(hash("1.0", "numeric", none), hash("1.000", "numeric", none));
        assert_ne!(hash("1.0", "numeric", none), hash("1.001", "numeric", none));
        assert_eq!(hash("-0", "float8", none), hash("0", "float8", none));
        assert_ne!(hash("a", "text", c), hash("A", "text", c));
        assert_eq!(hash("{}", "json", none), None, "json has no equality");
        for (name, ascending) in [
            ("date", &["-infinity", "1999-12-31", "2000-01-01", "infinity"][..]),
            ("timestamptz", &["-infinity", "2000-01-01 00:00+01", "2000-01-01 00:00+00", "infinity"]),
            ("float8", &["-Infinity", "-1.5", "0", "1e-300", "Infinity"]),
            ("numeric", &["-2", "-1.5", "0", "7"]),
        ] {
            let place = |text: &&str| {
                let value = value(text, name);
                Chronology::new(value.type_oid()).expect("it has an order").place(value)
            };
            let places: Vec<u64> = ascending.iter().map(place).collect();
            assert!(places.is_sorted_by(|a, b| a < b), "{name}: {places:?}");
        }
        assert!(Chronology::new(pg_sys::TEXTOID).is_none() && Chronology::new(pg_sys::BOOLOID).is_none());
    }
}
