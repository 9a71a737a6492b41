//! How well the rows determine the weights of a linear model: standard errors from the Hessian at the model.
//!
//! Guarantees: everything is in f64, and in the units of the features as they were before they were standardized. A
//! weight that the rows do not determine, because its feature is a combination of others, be it but for the rounding of
//! features to f32, is 0 without a standard error, and the others are those of a model without that feature: so a
//! column of categories is compared with its first one that does not decide the label. It prevents standard errors of
//! nothing but rounding, or infinite ones.
//!
//! For a loss that is a negative log likelihood, the inverse of the Hessian of its sum over the rows is the covariance
//! of the weights (McCullagh and Nelder, Generalized Linear Models, 2.5); half the squared error is one but for the
//! variance of the targets, which is estimated by the squared errors over the rows less the weights.

use std::ops::Range;

use loss::{Collinearity, ModelKind, ModelParameters, Solver, Standardizer};
use simd::Level;
use tuples::pause::pause;
use tuples::{Batch, OutOfMemory};

use super::PER_PAUSE;
use super::cholesky::Cholesky;
use super::descent::penalty;
use super::sums::Sums;

/// The rows that a model is compared with, while they arrive.
#[derive(Debug)]
pub struct Inference {
    l2: f64,
    /// features that it is not on, ascending
    exempt: Vec<u32>,
    sums: Sums,
    /// the weights, and behind them the intercept
    point: Vec<f64>,
    /// the largest absolute value of each feature, and behind them 1
    extents: Vec<f64>,
    /// the rows in which each feature is above 0, by whether the target is so too; rows in which it is below count as
    /// both
    targets: Vec<[u64; 2]>,
    /// rows that weigh something
    rows: u64,
}

/// What the weights of rows say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// How often each row was observed: of weight 2 it is two rows. There are as many rows as the weights add up to.
    Frequencies,
    /// How precise each row is, as in weighted least squares: the variance of its target is inverse to its weight. Only
    /// how weights compare counts, and there are as many rows as have one above 0.
    Precisions,
}

/// A weight, or the intercept, as far as rows determine it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The number itself, in the units of the data.
    pub value: f64,
    /// Its standard error; None if the feature is a combination of others.
    pub std_error: Option<f64>,
}

/// What all rows say.
#[derive(Debug)]
pub struct Estimates {
    /// By feature; the intercept is the last.
    pub all: Vec<Estimate>,
    /// Of a loss whose size says how far targets spread: rows less weights, the degrees of freedom of Student's
    /// distribution. None where the normal distribution is to be taken.
    pub freedom: Option<f64>,
    /// The feature whose weight is furthest from that of the least loss on these rows, in its standard errors, and how
    /// far that is.
    pub furthest: (usize, f64),
    /// The features whose weights are infinite where the loss is least, as far as rows can show that.
    pub infinite: Vec<usize>,
    /// The features that are nearly combinations of others, and a lower bound of the condition number.
    pub collinear: Collinearity,
}

/// Where a loss only falls towards its limit, as e^z does, Newton's step moves decisions by 1 however far the weights
/// are; at a least value it is not.
const ENDLESS: f64 = 0.5;

/// A step of this many standard errors is not one to a least value that rows determine.
const AT_LEAST: f64 = 0.01;

impl Inference {
    /// No rows yet, for a model that was trained with this penalty on all features but these, which ascend. Rows are
    /// standardized if the model is for such.
    ///
    /// # Panics
    /// If the loss is not [smooth](ModelKind::is_smooth), or there are more than [`Solver::MAX_FEATURES`].
    pub fn new(
        kind: ModelKind,
        model: &ModelParameters,
        (l2, exempt): (f64, Vec<u32>),
        sparse: bool,
    ) -> Result<Inference, OutOfMemory> {
        assert!(kind.is_smooth() && model.dim <= Solver::MAX_FEATURES, "a model with a Hessian");
        let sums = Sums::new(kind, model.dim, sparse, Level::detect())?;
        let point = model.weights.iter().chain(&model.intercepts).map(|w| f64::from(*w)).collect();
        let mut extents = allocation::try_zeros(model.dim + 1)?;
        extents[model.dim] = 1.0;
        let targets = allocation::try_zeros(model.dim)?;
        Ok(Inference { l2, exempt, sums, point, extents, targets, rows: 0 })
    }

    /// Adds all tuples of a batch, whose labels are as in training but not scaled.
    ///
    /// # Panics
    /// If the batch has other features than the model.
    pub fn add(&mut self, batch: &Batch) {
        let dim = self.sums.dim() + 1;
        for places in batch.order().chunks((PER_PAUSE / (dim * dim)).max(1)) {
            pause();
            self.sums.add(batch, places, &self.point);
        }
        let weighs = |place: &&u32| batch.weight(**place as usize) > 0.0;
        self.rows += batch.order().iter().filter(weighs).count() as u64;
        let extend = |extent: &mut f64, x: f32| *extent = extent.max(f64::from(x).abs());
        for &place in batch.order() {
            let (place, weighs) = (place as usize, weighs(&&place));
            for (j, x) in batch.entries(place) {
                extend(&mut self.extents[j], x);
                if x != 0.0 && weighs {
                    let is_positive = batch.label(place) > 0.0;
                    self.targets[j][0] += u64::from(!is_positive || x < 0.0);
                    self.targets[j][1] += u64::from(is_positive || x < 0.0);
                }
            }
        }
    }

    /// Rows that were added.
    pub fn tuples(&self) -> u64 {
        self.sums.totals().tuples
    }

    /// What the rows that were added weigh together.
    pub fn weight(&self) -> f64 {
        self.sums.totals().weight
    }

    /// What the rows say of the weights of standardized features, or of plain ones without a standardizer. The features
    /// are those of `columns`, one upon the other. Of features that depend on each other the later ones are left out,
    /// and of a column of categories the first one that some row has, and not with one label only: it is the one that
    /// the others are compared with. By one that decides the label nothing can be compared.
    pub fn finish(
        self,
        standardizer: Option<&Standardizer>,
        columns: &[Range<usize>],
        weighting: Weighting,
    ) -> Result<Estimates, OutOfMemory> {
        let dim = self.sums.dim();
        let (weight, counted) = (self.weight(), self.rows as f64);
        let (rows, unit) = match weighting {
            Weighting::Frequencies => (weight, 1.0),
            Weighting::Precisions => (counted, if weight > 0.0 { counted / weight } else { 0.0 }),
        };
        // the intercept first, and of each column what may be left out last
        let sequence = columns.iter().flat_map(|column| {
            let is_there = |place: &usize| self.sums.hessian(*place, *place) > 0.0;
            let compares = |place: &usize| is_there(place) && !self.decides(*place);
            let last = column.clone().find(compares).or_else(|| column.clone().find(is_there)).unwrap_or(column.start);
            column.clone().filter(move |place| *place != last).chain(column.contains(&last).then_some(last))
        });
        let places: Vec<usize> = [dim].into_iter().chain(sequence).collect();
        assert_eq!(places.len(), dim + 1, "each feature once");
        let penalty = |place: usize| rows * penalty(self.l2, &self.exempt, place, dim);
        let plain = |i: usize, j: usize| unit * self.sums.hessian(places[i], places[j]);
        let mut equations = Cholesky::new(dim + 1)?;
        let element = |i: usize, j: usize| plain(i, j) + if i == j { penalty(places[i]) } else { 0.0 };
        equations.factor(element);
        let rounding = |i: usize| if i > 0 { unit * self.sums.rounding(places[i], standardizer) } else { 0.0 };
        let collinear = equations.collinear(element, rounding);
        let rounded = collinear.iter().filter(|found| found.is_rounding && equations.keeps(found.unknown));
        let rounded: Vec<usize> = rounded.map(|found| found.unknown).collect();
        if !rounded.is_empty() {
            equations.factor_without(element, &rounded);
        }
        // of a column of several features, one depends on the others whatever the rows are
        let is_alone = |place: usize| columns.iter().any(|column| *column == (place..place + 1));
        let collinear = collinear.into_iter().map(|found| (places[found.unknown], found.share));
        let collinear = Collinearity::of(collinear.filter(|(place, _)| is_alone(*place)));
        let rank = (0..=dim).filter(|i| equations.keeps(*i)).count();
        let freedom = self.sums.has_dispersion().then_some(rows - rank as f64);
        // of as many weights as rows nothing is known
        let dispersion =
            freedom.map_or(
                1.0,
                |freedom| if freedom > 0.0 { 2.0 * unit * self.sums.totals().loss / freedom } else { f64::NAN },
            );
        let covariance = Covariance { equations: &equations, plain: &plain, penalised: self.l2 > 0.0, dispersion };
        let values = self.without_aliases(&equations, &places, unit);
        let scale = |place: usize| standardizer.and_then(|s| s.scale.get(place).copied()).unwrap_or(1.0);
        let mean = |place: usize| standardizer.and_then(|s| s.mean.get(place).copied()).unwrap_or(0.0);
        let mut all = vec![Estimate { value: 0.0, std_error: None }; dim + 1];
        let (mut at_zero, mut contrast) = (0.0, vec![0.0; dim + 1]);
        let (mut furthest, mut infinite) = ((dim, 0.0), Vec::new());
        let step = self.step(&equations, &places, (&penalty, unit));
        for (i, &place) in places.iter().enumerate() {
            pause();
            let mut unit = vec![0.0; dim + 1];
            unit[i] = 1.0;
            let std_error = equations.keeps(i).then(|| covariance.of(unit).sqrt());
            if let Some(std_error) = std_error.filter(|error| *error > 0.0) {
                let distance = (step[i] / std_error).abs();
                let moves = (step[i] * self.extents[place]).abs();
                let is_endless = !self.sums.has_dispersion() && moves > ENDLESS && distance < AT_LEAST;
                if is_endless || (place < dim && penalty(place) == 0.0 && self.decides(place)) {
                    infinite.push(place);
                } else if distance > furthest.1 {
                    furthest = (place, distance);
                }
            }
            if place == dim {
                (contrast[i], at_zero) = (1.0, at_zero + values[i]);
                continue;
            }
            contrast[i] = -mean(place) / scale(place);
            at_zero += values[i] * contrast[i];
            let std_error = std_error.map(|error| error / scale(place));
            all[place] = Estimate { value: values[i] / scale(place), std_error };
        }
        let std_error = equations.keeps(0).then(|| covariance.of(contrast).sqrt());
        all[dim] = Estimate { value: at_zero, std_error };
        Ok(Estimates { all, freedom, furthest, infinite, collinear })
    }

    /// Does this feature decide the label, so that the loss falls without end as its weight grows? It is never below 0,
    /// and where it is above, there is always the same class, or nothing was counted.
    fn decides(&self, place: usize) -> bool {
        let [other, positive] = self.targets[place];
        !self.sums.has_dispersion() && (positive == 0 || (self.sums.has_classes() && other == 0))
    }

    /// The weights, in the sequence of the equations, of the same model without the features that depend on others.
    fn without_aliases(&self, equations: &Cholesky, places: &[usize], unit: f64) -> Vec<f64> {
        let count = places.len();
        let mut values: Vec<f64> = places.iter().map(|place| self.point[*place]).collect();
        let dropped: Vec<usize> = (0..count).filter(|i| !equations.keeps(*i)).collect();
        if dropped.is_empty() {
            return values;
        }
        let hessian = |i: usize, j: usize| unit * self.sums.hessian(places[i], places[j]);
        let decided = |i: usize| dropped.iter().map(|j| hessian(i, *j) * values[*j]).sum();
        let mut moved: Vec<f64> = (0..count).map(decided).collect();
        equations.solve(&mut moved);
        for (i, (value, moved)) in values.iter_mut().zip(moved).enumerate() {
            *value = if equations.keeps(i) { *value + moved } else { 0.0 };
        }
        values
    }

    /// Newton's step from the model, in the sequence of the equations.
    fn step(&self, equations: &Cholesky, places: &[usize], (penalty, unit): (&impl Fn(usize) -> f64, f64)) -> Vec<f64> {
        let gradient = |place: &usize| -(unit * self.sums.gradient(*place) + penalty(*place) * self.point[*place]);
        let mut step: Vec<f64> = places.iter().map(gradient).collect();
        equations.solve(&mut step);
        step
    }
}

/// The covariance of the weights.
struct Covariance<'a, F> {
    equations: &'a Cholesky,
    /// the Hessian without the penalty
    plain: &'a F,
    penalised: bool,
    dispersion: f64,
}

impl<F: Fn(usize, usize) -> f64> Covariance<'_, F> {
    /// The variance of a sum of weights with these factors. With a penalty, A⁻¹ H A⁻¹ takes the place of H⁻¹, where A
    /// is the Hessian with the penalty: the variance of what is estimated, whose bias no one knows.
    fn of(&self, mut factors: Vec<f64>) -> f64 {
        if !self.penalised {
            self.equations.solve_lower(&mut factors);
            return self.dispersion * factors.iter().map(|x| x * x).sum::<f64>();
        }
        self.equations.solve(&mut factors);
        let row = |i: usize| factors.iter().enumerate().map(|(j, x)| (self.plain)(i, j) * x).sum::<f64>();
        self.dispersion * (0..factors.len()).map(|i| factors[i] * row(i)).sum::<f64>()
    }
}
