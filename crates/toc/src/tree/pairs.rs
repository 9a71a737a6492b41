//! Columns and values of pairs.

use crate::Number;

#[derive(Debug)]
pub(super) struct Pairs<T> {
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<T>,
}

impl<T: Number> Pairs<T> {
    pub(super) fn new() -> Pairs<T> {
        Pairs { columns: Vec::new(), values: Vec::new() }
    }

    pub(super) fn zeros(n: usize) -> Pairs<T> {
        Pairs { columns: allocation::zeros(n), values: allocation::filled(T::ZERO, n) }
    }

    pub(super) fn set(&mut self, place: usize, (column, value): (u32, T)) {
        self.columns[place] = column;
        self.values[place] = value;
    }

    pub(super) fn push(&mut self, (column, value): (u32, T)) {
        allocation::push(&mut self.columns, column);
        allocation::push(&mut self.values, value);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.columns.capacity() * 4 + self.values.capacity() * size_of::<T>()
    }

    #[inline(always)]
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (T, usize)> + ExactSizeIterator + Clone {
        self.values.iter().zip(&self.columns).map(|(value, column)| (*value, *column as usize))
    }

    #[inline(always)]
    pub(super) fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = (T, usize)> + Clone {
        let columns = &self.columns[range.clone()];
        self.values[range].iter().zip(columns).map(|(value, column)| (*value, *column as usize))
    }

    pub(super) fn shrink(&mut self) {
        self.columns.shrink_to_fit();
        self.values.shrink_to_fit();
    }
}
