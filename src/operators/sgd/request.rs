//! The arguments of corgipile_train(): as they come, and as they are understood.

use crate::error::{Error, Result};
use crate::operators::{Nulls, Shuffling};
use crate::pg::arguments::Arguments;
use crate::pg::require_utf8;
use serde_json::{Value, json};
use sgd::{Hyperparameters, ModelKind, Schedule};
use shuffle::Geometry;

/// Epochs that a training may take. Each leaves a row to be kept, whatever it cost.
const MAX_EPOCHS: i32 = 1_000_000;

/// Bytes of a model's name, which has to fit an index.
const MAX_NAME_BYTES: usize = 1024;

/// The arguments in the function's order; None is NULL.
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
}

/// What is to be trained.
pub struct Request {
    pub source: String,
    pub label: String,
    /// None: to be found in the source
    pub features: Option<Vec<String>>,
    pub hyperparameters: Hyperparameters,
    pub max_epochs: u32,
    pub shuffling: Shuffling,
    pub name: Option<String>,
    pub options: Options,
}

impl Request {
    /// What it takes to train the same model again, and how the source was read.
    pub fn to_json(&self, geometry: Geometry) -> Value {
        json!({
            "learning_rate": self.hyperparameters.learning_rate,
            "decay": match self.hyperparameters.schedule {
                Schedule::Exponential { decay } => Some(decay),
                _ => None,
            },
            "l2": self.hyperparameters.l2,
            "max_epochs": self.max_epochs,
            "shuffle": self.shuffling.strategy.name(),
            "block_size": self.shuffling.block_size.to_string(),
            "buffer_size": self.shuffling.buffer_size.to_string(),
            "seed": self.shuffling.seed,
            "standardize": self.options.standardize,
            "nulls": self.options.nulls,
            "pages_per_block": geometry.pages_per_block,
            "buffer_blocks": geometry.buffer_blocks,
        })
    }
}

/// The rare ones: keys of `options`.
#[derive(Default)]
pub struct Options {
    /// learn mean and deviation first, and train on standardized features
    pub standardize: bool,
    pub nulls: Nulls,
    l2: Option<f64>,
    decay: Option<f64>,
}

impl TrainArguments {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if options cannot be read.
    pub fn of_call(arguments: &Arguments) -> Result<TrainArguments> {
        require_utf8()?;
        let options = arguments.json(11).map_err(|e| invalid("options", e.to_string()))?;
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
            options,
        })
    }

    /// Checks what can be checked without looking at the source.
    ///
    /// # Errors
    /// [`Error::NullArgument`], [`Error::Unknown`], [`Error::InvalidArgument`], [`Error::InvalidOption`],
    /// [`Error::OptionsNotAnObject`]
    pub fn validate(self) -> Result<Request> {
        let source = self.source.ok_or(Error::NullArgument("source"))?;
        let model = self.model.ok_or(Error::NullArgument("model"))?;
        let label = self.label.ok_or(Error::NullArgument("label"))?;
        let kind: ModelKind =
            model.parse().map_err(|_| Error::Unknown { what: "models", given: model, known: ModelKind::known() })?;
        let max_epochs = self.max_epochs.ok_or(Error::NullArgument("max_epochs"))?;
        if !(1..=MAX_EPOCHS).contains(&max_epochs) {
            return Err(invalid("max_epochs", format!("{max_epochs} is not in 1 to {MAX_EPOCHS}")));
        }
        if let Some(name) = &self.name
            && !(1..=MAX_NAME_BYTES).contains(&name.len())
        {
            return Err(invalid("name", format!("its {} bytes are not in 1 to {MAX_NAME_BYTES}", name.len())));
        }
        let options = Options::parse(self.options)?;
        let mut hyperparameters = Hyperparameters::new(kind);
        hyperparameters.learning_rate = self.learning_rate.unwrap_or(hyperparameters.learning_rate);
        hyperparameters.l2 = options.l2.unwrap_or(hyperparameters.l2);
        if let Some(decay) = options.decay {
            hyperparameters.schedule = Schedule::Exponential { decay };
        }
        hyperparameters.validate().map_err(|e| match e.name {
            "learning_rate" => invalid("learning_rate", e.reason.to_owned()),
            name => Error::InvalidOption { key: name.to_owned(), reason: e.reason.to_owned() },
        })?;
        Ok(Request {
            features: self.features.map(|features| check_features(features, &label)).transpose()?,
            source,
            label,
            hyperparameters,
            max_epochs: max_epochs as u32,
            shuffling: Shuffling::parse(self.shuffle, self.seed, self.block_size, self.buffer_size)?,
            name: self.name,
            options,
        })
    }
}

fn invalid(argument: &'static str, reason: String) -> Error {
    Error::InvalidArgument { argument, reason, hint: None }
}

/// Names of features, each given, none twice, none the label.
fn check_features(features: Vec<Option<String>>, label: &str) -> Result<Vec<String>> {
    if features.is_empty() {
        return Err(Error::InvalidArgument {
            argument: "features",
            reason: "it is an empty array".into(),
            hint: Some("Name the feature columns, or leave features out to use all numeric columns.".into()),
        });
    }
    let mut names: Vec<String> = Vec::with_capacity(features.len());
    for name in features {
        let name = name.ok_or_else(|| invalid("features", "it contains a NULL".into()))?;
        if name == label {
            return Err(invalid("features", format!("column \"{name}\" is the label")));
        }
        if names.contains(&name) {
            return Err(invalid("features", format!("column \"{name}\" is there twice")));
        }
        names.push(name);
    }
    Ok(names)
}

impl Options {
    const KNOWN: &str = "decay, l2, nulls, standardize";

    fn parse(options: Option<Value>) -> Result<Options> {
        let mut parsed = Options::default();
        let options = match options {
            None => return Ok(parsed),
            Some(Value::Object(options)) => options,
            Some(_) => return Err(Error::OptionsNotAnObject),
        };
        for (key, value) in options {
            let must = |what: &str| Error::InvalidOption { key: key.clone(), reason: format!("must be {what}") };
            match key.as_str() {
                "standardize" => parsed.standardize = value.as_bool().ok_or_else(|| must("true or false"))?,
                "l2" => parsed.l2 = Some(value.as_f64().ok_or_else(|| must("a number"))?),
                "decay" => parsed.decay = Some(value.as_f64().ok_or_else(|| must("a number"))?),
                "nulls" => {
                    parsed.nulls = serde_json::from_value(value).map_err(|_| must("\"error\" or \"skip\""))?;
                }
                _ => return Err(Error::Unknown { what: "options", given: key, known: Options::KNOWN.into() }),
            }
        }
        Ok(parsed)
    }
}
