//! Epochs of stochastic gradient descent.
//!
//! Guarantees: the model and the report depend on the sequence of tuples and not on how [`Trainer::learn`] got it; loss
//! and accuracy are measured on every tuple just before the model learns from it, so that no second pass over the table
//! is needed; a model or a loss that is no longer finite is an error that names the epoch.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tuples::{Batch, OutOfMemory};

use crate::kernels::{Learn, Level, Rates, State};
use crate::loss::{Hinge, Logistic};
use crate::{Hyperparameters, LinearModel, ModelKind};

/// What an epoch came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Counted from 1.
    pub epoch: u32,
    /// The mean over the tuples of the loss just before the step, plus the penalty l2/2 |w|² of the model at the end of
    /// the epoch. The mean over no tuples is 0.
    pub loss: f64,
    /// The fraction of tuples classified correctly just before the step, 0 of no tuples. A decision of exactly 0, such
    /// as the first one of all, counts as wrong for either class.
    /// None for linear.
    pub accuracy: Option<f64>,
    /// 1 - Σ (y - z)² / Σ (y - mean y)² over the tuples of the epoch, each before its own step; for linear only.
    pub r2: Option<f64>,
    /// The learning rate of the epoch.
    pub learning_rate: f64,
    /// Tuples learnt from.
    pub tuples: u64,
}

/// A parameter or the loss has become infinite or NaN; usually the learning rate is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the model diverged in epoch {epoch}")]
pub struct Diverged {
    /// Counted from 1.
    pub epoch: u32,
}

/// Learns a model from tuples that come in batches.
///
/// For each tuple with features x, label y of -1 or 1 and decision z = w·x + b it makes one step w ← (1 - η l2) w + η s
/// y x, b ← b + η s y, where η is the learning rate of the epoch and s is minus the derivative of the loss by the
/// margin y z: 1 / (1 + e^(y z)) for the logistic loss; 1 for the hinge loss below margin 1, else 0.
#[derive(Debug, Clone)]
pub struct Trainer {
    hyper: Hyperparameters,
    dim: usize,
    level: Level,
    epoch: u32,
    state: State,
}

impl Trainer {
    /// A trainer before its first epoch, whose model is all zeros, for tuples of `dim` features. The hyperparameters
    /// should be [valid](Hyperparameters::validate).
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub fn new(hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> Result<Trainer, OutOfMemory> {
        Trainer::with_level(hyper, dim, outputs, sparse, Level::detect())
    }

    pub(crate) fn with_level(
        hyper: Hyperparameters,
        dim: usize,
        outputs: usize,
        sparse: bool,
        level: Level,
    ) -> Result<Trainer, OutOfMemory> {
        if outputs != 1 || sparse {
            unimplemented!()
        }
        Ok(Trainer { hyper, dim, level, epoch: 0, state: State::new(dim) })
    }

    /// Begins the next buffer, of so many tuples: to be called for each buffer before learning from it. Only
    /// [`Schedule::Theorem1`](crate::Schedule::Theorem1) looks at it.
    pub fn begin_buffer(&mut self, _tuples: usize) {}

    /// Begins the next epoch, whose learning rate holds from now on.
    pub fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.state.take_totals();
    }

    /// Learns from the tuples at the places `range` of [`Batch::order`], in this order. Labels are -1 or 1.
    ///
    /// # Panics
    /// If the batch has another number of features, the range is not within its order, or no epoch has begun.
    pub fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        assert_eq!(batch.dim(), self.dim, "as many features as the trainer was made for");
        assert!(range.start <= range.end && range.end <= batch.order().len(), "a range of places in the order");
        assert!(self.epoch > 0, "an epoch has begun");
        let rates = Rates::new(self.learning_rate(), self.hyper.l2);
        let state = &mut self.state;
        match self.hyper.kind {
            ModelKind::Logistic => Learn { state, loss: Logistic::new(), rates, batch, range }.run_on(self.level),
            ModelKind::Svm => Learn { state, loss: Hinge, rates, batch, range }.run_on(self.level),
            ModelKind::Linear | ModelKind::Softmax => unimplemented!(),
        }
        Ok(())
    }

    /// Ends the epoch.
    ///
    /// # Errors
    /// [`Diverged`] as [`check`](Trainer::check), or if the penalty is infinite.
    pub fn end_epoch(&mut self) -> Result<EpochReport, Diverged> {
        self.check()?;
        let totals = self.state.take_totals();
        let mean = |sum: f64| if totals.tuples == 0 { 0.0 } else { sum / totals.tuples as f64 };
        let squares: f64 = self.state.model().weights.iter().map(|&w| f64::from(w).powi(2)).sum();
        let loss = mean(totals.loss) + self.hyper.l2 / 2.0 * squares;
        if !loss.is_finite() {
            return Err(Diverged { epoch: self.epoch });
        }
        Ok(EpochReport {
            epoch: self.epoch,
            loss,
            accuracy: self.hyper.kind.is_classifier().then(|| mean(totals.correct as f64)),
            r2: None,
            learning_rate: self.learning_rate(),
            tuples: totals.tuples,
        })
    }

    /// Looks for a parameter or a loss that is infinite or NaN, in a time proportional to the number of features.
    ///
    /// # Errors
    /// [`Diverged`] with the current epoch.
    pub fn check(&self) -> Result<(), Diverged> {
        if self.state.is_finite() { Ok(()) } else { Err(Diverged { epoch: self.epoch }) }
    }

    /// The model as it is now; with [`Schedule::Theorem1`](crate::Schedule::Theorem1) the average of the models after each
    /// buffer.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub fn model(&self) -> Result<LinearModel, OutOfMemory> {
        Ok(self.state.model())
    }

    /// The current epoch, counted from 1; 0 before the first.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    fn learning_rate(&self) -> f64 {
        self.hyper.learning_rate_at(self.epoch)
    }
}
