//! What an error says besides its message.

/// An SQLSTATE.
pub use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;

/// An error that can be raised in PostgreSQL. Its message is what it displays.
pub trait Report: std::error::Error {
    /// The SQLSTATE, on which programs act.
    fn sqlstate(&self) -> Code;

    /// What the user can do.
    fn hint(&self) -> Option<String>;
}
