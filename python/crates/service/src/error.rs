//! What can go wrong between a job, or an operator, and a server.

use source::SourceError;
use std::ops::Range;
use std::path::PathBuf;

/// Why a job cannot go on, or a request was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceError {
    /// No one serves there.
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
    /// There is something of that name already, it is in use, or there is too much of it.
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
            tonic::Code::AlreadyExists | tonic::Code::FailedPrecondition | tonic::Code::ResourceExhausted => {
                ServiceError::Conflict(what)
            }
            tonic::Code::InvalidArgument | tonic::Code::PermissionDenied => ServiceError::Refused(what),
            _ => ServiceError::Lost(if what.is_empty() { status.code().to_string() } else { what }),
        }
    }
}

/// Why a job has no batch to give.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The server refuses the job, or it went and the job cannot read by itself.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// These rows cannot be read or prepared. The next call goes on behind them.
    #[error("rows {} to {}: {what}", rows.start, rows.end)]
    Element {
        /// Which rows, of all that the data set has.
        rows: Range<u64>,
        /// Why.
        what: String,
    },
    /// The source cannot be opened by the job itself, or the rows cannot be put into batches.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The job is used where it cannot be: it was closed, or its threads are in another process.
    #[error("{0}")]
    Misused(&'static str),
}
