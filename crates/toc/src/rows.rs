//! A mini-batch before it is compressed and after it was decompressed.

use crate::{Error, limits};

/// The features of a mini-batch, row by row, without the zeros.
///
/// An entry is a zero if its bits are those of +0.0; -0.0 and NaN are kept. Two `Rows` are equal if their entries have
/// the same bits.
#[derive(Debug, Clone)]
pub struct Rows {
    columns: usize,
    /// Where each row begins in the other two, and where the last ends.
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl Rows {
    /// No rows yet, of this many columns.
    pub fn new(columns: usize) -> Rows {
        Rows { columns, starts: vec![0], indices: Vec::new(), values: Vec::new() }
    }

    /// Rows of which it is known that `starts` begins with 0 and ascends to the number of entries, and that the
    /// indices of each row ascend strictly.
    pub(crate) fn from_parts(columns: usize, starts: Vec<usize>, indices: Vec<u32>, values: Vec<f64>) -> Rows {
        debug_assert!(starts.last() == Some(&indices.len()) && indices.len() == values.len());
        Rows { columns, starts, indices, values }
    }

    /// Takes out zeros, which operations on the values of a compressed form can leave.
    pub(crate) fn without_zeros(mut self) -> Rows {
        if self.values.iter().all(|value| value.to_bits() != 0) {
            return self;
        }
        let mut kept = Rows::new(self.columns);
        allocation::reserve(&mut kept.starts, self.starts.len());
        let mut end = 0;
        for (i, (index, value)) in self.indices.drain(..).zip(self.values.drain(..)).enumerate() {
            while i == self.starts[kept.starts.len()] {
                kept.starts.push(end);
            }
            if value.to_bits() != 0 {
                allocation::push(&mut kept.indices, index);
                allocation::push(&mut kept.values, value);
                end += 1;
            }
        }
        kept.starts.resize(self.starts.len(), end);
        kept
    }

    /// Adds a row of a number for each column.
    ///
    /// # Errors
    /// If there are more or fewer numbers, or too many rows or columns.
    pub fn push_dense(&mut self, row: &[f64]) -> Result<(), Error> {
        if row.len() != self.columns {
            return Err(Error::Length { entries: row.len(), columns: self.columns });
        }
        self.check_room()?;
        for (index, &value) in row.iter().enumerate() {
            if value.to_bits() != 0 {
                allocation::push(&mut self.indices, index as u32);
                allocation::push(&mut self.values, value);
            }
        }
        allocation::push(&mut self.starts, self.indices.len());
        Ok(())
    }

    /// Adds a row of numbers at `indices`, which count from 0 and ascend strictly; it is 0 elsewhere.
    ///
    /// # Errors
    /// If the indices do not ascend or are too high, not as many as the values, or there are too many rows or columns.
    pub fn push_sparse(&mut self, indices: &[u32], values: &[f64]) -> Result<(), Error> {
        if indices.len() != values.len() {
            return Err(Error::Pairs { indices: indices.len(), values: values.len() });
        }
        if let Some(pair) = indices.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::Order { index: pair[1] });
        }
        if let Some(&index) = indices.last().filter(|index| **index as usize >= self.columns) {
            return Err(Error::Index { index, columns: self.columns });
        }
        self.check_room()?;
        for (&index, &value) in indices.iter().zip(values) {
            if value.to_bits() != 0 {
                allocation::push(&mut self.indices, index);
                allocation::push(&mut self.values, value);
            }
        }
        allocation::push(&mut self.starts, self.indices.len());
        Ok(())
    }

    fn check_room(&self) -> Result<(), Error> {
        limits::check(self.len() + 1, self.columns, 0)
    }

    /// Forgets the rows and keeps the memory.
    pub fn clear(&mut self) {
        self.starts.truncate(1);
        self.indices.clear();
        self.values.clear();
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many entries are not zero.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// How many entries there are, zeros included.
    pub fn entries(&self) -> u64 {
        self.len() as u64 * self.columns as u64
    }

    /// How many entries are zero.
    pub(crate) fn zeros(&self) -> usize {
        self.entries() as usize - self.nnz()
    }

    /// Columns, from 0, and values of a row's entries that are not zero.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u32], &[f64])> {
        (0..self.len()).map(|i| self.row(i))
    }

    /// The columns of all rows, one after the other.
    pub(crate) fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The values of all rows, one after the other.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Writes all entries, zeros included, row by row.
    ///
    /// # Panics
    /// If `dense` is not as long as there are entries.
    pub fn write_dense(&self, dense: &mut [f64]) {
        assert_eq!(dense.len() as u64, self.entries());
        dense.fill(0.0);
        for (i, (indices, values)) in self.iter().enumerate() {
            let row = &mut dense[i * self.columns..(i + 1) * self.columns];
            for (&index, &value) in indices.iter().zip(values) {
                row[index as usize] = value;
            }
        }
    }
}

impl PartialEq for Rows {
    fn eq(&self, other: &Rows) -> bool {
        let bits = |rows: &Rows, i: usize| rows.values[i].to_bits();
        self.columns == other.columns
            && self.starts == other.starts
            && self.indices == other.indices
            && (0..self.values.len()).all(|i| bits(self, i) == bits(other, i))
    }
}

impl Eq for Rows {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_positive_zero_is_left_out() {
        let mut rows = Rows::new(4);
        rows.push_dense(&[0.0, -0.0, f64::NAN, 1.5]).unwrap();
        rows.push_sparse(&[0, 3], &[0.0, 2.0]).unwrap();
        rows.push_sparse(&[], &[]).unwrap();
        assert_eq!(rows.row(0).0, [1, 2, 3]);
        assert_eq!(rows.row(1), (&[3u32][..], &[2.0][..]));
        assert_eq!(rows.row(2).0, [0u32; 0]);
        assert_eq!((rows.len(), rows.columns(), rows.nnz()), (3, 4, 4));
        rows.clear();
        assert!(rows.is_empty() && rows.nnz() == 0);
    }

    #[test]
    fn a_row_that_does_not_fit_is_an_error_and_adds_nothing() {
        let mut rows = Rows::new(3);
        assert_eq!(rows.push_dense(&[1.0]), Err(Error::Length { entries: 1, columns: 3 }));
        assert_eq!(rows.push_sparse(&[0, 1], &[1.0]), Err(Error::Pairs { indices: 2, values: 1 }));
        assert_eq!(rows.push_sparse(&[1, 1], &[1.0, 1.0]), Err(Error::Order { index: 1 }));
        assert_eq!(rows.push_sparse(&[1, 3], &[1.0, 1.0]), Err(Error::Index { index: 3, columns: 3 }));
        assert_eq!(rows, Rows::new(3));
    }
}
