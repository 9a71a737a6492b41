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
}

/// What is left of a column's diagonal element, as a share of it, where the column is a combination of others: features
/// are rounded to f32, products and sums to f64.
const DEPENDENT: f64 = 1e-11;

/// Sums that a scalar product is made of, for the compiler to compute side by side.
const LANES: usize = 8;

impl Cholesky {
    /// Room for so many unknowns.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub(crate) fn new(size: usize) -> Result<Cholesky, OutOfMemory> {
        Ok(Cholesky {
            size,
            lower: allocation::try_zeros(size.saturating_mul(size))?,
            kept: allocation::try_zeros(size)?,
        })
    }

    /// Takes the matrix whose element (i, j), j ≤ i, is `element(i, j)`.
    pub(crate) fn factor(&mut self, element: impl Fn(usize, usize) -> f64) {
        let Cholesky { size, ref mut lower, ref mut kept } = *self;
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
            kept[i] = left > DEPENDENT * diagonal;
            if kept[i] {
                row[i] = left.sqrt();
            } else {
                row.fill(0.0);
            }
        }
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
        let mut pauses = Pauses::default();
        for i in (0..self.size).rev() {
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
