//! In which order the tuples in the buffer are learned from, and which of them stay for later.
//!
//! A [`Mixer`] knows tuples by their places in the buffer only. Whoever owns the buffer fills it, says how many tuples it
//! holds by then, learns from the places that it is told, keeps those that are to stay, and fills again. The same code
//! decides for training, for a stream of rows, and for [`TupleOrder`](crate::TupleOrder), which shows it.
//!
//! It guarantees that an order does not depend on how the reads were cut, once the buffer was full: every tuple that comes
//! takes its draws from one stream per epoch.

use crate::permutation::{MRS, WINDOW, below, shuffle, shuffle_tuples, stream};
use crate::{Geometry, Strategy};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A buffer that keeps tuples from one read to the next reads a part of itself at once: one in so many.
pub const CHUNKS_PER_BUFFER: u32 = 8;

/// Decides about the tuples in a buffer, call after call, epoch after epoch.
#[derive(Debug)]
pub struct Mixer {
    strategy: Strategy,
    seed: i64,
    epoch: u64,
    /// buffers so far in this epoch
    buffer: u64,
    /// were the last tuples of this epoch seen?
    ended: bool,
    window: Window,
    reservoir: Reservoir,
    survivors: Vec<u32>,
}

/// The window of [`Strategy::SlidingWindow`]: the place in the buffer of the tuple in each slot.
#[derive(Debug, Default)]
struct Window {
    draws: Option<Xoshiro256PlusPlus>,
    slots: Vec<u32>,
    /// how many slots there are, when they are filled
    size: usize,
}

/// The reservoirs of [`Strategy::Mrs`]: places in the buffer of the tuples in them.
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

impl Mixer {
    /// A mixer before the first epoch, of an empty buffer.
    pub fn new(strategy: Strategy, seed: i64) -> Mixer {
        Mixer {
            strategy,
            seed,
            epoch: 0,
            buffer: 0,
            ended: true,
            window: Window::default(),
            reservoir: Reservoir::default(),
            survivors: Vec::new(),
        }
    }

    /// Whether the epoch before must be run first, its order thrown away: its reservoir is looped over in `epoch`. What it
    /// keeps is a function of seed and epoch and needs no epoch before it.
    pub fn needs_epoch_before(&self, epoch: u64) -> bool {
        self.strategy == Strategy::Mrs && epoch > 1 && self.reservoir.filled_in != epoch - 1
    }

    /// Begins an epoch, whether or not the one before was run to its end. Of what is in the buffer, the
    /// [`survivors`](Mixer::survivors) must stay.
    pub fn begin_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.buffer = 0;
        self.ended = false;
        let (window, reservoir) = (&mut self.window, &mut self.reservoir);
        window.slots.clear();
        window.draws = None;
        reservoir.draws = None;
        (reservoir.seen, reservoir.next, reservoir.dropped) = (0, 0, false);
        reservoir.filling.clear();
        if epoch <= 1 || reservoir.filled_in != epoch - 1 {
            reservoir.looping.clear();
        }
        // Nobody has thrown the others away yet: places are still those of the last call.
        reservoir.looping.iter_mut().for_each(|place| *place = self.survivors[*place as usize]);
        self.close_up();
    }

    /// Whether the epoch is over: nothing more will come, and nothing be learned from.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The places, ascending, of the tuples that must stay in the buffer; they close up before others come in behind
    /// them, so that place `survivors()[i]` becomes place `i`.
    pub fn survivors(&self) -> &[u32] {
        &self.survivors
    }

    /// How many blocks to read next, at least 1, after the first `position` in the epoch's order: a buffer, or a chunk
    /// of one if the others stay.
    pub fn blocks(&self, geometry: &Geometry, position: u32) -> u32 {
        let part = |parts: u32| (geometry.buffer_blocks / parts).max(1);
        match self.strategy {
            _ if self.epoch == 0 => geometry.left_in_buffer(position),
            Strategy::SlidingWindow if self.window.slots.is_empty() => geometry.buffer_blocks,
            Strategy::Mrs if self.reservoir.capacity == 0 => geometry.buffer_blocks,
            Strategy::Mrs if self.reservoir.filling.is_empty() => part(2),
            Strategy::SlidingWindow | Strategy::Mrs => part(CHUNKS_PER_BUFFER),
            _ => geometry.left_in_buffer(position),
        }
    }

    /// Whether tuples stay in the buffer from one read to the next.
    pub fn keeps_tuples(&self) -> bool {
        self.epoch > 0 && matches!(self.strategy, Strategy::SlidingWindow | Strategy::Mrs)
    }

    /// Tuples that the window, or each of the two reservoirs, holds; 0 if there is none, or as long as it is not known.
    pub fn capacity(&self) -> usize {
        self.window.size.max(self.reservoir.capacity)
    }

    /// Now there are `len` tuples in the buffer, those behind the survivors new; `last` if no more will come in this epoch.
    /// Writes into `order` the places to learn from, one after the other: perhaps none before the last call, perhaps one
    /// twice.
    ///
    /// # Panics
    /// If `len` is less than there are survivors, or does not fit 32 bits.
    pub fn arrived(&mut self, len: usize, last: bool, order: &mut Vec<u32>) {
        let len = u32::try_from(len).expect("a buffer's places have 32 bits");
        let new = self.survivors.len() as u32..len;
        assert!(new.start <= new.end, "{len} tuples in a buffer where {} should have stayed", new.start);
        order.clear();
        self.ended = last;
        let (seed, epoch) = (self.seed, self.epoch);
        match self.strategy {
            Strategy::SlidingWindow if epoch > 0 => {
                let draws = self.window.draws.get_or_insert_with(|| stream(WINDOW, seed, epoch, 0));
                slide(draws, &mut self.window.slots, new, order);
                self.window.size = self.window.slots.len();
                if last {
                    shuffle(draws, &mut self.window.slots);
                    order.append(&mut self.window.slots);
                }
            }
            Strategy::Mrs if epoch > 0 => {
                self.reservoir.draws.get_or_insert_with(|| stream(MRS, seed, epoch, 0));
                self.reservoir.take(new, order);
                if last {
                    self.reservoir.end(epoch, order);
                }
            }
            strategy => {
                order.extend(0..len);
                if len > 0 {
                    shuffle_tuples(strategy, seed, epoch, self.buffer, order);
                    self.buffer += 1;
                }
            }
        }
        self.close_up();
    }

    /// Finds the survivors, and makes each place in window and reservoirs what it will be.
    fn close_up(&mut self) {
        let kept = [&mut self.window.slots, &mut self.reservoir.filling, &mut self.reservoir.looping];
        self.survivors.clear();
        let places = kept.iter().flat_map(|places| places.iter());
        let Some(last) = places.clone().max() else { return };
        // Marked first, then counted: sorting would cost more than learning does.
        let mut moved = vec![0; *last as usize + 1];
        places.for_each(|place| moved[*place as usize] = 1);
        for (from, to) in (0..).zip(&mut moved) {
            if *to == 1 {
                *to = self.survivors.len() as u32;
                self.survivors.push(from);
            }
        }
        for places in kept {
            places.iter_mut().for_each(|place| *place = moved[*place as usize]);
        }
    }
}

/// Fills the window, if it is empty, with all that is new; else each new tuple takes the slot of one that goes.
fn slide(draws: &mut Xoshiro256PlusPlus, slots: &mut Vec<u32>, new: std::ops::Range<u32>, order: &mut Vec<u32>) {
    if slots.is_empty() {
        slots.extend(new);
        return;
    }
    for place in new {
        let slot = below(draws, slots.len());
        order.push(std::mem::replace(&mut slots[slot], place));
    }
}

impl Reservoir {
    /// Vitter's algorithm R: the n-th tuple stays with probability capacity / n, in the slot of a random other. After each
    /// one that goes, one of the last epoch's follows.
    fn take(&mut self, new: std::ops::Range<u32>, order: &mut Vec<u32>) {
        if self.capacity == 0 {
            // Two reservoirs share one buffer. A buffer of no tuples says nothing of how many it holds.
            self.capacity = if new.is_empty() { 0 } else { (new.len() / 2).max(1) };
        }
        let Some(draws) = &mut self.draws else { return };
        for place in new {
            self.seen += 1;
            if self.filling.len() < self.capacity {
                self.filling.push(place);
                continue;
            }
            let slot = below(draws, self.seen);
            let goes = self.filling.get_mut(slot).map_or(place, |kept| std::mem::replace(kept, place));
            order.push(goes);
            self.dropped = true;
            if let Some(again) = self.looping.get(self.next) {
                order.push(*again);
                self.next = (self.next + 1) % self.looping.len();
            }
        }
    }

    /// What was filled is looped over in the next epoch. An epoch in which nothing went learns from what it has kept.
    fn end(&mut self, epoch: u64, order: &mut Vec<u32>) {
        if !self.dropped {
            order.extend_from_slice(&self.filling);
        }
        self.looping = std::mem::take(&mut self.filling);
        self.filled_in = epoch;
    }
}
