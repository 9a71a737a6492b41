//! Loops over the columns of matrices that lie row by row. Sums are taken in an order that no instruction set changes.

use tuples::pause::pause;

use crate::Number;

/// Lanes of a sum of products.
const LANES: usize = 16;

#[inline(always)]
pub(crate) fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [T::ZERO; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let mut sum = T::ZERO;
    for lane in lanes {
        sum += lane;
    }
    for (a, b) in a_rest.iter().zip(b_rest) {
        sum += *a * *b;
    }
    sum
}

/// `out` += a x.
#[inline(always)]
pub(crate) fn add_scaled<T: Number>(a: T, x: &[T], out: &mut [T]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out += a * *x;
    }
}

/// `out` = the sum of rows of `m`, each times a factor. `terms` are factors and numbers of rows.
#[inline(always)]
pub(crate) fn combine<T: Number>(
    terms: impl Iterator<Item = (T, usize)> + Clone,
    m: &[T],
    width: usize,
    out: &mut [T],
) {
    each_block(width, WIDEST, &mut Combine { terms, m, width, out });
}

struct Combine<'a, T, I> {
    terms: I,
    m: &'a [T],
    width: usize,
    out: &'a mut [T],
}

impl<T: Number, I: Iterator<Item = (T, usize)> + Clone> Block for Combine<'_, T, I> {
    #[inline(always)]
    fn run<const W: usize>(&mut self, from: usize) {
        let mut sums = [T::ZERO; W];
        for (factor, row) in self.terms.clone() {
            let row: &[T; W] = self.m[row * self.width + from..].first_chunk().expect("a row is as long as its width");
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += factor * *x;
            }
        }
        self.out[from..from + W].copy_from_slice(&sums);
    }
}

/// What is done with `W` columns of a matrix, as many as fit into registers.
pub(crate) trait Block {
    /// Does it with the columns from `from` on.
    fn run<const W: usize>(&mut self, from: usize);
}

/// A pause in products with matrices so wide that what is done for one row, or for a few columns, takes long.
#[inline(always)]
pub(crate) fn pause_if_wide(width: usize) {
    const WIDE: usize = 1 << 12;
    if width > WIDE {
        pause();
    }
}

/// Most columns of a block.
pub(crate) const WIDEST: usize = 64;

/// Cuts `width` columns into blocks of up to `widest` columns, of lengths that the compiler knows.
#[inline(always)]
pub(crate) fn each_block(width: usize, widest: usize, block: &mut impl Block) {
    let mut from = 0;
    macro_rules! cut {
        ($($length:literal)*) => {
            $(while $length <= widest && width - from >= $length {
                block.run::<$length>(from);
                pause_if_wide(width);
                from += $length;
            })*
        };
    }
    cut!(64 32 20 16 8 4 1);
}
