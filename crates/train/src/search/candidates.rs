//! The models of a search: each point on each fold, all of which learn from the same tuples side by side.

use super::super::learn::{floats_per_tuple, learn};
use super::super::learners::HeldOutResult;
use super::super::new_trainer::new_trainer;
use super::super::validation::ByGroup;
use super::course::Course;
use super::team::{Outcome, Team};
use decode::{Decoder, HELD_OUT};
use errors::{Result, TrainingError};
use linear::Panel;
use loss::ModelParameters;
use options::chosen::Keep;
use pg::check_for_interrupts;
use scan::scan_control::Rank;
use sgd::{Evaluation, Losses, Trainer, deal};
use shuffle::FoldRule;
use std::ops::Range;
use tuples::Batch;

/// Floats of rows that all models learn from before the next rows come: what the first cache level holds.
const FLOATS_PER_CHUNK: usize = 1 << 13;

/// Tuples that all models of a panel learn from between two looks at pending interrupts.
const TUPLES_PER_PAUSE: usize = 1 << 12;

/// A point on a fold.
pub struct Candidate {
    pub fold: u32,
    pub point: usize,
    learner: Learner,
    /// the epoch that has begun last
    epoch: u32,
    state: State,
    losses: Losses,
    /// the model of the best epoch, and its result, if that counts
    best: Option<HeldOutResult>,
    /// epochs that count: those up to the best, if that counts
    pub epochs: u32,
    /// of the model that counts
    pub result: Option<HeldOutResult>,
}

/// A candidate's model that is being evaluated.
pub struct Evaluated {
    pub candidate: usize,
    model: ModelParameters,
    pub evaluation: Evaluation,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Learning,
    Done,
    /// the point has diverged, here or on another fold
    Diverged,
}

enum Learner {
    Alone(Box<Trainer>),
    /// the model of this number in the panel
    Lane(usize),
    /// another process has it
    Elsewhere,
}

/// The points on some of the folds, fold by fold. Each process knows how all of them are doing, and trains those that
/// it was dealt.
pub struct Candidates<'a> {
    course: &'a Course,
    all: Vec<Candidate>,
    rule: FoldRule,
    folds: Range<u32>,
    rank: Rank,
    /// tuples of each part that came in the first epoch
    pub parts: Vec<u64>,
    /// those of them that can learn lane by lane, the points of a fold side by side
    panel: Option<Panel>,
    order: Vec<u32>,
    parts_of_order: Vec<u32>,
    places: Vec<u32>,
}

impl Candidates<'_> {
    /// None yet, of all points on these folds, of which this process trains its own.
    pub fn new(course: &Course, folds: Range<u32>, rank: Rank) -> Candidates<'_> {
        Candidates {
            course,
            all: Vec::new(),
            rule: course.rule,
            folds,
            rank,
            parts: vec![0; course.rule.parts() as usize],
            panel: None,
            order: Vec::new(),
            parts_of_order: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Makes the models for tuples like those of the batch, in their first epoch, before the first one exists.
    pub fn make(&mut self, batch: &Batch, decoder: &Decoder) -> Result<()> {
        if !self.all.is_empty() {
            return Ok(());
        }
        let course = self.course;
        let loads = course.loads(self.folds.clone(), batch, decoder.labels().outputs());
        let dealt = deal(&loads, self.rank.processes as usize);
        let mut lanes = Vec::new();
        for (i, (load, process)) in loads.into_iter().zip(dealt).enumerate() {
            check_for_interrupts();
            let (fold, point) = (self.folds.start + (i / course.trials.len()) as u32, i % course.trials.len());
            let trial = &course.trials[point];
            let learner = if process != self.rank.rank as usize {
                Learner::Elsewhere
            } else if load.in_panel {
                let learns = (0..self.rule.parts()).map(|part| self.rule.learns(fold, part)).collect();
                lanes.push((decoder.in_units(trial.hyperparameters), learns));
                Learner::Lane(lanes.len() - 1)
            } else {
                let mut trainer = new_trainer(decoder, None, trial.hyperparameters, batch)?;
                trainer.begin_epoch();
                Learner::Alone(Box::new(trainer))
            };
            self.all.push(Candidate {
                fold,
                point,
                learner,
                epoch: 1,
                state: State::Learning,
                losses: Losses::default(),
                best: None,
                epochs: 0,
                result: None,
            });
        }
        if !lanes.is_empty() {
            let panel = self.panel.insert(Panel::new(lanes, batch.dim())?);
            panel.begin_epoch();
        }
        Ok(())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.all.iter()
    }

    pub fn learn_on(&self) -> bool {
        self.all.iter().any(|candidate| candidate.state == State::Learning)
    }

    /// Does any that this process trains still learn?
    pub fn learn_here(&self) -> bool {
        self.all.iter().any(|candidate| candidate.state == State::Learning && candidate.is_here())
    }

    fn learning(&mut self) -> impl Iterator<Item = &mut Candidate> {
        self.all.iter_mut().filter(|candidate| candidate.state == State::Learning)
    }

    pub fn begin_epoch(&mut self) {
        for candidate in self.learning() {
            candidate.epoch += 1;
            if let Learner::Alone(trainer) = &mut candidate.learner {
                trainer.begin_epoch();
            }
        }
        self.panel.iter_mut().for_each(Panel::begin_epoch);
    }

    /// All models learn from the tuples of a buffer, each from those of its fold, in the buffer's order. All go through
    /// a few tuples before the next ones come, so that these are in the processor's cache.
    pub fn learn(&mut self, batch: &mut Batch, outputs: usize, is_first: bool) -> Result<()> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        allocation::append(&mut order, batch.order());
        self.find_parts(batch, &order, is_first);
        self.learn_lanes(batch)?;
        let chunk = (FLOATS_PER_CHUNK / floats_per_tuple(batch)).max(1);
        let alone = |candidate: &Candidate| matches!(candidate.learner, Learner::Alone(_));
        let learned_alone = if self.all.iter().any(alone) { &order[..] } else { &[] };
        for (i, places) in learned_alone.chunks(chunk).enumerate() {
            let ranges = self.order_by_fold(batch, places, i * chunk)?;
            for (range, candidates) in ranges.into_iter().zip(self.all.chunks_mut(self.course.trials.len())) {
                for candidate in candidates.iter_mut().filter(|candidate| candidate.state == State::Learning) {
                    if let Learner::Alone(trainer) = &mut candidate.learner {
                        learn(trainer, batch, outputs, range.clone())?;
                    }
                }
            }
            check_for_interrupts();
        }
        self.order = order;
        Ok(())
    }

    /// Finds the part of each tuple of a buffer, and counts them in the first epoch.
    fn find_parts(&mut self, batch: &Batch, order: &[u32], is_first: bool) {
        let tags = batch.tags().unwrap_or_default();
        self.parts_of_order.clear();
        allocation::extend(&mut self.parts_of_order, order.iter().map(|place| part(self.rule, tags, *place)));
        for (place, part) in order.iter().zip(&self.parts_of_order).filter(|_| is_first) {
            let tuples = if batch.has_mini_batches() { batch.mini_batch(*place as usize).len() as u64 } else { 1 };
            self.parts[*part as usize] += tuples;
        }
    }

    /// The models of the panel learn from a buffer, in its order.
    fn learn_lanes(&mut self, batch: &Batch) -> Result<()> {
        let Some(panel) = &mut self.panel else { return Ok(()) };
        for from in (0..self.parts_of_order.len()).step_by(TUPLES_PER_PAUSE) {
            panel.learn(batch, &self.parts_of_order, from..(from + TUPLES_PER_PAUSE).min(self.parts_of_order.len()));
            check_for_interrupts();
        }
        Ok(())
    }

    /// Makes the order of the batch that of the tuples at these places, the first of which is number `first` of the
    /// buffer, from which each fold learns, and gives the range of each.
    fn order_by_fold(&mut self, batch: &mut Batch, places: &[u32], first: usize) -> Result<Vec<Range<usize>>> {
        let parts = &self.parts_of_order[first..][..places.len()];
        self.places.clear();
        let mut ranges = Vec::with_capacity(self.folds.len());
        for fold in self.folds.clone() {
            let start = self.places.len();
            let learned = places.iter().zip(parts).filter(|(_, part)| self.rule.learns(fold, **part));
            allocation::extend(&mut self.places, learned.map(|(place, _)| *place));
            ranges.push(start..self.places.len());
        }
        batch.set_order(&self.places)?;
        Ok(ranges)
    }

    /// Ends an epoch in all processes; gives the least loss. A point that has diverged is given up on all folds.
    pub fn end_epoch(&mut self, team: &mut Team) -> f64 {
        let Candidates { all, panel, .. } = self;
        panel.iter_mut().for_each(Panel::end_epoch);
        let learning = all.iter_mut().enumerate().filter(|(_, candidate)| candidate.state == State::Learning);
        let outcome = |(i, candidate): (usize, &mut Candidate)| {
            let loss = match &mut candidate.learner {
                Learner::Alone(trainer) => trainer.finish_epoch().map(|report| report.loss),
                Learner::Lane(lane) => panel.as_ref()?.loss(*lane),
                Learner::Elsewhere => return None,
            };
            Some(loss.map_or(Outcome::diverged(i), |loss| Outcome { candidate: i as u64, loss, score: 0.0 }))
        };
        let (mut least, mut diverged) = (f64::INFINITY, Vec::new());
        for outcome in team.share(learning.filter_map(outcome).collect()) {
            let candidate = &mut self.all[outcome.candidate as usize];
            if outcome.has_diverged() {
                diverged.push(candidate.point);
            } else {
                least = least.min(outcome.loss);
                candidate.epochs = candidate.epoch;
            }
        }
        self.give_up(&diverged);
        least
    }

    fn give_up(&mut self, points: &[usize]) {
        for candidate in self.all.iter_mut().filter(|candidate| points.contains(&candidate.point)) {
            (candidate.state, candidate.result) = (State::Diverged, None);
            stop(&mut self.panel, candidate);
        }
    }

    /// The models of which it is to be known how good they are after this epoch: those that then have learned all that
    /// they will, and those of points whose epochs depend on that.
    pub fn due(&self, epoch: u32) -> Vec<usize> {
        let is_due = |candidate: &Candidate| {
            let trial = &self.course.trials[candidate.point];
            let is_last = epoch >= trial.max_epochs;
            let is_watched = trial.stopping.is_some() || self.course.keep == Keep::Best;
            candidate.state == State::Learning && (is_last || is_watched)
        };
        (0..self.all.len()).filter(|i| is_due(&self.all[*i])).collect()
    }

    /// Those that need not be evaluated before all of them have ended have learned their last epoch.
    pub fn rest(&mut self, epoch: u32) {
        for candidate in self.all.iter_mut().filter(|candidate| candidate.state == State::Learning) {
            let trial = &self.course.trials[candidate.point];
            if epoch >= trial.max_epochs && trial.stopping.is_none() && self.course.keep == Keep::Last {
                candidate.state = State::Done;
                stop(&mut self.panel, candidate);
            }
        }
    }

    /// The models that have ended and were not evaluated.
    pub fn unevaluated(&self) -> Vec<usize> {
        let is_unevaluated = |candidate: &Candidate| candidate.state == State::Done && candidate.result.is_none();
        (0..self.all.len()).filter(|i| is_unevaluated(&self.all[*i])).collect()
    }

    /// Those of these models that this process has, by fold, ready to be evaluated.
    pub fn to_evaluate(&self, which: &[usize]) -> Result<ByGroup<Evaluated>> {
        let mut models = Vec::with_capacity(which.len());
        for i in which {
            let candidate = &self.all[*i];
            let evaluation = Evaluation::new(self.course.kind);
            let (model, evaluation) = match (&candidate.learner, &self.panel) {
                (Learner::Alone(trainer), _) => (trainer.model()?, evaluation.with_loss_number(trainer.loss_number())),
                // a loss of lanes has no number
                (Learner::Lane(lane), Some(panel)) => (panel.model(*lane), evaluation),
                (Learner::Lane(_), None) => panic!("a panel has lanes"),
                (Learner::Elsewhere, _) => continue,
            };
            models.push((candidate.fold as usize, Evaluated { candidate: *i, model, evaluation }));
        }
        Ok(ByGroup::new(models))
    }

    /// Evaluates models on the tuples of a buffer, each on those that are held out of its fold.
    pub fn evaluate(&mut self, models: &mut ByGroup<Evaluated>, batch: &Batch) -> Result<()> {
        let Candidates { rule, folds, places, .. } = self;
        let tags = batch.tags().unwrap_or_default();
        for fold in folds.clone() {
            let is_held_out = |place: &u32| rule.judged_by(part(*rule, tags, *place)) == Some(fold);
            places.clear();
            allocation::extend(places, batch.order().iter().copied().filter(is_held_out));
            models.show(fold as usize, (batch, places), |one, batch| one.evaluation.add(&one.model, batch))?;
        }
        Ok(())
    }

    /// Takes what came out after an epoch in all processes, and decides which models learn on.
    pub fn take_results(&mut self, outcomes: Vec<Outcome>) {
        let mut diverged = Vec::new();
        for outcome in outcomes {
            let candidate = &mut self.all[outcome.candidate as usize];
            let Candidate { point, state, losses, best, epochs, result, epoch, .. } = candidate;
            if outcome.has_diverged() {
                diverged.push(*point);
                continue;
            }
            let own = HeldOutResult { loss: outcome.loss, score: outcome.score };
            let trial = &self.course.trials[*point];
            let improved = losses.add(own.loss, trial.stopping);
            match self.course.keep {
                Keep::Best if improved => (*best, *epochs) = (Some(own), *epoch),
                Keep::Best => {}
                Keep::Last => *epochs = *epoch,
            }
            *result = Some(best.unwrap_or(own));
            if *epoch >= trial.max_epochs || trial.stopping.is_some_and(|rule| losses.stop(rule)) {
                *state = State::Done;
                stop(&mut self.panel, candidate);
            }
        }
        self.give_up(&diverged);
    }

    /// Checks that each of these folds has rows to learn from, and rows to be evaluated on.
    pub fn check_parts(&self) -> Result<()> {
        let rows = |is_in: &dyn Fn(u32) -> bool| -> u64 {
            (0..).zip(&self.parts).filter(|(part, _)| is_in(*part)).map(|(_, rows)| rows).sum()
        };
        for fold in self.folds.clone() {
            let learned = rows(&|part| self.rule.learns(fold, part));
            let held_out = rows(&|part| self.rule.judged_by(part) == Some(fold));
            if learned == 0 || held_out == 0 {
                let what = if learned == 0 { "learn from" } else { "be judged by" };
                return Err(TrainingError::EmptyFold { fold: fold + 1, folds: self.rule.folds(), what }.into());
            }
        }
        Ok(())
    }
}

impl Candidate {
    /// Does this process train it?
    fn is_here(&self) -> bool {
        !matches!(self.learner, Learner::Elsewhere)
    }
}

/// The part of the tuple in this place, by its tag.
#[inline]
fn part(rule: FoldRule, tags: &[u32], place: u32) -> u32 {
    let tag = tags.get(place as usize).copied().unwrap_or_default();
    match rule {
        FoldRule::HeldOut => u32::from(tag & HELD_OUT != 0),
        _ => tag,
    }
}

/// A candidate learns no more.
fn stop(panel: &mut Option<Panel>, candidate: &Candidate) {
    if let (Learner::Lane(lane), Some(panel)) = (&candidate.learner, panel) {
        panel.stop(*lane);
    }
}
