//! A training that several processes, or servers, do together, as the one sees it whose models are stored.
//!
//! It guarantees that all of them have the same models at the end of each epoch, to the bit, and so find the same ones
//! diverged; and that only the leader says what becomes of the others: which are the best so far, and which learn on.

use super::learners::{Judged, Judgement, Learner, Learners};
use super::training::Training;
use super::validation::judgement;
use crate::errors::{Result, TrainingError};
use crate::operators::buffers::Buffers;
use crate::operators::nulls::notice_left_out;
use sgd::{Evaluation, ModelKind, Steps, Trainer};
use std::time::{Duration, Instant};
use tuples::Batch;

/// Trainers that make their steps at the same tuples, by their places among all, ascending.
pub struct Cohort {
    pub steps: Steps,
    pub members: Vec<usize>,
    /// tuples in the mini-batch that has begun
    pub pending: usize,
}

impl Cohort {
    /// The cohorts of these trainers, in the sequence of their first members.
    pub fn all(trainers: &[&mut Trainer]) -> Vec<Cohort> {
        let mut cohorts: Vec<Cohort> = Vec::new();
        for (i, trainer) in trainers.iter().enumerate() {
            let steps = trainer.steps();
            match cohorts.iter_mut().find(|cohort| cohort.steps == steps) {
                Some(cohort) => cohort.members.push(i),
                None => cohorts.push(Cohort { steps, members: vec![i], pending: 0 }),
            }
        }
        cohorts
    }

    /// The members among all trainers.
    pub fn members<'a>(&self, trainers: &'a mut [&mut Trainer]) -> Vec<&'a mut Trainer> {
        let is_member = |(i, _): &(usize, &mut &mut Trainer)| self.members.binary_search(i).is_ok();
        trainers.iter_mut().enumerate().filter(is_member).map(|(_, trainer)| &mut **trainer).collect()
    }
}

/// The leader's rows.
pub struct Here<'a> {
    pub buffers: &'a mut Buffers,
    pub batch: &'a mut Batch,
}

/// Whoever trains together with this process.
pub trait Team {
    /// All go through an epoch, which the leader's trainers have begun, and which is ended by their owner. `check` is
    /// called after each buffer.
    ///
    /// # Errors
    /// Those of `check`; what is wrong with the rows, or with the others.
    fn epoch(
        &mut self,
        trainers: &mut [&mut Trainer],
        here: Here<'_>,
        check: &dyn Fn(&[&mut Trainer]) -> Result<()>,
    ) -> Result<()>;

    /// All end the epoch and evaluate their models that have not diverged, each on what it holds out; gives what they
    /// have found together. `models` are the leader's.
    ///
    /// # Errors
    /// What is wrong with the rows, if they are read once more, or with the others.
    fn evaluate(&mut self, kind: ModelKind, models: Vec<Judged>, epoch: u32, here: Here<'_>)
    -> Result<Vec<Evaluation>>;

    /// Only the trainers of these points learn in the next epoch; if there are none, that was the last one.
    ///
    /// # Errors
    /// What is wrong with the others.
    fn go_on(&mut self, points: Vec<usize>) -> Result<()>;
}

impl Training {
    /// Makes the leader's trainers, one for each point, learners.
    ///
    /// # Errors
    /// [`TrainingError::TooManyEpochs`]
    pub(super) fn learners_of(&self, trainers: Vec<Trainer>) -> Result<Learners> {
        let (mut learners, mut trainers) = (Learners::default(), trainers.into_iter());
        let losses = self.resume.as_ref().map(|resume| resume.losses).unwrap_or_default();
        learners.add_group(&self.request, 0, |_| {
            let trainer = trainers.next().unwrap_or_else(|| pgrx::error!("a point has no trainer"));
            Ok((trainer, losses))
        })?;
        Ok(learners)
    }

    /// Goes through all epochs together with others. `check_first` looks at what the first one has met.
    ///
    /// # Errors
    /// What is wrong with the rows or the others; [`TrainingError::Diverged`]
    pub(super) fn epochs_together(
        &mut self,
        team: &mut dyn Team,
        learners: &mut Learners,
        batch: &mut Batch,
        check_first: impl Fn(&Training) -> Result<()>,
    ) -> Result<()> {
        let (first, last) = (self.request.first_epoch(), self.request.last_epoch());
        let (unit, several) = (self.loss_unit(), self.request.trains_several());
        let standardized = self.buffers.decoder.standardizer().is_some();
        let check = |trainers: &[&mut Trainer]| match trainers {
            [trainer] if !several => {
                trainer.check().map_err(|e| TrainingError::Diverged { epoch: e.epoch, standardized }.into())
            }
            // that one of several has diverged is told at the end of the epoch, since it ends only that one
            _ => Ok(()),
        };
        for epoch in first..=last {
            let begin = Instant::now();
            learners.begin_epoch();
            let mut trainers: Vec<&mut Trainer> = learners.learning().map(|learner| &mut learner.trainer).collect();
            team.epoch(&mut trainers, Here { buffers: &mut self.buffers, batch }, &check)?;
            if epoch == first {
                check_first(self)?;
            }
            learners.end_epoch(&self.request, unit, begin.elapsed(), Duration::ZERO)?;
            if epoch == first {
                self.end_first_epoch(learners)?;
            }
            let judgements = self.judge_together(team, learners, epoch, batch)?;
            self.take_judgements(learners, judgements)?;
            let points: Vec<usize> = learners.learning().map(|learner| learner.point).collect();
            let is_over = points.is_empty();
            team.go_on(points)?;
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Tells what the first epoch has left out.
    fn end_first_epoch(&mut self, learners: &mut Learners) -> Result<()> {
        let tuples = |learner: &Learner| learner.history.last().map_or(0, |row| row.tuples as u64);
        let tuples = learners.learning().map(|learner| tuples(learner)).max();
        self.count_imputed();
        match tuples {
            Some(0) => Err(TrainingError::no_rows("train on", self.buffers.decoder.skipped()).into()),
            Some(tuples) => {
                notice_left_out(&self.buffers.decoder, tuples);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// What all hold out says of the models, if anything is held out.
    fn judge_together(
        &mut self,
        team: &mut dyn Team,
        learners: &mut Learners,
        epoch: u32,
        batch: &mut Batch,
    ) -> Result<Vec<Option<Judgement>>> {
        if self.request.row_groups.hold_out.is_none() {
            return Ok(Vec::new());
        }
        let models = learners.models()?;
        let evaluations =
            team.evaluate(self.request.kind, models, epoch, Here { buffers: &mut self.buffers, batch })?;
        if epoch == self.request.first_epoch() && evaluations.iter().all(|evaluation| evaluation.tuples() == 0) {
            return Err(TrainingError::NoRows("validate on").into());
        }
        Ok(evaluations.iter().map(judgement).collect())
    }
}
