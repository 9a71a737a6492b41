//! Memory that runs out is an error of one statement.
//!
//! Four parts that only work together:
//! - Rust's collections call a *hook* when the allocator gives nothing ([`install`]). It raises an error, by a panic, as all
//!   errors of Rust here are: it unwinds through whatever was growing, to the guard that pgrx puts before PostgreSQL's code. So
//!   no collection of this library ends the server, however large it grows. (Without a hook the process aborts, and with it, as
//!   PostgreSQL has it, all sessions.) Those that would take gigabytes for nothing compute their sizes first.
//! - Small allocations do not fail there: not everything can be left halfway (Rust's own B-trees abort the process). The
//!   [allocator] gives them from a *reserve* what malloc refuses, and the next [`check`] raises the error.
//! - An error needs memory itself: for its message, for the panic, for what destructors do. While one is on its way ([`begin`]),
//!   the reserve is for all.
//! - PostgreSQL's errors are copied by pgrx on their way through Rust, with palloc, and palloc may have been what failed. So the
//!   copies are made in a [context](errors) that has its memory ahead.
//!
//! If all that is not enough, because an error's own way takes more than the reserve, the session ends, with its locks and
//! segments given back, and the server goes on ([`errors::end_session`]).

mod allocator;
mod errors;

use crate::errors::{Error, ResourceError};
use pgrx::pg_sys;
use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Is an error on its way, from where it is raised to the end of its transaction?
static ERROR_ON_ITS_WAY: AtomicBool = AtomicBool::new(false);

/// Bytes that malloc has refused and the reserve has given without an error yet; 0: none.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the reserve gives when no error is on its way. (A node of a B-tree has eleven keys and values.)
const SMALL: usize = 64 << 10;

/// Raises PostgreSQL's error if there is hardly any memory left. Called before anything of Rust's, in a process that has just
/// loaded the library: libc ends a process that has none for the library's thread-local variables when they are first touched.
pub fn expect_some() {
    unsafe extern "C-unwind" {
        fn palloc(size: usize) -> *mut c_void;
        fn pfree(at: *mut c_void);
    }
    // SAFETY: PostgreSQL's own functions, without pgrx's guards, which have such variables. An ERROR jumps over this frame and
    // _PG_init's, which own nothing.
    unsafe { pfree(palloc(1 << 20)) }
}

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

/// Raises an error if malloc has refused something small since the last one.
#[inline]
pub fn check() {
    let refused = REFUSED.load(Ordering::Relaxed);
    if refused != 0 && !ERROR_ON_ITS_WAY.load(Ordering::Relaxed) {
        begin();
        Error::from(ResourceError::OutOfMemory(refused)).raise()
    }
}

/// An error is raised: until [`end`] it may use the reserve.
fn begin() {
    ERROR_ON_ITS_WAY.store(true, Ordering::Relaxed);
}

/// The error is over, with its transaction or because it was caught.
pub(super) fn end() {
    REFUSED.store(0, Ordering::Relaxed);
    if ERROR_ON_ITS_WAY.swap(false, Ordering::Relaxed) {
        errors::clear();
    }
}

fn error_is_on_its_way() -> bool {
    ERROR_ON_ITS_WAY.load(Ordering::Relaxed) || std::thread::panicking()
}

/// malloc has refused this: may it come from the reserve?
fn may_use_reserve(bytes: usize) -> bool {
    if error_is_on_its_way() {
        return true;
    }
    let is_small = bytes <= SMALL;
    if is_small {
        REFUSED.store(bytes.max(1), Ordering::Relaxed);
    }
    is_small
}

/// Instead of aborting the process: neither malloc nor the reserve gives anything, and what asked cannot go on without.
fn refuse(layout: Layout) {
    if error_is_on_its_way() {
        errors::end_session(layout.size());
    }
    begin();
    Error::from(ResourceError::OutOfMemory(layout.size())).raise()
}
