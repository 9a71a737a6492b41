//! The losses, their slopes, and the logistic function, as functions of the margin m = y z.
//!
//! Guarantees: a loss sees a tuple only through its margin, which is what makes training symmetric under swapping the
//! classes; a NaN margin gives a NaN loss, so that a diverged model cannot hide; the logistic loss and slope are within
//! 2e-7 of the truth (absolutely; the slope's and the loss's relative error is below 1e-6 up to a margin of 43). It
//! prevents the call of `expf` that would otherwise be most of the time per tuple.

use std::sync::LazyLock;

use bytemuck::{Pod, Zeroable};

use crate::spread::Spread;

/// A loss as SGD needs it, in f32.
pub(crate) trait Loss: Copy {
    /// How far to step along y x for a learning rate of 1, which is minus the derivative of the loss at margin `m`.
    fn slope(self, m: f32) -> f32;

    /// The loss at margin `m`.
    fn loss(self, m: f32) -> f32;
}

/// A loss as the kernels for one tuple at a time need it: a function of m = f z and the label y, where z is the decision
/// and f a factor that depends on y.
pub(crate) trait Pointwise: Copy {
    /// f.
    fn factor(self, y: f32) -> f32;

    /// Minus the derivative of the loss by m.
    fn slope(self, m: f32, y: f32) -> f32;

    /// The loss.
    fn loss(self, m: f32, y: f32) -> f32;

    /// Counts a tuple into what is not the loss.
    fn count(self, totals: &mut Totals, m: f32, y: f32);
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
    pub(crate) targets: Spread,
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
    #[inline(always)]
    fn factor(self, y: f32) -> f32 {
        y
    }

    #[inline(always)]
    fn slope(self, m: f32, _: f32) -> f32 {
        self.0.slope(m)
    }

    #[inline(always)]
    fn loss(self, m: f32, _: f32) -> f32 {
        self.0.loss(m)
    }

    #[inline(always)]
    fn count(self, totals: &mut Totals, m: f32, _: f32) {
        totals.correct += u64::from(m > 0.0);
    }
}

/// (z - y)²/2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Squared;

impl Pointwise for Squared {
    #[inline(always)]
    fn factor(self, _: f32) -> f32 {
        1.0
    }

    #[inline(always)]
    fn slope(self, m: f32, y: f32) -> f32 {
        y - m
    }

    #[inline(always)]
    fn loss(self, m: f32, y: f32) -> f32 {
        0.5 * ((y - m) * (y - m))
    }

    #[inline(always)]
    fn count(self, totals: &mut Totals, m: f32, y: f32) {
        let error = f64::from(y - m);
        totals.residuals += error * error;
        totals.targets.add(y.into());
    }
}

/// max(0, 1 - m). At a margin of exactly 1 the slope is 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hinge;

impl Loss for Hinge {
    #[inline(always)]
    fn slope(self, m: f32) -> f32 {
        if m >= 1.0 { 0.0 } else { 1.0 }
    }

    #[inline(always)]
    fn loss(self, m: f32) -> f32 {
        let short = 1.0 - m;
        // not f32::max, which would hide a NaN
        if short < 0.0 { 0.0 } else { short }
    }
}

/// ln(1 + e^(-m)), by a table of quadratics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logistic {
    table: &'static Table,
}

/// Margins below this have slope 1 and loss -m to the precision of f32.
const LOWEST: f32 = -20.0;
/// Margins of this and above have slope and loss 0, which is 2e-19 off.
const HIGHEST: f32 = 43.0;
const CELLS_PER_UNIT: f32 = 32.0;
/// The index is the lowest bits of a float; a power of two saves the bounds check.
const CELLS: usize = 2048;
/// Adding this to a float below 2^22 rounds it to an integer, in the lowest bits of the sum: 1.5 * 2^23, and the index
/// of margin 0.
const ROUND: f32 = 12_582_912.0 - LOWEST * CELLS_PER_UNIT;

const _: () = assert!((HIGHEST - LOWEST) * CELLS_PER_UNIT < CELLS as f32);

/// Cells around the centres `LOWEST + i / CELLS_PER_UNIT`.
type Table = [Cell; CELLS];

/// One cell, in the coordinate f in [-0.5, 0.5] from its lower to its upper end. The loss needs nothing but its value
/// at the centre, because its derivative is minus the slope.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(16))]
struct Cell {
    slope: [f32; 3],
    loss: f32,
}

static TABLE: LazyLock<Box<Table>> = LazyLock::new(|| {
    let mut table = Box::new([Cell::default(); CELLS]);
    for (cell, i) in table.iter_mut().zip(0u32..) {
        *cell = Cell::around(f64::from(LOWEST) + f64::from(i) / f64::from(CELLS_PER_UNIT));
    }
    table
});

impl Cell {
    /// The Taylor polynomial of the third degree around `centre`, whose cubic term is replaced by the line that is
    /// nearest to it in the cell: f³ is within 1/32 of 3/16 f. What remains is below 2.1e-8.
    fn around(centre: f64) -> Cell {
        let h = 1.0 / f64::from(CELLS_PER_UNIT);
        let s = probability_f64(-centre);
        let first = -s * (1.0 - s);
        let second = first * (2.0 * s - 1.0);
        let third = second * (2.0 * s - 1.0) + 2.0 * first * first;
        let cubic = third * h.powi(3) / 6.0;
        let slope = [s, first * h + cubic * 3.0 / 16.0, second * h * h / 2.0];
        Cell { slope: slope.map(|c| c as f32), loss: softplus(-centre) as f32 }
    }
}

impl Logistic {
    /// The first call computes the table.
    pub(crate) fn new() -> Logistic {
        Logistic { table: &TABLE }
    }

    /// The cell of `m` and the place in it; None if `m` is outside of the table or NaN.
    #[inline(always)]
    fn cell(self, m: f32) -> Option<(Cell, f32)> {
        if !(LOWEST..HIGHEST).contains(&m) {
            return None;
        }
        // exact, since CELLS_PER_UNIT is a power of two
        let scaled = m * CELLS_PER_UNIT;
        let rounded = scaled + ROUND;
        let cell = self.table[rounded.to_bits() as usize % CELLS];
        Some((cell, scaled - (rounded - ROUND)))
    }
}

impl Loss for Logistic {
    #[inline(always)]
    fn slope(self, m: f32) -> f32 {
        match self.cell(m) {
            Some((Cell { slope: [a, b, c], .. }, f)) => (a + b * f) + c * (f * f),
            None if m < LOWEST => 1.0,
            None if m >= HIGHEST => 0.0,
            None => m,
        }
    }

    #[inline(always)]
    fn loss(self, m: f32) -> f32 {
        const H: f32 = 1.0 / CELLS_PER_UNIT;
        match self.cell(m) {
            Some((Cell { slope: [a, b, c], loss }, f)) => {
                loss - f * (a * H + f * (b * (H / 2.0) + f * (c * (H / 3.0))))
            }
            None if m < LOWEST => -m,
            None if m >= HIGHEST => 0.0,
            None => m,
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

    #[test]
    fn the_logistic_slope_is_within_2e_7_of_the_logistic_function() {
        for m in margins() {
            let (slope, truth) = (f64::from(Logistic::new().slope(m)), probability(-m));
            assert!((slope - truth).abs() <= 2e-7, "{m}: {slope} {truth}");
            assert!(m >= HIGHEST || (slope / truth - 1.0).abs() <= 1e-6, "{m}: {slope} {truth}");
        }
    }

    #[test]
    fn the_logistic_loss_is_within_2e_7_of_the_truth() {
        for m in margins() {
            let (loss, truth) = (f64::from(Logistic::new().loss(m)), softplus(-f64::from(m)));
            assert!((loss - truth).abs() <= 2e-7 * truth.max(1.0), "{m}: {loss} {truth}");
            assert!(m >= HIGHEST || (loss / truth - 1.0).abs() <= 1e-6, "{m}: {loss} {truth}");
        }
    }

    #[test]
    fn the_ends_of_the_table_and_of_f32_are_finite_and_saturated() {
        let below = |x: f32| f32::from_bits(x.to_bits() - 1);
        for m in [LOWEST, below(HIGHEST), HIGHEST, 0.0, -0.0] {
            assert!((f64::from(Logistic::new().slope(m)) - probability(-m)).abs() <= 2e-7, "{m}");
        }
        assert_eq!(Logistic::new().slope(0.0).to_bits(), Logistic::new().slope(-0.0).to_bits());
        for (m, slope, loss) in [(f32::MAX, 0.0, 0.0), (f32::INFINITY, 0.0, 0.0), (f32::MIN, 1.0, f32::MAX)] {
            assert_eq!((Logistic::new().slope(m), Logistic::new().loss(m)), (slope, loss));
            assert_eq!((Hinge.slope(m), Hinge.loss(m)), (slope, loss));
        }
    }

    #[test]
    fn a_margin_that_is_not_a_number_gives_a_loss_that_is_not_a_number() {
        assert!(Logistic::new().loss(f32::NAN).is_nan());
        assert!(Logistic::new().slope(f32::NAN).is_nan());
        assert!(Hinge.loss(f32::NAN).is_nan());
    }

    #[test]
    fn the_hinge_has_no_slope_at_a_margin_of_exactly_1() {
        let below = f32::from_bits(1f32.to_bits() - 1);
        assert_eq!([Hinge.slope(1.0), Hinge.loss(1.0)], [0.0, 0.0]);
        assert_eq!([Hinge.slope(below), Hinge.loss(below)], [1.0, 1.0 - below]);
        assert_eq!([Hinge.slope(-3.0), Hinge.loss(-3.0)], [1.0, 4.0]);
    }

    proptest! {
        #[test]
        fn slopes_are_minus_the_finite_differences_of_the_losses(m in -30.0f64..30.0) {
            let h = 1e-5;
            let logistic = (softplus(-(m - h)) - softplus(-(m + h))) / (2.0 * h);
            prop_assert!((f64::from(Logistic::new().slope(m as f32)) - logistic).abs() < 1e-6);
            let hinge = |m: f64| (1.0 - m).max(0.0);
            if (m - 1.0).abs() > 1e-3 {
                prop_assert!((f64::from(Hinge.slope(m as f32)) - (hinge(m - h) - hinge(m + h)) / (2.0 * h)).abs() < 1e-6);
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
