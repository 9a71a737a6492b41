//! The table's own order through a window of one buffer: each tuple that comes takes the place of a random one, which
//! goes (TensorFlow's shuffle).

use super::definition::{Definition, chunk_of};
use super::retention::{Arrival, Retention};
use crate::Geometry;
use crate::random::{WINDOW, below, shuffle, stream};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;

pub(super) const DEFINITION: Definition = Definition {
    name: "sliding_window",
    retention: Some(|| Box::new(Window::default())),
    capacity_label: Some(c"Window Tuples"),
    uncacheable: Some("sliding_window moves tuples in the buffer"),
    ..Definition::NATURAL
};

/// The window: the place in the buffer of the tuple in each slot.
#[derive(Debug, Default)]
struct Window {
    draws: Option<Xoshiro256PlusPlus>,
    slots: Vec<u32>,
    /// how many slots there are, when they are filled
    size: usize,
}

impl Retention for Window {
    fn begin_epoch(&mut self, _: u64) {
        self.slots.clear();
        self.draws = None;
    }

    fn capacity(&self) -> usize {
        self.size
    }

    fn blocks(&self, geometry: &Geometry) -> u32 {
        if self.slots.is_empty() { geometry.buffer_blocks } else { chunk_of(geometry) }
    }

    /// Fills the window, if it is empty, with all that is new; else each new tuple takes the slot of one that goes.
    fn take(&mut self, [seed, epoch]: [u64; 2], new: Range<u32>, arrival: &mut Arrival, order: &mut Vec<u32>) {
        let draws = self.draws.get_or_insert_with(|| stream(WINDOW, seed.cast_signed(), epoch, 0));
        if self.slots.is_empty() {
            allocation::extend(&mut self.slots, new);
        } else {
            for place in new {
                let slot = below(draws, self.slots.len());
                arrival.leaves(std::mem::replace(&mut self.slots[slot], place));
                arrival.enters(place, slot);
            }
        }
        allocation::append(order, arrival.gone());
        self.size = self.slots.len();
    }

    fn slots_mut(&mut self) -> &mut [u32] {
        &mut self.slots
    }

    /// The tuples in the window go last, in random order.
    fn end_epoch(&mut self, _: u64, order: &mut Vec<u32>) {
        if let Some(draws) = &mut self.draws {
            shuffle(draws, &mut self.slots);
        }
        order.append(&mut self.slots);
    }
}
