//! What the features of a model were like, and how far those of other rows are from that.
//!
//! A [`Profile`] has mean, deviation and share of missing values of each feature, the shares of its values between ten
//! quantiles, and the rows of each category. Quantiles are those of a [`RowSample`] of bounded size; bins are closed above,
//! as numpy's `searchsorted` finds them, and below the least and above the greatest value there is one more each.
//!
//! Guarantees: what is kept depends on the rows and their order alone; the size is bounded by the features and not by the
//! rows. It prevents a comparison that names columns which differ by chance: see [`FeatureProfile::drift`].

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use tuples::Batch;

/// Bins between the least and the greatest value of a feature, at most: repeated values make one.
const BINS: usize = 10;

/// Shares below this count as this: an empty bin is no infinite change.
const LEAST_SHARE: f64 = 1e-4;

/// What is kept of the features of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// rows behind means, missing shares and categories
    pub rows: u64,
    /// by column, or element of the column of arrays
    pub features: Vec<FeatureProfile>,
}

/// What is kept of a feature.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureProfile {
    /// the share of rows in which it is NULL
    pub missing: f64,
    /// of a number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// of a number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// of a number, ascending: the least value of the sample, and the upper ends of the bins from there on
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<f64>,
    /// of the values that are there: below the edges, between each two of them, and above
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<f64>,
    /// values behind the shares
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sampled: u64,
    /// rows of each category, in the sequence of their weights
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<u64>,
    /// rows of categories that are none of these
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
}

/// What a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureShape {
    /// a number
    Number,
    /// one of so many categories
    Categories(usize),
    /// a text of which nothing is kept but whether it is there
    Hashed,
}

/// How far a feature is from what it was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// the population stability index
    pub psi: Option<f64>,
    /// of numbers, the Kolmogorov-Smirnov statistic at the edges
    pub ks: Option<f64>,
    /// is it distributed in another way?
    pub shifted: bool,
    /// is it NULL more or less often?
    pub missing: bool,
    /// are there more categories that are unknown, by a hundredth of all rows?
    pub unseen: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Profile {
    /// Of models with more features nothing is kept.
    pub const MAX_FEATURES: usize = 1024;

    /// Can it be that of features of these shapes? The error says what cannot.
    ///
    /// # Errors
    /// What is wrong, and with which feature, from 0.
    pub fn check(&self, shapes: &[FeatureShape]) -> Result<(), (Option<usize>, &'static str)> {
        if shapes.len() != self.features.len() || shapes.len() > Profile::MAX_FEATURES {
            return Err((None, "has not as many features as the model"));
        }
        for (i, (feature, shape)) in self.features.iter().zip(shapes).enumerate() {
            feature.check(*shape).map_err(|what| (Some(i), what))?;
        }
        Ok(())
    }
}

impl FeatureProfile {
    fn check(&self, shape: FeatureShape) -> Result<(), &'static str> {
        let is_share = |share: &f64| (0.0..=1.0).contains(share);
        let is_number = self.mean.is_some() && self.deviation.is_some();
        let fits = match shape {
            FeatureShape::Number => is_number && self.counts.is_empty() && self.unseen == 0,
            FeatureShape::Categories(categories) => {
                self.mean.is_none() && self.edges.is_empty() && self.counts.len() == categories
            }
            FeatureShape::Hashed => self.mean.is_none() && self.edges.is_empty() && self.counts.is_empty(),
        };
        let bins = if self.edges.is_empty() { 0 } else { self.edges.len() + 1 };
        match () {
            _ if !fits => Err("is not what the model has there"),
            _ if !is_share(&self.missing) || !self.shares.iter().all(is_share) => Err("has a share that cannot be"),
            _ if self.mean.is_some_and(|mean| !mean.is_finite()) => Err("has a mean that is not finite"),
            _ if !self.deviation.is_none_or(|deviation| deviation.is_finite() && deviation >= 0.0) => {
                Err("has a deviation that cannot be")
            }
            _ if self.edges.len() > BINS + 1 || !self.edges.iter().all(|edge| edge.is_finite()) => {
                Err("has edges that cannot be")
            }
            _ if !self.edges.is_sorted() => Err("has edges that do not ascend"),
            _ if self.shares.len() != bins => Err("has not one share more than edges"),
            _ if self.sampled > i64::MAX as u64
                || self.unseen > 1 << 53
                || self.counts.iter().any(|count| *count > 1 << 53) =>
            {
                Err("has counts that cannot be")
            }
            () => Ok(()),
        }
    }

    /// The bin of a value, from 0.
    pub fn bin(&self, value: f64) -> usize {
        match self.edges.split_first() {
            None => 0,
            Some((least, _)) if value < *least => 0,
            Some((_, upper)) => 1 + upper.partition_point(|edge| *edge < value),
        }
    }

    /// How far `new` is from this, whose shares are those between the same edges.
    ///
    /// Two samples of one distribution have an index of about chi-square (b - 1) times (1/n + 1/m), b being the bins and n
    /// and m the sizes (Yurdakul 2018). What is called shifted is beyond 0.1, and beyond what chance exceeds once in a
    /// thousand times. A share of NULLs has changed if it has by 0.05 and by four standard errors.
    pub fn drift(&self, new: &FeatureProfile, rows: u64, new_rows: u64) -> Drift {
        let (psi, ks, shifted) = match (self.counts.is_empty(), self.shares.is_empty()) {
            (true, true) => (None, None, false),
            (true, false) if new.sampled == 0 => (None, None, false),
            (true, false) => {
                let index = stability_index(&self.shares, &new.shares);
                let by_chance = chance(self.shares.len() - 2, self.sampled, new.sampled);
                (Some(index), Some(greatest_distance(&self.shares, &new.shares)), index >= 0.1 && index > by_chance)
            }
            (false, _) => {
                let shares = |counts: &[u64], unseen: u64| -> Option<Vec<f64>> {
                    let all = (counts.iter().sum::<u64>() + unseen) as f64;
                    (all > 0.0).then(|| counts.iter().chain([&unseen]).map(|count| *count as f64 / all).collect())
                };
                match (shares(&self.counts, self.unseen), shares(&new.counts, new.unseen)) {
                    (Some(old), Some(now)) => {
                        let index = stability_index(&old, &now);
                        let by_chance = chance(self.counts.len(), rows, new_rows);
                        (Some(index), None, index >= 0.1 && index > by_chance)
                    }
                    _ => (None, None, false),
                }
            }
        };
        let change = (new.missing - self.missing).abs();
        let both = (self.missing * rows as f64 + new.missing * new_rows as f64) / (rows + new_rows).max(1) as f64;
        let error = (both * (1.0 - both) * (1.0 / rows.max(1) as f64 + 1.0 / new_rows.max(1) as f64)).sqrt();
        let missing = change >= 0.05 && change > 4.0 * error;
        let share_unseen = |unseen: u64, rows: u64| unseen as f64 / rows.max(1) as f64;
        let unseen = share_unseen(new.unseen, new_rows) - share_unseen(self.unseen, rows) >= 0.01;
        Drift { psi, ks, shifted, missing, unseen }
    }
}

/// The population stability index of two distributions over the same bins.
fn stability_index(old: &[f64], new: &[f64]) -> f64 {
    let term = |(old, new): (&f64, &f64)| {
        let (old, new) = (old.max(LEAST_SHARE), new.max(LEAST_SHARE));
        (new - old) * (new / old).ln()
    };
    old.iter().zip(new).map(term).sum()
}

/// The greatest distance of two distribution functions at the ends of the bins.
fn greatest_distance(old: &[f64], new: &[f64]) -> f64 {
    let (mut difference, mut greatest) = (0.0f64, 0.0f64);
    for (old, new) in old.iter().zip(new) {
        difference += new - old;
        greatest = greatest.max(difference.abs());
    }
    greatest
}

/// What the index of samples of these sizes exceeds by chance once in a thousand times: the quantile of chi-square of one
/// degree of freedom less than bins, as Wilson and Hilferty (1931) approximate it.
fn chance(bins: usize, rows: u64, new_rows: u64) -> f64 {
    let freedom = bins.saturating_sub(1).max(1) as f64;
    let part = 2.0 / (9.0 * freedom);
    let quantile = freedom * (1.0 - part + 3.0902 * part.sqrt()).powi(3);
    quantile * (1.0 / rows.max(1) as f64 + 1.0 / new_rows.max(1) as f64)
}

/// A sample of rows of numbers, each equally likely, while rows arrive (Vitter 1985; Li 1994, algorithm L): of those that
/// are not taken none is looked at. NaN stands for what is missing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "SampledRows", into = "SampledRows")]
pub struct RowSample {
    dim: usize,
    size: usize,
    seen: u64,
    /// the number of the next row to be taken
    next: u64,
    weight: f64,
    random: Xoshiro256PlusPlus,
    values: Vec<f32>,
}

/// A sample on its way to another process. Numbers are their bits, as no text has NaN.
#[derive(Serialize, Deserialize)]
struct SampledRows {
    dim: usize,
    seen: u64,
    bits: Vec<u32>,
}

impl From<RowSample> for SampledRows {
    fn from(sample: RowSample) -> SampledRows {
        let bits = sample.values.iter().map(|value| value.to_bits()).collect();
        SampledRows { dim: sample.dim, seen: sample.seen, bits }
    }
}

impl TryFrom<SampledRows> for RowSample {
    type Error = &'static str;

    fn try_from(rows: SampledRows) -> Result<RowSample, &'static str> {
        let SampledRows { dim, seen, bits } = rows;
        if dim > Profile::MAX_FEATURES {
            return Err("a sample of too many features");
        }
        let mut sample = RowSample::new(dim);
        let sampled = (sample.size as u64).min(seen) as usize;
        if bits.len() != sampled * dim {
            return Err("a sample of another size");
        }
        (sample.seen, sample.values) = (seen, bits.into_iter().map(f32::from_bits).collect());
        Ok(sample)
    }
}

impl RowSample {
    /// Rows that are kept, at most.
    pub const ROWS: usize = 4096;
    /// Numbers that are kept, at most.
    const NUMBERS: usize = 1 << 20;

    /// No rows yet, of `dim` numbers, at most [`Profile::MAX_FEATURES`].
    pub fn new(dim: usize) -> RowSample {
        let size = (RowSample::NUMBERS / dim.max(1)).clamp(1, RowSample::ROWS);
        let random = Xoshiro256PlusPlus::seed_from_u64(u64::from_le_bytes(*b"profile\0"));
        let mut sample = RowSample { dim, size, seen: 0, next: 0, weight: 1.0, random, values: Vec::new() };
        sample.lower();
        sample
    }

    /// A number above 0 and below 1.
    fn unit(&mut self) -> f64 {
        ((self.random.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    fn lower(&mut self) {
        self.weight *= (self.unit().ln() / self.size as f64).exp();
    }

    /// Adds the rows of a dense batch.
    ///
    /// # Panics
    /// If it has rows of another number of features.
    pub fn add(&mut self, batch: &Batch) {
        let end = self.seen + batch.len() as u64;
        while self.next < end {
            self.take(batch.features((self.next - self.seen) as usize));
        }
        self.seen = end;
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another number of features.
    pub fn add_row(&mut self, row: &[f32]) {
        if self.next == self.seen {
            self.take(row);
        }
        self.seen += 1;
    }

    fn take(&mut self, row: &[f32]) {
        assert_eq!(row.len(), self.dim, "as many features as the sample was made for");
        if self.values.len() < self.size * self.dim {
            self.values.extend_from_slice(row);
            self.next += 1;
            if self.values.len() < self.size * self.dim {
                return;
            }
        } else {
            let place = (self.unit() * self.size as f64) as usize * self.dim;
            self.values[place..place + self.dim].copy_from_slice(row);
            self.lower();
            self.next += 1;
        }
        let skip = (self.unit().ln() / (1.0 - self.weight).ln()).floor();
        self.next = self.next.saturating_add(skip as u64);
    }

    /// Makes it a sample of its own rows and another's, after which none is to be added. False if the other has rows of
    /// another number of features.
    pub fn unite(&mut self, other: &RowSample) -> bool {
        if self.dim != other.dim {
            return false;
        }
        let mut rows = [&*self, other].map(|sample| sample.values.chunks(self.dim.max(1)).collect::<Vec<_>>());
        // rows that each of them stands for, less those that are taken
        let mut left = [self.seen, other.seen];
        let (mut random, mut values) = (self.random.clone(), Vec::new());
        let mut below = |end: u64| random.next_u64() % end.max(1);
        while values.len() < self.size * self.dim && !rows.iter().all(Vec::is_empty) {
            let from = usize::from(rows[0].is_empty() || below(left[0] + left[1]) >= left[0]);
            let from = if rows[from].is_empty() { 1 - from } else { from };
            let place = below(rows[from].len() as u64) as usize;
            values.extend_from_slice(rows[from].swap_remove(place));
            left[from] -= 1;
        }
        (self.seen, self.random, self.values) = (self.seen + other.seen, random, values);
        true
    }

    /// Each number's distribution, with mean, deviation and missing share of the sample.
    pub fn features(&self) -> Vec<FeatureProfile> {
        (0..self.dim).map(|j| self.feature(j)).collect()
    }

    fn feature(&self, j: usize) -> FeatureProfile {
        let all = self.values.iter().skip(j).step_by(self.dim).copied();
        let mut values: Vec<f32> = all.filter(|value| !value.is_nan()).collect();
        let rows = self.values.len() / self.dim.max(1);
        let missing = (rows - values.len()) as f64 / rows.max(1) as f64;
        values.sort_unstable_by(f32::total_cmp);
        let n = values.len();
        let Some(least) = values.first() else {
            return FeatureProfile { missing, mean: Some(0.0), deviation: Some(0.0), ..FeatureProfile::default() };
        };
        let mut edges = vec![f64::from(*least)];
        for bin in 1..=BINS {
            let upper = f64::from(values[(bin * n).div_ceil(BINS) - 1]);
            if edges.len() == 1 || edges[edges.len() - 1] < upper {
                edges.push(upper);
            }
        }
        let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / n as f64;
        let squares = values.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>();
        let mut feature = FeatureProfile {
            missing,
            mean: Some(mean),
            deviation: Some((squares / n as f64).sqrt()),
            edges,
            sampled: n as u64,
            ..FeatureProfile::default()
        };
        let mut bins = vec![0u64; feature.edges.len() + 1];
        values.iter().for_each(|value| bins[feature.bin(f64::from(*value))] += 1);
        feature.shares = bins.into_iter().map(|count| count as f64 / n as f64).collect();
        feature
    }
}

/// Counts of rows, feature by feature.
#[derive(Debug)]
pub struct Tallies {
    rows: u64,
    numbers: Vec<Tally>,
    /// by column of categories, the rows of each
    categories: Vec<Vec<u64>>,
}

/// Of a number.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    /// the first value, and sums of differences from it and of their squares
    origin: f64,
    sum: f64,
    squares: f64,
    /// the edges are those of what is compared with
    like: FeatureProfile,
    bins: Vec<u64>,
}

impl Tallies {
    /// No rows yet, of features of these shapes; numbers are put into the bins of `like`, if it is there, which has as
    /// many features.
    pub fn new(shapes: &[FeatureShape], like: Option<&Profile>) -> Tallies {
        let mut tallies = Tallies { rows: 0, numbers: Vec::new(), categories: Vec::new() };
        for (i, shape) in shapes.iter().enumerate() {
            match shape {
                FeatureShape::Number => {
                    let like = like.and_then(|profile| profile.features.get(i)).cloned().unwrap_or_default();
                    let bins = if like.edges.is_empty() { 0 } else { like.edges.len() + 1 };
                    tallies.numbers.push(Tally { like, bins: vec![0; bins], ..Tally::default() });
                }
                FeatureShape::Categories(categories) => tallies.categories.push(vec![0; *categories]),
                FeatureShape::Hashed => {}
            }
        }
        tallies
    }

    /// Adds a row with these numbers; NaN stands for what is missing.
    pub fn add(&mut self, numbers: &[f32]) {
        self.rows += 1;
        for (value, tally) in numbers.iter().zip(&mut self.numbers).filter(|(value, _)| !value.is_nan()) {
            let value = f64::from(*value);
            if tally.count == 0 {
                tally.origin = value;
            }
            tally.count += 1;
            tally.sum += value - tally.origin;
            tally.squares += (value - tally.origin).powi(2);
            if !tally.bins.is_empty() {
                tally.bins[tally.like.bin(value)] += 1;
            }
        }
    }

    /// The row is of this category of the n-th column of categories.
    pub fn add_category(&mut self, column: usize, place: usize) {
        self.categories[column][place] += 1;
    }

    /// How many rows there were.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The profile of all rows, of features of these shapes; `nulls` are the rows in which a column that has no numbers is
    /// NULL. Bins are those of `sample`, if it is there.
    pub fn finish(self, shapes: &[FeatureShape], sample: Option<&RowSample>, nulls: impl Fn(usize) -> u64) -> Profile {
        let rows = self.rows.max(1) as f64;
        let mut sampled = sample.map(|sample| sample.features().into_iter());
        let (mut numbers, mut categories) = (self.numbers.into_iter(), self.categories.into_iter());
        let mut feature = |(i, shape): (usize, &FeatureShape)| match shape {
            FeatureShape::Number => {
                let tally = numbers.next().unwrap_or_default();
                let mut feature = match &mut sampled {
                    Some(sampled) => sampled.next().unwrap_or_default(),
                    None => tally.binned(),
                };
                let (mean, deviation) = tally.moments();
                feature.missing = (self.rows - tally.count) as f64 / rows;
                (feature.mean, feature.deviation) = (Some(mean), Some(deviation));
                feature
            }
            FeatureShape::Categories(_) => {
                let counts = categories.next().unwrap_or_default();
                let unseen = self.rows.saturating_sub(counts.iter().sum());
                FeatureProfile { missing: nulls(i) as f64 / rows, counts, unseen, ..FeatureProfile::default() }
            }
            FeatureShape::Hashed => FeatureProfile { missing: nulls(i) as f64 / rows, ..FeatureProfile::default() },
        };
        Profile { rows: self.rows, features: shapes.iter().enumerate().map(&mut feature).collect() }
    }
}

impl Tally {
    fn moments(&self) -> (f64, f64) {
        let count = self.count.max(1) as f64;
        let mean = self.sum / count;
        (self.origin + mean, (self.squares / count - mean * mean).max(0.0).sqrt())
    }

    fn binned(&self) -> FeatureProfile {
        let share = |count: &u64| *count as f64 / self.count.max(1) as f64;
        FeatureProfile {
            edges: self.like.edges.clone(),
            shares: self.bins.iter().map(share).collect(),
            sampled: self.count,
            ..FeatureProfile::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_two_parts_has_as_many_rows_of_each_as_it_has_of_all() {
        let sample_of = |rows: std::ops::Range<usize>| {
            let mut sample = RowSample::new(1);
            rows.for_each(|i| sample.add_row(&[i as f32]));
            sample
        };
        let (few, many) = (100, 9 * RowSample::ROWS);
        for (a, b) in [(0..few, few..2 * few), (0..many, many..4 * many), (0..few, few..many), (0..0, 0..few)] {
            let (share, rows) = (a.len() as f64 / (a.len() + b.len()) as f64, a.len() + b.len());
            let (end, mut sample) = (a.end as f32, sample_of(a));
            let other = serde_json::to_string(&sample_of(b)).unwrap();
            assert!(sample.unite(&serde_json::from_str(&other).unwrap()));
            assert_eq!(sample.values.len(), rows.min(RowSample::ROWS));
            let of_first = sample.values.iter().filter(|value| **value < end).count() as f64;
            let n = sample.values.len() as f64;
            assert!(
                (of_first - share * n).abs() <= 4.0 * (n * share * (1.0 - share)).sqrt() + 1e-9,
                "{of_first} of {n}"
            );
            let mut values = sample.values.clone();
            values.sort_unstable_by(f32::total_cmp);
            values.dedup();
            assert_eq!(values.len(), sample.values.len(), "no row is there twice");
        }
        assert!(!sample_of(0..few).unite(&RowSample::new(2)));
        assert!(serde_json::from_str::<RowSample>(r#"{"dim": 1, "seen": 3, "bits": [0]}"#).is_err());
        assert!(serde_json::from_str::<RowSample>(r#"{"dim": 3000000000, "seen": 0, "bits": []}"#).is_err());
    }

    #[test]
    fn every_row_is_as_likely_in_the_sample() {
        let mut sample = RowSample::new(1);
        let n = 40 * RowSample::ROWS;
        (0..n).for_each(|i| sample.add_row(&[i as f32]));
        assert_eq!(sample.values.len(), RowSample::ROWS);
        let mut sorted = sample.values.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]), "no row twice");
        for (i, value) in sorted.iter().enumerate() {
            let (expected, found) = (i as f64 / sorted.len() as f64, f64::from(*value) / n as f64);
            assert!((expected - found).abs() < 1.95 / (sorted.len() as f64).sqrt(), "row {value} at {i}");
        }
    }

    #[test]
    fn a_batch_gives_the_sample_that_its_rows_give() {
        let (mut by_row, mut by_batch) = (RowSample::new(3), RowSample::new(3));
        for first in (0..30_000).step_by(777) {
            let mut batch = Batch::new(3);
            for i in first..first + 777 {
                let row = [i as f32, (i * i) as f32, -(i as f32)];
                by_row.add_row(&row);
                batch.push(0.0).unwrap().copy_from_slice(&row);
            }
            by_batch.add(&batch);
        }
        assert_eq!(by_row.values, by_batch.values);
    }

    #[test]
    fn bins_are_closed_above_and_repeated_values_make_one() {
        let mut sample = RowSample::new(2);
        (1..=100).for_each(|i| sample.add_row(&[i as f32, f32::from(i > 50)]));
        let features = sample.features();
        assert_eq!(features[0].edges, [1., 10., 20., 30., 40., 50., 60., 70., 80., 90., 100.]);
        assert_eq!(features[0].shares, [0., 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.]);
        assert_eq!([0.5, 1.0, 10.0, 10.1, 100.0, 101.0].map(|value| features[0].bin(value)), [0, 1, 1, 2, 10, 11]);
        assert_eq!((&features[1].edges[..], &features[1].shares[..]), (&[0., 0., 1.][..], &[0., 0.5, 0.5, 0.][..]));
        let mut constant = RowSample::new(1);
        (0..10).for_each(|_| constant.add_row(&[7.0]));
        let constant = &constant.features()[0];
        assert_eq!([6.0, 7.0, 8.0].map(|value| constant.bin(value)), [0, 1, 2]);
        assert_eq!(constant.shares, [0.0, 1.0, 0.0]);
    }

    #[test]
    fn what_is_the_same_has_not_drifted_and_what_moves_has() {
        let shapes = [FeatureShape::Number, FeatureShape::Categories(3)];
        let profile = |shift: f32, skew: usize, like: Option<&Profile>| {
            let mut sample = RowSample::new(1);
            let mut tallies = Tallies::new(&shapes, like);
            for i in 0..20_000 {
                let row = [(i * 7919 % 20_011) as f32 + shift];
                sample.add_row(&row);
                tallies.add(&row);
                tallies.add_category(0, if i % 10 < skew { 0 } else { 1 + i % 2 });
            }
            tallies.finish(&shapes, like.is_none().then_some(&sample), |_| 0)
        };
        let old = profile(0.0, 2, None);
        old.check(&shapes).unwrap();
        let same = profile(0.0, 2, Some(&old));
        let moved = profile(6000.0, 6, Some(&old));
        for i in 0..2 {
            let drift = |new: &Profile| old.features[i].drift(&new.features[i], old.rows, new.rows);
            let (same, moved) = (drift(&same), drift(&moved));
            assert!(same.psi.unwrap() < 0.01 && !same.shifted && !same.missing && !same.unseen, "{same:?}");
            assert!(moved.psi.unwrap() > 0.1 && moved.shifted, "{moved:?}");
        }
    }

    #[test]
    fn few_rows_differ_by_chance() {
        // 0.999 quantile of chi-square with 9 degrees of freedom: scipy.stats.chi2.ppf(0.999, 9)
        assert!((chance(10, 1, u64::MAX) - 27.877_164_9).abs() < 0.05, "{}", chance(10, 1, u64::MAX));
    }
}
