//! What a decoder has learned of the rows, and what it counts of them.

use super::transformed::Transformed;
use super::weight::Factors;
use serde::{Deserialize, Serialize};
use sgd::profile::Profile;
use sgd::{Bounds, TargetScale, counts};

/// What tells the rows that a preparation pass has met from others, besides what it has measured of features.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MetRows {
    /// rows of each class
    pub(super) classes: Vec<u64>,
    /// mean and deviation of targets
    pub(super) targets: Option<[f64; 2]>,
    /// of what weights are multiplied by
    #[serde(default)]
    pub(super) weights: u64,
}

impl MetRows {
    /// Are they the same, but for the order in which targets were added up?
    pub fn are(&self, other: &MetRows) -> bool {
        self.classes == other.classes
            && self.weights == other.weights
            && match (self.targets, other.targets) {
                (Some(a), Some(b)) => are_close(&a, &b, &[a[1], a[1]]),
                (a, b) => a.is_none() && b.is_none(),
            }
    }
}

/// What a decoder has learned of the rows, besides what its columns keep.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Learned {
    /// which numbers are taken by their logarithms
    pub(super) transformed: Transformed,
    /// what the targets of a regression are scaled by
    pub(super) target: Option<TargetScale>,
    /// the mean of the targets of a regression, if it was to be found
    pub(super) mean_target: Option<f64>,
    /// the mean of |x|² of the tuples that a preparation pass has met, as they are learned from, if it was to be found
    pub(super) mean_square: Option<f64>,
    /// how many tuples a preparation pass has met, without those that are held out
    pub(super) met: u64,
    /// which part of the rows these are, if they are a sample
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sampled: Option<f64>,
    /// of a sample, what values it leaves possible, until all rows were decoded
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bounds: Option<Bounds>,
    /// what tells the rows that a preparation pass has met from others, if there was one
    pub(super) rows: Option<MetRows>,
    /// what weights are multiplied by; None if they are taken as they are
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) factors: Option<Factors>,
    /// how many rows of the same weight would say as much as those that a preparation pass has met
    pub(super) effective_rows: f64,
    /// dimensions of sparse tuples that a preparation pass has met
    pub(super) observed_dim: usize,
    /// what a preparation pass has met of each feature
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<Profile>,
    /// are classes and categories those of a model whose training is continued?
    pub(super) continued: bool,
}

/// Are numbers the same in these units, but for rounding?
pub(super) fn are_close(a: &[f64], b: &[f64], units: &[f64]) -> bool {
    let close = |((a, b), unit): ((&f64, &f64), &f64)| (a - b).abs() <= 1e-9 * (unit + a.abs());
    a.len() == b.len() && a.iter().zip(b).zip(units).all(close)
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RowCounts {
    /// rows left out since the epoch began
    pub(super) skipped: u64,
    /// of these, those of each group, as far as their groups are known
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) skipped_of: Vec<u64>,
    /// rows that have become tuples since then
    pub(super) decoded: u64,
    /// of these, rows with what is unknown to the model
    pub(super) unseen: u64,
    /// numbers that were cut off since then
    pub(super) clipped: u64,
}

impl RowCounts {
    /// Are these so few that they can be added up, as those of any table are?
    pub(super) fn is_sound(&self) -> bool {
        let RowCounts { skipped, skipped_of, decoded, unseen, clipped } = self;
        // of a row there are several numbers that may be cut off
        let numbers = counts::MAX_ROWS << 8;
        let rows = [skipped, decoded, unseen].into_iter().chain(skipped_of);
        rows.into_iter().all(|count| *count <= counts::MAX_ROWS) && *clipped <= numbers
    }
}
