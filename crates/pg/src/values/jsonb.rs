//! Values of type jsonb as text, which is parsed here and not by pgrx:
//! it panics at a number that JSON has and Rust has not.

use super::typed::TypedDatum;
use super::varlena::Value;
use crate::catalog::types::existing_base_type;
use crate::context::Context;
use crate::encoding::require_utf8;
use crate::errors::Error;
use pgrx::PgTryBuilder;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// A type of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    /// type json
    Json,
    /// type jsonb
    Jsonb,
}

impl JsonType {
    /// The type with this OID; for a domain, give its base type.
    pub fn from_oid(oid: pg_sys::Oid) -> Option<JsonType> {
        match oid {
            pg_sys::JSONOID => Some(JsonType::Json),
            pg_sys::JSONBOID => Some(JsonType::Jsonb),
            _ => None,
        }
    }
}

/// A value of type jsonb as it was passed: plain, compressed, or a pointer to where it is stored.
#[derive(Clone, Copy)]
pub struct Jsonb<'a>(TypedDatum<'a>);

/// What a value is recognized by.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    /// as they were passed
    pub bytes: &'a [u8],
    /// they only say where it is stored
    pub stored: bool,
}

impl<'a> Jsonb<'a> {
    /// A value whose declared type is jsonb. An ERROR if it has another.
    pub fn new(value: TypedDatum<'a>) -> Jsonb<'a> {
        value.of_type(pg_sys::JSONBOID);
        Jsonb(value)
    }

    /// What tells it apart from other values. None for the rare ones that are neither here nor in a TOAST table.
    pub fn identity(&self) -> Option<Identity<'a>> {
        let at = self.0.datum().cast_mut_ptr::<pg_sys::varlena>();
        // SAFETY: a jsonb, by its type, has as many bytes as its header says, and stays for 'a.
        unsafe {
            let stored = pgrx::varatt_is_1b_e(at);
            if stored && u32::from(pgrx::vartag_1b_e(at)) != pg_sys::vartag_external::VARTAG_ONDISK {
                return None;
            }
            let bytes = std::slice::from_raw_parts(at.cast::<u8>(), pgrx::varsize_any(at));
            Some(Identity { bytes, stored })
        }
    }

    /// Shows `f` the value as text.
    ///
    /// # Errors
    /// [`Error::Encoding`], and those of `f`.
    pub fn with_text<R, E: From<Error>>(&self, f: impl FnOnce(&str) -> Result<R, E>) -> Result<R, E> {
        require_utf8()?;
        self.with_c_text(|text| text.to_str().map_err(|_| Error::Encoding.into()).and_then(f))
    }

    /// The value.
    pub fn read(&self) -> Result<serde_json::Value, Unreadable> {
        let read = self.with_c_text(|text| serde_json::from_str(&text.to_string_lossy()));
        read.map_err(|error| Unreadable::from_error(&error).unwrap_or(Unreadable::OutOfRange))
    }

    /// Shows `f` the value as text, in the encoding of the database.
    pub(crate) fn with_c_text<R>(&self, f: impl FnOnce(&CStr) -> R) -> R {
        // SAFETY: jsonb_out gives a C string of its own for any jsonb, which the value is by its type.
        unsafe {
            let text = pg_sys::OidOutputFunctionCall(pg_sys::Oid::from(pg_sys::F_JSONB_OUT), self.0.datum());
            let result = f(CStr::from_ptr(text));
            pg_sys::pfree(text.cast());
            result
        }
    }
}

/// Why a value of type jsonb cannot be read although PostgreSQL can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// more than [`Unreadable::LEVELS`]
    TooDeep,
    /// JSON has numbers beyond double precision
    OutOfRange,
}

impl Unreadable {
    /// Levels of objects and arrays that the parser enters.
    pub const LEVELS: usize = 127;

    /// What a parser of JSON that PostgreSQL has written complains of, if it is not that the value has another type.
    pub fn from_error(error: &serde_json::Error) -> Option<Unreadable> {
        // it tells its limits apart only in words
        let words = error.to_string();
        if words.starts_with("recursion limit exceeded") {
            Some(Unreadable::TooDeep)
        } else if words.starts_with("number out of range") {
            Some(Unreadable::OutOfRange)
        } else {
            None
        }
    }

    /// What is wrong with one value.
    pub fn reason(self) -> &'static str {
        match self {
            Unreadable::TooDeep => "is nested too deeply",
            Unreadable::OutOfRange => "has a number that is out of range for type double precision",
        }
    }
}

/// The value that a JSON text stands for.
///
/// # Errors
/// PostgreSQL's own if it does not fit jsonb.
pub fn from_text(context: Context<'_>, text: String) -> Value<'_> {
    let mut text = text.into_bytes();
    allocation::expect(allocation::try_reserve_exact(&mut text, 1));
    let text = CString::new(text).unwrap_or_default(); // JSON has no bytes 0
    // SAFETY: jsonb_in takes any C string.
    context.value(|| unsafe {
        let function = pg_sys::Oid::from(pg_sys::F_JSONB_IN);
        pg_sys::OidInputFunctionCall(function, text.as_ptr().cast_mut(), pg_sys::JSONBOID, -1)
    })
}

/// The type with this name, as SQL writes it; None if it does not exist.
pub fn type_named(name: &str) -> Option<pg_sys::Oid> {
    let name = name.into_datum()?;
    // SAFETY: a function of one text, which gives a regtype or NULL.
    let find = || unsafe {
        pgrx::direct_function_call::<pg_sys::Oid>(pg_sys::to_regtype, &[Some(name)])
            .filter(|oid| existing_base_type(*oid).is_some())
    };
    // Caught to be raised again, in our own words: the statement ends either way. PostgreSQL 15 takes a name that
    // cannot be one for an error.
    PgTryBuilder::new(find).catch_when(PgSqlErrorCode::ERRCODE_SYNTAX_ERROR, |_| None).execute()
}
