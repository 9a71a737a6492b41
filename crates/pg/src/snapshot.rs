//! Snapshots: which rows a statement sees.

use pgrx::pg_sys;
use std::cell::Cell;
use std::marker::PhantomData;

/// Do all statements of the transaction see the same rows, so that it fails where others have changed one?
pub fn is_of_transaction() -> bool {
    // SAFETY: reads a variable.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

thread_local! {
    /// where the transaction was after writes of the library's own, before which nothing was written
    static AFTER_OWN: Cell<Option<Writes>> = const { Cell::new(None) };
}

/// How far the writes of a transaction have come.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Writes {
    transaction: u64,
    /// that the next statement that writes has
    command: pg_sys::CommandId,
}

impl Writes {
    fn now() -> Writes {
        // SAFETY: reads variables.
        unsafe {
            let transaction = pg_sys::GetTopFullTransactionIdIfAny().value;
            Writes { transaction, command: pg_sys::GetCurrentCommandId(false) }
        }
    }
}

/// Has the transaction changed anything but what [`write_own`] has, here or on other servers by way of foreign tables?
/// A statement that changes something has a number, and is followed by one with another.
pub fn has_written() -> bool {
    let now = Writes::now();
    // TRUNCATE of a foreign table has no number: what it leaves here is its lock
    // SAFETY: reads a variable.
    let has_locked = unsafe { pg_sys::MyXactFlags } as u32 & pg_sys::XACT_FLAGS_ACQUIREDACCESSEXCLUSIVELOCK != 0;
    has_locked || ((now.transaction != 0 || now.command > 0) && AFTER_OWN.get() != Some(now))
}

/// Runs what writes to the library's own tables alone, which does not count for [`has_written`].
pub fn write_own<R>(write: impl FnOnce() -> R) -> R {
    let before = Writes::now();
    // SAFETY: as SPI does before each statement that may write. The number of the command changes if a statement that
    // is under way writes by it: INSERT INTO ... SELECT FROM corgipile_train() writes its rows when this is over.
    unsafe { pg_sys::CommandCounterIncrement() };
    let is_first = !has_written() && before == Writes::now();
    let result = write();
    // without a number of the transaction, the writes of another one could be taken for these
    let after = Writes::now();
    if is_first && after.transaction != 0 {
        AFTER_OWN.set(Some(after));
    }
    result
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
