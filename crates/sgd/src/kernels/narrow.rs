//! SGD on rows of few chunks: the weights stay in registers, and the dot product of the next row does not wait for the
//! step of the last one.
//!
//! Guarantees: exact SGD of batch size 1. With c = slope * direction the step along the previous row p,
//! (w + c p)·x = w·x + c (p·x), and both dot products are known before the slope is: from one tuple to the next the
//! processor waits for one slope, one multiplication and one addition instead of a whole dot product and a whole update.

use tuples::{Batch, LANES};

use super::dispatch::prefetch;
use super::learn::{Learn, Step, inverse, rescale, without_constant};
use super::{Chunk, sum_lanes};
use crate::loss::Loss;

/// Rows to be asked for ahead of their use: learning from that many takes as long as memory takes to answer.
const PREFETCH: usize = 16;

#[inline(always)]
pub(super) fn narrow<const N: usize, L: Loss>(learn: Learn<'_, L>) {
    let Learn { state, loss, rates, batch, range } = learn;
    let rows = Rows::<N>::new(batch);
    let mut weights: [Chunk; N] = as_array(&state.weights);
    let mut previous: [Chunk; N] = as_array(&state.previous);
    let (mut intercept, mut step, mut totals) = (state.intercept, state.step, state.totals);
    let (mut scale, mut scale32, mut inverse_scale) = (state.scale, state.scale as f32, inverse(state.scale));
    for k in range {
        let (row, y) = rows.get(k);
        let mut row = *row;
        row[N - 1] = without_constant(&row[N - 1], &state.mask);
        // the previous row's own constant 1 times this one's
        let overlap = dot(&previous, &row) + 1.0;
        let margin = y * (dot(&weights, &row) * scale32 + intercept) + step.slope * (y * step.direction * overlap);
        let made = step.slope * step.direction;
        intercept += made;
        advance(&mut weights, made * inverse_scale, &previous);
        step = Step { slope: loss.slope(margin), direction: y * rates.learning_rate };
        totals.count(margin, loss.loss(margin));
        if rates.shrink < 1.0 {
            rescale(&mut scale, &mut weights);
            scale *= rates.shrink;
            (scale32, inverse_scale) = (scale as f32, inverse(scale));
        }
        previous = row;
    }
    state.weights.copy_from_slice(&weights);
    state.previous.copy_from_slice(&previous);
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

    /// The row and the label of the `k`th tuple.
    #[inline(always)]
    fn get(&self, k: usize) -> (&'a [Chunk; N], f32) {
        if let Some(&ahead) = self.order.get(k + PREFETCH)
            && let (Some(row), Some(label)) = (self.rows.get(ahead as usize), self.labels.get(ahead as usize))
        {
            row.iter().for_each(prefetch);
            prefetch(label);
        }
        let i = self.order[k] as usize;
        (&self.rows[i], self.labels[i])
    }
}

fn as_array<const N: usize>(chunks: &[Chunk]) -> [Chunk; N] {
    chunks.try_into().expect("a kernel for as many chunks as there are")
}

#[inline(always)]
fn dot<const N: usize>(a: &[Chunk; N], b: &[Chunk; N]) -> f32 {
    let mut sum = [0.0; LANES];
    for lane in 0..LANES {
        sum[lane] = a[0][lane] * b[0][lane];
    }
    for chunk in 1..N {
        super::multiply_add(&mut sum, &a[chunk], &b[chunk]);
    }
    sum_lanes(sum)
}

#[inline(always)]
fn advance<const N: usize>(weights: &mut [Chunk; N], step: f32, row: &[Chunk; N]) {
    for chunk in 0..N {
        for lane in 0..LANES {
            weights[chunk][lane] += step * row[chunk][lane];
        }
    }
}
