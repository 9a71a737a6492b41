//! The engine for one dense tuple at a time.

use std::ops::Range;

use loss::bytes::Coder;
use loss::engine::{Engine, norms};
use loss::exchange::{Interrupted, OpenExchange, mean};
use loss::mean::Mean;
use loss::models::{Pointwise, PointwiseVisitor};
use loss::totals::Totals;
use loss::{Hyperparameters, ModelParameters, Optimizer};
use simd::Level;
use tuples::{Batch, OutOfMemory};

use super::state::State;
use super::task::{Learn, Rates};

/// Plain SGD of pointwise losses on dense tuples, one at a time.
#[derive(Debug)]
pub struct FastEngine {
    hyper: Hyperparameters,
    rate: f64,
    state: State,
    level: Level,
}

impl FastEngine {
    /// Whether it can train in this way.
    pub fn supports(hyper: &Hyperparameters, sparse: bool) -> bool {
        let plain = hyper.optimizer == Optimizer::Sgd && hyper.batch_size == 1 && hyper.l1 == 0.0;
        plain && !sparse && hyper.kind.is_pointwise()
    }

    /// Before the first epoch.
    pub fn new(hyper: Hyperparameters, dim: usize, level: Level) -> FastEngine {
        FastEngine { hyper, rate: hyper.learning_rate, state: State::new(dim), level }
    }
}

/// Learns from a stretch of the order.
struct LearnFrom<'a> {
    state: &'a mut State,
    rates: Rates,
    batch: &'a Batch,
    range: Range<usize>,
    level: Level,
}

impl PointwiseVisitor for LearnFrom<'_> {
    type Output = ();

    fn visit<L: Pointwise>(self, loss: L) {
        let LearnFrom { state, rates, batch, range, level } = self;
        Learn { state, loss, rates, batch, range }.run_on(level);
    }
}

impl Engine for FastEngine {
    fn dim(&self) -> usize {
        self.state.dim
    }

    fn begin_epoch(&mut self) {
        self.state.accumulator.clear();
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Nothing waits to be counted.
    fn set_loss_number(&mut self, number: f64) {
        self.hyper.loss_number = number;
    }

    fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        assert!(!batch.is_sparse() && batch.dim() == self.dim(), "as many features as the trainer was made for");
        let FastEngine { hyper, rate, ref mut state, level } = *self;
        let visitor = LearnFrom { state, rates: Rates::new(&hyper, rate), batch, range, level };
        hyper.kind.with_pointwise(hyper.loss_number as f32, visitor);
        Ok(())
    }

    fn is_finite(&self) -> bool {
        self.totals().loss.is_finite() && self.state.model().is_finite()
    }

    fn totals(&self) -> Totals {
        self.state.accumulator.totals(self.hyper.kind, self.hyper.loss_number as f32)
    }

    fn totals_mut(&mut self) -> &mut Totals {
        self.state.accumulator.totals_mut(self.hyper.kind, self.hyper.loss_number as f32)
    }

    fn norms(&self) -> (f64, f64) {
        norms(self.state.model().weights.iter().map(|&w| f64::from(w)))
    }

    fn model(&self) -> Result<ModelParameters, OutOfMemory> {
        Ok(self.state.model())
    }

    fn set_model(&mut self, model: &ModelParameters) {
        self.state.set_model(&model.weights, model.intercepts[0]);
    }

    fn add_to(&mut self, mean: &mut Mean, share: f64) {
        let ModelParameters { weights, intercepts, .. } = self.state.model();
        mean.add(share, [(weights.into_iter(), intercepts[0])].into_iter());
    }

    fn average_synchronized(&mut self, shares: &[f64], exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        let ModelParameters { dim, weights: mut numbers, intercepts, .. } = self.state.model();
        numbers.extend(intercepts);
        exchange.all_reduce(&mut numbers, &mut mean(shares))?;
        self.state.set_model(&numbers[..dim], numbers[dim]);
        Ok(())
    }

    fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        self.state.code(coder)
    }
}
