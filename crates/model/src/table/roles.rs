//! Roles, and what the current user may do.

use errors::{ModelError, raise};
use pg::catalog::names::{quote_identifier, quote_identifier_bytes};
use pg::serves_another;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_char};

/// The user whose privileges count at this moment.
pub fn current_user() -> pg_sys::Oid {
    // SAFETY: reads a variable.
    unsafe { pg_sys::GetUserId() }
}

/// Is the current user a superuser?
pub fn is_superuser() -> bool {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::superuser() }
}

pub fn role_named(name: &str) -> Option<pg_sys::Oid> {
    role_of_bytes(&CString::new(name).ok()?)
}

/// The role with this name, in the server's encoding, which need not be UTF-8.
fn role_of_bytes(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a C string.
    let role = unsafe { pg_sys::get_role_oid(name.as_ptr(), true) };
    (role != pg_sys::Oid::INVALID).then_some(role)
}

/// What a role is called; None if it was dropped.
pub fn role_name(role: pg_sys::Oid) -> Option<String> {
    name_bytes(role).map(|name| name.to_string_lossy().into_owned())
}

/// As [`role_name`], in the server's encoding.
fn name_bytes(role: pg_sys::Oid) -> Option<CString> {
    // SAFETY: a catalog lookup; gives a copy, or NULL.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_owned())
    }
}

/// The role with this name, or `public`.
pub fn role(name: &str) -> StoredRole {
    if name == PUBLIC { StoredRole::of(pg_sys::Oid::INVALID) } else { existing_role(name) }
}

/// A role as the table keeps it, in a column of type corgipile.stored_role: the digits of its OID, `0` for everybody;
/// or `?` and the name of a role that was not there when a dump was restored.
///
/// Where it is written out, as in dumps, an OID becomes the role's name, and what is read in becomes an OID again. So a
/// renamed role keeps what is its own, and in another cluster, where the same number is another role's, a name is what
/// counts. What is no role there is kept as it is, and no role that is made later has any rights by it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoredRole(String);

/// What stands before the name, or the number, of a role that is not there. The name of no role begins with it, unless
/// it is in quotes.
const MISSING: char = '?';

/// What everybody is called.
const PUBLIC: &str = "public";

impl StoredRole {
    /// A role; InvalidOid is everybody.
    pub fn of(role: pg_sys::Oid) -> StoredRole {
        StoredRole(role.to_u32().to_string())
    }

    pub fn from_column(stored: String) -> StoredRole {
        StoredRole(stored)
    }

    /// What a column of an array of them has.
    pub fn all_from_column(stored: Option<Vec<Option<String>>>) -> Vec<StoredRole> {
        stored.into_iter().flatten().flatten().map(StoredRole).collect()
    }

    /// As a column has it.
    pub fn as_stored(&self) -> &str {
        &self.0
    }

    /// The OID that is stored, perhaps of a role that was dropped.
    pub(super) fn oid(&self) -> Option<pg_sys::Oid> {
        self.0.parse::<u32>().ok().map(pg_sys::Oid::from)
    }

    /// What is stored for a text that PostgreSQL's COPY, or an administrator, gives: the name of a role, as an
    /// identifier of SQL, `public`, or what stands for a role that is not there.
    pub fn read(bytes: &CStr) -> StoredRole {
        let text = bytes.to_string_lossy();
        if text == PUBLIC || text == "-" {
            return StoredRole::of(pg_sys::Oid::INVALID);
        }
        if text.starts_with(MISSING) {
            return StoredRole(text.into_owned());
        }
        // a number is that of a role which was dropped where the text was written; here it may be another role's
        let role = identifier(bytes).filter(|_| !is_number(&text)).and_then(|name| role_of_bytes(&name));
        role.map_or_else(|| StoredRole(format!("{MISSING}{text}")), StoredRole::of)
    }

    /// The text that [`StoredRole::read`] makes the same of, wherever that role is.
    pub fn written(&self) -> CString {
        let shown = self.shown();
        match self.oid() {
            Some(_) if self.exists() => quote_identifier_bytes(&shown),
            Some(_) if !self.is_public() => CString::new(format!("{MISSING}{}", self.0)).unwrap_or_default(),
            _ => shown,
        }
    }

    /// What users see: the name; of a role that was dropped, its number; of one that was not there, its name behind
    /// `?`.
    pub fn shown(&self) -> CString {
        let stored = || CString::new(if self.is_public() { PUBLIC } else { &self.0 }).unwrap_or_default();
        self.oid().and_then(name_bytes).unwrap_or_else(stored)
    }

    /// As it is written before a dot and a name.
    pub fn in_a_name(&self) -> String {
        let shown = self.shown().to_string_lossy().into_owned();
        if is_number(&shown) && role_named(&shown).is_none() { shown } else { quote_identifier(&shown) }
    }

    /// Does the text show a role that is not there: a number, or `?` and a name?
    pub fn of_shown_missing(text: &str) -> Option<StoredRole> {
        let stored = StoredRole(text.to_owned());
        let is_dropped = |role| {
            role != pg_sys::Oid::INVALID && is_number(text) && role_name(role).is_none() && role_named(text).is_none()
        };
        stored.oid().map_or(text.starts_with(MISSING), is_dropped).then_some(stored)
    }

    /// Is there such a role?
    pub fn exists(&self) -> bool {
        self.oid().and_then(role_name).is_some()
    }

    /// Is it everybody?
    pub fn is_public(&self) -> bool {
        self.oid() == Some(pg_sys::Oid::INVALID)
    }

    pub fn is_current_user(&self) -> bool {
        self.oid() == Some(current_user())
    }

    /// Whether the current user is this role, a member of it, or a superuser.
    pub fn has_privileges(&self) -> bool {
        match self.oid() {
            // SAFETY: catalog lookups.
            Some(role) if role != pg_sys::Oid::INVALID => unsafe {
                pg_sys::has_privs_of_role(pg_sys::GetUserId(), role)
            },
            _ => is_superuser(),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name that an identifier of SQL means: folded to lower case unless it is in quotes. None for any other text.
fn identifier(text: &CStr) -> Option<CString> {
    let mut names: *mut pg_sys::List = std::ptr::null_mut();
    let mut copy = text.to_bytes_with_nul().to_vec();
    // SAFETY: a C string of ours, which it may change, and to which the names in the list point; they are copied.
    unsafe {
        if !pg_sys::SplitIdentifierString(copy.as_mut_ptr().cast(), b'.' as c_char, &mut names) {
            return None;
        }
        let names = pgrx::PgList::<c_char>::from_pg(names);
        let name = names.get_ptr(0).filter(|_| names.len() == 1)?;
        Some(CStr::from_ptr(name).to_owned())
    }
}

/// The role with this name, which `public` is not.
pub fn existing_role(name: &str) -> StoredRole {
    let c_name = CString::new(name).unwrap_or_default();
    // SAFETY: a C string.
    StoredRole::of(unsafe { pg_sys::get_role_oid(c_name.as_ptr(), false) })
}

/// The role with this name, `public`, what is shown in the place of a role that is not there, or `-`, as type regrole
/// shows everybody.
pub fn role_as_shown(name: &str) -> StoredRole {
    if name == "-" {
        return StoredRole::of(pg_sys::Oid::INVALID);
    }
    // a missing role is shown as no role can be called without quotes
    match StoredRole::of_shown_missing(name) {
        Some(missing) => missing,
        None => role(name),
    }
}

/// An error in a part of another server's query, which would store on this server what is meant for that one.
pub fn check_is_own(command: &str) {
    if serves_another() {
        raise(&ModelError::WritesForAnother(command.to_owned()));
    }
}

/// An error unless this session may change models: that of [`check_is_own`], and PostgreSQL's own if the transaction is
/// read-only.
pub fn check_may_write(command: &str) {
    check_is_own(command);
    let command = CString::new(command).unwrap_or_default();
    // SAFETY: a C string.
    unsafe { pg_sys::PreventCommandIfReadOnly(command.as_ptr()) }
}
