//! corgipile: trains machine-learning models with SGD inside PostgreSQL, on data as it lies on disk.
//!
//! `docs/internals.md` tells how a call of `corgipile_train()` becomes three executor nodes.

use pgrx::prelude::*;
use std::ffi::CStr;

#[cfg(feature = "pg_test")]
mod backend_tests;
mod errors;
mod functions;
mod limits;
mod models;
mod operators;
mod options;
mod settings;

::pgrx::pg_module_magic!(name, version);

/// The number of this build, in 16 digits (build.rs).
const BUILD: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CORGIPILE_BUILD"), "\0").as_bytes()) {
    Ok(build) => build,
    Err(_) => panic!("it is made of digits"),
};

/// Called by PostgreSQL when the library is loaded into a backend.
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C-unwind" fn _PG_init() {
    pg::memory::expect_some();
    begin();
}

#[pg_guard]
extern "C-unwind" fn begin() {
    pg::memory::install();
    settings::define(pg::preloading());
    tuples::pause::set_host(pg::check_for_interrupts);
    models::shared::install();
    operators::register();
    pg::executor::planner::install(&functions::NODES);
    pg::process::library::install(BUILD, pg::preloading());
    pg::process::parallel::install(&operators::WORKER_KINDS);
}

/// Where every worker process begins.
///
/// # Safety
/// Called by PostgreSQL only, in a parallel worker.
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
#[pg_guard]
pub unsafe extern "C-unwind" fn corgipile_worker_main(segment: *mut pg_sys::dsm_segment, toc: *mut pg_sys::shm_toc) {
    // SAFETY: the caller's promise.
    unsafe { pg::process::parallel::run(segment, toc) }
}
