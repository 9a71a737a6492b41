//! A training that several processes, or servers, do together, as the one sees it whose models are stored.
//!
//! It guarantees that all of them have the same models at the end of each epoch, to the bit, and so find the same ones
//! diverged; and that only the leader says what becomes of the others: which are the best so far, and which learn on.

use super::first_epoch::check_first_epoch;
use super::learners::Learners;
use super::team::{Here, Team};
use super::training::Training;
use super::validation::{United, check_held_out};
use super::workers::Launched;
use decode::RowGroups;
use decode::notices::notice_left_out;
use errors::{Result, TrainingError};
use sgd::{Evaluation, Trainer};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tuples::Batch;

impl Training {
    /// The groups that models learn from; one if there are no groups, or if a model of one group goes on, which is the
    /// first then.
    pub(super) fn groups_together(&self) -> usize {
        match &self.resume {
            Some(resume) if resume.group.is_some() => 1,
            _ => self.buffers.decoder.row_groups().map_or(1, RowGroups::count),
        }
    }

    /// Makes the leader's trainers, for each group one for each point, learners.
    pub(super) fn learners_of(&self, trainers: Vec<Trainer>) -> Result<Learners> {
        let (mut learners, mut trainers) = (Learners::default(), trainers.into_iter());
        let losses = self.resume.as_ref().map(|resume| resume.losses).unwrap_or_default();
        for group in 0..self.groups_together() {
            learners.add_group(&self.request, group, |_| {
                let trainer = trainers.next().unwrap_or_else(|| pgrx::error!("a point has no trainer"));
                Ok((trainer, losses))
            })?;
        }
        Ok(learners)
    }

    /// Goes through all epochs together with workers, which have ended afterwards.
    pub(super) fn train_with_workers(
        &mut self,
        (processes, mut replica, trainers): Launched,
        batch: &mut Batch,
    ) -> Result<Learners> {
        let mut learners = self.learners_of(trainers)?;
        self.epochs_together(&mut replica, &mut learners, batch, |training| {
            check_first_epoch(&training.request, &training.buffers)
        })?;
        (self.phases.compute, self.seen.class_shares) = (replica.compute, replica.class_shares);
        processes.finish(&mut self.buffers);
        Ok(learners)
    }

    /// Goes through all epochs together with others. `check_first` looks at what the first one has met.
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
            // that one of several has diverged is reported at the end of the epoch, since it ends only that one
            _ => Ok(()),
        };
        for epoch in first..=last {
            let begin = Instant::now();
            learners.begin_epoch();
            let (groups, mut trainers): (Vec<usize>, Vec<&mut Trainer>) =
                learners.learning().map(|learner| (learner.group, &mut learner.trainer)).unzip();
            team.epoch((&mut trainers, &groups), Here { buffers: &mut self.buffers, batch }, &check)?;
            if epoch == first {
                check_first(self)?;
                self.look_at_first_epoch(learners)?;
            }
            learners.end_epoch(&self.request, unit, begin.elapsed(), Duration::ZERO)?;
            let evaluations = self.evaluate_together(team, learners, epoch, batch)?;
            self.take_evaluations(learners, &evaluations)?;
            let learning: Vec<_> = learners.learning().map(|learner| (learner.group, learner.point)).collect();
            let is_over = learning.is_empty();
            team.go_on(learning)?;
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Tells what the first epoch has left out, before it is ended.
    fn look_at_first_epoch(&mut self, learners: &mut Learners) -> Result<()> {
        self.count_imputed();
        learners.drop_untaught();
        let by_group = learners.learning().map(|learner| (learner.group, learner.trainer.tuples()));
        let tuples: u64 = by_group.collect::<BTreeMap<usize, u64>>().into_values().sum();
        if tuples == 0 {
            return Err(TrainingError::no_rows("train on", self.buffers.decoder.skipped()).into());
        }
        notice_left_out(&self.buffers.decoder, self.buffers.decoder.decoded());
        Ok(())
    }

    /// What all hold out says of the models, if anything is held out.
    fn evaluate_together(
        &mut self,
        team: &mut dyn Team,
        learners: &mut Learners,
        epoch: u32,
        batch: &mut Batch,
    ) -> Result<Vec<Evaluation>> {
        if self.request.row_groups.hold_out.is_none() {
            return Ok(Vec::new());
        }
        let models = learners.models()?;
        let here = Here { buffers: &mut self.buffers, batch };
        let United { evaluations, held_out } = team.evaluate(self.request.kind, models, epoch, here)?;
        check_held_out(&self.request, held_out)?;
        Ok(evaluations)
    }
}
