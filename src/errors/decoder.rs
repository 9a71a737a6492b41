//! What is wrong with one row.

use super::words::in_words;
use crate::limits::{MAX_CATEGORIES, MAX_CATEGORIES_BYTES, MAX_GROUP_BYTES, MAX_TEXT_BYTES, MAX_WEIGHTS};
use pg::errors::{Code, Report};
use pg::tuples::place::Place;

/// What is wrong with one row; [`DecoderError::Row`] adds where it stands.
#[derive(Debug, thiserror::Error)]
pub enum RowFault {
    #[error("label is NULL")]
    NullLabel,
    #[error("features are NULL")]
    NullFeatures,
    #[error("feature {0} is NULL")]
    NullFeature(String),
    #[error("weight is NULL")]
    NullWeight,
    #[error("group is NULL")]
    NullGroup,
    #[error("time is NULL")]
    NullTime,
    #[error("validation flag is NULL")]
    NullValidation,
    #[error("column \"{column}\" has more than {limit} values to make groups of: one more was found")]
    TooManyGroups { column: String, limit: usize },
    #[error("group is too long ({0} bytes)")]
    GroupTooLong(usize),
    #[error("element {1} of column \"{0}\" is NULL")]
    NullElement(String, usize),
    #[error("label is {}", in_words(*.0))]
    LabelNotFinite(f64),
    #[error("label is out of range for type real: {0:e}")]
    LabelOutOfRange(f64),
    #[error("label {0} is negative")]
    NegativeLabel(f64),
    #[error("weight is {}", in_words(*.0))]
    WeightNotFinite(f64),
    #[error("weight is out of range for type real: {0:e}")]
    WeightOutOfRange(f64),
    #[error("weight {0} is negative")]
    NegativeWeight(f64),
    #[error("feature {0} is {value}", value = in_words(*.1))]
    NotFinite(String, f64),
    #[error("feature {0} is out of range for type real: {1:e}")]
    OutOfRange(String, f64),
    #[error("{0} features instead of {1}")]
    Length(usize, usize),
    #[error("feature array has {0} dimensions")]
    Dimensions(usize),
    #[error("feature array is empty")]
    Empty,
    #[error("feature vector is damaged, or has a layout that is not known,")]
    DamagedVector,
    #[error("feature vector has {dimensions} dimensions, more than {limit},")]
    TooManyDimensions { dimensions: usize, limit: usize },
    #[error("label column \"{column}\" has more than two values ({values}): a third was found")]
    ThirdClass { column: String, values: String },
    #[error("label column \"{column}\" has more than {limit} values: one more was found")]
    TooManyClasses { column: String, limit: usize },
    #[error("label column \"{column}\" has more than {few} values, not all whole ({value}): one more was found")]
    ContinuousLabel { column: String, few: usize, value: f64 },
    #[error("label {value}, which the model was not trained on,")]
    UnseenClass { value: String, known: String },
    #[error("category {value} of column \"{column}\", which the model was not trained on,")]
    UnseenCategory { column: String, value: String, continued: bool },
    #[error("{what} {value} was not there in the pass before the first epoch, but is now")]
    Appeared { what: &'static str, value: String },
    #[error("column \"{column}\" has more than {categories} categories: one more was found")]
    TooManyCategories { column: String, categories: usize },
    #[error("category of column \"{0}\" is too long ({1} bytes)")]
    CategoryTooLong(String, usize),
    #[error("array of column \"{0}\" has {1} dimensions")]
    ColumnDimensions(String, usize),
    #[error("array of column \"{}\" has {} elements, that of column \"{}\" {}", columns[0], lengths[0], columns[1], lengths[1])]
    Lengths { columns: [String; 2], lengths: [usize; 2] },
    #[error("index {index} of column \"{column}\" is below {base}")]
    IndexBelow { column: String, index: i64, base: i64 },
    #[error("index {index} of column \"{column}\" is above {last}")]
    IndexBeyond { column: String, index: i64, last: i64, said: bool, of_model: bool },
    #[error("index {index} of column \"{column}\" is there twice")]
    IndexTwice { column: String, index: i64 },
    #[error("label is too long ({0} bytes)")]
    LabelTooLong(usize),
    #[error("compressed features are damaged ({0})")]
    Compressed(String),
    #[error("compressed features have {columns} columns, more than {limit},")]
    TooManyColumns { columns: usize, limit: usize },
    #[error("{0} labels instead of {1}, as many as the compressed features have rows,")]
    LabelCount(usize, usize),
    #[error("label {0} is neither -1 nor 1")]
    NotASign(f64),
    #[error("label {label} is no class number from 0 to {}", classes - 1)]
    NotAClass { label: f64, classes: usize },
}

impl RowFault {
    fn sqlstate(&self) -> Code {
        use RowFault as R;
        match self {
            R::NullLabel
            | R::NullFeatures
            | R::NullFeature(..)
            | R::NullWeight
            | R::NullElement(..)
            | R::NullGroup
            | R::NullTime
            | R::NullValidation => Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            R::LabelNotFinite(..)
            | R::LabelOutOfRange(..)
            | R::NegativeLabel(..)
            | R::NotFinite(..)
            | R::OutOfRange(..)
            | R::WeightNotFinite(..)
            | R::WeightOutOfRange(..)
            | R::NegativeWeight(..) => Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            R::Compressed(..) | R::DamagedVector => Code::ERRCODE_DATA_CORRUPTED,
            R::LabelCount(..)
            | R::Length(..)
            | R::Dimensions(..)
            | R::Empty
            | R::ColumnDimensions(..)
            | R::Lengths { .. }
            | R::IndexBelow { .. }
            | R::IndexBeyond { .. }
            | R::IndexTwice { .. } => Code::ERRCODE_ARRAY_ELEMENT_ERROR,
            R::ThirdClass { .. } | R::ContinuousLabel { .. } => Code::ERRCODE_DATA_EXCEPTION,
            R::UnseenClass { .. } | R::UnseenCategory { .. } | R::NotASign(_) | R::NotAClass { .. } => {
                Code::ERRCODE_INVALID_PARAMETER_VALUE
            }
            R::Appeared { .. } => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            R::TooManyColumns { .. }
            | R::TooManyDimensions { .. }
            | R::LabelTooLong(..)
            | R::CategoryTooLong(..)
            | R::TooManyClasses { .. }
            | R::TooManyGroups { .. }
            | R::GroupTooLong(..)
            | R::TooManyCategories { .. } => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        }
    }

    /// Is it a NULL, which can be left out?
    pub fn is_null(&self) -> bool {
        self.sqlstate() == Code::ERRCODE_NULL_VALUE_NOT_ALLOWED
    }

    /// What the user can do about it.
    fn hint(&self) -> Option<String> {
        use RowFault as R;
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            fault if fault.is_null() => fixed(
                "With \"nulls\": \"impute\", the default, means stand for NULLs in features, and other rows with NULLs are \
                     left out; with \"skip\", all are.",
            ),
            R::NegativeLabel(..) => fixed(
                "Model poisson predicts counts and amounts of at least 0. For numbers of any sign say model => 'linear' without \
                 the option loss, or leave such rows out with a query as source.",
            ),
            fault if fault.sqlstate() == Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => {
                fixed("Leave such rows out with a query as source, or correct them.")
            }
            R::ThirdClass { .. } => fixed(
                "A model of this kind tells exactly two classes apart. For numbers to be predicted say model => 'linear', for more classes model => 'softmax', 'svm_one_vs_rest' or 'mlp'; or make two \
                 classes of them with a query as source.",
            ),
            R::ContinuousLabel { .. } => fixed(
                "For numbers to be predicted say model => 'linear' or 'mlp_regression'. If they are classes, cast them to text in a query.",
            ),
            R::TooManyClasses { .. } => fixed(
                "For numbers to be predicted say model => 'linear' or 'mlp_regression'; what differs from row to row, such as a name, is no label.",
            ),
            R::UnseenCategory { continued: true, .. } => fixed(
                "A model that is trained on keeps its categories; leave such rows out with a query as source, or train anew.",
            ),
            R::UnseenCategory { .. } => fixed(
                "With unseen => 'zero' in the call, or in the options of the training, it counts as none of those that are known.",
            ),
            R::Appeared { .. } => {
                fixed("The source gives other rows each time it is read; store its result in a table.")
            }
            R::TooManyCategories { .. } => Some(format!(
                "A column has at most {MAX_CATEGORIES} categories of {} MB in all; with option hash their number does not matter.",
                MAX_CATEGORIES_BYTES / 1_000_000
            )),
            R::CategoryTooLong(..) => Some(format!(
                "Categories are at most {MAX_TEXT_BYTES} bytes long, unless the column is hashed: option hash."
            )),
            R::UnseenClass { known, .. } => Some(format!("The model knows the labels {known}.")),
            R::NotASign(_) | R::NotAClass { .. } => fixed(
                "Labels are -1 and 1 for logistic and svm, class numbers from 0 for softmax and svm_one_vs_rest, numbers of at least 0 for poisson, any \
                 numbers for linear.",
            ),
            R::LabelCount(..) => fixed("corgipile_compress() writes tables with a label for each row."),
            R::LabelTooLong(..) => Some(format!("Labels are at most {MAX_TEXT_BYTES} bytes long.")),
            R::TooManyGroups { .. } => fixed("Group by a column with fewer values, or combine rare ones in a query."),
            R::GroupTooLong(..) => {
                Some(format!("Groups are at most {MAX_GROUP_BYTES} bytes long: they become part of the models' names."))
            }
            _ => self.hint_of_features(),
        }
    }

    fn hint_of_features(&self) -> Option<String> {
        use RowFault as R;
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            R::Length(..) | R::Dimensions(..) | R::Empty => {
                fixed("All feature arrays, vectors or byte strings have the same length, and arrays one dimension.")
            }
            R::ColumnDimensions(..) => fixed("Arrays of labels, indices and values have one dimension."),
            R::Lengths { .. } => fixed("Each index needs its value."),
            R::IndexBelow { index: ..0, .. } => fixed("Indices are not negative."),
            R::IndexBelow { .. } => fixed("If indices count from 0, say so by index_base: 0."),
            R::IndexBeyond { of_model: true, .. } => fixed(
                "The model has no weight for it. With unseen => 'zero' it counts as 0; the option dimensions gives it a weight.",
            ),
            R::IndexBeyond { said: true, .. } => fixed("Raise dimensions, or leave it out."),
            R::IndexBeyond { .. } => Some(format!("A model has at most {MAX_WEIGHTS} weights.")),
            R::IndexTwice { .. } => fixed("Add up the values of an index that is there twice."),
            R::DamagedVector => fixed(
                "Vectors are read as pgvector has stored them up to version 0.8; those of a later one are to be cast \
                 to real[] in a query.",
            ),
            R::TooManyColumns { .. } | R::TooManyDimensions { .. } => {
                Some(format!("A model has at most {MAX_WEIGHTS} weights."))
            }
            R::Compressed(..) => fixed("Make the table again with corgipile_compress()."),
            _ => None,
        }
    }

    /// The error about the row that stands there.
    pub fn at(self: Box<RowFault>, place: Place) -> DecoderError {
        DecoderError::Row { place, fault: self }
    }
}

/// What is wrong with one row.
#[derive(Debug, thiserror::Error)]
pub enum DecoderError {
    #[error("{fault} in row {place}")]
    Row { place: Place, fault: Box<RowFault> },
    #[error("{fault} in row {place}")]
    /// of rows that are compressed
    NullInRow { place: Place, fault: Box<RowFault> },
}

impl Report for DecoderError {
    fn sqlstate(&self) -> Code {
        match self {
            DecoderError::Row { fault, .. } => fault.sqlstate(),
            DecoderError::NullInRow { .. } => Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            DecoderError::Row { fault, .. } => fault.hint(),
            DecoderError::NullInRow { .. } => {
                Some("Use nulls => 'skip' to leave out rows with NULLs and count them.".into())
            }
        }
    }
}
