//! The ends of transactions: pins are given back, and others find what was announced.

use super::directory::{DOOMED, READY, SLOTS};
use super::memory::{enabled, exclusive};
use super::pins::{HELD, Shared, take_held, unpin};
use pgrx::prelude::*;
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

/// Has PostgreSQL tell of the ends of transactions. Called once, by _PG_init.
pub fn install() {
    // SAFETY: _PG_init runs on the only thread.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_ends), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ends), std::ptr::null_mut());
    }
}

/// Gives back everything. Raises no ERROR: a transaction that has committed cannot fail.
fn end(committed: bool) {
    let held = take_held();
    if !held.pinned.is_empty() {
        let take = |pin: &Shared| (pin.slot, pin.counts.predictions.take(), pin.counts.hits.take());
        unpin(&held.pinned.iter().map(take).collect::<Vec<_>>());
    }
    if held.loading.is_empty() && held.pending.is_empty() && (held.forgotten.is_empty() || !committed) {
        return;
    }
    // SAFETY: reads a variable.
    let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
    exclusive(|directory| {
        held.loading.iter().for_each(|slot| directory.free(*slot));
        if committed {
            for i in 0..SLOTS {
                let slot = &mut directory.slots[i];
                if slot.state == READY && slot.key.database == database && held.forgotten.contains(&slot.key.model) {
                    if slot.pins.load(Relaxed) == 0 {
                        directory.free(i);
                    } else {
                        slot.state = DOOMED;
                    }
                }
            }
        }
        for (slot, _) in &held.pending {
            if committed {
                directory.slots[*slot].state = READY;
                directory.slots[*slot].pins.store(0, Relaxed);
            } else {
                directory.free(*slot);
            }
        }
    });
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_ends(event: pg_sys::XactEvent::Type, _data: *mut c_void) {
    use pg_sys::XactEvent::*;
    if !enabled() {
        return;
    }
    match event {
        XACT_EVENT_COMMIT | XACT_EVENT_PARALLEL_COMMIT => end(true),
        // what is prepared may still be rolled back: it is read from the table when it has committed
        XACT_EVENT_ABORT | XACT_EVENT_PARALLEL_ABORT | XACT_EVENT_PREPARE => end(false),
        _ => {}
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_ends(
    event: pg_sys::SubXactEvent::Type,
    _own: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _data: *mut c_void,
) {
    if !enabled() {
        return;
    }
    // SAFETY: reads a variable: the subtransaction that ends is still the current one.
    let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    HELD.with_borrow_mut(|held| match event {
        pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            let (gone, rest): (Vec<_>, Vec<_>) = held.pending.iter().copied().partition(|(_, of)| *of >= level);
            held.pending = rest;
            let loading = std::mem::take(&mut held.loading);
            if !gone.is_empty() || !loading.is_empty() {
                exclusive(|directory| {
                    gone.iter().for_each(|(slot, _)| directory.free(*slot));
                    loading.iter().for_each(|slot| directory.free(*slot));
                });
            }
        }
        pg_sys::SubXactEvent::SUBXACT_EVENT_COMMIT_SUB => {
            held.pending.iter_mut().filter(|(_, of)| *of >= level).for_each(|(_, of)| *of = level - 1);
        }
        _ => {}
    });
}
