//! Newton's method as an engine: an epoch is a pass, whose end is the step.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use loss::bytes::Coder;
use loss::engine::Engine;
use loss::exchange::{Interrupted, OpenExchange, sum_of_doubles};
use loss::totals::Totals;
use loss::{Collinearity, Hyperparameters, ModelParameters, Standardizer};
use simd::Level;
use tuples::pause::pause;
use tuples::{Batch, OutOfMemory};

use super::PER_PAUSE;
use super::descent::Descent;
use super::sums::Sums;

/// Newton's method for a loss of one decision.
#[derive(Debug)]
pub struct NewtonEngine {
    sums: Sums,
    descent: Descent,
}

impl NewtonEngine {
    /// Before the first pass, with weights that are 0.
    pub fn new(hyper: Hyperparameters, dim: usize, sparse: bool, level: Level) -> Result<NewtonEngine, OutOfMemory> {
        let sums = Sums::new(hyper.kind, dim, sparse, level)?;
        Ok(NewtonEngine { sums, descent: Descent::new(hyper.l2, dim)? })
    }
}

/// What a process says of its tuples before their derivatives.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Counted {
    dim: u64,
    totals: Totals,
}

impl Engine for NewtonEngine {
    fn dim(&self) -> usize {
        self.sums.dim()
    }

    fn begin_epoch(&mut self) {
        self.sums.clear();
    }

    fn exempt(&mut self, features: &[u32]) -> Result<(), OutOfMemory> {
        self.descent.exempt(features);
        Ok(())
    }

    fn set_rate(&mut self, _: f64) {}

    fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        if batch.is_sparse() && batch.dim() > self.sums.dim() {
            self.sums.grow(batch.dim())?;
            self.descent.grow(batch.dim())?;
        }
        let dim = self.sums.dim() + 1;
        for places in batch.order()[range].chunks((PER_PAUSE / (dim * dim)).max(1)) {
            pause();
            self.sums.add(batch, places, self.descent.point());
        }
        Ok(())
    }

    fn seen(&self) -> Option<Vec<bool>> {
        Some((0..self.sums.dim()).map(|i| self.sums.hessian(i, i) > 0.0).collect())
    }

    fn flush(&mut self) {
        self.descent.step(&mut self.sums);
    }

    fn is_finite(&self) -> bool {
        self.descent.point().iter().all(|w| (*w as f32).is_finite())
    }

    /// A step too far may have an infinite loss, which the next pass mends.
    fn totals(&self) -> Totals {
        let totals = self.sums.totals();
        Totals { loss: totals.loss.min(f64::MAX), ..*totals }
    }

    fn totals_mut(&mut self) -> &mut Totals {
        self.sums.totals_mut()
    }

    fn norms(&self) -> (f64, f64) {
        self.descent.norms()
    }

    fn model(&self) -> Result<ModelParameters, OutOfMemory> {
        let (dim, point) = (self.sums.dim(), self.descent.point());
        let weights = allocation::collect(point[..dim].iter().map(|w| *w as f32));
        Ok(ModelParameters { dim, outputs: 1, weights, intercepts: vec![point[dim] as f32], network: None })
    }

    fn set_model(&mut self, model: &ModelParameters) {
        self.descent.begin_at(model.weights.iter().chain(&model.intercepts));
    }

    /// Each process's own sums stay as they are until those of all have come, no matter who is stopped in between says
    /// the same once more.
    fn count_synchronized(&mut self, exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        let own: [Counted; 1] = [Counted { dim: self.sums.dim() as u64, totals: *self.sums.totals() }];
        let all = exchange.gather_all(bytemuck::cast_slice(&own))?;
        let all = all.iter().map(|words| bytemuck::pod_read_unaligned(bytemuck::cast_slice(words)));
        let all: Vec<Counted> = all.collect();
        let dim = all.iter().map(|of_one| of_one.dim as usize).max().unwrap_or(0);
        if dim > self.sums.dim() {
            self.sums.grow(dim)?;
            self.descent.grow(dim)?;
        }
        let mut derivatives = self.sums.derivatives()?;
        exchange.all_reduce(bytemuck::cast_slice_mut(&mut derivatives), &mut sum_of_doubles)?;
        self.sums.set_derivatives(&derivatives);
        let totals = self.sums.totals_mut();
        *totals = Totals::default();
        all.iter().for_each(|of_one| totals.add(&of_one.totals));
        Ok(())
    }

    fn step_length(&self) -> Option<f64> {
        Some(self.descent.length())
    }

    fn collinear(&self, standardizer: Option<&Standardizer>) -> Result<Collinearity, OutOfMemory> {
        self.descent.collinear(&self.sums, standardizer)
    }

    fn has_converged(&self) -> Option<bool> {
        Some(self.descent.has_converged())
    }

    fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        self.descent.code(coder)
    }
}
