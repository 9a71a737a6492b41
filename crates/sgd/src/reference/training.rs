//! What is done with a training: its state and its memory.

use std::ops::Range;

use simd::{Kernel, Level, Simd};
use tuples::{Batch, OutOfMemory, pause};

use super::arrays::{Arrays, Layout};
use super::dense::{self, LearnDense, LearnDenseRow};
use super::lazy::ApplyPending;
use super::sparse::{self, LearnSparse, LearnSparseRow, Row};
use super::state::TrainerState;
use crate::ModelParameters;
use crate::engine::norms as norms_of;
use crate::optimizers::cut_all;

/// Floats in all arrays of a training.
///
/// # Errors
/// [`OutOfMemory`]
pub(crate) fn memory_size(state: &TrainerState) -> Result<usize, OutOfMemory> {
    Layout::new(state).map(|layout| layout.total()).ok_or(OutOfMemory { bytes: usize::MAX })
}

/// The arrays of a training in its memory, whose size was found by [`memory_size`].
pub(crate) fn arrays<'a>(state: &TrainerState, memory: &'a mut [f32]) -> Arrays<'a> {
    Layout::new(state).expect("a size that was computed before").split(memory)
}

/// Copies a sparse training's arrays into larger memory and makes the state speak of that.
///
/// # Errors
/// [`OutOfMemory`], from computing the size and from `allocate`, which is to give so many zeros.
pub(crate) fn grow<M: AsMut<[f32]>>(
    state: &mut TrainerState,
    memory: &[f32],
    dim: usize,
    allocate: impl FnOnce(usize) -> Result<M, OutOfMemory>,
) -> Result<Option<M>, OutOfMemory> {
    let capacity = state.capacity as usize;
    if dim <= capacity {
        state.dim = state.dim.max(dim as u64);
        return Ok(None);
    }
    let impossible = OutOfMemory { bytes: usize::MAX };
    let old = Layout::new(state).ok_or(impossible)?;
    let mut grown = *state;
    (grown.dim, grown.capacity) = (dim as u64, dim.max(capacity + capacity / 2) as u64);
    let new = Layout::new(&grown).ok_or(impossible)?;
    let mut moved = allocate(new.total())?;
    old.copy(memory, &new, moved.as_mut());
    *state = grown;
    Ok(Some(moved))
}

/// Learns from the tuples at the places `range` of the batch's order, whose features there is room for.
pub(crate) fn learn(level: Level, state: &mut TrainerState, memory: &mut [f32], batch: &Batch, range: Range<usize>) {
    let arrays = arrays(state, memory);
    if state.sparse() {
        level.run_narrow(LearnSparse { state, arrays, batch, range });
    } else {
        level.run(LearnDense { state, arrays, batch, range });
    }
}

/// Learns from one dense row of `dim` features.
pub(crate) fn learn_dense(
    level: Level,
    state: &mut TrainerState,
    memory: &mut [f32],
    label: f32,
    features: &[f32],
    weight: f32,
) {
    let mut arrays = arrays(state, memory);
    let row = std::mem::take(&mut arrays.row);
    row[..features.len()].copy_from_slice(features);
    level.run(LearnDenseRow { state, arrays: &mut arrays, row: row.as_chunks().0, label, weight });
}

/// Learns from one sparse row, whose features there is room for.
pub(crate) fn learn_sparse(
    level: Level,
    state: &mut TrainerState,
    memory: &mut [f32],
    label: f32,
    (indices, values): (&[u32], &[f32]),
    weight: f32,
) {
    let mut arrays = arrays(state, memory);
    level.run_narrow(LearnSparseRow { state, arrays: &mut arrays, row: Row { indices, values, label, weight } });
}

/// Makes the step of a gradient that is still pending and brings all weights up to date.
pub(crate) fn flush(level: Level, state: &mut TrainerState, memory: &mut [f32]) {
    let arrays = arrays(state, memory);
    level.run(Flush { state, arrays, step: true });
}

/// Brings all weights up to date, since the rate is about to change.
pub(crate) fn apply_pending(level: Level, state: &mut TrainerState, memory: &mut [f32]) {
    let arrays = arrays(state, memory);
    level.run(Flush { state, arrays, step: false });
}

struct Flush<'a> {
    state: &'a mut TrainerState,
    arrays: Arrays<'a>,
    /// of the pending gradient
    step: bool,
}

impl Kernel for Flush<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Flush { state, mut arrays, step } = self;
        if step && state.pending > 0 {
            simd.call(MakeStep { state, arrays: &mut arrays });
        }
        if state.sparse() {
            simd.call(ApplyPending { state, arrays: &mut arrays });
        } else if state.has_l1() {
            let cut = state.take_pending_l1();
            cut_all(arrays.weights, &mut state.l1_applied, cut);
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
        match self.state.sparse() {
            true => sparse::step(simd, self.state, self.arrays),
            false => dense::step(self.state, self.arrays),
        }
    }
}

/// |w|² and |w|₁ of the model of a training that is flushed.
pub(crate) fn norms(state: &TrainerState, memory: &[f32]) -> (f64, f64) {
    let length = Layout::new(state).map_or(0, |layout| layout.weights());
    norms_of(pause::parts(&memory[..length]).flatten().map(|&u| state.scale * f64::from(u)))
}

/// The weights of output `k` of a training that is flushed.
pub(crate) fn weights<'a>(state: &TrainerState, memory: &'a [f32], k: usize) -> impl Iterator<Item = f32> + use<'a> {
    let (dim, outputs, scale) = (state.dim as usize, state.outputs as usize, state.scale as f32);
    let stored = &memory[..Layout::new(state).map_or(0, |layout| layout.weights())];
    let (start, step) = if state.sparse() { (k, outputs) } else { (k * (stored.len() / outputs), 1) };
    // + 0.0 makes a negative zero, from a weight that underflows, as positive as all other zeros
    stored[start.min(stored.len())..].iter().step_by(step).take(dim).map(move |u| *u * scale + 0.0)
}

/// As [`weights`], of the only output: one behind the other, which many are read at a time from.
pub(crate) fn only_weights<'a>(state: &TrainerState, memory: &'a [f32]) -> impl Iterator<Item = f32> + use<'a> {
    let scale = state.scale as f32;
    memory[..state.dim as usize].iter().map(move |u| *u * scale + 0.0)
}

/// The intercepts.
pub(crate) fn intercepts<'a>(state: &TrainerState, memory: &'a [f32]) -> &'a [f32] {
    let start = Layout::new(state).map_or(0, |layout| layout.intercepts());
    &memory[start..][..state.outputs as usize]
}

/// Whether neither the parameters and moments nor the loss have become infinite or NaN.
pub(crate) fn is_finite(state: &TrainerState, memory: &[f32]) -> bool {
    let Some(layout) = Layout::new(state) else { return false };
    state.totals.loss.is_finite() && layout.numbers().into_iter().all(|range| all_finite(&memory[range]))
}

/// In a form that the compiler makes vectors of.
fn all_finite(array: &[f32]) -> bool {
    let are_finite = |chunk: &[f32]| chunk.iter().fold(true, |finite, x| finite & x.is_finite());
    pause::parts(array).all(|part| part.chunks(1024).all(are_finite))
}

/// The model of a training that is flushed.
///
/// # Errors
/// [`OutOfMemory`]
pub(crate) fn model(state: &TrainerState, memory: &[f32]) -> Result<ModelParameters, OutOfMemory> {
    let (dim, outputs) = (state.dim as usize, state.outputs as usize);
    let mut all = Vec::new();
    allocation::try_reserve_exact(&mut all, dim.saturating_mul(outputs))?;
    (0..outputs).for_each(|k| all.extend(pause::pausing(weights(state, memory, k))));
    Ok(ModelParameters { dim, outputs, weights: all, intercepts: intercepts(state, memory).to_vec(), network: None })
}

/// Makes the parameters and moments of `into` the average with those of `from`, which has the given share. Both are
/// flushed, and `from` has no more room than `into`.
pub(crate) fn average(
    into_head: &TrainerState,
    into: &mut [f32],
    from_head: &TrainerState,
    from: &mut [f32],
    share: f32,
) {
    let scales = [into_head.scale as f32 * (1.0 - share), from_head.scale as f32 * share];
    let (mut into, from) = (arrays(into_head, into), arrays(from_head, from));
    let mix = |into: &mut [f32], from: &[f32], [keep, add]: [f32; 2]| {
        let parts = pause::parts_mut(into).zip(from.chunks(pause::PER_PAUSE));
        parts.for_each(|(into, from)| into.iter_mut().zip(from).for_each(|(a, b)| *a = *a * keep + *b * add));
    };
    let plain = [1.0 - share, share];
    // the sum shall be in units of into's scale
    let weights = scales.map(|share| share / into_head.scale as f32);
    mix(into.weights, from.weights, weights);
    mix(into.first, from.first, plain);
    mix(into.second, from.second, plain);
    let (a, b) = (&mut into.intercepts, &from.intercepts);
    mix(a.values, b.values, plain);
    mix(a.first, b.first, plain);
    mix(a.second, b.second, plain);
}
