//! Where the table is.

use errors::{ModelError, raise};
use pgrx::pg_sys;
use std::ffi::CStr;

fn schema_oid() -> pg_sys::Oid {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::get_namespace_oid(c"corgipile".as_ptr(), true) }
}

fn relation_oid(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a catalog lookup; there is nothing in schema InvalidOid.
    let oid = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema_oid()) };
    (oid != pg_sys::Oid::INVALID).then_some(oid)
}

/// The relation of schema corgipile with this name. Raises [`ModelError::NoModelTable`] if it does not exist.
pub(super) fn existing(name: &CStr) -> pg_sys::Oid {
    relation_oid(name).unwrap_or_else(|| raise(&ModelError::NoModelTable(name.to_string_lossy().into_owned())))
}

pub(super) fn table_oid() -> pg_sys::Oid {
    existing(c"stored_models")
}

/// Raises [`ModelError::NoModelTable`] if there is no table of models.
pub fn check_exists() {
    table_oid();
}
