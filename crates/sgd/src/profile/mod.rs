//! What the features of a model were like, and how far those of other rows are from that.
//!
//! A [`Profile`] has mean, deviation and share of missing values of each feature, the shares of its values between ten
//! quantiles, and the rows of each category. Quantiles are those of a [`RowSample`] of bounded size; bins are closed
//! above, as numpy's `searchsorted` finds them, and below the first and above the last edge ([`Ends`]) there is one
//! more each.
//!
//! Guarantees: what is kept depends on the rows and their order alone; the size is bounded by the features and not by
//! the rows. It prevents a comparison that names columns which differ by chance: see [`FeatureProfile::drift`].

mod chance;
mod sample;
mod tallies;

pub use sample::RowSample;
pub use tallies::{Nulls, Tallies};

use chance::Bins;
use serde::{Deserialize, Serialize};

/// Bins between the first and the last edge of a feature, at most: repeated values make one.
const BINS: usize = 10;

/// Shares below this count as this: an empty bin is no infinite change.
const LEAST_SHARE: f64 = 1e-4;

/// Where the outermost bins begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// at the first and the last hundredth of the values: the least and the greatest are somebody's own
    #[default]
    Hundredths,
    /// at the least and the greatest value
    Extremes,
}

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
    #[serde(rename = "null_fraction")]
    pub missing: f64,
    /// of a number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// of a number
    #[serde(default, rename = "stddev", skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// of a number, ascending: the lower end of the first bin, and the upper ends of the bins from there on
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
    /// rows of other categories; a NULL does not count
    #[serde(default, rename = "unknown", skip_serializing_if = "is_zero")]
    pub unseen: u64,
}

/// What a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureShape {
    /// a number
    Number,
    /// one of this many categories
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
            return Err((None, "does not have the same number of features as the model"));
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
            _ if !fits => Err("is not the model's feature"),
            _ if !is_share(&self.missing) || !self.shares.iter().all(is_share) => Err("has an invalid share"),
            _ if self.mean.is_some_and(|mean| !mean.is_finite()) => Err("has a mean that is not finite"),
            _ if !self.deviation.is_none_or(|deviation| deviation.is_finite() && deviation >= 0.0) => {
                Err("has a stddev that cannot be")
            }
            _ if self.edges.len() > BINS + 1 || !self.edges.iter().all(|edge| edge.is_finite()) => {
                Err("has invalid edges")
            }
            _ if !self.edges.is_sorted() => Err("has edges that are not ascending"),
            _ if self.shares.len() != bins => Err("must have one more share than edges"),
            _ if self.sampled > i64::MAX as u64
                || self.unseen > 1 << 53
                || self.counts.iter().any(|count| *count > 1 << 53) =>
            {
                Err("has invalid counts")
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
    /// What is called shifted has an index of 0.1 or more, and counts that chance makes of one distribution once in a
    /// thousand times (see [`chance`]). A share of NULLs has changed if it has by 0.05 and by four standard errors.
    pub fn drift(&self, new: &FeatureProfile, rows: u64, new_rows: u64) -> Drift {
        let how = if self.counts.is_empty() { Bins::InOrder } else { Bins::Unordered };
        let counts: Vec<[f64; 2]> = self.binned().into_iter().zip(new.binned()).map(|(old, new)| [old, new]).collect();
        let all = [0, 1].map(|sample| counts.iter().map(|counts| counts[sample]).sum::<f64>());
        let shares = |sample: usize| counts.iter().map(|counts| counts[sample] / all[sample]).collect::<Vec<f64>>();
        // without values there is nothing to compare
        let shares = all.iter().all(|count| *count > 0.0).then(|| (shares(0), shares(1)));
        let psi = shares.as_ref().map(|(old, new)| stability_index(old, new));
        let ks = shares.as_ref().filter(|_| how == Bins::InOrder).map(|(old, new)| greatest_distance(old, new));
        let shifted = psi.is_some_and(|index| index >= 0.1) && chance::differ(&counts, how);
        let missing = (new.missing - self.missing).abs() >= 0.05 && {
            let rows = [rows as f64, new_rows as f64];
            chance::shares_differ([self.missing * rows[0], new.missing * rows[1]], rows)
        };
        let share_unseen = |unseen: u64, rows: u64| unseen as f64 / rows.max(1) as f64;
        let unseen = share_unseen(new.unseen, new_rows) - share_unseen(self.unseen, rows) >= 0.01;
        Drift { psi, ks, shifted, missing, unseen }
    }

    /// How many values are in each bin, or of each category, the last being all others.
    fn binned(&self) -> Vec<f64> {
        match self.counts.is_empty() {
            true => self.shares.iter().map(|share| (share * self.sampled as f64).round()).collect(),
            false => self.counts.iter().chain([&self.unseen]).map(|count| *count as f64).collect(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

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
            tallies.finish(&shapes, like.is_none().then_some((&sample, Ends::default())), |_| Nulls::default())
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

    /// Numbers of a generator with a fixed seed, from 0 to 1.
    fn uniform(seed: u64) -> impl FnMut() -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        move || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A value of a feature, by a uniform number.
    type Value = fn(f64) -> f64;

    /// In how many of `tries` comparisons a feature is called shifted. Values of the training are those of `old`, and
    /// of the new rows those of `new`, both from a uniform number.
    fn shifted(tries: u64, shape: FeatureShape, (rows, new_rows): (usize, usize), (old, new): (Value, Value)) -> usize {
        let shapes = [shape];
        let is_shifted = |seed: &u64| {
            let mut random = uniform(*seed);
            let mut profile = |rows: usize, value: Value, like: Option<&Profile>| {
                let (mut sample, mut tallies) = (RowSample::new(1), Tallies::new(&shapes, like));
                for _ in 0..rows {
                    let value = value(random());
                    match shape {
                        FeatureShape::Number => {
                            sample.add_row(&[value as f32]);
                            tallies.add(&[value as f32]);
                        }
                        _ => {
                            tallies.add(&[]);
                            tallies.add_category(0, value as usize);
                        }
                    }
                }
                tallies.finish(&shapes, like.is_none().then_some((&sample, Ends::default())), |_| Nulls::default())
            };
            let old = profile(rows, old, None);
            let new = profile(new_rows, new, Some(&old));
            old.features[0].drift(&new.features[0], old.rows, new.rows).shifted
        };
        (1..=tries).filter(is_shifted).count()
    }

    #[test]
    fn what_has_not_changed_is_seldom_called_shifted() {
        const TRIES: u64 = 300;
        let number = |rows, new_rows| (FeatureShape::Number, (rows, new_rows), (|u| u) as Value);
        let rare = |rows, new_rows| (FeatureShape::Number, (rows, new_rows), (|u| f64::from(u < 0.03)) as Value);
        let even = |rows, new_rows| (FeatureShape::Categories(400), (rows, new_rows), (|u| 400.0 * u) as Value);
        let skewed =
            |rows, new_rows| (FeatureShape::Categories(400), (rows, new_rows), (|u| 400.0 * u * u * u) as Value);
        let of_numbers =
            [10, 20, 30, 50, 300].map(|new| number(1000, new)).into_iter().chain([number(40, 900), number(100, 900)]);
        let of_flags = [60, 100, 140, 200].map(|new| rare(1000, new));
        let of_texts =
            [50, 200, 500, 1000].map(|new| even(2000, new)).into_iter().chain([skewed(2000, 500), skewed(100, 900)]);
        let mut all = 0;
        for (shape, rows, value) in of_numbers.chain(of_flags).chain(of_texts) {
            let found = shifted(TRIES, shape, rows, (value, value));
            // by chance 0.3, and more than 3 once in 3700 times
            assert!(found <= 3, "{found} of {TRIES} of {shape:?}, {rows:?}");
            all += found;
        }
        assert!(all <= 6, "{all} in 17 cases of {TRIES}");
    }

    #[test]
    fn what_has_changed_is_called_shifted() {
        const TRIES: u64 = 100;
        let cases: [(FeatureShape, (usize, usize), Value, Value); 9] = [
            (FeatureShape::Number, (4096, 20), |u| u, |u| u + 0.6),
            (FeatureShape::Number, (4096, 100), |u| u, |u| u + 0.3),
            (FeatureShape::Number, (4096, 100), |u| u, |u| 0.25 + u / 2.0),
            (FeatureShape::Number, (100, 900), |u| u, |u| u + 0.3),
            (FeatureShape::Number, (4096, 200), |u| f64::from(u < 0.03), |u| f64::from(u < 0.2)),
            (FeatureShape::Categories(400), (5000, 500), |u| 400.0 * u, |u| 400.0 * u * u),
            (FeatureShape::Number, (4096, 20), |_| 5.0, |_| 6.0),
            (FeatureShape::Number, (4096, 20), |u| u, |u| u + 1.0),
            (FeatureShape::Categories(3), (4096, 50), |u| 3.0 * u, |u| 1.0 + 2.0 * u),
        ];
        for (shape, rows, old, new) in cases {
            let found = shifted(TRIES, shape, rows, (old, new));
            assert!(found >= 90, "{found} of {TRIES} of {shape:?}, {rows:?}");
        }
    }

    #[test]
    fn parts_that_were_counted_apart_are_together_what_all_rows_are() {
        let shapes = [FeatureShape::Number, FeatureShape::Categories(3), FeatureShape::Number];
        let like = {
            let mut sample = RowSample::new(2);
            (0..500).for_each(|i| sample.add_row(&[i as f32, 1e6 + (i % 7) as f32]));
            let features = sample.features(Ends::default());
            let categories = FeatureProfile { counts: vec![0; 3], ..FeatureProfile::default() };
            Profile { rows: 500, features: vec![features[0].clone(), categories, features[1].clone()] }
        };
        let add = |tallies: &mut Tallies, rows: std::ops::Range<usize>| {
            for i in rows {
                let missing = if i % 5 == 0 { f32::NAN } else { (i * i % 701) as f32 };
                tallies.add(&[missing, 1e6 + (i % 9) as f32]);
                tallies.add_category(0, i % 3);
            }
        };
        let nulls = |_| Nulls::default();
        for like in [None, Some(&like)] {
            let mut all = Tallies::new(&shapes, like);
            add(&mut all, 0..1000);
            let mut united = Tallies::new(&shapes, like);
            // the first one of no rows, the second one of NULLs alone
            for rows in [0..0, 0..1, 1..300, 300..1000] {
                let mut part = Tallies::new(&shapes, like);
                add(&mut part, rows);
                assert!(united.unite(&serde_json::from_str(&serde_json::to_string(&part).unwrap()).unwrap()));
            }
            let wrong = serde_json::to_string(&all).unwrap().replace("\"rows\":1000", "\"rows\":333");
            assert!(!united.unite(&serde_json::from_str(&wrong).unwrap()), "more values than rows");
            let [all, united] = [all, united].map(|tallies| tallies.finish(&shapes, None, nulls));
            assert_eq!(united.rows, all.rows);
            for (united, all) in united.features.iter().zip(&all.features) {
                let near = |united: Option<f64>, all: Option<f64>| {
                    let (united, all) = (united.unwrap_or_default(), all.unwrap_or_default());
                    assert!((united - all).abs() <= 1e-9 * all.abs().max(1.0), "{united} {all}");
                };
                near(united.mean, all.mean);
                near(united.deviation, all.deviation);
                let exact =
                    |feature: &FeatureProfile| FeatureProfile { mean: None, deviation: None, ..feature.clone() };
                assert_eq!(exact(united), exact(all));
            }
        }
        // others
        let mut tallies = Tallies::new(&shapes, Some(&like));
        for shapes in [&shapes[..2], &[shapes[0], FeatureShape::Categories(4), shapes[2]], &[shapes[0]; 3]] {
            assert!(!tallies.unite(&Tallies::new(shapes, Some(&like))), "{shapes:?}");
        }
        assert!(!tallies.unite(&Tallies::new(&shapes, None)), "without bins");
    }

    #[test]
    fn a_null_that_is_no_category_is_missing_and_not_unseen() {
        let shapes = [FeatureShape::Categories(2)];
        let profile = |rows: u64, nulls: u64| {
            let mut tallies = Tallies::new(&shapes, None);
            for i in 0..rows {
                tallies.add(&[]);
                if i >= nulls {
                    tallies.add_category(0, i as usize % 2);
                }
            }
            tallies.finish(&shapes, None, |_| Nulls { rows: nulls, is_category: false })
        };
        let (old, quarter, nothing) = (profile(1000, 0), profile(1000, 250), profile(30, 30));
        let drift = |new: &Profile| old.features[0].drift(&new.features[0], old.rows, new.rows);
        assert_eq!((quarter.features[0].missing, quarter.features[0].unseen), (0.25, 0));
        let Drift { psi, shifted, missing, unseen, .. } = drift(&quarter);
        assert!(psi.unwrap() < 1e-9 && missing && !shifted && !unseen);
        let Drift { psi, shifted, missing, unseen, .. } = drift(&nothing);
        assert!(psi.is_none() && missing && !shifted && !unseen, "no value is there to be compared");
    }
}
