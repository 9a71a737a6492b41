//! A scaling made ready for tuples that come a few at a time.
//!
//! Guarantees: the same bits as [`Standardizer::apply`], for dense and sparse tuples, whatever batch they are in. It
//! prevents the reciprocals of a million deviations from being taken anew for every page of tuples.

use std::ops::Range;

use simd::Level;
use tuples::Batch;

use crate::Standardizer;
use crate::kernels::Standardize;

/// A [`Standardizer`] and what it takes to apply it quickly.
#[derive(Debug, Clone)]
pub struct Scaler {
    standardizer: Standardizer,
    /// to multiply by instead of dividing, which is slower
    factor: Vec<f64>,
    level: Level,
}

impl Scaler {
    /// Makes a scaling ready.
    pub fn new(standardizer: Standardizer) -> Scaler {
        let factor = standardizer.scale.iter().map(|scale| scale.recip()).collect();
        Scaler { standardizer, factor, level: Level::detect() }
    }

    /// The scaling.
    pub fn standardizer(&self) -> &Standardizer {
        &self.standardizer
    }

    /// Scales the tuples at `places` of `batch`. Of sparse tuples, what is stored is scaled, and zeros stay zeros.
    ///
    /// # Panics
    /// If there are no such places, or a dense batch has another number of features.
    pub fn apply(&self, batch: &mut Batch, places: Range<usize>) {
        let mean = &self.standardizer.mean[..];
        if !batch.is_sparse() {
            assert_eq!(batch.dim(), mean.len(), "as many features as were standardized");
            let rows = batch.rows_of(places);
            return self.level.run(Standardize { rows, mean, factor: &self.factor });
        }
        for i in places {
            let (indices, values) = batch.sparse_row_mut(i);
            for (index, value) in indices.iter().zip(values) {
                // a feature that was never met has nothing to be scaled by
                if let (Some(mean), Some(factor)) = (mean.get(*index as usize), self.factor.get(*index as usize)) {
                    *value = ((f64::from(*value) - mean) * factor) as f32;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaler() -> Scaler {
        Scaler::new(Standardizer { mean: vec![1.0, -2.0, 0.0], scale: vec![2.0, 1.0, 3.0] })
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
