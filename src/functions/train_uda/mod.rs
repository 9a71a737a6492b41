//! corgipile_train_uda(): trains by an aggregate, a query per epoch, as MADlib and Bismarck do, for comparisons.
//!
//! The queries are the invoking user's own. Without a shuffle they see what the calling statement sees, epoch for
//! epoch; a source that gives other rows each time it is asked does so here, too.

mod arguments;
mod copy;
mod sql;
mod training;

use arguments::UdaRequest;
use errors::OrRaise;
use pg::call::function::Call;
use pgrx::prelude::*;
use train::EpochRow;

/// Trains a model and returns a row per epoch.
#[pg_extern(sql = false)]
fn corgipile_train_uda(call: Call<'_>) {
    let request = UdaRequest::of_call(&call.arguments()).or_raise();
    call.return_rows(training::train(&request).or_raise().iter().map(EpochRow::values));
}
