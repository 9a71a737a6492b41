//! In which order the tuples in the buffer are learned from, and which of them stay for later.
//!
//! A [`Mixer`] knows tuples by their places in the buffer only. Whoever owns the buffer fills it, says how many tuples it
//! holds by then, learns from the places that it is told, keeps those that are to stay, and fills again. The same code
//! decides for training, for a stream of rows, and for [`TupleOrder`](crate::TupleOrder), which shows it.
//!
//! It guarantees that an order does not depend on how the reads were cut, once the buffer was full: every tuple that comes
//! takes its draws from one stream per epoch.

use crate::permutation::{MRS, WINDOW, below, count, shuffle, shuffle_tuples_pausing, stream};
use crate::{BlockPartition, Geometry, Strategy};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A buffer that keeps tuples from one read to the next reads a part of itself at once: one in so many.
pub const CHUNKS_PER_BUFFER: u32 = 8;

/// Decides about the tuples in a buffer, call after call, epoch after epoch.
#[derive(Debug)]
pub struct Mixer {
    strategy: Strategy,
    seed: i64,
    deal: BlockPartition,
    epoch: u64,
    /// buffers so far in this epoch
    buffer: u64,
    /// were the last tuples of this epoch seen?
    ended: bool,
    window: Window,
    reservoir: Reservoir,
    /// tuples that stay in the buffer, and which of them have to move for that
    kept: usize,
    moves: Vec<(u32, u32)>,
    arrival: Arrival,
}

/// The tuples that came last, and what became of them.
#[derive(Debug, Default)]
struct Arrival {
    first: u32,
    /// for each, its slot in the window or the reservoir; [`GONE`] if it has none
    slots: Vec<u32>,
    /// places of the tuples that go
    gone: Vec<u32>,
}

/// No slot.
const GONE: u32 = u32::MAX;

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
            deal: BlockPartition::SINGLE,
            epoch: 0,
            buffer: 0,
            ended: true,
            window: Window::default(),
            reservoir: Reservoir::default(),
            kept: 0,
            moves: Vec::new(),
            arrival: Arrival::default(),
        }
    }

    /// Makes it the mixer of one of several processes, whose tuples each shuffles in an order of its own.
    pub fn set_deal(&mut self, deal: BlockPartition) {
        self.deal = deal;
    }

    /// Whether the epoch before must be run first, its order thrown away: its reservoir is looped over in `epoch`. What it
    /// keeps is a function of seed and epoch and needs no epoch before it.
    pub fn needs_epoch_before(&self, epoch: u64) -> bool {
        self.strategy == Strategy::Mrs && epoch > 1 && self.reservoir.filled_in != epoch - 1
    }

    /// Begins an epoch, whether or not the one before was run to its end. What must stay in the buffer, and where, is
    /// said by [`moves`](Mixer::take_moves) and [`kept`](Mixer::kept) again.
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
        // moves that nobody has made yet come first
        close_up(&mut reservoir.looping, &mut self.moves);
        self.kept = reservoir.looping.len();
    }

    /// Whether the epoch is over: nothing more will come, and nothing be learned from.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// How many tuples stay in the buffer. All others are to be removed, after the [`moves`](Mixer::take_moves), before any come
    /// in behind them.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Pairs of places, from and to: the tuples that have to move into the places of tuples that go, one after the other,
    /// so that those that stay are in the first places. During an epoch there are no more of them than tuples that came
    /// last. They are to be made once, before the next tuples come; nobody is told again of those that were taken.
    pub fn take_moves(&mut self) -> std::vec::Drain<'_, (u32, u32)> {
        self.moves.drain(..)
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

    /// Now there are `len` tuples in the buffer, those behind the ones that were kept new; `last` if no more will come in this epoch.
    /// Writes into `order` the places to learn from, one after the other: perhaps none before the last call, perhaps one
    /// twice.
    ///
    /// # Panics
    /// If `len` is less than what should have been kept, or does not fit 32 bits, or if moves were not taken.
    pub fn arrived(&mut self, len: usize, last: bool, order: &mut Vec<u32>) {
        self.arrived_pausing(len, last, order, &mut || {});
    }

    /// As [`arrived`](Mixer::arrived), with pauses where all that came is permuted at once; one of them may panic to end it.
    pub fn arrived_pausing(&mut self, len: usize, last: bool, order: &mut Vec<u32>, pause: &mut impl FnMut()) {
        let len = u32::try_from(len).expect("a buffer's places have 32 bits");
        let new = self.kept as u32..len;
        assert!(new.start <= new.end, "{len} tuples in a buffer where {} should have stayed", new.start);
        assert!(self.moves.is_empty(), "tuples came before those that stay were moved");
        order.clear();
        self.ended = last;
        let (seed, epoch) = (self.seed, self.epoch);
        match self.strategy {
            Strategy::SlidingWindow if epoch > 0 => {
                let draws = self.window.draws.get_or_insert_with(|| stream(WINDOW, seed, epoch, 0));
                self.arrival.begin(&new);
                slide(draws, &mut self.window.slots, new, &mut self.arrival);
                order.extend_from_slice(&self.arrival.gone);
                self.window.size = self.window.slots.len();
                if last {
                    shuffle(draws, &mut self.window.slots);
                    order.append(&mut self.window.slots);
                    self.kept = 0;
                } else {
                    self.kept = self.arrival.close_up(&mut self.window.slots, &mut self.moves);
                }
            }
            Strategy::Mrs if epoch > 0 => {
                self.reservoir.draws.get_or_insert_with(|| stream(MRS, seed, epoch, 0));
                self.arrival.begin(&new);
                self.reservoir.take(new, &mut self.arrival, order);
                if last {
                    self.reservoir.end(epoch, order);
                    close_up(&mut self.reservoir.looping, &mut self.moves);
                    self.kept = self.reservoir.looping.len();
                } else {
                    self.kept = self.arrival.close_up(&mut self.reservoir.filling, &mut self.moves);
                }
            }
            _ => {
                count(0..len, order, pause);
                self.permute(last, order, pause);
            }
        }
    }

    /// As [`arrived`](Mixer::arrived), for a strategy that [keeps](Mixer::keeps_tuples) no tuples, of which the buffer
    /// may then be in any places: `order` has them, one after the other as the tuples came, and is permuted. So it does
    /// not matter to the order of the tuples where they are. `pause` is called now and then; it may panic to end it.
    pub fn arrived_at(&mut self, last: bool, order: &mut [u32], pause: &mut impl FnMut()) {
        self.permute(last, order, pause);
    }

    fn permute(&mut self, last: bool, order: &mut [u32], pause: &mut impl FnMut()) {
        self.ended = last;
        if !order.is_empty() {
            let place = [self.epoch, self.deal.ordinal(self.buffer)];
            shuffle_tuples_pausing(self.strategy, self.seed, place, order, pause);
            self.buffer += 1;
        }
        self.kept = 0;
    }
}

impl Arrival {
    fn begin(&mut self, new: &std::ops::Range<u32>) {
        self.first = new.start;
        self.slots.clear();
        self.slots.resize(new.len(), GONE);
        self.gone.clear();
    }

    /// The tuple in a place gets a slot.
    fn enters(&mut self, place: u32, slot: usize) {
        self.slots[(place - self.first) as usize] = slot as u32;
    }

    /// The tuple in a place goes.
    fn leaves(&mut self, place: u32) {
        if let Some(slot) = place.checked_sub(self.first) {
            self.slots[slot as usize] = GONE;
        }
        self.gone.push(place);
    }

    /// Moves tuples that came last, and have stayed, into the places of those that have gone; returns how many stay in all.
    /// It costs what came, however much was there before.
    fn close_up(&self, slots: &mut [u32], moves: &mut Vec<(u32, u32)>) -> usize {
        let end = self.first as usize + self.slots.len();
        // no tuple makes more than one go, so that whoever has to move is one that came last
        let kept = (end - self.gone.len()) as u32;
        let places = kept..end as u32;
        let movers = places.zip(&self.slots[(kept - self.first) as usize..]).filter(|(_, slot)| **slot != GONE);
        let holes = self.gone.iter().filter(|place| **place < kept);
        for ((from, slot), to) in movers.zip(holes) {
            moves.push((from, *to));
            slots[*slot as usize] = *to;
        }
        kept as usize
    }
}

/// Moves the tuples in these places, the only ones that stay, to the first places.
fn close_up(places: &mut [u32], moves: &mut Vec<(u32, u32)>) {
    let mut taken = vec![false; places.len()];
    places.iter().for_each(|place| {
        if let Some(taken) = taken.get_mut(*place as usize) {
            *taken = true;
        }
    });
    let mut free = (0..).zip(&taken).filter(|(_, taken)| !**taken).map(|(place, _)| place);
    for place in places.iter_mut().filter(|place| **place as usize >= taken.len()) {
        if let Some(to) = free.next() {
            moves.push((*place, to));
            *place = to;
        }
    }
}

/// Fills the window, if it is empty, with all that is new; else each new tuple takes the slot of one that goes.
fn slide(draws: &mut Xoshiro256PlusPlus, slots: &mut Vec<u32>, new: std::ops::Range<u32>, arrival: &mut Arrival) {
    if slots.is_empty() {
        slots.extend(new);
        return;
    }
    for place in new {
        let slot = below(draws, slots.len());
        arrival.leaves(std::mem::replace(&mut slots[slot], place));
        arrival.enters(place, slot);
    }
}

impl Reservoir {
    /// Vitter's algorithm R: the n-th tuple stays with probability capacity / n, in the slot of a random other. After each
    /// one that goes, one of the last epoch's follows.
    fn take(&mut self, new: std::ops::Range<u32>, arrival: &mut Arrival, order: &mut Vec<u32>) {
        if self.capacity == 0 {
            // Two reservoirs share one buffer. A buffer of no tuples says nothing of how many it holds.
            self.capacity = if new.is_empty() { 0 } else { (new.len() / 2).max(1) };
        }
        let Some(draws) = &mut self.draws else { return };
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
