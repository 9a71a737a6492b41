//! corgipile_train() where it is called as a function: in the select list, in ROWS FROM, with LATERAL arguments.

use crate::error::OrRaise;
use crate::operators::sgd::{TrainArguments, Training};
use crate::pg::custom_scan::Flags;
use crate::pg::query::Running;
use pgrx::prelude::*;

/// Trains a model and returns a row per epoch.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments, clippy::type_complexity)] // the SQL function's
fn corgipile_train(
    source: Option<String>,
    model: Option<String>,
    label: Option<String>,
    features: Option<Vec<Option<String>>>,
    learning_rate: Option<f64>,
    max_epochs: Option<i32>,
    shuffle: Option<String>,
    block_size: Option<String>,
    buffer_size: Option<String>,
    seed: Option<i64>,
    name: Option<String>,
    options: Option<pgrx::JsonB>,
) -> TableIterator<
    'static,
    (
        name!(model_id, i64),
        name!(epoch, i32),
        name!(loss, f64),
        name!(accuracy, f64),
        name!(learning_rate, f64),
        name!(tuples, i64),
        name!(seconds, f64),
    ),
> {
    let arguments = TrainArguments {
        source,
        model,
        label,
        features,
        learning_rate,
        max_epochs,
        shuffle,
        block_size,
        buffer_size,
        seed,
        name,
        options: options.map(|pgrx::JsonB(options)| options),
    };
    let request = arguments.validate().or_raise();
    let mut training = Training::open(request, Running::active_snapshot(), 0, Flags::NONE).or_raise();
    let rows = training.rows().or_raise().to_vec();
    training.close();
    TableIterator::new(
        rows.into_iter().map(|r| (r.model_id, r.epoch, r.loss, r.accuracy, r.learning_rate, r.tuples, r.seconds)),
    )
}
