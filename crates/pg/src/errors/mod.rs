//! What the server's system did not give.

use super::report::{Code, Report};

/// What the server's system did not give.
#[derive(Debug, thiserror::Error)]
pub enum ResourceError {
    #[error("out of memory: {0} bytes cannot be had")]
    OutOfMemory(usize),
    #[error("could not {verb} temporary file: {reason}")]
    TemporaryFile { verb: &'static str, reason: std::io::Error },
    #[error("a worker process has loaded another build of corgipile than this session")]
    OtherBuild,
}

impl Report for ResourceError {
    fn sqlstate(&self) -> Code {
        match self {
            ResourceError::OutOfMemory(_) => Code::ERRCODE_OUT_OF_MEMORY,
            ResourceError::TemporaryFile { reason, .. } if reason.kind() == std::io::ErrorKind::StorageFull => {
                Code::ERRCODE_DISK_FULL
            }
            ResourceError::TemporaryFile { .. } => Code::ERRCODE_IO_ERROR,
            ResourceError::OtherBuild => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            ResourceError::OutOfMemory(_) => fixed(
                "The server's system gives no more. A training takes less with a smaller buffer_size or a lower \
                 corgipile.max_buffer_memory, a model with fewer features or classes.",
            ),
            ResourceError::TemporaryFile { .. } => {
                fixed("Temporary files lie in the tablespaces of temp_tablespaces; look whether there is room.")
            }
            ResourceError::OtherBuild => {
                fixed("The library was replaced after the session began, by an upgrade for instance. Connect anew.")
            }
        }
    }
}
