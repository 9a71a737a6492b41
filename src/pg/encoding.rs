//! The encoding of the database.

use crate::errors::{ArgumentError, Result};
use pgrx::pg_sys;

/// Names, queries and labels pass through Rust strings, which are UTF-8.
///
/// # Errors
/// [`ArgumentError::Encoding`] if the database has another encoding. (SQL_ASCII is none.)
pub fn require_utf8() -> Result<()> {
    // SAFETY: reads what was set when the session began.
    match unsafe { pg_sys::GetDatabaseEncoding() } as pg_sys::pg_enc::Type {
        pg_sys::pg_enc::PG_UTF8 | pg_sys::pg_enc::PG_SQL_ASCII => Ok(()),
        _ => Err(ArgumentError::Encoding.into()),
    }
}
