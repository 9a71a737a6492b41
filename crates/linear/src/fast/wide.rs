//! SGD on rows of many chunks: one pass over the weights per tuple.
//!
//! Guarantees: exact SGD of batch size 1. The step along the previous row and the dot product with the current one are
//! made chunk by chunk together, so that every weight is loaded and stored once per tuple instead of loaded twice.

use loss::kernels::{Aligned, UNROLL, sum_all};
use loss::models::Pointwise;
use simd::{Chunk, Simd, prefetch, prefetch_far};

use super::state::{Update, inverse};
use super::task::{Learn, bounded};
use super::weights::Weights;

/// The row that comes this many after the current one is asked for from memory, when the next one is asked for from the
/// second level of the caches.
const FAR: usize = 2;

#[inline(always)]
pub(super) fn wide<const BOUNDED: bool, S: Simd, L: Pointwise>(simd: S, learn: Learn<'_, L>) {
    let Learn { state, loss, rates, batch, range } = learn;
    let (bound, of_tuples) = (rates.bound.unwrap_or_default(), Weights::new(batch));
    let Some(last) = range.clone().next_back() else { return };
    let tuples = Tuples { rows: batch.rows(), stride: batch.stride(), labels: batch.labels(), order: batch.order() };
    let mask = simd.load(&state.mask);
    let (tail, mut previous) = state.previous[1].split_last().expect("rows have a chunk");
    let mut previous_tail = simd.load(tail);
    for k in range {
        let ahead = [k + 1, k + FAR].map(|k| if k < tuples.order.len() { tuples.get(k).0 } else { &[] });
        let (row, y) = tuples.get(k);
        let (i, factor) = (tuples.order[k] as usize, loss.factor(y));
        let (tail, row) = row.split_last().expect("rows have a chunk");
        let tail = simd.mul(simd.load(tail), mask);
        let Update { gradient, direction, along } = state.steps.last;
        let step = simd.splat(gradient * along);
        state.intercept = simd.fma_one(gradient, direction, state.intercept);
        let (weights_tail, weights) = state.weights.split_last_mut().expect("rows have a chunk");
        let advanced = simd.fma(step, previous_tail, simd.load(&weights_tail.0));
        simd.store(advanced, &mut weights_tail.0);
        let tails = [simd.mul(advanced, tail), simd.mul(tail, tail)];
        let [product, square] = advance_and_dot::<BOUNDED, S>(simd, weights, step, previous, row, ahead, tails);
        let margin = factor * simd.fma_one(product, state.scale as f32, state.intercept);
        state.scale *= rates.shrink;
        rescale(&mut state.scale, &mut state.weights);
        let weight = of_tuples.of(i);
        let mut direction = weight * (loss.direction(y) * rates.learning_rate);
        if BOUNDED {
            direction = bounded(direction, weight * bound * loss.bend(margin, y), square + 1.0);
        }
        let gradient = loss.negative_gradient(simd, margin, y);
        state.steps.last = Update { gradient, direction, along: direction * inverse(state.scale) };
        let out = state.accumulator.next_mut(1);
        (out.margins[0], out.labels[0], out.weights[0]) = (margin, y, weight);
        state.accumulator.written(simd, loss, of_tuples.are_given(), 1);
        (previous, previous_tail) = (row, tail);
    }
    state.previous[1].copy_from_slice(tuples.get(last).0);
    simd.store(previous_tail, state.previous[1].last_mut().expect("rows have a chunk"));
}

/// Makes `step` along `previous` and returns the dot product of the weights that result and `row`, and the sum of the
/// lanes of the first of `tails`; with `SQUARE`, the same of `row` with itself and the second. Meanwhile the `next` row
/// is asked for, and one that is `far`: by the time they are learned from, memory has answered.
#[inline(always)]
fn advance_and_dot<const SQUARE: bool, S: Simd>(
    simd: S,
    weights: &mut [Aligned],
    step: S::Vector,
    previous: &[Chunk],
    row: &[Chunk],
    [next, far]: [&[Chunk]; 2],
    [tail, tail_square]: [S::Vector; 2],
) -> [f32; 2] {
    let mut sums = [simd.splat(0.0); UNROLL];
    let mut squares = sums;
    sums[UNROLL - 1] = tail;
    squares[UNROLL - 1] = tail_square;
    let (weights, weights_rest) = weights.as_chunks_mut::<UNROLL>();
    let (previous, previous_rest) = previous.as_chunks::<UNROLL>();
    let (row, row_rest) = row.as_chunks::<UNROLL>();
    for (block, ((w, p), x)) in weights.iter_mut().zip(previous).zip(row).enumerate() {
        for i in 0..UNROLL {
            prefetch_far(far, block * UNROLL + i);
            prefetch(next, block * UNROLL + i);
            sums[i] = advance_chunk(simd, &mut w[i], step, &p[i], &x[i], sums[i]);
            if SQUARE {
                squares[i] = simd.fma(simd.load(&x[i]), simd.load(&x[i]), squares[i]);
            }
        }
    }
    let rest = weights_rest.iter_mut().zip(previous_rest).zip(row_rest);
    for (((w, p), x), (sum, square)) in rest.zip(sums.iter_mut().zip(&mut squares)) {
        *sum = advance_chunk(simd, w, step, p, x, *sum);
        if SQUARE {
            *square = simd.fma(simd.load(x), simd.load(x), *square);
        }
    }
    [sum_all(simd, sums), if SQUARE { sum_all(simd, squares) } else { 0.0 }]
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
    let advanced = simd.fma(step, simd.load(previous), simd.load(&weights.0));
    simd.store(advanced, &mut weights.0);
    simd.fma(advanced, simd.load(row), sum)
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

/// The tuples of a batch in its order.
struct Tuples<'a> {
    rows: &'a [f32],
    stride: usize,
    labels: &'a [f32],
    order: &'a [u32],
}

impl<'a> Tuples<'a> {
    /// The row and the label of the `k`th tuple.
    #[inline(always)]
    fn get(&self, k: usize) -> (&'a [Chunk], f32) {
        let i = self.order[k] as usize;
        (self.rows[i * self.stride..][..self.stride].as_chunks().0, self.labels[i])
    }
}
