//! A stretch of the order, from one step to the next.

use std::ops::Range;

use loss::optimizers::{Method, Rule, Sgd};
use loss::with_method;
use loss::{Hyperparameters, Optimizer};
use simd::{Chunk, Kernel, LANES, Simd, prefetch};
use tuples::Batch;
use tuples::pause::Pauses;

use super::panels::BLOCK;
use super::pass::{Block, Gradients, Pass};
use crate::steps::Steps;

/// The row that comes this many after the first one of a block is asked for.
const AHEAD: usize = 8;

/// Learns from tuples.
pub(super) struct Learn<'a> {
    pub(super) hyper: &'a Hyperparameters,
    pub(super) pass: Pass<'a>,
    /// chunks of all weights
    pub(super) weights: usize,
    pub(super) first: &'a mut [Chunk],
    pub(super) second: &'a mut [Chunk],
    pub(super) steps: &'a mut Steps,
    pub(super) pending: &'a mut usize,
    pub(super) tuples: Tuples<'a>,
}

/// Dense tuples in an order.
#[derive(Clone, Copy)]
pub(super) struct Tuples<'a> {
    rows: &'a [f32],
    stride: usize,
    dim: usize,
    labels: &'a [f32],
    weights: Option<&'a [f32]>,
    order: &'a [u32],
}

impl<'a> Tuples<'a> {
    /// Those at these places of the batch's order.
    pub(super) fn new(batch: &'a Batch, range: Range<usize>) -> Tuples<'a> {
        Tuples {
            rows: batch.rows(),
            stride: batch.stride(),
            dim: batch.dim(),
            labels: batch.labels(),
            weights: batch.weights(),
            order: &batch.order()[range],
        }
    }

    /// Those from place `k` on.
    #[inline(always)]
    fn block<const R: usize>(self, k: usize) -> Block<'a, R> {
        let mut block = Block { features: [&[]; R], labels: [0.0; R], weights: [1.0; R] };
        for r in 0..R {
            let place = self.order[k + r] as usize;
            block.features[r] = &self.rows[place * self.stride..][..self.dim];
            block.labels[r] = self.labels[place];
            block.weights[r] = self.weights.map_or(1.0, |weights| weights[place]);
        }
        block
    }

    /// Asks for `count` rows from place `k` on, as far as there are some.
    #[inline(always)]
    fn prefetch(self, k: usize, count: usize) {
        for &place in self.order.iter().skip(k).take(count) {
            let row = place as usize * self.stride;
            (row..row + self.stride).step_by(LANES).for_each(|line| prefetch(self.rows, line));
        }
    }
}

impl Kernel for Learn<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let (mut k, end) = (0, self.tuples.order.len());
        let (mut pauses, numbers) = (Pauses::default(), LANES * self.pass.numbers.len());
        while k < end {
            let stop = end.min(k + (self.batch_size() - *self.pending));
            while k + BLOCK <= stop {
                self.block::<BLOCK, S>(simd, k);
                pauses.after(BLOCK * numbers);
                k += BLOCK;
            }
            while k < stop {
                self.block::<1, S>(simd, k);
                pauses.after(numbers);
                k += 1;
            }
            if *self.pending == self.batch_size() {
                self.step();
            }
        }
    }
}

impl Learn<'_> {
    /// Tuples of a mini-batch. A plain step of a single tuple needs no place for the gradient.
    #[inline(always)]
    fn block<const R: usize, S: Simd>(&mut self, simd: S, k: usize) {
        self.tuples.prefetch(k + AHEAD, R);
        let (block, scale) = (self.tuples.block::<R>(k), self.steps.scale as f32);
        if R == 1 && self.hyper.optimizer == Optimizer::Sgd && self.batch_size() == 1 {
            let rules = self.steps.begin(Sgd, self.hyper.l2);
            self.pass.run(simd, &block, scale, Gradients::Step(rules.map(Rule::rate)));
            self.steps.end(self.hyper.l1, self.pass.numbers[..self.weights].as_flattened_mut());
            return;
        }
        let gradients = if *self.pending == 0 { Gradients::First } else { Gradients::Added };
        self.pass.run(simd, &block, scale, gradients);
        *self.pending += R;
    }

    #[inline(always)]
    fn batch_size(&self) -> usize {
        self.hyper.batch_size as usize
    }

    /// Makes the step of a mini-batch that is complete.
    #[inline(always)]
    fn step(&mut self) {
        with_method!(self.hyper.optimizer, method => self.step_by(method));
    }

    #[inline(always)]
    fn step_by<M: Method>(&mut self, method: M) {
        let share = 1.0 / *self.pending as f32;
        *self.pending = 0;
        let [of_weights, of_intercepts] = self.steps.begin(method, self.hyper.l2);
        let (weights, intercepts) = self.pass.numbers.split_at_mut(self.weights);
        let (gradient, of_gradient) = self.pass.gradient.split_at(self.weights);
        let (first, of_first) = self.first.split_at_mut(self.weights.min(self.first.len()));
        let (second, of_second) = self.second.split_at_mut(self.weights.min(self.second.len()));
        let weights = weights.as_flattened_mut();
        for (rule, numbers, first, second, gradient) in [
            (of_weights, &mut *weights, first, second, gradient),
            (of_intercepts, intercepts.as_flattened_mut(), of_first, of_second, of_gradient),
        ] {
            let (first, second) = (first.as_flattened_mut(), second.as_flattened_mut());
            rule.step(numbers, first, second, gradient.as_flattened(), share);
        }
        self.steps.end(self.hyper.l1, weights);
    }
}
