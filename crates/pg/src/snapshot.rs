//! Snapshots: which rows a statement sees.

use pgrx::pg_sys;
use std::marker::PhantomData;
use std::sync::atomic::{Ordering::SeqCst, fence};

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
    pub(crate) fn as_ptr(self) -> pg_sys::Snapshot {
        self.0
    }
}

/// A promise of a process: as long as its transaction has this snapshot, VACUUM takes no row away, and marks no page as
/// visible to all, on account of a transaction that this snapshot may not see.
///
/// That is what a process tells others by the xmin in its `PGPROC`. Whether it still does is for them to
/// [see](Held::is_held).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// which of the server's processes it is
    process: u32,
    pid: i32,
    /// transactions before this one have ended, as the snapshot sees it
    xmin: u32,
}

impl Held {
    /// By this process, with a snapshot that it has registered. None if VACUUM does not ask this process, as it does
    /// not ask another VACUUM, or if the snapshot is of a kind that says nothing of transactions.
    ///
    /// # Safety
    /// The snapshot is registered.
    pub(crate) unsafe fn by(snapshot: pg_sys::Snapshot) -> Option<Held> {
        // SAFETY: the caller's promise; a process in a transaction has its PGPROC, which is one of the array's.
        unsafe {
            let own = pg_sys::MyProc;
            let not_asked = (pg_sys::PROC_IN_VACUUM | pg_sys::PROC_IN_LOGICAL_DECODING) as u8;
            let is_asked = (&raw const (*own).statusFlags).read_volatile() & not_asked == 0;
            if (*snapshot).snapshot_type != pg_sys::SnapshotType::SNAPSHOT_MVCC || !is_asked {
                return None;
            }
            let process = own.offset_from((*pg_sys::ProcGlobal).allProcs) as u32;
            let held = Held { process, pid: pg_sys::MyProcPid, xmin: number((*snapshot).xmin) };
            held.is_held().then_some(held)
        }
    }

    /// Is it kept at this moment, which is after whatever this process has read before?
    pub fn is_held(self) -> bool {
        fence(SeqCst);
        // SAFETY: the array of PGPROCs is there as long as the server, and has as many as it says. They are changed by
        // their processes at any time: what is read here are words that are written in one piece.
        unsafe {
            let all = &*pg_sys::ProcGlobal;
            if self.process >= all.allProcCount {
                return false;
            }
            let process = all.allProcs.add(self.process as usize);
            let is_it = || (&raw const (*process).pid).read_volatile() == self.pid;
            if !is_it() {
                return false;
            }
            let xmin = (&raw const (*process).xmin).read_volatile();
            fence(SeqCst);
            is_it()
                && number(xmin) != 0 // InvalidTransactionId: no snapshot at all
                && pg_sys::TransactionIdPrecedesOrEquals(xmin, transaction(self.xmin))
        }
    }

    /// The same as numbers, for other processes.
    pub fn to_words(self) -> [u64; 2] {
        [u64::from(self.process) << 32 | u64::from(self.pid as u32), self.xmin.into()]
    }

    /// What [`to_words`](Held::to_words) gave in some process of this server.
    pub fn from_words([process, xmin]: [u64; 2]) -> Held {
        Held { process: (process >> 32) as u32, pid: process as u32 as i32, xmin: xmin as u32 }
    }

    /// The process.
    pub fn pid(self) -> i32 {
        self.pid
    }
}

fn number(transaction: pg_sys::TransactionId) -> u32 {
    transaction.into_inner()
}

fn transaction(number: u32) -> pg_sys::TransactionId {
    pg_sys::TransactionId::from_inner(number)
}
