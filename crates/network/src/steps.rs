//! What steps have in common, no matter who makes them.

use loss::optimizers::{MIN_L1_STEP, Method, cut_all};
use tuples::pause;

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
