//! What is wrong with the arguments of a call.

use super::nearest::did_you_mean;
use super::report::{Code, Report};
use super::words::{one_of, singular};

/// What is wrong with the arguments of a call.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentError {
    #[error("argument \"{0}\" must not be null")]
    NullArgument(&'static str),
    #[error("unknown {} \"{given}\"", singular(what))]
    /// `what` in the plural
    Unknown { what: &'static str, given: String, known: String },
    #[error("invalid value for argument \"{argument}\": {reason}")]
    InvalidArgument { argument: &'static str, reason: String, hint: Option<String> },
    #[error("option \"{key}\" {reason}")]
    InvalidOption { key: String, reason: String },
    #[error("option \"{key}\" must be {}", one_of(known))]
    /// none of the words that it may be
    UnknownWord { key: &'static str, given: String, known: Vec<&'static str> },
    #[error("\"{0}\" is given as an argument and in options, with different values")]
    GivenTwice(String),
    #[error("options must be a JSON object")]
    OptionsNotAnObject,
    #[error("corgipile_shuffle() needs a table's row type")]
    NotARowType,
    #[error("the database's encoding is not UTF8")]
    Encoding,
}

impl Report for ArgumentError {
    fn sqlstate(&self) -> Code {
        match self {
            ArgumentError::NullArgument(_) => Code::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            ArgumentError::Unknown { .. }
            | ArgumentError::InvalidArgument { .. }
            | ArgumentError::InvalidOption { .. }
            | ArgumentError::UnknownWord { .. }
            | ArgumentError::GivenTwice(_)
            | ArgumentError::OptionsNotAnObject => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            ArgumentError::Encoding => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            ArgumentError::NotARowType => Code::ERRCODE_DATATYPE_MISMATCH,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            ArgumentError::Encoding => fixed("Use corgipile in a database with the encoding UTF8."),
            ArgumentError::Unknown { what, given, known } => {
                let meant = did_you_mean(given, known.split(", ")).map_or(String::new(), |meant| meant + " ");
                Some(format!("{meant}Known {what} are: {known}."))
            }
            ArgumentError::UnknownWord { given, known, .. } => did_you_mean(given, known.iter().copied()),
            ArgumentError::InvalidArgument { hint, .. } => hint.clone(),
            ArgumentError::NotARowType => fixed("Call it as SELECT * FROM corgipile_shuffle(NULL::my_table)."),
            ArgumentError::GivenTwice(_) => fixed("Give it once."),
            ArgumentError::NullArgument(_) => fixed("Give a value that is not NULL."),
            ArgumentError::OptionsNotAnObject => {
                fixed("Write them as '{\"key\": value, ...}'; corgipile_options() lists the keys.")
            }
            _ => None,
        }
    }
}
