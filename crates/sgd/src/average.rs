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

use bytemuck::{Pod, Zeroable};
use tuples::OutOfMemory;

use crate::bytes::{Reader, Writer};
use crate::engine::Engine;
use crate::mean::Mean;
use crate::{Hyperparameters, ModelParameters, Schedule};

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
    /// shall not make large steps
    tuples: usize,
    /// whether the current buffer has been learned from
    used: bool,
    /// sum of the weights of the iterates
    total: f64,
    mean: Mean,
}

impl Theorem1 {
    pub(crate) fn new(mu: f64, a: Option<f64>, hyper: &Hyperparameters, outputs: usize) -> Theorem1 {
        Theorem1 {
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
            mean: Mean::new(outputs),
        }
    }

    /// Makes room for so many features.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub(crate) fn reserve(&mut self, dim: usize) -> Result<(), OutOfMemory> {
        self.mean.reserve(dim)
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

    /// The rate of a step that so many tuples make together.
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

    /// Whether there is an iterate to be added.
    pub(crate) fn is_due(&self) -> bool {
        self.used
    }

    /// Adds the engine's model, the iterate after buffer s, with weight (s + a)³, in units of the first one's,
    /// which may be beyond f64.
    pub(crate) fn add(&mut self, engine: &mut dyn Engine) {
        self.used = false;
        let a = self.a.unwrap_or(0.0);
        let weight = ((self.buffers as f64 + a) / (1.0 + a)).powi(3);
        self.total += weight;
        engine.add_to(&mut self.mean, weight / self.total);
    }

    /// Makes `model`, the current iterate, the average so far; it stays what it is if there is none.
    pub(crate) fn replace(&self, model: &mut ModelParameters) {
        if self.total > 0.0 {
            self.mean.replace(model);
        }
    }

    /// Everything, after a buffer.
    pub(crate) fn save(&self, to: &mut Writer) {
        let Theorem1 { buffers, total, curvature, .. } = *self;
        let (a, tuples) = (self.a.unwrap_or(-1.0), self.tuples as u64);
        let dim = self.mean.dim() as u64;
        to.numbers(&Saved { buffers, tuples, a, total, curvature, dim });
        self.mean.save(to);
    }

    /// The run that was saved, of a model of so many features and outputs; None if it is not one.
    pub(crate) fn read(from: &mut Reader<'_>, hyper: &Hyperparameters, [_, outputs]: [usize; 2]) -> Option<Theorem1> {
        let Schedule::Theorem1 { mu, a } = hyper.schedule else { return None };
        let mut theorem = Theorem1::new(mu, a, hyper, outputs);
        let saved: Saved = from.numbers()?;
        theorem.buffers = saved.buffers;
        theorem.tuples = usize::try_from(saved.tuples).ok()?;
        theorem.a = theorem.a.or((saved.a.is_finite() && saved.a >= 0.0).then_some(saved.a));
        theorem.total = saved.total;
        theorem.curvature = Some(saved.curvature).filter(|curvature| curvature.is_finite() && *curvature >= 0.0)?;
        theorem.mean = Mean::read(from, saved.dim, outputs)?;
        (theorem.total.is_finite() && theorem.total >= 0.0).then_some(theorem)
    }

    /// |w|² and |w|₁ of the average.
    pub(crate) fn norms(&self) -> (f64, f64) {
        self.mean.norms()
    }
}

/// What is saved before the averages.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Saved {
    buffers: u64,
    tuples: u64,
    a: f64,
    total: f64,
    curvature: f64,
    dim: u64,
}

/// After the first epoch, so many buffers come to one that is measured.
const MEASURED: u64 = 16;
