//! What an error says besides its message, and how it is raised.

use super::words::shortened;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

/// An SQLSTATE.
pub use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

/// An error that can be raised in PostgreSQL. Its message is what it displays.
pub trait Report: std::error::Error {
    /// The SQLSTATE, on which programs act.
    fn sqlstate(&self) -> Code;

    /// What the user can do.
    fn hint(&self) -> Option<String>;
}

/// Raises an error in PostgreSQL; does not return.
pub fn raise(error: &impl Report) -> ! {
    let mut report = ErrorReport::new(error.sqlstate(), shortened(error), "corgipile");
    if let Some(hint) = error.hint() {
        report = report.set_hint(shortened(&hint));
    }
    report.report(PgLogLevel::ERROR);
    unreachable!("reporting an ERROR does not return")
}
