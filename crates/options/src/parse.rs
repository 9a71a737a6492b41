//! The argument `options`, read for a model.

use super::call::refused;
use super::chosen::{Options, Rate};
use super::defaults;
use super::entry::{invalid, not};
use super::given::Given;
use super::loss::Loss;
use super::objective::Objective;
use super::rows::{Standardize, Transform};
use choices::Choice;
use errors::{ArgumentError, Result, did_you_mean, one_of};
use loss::{Design, Hyperparameters, ModelKind, Optimizer, Output, Schedule, Solver};
use serde_json::{Map, Value};
use sgd::Stopping;

/// What the options of a point make.
pub struct Parsed {
    pub options: Options,
    pub hyperparameters: Hyperparameters,
    pub rate: Rate,
    /// when to stop before the last epoch
    pub stopping: Option<Stopping>,
}

/// Reads `options` for a model of this kind, `learning_rate` among them. What is not given is chosen by the tuples
/// where it can be, if that is `automatic`.
pub fn parse(options: Map<String, Value>, kind: ModelKind, automatic: bool) -> Result<Parsed> {
    let given = Given::new(options, kind)?;
    if given.contains("validation_column") && given.contains("validation_fraction") {
        return Err(invalid("validation_fraction", "cannot be combined with validation_column"));
    }
    let (hyperparameters, rate) = hyperparameters(&given, kind, automatic)?;
    let (stopping, says_standardize) = (stopping(&given), given.contains("standardize"));
    let mut options = given.options();
    match automatic {
        true => drop(options.transform.get_or_insert(Transform::Automatic)),
        false if !says_standardize => options.standardize = Standardize::None,
        false => {}
    }
    Ok(Parsed { options, hyperparameters, rate, stopping })
}

fn hyperparameters(given: &Given, kind: ModelKind, automatic: bool) -> Result<(Hyperparameters, Rate)> {
    check_loss(given, kind)?;
    let optimizer = optimizer(given);
    let design = design(given, kind)?;
    let l2 = given.number("l2");
    let solver = solver(given)?;
    let learning_rate = given.learning_rate();
    let default_rate = defaults::learning_rate(kind, optimizer, design.map(|design| design.activation));
    let hyperparameters = Hyperparameters {
        kind,
        learning_rate: learning_rate.unwrap_or(default_rate),
        schedule: schedule(given, kind, l2)?,
        optimizer,
        batch_size: given.get("batch_size").unwrap_or(Hyperparameters::new(kind).batch_size),
        l1: given.number("l1"),
        l2,
        l2_on: given.get("l2_on").unwrap_or_default(),
        bounded: false,
        reach: 0.0,
        averaging: false,
        solver,
        loss_number: loss_number(given, kind)?,
        design,
    };
    let is_open = automatic && learning_rate.is_none() && hyperparameters.has_automatic_rate();
    let hyperparameters = Hyperparameters {
        bounded: given.get("bounded_steps").unwrap_or(is_open),
        averaging: given.get("averaging").unwrap_or(is_open),
        ..hyperparameters
    };
    hyperparameters.validate().map_err(|e| match e.name {
        "learning_rate" => refused("learning_rate", e.reason, "Leave it out to choose it from the rows."),
        name => invalid(name, &e.reason),
    })?;
    Ok((hyperparameters, if is_open { Rate::Open } else { Rate::Given }))
}

/// What only SGD uses, in addition to the options of schedules and optimizers.
pub const OF_SGD: [&str; 6] = ["batch_size", "schedule", "bounded_steps", "averaging", "learning_rate", "optimizer"];

/// Newton's method makes its steps by itself: what is about gradients of some tuples says nothing to it.
fn solver(given: &Given) -> Result<Solver> {
    let solver: Solver = given.get("solver").unwrap_or_default();
    if solver == Solver::Sgd {
        return Ok(solver);
    }
    match OF_SGD.into_iter().find(|key| given.contains(key)) {
        Some(key) => {
            let hint = "Leave one of the two out: Newton's method chooses its own steps.";
            Err(refused(key, format!("it cannot be combined with solver \"{}\"", solver.name()), hint))
        }
        None => Ok(solver),
    }
}

fn optimizer(given: &Given) -> Optimizer {
    let named = Optimizer::named(&given.word("optimizer")).unwrap_or(Optimizer::Sgd);
    // each of its numbers is an option of the same name
    named.parameters().fold(named, |optimizer, (parameter, _)| {
        optimizer.with_parameter(parameter.name, given.number(parameter.name)).unwrap_or(optimizer)
    })
}

fn schedule(given: &Given, kind: ModelKind, l2: f64) -> Result<Schedule> {
    Ok(match given.word("schedule").as_str() {
        "constant" => Schedule::Constant,
        "inverse_scaling" => Schedule::InverseScaling { power: given.number("power") },
        "theorem1" => return theorem1(given, l2),
        _ => Schedule::Exponential { decay: given.get("decay").unwrap_or_else(|| defaults::decay(kind)) },
    })
}

fn theorem1(given: &Given, l2: f64) -> Result<Schedule> {
    let (mu, a) = (given.get("mu"), given.get("a"));
    if mu.is_none() && l2 == 0.0 {
        return Err(invalid("mu", "must be given with schedule \"theorem1\", unless l2 is given"));
    }
    if a.is_some() && given.contains("learning_rate") {
        return Err(invalid("a", "cannot be combined with learning_rate: both set the first rate"));
    }
    Ok(Schedule::Theorem1 { mu: mu.unwrap_or(l2), a })
}

/// What a network is made of; None for other models. The seed is an argument of its own.
fn design(given: &Given, kind: ModelKind) -> Result<Option<Design>> {
    if kind.is_linear() {
        return Ok(None);
    }
    check_objective(given, kind)?;
    let hidden = given.get("hidden_layer_sizes").unwrap_or_default();
    let activation = given.get("activation").unwrap_or_default();
    Ok(Some(Design { hidden, activation, output: output(given, kind)?, seed: 0 }))
}

/// The kind of model that this one is with these options: what a network predicts is an option of it, and what a linear
/// regression or an SVM minimises.
pub fn with_objective(kind: ModelKind, options: &Map<String, Value>) -> ModelKind {
    let word = |key: &str| options.get(key).and_then(Value::as_str);
    match kind {
        ModelKind::Mlp => word("objective").and_then(Objective::named).map_or(kind, Objective::network),
        _ => word("loss").and_then(Loss::named).and_then(|loss| loss.of_model(kind)).unwrap_or(kind),
    }
}

/// The number that the loss has of its own; 0 of one that has none.
fn loss_number(given: &Given, kind: ModelKind) -> Result<f64> {
    let Some(number) = kind.loss_number() else { return Ok(0.0) };
    match given.get(number.name).filter(|given| !number.range.contains(*given)) {
        Some(given) => Err(not(number.name, &number.range.words(), &given.into())),
        None => Ok(given.get(number.name).unwrap_or(number.default)),
    }
}

/// The option `loss` has made the kind of model, unless the kind was named.
fn check_loss(given: &Given, kind: ModelKind) -> Result<()> {
    match (given.get::<Loss>("loss"), Loss::of(kind)) {
        (Some(given), Some(own)) if given != own => {
            let choices: Vec<String> = Loss::choices(kind).iter().map(|name| format!("\"{name}\"")).collect();
            Err(invalid("loss", &format!("must be {} for model {kind}", choices.join(" or "))))
        }
        _ => Ok(()),
    }
}

/// The option `objective` has made the kind of network, unless the kind was named.
fn check_objective(given: &Given, kind: ModelKind) -> Result<()> {
    match given.get::<Objective>("objective") {
        Some(objective) if objective.network() != kind => {
            Err(invalid("objective", &format!("must be \"{}\" for model {kind}", Objective::of(kind).name())))
        }
        _ => Ok(()),
    }
}

/// What the last layer means, if it does not follow from the classes.
fn output(given: &Given, kind: ModelKind) -> Result<Option<Output>> {
    match given.get::<Output>("output") {
        Some(output) if output.has_classes() != kind.is_classifier() => {
            let (output, objective) = (output.name(), Objective::of(kind).name());
            Err(invalid("output", &format!("\"{output}\" cannot be combined with objective \"{objective}\"")))
        }
        None if !kind.is_classifier() => Ok(Some(Output::Identity)),
        given => Ok(given),
    }
}

/// Stopping early is asked for by either of its numbers.
fn stopping(given: &Given) -> Option<Stopping> {
    let asked = given.contains("tolerance") || given.contains("patience");
    asked.then(|| Stopping {
        tolerance: given.get("tolerance").unwrap_or(Stopping::TOLERANCE),
        patience: given.get("patience").unwrap_or(Stopping::PATIENCE),
    })
}

/// What an argument of another function chooses.
pub fn argument_choice<T: Choice>(argument: &'static str, given: &str) -> Result<T> {
    T::named(given).ok_or_else(|| {
        let names = T::names();
        let reason = format!("\"{given}\" is not {}", one_of(&names));
        ArgumentError::InvalidArgument { argument, reason, hint: did_you_mean(given, names) }.into()
    })
}
