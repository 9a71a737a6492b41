//! How far targets lie from their mean, for R².
//!
//! Guarantees: no cancellation unless the first target is an outlier, because all are taken relative to it; targets
//! that are all the same have a spread of exactly 0.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

/// Sums over the targets so far.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct VarianceSum {
    /// of the targets, each of which counts 1 if it has none
    weight: f64,
    /// the first target
    origin: f64,
    /// of the differences from the origin
    sum: f64,
    /// of their squares
    squares: f64,
}

impl VarianceSum {
    #[inline(always)]
    /// Adds one target.
    pub fn add(&mut self, target: f64) {
        self.add_weighted(target, 1.0);
    }

    /// Adds a target that weighs so much.
    #[inline(always)]
    pub fn add_weighted(&mut self, target: f64, weight: f64) {
        if self.weight == 0.0 {
            self.origin = target;
        }
        let difference = target - self.origin;
        self.weight += weight;
        self.sum += weight * difference;
        self.squares += weight * difference * difference;
    }

    /// Adds the targets of another spread.
    pub fn merge(&mut self, other: &VarianceSum) {
        if self.weight == 0.0 {
            *self = *other;
        } else if other.weight > 0.0 {
            let (n, shift) = (other.weight, other.origin - self.origin);
            self.weight += n;
            self.squares += other.squares + shift * (2.0 * other.sum + n * shift);
            self.sum += other.sum + n * shift;
        }
    }

    fn weight_or_one(&self) -> f64 {
        if self.weight > 0.0 { self.weight } else { 1.0 }
    }

    /// Mean and variance; 0 of no targets.
    pub fn moments(&self) -> (f64, f64) {
        let count = self.weight_or_one();
        let mean = self.sum / count;
        (self.origin + mean, (self.squares / count - mean * mean).max(0.0))
    }

    /// 1 - `residuals` / Σ (y - mean y)², where `residuals` is the sum of the squared errors. If all targets are the
    /// same, it is 1 if there is no error, else 0, as scikit-learn has it.
    pub fn r2(&self, residuals: f64) -> f64 {
        let count = self.weight_or_one();
        let total = self.squares - self.sum * (self.sum / count);
        match total > 0.0 {
            true => 1.0 - residuals / total,
            false => f64::from(u8::from(residuals == 0.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_targets(targets: &[f64]) -> VarianceSum {
        let mut spread = VarianceSum::default();
        targets.iter().for_each(|&y| spread.add(y));
        spread
    }

    #[test]
    fn r2_is_what_its_definition_says() {
        // mean 3, squares 4 + 1 + 0 + 9
        let spread = of_targets(&[1.0, 2.0, 3.0, 6.0]);
        assert_eq!([spread.r2(0.0), spread.r2(7.0), spread.r2(28.0)], [1.0, 0.5, -1.0]);
    }

    #[test]
    fn the_same_targets_have_an_r2_of_1_or_0() {
        assert_eq!(
            [of_targets(&[0.1; 1000]).r2(0.0), of_targets(&[0.1; 1000]).r2(1e-9), of_targets(&[]).r2(0.0)],
            [1.0, 0.0, 1.0]
        );
    }

    #[test]
    fn targets_far_from_0_cost_no_precision() {
        assert_eq!(of_targets(&[1e15 + 1.0, 1e15 + 2.0, 1e15 + 3.0, 1e15 + 6.0]).r2(7.0), 0.5);
    }

    #[test]
    fn merged_spreads_are_those_of_all_targets() {
        let mut merged = of_targets(&[1.0, 2.0]);
        merged.merge(&of_targets(&[3.0, 6.0]));
        merged.merge(&of_targets(&[]));
        let mut late = of_targets(&[]);
        late.merge(&merged);
        assert_eq!([merged.r2(7.0), late.r2(7.0)], [0.5, 0.5]);
    }
}
