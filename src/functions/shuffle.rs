//! corgipile_shuffle() where it is called as a function: in the select list, in ROWS FROM, WITH ORDINALITY.

use errors::OrRaise;
use pg::call::function::Call;
use pg::executor::custom_scan::Flags;
use pg::snapshot::Snapshot;
use pgrx::prelude::*;
use scan::shuffle_scan::{ShuffleArguments, Shuffled};

/// Returns the rows of a table in shuffled order.
#[pg_extern(sql = false)]
fn corgipile_shuffle(call: Call<'_>) {
    let arguments = ShuffleArguments::of_call(&call.arguments());
    let rows = Snapshot::with_active(|snapshot| Shuffled::open(arguments, snapshot, 0, Flags::NONE)).or_raise();
    call.return_query(rows.query(), rows.columns());
    rows.finish();
}
