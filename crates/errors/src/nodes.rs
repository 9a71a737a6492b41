//! Why rows of other servers are not trained on, evaluated on or measured there.

use pg::errors::{Code, Report};
use std::fmt::{Display, Formatter, Result};

/// The hint on what is said out of turn.
const SAME_LIBRARY: &str = "Both servers need the same version of the library: reconnect after an update.";

/// What is done with rows where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errand {
    Training,
    Evaluation,
    Measurement,
}

impl Display for Errand {
    /// As it ends a sentence about the rows.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Errand::Training => "trained on",
            Errand::Evaluation => "evaluated on",
            Errand::Measurement => "measured",
        })
    }
}

/// Why rows of other servers are not trained on there.
#[derive(Debug, thiserror::Error, Report)]
pub enum NodeError {
    #[error("the rows cannot be {0} where they are: {1}")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Leave servers out to fetch the rows to this server; \"auto\" does so where necessary.")]
    Unfit(Errand, String),
    #[error("server \"{0}\": extension corgipile is not installed in its database")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE => "Run CREATE EXTENSION corgipile in that database.")]
    NoExtension(String),
    #[error("server \"{server}\": it has version {there} of extension corgipile, this server {here}")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "Install the same version on all servers, and ALTER EXTENSION corgipile UPDATE.")]
    OtherVersion { server: String, there: String, here: &'static str },
    #[error("server \"{0}\": its database has the encoding {1}, not UTF8")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Leave servers out to fetch the rows to this server: postgres_fdw converts their texts.")]
    OtherEncoding(String, String),
    #[error("server \"{server}\": column \"{column}\" has type {there} there, and {here} here")]
    #[report(ERRCODE_DATATYPE_MISMATCH => "Give the column of the foreign table the type that it has on the other server.")]
    OtherType { server: String, column: String, there: String, here: String },
    #[error("the rows of the servers do not match: {0}")]
    #[report(ERRCODE_DATA_EXCEPTION => "Make the tables alike, or train on a query that leaves out what differs.")]
    Differ(String),
    #[error("server \"{0}\": unexpected reply")]
    #[report(ERRCODE_PROTOCOL_VIOLATION => "{SAME_LIBRARY}")]
    Nonsense(String),
    #[error("unexpected request from a training on another server")]
    #[report(ERRCODE_PROTOCOL_VIOLATION => "{SAME_LIBRARY}")]
    NonsenseAsked,
    #[error("this function was not called by a training on another server")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "corgipile_train() and other functions with servers call it on other servers; do not call it yourself.")]
    OutOfTurn,
    /// to the role of this name, quoted
    #[error("role {0} lacks the privilege to take part in a training of another server")]
    #[report(ERRCODE_INSUFFICIENT_PRIVILEGE =>
        "In this database, run: GRANT EXECUTE ON FUNCTION corgipile.node_training, corgipile.node_step TO {_0};")]
    NotGranted(String),
}
