//! Roles, and what the current user may do.

use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// The user whose privileges count at this moment.
pub fn current_user() -> pg_sys::Oid {
    // SAFETY: reads a variable.
    unsafe { pg_sys::GetUserId() }
}

/// Whether the current user is `role`, a member of it, or a superuser.
pub fn has_privileges_of(role: pg_sys::Oid) -> bool {
    // SAFETY: catalog lookups.
    unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), role) }
}

/// Is the current user a superuser?
pub fn is_superuser() -> bool {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::superuser() }
}

/// The role with this name, if there is one.
pub fn role_named(name: &str) -> Option<pg_sys::Oid> {
    let name = CString::new(name).ok()?;
    // SAFETY: a C string.
    let role = unsafe { pg_sys::get_role_oid(name.as_ptr(), true) };
    (role != pg_sys::Oid::INVALID).then_some(role)
}

/// What a role is called; None if it was dropped.
pub fn role_name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: a catalog lookup; gives a copy, or NULL.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

/// The role with this name; `public` is no role, but InvalidOid.
///
/// # Errors
/// PostgreSQL's own if there is none.
pub fn role(name: &str) -> pg_sys::Oid {
    if name == "public" {
        return pg_sys::Oid::INVALID;
    }
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: a C string.
    unsafe { pg_sys::get_role_oid(name.as_ptr(), false) }
}

/// The role with this name, `public`, or what type regrole shows in their place: the number of a role that was dropped,
/// and `-`.
///
/// # Errors
/// PostgreSQL's own if there is none.
pub fn role_as_shown(name: &str) -> pg_sys::Oid {
    if name == "-" {
        return pg_sys::Oid::INVALID;
    }
    let c_name = CString::new(name).unwrap_or_default();
    // SAFETY: a C string.
    let known = unsafe { pg_sys::get_role_oid(c_name.as_ptr(), true) };
    match name.parse::<u32>() {
        Ok(number) if known == pg_sys::Oid::INVALID && number > 0 => number.into(),
        _ => role(name),
    }
}

/// PostgreSQL's own error if the transaction is read-only.
pub fn prevent_if_read_only(command: &str) {
    let command = CString::new(command).unwrap_or_default();
    // SAFETY: a C string.
    unsafe { pg_sys::PreventCommandIfReadOnly(command.as_ptr()) }
}
