//! One step of the optimizers, parameter by parameter, and the cut of l1.
//!
//! Guarantees: numbers that have become too small for f32's full precision are 0, lest a moment that decays for ever
//! makes the processor slow; NaN stays NaN. Everything is plain arithmetic, so that the compiler may make vectors of it
//! without changing a bit.

use super::head::{Head, Step};
use crate::Optimizer;

/// Moments smaller than this are 0.
const TINY: f32 = f32::MIN_POSITIVE;

/// An optimizer with the numbers of a step, for parameters that are stepped at `rate`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    Sgd { rate: f32 },
    Momentum { rate: f32, beta: f32 },
    Adam { rate: f32, keep: [f32; 2], take: [f32; 2], root: f32, epsilon: f32 },
}

impl Rule {
    #[inline(always)]
    pub(crate) fn new(head: &Head, rate: f32) -> Rule {
        Rule::of(head.optimizer(), head.unbiased, rate)
    }

    /// The rule of an optimizer; adam has come to 1 - β1^t and 1 - β2^t.
    #[inline(always)]
    pub(crate) fn of(optimizer: Optimizer, unbiased: [f64; 2], rate: f32) -> Rule {
        match optimizer {
            Optimizer::Sgd => Rule::Sgd { rate },
            Optimizer::Momentum { beta } => Rule::Momentum { rate, beta: beta as f32 },
            Optimizer::Adam { beta1, beta2, epsilon } => Rule::Adam {
                rate: rate / unbiased[0] as f32,
                keep: [beta1 as f32, beta2 as f32],
                take: [(1.0 - beta1) as f32, (1.0 - beta2) as f32],
                root: (1.0 / unbiased[1].sqrt()) as f32,
                epsilon: epsilon as f32,
            },
        }
    }

    /// The rule for weights and the one for intercepts.
    #[inline(always)]
    pub(crate) fn both(head: &Head, step: &Step) -> (Rule, Rule) {
        (Rule::new(head, step.scaled_rate), Rule::new(head, step.rate))
    }

    /// Steps parameters along `share` times `gradient`, which points downhill.
    #[inline(always)]
    pub(crate) fn step(
        self,
        parameters: &mut [f32],
        first: &mut [f32],
        second: &mut [f32],
        gradient: &[f32],
        share: f32,
    ) {
        let parameters = parameters.iter_mut().zip(gradient);
        match self {
            Rule::Sgd { rate } => parameters.for_each(|(w, g)| *w += rate * (share * g)),
            Rule::Momentum { rate, beta } => {
                for ((w, g), v) in parameters.zip(first) {
                    *w += rate * momentum(v, share * g, beta);
                }
            }
            Rule::Adam { rate, keep, take, root, epsilon } => {
                for (((w, g), m), v) in parameters.zip(first).zip(second) {
                    *w += rate * adam(m, v, share * g, keep, take, root, epsilon);
                }
            }
        }
    }

    /// Steps one parameter, as [`step`](Rule::step).
    #[inline(always)]
    pub(crate) fn step_one(self, w: &mut f32, first: Option<&mut f32>, second: Option<&mut f32>, gradient: f32) {
        match (self, first, second) {
            (Rule::Momentum { rate, beta }, Some(v), _) => *w += rate * momentum(v, gradient, beta),
            (Rule::Adam { rate, keep, take, root, epsilon }, Some(m), Some(v)) => {
                *w += rate * adam(m, v, gradient, keep, take, root, epsilon);
            }
            (Rule::Sgd { rate } | Rule::Momentum { rate, .. } | Rule::Adam { rate, .. }, ..) => *w += rate * gradient,
        }
    }
}

#[inline(always)]
fn momentum(v: &mut f32, gradient: f32, beta: f32) -> f32 {
    *v = flush(beta * *v + gradient);
    *v
}

#[inline(always)]
fn adam(m: &mut f32, v: &mut f32, g: f32, keep: [f32; 2], take: [f32; 2], root: f32, epsilon: f32) -> f32 {
    *m = flush(keep[0] * *m + take[0] * g);
    *v = flush(keep[1] * *v + take[1] * (g * g));
    *m / (v.sqrt() * root + epsilon)
}

/// 0 for what is too small to be worth the processor's time.
#[inline(always)]
pub(crate) fn flush(x: f32) -> f32 {
    if x.abs() < TINY { 0.0 } else { x }
}

/// `w` nearer to 0 by `by`, but not beyond.
#[inline(always)]
pub(crate) fn cut(w: f32, by: f32) -> f32 {
    let left = w.abs() - by;
    if left <= 0.0 { 0.0 } else { left.copysign(w) }
}

/// Cuts all weights.
#[inline(always)]
pub(crate) fn cut_all(weights: &mut [f32], by: f64) {
    let by = by as f32;
    if by > 0.0 {
        weights.iter_mut().for_each(|w| *w = cut(*w, by));
    }
}
