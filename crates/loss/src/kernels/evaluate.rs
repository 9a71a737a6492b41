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
    Level::PORTABLE.run(Decision { weights, features }) + intercept
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

/// The decision for one sparse row: indices beyond the weights count as weight 0. Entry i goes to sum i mod 4.
pub fn sparse_decision(weights: &[f32], intercept: f32, indices: &[u32], values: &[f32]) -> f32 {
    let mut sums = [0.0; UNROLL];
    for (i, (&index, &x)) in indices.iter().zip(values).enumerate() {
        sums[i % UNROLL] += weights.get(index as usize).copied().unwrap_or(0.0) * x;
    }
    let [a, b, c, d] = sums;
    ((a + b) + (c + d)) + intercept
}
