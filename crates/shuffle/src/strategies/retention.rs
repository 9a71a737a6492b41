//! Strategies that keep tuples in the buffer from one read to the next,
//! and the account of what became of the tuples that came.

use crate::Geometry;
use std::fmt::Debug;
use std::ops::Range;

/// What keeps tuples in the buffer. It knows them by their places.
pub(crate) trait Retention: Debug {
    /// Begins an epoch, whether or not the one before was run to its end.
    fn begin_epoch(&mut self, epoch: u64);

    /// Whether the epoch before `epoch` must be run first.
    fn needs_epoch_before(&self, _epoch: u64) -> bool {
        false
    }

    /// How many tuples it keeps; 0 as long as that is not known.
    fn capacity(&self) -> usize;

    /// How many blocks to read next.
    fn blocks(&self, geometry: &Geometry) -> u32;

    /// Takes the tuples in the places `new`: writes into `order` the places to learn from, and tells `arrival` which
    /// tuples stay and which go.
    fn take(&mut self, seed_and_epoch: [u64; 2], new: Range<u32>, arrival: &mut Arrival, order: &mut Vec<u32>);

    /// The places of the tuples that stay, by slot.
    fn slots_mut(&mut self) -> &mut [u32];

    /// Ends an epoch: appends to `order` the places of what is left to learn from.
    fn end_epoch(&mut self, epoch: u64, order: &mut Vec<u32>);

    /// The places of the tuples that stay for the next epoch.
    fn kept_over_mut(&mut self) -> &mut [u32] {
        &mut []
    }
}

/// The tuples that came last, and what became of them.
#[derive(Debug, Default)]
pub(crate) struct Arrival {
    first: u32,
    /// for each, its slot in the window or the reservoir; [`GONE`] if it has none
    slots: Vec<u32>,
    /// places of the tuples that go
    gone: Vec<u32>,
}

/// No slot.
const GONE: u32 = u32::MAX;

impl Arrival {
    /// Tuples come into these places.
    pub(crate) fn begin(&mut self, new: &Range<u32>) {
        self.first = new.start;
        self.slots.clear();
        allocation::resize(&mut self.slots, new.len(), GONE);
        self.gone.clear();
    }

    /// The tuple in a place gets a slot.
    pub(super) fn enters(&mut self, place: u32, slot: usize) {
        self.slots[(place - self.first) as usize] = slot as u32;
    }

    /// The tuple in a place goes.
    pub(super) fn leaves(&mut self, place: u32) {
        if let Some(slot) = place.checked_sub(self.first) {
            self.slots[slot as usize] = GONE;
        }
        self.gone.push(place);
    }

    /// Places of the tuples that go.
    pub(super) fn gone(&self) -> &[u32] {
        &self.gone
    }

    /// Moves tuples that came last, and have stayed, into the places of those that have gone; returns how many stay in
    /// all. It costs what came, however much was there before.
    pub(crate) fn close_up(&self, slots: &mut [u32], moves: &mut Vec<(u32, u32)>) -> usize {
        let end = self.first as usize + self.slots.len();
        // no tuple makes more than one go, so that anyone who has to move is one that came last
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
pub(crate) fn close_up(places: &mut [u32], moves: &mut Vec<(u32, u32)>) {
    let mut taken: Vec<bool> = allocation::zeros(places.len());
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
