//! What a linear model minimises, as the engines need it.
//!
//! Guarantees: a loss of the margin sees a tuple only through its margin m = y z, which is what makes training
//! symmetric under swapping the classes; a NaN margin gives a NaN loss, so that a diverged model cannot hide.

use simd::{Chunk, Simd};
use tuples::LANES;

use crate::totals::Totals;

/// A loss that is a function of the margin alone, in f32. Margins are in units of 1 / [`UNITS`](MarginLoss::UNITS).
pub(crate) trait MarginLoss: Copy {
    /// A power of two, so that changing units changes no bit.
    const UNITS: f32;

    /// Minus the derivative of the loss by the margin: how far to step along y x for a learning rate of 1.
    fn negative_gradient<S: Simd>(self, simd: S, m: f32) -> f32;

    /// The same of sixteen margins at once, which may differ in its last digits.
    #[inline(always)]
    fn negative_gradients<S: Simd>(self, simd: S, margins: Chunk) -> Chunk {
        margins.map(|m| self.negative_gradient(simd, m))
    }

    /// The loss. Plain arithmetic without table and branches, so that the compiler may compute many at once.
    fn loss(self, m: f32) -> f32;

    /// The loss where only one is asked for, which may differ in its last digits.
    #[inline(always)]
    fn single_loss(self, m: f32) -> f32 {
        self.loss(m)
    }
}

/// A loss of one decision z and the label y: a function of m = f z and y, where f is a factor that depends on y. Where
/// nothing else is said it is a regression, whose m is z itself.
pub trait Pointwise: Copy {
    /// Whether loss and counts look at the label.
    const NEEDS_LABELS: bool = true;

    /// f.
    #[inline(always)]
    fn factor(self, _y: f32) -> f32 {
        1.0
    }

    /// The derivative of the margin by the decision: f without its units.
    #[inline(always)]
    fn direction(self, _y: f32) -> f32 {
        1.0
    }

    /// Minus the derivative of the loss by the margin.
    fn negative_gradient<S: Simd>(self, simd: S, m: f32, y: f32) -> f32;

    /// The same of sixteen margins of one label at once, which may differ in its last digits.
    #[inline(always)]
    fn negative_gradients<S: Simd>(self, simd: S, margins: Chunk, y: f32) -> Chunk {
        margins.map(|m| self.negative_gradient(simd, m, y))
    }

    /// How much the loss of this tuple bends along a step, in units of the model's
    /// [`CURVATURE`](super::definition::Model::CURVATURE): other than 1 where there is no bound for all tuples.
    #[inline(always)]
    fn bend(self, _m: f32, _y: f32) -> f32 {
        1.0
    }

    /// The loss.
    fn loss(self, m: f32, y: f32) -> f32;

    /// The losses of many, in a loop of their own, which the compiler makes one of whole registers.
    #[inline(always)]
    fn losses(self, margins: &[f32], labels: &[f32], out: &mut [f32]) {
        for ((lost, &m), &y) in out.iter_mut().zip(margins).zip(labels) {
            *lost = self.loss(m, y);
        }
    }

    /// The loss where only one is asked for, which may differ in its last digits.
    #[inline(always)]
    fn single_loss(self, m: f32, y: f32) -> f32 {
        self.loss(m, y)
    }

    /// Counts tuples with these margins, labels and weights into what is not the loss.
    #[inline(always)]
    fn count(self, totals: &mut Totals, margins: &[f32], labels: &[f32], _weights: &[f32]) {
        totals.count_targets(margins, labels);
    }
}

/// What a linear model minimises, with any number of outputs.
pub trait Objective: Copy {
    /// Whether it is [`Pointwise`].
    const POINTWISE: bool;

    /// How much the loss of a tuple with these decisions bends, in units of the model's curvature.
    #[inline(always)]
    fn bend(self, _decisions: &[f32], _y: f32) -> f32 {
        1.0
    }

    /// Counts a tuple with these decisions, without its loss, and replaces them by minus the derivatives of its
    /// weighted loss by each. Returns the loss without the weight.
    fn loss_and_gradient<S: Simd>(self, simd: S, totals: &mut Totals, out: &mut [f32], y: f32, weight: f32) -> f32;

    /// Counts tuples with one decision each, and replaces the decisions as
    /// [`loss_and_gradient`](Objective::loss_and_gradient) does, to the same bits.
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
}

/// What is done with a pointwise objective, whichever it is.
pub trait PointwiseVisitor {
    /// The outcome.
    type Output;

    /// Does it.
    fn visit<L: Pointwise>(self, loss: L) -> Self::Output;
}

/// What is done with an objective, whichever it is.
pub trait ObjectiveVisitor {
    /// The outcome.
    type Output;

    /// Does it.
    fn visit<O: Objective>(self, objective: O) -> Self::Output;
}

/// Counts a tuple: its decisions become minus the derivatives of its weighted loss.
#[inline(always)]
pub fn count_one<S: Simd, O: Objective>(
    simd: S,
    objective: O,
    totals: &mut Totals,
    out: &mut [f32],
    y: f32,
    weight: f32,
) {
    let loss = objective.loss_and_gradient(simd, totals, out, y, weight);
    totals.loss += f64::from(weight) * f64::from(loss);
    totals.weight += f64::from(weight);
    totals.tuples += 1;
}

impl<L: Pointwise> Objective for L {
    const POINTWISE: bool = true;

    #[inline(always)]
    fn bend(self, decisions: &[f32], y: f32) -> f32 {
        Pointwise::bend(self, self.factor(y) * decisions[0], y)
    }

    #[inline(always)]
    fn loss_and_gradient<S: Simd>(self, simd: S, totals: &mut Totals, out: &mut [f32], y: f32, weight: f32) -> f32 {
        let m = self.factor(y) * out[0];
        self.count(totals, &[m], &[y], &[weight]);
        out[0] = weight * (self.direction(y) * self.negative_gradient(simd, m, y));
        self.single_loss(m, y)
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
        for ((out, labels), weights) in out.chunks_mut(LANES).zip(labels.chunks(LANES)).zip(weights.chunks(LANES)) {
            let count = out.len();
            let (mut margins, mut of_labels, mut losses) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            of_labels[..count].copy_from_slice(labels);
            margins[..count].copy_from_slice(out);
            for lane in 0..LANES {
                margins[lane] *= self.factor(of_labels[lane]);
            }
            for ((gradient, (&m, &y)), &weight) in out.iter_mut().zip(margins.iter().zip(labels)).zip(weights) {
                *gradient = weight * (self.direction(y) * self.negative_gradient(simd, m, y));
            }
            for lane in 0..LANES {
                losses[lane] = self.loss(margins[lane], of_labels[lane]);
            }
            for (&loss, &weight) in losses.iter().zip(weights) {
                totals.loss += f64::from(weight) * f64::from(loss);
                totals.weight += f64::from(weight);
            }
            self.count(totals, &margins[..count], labels, weights);
            totals.tuples += count as u64;
        }
    }
}

impl<L: MarginLoss> Pointwise for L {
    const NEEDS_LABELS: bool = false;

    #[inline(always)]
    fn factor(self, y: f32) -> f32 {
        y * L::UNITS
    }

    #[inline(always)]
    fn direction(self, y: f32) -> f32 {
        y
    }

    #[inline(always)]
    fn negative_gradient<S: Simd>(self, simd: S, m: f32, _: f32) -> f32 {
        MarginLoss::negative_gradient(self, simd, m)
    }

    #[inline(always)]
    fn negative_gradients<S: Simd>(self, simd: S, margins: Chunk, _: f32) -> Chunk {
        MarginLoss::negative_gradients(self, simd, margins)
    }

    #[inline(always)]
    fn loss(self, m: f32, _: f32) -> f32 {
        MarginLoss::loss(self, m)
    }

    #[inline(always)]
    fn single_loss(self, m: f32, _: f32) -> f32 {
        MarginLoss::single_loss(self, m)
    }

    #[inline(always)]
    fn count(self, totals: &mut Totals, margins: &[f32], _: &[f32], _: &[f32]) {
        totals.correct += u64::from(margins.iter().map(|&m| u32::from(m > 0.0)).sum::<u32>());
    }
}
