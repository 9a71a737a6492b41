//! Several processes that learn one model, each with a trainer of its own: section 6 of the CorgiPile paper.
//!
//! Guarantees: all trainers make the same steps at the same time, so that each of them has the whole model, and the
//! result of a training is a function of what each process has learned from. Mini-batches are those of one trainer that
//! learns from all the tuples: their gradients are added up before the step is made. Whole mini-batches are not cut:
//! some of all processes make a step together.
//!
//! A tuple at a time, that would be a step for each tuple of all others: then each trainer goes its own way through a
//! buffer, and the models are averaged after it.

use std::ops::Range;

use loss::exchange::{Exchange, with_open};
use loss::{Hyperparameters, Steps};
use tuples::{Batch, OutOfMemory};

use crate::average::Theorem1;
use crate::{Trainer, Unfit};

/// Hyperparameters with which a mini-batch is never full by itself.
fn never_full(hyper: Hyperparameters) -> Hyperparameters {
    let batch_size = if hyper.batch_size > 1 { u32::MAX } else { 1 };
    Hyperparameters { batch_size, ..hyper }
}

impl Trainer {
    /// A trainer as [`Trainer::new`] makes one, which is to learn together with those of other processes: it makes no
    /// step of a mini-batch until [`step_synchronized`](Trainer::step_synchronized). Networks learn from mini-batches
    /// only.
    pub fn replica(hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> Result<Trainer, OutOfMemory> {
        Ok(Trainer::new(never_full(hyper), dim, outputs, sparse)?.into_replica(hyper))
    }

    /// The trainer that was saved, by itself or as a replica, which is to go on together with those of other processes.
    pub fn resume_replica(
        hyper: Hyperparameters,
        outputs: usize,
        sparse: bool,
        saved: &[u8],
    ) -> Result<Trainer, Unfit> {
        Ok(Trainer::resume(never_full(hyper), outputs, sparse, saved)?.into_replica(hyper))
    }

    fn into_replica(mut self, hyper: Hyperparameters) -> Trainer {
        (self.hyper, self.is_replica) = (hyper, true);
        self
    }

    /// Tuples that it has learned from in this epoch; all processes have, once they have
    /// [counted](Trainer::count_synchronized) them.
    pub fn tuples(&self) -> u64 {
        self.ended.map_or_else(|| self.engine.totals().tuples, |ended| ended.tuples)
    }

    /// Has it learned from tuples in this epoch, all of which have the weight 0?
    pub fn weighs_nothing(&self) -> bool {
        let totals = self.engine.totals();
        self.ended.is_none() && totals.tuples > 0 && totals.weight == 0.0
    }

    /// When it makes a step, if it learns together with others.
    pub fn steps(&self) -> Steps {
        self.hyper.steps()
    }

    /// Begins the next buffer, which has this many tuples in all processes, and this many in a full step, as
    /// [`begin_buffer`](Trainer::begin_buffer); this process has those at these places.
    pub fn begin_buffer_synchronized<E: Exchange>(
        &mut self,
        tuples: (usize, usize),
        batch: &Batch,
        places: Range<usize>,
        exchange: &mut E,
    ) -> Result<(), E::Error> {
        let mut curvature = self.curvature_of_buffer(batch, places)?;
        if let Some(own) = curvature {
            // whether it is measured depends on what all processes know
            let all = exchange.gather_all(bytemuck::cast_slice(&[own]))?;
            let read = |words: &Vec<u32>| bytemuck::pod_read_unaligned::<f64>(bytemuck::cast_slice(words));
            curvature = all.iter().map(read).reduce(f64::max);
        }
        self.begin_buffer_of_all(tuples, curvature);
        Ok(())
    }

    /// Makes the step of a mini-batch that all processes have learned from, `tuples` tuples in all.
    ///
    /// # Panics
    /// If there are no mini-batches.
    pub fn step_synchronized<E: Exchange>(&mut self, tuples: u32, exchange: &mut E) -> Result<(), E::Error> {
        assert!(self.hyper.batch_size > 1, "mini-batches");
        self.expect_step_of(tuples as usize);
        with_open(exchange, |exchange| self.engine.step_synchronized(tuples, exchange))?;
        self.notice_others(tuples as usize, false)
    }

    /// Makes the model, and what the optimizer remembers, the mean of those of all processes, each of which has learned
    /// from this many of `tuples` since the last time.
    ///
    /// # Panics
    /// If there are mini-batches.
    pub fn average_synchronized<E: Exchange>(&mut self, tuples: &[usize], exchange: &mut E) -> Result<(), E::Error> {
        assert!(self.hyper.batch_size == 1, "a tuple at a time");
        let all = tuples.iter().sum::<usize>().max(1) as f64;
        let shares: Vec<f64> = tuples.iter().map(|n| *n as f64 / all).collect();
        with_open(exchange, |exchange| self.engine.average_synchronized(&shares, exchange))?;
        self.notice_others(tuples.iter().sum(), true)
    }

    /// Takes notice of this many tuples of all: features that only others have met, and a buffer of which this process
    /// may have none. The model counts for the mean of the iterates if it is time, or if it `must`.
    fn notice_others<E: From<OutOfMemory>>(&mut self, tuples: usize, must: bool) -> Result<(), E> {
        self.mean.as_mut().map_or(Ok(()), |mean| mean.reserve(self.engine.dim()))?;
        self.count_iterates(tuples, must);
        self.theorem.iter_mut().for_each(Theorem1::learned);
        Ok(())
    }

    /// Counts what all processes have counted in this epoch, before it is ended. Of Newton's method these are the sums
    /// that its step follows from, too.
    pub fn count_synchronized<E: Exchange>(&mut self, exchange: &mut E) -> Result<(), E::Error> {
        with_open(exchange, |exchange| self.engine.count_synchronized(exchange))
    }
}
