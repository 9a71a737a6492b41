//! Products of dense matrices, which lie row by row without gaps.
//!
//! Guarantees: the same bits for the same numbers on the same processor; another one may have other vector instructions and
//! add up in another sequence.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

/// `out` = A B: A has `rows` rows, and B has a row of `width` for each of its columns.
pub(super) fn times(a: &[f32], b: &[f32], rows: usize, width: usize, out: &mut [f32]) {
    let inner = b.len().checked_div(width).unwrap_or(0);
    general_mat_mul(1.0, &view(a, rows, inner), &view(b, inner, width), 0.0, &mut view_mut(out, rows, width));
}

/// `out` += Aᵀ B: both have `rows` rows, those of B are of `width`.
pub(super) fn add_transposed_times(a: &[f32], b: &[f32], rows: usize, width: usize, out: &mut [f32]) {
    let Some(columns) = a.len().checked_div(rows) else { return };
    general_mat_mul(1.0, &view(a, rows, columns).t(), &view(b, rows, width), 1.0, &mut view_mut(out, columns, width));
}

/// `out` = A Bᵀ: A has `rows` rows of `inner`, and so have those of B.
pub(super) fn times_transposed(a: &[f32], b: &[f32], rows: usize, inner: usize, out: &mut [f32]) {
    let width = b.len().checked_div(inner).unwrap_or(0);
    general_mat_mul(1.0, &view(a, rows, inner), &view(b, width, inner).t(), 0.0, &mut view_mut(out, rows, width));
}

fn view(numbers: &[f32], rows: usize, columns: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((rows, columns), numbers).expect("as many numbers as places")
}

fn view_mut(numbers: &mut [f32], rows: usize, columns: usize) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((rows, columns), numbers).expect("as many numbers as places")
}
