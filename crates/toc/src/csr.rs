//! CSR: column and value of every non-zero; and what it shares with CVI, which puts an index in the place of the value.

use crate::bytes::{Layout, Packed, Reader, put_packed};
use crate::kernels::{add_scaled, combine};
use crate::operations::Form;
use crate::stored;
use crate::values::{Summary, Values};
use crate::{Encoding, Error, Info, Number, Rows};

/// Where the entries of each row are, and their columns.
#[derive(Debug)]
pub(crate) struct Places {
    starts: Vec<u32>,
    columns: Vec<u32>,
}

/// Appends the lengths of rows and the columns of entries.
pub(crate) fn put_places(out: &mut Vec<u8>, rows: &Rows, layout: Layout) {
    let lengths = || rows.iter().map(|(indices, _)| indices.len() as u32);
    put_packed(out, layout.width(lengths().max().unwrap_or(0)), lengths());
    let width = layout.width(rows.indices().iter().copied().max().unwrap_or(0));
    put_packed(out, width, rows.indices().iter().copied());
}

impl Places {
    /// What [`put_places`] appended.
    pub(crate) fn read(info: &Info, reader: &mut Reader<'_>) -> Result<Places, Error> {
        let starts = reader.packed(info.rows)?.starts()?;
        let packed = reader.packed(starts[info.rows] as usize)?;
        check_backed(&packed, info.rows)?;
        let columns = packed.below(info.columns as u64, "a column that does not exist")?;
        let rows = starts.windows(2).map(|ends| &columns[ends[0] as usize..ends[1] as usize]);
        if rows.into_iter().any(|row| !row.is_sorted_by(|before, column| before < column)) {
            return Err(Error::Malformed("columns of a row that are not ascending"));
        }
        Ok(Places { starts, columns })
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Memory.
    pub(crate) fn bytes(&self) -> usize {
        (self.starts.capacity() + self.columns.capacity()) * 4
    }

    /// Which entries are those of row `i`.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> std::ops::Range<usize> {
        self.starts[i] as usize..self.starts[i + 1] as usize
    }

    #[inline(always)]
    pub(crate) fn columns(&self, row: std::ops::Range<usize>) -> &[u32] {
        &self.columns[row]
    }

    /// Takes it apart for [`Rows`].
    pub(crate) fn into_parts(self) -> (Vec<usize>, Vec<u32>) {
        (allocation::collect(self.starts.iter().map(|start| *start as usize)), self.columns)
    }
}

/// That integers of no bits are not more than rows, because each row holds a column once: nothing else bounds them.
pub(crate) fn check_backed(packed: &Packed<'_>, rows: usize) -> Result<(), Error> {
    if packed.width() == 0 && packed.len() > rows { Err(Error::Malformed("rows are too long")) } else { Ok(()) }
}

/// The bytes of CSR.
pub(crate) fn encode(rows: &Rows, layout: Layout) -> Vec<u8> {
    let kind = Summary::from_values(rows.values().iter().copied()).kind();
    let mut out = stored::begin(Encoding::Csr, rows.len(), rows.columns(), kind);
    kind.put(&mut out, rows.values());
    put_places(&mut out, rows, layout);
    stored::seal(out)
}

/// Columns and values.
#[derive(Debug)]
pub(crate) struct Csr<T> {
    rows: usize,
    columns: usize,
    places: Places,
    values: Vec<T>,
}

impl<T: Number> Csr<T> {
    /// What follows the header of CSR.
    pub(crate) fn read(info: &Info, mut reader: Reader<'_>) -> Result<Csr<T>, Error> {
        let values = Values::read(info, &mut reader)?;
        let places = Places::read(info, &mut reader)?;
        reader.end()?;
        if places.len() != values.len() {
            return Err(Error::Malformed("not a value for each column"));
        }
        Ok(Csr { rows: info.rows, columns: info.columns, places, values: values.to_vec() })
    }

    /// Of entries of which each row's columns ascend.
    pub(crate) fn from_parts(info: &Info, starts: &[usize], columns: Vec<u32>, values: Vec<T>) -> Csr<T> {
        let starts = allocation::collect(starts.iter().map(|start| *start as u32));
        Csr { rows: info.rows, columns: info.columns, places: Places { starts, columns }, values }
    }

    pub(crate) fn into_parts(self) -> (Places, Vec<T>) {
        (self.places, self.values)
    }

    #[inline(always)]
    fn row(&self, i: usize) -> impl Iterator<Item = (T, usize)> + Clone {
        let row = self.places.row(i);
        let columns = self.places.columns(row.clone());
        self.values[row].iter().zip(columns).map(|(value, column)| (*value, *column as usize))
    }
}

/// What is the same for all that can list the entries of a row as pairs of value and column in `row`.
macro_rules! products_by_rows {
    () => {
        fn rows(&self) -> usize {
            self.rows
        }

        fn columns(&self) -> usize {
            self.columns
        }

        #[inline(always)]
        fn times_vector(&self, v: &[T], out: &mut [T], _: &mut Vec<T>) {
            for (i, out) in out.iter_mut().enumerate() {
                let mut sum = T::ZERO;
                for (value, column) in self.row(i) {
                    sum += value * v[column];
                }
                *out = sum;
            }
        }

        #[inline(always)]
        fn vector_times(&self, v: &[T], out: &mut [T], _: &mut Vec<T>) {
            for (i, v) in v.iter().enumerate() {
                for (value, column) in self.row(i) {
                    out[column] += value * *v;
                }
            }
        }

        #[inline(always)]
        fn times_matrix(&self, m: &[T], width: usize, out: &mut [T], _: &mut Vec<T>) {
            for i in 0..self.rows {
                combine(self.row(i), m, width, &mut out[i * width..(i + 1) * width]);
            }
        }

        #[inline(always)]
        fn transposed_times_matrix(&self, m: &[T], width: usize, out: &mut [T], _: &mut Vec<T>) {
            for i in 0..self.rows {
                let m = &m[i * width..(i + 1) * width];
                for (value, column) in self.row(i) {
                    add_scaled(value, m, &mut out[column * width..(column + 1) * width]);
                    $crate::kernels::pause_if_wide(width);
                }
            }
        }
    };
}
pub(crate) use products_by_rows;

impl<T: Number> Form<T> for Csr<T> {
    products_by_rows!();

    fn heap_bytes(&self) -> usize {
        self.places.bytes() + self.values.capacity() * size_of::<T>()
    }

    fn all_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }

    fn get(&self, i: usize, j: usize) -> T {
        let row = self.places.row(i);
        let found = self.places.columns(row.clone()).binary_search(&(j as u32));
        found.map_or(T::ZERO, |place| self.values[row.start + place])
    }

    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T)) {
        self.row(i)
            .filter(|(value, _)| value.to_f64().to_bits() != 0)
            .for_each(|(value, column)| f(column as u32, value));
    }
}
