//! What is wrong with one row.

use super::words::in_words;
use crate::limits::{MAX_CATEGORIES, MAX_CATEGORIES_BYTES, MAX_GROUP_BYTES, MAX_TEXT_BYTES, MAX_WEIGHTS};
use pg::errors::{Code, Report};
use pg::tuples::place::Place;
use pg::values::array::ArrayFault;
use pg::values::number::NumberFault;
use pg::values::sparse::SparseFault;

const NULLS: &str = "With \"nulls\": \"impute\", the default, NULLs in features are replaced by means, and other rows with NULLs \
                     are left out; with \"skip\", all rows with NULLs are.";
const LEAVE_OUT: &str = "Correct such rows, or use a query as source that leaves them out.";
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
    #[error("column \"{column}\" has more than {limit} groups: one more was found")]
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
        "Model poisson predicts counts and amounts of at least 0. For numbers of any sign, use model => 'linear' \
         without the option loss, or a query as source that leaves such rows out.")]
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
    #[error("feature vector is damaged or has an unknown layout")]
    #[report(ERRCODE_DATA_CORRUPTED =>
        "Vectors are read in the layout of pgvector up to version 0.8; cast those of a later \
         version to real[] in a query.")]
    DamagedVector,
    #[error("feature vector has {dimensions} dimensions, more than {limit},")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "A model has at most {MAX_WEIGHTS} weights.")]
    TooManyDimensions { dimensions: usize, limit: usize },
    #[error("label column \"{column}\" has more than two values ({values}): a third was found")]
    #[report(ERRCODE_DATA_EXCEPTION =>
        "This model separates exactly two classes. To predict numbers, use model => 'linear'; for more classes, \
         model => 'softmax', 'svm_one_vs_rest' or 'mlp'; or combine the values into two classes with a query as source.")]
    ThirdClass { column: String, values: String },
    #[error("label column \"{column}\" has more than {limit} values: one more was found")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "To predict numbers, use model => 'linear' or 'mlp_regression'; values that differ from row to row, such \
         as names, cannot be a label.")]
    TooManyClasses { column: String, limit: usize },
    #[error("label column \"{column}\" has more than {few} values, not all integers ({value}): one more was found")]
    #[report(ERRCODE_DATA_EXCEPTION =>
        "To predict numbers, use model => 'linear' or 'mlp_regression'. If they are classes, cast them to text in a query.")]
    ContinuousLabel { column: String, few: usize, value: f64 },
    #[error("label {value} is not a label of the model")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "The model's labels are {known}.")]
    UnseenClass { value: String, known: String },
    #[error("category {value} of column \"{column}\" is unknown to the model")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{}", match continued {
        true => "A model that is trained on keeps its categories; leave such rows out with a query as source, or train again.",
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
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Arrays of labels, indices, values and words have one dimension.")]
    ColumnDimensions(String, usize),
    #[error("array of column \"{}\" has {} elements, that of column \"{}\" {}", columns[0], lengths[0], columns[1], lengths[1])]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "Give as many values as indices.")]
    Lengths { columns: [String; 2], lengths: [usize; 2] },
    #[error("index {index} of column \"{column}\" is below {base}")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "{}", match *index < 0 {
        true => "Indices are not negative.",
        false => "If indices count from 0, set index_base to 0.",
    })]
    IndexBelow { column: String, index: i64, base: i64 },
    #[error("index {index} of column \"{column}\" is above {last}")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => match (of_model, said) {
        (true, _) => "The model has no weight for it. With handle_unknown => 'ignore' it counts as 0; the option dimensions gives it a weight.".to_owned(),
        (false, true) => "Raise dimensions, or leave it out.".to_owned(),
        (false, false) => format!("A model has at most {MAX_WEIGHTS} weights."),
    })]
    IndexBeyond { column: String, index: i64, last: i64, said: bool, of_model: bool },
    #[error("index {index} of column \"{column}\" appears twice")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "An index may appear only once in a row: add up its values.")]
    IndexTwice { column: String, index: i64 },
    #[error("label is too long ({0} bytes)")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "Labels are at most {MAX_TEXT_BYTES} bytes long.")]
    LabelTooLong(usize),
    #[error("compressed features are damaged ({0})")]
    #[report(ERRCODE_DATA_CORRUPTED => "Create the table again with corgipile_compress().")]
    Compressed(String),
    #[error("compressed features have {columns} columns, more than {limit},")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "A model has at most {MAX_WEIGHTS} weights.")]
    TooManyColumns { columns: usize, limit: usize },
    #[error("{0} labels for {1} rows of compressed features")]
    #[report(ERRCODE_ARRAY_ELEMENT_ERROR => "corgipile_compress() writes tables with a label for each row.")]
    LabelCount(usize, usize),
    #[error("label {0} is neither -1 nor 1")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{LABELS}")]
    NotASign(f64),
    #[error("label {label} is not a class number from 0 to {}", classes - 1)]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{LABELS}")]
    NotAClass { label: f64, classes: usize },
}

impl RowFault {
    /// What is wrong with a number.
    #[cold]
    pub fn of_number(fault: NumberFault, name: String) -> RowFault {
        match fault {
            NumberFault::NotFinite(value) => RowFault::NotFinite(name, value),
            NumberFault::OutOfRange(value) => RowFault::OutOfRange(name, value),
        }
    }

    /// What is wrong with a vector, of which `expected` numbers were to be read.
    #[cold]
    pub fn of_vector(fault: ArrayFault, expected: usize, name: impl Fn(usize) -> String) -> RowFault {
        match fault {
            ArrayFault::Null(i) => RowFault::NullFeature(name(i)),
            ArrayFault::Number(i, fault) => RowFault::of_number(fault, name(i)),
            ArrayFault::Length(0) => RowFault::Empty,
            ArrayFault::Length(found) => RowFault::Length(found, expected),
            ArrayFault::Dimensions(n) => RowFault::Dimensions(n),
            ArrayFault::Damaged => RowFault::DamagedVector,
        }
    }

    /// What is wrong with sparse features in columns of indices and of values, or in one that is both.
    #[cold]
    pub fn of_sparse(
        fault: SparseFault,
        [indices, values]: [&str; 2],
        (base, dim): (i64, usize),
        name: impl Fn(i64) -> String,
    ) -> RowFault {
        let of_array = |fault, column: &str| match fault {
            ArrayFault::Null(i) => RowFault::NullElement(column.to_owned(), i),
            ArrayFault::Dimensions(n) => RowFault::ColumnDimensions(column.to_owned(), n),
            // none of these is found by looking at elements
            fault => RowFault::of_vector(fault, dim, |i| name(i as i64)),
        };
        let column = indices.to_owned();
        match fault {
            SparseFault::Indices(fault) => of_array(fault, indices),
            SparseFault::Values(fault) => of_array(fault, values),
            SparseFault::Lengths(n, m) => RowFault::Lengths { columns: [column, values.to_owned()], lengths: [n, m] },
            SparseFault::Below(index) => RowFault::IndexBelow { column, index, base },
            SparseFault::Beyond(index) => {
                RowFault::IndexBeyond { column, index, last: base + dim as i64 - 1, said: true, of_model: false }
            }
            SparseFault::Twice(index) => RowFault::IndexTwice { column, index },
            SparseFault::Value(index, fault) => RowFault::of_number(fault, name(index)),
            SparseFault::Damaged => RowFault::DamagedVector,
            SparseFault::Dimensions(found) => RowFault::Length(found, dim),
        }
    }

    /// Is it a NULL, which can be left out?
    pub fn is_null(&self) -> bool {
        self.sqlstate() == Code::ERRCODE_NULL_VALUE_NOT_ALLOWED
    }

    /// The error about the row that stands there.
    pub fn at(self: Box<RowFault>, place: Place) -> DecoderError {
        DecoderError::Row { place, fault: self }
    }
}

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
