//! Scaling of features, made ready for tuples that come a few at a time.
//!
//! Guarantees: the same bits for dense and sparse tuples, whatever batch they are in. It
//! prevents the reciprocals of a million deviations from being taken again for every page of tuples.
//!
//! What was scaled may be cut off at a number of deviations. A network extrapolates linearly from the few tuples of a
//! heavy tail: one of a hundred deviations decides over its weights, and its prediction for the next one is nowhere.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use simd::{Kernel, Level, Simd};
use tuples::Batch;

use crate::kernels::{Standardize, clip_all};

/// Brings columns to mean 0 and standard deviation 1, as scikit-learn's `StandardScaler` does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standardizer {
    /// The mean of every feature.
    pub mean: Vec<f64>,
    /// The population standard deviation of every feature, 1 if the feature is constant.
    pub scale: Vec<f64>,
}

/// A [`Standardizer`] and what it takes to apply it quickly.
#[derive(Debug, Clone)]
pub struct Scaler {
    standardizer: Standardizer,
    /// to multiply by instead of dividing, which is slower
    factor: Vec<f64>,
    clip: Option<f32>,
    level: Level,
}

impl Scaler {
    /// Makes a scaling ready. What is scaled is cut off at ±`clip`, which is above 0.
    pub fn new(standardizer: Standardizer, clip: Option<f32>) -> Scaler {
        let factor = allocation::collect(standardizer.scale.iter().map(|scale| scale.recip()));
        Scaler { standardizer, factor, clip, level: Level::detect() }
    }

    /// The scaling.
    pub fn standardizer(&self) -> &Standardizer {
        &self.standardizer
    }

    /// Scales the tuples at `places` of `batch`. Of sparse tuples, what is stored is scaled, and zeros stay zeros.
    /// Gives how many numbers were cut off.
    ///
    /// # Panics
    /// If there are no such places, or a dense batch has another number of features.
    pub fn apply(&self, batch: &mut Batch, places: Range<usize>) -> u64 {
        let mean = &self.standardizer.mean[..];
        if !batch.is_sparse() {
            assert_eq!(batch.dim(), mean.len(), "as many features as were standardized");
            let rows = batch.rows_of(places);
            return self.level.run(Standardize { rows, mean, factor: &self.factor, clip: self.clip });
        }
        let factor = |index: usize| self.factor.get(index).copied();
        let scaled = places.map(|i| scale_entries(mean, factor, self.clip, batch.sparse_row_mut(i)));
        scaled.sum()
    }
}

/// Scales one row by means and deviations that lie elsewhere, and cuts it off at ±`clip`, as a
/// [`Scaler`](crate::Scaler) does.
pub fn standardize_row((mean, scale): (&[f64], &[f64]), clip: Option<f32>, features: &mut [f32]) {
    Level::detect_narrow().run(StandardizeRow { mean, scale, clip, features });
}

struct StandardizeRow<'a> {
    mean: &'a [f64],
    scale: &'a [f64],
    clip: Option<f32>,
    features: &'a mut [f32],
}

impl Kernel for StandardizeRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let StandardizeRow { mean, scale, clip, features } = self;
        for ((feature, mean), scale) in features.iter_mut().zip(mean).zip(scale) {
            *feature = ((f64::from(*feature) - mean) * scale.recip()) as f32;
        }
        if let Some(clip) = clip {
            clip_all(features, clip);
        }
    }
}

/// As [`standardize_row`], the entries of a sparse row. A feature without a scale stays as it is.
pub fn standardize_entries((mean, scale): (&[f64], &[f64]), clip: Option<f32>, indices: &[u32], values: &mut [f32]) {
    scale_entries(mean, |index| scale.get(index).map(|scale| scale.recip()), clip, (indices, values));
}

/// Scales the entries of a sparse row, but for features that were never met. Gives how many were cut off.
fn scale_entries(
    mean: &[f64],
    factor: impl Fn(usize) -> Option<f64>,
    clip: Option<f32>,
    (indices, values): (&[u32], &mut [f32]),
) -> u64 {
    let mut cut = 0;
    for (index, value) in indices.iter().map(|index| *index as usize).zip(values) {
        if let (Some(mean), Some(factor)) = (mean.get(index), factor(index)) {
            *value = ((f64::from(*value) - mean) * factor) as f32;
            cut += clip.map_or(0, |clip| clip_all(std::slice::from_mut(value), clip));
        }
    }
    cut
}

/// Does a deviation have fewer than 64 of the steps that float32 takes at the mean? So has a number that is constant
/// once it is rounded, if its steps are larger than 1.
pub fn is_coarse(mean: f64, deviation: f64) -> bool {
    let mean = mean.abs() as f32;
    let step = f64::from(mean.next_up() - mean);
    if deviation == 0.0 { step > 1.0 } else { deviation < 64.0 * step }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaler() -> Scaler {
        Scaler::new(Standardizer { mean: vec![1.0, -2.0, 0.0], scale: vec![2.0, 1.0, 3.0] }, None)
    }

    /// Numbers from far below to far above what a clip of 5 lets pass.
    fn heavy(dim: usize, i: usize) -> Vec<f32> {
        let value = |j: usize| ((i * dim + j) as f64 * 0.754_877_666).fract() - 0.5;
        (0..dim).map(|j| (value(j) * 90.0).sinh() as f32 * 1e-9).collect()
    }

    /// The formula, with a division and comparisons.
    fn expected(value: f32, mean: f64, scale: f64, clip: f64) -> f64 {
        let scaled = (f64::from(value) - mean) / scale;
        if scaled > clip {
            clip
        } else if scaled < -clip {
            -clip
        } else {
            scaled
        }
    }

    #[test]
    fn what_is_beyond_a_number_of_deviations_is_cut_and_counted() {
        for dim in [1, 15, 16, 40] {
            let mean: Vec<f64> = (0..dim).map(|j| j as f64 - 3.0).collect();
            let scale: Vec<f64> = (0..dim).map(|j| 0.5 + j as f64).collect();
            let (mut dense, mut sparse) = (Batch::dense(dim), Batch::sparse());
            for i in 0..50 {
                dense.push(1.0).unwrap().copy_from_slice(&heavy(dim, i));
                let (indices, values) = sparse.push_sparse(1.0, dim).unwrap();
                indices.iter_mut().zip(0..).for_each(|(index, j)| *index = j);
                values.copy_from_slice(&heavy(dim, i));
            }
            let scaler = Scaler::new(Standardizer { mean: mean.clone(), scale: scale.clone() }, Some(5.0));
            let cut = scaler.apply(&mut dense, 0..50);
            assert_eq!(scaler.apply(&mut sparse, 0..50), cut);
            let mut beyond = 0;
            for i in 0..50 {
                let raw = heavy(dim, i);
                for (j, value) in raw.iter().enumerate() {
                    let expected = expected(*value, mean[j], scale[j], 5.0);
                    beyond += u64::from(expected.abs() == 5.0);
                    assert!((f64::from(dense.features(i)[j]) - expected).abs() <= 1e-6 * expected.abs());
                }
                assert_eq!(sparse.sparse_row(i).1, dense.features(i));
                let (mut row, mut entries) = (raw.clone(), raw);
                crate::standardize_row((&mean, &scale), Some(5.0), &mut row);
                crate::standardize_entries((&mean, &scale), Some(5.0), sparse.sparse_row(i).0, &mut entries);
                assert_eq!((&row[..], &entries[..]), (dense.features(i), dense.features(i)));
            }
            assert_eq!(cut, beyond);
            assert!(beyond > 0 && beyond < 50 * dim as u64, "{beyond} of {}", 50 * dim);
        }
    }

    #[test]
    fn buckets_are_neither_scaled_nor_cut() {
        let mut batch = Batch::sparse();
        let (indices, values) = batch.push_sparse(1.0, 2).unwrap();
        indices.copy_from_slice(&[2, 9]);
        values.copy_from_slice(&[600.0, 600.0]);
        let mut entries = [600.0, 600.0];
        let Scaler { standardizer, .. } = scaler();
        crate::standardize_entries((&standardizer.mean, &standardizer.scale), Some(5.0), &[2, 9], &mut entries);
        assert_eq!(entries, [5.0, 600.0]);
        assert_eq!(Scaler::new(standardizer, Some(5.0)).apply(&mut batch, 0..1), 1);
        assert_eq!(batch.sparse_row(0).1, [5.0, 600.0]);
    }

    #[test]
    fn only_the_tuples_asked_for_are_scaled() {
        let mut batch = Batch::dense(3);
        for _ in 0..3 {
            batch.push(1.0).unwrap().copy_from_slice(&[5.0, -1.0, 6.0]);
        }
        scaler().apply(&mut batch, 1..2);
        assert_eq!(batch.features(0), [5.0, -1.0, 6.0]);
        assert_eq!(batch.features(1), [2.0, 1.0, 2.0]);
        assert_eq!(batch.features(2), [5.0, -1.0, 6.0]);
    }

    #[test]
    fn a_sparse_tuple_is_scaled_where_something_is_stored() {
        let mut batch = Batch::sparse();
        for _ in 0..2 {
            let (indices, values) = batch.push_sparse(1.0, 2).unwrap();
            indices.copy_from_slice(&[0, 2]);
            values.copy_from_slice(&[5.0, 6.0]);
        }
        scaler().apply(&mut batch, 1..2);
        assert_eq!(batch.sparse_row(0), (&[0, 2][..], &[5.0, 6.0][..]));
        assert_eq!(batch.sparse_row(1), (&[0, 2][..], &[2.0, 2.0][..]));
    }
}
