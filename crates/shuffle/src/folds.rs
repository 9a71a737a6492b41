//! Folds of cross-validation: which part of the rows each row is in, and from which parts a fold learns.
//!
//! Guarantees: parts are disjoint and complete, because each row has exactly one. A row's part depends on the seed, on
//! what identifies the row (or on its group, or its time) and on how many rows of which kind there are, and never on
//! the sequence in which rows come: all strategies, epochs and processes have the same folds. It prevents folds that
//! follow the table's order, which on a table that is sorted by its label lack whole classes.
//!
//! A row's [key](FoldKeys) is a hash of what identifies it. [`Strata`] counts keys of each class in a pass over all
//! rows, and cuts each class into equal parts at quantiles of its keys. Up to [`EXACT`] rows of a class (with many
//! classes [`EXACT_OF_MANY`]) all keys are kept, and the sizes of its parts differ by one row at most; keys of 31 bits
//! that are the same fall into the same part. Of larger classes only a histogram with as many bins is kept: a cut is at
//! the end of a bin, so that a part is off by the rows of half a bin at either end, one in `EXACT` of the class.

use std::collections::{BTreeMap, HashMap};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::SortKeys;

/// Bits of a row's key.
const KEY_BITS: u32 = 31;

/// Rows of one of two classes of which all keys are kept, and bins of larger ones.
pub const EXACT: usize = 1 << 16;

/// The same of more classes: there may be thousands.
pub const EXACT_OF_MANY: usize = 1 << 12;

/// Distinct groups, or times, that are counted one by one.
pub const DISTINCT: usize = 1 << 16;

/// From which parts a fold learns, and which one judges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldRule {
    /// Each of this many parts judges what was learned from all others.
    Each(u32),
    /// This many parts, one more than folds, are in the order of time: a fold learns from all before the one that
    /// judges it.
    Forward(u32),
    /// There is one fold, which learns from part 0 and is judged by part 1.
    HeldOut,
}

impl FoldRule {
    /// How many folds there are.
    pub fn folds(self) -> u32 {
        match self {
            FoldRule::Each(folds) | FoldRule::Forward(folds) => folds,
            FoldRule::HeldOut => 1,
        }
    }

    /// How many parts the rows fall into.
    pub fn parts(self) -> u32 {
        match self {
            FoldRule::Each(folds) => folds,
            FoldRule::Forward(folds) => folds + 1,
            FoldRule::HeldOut => 2,
        }
    }

    /// Whether a fold, from 0, learns from the rows of a part.
    #[inline]
    pub fn learns(self, fold: u32, part: u32) -> bool {
        match self {
            FoldRule::Each(_) => part != fold,
            FoldRule::Forward(_) => part <= fold,
            FoldRule::HeldOut => part == 0,
        }
    }

    /// The fold that the rows of a part judge, if there is one.
    #[inline]
    pub fn judged_by(self, part: u32) -> Option<u32> {
        match self {
            FoldRule::Each(_) => Some(part),
            FoldRule::Forward(_) | FoldRule::HeldOut => part.checked_sub(1),
        }
    }
}

/// Keys of rows for one seed: uniform on 31 bits.
#[derive(Debug, Clone, Copy)]
pub struct FoldKeys(SortKeys);

impl FoldKeys {
    /// For this seed.
    pub fn new(seed: i64) -> FoldKeys {
        // draws that differ from those of a full shuffle by the same seed
        const SALT: i64 = i64::from_le_bytes(*b"folds\0\0\0");
        FoldKeys(SortKeys::once(seed ^ SALT))
    }

    /// The key of what this number identifies.
    #[inline]
    pub fn key(self, number: u64) -> u32 {
        (self.0.key(number).cast_unsigned() >> (64 - KEY_BITS)) as u32
    }
}

/// The part of a key among this many of equal share.
#[inline]
pub fn part_of_key(key: u32, parts: u32) -> u32 {
    ((u64::from(key) * u64::from(parts)) >> KEY_BITS) as u32
}

/// The keys of the rows of each class.
#[derive(Debug)]
pub struct Strata {
    exact: usize,
    classes: Vec<Keys>,
}

/// The keys of a class, or how many are in each of as many bins as keys would have been kept.
#[derive(Debug, Clone)]
enum Keys {
    All(Vec<u32>),
    Bins(Vec<u64>),
}

impl Strata {
    /// No rows yet, of up to two classes, or of `many`.
    pub fn new(many: bool) -> Strata {
        Strata { exact: if many { EXACT_OF_MANY } else { EXACT }, classes: Vec::new() }
    }

    /// Adds a row of a class.
    #[inline]
    pub fn add(&mut self, class: usize, key: u32) {
        if class >= self.classes.len() {
            self.classes.resize(class + 1, Keys::All(Vec::new()));
        }
        let exact = self.exact;
        let keys = &mut self.classes[class];
        match keys {
            Keys::Bins(bins) => bins[bin_of(key, exact)] += 1,
            Keys::All(all) if all.len() < exact => all.push(key),
            Keys::All(all) => {
                let mut bins = vec![0; exact];
                all.iter().chain([&key]).for_each(|key| bins[bin_of(*key, exact)] += 1);
                *keys = Keys::Bins(bins);
            }
        }
    }

    /// Where the classes, taken in this order, are cut into this many parts.
    pub fn cuts(mut self, order: &[u32], parts: u32) -> Cuts {
        let exact = self.exact;
        let mut cut = |class: u32| match self.classes.get_mut(class as usize) {
            Some(Keys::All(keys)) => {
                keys.sort_unstable();
                cuts_of_keys(keys, parts)
            }
            Some(Keys::Bins(bins)) => cuts_of_bins(bins, exact, parts),
            None => Vec::new(),
        };
        let classes: Vec<_> = order.iter().map(|class| cut(*class)).collect();
        Cuts { classes: classes.into_iter().flat_map(|cuts| pad(cuts, parts)).collect(), parts }
    }
}

#[inline]
fn bin_of(key: u32, bins: usize) -> usize {
    (key >> (KEY_BITS - bins.trailing_zeros())) as usize
}

/// As many cuts as there are between parts.
fn pad(mut cuts: Vec<u32>, parts: u32) -> Vec<u32> {
    cuts.resize(parts as usize - 1, u32::MAX);
    cuts
}

/// The keys before which sorted ones are cut. Where the number of parts does not divide theirs, a class of its own
/// share of the remainder: else the same parts would have one row more of each class.
fn cuts_of_keys(keys: &[u32], parts: u32) -> Vec<u32> {
    let (len, parts) = (keys.len() as u64, u64::from(parts));
    // a number from 0 to 1, in units of 1 / 2^32, that follows from the rows
    let share = keys.first().map_or(0, |key| SplitMix64::seed_from_u64(u64::from(*key)).next_u64() >> 32);
    let place = |i: u64| (((i * len) << 32) / parts + share) >> 32;
    (1..parts).map(|i| keys.get(place(i) as usize).copied().unwrap_or(u32::MAX)).collect()
}

/// The keys at which bins begin that are next to equal shares.
fn cuts_of_bins(bins: &[u64], exact: usize, parts: u32) -> Vec<u32> {
    let total: u64 = bins.iter().sum();
    let (mut before, mut bin) = (0, 0);
    let mut cut = |i: u32| {
        let wanted = (u128::from(total) * u128::from(i) / u128::from(parts)) as u64;
        while bin < bins.len() && before + bins[bin] / 2 < wanted {
            before += bins[bin];
            bin += 1;
        }
        (bin as u32) << (KEY_BITS - exact.trailing_zeros())
    };
    (1..parts).map(&mut cut).collect()
}

/// Where classes are cut into parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuts {
    /// of each class, ascending keys: one for each part but the first
    classes: Vec<u32>,
    parts: u32,
}

impl Cuts {
    /// The cuts with these [keys](Cuts::keys).
    pub fn from_keys(keys: Vec<u32>, parts: u32) -> Cuts {
        Cuts { classes: keys, parts }
    }

    /// Of each class, ascending keys: one for each part but the first.
    pub fn keys(&self) -> &[u32] {
        &self.classes
    }

    /// The part of a row of a class with this key.
    #[inline]
    pub fn part(&self, class: usize, key: u32) -> u32 {
        let each = self.parts as usize - 1;
        let cuts = self.classes.get(class * each..(class + 1) * each).unwrap_or_default();
        cuts.iter().map(|cut| u32::from(*cut <= key)).sum()
    }
}

/// How many rows have which value, of values that are numbers: a hash of a group, or a time.
///
/// Of more than [`DISTINCT`] values a sample is kept, which depends on the values alone: those whose hash is below a
/// bound that is halved as often as it takes.
#[derive(Debug, Default)]
pub struct ValueCounts {
    counts: HashMap<u64, u64>,
    /// how often the bound was halved
    halved: u32,
}

impl ValueCounts {
    /// Adds a row with this value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        if let Some(count) = self.counts.get_mut(&value) {
            *count += 1;
        } else if is_below(value, self.halved) {
            self.counts.insert(value, 1);
            while self.counts.len() > DISTINCT {
                self.halved += 1;
                let halved = self.halved;
                self.counts.retain(|value, _| is_below(*value, halved));
            }
        }
    }

    /// The part of each value that was counted, so that parts have as many rows as can be: the largest group goes into
    /// the part that has the fewest rows, then the next one, as scikit-learn's GroupKFold does. None if there are more
    /// values than are counted one by one: then there are this many of them that each may be drawn by itself.
    pub fn balanced(&self, parts: u32) -> Option<HashMap<u64, u32>> {
        if self.halved > 0 {
            return None;
        }
        let mut groups: Vec<(u64, u64)> = self.counts.iter().map(|(value, rows)| (*rows, *value)).collect();
        groups.sort_unstable_by(|a, b| b.cmp(a));
        let mut sizes = vec![0_u64; parts as usize];
        let assigned = groups.into_iter().map(|(rows, value)| {
            let least = (0..sizes.len()).min_by_key(|part| sizes[*part]).unwrap_or_default();
            sizes[least] += rows;
            (value, least as u32)
        });
        Some(assigned.collect())
    }

    /// Values before which stretches of about equally many rows begin, ascending: one for each of `parts` but the
    /// first. Rows with the same value are in the same stretch.
    pub fn stretches(&self, parts: u32) -> Vec<u64> {
        let ascending: BTreeMap<u64, u64> = self.counts.iter().map(|(value, rows)| (*value, *rows)).collect();
        let total: u64 = ascending.values().sum();
        let (mut before, mut cuts) = (0_u64, Vec::new());
        for (value, rows) in ascending {
            // a value goes where its middle row is
            let middle = u128::from(before) * 2 + u128::from(rows);
            let has_begun = |cut: usize| middle * u128::from(parts) >= 2 * u128::from(total) * (cut as u128 + 1);
            while cuts.len() + 1 < parts as usize && has_begun(cuts.len()) {
                cuts.push(value);
            }
            before += rows;
        }
        cuts.resize(parts as usize - 1, u64::MAX);
        cuts
    }
}

/// Whether the hash of a value is below the bound that was halved so often.
fn is_below(value: u64, halved: u32) -> bool {
    halved == 0 || SplitMix64::seed_from_u64(value).next_u64().leading_zeros() >= halved
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sizes(cuts: &Cuts, rows: impl Iterator<Item = (usize, u32)>, classes: usize) -> Vec<Vec<u64>> {
        let mut sizes = vec![vec![0; cuts.parts as usize]; classes];
        rows.for_each(|(class, key)| sizes[class][cuts.part(class, key) as usize] += 1);
        sizes
    }

    proptest! {
        #[test]
        fn parts_of_each_class_differ_by_one_row_at_most_whatever_the_order_of_the_rows(
            seed: i64, rows in 1_usize..3000, parts in 2_u32..12,
        ) {
            let keys = FoldKeys::new(seed);
            let of_row = |i: usize| (usize::from(i.is_multiple_of(7)), keys.key(i as u64));
            let (mut forwards, mut backwards) = (Strata::new(false), Strata::new(false));
            (0..rows).for_each(|i| forwards.add(of_row(i).0, of_row(i).1));
            (0..rows).rev().for_each(|i| backwards.add(of_row(i).0, of_row(i).1));
            let cuts = forwards.cuts(&[0, 1], parts);
            prop_assert_eq!(&cuts, &backwards.cuts(&[0, 1], parts));
            for class in sizes(&cuts, (0..rows).map(of_row), 2) {
                let (least, most) = (class.iter().min().unwrap(), class.iter().max().unwrap());
                // two rows with the same key of 31 bits are together
                prop_assert!(most - least <= 2, "{class:?}");
            }
        }

        #[test]
        fn every_part_judges_one_fold_that_does_not_learn_from_it(folds in 2_u32..50) {
            for rule in [FoldRule::Each(folds), FoldRule::Forward(folds), FoldRule::HeldOut] {
                let judged: Vec<u32> = (0..rule.parts()).filter_map(|part| rule.judged_by(part)).collect();
                prop_assert_eq!(judged, (0..rule.folds()).collect::<Vec<_>>());
                for part in 0..rule.parts() {
                    prop_assert!(rule.judged_by(part).is_none_or(|fold| !rule.learns(fold, part)));
                }
            }
            for (fold, part) in (0..folds).flat_map(|fold| (0..=folds).map(move |part| (fold, part))) {
                prop_assert_eq!(FoldRule::Forward(folds).learns(fold, part), part < fold + 1);
            }
        }
    }

    #[test]
    fn large_classes_are_cut_to_one_row_in_as_many_as_there_are_bins() {
        let (keys, rows, parts) = (FoldKeys::new(3), 1_000_000_usize, 5);
        let class = |i: usize| usize::from(i.is_multiple_of(10));
        let mut strata = Strata::new(false);
        (0..rows).for_each(|i| strata.add(class(i), keys.key(i as u64)));
        let cuts = strata.cuts(&[0, 1], parts);
        for (class, wanted) in
            sizes(&cuts, (0..rows).map(|i| (class(i), keys.key(i as u64))), 2).iter().zip([180_000_i64, 20_000])
        {
            for size in class {
                // a bin has 14 rows of the first class, and 2 of the other
                assert!((*size as i64 - wanted).abs() < 40, "{class:?}");
            }
        }
    }

    #[test]
    fn many_classes_of_one_row_fall_into_all_parts() {
        let keys = FoldKeys::new(9);
        let mut strata = Strata::new(true);
        (0..1000).for_each(|i| strata.add(i, keys.key(i as u64)));
        let cuts = strata.cuts(&(0..1000).collect::<Vec<_>>(), 5);
        let mut parts = [0; 5];
        (0..1000).for_each(|i| parts[cuts.part(i, keys.key(i as u64)) as usize] += 1);
        assert!(parts.iter().all(|rows| (140..260).contains(rows)), "{parts:?}");
    }

    #[test]
    fn groups_are_dealt_out_by_their_sizes() {
        let mut counts = ValueCounts::default();
        for (group, rows) in [(11, 50), (12, 30), (13, 20), (14, 10), (15, 10)] {
            (0..rows).for_each(|_| counts.add(group));
        }
        let parts = counts.balanced(2).unwrap();
        let rows: u64 = [(11, 50), (12, 30), (13, 20), (14, 10), (15, 10)]
            .iter()
            .filter(|(group, _)| parts[group] == parts[&11])
            .map(|(_, rows)| *rows)
            .sum();
        assert_eq!(rows, 60);
    }

    #[test]
    fn stretches_have_about_as_many_rows_each_and_split_no_value() {
        let mut counts = ValueCounts::default();
        (0..1000_u64).for_each(|i| counts.add(i));
        assert_eq!(counts.stretches(4), [250, 500, 750]);
        let mut few = ValueCounts::default();
        (0..10).for_each(|_| few.add(1));
        (0..90).for_each(|_| few.add(2));
        // the second value has the middles of both halves
        assert_eq!(few.stretches(2), [2]);
    }

    #[test]
    fn stretches_of_a_million_times_are_off_by_a_hundredth_at_most() {
        let mut counts = ValueCounts::default();
        (0..1_000_000_u64).rev().for_each(|i| counts.add(i));
        assert!(counts.halved > 0 && counts.balanced(3).is_none());
        for (cut, wanted) in counts.stretches(5).iter().zip([200_000_i64, 400_000, 600_000, 800_000]) {
            assert!((*cut as i64 - wanted).abs() < 10_000, "{cut}");
        }
    }
}
