//! Jobs by number, and sets of them.

use std::fmt;

use crate::sampler::SamplerError;

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

/// What is known of each job, by its number.
#[derive(Debug)]
pub(crate) struct Members<T> {
    slots: Vec<Option<T>>,
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self { slots: Vec::new() }
    }
}

impl<T> Members<T> {
    /// Gives a job the lowest free number.
    pub(crate) fn insert(&mut self, member: T) -> Result<Job, SamplerError> {
        let number = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if number == MAX_JOBS {
            return Err(SamplerError::TooManyJobs);
        }
        if number == self.slots.len() {
            self.slots.try_reserve(1)?;
            self.slots.push(None);
        }
        self.slots[number] = Some(member);
        Ok(Job(number as u8))
    }

    pub(crate) fn remove(&mut self, job: Job) -> Option<T> {
        self.slots.get_mut(job.number())?.take()
    }

    pub(crate) fn get(&self, job: Job) -> Option<&T> {
        self.slots.get(job.number())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, job: Job) -> Option<&mut T> {
        self.slots.get_mut(job.number())?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Job, &T)> {
        (0..).map(Job).zip(&self.slots).filter_map(|(job, slot)| Some((job, slot.as_ref()?)))
    }
}

/// Of a job that is a member.
impl<T> std::ops::Index<Job> for Members<T> {
    type Output = T;

    fn index(&self, job: Job) -> &T {
        self.get(job).expect("the job has joined")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_free_again_when_its_job_has_left() {
        let mut members = Members::default();
        let jobs: Vec<Job> = (0..MAX_JOBS).map(|n| members.insert(n).unwrap()).collect();
        assert_eq!(members.insert(64), Err(SamplerError::TooManyJobs));
        assert_eq!(members.remove(jobs[7]), Some(7));
        assert_eq!(members.remove(jobs[7]), None);
        assert_eq!(members.insert(70), Ok(jobs[7]));
        assert_eq!(members.get(jobs[7]), Some(&70));
        assert_eq!(members.iter().count(), MAX_JOBS);
    }

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
