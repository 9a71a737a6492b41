//! The state of SGD between two tuples, and the choice of the kernel that takes it from one to the next.
//!
//! Guarantees: the state is the same wherever the sequence of tuples is cut. Each kernel needs the row before the
//! current one, so that the state owns a copy of it, and the step along it that is still to be made: the first tuple of
//! a range is computed exactly as it would be in the middle of one.

use std::ops::Range;

use tuples::{Batch, LANES};

use super::narrow::narrow;
use super::simd::{Kernel, Level, Simd};
use super::wide::wide;
use super::{Aligned, Chunk};
use crate::loss::{Pointwise, Totals};
use crate::model::LinearModel;

/// The weights w = `scale` * (`weights` + `pending` * `previous`), the intercept, and what was counted.
#[derive(Debug, Clone)]
pub(crate) struct State {
    dim: usize,
    /// zero where the row has the constant 1: the intercept is not among them, since it is not to be shrunk
    pub(super) weights: Vec<Aligned>,
    /// without the pending step, as the weights
    pub(super) intercept: f32,
    /// in f64, because the factor of one step may differ from 1 by less than f32 can tell; in [1/2, 1] after a step
    pub(super) scale: f64,
    /// the row of the last tuple, without its constant 1
    pub(super) previous: Vec<Chunk>,
    pub(super) step: Step,
    /// 1, but 0 in the lane of the constant 1
    pub(super) mask: Chunk,
    pub(super) totals: Totals,
}

/// The step that the last tuple asks for: `slope * direction` along its row, with direction = y * learning rate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Step {
    pub(super) slope: f32,
    pub(super) direction: f32,
}

/// Where the weights of tuples come from.
pub(super) trait Weights: Copy {
    /// `number` times the weight of tuple `i`.
    fn times(self, i: usize, number: f32) -> f32;
}

/// All are 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unweighted;

impl Weights for Unweighted {
    #[inline(always)]
    fn times(self, _: usize, number: f32) -> f32 {
        number
    }
}

impl Weights for &[f32] {
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
    /// The factor that the penalty puts on the weights with every step; 1 without penalty.
    pub(super) shrink: f64,
}

impl Rates {
    pub(crate) fn new(learning_rate: f64, l2: f64) -> Rates {
        Rates { learning_rate: learning_rate as f32, shrink: 1.0 - learning_rate * l2 }
    }
}

impl State {
    /// All zeros.
    pub(crate) fn new(dim: usize) -> State {
        let chunks = dim / LANES + 1;
        let mut mask = [1.0; LANES];
        mask[dim % LANES] = 0.0;
        State {
            dim,
            weights: vec![Aligned([0.0; LANES]); chunks],
            previous: vec![[0.0; LANES]; chunks],
            intercept: 0.0,
            scale: 1.0,
            step: Step::default(),
            mask,
            totals: Totals::default(),
        }
    }

    /// What was counted since the last call.
    pub(crate) fn take_totals(&mut self) -> Totals {
        std::mem::take(&mut self.totals)
    }

    /// What was counted.
    pub(crate) fn totals_mut(&mut self) -> &mut Totals {
        &mut self.totals
    }

    /// Makes this the model, with all steps made.
    pub(crate) fn set_model(&mut self, weights: &[f32], intercept: f32) {
        for (chunk, weights) in self.weights.iter_mut().zip(super::to_chunks(weights)) {
            chunk.0 = weights;
        }
        self.previous.fill([0.0; LANES]);
        (self.intercept, self.scale, self.step) = (intercept, 1.0, Step::default());
    }

    /// Whether neither the parameters nor the loss have become infinite or NaN.
    pub(crate) fn is_finite(&self) -> bool {
        self.totals.loss.is_finite() && self.model().is_finite()
    }

    /// The model with all steps made.
    pub(crate) fn model(&self) -> LinearModel {
        let Step { slope, direction } = self.step;
        let pending = slope * (direction * inverse(self.scale));
        let weights = self.weights.iter().flat_map(|chunk| chunk.0).zip(self.previous.iter().flatten());
        // + 0.0 makes a negative zero, from a weight that underflows, as positive as all other zeros
        let weights = weights.map(|(w, x)| (w + pending * x) * self.scale as f32 + 0.0);
        let intercepts = vec![self.intercept + slope * direction];
        LinearModel { dim: self.dim, outputs: 1, weights: weights.take(self.dim).collect(), intercepts }
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

impl<L: Pointwise> Learn<'_, L> {
    /// Takes the state to the end of the range.
    pub(crate) fn run_on(self, level: Level) {
        let narrow = self.state.weights.len() <= NARROW;
        let level = if narrow { level.at_most_avx2() } else { level };
        let places = &self.batch.order()[self.range.clone()];
        self.state.totals.tuples += places.len() as u64;
        match self.batch.weights() {
            None => {
                self.state.totals.weight += places.len() as f64;
                level.run(Weighted(self, Unweighted));
            }
            Some(weights) => {
                for &place in places {
                    self.state.totals.weight += f64::from(weights[place as usize]);
                }
                level.run(Weighted(self, weights));
            }
        }
    }
}

impl<L: Pointwise, W: Weights> Kernel for Weighted<'_, L, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Weighted(learn, weights) = self;
        match learn.state.weights.len() {
            1 => narrow::<1, S, L, W>(simd, learn, weights),
            2 => narrow::<2, S, L, W>(simd, learn, weights),
            3 => narrow::<3, S, L, W>(simd, learn, weights),
            NARROW => narrow::<NARROW, S, L, W>(simd, learn, weights),
            _ => wide(simd, learn, weights),
        }
    }
}
