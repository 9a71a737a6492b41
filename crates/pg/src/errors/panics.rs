//! Rust's panics: what users see of them, and where they stand for an error of another kind.

use pgrx::PgTryBuilder;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::prelude::{PgLogLevel, PgSqlErrorCode};
use std::backtrace::Backtrace;
use std::panic::AssertUnwindSafe;

/// Runs `f`, which computes with what another server has sent: numbers may contradict each other in more ways than are
/// looked for, and then it panics, which is None. What the panic says is only logged. PostgreSQL's errors and ours pass
/// through.
pub fn unless_it_panics<R>(f: impl FnOnce() -> R) -> Option<R> {
    PgTryBuilder::new(AssertUnwindSafe(|| Some(f())))
        .catch_rust_panic(|cause| {
            if let CaughtError::RustPanic { ereport, .. } = cause {
                let message = format!("panic: {} ({}:{})", ereport.message(), ereport.file(), ereport.line_number());
                ErrorReport::new(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, message, "corgipile")
                    .report(PgLogLevel::LOG_SERVER_ONLY);
            }
            None
        })
        .execute()
}

/// Keeps backtraces out of errors, whatever `RUST_BACKTRACE` the server was started with: they tell every user where
/// the library was built. Called once, by _PG_init.
pub fn hide_backtraces() {
    // Rust looks at its environment for the first backtrace, and remembers what it found, in this library alone.
    const VARIABLE: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(VARIABLE);
    // SAFETY: _PG_init runs on the only thread.
    unsafe { std::env::set_var(VARIABLE, "0") };
    let _ = Backtrace::capture();
    // SAFETY: as above.
    unsafe {
        match before {
            Some(value) => std::env::set_var(VARIABLE, value),
            None => std::env::remove_var(VARIABLE),
        }
    }
}
