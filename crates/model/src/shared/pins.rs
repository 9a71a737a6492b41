//! Entries that this transaction reads, and what it has to give back.

use super::directory::{ARRAYS, DOOMED, READY, SLOTS, Slot, offsets};
use super::memory::{arena, exclusive, shared};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// A model's arrays.
#[derive(Debug, Clone, Copy)]
pub struct Arrays<'a> {
    pub weights: &'a [f32],
    pub intercepts: &'a [f32],
    /// as long as one output's weights, or empty
    pub mean: &'a [f64],
    pub scale: &'a [f64],
    pub fill: &'a [f32],
}

/// An entry that this process may read while its transaction has it pinned.
#[derive(Debug, Clone)]
pub struct Shared {
    pub(super) slot: usize,
    generation: u64,
    start: *const u8,
    lens: [usize; ARRAYS],
    pub(super) counts: Rc<Counts>,
    /// the transaction that has it pinned, if it is the one that runs
    pinned_in: Cell<u64>,
}

/// What happens to an entry in a transaction.
#[derive(Debug, Default)]
pub struct Counts {
    pub predictions: Cell<u64>,
    pub hits: Cell<u64>,
}

/// What this transaction has to give back at its end.
#[derive(Default)]
pub struct Held {
    pub pinned: Vec<Shared>,
    pub loading: Vec<usize>,
    /// with the level of the subtransaction
    pub pending: Vec<(usize, i32)>,
    /// models whose rows were changed
    pub forgotten: Vec<i64>,
}

thread_local! {
    pub(super) static HELD: RefCell<Held> = RefCell::default();
    /// the number of the transaction that runs, from 1: another one after each that has given back its pins
    static TRANSACTION: Cell<u64> = const { Cell::new(1) };
}

/// Takes what is to be given back; what was pinned until now is not to be read any more.
pub(super) fn take_held() -> Held {
    TRANSACTION.set(TRANSACTION.get() + 1);
    HELD.take()
}

impl Shared {
    /// An entry of the directory, which this process has pinned.
    pub(super) fn of_slot(slot: usize, entry: &Slot) -> Shared {
        // SAFETY: the bytes are in the arena.
        let start = unsafe { arena().add(entry.start) };
        let (generation, lens) = (entry.generation, entry.lens);
        Shared { slot, generation, start, lens, counts: Rc::default(), pinned_in: Cell::new(0) }
    }

    /// Pins the entry until the transaction ends, if it is still there. Until then its arrays may be read.
    pub fn pin(&self) -> bool {
        let pinned = HELD.with_borrow(|held| held.pinned.iter().any(|pin| pin.is(self)));
        let pinned = pinned
            || shared(|directory| {
                let slot = &directory.slots[self.slot];
                let there = slot.state == READY && slot.generation == self.generation;
                if there {
                    slot.pin(directory);
                }
                there
            });
        if pinned {
            self.counts.hits.set(self.counts.hits.get() + 1);
            self.hold();
        }
        pinned
    }

    /// Remembers the pin.
    pub(super) fn hold(&self) {
        self.pinned_in.set(TRANSACTION.get());
        HELD.with_borrow_mut(|held| {
            if !held.pinned.iter().any(|pin| pin.is(self)) {
                held.pinned.push(self.clone());
            }
        });
    }

    /// Is it the same entry?
    pub(super) fn is(&self, other: &Shared) -> bool {
        (self.slot, self.generation) == (other.slot, other.generation)
    }

    #[inline]
    pub fn arrays(&self) -> Arrays<'_> {
        assert!(self.pinned_in.get() == TRANSACTION.get(), "a model that this transaction has pinned");
        let offsets = offsets(&self.lens);
        // SAFETY: pinned by the transaction that runs, so that the bytes stay: written before the entry was found,
        // aligned to cache lines, and never changed.
        unsafe {
            let floats = |i: usize| std::slice::from_raw_parts(self.start.add(offsets[i]).cast::<f32>(), self.lens[i]);
            let doubles = |i: usize| std::slice::from_raw_parts(self.start.add(offsets[i]).cast::<f64>(), self.lens[i]);
            let (mean, scale) = (doubles(3), doubles(4));
            Arrays { weights: floats(0), intercepts: floats(1), fill: floats(2), mean, scale }
        }
    }

    #[inline]
    pub fn count(&self) {
        self.counts.predictions.set(self.counts.predictions.get() + 1);
    }
}

/// Gives pins back, each with its predictions and hits.
pub(super) fn unpin(pins: &[(usize, u64, u64)]) {
    let doomed = shared(|directory| {
        let mut doomed = false;
        for (slot, predictions, hits) in pins {
            let slot = &directory.slots[*slot];
            slot.predictions.fetch_add(*predictions, Relaxed);
            slot.hits.fetch_add(*hits, Relaxed);
            doomed |= slot.pins.fetch_sub(1, Relaxed) == 1 && slot.state == DOOMED;
        }
        doomed
    });
    if doomed {
        exclusive(|directory| {
            for i in 0..SLOTS {
                if directory.slots[i].state == DOOMED && directory.slots[i].pins.load(Relaxed) == 0 {
                    directory.free(i);
                }
            }
        });
    }
}
