//! Memory that runs out is an error of one statement.
//!
//! Three parts that only work together:
//! - Rust's collections call a *hook* when malloc gives nothing ([`install`]). It raises an error, by a panic, as all errors of
//!   Rust here are: it unwinds through whatever was growing, to the guard that pgrx puts before PostgreSQL's code. So no
//!   collection of this library ends the server, whether its size follows data or not. (Without a hook the process aborts, and
//!   with it, as PostgreSQL has it, all sessions.) Those that would take gigabytes for nothing compute their sizes first.
//! - An error needs memory itself: for its message, for the panic, for what destructors do. While one is on its way
//!   ([`begin`]), the [allocator] gives from a reserve what malloc refuses.
//! - PostgreSQL's errors are copied by pgrx on their way through Rust, with palloc, and palloc may have been what failed. So the
//!   copies are made in a [context](errors) that has its memory ahead.
//!
//! If all that is not enough, because an error's own way takes more than the reserve, the session ends, with its locks and
//! segments given back, and the server goes on ([`errors::end_session`]).

mod allocator;
mod errors;

use crate::error::Error;
use pgrx::pg_sys;
use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Is an error on its way, from where it is raised to the end of its transaction?
static ERROR_ON_ITS_WAY: AtomicBool = AtomicBool::new(false);

/// Sets the hook and makes the context. Called once, by _PG_init, before all that registers functions for the end of a
/// transaction: those are called in the opposite order, and the others may need the reserve.
pub fn install() {
    std::alloc::set_alloc_error_hook(refuse);
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

/// An error is raised: until [`end`] it may use the reserve.
fn begin() {
    ERROR_ON_ITS_WAY.store(true, Ordering::Relaxed);
}

/// The error is over, with its transaction or because it was caught.
fn end() {
    if ERROR_ON_ITS_WAY.swap(false, Ordering::Relaxed) {
        errors::clear();
    }
}

fn may_use_reserve() -> bool {
    ERROR_ON_ITS_WAY.load(Ordering::Relaxed) || std::thread::panicking()
}

/// Instead of aborting the process: malloc gives nothing, and what asked cannot go on without.
fn refuse(layout: Layout) {
    if may_use_reserve() {
        errors::end_session();
    }
    begin();
    Error::OutOfMemory(layout.size()).raise()
}
