//! Learning from mini-batches whose features are a matrix that is multiplied and never looked into.
//!
//! Guarantees: one step for each mini-batch, or for some of several processes together, the same as that of a
//! mini-batch of their rows, but for the sequence in which products are added up.

use std::ops::Range;

use simd::{Kernel, Simd};
use tuples::{Batch, Matrix, MiniBatch, OutOfMemory};

use super::arrays::Arrays;
use super::gradients::{loss_and_gradient, losses_and_gradients};
use super::state::TrainerState;
use super::training::MakeStep;

/// Memory for the products, used again for each mini-batch.
#[derive(Debug, Default)]
pub(crate) struct Products {
    /// a decision for each row and output, then minus the derivative of the row's loss by it
    decisions: Vec<f32>,
    /// the weights, or the gradient, feature by feature: a number for each output
    transposed: Vec<f32>,
    ones: Vec<f32>,
    scratch: Vec<f32>,
}

impl Products {
    /// Makes room for products with all mini-batches of these places.
    pub(crate) fn reserve(
        &mut self,
        state: &TrainerState,
        batch: &Batch,
        range: Range<usize>,
    ) -> Result<(), OutOfMemory> {
        let rows = batch.order()[range].iter().map(|&place| batch.mini_batch(place as usize).len()).max().unwrap_or(0);
        let (dim, outputs) = (state.now.dim as usize, state.now.outputs as usize);
        resize(&mut self.decisions, rows.saturating_mul(outputs), 0.0)?;
        resize(&mut self.transposed, if outputs == 1 { 0 } else { dim.saturating_mul(outputs) }, 0.0)?;
        resize(&mut self.ones, rows, 1.0)
    }
}

fn resize(vector: &mut Vec<f32>, len: usize, value: f32) -> Result<(), OutOfMemory> {
    let more = len.saturating_sub(vector.len());
    allocation::try_reserve(vector, more)?;
    vector.resize(len.max(vector.len()), value);
    Ok(())
}

/// A stretch of the order to learn from.
pub(crate) struct LearnMiniBatches<'a> {
    pub(crate) state: &'a mut TrainerState,
    pub(crate) arrays: Arrays<'a>,
    pub(crate) products: &'a mut Products,
    pub(crate) batch: &'a Batch,
    pub(crate) range: Range<usize>,
    /// is a step made for each, or is the gradient kept for one that is made together with others?
    pub(crate) steps: bool,
}

impl Kernel for LearnMiniBatches<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let LearnMiniBatches { state, mut arrays, products, batch, range, steps } = self;
        for &place in &batch.order()[range] {
            let mini_batch = batch.mini_batch(place as usize);
            if mini_batch.is_empty() {
                continue;
            }
            let matrix = mini_batch.matrix();
            decide(state, &arrays, products, &*matrix);
            count(simd, state, products, mini_batch);
            add_gradient(state, &mut arrays, products, &*matrix);
            state.now.pending = state.now.pending.saturating_add(u32::try_from(mini_batch.len()).unwrap_or(u32::MAX));
            if steps {
                simd.call(MakeStep { state, arrays: &mut arrays });
            }
        }
    }
}

/// Makes the decisions of all rows.
#[inline(always)]
fn decide(state: &TrainerState, arrays: &Arrays, products: &mut Products, matrix: &dyn Matrix) {
    let (dim, outputs, scale) = (state.now.dim as usize, state.now.outputs as usize, state.now.scale as f32);
    let decisions = &mut products.decisions[..matrix.rows() * outputs];
    if outputs == 1 {
        matrix.times_vector(&arrays.weights[..dim], decisions, &mut products.scratch);
    } else {
        let stride = arrays.weights.len() / outputs;
        for (k, weights) in arrays.weights.chunks_exact(stride).enumerate() {
            for (to, weight) in products.transposed[k..].iter_mut().step_by(outputs).zip(&weights[..dim]) {
                *to = *weight;
            }
        }
        let weights = &products.transposed[..dim * outputs];
        matrix.times_matrix(weights, outputs, decisions, &mut products.scratch);
    }
    for row in decisions.chunks_exact_mut(outputs) {
        for (z, intercept) in row.iter_mut().zip(&*arrays.intercepts.values) {
            *z = *z * scale + intercept;
        }
    }
}

/// Counts all rows, and replaces their decisions by minus the derivatives of their losses.
#[inline(always)]
fn count<S: Simd>(simd: S, state: &mut TrainerState, products: &mut Products, mini_batch: &MiniBatch) {
    let outputs = state.now.outputs as usize;
    let decisions = &mut products.decisions[..mini_batch.len() * outputs];
    let weights = mini_batch.weights().unwrap_or(&products.ones[..mini_batch.len()]);
    if outputs == 1 {
        losses_and_gradients(simd, state, decisions, mini_batch.labels(), weights);
        return;
    }
    for ((out, &y), &weight) in decisions.chunks_exact_mut(outputs).zip(mini_batch.labels()).zip(weights) {
        loss_and_gradient(simd, state, out, y, weight);
    }
}

#[inline(always)]
fn add_gradient(state: &TrainerState, arrays: &mut Arrays, products: &mut Products, matrix: &dyn Matrix) {
    let (dim, outputs) = (state.now.dim as usize, state.now.outputs as usize);
    let factors = &products.decisions[..matrix.rows() * outputs];
    for row in factors.chunks_exact(outputs) {
        arrays.intercepts.gradient.iter_mut().zip(row).for_each(|(gradient, factor)| *gradient += factor);
    }
    if outputs == 1 {
        matrix.vector_times(factors, &mut arrays.gradient[..dim], &mut products.scratch);
        return;
    }
    let transposed = &mut products.transposed[..dim * outputs];
    transposed.fill(0.0);
    matrix.transposed_times_matrix(factors, outputs, transposed, &mut products.scratch);
    let stride = arrays.gradient.len() / outputs;
    for (k, gradient) in arrays.gradient.chunks_exact_mut(stride).enumerate() {
        gradient[..dim].iter_mut().zip(transposed[k..].iter().step_by(outputs)).for_each(|(to, g)| *to += g);
    }
}
