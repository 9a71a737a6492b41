//! Linear regression: (z - y)²/2, y any number.

use simd::Simd;

use super::definition::{Derivatives, LinearModel, Model, Task};
use super::objective::Pointwise;

/// (z - y)²/2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear;

impl Pointwise for Linear {
    #[inline(always)]
    fn negative_gradient<S: Simd>(self, _: S, m: f32, y: f32) -> f32 {
        y - m
    }

    #[inline(always)]
    fn loss(self, m: f32, y: f32) -> f32 {
        0.5 * ((y - m) * (y - m))
    }
}

impl Model for Linear {
    const NAME: &'static str = "linear";
    const ALIASES: &'static [&'static str] = &["linear_regression"];
    const DESCRIPTION: &'static str = "a linear regression";
    const TASK: Task = Task::Regression;
    const HAS_PROBABILITIES: bool = false;
    const CURVATURE: f64 = 1.0;

    const IS_SMOOTH: bool = true;

    #[inline(always)]
    fn derivatives(z: f64, y: f64) -> Derivatives {
        let error = z - y;
        Derivatives { loss: 0.5 * (error * error), first: error, second: 1.0 }
    }

    fn exact_loss(decisions: &[f32], y: f64, _: f64) -> f64 {
        (f64::from(decisions[0]) - y).powi(2) / 2.0
    }
}

impl LinearModel for Linear {
    #[inline(always)]
    fn objective(_: f32) -> Linear {
        Linear
    }
}
