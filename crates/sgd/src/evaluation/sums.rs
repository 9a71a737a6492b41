//! What an evaluation counts, here or in another process, which sends it.
//!
//! Guarantees: counts are those of one evaluation of all tuples, and sums are added in f64, so that they differ from
//! its own by rounding only. Sums travel as their bits: JSON knows no infinities.

use bytemuck::{Pod, Zeroable};
use loss::Output;
use loss::variance_sum::VarianceSum;
use serde::{Deserialize, Serialize};

use super::Confusion;
use crate::counts;

/// What was counted of tuples.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EvaluationSums {
    /// of a network
    pub(super) output: Option<Output>,
    /// is a decision or a prediction infinite or NaN?
    pub(super) has_infinite: bool,
    pub(super) sums: Sums,
    pub(super) confusion: Confusion,
}

/// Sums over tuples.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable, Serialize, Deserialize)]
#[serde(from = "[u64; 14]", into = "[u64; 14]")]
#[repr(C)]
pub(super) struct Sums {
    pub(super) loss: f64,
    /// of the tuples, each of which counts 1 if it has none
    pub(super) weight: f64,
    /// of more than two classes, each with its own output
    pub(super) log_loss: f64,
    /// of the absolute errors of a regression
    pub(super) absolute: f64,
    pub(super) squares: f64,
    /// of weighted y ln y and y, with a logarithmic link
    pub(super) target_logs: f64,
    pub(super) target_sum: f64,
    pub(super) targets: VarianceSum,
    pub(super) correct: u64,
    pub(super) tuples: u64,
    /// targets that are at most what is predicted
    pub(super) below: u64,
}

impl From<[u64; 14]> for Sums {
    fn from(bits: [u64; 14]) -> Sums {
        bytemuck::cast(bits)
    }
}

impl From<Sums> for [u64; 14] {
    fn from(sums: Sums) -> [u64; 14] {
        bytemuck::cast(sums)
    }
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.loss += other.loss;
        self.weight += other.weight;
        self.log_loss += other.log_loss;
        self.absolute += other.absolute;
        self.squares += other.squares;
        self.target_logs += other.target_logs;
        self.target_sum += other.target_sum;
        self.targets.merge(&other.targets);
        self.correct = self.correct.saturating_add(other.correct);
        self.tuples = self.tuples.saturating_add(other.tuples);
        self.below = self.below.saturating_add(other.below);
    }
}

impl EvaluationSums {
    /// Are no more tuples counted than there are, and no more than there can be?
    fn is_sound(&self) -> bool {
        let Sums { correct, tuples, below, .. } = self.sums;
        tuples <= counts::MAX_ROWS
            && correct.max(below) <= tuples
            && counts::fit(&self.confusion.cells, tuples)
            && counts::fit(self.confusion.classes.as_flattened(), 3 * tuples)
    }

    /// Adds what another process has counted with the same model. False if it was another model, or if it cannot have
    /// counted that: then nothing is added.
    pub(super) fn add(&mut self, other: &EvaluationSums) -> bool {
        if !other.is_sound() || !self.confusion.unite(&other.confusion) {
            return false;
        }
        self.sums.add(&other.sums);
        self.has_infinite |= other.has_infinite;
        self.output = self.output.or(other.output);
        true
    }
}
