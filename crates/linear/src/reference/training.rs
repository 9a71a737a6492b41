//! What is done with a training.

use std::ops::Range;

use loss::ModelParameters;
use loss::engine::norms as norms_of;
use loss::optimizers::cut_all;
use simd::{Kernel, Level, Simd};
use tuples::{Batch, OutOfMemory, pause};

use super::arrays::{Arrays, Layout};
use super::classes::{LearnClasses, settle};
use super::dense::{self, LearnDense, LearnDenseRow};
use super::exempt::Exempt;
use super::lazy::ApplyPending;
use super::sparse::{self, LearnSparse, LearnSparseRow, Row};
use super::state::{Progress, TrainerState};

/// Floats in all arrays of a training.
pub(crate) fn memory_size(state: &TrainerState) -> Result<usize, OutOfMemory> {
    Layout::new(state).map(|layout| layout.total()).ok_or(OutOfMemory { bytes: usize::MAX })
}

/// The arrays of a training in its memory, whose size was found by [`memory_size`].
pub(crate) fn arrays<'a>(state: &TrainerState, memory: &'a mut [f32]) -> Arrays<'a> {
    Layout::new(state).expect("a size that was computed before").split(memory)
}

/// Copies a sparse training's arrays into larger memory and makes the state speak of that.
pub(crate) fn grow<M: AsMut<[f32]>>(
    state: &mut TrainerState,
    memory: &[f32],
    dim: usize,
    allocate: impl FnOnce(usize) -> Result<M, OutOfMemory>,
) -> Result<Option<M>, OutOfMemory> {
    let capacity = state.now.capacity as usize;
    if dim <= capacity {
        state.now.dim = state.now.dim.max(dim as u64);
        return Ok(None);
    }
    let impossible = OutOfMemory { bytes: usize::MAX };
    let old = Layout::new(state).ok_or(impossible)?;
    let mut grown = *state;
    (grown.now.dim, grown.now.capacity) = (dim as u64, dim.max(capacity + capacity / 2) as u64);
    let new = Layout::new(&grown).ok_or(impossible)?;
    let mut moved = allocate(new.total())?;
    old.copy(memory, &new, moved.as_mut());
    *state = grown;
    Ok(Some(moved))
}

/// A training: what is known of it, and the memory that its arrays lie in.
#[derive(Debug)]
pub(crate) struct Training<M> {
    pub(crate) state: TrainerState,
    pub(crate) memory: M,
    pub(crate) level: Level,
    /// Of sparse tuples: features without the penalty of l2, if there are such.
    pub(crate) exempt: Option<Exempt>,
    /// Of several classes: whether the step of the last tuple is still to be made.
    pub(crate) is_open: bool,
}

impl<M: AsRef<[f32]> + AsMut<[f32]>> Training<M> {
    #[inline(always)]
    pub(super) fn split(&mut self) -> (&mut TrainerState, Arrays<'_>) {
        let arrays = Arrays { exempt: self.exempt.as_mut(), ..arrays(&self.state, self.memory.as_mut()) };
        (&mut self.state, arrays)
    }

    /// Learns from the tuples at the places `range` of the batch's order, whose features there is room for.
    pub(crate) fn learn(&mut self, batch: &Batch, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (level, was_open) = (self.level, self.is_open);
        self.is_open = self.state.has_classes();
        let is_open = self.is_open;
        let (state, arrays) = self.split();
        if is_open {
            if !was_open {
                arrays.row.fill(0.0);
                arrays.out.fill(0.0);
            }
            level.run(LearnClasses { state, arrays, batch, range });
        } else if state.sparse {
            level.run_narrow(LearnSparse { state, arrays, batch, range });
        } else {
            level.run(LearnDense { state, arrays, batch, range });
        }
    }

    /// Learns from one dense row of `dim` features.
    pub(crate) fn learn_dense(&mut self, label: f32, features: &[f32], weight: f32) {
        let level = self.level;
        let (state, mut arrays) = self.split();
        let row = std::mem::take(&mut arrays.row);
        row[..features.len()].copy_from_slice(features);
        level.run(LearnDenseRow { state, arrays: &mut arrays, row: row.as_chunks().0, label, weight });
    }

    /// Learns from one sparse row, whose features there is room for.
    pub(crate) fn learn_sparse(&mut self, row: Row<'_>) {
        let level = self.level;
        let (state, mut arrays) = self.split();
        level.run_narrow(LearnSparseRow { state, arrays: &mut arrays, row });
    }

    /// Makes the step of a gradient that is still pending and brings all weights up to date.
    pub(crate) fn flush(&mut self) {
        self.finish(true);
    }

    /// Calls this with the training as it is when weights without l2 have been given back what it has taken. They have
    /// not afterwards.
    pub(super) fn with_exempt_restored(&mut self, read: impl FnOnce(&Self)) {
        let Some(mut exempt) = self.exempt.take() else { return read(self) };
        let (scale, outputs) = (self.state.now.scale, self.state.now.outputs as usize);
        let before = exempt.take_down(self.split().1.weights, outputs);
        exempt.restore(scale, self.split().1.weights, outputs);
        read(self);
        exempt.put_back(before, self.split().1.weights, outputs);
        self.exempt = Some(exempt);
    }

    /// Brings all weights up to date, since the rate is about to change.
    pub(crate) fn apply_pending(&mut self) {
        self.finish(false);
    }

    fn finish(&mut self, step: bool) {
        let level = self.level;
        let is_open = std::mem::take(&mut self.is_open);
        let (state, arrays) = self.split();
        level.run(Flush { state, arrays, step, is_open });
    }

    /// |w|² and |w|₁ of the model of a training that is flushed, the former without weights that it is no penalty on.
    pub(crate) fn norms(&self) -> (f64, f64) {
        let weight = |u: &f32| self.state.now.scale * f64::from(*u);
        let (squares, magnitudes) = norms_of(pause::parts(self.stored()).flatten().map(weight));
        let (stored, outputs) = (self.stored(), self.state.now.outputs as usize);
        let of_feature = |j: usize| stored.get(j * outputs..(j + 1) * outputs).unwrap_or_default();
        let exempt = self.exempt.iter().flat_map(Exempt::features).flat_map(of_feature);
        (squares - exempt.map(weight).map(|w| w * w).sum::<f64>(), magnitudes)
    }

    /// The weights in units of the scale.
    fn stored(&self) -> &[f32] {
        &self.memory.as_ref()[..Layout::new(&self.state).map_or(0, |layout| layout.weights())]
    }

    /// The weights of output `k` of a training that is flushed.
    pub(super) fn weights(&self, k: usize) -> impl Iterator<Item = f32> {
        let Progress { dim, outputs, scale, .. } = self.state.now;
        let (outputs, stored) = (outputs as usize, self.stored());
        let (start, step) = if self.state.sparse { (k, outputs) } else { (k * (stored.len() / outputs), 1) };
        let stored = stored[start.min(stored.len())..].iter().step_by(step).take(dim as usize);
        // + 0.0 makes a negative zero, from a weight that underflows, as positive as all other zeros
        stored.map(move |u| *u * scale as f32 + 0.0)
    }

    /// As [`weights`](Training::weights), of the only output: one behind the other, which many are read at a time from.
    pub(super) fn only_weights(&self) -> impl Iterator<Item = f32> {
        let scale = self.state.now.scale as f32;
        self.stored()[..self.state.now.dim as usize].iter().map(move |u| *u * scale + 0.0)
    }

    pub(super) fn intercepts(&self) -> &[f32] {
        let start = Layout::new(&self.state).map_or(0, |layout| layout.intercepts());
        &self.memory.as_ref()[start..][..self.state.now.outputs as usize]
    }

    /// Whether neither the parameters and moments nor the loss have become infinite or NaN.
    pub(crate) fn is_finite(&self) -> bool {
        let (Some(layout), memory) = (Layout::new(&self.state), self.memory.as_ref()) else { return false };
        self.state.now.totals.loss.is_finite() && layout.numbers().into_iter().all(|range| all_finite(&memory[range]))
    }

    /// The model of a training that is flushed.
    pub(crate) fn model(&self) -> Result<ModelParameters, OutOfMemory> {
        let (dim, outputs) = (self.state.now.dim as usize, self.state.now.outputs as usize);
        let mut weights = Vec::new();
        allocation::try_reserve_exact(&mut weights, dim.saturating_mul(outputs))?;
        (0..outputs).for_each(|k| weights.extend(pause::pausing(self.weights(k))));
        Ok(ModelParameters { dim, outputs, weights, intercepts: self.intercepts().to_vec(), network: None })
    }

    /// Makes the parameters and moments the average with those of `other`, which has the given share. Both are flushed,
    /// and the other has no more room.
    pub(crate) fn average(&mut self, other: &mut Training<M>, share: f32) {
        let scale = self.state.now.scale as f32;
        let scales = [scale * (1.0 - share), other.state.now.scale as f32 * share];
        let ((_, mut into), (_, from)) = (self.split(), other.split());
        let mix = |into: &mut [f32], from: &[f32], [keep, add]: [f32; 2]| {
            let parts = pause::parts_mut(into).zip(from.chunks(pause::PER_PAUSE));
            parts.for_each(|(into, from)| into.iter_mut().zip(from).for_each(|(a, b)| *a = *a * keep + *b * add));
        };
        let plain = [1.0 - share, share];
        // the sum should be in units of the own scale
        mix(into.weights, from.weights, scales.map(|share| share / scale));
        mix(into.first, from.first, plain);
        mix(into.second, from.second, plain);
        let (a, b) = (&mut into.intercepts, &from.intercepts);
        mix(a.values, b.values, plain);
        mix(a.first, b.first, plain);
        mix(a.second, b.second, plain);
    }
}

struct Flush<'a> {
    state: &'a mut TrainerState,
    arrays: Arrays<'a>,
    /// of the pending gradient
    step: bool,
    /// is the step of the last tuple still to be made?
    is_open: bool,
}

impl Kernel for Flush<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Flush { state, mut arrays, step, is_open } = self;
        if is_open {
            settle(simd, state, &mut arrays);
        }
        if step && state.now.pending > 0 {
            simd.call(MakeStep { state, arrays: &mut arrays });
        }
        if state.sparse {
            simd.call(ApplyPending { state, arrays: &mut arrays });
            if let (true, Some(exempt)) = (step, &mut arrays.exempt) {
                exempt.restore(state.now.scale, arrays.weights, state.now.outputs as usize);
            }
        } else if state.hyper.l1 > 0.0 {
            let cut = state.take_pending_l1();
            cut_all(arrays.weights, &mut state.now.l1_applied, cut);
        }
    }
}

/// Makes the step of the pending gradient.
pub(super) struct MakeStep<'a, 'b> {
    pub(super) state: &'a mut TrainerState,
    pub(super) arrays: &'a mut Arrays<'b>,
}

impl Kernel for MakeStep<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.state.sparse {
            true => sparse::step(simd, self.state, self.arrays),
            false => dense::step(self.state, self.arrays),
        }
    }
}

/// In a form that the compiler makes vectors of.
fn all_finite(array: &[f32]) -> bool {
    let are_finite = |chunk: &[f32]| chunk.iter().fold(true, |finite, x| finite & x.is_finite());
    pause::parts(array).all(|part| part.chunks(1024).all(are_finite))
}
