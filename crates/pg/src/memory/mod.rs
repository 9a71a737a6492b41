//! Memory that runs out is an error of one statement, or else the end of one session, never of the server.
//!
//! Rust's collections abort the process when an allocation fails, and PostgreSQL then ends all sessions. Five parts
//! prevent that, and only work together:
//! - What may be large is allocated by crate [`allocation`], which handles failure: it calls [`out_of_memory`], which
//!   raises an error by a panic, as all errors of Rust here are. It unwinds to the guard that pgrx puts before
//!   PostgreSQL's code. What would take gigabytes for nothing computes its size first.
//! - Small allocations do not fail there: not everything can be left halfway (Rust's own B-trees abort the process).
//!   The [allocator] gives them from a *reserve* what malloc refuses, and the next [`check`] raises the error.
//! - An error needs memory itself: for its message, for the panic, for what destructors do. While one is on its way
//!   ([`begin`]), the reserve is for all.
//! - PostgreSQL's errors are copied by pgrx on their way through Rust, with palloc, and palloc may have been what
//!   failed. So the copies are made in a [context](errors) that has its memory ahead.
//! - Any other allocation that fails, because it is large or the reserve is used up, ends the session, with its locks
//!   and segments given back ([`errors::end_session`]).

mod allocator;
mod errors;
pub mod granules;
mod state;

use crate::errors::{Error, raise};
use pgrx::pg_sys;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::null_mut;

pub use state::check;
use state::{begin, error_is_on_its_way};

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Raises PostgreSQL's error if almost no memory is left. Called before anything of Rust's, in a process that
/// has just loaded the library: libc ends a process that has none for the library's thread-local variables when they
/// are first touched.
#[expect(ffi_unwind_calls, reason = "a barrier has thread-local variables")]
pub fn expect_some() {
    unsafe extern "C-unwind" {
        fn palloc(size: usize) -> *mut c_void;
        fn pfree(at: *mut c_void);
    }
    // SAFETY: PostgreSQL's own functions, without pgrx's guards, which have such variables. An ERROR jumps over this
    // frame and _PG_init's, which own nothing.
    unsafe { pfree(palloc(1 << 20)) }
}

/// Tells crate `allocation` what to do when memory runs out, and makes the context. Called once, by _PG_init, before
/// all that registers functions for the end of a transaction: those are called in the opposite order, and the others
/// may need the reserve.
pub fn install() {
    allocation::set_host(out_of_memory);
    allocator::END_SESSION.get_or_init(|| errors::end_session);
    errors::install();
    // SAFETY: _PG_init runs on the only thread.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_ends), null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ends), null_mut());
    }
}

unsafe extern "C-unwind" fn transaction_ends(event: pg_sys::XactEvent::Type, _: *mut c_void) {
    use pg_sys::XactEvent::{XACT_EVENT_ABORT, XACT_EVENT_COMMIT, XACT_EVENT_PARALLEL_ABORT};
    if [XACT_EVENT_ABORT, XACT_EVENT_PARALLEL_ABORT, XACT_EVENT_COMMIT].contains(&event) {
        end();
    }
}

unsafe extern "C-unwind" fn subtransaction_ends(
    event: pg_sys::SubXactEvent::Type,
    _own: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        end();
    }
}

/// The error is over, with its transaction or because it was caught.
pub(super) fn end() {
    if state::was_over() {
        errors::clear();
    }
}

/// Raises the error of an allocation that has failed.
fn out_of_memory(bytes: usize) -> ! {
    if error_is_on_its_way() {
        errors::end_session(bytes);
    }
    begin();
    raise(&Error::OutOfMemory(bytes))
}

/// What PostgreSQL owns of Rust's, and has dropped. Not when the session ends because an allocation has failed: that
/// may have been in the middle of a change of this very value.
#[repr(transparent)]
pub(super) struct Owned<T>(ManuallyDrop<T>);

impl<T> Owned<T> {
    pub(super) fn new(value: T) -> Owned<T> {
        Owned(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if !state::session_ends() {
            // SAFETY: no one uses it any more.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }
    }
}
