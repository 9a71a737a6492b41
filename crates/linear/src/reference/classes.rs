//! One dense tuple after the other, with a decision for each of several classes and plain SGD.
//!
//! Guarantees: exact SGD of batch size 1; the same bits for every instruction set, and wherever the sequence of tuples
//! is cut. It prevents that the processor waits for one tuple before it begins with the next: with the steps s, one for
//! each class, along the row p before row x, the decisions (W + s pᵀ)x are W x + s (p·x). Both products are known
//! before s is, and classes are looked at sixteen at a time.

use std::ops::Range;

use loss::Optimizer;
use loss::kernels::lane_products;
use loss::models::class_losses;
use loss::optimizers::cut_all;
use loss::totals::Totals;
use simd::{Chunk, Kernel, LANES, Simd};
use tuples::Batch;

use super::arrays::Arrays;
use super::dense::{Tuples, rescale};
use super::state::TrainerState;

/// More classes than in as many chunks are learned from one by one.
const MOST: usize = 8;

/// Stands for a number of chunks that is not known when the loop is compiled.
const ANY: usize = 0;

/// Classes whose products lie in one vector while they are added up.
const QUARTERS: usize = 4;

impl TrainerState {
    /// Whether dense tuples are learned from in this way.
    #[inline(always)]
    pub(super) fn has_classes(&self) -> bool {
        (2..=(MOST * LANES) as u32).contains(&self.now.outputs)
            && !self.sparse
            && self.hyper.batch_size == 1
            && self.hyper.optimizer == Optimizer::Sgd
    }
}

/// A stretch of the order to learn from. The step of the last tuple is still to be made afterwards: its row is in
/// `arrays.row`, and what it adds to the decision of each class, for a row of which the product with it is 1, in
/// `arrays.out`.
pub(super) struct LearnClasses<'a> {
    pub(super) state: &'a mut TrainerState,
    pub(super) arrays: Arrays<'a>,
    pub(super) batch: &'a Batch,
    pub(super) range: Range<usize>,
}

impl Kernel for LearnClasses<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match (self.arrays.out.len(), self.arrays.row.len() / LANES) {
            (..=LANES, 1) => self.learn::<1, 1, S>(simd),
            (..=LANES, 2) => self.learn::<1, 2, S>(simd),
            (..=LANES, _) => self.learn::<1, ANY, S>(simd),
            _ => self.learn::<MOST, ANY, S>(simd),
        }
    }
}

impl LearnClasses<'_> {
    /// With classes in up to `N` chunks, and rows of `P` chunks.
    #[inline(always)]
    fn learn<const N: usize, const P: usize, S: Simd>(self, simd: S) {
        let LearnClasses { state, mut arrays, batch, range } = self;
        let outputs = arrays.out.len();
        let chunks = if N == 1 { 1 } else { outputs.div_ceil(LANES) };
        let (mut decisions, mut steps, mut intercepts) = ([[0.0; LANES]; N], [[0.0; LANES]; N], [[0.0; LANES]; N]);
        let (decisions, steps) = (&mut decisions[..chunks], &mut steps[..chunks]);
        let intercepts = &mut intercepts[..chunks];
        // what is behind the last class is the least of all
        intercepts.as_flattened_mut().fill(f32::NEG_INFINITY);
        intercepts.as_flattened_mut()[..outputs].copy_from_slice(arrays.intercepts.values);
        steps.as_flattened_mut()[..outputs].copy_from_slice(arrays.out);
        let stored = std::mem::take(&mut arrays.row).as_chunks_mut::<LANES>().0;
        let mut mask = [1.0; LANES];
        mask[state.now.dim as usize % LANES] = 0.0;
        let mask = simd.load(&mask);
        let tuples = Tuples::new(batch);
        let (mut last, mut losses) = (None, Losses::default());
        for k in range {
            let (row, y, weight) = tuples.get(k);
            let previous = last.map_or(&*stored, |last| tuples.row(last));
            tuples.ask_far(k);
            let (scale, weights) = (state.now.scale, &mut *arrays.weights);
            let product = simd.splat(simd.sum(products::<P, S>(simd, previous, row, 0)));
            for i in 0..chunks {
                let products = decide::<P, S>(simd, weights.as_chunks::<LANES>().0, row, i * LANES);
                let before = simd.fma(products, simd.splat(scale as f32), simd.load(&intercepts[i]));
                simd.store(simd.fma(simd.load(&steps[i]), product, before), &mut decisions[i]);
            }
            make_step::<P, S>(simd, scale, weights, steps, intercepts, (previous, mask));
            // rows end in the constant 1
            state.now.squares = f64::from(weight) * f64::from(simd.sum(products::<P, S>(simd, row, row, 0)));
            state.now.pending = 1;
            rescale(state, arrays.weights);
            let share = if state.hyper.bounded { state.bounded_share(1) as f32 } else { 1.0 };
            let step = state.begin_step();
            let totals = &mut state.now.totals;
            let loss = state.hyper.kind.class_gradients(simd, totals, decisions, y, weight * share * step.rate);
            losses.push(totals, loss, weight);
            steps.copy_from_slice(decisions);
            last = Some(k);
            if step.cut > 0.0 {
                make_step::<P, S>(simd, state.now.scale, arrays.weights, steps, intercepts, (row, mask));
                cut_all(arrays.weights, &mut state.now.l1_applied, step.cut);
                steps.as_flattened_mut().fill(0.0);
            }
        }
        losses.count(&mut state.now.totals);
        if let Some(last) = last {
            stored.copy_from_slice(tuples.row(last));
        }
        arrays.out.copy_from_slice(&steps.as_flattened()[..outputs]);
        arrays.intercepts.values.copy_from_slice(&intercepts.as_flattened()[..outputs]);
    }
}

/// What losses of tuples consist of that are still to be counted, as many as a chunk has.
#[derive(Default)]
struct Losses {
    powers: Chunk,
    less: Chunk,
    weights: Chunk,
    waiting: usize,
}

impl Losses {
    /// A tuple with this loss and this weight.
    #[inline(always)]
    fn push(&mut self, totals: &mut Totals, [power, less]: [f32; 2], weight: f32) {
        let lane = self.waiting % LANES;
        (self.powers[lane], self.less[lane], self.weights[lane]) = (power, less, weight);
        self.waiting += 1;
        if self.waiting == LANES {
            self.count(totals);
        }
    }

    /// Counts those that wait, one after the other.
    #[inline(always)]
    fn count(&mut self, totals: &mut Totals) {
        let losses = class_losses(&self.powers, &self.less);
        for (loss, weight) in losses.iter().zip(&self.weights).take(self.waiting) {
            totals.loss += f64::from(*weight) * f64::from(*loss);
            totals.weight += f64::from(*weight);
        }
        totals.tuples += self.waiting as u64;
        self.waiting = 0;
    }
}

/// The products of a row with the weights of sixteen classes from this one on, as far as there are such.
#[inline(always)]
fn decide<const P: usize, S: Simd>(simd: S, weights: &[Chunk], row: &[Chunk], first: usize) -> S::Vector {
    let outputs = weights.len() / row.len();
    // whole vectors, which can be loaded before they have left the processor
    let mut all = [[0.0; LANES]; QUARTERS];
    for (group, stored) in all.iter_mut().enumerate() {
        let first = first + group * QUARTERS;
        if first >= outputs {
            break;
        }
        let mut four = [simd.splat(0.0); QUARTERS];
        for (i, of_class) in four.iter_mut().enumerate() {
            // those of the last class, instead of classes that are not there
            *of_class = products::<P, S>(simd, weights, row, (first + i).min(outputs - 1));
        }
        simd.store(simd.quarters(four), stored);
    }
    let [a, b, c, d] = &all;
    simd.sums_of_quarters([simd.load(a), simd.load(b), simd.load(c), simd.load(d)])
}

/// The products of the lanes of a row with the weights of class `k`.
#[inline(always)]
fn products<const P: usize, S: Simd>(simd: S, weights: &[Chunk], row: &[Chunk], k: usize) -> S::Vector {
    let len = chunks::<P>(row);
    lane_products(simd, &weights[k * len..][..len], &row[..len])
}

#[inline(always)]
fn chunks<const P: usize>(row: &[Chunk]) -> usize {
    if P == ANY { row.len() } else { P }
}

/// Makes the steps of all classes along a row, without its constant 1.
#[inline(always)]
fn make_step<const P: usize, S: Simd>(
    simd: S,
    scale: f64,
    weights: &mut [f32],
    steps: &[Chunk],
    intercepts: &mut [Chunk],
    (row, mask): (&[Chunk], S::Vector),
) {
    let (inverse, len) = (simd.splat((1.0 / scale) as f32), chunks::<P>(row));
    let (Some((tail, row)), mut weights) = (row[..len].split_last(), weights.as_chunks_mut::<LANES>().0) else {
        return;
    };
    let tail = simd.mul(simd.load(tail), mask);
    for (step, intercept) in steps.iter().zip(intercepts) {
        simd.store(simd.add(simd.load(intercept), simd.load(step)), intercept);
        let mut scaled = [0.0; LANES];
        simd.store(simd.mul(simd.load(step), inverse), &mut scaled);
        for step in scaled {
            let Some((own, others)) = std::mem::take(&mut weights).split_at_mut_checked(len) else { break };
            weights = others;
            let (own_tail, own) = own.split_last_mut().expect("a row has a chunk");
            let step = simd.splat(step);
            for (own, x) in own.iter_mut().zip(row) {
                simd.store(simd.fma(step, simd.load(x), simd.load(own)), own);
            }
            simd.store(simd.fma(step, tail, simd.load(own_tail)), own_tail);
        }
    }
}

/// Makes the step that is still to be made.
#[inline(always)]
pub(super) fn settle<S: Simd>(simd: S, state: &TrainerState, arrays: &mut Arrays) {
    let Arrays { weights, row, out, intercepts, .. } = arrays;
    let mut mask = [1.0; LANES];
    mask[state.now.dim as usize % LANES] = 0.0;
    let mut weights = &mut **weights;
    for (steps, values) in out.chunks_mut(LANES).zip(intercepts.values.chunks_mut(LANES)) {
        let (mut step, mut intercept) = ([0.0; LANES], [0.0; LANES]);
        step[..steps.len()].copy_from_slice(steps);
        intercept[..steps.len()].copy_from_slice(values);
        let (own, others) = weights.split_at_mut(steps.len() * row.len());
        weights = others;
        let along = (row.as_chunks::<LANES>().0, simd.load(&mask));
        make_step::<ANY, S>(simd, state.now.scale, own, &[step], std::slice::from_mut(&mut intercept), along);
        values.copy_from_slice(&intercept[..steps.len()]);
        steps.fill(0.0);
    }
    row.fill(0.0);
}
