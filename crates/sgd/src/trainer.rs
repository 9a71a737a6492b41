//! Epochs of stochastic gradient descent.
//!
//! Guarantees: the model and the report depend on the sequence of tuples and not on how [`Trainer::learn`] got it; loss
//! and accuracy are measured on every tuple just before the model learns from it, so that no second pass over the table
//! is needed; a model or a loss that is no longer finite is an error that names the epoch.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tuples::{Batch, Matrix, OutOfMemory};

use crate::average::Theorem1;
use crate::curvature::curvature;
use crate::kernels::{Learn, Level, Rates, State};
use crate::loss::{Hinge, Logistic, OfMargin, Squared, Totals};
use crate::network::Neural;
use crate::reference::General;
use crate::{Hyperparameters, ModelKind, ModelParameters, Optimizer, Schedule};

/// What an epoch came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// Counted from 1.
    pub epoch: u32,
    /// The weighted mean over the tuples of the loss just before the step, plus the penalty l2/2 |w|² + l1 |w|₁ of the
    /// model at the end of the epoch. The mean over no tuples is 0.
    pub loss: f64,
    /// The fraction of tuples classified correctly just before the step, 0 of no tuples. A decision of exactly 0, such
    /// as the first one of all, counts as wrong for either class; with softmax so does a tie. Weights do not count.
    /// None for linear.
    pub accuracy: Option<f64>,
    /// 1 - Σ (y - z)² / Σ (y - mean y)² over the tuples of the epoch, each before its own step; for linear only.
    pub r2: Option<f64>,
    /// The learning rate of the epoch; with [`Schedule::Theorem1`] that of a full mini-batch's step in its last buffer.
    pub learning_rate: f64,
    /// Tuples learnt from.
    pub tuples: u64,
}

impl EpochReport {
    /// The report of an epoch with these totals, given |w|² and |w|₁ of the model.
    pub(crate) fn new(
        hyper: &Hyperparameters,
        epoch: u32,
        learning_rate: f64,
        totals: &Totals,
        (squares, magnitudes): (f64, f64),
    ) -> EpochReport {
        let mean = |sum: f64, over: f64| if over == 0.0 { 0.0 } else { sum / over };
        let tuples = totals.tuples as f64;
        EpochReport {
            epoch,
            loss: mean(totals.loss, totals.weight) + hyper.l2 / 2.0 * squares + hyper.l1 * magnitudes,
            accuracy: hyper.kind.is_classifier().then(|| mean(totals.correct as f64, tuples)),
            r2: (hyper.kind == ModelKind::Linear).then(|| totals.targets.r2(totals.residuals)),
            learning_rate,
            tuples: totals.tuples,
        }
    }
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
/// In every mini-batch of `batch_size` tuples (fewer at the end of an epoch) it computes g, the mean over the tuples of
/// their weights times the gradients of their losses, and makes a step: the weights shrink by 1 - η l2, the
/// [`Optimizer`] steps, and |w| is cut by η l1 towards 0. Here η is the learning rate; intercepts know no penalty. Cuts of
/// less than η/1024 are gathered over several steps until they come to that.
///
/// For one tuple at a time, with features x, label y and decision z = w·x + b, plain SGD is w ← (1 - η l2) w - η l'(z) x,
/// b ← b - η l'(z).
#[derive(Debug)]
pub struct Trainer {
    pub(crate) hyper: Hyperparameters,
    pub(crate) dim: usize,
    level: Level,
    pub(crate) epoch: u32,
    rate: f64,
    pub(crate) engine: Engine,
    pub(crate) theorem: Option<Theorem1>,
}

/// What learns.
#[derive(Debug)]
pub(crate) enum Engine {
    /// One dense tuple at a time, one output, plain SGD without l1.
    Fast(Box<State>),
    /// All other linear models.
    General(Box<General>),
    /// Hidden layers.
    Network(Box<Neural>),
}

impl Trainer {
    /// A trainer before its first epoch, whose model is all zeros, for tuples of `dim` features; sparse ones may have more,
    /// then it grows. `outputs` is 1, or the number of classes with softmax and networks. The hyperparameters should be
    /// [valid](Hyperparameters::validate).
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
        assert!(outputs == 1 || hyper.kind.has_class_numbers(), "several outputs with several classes only");
        let plain = hyper.optimizer == Optimizer::Sgd && hyper.batch_size == 1 && hyper.l1 == 0.0;
        let engine = if hyper.design.is_some() {
            Engine::Network(Box::new(Neural::new(hyper, dim, outputs, sparse, level)?))
        } else if plain && !sparse && hyper.kind != ModelKind::Softmax {
            Engine::Fast(Box::new(State::new(dim, hyper.kind)))
        } else {
            Engine::General(Box::new(General::new(hyper, dim, outputs, sparse, level)?))
        };
        let mut theorem = match hyper.schedule {
            Schedule::Theorem1 { mu, a } => Some(Theorem1::new(mu, a, &hyper, outputs)),
            _ => None,
        };
        theorem.as_mut().map_or(Ok(()), |theorem: &mut Theorem1| theorem.reserve(dim))?;
        Ok(Trainer { hyper, dim, level, epoch: 0, rate: hyper.learning_rate, engine, theorem })
    }

    /// A trainer after this epoch.
    pub(crate) fn of(hyper: Hyperparameters, dim: usize, level: Level, epoch: u32, engine: Engine) -> Trainer {
        Trainer { hyper, dim, level, epoch, rate: hyper.learning_rate, engine, theorem: None }
    }

    /// Begins the next epoch, whose learning rate holds from now on.
    pub fn begin_epoch(&mut self) {
        self.epoch += 1;
        match &mut self.engine {
            Engine::Fast(state) => state.begin_epoch(),
            Engine::General(general) => general.begin_epoch(),
            Engine::Network(network) => network.begin_epoch(),
        }
        if self.theorem.is_none() {
            self.set_rate(self.hyper.learning_rate_at(self.epoch));
        }
    }

    /// Begins the next buffer, of so many tuples, which are at these places of the batch's order: to be called for each buffer
    /// before learning from it. Only [`Schedule::Theorem1`] looks at it.
    ///
    /// # Errors
    /// [`OutOfMemory`]; then no buffer has begun.
    pub fn begin_buffer(&mut self, tuples: usize, batch: &Batch, places: Range<usize>) -> Result<(), OutOfMemory> {
        let curvature = self.measure(batch, places.clone())?;
        self.begin_measured(tuples, self.tuples_of_step(batch, places), curvature);
        Ok(())
    }

    /// How much the loss of a mini-batch at these places can bend, if it is to be known.
    pub(crate) fn measure(&self, batch: &Batch, places: Range<usize>) -> Result<Option<f64>, OutOfMemory> {
        let Some(theorem) = &self.theorem else { return Ok(None) };
        if self.hyper.batch_size == 1 || !theorem.measures(self.epoch) {
            return Ok(None);
        }
        curvature(self.hyper.kind, batch, places, self.hyper.batch_size as usize).map(Some)
    }

    /// Tuples of a full mini-batch, or those of the first block.
    fn tuples_of_step(&self, batch: &Batch, places: Range<usize>) -> usize {
        match batch.order()[places] {
            [first, ..] if batch.has_mini_batches() => batch.mini_batch(first as usize).len(),
            _ => self.hyper.batch_size as usize,
        }
    }

    /// Begins a buffer whose curvature was measured, or need not be.
    pub(crate) fn begin_measured(&mut self, tuples: usize, of_step: usize, curvature: Option<f64>) {
        self.end_buffer();
        if let Some(theorem) = &mut self.theorem {
            theorem.begin_buffer(tuples);
            theorem.measured(curvature.unwrap_or_default());
            let rate = theorem.rate_of_step(of_step);
            self.set_rate(rate);
        }
    }

    /// With [`Schedule::Theorem1`], the next step is that of so many tuples.
    pub(crate) fn expect_step_of(&mut self, tuples: usize) {
        if let (Some(theorem), Engine::General(general)) = (&self.theorem, &mut self.engine) {
            general.set_rate(theorem.rate_of_step(tuples));
        }
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
        match &mut self.engine {
            Engine::Fast(_) => {}
            Engine::General(general) => general.set_rate(rate),
            Engine::Network(network) => network.set_rate(rate),
        }
    }

    /// Takes the model after a buffer into the average.
    fn end_buffer(&mut self) {
        let Some(theorem) = self.theorem.as_mut().filter(|theorem| theorem.is_due()) else { return };
        match &mut self.engine {
            Engine::Fast(state) => {
                let ModelParameters { weights, intercepts, .. } = state.model();
                theorem.add([(weights.into_iter(), intercepts[0])].into_iter());
            }
            Engine::General(general) => {
                general.apply_pending();
                theorem.add(general.outputs());
            }
            Engine::Network(_) => unreachable!("networks have other schedules"),
        }
    }

    /// Learns from the tuples at the places `range` of [`Batch::order`], in this order. Labels are -1 or 1 (logistic, svm),
    /// any number (linear), or class numbers from 0 (softmax, mlp). Of [mini_batches](tuples::MiniBatch), each is a mini-batch; then the
    /// batch size is [`Hyperparameters::WHOLE_MINI_BATCHES`].
    ///
    /// # Errors
    /// [`OutOfMemory`] if a sparse batch has more features than the trainer and there is no room for them; then nothing
    /// was learned.
    ///
    /// # Panics
    /// If the batch is of the other kind, dense or sparse, or has another number of features and is dense, the range is not
    /// within its order, no epoch has begun, or with [`Schedule::Theorem1`] no buffer.
    pub fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        assert!(range.start <= range.end && range.end <= batch.order().len(), "a range of places in the order");
        assert!(self.epoch > 0, "an epoch has begun");
        if let Some(theorem) = &mut self.theorem {
            assert!(theorem.has_buffer(), "a buffer has begun");
            theorem.reserve(batch.dim())?;
            theorem.learned();
        }
        if batch.has_mini_batches() && self.theorem.is_some() {
            return range.into_iter().try_for_each(|k| self.learn_block(batch, k));
        }
        let level = self.level;
        let state = match &mut self.engine {
            Engine::Fast(state) => state,
            Engine::General(general) => {
                assert_eq!(batch.is_sparse(), general.head.sparse(), "dense or sparse as the trainer");
                assert!(batch.is_sparse() || batch.dim() == self.dim, "as many features as the trainer was made for");
                return general.learn(batch, range);
            }
            Engine::Network(network) => return network.learn(batch, range),
        };
        assert!(!batch.is_sparse() && batch.dim() == self.dim, "as many features as the trainer was made for");
        let rates = Rates::new(self.rate, self.hyper.l2);
        match self.hyper.kind {
            ModelKind::Logistic => {
                Learn { state, loss: OfMargin(Logistic::new()), rates, batch, range }.run_on(level);
            }
            ModelKind::Svm => Learn { state, loss: OfMargin(Hinge), rates, batch, range }.run_on(level),
            ModelKind::Linear => Learn { state, loss: Squared, rates, batch, range }.run_on(level),
            ModelKind::Softmax | ModelKind::Mlp => unreachable!("another engine learns it"),
        }
        Ok(())
    }

    /// Learns from the block at place `k` of the order, at the rate of as many tuples.
    fn learn_block(&mut self, batch: &Batch, k: usize) -> Result<(), OutOfMemory> {
        self.expect_step_of(batch.mini_batch(batch.order()[k] as usize).len());
        match &mut self.engine {
            Engine::General(general) => general.learn(batch, k..k + 1),
            Engine::Fast(_) | Engine::Network(_) => {
                unreachable!("blocks are mini-batches, and networks have other schedules")
            }
        }
    }

    /// Learns from a mini-batch whose features are a matrix, as a whole: a network makes one step, whatever the batch size.
    ///
    /// # Errors
    /// [`OutOfMemory`]; then nothing was learned.
    ///
    /// # Panics
    /// If the model is linear, no epoch has begun, there are not as many labels and weights as rows, or fewer columns than
    /// features.
    pub fn learn_matrix(
        &mut self,
        features: &dyn Matrix,
        labels: &[f32],
        weights: Option<&[f32]>,
    ) -> Result<(), OutOfMemory> {
        assert!(self.epoch > 0, "an epoch has begun");
        let Engine::Network(network) = &mut self.engine else { panic!("a network") };
        network.learn_matrix(features, labels, weights)
    }

    /// Ends the epoch; a mini-batch that is not full makes its step.
    ///
    /// # Errors
    /// [`Diverged`] as [`check`](Trainer::check), or if the penalty is infinite.
    pub fn end_epoch(&mut self) -> Result<EpochReport, Diverged> {
        if let Engine::General(general) = &self.engine
            && general.head.pending > 0
        {
            self.expect_step_of(general.head.pending as usize);
        }
        match &mut self.engine {
            Engine::Fast(_) => {}
            Engine::General(general) => general.flush(),
            Engine::Network(network) => network.flush(),
        }
        self.check()?;
        self.end_buffer();
        let (totals, norms) = match &mut self.engine {
            Engine::Fast(state) => (state.totals(), norms(&state.model())),
            Engine::General(general) => (general.head.totals, general.norms()),
            Engine::Network(network) => (network.totals, network.norms()),
        };
        let norms = self.theorem.as_ref().map_or(norms, Theorem1::norms);
        let report = EpochReport::new(&self.hyper, self.epoch, self.rate, &totals, norms);
        if report.loss.is_finite() { Ok(report) } else { Err(Diverged { epoch: self.epoch }) }
    }

    /// Looks for a parameter or a loss that is infinite or NaN, in a time proportional to the number of features.
    ///
    /// # Errors
    /// [`Diverged`] with the current epoch.
    pub fn check(&self) -> Result<(), Diverged> {
        let finite = match &self.engine {
            Engine::Fast(state) => state.is_finite(),
            Engine::General(general) => general.is_finite(),
            Engine::Network(network) => network.is_finite(),
        };
        if finite { Ok(()) } else { Err(Diverged { epoch: self.epoch }) }
    }

    /// The model as it is now; with [`Schedule::Theorem1`] the average of the models after each buffer.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub fn model(&self) -> Result<ModelParameters, OutOfMemory> {
        let mut model = self.iterate()?;
        if let Some(theorem) = &self.theorem {
            theorem.replace(&mut model);
        }
        Ok(model)
    }

    /// The model as it is now, without averaging.
    pub(crate) fn iterate(&self) -> Result<ModelParameters, OutOfMemory> {
        match &self.engine {
            Engine::Fast(state) => Ok(state.model()),
            Engine::General(general) => general.model(),
            Engine::Network(network) => network.model(),
        }
    }

    /// Features that there are weights for.
    pub fn dim(&self) -> usize {
        match &self.engine {
            Engine::Fast(_) => self.dim,
            Engine::General(general) => general.head.dim as usize,
            Engine::Network(network) => network.dim,
        }
    }

    /// The most tuples that are worth learning from at once, if it is for the trainer to say.
    pub fn piece(&self) -> Option<usize> {
        match &self.engine {
            Engine::Fast(_) | Engine::General(_) => None,
            Engine::Network(network) => Some(network.piece()),
        }
    }

    /// The current epoch, counted from 1; 0 before the first.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }
}

/// |w|² and |w|₁.
fn norms(model: &ModelParameters) -> (f64, f64) {
    let weights = || model.weights.iter().map(|&w| f64::from(w));
    (weights().map(|w| w.powi(2)).sum(), weights().map(f64::abs).sum())
}
