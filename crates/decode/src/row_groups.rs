//! The group of a row, and whether the row is held out for validation.
//!
//! Both are in the tuple's group tag: the number of the group, and the highest bit if the tuple is held out. Whether a
//! tuple is held out by a fraction is a function of the seed and of the place of the row or its block,
//! so that it is the same in every epoch.

use super::columns::{FIRST_FEATURE, column, column_type, is_category};
use super::folds::{Folds, FoundCuts};
use errors::limits::{MAX_GROUP_BYTES, MAX_GROUPS};
use errors::{Result, RowAt, RowFault};
use options::row_groups::{HoldOut, RowGroupSpec};
use pg::catalog::types::base_type;
use pg::executor::query::Column;
use pg::tuples::row::Row;
use pg::values::distinct::Distinct;
use pg::values::number::NumberType;
use pg::values::typed::TypedDatum;
use pgrx::pg_sys;
use shuffle::SortKeys;

/// The bit of a group tag that says that the tuple is held out for validation.
pub const HELD_OUT: u32 = 1 << 31;

/// The groups of rows that are being decoded, and what is held out of them.
pub struct RowGroups {
    group: Option<GroupColumn>,
    /// where a row has the column that says whether it is held out
    flag: Option<usize>,
    drawn: Option<Drawn>,
    /// is the block under way held out?
    block_held_out: bool,
    /// the parts that rows are in, for the folds of a search
    folds: Option<Folds>,
}

struct GroupColumn {
    column: String,
    values: Distinct,
    place: usize,
}

/// How rows are drawn that are held out by a fraction.
struct Drawn {
    by_block: bool,
    fraction: f64,
    keys: SortKeys,
}

impl RowGroups {
    /// For rows with the columns of `spec` from `place` on. As to folds, there may be `many` classes, and a pass before
    /// the first epoch that `counts` rows.
    pub fn new(
        spec: &RowGroupSpec,
        columns: &[Column],
        place: usize,
        (many, counts): (bool, bool),
    ) -> Result<RowGroups> {
        let mut place = FIRST_FEATURE + place;
        let mut next = || {
            place += 1;
            place - 1
        };
        let group = match &spec.group {
            Some(name) => Some(group(column(columns, name)?, next())?),
            None => None,
        };
        let flag = match &spec.hold_out {
            Some(HoldOut::Column(name)) => Some(flag(column(columns, name)?, next())?),
            _ => None,
        };
        let drawn = match &spec.hold_out {
            Some(HoldOut::Rows { fraction, seed }) => Some(Drawn::new(false, *fraction, *seed)),
            Some(HoldOut::Blocks { fraction, seed }) => Some(Drawn::new(true, *fraction, *seed)),
            _ => None,
        };
        let folds =
            spec.folds.as_ref().map(|folds| Folds::new(folds, columns, &mut next, (many, counts))).transpose()?;
        Ok(RowGroups { group, flag, drawn, block_held_out: false, folds })
    }

    /// The part of the group tag that depends on a row's columns.
    pub fn of_row(&mut self, row: Row<'_>) -> std::result::Result<u32, GroupFault> {
        let mut tag = 0;
        if let Some(place) = self.flag {
            let Some(flag) = row.get(place) else { return Err(GroupFault::Null(RowFault::NullValidation)) };
            tag = if flag.is_true() { HELD_OUT } else { 0 };
        }
        if let Some(GroupColumn { column, values, place }) = &mut self.group {
            let Some(value) = row.get(*place) else { return Err(GroupFault::Null(RowFault::NullGroup)) };
            tag |= match values.find(value) {
                Some(group) => group as u32,
                None => add(column, values, value).map_err(GroupFault::Row)?,
            };
        }
        if let Some(folds) = &mut self.folds {
            tag |= folds.of_row(row).map_err(GroupFault::Null)?;
        }
        Ok(tag)
    }

    /// Makes what the tags of tuples with these labels were so far their tags, by the class of each.
    #[inline]
    pub fn finish(&mut self, tags: &mut [u32], labels: &[f32], class: impl Fn(f32) -> usize) {
        if let Some(folds) = &mut self.folds {
            folds.finish(tags, labels, class);
        }
    }

    /// All rows were gone through. The classes that were met have this order from now on.
    pub fn end_preparation(&mut self, classes: &[u32]) {
        if let Some(folds) = &mut self.folds {
            folds.close(classes);
        }
    }

    /// Where the rows are cut into the parts of folds, once that is known.
    pub fn cuts(&self) -> Option<FoundCuts> {
        self.folds.as_ref().and_then(Folds::cuts)
    }

    /// Takes over where another process has cut the rows.
    pub fn adopt_cuts(&mut self, found: Option<&FoundCuts>) {
        self.folds.iter_mut().for_each(|folds| folds.adopt(found));
    }

    /// The rows that follow are of this block.
    pub fn begin_block(&mut self, block: u32) {
        if let Some(drawn) = self.drawn.as_ref().filter(|drawn| drawn.by_block) {
            self.block_held_out = drawn.holds_block(block);
        }
    }

    /// The part of the group tag that depends on a row's place.
    #[inline]
    pub fn of_place(&self, at: RowAt) -> u32 {
        if let Some(folds) = &self.folds {
            return folds.of_place(at);
        }
        let held_out = match &self.drawn {
            None => false,
            Some(drawn) if drawn.by_block => self.block_held_out,
            Some(drawn) => drawn.holds_row(at),
        };
        if held_out { HELD_OUT } else { 0 }
    }

    /// The groups that were met, as text, by their numbers; one without a name if there are no groups.
    pub fn groups(&self) -> Vec<Option<String>> {
        match &self.group {
            Some(GroupColumn { values, .. }) => (0..values.len()).map(|i| Some(values.text(i))).collect(),
            None => vec![None],
        }
    }

    /// Takes groups of these names for its first ones, or adds them to those that were met. Gives their numbers:
    /// several names may be those of values that are equal.
    pub fn know(&mut self, names: &[String]) -> Vec<usize> {
        let Some(GroupColumn { values, .. }) = &mut self.group else { return Vec::new() };
        names.iter().filter_map(|name| values.add_text(name)).map(|(number, _)| number).collect()
    }

    /// The number of the group of a row that is left out, if it has one.
    pub fn group_of(&mut self, row: Row<'_>) -> Option<usize> {
        let GroupColumn { column, values, place } = self.group.as_mut()?;
        let value = row.get(*place)?;
        values.find(value).or_else(|| add(column, values, value).ok().map(|group| group as usize))
    }

    /// Do rows fall into groups?
    pub fn has_groups(&self) -> bool {
        self.group.is_some()
    }

    /// How many groups were met.
    pub fn count(&self) -> usize {
        self.group.as_ref().map_or(1, |group| group.values.len())
    }

    /// Is this the name of group `number`, as [`RowGroups::groups`] gives it?
    pub fn is_named(&self, number: usize, name: &str) -> bool {
        self.group.as_ref().is_some_and(|group| group.values.text(number) == name)
    }

    /// The numbers of the groups that were met, in the order of their values.
    pub fn sorted(&self) -> Vec<u32> {
        self.group.as_ref().map_or_else(|| vec![0], |group| group.values.sorted())
    }
}

/// Why a row has no group tag.
pub enum GroupFault {
    /// a column is NULL
    Null(RowFault),
    Row(Box<RowFault>),
}

#[cold]
fn add(column: &str, values: &mut Distinct, value: TypedDatum<'_>) -> std::result::Result<u32, Box<RowFault>> {
    if values.len() == MAX_GROUPS {
        return Err(Box::new(RowFault::TooManyGroups { column: column.to_owned(), limit: MAX_GROUPS }));
    }
    let group = values.add(value);
    if values.size(group) > MAX_GROUP_BYTES {
        return Err(Box::new(RowFault::GroupTooLong(values.size(group))));
    }
    Ok(group as u32)
}

fn group(column: &Column, place: usize) -> Result<GroupColumn> {
    let base = base_type(column.type_oid);
    if NumberType::from_oid(base).is_none() && !is_category(base) {
        return Err(column_type("group", column, "Groups must be integers, numbers, booleans, text or an enum."));
    }
    let values = Distinct::new(column.type_oid, column.collation);
    Ok(GroupColumn { column: column.name.clone(), values, place })
}

fn flag(column: &Column, place: usize) -> Result<usize> {
    if base_type(column.type_oid) != pg_sys::BOOLOID {
        return Err(column_type(
            "validation",
            column,
            "A validation column must be boolean: true for rows to hold out.",
        ));
    }
    Ok(place)
}

impl Drawn {
    fn new(by_block: bool, fraction: f64, seed: i64) -> Drawn {
        // draws that differ from those of a full shuffle by the same seed
        const SALT: i64 = i64::from_le_bytes(*b"held out");
        let keys = SortKeys::once(seed ^ SALT);
        Drawn { by_block, fraction, keys }
    }

    fn holds_row(&self, at: RowAt) -> bool {
        ((self.keys.key(at.identity()) as u64) as f64) < self.fraction * 2f64.powi(64)
    }

    /// Is this block held out? One block is drawn of each run of 1 / fraction blocks.
    fn holds_block(&self, block: u32) -> bool {
        let first_of = |run: u64| (run as f64 / self.fraction).ceil() as u64;
        let mut run = (f64::from(block) * self.fraction) as u64;
        // rounding must not put a block next to the run that has it
        while first_of(run) > u64::from(block) {
            run -= 1;
        }
        while first_of(run + 1) <= u64::from(block) {
            run += 1;
        }
        let (first, len) = (first_of(run), first_of(run + 1) - first_of(run));
        u64::from(block) == first + (self.keys.key(run) as u64) % len.max(1)
    }
}
