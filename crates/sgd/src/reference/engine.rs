//! The reference engine.

use std::ops::Range;

use simd::Level;
use tuples::pause::{self, PER_PAUSE};
use tuples::{Batch, OutOfMemory};

use super::memory::Memory;
use super::mini_batches::{LearnMiniBatches, Products};
use super::state::TrainerState;
use super::training::{self, arrays, grow, memory_size};
use crate::bytes::Coder;
use crate::engine::Engine;
use crate::exchange::{Interrupted, OpenExchange};
use crate::mean::Mean;
use crate::totals::Totals;
use crate::{Hyperparameters, ModelParameters};

/// A training that owns its memory: with any loss, optimizer, penalty and batch size, on dense or sparse tuples.
#[derive(Debug)]
pub(crate) struct ReferenceEngine {
    pub(super) state: TrainerState,
    pub(super) memory: Memory,
    pub(super) level: Level,
    /// what other processes are given
    pub(super) message: Vec<f32>,
    products: Products,
}

impl ReferenceEngine {
    /// Before the first epoch.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub(crate) fn new(
        hyper: Hyperparameters,
        dim: usize,
        outputs: usize,
        sparse: bool,
        level: Level,
    ) -> Result<ReferenceEngine, OutOfMemory> {
        let state = TrainerState::new(hyper, dim, outputs, sparse);
        Ok(ReferenceEngine {
            state,
            memory: Memory::zeros(memory_size(&state)?)?,
            level,
            message: Vec::new(),
            products: Products::default(),
        })
    }

    /// Adds the gradient of each mini-batch, and makes a step for each if it `steps`.
    fn learn_mini_batches(&mut self, batch: &Batch, range: Range<usize>, steps: bool) -> Result<(), OutOfMemory> {
        let ReferenceEngine { state, memory, level, products, .. } = self;
        products.reserve(state, batch, range.clone())?;
        let arrays = arrays(state, memory.as_mut());
        level.run(LearnMiniBatches { state, arrays, products, batch, range, steps });
        Ok(())
    }

    /// Brings all weights up to date.
    pub(super) fn apply_pending(&mut self) {
        training::apply_pending(self.level, &mut self.state, self.memory.as_mut());
    }

    /// Weights and intercept of each output of a training that is flushed, or up to date.
    fn outputs(&self) -> impl Iterator<Item = (impl Iterator<Item = f32>, f32)> {
        let (state, memory) = (&self.state, self.memory.floats());
        training::intercepts(state, memory)
            .iter()
            .enumerate()
            .map(move |(k, b)| (training::weights(state, memory, k), *b))
    }

    /// Makes room for so many features of sparse tuples.
    pub(super) fn make_room(&mut self, dim: usize) -> Result<(), OutOfMemory> {
        if let Some(moved) = grow(&mut self.state, self.memory.floats(), dim, Memory::zeros)? {
            self.memory = moved;
        }
        Ok(())
    }

    fn try_clone(&self) -> Result<ReferenceEngine, OutOfMemory> {
        let mut memory = Memory::zeros(self.memory.length)?;
        pause::parts_mut(memory.as_mut())
            .zip(self.memory.floats().chunks(PER_PAUSE))
            .for_each(|(to, from)| to.copy_from_slice(from));
        Ok(ReferenceEngine {
            state: self.state,
            memory,
            level: self.level,
            message: Vec::new(),
            products: Products::default(),
        })
    }
}

impl Engine for ReferenceEngine {
    fn dim(&self) -> usize {
        self.state.dim as usize
    }

    fn begin_epoch(&mut self) {
        if self.state.pending > 0 || self.state.time > 0 || self.state.pending_l1 > 0 {
            self.flush();
        }
        self.state.begin_epoch();
    }

    fn set_rate(&mut self, rate: f64) {
        if self.state.is_lazy() && rate != self.state.rate {
            self.apply_pending();
        }
        self.state.rate = rate;
    }

    fn set_loss_number(&mut self, number: f64) {
        self.state.set_number(number);
    }

    fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        assert_eq!(batch.is_sparse(), self.state.sparse(), "dense or sparse as the trainer");
        assert!(batch.is_sparse() || batch.dim() == self.dim(), "as many features as the trainer was made for");
        if batch.is_sparse() {
            self.make_room(batch.dim())?;
        }
        if batch.has_mini_batches() {
            return self.learn_mini_batches(batch, range, true);
        }
        training::learn(self.level, &mut self.state, self.memory.as_mut(), batch, range);
        Ok(())
    }

    fn add_mini_batches(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        assert!(!self.state.sparse() && batch.dim() == self.dim(), "as many features as the trainer was made for");
        self.learn_mini_batches(batch, range, false)
    }

    fn pending(&self) -> usize {
        self.state.pending as usize
    }

    fn flush(&mut self) {
        training::flush(self.level, &mut self.state, self.memory.as_mut());
    }

    fn is_finite(&self) -> bool {
        training::is_finite(&self.state, self.memory.floats())
    }

    fn totals(&self) -> Totals {
        self.state.totals
    }

    fn totals_mut(&mut self) -> &mut Totals {
        &mut self.state.totals
    }

    fn norms(&self) -> (f64, f64) {
        training::norms(&self.state, self.memory.floats())
    }

    fn model(&self) -> Result<ModelParameters, OutOfMemory> {
        if !self.state.is_lazy() {
            return training::model(&self.state, self.memory.floats());
        }
        let mut current = self.try_clone()?;
        current.apply_pending();
        training::model(&current.state, current.memory.floats())
    }

    fn set_model(&mut self, model: &ModelParameters) {
        let state = &self.state;
        let (outputs, sparse) = (model.outputs, state.sparse());
        let arrays = arrays(state, self.memory.as_mut());
        let stride = arrays.weights.len() / outputs;
        for (i, w) in model.weights.iter().enumerate() {
            let (output, feature) = (i / model.dim, i % model.dim);
            arrays.weights[if sparse { feature * outputs + output } else { output * stride + feature }] = *w;
        }
        arrays.intercepts.values.copy_from_slice(&model.intercepts);
    }

    fn add_to(&mut self, mean: &mut Mean, share: f64) {
        self.apply_pending();
        if self.state.outputs > 1 {
            return mean.add(share, self.outputs());
        }
        let (state, memory) = (&self.state, self.memory.floats());
        let weights = training::only_weights(state, memory);
        mean.add(share, std::iter::once((weights, training::intercepts(state, memory)[0])));
    }

    fn step_synchronized(&mut self, tuples: u32, exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        self.step_with_replicas(tuples, exchange)
    }

    fn average_synchronized(&mut self, shares: &[f64], exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        self.average_with_replicas(shares, exchange)
    }

    fn room(&self) -> usize {
        self.state.capacity as usize
    }

    fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        self.state.code(coder)?;
        coder.slice(self.memory.as_mut())
    }
}
