//! SGD on rows of many chunks: one pass over the weights per tuple.
//!
//! Guarantees: exact SGD of batch size 1. The step along the previous row and the dot product with the current one are
//! made chunk by chunk together, so that every weight is loaded and stored once per tuple instead of loaded twice.

use tuples::Batch;

use super::learn::{Learn, Step, Weights, inverse};
use super::simd::{Simd, prefetch};
use super::{Aligned, Chunk, UNROLL, sum_all};
use crate::loss::Pointwise;

/// Cache lines of the next row to ask for while the current one is learnt from; then the processor sees the sequence.
const PREFETCH: usize = 16;

#[inline(always)]
pub(super) fn wide<S: Simd, L: Pointwise, W: Weights>(simd: S, learn: Learn<'_, L>, of_tuples: W) {
    let Learn { state, loss, rates, batch, range } = learn;
    let Some(last) = range.clone().next_back() else { return };
    let mask = simd.load(&state.mask);
    let (tail, mut previous) = state.previous.split_last().expect("rows have a chunk");
    let mut previous_tail = simd.load(tail);
    for k in range {
        ask_for(batch, k + 1);
        let (row, y) = tuple(batch, k);
        let (i, factor) = (batch.order()[k] as usize, loss.factor(y));
        let (tail, row) = row.split_last().expect("rows have a chunk");
        let tail = simd.mul(simd.load(tail), mask);
        rescale(&mut state.scale, &mut state.weights);
        let (weights_tail, weights) = state.weights.split_last_mut().expect("rows have a chunk");
        let Step { slope, direction } = state.step;
        let scaled = simd.splat(slope * (direction * inverse(state.scale)));
        state.intercept += slope * direction;
        let advanced = simd.mul_add(scaled, previous_tail, simd.load(&weights_tail.0));
        simd.store(advanced, &mut weights_tail.0);
        let product = advance_and_dot(simd, weights, scaled, previous, row, simd.mul(advanced, tail));
        let margin = factor * (product * state.scale as f32 + state.intercept);
        state.step = Step { slope: loss.slope(margin, y), direction: of_tuples.times(i, factor * rates.learning_rate) };
        state.scale *= rates.shrink;
        state.totals.loss += f64::from(of_tuples.times(i, loss.loss(margin, y)));
        loss.count(&mut state.totals, margin, y);
        (previous, previous_tail) = (row, tail);
    }
    state.previous.copy_from_slice(tuple(batch, last).0);
    simd.store(previous_tail, state.previous.last_mut().expect("rows have a chunk"));
}

/// Makes `step` along `previous` and returns the dot product of the weights that result and `row`, and the sum of the
/// lanes of `tail`.
#[inline(always)]
fn advance_and_dot<S: Simd>(
    simd: S,
    weights: &mut [Aligned],
    step: S::Vector,
    previous: &[Chunk],
    row: &[Chunk],
    tail: S::Vector,
) -> f32 {
    let mut sums = [simd.splat(0.0); UNROLL];
    sums[UNROLL - 1] = tail;
    let (weights, weights_rest) = weights.as_chunks_mut::<UNROLL>();
    let (previous, previous_rest) = previous.as_chunks::<UNROLL>();
    let (row, row_rest) = row.as_chunks::<UNROLL>();
    for ((w, p), x) in weights.iter_mut().zip(previous).zip(row) {
        for i in 0..UNROLL {
            sums[i] = advance_chunk(simd, &mut w[i], step, &p[i], &x[i], sums[i]);
        }
    }
    for (((w, p), x), sum) in weights_rest.iter_mut().zip(previous_rest).zip(row_rest).zip(&mut sums) {
        *sum = advance_chunk(simd, w, step, p, x, *sum);
    }
    sum_all(simd, sums)
}

#[inline(always)]
fn advance_chunk<S: Simd>(
    simd: S,
    weights: &mut Aligned,
    step: S::Vector,
    previous: &Chunk,
    row: &Chunk,
    sum: S::Vector,
) -> S::Vector {
    let advanced = simd.mul_add(step, simd.load(previous), simd.load(&weights.0));
    simd.store(advanced, &mut weights.0);
    simd.mul_add(advanced, simd.load(row), sum)
}

/// Keeps the scale in [1/2, 1] by powers of two, which is exact.
#[inline(always)]
fn rescale(scale: &mut f64, weights: &mut [Aligned]) {
    while *scale < 0.5 {
        *scale *= 2.0;
        for weight in weights.iter_mut().flat_map(|chunk| &mut chunk.0) {
            *weight *= 0.5;
        }
    }
}

/// The row and the label of the `k`th tuple.
#[inline(always)]
fn tuple(batch: &Batch, k: usize) -> (&[Chunk], f32) {
    let i = batch.order()[k] as usize;
    (batch.row(i).as_chunks().0, batch.label(i))
}

#[inline(always)]
fn ask_for(batch: &Batch, k: usize) {
    if k < batch.order().len() {
        let (row, _) = tuple(batch, k);
        for chunk in row.iter().take(PREFETCH) {
            prefetch(chunk);
        }
    }
}
