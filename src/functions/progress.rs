//! corgipile.progress(): the trainings that run now, for the view corgipile.stat_progress_train.

use pg::call::function::Call;
use pgrx::prelude::*;
use scan::progress;

/// Returns a row for each training of the server.
#[pg_extern(sql = false)]
fn corgipile_progress(call: Call<'_>) {
    call.return_rows(progress::rows());
}
