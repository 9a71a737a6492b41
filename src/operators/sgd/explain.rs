//! EXPLAIN.

use super::Training;
use crate::pg::explain::Explain;

pub fn explain(training: &Training, explain: Explain) {
    let request = &training.request;
    explain.text(c"Model", request.hyperparameters.kind.name());
    explain.text(c"Label", &request.label);
    explain.text(c"Features", &training.features.join(", "));
    explain.integer(c"Epochs", request.max_epochs.into());
    explain.real(c"Learning Rate", request.hyperparameters.learning_rate);
    explain.text(c"Strategy", request.shuffling.strategy.name());
    explain.integer(c"Seed", request.shuffling.seed);
    if let (true, Some(last)) = (explain.analyze(), training.outcome.as_ref().and_then(|rows| rows.last())) {
        let tuples = training.outcome.iter().flatten().map(|row| row.tuples).sum();
        explain.integer(c"Tuples", tuples);
        explain.integer(c"Skipped Tuples", training.buffers.decoder.skipped() as i64);
        explain.float(c"Loss", last.loss, 6);
        if let Some(accuracy) = last.accuracy {
            explain.float(c"Accuracy", accuracy, 6);
        }
    }
    if explain.timing() {
        explain.milliseconds(c"Compute Time", training.compute.as_secs_f64());
    }
    explain.inner_query(training.buffers.query());
}
