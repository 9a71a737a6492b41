//! Training with any loss, optimizer, penalty and batch size, on dense or sparse tuples.
//!
//! Guarantees: all that there is to know of a training is its [`TrainerState`] and one slice of f32, its memory, of which
//! [`Arrays`] are views: a trainer owns them, and an aggregate's state is their bytes; both are stepped by the same code.

mod arrays;
mod data_parallel;
mod dense;
mod gradients;
mod lazy;
mod mini_batches;
mod sparse;
mod state;
mod update;

use std::ops::Range;

use tuples::pause::{self, PER_PAUSE, pause};
use tuples::{Batch, LANES, OutOfMemory};

use crate::kernels::{Kernel, Level, Simd};
use crate::saved::{Reader, Writer};
use crate::{Hyperparameters, ModelParameters};
use arrays::{Arrays, Layout};
use dense::{LearnDense, LearnDenseRow};
pub(crate) use gradients::softmax;
use mini_batches::{LearnMiniBatches, Products};
use sparse::{LearnSparse, LearnSparseRow, Row};
pub(crate) use state::{PAYMENT, TrainerState};
pub(crate) use update::{Rule, cut_all};

/// Floats in all arrays of a training.
///
/// # Errors
/// [`OutOfMemory`]
pub(crate) fn memory_size(head: &TrainerState) -> Result<usize, OutOfMemory> {
    Layout::of(head).map(|layout| layout.total()).ok_or(OutOfMemory { bytes: usize::MAX })
}

/// The arrays of a training in its memory, whose size was found by [`memory_size`].
pub(crate) fn arrays<'a>(head: &TrainerState, memory: &'a mut [f32]) -> Arrays<'a> {
    Layout::of(head).expect("a size that was computed before").split(memory)
}

/// Copies a sparse training's arrays into larger memory and makes the head speak of that.
///
/// # Errors
/// [`OutOfMemory`], from computing the size and from `allocate`, which is to give so many zeros.
pub(crate) fn grow<M: AsMut<[f32]>>(
    head: &mut TrainerState,
    memory: &[f32],
    dim: usize,
    allocate: impl FnOnce(usize) -> Result<M, OutOfMemory>,
) -> Result<Option<M>, OutOfMemory> {
    let capacity = head.capacity as usize;
    if dim <= capacity {
        head.dim = head.dim.max(dim as u64);
        return Ok(None);
    }
    let impossible = OutOfMemory { bytes: usize::MAX };
    let old = Layout::of(head).ok_or(impossible)?;
    let mut grown = *head;
    (grown.dim, grown.capacity) = (dim as u64, dim.max(capacity + capacity / 2) as u64);
    let new = Layout::of(&grown).ok_or(impossible)?;
    let mut moved = allocate(new.total())?;
    old.copy(memory, &new, moved.as_mut());
    *head = grown;
    Ok(Some(moved))
}

/// Learns from the tuples at the places `range` of the batch's order, whose features there is room for.
pub(crate) fn learn(level: Level, head: &mut TrainerState, memory: &mut [f32], batch: &Batch, range: Range<usize>) {
    let arrays = arrays(head, memory);
    if head.sparse() {
        level.run(LearnSparse { head, arrays, batch, range });
    } else {
        level.run(LearnDense { head, arrays, batch, range });
    }
}

/// Learns from one dense row of `dim` features.
pub(crate) fn learn_dense(
    level: Level,
    head: &mut TrainerState,
    memory: &mut [f32],
    label: f32,
    features: &[f32],
    weight: f32,
) {
    let arrays = arrays(head, memory);
    level.run(LearnDenseRow { head, arrays, features, label, weight });
}

/// Learns from one sparse row, whose features there is room for.
pub(crate) fn learn_sparse(
    level: Level,
    head: &mut TrainerState,
    memory: &mut [f32],
    label: f32,
    (indices, values): (&[u32], &[f32]),
    weight: f32,
) {
    let arrays = arrays(head, memory);
    level.run(LearnSparseRow { head, arrays, row: Row { indices, values, label, weight } });
}

/// Makes the step of a gradient that is still pending and brings all weights up to date.
pub(crate) fn flush(level: Level, head: &mut TrainerState, memory: &mut [f32]) {
    let arrays = arrays(head, memory);
    level.run(Settle { head, arrays, step: true });
}

/// Brings all weights up to date, since the rate is about to change.
pub(crate) fn apply_pending(level: Level, head: &mut TrainerState, memory: &mut [f32]) {
    let arrays = arrays(head, memory);
    level.run(Settle { head, arrays, step: false });
}

struct Settle<'a> {
    head: &'a mut TrainerState,
    arrays: Arrays<'a>,
    /// of the pending gradient
    step: bool,
}

impl Kernel for Settle<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Settle { head, mut arrays, step } = self;
        if head.sparse() {
            if step && head.pending > 0 {
                sparse::step(head, &mut arrays);
            }
            lazy::apply_pending(head, &mut arrays);
        } else {
            if step && head.pending > 0 {
                dense::step(head, &mut arrays);
            }
            if head.has_l1() {
                let cut = head.pay();
                cut_all(arrays.weights, &mut head.taken, cut);
            }
        }
    }
}

/// |w|² and |w|₁ of the model of a training that is settled.
pub(crate) fn norms(head: &TrainerState, memory: &[f32]) -> (f64, f64) {
    let length = Layout::of(head).map_or(0, |layout| layout.weights());
    let scale = head.scale;
    let weights = memory[..length].iter().map(|&u| scale * f64::from(u));
    weights.fold((0.0, 0.0), |(squares, magnitudes), w| (squares + w * w, magnitudes + w.abs()))
}

/// The weights of output `k` of a training that is settled.
pub(crate) fn weights<'a>(head: &TrainerState, memory: &'a [f32], k: usize) -> impl Iterator<Item = f32> + use<'a> {
    let (dim, outputs, scale) = (head.dim as usize, head.outputs as usize, head.scale as f32);
    let stored = &memory[..Layout::of(head).map_or(0, |layout| layout.weights())];
    let (start, step) = if head.sparse() { (k, outputs) } else { (k * (stored.len() / outputs), 1) };
    // + 0.0 makes a negative zero, from a weight that underflows, as positive as all other zeros
    stored[start.min(stored.len())..].iter().step_by(step).take(dim).map(move |u| *u * scale + 0.0)
}

/// The intercepts.
pub(crate) fn intercepts<'a>(head: &TrainerState, memory: &'a [f32]) -> &'a [f32] {
    let start = Layout::of(head).map_or(0, |layout| layout.intercepts());
    &memory[start..][..head.outputs as usize]
}

/// Whether neither the parameters and moments nor the loss have become infinite or NaN.
pub(crate) fn is_finite(head: &TrainerState, memory: &[f32]) -> bool {
    let Some(layout) = Layout::of(head) else { return false };
    head.totals.loss.is_finite() && layout.numbers().into_iter().all(|range| all_finite(&memory[range]))
}

/// In a form that the compiler makes vectors of.
fn all_finite(array: &[f32]) -> bool {
    array.chunks(1024).all(|chunk| chunk.iter().fold(true, |finite, x| finite & x.is_finite()))
}

/// The model of a training that is settled.
///
/// # Errors
/// [`OutOfMemory`]
pub(crate) fn model(head: &TrainerState, memory: &[f32]) -> Result<ModelParameters, OutOfMemory> {
    let (dim, outputs) = (head.dim as usize, head.outputs as usize);
    let mut all = Vec::new();
    let error = OutOfMemory { bytes: dim.saturating_mul(outputs).saturating_mul(size_of::<f32>()) };
    all.try_reserve_exact(dim.saturating_mul(outputs)).map_err(|_| error)?;
    (0..outputs).for_each(|k| all.extend(pause::pausing(weights(head, memory, k))));
    Ok(ModelParameters { dim, outputs, weights: all, intercepts: intercepts(head, memory).to_vec(), network: None })
}

/// Makes the parameters and moments of `into` the average with those of `from`, which has the given share. Both are
/// settled, and `from` has no more room than `into`.
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
        into.iter_mut().zip(from).for_each(|(a, b)| *a = *a * keep + *b * add);
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

/// A training that owns its memory.
#[derive(Debug)]
pub(crate) struct General {
    pub(crate) head: TrainerState,
    memory: Memory,
    level: Level,
    /// what other processes are given
    message: Vec<f32>,
    products: Products,
}

impl General {
    pub(crate) fn new(
        hyper: Hyperparameters,
        dim: usize,
        outputs: usize,
        sparse: bool,
        level: Level,
    ) -> Result<General, OutOfMemory> {
        let head = TrainerState::new(hyper, dim, outputs, sparse);
        Ok(General {
            head,
            memory: Memory::zeros(memory_size(&head)?)?,
            level,
            message: Vec::new(),
            products: Products::default(),
        })
    }

    pub(crate) fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        if batch.is_sparse()
            && let Some(moved) = grow(&mut self.head, self.memory.floats(), batch.dim(), Memory::zeros)?
        {
            self.memory = moved;
        }
        if batch.has_mini_batches() {
            return self.learn_blocks(batch, range);
        }
        learn(self.level, &mut self.head, self.memory.as_mut(), batch, range);
        Ok(())
    }

    /// Makes a step for each block.
    fn learn_blocks(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        let General { head, memory, level, products, .. } = self;
        products.reserve(head, batch, range.clone())?;
        let arrays = arrays(head, memory.as_mut());
        level.run(LearnMiniBatches { head, arrays, products, batch, range });
        Ok(())
    }

    /// Begins the next epoch, also if the last one was not ended.
    pub(crate) fn begin_epoch(&mut self) {
        if self.head.pending > 0 || self.head.time > 0 || self.head.pending_l1 > 0 {
            self.flush();
        }
        self.head.begin_epoch();
    }

    /// Changes the learning rate.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        if self.head.is_lazy() && rate != self.head.rate {
            self.apply_pending();
        }
        self.head.rate = rate;
    }

    /// Brings all weights up to date.
    pub(crate) fn apply_pending(&mut self) {
        apply_pending(self.level, &mut self.head, self.memory.as_mut());
    }

    /// Weights and intercept of each output of a training that is settled or swept.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (impl Iterator<Item = f32>, f32)> {
        let (head, memory) = (&self.head, self.memory.floats());
        intercepts(head, memory).iter().enumerate().map(move |(k, b)| (weights(head, memory, k), *b))
    }

    pub(crate) fn flush(&mut self) {
        flush(self.level, &mut self.head, self.memory.as_mut());
    }

    pub(crate) fn is_finite(&self) -> bool {
        is_finite(&self.head, self.memory.floats())
    }

    /// |w|² and |w|₁ of a training that is settled.
    pub(crate) fn norms(&self) -> (f64, f64) {
        norms(&self.head, self.memory.floats())
    }

    /// The model as it is now, with every step made but that of the pending gradient.
    pub(crate) fn model(&self) -> Result<ModelParameters, OutOfMemory> {
        if !self.head.is_lazy() {
            return model(&self.head, self.memory.floats());
        }
        let mut settled = self.try_clone()?;
        apply_pending(settled.level, &mut settled.head, settled.memory.as_mut());
        model(&settled.head, settled.memory.floats())
    }

    /// Everything that a training that is settled goes on from.
    pub(crate) fn save(&self, to: &mut Writer) {
        self.head.save(to);
        to.floats(self.memory.floats().iter().copied());
    }

    /// The training that was saved, of so many features and outputs, to go on with these hyperparameters; None if it is
    /// not one.
    pub(crate) fn read(
        from: &mut Reader<'_>,
        hyper: Hyperparameters,
        sizes: [usize; 2],
        sparse: bool,
        level: Level,
    ) -> Option<General> {
        let head = TrainerState::read(from, hyper, sizes, sparse)?;
        let length =
            memory_size(&head).ok().filter(|length| length.checked_mul(4).is_some_and(|bytes| bytes <= from.left()))?;
        let mut memory = Memory::zeros(length).ok()?;
        from.floats_into(memory.as_mut().iter_mut())?;
        Some(General { head, memory, level, message: Vec::new(), products: Products::default() })
    }

    fn try_clone(&self) -> Result<General, OutOfMemory> {
        let mut memory = Memory::zeros(self.memory.length)?;
        pause::parts_mut(memory.as_mut())
            .zip(self.memory.floats().chunks(PER_PAUSE))
            .for_each(|(to, from)| to.copy_from_slice(from));
        Ok(General { head: self.head, memory, level: self.level, message: Vec::new(), products: Products::default() })
    }
}

/// Floats that begin at a cache line.
#[derive(Debug)]
struct Memory {
    floats: Vec<f32>,
    offset: usize,
    length: usize,
}

impl Memory {
    fn zeros(length: usize) -> Result<Memory, OutOfMemory> {
        let mut floats: Vec<f32> = Vec::new();
        let error = OutOfMemory { bytes: length.saturating_mul(size_of::<f32>()) };
        floats.try_reserve_exact(length.saturating_add(LANES)).map_err(|_| error)?;
        tuples::advise_huge_pages(floats.spare_capacity_mut());
        // align_offset may decline to answer, by usize::MAX; then rows are merely unaligned
        let offset = floats.as_ptr().align_offset(LANES * size_of::<f32>()).min(LANES);
        // memory that nobody has touched yet comes slowly
        while floats.len() < offset + length {
            pause();
            floats.resize((floats.len() + PER_PAUSE).min(offset + length), 0.0);
        }
        Ok(Memory { floats, offset, length })
    }

    fn floats(&self) -> &[f32] {
        &self.floats[self.offset..]
    }
}

impl AsMut<[f32]> for Memory {
    fn as_mut(&mut self) -> &mut [f32] {
        &mut self.floats[self.offset..]
    }
}
