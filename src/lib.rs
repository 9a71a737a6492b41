//! corgipile: trains machine-learning models with SGD inside PostgreSQL, on data as it lies on disk.
//!
//! `docs/internals.md` tells how a call of `corgipile_train()` becomes three executor nodes.

use pgrx::prelude::*;

#[cfg(feature = "pg_test")]
mod backend_tests;
mod errors;
mod functions;
mod limits;
mod models;
mod operators;
mod options;
mod pg;
mod settings;

::pgrx::pg_module_magic!(name, version);

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
    pg::process::library::install(pg::preloading());
    pg::process::parallel::install(&operators::WORKER_KINDS);
}
