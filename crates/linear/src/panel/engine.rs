//! The models of a panel, and its epochs.

use std::ops::Range;

use loss::averaging::Iterates;
use loss::mean::Mean;
use loss::models::{Pointwise, PointwiseVisitor};
use loss::{Diverged, Hyperparameters, Link, ModelKind, ModelParameters, Solver};
use simd::{LANES, Level};
use tuples::{Batch, OutOfMemory};

use super::group::Group;
use super::learn::Learn;
use crate::fast::FastEngine;

/// Many linear models of one kind that learn from the same dense tuples, one at a time.
#[derive(Debug)]
pub struct Panel {
    kind: ModelKind,
    dim: usize,
    level: Level,
    groups: Vec<Group>,
    members: Vec<Member>,
    epoch: u32,
    /// of all models
    iterates: Iterates,
}

/// A model of the panel.
#[derive(Debug)]
struct Member {
    hyper: Hyperparameters,
    /// does it learn from each part of the tuples?
    learns: Vec<bool>,
    /// of its iterates, if that is the model
    mean: Option<Mean>,
    is_active: bool,
}

/// With more features than this, a group's weights are too many for the caches: each model is as fast by itself.
const MAX_DIM: usize = 2_048;

impl Panel {
    /// Whether a model can be one of a panel of this many features: plain SGD on dense tuples, one at a time, of one
    /// decision. The members share one loss, so that it has no number of its own; and one bound of how it
    /// bends, which does not exist with a logarithmic link.
    pub fn supports(hyper: &Hyperparameters, dim: usize, sparse: bool) -> bool {
        let one_loss = hyper.kind.loss_number().is_none() && hyper.kind.link() == Link::Identity;
        let is_sgd = hyper.solver == Solver::Sgd;
        is_sgd && one_loss && FastEngine::supports(hyper, sparse) && !hyper.schedule.averages() && dim <= MAX_DIM
    }

    /// Models before their first epoch, all zeros: the hyperparameters of each, which are of one kind and
    /// [supported](Panel::supports), and whether it learns from each part of the tuples.
    ///
    /// # Panics
    /// If none exist, or they are of several kinds, or have different parts.
    pub fn new(models: Vec<(Hyperparameters, Vec<bool>)>, dim: usize) -> Result<Panel, OutOfMemory> {
        let (first, parts) = models.first().map(|(hyper, learns)| (hyper.kind, learns.len())).expect("a model");
        let alike = |(hyper, learns): &(Hyperparameters, Vec<bool>)| hyper.kind == first && learns.len() == parts;
        assert!(models.iter().all(alike), "models of one kind, on the same parts");
        let mut groups = Vec::new();
        allocation::try_reserve_exact(&mut groups, models.len().div_ceil(LANES))?;
        groups.resize_with(models.len().div_ceil(LANES), || Group::new(dim, parts));
        let mut members = Vec::with_capacity(models.len());
        for (hyper, learns) in models {
            let mean = if hyper.averaging { Some(Mean::new(dim, 1)?) } else { None };
            members.push(Member { hyper, learns, mean, is_active: true });
        }
        let level = Level::detect();
        Ok(Panel { kind: first, dim, level, groups, members, epoch: 0, iterates: Iterates::default() })
    }

    /// The same for another instruction set.
    pub fn on(self, level: Level) -> Panel {
        Panel { level, ..self }
    }

    /// Begins the next epoch.
    pub fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.iterates.begin_epoch(self.dim, false);
        self.groups.iter_mut().for_each(Group::clear);
        for (i, member) in self.members.iter().enumerate().filter(|(_, member)| member.is_active) {
            self.groups[i / LANES].begin_epoch(i % LANES, &member.hyper, self.epoch, &member.learns);
        }
    }

    /// Model number `i` learns no more.
    pub fn stop(&mut self, i: usize) {
        let member = &mut self.members[i];
        member.is_active = false;
        let group = &mut self.groups[i / LANES];
        for part in &mut group.parts {
            part.learns.0[i % LANES] = 0.0;
            part.shrink[i % LANES] = 1.0;
        }
    }

    /// All models learn from the tuples at the places `range` of the batch's order, in this order, each from those of
    /// its parts. `parts` has the part of each tuple in the order.
    ///
    /// # Panics
    /// If the batch is not dense, or has another number of features, or the range is not within its order.
    pub fn learn(&mut self, batch: &Batch, parts: &[u32], range: Range<usize>) {
        assert!(!batch.is_sparse() && batch.dim() == self.dim, "as many features as the panel was made for");
        assert_eq!(parts.len(), batch.order().len(), "a part for each tuple");
        assert!(range.end <= parts.len(), "a range of places in the order");
        let mut start = range.start;
        while start < range.end {
            let stop = range.end.min(start.saturating_add(self.iterates.room(1, 0)));
            self.learn_some(batch, parts, start..stop);
            if self.iterates.learned((stop - start) as u64) {
                self.add_iterates();
            }
            start = stop;
        }
    }

    fn learn_some(&mut self, batch: &Batch, parts: &[u32], range: Range<usize>) {
        struct Visitor<'a> {
            groups: &'a mut [Group],
            batch: &'a Batch,
            parts: &'a [u32],
            range: Range<usize>,
            seen: u64,
            bounded: bool,
            level: Level,
        }
        impl PointwiseVisitor for Visitor<'_> {
            type Output = ();

            fn visit<L: Pointwise>(self, loss: L) {
                let Visitor { groups, batch, parts, range, seen, bounded, level } = self;
                level.run(Learn { groups, loss, batch, parts, range, seen, bounded });
            }
        }
        let bounded = self.members.iter().any(|member| member.hyper.bounded);
        let Panel { groups, level, iterates, .. } = self;
        let visitor = Visitor { groups, batch, parts, range, seen: iterates.tuples(), bounded, level: *level };
        self.kind.with_pointwise(0.0, visitor);
    }

    /// Takes the iterates of all models that still learn into their means.
    fn add_iterates(&mut self) {
        let Some(share) = self.iterates.share() else { return };
        for (i, member) in self.members.iter_mut().enumerate().filter(|(_, member)| member.is_active) {
            if let Some(mean) = &mut member.mean {
                self.groups[i / LANES].add_to(i % LANES, mean, share);
            }
        }
    }

    /// Ends the epoch.
    pub fn end_epoch(&mut self) {
        self.add_iterates();
    }

    /// The mean loss of model number `i` on a sixteenth of the tuples of the epoch that has ended, without its penalty.
    ///
    /// # Errors
    /// [`Diverged`] if it, or a parameter, is no longer finite.
    pub fn loss(&self, i: usize) -> Result<f64, Diverged> {
        let (group, lane) = (&self.groups[i / LANES], i % LANES);
        match group.is_finite(lane) {
            true => Ok(group.losses[lane] / group.counts[lane].max(1.0)),
            false => Err(Diverged { epoch: self.epoch }),
        }
    }

    /// Model number `i` as it is now, or the mean of its iterates up to the end of the last epoch.
    pub fn model(&self, i: usize) -> ModelParameters {
        let mut model = self.groups[i / LANES].model(i % LANES);
        self.members[i].mean.iter().for_each(|mean| mean.replace(&mut model));
        model
    }
}
