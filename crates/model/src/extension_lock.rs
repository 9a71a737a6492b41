//! A lock that keeps the extension from being dropped.
#![allow(unsafe_code)]

use super::table;
use pgrx::pg_sys;

/// Has DROP EXTENSION wait until the transaction ends. Anyone who stores something in the end, perhaps after hours,
/// takes it in the beginning: all objects that are there then are there in the end.
///
/// It is the lock of the extension itself, which DROP EXTENSION asks for before it locks anything else, so that neither
/// can wait for the other in a circle. The tables are left free: a lock on them would have ALTER TABLE wait, and behind
/// it everybody who predicts. DROP EXTENSION asks for it before it looks who calls: anybody could have all trainings
/// wait behind one that waits. So it is only waited for where the extension is being dropped; behind others who wait,
/// the transaction goes on without it, and an owner who drops the extension meanwhile makes it an error to store
/// something.
///
/// An ERROR if there is no table of models: somebody has dropped the extension meanwhile.
pub fn keep_extension() {
    // SAFETY: catalog lookups, and a lock that is the weakest there is.
    // Changes of the catalogs are known once it is held.
    unsafe {
        let extension = || pg_sys::get_extension_oid(c"corgipile".as_ptr(), true);
        let oid = extension();
        if oid != pg_sys::Oid::INVALID {
            let tag = pg_sys::LOCKTAG {
                locktag_field1: pg_sys::MyDatabaseId.to_u32(),
                locktag_field2: pg_sys::ExtensionRelationId.to_u32(),
                locktag_field3: oid.to_u32(),
                locktag_field4: 0,
                locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
                locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
            };
            let mode = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            let acquire = |waits: bool| pg_sys::LockAcquire(&raw const tag, mode, false, !waits);
            if acquire(false) == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL {
                let mut holders = 0;
                pg_sys::GetLockConflicts(&raw const tag, mode, &mut holders);
                if holders > 0 {
                    acquire(true);
                }
            }
            pg_sys::AcceptInvalidationMessages();
        }
        table::check_exists();
    }
}
