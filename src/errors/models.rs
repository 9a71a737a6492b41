//! What is wrong with a model, its name, or who asks for it.

use super::the_model::TheModel;
use super::words::alternatives;
use crate::limits::{MAX_JSONB_BYTES, MAX_ONNX_BYTES, MAX_SQL_NUMBERS};
use pg::errors::{Code, Report};

/// What is wrong with a model, its name, or who asks for it.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("model {0} does not exist")]
    NoModelId(i64),
    #[error("model \"{0}\" does not exist")]
    /// with the sentence that offers the nearest name
    NoModelName(String, Option<String>),
    #[error("permission denied for model {0}")]
    ModelPermission(i64),
    #[error("model {0} was granted to predict with, and to nothing else")]
    PredictOnly(i64),
    #[error("a model named \"{0}\" exists already")]
    ModelExists(String),
    #[error("key \"{key}\" of the model {reason}")]
    InvalidModel { key: String, reason: String, hint: String },
    #[error("the model's numbers are {0} bytes of JSON, more than type jsonb can hold")]
    ModelTooLarge(usize),
    #[error("{model} has {numbers} numbers and categories, more than the {MAX_SQL_NUMBERS} of an expression in SQL")]
    TooLargeForSql { model: TheModel, numbers: usize },
    #[error("{0} has hashed columns, whose hash SQL cannot compute")]
    HashedInSql(TheModel),
    #[error("{model} would be {bytes} bytes of ONNX, more than the {MAX_ONNX_BYTES} of a graph")]
    TooLargeForOnnx { model: TheModel, bytes: usize },
    #[error("{model} has a category in column \"{column}\" that stands for NULL in ONNX: U+FFFF")]
    NullTextInOnnx { model: TheModel, column: String },
    #[error("stored model {0} cannot be read: {1}")]
    CorruptModel(i64, String),
    #[error("relation corgipile.{0} does not exist")]
    NoModelTable(String),
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
    #[error("{0}")]
    /// with the message of a model that does not exist: the database has no models
    NoModels(String),
    #[error("there is no version {version} of model \"{name}\"")]
    NoVersion { name: String, version: i32 },
    #[error("must be owner of the model")]
    NotOwner,
    #[error("model {0} cannot be looked up by its id in a part of another server's query")]
    OfAnotherServer(i64),
    #[error("model \"{0}\" was not published to this server, which runs a part of another server's query")]
    NotPublished(String),
    #[error("model {0} has no name")]
    Unnamed(i64),
    #[error("model \"{0}\" was stored or changed by this transaction")]
    NotCommitted(String),
    #[error("another role has a model named \"{0}\" here")]
    NameTaken(String),
}

impl Report for ModelError {
    fn sqlstate(&self) -> Code {
        match self {
            ModelError::InvalidModel { .. } => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            ModelError::NoModelId(_)
            | ModelError::NoModelName(..)
            | ModelError::LaterModel(_)
            | ModelError::NoModels(_) => Code::ERRCODE_UNDEFINED_OBJECT,
            ModelError::ModelPermission(_) | ModelError::PredictOnly(_) | ModelError::NotOwner => {
                Code::ERRCODE_INSUFFICIENT_PRIVILEGE
            }
            ModelError::VersionConflict(_) => Code::ERRCODE_T_R_SERIALIZATION_FAILURE,
            ModelError::SequenceBehind | ModelError::Unnamed(_) | ModelError::NotCommitted(_) => {
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            }
            ModelError::AmbiguousModel { .. } | ModelError::OwnerNeeded { .. } => Code::ERRCODE_AMBIGUOUS_PARAMETER,
            ModelError::NoVersion { .. } => Code::ERRCODE_UNDEFINED_OBJECT,
            ModelError::ModelExists(_) | ModelError::NameTaken(_) => Code::ERRCODE_DUPLICATE_OBJECT,
            ModelError::ModelTooLarge(_) | ModelError::TooLargeForSql { .. } | ModelError::TooLargeForOnnx { .. } => {
                Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED
            }
            ModelError::HashedInSql(_)
            | ModelError::NullTextInOnnx { .. }
            | ModelError::OfAnotherServer(_)
            | ModelError::NotPublished(_) => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            ModelError::CorruptModel(..) => Code::ERRCODE_DATA_CORRUPTED,
            ModelError::NoModelTable(_) => Code::ERRCODE_UNDEFINED_TABLE,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            ModelError::NoModelTable(_) => fixed("Extension corgipile was dropped meanwhile, or its table renamed."),
            ModelError::InvalidModel { hint, .. } => Some(hint.clone()),
            ModelError::ModelTooLarge(_) => Some(format!(
                "There may be {} MB; take it to another server with pg_dump or COPY.",
                MAX_JSONB_BYTES.div_ceil(1 << 20)
            )),
            ModelError::TooLargeForSql { .. } => fixed(
                "Export it as json, and predict with the Python package, or in another database that has corgipile.",
            ),
            ModelError::TooLargeForOnnx { .. } => {
                fixed("Take it to another server with pg_dump or COPY, and predict there.")
            }
            ModelError::NullTextInOnnx { .. } => fixed(
                "Train it on a query that has another text for it, or export it as json, and predict with the Python package.",
            ),
            ModelError::HashedInSql(_) => fixed(
                "Train it with the option hash as off, or export it as json, and predict with the Python package.",
            ),
            ModelError::NoModelName(_, Some(nearest)) => {
                Some(format!("{nearest} See corgipile.models for the models that you may use."))
            }
            ModelError::NoModelId(_) | ModelError::NoModelName(_, None) => {
                fixed("See corgipile.models for the models that you may use.")
            }
            ModelError::ModelPermission(_) => fixed(
                "A model is used by its owner, by members of the owner's role, and by those to whom it was granted.",
            ),
            ModelError::PredictOnly(_) => fixed("Its owner lets a role see it, too, by corgipile_grant(model, role)."),
            ModelError::NotOwner => fixed("A model is changed by its owner and by members of the owner's role."),
            ModelError::AmbiguousModel { candidates, .. } => {
                Some(format!("Say whose you mean. Write {}.", alternatives(candidates)))
            }
            ModelError::OwnerNeeded { why, candidates, .. } => {
                Some(format!("{} Write {}.", why.reason(), alternatives(candidates)))
            }
            ModelError::LaterModel(_) => fixed(
                "Another transaction stored it after this statement began or, with REPEATABLE READ or SERIALIZABLE, this \
                 transaction: run it again.",
            ),
            ModelError::NoModels(_) => fixed(
                "There are no models in this database yet. A restore fills the tables of schemas whose names sort before \
                 corgipile first: docs/how-to/models-and-versions.md says how to restore tables that predict.",
            ),
            ModelError::SequenceBehind => fixed(
                "The sequence is behind the table, as after a restore without it. The tables' owner or a superuser sets it: \
                 SELECT setval('corgipile.models_model_id_seq', (SELECT max(model_id) FROM corgipile.stored_models));",
            ),
            ModelError::VersionConflict(_) => fixed("Train again in a new transaction."),
            ModelError::NoVersion { .. } => fixed("See corgipile.models for the versions that there are."),
            ModelError::ModelExists(_) => fixed("Choose another name, or drop the old model."),
            ModelError::OfAnotherServer(_) => fixed(
                "This server has ids of its own. Use the name of a model that corgipile_publish() has brought here, or give \
                 the model as a value, which corgipile_export() gives on the server that was asked.",
            ),
            ModelError::NotPublished(_) => fixed(
                "Publish it with corgipile_publish() on the server that was asked, or give the model as a value, which \
                 corgipile_export() gives there.",
            ),
            ModelError::Unnamed(_) => {
                fixed("Other servers know a model by its name. Give it one with corgipile_rename().")
            }
            ModelError::NotCommitted(_) => {
                fixed("Commit first: what other servers have got stays when this transaction is rolled back.")
            }
            ModelError::NameTaken(_) => {
                fixed("Rename the model with corgipile_rename() where it was trained, and publish it again.")
            }
            ModelError::CorruptModel(..) => {
                fixed("Restore its row of corgipile.stored_models from a backup, or train again.")
            }
        }
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
