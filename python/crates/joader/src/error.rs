//! What can go wrong.

use allocation::OutOfMemory;

use shuffle::{Job, MAX_JOBS};

/// Why a job could not join, or begin an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplerError {
    /// There are [`MAX_JOBS`] already.
    #[error("a sampler has at most {MAX_JOBS} jobs at a time")]
    TooManyJobs,
    /// The job has left, or has never joined.
    #[error("{0} is not of this sampler")]
    UnknownJob(Job),
    /// The allocator has refused memory. The sampler is as it was before.
    #[error("memory ran out for the elements of a job")]
    OutOfMemory,
}

impl From<OutOfMemory> for SamplerError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}
