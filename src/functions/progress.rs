//! corgipile.progress(): the trainings that run now, for the view corgipile.stat_progress_train.

use crate::operators::progress;
use pg::call::function::Call;
use pgrx::prelude::*;

/// Returns a row for each training of the server.
#[pg_extern(sql = false)]
fn corgipile_progress(call: Call<'_>) {
    let mut rows = progress::rows().into_iter();
    call.return_rows(progress::COLUMNS, |row| match rows.next() {
        Some(values) => {
            row.clone_from_slice(&values);
            true
        }
        None => false,
    });
}
