//! Products of dense matrices, which lie row by row without gaps.
//!
//! Guarantees: the same bits for the same numbers on the same processor; another one may have other vector instructions
//! and add up in another sequence.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use tuples::pause::pause;

/// `out` = A B: A has `rows` rows, and B has a row of `width` for each of its columns.
pub fn times(a: &[f32], b: &[f32], rows: usize, width: usize, out: &mut [f32]) {
    let inner = b.len().checked_div(width).unwrap_or(0);
    product(view(a, rows, inner), view(b, inner, width), 0.0, view_mut(out, rows, width));
}

/// `out` += Aᵀ B: both have `rows` rows, those of B are of `width`.
pub fn add_transposed_times(a: &[f32], b: &[f32], rows: usize, width: usize, out: &mut [f32]) {
    let Some(columns) = a.len().checked_div(rows) else { return };
    product(view(a, rows, columns).reversed_axes(), view(b, rows, width), 1.0, view_mut(out, columns, width));
}

/// `out` = A Bᵀ: A has `rows` rows of `inner`, and so have those of B.
pub fn times_transposed(a: &[f32], b: &[f32], rows: usize, inner: usize, out: &mut [f32]) {
    let width = b.len().checked_div(inner).unwrap_or(0);
    product(view(a, rows, inner), view(b, width, inner).reversed_axes(), 0.0, view_mut(out, rows, width));
}

/// Multiplications between two pauses, unless the matrices have few rows and columns.
const AT_ONCE: usize = 1 << 24;

/// Large matrices are cut at multiples of this: of the rows and columns that are added up together, so that the sums
/// are what they would be without a cut.
const CUT: usize = 1 << 10;

/// `out` = A B + `share` times `out`.
fn product(a: ArrayView2<f32>, b: ArrayView2<f32>, share: f32, out: ArrayViewMut2<f32>) {
    product_in_parts(AT_ONCE, a, b, share, out);
}

fn product_in_parts(at_once: usize, a: ArrayView2<f32>, b: ArrayView2<f32>, share: f32, mut out: ArrayViewMut2<f32>) {
    let (rows, inner, width) = (a.nrows(), a.ncols(), b.ncols());
    let most = rows.max(inner).max(width);
    if rows.saturating_mul(inner).saturating_mul(width) <= at_once || most <= CUT {
        general_mat_mul(1.0, &a, &b, share, &mut out);
        pause();
        return;
    }
    let half = (most / 2).next_multiple_of(CUT);
    if most == inner {
        let ((a, a_rest), (b, b_rest)) = (a.split_at(Axis(1), half), b.split_at(Axis(0), half));
        product_in_parts(at_once, a, b, share, out.view_mut());
        product_in_parts(at_once, a_rest, b_rest, 1.0, out);
    } else if most == width {
        let ((b, b_rest), (out, out_rest)) = (b.split_at(Axis(1), half), out.split_at(Axis(1), half));
        product_in_parts(at_once, a, b, share, out);
        product_in_parts(at_once, a, b_rest, share, out_rest);
    } else {
        let ((a, a_rest), (out, out_rest)) = (a.split_at(Axis(0), half), out.split_at(Axis(0), half));
        product_in_parts(at_once, a, b, share, out);
        product_in_parts(at_once, a_rest, b, share, out_rest);
    }
}

fn view(numbers: &[f32], rows: usize, columns: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((rows, columns), numbers).expect("as many numbers as places")
}

fn view_mut(numbers: &mut [f32], rows: usize, columns: usize) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((rows, columns), numbers).expect("as many numbers as places")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_that_is_cut_has_the_bits_of_one_that_is_not() {
        let numbers = |n: usize| (0..n).map(|i| ((i * 7919) % 1013) as f32 / 512.0 - 1.0).collect::<Vec<f32>>();
        // each of the three is the longest once, and not a multiple of anything
        for (rows, inner, width) in [(16, 5, 20_003), (3, 40_003, 9), (20_003, 17, 5), (1050, 1300, 17)] {
            let (a, b) = (numbers(rows * inner), numbers(inner * width));
            let (a, b) = (view(&a, rows, inner), view(&b, inner, width));
            for share in [0.0, 1.0] {
                let (mut cut, mut whole) = (numbers(rows * width), numbers(rows * width));
                product_in_parts(1 << 14, a, b, share, view_mut(&mut cut, rows, width));
                general_mat_mul(1.0, &a, &b, share, &mut view_mut(&mut whole, rows, width));
                let differing = cut.iter().zip(&whole).filter(|(x, y)| x.to_bits() != y.to_bits()).count();
                assert_eq!(differing, 0, "{rows}x{inner} times {inner}x{width}");
            }
        }
    }
}
