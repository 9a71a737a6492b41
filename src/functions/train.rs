//! corgipile_train() where it is called as a function: in the select list, in ROWS FROM, with LATERAL arguments.

use errors::OrRaise;
use options::call::TrainArguments;
use pg::call::function::Call;
use pg::executor::custom_scan::Flags;
use pg::snapshot::Snapshot;
use pgrx::prelude::*;
use train::{EpochRow, Training};

/// Trains a model and returns a row per epoch.
#[pg_extern(sql = false)]
fn corgipile_train(call: Call<'_>) {
    let arguments = TrainArguments::of_call(&call.arguments()).or_raise();
    let mut training = Snapshot::with_active(|snapshot| Training::open(arguments, snapshot, 0, Flags::NONE)).or_raise();
    call.return_rows(training.rows().or_raise().iter().map(EpochRow::values));
    training.close();
}

#[cfg(any(test, feature = "pg_test"))]
#[pg_schema]
#[allow(unsafe_code)]
mod tests {
    use pg::testing::{failure, run};
    use pgrx::prelude::*;

    #[pg_test]
    fn test_an_error_leaves_no_context_callback_behind() {
        // SAFETY: reads PostgreSQL's stack of error callbacks.
        let stack = || unsafe { pg_sys::error_context_stack };
        let before = stack();
        for sql in [
            "SELECT corgipile_train('SELECT * FROM nowhere')",
            "SELECT * FROM corgipile_train('SELECT 1 FROM')",
            "SELECT * FROM corgipile_train('SELECT 1 AS label, nofunction(1) AS x')",
        ] {
            assert!(!failure(sql).starts_with("panic"), "{sql}");
            assert_eq!(stack(), before, "{sql}");
        }
    }

    #[pg_test]
    fn test_errors_in_mid_epoch_unwind_and_the_next_training_works() {
        run("CREATE TABLE stopped AS SELECT i % 2 AS label, ARRAY[i, 1]::real[] AS x FROM generate_series(1, 5000) i");
        run("UPDATE stopped SET x = '{NaN, 1}' WHERE x[1] = 4000");
        for _ in 0..20 {
            assert!(failure("SELECT * FROM corgipile_train('stopped')").contains("feature x[1] is NaN"));
            assert!(
                failure("SELECT corgipile_train('SELECT * FROM stopped ORDER BY x')").contains("feature x[1] is NaN")
            );
        }
        run("DELETE FROM stopped WHERE x[1] = 'NaN'");
        run("SELECT * FROM corgipile_train('stopped', max_epochs => 2, learning_rate => 0.00001)");
    }
}
