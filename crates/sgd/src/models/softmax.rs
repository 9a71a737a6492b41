//! Multinomial logistic regression: the cross entropy -ln p_y with p_k = e^(z_k) / Σ e^(z_j), y = 0, 1, ...

use simd::Simd;

use super::definition::{LinearModel, Model, Task};
use super::objective::{Objective, PointwiseVisitor, count_one};
use crate::math::{cross_entropy, entropy, exp, ln};
use crate::totals::Totals;

/// The cross entropy of several outputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Softmax;

impl Model for Softmax {
    const NAME: &'static str = "softmax";
    const ALIASES: &'static [&'static str] = &["softmax_regression", "multinomial_logistic_regression"];
    const DESCRIPTION: &'static str = "a multinomial logistic regression";
    const TASK: Task = Task::Classes;
    const HAS_PROBABILITIES: bool = true;
    const CURVATURE: f64 = 0.5;

    fn exact_loss(decisions: &[f32], y: f32) -> f64 {
        cross_entropy(decisions, y as usize)
    }

    fn constant_loss(shares: &[f64]) -> Option<f64> {
        Some(entropy(shares))
    }
}

impl LinearModel for Softmax {
    #[inline(always)]
    fn objective() -> Softmax {
        Softmax
    }
}

impl Objective for Softmax {
    const POINTWISE: bool = false;

    #[inline(always)]
    fn loss_and_gradient<S: Simd>(self, _: S, totals: &mut Totals, out: &mut [f32], y: f32, weight: f32) -> f32 {
        softmax_gradient(totals, out, y, weight)
    }

    #[inline(always)]
    fn losses_and_gradients<S: Simd>(
        self,
        simd: S,
        totals: &mut Totals,
        out: &mut [f32],
        labels: &[f32],
        weights: &[f32],
    ) {
        for ((out, &y), &weight) in out.iter_mut().zip(labels).zip(weights) {
            count_one(simd, self, totals, std::slice::from_mut(out), y, weight);
        }
    }

    fn with_pointwise<V: PointwiseVisitor>(self, _: V) -> Option<V::Output> {
        None
    }
}

/// Counts a tuple and replaces its decisions by minus the derivatives of its weighted loss; returns the loss without
/// the weight. A tuple is correct if its class has a greater decision than all others: as with two classes,
/// a tie is wrong.
#[inline(always)]
pub(crate) fn softmax_gradient(totals: &mut Totals, out: &mut [f32], y: f32, weight: f32) -> f32 {
    let class = y as usize;
    let own = out[class];
    let mut greatest = f32::NEG_INFINITY;
    let mut reached = 0;
    for &z in &*out {
        greatest = if z > greatest { z } else { greatest };
        reached += u32::from(z >= own);
    }
    let mut sum = 0.0;
    for z in &mut *out {
        *z = exp(*z - greatest);
        sum += *z;
    }
    let share = weight / sum;
    for p in &mut *out {
        *p *= -share;
    }
    out[class] += weight;
    totals.correct += u64::from(reached == 1);
    ln(sum) - (own - greatest)
}
