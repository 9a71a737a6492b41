//! Names of relations, and names and texts as SQL writes them.

use crate::tuples::place::{Place, RowAt};
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// A relation's name, for people; its OID if it is no more.
pub fn name_of(oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog lookup, which gives a C string or NULL.
    unsafe {
        let name = pg_sys::get_rel_name(oid);
        if name.is_null() { oid.to_u32().to_string() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
    }
}

/// A column name, quoted where SQL wants it.
pub fn quote_identifier(name: &str) -> String {
    quote_identifier_bytes(&CString::new(name).unwrap_or_default()).to_string_lossy().into_owned()
}

/// As [`quote_identifier`], of a name in the server's encoding.
pub fn quote_identifier_bytes(name: &CStr) -> CString {
    // SAFETY: a C string in, a C string out, which may be the same one and is copied.
    unsafe { CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())).to_owned() }
}

/// A text as SQL writes it.
pub fn quote_literal(text: &str) -> String {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: a C string in, a C string out.
    unsafe { CStr::from_ptr(pg_sys::quote_literal_cstr(text.as_ptr())).to_string_lossy().into_owned() }
}

/// Where a row stands, with the name of its table if that is needed to find it.
pub fn place_of(at: RowAt) -> Place {
    let table = match at {
        RowAt::CtidOf(table, ..) => Some(name_of(table.into())),
        _ => None,
    };
    Place { at, table }
}
