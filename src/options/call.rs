//! The arguments of corgipile_train() as they come, whether by their own names or in `options`,
//! and those of them that are read alone.

use super::entry::Values;
use super::given::{Given, is_same};
use super::nodes::Nodes;
use super::table;
use crate::errors::{ArgumentError, Error, Result};
use pg::call::arguments::Arguments;
use pg::require_utf8;
use serde_json::{Map, Value};
use sgd::ModelKind;
use shuffle::Strategy;

/// The arguments that are no keys of `options` at the same time. None is NULL: not given, or given as NULL, which is
/// the same. What is given is never taken for the default, also if it is equal to it:
/// a warm start has to tell them apart.
#[derive(Default)]
pub struct TrainArguments {
    pub source: Option<String>,
    pub model: Option<String>,
    pub label: Option<String>,
    pub features: Option<Vec<Option<String>>>,
    pub learning_rate: Option<f64>,
    pub max_epochs: Option<i32>,
    pub shuffle: Option<String>,
    pub block_size: Option<String>,
    /// of the model that is continued, if which rows it has learned from depends on it; no argument of the function
    pub pages_per_block: Option<u32>,
    pub buffer_size: Option<String>,
    pub seed: Option<i64>,
    pub name: Option<String>,
    /// the options, those that were given as arguments of their own among them
    pub options: Map<String, Value>,
    pub loader: Option<String>,
    pub workers: Option<i32>,
    pub warm_start: Option<String>,
    pub group_by: Option<String>,
    pub grid: Option<Value>,
    pub sample: Option<f64>,
}

/// The options that are arguments, too, in the function's order.
const NAMED_OPTIONS: [&str; 16] = [
    "batch_size",
    "l1",
    "l2",
    "optimizer",
    "schedule",
    "standardize",
    "nulls",
    "class_weight",
    "hidden_layers",
    "validation_fraction",
    "patience",
    "notice",
    "share",
    "nodes",
    "solver",
    "prepare",
];

/// The arguments before them.
const OTHERS: usize = 18;

impl TrainArguments {
    /// Reads the arguments of a call of corgipile_train().
    ///
    /// # Errors
    /// [`ArgumentError::InvalidArgument`] if JSON cannot be read; those of [`TrainArguments::with_options`]
    pub fn of_call(arguments: &Arguments) -> Result<TrainArguments> {
        require_utf8()?;
        let json = |i, name| arguments.json(i).map_err(|e| ArgumentError::unread(name, e));
        let of_arguments = TrainArguments {
            source: arguments.source(0)?,
            model: arguments.get(1),
            label: arguments.get(2),
            features: arguments.get(3),
            learning_rate: arguments.get(4),
            max_epochs: arguments.get(5),
            shuffle: arguments.get(6),
            block_size: arguments.get(7),
            pages_per_block: None,
            buffer_size: arguments.get(8),
            seed: arguments.get(9),
            name: arguments.get(10),
            options: named_options(arguments),
            loader: arguments.get(12),
            workers: arguments.get(13),
            warm_start: arguments.get(14),
            group_by: arguments.get(15),
            grid: json(16, "grid")?,
            sample: arguments.get(17),
        };
        let keys = table::entries().filter(|entry| entry.place.is_key()).map(|entry| entry.name).collect();
        of_arguments.with_options(json(11, "options")?, keys)
    }

    /// Takes what argument `options` says. Its keys may be these: options, and arguments of the function.
    ///
    /// # Errors
    /// [`ArgumentError::OptionsNotAnObject`], [`ArgumentError::Unknown`], [`ArgumentError::InvalidOption`],
    /// [`ArgumentError::GivenTwice`]
    pub fn with_options(mut self, options: Option<Value>, mut keys: Vec<&'static str>) -> Result<TrainArguments> {
        let options = match options {
            None => Map::new(),
            Some(Value::Object(options)) => options,
            Some(_) => return Err(ArgumentError::OptionsNotAnObject.into()),
        };
        for (key, value) in options {
            if !keys.contains(&key.as_str()) {
                keys.sort_unstable();
                return Err(ArgumentError::Unknown { what: "options", given: key, known: keys.join(", ") }.into());
            }
            if let Some(mut argument) = self.argument(&key) {
                argument.give(&key, &value)?;
            } else if self.options.get(&key).is_some_and(|given| !is_same(given, &value)) {
                return Err(ArgumentError::GivenTwice(key).into());
            } else {
                self.options.insert(key, value);
            }
        }
        Ok(self)
    }

    /// Takes the value of an argument, as it is recorded with a model, where none is given.
    ///
    /// # Panics
    /// If it is an option: names are those that the table gives.
    pub(super) fn take_over(&mut self, name: &str, recorded: &Value) {
        self.argument(name).unwrap_or_else(|| panic!("{name} is no argument")).fill(recorded);
    }

    /// The place of the argument with this name; None if it is an option.
    fn argument(&mut self, name: &str) -> Option<Given<'_>> {
        Some(match name {
            "model" => Given::Text(&mut self.model),
            "label" => Given::Text(&mut self.label),
            "features" => Given::Names(&mut self.features),
            "learning_rate" => Given::Number(&mut self.learning_rate),
            "max_epochs" => Given::Integer(&mut self.max_epochs),
            "shuffle" => Given::Text(&mut self.shuffle),
            "block_size" => Given::Text(&mut self.block_size),
            "buffer_size" => Given::Text(&mut self.buffer_size),
            "seed" => Given::Seed(&mut self.seed),
            "name" => Given::Text(&mut self.name),
            "loader" => Given::Text(&mut self.loader),
            "workers" => Given::Integer(&mut self.workers),
            "warm_start" => Given::Text(&mut self.warm_start),
            "group_by" => Given::Text(&mut self.group_by),
            "grid" => Given::Json(&mut self.grid),
            "sample" => Given::Number(&mut self.sample),
            _ => return None,
        })
    }
}

/// The options that are given as arguments.
fn named_options(arguments: &Arguments) -> Map<String, Value> {
    let read = |i: usize, sql_type: &str| match sql_type {
        "boolean" => arguments.get::<bool>(i).map(Value::from),
        "int" => arguments.get::<i32>(i).map(Value::from),
        "float8" => arguments.get::<f64>(i).map(Value::from),
        "int[]" => arguments.get::<Vec<Option<i32>>>(i).map(Value::from),
        // an object is written as JSON
        "text" => arguments.get::<String>(i).map(|text| match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => Value::Object(object),
            _ => Value::String(text),
        }),
        other => panic!("no option is of type {other}"),
    };
    let given = NAMED_OPTIONS.iter().enumerate().filter_map(|(i, name)| {
        let sql_type = table::entry(name).place.sql_type().unwrap_or_else(|| panic!("{name} is no argument"));
        Some(((*name).to_owned(), read(OTHERS + i, sql_type)?))
    });
    given.collect()
}

/// The model of this name, or the default.
///
/// # Errors
/// [`ArgumentError::Unknown`]
pub fn model_kind(given: Option<String>) -> Result<ModelKind> {
    let given = given.unwrap_or_else(|| table::default_word("model").to_owned());
    given.parse().map_err(|_| ArgumentError::Unknown { what: "models", given, known: ModelKind::known() }.into())
}

/// The column of the labels, or the default.
pub fn label(given: Option<String>) -> String {
    given.unwrap_or_else(|| table::default_word("label").to_owned())
}

/// The strategy of this name.
///
/// # Errors
/// [`ArgumentError::Unknown`]
pub fn strategy(given: String) -> Result<Strategy> {
    given
        .parse()
        .map_err(|_| ArgumentError::Unknown { what: "shuffle strategies", given, known: Strategy::known() }.into())
}

/// An argument of whole numbers, in its range.
///
/// # Errors
/// [`ArgumentError::InvalidArgument`]
pub fn integer(argument: &'static str, given: i32) -> Result<u32> {
    let (least, most) = table::limits(argument);
    let number = u32::try_from(given).ok().filter(|number| (least..=most).contains(&u64::from(*number)));
    number.ok_or_else(|| invalid(argument, format!("{given} is not in {least} to {most}")))
}

/// A number that is an argument, in its range.
///
/// # Errors
/// [`ArgumentError::InvalidArgument`]
///
/// # Panics
/// If the argument is no number.
pub fn number(argument: &'static str, given: f64) -> Result<f64> {
    let Values::Number(range) = table::entry(argument).values else { panic!("{argument} is no number") };
    if range.contains(given) { Ok(given) } else { Err(invalid(argument, format!("{given} is not {}", range.words()))) }
}

/// The error about an argument.
pub fn invalid(argument: &'static str, reason: String) -> Error {
    ArgumentError::InvalidArgument { argument, reason, hint: None }.into()
}

/// Argument `nodes` of a function that has no options.
///
/// # Errors
/// [`ArgumentError::InvalidArgument`]
pub fn nodes(given: Option<String>) -> Result<Nodes> {
    let Some(text) = given else { return Ok(Nodes::Off) };
    let refuse = || invalid("nodes", format!("\"{text}\" is not {}", Nodes::WHAT));
    Nodes::read(&Value::from(text.as_str())).ok_or_else(refuse)
}
