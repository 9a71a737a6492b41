//! The engine for one dense tuple at a time.

use std::ops::Range;

use simd::Level;
use tuples::{Batch, OutOfMemory};

use super::state::State;
use super::task::{Learn, Rates};
use crate::bytes::Coder;
use crate::engine::{Engine, norms};
use crate::exchange::{Interrupted, OpenExchange, mean};
use crate::mean::Mean;
use crate::models::{Pointwise, PointwiseVisitor};
use crate::totals::Totals;
use crate::{Hyperparameters, ModelKind, ModelParameters, Optimizer};

/// Plain SGD of pointwise losses on dense tuples, one at a time.
#[derive(Debug)]
pub(crate) struct FastEngine {
    kind: ModelKind,
    /// of the loss
    number: f32,
    dim: usize,
    hyper: Hyperparameters,
    rate: f64,
    state: State,
    level: Level,
}

impl FastEngine {
    /// Whether it can train in this way.
    pub(crate) fn supports(hyper: &Hyperparameters, sparse: bool) -> bool {
        let plain = hyper.optimizer == Optimizer::Sgd && hyper.batch_size == 1 && hyper.l1 == 0.0;
        plain && !sparse && hyper.kind.is_pointwise()
    }

    /// Before the first epoch.
    pub(crate) fn new(hyper: Hyperparameters, dim: usize, level: Level) -> FastEngine {
        let Hyperparameters { kind, learning_rate: rate, .. } = hyper;
        let number = hyper.loss_number as f32;
        FastEngine { kind, number, dim, hyper, rate, state: State::new(dim, kind, number), level }
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
        self.dim
    }

    fn begin_epoch(&mut self) {
        self.state.begin_epoch();
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    fn set_loss_number(&mut self, number: f64) {
        self.number = number as f32;
        self.state.set_loss_number(self.number);
    }

    fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        assert!(!batch.is_sparse() && batch.dim() == self.dim, "as many features as the trainer was made for");
        let penalties = (self.hyper.penalty_rate(self.rate), self.hyper.l2);
        let rates = Rates::new(self.rate, penalties, self.hyper.bounded.then(|| self.kind.curvature()));
        self.kind
            .with_pointwise(self.number, LearnFrom { state: &mut self.state, rates, batch, range, level: self.level });
        Ok(())
    }

    fn pending(&self) -> usize {
        0
    }

    fn flush(&mut self) {}

    fn is_finite(&self) -> bool {
        self.state.is_finite()
    }

    fn totals(&self) -> Totals {
        self.state.totals()
    }

    fn totals_mut(&mut self) -> &mut Totals {
        self.state.totals_mut()
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
