//! Why a model cannot answer for what it is given.

use super::the_model::TheModel;
use super::words::in_words;
use pg::errors::{Code, Report};
use sgd::ModelKind;

/// Why a model cannot answer for what it is given.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    #[error("{model} has {expected} features, {given} given")]
    Length { model: TheModel, expected: usize, given: usize },
    #[error("feature {feature} of {model} is NULL")]
    Null { model: TheModel, feature: String },
    #[error("feature {feature} of {model} is {}", in_words(*value))]
    NotFinite { model: TheModel, feature: String, value: f64 },
    #[error("feature {feature} of {model} is out of range for type real: {value:e}")]
    OutOfRange { model: TheModel, feature: String, value: f64 },
    #[error("a decision of {}{} is out of range for type real", model, row.map_or(String::new(), |row| format!(" for row number {row} of those evaluated")))]
    /// `row` if several are asked for
    DecisionOutOfRange { model: TheModel, row: Option<u64> },
    #[error("\"{value}\" is given for feature \"{feature}\" of {model}, which is a number")]
    NotANumber { model: TheModel, feature: String, value: String },
    #[error("{model} has {expected} features, 1 given")]
    OneValue { model: TheModel, expected: usize },
    #[error("{0} has several features, and one text is given")]
    Text(TheModel),
    #[error("feature array has {0} dimensions")]
    Dimensions(usize),
    #[error("features must be an array of numbers, not of type {0}")]
    Type(String),
    #[error("the given vector is damaged, or has a layout that is not known")]
    DamagedVector,
    #[error("{model} was trained on indices and values, and {given} plain values are given")]
    NeedsIndices { model: TheModel, given: usize },
    #[error("indices must be an array of integers, not of type {0}")]
    IndexType(String),
    #[error("{indices} indices given, but {values} values")]
    Lengths { indices: usize, values: usize },
    #[error("index {0} of the given is NULL")]
    NullIndex(usize),
    #[error("index {index} is less than {base}, where the model's indices begin")]
    IndexBelow { index: i64, base: u32 },
    #[error("index {index} is beyond {last}, the last of {model}")]
    IndexBeyond { model: TheModel, index: i64, last: i64 },
    #[error("index {0} is given twice")]
    IndexTwice(i64),
    #[error("{0} has categories among its features, which an array cannot hold")]
    NeedsRow(TheModel),
    #[error("the given row has no column \"{column}\", which is a feature of {model}")]
    NoColumn { model: TheModel, column: String, columns: Vec<String> },
    #[error("the given row has more than one column \"{0}\"")]
    ColumnTwice(String),
    #[error("the feature columns of the source have other types than those that {model} was trained on")]
    EvaluateTypes { model: TheModel, trained_on: String },
    #[error("category \"{value}\" of column \"{column}\" is unknown to {model}")]
    Category { model: TheModel, column: String, value: String },
    #[error("{0} predicts text labels, which are not numbers")]
    TextLabels(TheModel),
    #[error("{model} is {}, which has no labels", kind.description())]
    NoLabels { model: TheModel, kind: ModelKind },
    #[error("{model} is {}, which has no probabilities", kind.description())]
    NoProbabilities { model: TheModel, kind: ModelKind },
    #[error("there are no standard errors of {model}: {why}")]
    NoStandardErrors { model: TheModel, why: String },
    #[error("{model} is {kind}, whose decisions are no sum over its features")]
    NoContributions { model: TheModel, kind: &'static str },
    #[error("{0} is not calibrated")]
    NotCalibrated(TheModel),
    #[error("{0} keeps nothing of its features to compare with")]
    NoProfile(TheModel),
    #[error("{model} has {what}, of which no profile is kept")]
    NotProfiled { model: TheModel, what: &'static str },
    #[error("{0} predicts labels, which have no intervals")]
    NoIntervals(TheModel),
    #[error("{0} was not trained with \"nulls\": \"impute\", and knows nothing to put in place of NULLs")]
    NothingToImpute(TheModel),
}

/// What may be wrong where one value is given, and several are needed.
const ROW: &str = "To give a row of table t, write t.*: where t has a column t, the name alone is that column.";

impl Report for PredictError {
    fn sqlstate(&self) -> Code {
        match self {
            PredictError::Null { .. } | PredictError::NullIndex(_) => Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            PredictError::NotANumber { .. } => Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            PredictError::Category { .. } => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            PredictError::TextLabels(_)
            | PredictError::NoLabels { .. }
            | PredictError::NoIntervals(_)
            | PredictError::NotProfiled { .. }
            | PredictError::NeedsRow(_)
            | PredictError::NeedsIndices { .. }
            | PredictError::NothingToImpute(_)
            | PredictError::NoStandardErrors { .. }
            | PredictError::NoContributions { .. }
            | PredictError::NoProbabilities { .. } => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            PredictError::NotCalibrated(_) | PredictError::NoProfile(_) => {
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            }
            PredictError::DamagedVector => Code::ERRCODE_DATA_CORRUPTED,
            PredictError::NoColumn { .. } => Code::ERRCODE_UNDEFINED_COLUMN,
            PredictError::ColumnTwice(_) => Code::ERRCODE_AMBIGUOUS_COLUMN,
            PredictError::Text(_)
            | PredictError::Type(_)
            | PredictError::IndexType(_)
            | PredictError::EvaluateTypes { .. } => Code::ERRCODE_DATATYPE_MISMATCH,
            PredictError::NotFinite { .. }
            | PredictError::OutOfRange { .. }
            | PredictError::DecisionOutOfRange { .. } => Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            PredictError::Length { .. }
            | PredictError::OneValue { .. }
            | PredictError::Lengths { .. }
            | PredictError::Dimensions(_)
            | PredictError::IndexBelow { .. }
            | PredictError::IndexBeyond { .. }
            | PredictError::IndexTwice(_) => Code::ERRCODE_ARRAY_ELEMENT_ERROR,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            PredictError::DecisionOutOfRange { .. } => {
                fixed("The features are too large for the model's weights; correct such rows, or leave them out.")
            }
            PredictError::DamagedVector => fixed(
                "Vectors are read as pgvector has stored them up to version 0.8; those of a later one are to be cast to real[].",
            ),
            PredictError::Text(model) => Some(format!(
                "Write an array as ARRAY[1, 2] or '{{1,2}}'::real[], or give the values one by one. {} {ROW}",
                model.features_in_order()
            )),
            PredictError::NotANumber { model, .. } => Some(format!("{} {ROW}", model.features_in_order())),
            PredictError::Type(name) if !name.ends_with("[]") => {
                Some(format!("Cast the features, for example to real[]. {ROW}"))
            }
            PredictError::Type(_) => fixed("Cast the features, for example to real[]."),
            PredictError::IndexType(_) => fixed("Cast the indices, for example to integer[]."),
            PredictError::Null { .. } | PredictError::NullIndex(_) => fixed(
                "The model has nothing to put in its place; use coalesce(), or train with the option nulls as impute.",
            ),
            PredictError::IndexBelow { .. } => fixed("Indices count as they did in training; see option index_base."),
            PredictError::IndexBeyond { .. } | PredictError::Category { .. } => {
                fixed("With unseen => 'zero' in the call, or in the options of the training, it counts as 0.")
            }
            PredictError::NoStandardErrors { .. } => fixed(
                "There are some of models logistic, linear and poisson with at most 2000 features, trained without class_weight and l1.",
            ),
            PredictError::NoContributions { .. } => {
                fixed("corgipile_importance() says which of its features matter on many rows.")
            }
            PredictError::NothingToImpute(_) => {
                fixed("Train it with the option nulls as impute, which is the default.")
            }
            PredictError::NeedsRow(model) => Some(format!(
                "Give a row with the columns {0}, as in SELECT corgipile_predict({1}, t) FROM t, or values in this order: \
                 corgipile_predict({1}, {0}).",
                model.features(),
                model.in_call()
            )),
            PredictError::NeedsIndices { model, .. } => Some(format!(
                "Give an array of indices and one of values: corgipile_predict({}, {}).",
                model.in_call(),
                model.features()
            )),
            PredictError::NoColumn { model, columns, .. } if columns.iter().all(|column| is_made_up(column)) => {
                Some(format!(
                    "ROW() does not name its columns; give a table's row or a subquery's, as in SELECT corgipile_predict({1}, t) \
                     FROM t; corgipile_predict() takes values in this order, too: corgipile_predict({1}, {0}).",
                    model.features(),
                    model.in_call()
                ))
            }
            PredictError::NoColumn { model, columns, .. } => {
                Some(format!("The row has the columns {}. {}", columns.join(", "), model.features_in_order()))
            }
            PredictError::EvaluateTypes { trained_on, .. } => Some(format!("It was trained on {trained_on}.")),
            PredictError::ColumnTwice(_) => fixed("Give the columns of the row different names."),
            PredictError::TextLabels(_) => fixed("Use corgipile_predict_label()."),
            PredictError::NotCalibrated(model) => Some(format!(
                "Its owner calls corgipile_calibrate({}, ...) with rows that it was not trained on.",
                model.in_call()
            )),
            PredictError::NoProfile(model) => Some(format!(
                "Its owner calls corgipile_profile({}, ...) with the rows that it was trained on.",
                model.in_call()
            )),
            PredictError::NotProfiled { .. } => {
                fixed("Compare such features by queries, with avg(), stddev() and GROUP BY.")
            }
            PredictError::NoIntervals(_) => fixed("Use corgipile_predict_set(), which gives the labels that may be."),
            PredictError::NoLabels { .. } => fixed("Use corgipile_predict(), which gives the value."),
            PredictError::NoProbabilities { kind, .. } if kind.is_classifier() => {
                fixed("Train it with the option probability as true, or train model => 'logistic', 'softmax' or 'mlp'.")
            }
            PredictError::NoProbabilities { .. } => {
                fixed("Use corgipile_predict(), or train model => 'logistic', 'softmax' or 'mlp'.")
            }
            PredictError::OneValue { model, .. } => {
                Some(format!("Give each of them. {} {ROW}", model.features_in_order()))
            }
            PredictError::Length { model, .. } => Some(format!("Give each of them. {}", model.features_in_order())),
            PredictError::Lengths { .. } => fixed("Each index needs its value."),
            PredictError::Dimensions(_) => fixed("Give an array of one dimension."),
            PredictError::IndexTwice(_) => fixed("Add up the values of an index that is there twice."),
            PredictError::NotFinite { .. } | PredictError::OutOfRange { .. } => {
                fixed("Correct such values, or leave the row out.")
            }
        }
    }
}

/// Is this the name of a column of ROW(...): f1, f2, ...?
fn is_made_up(column: &str) -> bool {
    column.strip_prefix('f').is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}
