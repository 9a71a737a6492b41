//! Averaging with weights that grow as a power of time: Shamir and Zhang, Stochastic Gradient Descent for Non-smooth
//! Optimization (2013), section 4, with η = 3.
//!
//! The mean needs not know when the training ends: it can be asked for after any epoch, and goes on when the training
//! does. Iterates are added now and then rather than after every tuple, each for the tuples since the one before it.
//!
//! Guarantees: when an iterate is added depends on the number of tuples alone, so that the mean does not depend on how
//! they were cut into ranges.

use crate::bytes::Coder;

/// The weight of the iterate after t tuples is t to this power.
const POWER: i32 = 3;

/// There is a fixed number of iterates each time that the number of tuples has grown by a factor of e:
/// about 13 in the twentieth epoch.
const PER_FOLD: u64 = 256;

/// Fewer dense tuples than this are learned from faster than an iterate is added.
const LEAST_DENSE: u64 = 16;

/// The same of sparse tuples, and how many weights each of them is worth: an iterate is added in a tenth of the time,
/// or less.
const LEAST_SPARSE: u64 = 64;
const WEIGHTS_PER_TUPLE: u64 = 6;

/// Which iterates are added to a mean, and with which shares.
#[derive(Debug, Default)]
pub struct Iterates {
    /// tuples learned from
    tuples: u64,
    /// how many they were when the last iterate was added
    added: u64,
    /// there are as many to come between two iterates, at least
    least: u64,
}

impl Iterates {
    /// Begins an epoch of a model of this many features.
    pub fn begin_epoch(&mut self, dim: usize, sparse: bool) {
        self.least = match sparse {
            true => LEAST_SPARSE.max(dim as u64 / WEIGHTS_PER_TUPLE),
            false => LEAST_DENSE,
        };
    }

    /// Tuples learned from.
    pub fn tuples(&self) -> u64 {
        self.tuples
    }

    /// Tuples until an iterate is to be added, which is after a step: at least one. Steps are of `batch_size` tuples,
    /// of which some are `pending`.
    pub fn room(&self, batch_size: u32, pending: usize) -> usize {
        let (size, pending) = (u64::from(batch_size), pending as u64);
        let needed = self.next().saturating_sub(self.tuples).max(1);
        let until = (needed + pending).div_ceil(size).saturating_mul(size) - pending;
        usize::try_from(until).unwrap_or(usize::MAX)
    }

    /// The number of tuples after which an iterate is to be added.
    fn next(&self) -> u64 {
        self.added + self.least.max(self.added / PER_FOLD)
    }

    /// Takes notice that this many tuples were learned from. Is an iterate to be added?
    pub fn learned(&mut self, tuples: u64) -> bool {
        self.tuples += tuples;
        self.tuples >= self.next()
    }

    /// The share of an iterate that is added for the tuples since the last one; None without any.
    pub fn share(&mut self) -> Option<f64> {
        // the sum of t³ up to here grows as t⁴
        let before = (self.added as f64 / self.tuples as f64).powi(POWER + 1);
        let is_due = self.tuples > self.added;
        self.added = self.tuples;
        is_due.then_some(1.0 - before)
    }

    /// Writes or reads everything, after an epoch.
    pub fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        [&mut self.tuples, &mut self.added].into_iter().try_for_each(|count| coder.value(count))?;
        // no training takes that long
        (self.added <= self.tuples && self.tuples < 1 << 62).then_some(())
    }
}
