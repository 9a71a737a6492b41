//! Learning from sparse rows, at a cost that grows with their entries.
//!
//! Guarantees: a feature that a tuple does not have costs nothing until a tuple has it or the epoch ends; then its
//! weights are what they would be had every step been made ([`lazy`](super::lazy)).
//! The penalty of l2 is a factor on all weights.

use std::ops::Range;

use loss::optimizers::{Method, Rule};
use loss::with_method;
use simd::{Entries, Kernel, Simd, prefetch, square};
use tuples::Batch;

use super::arrays::{Arrays, weights_of};
use super::gradients::{bend, loss_and_gradient};
use super::lazy::{self, make_room_for_step, restore_exempt};
use super::sparse_plain::{BEYOND, Plain};
use super::state::{END, Step, TrainerState};

/// Rows whose weights are asked for ahead of their use, and rows whose entries are.
const PREFETCH_WEIGHTS: usize = 4;
const PREFETCH_ENTRIES: usize = 8;

/// A model of this many weights fits a cache that needs no asking.
const CACHED: usize = 1 << 14;

/// A stretch of the order to learn from; all indices are below the capacity.
pub(crate) struct LearnSparse<'a> {
    pub(crate) state: &'a mut TrainerState,
    pub(crate) arrays: Arrays<'a>,
    pub(crate) batch: &'a Batch,
    pub(crate) range: Range<usize>,
}

impl Kernel for LearnSparse<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let LearnSparse { state, mut arrays, batch, range } = self;
        if state.is_plain() {
            return state
                .hyper
                .kind
                .with_pointwise(state.hyper.loss_number as f32, Plain { simd, state, arrays, batch, range });
        }
        let (labels, weights, order) = (batch.labels(), batch.weights(), batch.order());
        for k in range {
            if let Some(&ahead) = order.get(k + PREFETCH_ENTRIES) {
                ask_for_entries(batch, ahead as usize);
            }
            if arrays.weights.len() > CACHED
                && let Some(&ahead) = order.get(k + PREFETCH_WEIGHTS)
            {
                ask_for_weights(state, &arrays, batch.sparse_row(ahead as usize).0);
            }
            let i = order[k] as usize;
            let (indices, values) = batch.sparse_row(i);
            let row = Row { indices, values, label: labels[i], weight: weights.map_or(1.0, |weights| weights[i]) };
            simd.call(LearnSparseRow { state, arrays: &mut arrays, row });
        }
    }
}

/// The first cache lines of a row's indices and values.
#[inline(always)]
fn ask_for_entries(batch: &Batch, i: usize) {
    const LINE: usize = 16;
    let (indices, values) = batch.sparse_row(i);
    for entry in (0..indices.len()).step_by(LINE).take(4) {
        prefetch(indices, entry);
        prefetch(values, entry);
    }
}

#[inline(always)]
fn ask_for_weights(state: &TrainerState, arrays: &Arrays, indices: &[u32]) {
    let outputs = state.now.outputs as usize;
    ask_for_places(arrays.weights, outputs, indices);
    if state.is_lazy() || state.hyper.batch_size > 1 {
        for array in [&*arrays.first, arrays.second, arrays.gradient] {
            ask_for_places(array, outputs, indices);
        }
        for (array, size) in [(&*arrays.last, 1), (arrays.next, 1), (arrays.l1_applied, 2)] {
            ask_for_places(array, size, indices);
        }
    }
}

/// What an array has for these features, `size` each; nothing if the array is not in use.
#[inline(always)]
fn ask_for_places<T>(array: &[T], size: usize, indices: &[u32]) {
    if !array.is_empty() {
        for &index in indices {
            prefetch(array, index as usize * size);
        }
    }
}

/// One row to learn from; all indices are below the capacity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) indices: &'a [u32],
    pub(crate) values: &'a [f32],
    pub(crate) label: f32,
    pub(crate) weight: f32,
}

pub(crate) struct LearnSparseRow<'a, 'b> {
    pub(crate) state: &'a mut TrainerState,
    pub(crate) arrays: &'a mut Arrays<'b>,
    pub(crate) row: Row<'a>,
}

impl Kernel for LearnSparseRow<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        learn_row(simd, self.state, self.arrays, self.row);
    }
}

#[inline(always)]
fn learn_row<S: Simd>(simd: S, state: &mut TrainerState, arrays: &mut Arrays, row: Row) {
    if state.is_lazy() {
        lazy::bring_up_to_date(state, arrays, row.indices.iter().map(|&index| index as usize));
    }
    decide(state, arrays, row);
    if state.hyper.bounded {
        let bend = f64::from(bend(state, arrays.out, row.label));
        state.now.squares += f64::from(row.weight) * bend * (f64::from(square(row.values)) + 1.0);
    }
    loss_and_gradient(simd, state, arrays.out, row.label, row.weight);
    state.bound_single(arrays.out);
    state.now.pending += 1;
    if state.hyper.batch_size > 1 {
        gather(state, arrays, row);
        if state.now.pending == state.hyper.batch_size {
            simd.call(MakeSparseStep { state, arrays });
        }
    } else {
        step_along(simd, state, arrays, row);
    }
}

#[inline(always)]
fn decide(state: &TrainerState, arrays: &mut Arrays, Row { indices, values, .. }: Row) {
    let scale = state.now.scale as f32;
    if let ([z], [intercept]) = (&mut *arrays.out, &*arrays.intercepts.values) {
        let entries = Entries::new(indices, values, arrays.weights.len()).expect(BEYOND);
        *z = entries.dot::<false>(arrays.weights)[0] * scale + intercept;
        return;
    }
    arrays.out.fill(0.0);
    for (&index, &x) in indices.iter().zip(values) {
        for (z, w) in arrays.out.iter_mut().zip(weights_of(arrays.weights, state, index as usize)) {
            *z += *w * x;
        }
    }
    for (z, intercept) in arrays.out.iter_mut().zip(&*arrays.intercepts.values) {
        *z = *z * scale + intercept;
    }
}

/// Adds the gradient of a tuple to the pending one.
#[inline(always)]
fn gather(state: &mut TrainerState, arrays: &mut Arrays, Row { indices, values, .. }: Row) {
    for (&index, &x) in indices.iter().zip(values) {
        let next = &mut arrays.next[index as usize];
        if *next == 0 {
            *next = state.now.touched;
            state.now.touched = index + 1;
        }
        for (gradient, factor) in weights_of(arrays.gradient, state, index as usize).iter_mut().zip(&*arrays.out) {
            *gradient += factor * x;
        }
    }
    for (gradient, factor) in arrays.intercepts.gradient.iter_mut().zip(&*arrays.out) {
        *gradient += factor;
    }
}

/// Makes the step of one tuple.
#[inline(always)]
fn step_along<S: Simd>(simd: S, state: &mut TrainerState, arrays: &mut Arrays, row: Row) {
    let step = begin_step(simd, state, arrays);
    with_method!(state.hyper.optimizer, method => step_along_by(method, state, arrays, row, step));
    state.now.l1_applied += step.cut;
}

#[inline(always)]
fn step_along_by<M: Method>(method: M, state: &TrainerState, arrays: &mut Arrays, row: Row, step: Step) {
    let rule = method.rule(state.now.taken.unbiased, step.scaled_rate);
    match &*arrays.out {
        [factor] if M::Rule::IS_PLAIN => {
            let entries = Entries::new(row.indices, row.values, arrays.weights.len()).expect(BEYOND);
            entries.add_to(arrays.weights, factor * rule.rate());
        }
        _ => {
            for (&index, &x) in row.indices.iter().zip(row.values) {
                step_feature(state, arrays, rule, index as usize, |_, factor| factor * x);
            }
        }
    }
    arrays.intercepts.gradient.copy_from_slice(arrays.out);
    step_intercepts(arrays, method.rule(state.now.taken.unbiased, step.rate), step);
}

/// [`step`], compiled once for each instruction set.
struct MakeSparseStep<'a, 'b> {
    state: &'a mut TrainerState,
    arrays: &'a mut Arrays<'b>,
}

impl Kernel for MakeSparseStep<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        step(simd, self.state, self.arrays);
    }
}

/// Makes the step of the pending gradient.
#[inline(always)]
pub(super) fn step<S: Simd>(simd: S, state: &mut TrainerState, arrays: &mut Arrays) {
    let step = begin_step(simd, state, arrays);
    let touched = std::mem::replace(&mut state.now.touched, END);
    with_method!(state.hyper.optimizer, method => step_by(method, state, arrays, touched, step));
    arrays.intercepts.gradient.fill(0.0);
    state.now.l1_applied += step.cut;
}

#[inline(always)]
fn step_by<M: Method>(method: M, state: &TrainerState, arrays: &mut Arrays, mut touched: u32, step: Step) {
    let rule = method.rule(state.now.taken.unbiased, step.scaled_rate);
    // a list that came from outside may end anywhere: at a feature that is not there or was touched already
    while let Some(next) = arrays.next.get_mut((touched as usize).wrapping_sub(1)) {
        let after = std::mem::take(next);
        if after == 0 {
            break;
        }
        let j = touched as usize - 1;
        step_feature(state, arrays, rule, j, |gradient, _| gradient * step.share);
        weights_of(arrays.gradient, state, j).fill(0.0);
        touched = after;
    }
    step_intercepts(arrays, method.rule(state.now.taken.unbiased, step.rate), step);
}

/// Steps the weights of one feature, which is up to date.
#[inline(always)]
fn step_feature<R: Rule>(
    state: &TrainerState,
    arrays: &mut Arrays,
    rule: R,
    j: usize,
    gradient: impl Fn(f32, f32) -> f32,
) {
    let start = j * state.now.outputs as usize;
    for (k, factor) in arrays.out.iter().enumerate() {
        let gathered = arrays.gradient.get(start + k).copied().unwrap_or(0.0);
        let (first, second) = (arrays.first.get_mut(start + k), arrays.second.get_mut(start + k));
        rule.step_one(&mut arrays.weights[start + k], first, second, gradient(gathered, *factor));
    }
    if let Some(last) = arrays.last.get_mut(j) {
        *last = state.now.time;
    }
}

#[inline(always)]
fn step_intercepts<R: Rule>(arrays: &mut Arrays, rule: R, step: Step) {
    let intercepts = &mut arrays.intercepts;
    let (first, second) = (&mut *intercepts.first, &mut *intercepts.second);
    rule.step(intercepts.values, first, second, intercepts.gradient, step.share);
}

#[inline(always)]
fn begin_step<S: Simd>(simd: S, state: &mut TrainerState, arrays: &mut Arrays) -> Step {
    make_room_for_step(simd, state, arrays);
    let step = state.begin_step();
    restore_exempt(state, arrays);
    step
}
