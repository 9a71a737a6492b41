//! Snapshots: which rows a statement sees.

use pgrx::pg_sys;
use std::marker::PhantomData;

/// Do all statements of the transaction see the same rows, so that it fails where others have changed one?
pub fn is_of_transaction() -> bool {
    // SAFETY: reads a variable.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Has the transaction changed anything, here or on other servers by way of foreign tables? A statement that changes
/// something has a number, and is followed by one with another.
pub fn has_written() -> bool {
    // SAFETY: reads variables.
    unsafe {
        pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId || pg_sys::GetCurrentCommandId(false) > 0
    }
}

/// May the transaction have read before, so that its statement sees rows as they were then?
pub fn may_be_of_earlier_statement() -> bool {
    // SAFETY: reads variables.
    is_of_transaction() && unsafe { pg_sys::IsTransactionBlock() }
}

/// A snapshot that is active or registered for as long as it is borrowed.
#[derive(Clone, Copy)]
pub struct Snapshot<'a>(pg_sys::Snapshot, PhantomData<&'a ()>);

impl<'a> Snapshot<'a> {
    /// A snapshot.
    ///
    /// # Safety
    /// It is active or registered for `'a`.
    pub unsafe fn new(snapshot: pg_sys::Snapshot) -> Snapshot<'a> {
        Snapshot(snapshot, PhantomData)
    }

    /// Shows `f` the snapshot of the statement that is running. An ERROR if none is running.
    pub fn with_active<R>(f: impl FnOnce(Snapshot<'_>) -> R) -> R {
        // SAFETY: reads PostgreSQL's stack of snapshots; what is pushed on it meanwhile is popped again.
        let active = unsafe { pg_sys::GetActiveSnapshot() };
        if active.is_null() {
            pgrx::error!("no statement is running");
        }
        f(Snapshot(active, PhantomData))
    }

    /// The snapshot as PostgreSQL knows it.
    pub(crate) fn as_ptr(self) -> pg_sys::Snapshot {
        self.0
    }
}
