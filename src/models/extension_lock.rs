//! A lock that keeps the extension from being dropped.
#![allow(unsafe_code)]

use super::table;
use pgrx::pg_sys;

/// Has DROP EXTENSION wait until the transaction ends. Whoever stores something in the end, perhaps after hours, takes
/// it in the beginning: all objects that are there then are there in the end.
///
/// It is the lock of the extension itself, which DROP EXTENSION asks for before it locks anything else, so that neither
/// can wait for the other in a circle. The tables are left free: a lock on them would have ALTER TABLE wait, and behind
/// it everybody who predicts.
///
/// An ERROR if there is no table of models: somebody has dropped the extension meanwhile.
pub fn keep_extension() {
    // SAFETY: catalog lookups, and a lock that is the weakest there is.
    // Changes of the catalogs are known once it is held.
    unsafe {
        let extension = || pg_sys::get_extension_oid(c"corgipile".as_ptr(), true);
        let oid = extension();
        if oid != pg_sys::Oid::INVALID {
            pg_sys::LockDatabaseObject(
                pg_sys::ExtensionRelationId,
                oid,
                0,
                pg_sys::AccessShareLock as pg_sys::LOCKMODE,
            );
        }
        table::check_exists();
    }
}
