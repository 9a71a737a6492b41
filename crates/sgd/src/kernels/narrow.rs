//! SGD on rows of few chunks: the weights stay in registers, and the dot product of the next row does not wait for the
//! step of the last one.
//!
//! Guarantees: exact SGD of batch size 1. With c = slope * direction the step along the previous row p, (w + c p)·x =
//! w·x + c (p·x), and both dot products are known before the slope is: from one tuple to the next the processor waits
//! for one slope, one multiplication and one addition instead of a whole dot product and a whole update.

use tuples::{Batch, LANES};

use super::Chunk;
use super::learn::{Learn, Step, Weights, inverse};
use super::simd::{Simd, prefetch};
use crate::loss::Pointwise;

/// Rows to be asked for ahead of their use: learning from that many takes as long as memory takes to answer.
const PREFETCH: usize = 32;

#[inline(always)]
pub(super) fn narrow<const N: usize, S: Simd, L: Pointwise, W: Weights>(simd: S, learn: Learn<'_, L>, of_tuples: W) {
    let Learn { state, loss, rates, batch, range } = learn;
    let rows = Rows::<N>::new(batch);
    let mask = simd.load(&state.mask);
    let (mut weights, mut previous) = ([simd.splat(0.0); N], [simd.splat(0.0); N]);
    for i in 0..N {
        weights[i] = simd.load(&state.weights[i].0);
        previous[i] = simd.load(&state.previous[i]);
    }
    let (mut intercept, mut step, mut totals) = (state.intercept, state.step, state.totals);
    let (mut scale, mut scale32, mut inverse_scale) = (state.scale, state.scale as f32, inverse(state.scale));
    for k in range {
        let (i, row, y) = rows.get(k);
        let factor = loss.factor(y);
        let mut row = load(simd, row);
        row[N - 1] = simd.mul(row[N - 1], mask);
        // 1 is the previous row's own constant times this one's
        let overlap = factor * step.direction * (dot(simd, &previous, &row) + 1.0);
        let margin = (dot(simd, &weights, &row) * (factor * scale32) + factor * intercept) + step.slope * overlap;
        let made = simd.splat(step.slope * (step.direction * inverse_scale));
        for i in 0..N {
            weights[i] = simd.mul_add(made, previous[i], weights[i]);
        }
        intercept += step.slope * step.direction;
        step = Step { slope: loss.slope(margin, y), direction: of_tuples.times(i, factor * rates.learning_rate) };
        totals.loss += f64::from(of_tuples.times(i, loss.loss(margin, y)));
        loss.count(&mut totals, margin, y);
        if rates.shrink < 1.0 {
            // keeps the scale in [1/2, 1] by powers of two, which is exact
            while scale < 0.5 {
                scale *= 2.0;
                for weight in &mut weights {
                    *weight = simd.mul(*weight, simd.splat(0.5));
                }
            }
            scale *= rates.shrink;
            (scale32, inverse_scale) = (scale as f32, inverse(scale));
        }
        previous = row;
    }
    for i in 0..N {
        simd.store(weights[i], &mut state.weights[i].0);
        simd.store(previous[i], &mut state.previous[i]);
    }
    (state.intercept, state.scale, state.step, state.totals) = (intercept, scale, step, totals);
}

/// The rows of a batch in its order.
struct Rows<'a, const N: usize> {
    rows: &'a [[Chunk; N]],
    labels: &'a [f32],
    order: &'a [u32],
}

impl<'a, const N: usize> Rows<'a, N> {
    #[inline(always)]
    fn new(batch: &'a Batch) -> Rows<'a, N> {
        let rows = batch.rows().as_chunks::<LANES>().0.as_chunks::<N>().0;
        Rows { rows, labels: batch.labels(), order: batch.order() }
    }

    /// Place, row and label of the `k`th tuple.
    #[inline(always)]
    fn get(&self, k: usize) -> (usize, &'a [Chunk; N], f32) {
        if let Some(&ahead) = self.order.get(k + PREFETCH)
            && let (Some(row), Some(label)) = (self.rows.get(ahead as usize), self.labels.get(ahead as usize))
        {
            for chunk in row {
                prefetch(chunk);
            }
            prefetch(label);
        }
        let i = self.order[k] as usize;
        (i, &self.rows[i], self.labels[i])
    }
}

#[inline(always)]
fn load<const N: usize, S: Simd>(simd: S, row: &[Chunk; N]) -> [S::Vector; N] {
    let mut vectors = [simd.splat(0.0); N];
    for i in 0..N {
        vectors[i] = simd.load(&row[i]);
    }
    vectors
}

#[inline(always)]
fn dot<const N: usize, S: Simd>(simd: S, a: &[S::Vector; N], b: &[S::Vector; N]) -> f32 {
    let mut sum = simd.mul(a[0], b[0]);
    for i in 1..N {
        sum = simd.mul_add(a[i], b[i], sum);
    }
    simd.sum(sum)
}
