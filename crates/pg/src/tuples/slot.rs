//! Slots: where the executor has a row.
//!
//! A slot is known by its pointer, and several handles may mean the same one. What keeps a row in place while it is
//! read is counted instead: as long as [`Slot::with_row`] runs,
//! nothing may change a slot or ask the executor for a row.

use super::row::{Row, RowTypes};
use pgrx::pg_sys;
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// rows of slots that are being read
    static BEING_READ: Cell<u32> = const { Cell::new(0) };
}

/// An ERROR while a row of a slot is being read: what follows might pull it away.
#[inline]
pub(crate) fn require_unread() {
    if BEING_READ.get() != 0 {
        refuse();
    }
}

#[cold]
fn refuse() -> ! {
    // an ERROR ends the reads, too
    pgrx::error!("a row is being read in a slot that is about to change")
}

/// One row more is being read, until this is dropped.
struct BeingRead;

impl BeingRead {
    fn begin() -> BeingRead {
        BEING_READ.set(BEING_READ.get() + 1);
        BeingRead
    }
}

impl Drop for BeingRead {
    fn drop(&mut self) {
        BEING_READ.set(BEING_READ.get() - 1);
    }
}

/// A slot that holds, or may hold, a row.
#[derive(Clone, Copy)]
pub struct Slot<'a>(pub(crate) *mut pg_sys::TupleTableSlot, PhantomData<&'a ()>);

impl<'a> Slot<'a> {
    /// The slot at this address.
    ///
    /// # Safety
    /// It is one, and stays one for `'a`.
    pub(crate) unsafe fn new(slot: *mut pg_sys::TupleTableSlot) -> Slot<'a> {
        Slot(slot, PhantomData)
    }

    /// The slot if it holds a row (the executor's end of data is NULL or an empty slot).
    ///
    /// # Safety
    /// It is NULL, or a slot that stays one for `'a`.
    pub(crate) unsafe fn filled(slot: *mut pg_sys::TupleTableSlot) -> Option<Slot<'a>> {
        // SAFETY: the caller's promise.
        let is_empty = unsafe { slot.is_null() || is_empty(slot) };
        (!is_empty).then_some(Slot(slot, PhantomData))
    }

    /// Empties the slot.
    #[inline]
    pub fn clear(self) {
        require_unread();
        // SAFETY: any slot can be cleared, and no one reads a row.
        unsafe { pg_sys::ExecClearTuple(self.0) };
    }

    /// Shows `f` the row's values, deformed. An ERROR if there is no row.
    #[inline]
    pub fn with_row<R>(self, f: impl FnOnce(Row<'_>) -> R) -> R {
        let _being_read = BeingRead::begin();
        // SAFETY: the slot holds a row, whose values stay where they are while it is being read. The arrays of the
        // slot, and the attributes of its descriptor, are as many as were deformed, or more.
        let row = unsafe {
            if is_empty(self.0) {
                pgrx::error!("the slot is empty");
            }
            pg_sys::slot_getallattrs(self.0);
            let slot = &*self.0;
            let n = slot.tts_nvalid as usize;
            let types = RowTypes::of_descriptor(slot.tts_tupleDescriptor);
            let values = std::slice::from_raw_parts(slot.tts_values, n);
            Row::new(values, std::slice::from_raw_parts(slot.tts_isnull, n), types)
        };
        f(row)
    }
}

/// Is there no row in the slot?
///
/// # Safety
/// It is a slot.
unsafe fn is_empty(slot: *mut pg_sys::TupleTableSlot) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 }
}

/// The slots to which somebody has given rows that lie in memory of his own.
#[derive(Default)]
pub(crate) struct LentRows(Vec<*mut pg_sys::TupleTableSlot>);

impl LentRows {
    /// A row is being given to this slot.
    #[inline]
    pub fn lend(&mut self, slot: Slot<'_>) {
        require_unread();
        if !self.0.contains(&slot.0) {
            self.0.push(slot.0);
        }
    }

    /// The rows' memory is about to change: no slot may point to it any more.
    ///
    /// # Safety
    /// The query to which the slots belong has not ended.
    #[inline]
    pub unsafe fn recall(&mut self) {
        require_unread();
        for slot in self.0.drain(..) {
            // SAFETY: the caller's promise; any slot can be cleared, and no one reads a row.
            unsafe { pg_sys::ExecClearTuple(slot) };
        }
    }
}
