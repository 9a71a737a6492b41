//! The arguments of corgipile_train(): as they come, and as they are understood.

use super::loading::Loader;
use super::options::{Options, record_hyperparameters};
use crate::error::{Error, Result};
use crate::models;
use crate::operators::{DecoderSpec, Shuffling};
use crate::pg::arguments::Arguments;
use crate::pg::require_utf8;
use serde_json::{Map, Value, json};
use sgd::{Hyperparameters, ModelKind};
use shuffle::{Geometry, MAX_PROCESSES, Strategy};

/// Epochs that a training may take. Each leaves a row to be kept, whatever it cost.
const MAX_EPOCHS: i32 = 1_000_000;

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
    pub loader: Option<String>,
    pub workers: Option<i32>,
    pub warm_start: Option<String>,
    pub group_by: Option<String>,
    pub grid: Option<Value>,
    pub sample: Option<f64>,
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
    pub loader: Loader,
    /// processes that are to train together
    pub workers: u32,
}

impl Request {
    /// How the rows become tuples, with these features.
    pub fn decoder_spec<'a>(&'a self, features: &'a [String]) -> DecoderSpec<'a> {
        let options = &self.options;
        DecoderSpec {
            weight: options.weight.as_deref(),
            class_weight: options.class_weight.as_ref(),
            nulls: options.nulls,
            index_base: options.index_base.unwrap_or(1),
            dimensions: options.dimensions,
            ..DecoderSpec::new(self.hyperparameters.kind, &self.label, features)
        }
    }

    /// What it takes to train the same model again.
    pub fn record(&self) -> Map<String, Value> {
        let mut record = Map::new();
        record_hyperparameters(&self.hyperparameters, &mut record);
        self.options.record(&mut record);
        record.insert("max_epochs".into(), json!(self.max_epochs));
        record.insert("shuffle".into(), json!(self.shuffling.strategy.name()));
        record.insert("seed".into(), json!(self.shuffling.seed));
        record
    }

    /// What it takes to train the same model again, how the source was read, and by how many processes.
    pub fn to_json(&self, geometry: Geometry, processes: u32) -> Value {
        let mut record = self.record();
        record.insert("block_size".into(), json!(self.shuffling.block_size.to_string()));
        record.insert("buffer_size".into(), json!(self.shuffling.buffer_size.to_string()));
        record.insert("workers".into(), json!(processes));
        record.insert("pages_per_block".into(), json!(geometry.pages_per_block));
        record.insert("buffer_blocks".into(), json!(geometry.buffer_blocks));
        Value::Object(record)
    }
}

impl TrainArguments {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if options cannot be read.
    pub fn of_call(arguments: &Arguments) -> Result<TrainArguments> {
        require_utf8()?;
        let json = |i, name| arguments.json(i).map_err(|e| invalid(name, e.to_string()));
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

    /// Checks what can be checked without looking at the source.
    ///
    /// # Errors
    /// [`Error::NullArgument`], [`Error::Unknown`], [`Error::InvalidArgument`], [`Error::InvalidOption`],
    /// [`Error::OptionsNotAnObject`]
    pub fn validate(self) -> Result<Request> {
        let not_yet = [
            ("warm_start", self.warm_start.is_some()),
            ("group_by", self.group_by.is_some()),
            ("grid", self.grid.is_some()),
            ("sample", self.sample.is_some()),
        ];
        if let Some((argument, _)) = not_yet.into_iter().find(|(_, given)| *given) {
            return Err(Error::NotYet(argument));
        }
        let source = self.source.ok_or(Error::NullArgument("source"))?;
        let model = self.model.ok_or(Error::NullArgument("model"))?;
        let label = self.label.ok_or(Error::NullArgument("label"))?;
        let kind: ModelKind =
            model.parse().map_err(|_| Error::Unknown { what: "models", given: model, known: ModelKind::known() })?;
        let max_epochs = self.max_epochs.ok_or(Error::NullArgument("max_epochs"))?;
        if !(1..=MAX_EPOCHS).contains(&max_epochs) {
            return Err(invalid("max_epochs", format!("{max_epochs} is not in 1 to {MAX_EPOCHS}")));
        }
        if let Some(name) = &self.name {
            models::check_name(name)?;
        }
        let workers = self.workers.ok_or(Error::NullArgument("workers"))?;
        let workers = u32::try_from(workers).ok().filter(|workers| (1..=MAX_PROCESSES).contains(workers));
        let workers = workers.ok_or_else(|| {
            invalid("workers", format!("{} is not in 1 to {MAX_PROCESSES}", self.workers.unwrap_or_default()))
        })?;
        let (options, hyperparameters) = Options::parse(self.options, kind, self.learning_rate)?;
        let features = self.features.map(|features| check_features(features, &label)).transpose()?;
        if let Some(weight) = &options.weight {
            check_weight(weight, &label, features.as_deref())?;
        }
        let shuffling = Shuffling::parse(self.shuffle, self.seed, self.block_size, self.buffer_size)?;
        if workers > 1 && shuffling.strategy != Strategy::CorgiPile {
            return Err(Error::NotByWorkers(shuffling.strategy.name()));
        }
        Ok(Request {
            source,
            label,
            features,
            hyperparameters,
            max_epochs: max_epochs as u32,
            shuffling,
            name: self.name,
            options,
            loader: Loader::parse(self.loader.ok_or(Error::NullArgument("loader"))?)?,
            workers,
        })
    }
}

fn invalid(argument: &'static str, reason: String) -> Error {
    Error::InvalidArgument { argument, reason, hint: None }
}

/// Names of features, each given, none twice, none the label.
///
/// # Errors
/// [`Error::InvalidArgument`]
pub fn check_features(features: Vec<Option<String>>, label: &str) -> Result<Vec<String>> {
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

/// The column of weights is neither the label nor a feature.
fn check_weight(weight: &str, label: &str, features: Option<&[String]>) -> Result<()> {
    let used = if weight == label {
        "the label"
    } else if features.is_some_and(|features| features.iter().any(|feature| feature == weight)) {
        "a feature"
    } else {
        return Ok(());
    };
    Err(Error::InvalidOption { key: "weight".into(), reason: format!("names column \"{weight}\", which is {used}") })
}
