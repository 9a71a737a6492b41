//! Learning from dense rows, with any loss, optimizer and batch size.
//!
//! Guarantees: the lanes of a row behind its features, the constant 1 among them, never get a weight other than 0.

use std::ops::Range;

use loss::Optimizer;
use loss::kernels::{add_products, add_rows, lane_products};
use loss::optimizers::{Method, Rule, cut_all};
use loss::with_method;
use simd::{Chunk, Kernel, Simd, prefetch, prefetch_far};
use tuples::{Batch, LANES};

use super::arrays::Arrays;
use super::gradients::{bend, loss_and_gradient, losses_and_gradients};
use super::state::TrainerState;

/// Rows to be asked for ahead of their use: at most this many, and fewer if they are longer than this many chunks
/// together.
const PREFETCH: usize = 32;
const PREFETCH_AHEAD: usize = 64;

/// Rows of more chunks are asked for while the block before theirs is learned from.
const PREFETCH_CHUNKS: usize = 8;

/// A stretch of the order to learn from.
pub(crate) struct LearnDense<'a> {
    pub(crate) state: &'a mut TrainerState,
    pub(crate) arrays: Arrays<'a>,
    pub(crate) batch: &'a Batch,
    pub(crate) range: Range<usize>,
}

impl Kernel for LearnDense<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let LearnDense { state, mut arrays, batch, range } = self;
        let tuples = Tuples::new(batch);
        let outputs = state.now.outputs as usize;
        let per_block = (BLOCK_FACTORS / outputs).min((BLOCK_CHUNKS / tuples.per_row).clamp(4, BLOCK));
        if state.hyper.batch_size == 1 || per_block < 2 {
            for k in range {
                let (row, label, weight) = tuples.get(k);
                simd.call(LearnDenseRow { state, arrays: &mut arrays, row, label, weight });
            }
            return;
        }
        let Range { mut start, end } = range;
        while start < end {
            let left = (state.hyper.batch_size - state.now.pending) as usize;
            let stop = end.min(start + left.min(per_block));
            match (outputs, tuples.per_row) {
                (1, 1) => learn_short::<1, S>(simd, state, &mut arrays, &tuples, start..stop),
                (1, 2) => learn_short::<2, S>(simd, state, &mut arrays, &tuples, start..stop),
                (1, 3) => learn_short::<3, S>(simd, state, &mut arrays, &tuples, start..stop),
                (1, 4) => learn_short::<4, S>(simd, state, &mut arrays, &tuples, start..stop),
                _ => learn_block(simd, state, &mut arrays, &tuples, start..stop),
            }
            start = stop;
        }
    }
}

/// Rows of a mini-batch that are learned from together: at most this many, and fewer if they are longer than this many
/// chunks together, since they are read twice.
const BLOCK: usize = 64;
const BLOCK_CHUNKS: usize = 512;

/// Short rows are asked for this many ahead of their use when they come from memory.
const FAR: usize = 4 * BLOCK;

/// Room for the factors of their rows, one per output.
const BLOCK_FACTORS: usize = 256;

/// The tuples of a batch in its order.
pub(super) struct Tuples<'a> {
    rows: &'a [Chunk],
    per_row: usize,
    labels: &'a [f32],
    weights: Option<&'a [f32]>,
    order: &'a [u32],
    ahead: usize,
}

impl<'a> Tuples<'a> {
    #[inline(always)]
    pub(super) fn new(batch: &'a Batch) -> Tuples<'a> {
        let per_row = batch.stride() / LANES;
        Tuples {
            rows: batch.rows().as_chunks().0,
            per_row,
            ahead: (PREFETCH_AHEAD / per_row).clamp(1, PREFETCH),
            labels: batch.labels(),
            weights: batch.weights(),
            order: batch.order(),
        }
    }

    /// Asks for a chunk of long rows, which are too many to be asked for as a whole.
    #[inline(always)]
    fn ask_for(&self, range: Range<usize>, chunk: usize) {
        if self.per_row > PREFETCH_CHUNKS {
            for &row in self.order.get(range).unwrap_or_default() {
                prefetch(self.rows, row as usize * self.per_row + chunk);
            }
        }
    }

    /// Asks for a short row, and its label, that come long after the `k`th, from memory.
    #[inline(always)]
    pub(super) fn ask_far(&self, k: usize) {
        if self.per_row <= PREFETCH_CHUNKS
            && let Some(&far) = self.order.get(k + FAR)
        {
            let start = far as usize * self.per_row;
            (start..start + self.per_row).for_each(|chunk| prefetch_far(self.rows, chunk));
            prefetch_far(self.labels, far as usize);
        }
    }

    /// Row, label and weight of the `k`th tuple; a later one is asked for.
    #[inline(always)]
    pub(super) fn get(&self, k: usize) -> (&'a [Chunk], f32, f32) {
        if self.per_row <= PREFETCH_CHUNKS
            && let Some(&ahead) = self.order.get(k + self.ahead)
        {
            let start = ahead as usize * self.per_row;
            (start..start + self.per_row).for_each(|chunk| prefetch(self.rows, chunk));
        }
        let i = self.order[k] as usize;
        (self.row(k), self.labels[i], self.weights.map_or(1.0, |weights| weights[i]))
    }

    #[inline(always)]
    pub(super) fn row(&self, k: usize) -> &'a [Chunk] {
        &self.rows[self.order[k] as usize * self.per_row..][..self.per_row]
    }
}

/// Learns from tuples of one mini-batch, to the same bits as [`learn_row`] one by one: all their decisions and their
/// derivatives first, then the gradient chunk by chunk, which stays in registers meanwhile.
#[inline(always)]
fn learn_block<S: Simd>(simd: S, state: &mut TrainerState, arrays: &mut Arrays, tuples: &Tuples, range: Range<usize>) {
    let outputs = state.now.outputs as usize;
    let count = range.len();
    let mut rows: [&[Chunk]; BLOCK] = [&[]; BLOCK];
    let mut factors = [0.0; BLOCK_FACTORS];
    let (mut labels, mut weights) = ([0.0; BLOCK], [0.0; BLOCK]);
    let following = range.end..range.end + count;
    for (i, k) in range.enumerate() {
        (rows[i], labels[i], weights[i]) = tuples.get(k);
        let decisions = &mut factors[i * outputs..(i + 1) * outputs];
        decide(simd, state, arrays, rows[i], decisions);
        add_square(simd, state, rows[i], decisions, labels[i], weights[i]);
    }
    let (rows, factors) = (&rows[..count], &mut factors[..count * outputs]);
    if outputs == 1 {
        losses_and_gradients(simd, state, factors, &labels[..count], &weights[..count]);
        let gradient = arrays.gradient.as_chunks_mut::<LANES>().0;
        add_products(simd, gradient, rows, factors, |chunk| tuples.ask_for(following.clone(), chunk));
        for &factor in &*factors {
            arrays.intercepts.gradient[0] += factor;
        }
    } else {
        let mut of_class = [0.0; BLOCK];
        for ((factors, &y), &weight) in factors.chunks_exact_mut(outputs).zip(&labels).zip(&weights) {
            loss_and_gradient(simd, state, factors, y, weight);
        }
        let gradients = arrays.gradient.as_chunks_mut::<LANES>().0.chunks_exact_mut(tuples.per_row);
        for (class, (gradient, of_intercept)) in gradients.zip(&mut *arrays.intercepts.gradient).enumerate() {
            for (factor, factors) in of_class.iter_mut().zip(factors.chunks_exact(outputs)) {
                *factor = factors[class];
                *of_intercept += *factor;
            }
            add_products(simd, gradient, rows, &of_class, |_| ());
        }
    }
    state.now.pending += count as u32;
    if state.now.pending == state.hyper.batch_size {
        simd.call(MakeDenseStep { state, arrays });
    }
}

/// Labels and weights of the tuples at these places, at most [`BLOCK`] of them.
#[inline(always)]
fn labels_and_weights(tuples: &Tuples, here: &[u32]) -> ([f32; BLOCK], [f32; BLOCK]) {
    let (mut labels, mut weights) = ([0.0; BLOCK], [1.0; BLOCK]);
    for (label, &place) in labels.iter_mut().zip(here) {
        *label = tuples.labels[place as usize];
    }
    if let Some(of_tuples) = tuples.weights {
        for (weight, &place) in weights.iter_mut().zip(here) {
            *weight = of_tuples[place as usize];
        }
    }
    (labels, weights)
}

/// The same for one output and rows of so few chunks that weights and gradient stay in registers.
#[inline(always)]
fn learn_short<const N: usize, S: Simd>(
    simd: S,
    state: &mut TrainerState,
    arrays: &mut Arrays,
    tuples: &Tuples,
    range: Range<usize>,
) {
    let (rows, here) = (tuples.rows.as_chunks::<N>().0, &tuples.order[range.clone()]);
    // at the end of the order there is nothing to ask for
    let ahead = |rows| tuples.order.get(range.start + rows..range.end + rows).unwrap_or(here);
    let (near, far) = (ahead(BLOCK), ahead(FAR));
    let (mut out, (labels, weights)) = ([0.0; BLOCK], labels_and_weights(tuples, here));
    let (scale, intercept) = (state.now.scale as f32, arrays.intercepts.values[0]);
    let model = arrays.weights.as_chunks::<LANES>().0;
    let (threes, rest) = here.as_chunks::<3>();
    for ((places, out), far) in threes.iter().zip(out.as_chunks_mut::<3>().0).zip(far.as_chunks::<3>().0) {
        for &far in far {
            (0..N).for_each(|chunk| prefetch_far(tuples.rows, far as usize * N + chunk));
            prefetch_far(tuples.labels, far as usize);
        }
        let [a, b, c] = [&rows[places[0] as usize], &rows[places[1] as usize], &rows[places[2] as usize]];
        let products = [lane_products(simd, model, a), lane_products(simd, model, b), lane_products(simd, model, c)];
        let sums = simd.sums(products);
        for i in 0..3 {
            out[i] = sums[i] * scale + intercept;
        }
    }
    for (&place, out) in rest.iter().zip(&mut out[here.len() - rest.len()..]) {
        *out = simd.sum(lane_products(simd, model, &rows[place as usize])) * scale + intercept;
    }
    for ((&place, z), (&y, &weight)) in here.iter().zip(&out).zip(labels.iter().zip(&weights)) {
        add_square(simd, state, &rows[place as usize], &[*z], y, weight);
    }
    let out = &mut out[..here.len()];
    losses_and_gradients(simd, state, out, &labels[..here.len()], &weights[..here.len()]);
    let gradient = &mut arrays.gradient.as_chunks_mut::<LANES>().0.as_chunks_mut::<N>().0[0];
    let rows = here.iter().zip(near).map(|(&place, &near)| {
        (0..N).for_each(|chunk| prefetch(tuples.rows, near as usize * N + chunk));
        prefetch(tuples.labels, near as usize);
        &rows[place as usize]
    });
    add_rows(simd, gradient, rows, out);
    for &factor in &*out {
        arrays.intercepts.gradient[0] += factor;
    }
    state.now.pending += here.len() as u32;
    if state.now.pending == state.hyper.batch_size {
        simd.call(MakeDenseStep { state, arrays });
    }
}

#[inline(always)]
fn decide<S: Simd>(simd: S, state: &TrainerState, arrays: &Arrays, row: &[Chunk], out: &mut [f32]) {
    let scale = state.now.scale as f32;
    let weights = arrays.weights.as_chunks::<LANES>().0.chunks_exact(row.len());
    for ((z, w), intercept) in out.iter_mut().zip(weights).zip(&*arrays.intercepts.values) {
        *z = simd.sum(lane_products(simd, w, row)) * scale + intercept;
    }
}

/// Adds the square of a row's length, times how much its loss bends, to those of the pending gradient, if it is to be
/// known.
#[inline(always)]
fn add_square<S: Simd>(simd: S, state: &mut TrainerState, row: &[Chunk], decisions: &[f32], y: f32, weight: f32) {
    if state.hyper.bounded {
        // the constant is 1, whether it is there or not
        let lane = state.now.dim as usize;
        let constant = row[lane / LANES][lane % LANES];
        let square = simd.sum(lane_products(simd, row, row)) - constant * constant + 1.0;
        state.now.squares += f64::from(weight) * f64::from(bend(state, decisions, y)) * f64::from(square);
    }
}

pub(crate) struct LearnDenseRow<'a, 'b> {
    pub(crate) state: &'a mut TrainerState,
    pub(crate) arrays: &'a mut Arrays<'b>,
    pub(crate) row: &'a [Chunk],
    pub(crate) label: f32,
    pub(crate) weight: f32,
}

impl Kernel for LearnDenseRow<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let LearnDenseRow { state, arrays, row, label, weight } = self;
        learn_row(simd, state, arrays, row, label, weight);
    }
}

#[inline(always)]
fn learn_row<S: Simd>(simd: S, state: &mut TrainerState, arrays: &mut Arrays, row: &[Chunk], y: f32, weight: f32) {
    let out = std::mem::take(&mut arrays.out);
    decide(simd, state, arrays, row, out);
    arrays.out = out;
    add_square(simd, state, row, arrays.out, y, weight);
    loss_and_gradient(simd, state, arrays.out, y, weight);
    state.bound_single(arrays.out);
    state.now.pending += 1;
    if state.hyper.batch_size > 1 {
        let gradient = arrays.gradient.as_chunks_mut::<LANES>().0.chunks_exact_mut(row.len());
        for (&factor, gradient) in arrays.out.iter().zip(gradient) {
            add_multiple(simd, gradient, factor, row);
        }
        for (gradient, factor) in arrays.intercepts.gradient.iter_mut().zip(&*arrays.out) {
            *gradient += factor;
        }
        if state.now.pending == state.hyper.batch_size {
            simd.call(MakeDenseStep { state, arrays });
        }
    } else if matches!(state.hyper.optimizer, Optimizer::Sgd) {
        step_along(simd, state, arrays, row);
    } else {
        let gradient = arrays.gradient.as_chunks_mut::<LANES>().0.chunks_exact_mut(row.len());
        for (&factor, gradient) in arrays.out.iter().zip(gradient) {
            let factor = simd.splat(factor);
            for (gradient, row) in gradient.iter_mut().zip(row) {
                simd.store(simd.mul(factor, simd.load(row)), gradient);
            }
        }
        arrays.intercepts.gradient.copy_from_slice(arrays.out);
        simd.call(MakeDenseStep { state, arrays });
    }
}

#[inline(always)]
fn add_multiple<S: Simd>(simd: S, sum: &mut [Chunk], factor: f32, row: &[Chunk]) {
    let factor = simd.splat(factor);
    for (sum, row) in sum.iter_mut().zip(row) {
        simd.store(simd.fma(factor, simd.load(row), simd.load(sum)), sum);
    }
}

/// A step of plain SGD for one tuple, whose gradient is a multiple of its row.
#[inline(always)]
fn step_along<S: Simd>(simd: S, state: &mut TrainerState, arrays: &mut Arrays, row: &[Chunk]) {
    rescale(state, arrays.weights);
    let step = state.begin_step();
    let lane = state.now.dim as usize;
    let weights = arrays.weights.as_chunks_mut::<LANES>().0.chunks_exact_mut(row.len());
    for ((&factor, weights), intercept) in arrays.out.iter().zip(weights).zip(&mut *arrays.intercepts.values) {
        add_multiple(simd, weights, factor * step.scaled_rate, row);
        weights[lane / LANES][lane % LANES] = 0.0;
        *intercept += factor * step.rate;
    }
    cut_all(arrays.weights, &mut state.now.l1_applied, step.cut);
}

/// [`step`], compiled once for each instruction set.
struct MakeDenseStep<'a, 'b> {
    state: &'a mut TrainerState,
    arrays: &'a mut Arrays<'b>,
}

impl Kernel for MakeDenseStep<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        step(self.state, self.arrays);
    }
}

/// Makes the step of the pending gradient.
#[inline(always)]
pub(super) fn step(state: &mut TrainerState, arrays: &mut Arrays) {
    rescale(state, arrays.weights);
    let step = state.begin_step();
    let stride = arrays.weights.len() / state.now.outputs as usize;
    for gradient in arrays.gradient.chunks_exact_mut(stride) {
        gradient[state.now.dim as usize] = 0.0;
    }
    let intercepts = &mut arrays.intercepts;
    with_method!(state.hyper.optimizer, method => {
        let rule = method.rule(state.now.taken.unbiased, step.scaled_rate);
        rule.step(arrays.weights, arrays.first, arrays.second, arrays.gradient, step.share);
        let (first, second) = (&mut *intercepts.first, &mut *intercepts.second);
        let rule = method.rule(state.now.taken.unbiased, step.rate);
        rule.step(intercepts.values, first, second, intercepts.gradient, step.share);
    });
    if state.hyper.batch_size > 1 {
        arrays.gradient.fill(0.0);
        intercepts.gradient.fill(0.0);
    }
    cut_all(arrays.weights, &mut state.now.l1_applied, step.cut);
}

/// Keeps the scale in [1/2, 1] before a step by powers of two, which is exact.
#[inline(always)]
pub(super) fn rescale(state: &mut TrainerState, weights: &mut [f32]) {
    while state.now.scale < 0.5 {
        state.now.scale *= 2.0;
        state.now.l1_applied *= 0.5;
        weights.iter_mut().for_each(|w| *w *= 0.5);
    }
}
