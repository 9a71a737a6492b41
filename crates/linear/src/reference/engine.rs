//! The reference engine.

use std::ops::Range;

use loss::bytes::Coder;
use loss::engine::Engine;
use loss::exchange::{Interrupted, OpenExchange};
use loss::mean::Mean;
use loss::totals::Totals;
use loss::{Hyperparameters, ModelParameters};
use simd::Level;
use tuples::{Batch, OutOfMemory};

use super::exempt::Exempt;
use super::memory::Memory;
use super::mini_batches::{LearnMiniBatches, Products};
use super::state::{Progress, TrainerState};
use super::training::{Training, grow, memory_size};

/// A training that owns its memory: with any loss, optimizer, penalty and batch size, on dense or sparse tuples.
#[derive(Debug)]
pub struct ReferenceEngine {
    pub(super) training: Training<Memory>,
    /// what other processes are given
    pub(super) message: Vec<f32>,
    products: Products,
}

impl ReferenceEngine {
    /// Before the first epoch.
    pub fn new(
        hyper: Hyperparameters,
        dim: usize,
        outputs: usize,
        sparse: bool,
        level: Level,
    ) -> Result<ReferenceEngine, OutOfMemory> {
        let state = TrainerState::new(hyper, dim, outputs, sparse);
        let training =
            Training { state, memory: Memory::zeros(memory_size(&state)?)?, level, exempt: None, is_open: false };
        Ok(ReferenceEngine { training, message: Vec::new(), products: Products::default() })
    }

    /// Adds the gradient of each mini-batch, and makes a step for each if it `steps`.
    fn learn_mini_batches(&mut self, batch: &Batch, range: Range<usize>, steps: bool) -> Result<(), OutOfMemory> {
        let ReferenceEngine { training, products, .. } = self;
        products.reserve(&training.state, batch, range.clone())?;
        let level = training.level;
        let (state, arrays) = training.split();
        level.run(LearnMiniBatches { state, arrays, products, batch, range, steps });
        Ok(())
    }

    /// Makes room for this many features of sparse tuples.
    pub(super) fn make_room(&mut self, dim: usize) -> Result<(), OutOfMemory> {
        let Training { state, memory, .. } = &mut self.training;
        if let Some(moved) = grow(state, memory.as_ref(), dim, Memory::zeros)? {
            *memory = moved;
        }
        Ok(())
    }
}

impl Engine for ReferenceEngine {
    fn dim(&self) -> usize {
        self.training.state.now.dim as usize
    }

    fn begin_epoch(&mut self) {
        let Progress { pending, time, pending_l1, .. } = self.training.state.now;
        if pending > 0 || time > 0 || pending_l1 > 0 || self.training.is_open {
            self.flush();
        }
        self.training.state.begin_epoch();
    }

    fn set_rate(&mut self, rate: f64) {
        if self.training.state.is_lazy() && rate != self.training.state.now.rate {
            self.training.apply_pending();
        }
        self.training.state.now.rate = rate;
    }

    fn exempt(&mut self, features: &[u32]) -> Result<(), OutOfMemory> {
        let mut own = Vec::new();
        allocation::try_reserve_exact(&mut own, features.len())?;
        own.extend_from_slice(features);
        self.training.exempt = self.training.state.sparse.then(|| Exempt::new(own));
        Ok(())
    }

    fn set_loss_number(&mut self, number: f64) {
        self.training.state.hyper.loss_number = number;
    }

    fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        assert_eq!(batch.is_sparse(), self.training.state.sparse, "dense or sparse as the trainer");
        assert!(batch.is_sparse() || batch.dim() == self.dim(), "as many features as the trainer was made for");
        if batch.is_sparse() {
            self.make_room(batch.dim())?;
        }
        if batch.has_mini_batches() {
            return self.learn_mini_batches(batch, range, true);
        }
        self.training.learn(batch, range);
        Ok(())
    }

    fn add_mini_batches(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        assert!(
            !self.training.state.sparse && batch.dim() == self.dim(),
            "as many features as the trainer was made for"
        );
        self.learn_mini_batches(batch, range, false)
    }

    fn pending(&self) -> usize {
        self.training.state.now.pending as usize
    }

    fn flush(&mut self) {
        self.training.flush();
    }

    fn is_finite(&self) -> bool {
        self.training.is_finite()
    }

    fn totals(&self) -> Totals {
        self.training.state.now.totals
    }

    fn totals_mut(&mut self) -> &mut Totals {
        &mut self.training.state.now.totals
    }

    fn norms(&self) -> (f64, f64) {
        self.training.norms()
    }

    fn model(&self) -> Result<ModelParameters, OutOfMemory> {
        if !self.training.state.is_lazy() && !self.training.is_open {
            return self.training.model();
        }
        let Training { state, ref memory, level, is_open, .. } = self.training;
        // between epochs nothing is owed to features without l2, and within one less than a thousandth
        let mut current = Training { state, memory: memory.try_clone()?, level, exempt: None, is_open };
        current.apply_pending();
        current.model()
    }

    fn set_model(&mut self, model: &ModelParameters) {
        let (outputs, sparse) = (model.outputs, self.training.state.sparse);
        let (_, arrays) = self.training.split();
        let stride = arrays.weights.len() / outputs;
        for (i, w) in model.weights.iter().enumerate() {
            let (output, feature) = (i / model.dim, i % model.dim);
            arrays.weights[if sparse { feature * outputs + output } else { output * stride + feature }] = *w;
        }
        arrays.intercepts.values.copy_from_slice(&model.intercepts);
    }

    fn add_to(&mut self, mean: &mut Mean, share: f64) {
        self.training.apply_pending();
        self.training.with_exempt_restored(|training| {
            if let [intercept] = *training.intercepts() {
                return mean.add(share, std::iter::once((training.only_weights(), intercept)));
            }
            let intercepts = training.intercepts().iter().enumerate();
            mean.add(share, intercepts.map(|(k, intercept)| (training.weights(k), *intercept)));
        });
    }

    fn step_synchronized(&mut self, tuples: u32, exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        self.step_with_replicas(tuples, exchange)
    }

    fn average_synchronized(&mut self, shares: &[f64], exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        self.average_with_replicas(shares, exchange)
    }

    fn room(&self) -> usize {
        self.training.state.now.capacity as usize
    }

    fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        if self.training.is_open {
            self.training.flush();
        }
        self.training.state.code(coder)?;
        coder.slice(self.training.memory.as_mut())
    }
}
