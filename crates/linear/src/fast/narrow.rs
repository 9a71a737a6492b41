//! SGD on rows of few chunks: the weights stay in registers, and the dot product of a row does not wait for the steps
//! of the two rows before it.
//!
//! Guarantees: exact SGD of batch size 1. With steps c and d along the rows p and q before row x, (w + c p + d q)·x =
//! w·x + c (p·x) + d (q·x), and all three dot products are known before c and d are: from one tuple to the next the
//! processor waits for one gradient and one multiplication with addition instead of a whole dot product and a whole
//! update.

use loss::kernels::products;
use loss::models::Pointwise;
use simd::{Chunk, Simd, prefetch, prefetch_far};
use tuples::LANES;

use super::state::{Update, UpdateWindow, inverse};
use super::task::{Learn, bounded};
use super::weights::Weights;

/// Rows to be asked for this many ahead of their use, when they come from the second level of the caches.
const NEAR: usize = 16;

/// The same, when they come from memory: as many rows as the second level holds with ease.
const FAR: usize = 256;

/// With `PENALTY`, the intercept is kept apart from the weights, which are scaled; without, it is the weight of the
/// constant 1. With `BOUNDED`, a tuple's step is divided by 1 + rate * curvature * (|x|² + 1), if there is a bound.
#[inline(always)]
pub(super) fn narrow<const N: usize, const PENALTY: bool, const BOUNDED: bool, S: Simd, L: Pointwise>(
    simd: S,
    learn: Learn<'_, L>,
) {
    let Learn { state, loss, rates, batch, mut range } = learn;
    let (bound, of_tuples) = (rates.bound.unwrap_or_default(), Weights::new(batch));
    let rows = batch.rows().as_chunks::<LANES>().0.as_chunks::<N>().0;
    // as many as there are rows, so that a place is compared once
    let (labels, order) = (&batch.labels()[..rows.len()], batch.order());
    let mut mask = state.mask;
    if !PENALTY {
        state.set_weight_of_constant();
        mask = [1.0; LANES];
    }
    let mask = simd.load(&mask);
    let mut weights: [_; N] = load(simd, state.weights.iter().map(|chunk| &chunk.0));
    let copies: [[Chunk; N]; 2] = [copy(&state.previous[0]), copy(&state.previous[1])];
    let [mut before, mut previous] = [&copies[0], &copies[1]];
    let (mut intercept, UpdateWindow { mut earlier, mut last }) = (state.intercept, state.steps);
    let (mut scale, mut scale32, mut inverse_scale) = (state.scale, state.scale as f32, inverse(state.scale));
    while !range.is_empty() {
        let stop = range.end.min(range.start + state.accumulator.room());
        let here = &order[range.start..stop];
        // at the end of the order there is nothing to ask for
        let near = order.get(range.start + NEAR..stop + NEAR).unwrap_or(here);
        let far = order.get(range.start + FAR..stop + FAR).unwrap_or(here);
        let out = state.accumulator.next_mut(here.len());
        let places = here.iter().zip(near.iter().zip(far));
        for (((&place, (&near, &far)), margin_out), (label_out, weight_out)) in
            places.zip(out.margins).zip(out.labels.iter_mut().zip(out.weights))
        {
            for chunk in 0..N {
                prefetch_far(rows.as_flattened(), far as usize * N + chunk);
                prefetch(rows.as_flattened(), near as usize * N + chunk);
            }
            prefetch_far(labels, far as usize);
            prefetch(labels, near as usize);
            let (i, y) = (place as usize, labels[place as usize]);
            let mut row: [_; N] = load(simd, rows[i].iter());
            if PENALTY {
                // so that it does not matter what the weights and the other rows have there
                row[N - 1] = simd.mul(row[N - 1], mask);
            }
            let factor = loss.factor(y);
            let products = [
                products(simd, &weights, &row),
                products(simd, &load(simd, before.iter()), &row),
                products(simd, &load(simd, previous.iter()), &row),
            ];
            let (square, [decision, with_earlier, with_last]);
            if BOUNDED {
                let [a, b, c] = products;
                let sums = simd.four_sums([a, b, c, self::products(simd, &row, &row)]);
                ([decision, with_earlier, with_last], square) = ([sums[0], sums[1], sums[2]], sums[3]);
            } else {
                ([decision, with_earlier, with_last], square) = (simd.sums(products), 0.0);
            }
            let made = earlier.gradient * earlier.along;
            let (now, overlap);
            if PENALTY {
                let factor_of_weights = factor * scale32;
                let shrunk = factor_of_weights * simd.fma_one(made, with_earlier, decision);
                now = simd.fma_one(factor, simd.fma_one(earlier.gradient, earlier.direction, intercept), shrunk);
                overlap = simd.fma_one(factor_of_weights, last.along * with_last, factor * last.direction);
            } else {
                now = factor * simd.fma_one(made, with_earlier, decision);
                overlap = factor * last.along * with_last;
            }
            let margin = simd.fma_one(last.gradient, overlap, now);
            let step = simd.splat(made);
            for i in 0..N {
                weights[i] = simd.fma(step, simd.load(&before[i]), weights[i]);
            }
            if PENALTY {
                intercept = simd.fma_one(earlier.gradient, earlier.direction, intercept);
            }
            (earlier, before, previous) = (last, previous, &rows[i]);
            *margin_out = margin;
            if L::NEEDS_LABELS {
                *label_out = y;
            }
            let weight = of_tuples.of(i);
            *weight_out = weight;
            if PENALTY {
                scale *= rates.shrink;
                // keeps the scale in [1/2, 1] by powers of two, which is exact
                if scale < 0.5 {
                    let mut half = 1.0;
                    while scale < 0.5 {
                        scale *= 2.0;
                        half *= 0.5;
                    }
                    for weight in &mut weights {
                        *weight = simd.mul(*weight, simd.splat(half));
                    }
                    earlier.along *= half;
                }
                (scale32, inverse_scale) = (scale as f32, inverse(scale));
            }
            let mut direction = weight * (loss.direction(y) * rates.learning_rate);
            if BOUNDED {
                let square = match rates.bound {
                    // 0 times a square that is infinite would be no number
                    None if PENALTY => 0.0,
                    _ if PENALTY => square + 1.0,
                    _ => square,
                };
                direction = bounded(direction, weight * bound * loss.bend(margin, y), square);
            }
            let along = if PENALTY { direction * inverse_scale } else { direction };
            last = Update { gradient: loss.negative_gradient(simd, margin, y), direction, along };
        }
        state.accumulator.written(simd, loss, of_tuples.are_given(), here.len());
        range.start = stop;
    }
    for (weights, stored) in weights.into_iter().zip(&mut state.weights) {
        simd.store(weights, &mut stored.0);
    }
    state.previous[0].copy_from_slice(before);
    state.previous[1].copy_from_slice(previous);
    (state.intercept, state.scale, state.steps) = (intercept, scale, UpdateWindow { earlier, last });
    let of_constant = state.take_weight_of_constant();
    if !PENALTY {
        state.intercept = of_constant;
    }
}

#[inline(always)]
fn copy<const N: usize>(row: &[Chunk]) -> [Chunk; N] {
    let mut copy = [[0.0; LANES]; N];
    copy.copy_from_slice(row);
    copy
}

#[inline(always)]
fn load<'a, const N: usize, S: Simd>(simd: S, row: impl Iterator<Item = &'a Chunk>) -> [S::Vector; N] {
    let mut vectors = [simd.splat(0.0); N];
    for (vector, chunk) in vectors.iter_mut().zip(row) {
        *vector = simd.load(chunk);
    }
    vectors
}
