//! The shared memory itself, and the lock that guards what is in it.

use super::directory::{ALIGN, Directory};
use options::settings;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

const NAME: &CStr = c"corgipile_models";

static DIRECTORY: AtomicPtr<Directory> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    static PREVIOUS: (Cell<pg_sys::shmem_request_hook_type>, Cell<pg_sys::shmem_startup_hook_type>) =
        const { (Cell::new(None), Cell::new(None)) };
}

/// Asks for the memory, if the library is being preloaded. Called once, by _PG_init.
pub fn install() {
    // SAFETY: _PG_init runs on the only thread; hooks are chained.
    unsafe {
        if !pg_sys::process_shared_preload_libraries_in_progress {
            return;
        }
        PREVIOUS.with(|(request, startup)| {
            request.set(pg_sys::shmem_request_hook);
            startup.set(pg_sys::shmem_startup_hook);
        });
        pg_sys::shmem_request_hook = Some(request);
        pg_sys::shmem_startup_hook = Some(startup);
    }
}

fn total_bytes() -> usize {
    size_of::<Directory>() + ALIGN + settings::shared_models_size()
}

#[expect(ffi_unwind_calls, reason = "behind a barrier")]
#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: called in the postmaster, when shared memory may be asked for.
    unsafe {
        if let Some(previous) = PREVIOUS.with(|(request, _)| request.get()) {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
        if settings::shared_models_size() > 0 {
            pg_sys::RequestAddinShmemSpace(total_bytes());
            pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), 1);
        }
    }
}

#[expect(ffi_unwind_calls, reason = "behind a barrier")]
#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    // SAFETY: called in the postmaster when it has made its shared memory, also after a crash: it is zeroed then, and
    // all zeros are an empty directory. Processes inherit the pointer.
    unsafe {
        if let Some(previous) = PREVIOUS.with(|(_, startup)| startup.get()) {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
        if settings::shared_models_size() == 0 {
            return;
        }
        let mut found = false;
        let directory = pg_sys::ShmemInitStruct(NAME.as_ptr(), total_bytes(), &mut found).cast::<Directory>();
        if !found {
            directory.cast::<u8>().write_bytes(0, size_of::<Directory>());
            (*directory).arena_bytes = settings::shared_models_size() / ALIGN * ALIGN;
        }
        DIRECTORY.store(directory, Relaxed);
    }
}

/// Is there such a cache?
pub fn enabled() -> bool {
    !DIRECTORY.load(Relaxed).is_null()
}

/// Runs `f` with the directory, which no one changes meanwhile but for its atomics. `f` raises no ERROR.
pub fn shared<R>(f: impl FnOnce(&Directory) -> R) -> R {
    assert!(enabled(), "shared memory for models");
    // SAFETY: the lock guards the directory, which is there.
    unsafe {
        let lock = &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr())).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_SHARED);
        let result = f(&*DIRECTORY.load(Relaxed));
        pg_sys::LWLockRelease(lock);
        result
    }
}

/// Runs `f` with the directory, which no one else sees meanwhile. `f` raises no ERROR.
pub fn exclusive<R>(f: impl FnOnce(&mut Directory) -> R) -> R {
    assert!(enabled(), "shared memory for models");
    // SAFETY: the lock guards the directory, which is there.
    unsafe {
        let lock = &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr())).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let result = f(&mut *DIRECTORY.load(Relaxed));
        pg_sys::LWLockRelease(lock);
        result
    }
}

pub fn arena() -> *mut u8 {
    assert!(enabled(), "shared memory for models");
    // SAFETY: within what was asked for.
    unsafe {
        let end = DIRECTORY.load(Relaxed).add(1).cast::<u8>();
        end.add(end.align_offset(ALIGN))
    }
}
