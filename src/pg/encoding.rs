//! Texts of the database as Rust's, which are UTF-8.

use crate::errors::{ArgumentError, OrRaise, Result};
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError as NoArgument, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use std::ops::Deref;

/// Names, queries and labels pass through Rust strings, which are UTF-8.
///
/// # Errors
/// [`ArgumentError::Encoding`] if the database has another encoding. (SQL_ASCII is none.)
pub fn require_utf8() -> Result<()> {
    match encoding() {
        pg_sys::pg_enc::PG_UTF8 | pg_sys::pg_enc::PG_SQL_ASCII => Ok(()),
        _ => Err(ArgumentError::Encoding.into()),
    }
}

/// Has the server checked that every text is UTF-8?
pub(in crate::pg) fn is_utf8() -> bool {
    encoding() == pg_sys::pg_enc::PG_UTF8
}

fn encoding() -> pg_sys::pg_enc::Type {
    // SAFETY: reads what was set when the session began.
    (unsafe { pg_sys::GetDatabaseEncoding() }) as pg_sys::pg_enc::Type
}

/// A text whose bytes are these, in the encoding of the database.
///
/// # Errors
/// [`ArgumentError::Encoding`] if it has letters beyond ASCII and the database another encoding than UTF8;
/// [`ArgumentError::NotUtf8`] if the database has none and the bytes are not UTF-8.
pub(in crate::pg) fn text(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes);
    match encoding() {
        pg_sys::pg_enc::PG_UTF8 | pg_sys::pg_enc::PG_SQL_ASCII => {
            text.map_err(|_| ArgumentError::NotUtf8(String::from_utf8_lossy(bytes).into_owned()).into())
        }
        _ => text.ok().filter(|text| text.is_ascii()).ok_or(ArgumentError::Encoding.into()),
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
        // SAFETY: the caller's promise: the argument is a text.
        let bytes = unsafe { arg.unbox_arg_using_from_datum::<&'fcx [u8]>() };
        Text(bytes.map_or(Ok(""), text).or_raise())
    }
}

// SAFETY: nothing is generated from it: the functions are declared by hand in sql/.
unsafe impl SqlTranslatable for Text<'_> {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Text<'_>);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: std::result::Result<SqlMappingRef, NoArgument> = Ok(SqlMappingRef::literal("text"));
    const RETURN_SQL: std::result::Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("text")));
}
