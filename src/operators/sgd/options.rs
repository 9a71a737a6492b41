//! The keys of `options`: the arguments of corgipile_train() that few need.
//!
//! A key that does not exist, or that has nothing to say to the other choices, is an error: a misspelt or misplaced
//! option that is silently ignored costs its user a night of training.

use crate::errors::{ArgumentError, Error, Result};
use crate::limits::MAX_WEIGHTS;
use crate::options::cache::CacheMode;
use crate::options::rows::{ClassWeight, HoldOut, Nulls, Unseen};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sgd::{Activation, Design, Hidden, Hyperparameters, ModelKind, Optimizer, Output, Schedule, Stopping};

/// What `options` say beyond the hyperparameters.
#[derive(Default)]
pub struct Options {
    /// was the size of mini-batches said?
    pub has_batch_size: bool,
    /// learn mean and deviation first, and train on standardized features
    pub standardize: bool,
    pub nulls: Nulls,
    /// column of the rows' weights
    pub weight: Option<String>,
    pub class_weight: Option<ClassWeight>,
    /// what sparse tuples call their first dimension
    pub index_base: Option<u32>,
    /// dimensions of sparse tuples
    pub dimensions: Option<usize>,
    pub unseen: Option<Unseen>,
    /// whether decoded tuples are kept for the next epochs
    pub cache: Option<CacheMode>,
    /// what is held out for validation
    pub validation: Option<Validation>,
    /// when to stop before the last epoch
    pub stopping: Option<Stopping>,
    pub keep: Keep,
    /// tell the client of each epoch
    pub notice: bool,
}

/// Rows that are held out for validation.
#[derive(Debug, Clone, PartialEq)]
pub enum Validation {
    Fraction { fraction: f64, by: By },
    Column(String),
}

/// What is drawn for validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    #[default]
    Row,
    Block,
}

/// Which model is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// that of the last epoch
    #[default]
    Last,
    /// that of the epoch with the lowest loss
    Best,
}

impl Validation {
    /// What a decoder is to hold out.
    pub fn hold_out(&self, seed: i64) -> HoldOut {
        match self {
            Validation::Column(name) => HoldOut::Column(name.clone()),
            Validation::Fraction { fraction, by: By::Row } => HoldOut::Rows { fraction: *fraction, seed },
            Validation::Fraction { fraction, by: By::Block } => HoldOut::Blocks { fraction: *fraction, seed },
        }
    }
}

/// All keys, in the order in which they are listed.
pub const KNOWN: [&str; 31] = [
    "a",
    "activation",
    "batch_size",
    "beta1",
    "beta2",
    "cache",
    "class_weight",
    "decay",
    "dimensions",
    "epsilon",
    "hidden_layers",
    "index_base",
    "keep",
    "l1",
    "l2",
    "momentum",
    "mu",
    "notice",
    "nulls",
    "optimizer",
    "output",
    "patience",
    "power",
    "schedule",
    "standardize",
    "tolerance",
    "unseen",
    "validation_by",
    "validation_column",
    "validation_fraction",
    "weight",
];

const MAX_BATCH_SIZE: u64 = 1_000_000;

/// Units of a layer: with more, not even one feature would make a model that can be stored.
const MAX_UNITS: u32 = MAX_WEIGHTS as u32;

impl Options {
    /// Reads `options` for a model of this kind, together with the argument `learning_rate`.
    ///
    /// # Errors
    /// [`ArgumentError::OptionsNotAnObject`], [`ArgumentError::Unknown`], [`ArgumentError::InvalidOption`], [`ArgumentError::InvalidArgument`]
    pub fn parse(
        options: Option<Value>,
        kind: ModelKind,
        learning_rate: Option<f64>,
    ) -> Result<(Options, Hyperparameters)> {
        let has_batch_size = options.as_ref().is_some_and(|options| options.get("batch_size").is_some());
        let mut keys = Keys::new(options)?;
        let optimizer = optimizer(&mut keys)?;
        let adapts = matches!(optimizer, Optimizer::Adam { .. });
        let defaults = Hyperparameters::new(kind);
        let design = design(&mut keys, kind)?;
        let l2 = keys.number("l2")?.unwrap_or(0.0);
        let hyperparameters = Hyperparameters {
            kind,
            learning_rate: learning_rate.unwrap_or(match &design {
                _ if adapts => 0.001,
                Some(design) => design.activation.learning_rate(),
                None => defaults.learning_rate,
            }),
            schedule: schedule(&mut keys, l2, learning_rate)?,
            optimizer,
            batch_size: keys.integer("batch_size", 1, MAX_BATCH_SIZE)?.map_or(defaults.batch_size, |size| size as u32),
            l1: keys.number("l1")?.unwrap_or(0.0),
            l2,
            design,
        };
        hyperparameters.validate().map_err(|e| match e.name {
            "learning_rate" => {
                ArgumentError::InvalidArgument { argument: "learning_rate", reason: e.reason.to_owned(), hint: None }
                    .into()
            }
            name => invalid(name, e.reason),
        })?;
        if !kind.is_classifier() {
            keys.refuse(&["class_weight"], "applies to classes, and model linear has none")?;
        }
        let options = Options {
            has_batch_size,
            standardize: keys.take("standardize", "true or false", Value::as_bool)?.unwrap_or_default(),
            nulls: keys.take("nulls", "\"error\" or \"skip\"", read)?.unwrap_or_default(),
            weight: keys.take("weight", "the name of a column", |v| v.as_str().map(str::to_owned))?,
            class_weight: keys.take("class_weight", CLASS_WEIGHT, class_weight)?,
            index_base: keys.integer("index_base", 0, 1)?.map(|base| base as u32),
            dimensions: keys.integer("dimensions", 1, MAX_WEIGHTS as u64)?.map(|d| d as usize),
            unseen: keys.take("unseen", "\"error\" or \"zero\"", read)?,
            cache: keys.take("cache", "\"auto\", \"on\" or \"off\"", read)?,
            validation: validation(&mut keys)?,
            stopping: stopping(&mut keys)?,
            keep: keys.take("keep", "\"last\" or \"best\"", read)?.unwrap_or_default(),
            notice: keys.take("notice", "true or false", Value::as_bool)?.unwrap_or_default(),
        };
        Ok((options, hyperparameters))
    }

    /// Adds what differs from no options to the record of a training.
    pub fn record(&self, record: &mut Map<String, Value>) {
        record.insert("standardize".into(), json!(self.standardize));
        record.insert("nulls".into(), json!(self.nulls));
        let mut add = |key: &str, value: Option<Value>| value.map(|value| record.insert(key.into(), value));
        add("weight", self.weight.as_ref().map(|column| json!(column)));
        add("class_weight", self.class_weight.as_ref().map(ClassWeight::to_json));
        add("index_base", self.index_base.map(|base| json!(base)));
        add("dimensions", self.dimensions.map(|dimensions| json!(dimensions)));
        add("unseen", self.unseen.map(|unseen| json!(unseen)));
        match &self.validation {
            Some(Validation::Column(column)) => drop(add("validation_column", Some(json!(column)))),
            Some(Validation::Fraction { fraction, by }) => {
                add("validation_fraction", Some(json!(fraction)));
                add("validation_by", Some(json!(by)));
            }
            None => {}
        }
        add("tolerance", self.stopping.map(|stopping| json!(stopping.tolerance)));
        add("patience", self.stopping.map(|stopping| json!(stopping.patience)));
        add("keep", (self.keep != Keep::Last).then(|| json!(self.keep)));
    }
}

/// What a network is made of; None for other models. The seed is an argument of its own.
fn design(keys: &mut Keys, kind: ModelKind) -> Result<Option<Design>> {
    if kind != ModelKind::Mlp {
        keys.refuse(&["hidden_layers", "activation", "output"], "applies only to model mlp")?;
        return Ok(None);
    }
    let what = format!("an array of one to {} whole numbers from 1 to {MAX_UNITS}", Hidden::MAX_LAYERS);
    let hidden = keys.take("hidden_layers", &what, |value| {
        let size = |value: &Value| {
            let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
            (1.0..=f64::from(MAX_UNITS)).contains(&number).then_some(number as u32)
        };
        let sizes: Option<Vec<u32>> = value.as_array()?.iter().map(size).collect();
        Hidden::new(&sizes?)
    })?;
    let activation = keys.take("activation", "one of \"sigmoid\", \"relu\", \"tanh\"", |value| {
        value.as_str().and_then(Activation::named)
    })?;
    let output = keys.take("output", "\"sigmoid\" or \"softmax\"", |value| value.as_str().and_then(Output::named))?;
    let (hidden, activation) = (hidden.unwrap_or_default(), activation.unwrap_or_default());
    Ok(Some(Design { hidden, activation, output, seed: 0 }))
}

/// The rows to hold out, by a fraction or by a column.
fn validation(keys: &mut Keys) -> Result<Option<Validation>> {
    let column = keys.take("validation_column", "the name of a column", |v| v.as_str().map(str::to_owned))?;
    let fraction = keys.take("validation_fraction", "a number between 0 and 1", |value| {
        value.as_f64().filter(|fraction| *fraction > 0.0 && *fraction < 1.0)
    })?;
    match (column, fraction) {
        (Some(_), Some(_)) => Err(invalid("validation_fraction", "does not go with validation_column")),
        (column, None) => {
            keys.refuse(&["validation_by"], "applies only with validation_fraction")?;
            Ok(column.map(Validation::Column))
        }
        (None, Some(fraction)) => {
            let by = keys.take("validation_by", "\"row\" or \"block\"", read)?.unwrap_or_default();
            Ok(Some(Validation::Fraction { fraction, by }))
        }
    }
}

/// Stopping early is asked for by either of its numbers; the other is as scikit-learn has it.
fn stopping(keys: &mut Keys) -> Result<Option<Stopping>> {
    let not_negative = |value: &Value| value.as_f64().filter(|number| *number >= 0.0);
    let tolerance = keys.take("tolerance", "a number of at least 0", not_negative)?;
    let patience = keys.integer("patience", 1, 1_000_000)?;
    let asked = tolerance.is_some() || patience.is_some();
    Ok(asked.then(|| Stopping { tolerance: tolerance.unwrap_or(1e-3), patience: patience.unwrap_or(5) as u32 }))
}

/// Adds hyperparameters to the record of a training, by their options' names.
pub fn record_hyperparameters(hyper: &Hyperparameters, record: &mut Map<String, Value>) {
    let mut add = |key: &str, value: Value| record.insert(key.to_owned(), value);
    if !matches!(hyper.schedule, Schedule::Theorem1 { a: Some(_), .. }) {
        add("learning_rate", json!(hyper.learning_rate)); // else it has no part in the rates
    }
    if hyper.batch_size < Hyperparameters::WHOLE_MINI_BATCHES {
        add("batch_size", json!(hyper.batch_size));
    }
    add("l1", json!(hyper.l1));
    add("l2", json!(hyper.l2));
    add("schedule", json!(hyper.schedule.name()));
    match hyper.schedule {
        Schedule::Constant => {}
        Schedule::Exponential { decay } => drop(add("decay", json!(decay))),
        Schedule::InverseScaling { power } => drop(add("power", json!(power))),
        Schedule::Theorem1 { mu, a } => {
            add("mu", json!(mu));
            add("a", json!(a));
        }
    }
    add("optimizer", json!(hyper.optimizer.name()));
    match hyper.optimizer {
        Optimizer::Sgd => {}
        Optimizer::Momentum { beta } => drop(add("momentum", json!(beta))),
        Optimizer::Adam { beta1, beta2, epsilon } => {
            add("beta1", json!(beta1));
            add("beta2", json!(beta2));
            add("epsilon", json!(epsilon));
        }
    }
    if let Some(design) = &hyper.design {
        add("hidden_layers", json!(design.hidden));
        add("activation", json!(design.activation));
        if let Some(output) = design.output {
            add("output", json!(output));
        }
    }
}

fn optimizer(keys: &mut Keys) -> Result<Optimizer> {
    let name = keys.word("optimizer", &["sgd", "momentum", "adam"])?;
    if name != "momentum" {
        keys.refuse(&["momentum"], "applies only with optimizer \"momentum\"")?;
    }
    if name != "adam" {
        keys.refuse(&["beta1", "beta2", "epsilon"], "applies only with optimizer \"adam\"")?;
    }
    Ok(match name {
        "momentum" => Optimizer::Momentum { beta: keys.number("momentum")?.unwrap_or(0.9) },
        "adam" => Optimizer::Adam {
            beta1: keys.number("beta1")?.unwrap_or(0.9),
            beta2: keys.number("beta2")?.unwrap_or(0.999),
            epsilon: keys.number("epsilon")?.unwrap_or(1e-8),
        },
        _ => Optimizer::Sgd,
    })
}

fn schedule(keys: &mut Keys, l2: f64, learning_rate: Option<f64>) -> Result<Schedule> {
    let name = match keys.word("schedule", &["exponential", "constant", "inverse_scaling", "theorem1"])? {
        // decay is an option as old as the extension: it needs no schedule beside it
        "exponential" => return Ok(Schedule::Exponential { decay: exponential(keys)? }),
        name => name,
    };
    keys.refuse(&["decay"], "applies only with schedule \"exponential\"")?;
    if name != "inverse_scaling" {
        keys.refuse(&["power"], "applies only with schedule \"inverse_scaling\"")?;
    }
    if name != "theorem1" {
        keys.refuse(&["mu", "a"], "applies only with schedule \"theorem1\"")?;
    }
    match name {
        "inverse_scaling" => Ok(Schedule::InverseScaling { power: keys.number("power")?.unwrap_or(0.5) }),
        "theorem1" => theorem1(keys, l2, learning_rate),
        _ => Ok(Schedule::Constant),
    }
}

fn exponential(keys: &mut Keys) -> Result<f64> {
    keys.refuse(&["power"], "applies only with schedule \"inverse_scaling\"")?;
    keys.refuse(&["mu", "a"], "applies only with schedule \"theorem1\"")?;
    Ok(keys.number("decay")?.unwrap_or(0.95))
}

fn theorem1(keys: &mut Keys, l2: f64, learning_rate: Option<f64>) -> Result<Schedule> {
    let (mu, a) = (keys.number("mu")?, keys.number("a")?);
    if mu.is_none() && l2 == 0.0 {
        return Err(invalid("mu", "must be given with schedule \"theorem1\", unless there is an l2 to take its place"));
    }
    if a.is_some() && learning_rate.is_some() {
        return Err(invalid("a", "does not go with learning_rate: each of them decides the first rate"));
    }
    Ok(Schedule::Theorem1 { mu: mu.unwrap_or(l2), a })
}

const CLASS_WEIGHT: &str = "\"balanced\", or an object of labels and their weights, which are finite and at least 0";

fn class_weight(value: &Value) -> Option<ClassWeight> {
    match value {
        Value::String(word) => (word == "balanced").then_some(ClassWeight::Balanced),
        Value::Object(weights) => {
            let weight = |(label, weight): (&String, &Value)| {
                let weight = weight.as_f64().filter(|w| *w >= 0.0 && (*w as f32).is_finite())?;
                Some((label.clone(), weight))
            };
            let weights: Vec<_> = weights.iter().map(weight).collect::<Option<_>>()?;
            (!weights.is_empty()).then_some(ClassWeight::Given(weights))
        }
        _ => None,
    }
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

fn invalid(key: &str, reason: &str) -> Error {
    ArgumentError::InvalidOption { key: key.to_owned(), reason: reason.to_owned() }.into()
}

/// The options as given, to be taken one by one.
struct Keys(Map<String, Value>);

impl Keys {
    fn new(options: Option<Value>) -> Result<Keys> {
        let options = match options {
            None => Map::new(),
            Some(Value::Object(options)) => options,
            Some(_) => return Err(ArgumentError::OptionsNotAnObject.into()),
        };
        match options.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            Some(key) => {
                Err(ArgumentError::Unknown { what: "options", given: key.clone(), known: KNOWN.join(", ") }.into())
            }
            None => Ok(Keys(options)),
        }
    }

    /// The value of a key, which must be `what`.
    fn take<T>(&mut self, key: &str, what: &str, read: impl FnOnce(&Value) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.0.remove(key) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| invalid(key, &format!("must be {what}")))
    }

    fn number(&mut self, key: &str) -> Result<Option<f64>> {
        self.take(key, "a number", Value::as_f64)
    }

    fn integer(&mut self, key: &str, min: u64, max: u64) -> Result<Option<u64>> {
        let whole = |value: &Value| {
            let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
            (min as f64..=max as f64).contains(&number).then_some(number as u64)
        };
        self.take(key, &format!("a whole number from {min} to {max}"), whole)
    }

    /// One of `words`, the first if the key is not there.
    fn word(&mut self, key: &str, words: &[&'static str]) -> Result<&'static str> {
        let what = format!("one of \"{}\"", words.join("\", \""));
        let known = |value: &Value| words.iter().copied().find(|word| value.as_str() == Some(word));
        Ok(self.take(key, &what, known)?.unwrap_or(words[0]))
    }

    /// An error if one of these keys is there.
    fn refuse(&self, keys: &[&str], reason: &str) -> Result<()> {
        match keys.iter().find(|key| self.0.contains_key(**key)) {
            Some(key) => Err(invalid(key, reason)),
            None => Ok(()),
        }
    }
}
