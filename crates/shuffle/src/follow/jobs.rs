//! Jobs by number, and sets of them.

use std::fmt;

/// How many jobs a sampler can have at a time: a set of them is a word of 64 bits.
pub const MAX_JOBS: usize = 64;

/// A job that has joined a sampler: the lowest number that was free. It is free again when the job has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job(u8);

impl Job {
    /// Its number, below [`MAX_JOBS`].
    pub fn number(self) -> usize {
        self.0.into()
    }

    /// The job of this number; None from [`MAX_JOBS`] on.
    pub fn new(number: usize) -> Option<Self> {
        (number < MAX_JOBS).then_some(Self(number as u8))
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}", self.0)
    }
}

/// A set of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct JobSet(u64);

impl JobSet {
    /// Every job that there can be.
    pub const ALL: Self = Self(u64::MAX);

    /// The jobs whose bits are set.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Bit `n` stands for job `n`.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// With this job.
    pub fn insert(&mut self, job: Job) {
        self.0 |= 1 << job.0;
    }

    /// Without this job.
    pub fn remove(&mut self, job: Job) {
        self.0 &= !(1 << job.0);
    }

    /// Whether this job is in it.
    pub fn contains(self, job: Job) -> bool {
        self.0 >> job.0 & 1 == 1
    }

    /// Whether no job is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of these jobs are in it.
    pub fn has_all(self, jobs: Self) -> bool {
        self.0 & jobs.0 == jobs.0
    }

    /// How many jobs are in it.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The jobs, by number.
    pub fn iter(self) -> impl Iterator<Item = Job> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let job = Job(left.trailing_zeros() as u8);
            (left != 0).then(|| {
                left &= left - 1;
                job
            })
        })
    }
}

impl FromIterator<Job> for JobSet {
    fn from_iter<T: IntoIterator<Item = Job>>(jobs: T) -> Self {
        jobs.into_iter().fold(Self::default(), |mut set, job| {
            set.insert(job);
            set
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_jobs_that_were_put_into_it() {
        let jobs = [Job(0), Job(5), Job(63)];
        let mut set: JobSet = jobs.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), jobs);
        assert_eq!(set.len(), 3);
        set.remove(Job(5));
        assert!(!set.contains(Job(5)) && set.contains(Job(63)) && set.contains(Job(0)));
        assert_eq!(JobSet::ALL.iter().count(), MAX_JOBS);
        assert!(JobSet::default().is_empty() && JobSet::default().iter().next().is_none());
    }
}
