//! From decisions to the derivatives of the loss, and the counts of what the decisions were worth.

use super::head::Head;
use crate::ModelKind;
use crate::kernels::Simd;
use crate::loss::{Hinge, Logistic, Loss, exp, ln};

/// Counts a tuple with these decisions and replaces them by minus the derivatives of its weighted loss by each.
#[inline(always)]
pub(crate) fn judge<S: Simd>(simd: S, head: &mut Head, out: &mut [f32], y: f32, weight: f32) {
    let loss = match head.kind() {
        ModelKind::Logistic => binary(simd, head, Logistic::new(), out, y, weight),
        ModelKind::Svm => binary(simd, head, Hinge, out, y, weight),
        ModelKind::Linear => linear(head, out, y, weight),
        ModelKind::Softmax => softmax(head, out, y, weight),
    };
    head.totals.loss += f64::from(weight) * f64::from(loss);
    head.totals.weight += f64::from(weight);
    head.totals.tuples += 1;
}

#[inline(always)]
fn binary<S: Simd, L: Loss>(simd: S, head: &mut Head, loss: L, out: &mut [f32], y: f32, weight: f32) -> f32 {
    let margin = (y * L::UNITS) * out[0];
    head.totals.correct += u64::from(margin > 0.0);
    out[0] = weight * (y * loss.slope(simd, margin));
    loss.loss(margin)
}

#[inline(always)]
fn linear(head: &mut Head, out: &mut [f32], y: f32, weight: f32) -> f32 {
    let error = y - out[0];
    head.totals.residuals += f64::from(error) * f64::from(error);
    head.totals.targets.add(y.into());
    out[0] = weight * error;
    0.5 * (error * error)
}

/// A tuple is correct if its class has a greater decision than all others: as with two classes, a tie is wrong.
#[inline(always)]
fn softmax(head: &mut Head, out: &mut [f32], y: f32, weight: f32) -> f32 {
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
    head.totals.correct += u64::from(reached == 1);
    ln(sum) - (own - greatest)
}
