//! The jobs of a sampler.

use crate::error::SamplerError;
use shuffle::Job;

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
        let job = Job::new(number).ok_or(SamplerError::TooManyJobs)?;
        if number == self.slots.len() {
            allocation::try_reserve(&mut self.slots, 1)?;
            self.slots.push(None);
        }
        self.slots[number] = Some(member);
        Ok(job)
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

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Job, &T)> {
        self.slots.iter().enumerate().filter_map(|(number, slot)| Some((Job::new(number)?, slot.as_ref()?)))
    }
}

impl<T> std::ops::Index<Job> for Members<T> {
    type Output = T;

    fn index(&self, job: Job) -> &T {
        self.get(job).expect("the job has joined")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shuffle::MAX_JOBS;

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
}
