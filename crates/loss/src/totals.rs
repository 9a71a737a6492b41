//! What the tuples of an epoch add up to.

use bytemuck::{Pod, Zeroable};

use crate::variance_sum::VarianceSum;

/// What the tuples of an epoch add up to, each measured just before its own step.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Totals {
    /// The sum of the losses times their weights, without the penalty.
    pub loss: f64,
    /// The sum of the weights.
    pub weight: f64,
    /// The sum of the squared errors, if the loss is that.
    pub residuals: f64,
    /// The sum of the squared errors times their weights, each cut at the square of the loss's threshold, if it has one
    /// that follows them.
    pub cut_residuals: f64,
    /// The targets, if the loss is the squared error.
    pub targets: VarianceSum,
    /// Tuples with a margin above 0.
    pub correct: u64,
    /// Tuples in all.
    pub tuples: u64,
}

impl Totals {
    /// Counts tuples whose decisions are predictions of these targets.
    #[inline(always)]
    pub(crate) fn count_targets(&mut self, decisions: &[f32], targets: &[f32]) {
        for (z, &y) in decisions.iter().zip(targets) {
            let error = f64::from(y - z);
            self.residuals += error * error;
            self.targets.add(y.into());
        }
    }

    /// Adds those of other tuples.
    pub fn add(&mut self, other: &Totals) {
        self.loss += other.loss;
        self.weight += other.weight;
        self.residuals += other.residuals;
        self.cut_residuals += other.cut_residuals;
        self.targets.merge(&other.targets);
        self.correct = self.correct.saturating_add(other.correct);
        self.tuples = self.tuples.saturating_add(other.tuples);
    }
}
