//! The only place where our errors become SQLSTATE, message, detail and hint.
//!
//! Everything a user can do wrong is a variant here; code returns `Result<_, Error>` and the boundary to
//! PostgreSQL calls [`OrRaise::or_raise`]. Errors that PostgreSQL itself raises pass through, as far as pgrx lets them:
//! it raises them anew with SQLSTATE, message, detail and hint, and drops the position in the query.

use crate::pg;
use pgrx::pg_sys::errcodes::PgSqlErrorCode as Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;
use std::fmt::Write;

/// `Result` with our error.
pub type Result<T> = std::result::Result<T, Error>;

/// Where a row stands in the training source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowAt {
    /// block and offset of the row's ctid
    Ctid(u32, u16),
    /// the same in one of several tables, by its OID
    CtidOf(u32, u32, u16),
    /// 1-based number in the order in which the source query gave its rows
    Number(u64),
    /// 1-based number in the order in which rows came that may have been shuffled
    Read(u64),
}

impl std::fmt::Display for RowAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RowAt::Ctid(block, offset) => write!(f, "({block},{offset})"),
            RowAt::CtidOf(table, block, offset) => {
                let table = pg::catalog::relation::name_of((*table).into());
                write!(f, "({block},{offset}) of {table}")
            }
            RowAt::Number(n) => write!(f, "number {n} of the source"),
            RowAt::Read(n) => write!(f, "number {n} in the order of reading"),
        }
    }
}

/// What is wrong with one row; [`Error::Row`] adds where it stands.
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
    #[error("label column \"{column}\" has more than two values ({values}): the third was found")]
    ThirdClass { column: String, values: String },
    #[error("label column \"{column}\" has more than {limit} values: one more was found")]
    TooManyClasses { column: String, limit: usize },
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
    fn code(&self) -> Code {
        use RowFault as R;
        match self {
            R::NullLabel
            | R::NullFeatures
            | R::NullFeature(..)
            | R::NullWeight
            | R::NullElement(..)
            | R::NullGroup
            | R::NullValidation => Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            R::LabelNotFinite(..)
            | R::LabelOutOfRange(..)
            | R::NotFinite(..)
            | R::OutOfRange(..)
            | R::WeightNotFinite(..)
            | R::WeightOutOfRange(..)
            | R::NegativeWeight(..) => Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            R::Compressed(..) => Code::ERRCODE_DATA_CORRUPTED,
            R::LabelCount(..)
            | R::Length(..)
            | R::Dimensions(..)
            | R::Empty
            | R::ColumnDimensions(..)
            | R::Lengths { .. }
            | R::IndexBelow { .. }
            | R::IndexBeyond { .. }
            | R::IndexTwice { .. } => Code::ERRCODE_ARRAY_ELEMENT_ERROR,
            R::ThirdClass { .. } => Code::ERRCODE_DATA_EXCEPTION,
            R::UnseenClass { .. } | R::UnseenCategory { .. } | R::NotASign(_) | R::NotAClass { .. } => {
                Code::ERRCODE_INVALID_PARAMETER_VALUE
            }
            R::Appeared { .. } => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            R::TooManyColumns { .. }
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
        self.code() == Code::ERRCODE_NULL_VALUE_NOT_ALLOWED
    }

    /// The error about the row that stands there.
    pub fn at(self: Box<RowFault>, at: RowAt) -> Error {
        Error::Row { at, fault: self }
    }
}

/// Why a bare name does not say which model is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerNeeded {
    /// a superuser may use all models
    Superuser,
    /// it was granted to everybody, and another role has a model of that name
    Public,
    /// it begins as the name of another role's model would
    BeginsWithRole,
}

/// Every error that corgipile raises itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{fault} in row {at}")]
    Row { at: RowAt, fault: Box<RowFault> },
    #[error("{fault} in row {at}")]
    /// of rows that are compressed
    NullInRow { at: RowAt, fault: Box<RowFault> },
    #[error("argument \"{0}\" must not be null")]
    NullArgument(&'static str),
    #[error("unknown {} \"{given}\"", singular(what))]
    /// `what` in the plural
    Unknown { what: &'static str, given: String, known: String },
    #[error("invalid value for argument \"{argument}\": {reason}")]
    InvalidArgument { argument: &'static str, reason: String, hint: Option<String> },
    #[error("option \"{key}\" {reason}")]
    InvalidOption { key: String, reason: String },
    #[error("options must be a JSON object")]
    OptionsNotAnObject,
    #[error("source must be a table or exactly one SELECT")]
    NotOneSelect,
    #[error("source must not modify data or lock rows")]
    NotReadOnly,
    #[error("column \"{column}\" does not exist in the source")]
    UndefinedColumn { column: String, columns: Vec<String> },
    #[error("column \"{0}\" is ambiguous in the source")]
    AmbiguousColumn(String),
    #[error("{role} column \"{column}\" has type {type_name}")]
    ColumnType { role: &'static str, column: String, type_name: String, hint: &'static str },
    #[error("there is no relation with OID {0}")]
    NoRelation(u32),
    #[error("\"{name}\" has no pages of its own to be read")]
    NoFiles { name: String, partitioned: bool },
    #[error("\"{0}\" is a temporary table of another session")]
    OtherTemporary(String),
    #[error("the table has {pages} pages, too few to measure how fast blocks are read")]
    TooFewPages { pages: u32, least: u32 },
    #[error("could not read file \"{0}\": {1}")]
    File(String, String),
    #[error("there are no features in the source")]
    NoFeatures { hint: String },
    #[error("no row has a feature: all index arrays are empty")]
    NoIndices,
    #[error("there are no rows to {0}")]
    NoRows(&'static str),
    #[error("label column \"{column}\" has only one value: {value}")]
    OneClass { column: String, value: String },
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
    #[error("{models} models of {dim} features are too many to be trained side by side")]
    TooManyModels { models: usize, dim: usize },
    #[error("training diverged in epoch {epoch}: the loss or a weight is no longer finite")]
    Diverged { epoch: u32, standardized: bool },
    #[error("all models of the call have more than {limit} epochs together")]
    TooManyEpochs { limit: usize },
    #[error("model {0} does not exist")]
    NoModelId(i64),
    #[error("model \"{0}\" does not exist")]
    NoModelName(String),
    #[error("permission denied for model {0}")]
    ModelPermission(i64),
    #[error("a model named \"{0}\" exists already")]
    ModelExists(String),
    #[error("{} has {expected} features, {given} given", the_model(*model_id))]
    PredictLength { model_id: i64, expected: usize, given: usize },
    #[error("feature {0} is NULL")]
    PredictNull(String),
    #[error("feature {feature} is {}", in_words(*value))]
    PredictNotFinite { feature: String, value: f64 },
    #[error("feature {feature} is out of range for type real: {value:e}")]
    PredictOutOfRange { feature: String, value: f64 },
    #[error("a decision of {}{} is out of range for type real", the_model(*model_id), row.map_or(String::new(), |row| format!(" for row number {row} of those evaluated")))]
    /// `row` if several are asked for
    DecisionOutOfRange { model_id: i64, row: Option<u64> },
    #[error("feature array has {0} dimensions")]
    PredictDimensions(usize),
    #[error("features must be an array of numbers, not of type {0}")]
    PredictType(String),
    #[error("indices must be an array of integers, not of type {0}")]
    PredictIndexType(String),
    #[error("{indices} indices given, but {values} values")]
    PredictLengths { indices: usize, values: usize },
    #[error("index {0} of the given is NULL")]
    PredictNullIndex(usize),
    #[error("index {index} is less than {base}, where the model's indices begin")]
    PredictIndexBelow { index: i64, base: u32 },
    #[error("index {index} is beyond {last}, the last of {}", the_model(*model_id))]
    PredictIndexBeyond { model_id: i64, index: i64, last: i64 },
    #[error("index {0} is given twice")]
    PredictIndexTwice(i64),
    #[error("{} has categories among its features, which an array cannot hold", the_model(*model_id))]
    PredictNeedsRow { model_id: i64, columns: String },
    #[error("the given row has no column \"{column}\", which is a feature of {}", the_model(*model_id))]
    PredictNoColumn { model_id: i64, column: String, columns: Vec<String> },
    #[error("the given row has more than one column \"{0}\"")]
    PredictColumnTwice(String),
    #[error("the feature columns of the source have other types than those that model {model_id} was trained on")]
    EvaluateTypes { model_id: i64, trained_on: String },
    #[error("category \"{value}\" of column \"{column}\" is unknown to {}", the_model(*model_id))]
    PredictCategory { model_id: i64, column: String, value: String },
    #[error("{} predicts text labels, which are not numbers", the_model(*.0))]
    TextLabels(i64),
    #[error("{} is a linear regression, which has no labels", the_model(*.0))]
    NoLabels(i64),
    #[error("{} is {kind}, which has no probabilities", the_model(*model_id))]
    NoProbabilities { model_id: i64, kind: &'static str },
    #[error("key \"{key}\" of the model {reason}")]
    InvalidModel { key: String, reason: String, hint: String },
    #[error("the model's numbers are {0} bytes of JSON, more than type jsonb can hold")]
    ModelTooLarge(usize),
    #[error("the tables of the source have too many pages together")]
    TooManyPages,
    #[error("out of memory: {0} bytes cannot be had")]
    OutOfMemory(usize),
    #[error("could not {verb} temporary file: {reason}")]
    TemporaryFile { verb: &'static str, reason: std::io::Error },
    #[error("stored model {0} cannot be read: {1}")]
    CorruptModel(i64, String),
    #[error("corgipile_shuffle() needs a table's row type")]
    NotARowType,
    #[error("the database's encoding is not UTF8")]
    Encoding,
    #[error("relation corgipile.{0} does not exist")]
    NoModelTable(String),
    #[error("relation \"{0}\" does not exist")]
    /// although it did when it was looked up
    Dropped(String),
    #[error("the table whose rows corgipile_shuffle() gives does not exist")]
    /// any more; its name is not known
    DroppedRowType,
    #[error("name of the training source changed while it was being looked up")]
    SourceChanged,
    #[error("table {0} was replaced, or given a rule, when it was made")]
    TableReplaced(String),
    #[error("invalid value for type corgipile.sgd_state: {0}")]
    MalformedState(String),
    #[error("a state of {0} bytes is larger than PostgreSQL's values may be")]
    StateTooLarge(usize),
    #[error("the state is that of an epoch that has not ended")]
    UnfinishedEpoch,
    #[error("the state is not that of an epoch that has begun")]
    NoEpoch,
    #[error("the states are of different trainings")]
    OtherState,
    #[error("the state is for {} features", if *.sparse { "sparse" } else { "dense" })]
    StateKind { sparse: bool },
    #[error("features must be arrays of numbers, not of type {0}")]
    FeatureType(String),
    #[error("{0} cannot be had with an aggregate")]
    NotByAggregate(&'static str),
    #[error("several processes cannot train with shuffle strategy {0}")]
    NotByWorkers(&'static str),
    #[error("{0} cannot be used with a compressed source")]
    NotOnCompressed(&'static str),
    #[error("a mini-batch cannot be compressed: {0}")]
    NotCompressible(String),
    #[error("there are no arrays of type {0}, which the label has")]
    LabelArray(String),
    #[error("the bytes are no value of type corgipile.toc: {0}")]
    MalformedTocBytes(String),
    #[error("page {page} of relation \"{table}\" is damaged: a line pointer points out of it")]
    DamagedPage { table: String, page: u32 },
    #[error("a value of type corgipile.toc is damaged: {0}")]
    DamagedToc(String),
    #[error("an array of {0} elements is too large")]
    TooManyElements(usize),
    #[error("{0} in an array that is to be a vector or a matrix")]
    NotAMatrix(String),
    #[error("malformed value of type corgipile.toc: {0}")]
    MalformedToc(String),
    #[error("element ({row}, {column}) is not in a matrix of {rows} rows and {columns} columns")]
    NoElement { row: i32, column: i32, rows: usize, columns: usize },
    #[error("a matrix of {rows} rows and {columns} columns cannot be multiplied with {with} numbers")]
    Product { rows: usize, columns: usize, with: String },
    #[error("could not store a version of model \"{0}\": another transaction has stored one meanwhile")]
    VersionConflict(String),
    #[error("could not store the model: sequence corgipile.models_model_id_seq gave a model_id that is taken")]
    SequenceBehind,
    #[error("there are several models named \"{name}\" that you may use")]
    /// `candidates` are names with owners, as literals
    AmbiguousModel { name: String, candidates: Vec<String> },
    #[error("model \"{name}\" has to be named with its owner")]
    OwnerNeeded { name: String, why: OwnerNeeded, candidates: Vec<String> },
    #[error("{0}")]
    /// with what is said of a model that does not exist
    LaterModel(String),
    #[error("there is no version {version} of model \"{name}\"")]
    NoVersion { name: String, version: i32 },
    #[error("must be owner of the model")]
    NotOwner,
    #[error("several processes cannot train with {0}")]
    NotSynchronized(&'static str),
    #[error("shuffle strategy {0} cannot train on rows that fall into groups or a validation part")]
    NotInGroups(&'static str),
    #[error("model {model_id} cannot be continued: {reason}")]
    WarmStart { model_id: i64, reason: String, hint: &'static str },
    #[error("model {model_id} cannot be continued: {reason}")]
    NotContinued { model_id: i64, reason: &'static str, hint: &'static str },
    #[error("the worker process has ended unexpectedly")]
    WorkerLost,
}

/// NaN and infinities as SQL writes them; a number beyond double precision has become an infinity.
fn in_words(value: f64) -> String {
    match value {
        f64::INFINITY => "Infinity or out of range".into(),
        f64::NEG_INFINITY => "-Infinity or out of range".into(),
        value => value.to_string(),
    }
}

/// Is this the name of a column of ROW(...): f1, f2, ...?
fn is_made_up(column: &str) -> bool {
    column.strip_prefix('f').is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// One of what is named in the plural.
fn singular(plural: &str) -> String {
    match plural.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => plural.trim_end_matches('s').to_owned(),
    }
}

/// What a model is called: by its id, if it is not one that was given as a value.
fn the_model(id: i64) -> String {
    if id == crate::models::GIVEN_ID { "the given model".to_owned() } else { format!("model {id}") }
}

/// Some of several names.
fn alternatives(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = if names.len() > SHOWN { format!(", or one of {} others", names.len() - SHOWN) } else { String::new() };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(" or "))
}

impl OwnerNeeded {
    fn reason(self) -> &'static str {
        match self {
            OwnerNeeded::Superuser => "The bare names of a superuser are those of the superuser's own models.",
            OwnerNeeded::Public => {
                "A model that was granted to public goes by its bare name only while no other role has a model of that name."
            }
            OwnerNeeded::BeginsWithRole => "It begins with the name of a role, as a name of that role's models does.",
        }
    }
}

/// The beginning of a user's value: as much as a message has room for.
pub fn excerpt(value: &str) -> String {
    const ROOM: usize = 60;
    if value.chars().count() <= ROOM {
        value.to_owned()
    } else {
        value.chars().take(ROOM).chain("...".chars()).collect()
    }
}

impl From<tuples::OutOfMemory> for Error {
    fn from(e: tuples::OutOfMemory) -> Self {
        Error::OutOfMemory(e.bytes)
    }
}

impl Error {
    fn code(&self) -> Code {
        match self {
            Error::Row { fault, .. } => fault.code(),
            Error::NullInRow { .. } | Error::NullArgument(_) | Error::PredictNull(_) | Error::PredictNullIndex(_) => {
                Code::ERRCODE_NULL_VALUE_NOT_ALLOWED
            }
            Error::PredictCategory { .. }
            | Error::Unknown { .. }
            | Error::InvalidArgument { .. }
            | Error::InvalidModel { .. }
            | Error::InvalidOption { .. }
            | Error::NoSuchClass { .. }
            | Error::OptionsNotAnObject => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            Error::NoRelation(_) => Code::ERRCODE_UNDEFINED_TABLE,
            Error::NoFiles { .. } => Code::ERRCODE_WRONG_OBJECT_TYPE,
            Error::TooFewPages { .. } => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            Error::File(..) => Code::ERRCODE_IO_ERROR,
            Error::NotOneSelect => Code::ERRCODE_SYNTAX_ERROR,
            Error::NotReadOnly
            | Error::OtherTemporary(_)
            | Error::Encoding
            | Error::TextLabels(_)
            | Error::NoLabels(_)
            | Error::PredictNeedsRow { .. }
            | Error::NoProbabilities { .. } => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            Error::UndefinedColumn { .. } | Error::NoFeatures { .. } | Error::PredictNoColumn { .. } => {
                Code::ERRCODE_UNDEFINED_COLUMN
            }
            Error::AmbiguousColumn(_) | Error::PredictColumnTwice(_) => Code::ERRCODE_AMBIGUOUS_COLUMN,
            Error::ColumnType { .. }
            | Error::PredictType(_)
            | Error::PredictIndexType(_)
            | Error::EvaluateTypes { .. }
            | Error::NotARowType => Code::ERRCODE_DATATYPE_MISMATCH,
            Error::LabelValue { .. } => Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            Error::TooManyWeights { .. }
            | Error::TooManyModels { .. }
            | Error::TooManyEpochs { .. }
            | Error::NetworkTooLarge { .. } => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Error::NoRows(_) | Error::OneClass { .. } | Error::NoWeight | Error::NoIndices => {
                Code::ERRCODE_DATA_EXCEPTION
            }
            Error::Diverged { .. }
            | Error::PredictNotFinite { .. }
            | Error::PredictOutOfRange { .. }
            | Error::DecisionOutOfRange { .. } => Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            Error::NoModelId(_) | Error::NoModelName(_) | Error::LaterModel(_) => Code::ERRCODE_UNDEFINED_OBJECT,
            Error::ModelPermission(_) | Error::NotOwner => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            Error::VersionConflict(_) => Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
            Error::SequenceBehind => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            Error::AmbiguousModel { .. } | Error::OwnerNeeded { .. } => Code::ERRCODE_AMBIGUOUS_PARAMETER,
            Error::NoVersion { .. } => Code::ERRCODE_UNDEFINED_OBJECT,
            Error::ModelExists(_) => Code::ERRCODE_DUPLICATE_OBJECT,
            Error::PredictLength { .. }
            | Error::PredictLengths { .. }
            | Error::PredictDimensions(_)
            | Error::PredictIndexBelow { .. }
            | Error::PredictIndexBeyond { .. }
            | Error::PredictIndexTwice(_) => Code::ERRCODE_ARRAY_ELEMENT_ERROR,
            Error::TooManyPages | Error::ModelTooLarge(_) => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Error::OutOfMemory(_) => Code::ERRCODE_OUT_OF_MEMORY,
            Error::TemporaryFile { reason, .. } if reason.kind() == std::io::ErrorKind::StorageFull => {
                Code::ERRCODE_DISK_FULL
            }
            Error::TemporaryFile { .. } => Code::ERRCODE_IO_ERROR,
            Error::CorruptModel(..) => Code::ERRCODE_DATA_CORRUPTED,
            Error::NoModelTable(_) | Error::Dropped(_) | Error::DroppedRowType => Code::ERRCODE_UNDEFINED_TABLE,
            Error::SourceChanged | Error::TableReplaced(_) => Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
            Error::MalformedTocBytes(_) => Code::ERRCODE_INVALID_BINARY_REPRESENTATION,
            Error::DamagedToc(_) | Error::DamagedPage { .. } => Code::ERRCODE_DATA_CORRUPTED,
            Error::NotAMatrix(_) => Code::ERRCODE_ARRAY_ELEMENT_ERROR,
            Error::LabelArray(_) => Code::ERRCODE_DATATYPE_MISMATCH,
            Error::NotCompressible(_) | Error::TooManyElements(_) => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Error::MalformedToc(_) => Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            Error::NoElement { .. } | Error::Product { .. } => Code::ERRCODE_ARRAY_ELEMENT_ERROR,
            Error::MalformedState(_) => Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            Error::StateTooLarge(_) => Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            Error::UnfinishedEpoch | Error::NoEpoch | Error::OtherState | Error::StateKind { .. } => {
                Code::ERRCODE_INVALID_PARAMETER_VALUE
            }
            Error::FeatureType(_) => Code::ERRCODE_DATATYPE_MISMATCH,
            Error::NotByAggregate(_)
            | Error::NotByWorkers(_)
            | Error::NotOnCompressed(_)
            | Error::NotSynchronized(_)
            | Error::NotInGroups(_)
            | Error::NotContinued { .. } => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            Error::WarmStart { .. } => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            Error::WorkerLost => Code::ERRCODE_INTERNAL_ERROR,
        }
    }

    fn hint(&self) -> Option<String> {
        use RowFault as R;
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            Error::Row { fault, .. } => match fault.as_ref() {
                fault if fault.is_null() => {
                    fixed("Train with options => '{\"nulls\": \"skip\"}' to leave out rows with NULLs and count them.")
                }
                fault if fault.code() == Code::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE => {
                    fixed("Leave such rows out with a query as source, or correct them.")
                }
                R::Length(..) | R::Dimensions(..) | R::Empty => {
                    fixed("All feature arrays must have one dimension and the same length.")
                }
                R::ThirdClass { .. } => fixed(
                    "Models logistic and svm tell exactly two classes apart; use model softmax or mlp, or a query as source that \
                     makes two of them.",
                ),
                R::TooManyClasses { .. } => fixed("Use model linear for numbers that are no classes."),
                R::ColumnDimensions(..) => fixed("Arrays of labels, indices and values have one dimension."),
                R::Lengths { .. } => fixed("Each index needs its value."),
                R::IndexBelow { index: ..0, .. } => fixed("Indices are not negative."),
                R::IndexBelow { .. } => fixed("If indices count from 0, say so by index_base: 0."),
                R::IndexBeyond { of_model: true, .. } => fixed(
                    "The model has no weight for it. Train with options => '{\"unseen\": \"zero\"}' to ignore such indices, \
                     or with the option dimensions.",
                ),
                R::IndexBeyond { said: true, .. } => fixed("Raise dimensions, or leave it out."),
                R::IndexBeyond { .. } => fixed("A model has at most 134217727 weights."),
                R::IndexTwice { .. } => fixed("Add up the values of an index that is there twice."),
                R::UnseenCategory { continued: true, .. } => fixed(
                    "A model that is trained on keeps its categories; leave such rows out with a query as source, or train anew.",
                ),
                R::UnseenCategory { .. } => fixed(
                    "Train with options => '{\"unseen\": \"zero\"}' to ignore categories that are new in prediction.",
                ),
                R::Appeared { .. } => {
                    fixed("The source gives other rows each time it is read; store its result in a table.")
                }
                R::TooManyCategories { .. } => fixed(
                    "A column has at most 1000000 categories of 100 MB in all; leave it out, or combine its rare values.",
                ),
                R::CategoryTooLong(..) => fixed("Categories are at most 8191 bytes long."),
                R::UnseenClass { known, .. } => Some(format!("The model knows the labels {known}.")),
                R::NotASign(_) | R::NotAClass { .. } => fixed(
                    "Labels are -1 and 1 for logistic and svm, class numbers from 0 for softmax, any numbers for linear.",
                ),
                R::TooManyColumns { .. } => fixed("A model has at most 134217727 weights."),
                R::Compressed(..) => fixed("Make the table again with corgipile_compress()."),
                R::LabelCount(..) => fixed("corgipile_compress() writes tables with a label for each row."),
                R::LabelTooLong(..) => fixed("Labels are at most 8191 bytes long."),
                R::TooManyGroups { .. } => {
                    fixed("Group by a column with fewer values, or combine rare ones in a query.")
                }
                R::GroupTooLong(..) => {
                    fixed("Groups are at most 512 bytes long: they become part of the models' names.")
                }
                _ => None,
            },
            Error::Encoding => fixed("Use corgipile in a database with the encoding UTF8."),
            Error::NoModelTable(_) => fixed("Extension corgipile was dropped meanwhile, or its table renamed."),
            Error::Dropped(_) => fixed("It was dropped while the statement waited for it."),
            Error::DroppedRowType => fixed("It was dropped; prepare the statement anew, or run DISCARD PLANS."),
            Error::Unknown { what, known, .. } => Some(format!("Known {what} are: {known}.")),
            Error::InvalidArgument { hint, .. } => hint.clone(),
            Error::InvalidModel { hint, .. } => Some(hint.clone()),
            Error::ModelTooLarge(_) => fixed("There may be 256 MB; take it to another server with pg_dump or COPY."),
            Error::NoFiles { partitioned: true, .. } => fixed("Measure one of its partitions."),
            Error::NoFiles { .. } => fixed("Tables, materialized views and TOAST tables have some."),
            Error::TooFewPages { least, .. } => Some(format!("It takes {least} pages at least.")),
            Error::TableReplaced(_) => {
                fixed("Call it again. If it stays so, look for an event trigger on CREATE TABLE.")
            }
            Error::NotOneSelect => fixed("Give the name of a table or view, or one SELECT, VALUES or WITH query."),
            Error::UndefinedColumn { columns, .. } if columns.is_empty() => fixed("The source has no columns."),
            Error::UndefinedColumn { columns, .. } => {
                Some(format!("The source has the columns {}.", columns.join(", ")))
            }
            Error::AmbiguousColumn(_) => fixed("Give the columns of the source query different names."),
            Error::ColumnType { hint, .. } => fixed(hint),
            Error::NoFeatures { hint } => Some(hint.clone()),
            Error::NoIndices => fixed("Say with options => '{\"dimensions\": ...}' how many features there are."),
            Error::NoRows(_) => fixed("Check the source, and what is said of NULLs by nulls."),
            Error::OneClass { .. } => fixed("Models that tell classes apart need rows of two classes or more."),
            Error::NoSuchClass { known, .. } => Some(format!("The labels are {known}.")),
            Error::LabelValue { .. } => fixed("Use labels of the type that the column has."),
            Error::NoWeight => fixed("Give some rows a weight above 0."),
            Error::TooManyModels { .. } => fixed(
                "Together they are at most 10000, and have at most 134217727 weights; train them by several calls.",
            ),
            Error::TooManyEpochs { .. } => fixed(
                "A row of each is kept until they are stored; train fewer epochs, or the models by several calls.",
            ),
            Error::DamagedPage { .. } => fixed(
                "Restore the table from a backup; verify_heapam() of the extension amcheck finds what else is damaged.",
            ),
            Error::NetworkTooLarge { .. } => {
                fixed("A model has at most 134217727 weights; use fewer features, or smaller hidden_layers.")
            }
            Error::TooManyWeights { .. } => {
                fixed("A model has at most 134217727 weights, and its row in corgipile.models at most 1 GB.")
            }
            Error::Diverged { standardized: false, .. } => fixed(
                "Try a smaller learning_rate, or options => '{\"standardize\": true}'; bring large targets of model linear nearer to 0.",
            ),
            Error::Diverged { standardized: true, .. } => {
                fixed("Try a smaller learning_rate; bring large targets of model linear nearer to 0.")
            }
            Error::NoModelId(_) | Error::NoModelName(_) => {
                fixed("See corgipile.models for the models that you may use.")
            }
            Error::ModelPermission(_) => fixed(
                "A model is used by its owner, by members of the owner's role, and by those to whom it was granted.",
            ),
            Error::NotOwner => fixed("A model is changed by its owner and by members of the owner's role."),
            Error::AmbiguousModel { candidates, .. } => {
                Some(format!("Say whose you mean. Write {}.", alternatives(candidates)))
            }
            Error::OwnerNeeded { why, candidates, .. } => {
                Some(format!("{} Write {}.", why.reason(), alternatives(candidates)))
            }
            Error::LaterModel(_) => fixed(
                "Another transaction stored it after this statement began or, with REPEATABLE READ or SERIALIZABLE, this \
                 transaction: run it again.",
            ),
            Error::SequenceBehind => fixed(
                "The sequence is behind the table, as after a logical replication. The tables' owner or a superuser sets it: \
                 SELECT setval('corgipile.models_model_id_seq', (SELECT max(model_id) FROM corgipile.stored_models));",
            ),
            Error::VersionConflict(_) => fixed("Train again in a new transaction."),
            Error::NoVersion { .. } => fixed("See corgipile.models for the versions that there are."),
            Error::ModelExists(_) => fixed("Choose another name, or drop the old model."),
            Error::DecisionOutOfRange { .. } => {
                fixed("The features are too large for the model's weights; correct such rows, or leave them out.")
            }
            Error::PredictType(_) => fixed("Cast the features, for example to real[]."),
            Error::PredictIndexType(_) => fixed("Cast the indices, for example to integer[]."),
            Error::PredictNull(_) | Error::PredictNullIndex(_) => {
                fixed("A prediction needs all features; use coalesce() to put a number for a NULL.")
            }
            Error::PredictIndexBelow { .. } => fixed("Indices count as they did in training; see option index_base."),
            Error::PredictIndexBeyond { .. } | Error::PredictCategory { .. } => {
                fixed("Train with options => '{\"unseen\": \"zero\"}' to let the model ignore what it has not seen.")
            }
            Error::PredictNeedsRow { columns, .. } => {
                Some(format!("Give a row with the columns {columns}: SELECT corgipile_predict(1, t) FROM t."))
            }
            Error::PredictNoColumn { columns, .. } if columns.iter().all(|column| is_made_up(column)) => fixed(
                "ROW() does not name its columns; give a table's row or a subquery's: SELECT corgipile_predict(1, t) FROM t.",
            ),
            Error::PredictNoColumn { columns, .. } => Some(format!("The row has the columns {}.", columns.join(", "))),
            Error::EvaluateTypes { trained_on, .. } => Some(format!("It was trained on {trained_on}.")),
            Error::PredictColumnTwice(_) => fixed("Give the columns of the row different names."),
            Error::TextLabels(_) => fixed("Use corgipile_predict_label()."),
            Error::NoLabels(_) => fixed("Use corgipile_predict(), which gives the value."),
            Error::NoProbabilities { .. } => {
                fixed("Use corgipile_predict(), or train model => 'logistic', 'softmax' or 'mlp'.")
            }
            Error::TooManyPages => fixed("There may be 2^32: leave some partitions out with a query."),
            Error::OutOfMemory(_) => fixed(
                "The server's system gives no more. A training takes less with a smaller buffer_size or a lower \
                 corgipile.max_buffer_memory, a model with fewer features or classes.",
            ),
            Error::NotARowType => fixed("Call it as SELECT * FROM corgipile_shuffle(NULL::my_table)."),
            Error::UnfinishedEpoch | Error::NoEpoch => {
                fixed("corgipile_sgd_agg() takes a state of corgipile_sgd_init() or of its own, and ends the epoch.")
            }
            Error::StateKind { sparse: true } => {
                fixed("Give indices and values, or make the state with sparse => false.")
            }
            Error::StateKind { sparse: false } => fixed("Give one array, or make the state with sparse => true."),
            Error::FeatureType(_) => {
                fixed("Dense features are one array of numbers; sparse ones are integers and numbers.")
            }
            Error::NotByAggregate(_) => fixed("Use corgipile_train()."),
            Error::NotByWorkers(_) => fixed("Use shuffle => 'corgipile', or workers => 1."),
            Error::NotSynchronized(_) => fixed("Use workers => 1."),
            Error::NullInRow { .. } => fixed("Use nulls => 'skip' to leave out rows with NULLs and count them."),
            Error::NotCompressible(_) => fixed("Lower batch_rows."),
            Error::NotAMatrix(_) => fixed("A vector has one dimension, a matrix two, and neither has NULLs."),
            Error::MalformedTocBytes(_) | Error::MalformedToc(_) => {
                fixed("Make such values with corgipile_compress() or corgipile_toc().")
            }
            Error::NoElement { .. } => fixed("Rows and columns count from 1."),
            Error::Product { .. } => fixed("A * v takes a number for each column, v * A a number for each row."),
            Error::NotOnCompressed(_) => {
                fixed("A row of it is a whole mini-batch. Train on the table that was compressed, or compress others.")
            }
            Error::NotInGroups(_) => fixed("Use shuffle => 'corgipile', or a query as source for each part."),
            Error::WarmStart { hint, .. } | Error::NotContinued { hint, .. } => fixed(hint),
            Error::WorkerLost => {
                fixed("The server's log may tell why; train with loader => 'in_process' to do without it.")
            }
            _ => None,
        }
    }

    /// Raises the error in PostgreSQL; does not return.
    pub fn raise(self) -> ! {
        let mut report = ErrorReport::new(self.code(), shortened(&self), "corgipile");
        if let Some(hint) = self.hint() {
            report = report.set_hint(shortened(&hint));
        }
        report.report(PgLogLevel::ERROR);
        unreachable!("reporting an ERROR does not return")
    }
}

/// The most bytes of a message: what a user gave may be a gigabyte, and an error that repeats it as much again, several times.
const MAX_MESSAGE_BYTES: usize = 2000;

/// A text, of which the end is left out if it is long.
fn shortened(text: &impl std::fmt::Display) -> String {
    struct Short(String);

    impl Write for Short {
        fn write_str(&mut self, more: &str) -> std::fmt::Result {
            let room = MAX_MESSAGE_BYTES - self.0.len();
            if more.len() <= room {
                self.0.push_str(more);
                return Ok(());
            }
            let end = (0..=room).rev().find(|end| more.is_char_boundary(*end)).unwrap_or_default();
            self.0.push_str(&more[..end]);
            Err(std::fmt::Error)
        }
    }

    let mut short = Short(String::new());
    if write!(short, "{text}").is_err() {
        short.0.push_str(" ...");
    }
    short.0
}

/// What a user should know although nothing is wrong.
pub enum Notice {
    /// The buffer mixes too few blocks: because blocks are larger than they have to be, or because a setting cuts the buffer.
    FewBlocks { buffer_blocks: u32, blocks: u32, are_large: bool, is_cut: bool },
    /// Not as many processes as were asked for.
    FewerProcesses { asked: u32, processes: u32, why: String },
    /// An epoch is over, of one of several models if it has a name.
    Epoch { of: Option<String>, epoch: u32, epochs: u32, figures: String },
    /// One of several models has diverged.
    OneDiverged { of: String, epoch: u32 },
    /// The worker that was asked for is not to be had.
    NoLoader(String),
}

impl Notice {
    /// Tells the client.
    pub fn report(self) {
        let level = if matches!(self, Notice::OneDiverged { .. }) { PgLogLevel::WARNING } else { PgLogLevel::NOTICE };
        let (message, hint) = match self {
            Notice::Epoch { of, epoch, epochs, figures } => {
                let of = of.map_or(String::new(), |of| format!(" of {of}"));
                (format!("epoch {epoch} of {epochs}{of}: {figures}"), None)
            }
            Notice::OneDiverged { of, epoch } => (
                format!("{of} diverged in epoch {epoch} and is not stored"),
                Some("The other models are trained on. Try a smaller learning_rate for this one."),
            ),
            Notice::FewBlocks { buffer_blocks, blocks, are_large, is_cut } => (
                format!("the buffer holds only {buffer_blocks} of {blocks} blocks, too few to mix them well"),
                Some(match (are_large, is_cut) {
                    (false, false) => "Use a larger buffer_size; '100%' shuffles a small table fully.",
                    (true, false) => "Use a smaller block_size, or a larger buffer_size.",
                    (false, true) => {
                        "Raise the setting corgipile.max_buffer_memory: it cuts the buffer below buffer_size."
                    }
                    (true, true) => {
                        "Use a smaller block_size, or raise the setting corgipile.max_buffer_memory: it cuts the buffer below \
                         buffer_size."
                    }
                }),
            ),
            Notice::FewerProcesses { asked, processes, why } => (
                format!("the model is trained by {processes} of {asked} processes: {why}"),
                Some("With another number of workers the model differs; corgipile.models says how many there were."),
            ),
            Notice::NoLoader(why) => (format!("the loader runs in process, without a worker: {why}"), None),
        };
        let mut report = ErrorReport::new(Code::ERRCODE_SUCCESSFUL_COMPLETION, message, "corgipile");
        if let Some(hint) = hint {
            report = report.set_hint(hint);
        }
        pg::tell(report, level);
    }
}

/// Turns our `Result` into a value or a PostgreSQL error.
pub trait OrRaise<T> {
    /// The value, or the error raised.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|e| e.raise())
    }
}
