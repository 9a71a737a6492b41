//! One step of the optimizers, parameter by parameter, and the cut of l1.
//!
//! Guarantees: what l1 takes from a weight over many steps is what all of them owe, however little each of them does, as
//! long as the weight keeps its order of magnitude; numbers that have become too small for f32's full precision are 0, lest a moment that decays for ever
//! makes the processor slow; NaN stays NaN. Everything is plain arithmetic, so that the compiler may make vectors of it
//! without changing a bit.

use super::state::{Step, TrainerState};
use crate::Optimizer;
use tuples::pause;

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
    pub(crate) fn new(head: &TrainerState, rate: f32) -> Rule {
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
    pub(crate) fn both(head: &TrainerState, step: &Step) -> (Rule, Rule) {
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

/// The part of `taken`, the sum of all cuts so far, that a weight like `w` can have lost: to the nearest multiple of the
/// weight's last digit. The difference of two of them can be subtracted from the weight exactly, and many of them add up
/// to what the cuts do, although each cut alone may be too small for the weight to notice. No weight has to remember what
/// it owes: that follows from the sum, which all weights share.
#[inline(always)]
fn payable(w: f32, taken: f32) -> f32 {
    let unit = f32::from_bits(w.to_bits() & EXPONENT);
    (taken + unit) - unit
}

/// The bits of the power of 2 in a float.
const EXPONENT: u32 = 0x7F80_0000;

/// What a weight has to pay, when the sum of all cuts goes from `before` to `now`.
#[inline(always)]
pub(crate) fn due(w: f32, before: f64, now: f64) -> f64 {
    // sums at a distance of 2^29, the digits by which f64 exceeds f32, round to the weight's last digit
    let unit = f64::from(f32::from_bits(w.to_bits() & EXPONENT)) * (1u32 << 29) as f64;
    (((now + unit) - unit) - ((before + unit) - unit)).max(0.0)
}

/// Cuts all weights by `by`, or by what they can pay of it and of `taken`, the sum of all cuts, which grows by as much.
#[inline(always)]
pub(crate) fn cut_all(weights: &mut [f32], taken: &mut f64, by: f64) {
    if by > 0.0 {
        let (before, now) = (*taken as f32, (*taken + by) as f32);
        pause::parts_mut(weights).flatten().for_each(|w| *w = cut(*w, payable(*w, now) - payable(*w, before)));
        *taken = wrap(*taken + by, by, F32_CUTS);
    }
}

/// The sum of all cuts without what no weight asks for any more: a power of 2 that is a multiple of every weight's last
/// digit, unless the weight is larger than 2^23 times `cuts` cuts. So the sum stays small enough for its type to hold a
/// cut of `by`.
#[inline(always)]
pub(crate) fn wrap(taken: f64, by: f64, cuts: f64) -> f64 {
    let power = f64::from_bits(by.to_bits() & (0x7FF << 52)); // not above `by`
    let rest = taken % (power * cuts);
    if rest.is_finite() { rest } else { 0.0 }
}

/// Cuts of which f32 can hold the sum, each to an eighth.
const F32_CUTS: f64 = (1 << 20) as f64;

/// Cuts of which f64 can hold the sum, each to a 4096th.
pub(crate) const F64_CUTS: f64 = (1u64 << 40) as f64;
