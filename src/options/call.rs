//! The arguments of corgipile_train() as they come, and those of them that are read alone.

use super::entry::Values;
use super::table;
use crate::errors::{ArgumentError, Error, Result};
use crate::pg::call::arguments::Arguments;
use crate::pg::require_utf8;
use serde_json::Value;
use sgd::ModelKind;
use shuffle::Strategy;

/// The arguments in the function's order. None is NULL: not given, or given as NULL, which is the same. What is given
/// is never taken for the default, also if it is equal to it: a warm start has to tell them apart.
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
    pub buffer_size: Option<String>,
    pub seed: Option<i64>,
    pub name: Option<String>,
    pub options: Option<Value>,
    pub loader: Option<String>,
    pub workers: Option<i32>,
    pub warm_start: Option<String>,
    pub group_by: Option<String>,
    pub grid: Option<Value>,
    pub sample: Option<f64>,
}

impl TrainArguments {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidArgument`] if options cannot be read.
    pub fn of_call(arguments: &Arguments) -> Result<TrainArguments> {
        require_utf8()?;
        let json = |i, name| arguments.json(i).map_err(|e| e.about(name));
        Ok(TrainArguments {
            source: arguments.get(0),
            model: arguments.get(1),
            label: arguments.get(2),
            features: arguments.get(3),
            learning_rate: arguments.get(4),
            max_epochs: arguments.get(5),
            shuffle: arguments.get(6),
            block_size: arguments.get(7),
            buffer_size: arguments.get(8),
            seed: arguments.get(9),
            name: arguments.get(10),
            options: json(11, "options")?,
            loader: arguments.get(12),
            workers: arguments.get(13),
            warm_start: arguments.get(14),
            group_by: arguments.get(15),
            grid: json(16, "grid")?,
            sample: arguments.get(17),
        })
    }

    /// Takes the value of an argument, as it is recorded with a model, where none is given.
    ///
    /// # Panics
    /// If it is one that is not recorded: names are those that the table gives.
    pub(super) fn take_over(&mut self, name: &str, recorded: &Value) {
        let text = || recorded.as_str().map(str::to_owned);
        match name {
            "learning_rate" => self.learning_rate = self.learning_rate.or(recorded.as_f64()),
            "shuffle" => self.shuffle = self.shuffle.take().or_else(text),
            "seed" => self.seed = self.seed.or(recorded.as_i64()),
            "block_size" => self.block_size = self.block_size.take().or_else(text),
            "buffer_size" => self.buffer_size = self.buffer_size.take().or_else(text),
            "sample" => self.sample = self.sample.or(recorded.as_f64()),
            "group_by" => self.group_by = self.group_by.take().or_else(text),
            name => panic!("argument {name} is not recorded"),
        }
    }
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

/// An argument of whole numbers in its range, or its default.
///
/// # Errors
/// [`ArgumentError::InvalidArgument`]
pub fn integer(argument: &'static str, given: Option<i32>) -> Result<u32> {
    let (least, most) = table::limits(argument);
    let Some(given) = given else { return Ok(table::default_integer(argument) as u32) };
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
