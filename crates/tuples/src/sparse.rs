//! Compressed sparse rows: per tuple the ascending indices of its non-zero features, and their values.
//!
//! Guarantees: memory for the entries alone, whatever the number of features; growing either succeeds or leaves the
//! rows as they were.

use crate::{OutOfMemory, huge_pages};

/// Sparse rows, back to back, as [`Batch::sparse_parts`](crate::Batch::sparse_parts) gives them.
#[derive(Debug, Clone, Copy)]
pub struct SparseParts<'a> {
    /// features per tuple
    pub dim: usize,
    /// where each row ends
    pub ends: &'a [usize],
    /// 0-based, ascending in each row
    pub indices: &'a [u32],
    /// one for each index
    pub values: &'a [f32],
}

impl<'a> SparseParts<'a> {
    /// Where row `i` begins.
    ///
    /// # Panics
    /// If there is no row before it.
    #[inline(always)]
    pub fn start(&self, i: usize) -> usize {
        if i == 0 { 0 } else { self.ends[i - 1] }
    }

    /// Indices and values of row `i`.
    ///
    /// # Panics
    /// If there is no such tuple.
    #[inline(always)]
    pub fn row(&self, i: usize) -> (&'a [u32], &'a [f32]) {
        let entries = self.start(i)..self.ends[i];
        (&self.indices[entries.clone()], &self.values[entries])
    }
}

/// Rows of entries, back to back.
#[derive(Debug)]
pub(crate) struct Sparse {
    /// where each row ends
    ends: Vec<usize>,
    /// those of all rows, and behind them places that were used before, or will be: nothing is made zero twice
    indices: Vec<u32>,
    /// as many
    values: Vec<f32>,
    /// 1 + the largest index of all rows so far but the last, whose indices may not be written yet
    counted: usize,
}

/// Entries that are made zero at once at least: what a cache of the first level holds of both arrays.
const ZEROED: usize = 1 << 11;

/// Reserves memory for more numbers, which come from places all over it.
fn reserve_in<T>(numbers: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let before = numbers.capacity();
    allocation::try_reserve(numbers, more)?;
    if numbers.capacity() != before {
        huge_pages::advise(numbers.spare_capacity_mut());
    }
    Ok(())
}

pub(crate) const ENTRY_BYTES: usize = size_of::<u32>() + size_of::<f32>();

impl Sparse {
    pub(crate) fn new() -> Sparse {
        Sparse { ends: Vec::new(), indices: Vec::new(), values: Vec::new(), counted: 0 }
    }

    /// 1 + the largest index so far, at least what was set.
    #[inline]
    pub(crate) fn dim(&self) -> usize {
        self.counted.max(self.last_dim())
    }

    /// Raises the dimension.
    pub(crate) fn set_dim(&mut self, dim: usize) {
        self.counted = self.counted.max(dim);
    }

    #[inline]
    fn last_dim(&self) -> usize {
        let last = self.ends.len().checked_sub(1).and_then(|last| self.row(last).0.last());
        last.map_or(0, |&index| index as usize + 1)
    }

    /// Entries in all.
    #[inline(always)]
    pub(crate) fn nnz(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Memory for this many rows and entries, in bytes.
    #[inline]
    pub(crate) fn bytes(rows: usize, entries: usize) -> usize {
        rows.saturating_mul(size_of::<usize>()).saturating_add(entries.saturating_mul(ENTRY_BYTES))
    }

    #[inline]
    fn start(&self, i: usize) -> usize {
        if i == 0 { 0 } else { self.ends[i - 1] }
    }

    /// Entries of the rows at `places`.
    #[inline]
    pub(crate) fn entries(&self, places: std::ops::Range<usize>) -> usize {
        self.start(places.end) - self.start(places.start)
    }

    #[inline]
    pub(crate) fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let entries = self.start(i)..self.ends[i];
        (&self.indices[entries.clone()], &self.values[entries])
    }

    pub(crate) fn values_mut(&mut self, i: usize) -> (&[u32], &mut [f32]) {
        let entries = self.start(i)..self.ends[i];
        (&self.indices[entries.clone()], &mut self.values[entries])
    }

    /// Appends a row of `nnz` entries, whose indices and values are whatever they are until the caller writes them.
    #[inline]
    pub(crate) fn push(&mut self, nnz: usize) -> Result<(&mut [u32], &mut [f32]), OutOfMemory> {
        self.make_room(nnz)?;
        self.counted = self.dim();
        let entries = self.nnz()..self.nnz() + nnz;
        self.ends.push(entries.end);
        Ok((&mut self.indices[entries.clone()], &mut self.values[entries]))
    }

    /// Makes room for a row of `nnz` entries that [`push`](Sparse::push) can take at once.
    #[inline]
    pub(crate) fn make_room(&mut self, nnz: usize) -> Result<(), OutOfMemory> {
        let has_room = nnz <= self.indices.len() - self.nnz() && self.ends.len() < self.ends.capacity();
        if has_room { Ok(()) } else { self.grow(nnz) }
    }

    #[cold]
    fn grow(&mut self, nnz: usize) -> Result<(), OutOfMemory> {
        self.reserve(1, nnz)?;
        let capacity = self.indices.capacity().min(self.values.capacity());
        let len = (self.nnz() + nnz).max((self.indices.len() + ZEROED).min(capacity));
        self.indices.resize(len, 0);
        self.values.resize(len, 0.0);
        Ok(())
    }

    /// Reserves memory for more rows and entries, and for as many again as there are if there is not enough.
    pub(crate) fn reserve(&mut self, rows: usize, entries: usize) -> Result<(), OutOfMemory> {
        let (all_rows, all_entries) = (self.ends.len().saturating_add(rows), self.nnz().saturating_add(entries));
        let error = OutOfMemory { bytes: Sparse::bytes(all_rows, all_entries) };
        let more = all_entries.saturating_sub(self.indices.len());
        reserve_in(&mut self.ends, rows).map_err(|_| error)?;
        reserve_in(&mut self.indices, more).map_err(|_| error)?;
        reserve_in(&mut self.values, more).map_err(|_| error)
    }

    /// Keeps the first `len` rows. The dimension stays, but for the last row, whose indices were perhaps never written.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.ends.len() {
            if len + 1 < self.ends.len() {
                self.counted = self.dim();
            }
            self.ends.truncate(len);
        }
    }

    /// Keeps no row but the dimension.
    pub(crate) fn clear(&mut self) {
        self.counted = self.dim();
        self.ends.clear();
    }

    /// All rows.
    pub(crate) fn parts(&self) -> SparseParts<'_> {
        let entries = ..self.nnz();
        let (indices, values) = (&self.indices[entries], &self.values[entries]);
        SparseParts { dim: self.dim(), ends: &self.ends, indices, values }
    }

    /// Becomes a copy of these rows.
    pub(crate) fn copy_from(&mut self, rows: &SparseParts<'_>) -> Result<(), OutOfMemory> {
        let entries = rows.indices.len();
        assert!(rows.values.len() == entries && rows.ends.last().is_none_or(|end| *end == entries), "rows of entries");
        self.truncate(0);
        self.reserve(rows.ends.len(), entries)?;
        self.indices.clear();
        self.values.clear();
        self.ends.extend_from_slice(rows.ends);
        self.indices.extend_from_slice(rows.indices);
        self.values.extend_from_slice(rows.values);
        self.counted = rows.dim;
        Ok(())
    }

    /// Keeps the rows before `first`, and behind them those at ascending `places`; they close up.
    pub(crate) fn retain_from(&mut self, first: usize, places: impl Iterator<Item = usize>) {
        self.counted = self.dim();
        let (mut rows, mut entries) = (first, self.start(first));
        for i in places {
            // where row i begins is overwritten only by the same number: when all rows before it are kept
            let (start, end) = (self.start(i), self.ends[i]);
            self.indices.copy_within(start..end, entries);
            self.values.copy_within(start..end, entries);
            entries += end - start;
            self.ends[rows] = entries;
            rows += 1;
        }
        self.ends.truncate(rows);
    }
}
