//! The port between those who keep the features of a mini-batch in a form of their own, such as a compressed one, and
//! those who learn from it by products of matrices and never see an entry.

use std::fmt::Debug;
use std::ops::Deref;

/// The features of a mini-batch: a matrix A with a row for each tuple and a column for each feature.
///
/// Other matrices lie row by row, without gaps. `scratch` is memory that callers lend, to be used again in the next
/// call: what is in it means nothing.
pub trait Matrix: Debug {
    /// Rows, one for each tuple.
    fn rows(&self) -> usize;

    /// Columns, one for each feature.
    fn columns(&self) -> usize;

    /// Memory that it takes, in bytes.
    fn bytes(&self) -> usize;

    /// `out` = A v: a number for each row, of a number for each column.
    ///
    /// # Panics
    /// If `v` is not as long as there are columns or `out` not as there are rows.
    fn times_vector(&self, v: &[f32], out: &mut [f32], scratch: &mut Vec<f32>);

    /// `out` += v A: a number for each column, of a number for each row.
    ///
    /// # Panics
    /// If `v` is not as long as there are rows or `out` not as there are columns.
    fn vector_times(&self, v: &[f32], out: &mut [f32], scratch: &mut Vec<f32>);

    /// `out` = A M: M has a row of `width` numbers for each column of A, `out` for each row of A.
    ///
    /// # Panics
    /// If `m` or `out` are not as long as that.
    fn times_matrix(&self, m: &[f32], width: usize, out: &mut [f32], scratch: &mut Vec<f32>);

    /// `out` += Aᵀ M: M has a row of `width` numbers for each row of A, `out` for each column of A. With the transposes
    /// of both this is the M·A of the TOC paper.
    ///
    /// # Panics
    /// If `m` or `out` are not as long as that.
    fn transposed_times_matrix(&self, m: &[f32], width: usize, out: &mut [f32], scratch: &mut Vec<f32>);
}

/// The features of a mini-batch in a form that takes less memory than a [`Matrix`], and is opened to be computed with.
pub trait PackedMatrix: Debug {
    /// Memory that it takes, in bytes.
    fn bytes(&self) -> usize;

    /// The matrix. It was opened before, when it was first read, so nothing can be wrong with it.
    fn open(&self) -> Box<dyn Matrix>;
}

/// A matrix as long as it is computed with.
#[derive(Debug)]
pub enum Opened<'a> {
    /// It stays open.
    Kept(&'a (dyn Matrix + 'static)),
    /// It was opened for this.
    Now(Box<dyn Matrix>),
}

impl Deref for Opened<'_> {
    type Target = dyn Matrix;

    fn deref(&self) -> &(dyn Matrix + 'static) {
        match self {
            Opened::Kept(matrix) => *matrix,
            Opened::Now(matrix) => &**matrix,
        }
    }
}
