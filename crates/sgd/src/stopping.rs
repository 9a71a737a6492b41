//! When to stop before the last epoch.

use serde::{Deserialize, Serialize};

/// Stop when the loss has not become better for some epochs, as scikit-learn's `tol` and `n_iter_no_change` have it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stopping {
    /// By how much the loss has to be below the lowest so far, at least, for the epoch to count as better.
    pub tolerance: f64,
    /// Epochs in a row that may fail to be better.
    pub patience: u32,
}

impl Stopping {
    /// The default of the tolerance where the patience is given, as scikit-learn has it.
    pub const TOLERANCE: f64 = 1e-3;

    /// The default of the patience where the tolerance is given, as scikit-learn has it.
    pub const PATIENCE: u32 = 5;
}

/// The losses so far, as far as stopping depends on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    lowest: Option<f64>,
    /// Epochs in a row that were not better.
    stale: u32,
}

impl Losses {
    /// Takes the loss of an epoch; true if it is the lowest so far.
    pub fn add(&mut self, loss: f64, rule: Option<Stopping>) -> bool {
        let lowest = self.lowest.unwrap_or(f64::INFINITY);
        let tolerance = rule.map_or(0.0, |rule| rule.tolerance);
        self.stale = if loss > lowest - tolerance { self.stale.saturating_add(1) } else { 0 };
        let improved = loss < lowest;
        if improved {
            self.lowest = Some(loss);
        }
        improved
    }

    /// Whether the rule says to stop.
    pub fn stop(&self, rule: Stopping) -> bool {
        self.stale >= rule.patience
    }

    /// Lets a training go on that was stopped: patience begins again.
    pub fn forgive(&mut self) {
        self.stale = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The epoch after which training stops.
    fn stops(losses: &[f64], tolerance: f64, patience: u32) -> Option<usize> {
        let rule = Stopping { tolerance, patience };
        let mut seen = Losses::default();
        losses.iter().position(|loss| {
            seen.add(*loss, Some(rule));
            seen.stop(rule)
        })
    }

    #[test]
    fn training_stops_after_so_many_epochs_that_are_not_better_by_the_tolerance() {
        assert_eq!(stops(&[1.0, 0.5, 0.45, 0.44, 0.43], 0.1, 2), Some(3));
        assert_eq!(stops(&[1.0, 0.5, 0.45, 0.3, 0.29, 0.28], 0.1, 2), Some(5));
        assert_eq!(stops(&[1.0, 0.9, 0.8, 0.7], 0.1, 1), None);
        // equal to the lowest is no worse with a tolerance of 0, as well
        assert_eq!(stops(&[0.5, 0.5, 0.5], 0.0, 1), None);
        assert_eq!(stops(&[0.5, 0.6], 0.0, 1), Some(1));
    }

    #[test]
    fn the_lowest_loss_is_that_of_the_best_epoch() {
        let mut losses = Losses::default();
        let lowest: Vec<bool> = [0.5, 0.6, 0.5, 0.4].iter().map(|loss| losses.add(*loss, None)).collect();
        assert_eq!(lowest, [true, false, false, true]);
    }
}
