//! EXPLAIN.

use super::nodes::Place;
use super::phases::Phase;
use super::training::Training;
use decode::FeatureColumns;
use model::{Buckets, Coding};
use options::explain::explain as explain_request;
use pg::executor::explain::Explain;

pub fn explain(training: &Training, explain: Explain) {
    let request = &training.request;
    explain_request(request, &features(training), training.summary.processes, explain);
    match &training.place {
        Place::Here => {}
        Place::HereBecause(why) => explain.text(c"Servers", &format!("none: {why}")),
        Place::There(there) => {
            let servers: Vec<&str> = there.rows.iter().map(|rows| rows.server.as_str()).collect();
            explain.text(c"Servers", &servers.join(", "));
        }
    }
    if let Some(traffic) = training.summary.traffic.filter(|_| explain.analyze()) {
        explain.integer(c"Node Requests", traffic.requests as i64);
        explain.integer(c"Bytes Sent to Servers", traffic.sent as i64);
        explain.integer(c"Bytes Received from Servers", traffic.received as i64);
        if explain.timing() {
            explain.milliseconds(c"Waited for Servers", traffic.waited.as_secs_f64());
            explain.milliseconds(c"Waited for Slowest Node", traffic.slowest.as_secs_f64());
        }
    }
    if let (true, Some(last)) = (explain.analyze(), training.summary.rows.as_ref().and_then(|rows| rows.last())) {
        let tuples = training.summary.rows.iter().flatten().map(|row| row.tuples).sum();
        if request.trains_several() {
            explain.integer(c"Models", training.summary.models as i64);
        }
        explain.integer(c"Tuples", tuples);
        explain.integer(c"Skipped Tuples", training.buffers.decoder.skipped() as i64);
        if let Some(imputed) = training.seen.imputed.as_ref().map(|counts| counts.rows).filter(|imputed| *imputed > 0) {
            explain.integer(c"Imputed Tuples", imputed as i64);
        }
        if !request.trains_several() {
            explain.float(c"Loss", last.loss, 6);
            last.accuracy.into_iter().for_each(|accuracy| explain.float(c"Accuracy", accuracy, 6));
            last.r2.into_iter().for_each(|r2| explain.float(c"R2", r2, 6));
            last.validation_loss.into_iter().for_each(|loss| explain.float(c"Validation Loss", loss, 6));
        }
    }
    if explain.timing() {
        let phases = [
            (c"Opening Time", Phase::Opening),
            (c"Preparation Time", Phase::Preparation),
            (c"Epochs Time", Phase::Epochs),
            (c"Storing Time", Phase::Storing),
        ];
        phases.iter().for_each(|(name, phase)| explain.milliseconds(name, training.phases.seconds(*phase)));
        explain.milliseconds(c"Compute Time", training.phases.compute.as_secs_f64());
    }
    explain.inner_query(training.buffers.query());
}

/// The columns, with the kind of those that are not plain numbers.
fn features(training: &Training) -> String {
    let features = training.buffers.decoder.features();
    let categories = match features {
        FeatureColumns::Sparse(_) => return format!("{} (sparse)", training.source.features.join(", ")),
        FeatureColumns::Compressed(_) => return format!("{} (compressed)", training.source.features.join(", ")),
        features => features.categories().unwrap_or_default(),
    };
    let named = |name: &String| match categories.iter().find(|(column, _)| column == name) {
        None => name.clone(),
        Some((_, Coding::Vector(_))) => format!("{name} (vector)"),
        Some((_, Coding::Hashed(Buckets { of: Some(_), .. }))) => format!("{name} (words)"),
        Some(_) => format!("{name} (categories)"),
    };
    training.source.features.iter().map(named).collect::<Vec<_>>().join(", ")
}
