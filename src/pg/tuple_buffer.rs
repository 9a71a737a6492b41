//! Copies of tuples, in a memory context of their own.

use super::custom_scan::Slot;
use pgrx::prelude::*;

/// A buffer of minimal tuples.
pub struct TupleBuffer {
    context: pg_sys::MemoryContext,
    tuples: Vec<pg_sys::MinimalTuple>,
    bytes: usize,
}

impl TupleBuffer {
    /// An empty buffer, which goes away with the current memory context.
    pub fn new() -> TupleBuffer {
        // SAFETY: a child of the current context.
        let context = unsafe {
            pg_sys::AllocSetContextCreateInternal(
                pg_sys::CurrentMemoryContext,
                c"CorgiPileTupleShuffle".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            )
        };
        TupleBuffer { context, tuples: Vec::new(), bytes: 0 }
    }

    /// How many tuples there are.
    pub fn len(&self) -> usize {
        self.tuples.len()
    }

    /// The memory that they take, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies a row.
    pub fn push(&mut self, row: Slot) {
        // SAFETY: the slot holds a row; the copy lives in our context.
        unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(self.context);
            let tuple = pg_sys::ExecCopySlotMinimalTuple(row.0);
            pg_sys::MemoryContextSwitchTo(caller);
            self.bytes += (*tuple).t_len as usize + size_of::<pg_sys::MinimalTuple>();
            self.tuples.push(tuple);
        }
    }

    /// Puts tuple `i` into a slot for minimal tuples, which must be cleared before the buffer is.
    pub fn store(&self, i: usize, slot: Slot) {
        // SAFETY: the tuple lives until clear().
        unsafe { pg_sys::ExecStoreMinimalTuple(self.tuples[i], slot.0, false) };
    }

    /// Keeps the tuples at these places, which ascend, and removes the others; those that stay close up. None of the
    /// others may be in a slot any more.
    pub fn keep(&mut self, places: &[u32]) {
        if places.is_empty() {
            return self.clear();
        }
        let (mut place, mut places) = (0, places.iter().copied().peekable());
        self.tuples.retain(|tuple| {
            let stays = places.next_if_eq(&place).is_some();
            place += 1;
            if !stays {
                // SAFETY: push() has made the tuple, and nobody else has it.
                unsafe {
                    self.bytes -= (**tuple).t_len as usize + size_of::<pg_sys::MinimalTuple>();
                    pg_sys::pfree(tuple.cast());
                }
            }
            stays
        });
    }

    /// Removes all tuples.
    pub fn clear(&mut self) {
        self.tuples.clear();
        self.bytes = 0;
        // SAFETY: the context is ours.
        unsafe { pg_sys::MemoryContextReset(self.context) };
    }
}
