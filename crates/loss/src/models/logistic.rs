//! Logistic regression: ln(1 + e^(-m)) of the margin m = y z.
//!
//! Guarantees: the derivative is within 2e-7 of the truth and relatively within 2e-6, the loss relatively within 1e-6.
//! It prevents the call of `expf` that would otherwise be most of the time per tuple.

use std::sync::LazyLock;

use simd::{Chunk, Simd};

use super::definition::{Derivatives, LinearModel, Model, Task};
use super::objective::MarginLoss;
use crate::logarithm::signed_log_f64;
use crate::math::{entropy, exp, exp_f64, probability_f64, softplus};

/// ln(1 + e^(-m)); its derivative by a table of lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logistic {
    table: &'static Table,
}

/// Margins from -32 up to 32 have a line.
const CELLS: usize = 1 << 14;

/// Adding this to a float below 2^22 rounds it to an integer, in the lowest bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// What to subtract from the bits of such a sum to have the index of its cell.
const FIRST: u32 = ROUND.to_bits() - CELLS as u32 / 2;

/// Cells around the multiples of a unit's share.
#[derive(Debug)]
struct Table {
    /// minus the derivative at the centre, and the change from the lower to the upper end
    gradients: [[f32; 2]; CELLS],
    /// the loss at the centre
    losses: [f32; CELLS],
}

static TABLE: LazyLock<Box<Table>> = LazyLock::new(|| {
    let mut table = Box::new(Table { gradients: [[0.0; 2]; CELLS], losses: [0.0; CELLS] });
    for i in 0..CELLS {
        let centre = (i as f64 - CELLS as f64 / 2.0) / f64::from(Logistic::UNITS);
        (table.gradients[i], table.losses[i]) = (line(centre), softplus(-centre) as f32);
    }
    table
});

/// The line nearest to minus the derivative of the loss in the cell around `centre`: in place of the quadratic term
/// stands half of what it is at the ends. What remains is below 1e-7.
fn line(centre: f64) -> [f32; 2] {
    let h = 1.0 / f64::from(Logistic::UNITS);
    let s = probability_f64(-centre);
    let first = -s * (1.0 - s);
    let second = first * (2.0 * s - 1.0);
    [(s + second * h * h / 16.0) as f32, (first * h) as f32]
}

impl Model for Logistic {
    const NAME: &'static str = "logistic";
    const ALIASES: &'static [&'static str] = &["logistic_regression"];
    const DESCRIPTION: &'static str = "a logistic regression";
    const TASK: Task = Task::Binary;
    const HAS_PROBABILITIES: bool = true;
    const CURVATURE: f64 = 0.25;

    const IS_SMOOTH: bool = true;

    /// By the margin, so that the other class has the same bits.
    #[inline(always)]
    fn derivatives(z: f64, y: f64) -> Derivatives {
        let m = y * z;
        let e = exp_f64(-m.abs());
        let (near, far) = (1.0 / (1.0 + e), e / (1.0 + e));
        let of_other = if m < 0.0 { near } else { far };
        let loss = (if m < 0.0 { -m } else { 0.0 }) + signed_log_f64(e);
        Derivatives { loss, first: -y * of_other, second: near * far }
    }

    fn exact_loss(decisions: &[f32], y: f64, _: f64) -> f64 {
        softplus(-y * f64::from(decisions[0]))
    }

    fn constant_loss(shares: &[f64]) -> Option<f64> {
        Some(entropy(shares))
    }
}

impl LinearModel for Logistic {
    /// The first call computes the table.
    #[inline(always)]
    fn objective(_: f32) -> Logistic {
        Logistic { table: &TABLE }
    }
}

impl MarginLoss for Logistic {
    /// The cells of the table per unit.
    const UNITS: f32 = 256.0;

    #[inline(always)]
    fn negative_gradient<S: Simd>(self, simd: S, m: f32) -> f32 {
        let rounded = m + ROUND;
        match self.table.gradients.get(rounded.to_bits().wrapping_sub(FIRST) as usize) {
            Some(&[centre, rise]) => simd.fma_one(m - (rounded - ROUND), rise, centre),
            // 1 / (1 + e^32) is nothing, also to its complement
            None if m < 0.0 => 1.0,
            None if m > 0.0 => 0.0,
            None => m,
        }
    }

    /// Without the table, whose cells would be sixteen places of memory.
    #[inline(always)]
    fn negative_gradients<S: Simd>(self, _: S, margins: Chunk) -> Chunk {
        let mut gradients = margins;
        for m in &mut gradients {
            let units = *m * (1.0 / Logistic::UNITS);
            let e = exp(-units.abs());
            *m = (if units > 0.0 { e } else { 1.0 }) / (1.0 + e);
        }
        gradients
    }

    #[inline(always)]
    fn loss(self, m: f32) -> f32 {
        let m = m * (1.0 / Logistic::UNITS);
        // ln(1 + e) = 2 artanh s, s = e / (2 + e)
        let e = exp(-m.abs());
        let s = e / (2.0 + e);
        let q = s * s;
        let tail = 1.0 / 9.0 + q * (1.0 / 11.0 + q * (1.0 / 13.0));
        let series = q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * tail)));
        (if m < 0.0 { -m } else { 0.0 }) + 2.0 * (s + s * series)
    }

    /// By the table: the derivative of the loss is minus the line's.
    #[inline(always)]
    fn single_loss(self, m: f32) -> f32 {
        let rounded = m + ROUND;
        let cell = rounded.to_bits().wrapping_sub(FIRST) as usize;
        match (self.table.losses.get(cell), self.table.gradients.get(cell)) {
            (Some(&loss), Some(&[gradient, rise])) => {
                let f = m - (rounded - ROUND);
                loss - f * (gradient + 0.5 * (f * rise)) * (1.0 / Logistic::UNITS)
            }
            _ => self.loss(m),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simd::Portable;

    use super::*;
    use crate::probability;

    /// Margins over the whole range of the table and beyond, close to each other.
    fn margins() -> impl Iterator<Item = f32> {
        (-60_000..120_000).map(|i| i as f32 / 1024.0 + 1e-4)
    }

    /// At a margin that is not in units.
    fn negative_gradient(m: f32) -> f32 {
        MarginLoss::negative_gradient(Logistic::objective(0.0), Portable, m * Logistic::UNITS)
    }

    fn loss(m: f32) -> f32 {
        MarginLoss::loss(Logistic::objective(0.0), m * Logistic::UNITS)
    }

    fn single_loss(m: f32) -> f32 {
        MarginLoss::single_loss(Logistic::objective(0.0), m)
    }

    #[test]
    fn the_logistic_derivative_is_within_2e_7_of_the_logistic_function() {
        for m in margins() {
            let (gradient, truth) = (f64::from(negative_gradient(m)), probability(-m));
            assert!((gradient - truth).abs() <= 2e-7, "{m}: {gradient} {truth}");
            assert!(m >= 31.9 || (gradient / truth - 1.0).abs() <= 2e-6, "{m}: {gradient} {truth}");
        }
    }

    #[test]
    fn sixteen_logistic_derivatives_are_within_2e_7_of_the_logistic_function() {
        for m in margins() {
            let many = MarginLoss::negative_gradients(Logistic::objective(0.0), Portable, [m * Logistic::UNITS; 16]);
            let truth = probability(-m);
            assert!(many.iter().all(|one| (f64::from(*one) - truth).abs() <= 2e-7), "{m}: {many:?} {truth}");
        }
        let ends = [f32::NEG_INFINITY, f32::INFINITY, f32::NAN]
            .map(|m| MarginLoss::negative_gradients(Logistic::objective(0.0), Portable, [m; 16])[0]);
        assert!(ends[0] == 1.0 && ends[1] == 0.0 && ends[2].is_nan());
    }

    #[test]
    fn the_logistic_loss_is_within_1e_6_of_the_truth() {
        for m in margins() {
            let (loss, truth) = (f64::from(loss(m)), softplus(-f64::from(m)));
            assert!((loss - truth).abs() <= 3e-7 * truth || m >= 86.0, "{m}: {loss} {truth}");
            assert!((loss - truth).abs() <= 1e-37 || m < 86.0, "{m}: {loss} {truth}");
        }
    }

    #[test]
    fn a_single_logistic_loss_is_within_1e_6_of_the_truth() {
        for m in margins() {
            let (loss, truth) = (f64::from(single_loss(m * Logistic::UNITS)), softplus(-f64::from(m)));
            assert!((loss - truth).abs() <= 5e-7 * truth || m >= 86.0, "{m}: {loss} {truth}");
        }
        assert!(single_loss(f32::NAN).is_nan());
    }

    #[test]
    fn the_ends_of_the_table_and_of_f32_are_finite_and_saturated() {
        let below = |x: f32| f32::from_bits(x.to_bits() - 1);
        for m in [-32.0, below(-32.0), below(32.0), 32.0, 0.0, -0.0] {
            assert!((f64::from(negative_gradient(m)) - probability(-m)).abs() <= 2e-7, "{m}");
        }
        assert_eq!(negative_gradient(0.0).to_bits(), negative_gradient(-0.0).to_bits());
        for (m, along, lost) in [(1e30, 0.0, 0.0), (f32::INFINITY, 0.0, 0.0), (-1e30, 1.0, 1e30)] {
            assert_eq!((negative_gradient(m), loss(m)), (along, lost));
        }
    }

    #[test]
    fn a_margin_that_is_not_a_number_gives_a_loss_that_is_not_a_number() {
        assert!(loss(f32::NAN).is_nan() && negative_gradient(f32::NAN).is_nan());
    }

    proptest! {
        #[test]
        fn gradients_are_minus_the_finite_differences_of_the_losses(m in -30.0f64..30.0) {
            let h = 1e-5;
            let truth = (softplus(-(m - h)) - softplus(-(m + h))) / (2.0 * h);
            prop_assert!((f64::from(negative_gradient(m as f32)) - truth).abs() < 1e-6);
        }
    }
}
