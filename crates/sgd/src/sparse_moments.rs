//! Mean and standard deviation of the features of sparse tuples, most of which are 0 and not stored.
//!
//! Guarantees: the same numbers as for dense rows, but for rounding; memory and time for what is stored. The zeros are
//! merged in the end, all at once, by the formulas of Chan, Golub and LeVeque (1983).

use loss::Standardizer;
use serde::{Deserialize, Serialize};
use tuples::{Batch, OutOfMemory};

use crate::moment::Moment;

/// Moments of all features, while sparse tuples arrive.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SparseMoments {
    tuples: u64,
    /// of the tuples, each of which counts 1 if it has none
    weight: f64,
    /// of what is stored of each
    features: Vec<Moment>,
}

impl SparseMoments {
    /// Adds all tuples of a sparse batch, each as much as it weighs, which is more than 0.
    pub(crate) fn add(&mut self, batch: &Batch) -> Result<(), OutOfMemory> {
        let dim = self.features.len().max(batch.dim());
        let more = dim - self.features.len();
        allocation::try_reserve(&mut self.features, more)?;
        self.features.resize(dim, Moment::default());
        self.tuples += batch.len() as u64;
        for i in 0..batch.len() {
            let weight = f64::from(batch.weight(i));
            self.weight += weight;
            let (indices, values) = batch.sparse_row(i);
            for (&index, &value) in indices.iter().zip(values) {
                self.features[index as usize].add(f64::from(value), weight);
            }
        }
        Ok(())
    }

    /// Adds what was measured elsewhere.
    pub(crate) fn unite(&mut self, other: &SparseMoments) {
        self.tuples += other.tuples;
        self.weight += other.weight;
        let dim = self.features.len().max(other.features.len());
        allocation::resize(&mut self.features, dim, Moment::default());
        self.features.iter_mut().zip(&other.features).for_each(|(stored, other)| stored.merge(*other));
    }

    /// How many tuples were added.
    pub(crate) fn count(&self) -> u64 {
        self.tuples
    }

    /// Mean and variance of each feature, among all tuples.
    pub(crate) fn moments(&self) -> impl Iterator<Item = (f64, f64)> {
        let all = if self.tuples > 0 { self.weight } else { 1.0 };
        self.features.iter().map(move |stored| {
            let (mean, squares) = with_zeros(*stored, all);
            (mean, squares / all)
        })
    }

    /// The scaling that brings the features to mean 0 and standard deviation 1.
    pub(crate) fn finish(&self) -> Standardizer {
        let deviation = |variance: f64| if variance > 0.0 { variance.sqrt() } else { 1.0 };
        let (mean, scale) = self.moments().map(|(mean, variance)| (mean, deviation(variance))).unzip();
        Standardizer { mean, scale }
    }
}

/// Mean and sum of squared deviations from it among all tuples, which weigh so much; what is not stored is 0.
fn with_zeros(stored: Moment, all: f64) -> (f64, f64) {
    let share = stored.weight / all;
    // but for rounding, not below 0
    let zeros = (all - stored.weight).max(0.0);
    let squares = stored.squares + stored.mean * stored.mean * share * zeros;
    (stored.mean * share, squares)
}

#[cfg(test)]
mod tests {
    use crate::Moments;
    use tuples::Batch;

    /// Three features of four tuples: one is never 0, one mostly, one always the same.
    const ROWS: [[f32; 3]; 4] = [[1e6, 0.0, 7.0], [1e6 + 2.0, 0.0, 7.0], [1e6 + 4.0, 8.0, 7.0], [1e6 + 2.0, 0.0, 7.0]];

    fn sparse() -> Batch {
        let mut batch = Batch::sparse();
        for row in ROWS {
            let entries: Vec<(u32, f32)> = (0..).zip(row).filter(|(_, value)| *value != 0.0).collect();
            let (indices, values) = batch.push_sparse(1.0, entries.len()).unwrap();
            for (i, (index, value)) in entries.into_iter().enumerate() {
                (indices[i], values[i]) = (index, value);
            }
        }
        batch
    }

    #[test]
    fn zeros_count_and_constants_are_not_scaled() {
        let mut moments = Moments::new(0);
        moments.add(&sparse()).unwrap();
        let scaling = moments.finish();
        assert_eq!(moments.count(), 4);
        assert_eq!(scaling.mean, [1e6 + 2.0, 2.0, 7.0]);
        // deviations of (-2, 0, 2, 0) and (-2, -2, 6, -2)
        assert_eq!(scaling.scale, [2.0_f64.sqrt(), 12.0_f64.sqrt(), 1.0]);
    }

    #[test]
    fn the_moments_are_those_of_dense_rows() {
        let mut dense = Batch::dense(3);
        for row in ROWS {
            dense.push(1.0).unwrap().copy_from_slice(&row);
        }
        let (mut of_dense, mut of_sparse) = (Moments::new(3), Moments::new(0));
        of_dense.add(&dense).unwrap();
        of_sparse.add(&sparse()).unwrap();
        let (dense, sparse) = (of_dense.finish(), of_sparse.finish());
        for (a, b) in dense.mean.iter().chain(&dense.scale).zip(sparse.mean.iter().chain(&sparse.scale)) {
            assert!((a - b).abs() <= 1e-12 * a.abs(), "{dense:?} {sparse:?}");
        }
    }

    #[test]
    fn features_that_come_late_were_0_before() {
        let mut moments = Moments::new(0);
        for (index, value) in [(0, 3.0), (5, 4.0)] {
            let mut batch = Batch::sparse();
            let (indices, values) = batch.push_sparse(1.0, 1).unwrap();
            (indices[0], values[0]) = (index, value);
            moments.add(&batch).unwrap();
        }
        let scaling = moments.finish();
        assert_eq!(scaling.mean, [1.5, 0.0, 0.0, 0.0, 0.0, 2.0]);
        assert_eq!(scaling.scale, [1.5, 1.0, 1.0, 1.0, 1.0, 2.0]);
    }
}
