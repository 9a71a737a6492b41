//! What EXPLAIN shows of a call, line by line.

use super::chosen::{Point, Rate, Validation};
use super::defaults;
use super::request::{Open, Request};
use super::rows::{By, ClassWeight};
use choices::Choice;
use loss::{Hyperparameters, Optimizer, Schedule, Solver};
use pg::executor::explain::Explain;
use sgd::Stopping;

/// Shows what was asked for, with the feature columns as they are shown. `processes` have trained; None: not yet.
pub fn explain(request: &Request, features: &str, processes: Option<u32>, explain: Explain) {
    let options = &request.options;
    explain.text(c"Model", if request.open == Open::Classes { "auto" } else { request.kind.name() });
    explain.text(c"Label", &request.label);
    explain.text(c"Features", features);
    options.weight.iter().for_each(|column| explain.text(c"Weight", column));
    match &options.class_weight {
        Some(ClassWeight::Balanced) => explain.text(c"Class Weight", ClassWeight::BALANCED),
        Some(given) => explain.text(c"Class Weight", &given.to_json().to_string()),
        None => {}
    }
    match request.resume.map(|resume| (resume.model_id, resume.epochs)) {
        Some((model, 0)) => explain.text(c"Begins With", &format!("the weights of model {model}")),
        Some((model, epochs)) => explain.text(c"Continues", &format!("model {model} after epoch {epochs}")),
        None => {}
    }
    request.row_groups.group.iter().for_each(|column| explain.text(c"Group By", column));
    match options.validation() {
        Some(Validation::Fraction { fraction, by }) => {
            let of = if by == By::Row { "rows" } else { "blocks" };
            explain.text(c"Validation", &format!("{fraction} of the {of}"));
        }
        Some(Validation::Column(column)) => explain.text(c"Validation", &format!("rows with {column}")),
        None => {}
    }
    // what several points have in common
    let point = if let [point] = request.points.as_slice() { Some(point) } else { None };
    match point {
        Some(Point { has_open_solver: true, .. }) => explain.text(c"Solver", "auto"),
        Some(point) if point.hyperparameters.solver == Solver::Newton => explain.text(c"Solver", Solver::Newton.name()),
        _ => {}
    }
    match request.has_open_epochs() {
        true => explain.text(c"Epochs", "auto"),
        false => explain.integer(c"Epochs", request.max_epochs().into()),
    }
    point.into_iter().for_each(|point| explain_point(point, request, explain));
    if options.probability {
        explain.text(c"Probabilities", "true");
    }
    if request.open == Open::Objective {
        explain.text(c"Objective", "auto");
    }
    if request.points.len() > 1 {
        explain.integer(c"Grid Points", request.points.len() as i64);
    }
    explain_processes(explain, request.workers, processes.filter(|_| explain.analyze()));
    explain.text(c"Strategy", request.shuffling.strategy.name());
    explain.integer(c"Seed", request.shuffling.seed);
}

/// Shows how one model learns, where that differs from the defaults.
fn explain_point(point: &Point, request: &Request, explain: Explain) {
    let hyper = &point.hyperparameters;
    if let Some(Stopping { tolerance, patience }) = point.stopping {
        explain.text(c"Early Stopping", &format!("tolerance {tolerance}, patience {patience}"));
    }
    // Newton's method has neither a learning rate nor mini-batches
    if hyper.solver == Solver::Sgd {
        match point.rate {
            Rate::Open => explain.text(c"Learning Rate", "auto"),
            _ => explain.real(c"Learning Rate", hyper.learning_rate),
        }
        let flags = [(c"Bounded Steps", hyper.bounded), (c"Averaging", hyper.averaging)];
        flags.iter().filter(|(_, is_set)| *is_set).for_each(|(name, _)| explain.text(name, "true"));
        if !matches!(hyper.schedule, Schedule::Exponential { decay } if decay == defaults::decay(request.kind)) {
            explain.text(c"Schedule", &hyper.schedule.to_string());
        }
        if hyper.optimizer != Optimizer::Sgd {
            explain.text(c"Optimizer", &hyper.optimizer.to_string());
        }
        match hyper.batch_size {
            _ if point.has_open_batch_size => explain.text(c"Batch Size", "auto"),
            1 | Hyperparameters::WHOLE_MINI_BATCHES => {}
            size => explain.integer(c"Batch Size", size.into()),
        }
    }
    let penalties = [(c"L1", hyper.l1), (c"L2", hyper.l2)];
    penalties.iter().filter(|(_, penalty)| *penalty > 0.0).for_each(|(name, penalty)| explain.real(name, *penalty));
    match request.kind.loss_number().map(|number| number.name) {
        Some("quantile") => explain.real(c"Quantile", hyper.loss_number),
        Some("loss_epsilon") => explain.real(c"Loss Epsilon", hyper.loss_number),
        _ => {}
    }
}

/// Shows how many processes there are to be, and how many there were; nothing of a single one.
pub fn explain_processes(explain: Explain, asked: u32, ran: Option<u32>) {
    if asked > 1 {
        explain.integer(c"Processes", ran.unwrap_or(asked).into());
        explain.integer(c"Workers Planned", i64::from(asked) - 1);
        ran.into_iter().for_each(|processes| explain.integer(c"Workers Launched", i64::from(processes) - 1));
    }
}
