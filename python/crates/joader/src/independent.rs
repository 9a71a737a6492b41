//! Independent sampling, as every job would do it alone.
//!
//! It guarantees that what a job draws depends on the seed, on which job to join it was and on its own epochs, and on
//! nothing that others do. Jobs meet by chance only.

use rand_xoshiro::Xoshiro256PlusPlus;
use shuffle::{ALONE, below, stream};

use crate::elements::ElementSet;
use crate::error::SamplerError;
use crate::members::Members;
use crate::need::NeedSet;
use crate::sampler::{Draw, Sampler};
use shuffle::{Job, JobSet};

struct Member {
    elements: ElementSet,
    need: NeedSet,
    rng: Xoshiro256PlusPlus,
}

/// See the module's documentation.
pub struct Independent {
    seed: i64,
    joined: u64,
    members: Members<Member>,
}

impl Independent {
    /// A sampler without jobs.
    pub fn new(seed: i64) -> Self {
        Self { seed, joined: 0, members: Members::default() }
    }
}

impl Sampler for Independent {
    fn join(&mut self, elements: ElementSet) -> Result<Job, SamplerError> {
        let need = NeedSet::new(&elements)?;
        let rng = stream(ALONE, self.seed, 0, self.joined);
        let job = self.members.insert(Member { elements, need, rng })?;
        self.joined += 1;
        Ok(job)
    }

    fn leave(&mut self, job: Job) {
        self.members.remove(job);
    }

    fn begin_epoch(&mut self, job: Job) -> Result<(), SamplerError> {
        let member = self.members.get_mut(job).ok_or(SamplerError::UnknownJob(job))?;
        member.need.refill(&member.elements);
        Ok(())
    }

    fn remaining(&self, job: Job) -> usize {
        self.members.get(job).map_or(0, |member| member.need.len())
    }

    fn round(&mut self, jobs: JobSet, draws: &mut Vec<Draw>) {
        draws.clear();
        for job in jobs.iter() {
            let Some(member) = self.members.get_mut(job) else { continue };
            let remaining = member.need.len();
            if remaining > 0 {
                let element = member.need.nth(below(&mut member.rng, remaining));
                member.need.remove(element);
                draws.push(Draw { job, element });
            }
        }
    }
}
