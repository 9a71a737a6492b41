//! The weighted average of the iterates that Theorem 1 of the CorgiPile paper speaks of, and its learning rates.
//!
//! The theorem's rate is that of a tuple. The step of a mini-batch is the mean of its tuples' gradients, so that its
//! rate is as many times as large: then the rates of a buffer have the sum that the theorem gives them,
//! 6 / (mu (s + a)), whatever the size of mini-batches.
//!
//! Guarantees: the average is kept in f64; a rate never turns the sign of the weights that the penalty shrinks. The
//! step of a mini-batch is no longer than the losses of the mini-batches allow that were measured, unless one tuple
//! alone might go as far: the tuples of a mini-batch make at one place the steps that otherwise each of them makes
//! where the one before has led. Of rates that fulfil the theorem's condition, a >= 24 L / mu for objectives that bend
//! by L at most, no step is shortened: their sum over a buffer is 1 / 4L at most.

use loss::bytes::Coder;
use loss::{Hyperparameters, Schedule};

/// Where a run of the theorem's schedule stands.
#[derive(Debug)]
pub(crate) struct Theorem1 {
    mu: f64,
    a: Option<f64>,
    learning_rate: f64,
    l2: f64,
    /// buffers begun
    buffers: u64,
    /// the rate of a tuple in the current buffer
    rate: f64,
    /// how much the loss of a mini-batch can bend: the most that was measured so far
    curvature: f64,
    /// tuples of the largest buffer so far: the last one of an epoch, smaller than all others,
    /// should not make large steps
    tuples: usize,
    /// whether the current buffer has been learned from
    used: bool,
    /// sum of the weights of the iterates
    total: f64,
}

impl Theorem1 {
    /// Before the first buffer; None of other schedules.
    pub(crate) fn new(hyper: &Hyperparameters) -> Option<Theorem1> {
        let Schedule::Theorem1 { mu, a } = hyper.schedule else { return None };
        Some(Theorem1 {
            mu,
            a,
            learning_rate: hyper.learning_rate,
            l2: hyper.l2,
            buffers: 0,
            rate: hyper.learning_rate,
            curvature: 0.0,
            tuples: 0,
            used: false,
            total: 0.0,
        })
    }

    /// Whether the next buffer's mini-batches should be measured: all of the first epoch, and now and then one later,
    /// lest measuring takes the time of learning.
    pub(crate) fn measures(&self, epoch: u32) -> bool {
        epoch == 1 || self.buffers.is_multiple_of(MEASURED)
    }

    /// Takes notice of how much the loss of a mini-batch can bend.
    pub(crate) fn measured(&mut self, curvature: f64) {
        self.curvature = self.curvature.max(curvature);
    }

    /// Begins buffer s of bn tuples, whose rate is 6 / (bn mu (s + a)) for a tuple.
    pub(crate) fn begin_buffer(&mut self, tuples: usize) {
        self.buffers += 1;
        self.tuples = self.tuples.max(tuples).max(1);
        let numerator = 6.0 / (self.tuples as f64 * self.mu);
        let rate = self.learning_rate;
        let a = *self.a.get_or_insert((numerator / rate - 1.0).max(0.0));
        self.rate = numerator / (self.buffers as f64 + a);
    }

    /// The rate of a step that this many tuples make together.
    pub(crate) fn rate_of_step(&self, tuples: usize) -> f64 {
        let mut rate = self.rate;
        if tuples > 1 {
            let longest = 1.0 / (self.curvature + self.l2);
            rate = (self.rate * tuples as f64).min(longest).max(self.rate);
        }
        // a buffer of less than a dozen tuples
        if rate * self.l2 > 0.5 { 0.5 / self.l2 } else { rate }
    }

    pub(crate) fn has_buffer(&self) -> bool {
        self.buffers > 0
    }

    pub(crate) fn learned(&mut self) {
        self.used = true;
    }

    /// The share in the mean of the model after buffer s, if it was learned from: it has the weight (s + a)³, in units
    /// of the first one's, which may be beyond f64.
    pub(crate) fn share(&mut self) -> Option<f64> {
        if !std::mem::take(&mut self.used) {
            return None;
        }
        let a = self.a.unwrap_or(0.0);
        let weight = ((self.buffers as f64 + a) / (1.0 + a)).powi(3);
        self.total += weight;
        Some(weight / self.total)
    }

    /// Writes or reads everything, after a buffer.
    pub(crate) fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        let (mut a, mut tuples) = (self.a.unwrap_or(-1.0), self.tuples as u64);
        [&mut self.buffers, &mut tuples].into_iter().try_for_each(|count| coder.value(count))?;
        [&mut a, &mut self.total, &mut self.curvature]
            .into_iter()
            .try_for_each(|number| coder.finite(std::slice::from_mut(number)))?;
        self.tuples = usize::try_from(tuples).ok()?;
        self.a = self.a.or((a >= 0.0).then_some(a));
        (self.total >= 0.0 && self.curvature >= 0.0).then_some(())
    }
}

/// After the first epoch, this many buffers come to one that is measured.
const MEASURED: u64 = 16;
