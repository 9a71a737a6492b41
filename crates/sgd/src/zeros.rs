//! Weights that the penalty l1 holds at 0.
//!
//! A step of SGD moves a weight off 0 even where the least of the objective is there, and the mean of many iterates is
//! 0 only if all of them are. So the gradient g of the mean loss is added up once more at the model that is to be
//! stored, and for each weight a bound h of the loss's second derivative along it. The least of g (v - w) + h/2 (v -
//! w)² + λ|v|, which is one step of coordinate descent, is v = 0 where |g - h w| is at most λ: then the weight becomes
//! 0.
//!
//! Where the derivative of the loss jumps, no h is a bound: there g is that of a model whose weight is 0 and whose
//! other weights are as they are, and h is 0. (Whole mini-batches, which have only products, are taken as if h were a
//! bound.)
//!
//! Guarantees: at the least of the objective no weight changes that is not 0, as it has g = -λ sign(w) there, so that
//! |g - h w| = λ + h |w|. What the penalty l2 adds to g does not matter, because it is 0 at 0. With momentum, λ is to
//! the loss what it is in training, where a gradient makes 1 / (1 - β) steps; with Adam a gradient is divided by the
//! root of the mean square of those of the mini-batches, as in training. Sums are in f64, so that neither the sequence
//! of the tuples nor how it was cut changes more than their last digits.

use loss::models::{Objective, ObjectiveVisitor, Pointwise, PointwiseVisitor};
use loss::totals::Totals;
use loss::{ModelKind, ModelParameters, Optimizer, Solver};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use simd::Portable;
use tuples::pause::{Pauses, pause};
use tuples::{Batch, Matrix, MiniBatch, OutOfMemory};

use crate::Trainer;

/// Finds the weights of a model that should be 0.
#[derive(Debug)]
pub struct Zeros {
    kind: ModelKind,
    /// of the loss
    number: f64,
    model: ModelParameters,
    /// what |g - h w| is compared with, with Adam in units of what it divides gradients by
    l1: f64,
    /// Σ w·loss' x: a number for each weight
    gradient: Vec<f64>,
    /// a bound of Σ w·loss'' x²: a number for each feature
    bend: Vec<f64>,
    /// with Adam, a number for each weight: Σ (w·loss' x)², of mini-batches that of the squares of their means
    squares: Vec<f64>,
    adam: Option<Adam>,
    weight: f64,
    tuples: f64,
    mini_batches: usize,
}

/// What Adam divides a gradient by.
#[derive(Debug, Clone, Copy)]
struct Adam {
    batch_size: f64,
    epsilon: f64,
}

/// For the first mini-batches the bends are taken from this many random combinations of their rows each, and for all
/// others from one.
const COMBINATIONS: usize = 16;

impl Zeros {
    /// Whether a model of this trainer may have weights other than 0 that should be 0.
    pub fn may_be_missing(trainer: &Trainer) -> bool {
        let hyper = &trainer.hyper;
        hyper.l1 > 0.0 && hyper.kind.is_linear() && hyper.solver == Solver::Sgd
    }

    /// Those of a model of this trainer, with this number of its loss. No tuple has been seen.
    pub fn new(trainer: &Trainer, model: ModelParameters, number: f64) -> Result<Zeros, OutOfMemory> {
        let hyper = &trainer.hyper;
        let adam = match hyper.optimizer {
            Optimizer::Adam { epsilon, .. } => Some(Adam { batch_size: f64::from(hyper.batch_size), epsilon }),
            _ => None,
        };
        Ok(Zeros {
            kind: hyper.kind,
            number,
            l1: hyper.l1 / hyper.optimizer.steps_in_the_end(),
            gradient: allocation::try_zeros(model.weights.len())?,
            bend: allocation::try_zeros(model.dim)?,
            squares: allocation::try_zeros(if adam.is_some() { model.weights.len() } else { 0 })?,
            adam,
            weight: 0.0,
            tuples: 0.0,
            mini_batches: 0,
            model,
        })
    }

    /// Memory that a model of this many weights takes, in bytes, or less.
    pub fn bytes(weights: usize) -> usize {
        weights.saturating_mul(size_of::<f32>() + 3 * size_of::<f64>())
    }

    /// Adds the tuples at these places of a batch.
    ///
    /// # Panics
    /// If the batch is dense and does not have the same number of features as the model.
    pub fn add(&mut self, batch: &Batch, places: &[u32]) -> Result<(), OutOfMemory> {
        if batch.has_mini_batches() {
            return places.iter().try_for_each(|place| self.add_mini_batch(batch.mini_batch(*place as usize)));
        }
        assert!(batch.is_sparse() || batch.dim() == self.model.dim, "as many features as weights");
        let (kind, number) = (self.kind, self.number as f32);
        if kind.has_corners() {
            kind.of_one_class().with_pointwise(number, Corners { zeros: self, batch, places });
        } else {
            kind.with_objective(number, Tuples { zeros: self, batch, places });
        }
        Ok(())
    }

    fn add_mini_batch(&mut self, mini_batch: &MiniBatch) -> Result<(), OutOfMemory> {
        let (dim, outputs, rows) = (self.model.dim, self.model.outputs, mini_batch.len());
        assert_eq!(mini_batch.columns(), dim, "as many features as weights");
        let (matrix, mut scratch) = (mini_batch.matrix(), Vec::new());
        // output by output, as the weights are
        let mut decisions: Vec<f32> = allocation::try_zeros(outputs * rows)?;
        for (k, decisions) in decisions.chunks_exact_mut(rows.max(1)).enumerate() {
            pause();
            matrix.times_vector(self.model.weights_of(k), decisions, &mut scratch);
        }
        let mut bends: Vec<f32> = allocation::try_zeros(rows)?;
        let (kind, number) = (self.kind, self.number as f32);
        kind.with_objective(
            number,
            Rows { mini_batch, decisions: &mut decisions, bends: &mut bends, intercepts: &self.model.intercepts },
        );
        let mut sums: Vec<f32> = allocation::try_zeros(dim)?;
        for (k, slopes) in decisions.chunks_exact(rows.max(1)).enumerate() {
            pause();
            sums.fill(0.0);
            matrix.vector_times(slopes, &mut sums, &mut scratch);
            let gradient = &mut self.gradient[k * dim..][..dim];
            gradient.iter_mut().zip(&sums).for_each(|(gradient, sum)| *gradient -= f64::from(*sum));
            if self.adam.is_some() {
                let squares = self.squares[k * dim..][..dim].iter_mut().zip(&sums);
                squares.for_each(|(square, sum)| *square += (f64::from(*sum) / rows as f64).powi(2));
            }
        }
        self.add_bends(&*matrix, &bends, &mut sums, &mut scratch);
        self.weight += mini_batch.weights().map_or(rows as f64, |weights| weights.iter().map(|w| f64::from(*w)).sum());
        self.tuples += rows as f64;
        Ok(())
    }

    /// Adds Σ bend x² of a mini-batch, whose features cannot be squared one by one: it is what the square of Σ ±√bend x
    /// is on the average over random signs.
    fn add_bends(&mut self, matrix: &dyn Matrix, bends: &[f32], sums: &mut [f32], scratch: &mut Vec<f32>) {
        let combinations = if self.mini_batches < COMBINATIONS { COMBINATIONS } else { 1 };
        let mut signs = SplitMix64::seed_from_u64(self.mini_batches as u64);
        self.mini_batches += 1;
        let factor = self.kind.curvature() / combinations as f64;
        for _ in 0..combinations {
            pause();
            let sign = |bend: &f32| if signs.next_u64() >> 63 == 0 { bend.sqrt() } else { -bend.sqrt() };
            let combination: Vec<f32> = allocation::collect(bends.iter().map(sign));
            sums.fill(0.0);
            matrix.vector_times(&combination, sums, scratch);
            for (bend, sum) in self.bend.iter_mut().zip(&*sums) {
                *bend += factor * f64::from(*sum).powi(2);
            }
        }
    }

    /// The model, of which weights that should be 0 are 0.
    pub fn cut(self) -> ModelParameters {
        let Zeros { mut model, l1, gradient, bend, squares, adam, weight, tuples, mini_batches, .. } = self;
        if weight > 0.0 && model.dim > 0 {
            for (i, w) in model.weights.iter_mut().enumerate() {
                let (g, h) = (gradient[i] / weight, bend[i % model.dim] / weight);
                let scale = adam.map_or(1.0, |adam| {
                    let mean_square = match mini_batches {
                        0 => g * g + squares[i] / tuples / adam.batch_size,
                        _ => squares[i] / mini_batches as f64,
                    };
                    mean_square.sqrt() + adam.epsilon
                });
                if (g - h * f64::from(*w)).abs() <= l1 * scale {
                    *w = 0.0;
                }
            }
        }
        model
    }
}

/// Adds tuples, whatever the loss is.
struct Tuples<'a> {
    zeros: &'a mut Zeros,
    batch: &'a Batch,
    places: &'a [u32],
}

impl ObjectiveVisitor for Tuples<'_> {
    type Output = ();

    fn visit<O: Objective>(self, objective: O) {
        let Tuples { zeros, batch, places } = self;
        let (mut totals, mut pauses) = (Totals::default(), Pauses::default());
        let (dim, curvature) = (zeros.model.dim, zeros.kind.curvature());
        let mut slopes = vec![0.0; zeros.model.outputs];
        for place in places {
            let place = *place as usize;
            let (y, weight) = (batch.label(place), f64::from(batch.weight(place)));
            let row = Row::of(batch, place);
            pauses.after(row.len() * slopes.len());
            for (k, slope) in slopes.iter_mut().enumerate() {
                *slope = (row.dot(zeros.model.weights_of(k)) + f64::from(zeros.model.intercepts[k])) as f32;
            }
            row.add(weight * curvature * f64::from(objective.bend(&slopes, y)), 2, &mut zeros.bend);
            objective.loss_and_gradient(Portable, &mut totals, &mut slopes, y, 1.0);
            for (k, slope) in slopes.iter().enumerate().filter(|(_, slope)| **slope != 0.0) {
                let slope = -weight * f64::from(*slope);
                row.add(slope, 1, &mut zeros.gradient[k * dim..][..dim]);
                if zeros.adam.is_some() {
                    row.add(slope * slope, 2, &mut zeros.squares[k * dim..][..dim]);
                }
            }
            zeros.weight += weight;
            zeros.tuples += 1.0;
        }
    }
}

/// Adds tuples, of a loss with corners: to the sum of each weight, the derivative where this weight alone is 0.
struct Corners<'a> {
    zeros: &'a mut Zeros,
    batch: &'a Batch,
    places: &'a [u32],
}

impl PointwiseVisitor for Corners<'_> {
    type Output = ();

    fn visit<L: Pointwise>(self, loss: L) {
        let Corners { zeros, batch, places } = self;
        let (dim, mut pauses) = (zeros.model.dim, Pauses::default());
        for place in places {
            let place = *place as usize;
            let (label, weight) = (batch.label(place), f64::from(batch.weight(place)));
            let row = Row::of(batch, place);
            for k in 0..zeros.model.outputs {
                let y = match zeros.kind.has_class_numbers() {
                    true if label as usize == k => 1.0,
                    true => -1.0,
                    false => label,
                };
                let weights = zeros.model.weights_of(k);
                let decision = row.dot(weights) + f64::from(zeros.model.intercepts[k]);
                let (factor, direction) = (loss.factor(y), loss.direction(y));
                let derivative = |w: f32, x: f32| {
                    let margin = factor * (decision - f64::from(w) * f64::from(x)) as f32;
                    -weight * f64::from(direction * loss.negative_gradient(Portable, margin, y)) * f64::from(x)
                };
                let gradient = &mut zeros.gradient[k * dim..][..dim];
                row.for_each(dim, |j, x| gradient[j] += derivative(weights[j], x));
                if zeros.adam.is_some() {
                    let squares = &mut zeros.squares[k * dim..][..dim];
                    row.for_each(dim, |j, x| squares[j] += derivative(weights[j], x).powi(2));
                }
                pauses.after(4 * row.len());
            }
            zeros.weight += weight;
            zeros.tuples += 1.0;
        }
    }
}

/// The features of a tuple.
#[derive(Clone, Copy)]
enum Row<'a> {
    Dense(&'a [f32]),
    Sparse((&'a [u32], &'a [f32])),
}

/// Sums that a dot product is added up in, so that a vector has them all.
const SUMS: usize = 8;

impl<'a> Row<'a> {
    fn of(batch: &'a Batch, place: usize) -> Row<'a> {
        if batch.is_sparse() { Row::Sparse(batch.sparse_row(place)) } else { Row::Dense(batch.features(place)) }
    }

    fn len(self) -> usize {
        match self {
            Row::Dense(values) | Row::Sparse((_, values)) => values.len(),
        }
    }

    /// Features without a weight count as of weight 0.
    fn dot(self, weights: &[f32]) -> f64 {
        let product = |w: f32, x: f32| f64::from(w) * f64::from(x);
        match self {
            Row::Dense(values) => {
                let mut sums = [0.0; SUMS];
                let (of_weights, weights_rest) = weights.as_chunks::<SUMS>();
                let (of_values, values_rest) = values.as_chunks::<SUMS>();
                for (w, x) in of_weights.iter().zip(of_values) {
                    (0..SUMS).for_each(|i| sums[i] += product(w[i], x[i]));
                }
                let rest = weights_rest.iter().zip(values_rest).map(|(w, x)| product(*w, *x));
                sums.iter().sum::<f64>() + rest.sum::<f64>()
            }
            Row::Sparse((indices, values)) => {
                let weight = |index: u32| weights.get(index as usize).copied().unwrap_or_default();
                indices.iter().zip(values).map(|(index, x)| product(weight(*index), *x)).sum()
            }
        }
    }

    /// Shows the features below this number, and their numbers.
    #[inline(always)]
    fn for_each(self, dim: usize, mut show: impl FnMut(usize, f32)) {
        match self {
            Row::Dense(values) => (0..dim).zip(values).for_each(|(j, x)| show(j, *x)),
            Row::Sparse((indices, values)) => {
                let below = |(index, _): &(&u32, &f32)| (**index as usize) < dim;
                indices.iter().zip(values).filter(below).for_each(|(index, x)| show(*index as usize, *x));
            }
        }
    }

    /// Adds this factor times each feature, or its square, to the feature's sum.
    fn add(self, factor: f64, power: i32, sums: &mut [f64]) {
        let term = |x: f32| factor * f64::from(if power == 1 { 1.0 } else { x }) * f64::from(x);
        self.for_each(sums.len(), |j, x| sums[j] += term(x));
    }
}

/// Makes the decisions for the rows of a mini-batch, output by output and without the intercepts, minus the derivatives
/// of their weighted losses, and finds how much these bend.
struct Rows<'a> {
    mini_batch: &'a MiniBatch,
    decisions: &'a mut [f32],
    bends: &'a mut [f32],
    intercepts: &'a [f32],
}

impl ObjectiveVisitor for Rows<'_> {
    type Output = ();

    fn visit<O: Objective>(self, objective: O) {
        let Rows { mini_batch, decisions, bends, intercepts } = self;
        let (rows, mut totals) = (mini_batch.len(), Totals::default());
        let mut slopes = vec![0.0; intercepts.len()];
        for (i, bend) in bends.iter_mut().enumerate() {
            let (y, weight) = (mini_batch.labels()[i], mini_batch.weights().map_or(1.0, |weights| weights[i]));
            for (k, slope) in slopes.iter_mut().enumerate() {
                *slope = decisions[k * rows + i] + intercepts[k];
            }
            *bend = weight * objective.bend(&slopes, y);
            objective.loss_and_gradient(Portable, &mut totals, &mut slopes, y, weight);
            slopes.iter().enumerate().for_each(|(k, slope)| decisions[k * rows + i] = *slope);
        }
    }
}
