//! PostgreSQL's errors on their way through Rust, without memory.
//!
//! pgrx catches an ERROR where Rust has called PostgreSQL, copies it with `CopyErrorData`, unwinds, and reports it
//! again with `errstart` before it goes back to PostgreSQL. Both palloc in whatever context is current. If that fails,
//! pgrx's guards nest until PostgreSQL's stack of errors is full, which is a PANIC. The linker puts the functions of
//! this module before the two (`--wrap`, build.rs), for the calls of this library alone.
//! Another one keeps a panic from needing libc's memory.
#![expect(ffi_unwind_calls, reason = "what barriers call themselves, and the end of the process")]

use super::state::{self, begin};
use pgrx::pg_sys;
use pgrx::prelude::PgLogLevel;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// Bytes that errors of a transaction may take without another malloc.
const CONTEXT_BYTES: usize = 64 << 10;

thread_local! {
    /// of this backend; null before [`install`]
    static CONTEXT: Cell<pg_sys::MemoryContext> = const { Cell::new(null_mut()) };
}

unsafe extern "C-unwind" {
    fn __real_CopyErrorData() -> *mut pg_sys::ErrorData;
    fn __real_errstart(level: c_int, domain: *const c_char) -> bool;
    fn errfinish(file: *const c_char, line: c_int, function: *const c_char);
    fn errcode(code: c_int) -> c_int;
    fn errmsg_internal(format: *const c_char, ...) -> c_int;
    fn errdetail_internal(format: *const c_char, ...) -> c_int;
}

/// Makes the context.
pub fn install() {
    // SAFETY: a child of the context that lives as long as the process.
    CONTEXT.set(unsafe {
        pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"corgipile errors".as_ptr(),
            CONTEXT_BYTES,
            CONTEXT_BYTES,
            CONTEXT_BYTES,
        )
    });
}

/// Frees what errors have left in the context.
pub fn clear() {
    let context = CONTEXT.get();
    if !context.is_null() {
        // SAFETY: ours; nothing of an error that is over is used any more.
        // A context that is as it was made has nothing to free.
        unsafe { pg_sys::MemoryContextReset(context) };
    }
}

/// Makes the context current for what follows.
///
/// # Safety
/// The caller, or the one that catches the error, makes another one current afterwards.
unsafe fn switch() {
    begin();
    let context = CONTEXT.get();
    if !context.is_null() {
        // SAFETY: a context that lives as long as the process.
        unsafe { pg_sys::CurrentMemoryContext = context };
    }
}

/// A copy of the current error, in our context; of one that is too large for the memory there is, the plain truth.
///
/// # Safety
/// As of `CopyErrorData`: an error has been caught.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __wrap_CopyErrorData() -> *mut pg_sys::ErrorData {
    // SAFETY: the caller's context is put back. The copy is guarded by itself,
    // because the caller's guard has been left.
    unsafe {
        let caller = pg_sys::CurrentMemoryContext;
        switch();
        let copy = || pg_sys::ffi::pg_guard_ffi_boundary(|| __real_CopyErrorData());
        let error = catch_unwind(AssertUnwindSafe(copy)).unwrap_or_else(|_| {
            switch();
            let error = pg_sys::palloc0(size_of::<pg_sys::ErrorData>()).cast::<pg_sys::ErrorData>();
            (*error).elevel = PgLogLevel::ERROR as c_int;
            (*error).sqlerrcode = pg_sys::errcodes::PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as c_int;
            (*error).message = pg_sys::pstrdup(c"out of memory".as_ptr());
            (*error).detail = pg_sys::pstrdup(c"There was no memory to copy another error.".as_ptr());
            error
        });
        pg_sys::CurrentMemoryContext = caller;
        error
    }
}

/// Begins a report. What an error's report is made of comes from our context; where it is caught,
/// another one is current again.
///
/// # Safety
/// As of `errstart`: `errfinish` follows if it returns true.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __wrap_errstart(level: c_int, domain: *const c_char) -> bool {
    // SAFETY: anyone who catches an ERROR sets the memory context, as errfinish leaves one of its own.
    unsafe {
        if level >= PgLogLevel::ERROR as c_int {
            switch();
        }
        __real_errstart(level, domain)
    }
}

/// Registers no destructor of a thread's variable. The first panic brings some, and libc aborts the process if it has
/// no memory to remember one. They would run when the process ends, and there is only one thread.
#[unsafe(no_mangle)]
extern "C" fn __wrap___cxa_thread_atexit_impl(
    _destructor: *const c_void,
    _of: *const c_void,
    _library: *const c_void,
) -> c_int {
    0
}

/// Ends this session, in the way of a FATAL error: the transaction is rolled back, locks and segments are given back.
/// In a parallel worker it ends the worker, and is an ERROR of its leader.
///
/// `bytes` are what could not be allocated. Called by the allocator, so that collections may be half changed: what
/// would drop them on the way out asks [`session_ends`](state::session_ends).
///
/// If memory runs out again on the way out, in a function that PostgreSQL calls when a process exits, PostgreSQL goes
/// on with the next of those: it calls none twice.
pub fn end_session(bytes: usize) -> ! {
    state::end_session();
    // SAFETY: errfinish of a FATAL error ends the process by exit(): no frame of Rust is left by a jump.
    unsafe {
        if __real_errstart(PgLogLevel::FATAL as c_int, null_mut()) {
            errcode(pg_sys::errcodes::PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as c_int);
            errmsg_internal(c"out of memory".as_ptr());
            errdetail_internal(c"Failed on request of %zu bytes; the session ends.".as_ptr(), bytes);
            errfinish(c"memory/errors.rs".as_ptr(), line!() as c_int, c"end_session".as_ptr());
        }
    }
    std::process::abort()
}
