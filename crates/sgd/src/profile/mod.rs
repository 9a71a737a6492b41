//! What the features of a model were like, and how far those of other rows are from that.
//!
//! A [`Profile`] has mean, deviation and share of missing values of each feature, the shares of its values between ten
//! quantiles, and the rows of each category. Quantiles are those of a [`RowSample`] of bounded size; bins are closed
//! above, as numpy's `searchsorted` finds them, and below the least and above the greatest value there is one more
//! each.
//!
//! Guarantees: what is kept depends on the rows and their order alone; the size is bounded by the features and not by
//! the rows. It prevents a comparison that names columns which differ by chance: see [`FeatureProfile::drift`].

mod sample;
mod tallies;

pub use sample::RowSample;
pub use tallies::Tallies;

use serde::{Deserialize, Serialize};

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
    /// Two samples of one distribution have an index of about chi-square (b - 1) times (1/n + 1/m), b being the bins
    /// and n and m the sizes (Yurdakul 2018). What is called shifted is beyond 0.1, and beyond what chance exceeds once
    /// in a thousand times. A share of NULLs has changed if it has by 0.05 and by four standard errors.
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

/// What the index of samples of these sizes exceeds by chance once in a thousand times: the quantile of chi-square of
/// one degree of freedom less than bins, as Wilson and Hilferty (1931) approximate it.
fn chance(bins: usize, rows: u64, new_rows: u64) -> f64 {
    let freedom = bins.saturating_sub(1).max(1) as f64;
    let part = 2.0 / (9.0 * freedom);
    let quantile = freedom * (1.0 - part + 3.0902 * part.sqrt()).powi(3);
    quantile * (1.0 / rows.max(1) as f64 + 1.0 / new_rows.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // (the approximation is less than a hundredth above it)
        let beyond = chance(10, 1, u64::MAX) / 27.877_164_9;
        assert!((1.0..1.01).contains(&beyond), "{beyond}");
    }
}
