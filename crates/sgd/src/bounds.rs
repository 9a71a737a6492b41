//! Which values a sample of the rows leaves possible.
//!
//! Guarantees: the bounds contain every value of the sample, and as much again on either side of the mean. Of normal or
//! exponential numbers, however many come, none is outside of what a sample of thousands bounds so; of numbers with
//! heavier tails some are, and there the sample's deviation, and whether it takes the logarithm, are not those of all
//! rows.

use std::ops::Range;

use loss::Standardizer;
use loss::logarithm::signed_log_f64 as signed_log;
use tuples::Batch;

use crate::TargetScale;

/// The least and the greatest value of each feature, and of the targets, while the rows of a sample arrive.
#[derive(Debug, Clone)]
pub struct Extremes {
    low: Vec<f32>,
    high: Vec<f32>,
    target: (f32, f32),
}

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

/// How far from the mean a value may be, in units of how far the sample's extreme is.
const REACH: f64 = 2.0;

impl Extremes {
    /// No rows yet, of `dim` features.
    pub fn new(dim: usize) -> Extremes {
        let (low, high) = (allocation::filled(f32::MAX, dim), allocation::filled(f32::MIN, dim));
        Extremes { low, high, target: (f32::MAX, f32::MIN) }
    }

    /// Adds the rows of a dense batch. NaN stands for what is missing.
    pub fn add(&mut self, batch: &Batch) {
        for i in 0..batch.len() {
            let extremes = self.low.iter_mut().zip(&mut self.high);
            for (value, (low, high)) in batch.features(i).iter().zip(extremes) {
                (*low, *high) = (low.min(*value), high.max(*value));
            }
        }
        let (low, high) = self.target;
        self.target = batch.labels().iter().fold((low, high), |(low, high), label| (low.min(*label), high.max(*label)));
    }

    /// What they leave possible, where features have these means, and those of `by_logs`, ascending, are taken by their
    /// logarithms before they are scaled by `standardizer`.
    pub fn bounds(
        &self,
        means: impl Iterator<Item = f64>,
        by_logs: &[u32],
        standardizer: Option<&Standardizer>,
    ) -> Bounds {
        let of_feature = |(i, mean): (usize, f64)| {
            let [low, high] = [self.low[i], self.high[i]].map(|value| match by_logs.binary_search(&(i as u32)) {
                Ok(_) => signed_log(value.into()),
                Err(_) => value.into(),
            });
            if low > high {
                return ANY; // no row has a value
            }
            let scaling = |standardizer: &Standardizer| Some((*standardizer.mean.get(i)?, *standardizer.scale.get(i)?));
            let (zero, unit) = standardizer.and_then(scaling).unwrap_or((0.0, 1.0));
            let slack = ROUNDING * (mean.abs() + zero.abs() + high - low);
            let bound = |value: f64| ((value - zero) / unit) as f32;
            (bound(mean + REACH * (low - mean) - slack), bound(mean + REACH * (high - mean) + slack))
        };
        let (low, high) = means.take(self.low.len()).enumerate().map(of_feature).unzip();
        Bounds { low, high, target: ANY }
    }

    /// The bounds of targets with this mean, scaled by `scale`.
    pub fn of_target(&self, scale: &TargetScale) -> (f32, f32) {
        let (low, high) = (f64::from(self.target.0), f64::from(self.target.1));
        let slack = ROUNDING * (scale.mean.abs() + high - low);
        let bound = |value: f64, slack: f64| ((REACH * (value - scale.mean) + slack) / scale.scale) as f32;
        (bound(low, -slack), bound(high, slack))
    }
}

impl Bounds {
    /// The same where targets have these bounds, as they are learned from.
    pub fn with_target(self, target: (f32, f32)) -> Bounds {
        Bounds { target, ..self }
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

    /// Bounds of a sample of these values of one feature.
    fn bounds(values: &[f32], by_logs: &[u32], standardizer: Option<&Standardizer>) -> Bounds {
        let mut extremes = Extremes::new(1);
        values.iter().for_each(|value| extremes.add(&batch(&[(0.0, &[*value])])));
        let learned = |value: f32| if by_logs.is_empty() { value.into() } else { signed_log(value.into()) };
        let mean = values.iter().map(|value| learned(*value)).sum::<f64>() / values.len() as f64;
        extremes.bounds([mean].into_iter(), by_logs, standardizer)
    }

    fn is_outside(bounds: &Bounds, value: f32) -> bool {
        bounds.first_outside(&batch(&[(0.0, &[value])]), 0..1).is_some()
    }

    #[test]
    fn no_value_of_the_sample_is_outside() {
        for values in [[0.0, 1.0, 0.0], [3.0, 3.0, -1e6], [1e8, 1e8 + 64.0, 1e8], [7.0, 7.0, 7.0], [1e-30, 2e-30, 1e30]]
        {
            for (mean, scale) in [(0.0, 1.0), (3.0, 0.5)] {
                let standardizer = Standardizer { mean: vec![mean], scale: vec![scale] };
                let bounds = bounds(&values, &[], Some(&standardizer));
                let learned = |x: f32| ((f64::from(x) - mean) / scale) as f32;
                assert!(values.iter().all(|value| !is_outside(&bounds, learned(*value))), "{values:?}");
            }
        }
    }

    #[test]
    fn what_is_twice_as_far_from_the_mean_as_the_extreme_is_outside() {
        let of_two = bounds(&[-1.0, 3.0], &[], None);
        for (value, outside) in [(-2.9, false), (-3.1, true), (4.9, false), (5.1, true)] {
            assert_eq!(is_outside(&of_two, value), outside, "{value}");
        }
        let constant = bounds(&[5.0, 5.0], &[], None);
        assert!(!is_outside(&constant, 5.0) && is_outside(&constant, 5.01));
        // e^9 is far from 1 and e, but not its logarithm from 0.7 and 8
        let values = [1.0, 2980.0];
        assert!(is_outside(&bounds(&values, &[], None), 8103.0));
        assert!(!is_outside(&bounds(&values, &[0], None), signed_log(8103.0) as f32));
        // a feature that no row has
        assert!(!is_outside(&bounds(&[f32::NAN], &[], None), 1e30));
    }

    #[test]
    fn targets_are_bounded_where_they_are_scaled() {
        let mut extremes = Extremes::new(1);
        extremes.add(&batch(&[(-1.0, &[0.0]), (3.0, &[0.0])]));
        let free = extremes.bounds([0.0].into_iter(), &[], None);
        let bound = free.clone().with_target(extremes.of_target(&TargetScale { mean: 1.0, scale: 2.0 }));
        for (target, outside) in [(1.9, false), (2.1, true), (-1.9, false), (-2.1, true)] {
            let rows = batch(&[(target, &[0.0])]);
            let found = bound.first_outside(&rows, 0..1);
            assert_eq!(found, outside.then_some(Outside { place: 0, feature: None }), "{target}");
            assert_eq!(free.first_outside(&rows, 0..1), None);
        }
    }

    #[test]
    fn entries_of_sparse_tuples_are_bounded_where_they_are_numbers() {
        let mut rows = Batch::sparse();
        for entries in [[(0, 9.0), (2, 9.0)], [(0, 9.0), (3, 11.0)]] {
            let (indices, values) = rows.push_sparse(0.0, 2).unwrap();
            indices.copy_from_slice(&entries.map(|entry| entry.0));
            values.copy_from_slice(&entries.map(|entry| entry.1));
        }
        let bounds = bounds(&[-5.0, 5.0], &[], None);
        assert_eq!(bounds.clone().expand(4, [0].into_iter()).first_outside(&rows, 0..2), None);
        let found = bounds.expand(4, [3].into_iter()).first_outside(&rows, 0..2);
        assert_eq!(found, Some(Outside { place: 1, feature: Some(3) }));
    }
}
