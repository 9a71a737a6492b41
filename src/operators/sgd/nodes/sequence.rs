//! What the coordinator does with its nodes: in which sequence they learn from their tuples.
//!
//! It is the sequence of several processes (`data_parallel.rs`), of which the first one, the coordinator, has no
//! tuples.

use super::cluster::Cluster;
use super::messages::{Order, Start};
use crate::errors::Result;
use crate::operators::decoder::Decoder;
use crate::operators::preparation::{Found, unite};
use crate::operators::wanted::Wanted;
use crate::pg::check_for_interrupts;
use crate::pg::process::progress;
use sgd::{Hyperparameters, Trainer};
use shuffle::RoundRobin;

impl Cluster {
    /// Has each node go through its rows, and ends the decoder's preparation with what they have found. Gives the rows
    /// of each class that each node has.
    ///
    /// # Errors
    /// As [`unite`]; what is wrong with the rows is raised.
    pub fn prepare(&mut self, decoder: &mut Decoder, wanted: Wanted) -> Result<Vec<Vec<u64>>> {
        self.order(|_| Order::Prepare(wanted));
        let found: Option<Vec<Found>> = self.ask()?.into_iter().map(|answer| answer.found).collect();
        let found = found.ok_or_else(|| self.nonsense())?;
        unite(decoder, wanted, &found)
    }

    /// Has each node make a replica of the model, and gives the coordinator's.
    ///
    /// # Errors
    /// [`ResourceError::OutOfMemory`](crate::errors::ResourceError::OutOfMemory)
    pub fn start(&mut self, decoder: &Decoder, hyperparameters: Hyperparameters) -> Result<Trainer> {
        let (dim, outputs, sparse) = (decoder.dim(), decoder.labels().outputs(), decoder.is_sparse());
        let hyperparameters = match decoder.target() {
            Some(target) => hyperparameters.of_scaled_targets(target.scale),
            None => hyperparameters,
        };
        // the mean of the iterates is the coordinator's affair
        let of_nodes = Hyperparameters { averaging: false, ..hyperparameters };
        self.order(|_| {
            let decoder = decoder.state();
            Order::Start(Box::new(Start { decoder, hyperparameters: of_nodes, dim, outputs, sparse }))
        });
        Ok(Trainer::replica(hyperparameters, dim, outputs, sparse)?)
    }

    /// Goes through an epoch, which the caller has begun and ends. `check` is called after each buffer.
    ///
    /// # Errors
    /// Those of `check`, [`NodeError::Nonsense`](crate::errors::NodeError::Nonsense); what is wrong with the rows is
    /// raised.
    pub fn epoch(
        &mut self,
        trainer: &mut Trainer,
        decoder: &mut Decoder,
        batch_size: usize,
        check: impl Fn(&Trainer) -> Result<()>,
    ) -> Result<()> {
        let (mut turns, mut pending) = (RoundRobin::default(), 0);
        let mut at_end = vec![false; self.len()];
        if trainer.epoch() > 1 {
            self.order(|_| Order::EndEpoch);
        }
        self.order(|_| Order::BeginEpoch);
        loop {
            let (sizes, curvature) = self.fill(&mut at_end)?;
            let tuples: usize = sizes.iter().sum();
            if at_end.iter().all(|at_end| *at_end) {
                break;
            }
            progress::tuples(tuples);
            let most = if batch_size == 1 { sizes.iter().copied().max().unwrap_or(0) } else { tuples };
            self.order(|_| Order::Begin(most, curvature));
            trainer.begin_buffer_of_all(most, curvature);
            if batch_size == 1 {
                self.order(|node| Order::Learn(sizes[node + 1]));
                self.order(|_| Order::Average(sizes.clone()));
                self.ask()?;
                trainer.average_synchronized(&sizes, self)?;
            } else {
                turns.begin(sizes.iter().copied());
                self.mini_batches(trainer, &mut turns, batch_size, &mut pending)?;
            }
            check(trainer)?;
        }
        if pending > 0 {
            self.step(trainer, pending)?;
        }
        self.count(trainer, decoder)
    }

    /// Has the nodes fill their buffers: how many tuples the coordinator, which has none, and each of them has.
    fn fill(&mut self, at_end: &mut [bool]) -> Result<(Vec<usize>, Option<f64>)> {
        self.order(|_| Order::Fill);
        let filled: Option<Vec<_>> = self.ask()?.into_iter().map(|answer| answer.filled).collect();
        let filled = filled.ok_or_else(|| self.nonsense())?;
        at_end.iter_mut().zip(&filled).for_each(|(at_end, filled)| *at_end = filled.tuples.is_none());
        let sizes = std::iter::once(0).chain(filled.iter().map(|filled| filled.tuples.unwrap_or(0))).collect();
        Ok((sizes, filled.iter().filter_map(|filled| filled.curvature).reduce(f64::max)))
    }

    /// Learns from the buffers. `pending` tuples are in the mini-batch that has begun.
    fn mini_batches(
        &mut self,
        trainer: &mut Trainer,
        turns: &mut RoundRobin,
        batch_size: usize,
        pending: &mut usize,
    ) -> Result<()> {
        while turns.left() > 0 {
            let shares = turns.take_of_all(batch_size - *pending);
            self.order(|node| Order::Learn(shares[node + 1]));
            *pending += shares.iter().sum::<usize>();
            if *pending == batch_size {
                self.step(trainer, std::mem::take(pending))?;
                check_for_interrupts();
            }
        }
        Ok(())
    }

    /// Makes the step of so many tuples.
    fn step(&mut self, trainer: &mut Trainer, tuples: usize) -> Result<()> {
        self.order(|_| Order::Step(tuples as u32));
        self.ask()?;
        trainer.step_synchronized(tuples as u32, self)
    }

    /// Adds what the nodes have counted in this epoch.
    fn count(&mut self, trainer: &mut Trainer, decoder: &mut Decoder) -> Result<()> {
        self.order(|_| Order::Count);
        let counts: Option<Vec<_>> = self.ask()?.into_iter().map(|answer| answer.counts).collect();
        let counts = counts.ok_or_else(|| self.nonsense())?;
        decoder.begin_epoch();
        counts.into_iter().for_each(|counts| decoder.count_rows_of_others(counts));
        trainer.count_synchronized(self)
    }
}
