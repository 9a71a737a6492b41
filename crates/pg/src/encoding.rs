//! Texts of the database as Rust's, which are UTF-8.

use crate::declared::declared_by_hand;
use crate::errors::{Error, OrRaise, Result};
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys;
use std::ops::Deref;

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

/// An argument of type text. pgrx's own `&str` ends with an internal error where the bytes are not UTF-8.
pub struct Text<'a>(&'a str);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

// SAFETY: as pgrx's own of `&[u8]`, whose bytes lie as a text's do.
unsafe impl<'fcx> ArgAbi<'fcx> for Text<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's promise: the argument is a text, and not NULL.
        let bytes = unsafe { arg.unbox_arg_using_from_datum::<&'fcx [u8]>() };
        Text(text(bytes.expect("the argument is not NULL")).or_raise())
    }
}

declared_by_hand!(Text<'_>, "text");
