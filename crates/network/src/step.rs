//! The step of a mini-batch.

use std::ops::Range;

use loss::optimizers::{Method, Rule};
use loss::with_method;
use simd::{Kernel, Simd};
use tuples::pause::{PER_PAUSE, pause};

use super::engine::NetworkEngine;

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
