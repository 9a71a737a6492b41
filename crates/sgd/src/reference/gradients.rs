//! From decisions to the derivatives of the loss, and the counts of what the decisions were worth.

use tuples::LANES;

use super::state::TrainerState;
use crate::ModelKind;
use crate::kernels::Simd;
use crate::loss::{Hinge, Logistic, Loss, OfMargin, Pointwise, Squared, Totals, exp, ln};

/// Counts a tuple with these decisions and replaces them by minus the derivatives of its weighted loss by each.
#[inline(always)]
pub(crate) fn judge<S: Simd>(simd: S, head: &mut TrainerState, out: &mut [f32], y: f32, weight: f32) {
    let loss = match head.kind() {
        ModelKind::Logistic => binary(simd, head, Logistic::new(), out, y, weight),
        ModelKind::Svm => binary(simd, head, Hinge, out, y, weight),
        ModelKind::Linear => linear(head, out, y, weight),
        ModelKind::Softmax => softmax(&mut head.totals, out, y, weight),
        ModelKind::Mlp => unreachable!("no linear model"),
    };
    head.totals.loss += f64::from(weight) * f64::from(loss);
    head.totals.weight += f64::from(weight);
    head.totals.tuples += 1;
}

/// The same for the decisions of many tuples with one output, to the same bits.
#[inline(always)]
pub(crate) fn judge_all<S: Simd>(simd: S, head: &mut TrainerState, out: &mut [f32], labels: &[f32], weights: &[f32]) {
    match head.kind() {
        ModelKind::Logistic => all_of(simd, head, OfMargin(Logistic::new()), out, labels, weights),
        ModelKind::Svm => all_of(simd, head, OfMargin(Hinge), out, labels, weights),
        ModelKind::Linear => all_of(simd, head, Squared, out, labels, weights),
        ModelKind::Mlp => unreachable!("no linear model"),
        ModelKind::Softmax => {
            for ((out, &y), &weight) in out.iter_mut().zip(labels).zip(weights) {
                judge(simd, head, std::slice::from_mut(out), y, weight);
            }
        }
    }
}

#[inline(always)]
fn all_of<S: Simd, L: Pointwise>(
    simd: S,
    head: &mut TrainerState,
    loss: L,
    out: &mut [f32],
    labels: &[f32],
    weights: &[f32],
) {
    for ((out, labels), weights) in out.chunks_mut(LANES).zip(labels.chunks(LANES)).zip(weights.chunks(LANES)) {
        let count = out.len();
        let (mut margins, mut of_labels, mut losses) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        of_labels[..count].copy_from_slice(labels);
        margins[..count].copy_from_slice(out);
        for lane in 0..LANES {
            margins[lane] *= loss.factor(of_labels[lane]);
        }
        for ((slope, (&m, &y)), &weight) in out.iter_mut().zip(margins.iter().zip(labels)).zip(weights) {
            *slope = weight * (loss.direction(y) * loss.slope(simd, m, y));
        }
        for lane in 0..LANES {
            losses[lane] = loss.loss(margins[lane], of_labels[lane]);
        }
        for (&loss, &weight) in losses.iter().zip(weights) {
            head.totals.loss += f64::from(weight) * f64::from(loss);
            head.totals.weight += f64::from(weight);
        }
        loss.count(&mut head.totals, &margins[..count], labels);
        head.totals.tuples += count as u64;
    }
}

#[inline(always)]
fn binary<S: Simd, L: Loss>(simd: S, head: &mut TrainerState, loss: L, out: &mut [f32], y: f32, weight: f32) -> f32 {
    let margin = (y * L::UNITS) * out[0];
    head.totals.correct += u64::from(margin > 0.0);
    out[0] = weight * (y * loss.slope(simd, margin));
    loss.single_loss(margin)
}

#[inline(always)]
fn linear(head: &mut TrainerState, out: &mut [f32], y: f32, weight: f32) -> f32 {
    let error = y - out[0];
    head.totals.residuals += f64::from(error) * f64::from(error);
    head.totals.targets.add(y.into());
    out[0] = weight * error;
    0.5 * (error * error)
}

/// Counts a tuple and replaces its decisions by minus the derivatives of its weighted loss; gives the loss without the weight.
/// A tuple is correct if its class has a greater decision than all others: as with two classes, a tie is wrong.
#[inline(always)]
pub(crate) fn softmax(totals: &mut Totals, out: &mut [f32], y: f32, weight: f32) -> f32 {
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
