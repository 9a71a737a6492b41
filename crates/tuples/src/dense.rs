//! Rows of equal length in one aligned allocation.
//!
//! Guarantees: rows are aligned to cache lines, so no row of at most 15 features ever costs two; a row slot is prepared
//! (constant 1, zero padding) exactly once, however often the rows are refilled. Failure prevented: decoding that pays
//! for clearing memory which the next line overwrites, and a backend that aborts because `Vec` could not grow.
//!
//! The allocation is this process's own, or comes from an [`Allocator`]: then another process may see the same rows.

use crate::OutOfMemory;
use crate::buffer_pool::Recycled;
use std::fmt::Debug;
use std::rc::Rc;

/// Memory for floats that somebody else has allocated, aligned to 64 bytes. It stays where it is.
pub trait Memory: Debug {
    /// All of it.
    fn floats(&self) -> &[f32];
    /// All of it.
    fn floats_mut(&mut self) -> &mut [f32];
}

/// Anyone who gives memory for the rows of a batch.
pub trait Allocator: Debug {
    /// Zeroed memory for this many floats, or none if it is not available.
    fn allocate(&self, floats: usize) -> Option<Box<dyn Memory>>;
}

/// Floats per SIMD chunk; the stride of every row is a multiple of it.
pub const LANES: usize = 16;

/// Rows start at multiples of this many bytes, a cache line and the widest vector register.
const ALIGNMENT: usize = LANES * size_of::<f32>();

/// Row slots, of which the batch uses the first.
#[derive(Debug)]
pub(crate) struct Dense {
    pub(crate) dim: usize,
    pub(crate) stride: usize,
    floats: Floats,
    offset: usize,
    /// floats before the first row slot that was never used
    used: usize,
    /// row slots that `floats` has memory for
    pub(crate) capacity: usize,
    pub(crate) allocator: Option<Rc<dyn Allocator>>,
}

#[derive(Debug)]
enum Floats {
    /// `offset` floats of slack, then row slots
    Own(Recycled),
    /// row slots
    Foreign(Box<dyn Memory>),
}

impl Floats {
    #[inline(always)]
    fn get(&self) -> &[f32] {
        match self {
            Floats::Own(floats) => &floats.0,
            Floats::Foreign(memory) => memory.floats(),
        }
    }

    #[inline(always)]
    fn get_mut(&mut self) -> &mut [f32] {
        match self {
            Floats::Own(floats) => &mut floats.0,
            Floats::Foreign(memory) => memory.floats_mut(),
        }
    }
}

impl Dense {
    pub(crate) fn new(dim: usize) -> Dense {
        Dense {
            dim,
            stride: stride_of(dim),
            floats: Floats::Own(Recycled(Vec::new())),
            offset: 0,
            used: 0,
            capacity: 0,
            allocator: None,
        }
    }

    /// Rows that are there already, prepared and filled.
    pub(crate) fn adopt(dim: usize, memory: Box<dyn Memory>) -> Dense {
        let stride = stride_of(dim);
        let used = memory.floats().len();
        Dense {
            dim,
            stride,
            floats: Floats::Foreign(memory),
            offset: 0,
            used,
            capacity: used / stride,
            allocator: None,
        }
    }

    /// The memory that somebody else has allocated, if so.
    pub(crate) fn memory(&self) -> Option<&dyn Memory> {
        match &self.floats {
            Floats::Own(_) => None,
            Floats::Foreign(memory) => Some(memory.as_ref()),
        }
    }

    pub(crate) fn row_bytes(dim: usize) -> usize {
        stride_of(dim).saturating_mul(size_of::<f32>())
    }

    /// The first `len` rows.
    #[inline]
    pub(crate) fn rows(&self, len: usize) -> &[f32] {
        &self.floats.get()[self.offset..self.offset + len * self.stride]
    }

    /// The rows from `first` to `end`.
    #[inline]
    pub(crate) fn rows_mut(&mut self, first: usize, end: usize) -> &mut [f32] {
        &mut self.floats.get_mut()[self.offset + first * self.stride..self.offset + end * self.stride]
    }

    #[inline]
    pub(crate) fn row(&self, i: usize) -> &[f32] {
        let start = self.offset + i * self.stride;
        &self.floats.get()[start..start + self.stride]
    }

    #[inline]
    pub(crate) fn features_mut(&mut self, i: usize) -> &mut [f32] {
        let start = self.offset + i * self.stride;
        &mut self.floats.get_mut()[start..start + self.dim]
    }

    /// Overwrites row `to` with row `from`.
    #[inline]
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        let from = self.offset + from * self.stride;
        let (stride, to) = (self.stride, self.offset + to * self.stride);
        self.floats.get_mut().copy_within(from..from + stride, to);
    }

    /// Makes sure that the row slots up to `len`, for which there is memory, are prepared.
    #[inline]
    pub(crate) fn use_up_to(&mut self, len: usize) {
        if self.offset + len * self.stride > self.used {
            self.prepare(len);
        }
    }

    /// Writes padding and constant 1 into the row slots up to `len` that were never used.
    #[cold]
    fn prepare(&mut self, len: usize) {
        let (first, end) = (self.used, self.offset + len * self.stride);
        for row in self.floats.get_mut()[first..end].chunks_exact_mut(self.stride) {
            let (_, behind) = row.split_at_mut(self.dim);
            behind.fill(0.0);
            behind[0] = 1.0;
        }
        self.used = end;
    }

    /// Moves the first `len` rows to a new allocation for `wanted` rows.
    pub(crate) fn grow(&mut self, len: usize, wanted: usize, error: OutOfMemory) -> Result<(), OutOfMemory> {
        let floats = wanted.checked_mul(self.stride).and_then(|f| f.checked_add(LANES)).ok_or(error)?;
        if let Some(allocator) = &self.allocator {
            let mut memory = allocator.allocate(floats).ok_or(error)?;
            let used = len * self.stride;
            memory.floats_mut()[..used].copy_from_slice(self.rows(len));
            self.floats = Floats::Foreign(memory);
            (self.offset, self.used, self.capacity) = (0, used, wanted);
            return Ok(());
        }
        let mut moved = Recycled::of_any_values(floats).ok_or(error)?;
        // align_offset may decline to answer, by usize::MAX; then rows are merely unaligned
        let offset = moved.0.as_ptr().align_offset(ALIGNMENT).min(LANES);
        let used = offset + len * self.stride;
        moved.0[offset..used].copy_from_slice(self.rows(len));
        (self.offset, self.used) = (offset, used);
        self.capacity = (moved.0.len() - LANES) / self.stride;
        self.floats = Floats::Own(moved);
        Ok(())
    }
}

fn stride_of(dim: usize) -> usize {
    dim.saturating_add(1).checked_next_multiple_of(LANES).unwrap_or(usize::MAX)
}
