//! Anyone who trains together with this process: other processes, or servers.

use super::learn::learn_side_by_side;
use super::learners::GroupModel;
use super::validation::United;
use errors::{Error, Result};
use loss::{Exchange, ModelKind, Steps};
use pg::check_for_interrupts;
use scan::Buffers;
use serde::{Deserialize, Serialize};
use sgd::Trainer;
use shuffle::RoundRobin;
use std::ops::Range;
use tuples::Batch;

/// Trainers of a group that make their steps at the same tuples, by their places among all, ascending.
pub struct Cohort {
    pub group: usize,
    pub steps: Steps,
    pub members: Vec<usize>,
    /// turns, and tuples, of the step that has begun
    pending: (usize, usize),
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
                None => cohorts.push(Cohort { group: *group, steps, members: vec![i], pending: (0, 0) }),
            }
        }
        cohorts
    }

    pub fn members<'a>(&self, trainers: &'a mut [&mut Trainer]) -> Vec<&'a mut Trainer> {
        let (Some(first), Some(last)) = (self.members.first(), self.members.last()) else { return Vec::new() };
        let near = (*first..).zip(&mut trainers[*first..=*last]);
        near.filter(|(i, _)| self.members.binary_search(i).is_ok()).map(|(_, trainer)| &mut **trainer).collect()
    }

    /// The turns of a step that this many processes make together: tuples, or a whole mini-batch of each.
    pub fn turns_of_step(&self, processes: usize) -> usize {
        match self.steps {
            Steps::ByMiniBatch(size) => size,
            Steps::ByWholeMiniBatches => processes,
            Steps::ByTuple | Steps::AtEnd => usize::MAX,
        }
    }

    /// Turns that are left until a step of this many.
    pub fn turns_until(&self, of_step: usize) -> usize {
        of_step - self.pending.0
    }

    /// Learns from a buffer, of which each process has its turns, this one, of this rank, at these places.
    pub fn learn<E: Exchange<Error: Into<Error>>>(
        &mut self,
        members: &mut [&mut Trainer],
        (batch, outputs): (&Batch, usize),
        (mut turns, rank, own): (Turns, usize, Range<usize>),
        exchange: &mut E,
    ) -> Result<()> {
        match self.steps {
            Steps::AtEnd => learn_side_by_side(members, batch, outputs, own),
            Steps::ByTuple => {
                let most = turns.of_each().iter().copied().max().unwrap_or(0);
                for member in members.iter_mut() {
                    member.begin_buffer(most, batch, own.clone())?;
                }
                learn_side_by_side(members, batch, outputs, own)?;
                let average = |member: &mut &mut Trainer| member.average_synchronized(turns.of_each(), exchange);
                members.iter_mut().try_for_each(average).map_err(Into::into)
            }
            Steps::ByMiniBatch(_) | Steps::ByWholeMiniBatches => {
                let of_step = self.turns_of_step(turns.of_each().len());
                let tuples = turns.tuples(of_step);
                for member in members.iter_mut() {
                    member.begin_buffer_synchronized(tuples, batch, own.clone(), exchange).map_err(Into::into)?;
                }
                let mut place = own.start;
                while turns.left() > 0 {
                    let (shares, tuples) = turns.take(self.turns_until(of_step));
                    learn_side_by_side(members, batch, outputs, place..place + shares[rank])?;
                    place += shares[rank];
                    if let Some(tuples) = self.learned((shares.iter().sum(), tuples), of_step) {
                        step(members, tuples, exchange)?;
                        check_for_interrupts();
                    }
                }
                Ok(())
            }
        }
    }

    /// This many turns, and tuples, were learned from. The tuples of the step that is to be made now, if there is one.
    pub fn learned(&mut self, (turns, tuples): (usize, usize), of_step: usize) -> Option<u32> {
        self.pending = (self.pending.0 + turns, self.pending.1 + tuples);
        if self.pending.0 == of_step { self.end_step() } else { None }
    }

    /// Ends the step that has begun: its tuples, if there are some. Whole mini-batches may be empty.
    pub fn end_step(&mut self) -> Option<u32> {
        let (_, tuples) = std::mem::take(&mut self.pending);
        (tuples > 0).then(|| u32::try_from(tuples).unwrap_or(u32::MAX))
    }
}

/// All make the step of this many tuples.
pub fn step<E: Exchange<Error: Into<Error>>>(
    members: &mut [&mut Trainer],
    tuples: u32,
    exchange: &mut E,
) -> Result<()> {
    members.iter_mut().try_for_each(|member| member.step_synchronized(tuples, exchange)).map_err(Into::into)
}

/// Does a model that makes steps like this learn together with all, even if only one of them has its rows?
pub fn needs_others(steps: Steps) -> bool {
    !matches!(steps, Steps::ByTuple | Steps::ByMiniBatch(_))
}

/// What a process has in its buffer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct OwnBuffer {
    /// the turns of each group: tuples, or whole mini-batches
    pub turns: Vec<usize>,
    /// tuples of the whole mini-batches, group by group, in the order in which they are learned from; none if turns are
    /// tuples
    pub lengths: Vec<u32>,
}

impl OwnBuffer {
    /// Of a batch in whose order each group has these places.
    pub fn new(batch: &Batch, places: &[Range<usize>]) -> OwnBuffer {
        let length = |place: &u32| u32::try_from(batch.mini_batch(*place as usize).len()).unwrap_or(u32::MAX);
        let lengths = match batch.has_mini_batches() {
            true => {
                allocation::collect(places.iter().flat_map(|places| batch.order()[places.clone()].iter().map(length)))
            }
            false => Vec::new(),
        };
        OwnBuffer { turns: places.iter().map(Range::len).collect(), lengths }
    }

    /// A group's turns, and the lengths of its whole mini-batches.
    fn of_group(&self, group: usize) -> (usize, &[u32]) {
        let turns = self.turns.get(group).copied().unwrap_or(0);
        if self.lengths.is_empty() {
            return (turns, &[]);
        }
        let before = self.turns.iter().take(group).sum::<usize>();
        (turns, self.lengths.get(before..before + turns).unwrap_or_default())
    }
}

/// What all processes have of a group in their buffers, and whose turn it is to learn from it: in proportion to what
/// each has, one by one if all have as many.
#[derive(Debug, Default)]
pub struct Turns<'a> {
    round_robin: RoundRobin,
    /// that each process had in the beginning
    of_each: Vec<usize>,
    /// of the whole mini-batches that each process has left, if turns are such
    lengths: Vec<&'a [u32]>,
}

impl<'a> Turns<'a> {
    /// Begins buffers, of which a process may have none.
    pub fn new(buffers: impl Iterator<Item = Option<&'a OwnBuffer>>, group: usize) -> Turns<'a> {
        let of_group = |own: Option<&'a OwnBuffer>| own.map(|own| own.of_group(group)).unwrap_or_default();
        let (of_each, lengths): (Vec<usize>, Vec<&[u32]>) = buffers.map(of_group).unzip();
        let mut round_robin = RoundRobin::default();
        round_robin.begin(of_each.iter().copied());
        Turns { round_robin, of_each, lengths }
    }

    /// The turns that each process has had at the beginning.
    pub fn of_each(&self) -> &[usize] {
        &self.of_each
    }

    pub fn left(&self) -> usize {
        self.round_robin.left()
    }

    /// Tuples that are left, and those of a step of this many turns. Of whole mini-batches all count as one of the
    /// first.
    pub fn tuples(&self, of_step: usize) -> (usize, usize) {
        let left: usize = self.lengths.iter().copied().flatten().map(|length| *length as usize).sum();
        match self.lengths.iter().copied().flatten().next() {
            Some(first) => (left, of_step.saturating_mul(*first as usize)),
            None => (self.left(), of_step),
        }
    }

    /// Goes on by this many turns, or as many as are left: how many each process has had, and the tuples of all of
    /// them.
    pub fn take(&mut self, turns: usize) -> (Vec<usize>, usize) {
        let shares = self.round_robin.take_of_all(turns);
        if self.lengths.iter().all(|lengths| lengths.is_empty()) {
            let tuples = shares.iter().sum();
            return (shares, tuples);
        }
        let mut tuples = 0;
        for (lengths, share) in self.lengths.iter_mut().zip(&shares) {
            let (taken, left) = lengths.split_at((*share).min(lengths.len()));
            tuples += taken.iter().map(|length| *length as usize).sum::<usize>();
            *lengths = left;
        }
        (shares, tuples)
    }
}

/// The leader's rows.
pub struct Here<'a> {
    pub buffers: &'a mut Buffers,
    pub batch: &'a mut Batch,
}

/// Anyone who trains together with this process.
pub trait Team {
    /// All go through an epoch, which the leader's trainers have begun, and which is ended by their owner: the trainers
    /// and the group of each, ascending. `check` is called after each buffer.
    fn epoch(
        &mut self,
        trainers: (&mut [&mut Trainer], &[usize]),
        here: Here<'_>,
        check: &dyn Fn(&[&mut Trainer]) -> Result<()>,
    ) -> Result<()>;

    /// All end the epoch and evaluate their models that have not diverged, each on what it holds out; gives what they
    /// have found together. `models` are the leader's.
    fn evaluate(&mut self, kind: ModelKind, models: Vec<GroupModel>, epoch: u32, here: Here<'_>) -> Result<United>;

    /// Only the trainers of these groups and points learn in the next epoch; if none exist, that was the last one.
    fn go_on(&mut self, learning: Vec<(usize, usize)>) -> Result<()>;
}
