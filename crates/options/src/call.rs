//! The arguments of corgipile_train() as they come, whether by their own names or in `options`,
//! and those of them that are read alone.

use super::entry::{Entry, Values, not};
use super::nodes::Nodes;
use super::table;
use errors::{ArgumentError, Error, Result};
use loss::ModelKind;
use pg::call::arguments::Arguments;
use pg::require_utf8;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};
use shuffle::Strategy;

/// Arguments and options by their names, as JSON has them. What is NULL is not there: not given, or given as NULL,
/// which is the same. What is given is never taken for the default, also if it is equal to it: a warm start has to tell
/// them apart.
pub struct TrainArguments {
    pub source: Option<String>,
    /// of the model that is continued, if which rows it has learned from depends on it; no argument of the function
    pub pages_per_block: Option<u32>,
    /// Was the model chosen because the label has two classes as far as is known? Then it follows from the rows whether
    /// there are more.
    pub has_open_model: bool,
    given: Map<String, Value>,
}

/// The arguments of corgipile_train(), in its order.
const OF_TRAIN: [&str; 36] = [
    "source",
    "model",
    "label",
    "features",
    "learning_rate",
    "max_epochs",
    "shuffle",
    "block_size",
    "buffer_size",
    "seed",
    "name",
    "options",
    "prefetch",
    "workers",
    "warm_start",
    "group_by",
    "grid",
    "sample",
    "batch_size",
    "l1",
    "l2",
    "optimizer",
    "schedule",
    "standardize",
    "nulls",
    "class_weight",
    "hidden_layer_sizes",
    "validation_fraction",
    "patience",
    "verbose",
    "shared_scan",
    "servers",
    "solver",
    "statistics",
    "unseen_group",
    "positive",
];

impl TrainArguments {
    pub fn of_call(arguments: &Arguments) -> Result<TrainArguments> {
        let mut named = TrainArguments::named(arguments, &OF_TRAIN)?;
        let options = named.take("options");
        named.with_options(options, &OF_TRAIN)
    }

    /// Reads the arguments of a call of a function that has arguments of these names, in this order.
    pub fn named(arguments: &Arguments, names: &[&str]) -> Result<TrainArguments> {
        require_utf8()?;
        let mut named = TrainArguments::of(arguments.source(0)?);
        for (i, name) in names.iter().enumerate().skip(1) {
            named = named.with(name, argument(arguments, i, table::entry(name))?);
        }
        Ok(named)
    }

    /// What is trained on, and nothing else.
    pub fn of(source: Option<String>) -> TrainArguments {
        TrainArguments { source, pages_per_block: None, has_open_model: false, given: Map::new() }
    }

    /// Gives an argument a value, unless that is NULL.
    pub fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> TrainArguments {
        self.given.extend(value.map(|value| (name.to_owned(), value.into())));
        self
    }

    /// Takes what argument `options` says. Its keys may be options, and these arguments.
    pub fn with_options(mut self, options: Option<Value>, arguments: &[&str]) -> Result<TrainArguments> {
        let options = match options {
            None => Map::new(),
            Some(Value::Object(options)) => options,
            Some(_) => return Err(ArgumentError::OptionsNotAnObject.into()),
        };
        let is_key = |entry: &&Entry| entry.is_option() || (entry.is_key() && arguments.contains(&entry.name));
        for (key, value) in options {
            let Some(entry) = table::entries().filter(is_key).find(|entry| entry.name == key) else {
                let known = table::sorted_names(table::entries().filter(is_key)).join(", ");
                return Err(ArgumentError::Unknown { what: "options", given: key, known }.into());
            };
            let value = if entry.is_option() { value } else { of_type(entry, &value)? };
            if self.says(&key).is_some_and(|given| !is_same(given, &value)) {
                return Err(ArgumentError::GivenTwice(key).into());
            }
            self.given.insert(key, value);
        }
        Ok(self)
    }

    /// What is given by this name.
    pub fn says(&self, name: &str) -> Option<&Value> {
        self.given.get(name)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.says(name)?.as_str()
    }

    /// The column to predict.
    pub fn label(&self) -> String {
        self.text("label").map(str::to_owned).or_else(|| table::default("label")).unwrap_or_default()
    }

    /// The features, as far as they are texts.
    pub fn features(&self) -> Option<Vec<String>> {
        let names = self.says("features")?.as_array()?;
        Some(names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
    }

    /// Gives an argument or option a value.
    pub fn set(&mut self, name: &str, value: Value) {
        self.given.insert(name.to_owned(), value);
    }

    /// Gives an argument or option a value if it has none.
    pub fn set_open(&mut self, name: &str, value: Value) {
        self.given.entry(name).or_insert(value);
    }

    /// An argument, which is then no longer among those that are given, or its default.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        self.given.remove(name).map_or_else(|| table::default(name), |given| T::deserialize(given).ok())
    }

    /// What is left: the options, and what else may differ from point to point.
    pub fn into_options(self) -> Map<String, Value> {
        self.given
    }
}

/// An argument of the type that it has in SQL.
fn argument(arguments: &Arguments, i: usize, entry: &Entry) -> Result<Option<Value>> {
    let sql_type = entry.sql_type().unwrap_or_else(|| panic!("{} is not an argument", entry.name));
    Ok(match sql_type {
        "boolean" => arguments.get::<bool>(i).map(Value::from),
        "int" => arguments.get::<i32>(i).map(Value::from),
        "bigint" => arguments.get::<i64>(i).map(Value::from),
        // JSON has no numbers that are not finite: they are texts, which no number may be
        "float8" => arguments
            .get::<f64>(i)
            .map(|number| Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)),
        "int[]" => arguments.get::<Vec<Option<i32>>>(i).map(Value::from),
        "text[]" => arguments.get::<Vec<Option<String>>>(i).map(Value::from),
        "jsonb" => arguments.json(i).map_err(|unread| ArgumentError::unread(entry.name, unread))?,
        _ => arguments.get::<String>(i).map(|text| match serde_json::from_str(&text) {
            // an option that is an object is written as JSON
            Ok(Value::Object(object)) if entry.is_option() => Value::Object(object),
            _ => Value::String(text),
        }),
    })
}

/// A value that `options` give an argument, as the argument has it.
fn of_type(entry: &Entry, value: &Value) -> Result<Value> {
    let (read, what) = match entry.sql_type() {
        // whole numbers are texts too: an id, or a size in bytes
        Some("text") => {
            (value.as_str().map(str::to_owned).or(value.as_i64().map(|id| id.to_string())).map(Value::from), "a string")
        }
        Some("float8") => (value.as_f64().map(Value::from), "a number"),
        Some("int") => {
            let number = value.as_i64().filter(|number| i32::try_from(*number).is_ok());
            (number.map(Value::from), "an integer of type int")
        }
        Some("bigint") => (value.as_i64().map(Value::from), "an integer of type bigint"),
        Some("text[]") => {
            let are_names = value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
            (are_names.then(|| value.clone()), "an array of strings")
        }
        _ => (Some(value.clone()), "JSON"),
    };
    read.ok_or_else(|| not(entry.name, what, value))
}

/// Are both the same, with numbers by their value: 1 is 1.0?
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) if a.is_i64() && b.is_i64() => a == b,
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

/// The model of this name, or that of two classes.
pub fn model_kind(given: Option<String>) -> Result<ModelKind> {
    let Some(given) = given else { return Ok(ModelKind::Logistic) };
    given.parse().map_err(|_| ArgumentError::Unknown { what: "models", given, known: ModelKind::known() }.into())
}

pub fn strategy(given: String) -> Result<Strategy> {
    given
        .parse()
        .map_err(|_| ArgumentError::Unknown { what: "shuffle strategies", given, known: Strategy::known() }.into())
}

/// An argument of whole numbers, in its range.
pub fn integer(argument: &'static str, given: i32) -> Result<u32> {
    let (least, most) = table::limits(argument);
    let number = u32::try_from(given).ok().filter(|number| (least..=most).contains(&u64::from(*number)));
    number.ok_or_else(|| invalid(argument, format!("{given} is not between {least} and {most}")))
}

/// A number that is an argument, in its range.
pub fn number(argument: &'static str, given: f64) -> Result<f64> {
    let Values::Number(range) = table::entry(argument).values else { panic!("{argument} is not a number") };
    if range.contains(given) { Ok(given) } else { Err(invalid(argument, format!("{given} is not {}", range.words()))) }
}

pub fn invalid(argument: &'static str, reason: impl Into<String>) -> Error {
    ArgumentError::InvalidArgument { argument, reason: reason.into(), hint: None }.into()
}

/// The same, with what to do about it.
pub fn refused(argument: &'static str, reason: impl Into<String>, hint: impl Into<String>) -> Error {
    ArgumentError::InvalidArgument { argument, reason: reason.into(), hint: Some(hint.into()) }.into()
}

/// Argument `servers` of a function that has no options.
pub fn nodes(given: Option<String>) -> Result<Nodes> {
    let Some(text) = given else { return Ok(Nodes::Off) };
    let refuse = || invalid("servers", format!("\"{text}\" is not {}", Nodes::WHAT));
    Nodes::read(&Value::from(text.as_str())).ok_or_else(refuse)
}
