//! Linear support vector machine: the hinge loss max(0, 1 - m) of the margin m = y z.

use simd::{Chunk, Simd};

use super::definition::{Defaults, LinearModel, Model, Task};
use super::objective::MarginLoss;

/// max(0, 1 - m). At a margin of exactly 1 the derivative is 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Svm;

impl MarginLoss for Svm {
    const UNITS: f32 = 1.0;

    #[inline(always)]
    fn negative_gradient<S: Simd>(self, simd: S, m: f32) -> f32 {
        simd.one_if_less(m, 1.0)
    }

    #[inline(always)]
    fn negative_gradients<S: Simd>(self, _: S, margins: Chunk) -> Chunk {
        margins.map(|m| if m >= 1.0 { 0.0 } else { 1.0 })
    }

    #[inline(always)]
    fn loss(self, m: f32) -> f32 {
        let short = 1.0 - m;
        // not f32::max, which would hide a NaN
        if short < 0.0 { 0.0 } else { short }
    }
}

impl Model for Svm {
    const NAME: &'static str = "svm";
    const ALIASES: &'static [&'static str] = &["support_vector_machine"];
    const DESCRIPTION: &'static str = "an SVM";
    const TASK: Task = Task::Binary;
    const HAS_PROBABILITIES: bool = false;
    const CURVATURE: f64 = 1.0;
    const HAS_CORNERS: bool = true;

    fn exact_loss(decisions: &[f32], y: f64, _: f64) -> f64 {
        let margin = y * f64::from(decisions[0]);
        if margin >= 1.0 { 0.0 } else { 1.0 - margin }
    }

    /// At a decision of 1 or -1, whichever class is rarer has the loss 2.
    fn constant_loss(shares: &[f64]) -> Option<f64> {
        Some(2.0 * shares.iter().copied().fold(1.0, f64::min))
    }

    fn defaults() -> Defaults {
        Defaults { automatic_rate: 0.1, ..Defaults::LINEAR }
    }
}

impl LinearModel for Svm {
    #[inline(always)]
    fn objective(_: f32) -> Svm {
        Svm
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simd::Portable;

    use super::*;

    fn negative_gradient(m: f32) -> f32 {
        MarginLoss::negative_gradient(Svm, Portable, m)
    }

    fn loss(m: f32) -> f32 {
        MarginLoss::loss(Svm, m)
    }

    #[test]
    fn the_hinge_has_no_derivative_at_a_margin_of_exactly_1() {
        let below = f32::from_bits(1f32.to_bits() - 1);
        assert_eq!([negative_gradient(1.0), loss(1.0)], [0.0, 0.0]);
        assert_eq!([negative_gradient(below), loss(below)], [1.0, 1.0 - below]);
        assert_eq!([negative_gradient(-3.0), loss(-3.0)], [1.0, 4.0]);
    }

    #[test]
    fn the_ends_of_f32_are_saturated_and_what_is_not_a_number_stays_so() {
        for (m, along, lost) in [(1e30, 0.0, 0.0), (f32::INFINITY, 0.0, 0.0), (-1e30, 1.0, 1e30)] {
            assert_eq!((negative_gradient(m), loss(m)), (along, lost));
        }
        assert!(loss(f32::NAN).is_nan());
    }

    proptest! {
        #[test]
        fn gradients_are_minus_the_finite_differences_of_the_losses(m in -30.0f64..30.0) {
            let h = 1e-5;
            let hinge = |m: f64| (1.0 - m).max(0.0);
            if (m - 1.0).abs() > 1e-3 {
                prop_assert!((f64::from(negative_gradient(m as f32)) - (hinge(m - h) - hinge(m + h)) / (2.0 * h)).abs() < 1e-6);
            }
        }
    }
}
