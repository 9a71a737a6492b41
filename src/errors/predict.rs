//! Why a model cannot answer for what it is given.

use super::report::{Code, Report};
use super::words::{in_words, the_model};

/// Why a model cannot answer for what it is given.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    #[error("{} has {expected} features, {given} given", the_model(*model_id))]
    Length { model_id: i64, expected: usize, given: usize },
    #[error("feature {0} is NULL")]
    Null(String),
    #[error("feature {feature} is {}", in_words(*value))]
    NotFinite { feature: String, value: f64 },
    #[error("feature {feature} is out of range for type real: {value:e}")]
    OutOfRange { feature: String, value: f64 },
    #[error("a decision of {}{} is out of range for type real", the_model(*model_id), row.map_or(String::new(), |row| format!(" for row number {row} of those evaluated")))]
    /// `row` if several are asked for
    DecisionOutOfRange { model_id: i64, row: Option<u64> },
    #[error("feature array has {0} dimensions")]
    Dimensions(usize),
    #[error("features must be an array of numbers, not of type {0}")]
    Type(String),
    #[error("indices must be an array of integers, not of type {0}")]
    IndexType(String),
    #[error("{indices} indices given, but {values} values")]
    Lengths { indices: usize, values: usize },
    #[error("index {0} of the given is NULL")]
    NullIndex(usize),
    #[error("index {index} is less than {base}, where the model's indices begin")]
    IndexBelow { index: i64, base: u32 },
    #[error("index {index} is beyond {last}, the last of {}", the_model(*model_id))]
    IndexBeyond { model_id: i64, index: i64, last: i64 },
    #[error("index {0} is given twice")]
    IndexTwice(i64),
    #[error("{} has categories among its features, which an array cannot hold", the_model(*model_id))]
    NeedsRow { model_id: i64, columns: String },
    #[error("the given row has no column \"{column}\", which is a feature of {}", the_model(*model_id))]
    NoColumn { model_id: i64, column: String, columns: Vec<String> },
    #[error("the given row has more than one column \"{0}\"")]
    ColumnTwice(String),
    #[error("the feature columns of the source have other types than those that model {model_id} was trained on")]
    EvaluateTypes { model_id: i64, trained_on: String },
    #[error("category \"{value}\" of column \"{column}\" is unknown to {}", the_model(*model_id))]
    Category { model_id: i64, column: String, value: String },
    #[error("{} was not trained with \"nulls\": \"impute\", and knows nothing to put in place of NULLs", the_model(*.0))]
    NothingToImpute(i64),
    #[error("{} predicts text labels, which are not numbers", the_model(*.0))]
    TextLabels(i64),
    #[error("{} is a linear regression, which has no labels", the_model(*.0))]
    NoLabels(i64),
    #[error("{} is {kind}, which has no probabilities", the_model(*model_id))]
    NoProbabilities { model_id: i64, kind: &'static str },
}

impl Report for PredictError {
    fn sqlstate(&self) -> Code {
        match self {
            PredictError::Null(_) | PredictError::NullIndex(_) => Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            PredictError::Category { .. } => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            PredictError::TextLabels(_)
            | PredictError::NoLabels(_)
            | PredictError::NeedsRow { .. }
            | PredictError::NothingToImpute(_)
            | PredictError::NoProbabilities { .. } => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            PredictError::NoColumn { .. } => Code::ERRCODE_UNDEFINED_COLUMN,
            PredictError::ColumnTwice(_) => Code::ERRCODE_AMBIGUOUS_COLUMN,
            PredictError::Type(_) | PredictError::IndexType(_) | PredictError::EvaluateTypes { .. } => {
                Code::ERRCODE_DATATYPE_MISMATCH
            }
            PredictError::NotFinite { .. }
            | PredictError::OutOfRange { .. }
            | PredictError::DecisionOutOfRange { .. } => Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            PredictError::Length { .. }
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
            PredictError::Type(_) => fixed("Cast the features, for example to real[]."),
            PredictError::IndexType(_) => fixed("Cast the indices, for example to integer[]."),
            PredictError::Null(_) | PredictError::NullIndex(_) => fixed(
                "The model has nothing to put in its place; use coalesce(), or train with the option nulls as impute.",
            ),
            PredictError::IndexBelow { .. } => fixed("Indices count as they did in training; see option index_base."),
            PredictError::IndexBeyond { .. } | PredictError::Category { .. } => {
                fixed("With unseen => 'zero' in the call, or in the options of the training, it counts as 0.")
            }
            PredictError::NothingToImpute(_) => {
                fixed("Train it with the option nulls as impute, which is the default.")
            }
            PredictError::NeedsRow { columns, .. } => {
                Some(format!("Give a row with the columns {columns}: SELECT corgipile_predict(1, t) FROM t."))
            }
            PredictError::NoColumn { columns, .. } if columns.iter().all(|column| is_made_up(column)) => fixed(
                "ROW() does not name its columns; give a table's row or a subquery's: SELECT corgipile_predict(1, t) FROM t.",
            ),
            PredictError::NoColumn { columns, .. } => Some(format!("The row has the columns {}.", columns.join(", "))),
            PredictError::EvaluateTypes { trained_on, .. } => Some(format!("It was trained on {trained_on}.")),
            PredictError::ColumnTwice(_) => fixed("Give the columns of the row different names."),
            PredictError::TextLabels(_) => fixed("Use corgipile_predict_label()."),
            PredictError::NoLabels(_) => fixed("Use corgipile_predict(), which gives the value."),
            PredictError::NoProbabilities { .. } => {
                fixed("Use corgipile_predict(), or train model => 'logistic', 'softmax' or 'mlp'.")
            }
            PredictError::Length { .. } => {
                fixed("Give a number for each feature, in the order in which the model was trained.")
            }
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
