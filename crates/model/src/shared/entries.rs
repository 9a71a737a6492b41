//! Entries as they come and go: found, loaded by one process while others wait, announced, forgotten.

use super::directory::{ARRAYS, FLOATS, FREE, Key, LOADING, PENDING, READY, Slot, offsets};
use super::memory::{arena, enabled, exclusive, shared};
use super::pins::{Arrays, HELD, Shared, unpin};
use pg::check_for_interrupts;
use pgrx::pg_sys;
use std::sync::atomic::Ordering::Relaxed;

/// How often, a millisecond each, a process waits for another that is reading the same model from the table. Not for
/// ever: that one may wait for a lock of this one's.
const WAITS: usize = 2000;

/// What to do about a model.
pub enum Claim {
    /// it is there
    Found(Shared),
    /// it is not: this process is to read it from the table, while others wait
    Load(Loading),
    /// there is no room, or it takes too long: this process is to read it for itself
    Private,
}

/// A slot that this process is to fill; given up when dropped.
pub struct Loading {
    slot: usize,
    published: bool,
}

/// What the cache knows of one entry.
pub struct Stat {
    pub model: i64,
    pub bytes: i64,
    pub predictions: i64,
    pub hits: i64,
}

/// Looks for a model; waits while another process reads it from the table.
pub fn claim(key: &Key) -> Claim {
    for _ in 0..WAITS {
        let found = shared(|directory| {
            directory.find(key).map(|i| {
                let slot = &directory.slots[i];
                (slot.state == READY).then(|| {
                    slot.pin(directory);
                    Shared::of_slot(i, slot)
                })
            })
        });
        match found {
            Some(Some(found)) => {
                let again = HELD.with_borrow(|held| held.pinned.iter().any(|pin| pin.is(&found)));
                if again {
                    unpin(&[(found.slot, 0, 0)]);
                }
                found.hold();
                // the one that is remembered, with its counts
                let held = HELD.with_borrow(|held| held.pinned.iter().find(|pin| pin.is(&found)).cloned());
                let found = held.unwrap_or(found);
                found.counts.hits.set(found.counts.hits.get() + 1);
                return Claim::Found(found);
            }
            Some(None) => {
                check_for_interrupts();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            None => {
                let taken = exclusive(|directory| match directory.find(key) {
                    Some(_) => None,
                    None => Some(directory.take(key, LOADING)),
                });
                match taken {
                    None => {}
                    Some(None) => return Claim::Private,
                    Some(Some(slot)) => {
                        HELD.with_borrow_mut(|held| held.loading.push(slot));
                        return Claim::Load(Loading { slot, published: false });
                    }
                }
            }
        }
    }
    Claim::Private
}

impl Loading {
    /// Shows others the model, which keeps this process' pin. None if there is no room.
    pub fn publish(mut self, arrays: Arrays) -> Option<Shared> {
        fill(self.slot, arrays)?;
        let found = exclusive(|directory| {
            let slot = &mut directory.slots[self.slot];
            slot.state = READY;
            Shared::of_slot(self.slot, slot)
        });
        self.published = true;
        HELD.with_borrow_mut(|held| held.loading.retain(|slot| *slot != self.slot));
        found.hold();
        Some(found)
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        // While an ERROR unwinds nothing may be called: the end of the (sub)transaction frees the slot.
        if !self.published && !std::thread::panicking() {
            HELD.with_borrow_mut(|held| held.loading.retain(|slot| *slot != self.slot));
            exclusive(|directory| directory.free(self.slot));
        }
    }
}

/// Copies the arrays into a slot that only this process uses. None if there is no room.
fn fill(slot: usize, arrays: Arrays) -> Option<()> {
    let floats: [&[f32]; FLOATS] = [arrays.weights, arrays.intercepts, arrays.fill];
    let doubles: [&[f64]; ARRAYS - FLOATS] = [arrays.mean, arrays.scale];
    let mut lens = [0; ARRAYS];
    floats
        .iter()
        .map(|array| array.len())
        .chain(doubles.iter().map(|array| array.len()))
        .zip(&mut lens)
        .for_each(|(len, place)| *place = len);
    let offsets = offsets(&lens);
    let start = exclusive(|directory| {
        let start = directory.allocate(offsets[ARRAYS])?;
        let slot = &mut directory.slots[slot];
        (slot.start, slot.bytes, slot.lens) = (start, offsets[ARRAYS], lens);
        Some(start)
    })?;
    // SAFETY: these bytes of the arena are this slot's, which no one else reads yet.
    unsafe {
        let at = |i: usize| arena().add(start + offsets[i]);
        for (i, array) in floats.iter().enumerate() {
            std::ptr::copy_nonoverlapping(array.as_ptr().cast(), at(i), size_of_val(*array));
        }
        for (i, array) in (FLOATS..).zip(&doubles) {
            std::ptr::copy_nonoverlapping(array.as_ptr().cast(), at(i), size_of_val(*array));
        }
    }
    Some(())
}

/// Puts in a model that this transaction has just stored; others find it when it has committed. Does nothing if there
/// is no room.
pub fn announce(key: &Key, arrays: Arrays) {
    let Some(slot) = exclusive(|directory| directory.take(key, PENDING)) else { return };
    // SAFETY: reads a variable.
    let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    HELD.with_borrow_mut(|held| held.pending.push((slot, level)));
    if fill(slot, arrays).is_none() {
        HELD.with_borrow_mut(|held| held.pending.retain(|(pending, _)| *pending != slot));
        exclusive(|directory| directory.free(slot));
    }
}

/// A model's row was changed or deleted: when this transaction has committed, its entries go.
pub fn forget(model: i64) {
    if !enabled() {
        return;
    }
    HELD.with_borrow_mut(|held| {
        if held.forgotten.last() != Some(&model) {
            held.forgotten.push(model);
        }
        let of_it = |(slot, _): &(usize, i32)| shared(|directory| directory.slots[*slot].key.model == model);
        let (old, rest): (Vec<_>, Vec<_>) = held.pending.iter().copied().partition(of_it);
        held.pending = rest;
        exclusive(|directory| old.iter().for_each(|(slot, _)| directory.free(*slot)));
    });
}

/// The entries of this database.
pub fn stats() -> Vec<Stat> {
    if !enabled() {
        return Vec::new();
    }
    // SAFETY: reads a variable.
    let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
    shared(|directory| {
        let mine = directory.slots.iter().filter(|slot| slot.state == READY && slot.key.database == database);
        mine.map(|slot| Stat {
            model: slot.key.model,
            bytes: slot.bytes as i64,
            predictions: slot.predictions.load(Relaxed) as i64,
            hits: slot.hits.load(Relaxed) as i64,
        })
        .collect()
    })
}

/// The models of this database that transactions are using, this one among them.
pub fn pinned() -> Vec<i64> {
    if !enabled() {
        return Vec::new();
    }
    // SAFETY: reads a variable.
    let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
    shared(|directory| {
        let used = |slot: &&Slot| slot.state != FREE && slot.key.database == database && slot.pins.load(Relaxed) > 0;
        directory.slots.iter().filter(used).map(|slot| slot.key.model).collect()
    })
}
