//! The epochs of a search: all models on all folds, as each of its processes goes through them.

use super::candidates::Candidates;
use super::course::Course;
use super::team::{Outcome, Team};
use decode::notices::{notice_clipped, notice_left_out};
use errors::{Result, TrainingError};
use pg::check_for_interrupts;
use scan::Buffers;
use scan::progress;
use scan::scan_control::ScanControl;
use std::ops::Range;
use std::time::{Duration, Instant};
use tuples::{Batch, TupleSource};

/// A process that goes through a course.
pub struct Runner<'c, 'a> {
    pub course: &'c Course,
    pub team: &'a mut Team,
    pub buffers: &'a mut Buffers,
    pub batch: &'a mut Batch,
    /// time spent learning
    pub compute: Duration,
}

impl<'c> Runner<'c, '_> {
    /// Trains and evaluates all points on these folds, together with the other processes.
    pub fn run(&mut self, folds: Range<u32>) -> Result<Candidates<'c>> {
        let reads_first = folds.start == 0;
        let mut candidates = Candidates::new(self.course, folds, self.team.rank());
        for epoch in 1..=self.course.last_epoch {
            self.epoch(epoch, &mut candidates)?;
            if epoch == 1 && reads_first && self.team.is_leader() {
                notice_left_out(&self.buffers.decoder, self.buffers.decoder.decoded());
                notice_clipped(&self.buffers.decoder);
            }
            candidates.rest(epoch);
            let due = candidates.due(epoch);
            self.evaluate(epoch, &mut candidates, &due)?;
            if !candidates.learn_on() {
                break;
            }
        }
        let due = candidates.unevaluated();
        self.evaluate(self.course.last_epoch, &mut candidates, &due)?;
        Ok(candidates)
    }

    fn epoch(&mut self, epoch: u32, candidates: &mut Candidates) -> Result<()> {
        let start = Instant::now();
        candidates.begin_epoch();
        // a process whose models have all ended waits for the others; the leader's reading is what is shown
        let tuples = match epoch == 1 || self.team.is_leader() || candidates.learn_here() {
            true => self.learn(epoch, candidates)?,
            false => 0,
        };
        if epoch == 1 {
            self.check_first_epoch(tuples, candidates)?;
        }
        let loss = candidates.end_epoch(self.team) * self.loss_unit();
        progress::loss(loss);
        if self.course.notice && self.team.is_leader() {
            let rate = tuples as f64 / start.elapsed().as_secs_f64().max(1e-9);
            let (epochs, models) = (self.course.last_epoch, candidates.iter().count());
            pg::notice(
                format!("epoch {epoch} of {epochs} of {models} models: least loss {loss:.6}, {rate:.0} tuples/s"),
                None,
            );
        }
        Ok(())
    }

    /// This process's models learn from all tuples, whose number it returns.
    fn learn(&mut self, epoch: u32, candidates: &mut Candidates) -> Result<u64> {
        self.begin_epoch(epoch);
        let Runner { buffers, batch, compute, .. } = self;
        let mut tuples = 0;
        while buffers.next_batch(batch)? {
            progress::tuples(batch.tuples_in_order());
            let begun = Instant::now();
            tuples += batch.tuples_in_order() as u64;
            let (decoder, outputs) = (&buffers.decoder, buffers.decoder.labels().outputs());
            candidates.make(batch, decoder)?;
            candidates.learn(batch, outputs, epoch == 1)?;
            *compute += begun.elapsed();
        }
        Ok(tuples)
    }

    /// Checks the rows that the first epoch has seen. Every process has seen the same.
    fn check_first_epoch(&self, tuples: u64, candidates: &Candidates) -> Result<()> {
        let decoder = &self.buffers.decoder;
        if tuples == 0 {
            return Err(TrainingError::no_rows("train on", decoder.skipped()).into());
        }
        decoder.labels().check()?;
        candidates.check_parts()
    }

    /// Evaluates these models on the rows that are held out of their folds: the source is read once more, where one of
    /// them is.
    fn evaluate(&mut self, epoch: u32, candidates: &mut Candidates, which: &[usize]) -> Result<()> {
        if which.is_empty() {
            return Ok(());
        }
        let mut models = candidates.to_evaluate(which)?;
        if !models.all.is_empty() {
            self.begin_epoch(epoch);
            while self.buffers.next_batch(self.batch)? {
                check_for_interrupts();
                candidates.evaluate(&mut models, self.batch)?;
            }
        }
        let unit = self.loss_unit();
        let outcomes = models.all.iter().map(|(_, one)| Outcome::new(one.candidate, &one.evaluation, unit)).collect();
        candidates.take_results(self.team.share(outcomes));
        Ok(())
    }

    /// The next epoch is this one.
    fn begin_epoch(&mut self, epoch: u32) {
        self.buffers.decoder.begin_epoch();
        self.buffers.control(&ScanControl::epoch(epoch.into()));
    }

    /// What a loss is to be multiplied by to be that of the targets as they are.
    fn loss_unit(&self) -> f64 {
        self.buffers.decoder.target().map_or(1.0, |target| target.loss_unit(self.course.kind))
    }
}
