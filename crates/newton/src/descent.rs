//! The steps between the passes.
//!
//! A step is Newton's, w - H⁻¹g. The pass after it tells the objective there. If that is not below what it was by a
//! part of what the gradient promised (Armijo's condition), the step is shortened to where a parabola through what is
//! known has its least value, and the next pass tries that (Nocedal and Wright, Numerical Optimization, 3.5). The
//! objective is convex, so that this ends.

use bytemuck::{Pod, Zeroable};
use loss::bytes::Coder;
use loss::{Collinearity, Standardizer};
use tuples::OutOfMemory;

use super::cholesky::Cholesky;
use super::sums::Sums;

/// Where the passes have come to.
#[derive(Debug)]
pub(crate) struct Descent {
    l2: f64,
    /// features that it is not on, ascending
    exempt: Vec<u32>,
    /// the weights, and behind them the intercept
    point: Vec<f64>,
    /// |w|² and |w|₁ of the point that the last pass has looked at
    norms: (f64, f64),
    step: Option<Step>,
    converged: bool,
    equations: Cholesky,
}

/// A step that the next pass judges.
#[derive(Debug)]
struct Step {
    from: Vec<f64>,
    direction: Vec<f64>,
    objective: f64,
    /// the derivative of the objective along the direction
    slope: f64,
    length: f64,
    /// of the rows that the objective is about
    rows: Rows,
}

/// What tells rows from others: a step that was planned over other rows cannot be judged.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Rows {
    tuples: f64,
    weight: f64,
    mean_target: f64,
    deviation: f64,
}

impl Rows {
    fn of(sums: &Sums) -> Rows {
        let totals = sums.totals();
        let (mean_target, variance) = totals.targets.moments();
        Rows { tuples: totals.tuples as f64, weight: totals.weight, mean_target, deviation: variance.sqrt() }
    }

    /// Are they the same, but for the order in which they were added up?
    fn are(&self, other: &Rows) -> bool {
        let unit = self.deviation + self.mean_target.abs();
        self.tuples == other.tuples
            && (self.weight - other.weight).abs() <= 1e-9 * self.weight
            && (self.mean_target - other.mean_target).abs() <= 1e-9 * unit
            && (self.deviation - other.deviation).abs() <= 1e-9 * unit
    }
}

/// The part of what the gradient promises that a step has to keep.
const SUFFICIENT: f64 = 1e-4;

/// What a sum over many tuples may be off by rounding, relatively.
const ROUNDING: f64 = 1e-12;

/// A step that is shorter than this is lost in rounding.
const SHORTEST: f64 = 1e-8;

/// A step whose square, in units of the standard errors, is below this is the last: the next one would be its square.
const NEGLIGIBLE: f64 = 1e-10;

impl Descent {
    /// From weights that are 0; of a logarithmic link, from the best constant.
    pub(crate) fn new(l2: f64, dim: usize) -> Result<Descent, OutOfMemory> {
        let equations = Cholesky::new(dim + 1)?;
        Ok(Descent {
            l2,
            exempt: Vec::new(),
            point: allocation::try_zeros(dim + 1)?,
            norms: (0.0, 0.0),
            step: None,
            converged: false,
            equations,
        })
    }

    /// Leaves the weights of these features, which ascend, without the penalty.
    pub(crate) fn exempt(&mut self, features: &[u32]) {
        self.exempt = allocation::copy(features);
    }

    /// Begins at these weights and, behind them, this intercept.
    pub(crate) fn begin_at<'a>(&mut self, point: impl Iterator<Item = &'a f32>) {
        self.point.iter_mut().zip(point).for_each(|(w, given)| *w = f64::from(*given));
    }

    /// The weights, and behind them the intercept.
    pub(crate) fn point(&self) -> &[f64] {
        &self.point
    }

    /// Whether the last step was so small that the next one would be lost in rounding.
    pub(crate) fn has_converged(&self) -> bool {
        self.converged
    }

    /// Whether nothing is known yet.
    fn is_at_start(&self) -> bool {
        self.step.is_none() && !self.converged && self.point.iter().all(|w| *w == 0.0)
    }

    /// The length of the step that was made last, as a share of Newton's; 1 before the first.
    pub(crate) fn length(&self) -> f64 {
        self.step.as_ref().map_or(1.0, |step| step.length)
    }

    /// |w|² and |w|₁ of the point that the last pass has looked at.
    pub(crate) fn norms(&self) -> (f64, f64) {
        self.norms
    }

    /// Takes notice that there are this many features; new ones have had the weight 0.
    pub(crate) fn grow(&mut self, dim: usize) -> Result<(), OutOfMemory> {
        self.equations = Cholesky::new(dim + 1)?;
        let insert = |numbers: &mut Vec<f64>| {
            let intercept = numbers.pop().unwrap_or_default();
            allocation::resize(numbers, dim, 0.0);
            allocation::push(numbers, intercept);
        };
        insert(&mut self.point);
        if let Some(step) = &mut self.step {
            insert(&mut step.from);
            insert(&mut step.direction);
        }
        Ok(())
    }

    /// Makes a step, given what a pass has found at the point. Without tuples there is no step.
    pub(crate) fn step(&mut self, sums: &mut Sums) {
        let dim = sums.dim();
        if sums.totals().weight > 0.0
            && self.is_at_start()
            && let Some(intercept) = sums.move_to_constant()
        {
            self.point[dim] = intercept;
        }
        let sums = &*sums;
        let (l2, exempt) = (self.l2, allocation::copy(&self.exempt));
        let exempt = &exempt[..];
        let is_on = |place: &usize| l2 == 0.0 || penalty(l2, exempt, *place, dim) > 0.0;
        self.norms = loss::engine::norms((0..dim).filter(is_on).map(|place| self.point[place]));
        let tuples = sums.totals().tuples as f64;
        if tuples == 0.0 || self.converged {
            return;
        }
        let mean_loss = sums.totals().loss / tuples;
        let objective = mean_loss + self.l2 / 2.0 * self.norms.0;
        let rows = Rows::of(sums);
        if self.shorten(objective, &rows) {
            return;
        }
        let gradient = |i: usize| sums.gradient(i) / tuples + penalty(l2, exempt, i, dim) * self.point[i];
        let mut solution: Vec<f64> = allocation::collect((0..=dim).map(|i| -gradient(place(i, dim))));
        self.equations.factor(hessian(sums, (l2, exempt)));
        self.equations.solve(&mut solution);
        let direction: Vec<f64> = allocation::collect((0..=dim).map(|i| solution[(i + 1) % (dim + 1)]));
        let slope: f64 = direction.iter().enumerate().map(|(i, d)| d * gradient(i)).sum();
        let unit = if sums.has_dispersion() { 2.0 * mean_loss } else { 1.0 };
        // where the model says all targets, errors are those of rounding, and no unit of anything
        let is_exact = sums.has_dispersion() && objective <= ROUNDING * ROUNDING * squared_targets(sums);
        let is_least = -slope * tuples <= NEGLIGIBLE * unit || -slope <= ROUNDING * ROUNDING * objective;
        self.converged = is_least || is_exact;
        let from = allocation::copy(&self.point);
        self.point.iter_mut().zip(&direction).for_each(|(w, d)| *w += d);
        self.step = Some(Step { from, direction, objective, slope, length: 1.0, rows });
    }

    /// Features that are combinations of others, or nearly, given what a pass has found at the point.
    pub(crate) fn collinear(
        &self,
        sums: &Sums,
        standardizer: Option<&Standardizer>,
    ) -> Result<Collinearity, OutOfMemory> {
        let (dim, tuples) = (sums.dim(), sums.totals().tuples as f64);
        let mut equations = Cholesky::new(dim + 1)?;
        equations.factor(hessian(sums, (self.l2, &self.exempt)));
        let rounding = |i: usize| if i > 0 { sums.rounding(place(i, dim), standardizer) / tuples } else { 0.0 };
        let found = equations.collinear(hessian(sums, (self.l2, &self.exempt)), rounding);
        Ok(Collinearity::of(found.into_iter().map(|found| (place(found.unknown, dim), found.share))))
    }

    /// Shortens the last step if it has led to an objective that is too large; whether that was done.
    fn shorten(&mut self, objective: f64, rows: &Rows) -> bool {
        let Some(step) = self.step.as_mut().filter(|step| step.rows.are(rows)) else { return false };
        let enough = step.objective + SUFFICIENT * step.length * step.slope + ROUNDING * step.objective.abs();
        if objective <= enough || step.length < SHORTEST {
            return false;
        }
        // the parabola through the objective and its slope at the start, and the objective here
        let bend = objective - step.objective - step.length * step.slope;
        let least = -step.slope * step.length * step.length / (2.0 * bend);
        let shortest = 0.1 * step.length;
        step.length = if least.is_finite() { least.clamp(shortest, 0.5 * step.length) } else { shortest };
        for ((w, from), direction) in self.point.iter_mut().zip(&step.from).zip(&step.direction) {
            *w = from + step.length * direction;
        }
        true
    }

    /// Writes or reads everything that the next pass goes on from. Whether it is the optimum is for that pass to find
    /// out: it may be one over other rows.
    pub(crate) fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        let mut steps = u64::from(self.step.is_some());
        coder.value(&mut steps)?;
        coder.finite(&mut self.point)?;
        if steps == 1 {
            let count = self.point.len();
            let step = self.step.get_or_insert_with(|| Step {
                from: allocation::zeros(count),
                direction: allocation::zeros(count),
                objective: 0.0,
                slope: 0.0,
                length: 0.0,
                rows: Rows::zeroed(),
            });
            let numbers = [&mut step.objective, &mut step.slope, &mut step.length].map(std::slice::from_mut);
            numbers
                .into_iter()
                .chain([&mut step.from[..], &mut step.direction])
                .try_for_each(|all| coder.finite(all))?;
            coder.value(&mut step.rows)?;
        }
        (steps <= 1).then_some(())
    }
}

/// Which weight, of this many, is number `i` of the equations: the intercept comes first, so that features which say
/// the same as it are those that are left out.
fn place(i: usize, dim: usize) -> usize {
    i.checked_sub(1).unwrap_or(dim)
}

/// The penalty on this of `dim` weights, where `l2` is on all but `exempt`, which ascend. It is never on the intercept.
pub(crate) fn penalty(l2: f64, exempt: &[u32], place: usize, dim: usize) -> f64 {
    let is_exempt = place >= dim || exempt.binary_search(&(place as u32)).is_ok();
    if is_exempt { 0.0 } else { l2 }
}

/// The Hessian of the objective, in the sequence of the equations.
fn hessian(sums: &Sums, (l2, exempt): (f64, &[u32])) -> impl Fn(usize, usize) -> f64 {
    let (dim, tuples) = (sums.dim(), sums.totals().tuples as f64);
    let penalty = move |i| penalty(l2, exempt, place(i, dim), dim);
    move |i, j| sums.hessian(place(i, dim), place(j, dim)) / tuples + if i == j { penalty(i) } else { 0.0 }
}

/// Half the mean squared target, as much as it weighs: what errors of nothing but rounding are small compared with.
fn squared_targets(sums: &Sums) -> f64 {
    let totals = sums.totals();
    let (mean, variance) = totals.targets.moments();
    (variance + mean * mean) / 2.0 * totals.weight / totals.tuples as f64
}
