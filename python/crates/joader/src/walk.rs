//! The common permutation: all jobs walk round the same circle, and who begins an epoch begins where the others are.
//!
//! It guarantees that jobs with the same elements that go at one speed meet all the time, however different the moments
//! are at which they have begun: an element is read once per lap, and not once per job. What it gives up:
//!
//! - The order of one epoch is uniform, but all jobs have the same one, each from its own beginning: they are
//!   correlated as strongly as can be.
//! - A job's next epoch goes the same way once more as long as somebody is on it. A new permutation is drawn only when
//!   an epoch begins while no other job is under way.
//! - Jobs that leave different elements out drift apart, as their steps are of different length.
//!
//! Elements are sorted by keys that a function gives them ([`SortKeys`]), all different. So the permutation needs no
//! memory, and no universe that would have to be known before the jobs are. Each job keeps its own elements in that
//! order, with 4 bytes each. A draw is a step; sorting takes n log n.

use shuffle::SortKeys;

use crate::elements::ElementSet;
use crate::error::SamplerError;
use crate::members::Members;
use crate::sampler::{Draw, Sampler};
use shuffle::{Job, JobSet};

struct Member {
    /// In the order of permutation number `permutation`.
    elements: Vec<u32>,
    permutation: u64,
    /// Where the next element is, and how many are left.
    next: usize,
    remaining: usize,
}

/// See the module's documentation.
pub struct Walk {
    seed: i64,
    /// Which permutation it is.
    permutation: u64,
    members: Members<Member>,
}

impl Walk {
    /// A sampler without jobs.
    pub fn new(seed: i64) -> Self {
        Self { seed, permutation: 0, members: Members::default() }
    }

    fn keys(&self) -> SortKeys {
        SortKeys::common(self.seed, self.permutation)
    }

    /// Where the others are: the next element of the job with the longest way to go, so that it lasts. Without anybody
    /// under way there is a new permutation, and nothing to go by.
    fn others(&mut self, but: Job) -> Option<u32> {
        let others = self.members.iter().filter(|&(job, member)| job != but && member.remaining > 0);
        // of several the first
        let longest = others.min_by_key(|(_, member)| std::cmp::Reverse(member.remaining));
        let next = longest.map(|(_, member)| member.elements[member.next]);
        if next.is_none() {
            self.permutation += 1;
        }
        next
    }
}

impl Sampler for Walk {
    fn join(&mut self, elements: ElementSet) -> Result<Job, SamplerError> {
        let mut copied = Vec::new();
        allocation::try_reserve_exact(&mut copied, elements.len())?;
        copied.extend(elements.iter());
        let job = self.members.insert(Member { elements: copied, permutation: 0, next: 0, remaining: 0 })?;
        self.begin_epoch(job)?;
        Ok(job)
    }

    fn leave(&mut self, job: Job) {
        self.members.remove(job);
    }

    fn begin_epoch(&mut self, job: Job) -> Result<(), SamplerError> {
        self.members.get(job).ok_or(SamplerError::UnknownJob(job))?;
        let others = self.others(job);
        let (keys, permutation) = (self.keys(), self.permutation);
        let member = self.members.get_mut(job).ok_or(SamplerError::UnknownJob(job))?;
        if member.permutation != permutation {
            member.elements.sort_unstable_by_key(|&element| keys.key(element.into()));
            member.permutation = permutation;
        }
        let key = |element: u32| keys.key(element.into());
        let passed = others.map_or(0, |next| member.elements.partition_point(|&element| key(element) < key(next)));
        member.next = if passed < member.elements.len() { passed } else { 0 };
        member.remaining = member.elements.len();
        Ok(())
    }

    fn remaining(&self, job: Job) -> usize {
        self.members.get(job).map_or(0, |member| member.remaining)
    }

    fn round(&mut self, jobs: JobSet, draws: &mut Vec<Draw>) {
        draws.clear();
        for job in jobs.iter() {
            let Some(member) = self.members.get_mut(job).filter(|member| member.remaining > 0) else { continue };
            draws.push(Draw { job, element: member.elements[member.next] });
            member.remaining -= 1;
            member.next += 1;
            if member.next == member.elements.len() {
                member.next = 0;
            }
        }
    }
}
