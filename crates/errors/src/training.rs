//! Why a training cannot begin, or ends.

use crate::limits::{MAX_MODELS, MAX_WEIGHTS};
use loss::Solver;
use pg::errors::{Code, Report};

#[derive(Debug, thiserror::Error, Report)]
pub enum TrainingError {
    #[error("no row has a feature: all index arrays are empty")]
    #[report(ERRCODE_DATA_EXCEPTION => "Give the number of features: options => '{{\"dimensions\": ...}}'.")]
    NoIndices,
    #[error("there are no rows to {0}")]
    #[report(ERRCODE_DATA_EXCEPTION => "Check the source: its table and its conditions.")]
    NoRows(&'static str),
    #[error("there are no rows to validate on")]
    #[report(ERRCODE_DATA_EXCEPTION => match column {
        None => "Use a larger validation_fraction, or more rows.".to_owned(),
        Some(column) => format!("Column {column} must be true for the rows to hold out."),
    })]
    NothingHeldOut { column: Option<String> },
    #[error("all {0} rows are left out because they have NULLs")]
    #[report(ERRCODE_DATA_EXCEPTION =>
        "Each row needs a label, and a weight and a group if these are used; with nulls => 'impute', features may be NULL.")]
    AllLeftOut(u64),
    #[error("label column \"{column}\" may have classes or numbers to predict: name the model")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE =>
        "For classes, give model => 'softmax' (or 'logistic' for two); to predict numbers, model => 'linear'.")]
    UnclearModel { column: String },
    #[error("label column \"{column}\" is text that contains numbers")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE =>
        "To predict numbers, give a query as source, such as 'SELECT {expression} AS {column}, ... FROM t'; \
         model => 'softmax' takes each text for a class.")]
    NumbersAsText { column: String, expression: String },
    #[error("label column \"{column}\" has only one value: {value}")]
    #[report(ERRCODE_DATA_EXCEPTION => "A classifier needs rows of at least two classes.")]
    OneClass { column: String, value: String },
    #[error("label column \"{column}\" has {classes} different values in {rows} rows")]
    #[report(ERRCODE_DATA_EXCEPTION => "{}", match are_numbers {
        true => "To predict numbers, use model => 'linear'; a number that identifies rows cannot be a label.",
        false => "Values that identify rows, such as names, cannot be learned: set label to the column to predict, \
                  or combine rare values in a query.",
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
        "It keeps a number for each pair of features, and takes at most {} features: use fewer, or solver sgd.", Solver::MAX_FEATURES)]
    HessianTooLarge { dim: usize },
    #[error("{models} models of {dim} features are too many for one call")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "A call trains at most {MAX_MODELS} models with at most {MAX_WEIGHTS} weights together: use several calls.")]
    TooManyModels { models: usize, dim: usize },
    #[error("training diverged in epoch {epoch}: the loss or a weight is no longer finite")]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "{}", match standardized {
        false => "Try a smaller learning_rate, or options => '{\"standardize\": true}'; rescale a label with large values.",
        true => "Try a smaller learning_rate; rescale a label with large values.",
    })]
    Diverged { epoch: u32, standardized: bool },
    #[error("all models of the call have more than {limit} epochs together")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "A row per epoch is kept until the models are stored: train fewer epochs, or fewer models per call.")]
    TooManyEpochs { limit: usize },
    #[error("several processes cannot train with shuffle strategy {0}")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use shuffle => 'corgipile', or workers => 1.")]
    NotByWorkers(&'static str),
    #[error("several processes cannot train with {0}")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use workers => 1.")]
    NotSynchronized(&'static str),
    #[error("shuffle strategy {0} does not support groups or a validation set")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use shuffle => 'corgipile', or a query as source for each part.")]
    NotInGroups(&'static str),
    #[error("{0} cannot be used with a compressed source")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Each of its rows is a whole mini-batch. Train on the table that was compressed.")]
    NotOnCompressed(&'static str),
    #[error("model {model_id} cannot be continued: {reason}")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{hint}")]
    WarmStart { model_id: i64, reason: String, hint: &'static str },
    #[error("model {model_id} cannot be continued: {reason}")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "{hint}")]
    NotContinued { model_id: i64, reason: &'static str, hint: &'static str },
    #[error("fold {fold} of {folds} has no rows to {what}")]
    #[report(ERRCODE_DATA_EXCEPTION =>
        "Use fewer folds: each needs at least one row, group or time.")]
    EmptyFold { fold: u32, folds: u32, what: &'static str },
    #[error("the worker process has ended unexpectedly")]
    #[report(ERRCODE_INTERNAL_ERROR =>
        "The server's log may have the reason; prefetch => 'off' trains without a worker process.")]
    WorkerLost,
}

impl TrainingError {
    /// There are no rows to do this with, perhaps because all of this many were left out.
    pub fn no_rows(what: &'static str, left_out: u64) -> TrainingError {
        if left_out > 0 { TrainingError::AllLeftOut(left_out) } else { TrainingError::NoRows(what) }
    }
}
