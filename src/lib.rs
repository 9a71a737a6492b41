//! corgipile: trains machine-learning models with SGD inside PostgreSQL, on data as it lies on disk.
//!
//! `docs/internals/README.md` tells how a call of `corgipile_train()` becomes three executor nodes.

use pgrx::prelude::*;
use std::ffi::CStr;

mod functions;

::pgrx::pg_module_magic!(name, version);

/// The number of this build, in 16 digits (build.rs).
const BUILD: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CORGIPILE_BUILD"), "\0").as_bytes()) {
    Ok(build) => build,
    Err(_) => panic!("it is made of digits"),
};

// What `CREATE EXTENSION` runs, in this order; scripts/sql reads it here, too.
pgrx::extension_sql_file!("../sql/models.sql", bootstrap);
pgrx::extension_sql_file!("../sql/management.sql", requires = ["models"]);
pgrx::extension_sql_file!("../sql/export.sql", requires = ["management"]);
pgrx::extension_sql_file!("../sql/servers.sql", requires = ["export"]);
pgrx::extension_sql_file!("../sql/training.sql", requires = ["servers"]);
pgrx::extension_sql_file!("../sql/activity.sql", requires = ["training"]);
pgrx::extension_sql_file!("../sql/prediction.sql", requires = ["activity"]);
pgrx::extension_sql_file!("../sql/explanation.sql", requires = ["prediction"]);
pgrx::extension_sql_file!("../sql/intervals.sql", requires = ["explanation"]);
pgrx::extension_sql_file!("../sql/drift.sql", requires = ["intervals"]);
pgrx::extension_sql_file!("../sql/aggregate.sql", requires = ["drift"]);
pgrx::extension_sql_file!("../sql/compression.sql", requires = ["aggregate"]);
pgrx::extension_sql_file!("../sql/variants.sql", requires = ["compression"]);

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
    pg::errors::hide_backtraces();
    options::settings::define(pg::preloading());
    tuples::pause::set_host(pg::check_for_interrupts);
    model::shared::install();
    pg::process::session::install(functions::RELEASES);
    train::register();
    pg::executor::planner::install(&functions::NODES);
    pg::process::library::install(BUILD, pg::preloading());
    pg::process::parallel::install(&train::WORKER_KINDS);
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

#[cfg(any(test, feature = "pg_test"))]
#[pg_schema]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use pg::testing::in_subtransaction;

    /// Raises an error that takes more memory on its way than the reserve has. Called with malloc failing, by
    /// `tests/tests/faults/memory.rs`.
    #[pg_extern]
    fn greedy_error() {
        struct Greedy;

        impl Drop for Greedy {
            fn drop(&mut self) {
                let much: Vec<Vec<u8>> = (0..100).map(|i| vec![i; 1 << 20]).collect();
                std::hint::black_box(much);
            }
        }

        let _greedy = Greedy;
        error!("an error");
    }

    /// Allocates as Rust's collections do, which cannot handle failure. Called with malloc failing, by
    /// `tests/tests/faults/memory.rs`.
    #[pg_extern]
    fn infallible_allocation(bytes: i32) {
        std::hint::black_box(vec![1_u8; bytes as usize]);
        pg::check_for_interrupts();
    }

    #[pg_test]
    fn test_forged_headers_are_as_visible_as_postgresql_says() {
        pg::tuples::heap::visibility_fuzzer::compare();
    }

    #[pg_test]
    fn test_the_reserve_of_memory_gives_again_what_came_back_in_any_order() {
        use pg::memory::granules::Granules;
        let mut granules = Granules::<2>::FREE;
        let mut places: Vec<usize> = std::iter::from_fn(|| granules.take(4, 100)).collect();
        assert_eq!(places, (0..25).map(|i| 4 * i).collect::<Vec<_>>(), "all below the end, and none twice");
        assert_eq!(granules.take(1, 100), None);
        assert_eq!(granules.take(28, 128), Some(100), "what is kept for errors");
        // one piece stays: the others come back, the oldest first
        let kept = places.remove(7);
        places.into_iter().for_each(|place| granules.give_back(place, 4));
        assert_eq!(granules.take(kept, 100), Some(0), "all before the piece that stays");
        assert_eq!(granules.take(100 - kept - 4, 100), Some(kept + 4), "and all behind it");
    }

    #[pg_test]
    fn test_a_cancelled_statement_ends_at_the_next_pause() {
        let cancelled = || {
            // SAFETY: flags that the handler of a signal sets.
            unsafe {
                pg_sys::QueryCancelPending = 1;
                pg_sys::InterruptPending = 1;
            }
            tuples::pause::pause();
            String::new()
        };
        assert_eq!(in_subtransaction(cancelled), "canceling statement due to user request");
        tuples::pause::pause(); // nothing is left of it
    }

    #[pg_test]
    fn test_the_library_is_the_file_that_the_session_has_loaded() {
        assert!(!pg::process::library::is_replaced());
    }
}

/// What `cargo pgrx test` asks of an extension: how its server is set up.
#[cfg(test)]
pub mod pg_test {
    /// Nothing is done before a test.
    pub fn setup(_options: Vec<&str>) {}

    /// Settings of the server. Tests run side by side, and some start worker processes.
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec!["max_worker_processes = 64", "max_parallel_workers = 64", "autovacuum = off"]
    }
}
