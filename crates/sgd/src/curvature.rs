//! How much the loss of a mini-batch can bend, which bounds the steps that may be made along its gradient.
//!
//! Guarantees: the answer is a function of the tuples and their sequence, on one kind of processor bit for bit. It prevents
//! a training that diverges because a mini-batch makes at one place the steps that its tuples would make one after the other.

use std::ops::Range;

use tuples::{Batch, Block, OutOfMemory};

use crate::ModelKind;

/// Tuples that are looked at, if a mini-batch has more.
const MOST_TUPLES: usize = 1024;

/// Each brings the estimate nearer to the greatest eigenvalue: six of them to two thirds of it where all are alike, and much
/// nearer where one is greater than the others, which is when it matters.
const ITERATIONS: usize = 6;

/// The first tuples at these places of the order, at most `count` of them; of blocks, the first.
enum Sample<'a> {
    Tuples(&'a Batch, &'a [u32]),
    Block(&'a Block, Vec<f32>),
}

/// About the greatest eigenvalue of the second derivatives of a mini-batch's mean loss by weights and intercept, wherever these
/// are largest: c Σ w x xᵀ / n, where x ends in a constant 1, and c bounds the second derivative of the loss by the decision.
/// A step along the gradient at a rate of 1 / this makes that loss smaller. The hinge has corners in place of a second derivative;
/// with c = 1 a step does not move decisions further than from one margin to the other. 0 if there are no tuples or numbers are
/// beyond f32.
///
/// # Errors
/// [`OutOfMemory`]
pub(crate) fn curvature(
    kind: ModelKind,
    batch: &Batch,
    places: Range<usize>,
    count: usize,
) -> Result<f64, OutOfMemory> {
    let places = &batch.order()[places];
    let sample = match places {
        [] => return Ok(0.0),
        [first, ..] if batch.has_blocks() => Sample::Block(batch.block(*first as usize), Vec::new()),
        _ => Sample::Tuples(batch, &places[..places.len().min(count).min(MOST_TUPLES)]),
    };
    let bound = match kind {
        ModelKind::Logistic => 0.25,
        ModelKind::Softmax => 0.5,
        ModelKind::Svm | ModelKind::Linear | ModelKind::Mlp => 1.0,
    };
    Ok(bound * greatest_eigenvalue(sample, batch.dim())?)
}

/// The greatest eigenvalue of Σ w x xᵀ / n, by the power method from a random combination of the rows.
fn greatest_eigenvalue(mut sample: Sample, dim: usize) -> Result<f64, OutOfMemory> {
    let tuples = sample.len();
    let mut of_rows = zeros(tuples)?;
    let mut of_columns = zeros(dim)?;
    // signs of the Thue-Morse sequence: no data are made in its rhythm
    of_rows.iter_mut().enumerate().for_each(|(i, x)| *x = if i.count_ones() % 2 == 0 { 1.0 } else { -1.0 });
    let mut greatest = 0.0;
    for _ in 0..ITERATIONS {
        of_rows.iter_mut().enumerate().for_each(|(i, x)| *x *= sample.weight(i));
        let intercept: f32 = of_rows.iter().sum();
        of_columns.fill(0.0);
        sample.transposed_times(&of_rows, &mut of_columns);
        let squares = of_columns.iter().chain([&intercept]).map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let reciprocal = (1.0 / squares.sqrt()) as f32;
        if !reciprocal.is_finite() || reciprocal == 0.0 {
            break;
        }
        of_columns.iter_mut().for_each(|x| *x *= reciprocal);
        sample.times(&of_columns, &mut of_rows);
        of_rows.iter_mut().for_each(|x| *x += intercept * reciprocal);
        let squares = |(i, x): (usize, &f32)| f64::from(sample.weight(i)) * f64::from(*x).powi(2);
        let quotient = of_rows.iter().enumerate().map(squares).sum::<f64>() / tuples as f64;
        if quotient.is_finite() {
            greatest = quotient.max(greatest);
        }
    }
    Ok(greatest)
}

fn zeros(length: usize) -> Result<Vec<f32>, OutOfMemory> {
    let mut zeros = Vec::new();
    let error = OutOfMemory { bytes: length.saturating_mul(size_of::<f32>()) };
    zeros.try_reserve_exact(length).map_err(|_| error)?;
    zeros.resize(length, 0.0);
    Ok(zeros)
}

impl Sample<'_> {
    fn len(&self) -> usize {
        match self {
            Sample::Tuples(_, places) => places.len(),
            Sample::Block(block, _) => block.len(),
        }
    }

    fn weight(&self, i: usize) -> f32 {
        match self {
            Sample::Tuples(batch, places) => batch.weights().map_or(1.0, |weights| weights[places[i] as usize]),
            Sample::Block(block, _) => block.weights().map_or(1.0, |weights| weights[i]),
        }
    }

    /// `out` = X v
    fn times(&mut self, v: &[f32], out: &mut [f32]) {
        match self {
            Sample::Tuples(batch, places) => {
                for (&place, out) in places.iter().zip(out) {
                    *out = entries(batch, place).map(|(j, x)| x * v[j]).sum();
                }
            }
            Sample::Block(block, scratch) => block.matrix().times_vector(v, out, scratch),
        }
    }

    /// `out` += Xᵀ v
    fn transposed_times(&mut self, v: &[f32], out: &mut [f32]) {
        match self {
            Sample::Tuples(batch, places) => {
                for (&place, factor) in places.iter().zip(v) {
                    entries(batch, place).for_each(|(j, x)| out[j] += factor * x);
                }
            }
            Sample::Block(block, scratch) => block.matrix().vector_times(v, out, scratch),
        }
    }
}

/// Features of a tuple, with their indices.
fn entries(batch: &Batch, place: u32) -> impl Iterator<Item = (usize, f32)> {
    let place = place as usize;
    let (indices, values) = if batch.is_sparse() { batch.sparse_row(place) } else { (&[][..], &[][..]) };
    let dense = if batch.is_sparse() { &[] } else { batch.features(place) };
    let sparse = indices.iter().map(|j| *j as usize).zip(values.iter().copied());
    sparse.chain(dense.iter().copied().enumerate())
}
