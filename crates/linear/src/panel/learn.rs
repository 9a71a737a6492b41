//! The inner loop: a tuple, and all groups of models.

use std::ops::Range;

use loss::kernels::Aligned;
use loss::models::Pointwise;
use simd::{Kernel, LANES, Simd, prefetch, prefetch_far};
use tuples::Batch;

use super::group::{Group, splat};

/// Of this many tuples, the losses of one are counted.
const COUNTED: usize = 16;

/// After this many tuples scales are looked at.
const RESCALED: usize = 8;

/// Tuples that are asked for this many ahead of their use, near and far.
const AHEAD: [usize; 2] = [4, 16];

/// Independent sums in a dot product.
const SUMS: usize = 4;

/// A stretch of the order for all groups to learn from.
pub(super) struct Learn<'a, L> {
    pub(super) groups: &'a mut [Group],
    pub(super) loss: L,
    pub(super) batch: &'a Batch,
    /// the part of each tuple in the order
    pub(super) parts: &'a [u32],
    pub(super) range: Range<usize>,
    /// tuples before these
    pub(super) seen: u64,
    /// are there steps that are bounded?
    pub(super) bounded: bool,
}

impl<L: Pointwise> Kernel for Learn<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Learn { groups, loss, batch, parts, range, seen, bounded } = self;
        let (dim, stride, order) = (batch.dim(), batch.stride(), batch.order());
        let (rows, labels, weights) = (batch.rows(), batch.labels(), batch.weights());
        let row_of = |k: usize| &rows[order[k] as usize * stride..][..stride];
        for (k, number) in range.clone().zip(seen..) {
            let [near, far] = AHEAD.map(|ahead| row_of((k + ahead).min(order.len() - 1)).as_chunks::<LANES>().0);
            for chunk in 0..near.len().min(4) {
                prefetch(near, chunk);
                prefetch_far(far, chunk);
            }
            let (row, place) = (row_of(k), order[k] as usize);
            let (label, weight) = (labels[place], weights.map_or(1.0, |weights| weights[place]));
            let square = if bounded { square(simd, row) } else { 0.0 };
            let tuple = Tuple { row: &row[..dim], label, weight, square, part: parts[k] as usize };
            let (is_counted, is_rescaled) =
                (number.is_multiple_of(COUNTED as u64), number % RESCALED as u64 == RESCALED as u64 - 1);
            for group in groups.iter_mut().filter(|group| group.is_active) {
                step(simd, loss, group, &tuple, is_counted);
                if is_rescaled && group.shrinks {
                    group.rescale();
                }
            }
        }
    }
}

struct Tuple<'a> {
    row: &'a [f32],
    label: f32,
    weight: f32,
    /// |x|² + 1
    square: f32,
    part: usize,
}

/// The sum of the squares of a row, which ends in a constant 1 and zeros.
#[inline(always)]
fn square<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let mut sum = simd.splat(0.0);
    for chunk in row.as_chunks::<LANES>().0 {
        let chunk = simd.load(chunk);
        sum = simd.fma(chunk, chunk, sum);
    }
    simd.sum(sum)
}

#[inline(always)]
fn step<S: Simd, L: Pointwise>(simd: S, loss: L, group: &mut Group, tuple: &Tuple<'_>, is_counted: bool) {
    let Tuple { row, label, weight, square, part } = *tuple;
    let mut products = Aligned([0.0; LANES]);
    simd.store(dot(simd, &group.weights, row), &mut products.0);
    let factor = loss.factor(label);
    let (mut margins, intercepts) = (splat(0.0), &mut group.intercepts.0);
    for lane in 0..LANES {
        margins[lane] = factor * (products.0[lane] * group.scale[lane] as f32 + intercepts[lane]);
    }
    let gradients = loss.negative_gradients(simd, margins, label);
    let part = &group.parts[part];
    if is_counted {
        let sums = group.losses.iter_mut().zip(&mut group.counts);
        for ((lost, count), (margin, learns)) in sums.zip(margins.iter().zip(&part.learns.0)) {
            let learned = weight * learns;
            *lost += f64::from(learned * loss.loss(*margin, label));
            *count += f64::from(learned);
        }
    }
    let direction = loss.direction(label) * weight;
    let mut steps = splat(0.0);
    for lane in 0..LANES {
        let asked = gradients[lane] * (direction * group.rates.0[lane]) * part.learns.0[lane];
        steps[lane] = asked / (1.0 + (weight * group.bounds.0[lane]) * square);
        intercepts[lane] += steps[lane];
    }
    if group.shrinks {
        for ((step, scale), shrink) in steps.iter_mut().zip(&mut group.scale).zip(&part.shrink) {
            *scale *= shrink;
            *step *= (1.0 / *scale) as f32;
        }
    }
    let steps = simd.load(&steps);
    for (weights, x) in group.weights.iter_mut().zip(row) {
        let stepped = simd.fma(simd.splat(*x), steps, simd.load(&weights.0));
        simd.store(stepped, &mut weights.0);
    }
}

/// The dot products of a row with the weights of all models.
#[inline(always)]
fn dot<S: Simd>(simd: S, weights: &[Aligned], row: &[f32]) -> S::Vector {
    let mut sums = [simd.splat(0.0); SUMS];
    let (of_weights, weights_left) = weights.as_chunks::<SUMS>();
    let (of_row, row_left) = row.as_chunks::<SUMS>();
    for (weights, x) in of_weights.iter().zip(of_row) {
        for i in 0..SUMS {
            sums[i] = simd.fma(simd.splat(x[i]), simd.load(&weights[i].0), sums[i]);
        }
    }
    for ((weights, x), sum) in weights_left.iter().zip(row_left).zip(&mut sums) {
        *sum = simd.fma(simd.splat(*x), simd.load(&weights.0), *sum);
    }
    simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]))
}
