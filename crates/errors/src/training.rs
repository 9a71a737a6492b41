//! Why a training cannot begin, or ends.

use crate::limits::{MAX_MODELS, MAX_WEIGHTS};
use loss::Solver;
use pg::errors::{Code, Report};

/// Why a training cannot begin, or ends.
#[derive(Debug, thiserror::Error, Report)]
pub enum TrainingError {
    #[error("no row has a feature: all index arrays are empty")]
    #[report(ERRCODE_DATA_EXCEPTION => "Say with options => '{{\"dimensions\": ...}}' how many features there are.")]
    NoIndices,
    #[error("there are no rows to {0}")]
    #[report(ERRCODE_DATA_EXCEPTION => "Check the source: its table, and what it leaves out.")]
    NoRows(&'static str),
    #[error("there are no rows to validate on")]
    #[report(ERRCODE_DATA_EXCEPTION => match column {
        None => "Say a larger validation_fraction: of few rows, the draw holds none out.".to_owned(),
        Some(column) => format!("Column {column} must be true for the rows that are to be held out."),
    })]
    NothingHeldOut { column: Option<String> },
    #[error("all {0} rows are left out because they have NULLs")]
    #[report(ERRCODE_DATA_EXCEPTION =>
        "A row needs a label, and a weight and a group if they are asked for; with nulls => 'impute' features may be NULL.")]
    AllLeftOut(u64),
    #[error("label column \"{column}\" has only one value: {value}")]
    #[report(ERRCODE_DATA_EXCEPTION => "Models that tell classes apart need rows of two classes or more.")]
    OneClass { column: String, value: String },
    #[error("label column \"{column}\" has {classes} different values in {rows} rows")]
    #[report(ERRCODE_DATA_EXCEPTION => "{}", match are_numbers {
        true => "For numbers to be predicted say model => 'linear'; a number that identifies rows is no label.",
        false => "What identifies rows, such as a name, cannot be learned: say by label which column to predict, or combine \
                  rare values in a query.",
    })]
    NearlyUniqueLabel { column: String, classes: usize, rows: u64, are_numbers: bool },
    #[error("label {label} has a weight in class_weight, but no row has this label")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "The labels are {known}.")]
    NoSuchClass { label: String, known: String },
    #[error("label column \"{column}\" has type {type_name}, which has no value {value}")]
    #[report(ERRCODE_INVALID_TEXT_REPRESENTATION => "Use labels of the type that the column has.")]
    LabelValue { column: String, type_name: String, value: String },
    #[error("all rows have the weight 0")]
    #[report(ERRCODE_DATA_EXCEPTION => "Give some rows a weight above 0.")]
    NoWeight,
    #[error("a model of {dim} features and {outputs} outputs is too large to be stored")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "A model has at most {MAX_WEIGHTS} weights, and its row in corgipile.models at most 1 GB.")]
    TooManyWeights { dim: usize, outputs: usize },
    #[error("a network of {dim} features and {weights} weights is too large to be stored")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "A model has at most {MAX_WEIGHTS} weights; use fewer features, or smaller hidden_layer_sizes.")]
    NetworkTooLarge { dim: usize, weights: usize },
    #[error("solver newton cannot train a model of {dim} features")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "It computes with a number for each pair of features, and takes at most {} features; use fewer, or solver sgd.", Solver::MAX_FEATURES)]
    HessianTooLarge { dim: usize },
    #[error("{models} models of {dim} features are too many to be trained side by side")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "Together they are at most {MAX_MODELS}, and have at most {MAX_WEIGHTS} weights; train them by several calls.")]
    TooManyModels { models: usize, dim: usize },
    #[error("training diverged in epoch {epoch}: the loss or a weight is no longer finite")]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "{}", match standardized {
        false => "Try a smaller learning_rate, or options => '{\"standardize\": true}'; bring large numbers of the label nearer to 0.",
        true => "Try a smaller learning_rate; bring large numbers of the label nearer to 0.",
    })]
    Diverged { epoch: u32, standardized: bool },
    #[error("all models of the call have more than {limit} epochs together")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "A row of each is kept until they are stored; train fewer epochs, or the models by several calls.")]
    TooManyEpochs { limit: usize },
    #[error("several processes cannot train with shuffle strategy {0}")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use shuffle => 'corgipile', or workers => 1.")]
    NotByWorkers(&'static str),
    #[error("several processes cannot train with {0}")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use workers => 1.")]
    NotSynchronized(&'static str),
    #[error("shuffle strategy {0} cannot train on rows that fall into groups or a validation part")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use shuffle => 'corgipile', or a query as source for each part.")]
    NotInGroups(&'static str),
    #[error("{0} cannot be used with a compressed source")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "A row of it is a whole mini-batch. Train on the table that was compressed, or compress others.")]
    NotOnCompressed(&'static str),
    #[error("model {model_id} cannot be continued: {reason}")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{hint}")]
    WarmStart { model_id: i64, reason: String, hint: &'static str },
    #[error("model {model_id} cannot be continued: {reason}")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "{hint}")]
    NotContinued { model_id: i64, reason: &'static str, hint: &'static str },
    #[error("fold {fold} of {folds} has no rows to {what}")]
    #[report(ERRCODE_DATA_EXCEPTION =>
        "Ask for fewer folds: there must be as many rows as folds, or as many groups or times.")]
    EmptyFold { fold: u32, folds: u32, what: &'static str },
    #[error("the worker process has ended unexpectedly")]
    #[report(ERRCODE_INTERNAL_ERROR =>
        "The server's log may tell why; train with prefetch => 'off' to do without it.")]
    WorkerLost,
}

impl TrainingError {
    /// There are no rows to do this with, perhaps because all of so many were left out.
    pub fn no_rows(what: &'static str, left_out: u64) -> TrainingError {
        if left_out > 0 { TrainingError::AllLeftOut(left_out) } else { TrainingError::NoRows(what) }
    }
}
