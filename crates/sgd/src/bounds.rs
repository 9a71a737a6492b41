//! Which values a sample of the rows leaves possible.
//!
//! Guarantees: the bounds contain every value of the sample, because none of n numbers is more than √(n - 1) of their
//! standard deviations from their mean. What lies outside the bounds is more extreme than anything that the sample's
//! means and deviations can have come from: scaled by these, it could take a step of any length.

use crate::Standardizer;
use tuples::Batch;

/// The smallest and largest possible value of each feature, as it is learned from, and of the target.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bounds {
    features: Vec<(f32, f32)>,
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
        Bounds { features: allocation::collect(features.enumerate().map(of_feature)), target: ANY }
    }

    /// The same where targets are divided by their deviation, and centred, too.
    pub fn with_scaled_target(self, rows: u64) -> Bounds {
        let radius = (1.0 + ROUNDING) as f32 * (rows as f32).sqrt();
        Bounds { target: (-radius, radius), ..self }
    }

    /// The same for tuples of `dim` dimensions, of which these, ascending, are the features; others may have any value.
    pub fn expand(self, dim: usize, places: impl Iterator<Item = u32>) -> Bounds {
        let mut features = allocation::filled(ANY, dim);
        for (place, bounds) in places.zip(self.features) {
            features.iter_mut().nth(place as usize).into_iter().for_each(|feature| *feature = bounds);
        }
        Bounds { features, ..self }
    }

    /// The first tuple of the batch, in its order, that has a value outside.
    pub fn first_outside(&self, batch: &Batch) -> Option<Outside> {
        let is_outside = |value: f32, (low, high): (f32, f32)| value < low || value > high;
        let order = batch.order().iter().map(|place| *place as usize);
        if self.target != ANY
            && let Some(place) = order.clone().find(|place| is_outside(batch.label(*place), self.target))
        {
            return Some(Outside { place, feature: None });
        }
        let of_tuple = |place: usize| {
            if batch.is_sparse() {
                let (indices, values) = batch.sparse_row(place);
                let bounded = indices
                    .iter()
                    .zip(values)
                    .filter_map(|(i, value)| Some((*i as usize, *value, *self.features.get(*i as usize)?)));
                return bounded.into_iter().find(|(_, value, bounds)| is_outside(*value, *bounds)).map(|found| found.0);
            }
            let values = batch.features(place).iter().zip(&self.features);
            // without a branch per value, which is what makes it quick
            let any = values.clone().fold(false, |any, (value, bounds)| any | is_outside(*value, *bounds));
            any.then(|| values.clone().position(|(value, bounds)| is_outside(*value, *bounds))).flatten()
        };
        order.into_iter().find_map(|place| of_tuple(place).map(|feature| Outside { place, feature: Some(feature) }))
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
        batch.set_order(&(0..rows.len() as u32).collect::<Vec<u32>>()).unwrap();
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
                assert_eq!(bounds.first_outside(&rows), None, "{n} {other} {extreme}");
            }
        }
    }

    #[test]
    fn what_no_value_of_the_sample_can_have_been_is_outside() {
        let standardizer = Standardizer { mean: vec![1.0, 5.0], scale: vec![2.0, 1.0] };
        // the second feature was constant
        let bounds = Bounds::of_sample(100, [(1.0, 2.0), (5.0, 0.0)].into_iter(), Some(&standardizer));
        let outside = |features: &[f32]| bounds.first_outside(&batch(&[(0.0, &[0.0, 0.0]), (1.0, features)]));
        assert_eq!(outside(&[9.9, 0.0]), None);
        assert_eq!(outside(&[-10.1, 0.0]), Some(Outside { place: 1, feature: Some(0) }));
        assert_eq!(outside(&[0.0, 0.01]), Some(Outside { place: 1, feature: Some(1) }));
    }

    #[test]
    fn targets_are_bounded_where_they_are_scaled() {
        let bounds = Bounds::of_sample(100, [(0.0, 1.0)].into_iter(), None);
        let rows = batch(&[(10.1, &[0.0])]);
        assert_eq!(bounds.first_outside(&rows), None);
        assert_eq!(bounds.with_scaled_target(100).first_outside(&rows), Some(Outside { place: 0, feature: None }));
    }

    #[test]
    fn entries_of_sparse_tuples_are_bounded_where_they_are_numbers() {
        let mut rows = Batch::sparse();
        for entries in [[(0, 9.0), (2, 9.0)], [(0, 9.0), (3, 11.0)]] {
            let (indices, values) = rows.push_sparse(0.0, 2).unwrap();
            indices.copy_from_slice(&entries.map(|entry| entry.0));
            values.copy_from_slice(&entries.map(|entry| entry.1));
        }
        rows.set_order(&[0, 1]).unwrap();
        let bounds = Bounds::of_sample(100, [(0.0, 1.0)].into_iter(), None);
        assert_eq!(bounds.clone().expand(4, [0].into_iter()).first_outside(&rows), None);
        let found = bounds.expand(4, [3].into_iter()).first_outside(&rows);
        assert_eq!(found, Some(Outside { place: 1, feature: Some(3) }));
    }
}
