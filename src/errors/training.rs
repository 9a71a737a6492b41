//! Why a training cannot begin, or ends.

use crate::limits::{MAX_MODELS, MAX_WEIGHTS};
use pg::errors::{Code, Report};
use sgd::Solver;

/// Why a training cannot begin, or ends.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    #[error("no row has a feature: all index arrays are empty")]
    NoIndices,
    #[error("there are no rows to {0}")]
    NoRows(&'static str),
    #[error("there are no rows to validate on")]
    NothingHeldOut { column: Option<String> },
    #[error("all {0} rows are left out because they have NULLs")]
    AllLeftOut(u64),
    #[error("label column \"{column}\" has only one value: {value}")]
    OneClass { column: String, value: String },
    #[error("label column \"{column}\" has {classes} different values in {rows} rows")]
    NearlyUniqueLabel { column: String, classes: usize, rows: u64, are_numbers: bool },
    #[error("label {label} has a weight in class_weight, but no row has this label")]
    NoSuchClass { label: String, known: String },
    #[error("label column \"{column}\" has type {type_name}, which has no value {value}")]
    LabelValue { column: String, type_name: String, value: String },
    #[error("all rows have the weight 0")]
    NoWeight,
    #[error("a model of {dim} features and {outputs} outputs is too large to be stored")]
    TooManyWeights { dim: usize, outputs: usize },
    #[error("a network of {dim} features and {weights} weights is too large to be stored")]
    NetworkTooLarge { dim: usize, weights: usize },
    #[error("solver newton cannot train a model of {dim} features")]
    HessianTooLarge { dim: usize },
    #[error("{models} models of {dim} features are too many to be trained side by side")]
    TooManyModels { models: usize, dim: usize },
    #[error("training diverged in epoch {epoch}: the loss or a weight is no longer finite")]
    Diverged { epoch: u32, standardized: bool },
    #[error("all models of the call have more than {limit} epochs together")]
    TooManyEpochs { limit: usize },
    #[error("several processes cannot train with shuffle strategy {0}")]
    NotByWorkers(&'static str),
    #[error("several processes cannot train with {0}")]
    NotSynchronized(&'static str),
    #[error("shuffle strategy {0} cannot train on rows that fall into groups or a validation part")]
    NotInGroups(&'static str),
    #[error("{0} cannot be used with a compressed source")]
    NotOnCompressed(&'static str),
    #[error("model {model_id} cannot be continued: {reason}")]
    WarmStart { model_id: i64, reason: String, hint: &'static str },
    #[error("model {model_id} cannot be continued: {reason}")]
    NotContinued { model_id: i64, reason: &'static str, hint: &'static str },
    #[error("fold {fold} of {folds} has no rows to {what}")]
    EmptyFold { fold: u32, folds: u32, what: &'static str },
    #[error("the worker process has ended unexpectedly")]
    WorkerLost,
}

impl TrainingError {
    /// There are no rows to do this with, perhaps because all of so many were left out.
    pub fn no_rows(what: &'static str, left_out: u64) -> TrainingError {
        if left_out > 0 { TrainingError::AllLeftOut(left_out) } else { TrainingError::NoRows(what) }
    }
}

impl Report for TrainingError {
    fn sqlstate(&self) -> Code {
        match self {
            TrainingError::NoSuchClass { .. } => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            TrainingError::LabelValue { .. } => Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            TrainingError::TooManyWeights { .. }
            | TrainingError::HessianTooLarge { .. }
            | TrainingError::TooManyModels { .. }
            | TrainingError::TooManyEpochs { .. }
            | TrainingError::NetworkTooLarge { .. } => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            TrainingError::NoRows(_)
            | TrainingError::NothingHeldOut { .. }
            | TrainingError::AllLeftOut(_)
            | TrainingError::EmptyFold { .. }
            | TrainingError::OneClass { .. }
            | TrainingError::NearlyUniqueLabel { .. }
            | TrainingError::NoWeight
            | TrainingError::NoIndices => Code::ERRCODE_DATA_EXCEPTION,
            TrainingError::Diverged { .. } => Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            TrainingError::NotByWorkers(_)
            | TrainingError::NotOnCompressed(_)
            | TrainingError::NotSynchronized(_)
            | TrainingError::NotInGroups(_)
            | TrainingError::NotContinued { .. } => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            TrainingError::WarmStart { .. } => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            TrainingError::WorkerLost => Code::ERRCODE_INTERNAL_ERROR,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            TrainingError::NoIndices => {
                fixed("Say with options => '{\"dimensions\": ...}' how many features there are.")
            }
            TrainingError::NoRows(_) => fixed("Check the source: its table, and what it leaves out."),
            TrainingError::NothingHeldOut { column: None } => {
                fixed("Say a larger validation_fraction: of few rows, the draw holds none out.")
            }
            TrainingError::NothingHeldOut { column: Some(column) } => {
                Some(format!("Column {column} must be true for the rows that are to be held out."))
            }
            TrainingError::AllLeftOut(_) => fixed(
                "A row needs a label, and a weight and a group if they are asked for; with nulls => 'impute' features may be NULL.",
            ),
            TrainingError::EmptyFold { .. } => {
                fixed("Ask for fewer folds: there must be as many rows as folds, or as many groups or times.")
            }
            TrainingError::OneClass { .. } => fixed("Models that tell classes apart need rows of two classes or more."),
            TrainingError::NearlyUniqueLabel { are_numbers: true, .. } => {
                fixed("For numbers to be predicted say model => 'linear'; a number that identifies rows is no label.")
            }
            TrainingError::NearlyUniqueLabel { are_numbers: false, .. } => fixed(
                "What identifies rows, such as a name, cannot be learned: say by label which column to predict, or combine \
                 rare values in a query.",
            ),
            TrainingError::NoSuchClass { known, .. } => Some(format!("The labels are {known}.")),
            TrainingError::LabelValue { .. } => fixed("Use labels of the type that the column has."),
            TrainingError::NoWeight => fixed("Give some rows a weight above 0."),
            TrainingError::HessianTooLarge { .. } => Some(format!(
                "It computes with a number for each pair of features, and takes at most {} features; use fewer, or solver sgd.",
                Solver::MAX_FEATURES
            )),
            TrainingError::TooManyModels { .. } => Some(format!(
                "Together they are at most {MAX_MODELS}, and have at most {MAX_WEIGHTS} weights; train them by several calls."
            )),
            TrainingError::TooManyEpochs { .. } => fixed(
                "A row of each is kept until they are stored; train fewer epochs, or the models by several calls.",
            ),
            TrainingError::NetworkTooLarge { .. } => Some(format!(
                "A model has at most {MAX_WEIGHTS} weights; use fewer features, or smaller hidden_layers."
            )),
            TrainingError::TooManyWeights { .. } => Some(format!(
                "A model has at most {MAX_WEIGHTS} weights, and its row in corgipile.models at most 1 GB."
            )),
            TrainingError::Diverged { standardized: false, .. } => fixed(
                "Try a smaller learning_rate, or options => '{\"standardize\": true}'; bring large numbers of the label nearer to 0.",
            ),
            TrainingError::Diverged { standardized: true, .. } => {
                fixed("Try a smaller learning_rate; bring large numbers of the label nearer to 0.")
            }
            TrainingError::NotByWorkers(_) => fixed("Use shuffle => 'corgipile', or workers => 1."),
            TrainingError::NotSynchronized(_) => fixed("Use workers => 1."),
            TrainingError::NotOnCompressed(_) => {
                fixed("A row of it is a whole mini-batch. Train on the table that was compressed, or compress others.")
            }
            TrainingError::NotInGroups(_) => fixed("Use shuffle => 'corgipile', or a query as source for each part."),
            TrainingError::WarmStart { hint, .. } | TrainingError::NotContinued { hint, .. } => fixed(hint),
            TrainingError::WorkerLost => {
                fixed("The server's log may tell why; train with loader => 'in_process' to do without it.")
            }
        }
    }
}
