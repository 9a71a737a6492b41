//! Multinomial logistic regression: the cross entropy -ln p_y with p_k = e^(z_k) / Σ e^(z_j), y = 0, 1, ...

use simd::Simd;

use super::definition::{LinearModel, Model, Task};
use super::objective::Objective;
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

    fn exact_loss(decisions: &[f32], y: f64, _: f64) -> f64 {
        cross_entropy(decisions, y as usize)
    }

    fn constant_loss(shares: &[f64]) -> Option<f64> {
        Some(entropy(shares))
    }
}

impl LinearModel for Softmax {
    #[inline(always)]
    fn objective(_: f32) -> Softmax {
        Softmax
    }
}

impl Objective for Softmax {
    const POINTWISE: bool = false;

    #[inline(always)]
    fn loss_and_gradient<S: Simd>(self, _: S, totals: &mut Totals, out: &mut [f32], y: f32, weight: f32) -> f32 {
        softmax_gradient(totals, out, y, weight)
    }
}

/// Counts a tuple and replaces its decisions by minus the derivatives of its weighted loss; returns the loss without
/// the weight. A tuple is correct if its class has a greater decision than all others: as with two classes,
/// a tie is wrong.
#[inline(always)]
pub fn softmax_gradient(totals: &mut Totals, out: &mut [f32], y: f32, weight: f32) -> f32 {
    let (greatest, of_class) = compare(totals, out, y);
    let mut sum = 0.0;
    for z in &mut *out {
        *z = exp(*z - greatest);
        sum += *z;
    }
    finish_gradient(out, sum, y, weight);
    ln(sum) - of_class
}

/// Decisions of a tuple whose exponentials are computed together with those of others.
pub const FEW: usize = 4;

/// [`softmax_gradient`] of some tuples with at most [`FEW`] decisions each, to the same bits: exponentials and
/// logarithms of all are computed at once, which takes barely longer than those of one.
#[inline(always)]
pub fn few_softmax_gradients<const R: usize>(
    totals: &mut Totals,
    out: [&mut [f32]; R],
    labels: &[f32; R],
    weights: &[f32; R],
) -> [f32; R] {
    let (mut powers, mut of_class, mut sums) = ([[0.0; FEW]; R], [0.0; R], [0.0; R]);
    for r in 0..R {
        let greatest;
        (greatest, of_class[r]) = compare(totals, out[r], labels[r]);
        powers[r].iter_mut().zip(&*out[r]).for_each(|(power, z)| *power = z - greatest);
    }
    powers.as_flattened_mut().iter_mut().for_each(|power| *power = exp(*power));
    for r in 0..R {
        out[r].iter_mut().zip(powers[r]).for_each(|(z, power)| {
            *z = power;
            sums[r] += power;
        });
        finish_gradient(out[r], sums[r], labels[r], weights[r]);
    }
    let mut losses = sums.map(ln);
    losses.iter_mut().zip(of_class).for_each(|(loss, of_class)| *loss -= of_class);
    losses
}

/// The greatest decision, and by how much that of the class is less; counts the tuple if it is correct.
#[inline(always)]
fn compare(totals: &mut Totals, out: &[f32], y: f32) -> (f32, f32) {
    let own = out[y as usize];
    let mut greatest = f32::NEG_INFINITY;
    let mut reached = 0;
    for &z in out {
        greatest = if z > greatest { z } else { greatest };
        reached += u32::from(z >= own);
    }
    totals.correct += u64::from(reached == 1);
    (greatest, own - greatest)
}

/// From powers, and their sum, to minus the derivatives of the weighted loss.
#[inline(always)]
fn finish_gradient(out: &mut [f32], sum: f32, y: f32, weight: f32) {
    let share = weight / sum;
    for p in &mut *out {
        *p *= -share;
    }
    out[y as usize] += weight;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tuples_with_few_decisions_have_the_same_bits_together_as_one_by_one(
            outputs in 2..=FEW,
            decisions in prop::array::uniform16(prop_oneof![-200.0f32..200.0, -2.0f32..2.0, Just(f32::NAN)]),
            labels in prop::array::uniform4(0..FEW),
            weights in prop::array::uniform4(0.0f32..3.0),
        ) {
            let labels = labels.map(|label| (label % outputs) as f32);
            let bits = |rows: &[f32; 16], losses: [f32; 4], totals: &Totals| {
                (rows.map(f32::to_bits), losses.map(f32::to_bits), totals.correct)
            };
            let (mut one_by_one, mut totals) = (decisions, Totals::default());
            let mut losses = [0.0; 4];
            for (r, row) in one_by_one.chunks_mut(FEW).enumerate() {
                losses[r] = softmax_gradient(&mut totals, &mut row[..outputs], labels[r], weights[r]);
            }
            let expected = bits(&one_by_one, losses, &totals);
            let (mut together, mut totals) = (decisions, Totals::default());
            let [a, b, c, d] = together.as_chunks_mut::<FEW>().0 else { unreachable!("four rows") };
            let rows = [a, b, c, d].map(|row| &mut row[..outputs]);
            let losses = few_softmax_gradients(&mut totals, rows, &labels, &weights);
            prop_assert_eq!(bits(&together, losses, &totals), expected);
        }
    }
}
