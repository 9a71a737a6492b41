//! The order of a buffer whose tuples fall into groups: which of them each model learns from, and which it is evaluated
//! on.
//!
//! Guarantees: a model of a group sees its tuples in the order that they would have if the source had the same pages,
//! but no other tuples. For that, each group's tuples in a buffer are shuffled by themselves, with the random numbers
//! of a buffer that has no others.

use decode::{HELD_OUT, RowGroups};
use errors::Result;
use options::shuffling::Shuffling;
use shuffle::{BlockPartition, Strategy, shuffle_dealt_tuples};
use std::ops::Range;
use tuples::Batch;

pub struct GroupOrder {
    strategy: Strategy,
    seed: i64,
    /// which of several processes this is
    deal: BlockPartition,
    epoch: u64,
    groups: Vec<GroupPlaces>,
    order: Vec<u32>,
}

#[derive(Clone, Default)]
struct GroupPlaces {
    /// buffers of this epoch in which the group has had tuples
    buffers: u64,
    /// places in the buffer of those to learn from, and of those that are held out
    learn: Vec<u32>,
    held_out: Vec<u32>,
}

impl GroupOrder {
    /// The order of a process with this part of the blocks, whose buffers are shuffled as they are without groups.
    pub fn new(shuffling: &Shuffling, deal: BlockPartition) -> GroupOrder {
        GroupOrder {
            strategy: shuffling.strategy,
            seed: shuffling.seed,
            deal,
            epoch: 0,
            groups: Vec::new(),
            order: Vec::new(),
        }
    }

    pub fn begin_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.groups.iter_mut().for_each(|group| group.buffers = 0);
    }

    /// Sorts the tuples of a buffer, which are in the order in which they came, by group.
    fn take(&mut self, batch: &Batch) {
        for group in &mut self.groups {
            group.learn.clear();
            group.held_out.clear();
        }
        let group_tags = batch.tags().unwrap_or_default();
        for place in batch.order() {
            let tag = group_tags.get(*place as usize).copied().unwrap_or_default();
            let number = (tag & !HELD_OUT) as usize;
            if number >= self.groups.len() {
                self.groups.resize(number + 1, GroupPlaces::default());
            }
            let group = &mut self.groups[number];
            let places = if tag & HELD_OUT == 0 { &mut group.learn } else { &mut group.held_out };
            allocation::push(places, *place);
        }
    }

    /// Turns the order of a buffer, in which tuples stand as they came, into that in which to learn: group by group,
    /// without what is held out. Returns the range of the order for each group that has tuples, and passes what is held
    /// out to `hold`: a group, and places in the batch.
    pub fn learn_order(
        &mut self,
        batch: &mut Batch,
        mut hold: impl FnMut(usize, &Batch, &[u32]) -> Result<()>,
    ) -> Result<Vec<(usize, Range<usize>)>> {
        self.take(batch);
        self.order.clear();
        let more = batch.order().len();
        allocation::try_reserve(&mut self.order, more)?;
        let mut groups = Vec::new();
        for (number, group) in self.groups.iter_mut().enumerate() {
            if !group.learn.is_empty() {
                let place = [self.epoch, group.buffers];
                shuffle_dealt_tuples(self.deal, self.strategy, self.seed, place, &mut group.learn);
                group.buffers += 1;
                let start = self.order.len();
                allocation::append(&mut self.order, &group.learn);
                groups.push((number, start..self.order.len()));
            }
            if !group.held_out.is_empty() {
                hold(number, batch, &group.held_out)?;
            }
        }
        batch.set_order(&self.order)?;
        Ok(groups)
    }

    /// Passes some rows of a buffer, whose order stays as it is, to `take`, group by group.
    pub fn show(
        &mut self,
        rows: Rows,
        batch: &Batch,
        mut take: impl FnMut(usize, &Batch, &[u32]) -> Result<()>,
    ) -> Result<()> {
        self.take(batch);
        for (number, group) in self.groups.iter().enumerate() {
            let parts = [(rows != Rows::HeldOut, &group.learn), (rows != Rows::Learned, &group.held_out)];
            for (_, places) in parts.into_iter().filter(|(is_shown, places)| *is_shown && !places.is_empty()) {
                take(number, batch, places)?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    Learned,
    HeldOut,
    All,
}

/// The number of the group that a continued model of a group learns from, once a row of it was met.
#[derive(Default)]
pub struct OnlyGroup {
    pub number: Option<usize>,
    /// groups that were looked at; the number of a group does not change
    seen: usize,
}

impl OnlyGroup {
    /// Looks at the groups that have come since, for the one of this name.
    pub fn look_for(&mut self, name: &str, row_groups: &RowGroups) {
        while self.number.is_none() && self.seen < row_groups.count() {
            self.number = row_groups.is_named(self.seen, name).then_some(self.seen);
            self.seen += 1;
        }
    }
}
