//! A window over a stream of tuples: each that comes takes the place of a random one, which goes (TensorFlow's
//! shuffle).
//!
//! The [`Mixer`](crate::Mixer) does this to the places of a table's buffer; here, anyone who has the tuples hands them
//! over.

use crate::random::{WINDOW, below, shuffle, stream};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The tuples in the window, or whatever stands for them.
#[derive(Debug)]
pub struct Window<T> {
    draws: Xoshiro256PlusPlus,
    size: usize,
    slots: Vec<T>,
}

impl<T> Window<T> {
    /// An empty window for `size` tuples, at least 1. `ordinal` tells the windows of one epoch apart.
    pub fn new(seed: i64, epoch: u64, ordinal: u64, size: usize) -> Window<T> {
        Window { draws: stream(WINDOW, seed, epoch, ordinal), size: size.max(1), slots: Vec::new() }
    }

    /// A tuple comes. Once the window is full, another goes.
    pub fn push(&mut self, tuple: T) -> Option<T> {
        if self.slots.len() < self.size {
            self.slots.push(tuple);
            return None;
        }
        let slot = below(&mut self.draws, self.size);
        Some(std::mem::replace(&mut self.slots[slot], tuple))
    }

    /// No more will come: what is left goes, in random order.
    pub fn finish(&mut self) -> Vec<T> {
        shuffle(&mut self.draws, &mut self.slots);
        std::mem::take(&mut self.slots)
    }

    /// The tuples in the window.
    pub fn slots(&self) -> &[T] {
        &self.slots
    }

    /// As [`slots`](Window::slots), to be changed in place.
    pub fn slots_mut(&mut self) -> &mut [T] {
        &mut self.slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(size: usize, ordinal: u64) -> Vec<u32> {
        let mut window = Window::new(5, 1, ordinal, size);
        let mut order: Vec<u32> = (0..1000).filter_map(|tuple| window.push(tuple)).collect();
        order.extend(window.finish());
        order
    }

    #[test]
    fn each_tuple_goes_once_and_none_before_the_window_is_full() {
        for size in [1, 10, 1000, 5000] {
            let order = order(size, 0);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..1000), "{size}");
            let early = order.iter().zip(0..).all(|(tuple, place)| *tuple as usize <= place + size);
            assert!(early, "{size}");
        }
        assert!(order(1, 0).into_iter().eq(0..1000));
        assert_ne!(order(10, 0), order(10, 1));
    }
}
