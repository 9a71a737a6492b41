//! The arrays of a training in one piece of memory.
//!
//! Guarantees: all of them are views of one slice of f32, in an order that the state alone determines, so that the same
//! code steps a trainer's memory and the bytes of an aggregate's state; a size that no memory could have is an error.

use std::ops::Range;

use loss::optimizers::LazyWeights;
use tuples::LANES;

use super::exempt::Exempt;
use super::state::TrainerState;

/// Everything that a step reads and writes. Arrays that this training does not need are empty.
#[derive(Debug)]
pub(crate) struct Arrays<'a> {
    /// Dense: per output a row of `stride`, zero behind the features. Sparse: per feature one for every output.
    pub(crate) weights: &'a mut [f32],
    /// v of momentum, m of adam; as the weights.
    pub(crate) first: &'a mut [f32],
    /// v of adam; as the weights.
    pub(crate) second: &'a mut [f32],
    /// The sum of the pending gradients, with minus; as the weights.
    pub(crate) gradient: &'a mut [f32],
    pub(crate) intercepts: Intercepts<'a>,
    /// One per output: decisions, then minus the derivative of the loss by each.
    pub(crate) out: &'a mut [f32],
    /// Dense: a row of `stride`.
    pub(crate) row: &'a mut [f32],
    /// Sparse, per feature: the bits of [`TrainerState::l1_applied`] when it was last brought up to date,
    /// low half first.
    pub(crate) l1_applied: &'a mut [u32],
    /// Sparse, per feature: [`TrainerState::time`] when it was last brought up to date.
    pub(crate) last: &'a mut [u32],
    /// Sparse, per feature: 0 if the pending gradient has not touched it, else 1 + the next such feature, or
    /// [`END`](super::state::END).
    pub(crate) next: &'a mut [u32],
    /// Sparse: features without the penalty of l2, if there are such.
    pub(crate) exempt: Option<&'a mut Exempt>,
}

/// One of each per output.
#[derive(Debug)]
pub(crate) struct Intercepts<'a> {
    pub(crate) values: &'a mut [f32],
    pub(crate) first: &'a mut [f32],
    pub(crate) second: &'a mut [f32],
    pub(crate) gradient: &'a mut [f32],
}

/// How long the arrays are, in the order in which they lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    lengths: [usize; 12],
}

impl Layout {
    /// The arrays of this training; None if no memory could hold them.
    pub(crate) fn new(state: &TrainerState) -> Option<Layout> {
        let (outputs, capacity) = (state.now.outputs as usize, usize::try_from(state.now.capacity).ok()?);
        let sparse = state.sparse;
        let stride = capacity.checked_add(1)?.checked_next_multiple_of(LANES)?;
        let weights = outputs.checked_mul(if sparse { capacity } else { stride })?;
        let moments = state.hyper.optimizer.moments();
        let if_ = |condition: bool, length: usize| if condition { length } else { 0 };
        let batches = state.hyper.batch_size > 1;
        let lengths = [
            weights,
            if_(moments > 0, weights),
            if_(moments > 1, weights),
            if_(batches || (!sparse && moments > 0), weights),
            if_(!sparse, stride),
            if_(sparse && state.hyper.l1 > 0.0, capacity.checked_mul(2)?),
            if_(sparse && moments > 0, capacity),
            if_(sparse && batches, capacity),
            outputs,
            if_(moments > 0, outputs),
            if_(moments > 1, outputs),
            outputs.checked_mul(2)?,
        ];
        let layout = Layout { lengths };
        lengths.iter().try_fold(0usize, |sum, length| sum.checked_add(*length))?.checked_mul(size_of::<f32>())?;
        Some(layout)
    }

    /// Floats in all.
    pub(crate) fn total(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// Floats of the weights, which come first.
    pub(crate) fn weights(&self) -> usize {
        self.lengths[0]
    }

    /// Where there are parameters, moments and gradients.
    pub(crate) fn numbers(&self) -> [Range<usize>; 2] {
        [0..self.lengths[..4].iter().sum(), self.intercepts()..self.total()]
    }

    /// Where the intercepts begin.
    pub(crate) fn intercepts(&self) -> usize {
        self.lengths[..8].iter().sum()
    }

    /// The arrays in memory of the layout's size.
    pub(crate) fn split<'a>(&self, memory: &'a mut [f32]) -> Arrays<'a> {
        let mut rest = memory;
        let mut lengths = self.lengths.iter();
        let mut take = || {
            let (array, behind) = std::mem::take(&mut rest).split_at_mut(*lengths.next().expect("twelve arrays"));
            rest = behind;
            array
        };
        let (weights, first, second, gradient) = (take(), take(), take(), take());
        let (row, l1_applied, last, next) = (take(), take(), take(), take());
        let (values, intercepts_first, intercepts_second) = (take(), take(), take());
        let out = take();
        let (out, intercepts_gradient) = out.split_at_mut(out.len() / 2);
        Arrays {
            weights,
            first,
            second,
            gradient,
            intercepts: Intercepts {
                values,
                first: intercepts_first,
                second: intercepts_second,
                gradient: intercepts_gradient,
            },
            out,
            row,
            l1_applied: bytemuck::cast_slice_mut(l1_applied),
            last: bytemuck::cast_slice_mut(last),
            next: bytemuck::cast_slice_mut(next),
            exempt: None,
        }
    }

    /// Copies all arrays into the memory of a layout with more room for features: those of sparse ones are by feature,
    /// so that each is the beginning of the longer one.
    pub(crate) fn copy(&self, from: &[f32], to_layout: &Layout, to: &mut [f32]) {
        let (mut read, mut write) = (0, 0);
        for (length, to_length) in self.lengths.iter().zip(&to_layout.lengths) {
            to[write..write + length].copy_from_slice(&from[read..read + length]);
            read += length;
            write += to_length;
        }
    }
}

impl Arrays<'_> {
    /// What it takes to bring features of sparse tuples up to date.
    #[inline(always)]
    pub(crate) fn lazy_weights(&mut self) -> LazyWeights<'_> {
        let Arrays { weights, first, second, l1_applied, last, .. } = self;
        LazyWeights { weights, first, second, l1_applied, last }
    }
}

/// What an array of sparse tuples has for feature `j`, one for every output; nothing if the array is not in use.
#[inline(always)]
pub(crate) fn weights_of<'a>(array: &'a mut [f32], state: &TrainerState, j: usize) -> &'a mut [f32] {
    let outputs = state.now.outputs as usize;
    array.get_mut(j * outputs..(j + 1) * outputs).unwrap_or_default()
}
