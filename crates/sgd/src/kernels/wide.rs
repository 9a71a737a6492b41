//! SGD on rows of many chunks: one pass over the weights per tuple.
//!
//! Guarantees: exact SGD of batch size 1. The step along the previous row and the dot product with the current one are
//! made chunk by chunk together, so that every weight is loaded and stored once per tuple instead of loaded twice.

use tuples::{Batch, LANES};

use super::dispatch::prefetch;
use super::learn::{Learn, Step, inverse, rescale, without_constant};
use super::{Chunk, UNROLL, multiply_add, sum_all};
use crate::loss::Loss;

/// Cache lines of the next row to ask for while the current one is learnt from; then the processor sees the sequence.
const PREFETCH: usize = 16;

#[inline(always)]
pub(super) fn wide<L: Loss>(learn: Learn<'_, L>) {
    let Learn { state, loss, rates, batch, range } = learn;
    let Some(last) = range.clone().next_back() else { return };
    let mask = state.mask;
    let (&previous_tail, mut previous) = state.previous.split_last().expect("rows have a chunk");
    let mut previous_tail = previous_tail;
    for k in range {
        ask_for(batch, k + 1);
        let (row, y) = tuple(batch, k);
        let (tail, row) = row.split_last().expect("rows have a chunk");
        let tail = without_constant(tail, &mask);
        rescale(&mut state.scale, &mut state.weights);
        let (weights_tail, weights) = state.weights.split_last_mut().expect("rows have a chunk");
        let made = state.step.slope * state.step.direction;
        let scaled = made * inverse(state.scale);
        state.intercept += made;
        let mut sums = [[0.0; LANES]; UNROLL];
        multiply_add(weights_tail, &[scaled; LANES], &previous_tail);
        multiply_add(&mut sums[UNROLL - 1], weights_tail, &tail);
        advance_and_multiply(weights, scaled, previous, row, &mut sums);
        let margin = y * (sum_all(sums) * state.scale as f32 + state.intercept);
        state.step = Step { slope: loss.slope(margin), direction: y * rates.learning_rate };
        state.scale *= rates.shrink;
        state.totals.count(margin, loss.loss(margin));
        (previous, previous_tail) = (row, tail);
    }
    state.previous.copy_from_slice(tuple(batch, last).0);
    *state.previous.last_mut().expect("rows have a chunk") = previous_tail;
}

/// The row and the label of the `k`th tuple.
#[inline(always)]
fn tuple(batch: &Batch, k: usize) -> (&[Chunk], f32) {
    let i = batch.order()[k] as usize;
    (batch.row(i).as_chunks().0, batch.label(i))
}

#[inline(always)]
fn ask_for(batch: &Batch, k: usize) {
    if k < batch.len() {
        let (row, _) = tuple(batch, k);
        row.iter().take(PREFETCH).for_each(prefetch);
    }
}

/// Makes `step` along `previous` and adds the products of the weights that result and `row` to `sums`.
#[inline(always)]
fn advance_and_multiply(
    weights: &mut [Chunk],
    step: f32,
    previous: &[Chunk],
    row: &[Chunk],
    sums: &mut [Chunk; UNROLL],
) {
    let step = [step; LANES];
    let (weights, weights_rest) = weights.as_chunks_mut::<UNROLL>();
    let (previous, previous_rest) = previous.as_chunks::<UNROLL>();
    let (row, row_rest) = row.as_chunks::<UNROLL>();
    let mut running = *sums;
    for ((w, p), x) in weights.iter_mut().zip(previous).zip(row) {
        for i in 0..UNROLL {
            multiply_add(&mut w[i], &step, &p[i]);
            multiply_add(&mut running[i], &w[i], &x[i]);
        }
    }
    *sums = running;
    for (((w, p), x), sum) in weights_rest.iter_mut().zip(previous_rest).zip(row_rest).zip(sums) {
        multiply_add(w, &step, p);
        multiply_add(sum, w, x);
    }
}
