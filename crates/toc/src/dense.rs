//! DEN: every entry, row by row.

use crate::bytes::Reader;
use crate::kernels::{add_scaled, combine, dot, pause_if_wide};
use crate::operations::Form;
use crate::stored;
use crate::values::{Summary, Values};
use crate::{Encoding, Error, Info, Number, Rows, limits};

/// All entries of a matrix.
#[derive(Debug)]
pub(crate) struct Dense<T> {
    rows: usize,
    columns: usize,
    values: Vec<T>,
}

/// All entries of `rows`, row by row.
pub(crate) fn all_entries(rows: &Rows) -> Result<Vec<f64>, Error> {
    limits::check(rows.len(), rows.columns(), rows.entries())?;
    let mut all = allocation::zeros(rows.entries() as usize);
    rows.write_dense(&mut all);
    Ok(all)
}

/// The bytes of DEN.
pub(crate) fn encode(rows: &Rows) -> Result<Vec<u8>, Error> {
    let all = all_entries(rows)?;
    let kind = Summary::from_entries(rows).kind();
    let mut out = stored::begin(Encoding::Den, rows.len(), rows.columns(), kind);
    kind.put(&mut out, &all);
    Ok(stored::seal(out))
}

impl<T: Number> Dense<T> {
    /// What follows the header of DEN.
    pub(crate) fn read(info: &Info, mut reader: Reader<'_>) -> Result<Dense<T>, Error> {
        let values = Values::read(info, &mut reader)?;
        reader.end()?;
        Dense::from_values(info, values)
    }

    /// Of all entries.
    pub(crate) fn from_values(info: &Info, values: Values<'_>) -> Result<Dense<T>, Error> {
        if values.len() as u64 != info.entries() {
            return Err(Error::Malformed("not a value for each entry"));
        }
        Ok(Dense { rows: info.rows, columns: info.columns, values: values.to_vec() })
    }

    #[inline(always)]
    fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// All entries.
    pub(crate) fn into_values(self) -> Vec<T> {
        self.values
    }
}

impl<T: Number> Form<T> for Dense<T> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn heap_bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>()
    }

    #[inline(always)]
    fn times_vector(&self, v: &[T], out: &mut [T], _: &mut Vec<T>) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = dot(self.row(i), v);
        }
    }

    #[inline(always)]
    fn vector_times(&self, v: &[T], out: &mut [T], _: &mut Vec<T>) {
        for (i, v) in v.iter().enumerate() {
            add_scaled(*v, self.row(i), out);
        }
    }

    #[inline(always)]
    fn times_matrix(&self, m: &[T], width: usize, out: &mut [T], _: &mut Vec<T>) {
        for i in 0..self.rows {
            let terms = self.row(i).iter().enumerate().map(|(j, a)| (*a, j));
            combine(terms, m, width, &mut out[i * width..(i + 1) * width]);
        }
    }

    #[inline(always)]
    fn transposed_times_matrix(&self, m: &[T], width: usize, out: &mut [T], _: &mut Vec<T>) {
        for i in 0..self.rows {
            let m = &m[i * width..(i + 1) * width];
            for (j, a) in self.row(i).iter().enumerate() {
                add_scaled(*a, m, &mut out[j * width..(j + 1) * width]);
                pause_if_wide(width);
            }
        }
    }

    fn all_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }

    fn get(&self, i: usize, j: usize) -> T {
        self.row(i)[j]
    }

    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T)) {
        for (j, a) in self.row(i).iter().enumerate() {
            if a.to_f64().to_bits() != 0 {
                f(j as u32, *a);
            }
        }
    }
}
