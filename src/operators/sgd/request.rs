//! The arguments of corgipile_train(): as they come, and as they are understood.

use super::grid::{self, Point};
use super::options::{By, Options, Validation, record_hyperparameters};
use crate::errors::{ArgumentError, Error, Result, TrainingError};
use crate::options::limits::{MAX_NAME_BYTES, check_name};
use crate::options::loader::Loader;
use crate::options::rows::RowGroupSpec;
use crate::options::shuffling::Shuffling;
use crate::pg::call::arguments::Arguments;
use crate::pg::require_utf8;
use serde_json::{Map, Value, json};
use sgd::ModelKind;
use shuffle::{Geometry, MAX_PROCESSES};

/// Epochs that a training may take. Each leaves a row to be kept, whatever it cost.
pub const MAX_EPOCHS: i32 = 1_000_000;

/// The arguments in the function's order. None is NULL: not given, or given as NULL, which is the same. What is given is never
/// taken for the default, also if it is equal to it: a warm start has to tell them apart.
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
    pub kind: ModelKind,
    /// what is to be trained with: at least one point
    pub points: Vec<Point>,
    /// the most that one of them takes
    pub max_epochs: u32,
    pub row_groups: RowGroupSpec,
    pub shuffling: Shuffling,
    pub name: Option<String>,
    pub options: Options,
    pub loader: Loader,
    /// processes that are to train together
    pub workers: u32,
    /// the training that is continued
    pub resume: Option<WarmStart>,
}

/// A training that is continued, as far as it changes what is trained.
#[derive(Debug, Clone, Copy)]
pub struct WarmStart {
    pub model_id: i64,
    /// epochs that were trained before
    pub epochs: u32,
}

impl Request {
    /// The columns that are neither label nor features.
    pub fn other_columns(&self) -> Vec<&str> {
        self.options.weight.as_deref().into_iter().chain(self.row_groups.columns()).collect()
    }

    /// May there be several models?
    pub fn trains_several(&self) -> bool {
        self.points.len() > 1 || self.row_groups.group.is_some()
    }

    /// Is something added to the name of the call to make that of a model?
    pub fn adds_to_name(&self) -> bool {
        self.row_groups.group.is_some() || self.first_point().says.is_some()
    }

    /// The number of the first epoch.
    pub fn first_epoch(&self) -> u32 {
        self.resume.as_ref().map_or(1, |resume| resume.epochs + 1)
    }

    /// The number of the last one, if nothing stops them before.
    pub fn last_epoch(&self) -> u32 {
        (self.first_epoch() - 1).saturating_add(self.max_epochs)
    }

    /// The only point, or the first.
    pub fn first_point(&self) -> &Point {
        &self.points[0]
    }

    /// What it takes to train the same model again.
    pub fn record(&self, point: &Point) -> Map<String, Value> {
        let mut record = Map::new();
        record_hyperparameters(&point.hyperparameters, &mut record);
        self.options.record(&mut record);
        let before = self.resume.as_ref().map_or(0, |resume| resume.epochs);
        record.insert("max_epochs".into(), json!(before.saturating_add(point.max_epochs)));
        if let Some(resume) = &self.resume {
            record.insert("warm_start".into(), json!(resume.model_id));
        }
        record.insert("shuffle".into(), json!(self.shuffling.strategy.name()));
        record.insert("seed".into(), json!(self.shuffling.seed));
        record
    }

    /// What it takes to train the same model again, how the source was read, and by how many processes.
    pub fn to_json(&self, point: &Point, geometry: Geometry, processes: u32) -> Map<String, Value> {
        let mut record = self.record(point);
        record.insert("block_size".into(), json!(self.shuffling.block_size.to_string()));
        record.insert("buffer_size".into(), json!(self.shuffling.buffer_size.to_string()));
        record.insert("workers".into(), json!(processes));
        if let Some(sample) = self.shuffling.sample {
            record.insert("sample".into(), json!(sample));
        }
        record.insert("pages_per_block".into(), json!(geometry.pages_per_block));
        record.insert("buffer_blocks".into(), json!(geometry.buffer_blocks));
        record
    }
}

/// What arguments are that are not given, unless the call goes on with a training that says something else. The comment of
/// the function in SQL and the README list them, too.
mod default {
    pub const MODEL: &str = "logistic";
    pub const LABEL: &str = "label";
    pub const MAX_EPOCHS: i32 = 20;
    pub const SHUFFLE: &str = "corgipile";
    pub const BLOCK_SIZE: &str = "auto";
    pub const BUFFER_SIZE: &str = "auto";
    pub const LOADER: &str = "auto";
    pub const WORKERS: i32 = 1;
}

/// An argument, or its default.
fn or_default(argument: Option<String>, default: &str) -> String {
    argument.unwrap_or_else(|| default.to_owned())
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

    /// Checks what can be checked without looking at the source. `resume` is what argument `warm_start` stands for; who has
    /// found it has given the arguments what they left open.
    ///
    /// # Errors
    /// [`ArgumentError::NullArgument`], [`ArgumentError::Unknown`], [`ArgumentError::InvalidArgument`], [`ArgumentError::InvalidOption`],
    /// [`ArgumentError::OptionsNotAnObject`]
    pub fn validate(self, resume: Option<WarmStart>) -> Result<Request> {
        let source = self.source.ok_or(ArgumentError::NullArgument("source"))?;
        let model = or_default(self.model, default::MODEL);
        let label = or_default(self.label, default::LABEL);
        let kind: ModelKind = model.parse().map_err(|_| ArgumentError::Unknown {
            what: "models",
            given: model,
            known: ModelKind::known(),
        })?;
        let max_epochs = self.max_epochs.unwrap_or(default::MAX_EPOCHS);
        if !(1..=MAX_EPOCHS).contains(&max_epochs) {
            return Err(invalid("max_epochs", format!("{max_epochs} is not in 1 to {MAX_EPOCHS}")));
        }
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        let given = self.workers.unwrap_or(default::WORKERS);
        let workers = u32::try_from(given).ok().filter(|workers| (1..=MAX_PROCESSES).contains(workers));
        let workers = workers.ok_or_else(|| invalid("workers", format!("{given} is not in 1 to {MAX_PROCESSES}")))?;
        let base = grid::Base {
            options: self.options,
            kind,
            learning_rate: self.learning_rate,
            max_epochs: max_epochs as u32,
        };
        let (options, mut points) = grid::points(base, self.grid)?;
        let before = resume.as_ref().map_or(0, |resume| resume.epochs);
        if let Some(more) = points.iter().map(|point| point.max_epochs).find(|more| more + before > MAX_EPOCHS as u32) {
            let reason = format!("{more} epochs after {before} are more than {MAX_EPOCHS}");
            return Err(invalid("max_epochs", reason));
        }
        let features = self.features.map(|features| check_features(features, &label)).transpose()?;
        let used = |name: &str| used_as(name, &label, features.as_deref());
        if let Some((name, role)) = options.weight.as_ref().and_then(|name| Some((name, used(name)?))) {
            return Err(invalid_option("weight", name, role));
        }
        if let Some(Validation::Column(name)) = &options.validation
            && let Some(role) = used(name).or((options.weight.as_ref() == Some(name)).then_some("the weight"))
        {
            return Err(invalid_option("validation_column", name, role));
        }
        if let Some(name) = &self.group_by {
            let flag = matches!(&options.validation, Some(Validation::Column(column)) if column == name);
            let weight = options.weight.as_ref() == Some(name);
            let role = used(name).or(weight.then_some("the weight")).or(flag.then_some("the validation column"));
            if let Some(role) = role {
                return Err(invalid("group_by", format!("column \"{name}\" is {role}")));
            }
        }
        let shuffle = or_default(self.shuffle, default::SHUFFLE);
        let block_size = or_default(self.block_size, default::BLOCK_SIZE);
        let buffer_size = or_default(self.buffer_size, default::BUFFER_SIZE);
        let shuffling = Shuffling::parse(Some(shuffle), self.seed, Some(block_size), Some(buffer_size))?;
        let shuffling = shuffling.with_sample(self.sample)?;
        for design in points.iter_mut().filter_map(|point| point.hyperparameters.design.as_mut()) {
            design.seed = shuffling.seed;
        }
        if workers > 1 && !shuffling.strategy.supports_workers() {
            return Err(TrainingError::NotByWorkers(shuffling.strategy.name()).into());
        }
        let together = [
            ("hidden layers", kind == ModelKind::Mlp),
            ("a warm start", resume.is_some()),
            ("a grid", points.len() > 1),
            ("groups", self.group_by.is_some()),
            ("a validation part", options.validation.is_some()),
            ("early stopping", points.iter().any(|point| point.stopping.is_some())),
        ];
        if let Some((what, _)) = together.into_iter().find(|(_, asked)| *asked && workers > 1) {
            return Err(TrainingError::NotSynchronized(what).into());
        }
        let hold_out = options.validation.as_ref().map(|validation| validation.hold_out(shuffling.seed));
        let row_groups = RowGroupSpec { group: self.group_by, hold_out };
        if !row_groups.is_empty() && !shuffling.strategy.supports_groups() {
            return Err(TrainingError::NotInGroups(shuffling.strategy.name()).into());
        }
        if matches!(options.validation, Some(Validation::Fraction { by: By::Block, .. }))
            && shuffling.strategy.sorts_each_epoch()
        {
            let reason = "must be \"row\" with shuffle strategy epoch_shuffle, whose blocks are others in each epoch";
            return Err(ArgumentError::InvalidOption { key: "validation_by".into(), reason: reason.into() }.into());
        }
        if row_groups.group.is_some() || points[0].says.is_some() {
            check_prefix(self.name.as_deref())?;
        }
        Ok(Request {
            source,
            label,
            features,
            kind,
            max_epochs: points.iter().map(|point| point.max_epochs).max().unwrap_or_default(),
            points,
            row_groups,
            shuffling,
            name: self.name,
            options,
            loader: Loader::parse(or_default(self.loader, default::LOADER))?,
            workers,
            resume,
        })
    }
}

fn invalid(argument: &'static str, reason: String) -> Error {
    ArgumentError::InvalidArgument { argument, reason, hint: None }.into()
}

/// Names of features, each given, none twice, none the label.
///
/// # Errors
/// [`ArgumentError::InvalidArgument`]
pub fn check_features(features: Vec<Option<String>>, label: &str) -> Result<Vec<String>> {
    if features.is_empty() {
        return Err(ArgumentError::InvalidArgument {
            argument: "features",
            reason: "it is an empty array".into(),
            hint: Some("Name the feature columns, or leave features out to use all numeric columns.".into()),
        }
        .into());
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

/// What a column is, if it is the label or a feature.
fn used_as(name: &str, label: &str, features: Option<&[String]>) -> Option<&'static str> {
    if name == label {
        return Some("the label");
    }
    features.is_some_and(|features| features.iter().any(|feature| feature == name)).then_some("a feature")
}

fn invalid_option(key: &str, column: &str, role: &str) -> Error {
    ArgumentError::InvalidOption { key: key.into(), reason: format!("names column \"{column}\", which is {role}") }
        .into()
}

/// Bytes that the name of several models may have: what is added takes the other half.
const MAX_PREFIX_BYTES: usize = MAX_NAME_BYTES / 2 - 16;

/// Names of several models begin with this one; what is added may be as long as half of a name.
fn check_prefix(name: Option<&str>) -> Result<()> {
    match name {
        Some(name) if name.len() > MAX_PREFIX_BYTES => {
            Err(invalid("name", format!("it has more than {} bytes, with several models", MAX_PREFIX_BYTES)))
        }
        _ => Ok(()),
    }
}
