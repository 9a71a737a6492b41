//! Quantile regression: the pinball loss q (y - z) if y is above z, else (1 - q) (z - y), y any number. Its least mean
//! is at the quantile q of the targets.

use simd::Simd;

use super::definition::{Defaults, LinearModel, LossNumber, Model, TargetUnits, Task};
use super::objective::Pointwise;
use crate::range::Range;

/// The pinball loss of a quantile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantile {
    /// between 0 and 1
    quantile: f32,
}

impl Pointwise for Quantile {
    /// Where the target is met it is 0.
    #[inline(always)]
    fn negative_gradient<S: Simd>(self, _: S, m: f32, y: f32) -> f32 {
        let below = if m < y { self.quantile } else { 0.0 };
        if m > y { self.quantile - 1.0 } else { below }
    }

    #[inline(always)]
    fn loss(self, m: f32, y: f32) -> f32 {
        let short = y - m;
        // not f32::max, which would hide a NaN
        if short < 0.0 { (self.quantile - 1.0) * short } else { self.quantile * short }
    }
}

impl Model for Quantile {
    const NAME: &'static str = "quantile";
    const ALIASES: &'static [&'static str] = &["quantile_regression"];
    const DESCRIPTION: &'static str = "a quantile regression";
    const TASK: Task = Task::Regression;
    const HAS_PROBABILITIES: bool = false;
    const CURVATURE: f64 = 1.0;
    const HAS_CORNERS: bool = true;
    const LOSS_NUMBER: Option<LossNumber> =
        Some(LossNumber { name: "quantile", range: Range::above(0.0).below(1.0), default: 0.5 });
    const TARGET_UNITS: TargetUnits = TargetUnits { loss: 1, number: 0 };

    fn exact_loss(decisions: &[f32], y: f64, number: f64) -> f64 {
        let short = y - f64::from(decisions[0]);
        if short < 0.0 { (number - 1.0) * short } else { number * short }
    }

    fn defaults() -> Defaults {
        // The gradient does not fade: weights of columns that are rarely not 0 need long steps to come to the optimum,
        // and all need short ones in the end, for as many labels below as the quantile says.
        Defaults { automatic_rate: 0.4, automatic_fall: 0.001, ..Defaults::LINEAR }
    }
}

impl LinearModel for Quantile {
    #[inline(always)]
    fn objective(number: f32) -> Quantile {
        Quantile { quantile: number }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simd::Portable;

    use super::*;

    #[test]
    fn the_loss_is_the_pinball_loss_of_scikit_learn() {
        // sklearn.metrics.mean_pinball_loss([y], [z], alpha=q), scikit-learn 1.9.1
        for (y, z, q, expected) in
            [(3.0, 1.0, 0.9, 1.8), (1.0, 3.0, 0.9, 0.2), (2.0, 2.0, 0.3, 0.0), (-1.0, 0.5, 0.25, 1.125)]
        {
            assert!((Quantile::exact_loss(&[z], y, q) - expected).abs() < 1e-12);
            let quantile = Quantile { quantile: q as f32 };
            assert!((f64::from(Pointwise::loss(quantile, z, y as f32)) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn what_is_not_a_number_stays_so_and_a_target_that_is_met_pulls_nowhere() {
        let quantile = Quantile { quantile: 0.75 };
        assert!(Pointwise::loss(quantile, f32::NAN, 1.0).is_nan());
        let gradient = |m: f32| Pointwise::negative_gradient(quantile, Portable, m, 1.0);
        assert_eq!([gradient(1.0), gradient(0.5), gradient(2.0)], [0.0, 0.75, -0.25]);
    }

    proptest! {
        #[test]
        fn the_least_mean_loss_is_at_the_quantile(numbers in proptest::collection::vec(-99i8..99, 1..40), q in 0.05f64..0.95) {
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            let loss = |z: f32| numbers.iter().map(|y| Quantile::exact_loss(&[z], f64::from(*y), q)).sum::<f64>();
            let at = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1;
            let least = loss(f32::from(sorted[at]));
            for z in -100..100 {
                prop_assert!(least <= loss(z as f32) + 1e-9);
            }
        }
    }
}
