//! How much the loss of a mini-batch can bend, which bounds the steps that may be made along its gradient.
//!
//! Guarantees: the answer is a function of the tuples and their sequence, on one kind of processor bit for bit. It
//! prevents a training that diverges because a mini-batch makes at one place the steps that its tuples would make one
//! after the other.

use std::ops::Range;

use loss::ModelKind;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tuples::pause::pause;
use tuples::{Batch, MiniBatch, Opened, OutOfMemory};

/// Tuples that are looked at, if a mini-batch has more.
const MOST_TUPLES: usize = 1024;

/// Each brings the estimate nearer to the greatest eigenvalue: six of them to two thirds of it where all are alike, and
/// much nearer where one is greater than the others, which is when it matters.
const ITERATIONS: usize = 6;

/// A mini-batch, or the beginning of a large one.
enum Sample<'a> {
    Tuples(&'a Batch, &'a [u32]),
    MiniBatch(&'a MiniBatch, Opened<'a>, Vec<f32>),
}

/// About the greatest eigenvalue of the second derivatives of a mini-batch's mean loss by weights and intercept,
/// wherever these are largest: c Σ w x xᵀ / n, where x ends in a constant 1, and c bounds the second derivative of the
/// loss by the decision. A step along the gradient at a rate of 1 / this makes that loss smaller. The hinge has corners
/// in place of a second derivative; with c = 1 a step does not move decisions further than from one margin to the
/// other. 0 if there are no tuples or numbers are beyond f32.
///
/// Of the tuples at these places, taken in mini-batches of `count`, it is that of the mini-batch with the longest rows,
/// so that a few rows unlike all others are not missed. Of compressed mini-batches it is the greatest of all.
pub(crate) fn curvature(
    kind: ModelKind,
    batch: &Batch,
    places: Range<usize>,
    count: usize,
) -> Result<f64, OutOfMemory> {
    let places = &batch.order()[places];
    let bound = kind.curvature();
    if batch.has_mini_batches() {
        return Ok(
            bound * of_mini_batches(places.iter().map(|place| &**batch.mini_batch(*place as usize)), batch.dim())?
        );
    }
    let count = count.clamp(1, MOST_TUPLES).min(places.len());
    if count == 0 {
        return Ok(0.0);
    }
    // what is left of the last mini-batch is looked at with tuples before it: a few of them alone seem to bend more
    let samples = places.chunks_exact(count).chain([&places[places.len() - count..]]);
    let samples = samples.map(|places| Sample::Tuples(batch, places));
    match samples.map(|sample| (sample.mean_square(), sample)).max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, sample)) => Ok(bound * greatest_eigenvalue(sample, batch.dim())?),
        None => Ok(0.0),
    }
}

/// The greatest of all mini-batches. Of a smaller one it counts in proportion to its rows,
/// as the rate of its step does.
fn of_mini_batches<'a>(mini_batches: impl Iterator<Item = &'a MiniBatch>, dim: usize) -> Result<f64, OutOfMemory> {
    let (mut greatest, mut rows) = (0.0_f64, 0);
    for mini_batch in mini_batches {
        rows = rows.max(mini_batch.len());
        greatest = greatest.max(
            greatest_eigenvalue(Sample::MiniBatch(mini_batch, mini_batch.matrix(), Vec::new()), dim)?
                * mini_batch.len() as f64,
        );
    }
    Ok(greatest / rows.max(1) as f64)
}

/// The greatest eigenvalue of Σ w x xᵀ / n, by the power method from a random combination of the rows.
fn greatest_eigenvalue(mut sample: Sample, dim: usize) -> Result<f64, OutOfMemory> {
    let tuples = sample.len();
    let mut of_rows = allocation::try_zeros(tuples)?;
    let mut of_columns = allocation::try_zeros(dim)?;
    of_rows.iter_mut().enumerate().for_each(|(i, x)| *x = factor(i));
    let mut greatest = 0.0;
    for _ in 0..ITERATIONS {
        pause();
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

/// What the power method begins with: random numbers from -1/2 to 1. They do not cancel out where all rows are alike,
/// because their mean is not 0, nor do they point along the mean of the rows, which may be 0.
fn factor(row: usize) -> f32 {
    let random = SplitMix64::seed_from_u64(row as u64).next_u64();
    (random >> 40) as f32 / (1 << 24) as f32 * 1.5 - 0.5
}

impl Sample<'_> {
    fn len(&self) -> usize {
        match self {
            Sample::Tuples(_, places) => places.len(),
            Sample::MiniBatch(mini_batch, ..) => mini_batch.len(),
        }
    }

    /// The mean of the weighted squares of the rows' lengths, which no eigenvalue is above.
    fn mean_square(&self) -> f64 {
        let Sample::Tuples(batch, places) = self else { return f64::INFINITY };
        pause();
        let square = |place: u32| batch.entries(place as usize).map(|(_, x)| f64::from(x).powi(2)).sum::<f64>();
        let squares = places.iter().enumerate().map(|(i, place)| f64::from(self.weight(i)) * square(*place));
        squares.sum::<f64>() / places.len() as f64
    }

    fn weight(&self, i: usize) -> f32 {
        match self {
            Sample::Tuples(batch, places) => batch.weight(places[i] as usize),
            Sample::MiniBatch(mini_batch, ..) => mini_batch.weights().map_or(1.0, |weights| weights[i]),
        }
    }

    /// `out` = X v
    fn times(&mut self, v: &[f32], out: &mut [f32]) {
        match self {
            Sample::Tuples(batch, places) => {
                for (&place, out) in places.iter().zip(out) {
                    pause();
                    *out = batch.entries(place as usize).map(|(j, x)| x * v[j]).sum();
                }
            }
            Sample::MiniBatch(_, matrix, scratch) => matrix.times_vector(v, out, scratch),
        }
    }

    /// `out` += Xᵀ v
    fn transposed_times(&mut self, v: &[f32], out: &mut [f32]) {
        match self {
            Sample::Tuples(batch, places) => {
                for (&place, factor) in places.iter().zip(v) {
                    pause();
                    batch.entries(place as usize).for_each(|(j, x)| out[j] += factor * x);
                }
            }
            Sample::MiniBatch(_, matrix, scratch) => matrix.vector_times(v, out, scratch),
        }
    }
}
