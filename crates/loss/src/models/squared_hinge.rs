//! Linear support vector machine with the squared hinge max(0, 1 - m)² of the margin m = y z, which scikit-learn's
//! LinearSVC has unless another loss is said: it has a derivative everywhere, and weighs rows far on the wrong side
//! more.

use simd::Simd;

use super::definition::{Defaults, LinearModel, Model, Task};
use super::objective::MarginLoss;

/// max(0, 1 - m)².
#[derive(Debug, Clone, Copy)]
pub(crate) struct SquaredHinge;

/// max(0, 1 - m), and what is not a number stays so.
#[inline(always)]
fn hinge(m: f32) -> f32 {
    let short = 1.0 - m;
    // not f32::max, which would hide a NaN
    if short < 0.0 { 0.0 } else { short }
}

impl MarginLoss for SquaredHinge {
    const UNITS: f32 = 1.0;

    #[inline(always)]
    fn negative_gradient<S: Simd>(self, _: S, m: f32) -> f32 {
        2.0 * hinge(m)
    }

    #[inline(always)]
    fn loss(self, m: f32) -> f32 {
        hinge(m) * hinge(m)
    }
}

impl Model for SquaredHinge {
    const NAME: &'static str = "squared_hinge";
    const ALIASES: &'static [&'static str] = &["l2_support_vector_machine"];
    const DESCRIPTION: &'static str = "an SVM";
    const TASK: Task = Task::Binary;
    const HAS_PROBABILITIES: bool = false;
    const CURVATURE: f64 = 2.0;

    fn exact_loss(decisions: &[f32], y: f64, _: f64) -> f64 {
        let margin = y * f64::from(decisions[0]);
        if margin >= 1.0 { 0.0 } else { (1.0 - margin).powi(2) }
    }

    /// At the decision p - q of two shares: p (2 q)² + q (2 p)².
    fn constant_loss(shares: &[f64]) -> Option<f64> {
        Some(4.0 * shares.iter().product::<f64>())
    }

    fn defaults() -> Defaults {
        Defaults { automatic_rate: 0.5, ..Defaults::LINEAR }
    }
}

impl LinearModel for SquaredHinge {
    #[inline(always)]
    fn objective(_: f32) -> SquaredHinge {
        SquaredHinge
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simd::Portable;

    use super::*;

    fn negative_gradient(m: f32) -> f32 {
        MarginLoss::negative_gradient(SquaredHinge, Portable, m)
    }

    fn loss(m: f32) -> f32 {
        MarginLoss::loss(SquaredHinge, m)
    }

    #[test]
    fn the_loss_and_its_derivative_are_those_of_scikit_learn() {
        // sklearn.linear_model._sgd_fast.SquaredHinge() of scikit-learn 1.9.1: py_loss(m, 1), -py_dloss(m, 1)
        for (m, expected, slope) in
            [(-3.0, 16.0, 8.0), (0.0, 1.0, 2.0), (0.25, 0.5625, 1.5), (1.0, 0.0, 0.0), (2.5, 0.0, 0.0)]
        {
            assert_eq!((loss(m), negative_gradient(m)), (expected, slope), "{m}");
            assert_eq!(SquaredHinge::exact_loss(&[m], 1.0, 0.0), f64::from(expected));
            assert_eq!(SquaredHinge::exact_loss(&[-m], -1.0, 0.0), f64::from(expected));
        }
        assert!(loss(f32::NAN).is_nan() && negative_gradient(f32::NAN).is_nan());
        assert_eq!((loss(f32::INFINITY), negative_gradient(f32::INFINITY)), (0.0, 0.0));
    }

    #[test]
    fn no_constant_has_less_than_the_constant_loss() {
        for p in [0.1, 0.3, 0.5, 0.95] {
            let least = SquaredHinge::constant_loss(&[1.0 - p, p]).unwrap();
            let at = |z: f64| p * (1.0 - z).max(0.0).powi(2) + (1.0 - p) * (1.0 + z).max(0.0).powi(2);
            let found = (-100..=100).map(|i| at(f64::from(i) / 100.0)).fold(f64::INFINITY, f64::min);
            assert!((found - least).abs() < 1e-4 && found >= least - 1e-12, "{p}: {found} {least}");
        }
    }

    proptest! {
        #[test]
        fn gradients_are_minus_the_finite_differences_of_the_losses(m in -30.0f64..30.0) {
            let h = 1e-5;
            let squared = |m: f64| (1.0 - m).max(0.0).powi(2);
            let slope = (squared(m - h) - squared(m + h)) / (2.0 * h);
            prop_assert!((f64::from(negative_gradient(m as f32)) - slope).abs() < 1e-4);
        }
    }
}
