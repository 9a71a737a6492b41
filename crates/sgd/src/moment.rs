//! Mean and squared deviations of numbers that come in parts.
//!
//! Guarantees: no cancellation, whatever the mean is: parts are merged by the formulas of Chan, Golub and LeVeque
//! (1983), single numbers are added by those of Welford (1962).

use serde::{Deserialize, Serialize};

/// Weight, mean, and sum of squared deviations from the mean of the numbers so far.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Moment {
    pub(crate) weight: f64,
    pub(crate) mean: f64,
    pub(crate) squares: f64,
}

impl Moment {
    /// Adds a number of this weight, which is above 0.
    #[inline]
    pub(crate) fn add(&mut self, number: f64, weight: f64) {
        self.weight += weight;
        let difference = number - self.mean;
        self.mean += difference * (weight / self.weight);
        self.squares += weight * difference * (number - self.mean);
    }

    /// Adds the numbers of another part.
    pub(crate) fn merge(&mut self, other: Moment) {
        if other.weight > 0.0 {
            let before = self.weight;
            self.weight += other.weight;
            let own = (&mut self.mean, &mut self.squares);
            merge(own, (other.mean, other.squares), before, other.weight / self.weight);
        }
    }
}

/// Adds mean and squares of another part to those of numbers that weigh `before`; `share` is what the part weighs of
/// both together.
#[inline(always)]
pub(crate) fn merge((mean, squares): (&mut f64, &mut f64), other: (f64, f64), before: f64, share: f64) {
    let difference = other.0 - *mean;
    *mean += difference * share;
    *squares += other.1 + difference * difference * before * share;
}
