//! Which values a sample of the rows leaves possible.
//!
//! Guarantees: the bounds contain every value of the sample, because none of n numbers is more than √(n - 1) of their
//! standard deviations from their mean. What lies outside the bounds is more extreme than anything that the sample's
//! means and deviations can have come from: scaled by these, it could take a step of any length.

use crate::Standardizer;
use std::ops::Range;
use tuples::Batch;

/// The smallest and largest possible value of each feature, as it is learned from, and of the target.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bounds {
    low: Vec<f32>,
    high: Vec<f32>,
    target: (f32, f32),
}

/// A value outside the bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outside {
    /// the place of the tuple in its batch
    pub place: usize,
    /// the number of its feature, from 0; None if it is the target
    pub feature: Option<usize>,
}

/// What rounding to `f32` may add to a bound, as a part of the numbers that it is computed from.
const ROUNDING: f64 = 1e-5;

impl Bounds {
    /// Those of features that had these means and deviations in a sample of `rows` rows, and are scaled by
    /// `standardizer`.
    pub fn of_sample(
        rows: u64,
        features: impl Iterator<Item = (f64, f64)>,
        standardizer: Option<&Standardizer>,
    ) -> Bounds {
        let radius = (rows as f64).sqrt();
        let of_feature = |(i, (mean, deviation)): (usize, (f64, f64))| {
            let scaling = |standardizer: &Standardizer| Some((*standardizer.mean.get(i)?, *standardizer.scale.get(i)?));
            let (zero, unit) = standardizer.and_then(scaling).unwrap_or((0.0, 1.0));
            let slack = ROUNDING * (mean.abs() + zero.abs() + deviation);
            let bound = |value: f64| ((value - zero) / unit) as f32;
            (bound(mean - radius * deviation - slack), bound(mean + radius * deviation + slack))
        };
        let (low, high) = features.enumerate().map(of_feature).unzip();
        Bounds { low, high, target: ANY }
    }

    /// The same where targets are divided by their deviation, and centred, too.
    pub fn with_scaled_target(self, rows: u64) -> Bounds {
        let radius = (1.0 + ROUNDING) as f32 * (rows as f32).sqrt();
        Bounds { target: (-radius, radius), ..self }
    }

    /// The same for tuples of `dim` dimensions, of which these are the features; others may have any value.
    ///
    /// # Panics
    /// If there are not as many dimensions.
    pub fn expand(self, dim: usize, places: impl Iterator<Item = u32>) -> Bounds {
        let (mut low, mut high) = (allocation::filled(ANY.0, dim), allocation::filled(ANY.1, dim));
        for (place, bounds) in places.map(|place| place as usize).zip(self.low.iter().zip(&self.high)) {
            (low[place], high[place]) = (*bounds.0, *bounds.1);
        }
        Bounds { low, high, ..self }
    }

    /// The first tuple of these places of the batch that has a value outside.
    pub fn first_outside(&self, batch: &Batch, mut places: Range<usize>) -> Option<Outside> {
        let is_outside = |value: f32, low: f32, high: f32| value < low || value > high;
        if self.target != ANY
            && let Some(place) = places.clone().find(|i| is_outside(batch.label(*i), self.target.0, self.target.1))
        {
            return Some(Outside { place, feature: None });
        }
        places.find_map(|place| {
            let feature = if batch.is_sparse() {
                let (indices, values) = batch.sparse_row(place);
                let mut entries = indices.iter().map(|i| *i as usize).zip(values);
                let bounds = |i: usize| Some((*self.low.get(i)?, *self.high.get(i)?));
                entries.find(|(i, value)| bounds(*i).is_some_and(|(low, high)| is_outside(**value, low, high)))?.0
            } else {
                let values = batch.features(place).iter().zip(self.low.iter().zip(&self.high));
                let outside = |(value, (low, high)): (&f32, (&f32, &f32))| (value < low) | (value > high);
                // numbers as wide as the values, without a branch, are what the compiler makes vectors of
                if values.clone().fold(0u32, |any, value| any | u32::from(outside(value))) == 0 {
                    return None;
                }
                values.into_iter().position(outside)?
            };
            Some(Outside { place, feature: Some(feature) })
        })
    }
}

/// Bounds of what may have any value; finite, so that JSON has them.
const ANY: (f32, f32) = (f32::MIN, f32::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(rows: &[(f32, &[f32])]) -> Batch {
        let mut batch = Batch::dense(rows[0].1.len());
        for (label, features) in rows {
            batch.push(*label).unwrap().copy_from_slice(features);
        }
        batch
    }

    #[test]
    fn no_value_of_the_sample_is_outside() {
        // the most extreme that one of n values can be: the others are equal
        for (n, other, extreme) in [(2, 0.0, 1.0), (1000, 3.0, -1e6), (65_536, 1e8, 1e8 + 64.0), (5, 7.0, 7.0)] {
            let mean = (other * (n as f64 - 1.0) + extreme) / n as f64;
            let squares = (other - mean).powi(2) * (n as f64 - 1.0) + (extreme - mean).powi(2);
            let deviation = (squares / n as f64).sqrt();
            let scale = if deviation > 0.0 { deviation } else { 1.0 };
            let standardizer = Standardizer { mean: vec![mean], scale: vec![scale] };
            for standardizer in [None, Some(&standardizer)] {
                let bounds = Bounds::of_sample(n, [(mean, deviation)].into_iter(), standardizer);
                let learned = |x: f64| standardizer.map_or(x, |s| (x - s.mean[0]) / s.scale[0]) as f32;
                let rows = batch(&[(0.0, &[learned(other)]), (0.0, &[learned(extreme)])]);
                assert_eq!(bounds.first_outside(&rows, 0..rows.len()), None, "{n} {other} {extreme}");
            }
        }
    }

    #[test]
    fn what_no_value_of_the_sample_can_have_been_is_outside() {
        let standardizer = Standardizer { mean: vec![1.0, 5.0], scale: vec![2.0, 1.0] };
        // the second feature was constant
        let bounds = Bounds::of_sample(100, [(1.0, 2.0), (5.0, 0.0)].into_iter(), Some(&standardizer));
        let outside = |features: &[f32]| bounds.first_outside(&batch(&[(0.0, &[0.0, 0.0]), (1.0, features)]), 0..2);
        assert_eq!(outside(&[9.9, 0.0]), None);
        assert_eq!(outside(&[-10.1, 0.0]), Some(Outside { place: 1, feature: Some(0) }));
        assert_eq!(outside(&[0.0, 0.01]), Some(Outside { place: 1, feature: Some(1) }));
    }

    #[test]
    fn targets_are_bounded_where_they_are_scaled() {
        let bounds = Bounds::of_sample(100, [(0.0, 1.0)].into_iter(), None);
        let rows = batch(&[(10.1, &[0.0])]);
        assert_eq!(bounds.first_outside(&rows, 0..rows.len()), None);
        assert_eq!(
            bounds.with_scaled_target(100).first_outside(&rows, 0..rows.len()),
            Some(Outside { place: 0, feature: None })
        );
    }

    #[test]
    fn entries_of_sparse_tuples_are_bounded_where_they_are_numbers() {
        let mut rows = Batch::sparse();
        for entries in [[(0, 9.0), (2, 9.0)], [(0, 9.0), (3, 11.0)]] {
            let (indices, values) = rows.push_sparse(0.0, 2).unwrap();
            indices.copy_from_slice(&entries.map(|entry| entry.0));
            values.copy_from_slice(&entries.map(|entry| entry.1));
        }
        let bounds = Bounds::of_sample(100, [(0.0, 1.0)].into_iter(), None);
        assert_eq!(bounds.clone().expand(4, [0].into_iter()).first_outside(&rows, 0..rows.len()), None);
        let found = bounds.expand(4, [3].into_iter()).first_outside(&rows, 0..rows.len());
        assert_eq!(found, Some(Outside { place: 1, feature: Some(3) }));
    }
}
