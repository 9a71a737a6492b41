//! Memory of a training.

use tuples::pause::{self, PER_PAUSE, pause};
use tuples::{LANES, OutOfMemory};

/// Floats that begin at a cache line.
#[derive(Debug)]
pub(super) struct Memory {
    floats: Vec<f32>,
    offset: usize,
}

impl Memory {
    pub(super) fn zeros(length: usize) -> Result<Memory, OutOfMemory> {
        let mut floats: Vec<f32> = Vec::new();
        allocation::try_reserve_exact(&mut floats, length.saturating_add(LANES))?;
        tuples::advise_huge_pages(floats.spare_capacity_mut());
        // align_offset may decline to answer, by usize::MAX; then rows are merely unaligned
        let offset = floats.as_ptr().align_offset(LANES * size_of::<f32>()).min(LANES);
        // memory that no one has touched yet comes slowly
        while floats.len() < offset + length {
            pause();
            floats.resize((floats.len() + PER_PAUSE).min(offset + length), 0.0);
        }
        Ok(Memory { floats, offset })
    }

    pub(super) fn try_clone(&self) -> Result<Memory, OutOfMemory> {
        let mut copy = Memory::zeros(self.as_ref().len())?;
        let parts = pause::parts_mut(copy.as_mut()).zip(self.as_ref().chunks(PER_PAUSE));
        parts.for_each(|(to, from)| to.copy_from_slice(from));
        Ok(copy)
    }
}

impl AsRef<[f32]> for Memory {
    fn as_ref(&self) -> &[f32] {
        &self.floats[self.offset..]
    }
}

impl AsMut<[f32]> for Memory {
    fn as_mut(&mut self) -> &mut [f32] {
        &mut self.floats[self.offset..]
    }
}
