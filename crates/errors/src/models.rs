//! What is wrong with a model, its name, or who asks for it.

use super::the_model::TheModel;
use super::words::alternatives;
use crate::limits::{MAX_JSONB_BYTES, MAX_ONNX_BYTES, MAX_SQL_NUMBERS};
use pg::errors::{Code, Report};

#[derive(Debug, thiserror::Error, Report)]
pub enum ModelError {
    #[error("model {0} does not exist")]
    #[report(ERRCODE_UNDEFINED_OBJECT => "See corgipile.models for the models that you may use.")]
    NoModelId(i64),
    #[error("model \"{0}\" does not exist")]
    #[report(ERRCODE_UNDEFINED_OBJECT => match _1 {
        Some(nearest) => format!("{nearest} See corgipile.models for the models that you may use."),
        None => "See corgipile.models for the models that you may use.".to_owned(),
    })]
    /// with the sentence that offers the nearest name
    NoModelName(String, Option<String>),
    #[error("permission denied for model {0}")]
    #[report(ERRCODE_INSUFFICIENT_PRIVILEGE =>
        "Its owner can grant it to a role: corgipile_grant(model, role).")]
    ModelPermission(i64),
    #[error("permission denied for model {0}: it was granted for predictions only")]
    #[report(ERRCODE_INSUFFICIENT_PRIVILEGE => "To let a role also read the model, its owner calls corgipile_grant(model, role).")]
    PredictOnly(i64),
    #[error("\"{name}\" is a model for each group of column \"{column}\", and this function takes one model")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => match of_all {
        None => format!("Name the model of one group, such as '{}'.", example.replace('\'', "''")),
        Some(id) => format!(
            "Name the model of one group, such as '{}', or give the id of the model of all rows, {id}.",
            example.replace('\'', "''")
        ),
    })]
    OfGroups { name: String, column: String, example: String, of_all: Option<i64> },
    #[error("{one} and {other} predict other labels, or predict them in another way, and cannot be evaluated together")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Train all groups again in one call, or evaluate the models of the groups by their own names.")]
    GroupsDiffer { one: TheModel, other: TheModel },
    #[error("\"{0}\" is the name of one model, and cannot be that of models of groups, too")]
    #[report(ERRCODE_DUPLICATE_OBJECT => "Give another name, or drop or rename the model.")]
    NameOfOneModel(String),
    #[error("\"{name}\" is the name of the models of groups of column \"{column}\"")]
    #[report(ERRCODE_DUPLICATE_OBJECT => "Give another name, or drop these models with corgipile_drop('{}').", name.replace('\'', "''"))]
    NameOfGroups { name: String, column: String },
    #[error("a model named \"{0}\" already exists")]
    #[report(ERRCODE_DUPLICATE_OBJECT => "Choose another name, or drop the old model.")]
    ModelExists(String),
    #[error("key \"{key}\" of the model {reason}")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{hint}")]
    InvalidModel { key: String, reason: String, hint: String },
    #[error("the model's numbers are {0} bytes of JSON, more than type jsonb can hold")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "The limit is {} MB; copy the model to another server with pg_dump or COPY.", MAX_JSONB_BYTES.div_ceil(1 << 20))]
    ModelTooLarge(usize),
    #[error("{model} has {numbers} numbers and categories, more than the {MAX_SQL_NUMBERS} of an expression in SQL")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED =>
        "Export it as json and predict with the Python package, or in another database that has corgipile.")]
    TooLargeForSql { model: TheModel, numbers: usize },
    #[error("{0} has hashed columns, whose hash SQL cannot compute")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Train it with \"hash\": \"off\", or export it as json and predict with the Python package.")]
    HashedInSql(TheModel),
    #[error("{model} was trained on the words of column \"{column}\", which {format} cannot compute")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Predict in a database that has corgipile, or train on columns of a query that say whether a word is there.")]
    WordsInExport { model: TheModel, column: String, format: &'static str },
    #[error("{model} would be {bytes} bytes of ONNX, more than the {MAX_ONNX_BYTES} of a graph")]
    #[report(ERRCODE_PROGRAM_LIMIT_EXCEEDED => "Copy the model to another server with pg_dump or COPY, and predict there.")]
    TooLargeForOnnx { model: TheModel, bytes: usize },
    #[error("{model} has a category in column \"{column}\" that stands for NULL in ONNX: U+FFFF")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Train on a query that replaces this category, or export the model as json and predict with the Python package.")]
    NullTextInOnnx { model: TheModel, column: String },
    #[error("stored model {0} cannot be read: {1}")]
    #[report(ERRCODE_DATA_CORRUPTED => "Restore its row of corgipile.stored_models from a backup, or train again.")]
    CorruptModel(i64, String),
    #[error("relation corgipile.{0} does not exist")]
    #[report(ERRCODE_UNDEFINED_TABLE => "Extension corgipile was dropped in the meantime, or its table was renamed.")]
    NoModelTable(String),
    #[error("could not store a version of model \"{0}\": another transaction has just stored one")]
    #[report(ERRCODE_T_R_SERIALIZATION_FAILURE => "Train again in a new transaction.")]
    VersionConflict(String),
    #[error("could not store the model: sequence corgipile.models_model_id_seq returned a model_id that is in use")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "The sequence is behind the table, as after a restore without it. The tables' owner or a superuser sets it: \
         SELECT setval('corgipile.models_model_id_seq', (SELECT max(model_id) FROM corgipile.stored_models));")]
    SequenceBehind,
    #[error("there are several models named \"{name}\" that you may use")]
    #[report(ERRCODE_AMBIGUOUS_PARAMETER => "Name the owner, too: write {}.", alternatives(candidates))]
    /// `candidates` are names with owners, as literals
    AmbiguousModel { name: String, candidates: Vec<String> },
    #[error("model \"{name}\" must be named with its owner")]
    #[report(ERRCODE_AMBIGUOUS_PARAMETER => "{} Write {}.", why.reason(), alternatives(candidates))]
    OwnerNeeded { name: String, why: OwnerNeeded, candidates: Vec<String> },
    #[error("{0}")]
    #[report(ERRCODE_UNDEFINED_OBJECT =>
        "Another transaction stored it after this statement began or, with REPEATABLE READ or SERIALIZABLE, after \
         this transaction began. Run it again.")]
    /// with what is said of a model that does not exist
    LaterModel(String),
    #[error("{0}")]
    #[report(ERRCODE_UNDEFINED_OBJECT =>
        "There are no models in this database yet: corgipile_train() stores one. In a restore, models may come after \
         tables that predict: docs/deploy/models.md says how to restore these.")]
    /// with the message of a model that does not exist: the database has no models
    NoModels(String),
    #[error("version {version} of model \"{name}\" does not exist")]
    #[report(ERRCODE_UNDEFINED_OBJECT => "See corgipile.models for the versions that exist.")]
    NoVersion { name: String, version: i32 },
    #[error("must be owner of the model")]
    #[report(ERRCODE_INSUFFICIENT_PRIVILEGE => "Only its owner and members of the owner's role can change a model.")]
    NotOwner,
    #[error("model {0} cannot be looked up by its id in a part of another server's query")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Each server has its own ids. Use the name of a model that corgipile_publish() has sent here, or pass \
         the model as a value: corgipile_export() on the server that runs the query returns it.")]
    OfAnotherServer(i64),
    #[error("model \"{0}\" was not published to this server, which runs a part of another server's query")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Publish it with corgipile_publish() on the server that runs the query, or pass the model as a \
         value: corgipile_export() there returns it.")]
    NotPublished(String),
    #[error("cannot execute {0} in a part of another server's query")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "It would be stored on this server only. Call it by itself, on the server where the query begins.")]
    WritesForAnother(String),
    #[error("permission denied for model \"{0}\", which was published to this server")]
    #[report(ERRCODE_INSUFFICIENT_PRIVILEGE =>
        "Grant it where it was trained, with corgipile_grant(model, role), and publish it again.")]
    PublishedPermission(String),
    #[error("model {0} has no name")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "Other servers look up a model by its name: give it one with corgipile_rename().")]
    Unnamed(i64),
    #[error("model \"{0}\" was stored or changed by this transaction")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "Commit first: what is sent to other servers is not rolled back with this transaction.")]
    NotCommitted(String),
    #[error("another role has a model named \"{0}\" here")]
    #[report(ERRCODE_DUPLICATE_OBJECT =>
        "Rename the model with corgipile_rename() where it was trained, and publish it again.")]
    NameTaken(String),
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

impl OwnerNeeded {
    fn reason(self) -> &'static str {
        match self {
            OwnerNeeded::Superuser => "For a superuser, a name alone refers to the superuser's own models.",
            OwnerNeeded::Public => {
                "A name alone refers to a model granted to public only while no other role has a model of that name."
            }
            OwnerNeeded::BeginsWithRole => {
                "It begins with the name of a role, so that it reads as a model of that role."
            }
        }
    }
}
