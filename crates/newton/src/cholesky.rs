//! Linear equations with a symmetric matrix that has no negative eigenvalues.
//!
//! Guarantees: the same bits on every machine; an unknown whose column is a combination of columns before it is left
//! out, that is, takes the value 0. It prevents a step that is infinite, or nothing but rounding, where features depend
//! on each other: as all categories of a column do together with the intercept.

use tuples::OutOfMemory;
use tuples::pause::Pauses;

/// The triangular factor L of a matrix L Lᵀ.
#[derive(Debug)]
pub(crate) struct Cholesky {
    size: usize,
    /// row by row, each as long as the matrix has columns; what is above the diagonal means nothing
    lower: Vec<f64>,
    kept: Vec<bool>,
    /// by unknown, what is left of the diagonal element
    left: Vec<f64>,
}

/// An unknown that others determine, or nearly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Collinear {
    pub(crate) unknown: usize,
    /// The variance that is left as a share of that of the unknown.
    pub(crate) share: f64,
    /// Whether what is left may be nothing but rounding.
    pub(crate) is_rounding: bool,
}

/// What is left of a column's diagonal element, as a share of it, where the column is a combination of others: features
/// are rounded to f32, products and sums to f64.
const DEPENDENT: f64 = 1e-11;

/// What is left of a variance where a column nearly is a combination of others: it deviates from them by a thousandth
/// of its own deviation.
const NEARLY: f64 = 1e-6;

/// Columns with more left than this are not compared with their rounding: it is what makes them coarse, not collinear.
const APART: f64 = 0.01;

/// What is left must be more than this multiple of the rounding.
const ABOVE_ROUNDING: f64 = 2.0;

/// Sums that a scalar product is made of, for the compiler to compute side by side.
const LANES: usize = 8;

impl Cholesky {
    /// Room for this many unknowns.
    pub(crate) fn new(size: usize) -> Result<Cholesky, OutOfMemory> {
        Ok(Cholesky {
            size,
            lower: allocation::try_zeros(size.saturating_mul(size))?,
            kept: allocation::try_zeros(size)?,
            left: allocation::try_zeros(size)?,
        })
    }

    /// Takes the matrix whose element (i, j), j ≤ i, is `element(i, j)`.
    pub(crate) fn factor(&mut self, element: impl Fn(usize, usize) -> f64) {
        self.factor_without(element, &[]);
    }

    /// The same; these unknowns are left out whatever the matrix.
    pub(crate) fn factor_without(&mut self, element: impl Fn(usize, usize) -> f64, without: &[usize]) {
        let Cholesky { size, ref mut lower, ref mut kept, left: ref mut all_left } = *self;
        let mut pauses = Pauses::default();
        for i in 0..size {
            let (above, rest) = lower.split_at_mut(i * size);
            let row = &mut rest[..size];
            for j in 0..i {
                pauses.after(j / LANES + 1);
                let other = &above[j * size..][..size];
                row[j] = match kept[j] {
                    true => (element(i, j) - dot(&row[..j], &other[..j])) / other[j],
                    false => 0.0,
                };
            }
            let diagonal = element(i, i);
            let left = diagonal - dot(&row[..i], &row[..i]);
            kept[i] = left > DEPENDENT * diagonal && !without.contains(&i);
            all_left[i] = left;
            if kept[i] {
                row[i] = left.sqrt();
            } else {
                row.fill(0.0);
            }
        }
    }

    /// The unknowns whose columns are combinations of those before, or nearly, where the first unknown is an intercept,
    /// and `rounding` is what the rounding of an unknown's values adds to its diagonal element. Constants do not count.
    ///
    /// Rounding makes a column that others determine differ from them: x + y of numbers near 1e5 that are rounded to
    /// f32 by as much as 0.004.
    pub(crate) fn collinear(
        &self,
        element: impl Fn(usize, usize) -> f64,
        rounding: impl Fn(usize) -> f64,
    ) -> Vec<Collinear> {
        let mut all = Vec::new();
        let mut pauses = Pauses::default();
        for i in 1..self.size {
            pauses.after(i);
            let (diagonal, left) = (element(i, i), self.left[i]);
            // what the intercept does not say
            let variance = diagonal - element(i, 0).powi(2) / element(0, 0);
            if variance <= DEPENDENT * diagonal || left > APART * variance && self.kept[i] {
                continue;
            }
            let of_others =
                || self.combination(i).into_iter().enumerate().map(|(j, c)| c * c * rounding(j)).sum::<f64>();
            let is_rounding = !self.kept[i] || left <= ABOVE_ROUNDING * (rounding(i) + of_others());
            let share = (left / variance).max(DEPENDENT);
            if is_rounding || share < NEARLY {
                all.push(Collinear { unknown: i, share, is_rounding });
            }
        }
        all
    }

    /// The combination of the columns before that is nearest to column `i`, which is one of the equations.
    fn combination(&self, i: usize) -> Vec<f64> {
        let mut factors = allocation::copy(&self.row(i)[..i]);
        self.solve_upper(&mut factors);
        factors
    }

    /// Whether this unknown is one of the equations, and not 0 because it depends on those before.
    pub(crate) fn keeps(&self, i: usize) -> bool {
        self.kept[i]
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.lower[i * self.size..][..self.size]
    }

    /// Replaces the right-hand side by the solution; what was left out is 0.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        self.solve_lower(b);
        self.solve_upper(b);
    }

    /// Replaces b by the solution of Lᵀ x = b, of as many unknowns as b has.
    fn solve_upper(&self, b: &mut [f64]) {
        let mut pauses = Pauses::default();
        for i in (0..b.len()).rev() {
            let row = self.row(i);
            b[i] = if self.kept[i] { b[i] / row[i] } else { 0.0 };
            let x = b[i];
            b[..i].iter_mut().zip(row).for_each(|(b, l)| *b -= x * l);
            pauses.after(i);
        }
    }

    /// Replaces b by the solution of L x = b: then x·x is bᵀ A⁻¹ b.
    pub(crate) fn solve_lower(&self, b: &mut [f64]) {
        let mut pauses = Pauses::default();
        for i in 0..self.size {
            let row = self.row(i);
            b[i] = if self.kept[i] { (b[i] - dot(&row[..i], &b[..i])) / row[i] } else { 0.0 };
            pauses.after(i);
        }
    }
}

/// Σ a b, lane by lane, then the lanes.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}
