//! The state of SGD between two tuples, and the choice of the kernel that takes it from one to the next.
//!
//! Guarantees: the state is the same wherever the sequence of tuples is cut. Kernels need the rows before the current one,
//! so that the state owns a copy of them, and the steps along them that are still to be made: the first tuple of a range
//! is computed exactly as it would be in the middle of one.

use std::ops::Range;

use tuples::{Batch, LANES};

use super::loss_accumulator::LossAccumulator;
use super::narrow::narrow;
use super::simd::{Kernel, Level, Simd};
use super::wide::wide;
use super::{Aligned, Chunk};
use crate::ModelKind;
use crate::loss::{Pointwise, Totals};
use crate::model::ModelParameters;

/// The weights w = `scale` * (`weights` + the steps along the `previous` rows), the intercept, and what was counted.
#[derive(Debug, Clone)]
pub(crate) struct State {
    dim: usize,
    kind: ModelKind,
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
    pub(super) tally: LossAccumulator,
}

/// The steps along the previous rows that are still to be made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UpdateWindow {
    pub(super) earlier: Update,
    pub(super) last: Update,
}

/// The step that a tuple asks for: `slope * direction` along its row, with direction = y * learning rate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Update {
    pub(super) slope: f32,
    pub(super) direction: f32,
    /// the direction for the weights, which are to be multiplied by the scale
    pub(super) along: f32,
}

/// Where the weights of tuples come from.
pub(super) trait Weights: Copy {
    /// Whether there are any.
    const WEIGHTED: bool;

    /// `number` times the weight of tuple `i`.
    fn times(self, i: usize, number: f32) -> f32;
}

/// All are 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unweighted;

impl Weights for Unweighted {
    const WEIGHTED: bool = false;

    #[inline(always)]
    fn times(self, _: usize, number: f32) -> f32 {
        number
    }
}

impl Weights for &[f32] {
    const WEIGHTED: bool = true;

    #[inline(always)]
    fn times(self, i: usize, number: f32) -> f32 {
        self[i] * number
    }
}

/// The numbers that an epoch fixes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    /// The learning rate.
    pub(super) learning_rate: f32,
    /// The factor that the penalty puts on the weights with every step.
    pub(super) shrink: f64,
    /// Whether there is a penalty, be its factor next to 1.
    penalty: bool,
}

impl Rates {
    pub(crate) fn new(learning_rate: f64, l2: f64) -> Rates {
        Rates { learning_rate: learning_rate as f32, shrink: 1.0 - learning_rate * l2, penalty: l2 > 0.0 }
    }
}

impl State {
    /// All zeros.
    pub(crate) fn new(dim: usize, kind: ModelKind) -> State {
        let chunks = dim / LANES + 1;
        let mut mask = [1.0; LANES];
        mask[dim % LANES] = 0.0;
        State {
            dim,
            kind,
            weights: vec![Aligned([0.0; LANES]); chunks],
            previous: [vec![[0.0; LANES]; chunks], vec![[0.0; LANES]; chunks]],
            intercept: 0.0,
            scale: 1.0,
            steps: UpdateWindow::default(),
            mask,
            tally: LossAccumulator::new(),
        }
    }

    /// Forgets what was counted.
    pub(crate) fn begin_epoch(&mut self) {
        self.tally.clear();
    }

    /// What was counted in this epoch.
    pub(crate) fn totals(&self) -> Totals {
        self.tally.totals(self.kind)
    }

    /// What was counted.
    pub(crate) fn totals_mut(&mut self) -> &mut Totals {
        self.tally.totals_mut(self.kind)
    }

    /// Makes this the model, with all steps made.
    pub(crate) fn set_model(&mut self, weights: &[f32], intercept: f32) {
        for (chunk, weights) in self.weights.iter_mut().zip(super::to_chunks(weights)) {
            chunk.0 = weights;
        }
        (self.intercept, self.scale, self.steps) = (intercept, 1.0, UpdateWindow::default());
    }

    /// Whether neither the parameters nor the loss have become infinite or NaN.
    pub(crate) fn is_finite(&self) -> bool {
        self.totals().loss.is_finite() && self.model().is_finite()
    }

    /// Makes the intercept the weight of the constant 1.
    #[inline(always)]
    pub(super) fn set_weight_of_constant(&mut self) {
        self.weights[self.dim / LANES].0[self.dim % LANES] = self.intercept;
    }

    /// Takes the weight of the constant 1 away.
    #[inline(always)]
    pub(super) fn take_weight_of_constant(&mut self) -> f32 {
        std::mem::take(&mut self.weights[self.dim / LANES].0[self.dim % LANES])
    }

    /// The model with all steps made.
    pub(crate) fn model(&self) -> ModelParameters {
        let UpdateWindow { earlier, last } = self.steps;
        let [before, previous] = self.previous.each_ref().map(|row| row.iter().flatten());
        let weights = self.weights.iter().flat_map(|chunk| chunk.0).zip(before).zip(previous);
        let made = |weight: f32, step: Update, x: &f32| weight + step.slope * step.along * x;
        let weights = weights.map(|((w, p), q)| made(made(w, earlier, p), last, q));
        // + 0.0 makes a negative zero, from a weight that underflows, as positive as all other zeros
        let weights = weights.map(|w| w * self.scale as f32 + 0.0);
        let intercept = self.intercept + earlier.slope * earlier.direction + last.slope * last.direction;
        let intercepts = vec![intercept];
        ModelParameters {
            dim: self.dim,
            outputs: 1,
            weights: weights.take(self.dim).collect(),
            intercepts,
            network: None,
        }
    }
}

/// What to divide by `scale` is multiplied by.
#[inline(always)]
pub(super) fn inverse(scale: f64) -> f32 {
    (1.0 / scale) as f32
}

/// One stretch of the order to learn from.
pub(crate) struct Learn<'a, L> {
    /// To be taken along.
    pub(crate) state: &'a mut State,
    /// What to minimise.
    pub(crate) loss: L,
    /// The step sizes.
    pub(crate) rates: Rates,
    /// Tuples of the state's number of features, with labels -1 and 1.
    pub(crate) batch: &'a Batch,
    /// Places in the order of the batch.
    pub(crate) range: Range<usize>,
}

/// The same, with the weights of the tuples.
struct Weighted<'a, L, W>(Learn<'a, L>, W);

/// Rows of up to as many chunks keep the weights in registers.
const NARROW: usize = 4;

/// Rows of up to as many chunks do so in registers of half a chunk.
const HALF: usize = 2;

impl<L: Pointwise> Learn<'_, L> {
    /// Takes the state to the end of the range.
    pub(crate) fn run_on(self, level: Level) {
        let level = if self.state.weights.len() <= HALF { level.at_most_avx2() } else { level };
        match self.batch.weights() {
            None => {
                self.state.tally.weights.fill(1.0);
                level.run(Weighted(self, Unweighted));
            }
            Some(weights) => level.run(Weighted(self, weights)),
        }
    }
}

impl<L: Pointwise, W: Weights> Kernel for Weighted<'_, L, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Weighted(learn, weights) = self;
        match (learn.state.weights.len(), learn.rates.penalty) {
            (1, false) => narrow::<1, false, S, L, W>(simd, learn, weights),
            (1, true) => narrow::<1, true, S, L, W>(simd, learn, weights),
            (2, false) => narrow::<2, false, S, L, W>(simd, learn, weights),
            (2, true) => narrow::<2, true, S, L, W>(simd, learn, weights),
            (3, false) => narrow::<3, false, S, L, W>(simd, learn, weights),
            (3, true) => narrow::<3, true, S, L, W>(simd, learn, weights),
            (NARROW, false) => narrow::<NARROW, false, S, L, W>(simd, learn, weights),
            (NARROW, true) => narrow::<NARROW, true, S, L, W>(simd, learn, weights),
            _ => wide(simd, learn, weights),
        }
    }
}
