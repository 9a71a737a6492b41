//! The replicas of the models that a node has.
//!
//! Models of a group whose rows are all on one node have a trainer there, and on no other node. It learns as those do
//! that learn together, but asks no one: what others would say is nothing.

use super::messages::{Outcome, Whose};
use crate::learners::GroupModel;
use crate::team::{Cohort, OwnBuffer, Turns, step};
use errors::Result;
use loss::EpochReport;
use pg::check_for_interrupts;
use sgd::{Alone, Trainer};
use std::ops::Range;
use tuples::Batch;

/// States of models are said until there are this many bytes of them.
const PIECE: usize = 4 << 20;

struct Replica {
    /// its group and point
    of: (usize, usize),
    /// None if its rows are all on another node
    trainer: Option<Trainer>,
    is_own: bool,
}

/// Those that still learn, by their groups and points, ascending.
#[derive(Default)]
pub struct Replicas {
    all: Vec<Replica>,
    /// places of those whose turn it is
    turn: Vec<usize>,
    /// of the trainers whose rows are all here
    own: Vec<Cohort>,
    /// what came of these in the epoch, by their places
    ended: Vec<(usize, u64, Option<EpochReport>)>,
}

impl Replicas {
    /// Adds a model. `new` makes its trainer, if there is to be one here.
    pub fn add(&mut self, of: (usize, usize), whose: Whose, new: impl FnOnce() -> Result<Trainer>) -> Result<()> {
        let trainer = if whose == Whose::Other { None } else { Some(new()?) };
        self.all.push(Replica { of, trainer, is_own: whose == Whose::Own });
        Ok(())
    }

    /// It is the turn of all that learn together.
    pub fn all_turn(&mut self) {
        let together = (0..).zip(&self.all).filter(|(_, replica)| replica.trainer.is_some() && !replica.is_own);
        self.turn = together.map(|(place, _)| place).collect();
    }

    /// It is the turn of these. False if they do not learn together.
    pub fn take_turn(&mut self, turn: Vec<usize>) -> bool {
        let learns = |place: &usize| self.all.get(*place).is_some_and(|of| of.trainer.is_some() && !of.is_own);
        let fits = turn.is_sorted() && turn.iter().all(learns);
        self.turn = turn;
        fits
    }

    pub fn turns(&self) -> usize {
        self.turn.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn in_turn(&mut self) -> impl Iterator<Item = &mut Trainer> {
        let turn = &self.turn;
        let (first, last) = (turn.first().copied().unwrap_or(0), turn.last().map_or(0, |last| last + 1));
        let near = self.all.iter_mut().enumerate().take(last).skip(first);
        near.filter(|(place, _)| turn.binary_search(place).is_ok()).filter_map(|(_, replica)| replica.trainer.as_mut())
    }

    pub fn group_in_turn(&self) -> Option<usize> {
        self.turn.first().and_then(|place| self.all.get(*place)).map(|replica| replica.of.0)
    }

    pub fn begin_epoch(&mut self) {
        self.all.iter_mut().filter_map(|replica| replica.trainer.as_mut()).for_each(Trainer::begin_epoch);
        let groups: Vec<usize> = self.all.iter().filter(|replica| replica.is_own).map(|replica| replica.of.0).collect();
        self.own = Cohort::all(&own(&mut self.all).1, &groups);
        self.ended.clear();
    }

    /// How much the loss of a mini-batch can bend, for each that is to know it from all nodes; `places` has those of
    /// each group in the batch's order.
    pub fn curvatures(&self, batch: &Batch, places: &[Range<usize>]) -> Result<Vec<Option<f64>>> {
        let curvature = |Replica { of: (group, _), trainer, is_own }: &Replica| match trainer {
            Some(trainer) if !is_own => {
                Ok(trainer.curvature_of_buffer(batch, places.get(*group).cloned().unwrap_or_default())?)
            }
            _ => Ok(None),
        };
        self.all.iter().map(curvature).collect()
    }

    /// Those whose rows are all here learn from a buffer, of which each group has these places.
    pub fn learn_own(&mut self, (batch, outputs): (&Batch, usize), places: &[Range<usize>]) -> Result<()> {
        let (_, mut trainers) = own(&mut self.all);
        for cohort in &mut self.own {
            if let Some(places) = places.get(cohort.group).filter(|places| !places.is_empty()) {
                let own = OwnBuffer::new(batch, std::slice::from_ref(places));
                let (turns, mut members) = (Turns::new([Some(&own)].into_iter(), 0), cohort.members(&mut trainers));
                let part = (turns, 0, places.clone());
                cohort.learn(&mut members, (batch, outputs), part, &mut Alone::default())?;
            }
        }
        Ok(())
    }

    /// Ends the epoch of those whose rows are all here, if it is the first of them that is asked for, and gives what
    /// came of them from this one on, and their states, as many as are not too long.
    pub fn end_own(&mut self, from: usize) -> Result<(Vec<Outcome>, Vec<u8>)> {
        if from == 0 {
            self.end_epoch_of_own()?;
        }
        let (mut outcomes, mut states) = (Vec::new(), Vec::new());
        for &(place, tuples, report) in self.ended.iter().skip(from) {
            let before = states.len();
            if let (Some(trainer), true) = (&mut self.all[place].trainer, report.is_some()) {
                states = trainer.save(states);
            }
            outcomes.push(Outcome { place, tuples, report, bytes: states.len() - before });
            check_for_interrupts();
            if states.len() > PIECE {
                break;
            }
        }
        Ok((outcomes, states))
    }

    fn end_epoch_of_own(&mut self) -> Result<()> {
        let (places, mut trainers) = own(&mut self.all);
        for cohort in &mut self.own {
            if let Some(tuples) = cohort.end_step() {
                step(&mut cohort.members(&mut trainers), tuples, &mut Alone::default())?;
            }
        }
        self.ended.clear();
        for (place, trainer) in places.into_iter().zip(trainers) {
            trainer.count_synchronized(&mut Alone::default())?;
            let tuples = trainer.tuples();
            self.ended.push((place, tuples, if tuples > 0 { trainer.finish_epoch().ok() } else { None }));
            check_for_interrupts();
        }
        Ok(())
    }

    /// Ends the epoch of those that learn together. Those that have diverged are gone, and those at these places.
    pub fn end_epoch(&mut self, gone: &[usize]) {
        let mut place = 0;
        self.all.retain_mut(|Replica { trainer, is_own, .. }| {
            place += 1;
            match trainer {
                Some(trainer) if !*is_own => trainer.tuples() > 0 && trainer.finish_epoch().is_ok(),
                _ => gone.binary_search(&(place - 1)).is_err(),
            }
        });
        self.all_turn();
    }

    /// Only the models of these groups and points learn on.
    pub fn go_on(&mut self, learning: &[(usize, usize)]) {
        self.all.retain(|replica| learning.binary_search(&replica.of).is_ok());
        self.all_turn();
    }

    /// The models, in their sequence: None of those whose rows are all on another node.
    pub fn models(&self) -> Result<Vec<Option<GroupModel>>> {
        let model_of = |replica: &Replica| {
            let model = |trainer| GroupModel::new(replica.of.0, trainer);
            replica.trainer.as_ref().map(model).transpose()
        };
        self.all.iter().map(model_of).collect()
    }
}

/// Those whose rows are all here: their places, and their trainers.
fn own(all: &mut [Replica]) -> (Vec<usize>, Vec<&mut Trainer>) {
    let own = all.iter_mut().enumerate().filter(|(_, replica)| replica.is_own);
    own.filter_map(|(place, replica)| Some((place, replica.trainer.as_mut()?))).unzip()
}
