//! What can be computed with a compressed mini-batch, and the one place where shapes are checked and vector
//! instructions chosen.

use std::fmt::Debug;

use simd::{Kernel, Level, Simd};

use crate::Number;

/// A mini-batch in the form that it is worked on: a matrix A.
///
/// Other matrices lie row by row, without gaps. `scratch` is memory that callers lend, to be used again in the next
/// call: what is in it means nothing. Results depend neither on it nor on the instructions that the processor has.
pub trait Operations<T: Number>: Debug {
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
    fn times_vector(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>);

    /// `out` += v A: a number for each column, of a number for each row.
    ///
    /// # Panics
    /// If `v` is not as long as there are rows or `out` not as there are columns.
    fn vector_times(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>);

    /// `out` = A M: M has a row of `width` numbers for each column of A, `out` for each row of A.
    ///
    /// # Panics
    /// If `m` or `out` are not as long as that.
    fn times_matrix(&self, m: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>);

    /// `out` += Aᵀ M: M has a row of `width` numbers for each row of A, `out` for each column of A. With the transposes
    /// of both this is the M·A of the paper.
    ///
    /// # Panics
    /// If `m` or `out` are not as long as that.
    fn transposed_times_matrix(&self, m: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>);

    /// The entry of row `i` and column `j`.
    ///
    /// # Panics
    /// If there is no such row or column.
    fn get(&self, i: usize, j: usize) -> T;

    /// Hands over column and value of each entry of row `i` that is not zero, in ascending order of columns.
    ///
    /// # Panics
    /// If there is no such row.
    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T));
}

/// The same, by those who may rely on shapes that fit. All that takes time is `#[inline(always)]`, so that it is
/// compiled for the best instructions that there are.
pub(crate) trait Form<T: Number>: Debug {
    fn rows(&self) -> usize;
    fn columns(&self) -> usize;
    /// Memory beyond the form itself.
    fn heap_bytes(&self) -> usize;
    /// Makes products faster and the form smaller, where that takes time of its own: for a form that stays.
    fn compact(&mut self) {}
    /// Whether no stored value is infinite or NaN. Of values that no entry has it may say so, too.
    fn all_finite(&self) -> bool;
    fn times_vector(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>);
    fn vector_times(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>);
    fn times_matrix(&self, m: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>);
    fn transposed_times_matrix(&self, m: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>);
    fn get(&self, i: usize, j: usize) -> T;
    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T));
}

/// A form with its shapes checked, in the instructions of this processor.
#[derive(Debug)]
pub(crate) struct Checked<F> {
    form: F,
    level: Level,
}

impl<F> Checked<F> {
    pub(crate) fn new(form: F) -> Checked<F> {
        Checked { form, level: Level::detect() }
    }
}

/// Which product, with a vector or matrix `m` of `width` columns.
#[derive(Debug, Clone, Copy)]
enum Product {
    TimesVector,
    VectorTimes,
    TimesMatrix,
    TransposedTimesMatrix,
}

/// A call of one of them. A closure would not do in its place: nothing forces the compiler to inline that into the
/// function that has the vector instructions, and then its loops have none.
struct Call<'a, T, F> {
    form: &'a F,
    product: Product,
    m: &'a [T],
    width: usize,
    out: &'a mut [T],
    scratch: &'a mut Vec<T>,
}

impl<T: Number, F: Form<T>> Kernel for Call<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Call { form, product, m, width, out, scratch } = self;
        match product {
            Product::TimesVector => form.times_vector(m, out, scratch),
            Product::VectorTimes => form.vector_times(m, out, scratch),
            Product::TimesMatrix => form.times_matrix(m, width, out, scratch),
            Product::TransposedTimesMatrix => form.transposed_times_matrix(m, width, out, scratch),
        }
    }
}

impl<F> Checked<F> {
    fn call<T: Number>(&self, product: Product, m: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>)
    where
        F: Form<T>,
    {
        self.level.run_narrow(Call { form: &self.form, product, m, width, out, scratch });
    }
}

/// Numbers of a matrix of `n` rows.
fn rows_of(n: usize, width: usize) -> usize {
    n.checked_mul(width).expect("a matrix is not larger than memory")
}

macro_rules! checked_products {
    ($T:ty) => {
        fn rows(&self) -> usize {
            self.form.rows()
        }

        fn columns(&self) -> usize {
            self.form.columns()
        }

        fn bytes(&self) -> usize {
            size_of_val(self) + self.form.heap_bytes()
        }

        fn times_vector(&self, v: &[$T], out: &mut [$T], scratch: &mut Vec<$T>) {
            assert_eq!((v.len(), out.len()), (self.form.columns(), self.form.rows()));
            self.call(Product::TimesVector, v, 1, out, scratch);
        }

        fn vector_times(&self, v: &[$T], out: &mut [$T], scratch: &mut Vec<$T>) {
            assert_eq!((v.len(), out.len()), (self.form.rows(), self.form.columns()));
            self.call(Product::VectorTimes, v, 1, out, scratch);
        }

        fn times_matrix(&self, m: &[$T], width: usize, out: &mut [$T], scratch: &mut Vec<$T>) {
            assert_eq!(m.len(), rows_of(self.form.columns(), width));
            assert_eq!(out.len(), rows_of(self.form.rows(), width));
            self.call(Product::TimesMatrix, m, width, out, scratch);
        }

        fn transposed_times_matrix(&self, m: &[$T], width: usize, out: &mut [$T], scratch: &mut Vec<$T>) {
            assert_eq!(m.len(), rows_of(self.form.rows(), width));
            assert_eq!(out.len(), rows_of(self.form.columns(), width));
            self.call(Product::TransposedTimesMatrix, m, width, out, scratch);
        }
    };
}

impl<T: Number, F: Form<T>> Operations<T> for Checked<F> {
    checked_products!(T);

    fn get(&self, i: usize, j: usize) -> T {
        assert!(i < self.form.rows() && j < self.form.columns());
        self.form.get(i, j)
    }

    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T)) {
        assert!(i < self.form.rows());
        self.form.each_entry_of_row(i, f);
    }
}

impl<F: Form<f32>> tuples::Matrix for Checked<F> {
    checked_products!(f32);
}
