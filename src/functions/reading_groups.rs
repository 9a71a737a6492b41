//! corgipile.reading_groups(): who reads together with others, for the view corgipile.stat_reading_groups.

use pg::call::function::Call;
use pgrx::prelude::*;
use scan::reading_groups;

/// Returns a row for each member of a reading group of the server.
#[pg_extern(sql = false)]
fn corgipile_reading_groups(call: Call<'_>) {
    call.return_rows(reading_groups::rows());
}
