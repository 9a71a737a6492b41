//! The argument `options`, read for a model.

use super::choices::Choice;
use super::chosen::{Options, Rate, Validation};
use super::date_parts::DateParts;
use super::defaults;
use super::keys::{Keys, invalid, not};
use super::loss::Loss;
use super::nodes::Nodes;
use super::objective::Objective;
use super::rows::{ClassWeight, Clip, Hashing, Standardize, Transform};
use crate::errors::{ArgumentError, Error, Result, did_you_mean, one_of};
use crate::limits::MAX_WEIGHTS;
use serde_json::{Map, Value};
use sgd::{Activation, Design, Hidden, Hyperparameters, ModelKind, Optimizer, Output, Schedule, Solver, Stopping};

/// Reads `options` for a model of this kind, together with the argument `learning_rate`. What is not given is chosen by
/// the tuples where it can be, if that is `automatic`.
///
/// # Errors
/// Those of [`Keys`]; [`ArgumentError::InvalidArgument`]
pub fn parse(
    options: Map<String, Value>,
    kind: ModelKind,
    learning_rate: Option<f64>,
    automatic: bool,
) -> Result<(Options, Hyperparameters, Rate)> {
    let keys = Keys::new(options, kind)?;
    let (hyperparameters, rate) = hyperparameters(&keys, kind, learning_rate, automatic)?;
    let mut options = Options {
        has_batch_size: keys.contains("batch_size"),
        wants_bounded_steps: keys.optional_boolean("bounded_steps")? == Some(true),
        wants_averaging: keys.optional_boolean("averaging")? == Some(true),
        standardize: keys.get("standardize", "true, false or \"auto\"", Standardize::read)?.unwrap_or(
            match automatic {
                true => Standardize::Automatic,
                false => Standardize::None,
            },
        ),
        transform: keys
            .get("transform", Transform::WHAT, Transform::read)?
            .or(automatic.then_some(Transform::Automatic)),
        clip: keys.get("clip", Clip::WHAT, Clip::read)?.flatten(),
        nulls: keys.choice("nulls")?,
        weight: keys.column("weight")?,
        class_weight: class_weight(&keys)?,
        index_base: keys.integer("index_base")?.map(|base| base as u32),
        dimensions: keys.integer("dimensions")?.map(|dimensions| dimensions as usize),
        unseen: keys.choice("unseen")?,
        date_parts: keys.get("date_parts", DateParts::WHAT, DateParts::read)?.flatten(),
        hash: keys.get("hash", &Hashing::what(), Hashing::read)?,
        cache: keys.choice("cache")?,
        validation: validation(&keys)?,
        probability: keys.boolean("probability")?,
        has_default_validation: false,
        stopping: stopping(&keys)?,
        keep: keys.choice("keep")?.unwrap_or_default(),
        keep_versions: keys.integer("keep_versions")?.map(|versions| versions as u32),
        planned_epochs: keys.integer("planned_epochs")?.map(|epochs| epochs as u32),
        remeasure: keys.optional_boolean("remeasure")?.unwrap_or(true),
        prepare: keys.choice("prepare")?.unwrap_or_default(),
        share: keys.optional_boolean("share")?,
        nodes: keys.get("nodes", Nodes::WHAT, Nodes::read)?.unwrap_or_default(),
        notice: keys.boolean("notice")?,
    };
    options.hold_out_for_probabilities();
    Ok((options, hyperparameters, rate))
}

fn hyperparameters(
    keys: &Keys,
    kind: ModelKind,
    learning_rate: Option<f64>,
    automatic: bool,
) -> Result<(Hyperparameters, Rate)> {
    check_loss(keys, kind)?;
    let optimizer = optimizer(keys)?;
    let design = design(keys, kind)?;
    let l2 = keys.number_or_default("l2")?;
    let solver = solver(keys, learning_rate)?;
    let default_rate = defaults::learning_rate(kind, optimizer, design.map(|design| design.activation));
    let default_size = Hyperparameters::new(kind).batch_size;
    let hyperparameters = Hyperparameters {
        kind,
        learning_rate: learning_rate.unwrap_or(default_rate),
        schedule: schedule(keys, kind, l2, learning_rate)?,
        optimizer,
        batch_size: keys.integer("batch_size")?.map_or(default_size, |size| size as u32),
        l1: keys.number_or_default("l1")?,
        l2,
        bounded: false,
        reach: 0.0,
        averaging: false,
        solver,
        loss_number: loss_number(keys, kind)?,
        design,
    };
    let is_open = automatic && learning_rate.is_none() && hyperparameters.has_automatic_rate();
    let hyperparameters = Hyperparameters {
        bounded: keys.optional_boolean("bounded_steps")?.unwrap_or(is_open),
        averaging: keys.optional_boolean("averaging")?.unwrap_or(is_open),
        ..hyperparameters
    };
    hyperparameters.validate().map_err(|e| match e.name {
        "learning_rate" => Error::from(ArgumentError::InvalidArgument {
            argument: "learning_rate",
            reason: e.reason.into_owned(),
            hint: Some("Leave it out, and the rows say which is good.".into()),
        }),
        name => invalid(name, &e.reason),
    })?;
    Ok((hyperparameters, if is_open { Rate::Open } else { Rate::Given }))
}

/// Options that say something to SGD alone, beside those of optimizers.
pub const OF_SGD: [&str; 4] = ["batch_size", "schedule", "bounded_steps", "averaging"];

/// Newton's method makes its steps by itself: what is about gradients of some tuples says nothing to it.
fn solver(keys: &Keys, learning_rate: Option<f64>) -> Result<Solver> {
    let solver = keys.word("solver")?.and_then(Solver::named).unwrap_or_default();
    if solver == Solver::Sgd {
        return Ok(solver);
    }
    let given = OF_SGD.into_iter().find(|key| keys.contains(key)).or(learning_rate.map(|_| "learning_rate"));
    let given = given.or(keys.is_given("optimizer").then_some("optimizer"));
    match given {
        Some(key) => Err(ArgumentError::InvalidArgument {
            argument: key,
            reason: format!("it does not go with solver \"{}\"", solver.name()),
            hint: Some("Leave one of the two out: Newton's method makes its steps by itself.".into()),
        }
        .into()),
        None => Ok(solver),
    }
}

fn optimizer(keys: &Keys) -> Result<Optimizer> {
    let mut optimizer = keys.word("optimizer")?.and_then(Optimizer::named).unwrap_or(Optimizer::Sgd);
    // each of its numbers is an option of the same name
    for (parameter, _) in optimizer.parameters() {
        let value = keys.number_or_default(parameter.name)?;
        optimizer = optimizer.with_parameter(parameter.name, value).unwrap_or(optimizer);
    }
    Ok(optimizer)
}

fn schedule(keys: &Keys, kind: ModelKind, l2: f64, learning_rate: Option<f64>) -> Result<Schedule> {
    Ok(match keys.word("schedule")? {
        Some("constant") => Schedule::Constant,
        Some("inverse_scaling") => Schedule::InverseScaling { power: keys.number_or_default("power")? },
        Some("theorem1") => return theorem1(keys, l2, learning_rate),
        _ => Schedule::Exponential { decay: keys.number("decay")?.unwrap_or_else(|| defaults::decay(kind)) },
    })
}

fn theorem1(keys: &Keys, l2: f64, learning_rate: Option<f64>) -> Result<Schedule> {
    let (mu, a) = (keys.number("mu")?, keys.number("a")?);
    if mu.is_none() && l2 == 0.0 {
        return Err(invalid("mu", "must be given with schedule \"theorem1\", unless there is an l2 to take its place"));
    }
    if a.is_some() && learning_rate.is_some() {
        return Err(invalid("a", "does not go with learning_rate: each of them decides the first rate"));
    }
    Ok(Schedule::Theorem1 { mu: mu.unwrap_or(l2), a })
}

/// What a network is made of; None for other models. The seed is an argument of its own.
fn design(keys: &Keys, kind: ModelKind) -> Result<Option<Design>> {
    if kind.is_linear() {
        return Ok(None);
    }
    check_objective(keys, kind)?;
    // with more units, not even one feature would make a model that can be stored
    let what = format!("an array of one to {} whole numbers from 1 to {MAX_WEIGHTS}", Hidden::MAX_LAYERS);
    let hidden = keys.get("hidden_layers", &what, |value| {
        let size = |value: &Value| {
            let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
            (1.0..=MAX_WEIGHTS as f64).contains(&number).then_some(number as u32)
        };
        let sizes: Option<Vec<u32>> = value.as_array()?.iter().map(size).collect();
        Hidden::new(&sizes?)
    })?;
    let activation = keys.word("activation")?.and_then(Activation::named).unwrap_or_default();
    let output = output(keys, kind)?;
    Ok(Some(Design { hidden: hidden.unwrap_or_default(), activation, output, seed: 0 }))
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
fn loss_number(keys: &Keys, kind: ModelKind) -> Result<f64> {
    let Some(number) = kind.loss_number() else { return Ok(0.0) };
    let given = keys.number(number.name)?;
    match given.filter(|given| !number.range.contains(*given)) {
        Some(given) => Err(not(number.name, &number.range.words(), &given.into())),
        None => Ok(given.unwrap_or(number.default)),
    }
}

/// The option `loss` has made the kind of model, unless the kind was named.
fn check_loss(keys: &Keys, kind: ModelKind) -> Result<()> {
    match (keys.choice::<Loss>("loss")?, Loss::of(kind)) {
        (Some(given), Some(own)) if given != own => {
            let choices: Vec<String> = Loss::choices(kind).iter().map(|name| format!("\"{name}\"")).collect();
            Err(invalid("loss", &format!("must be {} for model {kind}", choices.join(" or "))))
        }
        _ => Ok(()),
    }
}

/// The option `objective` has made the kind of network, unless the kind was named.
fn check_objective(keys: &Keys, kind: ModelKind) -> Result<()> {
    match keys.choice::<Objective>("objective")? {
        Some(objective) if objective.network() != kind => {
            Err(invalid("objective", &format!("must be \"{}\" for model {kind}", Objective::of(kind).name())))
        }
        _ => Ok(()),
    }
}

/// What the last layer means, if it does not follow from the classes.
fn output(keys: &Keys, kind: ModelKind) -> Result<Option<Output>> {
    let given = keys.word("output")?.and_then(Output::named);
    match given {
        Some(output) if output.has_classes() != kind.is_classifier() => {
            let (output, objective) = (output.name(), Objective::of(kind).name());
            Err(invalid("output", &format!("\"{output}\" does not go with objective \"{objective}\"")))
        }
        None if !kind.is_classifier() => Ok(Some(Output::Identity)),
        given => Ok(given),
    }
}

fn class_weight(keys: &Keys) -> Result<Option<ClassWeight>> {
    if let Some(word) =
        keys.get("class_weight", CLASS_WEIGHT, |value| Some(value.as_str().map(str::to_owned)))?.flatten()
        && word != ClassWeight::BALANCED
        && did_you_mean(&word, [ClassWeight::BALANCED]).is_some()
    {
        let known = vec![ClassWeight::BALANCED];
        return Err(ArgumentError::UnknownWord { key: "class_weight", given: word, known }.into());
    }
    keys.get("class_weight", CLASS_WEIGHT, ClassWeight::read)
}

const CLASS_WEIGHT: &str = "\"balanced\", or an object of labels and their weights, which are finite and at least 0";

/// The rows to hold out, by a fraction or by a column.
fn validation(keys: &Keys) -> Result<Option<Validation>> {
    match (keys.column("validation_column")?, keys.number("validation_fraction")?) {
        (Some(_), Some(_)) => Err(invalid("validation_fraction", "does not go with validation_column")),
        (column, None) => Ok(column.map(Validation::Column)),
        (None, Some(fraction)) => {
            Ok(Some(Validation::Fraction { fraction, by: keys.choice("validation_by")?.unwrap_or_default() }))
        }
    }
}

/// Stopping early is asked for by either of its numbers.
fn stopping(keys: &Keys) -> Result<Option<Stopping>> {
    let (tolerance, patience) = (keys.number("tolerance")?, keys.integer("patience")?);
    let asked = tolerance.is_some() || patience.is_some();
    Ok(asked.then(|| Stopping {
        tolerance: tolerance.unwrap_or(Stopping::TOLERANCE),
        patience: patience.map_or(Stopping::PATIENCE, |epochs| epochs as u32),
    }))
}

/// What an argument of another function chooses.
///
/// # Errors
/// [`ArgumentError::InvalidArgument`]
pub fn argument_choice<T: Choice>(argument: &'static str, given: &str) -> Result<T> {
    T::named(given).ok_or_else(|| {
        let names = T::names();
        let reason = format!("\"{given}\" is not {}", one_of(&names));
        ArgumentError::InvalidArgument { argument, reason, hint: did_you_mean(given, names) }.into()
    })
}
