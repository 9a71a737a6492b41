//! corgipile_search() where it is called as a function: in the select list, in ROWS FROM, with LATERAL arguments.

use errors::OrRaise;
use options::call::TrainArguments;
use options::search::SearchArguments;
use pg::call::function::Call;
use pg::executor::custom_scan::Flags;
use pg::snapshot::Snapshot;
use pgrx::prelude::*;
use train::{Search, SearchRow};

/// Finds the best point, trains a model with it and returns a row per point.
#[pg_extern(sql = false)]
fn corgipile_search(call: Call<'_>) {
    let (own, rest) = SearchArguments::split(call.arguments());
    let arguments = TrainArguments::of_call(&rest).or_raise();
    let open = |snapshot: Snapshot<'_>| Search::open(arguments, &own, (snapshot, 0, Flags::NONE));
    let mut search = Snapshot::with_active(open).or_raise();
    call.return_rows(search.rows().or_raise().iter().map(SearchRow::values));
    search.close();
}
