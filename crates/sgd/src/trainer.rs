//! Epochs of stochastic gradient descent.
//!
//! Guarantees: the model and the report depend on the sequence of tuples and not on how [`Trainer::learn`] got it; loss
//! and accuracy are measured on every tuple just before the model learns from it, so that no second pass over the table
//! is needed; a model or a loss that is no longer finite is an error that names the epoch.

use std::ops::Range;

use loss::averaging::Iterates;
use loss::engine::Engine;
use loss::mean::Mean;
use loss::totals::Totals;
use loss::{Collinearity, Diverged, EpochReport, Hyperparameters, ModelParameters, Solver, Standardizer};
use simd::Level;
use tuples::{Batch, OutOfMemory};

use crate::average::Theorem1;
use crate::curvature::curvature;
use crate::engines::EngineKind;

/// Learns a model from tuples that come in batches.
///
/// In every mini-batch of `batch_size` tuples (fewer at the end of an epoch) it computes g, the mean over the tuples of
/// their weights times the gradients of their losses, and makes a step: the weights shrink by 1 - η l2, the
/// [`Optimizer`] steps, and |w| is cut by η l1 towards 0. Here η is the learning rate; intercepts know no penalty. Cuts
/// of less than η/1024 are gathered over several steps until they come to that.
///
/// With [`Solver::Newton`](loss::Solver::Newton) an epoch makes one step, at its end.
///
/// For one tuple at a time, with features x, label y and decision z = w·x + b, plain SGD is w ← (1 - η l2) w - η l'(z)
/// x, b ← b - η l'(z).
#[derive(Debug)]
pub struct Trainer {
    pub(crate) hyper: Hyperparameters,
    pub(crate) sparse: bool,
    pub(crate) epoch: u32,
    rate: f64,
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) theorem: Option<Theorem1>,
    pub(crate) iterates: Option<Iterates>,
    /// of the models that the theorem or the other averaging adds
    pub(crate) mean: Option<Mean>,
    /// of the residuals of the last epoch, if the loss follows them: 1 before the first
    pub(crate) residual_scale: f64,
    /// whether it learns together with others
    pub(crate) is_replica: bool,
    /// features that l2 is not on
    pub(crate) exempt: Vec<u32>,
    /// what the epoch has come to, if it was ended elsewhere
    pub(crate) ended: Option<EndedElsewhere>,
}

/// What an epoch has come to that was ended in another process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedElsewhere {
    pub(crate) report: Result<EpochReport, Diverged>,
    pub(crate) tuples: u64,
}

impl Trainer {
    /// A trainer before its first epoch, whose model is all zeros, for tuples of `dim` features; sparse ones may have
    /// more, then it grows. `outputs` is 1, or the number of classes with softmax and networks. The hyperparameters
    /// should be [valid](Hyperparameters::validate).
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
        Ok(Trainer {
            engine: EngineKind::new(&hyper, sparse).engine(hyper, dim, outputs, sparse, level)?,
            theorem: Theorem1::new(&hyper),
            iterates: hyper.averaging.then(Iterates::default),
            mean: if hyper.has_mean() { Some(Mean::new(dim, outputs)?) } else { None },
            hyper,
            sparse,
            epoch: 0,
            rate: hyper.learning_rate,
            residual_scale: 1.0,
            is_replica: false,
            exempt: Vec::new(),
            ended: None,
        })
    }

    /// Leaves the weights of these features of sparse tuples without the penalty of l2; before the first tuples.
    pub fn exempt(mut self, features: &[u32]) -> Result<Trainer, OutOfMemory> {
        if self.sparse && self.hyper.l2 > 0.0 && !features.is_empty() {
            self.engine.exempt(features)?;
            self.exempt = allocation::copy(features);
        }
        Ok(self)
    }

    /// Begins the next epoch, whose learning rate holds from now on.
    pub fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.ended = None;
        self.engine.begin_epoch();
        if self.hyper.kind.follows_residuals() {
            self.engine.set_loss_number(self.loss_number());
        }
        if self.theorem.is_none() {
            self.set_rate(self.hyper.learning_rate_at(self.epoch));
        }
        if let Some(iterates) = &mut self.iterates {
            iterates.begin_epoch(self.engine.dim(), self.sparse);
        }
    }

    /// The number of the loss in this epoch, in units of the targets: a multiple of the scale of the residuals of the
    /// last one, if the loss follows them.
    pub fn loss_number(&self) -> f64 {
        self.hyper.loss_number * self.residual_scale
    }

    /// Of Newton's method, which features were another number than 0 in some tuple of the last epoch; None of others.
    pub fn seen(&self) -> Option<Vec<bool>> {
        self.engine.seen()
    }

    /// Begins the next buffer, of this many tuples, which are at these places of the batch's order: to be called for
    /// each buffer before learning from it. Only [`Schedule::Theorem1`] looks at it.
    ///
    /// # Errors
    /// [`OutOfMemory`]; then no buffer has begun.
    pub fn begin_buffer(&mut self, tuples: usize, batch: &Batch, places: Range<usize>) -> Result<(), OutOfMemory> {
        let curvature = self.curvature_of_buffer(batch, places.clone())?;
        self.begin_buffer_of_all((tuples, self.tuples_of_step(batch, places)), curvature);
        Ok(())
    }

    /// How much the loss of a mini-batch at these places can bend, if it is to be known: what a process that cannot
    /// wait does of [`begin_buffer_synchronized`](Trainer::begin_buffer_synchronized) first.
    pub fn curvature_of_buffer(&self, batch: &Batch, places: Range<usize>) -> Result<Option<f64>, OutOfMemory> {
        let Some(theorem) = &self.theorem else { return Ok(None) };
        if self.hyper.batch_size == 1 || !theorem.measures(self.epoch) {
            return Ok(None);
        }
        curvature(self.hyper.kind, batch, places, self.hyper.batch_size as usize).map(Some)
    }

    /// Tuples of a full mini-batch, or those of the first whole one.
    fn tuples_of_step(&self, batch: &Batch, places: Range<usize>) -> usize {
        match batch.order()[places] {
            [first, ..] if batch.has_mini_batches() => batch.mini_batch(first as usize).len(),
            _ => self.hyper.batch_size as usize,
        }
    }

    /// Begins a buffer, which has this many tuples in all processes, and this many in a full step; this is the most
    /// that a loss can bend, if it was [measured](Trainer::curvature_of_buffer).
    pub fn begin_buffer_of_all(&mut self, (tuples, of_step): (usize, usize), curvature: Option<f64>) {
        self.end_buffer();
        if let Some(theorem) = &mut self.theorem {
            theorem.begin_buffer(tuples);
            if self.is_replica && tuples > 0 {
                // of which this process may have none, and no mini-batch may be full
                theorem.learned();
            }
            theorem.measured(curvature.unwrap_or_default());
            let rate = theorem.rate_of_step(of_step);
            self.set_rate(rate);
        }
    }

    /// With [`Schedule::Theorem1`], the next step is that of this many tuples.
    pub(crate) fn expect_step_of(&mut self, tuples: usize) {
        if let Some(theorem) = &self.theorem {
            self.engine.set_rate(theorem.rate_of_step(tuples));
        }
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
        self.engine.set_rate(rate);
    }

    /// Takes the model after a buffer into the average.
    fn end_buffer(&mut self) {
        let share = self.theorem.as_mut().and_then(Theorem1::share);
        self.add_to_mean(share);
    }

    /// Takes the model as it is into the mean, if it has a share.
    fn add_to_mean(&mut self, share: Option<f64>) {
        if let (Some(mean), Some(share)) = (&mut self.mean, share) {
            self.engine.add_to(mean, share);
        }
    }

    /// Learns from the tuples at the places `range` of [`Batch::order`], in this order. Labels are -1 or 1 (logistic,
    /// svm), any number (linear, mlp_regression), or class numbers from 0 (softmax, mlp). Of [whole
    /// mini-batches](tuples::MiniBatch) each makes a step, unless others learn [together](Trainer::replica) with this
    /// trainer; then the batch size is [`Hyperparameters::WHOLE_MINI_BATCHES`].
    ///
    /// # Errors
    /// [`OutOfMemory`] if a sparse batch has more features than the trainer and there is no room for them; then nothing
    /// was learned.
    ///
    /// # Panics
    /// If the batch is of the other kind, dense or sparse, or has another number of features and is dense, the range is
    /// not within its order, no epoch has begun, or with [`Schedule::Theorem1`] no buffer.
    pub fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory> {
        assert!(range.start <= range.end && range.end <= batch.order().len(), "a range of places in the order");
        assert!(self.epoch > 0, "an epoch has begun");
        self.mean.as_mut().map_or(Ok(()), |mean| mean.reserve(batch.dim()))?;
        if let Some(theorem) = &mut self.theorem {
            assert!(theorem.has_buffer(), "a buffer has begun");
            theorem.learned();
        }
        if batch.has_mini_batches() && self.is_replica {
            return self.engine.add_mini_batches(batch, range);
        }
        if batch.has_mini_batches() {
            return range.into_iter().try_for_each(|k| {
                let tuples = batch.mini_batch(batch.order()[k] as usize).len();
                self.expect_step_of(tuples);
                self.engine.learn(batch, k..k + 1)?;
                self.learned(tuples);
                Ok(())
            });
        }
        let Range { mut start, end } = range;
        while start < end {
            let (size, pending) = (self.hyper.batch_size, self.engine.pending());
            let iterates = self.iterates.as_ref().filter(|_| !self.is_replica);
            let room = iterates.map_or(usize::MAX, |iterates| iterates.room(size, pending));
            let stop = end.min(start.saturating_add(room));
            self.engine.learn(batch, start..stop)?;
            self.learned(stop - start);
            start = stop;
        }
        Ok(())
    }

    /// Takes notice that this many tuples were learned from, for the mean of the iterates.
    /// A replica's iterate counts where it is that of all.
    fn learned(&mut self, tuples: usize) {
        if !self.is_replica {
            self.count_iterates(tuples, false);
        }
    }

    /// Counts tuples for the mean of the iterates. The model is one of them if it is time, or if it `must`.
    pub(crate) fn count_iterates(&mut self, tuples: usize, must: bool) {
        let Some(iterates) = &mut self.iterates else { return };
        let is_due = iterates.learned(tuples as u64) && self.engine.pending() == 0;
        if is_due || must {
            let share = iterates.share();
            self.add_to_mean(share);
        }
    }

    /// Ends the epoch; a mini-batch that is not full makes its step.
    ///
    /// # Errors
    /// [`Diverged`] as [`check`](Trainer::check), or if the penalty is infinite.
    pub fn end_epoch(&mut self) -> Result<EpochReport, Diverged> {
        if let Some(ended) = self.ended.take() {
            return ended.report;
        }
        if self.engine.pending() > 0 {
            self.expect_step_of(self.engine.pending());
        }
        self.engine.flush();
        self.check()?;
        self.end_buffer();
        self.count_iterates(0, true);
        let totals = self.engine.totals();
        self.follow_residuals(&totals);
        let norms = self.norms();
        let rate = self.engine.step_length().unwrap_or(self.rate);
        let report = EpochReport::new(&self.hyper, self.epoch, rate, &totals, norms);
        if report.loss.is_finite() { Ok(report) } else { Err(Diverged { epoch: self.epoch }) }
    }

    /// |w|² and |w|₁, the former of the weights that l2 is on.
    fn norms(&self) -> (f64, f64) {
        let Some(mean) = &self.mean else { return self.engine.norms() };
        let (squares, magnitudes) = mean.norms();
        (squares - mean.squares_of(&self.exempt), magnitudes)
    }

    /// As [`end_epoch`](Trainer::end_epoch), for the one that trains a model to be used: steps without a bound that
    /// have led to a loss which no model of any use has are an error, too, since that of rates never becomes infinite.
    pub fn finish_epoch(&mut self) -> Result<EpochReport, Diverged> {
        // anyone who has ended it elsewhere has looked
        let has_looked = self.ended.is_some();
        let report = self.end_epoch()?;
        // they may find back from far off in the first epoch
        let is_open = !self.hyper.bounded && self.hyper.solver == Solver::Sgd && self.epoch > 1;
        let is_loss = || self.hyper.kind.is_loss(report.loss, self.engine.totals().targets.moments().0);
        if has_looked || !is_open || is_loss() { Ok(report) } else { Err(Diverged { epoch: self.epoch }) }
    }

    /// Takes the scale of the residuals, if the loss follows it; a scale of 0 would leave no gradient.
    fn follow_residuals(&mut self, totals: &Totals) {
        let scale = (totals.cut_residuals / totals.weight).sqrt();
        // of no rows it is not a number
        if self.hyper.kind.follows_residuals() && scale > f64::from(f32::MIN_POSITIVE) {
            self.residual_scale = scale;
        }
    }

    /// Looks for a parameter or a loss that is infinite or NaN, in a time proportional to the number of features.
    ///
    /// # Errors
    /// [`Diverged`] with the current epoch.
    pub fn check(&self) -> Result<(), Diverged> {
        if self.engine.is_finite() { Ok(()) } else { Err(Diverged { epoch: self.epoch }) }
    }

    /// The model as it is now; with [`Schedule::Theorem1`] the average of the models after each buffer, with averaging
    /// the mean of the iterates up to the end of the last epoch.
    pub fn model(&self) -> Result<ModelParameters, OutOfMemory> {
        let mut model = self.engine.model()?;
        self.mean.iter().for_each(|mean| mean.replace(&mut model));
        Ok(model)
    }

    /// Whether the model is the optimum, but for rounding, so that more epochs change nothing; None if the solver
    /// cannot tell.
    pub fn has_converged(&self) -> Option<bool> {
        self.engine.has_converged()
    }

    /// Features that are combinations of others, or nearly, so that the rows of the last epoch do not tell their
    /// weights, if features are standardized like this. None are found unless the solver is Newton's method.
    pub fn collinear(&self, standardizer: Option<&Standardizer>) -> Result<Collinearity, OutOfMemory> {
        self.engine.collinear(standardizer)
    }

    /// Features that there are weights for.
    pub fn dim(&self) -> usize {
        self.engine.dim()
    }

    /// The most tuples that are worth learning from at once, if it is for the trainer to say.
    pub fn piece(&self) -> Option<usize> {
        self.engine.piece()
    }

    /// The current epoch, counted from 1; 0 before the first.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }
}
