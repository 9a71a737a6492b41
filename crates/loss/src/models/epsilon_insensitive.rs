//! Support vector regression: |y - z| beyond a tube, max(0, |y - z| - ε), y any number.

use simd::Simd;

use super::definition::{Defaults, LinearModel, LossNumber, Model, TargetUnits, Task};
use super::objective::Pointwise;
use crate::range::Range;

/// max(0, |y - z| - ε).
#[derive(Debug, Clone, Copy)]
pub(crate) struct EpsilonInsensitive {
    /// at least 0
    epsilon: f32,
}

impl Pointwise for EpsilonInsensitive {
    /// At the border of the tube it is 0.
    #[inline(always)]
    fn negative_gradient<S: Simd>(self, _: S, m: f32, y: f32) -> f32 {
        let short = y - m;
        let above = if short > self.epsilon { 1.0 } else { 0.0 };
        if short < -self.epsilon { -1.0 } else { above }
    }

    #[inline(always)]
    fn loss(self, m: f32, y: f32) -> f32 {
        let beyond = (y - m).abs() - self.epsilon;
        // not f32::max, which would hide a NaN
        if beyond < 0.0 { 0.0 } else { beyond }
    }
}

impl Model for EpsilonInsensitive {
    const NAME: &'static str = "epsilon_insensitive";
    const ALIASES: &'static [&'static str] = &["support_vector_regression"];
    const DESCRIPTION: &'static str = "a support vector regression";
    const TASK: Task = Task::Regression;
    const HAS_PROBABILITIES: bool = false;
    const CURVATURE: f64 = 1.0;
    const HAS_CORNERS: bool = true;
    const LOSS_NUMBER: Option<LossNumber> =
        Some(LossNumber { name: "loss_epsilon", range: Range::from(0.0), default: 0.0 });
    const TARGET_UNITS: TargetUnits = TargetUnits { loss: 1, number: 1 };

    fn exact_loss(decisions: &[f32], y: f64, number: f64) -> f64 {
        let beyond = (y - f64::from(decisions[0])).abs() - number;
        if beyond < 0.0 { 0.0 } else { beyond }
    }

    fn defaults() -> Defaults {
        Defaults { automatic_rate: 0.1, ..Defaults::LINEAR }
    }
}

impl LinearModel for EpsilonInsensitive {
    #[inline(always)]
    fn objective(number: f32) -> EpsilonInsensitive {
        EpsilonInsensitive { epsilon: number }
    }
}

#[cfg(test)]
mod tests {
    use simd::Portable;

    use super::*;

    #[test]
    fn within_the_tube_there_is_neither_loss_nor_gradient() {
        let tube = EpsilonInsensitive { epsilon: 0.5 };
        for (m, gradient, loss) in
            [(1.0, 0.0, 0.0), (1.5, 0.0, 0.0), (0.5, 0.0, 0.0), (2.0, -1.0, 0.5), (-1.0, 1.0, 1.5)]
        {
            assert_eq!(Pointwise::negative_gradient(tube, Portable, m, 1.0), gradient, "{m}");
            assert_eq!(Pointwise::loss(tube, m, 1.0), loss, "{m}");
            assert_eq!(EpsilonInsensitive::exact_loss(&[m], 1.0, 0.5), f64::from(loss), "{m}");
        }
        assert!(Pointwise::loss(tube, f32::NAN, 1.0).is_nan());
    }
}
