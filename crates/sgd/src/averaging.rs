//! Averaging with weights that grow as a power of time: Shamir and Zhang, Stochastic Gradient Descent for Non-smooth
//! Optimization (2013), section 4, with η = 3.
//!
//! The mean needs not know when the training ends: it can be asked for after any epoch, and goes on when the training
//! does. Iterates are added now and then rather than after every tuple, each for the tuples since the one before it.
//!
//! Guarantees: when an iterate is added depends on the number of tuples alone, so that the mean does not depend on how
//! they were cut into ranges.

use bytemuck::{Pod, Zeroable};
use tuples::OutOfMemory;

use crate::ModelParameters;
use crate::bytes::{Reader, Writer};
use crate::engine::Engine;
use crate::mean::Mean;

/// The weight of the iterate after t tuples is t to this power.
const POWER: i32 = 3;

/// Iterates are so many to each time that the number of tuples has grown by a factor of e:
/// about 13 in the twentieth epoch.
const PER_FOLD: u64 = 256;

/// Fewer dense tuples than this are learned from faster than an iterate is added.
const LEAST_DENSE: u64 = 16;

/// The same of sparse tuples, and how many weights each of them is worth: an iterate is added in a tenth of the time,
/// or less.
const LEAST_SPARSE: u64 = 64;
const WEIGHTS_PER_TUPLE: u64 = 6;

/// Where the mean stands.
#[derive(Debug)]
pub(crate) struct Averaging {
    mean: Mean,
    /// tuples learned from
    tuples: u64,
    /// how many they were when the last iterate was added
    added: u64,
    sparse: bool,
    /// there are as many to come between two iterates, at least
    least: u64,
}

impl Averaging {
    /// Before the first tuple.
    pub(crate) fn new(outputs: usize, sparse: bool) -> Averaging {
        Averaging { mean: Mean::new(outputs), tuples: 0, added: 0, sparse, least: 1 }
    }

    /// Begins an epoch of a model of so many features.
    pub(crate) fn begin_epoch(&mut self, dim: usize) {
        self.least = match self.sparse {
            true => LEAST_SPARSE.max(dim as u64 / WEIGHTS_PER_TUPLE),
            false => LEAST_DENSE,
        };
    }

    /// Makes room for so many features.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub(crate) fn reserve(&mut self, dim: usize) -> Result<(), OutOfMemory> {
        self.mean.reserve(dim)
    }

    /// Tuples until an iterate is to be added, which is after a step: at least one. Steps are of `batch_size` tuples,
    /// of which some are `pending`.
    pub(crate) fn room(&self, batch_size: u32, pending: usize) -> usize {
        let (size, pending) = (u64::from(batch_size), pending as u64);
        let needed = self.next().saturating_sub(self.tuples).max(1);
        let until = (needed + pending).div_ceil(size).saturating_mul(size) - pending;
        usize::try_from(until).unwrap_or(usize::MAX)
    }

    /// The number of tuples after which an iterate is to be added.
    fn next(&self) -> u64 {
        self.added + self.least.max(self.added / PER_FOLD)
    }

    /// Takes notice that the engine, for whose features there is room, has learned from so many tuples,
    /// and adds its model if it is time.
    pub(crate) fn learned(&mut self, engine: &mut dyn Engine, tuples: u64) {
        self.tuples += tuples;
        if self.tuples >= self.next() && engine.pending() == 0 {
            self.add(engine);
        }
    }

    /// Adds the engine's model for the tuples since the last one, if there are some.
    pub(crate) fn add(&mut self, engine: &mut dyn Engine) {
        if self.tuples > self.added {
            // the sum of t³ up to here grows as t⁴
            let before = (self.added as f64 / self.tuples as f64).powi(POWER + 1);
            engine.add_to(&mut self.mean, 1.0 - before);
            self.added = self.tuples;
        }
    }

    /// Makes `model`, the current iterate, the mean so far; it stays what it is if there is none.
    pub(crate) fn replace(&self, model: &mut ModelParameters) {
        if self.added > 0 {
            self.mean.replace(model);
        }
    }

    /// |w|² and |w|₁ of the mean.
    pub(crate) fn norms(&self) -> (f64, f64) {
        self.mean.norms()
    }

    /// Everything, after an epoch.
    pub(crate) fn save(&self, to: &mut Writer) {
        to.numbers(&Saved { tuples: self.tuples, added: self.added, dim: self.mean.dim() as u64 });
        self.mean.save(to);
    }

    /// What was saved of a model of so many outputs; None if it is not one.
    pub(crate) fn read(from: &mut Reader<'_>, outputs: usize, sparse: bool) -> Option<Averaging> {
        let Saved { tuples, added, dim } = from.numbers()?;
        let mean = Mean::read(from, dim, outputs)?;
        // no training takes that long
        let sound = added <= tuples && tuples < 1 << 62;
        sound.then_some(Averaging { mean, tuples, added, sparse, least: 1 })
    }
}

/// What is saved before the mean.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Saved {
    tuples: u64,
    added: u64,
    dim: u64,
}
