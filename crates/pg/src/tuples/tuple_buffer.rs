//! Copies of tuples, in a memory context of their own.

use super::prefetch::fetch_line;
use super::slot::{LentRows, Slot};
use pgrx::prelude::*;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines of a tuple that are prefetched at most: more would push others out of the cache.
const MAX_LINES: usize = 4;

/// A buffer of minimal tuples.
pub struct TupleBuffer {
    context: pg_sys::MemoryContext,
    tuples: Vec<pg_sys::MinimalTuple>,
    bytes: usize,
    lent: LentRows,
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
        TupleBuffer { context, tuples: Vec::new(), bytes: 0, lent: LentRows::default() }
    }

    /// How many tuples there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.tuples.len()
    }

    /// The memory that they take, in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies a row.
    #[inline]
    pub fn push(&mut self, row: Slot<'_>) {
        // SAFETY: the slot holds a row; the copy lives in our context.
        unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(self.context);
            let tuple = pg_sys::ExecCopySlotMinimalTuple(row.0);
            pg_sys::MemoryContextSwitchTo(caller);
            self.bytes += (*tuple).t_len as usize + size_of::<pg_sys::MinimalTuple>();
            allocation::push(&mut self.tuples, tuple);
        }
    }

    /// Tuple `i` is stored soon: brings its first cache lines closer to the processor, as many as such tuples have.
    #[inline]
    pub fn prefetch(&self, i: usize) {
        let Some(tuple) = self.tuples.get(i) else { return };
        // without a division, as each row would have one
        let is_in_mean = |line: &usize| line * LINE * self.tuples.len() < self.bytes;
        (0..MAX_LINES).take_while(is_in_mean).for_each(|line| fetch_line(tuple.cast(), line));
    }

    /// Tuple `i` is prefetched soon: brings its place closer to the processor.
    #[inline]
    pub fn prefetch_place(&self, i: usize) {
        simd::prefetch(&self.tuples, i);
    }

    /// Puts tuple `i` into a slot for minimal tuples, where it stays until tuples are removed.
    #[inline]
    pub fn store(&mut self, i: usize, slot: Slot<'_>) {
        self.lent.lend(slot);
        // SAFETY: the tuple lives until it is removed, which empties the slot.
        unsafe { pg_sys::ExecStoreMinimalTuple(self.tuples[i], slot.0, false) };
    }

    /// Moves tuples, one after the other, each from one place to another where it replaces what is there; then removes
    /// those behind the first `len`. Slots that have any of them are emptied.
    pub fn fill_holes(&mut self, moves: impl Iterator<Item = (u32, u32)>, len: usize) {
        if len == 0 {
            return self.clear();
        }
        // SAFETY: the query goes on.
        unsafe { self.lent.recall() };
        moves.for_each(|(from, to)| self.tuples.swap(from as usize, to as usize));
        for tuple in self.tuples.drain(len..) {
            // SAFETY: push() has made the tuple, and no one else has it.
            unsafe {
                self.bytes -= (*tuple).t_len as usize + size_of::<pg_sys::MinimalTuple>();
                pg_sys::pfree(tuple.cast());
            }
        }
    }

    /// Removes all tuples. Slots that have any of them are emptied.
    pub fn clear(&mut self) {
        self.tuples.clear();
        self.bytes = 0;
        // SAFETY: the query goes on; the context is ours, and no slot points into it any more.
        unsafe {
            self.lent.recall();
            pg_sys::MemoryContextReset(self.context);
        }
    }
}
