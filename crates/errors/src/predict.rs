//! Why a model cannot answer for what it is given.

use super::the_model::TheModel;
use super::words::in_words;
use loss::ModelKind;
use pg::errors::{Code, Report};

#[derive(Debug, thiserror::Error, Report)]
pub enum PredictError {
    #[error("{model} has {expected} features, {given} given")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Give each of them. {}", model.features_in_order())]
    Length { model: TheModel, expected: usize, given: usize },
    #[error("vectors of column \"{column}\" of {model} have {expected} elements, {given} given")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Give a vector as long as those that the model was trained on.")]
    Vector { model: TheModel, column: String, expected: usize, given: usize },
    #[error("feature {feature} of {model} is NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED =>
        "The model has no value to replace it: use coalesce(), or train with \"nulls\": \"impute\".")]
    Null { model: TheModel, feature: String },
    #[error("feature {feature} of {model} is {}", in_words(*value))]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "Correct such values, or leave the row out.")]
    NotFinite { model: TheModel, feature: String, value: f64 },
    #[error("feature {feature} of {model} is out of range for type real: {value:e}")]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "Correct such values, or leave the row out.")]
    OutOfRange { model: TheModel, feature: String, value: f64 },
    #[error("a decision of {}{} is out of range for type real", model, row.map_or(String::new(), |row| format!(" for row number {row} of those evaluated")))]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE =>
        "The features are too large for the model's weights; correct such rows, or leave them out.")]
    /// `row` if several are asked for
    DecisionOutOfRange { model: TheModel, row: Option<u64> },
    #[error("\"{value}\" is given for feature \"{feature}\" of {model}, which is a number")]
    #[report(ERRCODE_INVALID_TEXT_REPRESENTATION => "{} {ROW}", model.features_in_order())]
    NotANumber { model: TheModel, feature: String, value: String },
    #[error("{model} has {expected} features, 1 given")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Give each of them. {} {ROW}", model.features_in_order())]
    OneValue { model: TheModel, expected: usize },
    #[error("{0} has several features, but one string was given")]
    #[report(ERRCODE_DATATYPE_MISMATCH =>
        "Write an array as ARRAY[1, 2] or '{{1,2}}'::real[], or give the values one by one. {} {ROW}", _0.features_in_order())]
    Text(TheModel),
    #[error("feature array has {0} dimensions")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Give an array of one dimension.")]
    Dimensions(usize),
    #[error("features must be an array of numbers, not of type {0}")]
    #[report(ERRCODE_DATATYPE_MISMATCH => match _0.ends_with("[]") {
        false => format!("Cast the features, for example to real[]. {ROW}"),
        true => "Cast the features, for example to real[].".to_owned(),
    })]
    Type(String),
    #[error("the vector is damaged or has an unknown layout")]
    #[report(ERRCODE_DATA_CORRUPTED =>
        "Vectors are read in the layout of pgvector up to version 0.8; cast those of a later version to real[].")]
    DamagedVector,
    #[error("{model} was trained on indices and values, and {given} plain values are given")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Give an array of indices and one of values: corgipile_predict({}, {}).", model.in_call(), model.features())]
    NeedsIndices { model: TheModel, given: usize },
    #[error("indices must be an array of integers, not of type {0}")]
    #[report(ERRCODE_DATATYPE_MISMATCH => "Cast the indices, for example to integer[].")]
    IndexType(String),
    #[error("{indices} indices given, but {values} values")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Give as many values as indices.")]
    Lengths { indices: usize, values: usize },
    #[error("index number {0} is NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED =>
        "The model has no value to replace it: use coalesce(), or train with \"nulls\": \"impute\".")]
    NullIndex(usize),
    #[error("index {index} is less than {base}, the model's first index")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Indices count from the same base as in training; see option index_base.")]
    IndexBelow { index: i64, base: u32 },
    #[error("index {index} is beyond {last}, the last of {model}")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR =>
        "With handle_unknown => 'ignore' in the call, or in the options of the training, it counts as 0.")]
    IndexBeyond { model: TheModel, index: i64, last: i64 },
    #[error("index {0} is given twice")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "An index may appear only once in a row: add up its values.")]
    IndexTwice(i64),
    #[error("{0} has categories among its features, which an array cannot hold")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Give a row with the columns {0}, as in SELECT corgipile_predict({1}, t) FROM t, or values in this order: \
         corgipile_predict({1}, {0}).", _0.features(), _0.in_call())]
    NeedsRow(TheModel),
    #[error("the given row has no column \"{column}\", which is a feature of {model}")]
    #[report(ERRCODE_UNDEFINED_COLUMN => match columns.iter().all(|column| is_made_up(column)) {
        true => format!(
            "ROW() does not name its columns; give a table's row or a subquery's, as in SELECT corgipile_predict({1}, t) \
             FROM t; corgipile_predict() takes values in this order, too: corgipile_predict({1}, {0}).",
            model.features(),
            model.in_call()
        ),
        false => format!("The row has the columns {}. {}", columns.join(", "), model.features_in_order()),
    })]
    NoColumn { model: TheModel, column: String, columns: Vec<String> },
    #[error("\"{name}\" is a model for each group of column \"{column}\", which is not among what is given")]
    #[report(ERRCODE_UNDEFINED_COLUMN => match columns.is_empty() {
        true => format!(
            "Give a row with this column, as in SELECT corgipile_predict('{}', t) FROM t, or name the model of one \
             group, such as '{}'.",
            quoted(name),
            quoted(example)
        ),
        false => format!(
            "The row has the columns {}. Or name the model of one group, such as '{}'.",
            columns.join(", "),
            quoted(example)
        ),
    })]
    /// `columns` are those of the row, if one is given
    NoGroupColumn { name: String, column: String, example: String, columns: Vec<String> },
    #[error("group {} of column \"{column}\" is unknown to \"{name}\"", match group {
        Some(group) => format!("\"{group}\""),
        None => "NULL".to_owned(),
    })]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE =>
        "Train with unseen_group => 'null' to predict NULL for such rows, or with unseen_group => 'all' to predict them \
         by a model of all rows.")]
    /// `group` is None if it is NULL
    UnseenGroup { name: String, column: String, group: Option<String> },
    #[error("the given row has more than one column \"{0}\"")]
    #[report(ERRCODE_AMBIGUOUS_COLUMN => "Give the columns of the row different names.")]
    ColumnTwice(String),
    #[error("the types of the source's feature columns differ from those that {model} was trained on")]
    #[report(ERRCODE_DATATYPE_MISMATCH => "It was trained on {trained_on}.")]
    EvaluateTypes { model: TheModel, trained_on: String },
    #[error("category \"{value}\" of column \"{column}\" is unknown to {model}")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE =>
        "With handle_unknown => 'ignore' in the call, or in the options of the training, it counts as 0.")]
    Category { model: TheModel, column: String, value: String },
    #[error("{0} predicts text labels, which are not numbers")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use corgipile_predict_label().")]
    TextLabels(TheModel),
    #[error("{model} is {}, which has no labels", kind.description())]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use corgipile_predict(), which returns the value.")]
    NoLabels { model: TheModel, kind: ModelKind },
    #[error("{model} is {}, which has no probabilities", kind.description())]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "{}", match kind.is_classifier() {
        true => "Train it with \"probability\": true, or train model => 'logistic', 'softmax' or 'mlp'.",
        false => "Use corgipile_predict(), or train model => 'logistic', 'softmax' or 'mlp'.",
    })]
    NoProbabilities { model: TheModel, kind: ModelKind },
    #[error("{model} has no standard errors: {why}")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Models logistic, linear and poisson have standard errors if they have at most 2000 features and were trained without class_weight and l1.")]
    NoStandardErrors { model: TheModel, why: String },
    #[error("{model} is {kind}, whose decisions are not a sum over its features")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "corgipile_importance() shows which of its features matter.")]
    NoContributions { model: TheModel, kind: &'static str },
    #[error("{0} is not calibrated")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "As its owner, call corgipile_calibrate({}, ...) with rows that it was not trained on.", _0.in_call())]
    NotCalibrated(TheModel),
    #[error("{0} has no profile of its features to compare with")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "As its owner, call corgipile_profile({}, ...) with the rows that it was trained on.", _0.in_call())]
    NoProfile(TheModel),
    #[error("{model} has {what}, which have no profile")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Compare such features by queries, with avg(), stddev() and GROUP BY.")]
    NotProfiled { model: TheModel, what: &'static str },
    #[error("{0} predicts labels, which have no intervals")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use corgipile_predict_set(), which returns the possible labels.")]
    NoIntervals(TheModel),
    #[error("{0} was not trained with \"nulls\": \"impute\", and has no values to replace NULLs")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Train it with \"nulls\": \"impute\", the default.")]
    NothingToImpute(TheModel),
}

/// A text inside a literal of SQL.
fn quoted(text: &str) -> String {
    text.replace('\'', "''")
}

/// What may be wrong where one value is given, and several are needed.
const ROW: &str = "To give a row of table t, write t.*: where t has a column t, the name alone is that column.";

/// Is this the name of a column of ROW(...): f1, f2, ...?
fn is_made_up(column: &str) -> bool {
    column.strip_prefix('f').is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}
