//! Thin wrappers over raw PostgreSQL, and the only home of `unsafe` in the extension.
//!
//! Nothing in here knows about training. Handles such as [`custom_scan::Node`] are plain pointers to objects of
//! the executor; they are made only in this module, for the duration of a callback, on the backend's one thread,
//! which is what makes their safe methods sound.
#![allow(unsafe_code)]

pub mod arguments;
pub mod array;
pub mod custom_scan;
pub mod explain;
pub mod heap;
pub mod model_table;
pub mod number;
pub mod planner;
pub mod query;
pub mod relation;
pub mod row;
pub mod spool;

use pgrx::pg_sys;

/// Lets cancel, statement_timeout and termination take effect.
#[inline]
pub fn check_for_interrupts() {
    // SAFETY: reads a flag that signal handlers set; ProcessInterrupts may raise an ERROR, which unwinds.
    unsafe {
        if (&raw const pg_sys::InterruptPending).read_volatile() != 0 {
            pg_sys::ProcessInterrupts();
        }
    }
}
