//! The state of SGD between two tuples.
//!
//! Guarantees: the state is the same wherever the sequence of tuples is cut. Kernels need the rows before the current
//! one, so that the state owns a copy of them, and the steps along them that are still to be made: the first tuple of a
//! range is computed exactly as it would be in the middle of one.

use bytemuck::{Pod, Zeroable};
use loss::ModelParameters;
use loss::bytes::Coder;
use loss::kernels::{Aligned, to_chunks};
use simd::Chunk;
use tuples::LANES;

use super::loss_accumulator::LossAccumulator;

/// The weights w = `scale` * (`weights` + the steps along the `previous` rows), the intercept, and what was counted.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(super) dim: usize,
    /// zero where the row has the constant 1, between two calls: the intercept is not to be shrunk
    pub(super) weights: Vec<Aligned>,
    /// without the pending steps, as the weights
    pub(super) intercept: f32,
    /// in f64, because the factor of one step may differ from 1 by less than f32 can tell; in [1/2, 1] after a step
    pub(super) scale: f64,
    /// the rows of the last two tuples, the last one behind; what stands for their constant 1 is not looked at
    pub(super) previous: [Vec<Chunk>; 2],
    pub(super) steps: UpdateWindow,
    /// 1, but 0 in the lane of the constant 1
    pub(super) mask: Chunk,
    pub(super) accumulator: LossAccumulator,
}

/// The steps along the previous rows that are still to be made.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct UpdateWindow {
    pub(super) earlier: Update,
    pub(super) last: Update,
}

/// The step that a tuple asks for: `gradient * direction` along its row, with direction = y * learning rate.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Update {
    pub(super) gradient: f32,
    pub(super) direction: f32,
    /// the direction for the weights, which are to be multiplied by the scale
    pub(super) along: f32,
}

impl State {
    /// All zeros.
    pub(crate) fn new(dim: usize) -> State {
        let chunks = dim / LANES + 1;
        let mut mask = [1.0; LANES];
        mask[dim % LANES] = 0.0;
        State {
            dim,
            weights: allocation::filled(Aligned([0.0; LANES]), chunks),
            previous: [allocation::zeros(chunks), allocation::zeros(chunks)],
            intercept: 0.0,
            scale: 1.0,
            steps: UpdateWindow::default(),
            mask,
            accumulator: LossAccumulator::new(),
        }
    }

    /// Makes this the model, with all steps made.
    pub(crate) fn set_model(&mut self, weights: &[f32], intercept: f32) {
        for (chunk, weights) in self.weights.iter_mut().zip(to_chunks(weights)) {
            chunk.0 = weights;
        }
        (self.intercept, self.scale, self.steps) = (intercept, 1.0, UpdateWindow::default());
    }

    /// Makes the intercept the weight of the constant 1.
    #[inline(always)]
    pub(super) fn set_weight_of_constant(&mut self) {
        self.weights[self.dim / LANES].0[self.dim % LANES] = self.intercept;
    }

    #[inline(always)]
    pub(super) fn take_weight_of_constant(&mut self) -> f32 {
        std::mem::take(&mut self.weights[self.dim / LANES].0[self.dim % LANES])
    }

    /// Writes or reads everything but what was counted.
    pub(crate) fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        coder.slice(&mut self.weights)?;
        self.previous.iter_mut().try_for_each(|row| coder.slice(row))?;
        coder.value(&mut self.steps)?;
        coder.value(&mut self.intercept)?;
        coder.value(&mut self.scale)?;
        (self.scale > 0.0 && self.scale <= 1.0).then_some(())
    }

    /// The model with all steps made.
    pub(crate) fn model(&self) -> ModelParameters {
        let UpdateWindow { earlier, last } = self.steps;
        let [before, previous] = self.previous.each_ref().map(|row| row.iter().flatten());
        let weights = self.weights.iter().flat_map(|chunk| chunk.0).zip(before).zip(previous);
        let made = |weight: f32, step: Update, x: &f32| weight + step.gradient * step.along * x;
        let weights = weights.map(|((w, p), q)| made(made(w, earlier, p), last, q));
        // + 0.0 makes a negative zero, from a weight that underflows, as positive as all other zeros
        let weights = weights.map(|w| w * self.scale as f32 + 0.0);
        let intercept = self.intercept + earlier.gradient * earlier.direction + last.gradient * last.direction;
        let weights = allocation::collect(weights.take(self.dim));
        ModelParameters { dim: self.dim, outputs: 1, weights, intercepts: vec![intercept], network: None }
    }
}

/// What to divide by `scale` is multiplied by.
#[inline(always)]
pub(super) fn inverse(scale: f64) -> f32 {
    (1.0 / scale) as f32
}
