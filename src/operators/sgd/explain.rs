//! EXPLAIN.

use super::options::{By, Validation};
use super::request::Request;
use super::training::Training;
use crate::operators::decoder::FeatureColumns;
use crate::options::rows::ClassWeight;
use crate::pg::executor::explain::Explain;
use sgd::{Hyperparameters, Optimizer, Schedule, Stopping};

pub fn explain(training: &Training, explain: Explain) {
    let request = &training.request;
    explain.text(c"Model", request.kind.name());
    explain.text(c"Label", &request.label);
    explain.text(c"Features", &features(training));
    if let Some(weight) = &request.options.weight {
        explain.text(c"Weight", weight);
    }
    match &request.options.class_weight {
        Some(ClassWeight::Balanced) => explain.text(c"Class Weight", "balanced"),
        Some(given) => explain.text(c"Class Weight", &given.to_json().to_string()),
        None => {}
    }
    if let Some(resume) = &request.resume {
        explain.text(c"Continues", &format!("model {} after epoch {}", resume.model_id, resume.epochs));
    }
    row_groups(request, explain);
    explain.integer(c"Epochs", request.max_epochs.into());
    match request.points.as_slice() {
        [point] => {
            point.stopping.into_iter().for_each(|rule| stopping(rule, explain));
            hyperparameters(&point.hyperparameters, explain);
        }
        points => explain.integer(c"Grid Points", points.len() as i64),
    }
    if request.workers > 1 {
        let ran = training.processes.filter(|_| explain.analyze());
        explain.integer(c"Processes", ran.unwrap_or(request.workers).into());
        explain.integer(c"Workers Planned", i64::from(request.workers) - 1);
        ran.into_iter().for_each(|processes| explain.integer(c"Workers Launched", i64::from(processes) - 1));
    }
    explain.text(c"Strategy", request.shuffling.strategy.name());
    explain.integer(c"Seed", request.shuffling.seed);
    if let (true, Some(last)) = (explain.analyze(), training.outcome.as_ref().and_then(|rows| rows.last())) {
        let tuples = training.outcome.iter().flatten().map(|row| row.tuples).sum();
        if request.trains_several() {
            explain.integer(c"Models", training.models as i64);
        }
        explain.integer(c"Tuples", tuples);
        explain.integer(c"Skipped Tuples", training.buffers.decoder.skipped() as i64);
        if !request.trains_several() {
            explain.float(c"Loss", last.loss, 6);
            last.accuracy.into_iter().for_each(|accuracy| explain.float(c"Accuracy", accuracy, 6));
            last.r2.into_iter().for_each(|r2| explain.float(c"R2", r2, 6));
            last.validation_loss.into_iter().for_each(|loss| explain.float(c"Validation Loss", loss, 6));
        }
    }
    if explain.timing() {
        explain.milliseconds(c"Compute Time", training.compute.as_secs_f64());
    }
    explain.inner_query(training.buffers.query());
}

/// The groups that rows fall into, and what is held out.
fn row_groups(request: &Request, explain: Explain) {
    if let Some(group) = &request.row_groups.group {
        explain.text(c"Group By", group);
    }
    match &request.options.validation {
        Some(Validation::Column(column)) => explain.text(c"Validation", &format!("rows with {column}")),
        Some(Validation::Fraction { fraction, by: By::Row }) => {
            explain.text(c"Validation", &format!("{fraction} of the rows"));
        }
        Some(Validation::Fraction { fraction, by: By::Block }) => {
            explain.text(c"Validation", &format!("{fraction} of the blocks"));
        }
        None => {}
    }
}

/// When it stops early.
fn stopping(rule: Stopping, explain: Explain) {
    let Stopping { tolerance, patience } = rule;
    explain.text(c"Early Stopping", &format!("tolerance {tolerance}, patience {patience}"));
}

/// The columns, and what is done with them if that is not plain.
fn features(training: &Training) -> String {
    let features = training.buffers.decoder.features();
    let categories = match features {
        FeatureColumns::Sparse(_) => return format!("{} (sparse)", training.features.join(", ")),
        FeatureColumns::Compressed(_) => return format!("{} (compressed)", training.features.join(", ")),
        features => features.categories().unwrap_or_default(),
    };
    let is_category = |name: &String| categories.iter().any(|(column, _)| column == name);
    let named = |name: &String| if is_category(name) { format!("{name} (categories)") } else { name.clone() };
    training.features.iter().map(named).collect::<Vec<_>>().join(", ")
}

/// How it learns, as far as that differs from the defaults.
fn hyperparameters(hyper: &Hyperparameters, explain: Explain) {
    explain.real(c"Learning Rate", hyper.learning_rate);
    match hyper.schedule {
        Schedule::EXPONENTIAL => {}
        Schedule::Exponential { decay } => explain.text(c"Schedule", &format!("exponential, decay {decay}")),
        Schedule::Constant => explain.text(c"Schedule", "constant"),
        Schedule::InverseScaling { power } => explain.text(c"Schedule", &format!("inverse_scaling, power {power}")),
        Schedule::Theorem1 { mu, a: None } => explain.text(c"Schedule", &format!("theorem1, mu {mu}")),
        Schedule::Theorem1 { mu, a: Some(a) } => explain.text(c"Schedule", &format!("theorem1, mu {mu}, a {a}")),
    }
    match hyper.optimizer {
        Optimizer::Sgd => {}
        Optimizer::Momentum { beta } => explain.text(c"Optimizer", &format!("momentum {beta}")),
        Optimizer::Adam { beta1, beta2, epsilon } => {
            explain.text(c"Optimizer", &format!("adam, beta1 {beta1}, beta2 {beta2}, epsilon {epsilon:e}"));
        }
    }
    if hyper.batch_size > 1 && hyper.batch_size < Hyperparameters::WHOLE_MINI_BATCHES {
        explain.integer(c"Batch Size", hyper.batch_size.into());
    }
    if hyper.l1 > 0.0 {
        explain.real(c"L1", hyper.l1);
    }
    if hyper.l2 > 0.0 {
        explain.real(c"L2", hyper.l2);
    }
}
