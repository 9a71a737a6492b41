//! What may fail without ending the statement: it runs in a subtransaction, which is rolled back then.

use pgrx::PgTryBuilder;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::PgSqlErrorCode;
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;

/// An error that was caught.
#[derive(Debug)]
pub struct Caught {
    /// as PostgreSQL writes it, without the detail
    pub message: String,
    /// what PostgreSQL adds to the message
    pub detail: Option<String>,
}

/// The name of the memory context of what `f` makes.
const CONTEXT: &CStr = c"corgipile attempt";

/// Runs `f`, and gives its result, or an error of PostgreSQL that `is_meant` by its SQLSTATE. All others are raised
/// again. What `f` has made in its memory context is there as long as the caller's, and goes at once with an error.
///
/// During a parallel operation, which permits no subtransactions, all errors are raised.
pub fn attempt<R>(is_meant: fn(PgSqlErrorCode) -> bool, f: impl FnOnce() -> R) -> Result<R, Caught> {
    // SAFETY: reads a variable.
    if unsafe { pg_sys::IsInParallelMode() } {
        return Ok(f());
    }
    // SAFETY: a subtransaction around a call, as every procedural language has for its exception blocks; afterwards the
    // memory context and the resource owner are those of before.
    unsafe {
        let (caller, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        let memory = pg_sys::AllocSetContextCreateInternal(
            caller,
            CONTEXT.as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        pg_sys::MemoryContextSwitchTo(memory);
        let go_back = || {
            pg_sys::MemoryContextSwitchTo(caller);
            pg_sys::CurrentResourceOwner = owner;
        };
        let result = PgTryBuilder::new(AssertUnwindSafe(|| Ok(f())))
            .catch_others(|error| {
                pg_sys::RollbackAndReleaseCurrentSubTransaction();
                go_back();
                // sessions on other servers end
                pg_sys::MemoryContextDelete(memory);
                match &error {
                    CaughtError::PostgresError(report) | CaughtError::ErrorReport(report)
                        if is_meant(report.sql_error_code()) =>
                    {
                        let (message, detail) = (report.message().to_owned(), report.detail().map(str::to_owned));
                        Err(Caught { message, detail })
                    }
                    _ => error.rethrow(),
                }
            })
            .execute();
        if result.is_ok() {
            pg_sys::ReleaseCurrentSubTransaction();
            go_back();
        }
        result
    }
}
