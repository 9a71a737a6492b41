//! Whoever trains together with this process: other processes, or servers.

use super::learners::Judged;
use super::validation::United;
use crate::errors::Result;
use crate::operators::buffers::Buffers;
use sgd::{ModelKind, Steps, Trainer};
use tuples::Batch;

/// Trainers of a group that make their steps at the same tuples, by their places among all, ascending.
pub struct Cohort {
    pub group: usize,
    pub steps: Steps,
    pub members: Vec<usize>,
    /// tuples in the mini-batch that has begun
    pub pending: usize,
}

impl Cohort {
    /// The cohorts of these trainers, in the sequence of their first members. The trainers of a group follow one upon
    /// the other; `groups` has the group of each.
    pub fn all(trainers: &[&mut Trainer], groups: &[usize]) -> Vec<Cohort> {
        let mut cohorts: Vec<Cohort> = Vec::new();
        let mut first = 0;
        for (i, (trainer, group)) in trainers.iter().zip(groups).enumerate() {
            let steps = trainer.steps();
            if cohorts.last().is_some_and(|last| last.group != *group) {
                first = cohorts.len();
            }
            match cohorts[first..].iter_mut().find(|cohort| cohort.steps == steps) {
                Some(cohort) => cohort.members.push(i),
                None => cohorts.push(Cohort { group: *group, steps, members: vec![i], pending: 0 }),
            }
        }
        cohorts
    }

    /// The members among all trainers.
    pub fn members<'a>(&self, trainers: &'a mut [&mut Trainer]) -> Vec<&'a mut Trainer> {
        let (Some(first), Some(last)) = (self.members.first(), self.members.last()) else { return Vec::new() };
        let near = (*first..).zip(&mut trainers[*first..=*last]);
        near.filter(|(i, _)| self.members.binary_search(i).is_ok()).map(|(_, trainer)| &mut **trainer).collect()
    }
}

/// The leader's rows.
pub struct Here<'a> {
    pub buffers: &'a mut Buffers,
    pub batch: &'a mut Batch,
}

/// Whoever trains together with this process.
pub trait Team {
    /// All go through an epoch, which the leader's trainers have begun, and which is ended by their owner: the trainers
    /// and the group of each, ascending. `check` is called after each buffer.
    ///
    /// # Errors
    /// Those of `check`; what is wrong with the rows, or with the others.
    fn epoch(
        &mut self,
        trainers: (&mut [&mut Trainer], &[usize]),
        here: Here<'_>,
        check: &dyn Fn(&[&mut Trainer]) -> Result<()>,
    ) -> Result<()>;

    /// All end the epoch and evaluate their models that have not diverged, each on what it holds out; gives what they
    /// have found together. `models` are the leader's.
    ///
    /// # Errors
    /// What is wrong with the rows, if they are read once more, or with the others.
    fn evaluate(&mut self, kind: ModelKind, models: Vec<Judged>, epoch: u32, here: Here<'_>) -> Result<United>;

    /// Only the trainers of these groups and points learn in the next epoch; if there are none, that was the last one.
    ///
    /// # Errors
    /// What is wrong with the others.
    fn go_on(&mut self, learning: Vec<(usize, usize)>) -> Result<()>;
}
