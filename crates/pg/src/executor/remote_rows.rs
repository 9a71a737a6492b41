//! Rows of a source on other servers: what each of them is asked, and which foreign servers are those of postgres_fdw.

pub use super::shards::in_distributed_transaction;
use pgrx::prelude::*;
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};

/// The rows of a source that are on one server.
pub struct ForeignRows {
    /// its name
    pub server: String,
    /// a SELECT of the source's columns, in their sequence and by their names
    pub sql: String,
}

/// Why a plan is not one of foreign tables alone.
pub type NotForeign = Cow<'static, str>;

/// Is there a foreign server of this name?
pub fn is_server(name: &str) -> bool {
    // SAFETY: a catalog lookup.
    let found = |name: &CStr| unsafe { pg_sys::get_foreign_server_oid(name.as_ptr(), true) } != pg_sys::Oid::INVALID;
    CString::new(name).is_ok_and(|name| found(&name))
}

/// Is it a server of postgres_fdw? It is by the function that does its work, and not by a name.
///
/// # Safety
/// There is such a server.
pub(super) unsafe fn is_of_postgres_fdw(server: pg_sys::Oid) -> bool {
    // SAFETY: catalog lookups; the syscache tuple is read while it is held.
    unsafe {
        let wrapper = pg_sys::GetForeignDataWrapper((*pg_sys::GetForeignServer(server)).fdwid);
        let cache = pg_sys::SysCacheIdentifier::PROCOID as c_int;
        let tuple = pg_sys::SearchSysCache1(cache, (*wrapper).fdwhandler.into());
        if tuple.is_null() {
            return false;
        }
        let text = |column: u32| {
            let mut null = false;
            let value = pg_sys::SysCacheGetAttr(cache, tuple, column as pg_sys::AttrNumber, &mut null);
            (!null).then(|| {
                let text = pg_sys::text_to_cstring(value.cast_mut_ptr());
                CStr::from_ptr(text).to_string_lossy().into_owned()
            })
        };
        let (symbol, library) = (text(pg_sys::Anum_pg_proc_prosrc), text(pg_sys::Anum_pg_proc_probin));
        pg_sys::ReleaseSysCache(tuple);
        symbol.as_deref() == Some("postgres_fdw_handler")
            && library.is_some_and(|library| library.trim_end_matches(".so").ends_with("/postgres_fdw"))
    }
}
