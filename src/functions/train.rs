//! corgipile_train() where it is called as a function: in the select list, in ROWS FROM, with LATERAL arguments.

use crate::errors::OrRaise;
use crate::operators::sgd::{EpochRow, Training};
use crate::options::call::TrainArguments;
use pg::call::function::Call;
use pg::executor::custom_scan::Flags;
use pg::snapshot::Snapshot;
use pgrx::prelude::*;

/// Trains a model and returns a row per epoch.
#[pg_extern(sql = false)]
fn corgipile_train(call: Call<'_>) {
    let arguments = TrainArguments::of_call(&call.arguments()).or_raise();
    let mut training = Snapshot::with_active(|snapshot| Training::open(arguments, snapshot, 0, Flags::NONE)).or_raise();
    let mut rows = training.rows().or_raise().iter();
    call.return_rows(EpochRow::COLUMNS, |result| {
        rows.next().map(|row| result.clone_from_slice(&row.values())).is_some()
    });
    training.close();
}
