//! The losses, their slopes, and the logistic function, as functions of the margin m = y z.
//!
//! Guarantees: a loss sees a tuple only through its margin, which is what makes training symmetric under swapping the
//! classes; a NaN margin gives a NaN loss, so that a diverged model cannot hide; the logistic loss and slope are within
//! 2e-7 of the truth (absolutely; the slope's and the loss's relative error is below 1e-6 up to a margin of 43). It
//! prevents the call of `expf` that would otherwise be most of the time per tuple.

use std::sync::LazyLock;

/// A loss as SGD needs it, in f32.
pub(crate) trait Loss: Copy {
    /// How far to step along y x for a learning rate of 1, which is minus the derivative of the loss at margin `m`.
    fn slope(self, m: f32) -> f32;

    /// The loss at margin `m`.
    fn loss(self, m: f32) -> f32;
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
        // not f32::max, which would hide a NaN
        if m >= 1.0 { 0.0 } else { 1.0 - m }
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

/// One cell, in the coordinate f in [-0.5, 0.5] from its lower to its upper end. The loss needs nothing but its value at
/// the centre, because its derivative is minus the slope.
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
