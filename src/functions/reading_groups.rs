//! corgipile.shared_scans(): who reads together with others, for the view corgipile.stat_shared_scans.

use pg::call::function::Call;
use pgrx::prelude::*;
use scan::reading_groups;

/// Returns a row for each member of a reading group of the server.
#[pg_extern(sql = false)]
fn corgipile_shared_scans(call: Call<'_>) {
    call.return_rows(reading_groups::rows());
}
