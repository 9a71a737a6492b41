//! What can go wrong between a job, or an operator, and a server.

use source::SourceError;
use std::path::PathBuf;

/// Why a job cannot go on, or a request was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceError {
    /// Nobody serves there.
    #[error("no JOADER serves at {}: {what}; start one by `corgipile-joader serve --listen {}`", path.display(), path.display())]
    NoServer {
        /// Where.
        path: PathBuf,
        /// What the system says.
        what: String,
    },
    /// The server refuses what was asked of it: an argument, as it is named, and why.
    #[error("{0}")]
    Refused(String),
    /// There is something of that name already, or it is in use.
    #[error("{0}")]
    Conflict(String),
    /// There is nothing of that name.
    #[error("{0}")]
    Unknown(String),
    /// The server went, or does not answer.
    #[error("the JOADER server went: {0}")]
    Lost(String),
}

impl From<tonic::Status> for ServiceError {
    fn from(status: tonic::Status) -> ServiceError {
        let what = status.message().to_owned();
        match status.code() {
            tonic::Code::NotFound => ServiceError::Unknown(what),
            tonic::Code::AlreadyExists | tonic::Code::FailedPrecondition => ServiceError::Conflict(what),
            tonic::Code::InvalidArgument | tonic::Code::ResourceExhausted | tonic::Code::PermissionDenied => {
                ServiceError::Refused(what)
            }
            _ => ServiceError::Lost(if what.is_empty() { status.code().to_string() } else { what }),
        }
    }
}

impl From<ServiceError> for SourceError {
    fn from(error: ServiceError) -> SourceError {
        SourceError::Invalid(error.to_string())
    }
}
