//! Structures in shared memory of a library that need not be preloaded.
//!
//! The server keeps 100 kB of shared memory for libraries that come late. Anyone who needs a structure first makes it,
//! under the lock that serves for this. There may be no room: then it does not exist, and anyone who wanted it does
//! without. Processes of different [builds](super::library) have different ones.

use super::library::build;
use crate::compat::addin_shmem_init_lock;
use crate::memory;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};
use std::panic::AssertUnwindSafe;

/// The structure of this name, of at most 30 bytes, which is the same in all processes of this build; None if there is
/// no room for it. Who makes it finds zeros, and runs `begin` on them before anybody else sees it.
///
/// # Safety
/// Zeros are a valid `T`, which processes may share, and whatever has this name is one. `begin` raises no ERROR.
pub unsafe fn structure<T>(name: &'static CStr, begin: fn(*mut T)) -> Option<&'static T> {
    let name = CString::new([name.to_bytes(), b" ", build().to_bytes()].concat()).expect("neither has a zero");
    // SAFETY: shared memory is never unmapped. The first one finds a new structure and fills it with zeros. An
    // ERROR that is caught has released no lock.
    unsafe {
        let lock = addin_shmem_init_lock();
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let make = || {
            let mut found = false;
            let made = pg_sys::ShmemInitStruct(name.as_ptr(), size_of::<T>(), &mut found).cast::<T>();
            if !found && !made.is_null() {
                made.cast::<u8>().write_bytes(0, size_of::<T>());
                begin(made);
            }
            made.cast_const().as_ref()
        };
        let made = pgrx::PgTryBuilder::new(AssertUnwindSafe(make))
            .catch_when(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, |_| {
                memory::end();
                pg_sys::InterruptHoldoffCount += 1; // an ERROR has set it to 0, and releasing the lock takes one away
                None
            })
            .execute();
        pg_sys::LWLockRelease(lock);
        made
    }
}
