//! The result of an epoch, or the reason why there is no result.

use serde::{Deserialize, Serialize};

use crate::Hyperparameters;
use crate::totals::Totals;

/// The result of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Counted from 1.
    pub epoch: u32,
    /// The weighted mean over the tuples of the loss just before the step, plus the penalty l2/2 |w|² + l1 |w|₁ of the
    /// model at the end of the epoch. The mean over no tuples is 0.
    pub loss: f64,
    /// The fraction of tuples classified correctly just before the step, 0 of no tuples. A decision of exactly 0, such
    /// as the first one of all, counts as wrong for either class; with softmax so does a tie. Weights do not count.
    /// None for linear.
    pub accuracy: Option<f64>,
    /// 1 - Σ (y - z)² / Σ (y - mean y)² over the tuples of the epoch, each before its own step; for linear only.
    pub r2: Option<f64>,
    /// The learning rate of the epoch; with [`Schedule::Theorem1`](crate::Schedule::Theorem1) that of a full
    /// mini-batch's step in its last buffer, with Newton's method the length of the step that the epoch ends with.
    pub learning_rate: f64,
    /// Tuples learnt from.
    pub tuples: u64,
}

impl EpochReport {
    /// The report of an epoch with these totals, given |w|² and |w|₁ of the model.
    pub fn new(
        hyper: &Hyperparameters,
        epoch: u32,
        learning_rate: f64,
        totals: &Totals,
        (squares, magnitudes): (f64, f64),
    ) -> EpochReport {
        let mean = |sum: f64, over: f64| if over == 0.0 { 0.0 } else { sum / over };
        let tuples = totals.tuples as f64;
        EpochReport {
            epoch,
            loss: mean(totals.loss, totals.weight) + hyper.l2 / 2.0 * squares + hyper.l1 * magnitudes,
            accuracy: hyper.kind.is_classifier().then(|| mean(totals.correct as f64, tuples)),
            r2: (!hyper.kind.is_classifier()).then(|| totals.targets.r2(totals.residuals)),
            learning_rate,
            tuples: totals.tuples,
        }
    }
}

/// A parameter or the loss has become infinite or NaN; usually the learning rate is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the model diverged in epoch {epoch}")]
pub struct Diverged {
    /// Counted from 1.
    pub epoch: u32,
}
