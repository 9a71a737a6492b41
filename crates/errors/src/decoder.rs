//! What is wrong with one row.

use super::words::in_words;
use crate::limits::{MAX_CATEGORIES, MAX_CATEGORIES_BYTES, MAX_GROUP_BYTES, MAX_TEXT_BYTES, MAX_WEIGHTS};
use pg::errors::{Code, Report};
use pg::tuples::place::Place;

const NULLS: &str = "With \"nulls\": \"impute\", the default, means stand for NULLs in features, and other rows with NULLs are \
                     left out; with \"skip\", all are.";
const LEAVE_OUT: &str = "Leave such rows out with a query as source, or correct them.";
const LABELS: &str = "Labels are -1 and 1 for logistic and svm, class numbers from 0 for softmax and svm_one_vs_rest, numbers of at \
                      least 0 for poisson, any numbers for linear.";

/// What is wrong with one row; [`DecoderError::Row`] adds where it stands.
#[derive(Debug, thiserror::Error, Report)]
pub enum RowFault {
    #[error("label is NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "{NULLS}")]
    NullLabel,
    #[error("features are NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "{NULLS}")]
    NullFeatures,
    #[error("feature {0} is NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "{NULLS}")]
    NullFeature(String),
    #[error("weight is NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "{NULLS}")]
    NullWeight,
    #[error("group is NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "{NULLS}")]
    NullGroup,
    #[error("time is NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "{NULLS}")]
    NullTime,
    #[error("validation flag is NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "{NULLS}")]
    NullValidation,
    #[error("column \"{column}\" has more than {limit} values to make groups of: one more was found")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "Group by a column with fewer values, or combine rare ones in a query.")]
    TooManyGroups { column: String, limit: usize },
    #[error("group is too long ({0} bytes)")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "Groups are at most {MAX_GROUP_BYTES} bytes long: they become part of the models' names.")]
    GroupTooLong(usize),
    #[error("element {1} of column \"{0}\" is NULL")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "{NULLS}")]
    NullElement(String, usize),
    #[error("label is {}", in_words(*.0))]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "{LEAVE_OUT}")]
    LabelNotFinite(f64),
    #[error("label is out of range for type real: {0:e}")]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "{LEAVE_OUT}")]
    LabelOutOfRange(f64),
    #[error("label {0} is negative")]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE =>
        "Model poisson predicts counts and amounts of at least 0. For numbers of any sign say model => 'linear' without \
         the option loss, or leave such rows out with a query as source.")]
    NegativeLabel(f64),
    #[error("weight is {}", in_words(*.0))]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "{LEAVE_OUT}")]
    WeightNotFinite(f64),
    #[error("weight is out of range for type real: {0:e}")]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "{LEAVE_OUT}")]
    WeightOutOfRange(f64),
    #[error("weight {0} is negative")]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "{LEAVE_OUT}")]
    NegativeWeight(f64),
    #[error("feature {0} is {value}", value = in_words(*.1))]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "{LEAVE_OUT}")]
    NotFinite(String, f64),
    #[error("feature {0} is out of range for type real: {1:e}")]
    #[report(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => "{LEAVE_OUT}")]
    OutOfRange(String, f64),
    #[error("{0} features instead of {1}")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR =>
        "All feature arrays, vectors or byte strings have the same length, and arrays one dimension.")]
    Length(usize, usize),
    #[error("feature array has {0} dimensions")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR =>
        "All feature arrays, vectors or byte strings have the same length, and arrays one dimension.")]
    Dimensions(usize),
    #[error("feature array is empty")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR =>
        "All feature arrays, vectors or byte strings have the same length, and arrays one dimension.")]
    Empty,
    #[error("feature vector is damaged, or has a layout that is not known,")]
    #[report(ERRCODE_DATA_CORRUPTED =>
        "Vectors are read as pgvector has stored them up to version 0.8; those of a later one are to be cast \
         to real[] in a query.")]
    DamagedVector,
    #[error("feature vector has {dimensions} dimensions, more than {limit},")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "A model has at most {MAX_WEIGHTS} weights.")]
    TooManyDimensions { dimensions: usize, limit: usize },
    #[error("label column \"{column}\" has more than two values ({values}): a third was found")]
    #[report(ERRCODE_DATA_EXCEPTION =>
        "A model of this kind tells exactly two classes apart. For numbers to be predicted say model => 'linear', for \
         more classes model => 'softmax', 'svm_one_vs_rest' or 'mlp'; or make two classes of them with a query as source.")]
    ThirdClass { column: String, values: String },
    #[error("label column \"{column}\" has more than {limit} values: one more was found")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "For numbers to be predicted say model => 'linear' or 'mlp_regression'; what differs from row to row, such as a \
         name, is no label.")]
    TooManyClasses { column: String, limit: usize },
    #[error("label column \"{column}\" has more than {few} values, not all whole ({value}): one more was found")]
    #[report(ERRCODE_DATA_EXCEPTION =>
        "For numbers to be predicted say model => 'linear' or 'mlp_regression'. If they are classes, cast them to text in a query.")]
    ContinuousLabel { column: String, few: usize, value: f64 },
    #[error("label {value}, which the model was not trained on,")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "The model knows the labels {known}.")]
    UnseenClass { value: String, known: String },
    #[error("category {value} of column \"{column}\", which the model was not trained on,")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{}", match continued {
        true => "A model that is trained on keeps its categories; leave such rows out with a query as source, or train anew.",
        false => "With handle_unknown => 'ignore' in the call, or in the options of the training, it counts as none of those that are known.",
    })]
    UnseenCategory { column: String, value: String, continued: bool },
    #[error("{what} {value} was not there in the pass before the first epoch, but is now")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "The source gives other rows each time it is read; store its result in a table.")]
    Appeared { what: &'static str, value: String },
    #[error("column \"{column}\" has more than {categories} categories: one more was found")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "A column has at most {MAX_CATEGORIES} categories of {} MB in all; with option hash their number does not matter.", MAX_CATEGORIES_BYTES / 1_000_000)]
    TooManyCategories { column: String, categories: usize },
    #[error("category of column \"{0}\" is too long ({1} bytes)")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "Categories are at most {MAX_TEXT_BYTES} bytes long, unless the column is hashed: option hash.")]
    CategoryTooLong(String, usize),
    #[error("array of column \"{0}\" has {1} dimensions")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Arrays of labels, indices and values have one dimension.")]
    ColumnDimensions(String, usize),
    #[error("array of column \"{}\" has {} elements, that of column \"{}\" {}", columns[0], lengths[0], columns[1], lengths[1])]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Each index needs its value.")]
    Lengths { columns: [String; 2], lengths: [usize; 2] },
    #[error("index {index} of column \"{column}\" is below {base}")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "{}", match *index < 0 {
        true => "Indices are not negative.",
        false => "If indices count from 0, say so by index_base: 0.",
    })]
    IndexBelow { column: String, index: i64, base: i64 },
    #[error("index {index} of column \"{column}\" is above {last}")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => match (of_model, said) {
        (true, _) => "The model has no weight for it. With handle_unknown => 'ignore' it counts as 0; the option dimensions gives it a weight.".to_owned(),
        (false, true) => "Raise dimensions, or leave it out.".to_owned(),
        (false, false) => format!("A model has at most {MAX_WEIGHTS} weights."),
    })]
    IndexBeyond { column: String, index: i64, last: i64, said: bool, of_model: bool },
    #[error("index {index} of column \"{column}\" is there twice")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Add up the values of an index that is there twice.")]
    IndexTwice { column: String, index: i64 },
    #[error("label is too long ({0} bytes)")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "Labels are at most {MAX_TEXT_BYTES} bytes long.")]
    LabelTooLong(usize),
    #[error("compressed features are damaged ({0})")]
    #[report(ERRCODE_DATA_CORRUPTED => "Make the table again with corgipile_compress().")]
    Compressed(String),
    #[error("compressed features have {columns} columns, more than {limit},")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "A model has at most {MAX_WEIGHTS} weights.")]
    TooManyColumns { columns: usize, limit: usize },
    #[error("{0} labels instead of {1}, as many as the compressed features have rows,")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "corgipile_compress() writes tables with a label for each row.")]
    LabelCount(usize, usize),
    #[error("label {0} is neither -1 nor 1")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{LABELS}")]
    NotASign(f64),
    #[error("label {label} is no class number from 0 to {}", classes - 1)]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{LABELS}")]
    NotAClass { label: f64, classes: usize },
}

impl RowFault {
    /// Is it a NULL, which can be left out?
    pub fn is_null(&self) -> bool {
        self.sqlstate() == Code::ERRCODE_NULL_VALUE_NOT_ALLOWED
    }

    /// The error about the row that stands there.
    pub fn at(self: Box<RowFault>, place: Place) -> DecoderError {
        DecoderError::Row { place, fault: self }
    }
}

/// What is wrong with one row.
#[derive(Debug, thiserror::Error, Report)]
pub enum DecoderError {
    #[error("{fault} in row {place}")]
    #[report(fault.sqlstate() => fault.hint())]
    Row { place: Place, fault: Box<RowFault> },
    #[error("{fault} in row {place}")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "Use nulls => 'skip' to leave out rows with NULLs and count them.")]
    /// of rows that are compressed
    NullInRow { place: Place, fault: Box<RowFault> },
}
