//! What stands for NULLs in features, and how many there were.
//!
//! In the preparation pass that finds the means, NaN stands for a NULL among numbers: no feature can be NaN. From then
//! on it is the mean. What is counted belongs to rows that have become tuples.

use pg::values::array::ArrayFault;
use pg::values::typed::TypedDatum;
use pg::values::vector::VectorReader;
use serde::{Deserialize, Serialize};
use sgd::counts;

/// What stands for NULLs in features that are dense, or columns of numbers and categories.
///
/// Features are counted from 0; where some columns have categories, it is the columns that are.
pub struct Imputation {
    values: Values,
    /// rows with a NULL, and those in which each feature is one, since the epoch began
    counts: NullCounts,
    /// features that are NULL in the row under way
    row: Vec<u32>,
    /// does NaN stand somewhere since this was asked?
    has_missing: bool,
}

enum Values {
    /// a pass over the rows is finding them
    Sought,
    /// by feature
    Known(Vec<f32>),
    /// no NULL was expected
    None,
}

/// Rows with a NULL, and those in which each feature is one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NullCounts {
    pub rows: u64,
    /// by feature, up to the last that was NULL
    pub features: Vec<u64>,
    /// the rows of each group, if there are groups
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u64>,
}

pub fn add_one(counts: &mut Vec<u64>, i: usize) {
    let len = counts.len().max(i + 1);
    allocation::resize(counts, len, 0);
    counts[i] += 1;
}

/// Adds other counts, of which there may be more, or fewer.
pub fn add_up(counts: &mut Vec<u64>, others: &[u64]) {
    let len = counts.len().max(others.len());
    allocation::resize(counts, len, 0);
    counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
}

impl NullCounts {
    /// Are these so few that they can be added up, as those of any table are?
    pub fn is_sound(&self) -> bool {
        self.features.iter().chain(&self.groups).chain([&self.rows]).all(|count| *count <= counts::MAX_ROWS)
    }

    pub fn add(&mut self, other: &NullCounts) {
        self.rows += other.rows;
        add_up(&mut self.features, &other.features);
        add_up(&mut self.groups, &other.groups);
    }
}

impl Imputation {
    /// By means that are still to be found, if a NULL can come at all.
    pub fn to_be_found(may_be_null: bool) -> Imputation {
        Imputation::new(if may_be_null { Values::Sought } else { Values::None })
    }

    /// By values that a model has; None if it has none.
    pub fn known(values: Option<Vec<f32>>) -> Imputation {
        Imputation::new(values.map_or(Values::None, Values::Known))
    }

    fn new(values: Values) -> Imputation {
        Imputation { values, counts: NullCounts::default(), row: Vec::new(), has_missing: false }
    }

    /// Must a pass over the rows find the values before anything can be learned?
    pub fn needs_preparation(&self) -> bool {
        matches!(self.values, Values::Sought)
    }

    /// The values, once they are known.
    pub fn values(&self) -> Option<&[f32]> {
        match &self.values {
            Values::Known(values) => Some(values),
            _ => None,
        }
    }

    /// A pass over the rows is about to find them.
    pub fn seek(&mut self) {
        self.values = Values::Sought;
    }

    pub fn set_values(&mut self, values: Option<Vec<f32>>) {
        self.values = values.map_or(Values::None, Values::Known);
    }

    /// What stands for a NULL of feature `i`; None if nothing does.
    pub fn value(&mut self, i: usize) -> Option<f32> {
        let value = match &self.values {
            Values::Sought => {
                self.has_missing = true;
                f32::NAN
            }
            Values::Known(values) => values.get(i).copied()?,
            Values::None => return None,
        };
        self.met(i);
        Some(value)
    }

    /// Feature `i` is NULL in the row under way, and something stands for it.
    pub fn met(&mut self, i: usize) {
        self.row.push(i as u32);
    }

    /// Reads an array that has NULLs.
    #[cold]
    pub fn read_array(
        &mut self,
        reader: VectorReader,
        array: TypedDatum<'_>,
        out: &mut [f32],
    ) -> Result<(), ArrayFault> {
        reader.read_with_nulls(array, out, f32::NAN)?;
        for (i, value) in out.iter_mut().enumerate().filter(|(_, value)| value.is_nan()) {
            *value = self.value(i).ok_or(ArrayFault::Null(i + 1))?;
        }
        Ok(())
    }

    /// Has the row under way a NULL?
    #[inline(always)]
    pub fn has_nulls(&self) -> bool {
        !self.row.is_empty()
    }

    /// The row under way has become a tuple, of this group if there are groups, or was left out.
    #[cold]
    pub fn end_row(&mut self, is_tuple: bool, group: Option<usize>) {
        for i in self.row.drain(..).filter(|_| is_tuple) {
            add_one(&mut self.counts.features, i as usize);
        }
        if let Some(group) = group.filter(|_| is_tuple) {
            add_one(&mut self.counts.groups, group);
        }
        self.counts.rows += u64::from(is_tuple);
    }

    /// Does NaN stand for a NULL in any row since this was asked last?
    pub fn take_missing(&mut self) -> bool {
        std::mem::take(&mut self.has_missing)
    }

    /// What was counted since the epoch began.
    pub fn counts(&self) -> &NullCounts {
        &self.counts
    }

    /// Takes over what was counted elsewhere, or nothing for a new epoch.
    pub fn set_counts(&mut self, counts: NullCounts) {
        self.counts = counts;
    }
}
