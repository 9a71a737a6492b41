//! Room in the memory: where each element is.
//!
//! It guarantees that no two rooms overlap, and that each begins where a page of memory does if that is asked for.

use offset_allocator::{Allocation, Allocator};
use std::fmt;

/// Rooms begin and end at multiples of this many bytes: as Arrow wants its buffers, and processors their lines.
pub const GRAIN: u64 = 64;

/// A part of the memory.
#[derive(Clone, Copy)]
pub struct Room {
    allocation: Allocation,
    bytes: u64,
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes from {} on", self.bytes, self.offset())
    }
}

impl PartialEq for Room {
    fn eq(&self, other: &Room) -> bool {
        (self.offset(), self.bytes) == (other.offset(), other.bytes)
    }
}

impl Room {
    /// Where it begins.
    pub fn offset(&self) -> u64 {
        u64::from(self.allocation.offset) * GRAIN
    }

    /// How many bytes it has for its element.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// All of the memory.
pub struct Rooms {
    allocator: Allocator,
    grains: u32,
    used: u64,
}

impl Rooms {
    /// This many bytes of memory, of which no more than 256 GiB are used, and as many rooms as there may be at a time.
    pub fn new(bytes: u64, rooms: u32) -> Rooms {
        let grains = u32::try_from(bytes / GRAIN).unwrap_or(u32::MAX);
        Rooms { allocator: Allocator::with_max_allocs(grains, rooms), grains, used: 0 }
    }

    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        u64::from(self.grains) * GRAIN
    }

    /// What there is room for if nothing else is there: the allocator rounds sizes up by an eighth at most.
    pub fn largest(&self) -> u64 {
        self.bytes() / 8 * 7
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Room for this many bytes; None if it does not exist in one piece.
    pub fn take(&mut self, bytes: u64) -> Option<Room> {
        let grains = u32::try_from(bytes.div_ceil(GRAIN).max(1)).ok()?;
        let allocation = self.allocator.allocate(grains)?;
        self.used += u64::from(grains) * GRAIN;
        Some(Room { allocation, bytes })
    }

    /// Gives a room back.
    pub fn free(&mut self, room: Room) {
        self.used -= room.bytes.div_ceil(GRAIN).max(1) * GRAIN;
        self.allocator.free(room.allocation);
    }
}
