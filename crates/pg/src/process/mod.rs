//! Processes: workers, memory that they share, and what they tell each other.

pub mod all_gather;
pub mod dsm;
pub mod late_memory;
pub mod library;
pub mod parallel;
mod queue;
pub mod remote;
pub mod session;

use pgrx::pg_sys;

/// Sleeps a millisecond, or less if something else is to be looked after.
pub fn nap() {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: the process's own latch.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, 1, pg_sys::PG_WAIT_EXTENSION);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
}
