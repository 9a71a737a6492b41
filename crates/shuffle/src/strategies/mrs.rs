//! Multiplexed reservoir sampling (Bismarck's): the table's own order, but for the tuples that a reservoir keeps. Among
//! them come the tuples of the last epoch's reservoir, again and again.

use super::definition::{Definition, chunk_of};
use super::retention::{Arrival, Retention};
use crate::Geometry;
use crate::random::{MRS, below, stream};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;

pub(super) const DEFINITION: Definition = Definition {
    name: "mrs",
    retention: Some(|| Box::new(Reservoir::default())),
    capacity_label: Some(c"Reservoir Tuples"),
    permutes: false,
    uncacheable: Some("mrs moves tuples in the buffer"),
    ..Definition::NATURAL
};

/// The reservoirs: places in the buffer of the tuples in them.
#[derive(Debug, Default)]
struct Reservoir {
    draws: Option<Xoshiro256PlusPlus>,
    /// of each reservoir, in tuples; known when the buffer was full for the first time
    capacity: usize,
    /// tuples of this epoch so far, and whether any of them was dropped
    seen: usize,
    dropped: bool,
    /// what this epoch keeps (A), and what the epoch before has kept (B), and which of those is next
    filling: Vec<u32>,
    looping: Vec<u32>,
    next: usize,
    /// the epoch that has filled `looping`
    filled_in: u64,
}

impl Retention for Reservoir {
    fn begin_epoch(&mut self, epoch: u64) {
        self.draws = None;
        (self.seen, self.next, self.dropped) = (0, 0, false);
        self.filling.clear();
        if epoch <= 1 || self.filled_in != epoch - 1 {
            self.looping.clear();
        }
    }

    fn needs_epoch_before(&self, epoch: u64) -> bool {
        epoch > 1 && self.filled_in != epoch - 1
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn blocks(&self, geometry: &Geometry) -> u32 {
        if self.capacity == 0 {
            geometry.buffer_blocks
        } else if self.filling.is_empty() {
            (geometry.buffer_blocks / 2).max(1)
        } else {
            chunk_of(geometry)
        }
    }

    /// Vitter's algorithm R: the n-th tuple stays with probability capacity / n, in the slot of a random other. After
    /// each one that goes, one of the last epoch's follows.
    fn take(&mut self, [seed, epoch]: [u64; 2], new: Range<u32>, arrival: &mut Arrival, order: &mut Vec<u32>) {
        let draws = self.draws.get_or_insert_with(|| stream(MRS, seed.cast_signed(), epoch, 0));
        if self.capacity == 0 {
            // Two reservoirs share one buffer. A buffer of no tuples says nothing of how many it holds.
            self.capacity = if new.is_empty() { 0 } else { (new.len() / 2).max(1) };
        }
        for place in new {
            self.seen += 1;
            if self.filling.len() < self.capacity {
                arrival.enters(place, self.filling.len());
                self.filling.push(place);
                continue;
            }
            let slot = below(draws, self.seen);
            let goes = self.filling.get_mut(slot).map_or(place, |kept| std::mem::replace(kept, place));
            if goes != place {
                arrival.enters(place, slot);
            }
            arrival.leaves(goes);
            allocation::push(order, goes);
            self.dropped = true;
            if let Some(again) = self.looping.get(self.next) {
                allocation::push(order, *again);
                self.next = (self.next + 1) % self.looping.len();
            }
        }
    }

    fn slots_mut(&mut self) -> &mut [u32] {
        &mut self.filling
    }

    /// What was filled is looped over in the next epoch. An epoch in which nothing went learns from what it has kept.
    fn end_epoch(&mut self, epoch: u64, order: &mut Vec<u32>) {
        if !self.dropped {
            allocation::append(order, &self.filling);
        }
        self.looping = std::mem::take(&mut self.filling);
        self.filled_in = epoch;
    }

    fn kept_over_mut(&mut self) -> &mut [u32] {
        &mut self.looping
    }
}
