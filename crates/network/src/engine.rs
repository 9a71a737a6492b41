//! The engine of networks.

use std::ops::Range;

use loss::bytes::Coder;
use loss::engine::{Engine, norms};
use loss::exchange::{Interrupted, OpenExchange};
use loss::totals::Totals;
use loss::{Hyperparameters, ModelParameters, Network};
use simd::Level;
use tuples::pause::{self, PER_PAUSE, Pauses, pause};
use tuples::{Batch, Matrix, OutOfMemory};

use super::init;
use super::layers::{Layer, layers};
use super::rows::Rows;
use super::small::Small;
use super::steps::Steps;

/// Rows of a piece: enough for products of matrices to be worth it.
const PIECE: usize = 256;

/// Multiplications in the products of a piece, if it has more than [`FEW`] rows: some hundredths of a second.
const WORK: usize = 1 << 30;

/// Floats of the features of a piece, if it has more than [`FEW`] rows.
const FEATURES: usize = 1 << 22;

/// A piece has at least this many rows, or those of a mini-batch.
const FEW: usize = 16;

/// A network that learns.
#[derive(Debug)]
pub struct NetworkEngine {
    pub(super) hyper: Hyperparameters,
    pub(super) seed: i64,
    pub(super) network: Network,
    pub(super) dim: usize,
    pub(super) outputs: usize,
    pub(super) layers: Vec<Layer>,
    /// of the layers; weights are the steps' scale times what is here
    pub(super) numbers: Vec<f32>,
    /// as the numbers, each or none: the first moment or velocity, the second moment
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
    /// as the numbers: the sum of the tuples' gradients, with minus
    pub(super) gradient: Vec<f32>,
    pub(super) steps: Steps,
    pub(super) totals: Totals,
    /// tuples in the gradient
    pub(super) pending: usize,
    /// tuples that are not in the gradient yet
    pub(super) rows: Rows,
    /// how many of them there may be
    pub(super) piece: usize,
    /// None if the network is not, or its tuples are sparse
    pub(super) small: Option<Small>,
    /// features of the first layer whose gradient is not 0, if all others are; None if any may be
    pub(super) touched: Option<Vec<u32>>,
    pub(super) is_touched: Vec<bool>,
    /// for each layer, the activations of its units for the tuples of a piece
    pub(super) activations: Vec<Vec<f32>>,
    pub(super) gradients: Vec<f32>,
    pub(super) scratch: Vec<f32>,
    pub(super) level: Level,
}

impl NetworkEngine {
    /// Before the first epoch, with random weights. The hyperparameters have a design.
    pub fn new(
        hyper: Hyperparameters,
        dim: usize,
        classes: usize,
        sparse: bool,
        level: Level,
    ) -> Result<NetworkEngine, OutOfMemory> {
        let design = hyper.design.expect("the design of a network");
        let network = design.network(classes);
        let outputs = network.outputs(classes);
        let layers = layers(&network, dim, outputs).ok_or(OutOfMemory { bytes: usize::MAX })?;
        let weights = network.weights(dim, outputs);
        let total = weights + network.intercepts(outputs);
        let moments = hyper.optimizer.moments();
        let features = if sparse { 1 } else { dim.max(1) };
        let piece = (WORK / weights.max(1)).min(FEATURES / features).clamp(FEW, PIECE);
        // what is never full by itself makes no step by itself, and a small network keeps its gradient to itself
        let steps_alone = hyper.batch_size < Hyperparameters::WHOLE_MINI_BATCHES;
        let small = if sparse || !steps_alone { None } else { Small::new(&layers, &hyper)? };
        let mut numbers = floats(total)?;
        for (i, layer) in layers.iter().enumerate() {
            let bound = init::bound(layer.inputs, layer.outputs);
            let weights = &mut numbers[layer.weights.clone()];
            for (input, weights) in weights.chunks_exact_mut(layer.outputs).enumerate() {
                init::draw(weights, design.seed, i, input, bound);
            }
        }
        Ok(NetworkEngine {
            numbers,
            first: floats(if moments > 0 { total } else { 0 })?,
            second: floats(if moments > 1 { total } else { 0 })?,
            gradient: floats(total)?,
            activations: vec![Vec::new(); layers.len()],
            layers,
            seed: design.seed,
            network,
            dim,
            outputs,
            small,
            steps: Steps::new(hyper.learning_rate),
            totals: Totals::default(),
            pending: 0,
            rows: Rows::new(sparse, dim, level),
            piece,
            touched: Some(Vec::new()),
            is_touched: Vec::new(),
            gradients: Vec::new(),
            scratch: Vec::new(),
            hyper,
            level,
        })
    }

    fn finish_batch(&mut self) {
        if self.rows.len() > 0 {
            self.take_rows();
        }
        if self.pending > 0 {
            self.step();
        }
    }

    /// Adds the gradients of the waiting rows.
    pub(super) fn take_rows(&mut self) {
        let empty = Rows::new(self.rows.is_sparse(), self.dim, self.level);
        let mut rows = std::mem::replace(&mut self.rows, empty);
        match (rows.indices(), &mut self.touched) {
            (Some(indices), Some(touched)) => {
                let new = |index: &&u32| !std::mem::replace(&mut self.is_touched[**index as usize], true);
                touched.extend(indices.iter().filter(new));
            }
            _ => self.touched = None,
        }
        self.add_gradient(&rows, &rows.labels, Some(&rows.weights));
        rows.clear();
        self.rows = rows;
    }

    /// Learns from the rows of a matrix: one step. Tuples that were learned from before and wait for their mini-batch
    /// to be complete make a step of their own.
    pub(super) fn learn_matrix(
        &mut self,
        features: &dyn Matrix,
        labels: &[f32],
        weights: Option<&[f32]>,
    ) -> Result<(), OutOfMemory> {
        assert!(features.rows() == labels.len(), "a label for each row");
        assert!(weights.is_none_or(|weights| weights.len() == labels.len()), "a weight for each row");
        self.finish_batch();
        self.add_matrix(features, labels, weights)?;
        if !labels.is_empty() {
            self.step();
        }
        Ok(())
    }

    /// Adds the gradients of the rows of a matrix. No tuples wait.
    fn add_matrix(
        &mut self,
        features: &dyn Matrix,
        labels: &[f32],
        weights: Option<&[f32]>,
    ) -> Result<(), OutOfMemory> {
        self.grow(features.columns())?;
        assert_eq!(features.columns(), self.dim, "as many features as the trainer was made for");
        self.reserve(labels.len())?;
        if !labels.is_empty() {
            self.touched = None;
            self.add_gradient(features, labels, weights);
        }
        Ok(())
    }

    /// Makes room for sparse tuples, or matrices, of more features. Their weights are those that they would have had
    /// from the beginning if there had been as many.
    pub(super) fn grow(&mut self, dim: usize) -> Result<(), OutOfMemory> {
        if self.rows.is_sparse() && self.is_touched.len() < dim.max(self.dim) {
            let more = dim.max(self.dim) - self.is_touched.len();
            allocation::try_reserve(&mut self.is_touched, more)?;
            self.is_touched.resize(dim.max(self.dim), false);
        }
        if dim <= self.dim {
            return Ok(());
        }
        let layers = layers(&self.network, dim, self.outputs).ok_or(OutOfMemory { bytes: usize::MAX })?;
        let (old, new) = (self.layers[0].weights.end, layers[0].weights.end);
        let small = if self.small.is_some() { Small::new(&layers, &self.hyper)? } else { None };
        let arrays = [&mut self.numbers, &mut self.first, &mut self.second, &mut self.gradient];
        for array in arrays.into_iter().filter(|array| !array.is_empty()) {
            allocation::try_reserve_exact(array, new - old)?;
        }
        self.small = small;
        let arrays = [&mut self.numbers, &mut self.first, &mut self.second, &mut self.gradient];
        for array in arrays.into_iter().filter(|array| !array.is_empty()) {
            array.splice(old..old, std::iter::repeat_n(0.0, new - old));
        }
        let bound = init::bound(dim, layers[0].outputs) / self.steps.scale;
        for (input, weights) in (self.dim..).zip(self.numbers[old..new].chunks_exact_mut(layers[0].outputs)) {
            init::draw(weights, self.seed, 0, input, bound);
        }
        (self.dim, self.layers) = (dim, layers);
        self.rows.set_columns(dim);
        Ok(())
    }

    /// How many weights there are; the intercepts come behind them.
    pub(super) fn weights(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.weights.end)
    }
}

impl Engine for NetworkEngine {
    fn dim(&self) -> usize {
        self.dim
    }

    fn piece(&self) -> Option<usize> {
        Some(self.small.as_ref().map_or(self.piece, Small::piece))
    }

    fn pending(&self) -> usize {
        self.pending + self.rows.len()
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn totals_mut(&mut self) -> &mut Totals {
        &mut self.totals
    }

    fn begin_epoch(&mut self) {
        self.flush();
        self.totals = Totals::default();
    }

    fn set_rate(&mut self, rate: f64) {
        if rate != self.steps.rate {
            let weights = self.weights();
            self.steps.apply_l1(self.hyper.l1, &mut self.numbers[..weights]);
        }
        self.steps.rate = rate;
    }

    fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        if batch.has_mini_batches() {
            return batch.order()[range].iter().try_for_each(|&place| {
                let mini_batch = batch.mini_batch(place as usize);
                self.learn_matrix(&*mini_batch.matrix(), mini_batch.labels(), mini_batch.weights())
            });
        }
        assert_eq!(batch.is_sparse(), self.rows.is_sparse(), "dense or sparse as the trainer");
        assert!(batch.is_sparse() || batch.dim() == self.dim, "as many features as the trainer was made for");
        self.grow(batch.dim())?;
        if self.small.is_some() {
            self.learn_small(batch, range);
            return Ok(());
        }
        let size = self.hyper.batch_size as usize;
        self.reserve(self.piece.min(size))?;
        for &place in &batch.order()[range] {
            self.rows.push(batch, place as usize)?;
            let full = self.pending + self.rows.len() == size;
            if full || self.rows.len() == self.piece {
                self.take_rows();
            }
            if full {
                self.step();
            }
        }
        Ok(())
    }

    fn add_mini_batches(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        batch.order()[range].iter().try_for_each(|&place| {
            let mini_batch = batch.mini_batch(place as usize);
            self.add_matrix(&*mini_batch.matrix(), mini_batch.labels(), mini_batch.weights())
        })
    }

    fn flush(&mut self) {
        self.finish_batch();
        self.settle();
    }

    fn is_finite(&self) -> bool {
        let finite =
            |array: &[f32]| pause::parts(array).all(|part| part.iter().fold(true, |all, x| all & x.is_finite()));
        self.totals.loss.is_finite()
            && [&self.numbers, &self.first, &self.second].into_iter().all(|array| finite(array))
    }

    fn norms(&self) -> (f64, f64) {
        let weights = pause::parts(&self.numbers[..self.weights()]).flatten();
        let weights = weights.map(|&u| self.steps.scale * f64::from(u));
        norms(weights)
    }

    fn model(&self) -> Result<ModelParameters, OutOfMemory> {
        let mut weights = Vec::new();
        allocation::try_reserve_exact(&mut weights, self.weights())?;
        let scale = self.steps.scale as f32;
        let mut pauses = Pauses::default();
        for layer in &self.layers {
            let stored = &self.numbers[layer.weights.clone()];
            let inputs_per_pause = (PER_PAUSE / layer.outputs.max(1)).max(1);
            for output in 0..layer.outputs {
                for part in stored.chunks(inputs_per_pause * layer.outputs) {
                    weights.extend(part.iter().skip(output).step_by(layer.outputs).map(|u| u * scale));
                    pauses.after(part.len() / layer.outputs);
                }
            }
        }
        let intercepts = self.numbers[self.weights()..].to_vec();
        Ok(ModelParameters { dim: self.dim, outputs: self.outputs, weights, intercepts, network: Some(self.network) })
    }

    fn set_model(&mut self, model: &ModelParameters) {
        let weights = self.weights();
        for layer in &self.layers {
            let given = &model.weights[layer.weights.clone()];
            let inputs = given.len() / layer.outputs.max(1);
            for (i, w) in self.numbers[layer.weights.clone()].iter_mut().enumerate() {
                *w = given[i % layer.outputs * inputs + i / layer.outputs];
            }
        }
        self.numbers[weights..].copy_from_slice(&model.intercepts);
    }

    fn step_synchronized(&mut self, tuples: u32, exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        self.step_with_replicas(tuples, exchange)
    }

    fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        coder.finite(&mut self.steps.unbiased)?;
        coder.finite(std::slice::from_mut(&mut self.steps.l1_applied))?;
        [&mut self.numbers, &mut self.first, &mut self.second].into_iter().try_for_each(|array| coder.slice(array))
    }
}

/// Appends zeros until there are this many numbers, which there is room for.
pub(super) fn fill_up(floats: &mut Vec<f32>, length: usize) {
    while floats.len() < length {
        floats.resize(length.min(floats.len() + PER_PAUSE), 0.0);
        pause();
    }
}

/// This many zeros.
fn floats(length: usize) -> Result<Vec<f32>, OutOfMemory> {
    let mut floats: Vec<f32> = Vec::new();
    allocation::try_reserve_exact(&mut floats, length)?;
    tuples::advise_huge_pages(floats.spare_capacity_mut());
    fill_up(&mut floats, length);
    Ok(floats)
}
