//! Texts of the database as Rust's, which are UTF-8.

use crate::errors::{Error, Result};
use pgrx::pg_sys;

/// Names, queries and labels pass through Rust strings, which are UTF-8.
///
/// # Errors
/// [`Error::Encoding`] if the database has another encoding. (SQL_ASCII is not one.)
pub fn require_utf8() -> Result<()> {
    match encoding() {
        pg_sys::pg_enc::PG_UTF8 | pg_sys::pg_enc::PG_SQL_ASCII => Ok(()),
        _ => Err(Error::Encoding),
    }
}

/// Has the server checked that every text is UTF-8?
pub(crate) fn is_utf8() -> bool {
    encoding() == pg_sys::pg_enc::PG_UTF8
}

fn encoding() -> pg_sys::pg_enc::Type {
    // SAFETY: reads what was set when the session began.
    (unsafe { pg_sys::GetDatabaseEncoding() }) as pg_sys::pg_enc::Type
}

/// A text whose bytes are these, in the encoding of the database.
pub(crate) fn text(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes);
    match encoding() {
        pg_sys::pg_enc::PG_UTF8 | pg_sys::pg_enc::PG_SQL_ASCII => {
            text.map_err(|_| Error::NotUtf8(String::from_utf8_lossy(bytes).into_owned()))
        }
        _ => text.ok().filter(|text| text.is_ascii()).ok_or(Error::Encoding),
    }
}
