//! What every sampler does.

use crate::elements::ElementSet;
use crate::error::SamplerError;
use shuffle::{Job, JobSet};

/// A job has drawn an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Who has drawn.
    pub job: Job,
    /// What.
    pub element: u32,
}

/// Jobs that draw from one universe, each of them every one of its elements once per epoch.
///
/// What is drawn is a function of the seed and of what was called, with which arguments and in which order.
pub trait Sampler {
    /// A job that wants these elements joins, and begins its first epoch.
    fn join(&mut self, elements: ElementSet) -> Result<Job, SamplerError>;

    /// The job draws no more. Nothing happens if it has left already.
    fn leave(&mut self, job: Job);

    /// The job begins an epoch with all of its elements. What was left of the one before, if it was not done, is
    /// dropped.
    fn begin_epoch(&mut self, job: Job) -> Result<(), SamplerError>;

    /// How many elements the job has still to draw in its epoch: 0 also of a job that has left.
    fn remaining(&self, job: Job) -> usize;

    /// Each of these jobs that is not done draws one element. `draws` has them afterwards, by the jobs' numbers, and
    /// nothing else.
    ///
    /// Not all jobs need to be in a round: fast ones are in more rounds than slow ones (partial sampling).
    fn round(&mut self, jobs: JobSet, draws: &mut Vec<Draw>);
}
