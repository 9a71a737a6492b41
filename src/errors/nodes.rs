//! Why rows of other servers are not trained on, evaluated on or measured there.

use pg::errors::{Code, Report};
use std::fmt::{Display, Formatter, Result};

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
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("the rows cannot be {0} where they are: {1}")]
    Unfit(Errand, String),
    #[error("server \"{0}\": extension corgipile is not installed in its database")]
    NoExtension(String),
    #[error("server \"{server}\": it has version {there} of extension corgipile, and this one {here}")]
    OtherVersion { server: String, there: String, here: &'static str },
    #[error("server \"{0}\": its database has the encoding {1}, and not UTF8")]
    OtherEncoding(String, String),
    #[error("server \"{server}\": column \"{column}\" has type {there} there, and {here} here")]
    OtherType { server: String, column: String, there: String, here: String },
    #[error("the rows of the servers do not go together: {0}")]
    Differ(String),
    #[error("server \"{0}\": its answer makes no sense")]
    Nonsense(String),
    #[error("a training on another server has asked for what makes no sense")]
    NonsenseAsked,
    #[error("no training on another server has asked for this")]
    OutOfTurn,
    /// to the role of this name, quoted
    #[error("role {0} may not work on this server for a training on another one")]
    NotGranted(String),
}

impl Report for NodeError {
    fn sqlstate(&self) -> Code {
        match self {
            NodeError::NoExtension(_) | NodeError::OtherVersion { .. } | NodeError::OutOfTurn => {
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            }
            NodeError::NotGranted(_) => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            NodeError::Unfit(..) | NodeError::OtherEncoding(..) => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            NodeError::OtherType { .. } => Code::ERRCODE_DATATYPE_MISMATCH,
            NodeError::Differ(_) => Code::ERRCODE_DATA_EXCEPTION,
            NodeError::Nonsense(_) | NodeError::NonsenseAsked => Code::ERRCODE_PROTOCOL_VIOLATION,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            NodeError::Unfit(..) => {
                fixed("Leave nodes out, and they come here; with \"auto\" they do where they have to.")
            }
            NodeError::NoExtension(_) => fixed("CREATE EXTENSION corgipile there."),
            NodeError::OtherVersion { .. } => {
                fixed("Install the same version on all servers, and ALTER EXTENSION corgipile UPDATE.")
            }
            NodeError::OtherEncoding(..) => {
                fixed("Leave nodes out: postgres_fdw converts the texts of rows that come here.")
            }
            NodeError::OtherType { .. } => fixed("Give the foreign table's column the type that it has there."),
            NodeError::Differ(_) => fixed("Make them alike, or train on a query that leaves some out."),
            NodeError::Nonsense(_) | NodeError::NonsenseAsked => {
                fixed("Both servers need the same library: connect anew after an update.")
            }
            NodeError::NotGranted(role) => Some(format!(
                "In this database: GRANT EXECUTE ON FUNCTION corgipile.node_training, corgipile.node_step TO {role};"
            )),
            NodeError::OutOfTurn => {
                fixed("Functions with nodes call this function on other servers: corgipile_train() and others.")
            }
        }
    }
}
