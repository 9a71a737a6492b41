//! Huber's robust regression: half of the squared error up to a threshold δ, and beyond it a line, |y - z| δ - δ²/2, y
//! any number. The threshold is a multiple ε of the scale σ of the residuals, which is found along with the model: σ²
//! is the mean of min((y - z)², δ²), as in Huber's Proposal 2 (Robust Statistics, 1981, ch. 7), and in scikit-learn's
//! `HuberRegressor`, whose joint minimum it is.

use simd::Simd;

use super::definition::{LinearModel, LossNumber, Model, Task};
use super::objective::Pointwise;
use crate::range::Range;
use crate::totals::Totals;

/// Squared near the target, a line away from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Huber {
    /// above 0
    threshold: f32,
}

impl Pointwise for Huber {
    #[inline(always)]
    fn negative_gradient<S: Simd>(self, _: S, m: f32, y: f32) -> f32 {
        let short = y - m;
        // not f32::min and f32::max, which would hide a NaN
        let short = if short > self.threshold { self.threshold } else { short };
        if short < -self.threshold { -self.threshold } else { short }
    }

    #[inline(always)]
    fn loss(self, m: f32, y: f32) -> f32 {
        let error = (y - m).abs();
        let near = if error > self.threshold { self.threshold } else { error };
        near * (error - 0.5 * near)
    }

    #[inline(always)]
    fn count(self, totals: &mut Totals, margins: &[f32], labels: &[f32], weights: &[f32]) {
        totals.count_targets(margins, labels);
        let threshold = f64::from(self.threshold);
        for ((m, y), weight) in margins.iter().zip(labels).zip(weights) {
            totals.cut_residuals += f64::from(*weight) * f64::from(y - m).abs().min(threshold).powi(2);
        }
    }
}

impl Model for Huber {
    const NAME: &'static str = "huber";
    const ALIASES: &'static [&'static str] = &["huber_regression"];
    const DESCRIPTION: &'static str = "a Huber regression";
    const TASK: Task = Task::Regression;
    const HAS_PROBABILITIES: bool = false;
    const CURVATURE: f64 = 1.0;
    const LOSS_NUMBER: Option<LossNumber> =
        Some(LossNumber { name: "loss_epsilon", range: Range::above(0.0), default: 1.35 });
    const FOLLOWS_RESIDUALS: bool = true;

    fn exact_loss(decisions: &[f32], y: f64, number: f64) -> f64 {
        let error = (y - f64::from(decisions[0])).abs();
        if error > number { number * (error - number / 2.0) } else { error * error / 2.0 }
    }
}

impl LinearModel for Huber {
    #[inline(always)]
    fn objective(number: f32) -> Huber {
        Huber { threshold: number }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simd::Portable;

    use super::*;

    proptest! {
        #[test]
        fn gradients_are_minus_the_finite_differences_of_the_losses(
            z in -9.0f32..9.0, y in -9.0f32..9.0, threshold in 0.1f32..5.0,
        ) {
            let (huber, number, h) = (Huber { threshold }, f64::from(threshold), 1.0 / 1024.0);
            let [above, below] = [z + h, z - h].map(|z| Huber::exact_loss(&[z], y.into(), number));
            let slope = (below - above) / f64::from((z + h) - (z - h));
            prop_assert!((f64::from(Pointwise::negative_gradient(huber, Portable, z, y)) - slope).abs() < 2e-3);
            let exact = Huber::exact_loss(&[z], y.into(), number);
            prop_assert!((f64::from(Pointwise::loss(huber, z, y)) - exact).abs() <= 1e-6 * (1.0 + exact));
        }
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        let huber = Huber { threshold: 1.0 };
        assert!(Pointwise::negative_gradient(huber, Portable, f32::NAN, 1.0).is_nan());
        assert!(Pointwise::loss(huber, f32::NAN, 1.0).is_nan());
        assert_eq!(Pointwise::negative_gradient(huber, Portable, f32::INFINITY, 1.0), -1.0);
    }
}
