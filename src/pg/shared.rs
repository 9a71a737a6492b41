//! Dynamic shared memory, by the segment.
//!
//! Segments belong to the resource owner under which they were made or attached, and go away with it after an ERROR;
//! nothing happens when a Rust value is dropped.

use pgrx::PgTryBuilder;
use pgrx::pg_sys;
use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use std::panic::AssertUnwindSafe;

/// Runs `f`, what it makes belonging to `owner`. None if memory or disk space could not be had: then `owner` is empty again.
pub(super) fn with_owner<R>(owner: pg_sys::ResourceOwner, f: impl FnOnce() -> R) -> Option<R> {
    // SAFETY: owner and memory context are put back on every way out that is not an ERROR.
    unsafe {
        let (caller, context) = (pg_sys::CurrentResourceOwner, pg_sys::CurrentMemoryContext);
        pg_sys::CurrentResourceOwner = owner;
        let mut f = Some(f);
        let run = AssertUnwindSafe(|| f.take().map(|f| f()));
        let result = PgTryBuilder::new(run)
            .catch_when(PgSqlErrorCode::ERRCODE_DISK_FULL, |_| None)
            .catch_when(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, |_| None)
            .catch_when(PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES, |_| None)
            .execute();
        pg_sys::MemoryContextSwitchTo(context);
        if result.is_none() {
            release(owner);
        }
        pg_sys::CurrentResourceOwner = caller;
        result
    }
}

/// Lets go of what an owner has.
unsafe fn release(owner: pg_sys::ResourceOwner) {
    use pg_sys::ResourceReleasePhase as Phase;
    // SAFETY: all three phases, in their order, as for any owner that is given up.
    unsafe {
        let caller = pg_sys::CurrentResourceOwner;
        for phase in
            [Phase::RESOURCE_RELEASE_BEFORE_LOCKS, Phase::RESOURCE_RELEASE_LOCKS, Phase::RESOURCE_RELEASE_AFTER_LOCKS]
        {
            pg_sys::ResourceOwnerRelease(owner, phase, false, false);
        }
        pg_sys::CurrentResourceOwner = caller;
    }
}

/// Deletes an owner, with what it has.
pub(super) unsafe fn delete_owner(owner: pg_sys::ResourceOwner) {
    // SAFETY: the caller's owner, deleted once.
    unsafe {
        release(owner);
        pg_sys::ResourceOwnerDelete(owner);
    }
}
