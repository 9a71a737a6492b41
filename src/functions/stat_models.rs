//! The rows of corgipile.stat_models, and the trigger that removes changed models from shared memory.

use pg::call::function::Call;
use pg::call::trigger::old_key;
use pgrx::prelude::*;

/// An entry of shared memory per row.
#[pg_extern(sql = false)]
fn corgipile_stat_models()
-> TableIterator<'static, (name!(model_id, i64), name!(bytes, i64), name!(predictions, i64), name!(hits, i64))> {
    TableIterator::new(model::stats().into_iter().map(|stat| (stat.model, stat.bytes, stat.predictions, stat.hits)))
}

/// AFTER UPDATE OR DELETE FOR EACH ROW of corgipile.stored_models.
#[pg_extern(sql = false)]
fn corgipile_forget(call: Call<'_>) -> i64 {
    model::forget(old_key(call, c"model_id"));
    0 // of a trigger that comes after, no one looks at the row
}
