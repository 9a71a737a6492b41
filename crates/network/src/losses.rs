//! From the numbers of the last layer to the loss and its derivatives.

use loss::Output;
use loss::design::units::sigmoid;
use loss::math::{exp, ln};
pub(super) use loss::models::FEW;
use loss::models::{few_softmax_gradients, softmax_gradient};
use loss::totals::Totals;
use simd::{Kernel, Simd};

/// Counts tuples and replaces the numbers of their outputs by minus the derivatives of their weighted losses.
pub(super) struct LossAndGradient<'a> {
    pub(super) output: Output,
    pub(super) outputs: usize,
    pub(super) totals: &'a mut Totals,
    /// a row for each tuple
    pub(super) numbers: &'a mut [f32],
    /// class numbers, or targets
    pub(super) labels: &'a [f32],
    /// None: all are 1
    pub(super) weights: Option<&'a [f32]>,
}

impl Kernel for LossAndGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let LossAndGradient { output, outputs, totals, numbers, labels, weights } = self;
        for (i, (out, &y)) in numbers.chunks_exact_mut(outputs).zip(labels).enumerate() {
            loss_and_gradient(output, totals, out, y, weights.map_or(1.0, |weights| weights[i]));
        }
    }
}

/// The same of one tuple.
#[inline(always)]
pub(super) fn loss_and_gradient(output: Output, totals: &mut Totals, out: &mut [f32], y: f32, weight: f32) {
    let loss = match (output, out) {
        (Output::Identity, out) => squared(totals, &mut out[0], y, weight),
        (Output::Softmax, out) => softmax_gradient(totals, out, y, weight),
        (Output::Sigmoid, [z]) => {
            let of = if y > 0.0 { *z } else { -*z };
            totals.correct += u64::from(of > 0.0);
            binary(z, y > 0.0, weight)
        }
        (Output::Sigmoid, out) => each(totals, out, y as usize, weight),
    };
    count(totals, loss, weight);
}

/// The same of some tuples of a softmax with at most [`FEW`] outputs.
#[inline(always)]
pub(super) fn few_losses_and_gradients<const R: usize>(
    totals: &mut Totals,
    out: [&mut [f32]; R],
    labels: &[f32; R],
    weights: &[f32; R],
) {
    let losses = few_softmax_gradients(totals, out, labels, weights);
    losses.into_iter().zip(weights).for_each(|(loss, weight)| count(totals, loss, *weight));
}

/// Counts a tuple's loss.
#[inline(always)]
fn count(totals: &mut Totals, loss: f32, weight: f32) {
    totals.loss += f64::from(weight) * f64::from(loss);
    totals.weight += f64::from(weight);
    totals.tuples += 1;
}

/// An output for each class. A tuple is correct if that of its class is greater than all others.
#[inline(always)]
fn each(totals: &mut Totals, out: &mut [f32], class: usize, weight: f32) -> f32 {
    let own = out[class];
    totals.correct += u64::from(out.iter().filter(|z| **z >= own).count() == 1);
    out.iter_mut().enumerate().map(|(k, z)| binary(z, k == class, weight)).sum()
}

/// The loss of a prediction, which minus the derivative of the weighted loss replaces.
#[inline(always)]
fn squared(totals: &mut Totals, z: &mut f32, y: f32, weight: f32) -> f32 {
    let error = y - *z;
    totals.residuals += f64::from(error) * f64::from(error);
    totals.targets.add(y.into());
    *z = weight * error;
    0.5 * (error * error)
}

/// The loss of one output; minus its derivative, weighted, takes the place of the number.
#[inline(always)]
fn binary(z: &mut f32, positive: bool, weight: f32) -> f32 {
    let margin = if positive { *z } else { -*z };
    let p = sigmoid(-margin);
    *z = if positive { weight * p } else { -(weight * p) };
    let short = if margin < 0.0 { -margin } else { 0.0 };
    // NaN stays NaN: so does that of the exponential
    short + ln(1.0 + exp(-margin.abs()))
}
