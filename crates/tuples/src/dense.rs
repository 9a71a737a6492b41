//! Rows of equal length in one aligned allocation.
//!
//! Guarantees: rows are aligned to cache lines, so no row of at most 15 features ever costs two; a row slot is prepared
//! (constant 1, zero padding) exactly once, however often the rows are refilled. Failure prevented: decoding that pays
//! for clearing memory which the next line overwrites, and a backend that aborts because `Vec` could not grow.

use crate::OutOfMemory;

/// Floats per SIMD chunk; the stride of every row is a multiple of it.
pub const LANES: usize = 16;

/// Rows start at multiples of this many bytes, a cache line and the widest vector register.
const ALIGNMENT: usize = LANES * size_of::<f32>();

/// Row slots, of which the batch uses the first.
#[derive(Debug)]
pub(crate) struct Dense {
    pub(crate) dim: usize,
    pub(crate) stride: usize,
    /// `offset` floats of slack, then every row slot that was ever used; never longer than its first allocation, because
    /// moving it would move the alignment
    floats: Vec<f32>,
    offset: usize,
    /// row slots that `floats` has memory for
    pub(crate) capacity: usize,
}

impl Dense {
    pub(crate) fn new(dim: usize) -> Dense {
        Dense { dim, stride: stride_of(dim), floats: Vec::new(), offset: 0, capacity: 0 }
    }

    /// Bytes of one row.
    pub(crate) fn row_bytes(dim: usize) -> usize {
        stride_of(dim).saturating_mul(size_of::<f32>())
    }

    /// The first `len` rows.
    #[inline]
    pub(crate) fn rows(&self, len: usize) -> &[f32] {
        &self.floats[self.offset..self.offset + len * self.stride]
    }

    /// The rows from `first` to `end`.
    #[inline]
    pub(crate) fn rows_mut(&mut self, first: usize, end: usize) -> &mut [f32] {
        &mut self.floats[self.offset + first * self.stride..self.offset + end * self.stride]
    }

    #[inline]
    pub(crate) fn row(&self, i: usize) -> &[f32] {
        let start = self.offset + i * self.stride;
        &self.floats[start..start + self.stride]
    }

    #[inline]
    pub(crate) fn features_mut(&mut self, i: usize) -> &mut [f32] {
        let start = self.offset + i * self.stride;
        &mut self.floats[start..start + self.dim]
    }

    /// Overwrites row `to` with row `from`.
    #[inline]
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        let from = self.offset + from * self.stride;
        self.floats.copy_within(from..from + self.stride, self.offset + to * self.stride);
    }

    /// Makes sure that the row slots up to `len`, for which there is memory, are prepared.
    #[inline]
    pub(crate) fn use_up_to(&mut self, len: usize) {
        if self.offset + len * self.stride > self.floats.len() {
            self.prepare(len);
        }
    }

    /// Writes padding and constant 1 into the row slots up to `len` that were never used.
    #[cold]
    fn prepare(&mut self, len: usize) {
        let first = self.floats.len();
        self.floats.resize(self.offset + len * self.stride, 0.0);
        for row in self.floats[first..].chunks_exact_mut(self.stride) {
            row[self.dim] = 1.0;
        }
    }

    /// Moves the first `len` rows to a new allocation for `wanted` rows.
    pub(crate) fn grow(&mut self, len: usize, wanted: usize, error: OutOfMemory) -> Result<(), OutOfMemory> {
        let floats = wanted.checked_mul(self.stride).and_then(|f| f.checked_add(LANES)).ok_or(error)?;
        let mut moved: Vec<f32> = Vec::new();
        moved.try_reserve_exact(floats).map_err(|_| error)?;
        // align_offset may decline to answer, by usize::MAX; then rows are merely unaligned
        let offset = moved.as_ptr().align_offset(ALIGNMENT).min(LANES);
        moved.resize(offset, 0.0);
        moved.extend_from_slice(self.rows(len));
        self.floats = moved;
        self.offset = offset;
        self.capacity = wanted;
        Ok(())
    }
}

fn stride_of(dim: usize) -> usize {
    dim.saturating_add(1).checked_next_multiple_of(LANES).unwrap_or(usize::MAX)
}
