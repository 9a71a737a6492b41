//! Why rows of other servers are not trained on, evaluated on or measured there.

use pg::errors::{Code, Report};
use std::fmt::{Display, Formatter, Result};

/// The hint on what is said out of turn.
const SAME_LIBRARY: &str = "Both servers need the same library: connect anew after an update.";

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
        "Leave servers out, and they come here; with \"auto\" they do where they have to.")]
    Unfit(Errand, String),
    #[error("server \"{0}\": extension corgipile is not installed in its database")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE => "CREATE EXTENSION corgipile there.")]
    NoExtension(String),
    #[error("server \"{server}\": it has version {there} of extension corgipile, and this one {here}")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "Install the same version on all servers, and ALTER EXTENSION corgipile UPDATE.")]
    OtherVersion { server: String, there: String, here: &'static str },
    #[error("server \"{0}\": its database has the encoding {1}, and not UTF8")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Leave servers out: postgres_fdw converts the texts of rows that come here.")]
    OtherEncoding(String, String),
    #[error("server \"{server}\": column \"{column}\" has type {there} there, and {here} here")]
    #[report(ERRCODE_DATATYPE_MISMATCH => "Give the foreign table's column the type that it has there.")]
    OtherType { server: String, column: String, there: String, here: String },
    #[error("the rows of the servers do not go together: {0}")]
    #[report(ERRCODE_DATA_EXCEPTION => "Make them alike, or train on a query that leaves some out.")]
    Differ(String),
    #[error("server \"{0}\": its answer makes no sense")]
    #[report(ERRCODE_PROTOCOL_VIOLATION => "{SAME_LIBRARY}")]
    Nonsense(String),
    #[error("a training on another server has asked for what makes no sense")]
    #[report(ERRCODE_PROTOCOL_VIOLATION => "{SAME_LIBRARY}")]
    NonsenseAsked,
    #[error("no training on another server has asked for this")]
    #[report(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE =>
        "Functions with servers call this function on other servers: corgipile_train() and others.")]
    OutOfTurn,
    /// to the role of this name, quoted
    #[error("role {0} may not work on this server for a training on another one")]
    #[report(ERRCODE_INSUFFICIENT_PRIVILEGE =>
        "In this database: GRANT EXECUTE ON FUNCTION corgipile.node_training, corgipile.node_step TO {_0};")]
    NotGranted(String),
}
