//! Poisson regression with a logarithmic link: the loss of the rate e^z and the count y is half of Poisson's deviance,
//! e^z - y - y (z - ln y), whose derivative by z is e^z - y. It is 0 where e^z = y, and never less.
//!
//! Guarantees: an exponential that would overflow stays finite ([`CEILING`]), so that a bounded step leads back from
//! wherever the steps before have led; a decision that is not a number stays so.

use simd::Simd;

use super::definition::{Derivatives, LinearModel, Link, Model, Task};
use super::objective::Pointwise;
use crate::logarithm::signed_log_f64;
use crate::math::{exp, exp_f64, ln};
use crate::totals::Totals;

/// Half of Poisson's deviance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Poisson;

/// e to the power of this is 5.5e34. Rates beyond stand still there in training: a step's numbers are finite then.
const CEILING: f32 = 80.0;

/// The rate e^z.
#[inline(always)]
fn rate(z: f32) -> f32 {
    // not f32::min, which would hide a NaN
    exp(if z > CEILING { CEILING } else { z })
}

/// (e^d - 1 - d) / d², for |d| up to 0.5 to the rounding of f64.
#[inline(always)]
fn series(d: f64) -> f64 {
    // 1/15!, ..., 1/2!, by Horner's rule: each factor is the quotient of two neighbours
    let mut series = 1.0;
    let mut n = 15.0;
    while n > 2.0 {
        series = 1.0 + series * d / n;
        n -= 1.0;
    }
    0.5 * series
}

/// ln y of a y above 0. The same bits on every machine.
#[inline(always)]
fn ln_f64(y: f64) -> f64 {
    if y < 1.0 { -signed_log_f64(1.0 / y - 1.0) } else { signed_log_f64(y - 1.0) }
}

impl Pointwise for Poisson {
    #[inline(always)]
    fn negative_gradient<S: Simd>(self, _: S, m: f32, y: f32) -> f32 {
        y - rate(m)
    }

    /// The loss bends by e^z, and the least loss is where that is y: with the greater of the two, a step goes up by no
    /// more than 1 - e^-d if that is d further up, and down likewise.
    #[inline(always)]
    fn bend(self, m: f32, y: f32) -> f32 {
        let rate = rate(m);
        if rate < y { y } else { rate }
    }

    #[inline(always)]
    fn loss(self, m: f32, y: f32) -> f32 {
        let is_counted = y > 0.0;
        let count = if is_counted { y } else { 1.0 };
        // e^d - 1 - d is what is left of much larger numbers, unless it is a series
        let d = (if m > CEILING { CEILING } else { m }) - ln(count);
        let tail = 1.0 / 120.0 + d * (1.0 / 720.0 + d * (1.0 / 5040.0));
        let series = d * d * (0.5 + d * (1.0 / 6.0 + d * (1.0 / 24.0 + d * tail)));
        let rate = rate(m);
        let difference = if d.abs() < 0.5 { count * series } else { rate - count * (1.0 + d) };
        if is_counted { difference } else { rate }
    }

    #[inline(always)]
    fn count(self, totals: &mut Totals, margins: &[f32], labels: &[f32], _: &[f32]) {
        for (&m, &y) in margins.iter().zip(labels) {
            let error = f64::from(y - rate(m));
            totals.residuals += error * error;
            totals.targets.add(y.into());
        }
    }
}

impl Model for Poisson {
    const NAME: &'static str = "poisson";
    const ALIASES: &'static [&'static str] = &["poisson_regression"];
    const DESCRIPTION: &'static str = "a Poisson regression";
    const TASK: Task = Task::Regression;
    const HAS_PROBABILITIES: bool = false;
    const LINK: Link = Link::Logarithm;
    const CURVATURE: f64 = 1.0;

    const IS_SMOOTH: bool = true;

    #[inline(always)]
    fn derivatives(z: f64, y: f64) -> Derivatives {
        let rate = exp_f64(z);
        let loss = if y > 0.0 {
            let d = z - ln_f64(y);
            // e^d - 1 - d is what is left of much larger numbers, unless it is a series
            if d.abs() < 0.5 { y * (d * d * series(d)) } else { rate - y * (1.0 + d) }
        } else {
            rate
        };
        Derivatives { loss, first: rate - y, second: rate }
    }

    fn exact_loss(decisions: &[f32], y: f64, _: f64) -> f64 {
        let z = f64::from(decisions[0]);
        if y > 0.0 {
            let d = z - y.ln();
            y * (d.exp_m1() - d)
        } else {
            z.exp()
        }
    }
}

impl LinearModel for Poisson {
    #[inline(always)]
    fn objective(_: f32) -> Poisson {
        Poisson
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simd::Portable;

    use super::*;

    fn negative_gradient(m: f32, y: f32) -> f32 {
        Pointwise::negative_gradient(Poisson, Portable, m, y)
    }

    fn loss(m: f32, y: f32) -> f32 {
        Pointwise::loss(Poisson, m, y)
    }

    #[test]
    fn the_loss_is_half_of_the_deviance_that_scikit_learn_has() {
        // sklearn.metrics.mean_poisson_deviance([y], [exp(z)]) / 2, scikit-learn 1.9.1
        for (z, y, expected) in [
            (0.0, 1.0, 0.0),
            (0.0, 0.0, 1.0),
            (1.0, 2.0, 0.104_576_189_578_935_89),
            (-2.0, 3.0, 6.431_172_149_240_941_5),
            (5.0, 100.0, 8.930_177_701_385_73),
        ] {
            assert!((Poisson::exact_loss(&[z], y, 0.0) - expected).abs() <= 1e-12 * expected, "{z} {y}");
            assert!(
                (f64::from(loss(z, y as f32)) - expected).abs() <= 1e-6 * expected,
                "{z} {y}: {}",
                loss(z, y as f32)
            );
        }
    }

    #[test]
    fn derivatives_are_those_of_the_exact_loss() {
        for y in [0.0f32, 1e-30, 0.25, 1.0, 3.0, 1000.0, 3e7] {
            for z in [-700.0f32, -20.0, -1.5, 0.0, 0.7, 5.0, 6.9, 17.2, 300.0] {
                let Derivatives { loss, first, second } = Poisson::derivatives(z.into(), y.into());
                let (exact, rate) = (Poisson::exact_loss(&[z], y.into(), 0.0), f64::from(z).exp());
                assert!((loss - exact).abs() <= 1e-12 * exact + 1e-15 * f64::from(y), "{z} {y}: {loss} {exact}");
                assert!((second - rate).abs() <= 1e-15 * rate, "{z} {y}: {second}");
                assert_eq!(first, second - f64::from(y));
            }
        }
        let Derivatives { loss, second, .. } = Poisson::derivatives(1e4, 2.0);
        assert_eq!((loss, second), (f64::INFINITY, f64::INFINITY), "a step too far, which is shortened");
    }

    #[test]
    fn the_ends_of_f32_are_finite_and_what_is_not_a_number_stays_so() {
        for m in [-1e30, -90.0, 90.0, 1e30, f32::INFINITY] {
            let bend = Poisson.bend(m, 3.0);
            assert!(negative_gradient(m, 3.0).is_finite() && bend.is_finite() && bend >= 3.0, "{m}");
        }
        assert!(negative_gradient(f32::NAN, 1.0).is_nan());
        assert!(loss(f32::NAN, 1.0).is_nan() && loss(f32::NAN, 0.0).is_nan());
    }

    proptest! {
        #[test]
        fn the_loss_is_within_rounding_of_the_exact_one(z in -20.0f32..20.0, d in -3.0f32..3.0) {
            let y = (z + d).exp();
            let exact = Poisson::exact_loss(&[z], y.into(), 0.0);
            // what the decision is rounded to moves the loss by its derivative
            let rounding = f64::from(y - z.exp()).abs() * 6e-6 + 1e-6 * exact + f64::from(y) * 1e-11;
            prop_assert!((f64::from(loss(z, y)) - exact).abs() <= rounding, "{z} {y}: {} {exact}", loss(z, y));
            prop_assert!(loss(z, y) >= 0.0);
        }

        #[test]
        fn gradients_are_minus_the_finite_differences_of_the_losses(z in -5.0f32..5.0, y in 0u32..50) {
            let (h, y) = (1.0 / 256.0, y as f32);
            let [above, below] = [z + h, z - h].map(|z| Poisson::exact_loss(&[z], y.into(), 0.0));
            let slope = (below - above) / f64::from((z + h) - (z - h));
            prop_assert!((f64::from(negative_gradient(z, y)) - slope).abs() <= 1e-5 * (1.0 + f64::from(z.exp())));
        }

        #[test]
        fn a_bounded_step_never_goes_beyond_the_least_loss(z in -60.0f32..60.0, y in 1u32..1000, reach in 1e-3f32..1e6) {
            let y = y as f32;
            let step = reach * negative_gradient(z, y) / (1.0 + reach * Poisson.bend(z, y));
            let best = y.ln() - z;
            prop_assert!(step.signum() == best.signum() || step.abs() < 1e-5, "{step} {best}");
            prop_assert!(step.abs() <= best.abs() * 1.0001 + 1e-5, "{step} {best}");
        }
    }
}
