//! What is counted of all rows.

use super::{Ends, FeatureProfile, FeatureShape, Profile, RowSample};
use crate::counts;
use serde::{Deserialize, Serialize};

/// Counts of rows, feature by feature. Another process gets them without the bins' edges, which it knows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tallies {
    rows: u64,
    numbers: Vec<Tally>,
    /// by column of categories, the rows of each
    categories: Vec<Vec<u64>>,
}

/// Rows in which a column that has no numbers is NULL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nulls {
    /// how many
    pub rows: u64,
    /// are they counted among its categories?
    pub is_category: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Tally {
    count: u64,
    /// the first value, and sums of differences from it and of their squares
    origin: f64,
    sum: f64,
    squares: f64,
    /// the edges are those of what is compared with
    #[serde(skip)]
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

    /// Can they be counts of rows: no more than there are rows, and those no more than there can be?
    fn is_sound(&self) -> bool {
        self.rows <= counts::MAX_ROWS
            && self.numbers.iter().all(|tally| tally.count <= self.rows && counts::fit(&tally.bins, self.rows))
            && self.categories.iter().all(|categories| counts::fit(categories, self.rows))
    }

    /// Adds what another process has counted of rows of its own. False if it has other features or bins, or counts that
    /// cannot be, after which nothing is to be read.
    pub fn unite(&mut self, other: &Tallies) -> bool {
        let alike = self.numbers.len() == other.numbers.len() && self.categories.len() == other.categories.len();
        if !alike || !self.is_sound() || !other.is_sound() {
            return false;
        }
        self.rows += other.rows;
        let mut numbers = self.numbers.iter_mut().zip(&other.numbers);
        let mut categories = self.categories.iter_mut().zip(&other.categories);
        numbers.all(|(tally, other)| tally.unite(other))
            && categories.all(|(counts, others)| add_counts(counts, others))
    }

    /// How many rows there were.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The profile of all rows, of features of these shapes; `nulls` are the rows in which a column that has no numbers
    /// is NULL. Bins are those of the sample, with these ends, if it is there.
    pub fn finish(
        self,
        shapes: &[FeatureShape],
        sample: Option<(&RowSample, Ends)>,
        nulls: impl Fn(usize) -> Nulls,
    ) -> Profile {
        let rows = self.rows.max(1) as f64;
        let mut sampled = sample.map(|(sample, ends)| sample.features(ends).into_iter());
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
                let Nulls { rows: nulls, is_category } = nulls(i);
                let others = if is_category { 0 } else { nulls };
                let unseen = self.rows.saturating_sub(counts.iter().sum::<u64>() + others);
                FeatureProfile { missing: nulls as f64 / rows, counts, unseen, ..FeatureProfile::default() }
            }
            FeatureShape::Hashed => {
                FeatureProfile { missing: nulls(i).rows as f64 / rows, ..FeatureProfile::default() }
            }
        };
        Profile { rows: self.rows, features: shapes.iter().enumerate().map(&mut feature).collect() }
    }
}

/// Adds as many counts; false if there are others.
fn add_counts(counts: &mut [u64], others: &[u64]) -> bool {
    counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
    counts.len() == others.len()
}

impl Tally {
    /// Adds the values of another, whose differences are from its own first value.
    fn unite(&mut self, other: &Tally) -> bool {
        if self.count == 0 {
            self.origin = other.origin;
        }
        let (count, moved) = (other.count as f64, other.origin - self.origin);
        self.count += other.count;
        self.sum += other.sum + count * moved;
        self.squares += other.squares + moved * (2.0 * other.sum + count * moved);
        add_counts(&mut self.bins, &other.bins)
    }

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
