//! The step of a mini-batch.

use std::ops::Range;

use super::engine::NetworkEngine;
use crate::optimizers::{Method, Rule, cut_all, with_method};
use crate::reference::MIN_L1_STEP;
use simd::{Kernel, Simd};
use tuples::pause::{self, PER_PAUSE, pause};

/// A smaller scale is multiplied into the weights, lest these become too large for f32.
const LEAST_SCALE: f64 = 1.0 / (1 << 20) as f64;

/// What all weights have in common between two steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    /// weights are `scale` times the numbers that are kept
    pub(super) scale: f64,
    pub(super) rate: f64,
    /// 1 - β1^t and 1 - β2^t after t steps of adam
    pub(super) unbiased: [f64; 2],
    /// steps whose l1 has not been applied to the weights yet
    pending_l1: u32,
    /// what l1 has taken from every weight's magnitude so far, as [`cut_all`] has it
    pub(super) l1_applied: f64,
}

impl Steps {
    /// Before the first step.
    pub(super) fn new(rate: f64) -> Steps {
        Steps { scale: 1.0, rate, unbiased: [0.0; 2], pending_l1: 0, l1_applied: 0.0 }
    }

    /// Begins a step: the rules for weights and for intercepts.
    #[inline(always)]
    pub(super) fn begin<M: Method>(&mut self, method: M, l2: f64) -> [M::Rule; 2] {
        self.scale *= 1.0 - self.rate * l2;
        self.unbiased = method.count_step(self.unbiased);
        [self.rate / self.scale, self.rate].map(|rate| method.rule(self.unbiased, rate as f32))
    }

    /// Ends a step, which all weights have made.
    #[inline(always)]
    pub(super) fn end(&mut self, l1: f64, weights: &mut [f32]) {
        if l1 > 0.0 {
            self.pending_l1 += 1;
            if f64::from(self.pending_l1) * l1 > MIN_L1_STEP {
                self.apply_l1(l1, weights);
            }
        }
        if self.scale < LEAST_SCALE {
            self.fold_scale(weights);
        }
    }

    /// Applies l1 to the weights for the steps that it has not been applied to.
    pub(super) fn apply_l1(&mut self, l1: f64, weights: &mut [f32]) {
        let cut = f64::from(self.pending_l1) * self.rate * l1 / self.scale;
        self.pending_l1 = 0;
        cut_all(weights, &mut self.l1_applied, cut);
    }

    /// Makes the scale 1.
    pub(super) fn fold_scale(&mut self, weights: &mut [f32]) {
        if self.scale == 1.0 {
            return;
        }
        let scale = self.scale as f32;
        pause::parts_mut(weights).flatten().for_each(|w| *w *= scale);
        self.l1_applied *= self.scale;
        self.scale = 1.0;
    }
}

impl NetworkEngine {
    /// Makes the step of the gradient, which is 0 afterwards.
    pub(super) fn step(&mut self) {
        let share = 1.0 / self.pending.max(1) as f32;
        self.pending = 0;
        with_method!(self.hyper.optimizer, method => self.step_by(method, share));
        if self.touched.is_none() {
            let touched = Vec::new();
            self.is_touched.fill(false);
            self.touched = Some(touched);
        }
        let weights = self.weights();
        self.steps.end(self.hyper.l1, &mut self.numbers[..weights]);
    }

    fn step_by<M: Method>(&mut self, method: M, share: f32) {
        let [of_weights, of_intercepts] = self.steps.begin(method, self.hyper.l2);
        let (first_layer, weights, all) = (self.layers[0].weights.clone(), self.weights(), self.numbers.len());
        // without a gradient, only a plain weight stays as it is
        match self.touched.take().filter(|_| M::Rule::IS_PLAIN) {
            None => self.step_range(0..weights, of_weights, share),
            Some(touched) => {
                let width = self.layers[0].outputs;
                for &input in &touched {
                    let start = input as usize * width;
                    self.step_range(start..start + width, of_weights, share);
                }
                self.step_range(first_layer.end..weights, of_weights, share);
                self.forget(touched);
            }
        }
        self.step_range(weights..all, of_intercepts, share);
    }

    fn forget(&mut self, mut touched: Vec<u32>) {
        touched.iter().for_each(|&input| self.is_touched[input as usize] = false);
        touched.clear();
        self.touched = Some(touched);
    }

    fn step_range<R: Rule>(&mut self, all: Range<usize>, rule: R, share: f32) {
        let level = self.level;
        for start in all.clone().step_by(PER_PAUSE) {
            let range = start..all.end.min(start + PER_PAUSE);
            let part = |array: &mut Vec<f32>| if array.is_empty() { 0..0 } else { range.clone() };
            let (first, second) = (part(&mut self.first), part(&mut self.second));
            level.run(StepAll {
                rule,
                share,
                numbers: &mut self.numbers[range.clone()],
                first: &mut self.first[first],
                second: &mut self.second[second],
                gradient: &mut self.gradient[range],
            });
            pause();
        }
    }

    /// Brings all weights up to date.
    pub(super) fn settle(&mut self) {
        let weights = self.weights();
        self.steps.apply_l1(self.hyper.l1, &mut self.numbers[..weights]);
        self.steps.fold_scale(&mut self.numbers[..weights]);
    }
}

/// A step of some numbers, whose gradient is 0 afterwards.
struct StepAll<'a, R> {
    rule: R,
    share: f32,
    numbers: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    gradient: &'a mut [f32],
}

impl<R: Rule> Kernel for StepAll<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        self.rule.step(self.numbers, self.first, self.second, self.gradient, self.share);
        self.gradient.fill(0.0);
    }
}
