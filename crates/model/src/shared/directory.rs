//! What is in the shared memory: the directory of entries, and where in the arena the bytes of each are.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Models that the cache can hold.
pub const SLOTS: usize = 1024;

/// Arrays start at multiples of it: a cache line.
pub const ALIGN: usize = 64;

/// Arrays of a model, and how many of them, the first ones, are of floats; the others are of doubles.
pub const ARRAYS: usize = 5;
pub const FLOATS: usize = 3;

pub const FREE: u32 = 0;
/// being filled by a process that has it pinned; found, but not yet read, by others
pub const LOADING: u32 = 1;
/// filled by a transaction that has not ended, and found by no one
pub const PENDING: u32 = 2;
pub const READY: u32 = 3;
/// to be freed when no one has it pinned, and found by no one
pub const DOOMED: u32 = 4;

/// One version of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Key {
    pub database: u32,
    /// the file of the table: VACUUM FULL moves rows, but gives them another
    pub file: u32,
    pub model: i64,
    /// that wrote the row
    pub transaction: u32,
    pub block: u32,
    pub offset: u32,
}

#[repr(C)]
pub struct Slot {
    pub key: Key,
    pub state: u32,
    pub pins: AtomicU32,
    /// another one for each use of the slot
    pub generation: u64,
    /// where its bytes are in the arena; none while it is loaded
    pub start: usize,
    pub bytes: usize,
    pub lens: [usize; ARRAYS],
    /// the time of the last lookup
    pub used: AtomicU64,
    pub predictions: AtomicU64,
    pub hits: AtomicU64,
}

/// The beginning of the shared memory; the arena follows.
#[repr(C)]
pub struct Directory {
    pub clock: AtomicU64,
    pub generation: u64,
    pub arena_bytes: usize,
    pub slots: [Slot; SLOTS],
}

impl Directory {
    /// The slot of an entry that others may find.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let is = |slot: &Slot| matches!(slot.state, READY | LOADING) && slot.key == *key;
        self.slots.iter().position(is)
    }

    /// A slot for this key, pinned by the caller; its least used neighbour goes if no slot is free.
    pub fn take(&mut self, key: &Key, state: u32) -> Option<usize> {
        let i = match self.slots.iter().position(|slot| slot.state == FREE) {
            Some(i) => i,
            None => self.least_used()?,
        };
        self.generation += 1;
        let now = self.clock.fetch_add(1, Relaxed);
        self.slots[i] = Slot {
            key: *key,
            state,
            pins: AtomicU32::new(1),
            generation: self.generation,
            start: 0,
            bytes: 0,
            lens: [0; ARRAYS],
            used: AtomicU64::new(now),
            predictions: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        };
        Some(i)
    }

    /// The slot that can go first.
    fn least_used(&self) -> Option<usize> {
        let can_go = |(_, slot): &(usize, &Slot)| matches!(slot.state, READY | DOOMED) && slot.pins.load(Relaxed) == 0;
        let age = |(_, slot): &(usize, &Slot)| (slot.state != DOOMED, slot.used.load(Relaxed));
        self.slots.iter().enumerate().filter(can_go).min_by_key(age).map(|(i, _)| i)
    }

    /// Makes a slot one for other entries.
    pub fn free(&mut self, i: usize) {
        self.slots[i].state = FREE;
        self.slots[i].bytes = 0;
    }

    /// Room in the arena for this many bytes; the least used entries go if there is too little.
    pub fn allocate(&mut self, bytes: usize) -> Option<usize> {
        if bytes > self.arena_bytes {
            return None;
        }
        loop {
            let used = self.slots.iter().filter(|slot| slot.state != FREE && slot.bytes > 0);
            let mut used: Vec<(usize, usize)> = used.map(|slot| (slot.start, slot.start + slot.bytes)).collect();
            used.sort_unstable();
            used.push((self.arena_bytes, self.arena_bytes));
            let mut end = 0;
            for (start, next) in used {
                if start - end >= bytes {
                    return Some(end);
                }
                end = next;
            }
            let oldest = self.least_used()?;
            self.free(oldest);
        }
    }
}

impl Slot {
    /// Keeps the entry where it is.
    pub fn pin(&self, directory: &Directory) {
        self.pins.fetch_add(1, Relaxed);
        self.used.store(directory.clock.fetch_add(1, Relaxed), Relaxed);
    }
}

/// Where arrays of these lengths begin, those of floats first, and where the last one ends.
pub fn offsets(lens: &[usize; ARRAYS]) -> [usize; ARRAYS + 1] {
    let mut offsets = [0; ARRAYS + 1];
    for (i, len) in lens.iter().enumerate() {
        let bytes = len * if i < FLOATS { 4 } else { 8 };
        offsets[i + 1] = offsets[i] + bytes.next_multiple_of(ALIGN);
    }
    offsets
}
