//! Snapshots: which rows a statement sees.

use pgrx::pg_sys;
use std::marker::PhantomData;

/// Do all statements of the transaction see the same rows, so that it fails where others have changed one?
pub fn is_of_transaction() -> bool {
    // SAFETY: reads a variable.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
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

    /// Shows `f` the snapshot of the statement that is running. An ERROR if there is none.
    pub fn with_active<R>(f: impl FnOnce(Snapshot<'_>) -> R) -> R {
        // SAFETY: reads PostgreSQL's stack of snapshots; what is pushed on it meanwhile is popped again.
        let active = unsafe { pg_sys::GetActiveSnapshot() };
        if active.is_null() {
            pgrx::error!("no statement is running");
        }
        f(Snapshot(active, PhantomData))
    }

    /// The snapshot as PostgreSQL knows it.
    pub(in crate::pg) fn as_ptr(self) -> pg_sys::Snapshot {
        self.0
    }
}
