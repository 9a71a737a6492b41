//! The decisions of a model, for one row or all rows of a batch.
//!
//! Guarantees: both give the same bits.

use simd::{Chunk, Kernel, Level, Simd};
use tuples::{Batch, LANES};

use super::chunks::{UNROLL, padded, sum_all, to_chunks};

/// Appends the decision for every row, by place, to `decisions`.
pub struct Decisions<'a> {
    /// One per feature.
    pub weights: &'a [f32],
    /// To be added to the dot product.
    pub intercept: f32,
    /// The rows.
    pub batch: &'a Batch,
    /// What results.
    pub decisions: &'a mut Vec<f32>,
}

impl Kernel for Decisions<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let weights: Vec<Chunk> = allocation::collect(to_chunks(self.weights));
        allocation::reserve(self.decisions, self.batch.len());
        let (rows, _) = self.batch.rows().as_chunks::<LANES>();
        for row in rows.chunks_exact(weights.len()) {
            self.decisions.push(dot(simd, &weights, row) + self.intercept);
        }
    }
}

/// The dot product of vectors of as many chunks. Chunk i goes to sum i mod 4.
#[inline(always)]
fn dot<S: Simd>(simd: S, weights: &[Chunk], row: &[Chunk]) -> f32 {
    let mut sums = [simd.splat(0.0); UNROLL];
    let (weights, weights_rest) = weights.as_chunks::<UNROLL>();
    let (row, row_rest) = row.as_chunks::<UNROLL>();
    for (w, x) in weights.iter().zip(row) {
        for i in 0..UNROLL {
            sums[i] = simd.mul_add(simd.load(&w[i]), simd.load(&x[i]), sums[i]);
        }
    }
    for ((sum, w), x) in sums.iter_mut().zip(weights_rest).zip(row_rest) {
        *sum = simd.mul_add(simd.load(w), simd.load(x), *sum);
    }
    sum_all(simd, sums)
}

/// The decision for one row of as many features as weights.
pub(crate) fn decision(weights: &[f32], intercept: f32, features: &[f32]) -> f32 {
    Level::detect_narrow().run(Decision { weights, features }) + intercept
}

struct Decision<'a> {
    weights: &'a [f32],
    features: &'a [f32],
}

impl Kernel for Decision<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let mut sums = [simd.splat(0.0); UNROLL];
        let (weights, weights_rest) = self.weights.as_chunks::<LANES>();
        let (features, features_rest) = self.features.as_chunks::<LANES>();
        for (i, (w, x)) in weights.iter().zip(features).enumerate() {
            sums[i % UNROLL] = simd.mul_add(simd.load(w), simd.load(x), sums[i % UNROLL]);
        }
        // the rest, perhaps none, is padded as that of a row
        let last = &mut sums[weights.len() % UNROLL];
        *last = simd.mul_add(simd.load(&padded(weights_rest)), simd.load(&padded(features_rest)), *last);
        sum_all(simd, sums)
    }
}

/// What decides about single rows of a linear model with one output: the same bits as standardizing a row
/// ([`standardize_row`](crate::standardize_row)) and multiplying it, without writing what is between.
#[derive(Debug, Clone)]
pub struct RowDecision {
    /// means of the features and the reciprocals of their deviations, if they are standardized, padded with 0
    scaling: Vec<[[f64; LANES]; 2]>,
    weights: Vec<Chunk>,
    intercept: f32,
}

impl RowDecision {
    /// Of such a model, with means and deviations.
    pub fn new(weights: &[f32], intercept: f32, scaling: Option<(&[f64], &[f64])>) -> RowDecision {
        let pad = |doubles: &[f64]| {
            let mut chunk = [0.0; LANES];
            chunk[..doubles.len()].copy_from_slice(doubles);
            chunk
        };
        let of_scales = |(mean, scale): (&[f64], &[f64])| {
            let factor: Vec<f64> = scale.iter().map(|scale| scale.recip()).collect();
            let mut chunks: Vec<_> =
                mean.chunks(LANES).zip(factor.chunks(LANES)).map(|(mean, factor)| [pad(mean), pad(factor)]).collect();
            chunks.resize(weights.len() / LANES + 1, [[0.0; LANES]; 2]);
            chunks
        };
        let scaling = scaling.map(of_scales).unwrap_or_default();
        RowDecision { scaling, weights: to_chunks(weights).collect(), intercept }
    }

    /// How many features a row has to have: those of the model, and zeros.
    pub fn row_len(&self) -> usize {
        self.weights.len() * LANES
    }

    /// The decision for a row, which is as long as it has to be.
    ///
    /// # Panics
    /// If it is not.
    pub fn decide(&self, features: &[f32]) -> f32 {
        let (features, rest) = features.as_chunks::<LANES>();
        assert!(features.len() == self.weights.len() && rest.is_empty(), "a row with zeros behind it");
        Level::detect_narrow().run(Row { model: self, features }) + self.intercept
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.scaling[..]) + size_of_val(&self.weights[..])
    }
}

struct Row<'a> {
    model: &'a RowDecision,
    features: &'a [Chunk],
}

impl Kernel for Row<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let RowDecision { scaling, weights, .. } = self.model;
        let mut sums = [simd.splat(0.0); UNROLL];
        let chunks = self.features.iter().zip(weights);
        if scaling.is_empty() {
            for (i, (x, w)) in chunks.enumerate() {
                sums[i % UNROLL] = simd.mul_add(simd.load(w), simd.load(x), sums[i % UNROLL]);
            }
        } else {
            for (i, ((x, w), [mean, factor])) in chunks.zip(scaling).enumerate() {
                let x = simd.standardize(simd.load(x), mean, factor);
                sums[i % UNROLL] = simd.mul_add(simd.load(w), x, sums[i % UNROLL]);
            }
        }
        sum_all(simd, sums)
    }
}

/// The decision for one sparse row: indices beyond the weights count as weight 0. Entry i goes to sum i mod 4.
pub fn sparse_decision(weights: &[f32], intercept: f32, indices: &[u32], values: &[f32]) -> f32 {
    let mut sums = [0.0; UNROLL];
    for (i, (&index, &x)) in indices.iter().zip(values).enumerate() {
        sums[i % UNROLL] += weights.get(index as usize).copied().unwrap_or(0.0) * x;
    }
    let [a, b, c, d] = sums;
    ((a + b) + (c + d)) + intercept
}

#[cfg(test)]
mod tests {
    use super::{RowDecision, decision};
    use crate::standardize_row;

    #[test]
    fn a_row_is_decided_in_one_go_to_the_same_bits() {
        for dim in [0, 1, 7, 15, 16, 17, 28, 63, 64, 65, 100, 200] {
            let number = |i: usize, seed: f64| (i as f64 * seed).sin() * 3.0;
            let weights: Vec<f32> = (0..dim).map(|i| number(i, 1.3) as f32).collect();
            let mean: Vec<f64> = (0..dim).map(|i| number(i, 2.7)).collect();
            let scale: Vec<f64> = (0..dim).map(|i| number(i, 3.9).abs() + 0.01).collect();
            for scaling in [None, Some((&mean[..], &scale[..]))] {
                let model = RowDecision::new(&weights, 0.75, scaling);
                for row in 0..20 {
                    let features: Vec<f32> = (0..dim).map(|i| number(i + 7 * row, 0.37) as f32).collect();
                    let (mut padded, mut scaled) = (features.clone(), features);
                    padded.resize(model.row_len(), 0.0);
                    if let Some((mean, scale)) = scaling {
                        standardize_row((mean, scale), None, &mut scaled);
                    }
                    let expected = decision(&weights, 0.75, &scaled);
                    assert_eq!(model.decide(&padded).to_bits(), expected.to_bits(), "{dim} {row}");
                }
            }
        }
    }
}
