//! Groups that lie whole on one node, which trains their models by itself: as the coordinator sees it.
//!
//! The coordinator has a trainer of each of these models, too, which becomes that of the node at the end of each epoch.

use super::cluster::Cluster;
use super::messages::{Order, Outcome, Whose, bytes_of};
use crate::team::needs_others;
use decode::{Decoder, EpochCounts};
use errors::Result;
use loss::{Hyperparameters, Steps};
use pg::check_for_interrupts;
use sgd::Trainer;

/// A model's state is sent here after each epoch: up to this many weights.
const MOST_WEIGHTS: usize = 1 << 20;

/// The node that each group lies on whole, if there is one; `groups_of` has the names of those that each node has met.
pub fn owners<'a>(decoder: &mut Decoder, groups_of: impl Iterator<Item = &'a [String]>) -> Vec<Option<usize>> {
    let mut nodes: Vec<Vec<usize>> = Vec::new();
    for (node, groups) in groups_of.enumerate() {
        // values that are equal are one group, whatever each node calls it
        for group in decoder.meet_groups(groups) {
            nodes.resize_with(nodes.len().max(group + 1), Vec::new);
            if nodes[group].last() != Some(&node) {
                nodes[group].push(node);
            }
        }
    }
    let only = |nodes: Vec<usize>| if let [node] = nodes[..] { Some(node) } else { None };
    nodes.into_iter().map(only).collect()
}

impl Cluster {
    /// Where the groups lie, as a node sees it.
    pub(super) fn whose(&self, node: usize) -> Vec<Whose> {
        let whose = |owner: &Option<usize>| match owner {
            None => Whose::All,
            Some(owner) if *owner == node => Whose::Own,
            Some(_) => Whose::Other,
        };
        self.owners.iter().map(whose).collect()
    }

    /// Models that are too large for their states to be sent here after each epoch learn together, wherever rows are.
    pub(super) fn forget_owners_of_large(&mut self, points: &[Hyperparameters], (dim, outputs): (usize, usize)) {
        if points.iter().any(|hyper| hyper.weights(dim, outputs) > MOST_WEIGHTS) {
            self.owners.clear();
        }
    }

    /// The node that trains a model of this group by itself.
    pub(super) fn owner(&self, group: usize, steps: Steps) -> Option<usize> {
        self.owners.get(group).copied().flatten().filter(|_| !needs_others(steps))
    }

    /// Ends the epoch of models that nodes train by themselves: `owners` has the node of each trainer. The trainers
    /// become those of the nodes. Gives what the nodes have counted; nothing if there are no such models.
    pub(super) fn end_whole(
        &mut self,
        trainers: &mut [&mut Trainer],
        owners: &[Option<usize>],
        (outputs, sparse): (usize, bool),
    ) -> Result<Option<Vec<EpochCounts>>> {
        let mut left: Vec<Option<usize>> = owners.to_vec();
        let mut from = vec![0; self.servers().count()];
        let mut counts = None;
        while left.iter().any(Option::is_some) {
            self.order(|node| Order::EndOwn(from[node]));
            let answers = self.ask_words::<(Vec<Outcome>, EpochCounts)>()?;
            let mut heard = 0;
            counts.get_or_insert_with(|| answers.iter().map(|((_, counts), _)| counts.clone()).collect());
            for (node, ((outcomes, _), words)) in answers.into_iter().enumerate() {
                let states = bytes_of(&words);
                let mut states = states.as_slice();
                for Outcome { place, tuples, report, bytes } in outcomes {
                    let is_new = left.get(place).copied().flatten() == Some(node);
                    let Some((state, rest)) = states.split_at_checked(bytes).filter(|_| is_new) else {
                        return Err(self.nonsense());
                    };
                    (left[place], states) = (None, rest);
                    from[node] += 1;
                    heard += 1;
                    match report {
                        Some(report) => trainers[place]
                            .end_elsewhere(report, (outputs, sparse), state)
                            .map_err(|_| self.nonsense())?,
                        None if tuples > 0 => trainers[place].diverge_elsewhere(),
                        // it has learned from nothing, and is not one
                        None => {}
                    }
                    if report.is_none() {
                        self.gone.push(place);
                    }
                }
            }
            if heard == 0 {
                return Err(self.nonsense());
            }
            check_for_interrupts();
        }
        self.gone.sort_unstable();
        Ok(counts)
    }
}
