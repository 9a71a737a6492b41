//! The losses, their slopes, and the logistic function, as functions of the margin m = y z.
//!
//! Guarantees: a loss sees a tuple only through its margin, which is what makes training symmetric under swapping the
//! classes; a NaN margin gives a NaN loss, so that a diverged model cannot hide; the logistic slope is within 2e-7 of the
//! truth and relatively within 2e-6, the loss relatively within 1e-6. It prevents the call of `expf` that would otherwise
//! be most of the time per tuple.

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};

use crate::kernels::Simd;
use crate::variance_sum::VarianceSum;

/// A loss as SGD needs it, in f32. Margins are in units of 1 / [`UNITS`](Loss::UNITS).
pub(crate) trait Loss: Copy {
    /// A power of two, so that changing units changes no bit.
    const UNITS: f32;

    /// How far to step along y x for a learning rate of 1, which is minus the derivative of the loss by the margin.
    fn slope<S: Simd>(self, simd: S, m: f32) -> f32;

    /// The loss. Plain arithmetic without table and branches, so that the compiler may compute many at once.
    fn loss(self, m: f32) -> f32;

    /// The loss where only one is asked for, which may differ in its last digits.
    #[inline(always)]
    fn single_loss(self, m: f32) -> f32 {
        self.loss(m)
    }
}

/// A loss as the kernels for one tuple at a time need it: a function of m = f z and the label y, where z is the decision
/// and f a factor that depends on y.
pub(crate) trait Pointwise: Copy {
    /// Whether loss and counts look at the label.
    const NEEDS_LABELS: bool;

    /// f.
    fn factor(self, y: f32) -> f32;

    /// The derivative of the margin by the decision: f without its units.
    fn direction(self, y: f32) -> f32;

    /// Minus the derivative of the loss by the margin.
    fn slope<S: Simd>(self, simd: S, m: f32, y: f32) -> f32;

    /// The loss.
    fn loss(self, m: f32, y: f32) -> f32;

    /// Counts tuples with these margins and labels into what is not the loss.
    fn count(self, totals: &mut Totals, margins: &[f32], labels: &[f32]);
}

/// What the tuples of an epoch have come to, each judged just before its own step.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Totals {
    /// The sum of the losses times their weights, without the penalty.
    pub(crate) loss: f64,
    /// The sum of the weights.
    pub(crate) weight: f64,
    /// The sum of the squared errors, if the loss is that.
    pub(crate) residuals: f64,
    /// The targets, if the loss is the squared error.
    pub(crate) targets: VarianceSum,
    /// Tuples with a margin above 0.
    pub(crate) correct: u64,
    /// Tuples in all.
    pub(crate) tuples: u64,
}

impl Totals {
    /// Adds those of other tuples.
    pub(crate) fn add(&mut self, other: &Totals) {
        self.loss += other.loss;
        self.weight += other.weight;
        self.residuals += other.residuals;
        self.targets.merge(&other.targets);
        self.correct = self.correct.saturating_add(other.correct);
        self.tuples = self.tuples.saturating_add(other.tuples);
    }
}

/// A loss that is a function of the margin alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfMargin<L>(pub(crate) L);

impl<L: Loss> Pointwise for OfMargin<L> {
    const NEEDS_LABELS: bool = false;

    #[inline(always)]
    fn factor(self, y: f32) -> f32 {
        y * L::UNITS
    }

    #[inline(always)]
    fn direction(self, y: f32) -> f32 {
        y
    }

    #[inline(always)]
    fn slope<S: Simd>(self, simd: S, m: f32, _: f32) -> f32 {
        self.0.slope(simd, m)
    }

    #[inline(always)]
    fn loss(self, m: f32, _: f32) -> f32 {
        self.0.loss(m)
    }

    #[inline(always)]
    fn count(self, totals: &mut Totals, margins: &[f32], _: &[f32]) {
        let (chunks, rest) = margins.as_chunks::<16>();
        let mut correct = [0u32; 16];
        for chunk in chunks {
            for lane in 0..16 {
                correct[lane] += u32::from(chunk[lane] > 0.0);
            }
        }
        totals.correct +=
            u64::from(correct.iter().sum::<u32>() + rest.iter().map(|&m| u32::from(m > 0.0)).sum::<u32>());
    }
}

/// (z - y)²/2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Squared;

impl Pointwise for Squared {
    const NEEDS_LABELS: bool = true;

    #[inline(always)]
    fn factor(self, _: f32) -> f32 {
        1.0
    }

    #[inline(always)]
    fn direction(self, _: f32) -> f32 {
        1.0
    }

    #[inline(always)]
    fn slope<S: Simd>(self, _: S, m: f32, y: f32) -> f32 {
        y - m
    }

    #[inline(always)]
    fn loss(self, m: f32, y: f32) -> f32 {
        0.5 * ((y - m) * (y - m))
    }

    #[inline(always)]
    fn count(self, totals: &mut Totals, margins: &[f32], labels: &[f32]) {
        for (m, &y) in margins.iter().zip(labels) {
            let error = f64::from(y - m);
            totals.residuals += error * error;
            totals.targets.add(y.into());
        }
    }
}

/// max(0, 1 - m). At a margin of exactly 1 the slope is 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hinge;

impl Loss for Hinge {
    const UNITS: f32 = 1.0;

    #[inline(always)]
    fn slope<S: Simd>(self, simd: S, m: f32) -> f32 {
        simd.one_if_less(m, 1.0)
    }

    #[inline(always)]
    fn loss(self, m: f32) -> f32 {
        let short = 1.0 - m;
        // not f32::max, which would hide a NaN
        if short < 0.0 { 0.0 } else { short }
    }
}

/// ln(1 + e^(-m)); its slope by a table of lines.
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
    /// the slope at the centre, and the change from the lower to the upper end
    slopes: [[f32; 2]; CELLS],
    /// the loss at the centre
    losses: [f32; CELLS],
}

static TABLE: LazyLock<Box<Table>> = LazyLock::new(|| {
    let mut table = Box::new(Table { slopes: [[0.0; 2]; CELLS], losses: [0.0; CELLS] });
    for i in 0..CELLS {
        let centre = (i as f64 - CELLS as f64 / 2.0) / f64::from(Logistic::UNITS);
        (table.slopes[i], table.losses[i]) = (line(centre), softplus(-centre) as f32);
    }
    table
});

/// The line nearest to the slope of the loss in the cell around `centre`: in place of the quadratic term stands half of
/// what it is at the ends. What remains is below 1e-7.
fn line(centre: f64) -> [f32; 2] {
    let h = 1.0 / f64::from(Logistic::UNITS);
    let s = probability_f64(-centre);
    let first = -s * (1.0 - s);
    let second = first * (2.0 * s - 1.0);
    [(s + second * h * h / 16.0) as f32, (first * h) as f32]
}

impl Logistic {
    /// The first call computes the table.
    pub(crate) fn new() -> Logistic {
        Logistic { table: &TABLE }
    }
}

impl Loss for Logistic {
    /// The cells of the table per unit.
    const UNITS: f32 = 256.0;

    #[inline(always)]
    fn slope<S: Simd>(self, simd: S, m: f32) -> f32 {
        let rounded = m + ROUND;
        match self.table.slopes.get(rounded.to_bits().wrapping_sub(FIRST) as usize) {
            Some(&[centre, rise]) => simd.fma_one(m - (rounded - ROUND), rise, centre),
            // 1 / (1 + e^32) is nothing, also to its complement
            None if m < 0.0 => 1.0,
            None if m > 0.0 => 0.0,
            None => m,
        }
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

    /// By the table: the derivative of the loss is minus its slope.
    #[inline(always)]
    fn single_loss(self, m: f32) -> f32 {
        let rounded = m + ROUND;
        let cell = rounded.to_bits().wrapping_sub(FIRST) as usize;
        match (self.table.losses.get(cell), self.table.slopes.get(cell)) {
            (Some(&loss), Some(&[slope, rise])) => {
                let f = m - (rounded - ROUND);
                loss - f * (slope + 0.5 * (f * rise)) * (1.0 / Logistic::UNITS)
            }
            _ => self.loss(m),
        }
    }
}

/// P(positive) at the decision `z` of a logistic model: the logistic function 1 / (1 + e^(-z)), to the rounding of f64.
pub fn probability(z: f32) -> f64 {
    probability_f64(f64::from(z))
}

fn probability_f64(z: f64) -> f64 {
    // e^z of a negative z cannot overflow
    let e = (-z.abs()).exp();
    if z < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// ln(1 + e^z), to the rounding of f64.
pub(crate) fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

/// e^x of an x of at most 0, within 1e-7 of it relatively; 0 below -87. The same bits on every machine, which the
/// standard library does not promise.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // adding this rounds to an integer
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two pieces, of which the first times a small integer is exact
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    let tail = 1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0));
    let series = 1.0 + (r + (r * r) * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * tail))));
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(0x3F80_0000));
    if x < -87.0 { 0.0 } else { series * power }
}

/// ln x of a normal x above 0, within 2e-7 of it absolutely or relatively. The same bits on every machine.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    // the mantissa m from √½ to √2: ln m = 2 artanh s, s = (m - 1) / (m + 1)
    let shifted = x.to_bits().wrapping_sub(0x3F35_04F3);
    let exponent = (shifted as i32) >> 23;
    let m = f32::from_bits((shifted & 0x007F_FFFF).wrapping_add(0x3F35_04F3));
    let s = (m - 1.0) / (m + 1.0);
    let q = s * s;
    let series = 2.0 * s + (2.0 * s) * (q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * (1.0 / 9.0)))));
    let ln = exponent as f32 * std::f32::consts::LN_2 + series;
    if x < f32::INFINITY { ln } else { x }
}

/// The probabilities of the classes of a softmax model: e^(z_k) / Σ e^(z_j), to the rounding of f64.
///
/// # Panics
/// If `out` is not as long as `decisions`.
pub fn softmax(decisions: &[f32], out: &mut [f64]) {
    assert_eq!(decisions.len(), out.len(), "a place for every class");
    let greatest = greatest(decisions);
    for (p, &z) in out.iter_mut().zip(decisions) {
        *p = (f64::from(z) - greatest).exp();
    }
    let sum: f64 = out.iter().sum();
    out.iter_mut().for_each(|p| *p /= sum);
}

/// -ln of the probability of `class`, to the rounding of f64.
pub(crate) fn cross_entropy(decisions: &[f32], class: usize) -> f64 {
    let greatest = greatest(decisions);
    let sum: f64 = decisions.iter().map(|&z| (f64::from(z) - greatest).exp()).sum();
    sum.ln() - (f64::from(decisions[class]) - greatest)
}

fn greatest(decisions: &[f32]) -> f64 {
    decisions.iter().copied().fold(f32::NEG_INFINITY, f32::max).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Margins over the whole range of the table and beyond, close to each other.
    fn margins() -> impl Iterator<Item = f32> {
        (-60_000..120_000).map(|i| i as f32 / 1024.0 + 1e-4)
    }

    fn portable() -> impl Simd {
        crate::kernels::portable()
    }

    /// At a margin that is not in units.
    fn slope<L: Loss>(loss: L, m: f32) -> f32 {
        loss.slope(portable(), m * L::UNITS)
    }

    fn loss<L: Loss>(loss: L, m: f32) -> f32 {
        loss.loss(m * L::UNITS)
    }

    #[test]
    fn the_logistic_slope_is_within_2e_7_of_the_logistic_function() {
        for m in margins() {
            let (slope, truth) = (f64::from(slope(Logistic::new(), m)), probability(-m));
            assert!((slope - truth).abs() <= 2e-7, "{m}: {slope} {truth}");
            assert!(m >= 31.9 || (slope / truth - 1.0).abs() <= 2e-6, "{m}: {slope} {truth}");
        }
    }

    #[test]
    fn the_logistic_loss_is_within_1e_6_of_the_truth() {
        for m in margins() {
            let (loss, truth) = (f64::from(loss(Logistic::new(), m)), softplus(-f64::from(m)));
            assert!((loss - truth).abs() <= 3e-7 * truth || m >= 86.0, "{m}: {loss} {truth}");
            assert!((loss - truth).abs() <= 1e-37 || m < 86.0, "{m}: {loss} {truth}");
        }
    }

    #[test]
    fn a_single_logistic_loss_is_within_1e_6_of_the_truth() {
        for m in margins() {
            let (loss, truth) = (f64::from(Logistic::new().single_loss(m * Logistic::UNITS)), softplus(-f64::from(m)));
            assert!((loss - truth).abs() <= 5e-7 * truth || m >= 86.0, "{m}: {loss} {truth}");
        }
        assert!(Logistic::new().single_loss(f32::NAN).is_nan());
    }

    #[test]
    fn the_ends_of_the_table_and_of_f32_are_finite_and_saturated() {
        let below = |x: f32| f32::from_bits(x.to_bits() - 1);
        for m in [-32.0, below(-32.0), below(32.0), 32.0, 0.0, -0.0] {
            assert!((f64::from(slope(Logistic::new(), m)) - probability(-m)).abs() <= 2e-7, "{m}");
        }
        assert_eq!(slope(Logistic::new(), 0.0).to_bits(), slope(Logistic::new(), -0.0).to_bits());
        for (m, along, lost) in [(1e30, 0.0, 0.0), (f32::INFINITY, 0.0, 0.0), (-1e30, 1.0, 1e30)] {
            assert_eq!((slope(Logistic::new(), m), loss(Logistic::new(), m)), (along, lost));
            assert_eq!((slope(Hinge, m), loss(Hinge, m)), (along, lost));
        }
    }

    #[test]
    fn a_margin_that_is_not_a_number_gives_a_loss_that_is_not_a_number() {
        assert!(loss(Logistic::new(), f32::NAN).is_nan());
        assert!(slope(Logistic::new(), f32::NAN).is_nan());
        assert!(loss(Hinge, f32::NAN).is_nan());
    }

    #[test]
    fn the_hinge_has_no_slope_at_a_margin_of_exactly_1() {
        let below = f32::from_bits(1f32.to_bits() - 1);
        assert_eq!([slope(Hinge, 1.0), loss(Hinge, 1.0)], [0.0, 0.0]);
        assert_eq!([slope(Hinge, below), loss(Hinge, below)], [1.0, 1.0 - below]);
        assert_eq!([slope(Hinge, -3.0), loss(Hinge, -3.0)], [1.0, 4.0]);
    }

    proptest! {
        #[test]
        fn slopes_are_minus_the_finite_differences_of_the_losses(m in -30.0f64..30.0) {
            let h = 1e-5;
            let logistic = (softplus(-(m - h)) - softplus(-(m + h))) / (2.0 * h);
            prop_assert!((f64::from(slope(Logistic::new(), m as f32)) - logistic).abs() < 1e-6);
            let hinge = |m: f64| (1.0 - m).max(0.0);
            if (m - 1.0).abs() > 1e-3 {
                prop_assert!((f64::from(slope(Hinge, m as f32)) - (hinge(m - h) - hinge(m + h)) / (2.0 * h)).abs() < 1e-6);
            }
        }

        #[test]
        fn the_probabilities_of_both_classes_sum_to_1(z: f32) {
            prop_assume!(!z.is_nan());
            prop_assert!((probability(z) + probability(-z) - 1.0).abs() <= 3e-16);
        }
    }

    #[test]
    fn probability_keeps_its_precision_in_the_tails() {
        assert_eq!(probability(0.0), 0.5);
        assert_eq!([probability(f32::INFINITY), probability(f32::NEG_INFINITY)], [1.0, 0.0]);
        assert!((probability(-700.0) / (-700f64).exp() - 1.0).abs() < 1e-15);
        assert!((probability(1.0) - 0.731_058_578_630_004_9).abs() < 2e-16);
    }
}
