//! What is known of a training beside its arrays: hyperparameters, sizes, and the numbers that change.
//!
//! Guarantees: a state that [`TrainerState::check`] has let pass describes a training that [`TrainerState::new`] could
//! have made, as far as its sizes and hyperparameters go; whatever its other numbers are,
//! computing with them is merely wrong.

use bytemuck::{Pod, Zeroable};

use crate::bytes::Coder;
use crate::totals::Totals;
use crate::{EpochReport, Hyperparameters, ModelKind, Optimizer, Schedule, Solver};

/// Says that bytes are a state, and of which version.
const MAGIC: u64 = u64::from_le_bytes(*b"cgpsgd03");

/// More outputs than classes could be told apart in f32 labels.
const MAX_OUTPUTS: u32 = 1 << 24;

/// The end of the list of touched features.
pub(crate) const END: u32 = u32::MAX;

/// Scalars of a training, as they are stored: plain numbers without padding.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TrainerState {
    magic: u64,
    learning_rate: f64,
    l1: f64,
    l2: f64,
    reach: f64,
    loss_number: f64,
    schedule_numbers: [f64; 2],
    optimizer_numbers: [f64; 3],
    /// features
    pub(crate) dim: u64,
    /// features that there is room for; the same as `dim` if dense
    pub(crate) capacity: u64,
    /// the learning rate now
    pub(crate) rate: f64,
    /// weights are `scale` times what the array holds: the penalty of l2 goes here. In f64, because the factor of one
    /// step may differ from 1 by less than f32 can tell
    pub(crate) scale: f64,
    /// what l1 has taken from every weight's magnitude so far, in units of the array, but for a
    /// [multiple](crate::optimizers::wrap) of what every weight's last digit is
    pub(crate) l1_applied: f64,
    /// 1 - β1^t and 1 - β2^t after t steps of adam
    pub(crate) unbiased: [f64; 2],
    /// t
    pub(crate) steps: u64,
    /// of the tuples in the pending gradient, the weights times the squares of the rows' lengths, with the constant 1;
    /// only of use if steps are bounded
    pub(crate) squares: f64,
    /// what the epoch's tuples add up to
    pub(crate) totals: Totals,
    kind: u32,
    schedule: u32,
    optimizer: u32,
    pub(crate) batch_size: u32,
    pub(crate) outputs: u32,
    sparse: u32,
    pub(crate) epoch: u32,
    /// tuples in the gradient that has not made a step yet
    pub(crate) pending: u32,
    /// sparse: steps since the last sweep
    pub(crate) time: u32,
    /// steps whose l1 penalty has not been applied yet
    pub(crate) pending_l1: u32,
    /// sparse: the first of the features that the pending gradient has touched
    pub(crate) touched: u32,
    /// whether steps are bounded
    bounded: u32,
}

/// Stands for a number of a schedule that is left open.
const NO_NUMBER: f64 = -1.0;

/// The numbers of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// by which the sum of gradients is multiplied to give their mean, or less if steps are bounded
    pub(crate) share: f32,
    /// the learning rate
    pub(crate) rate: f32,
    /// the learning rate for the array, which is to be multiplied by the scale
    pub(crate) scaled_rate: f32,
    /// how much l1 takes from the magnitudes of the array after this step; 0 for nothing
    pub(crate) cut: f64,
}

impl TrainerState {
    /// Before the first epoch. The hyperparameters are valid.
    pub(crate) fn new(hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> TrainerState {
        let (schedule, schedule_numbers) = hyper.schedule.place_and_values();
        let (optimizer, optimizer_numbers) = hyper.optimizer.place_and_values();
        let kind = ModelKind::LINEAR.iter().position(|kind| *kind == hyper.kind);
        TrainerState {
            magic: MAGIC,
            learning_rate: hyper.learning_rate,
            l1: hyper.l1,
            l2: hyper.l2,
            reach: hyper.reach,
            loss_number: hyper.loss_number,
            schedule_numbers: schedule_numbers.map(|number| number.unwrap_or(NO_NUMBER)),
            optimizer_numbers,
            dim: dim as u64,
            capacity: dim as u64,
            rate: hyper.learning_rate,
            scale: 1.0,
            kind: kind.expect("a linear model") as u32,
            schedule,
            optimizer,
            batch_size: hyper.batch_size,
            outputs: u32::try_from(outputs).unwrap_or(u32::MAX),
            sparse: u32::from(sparse),
            touched: END,
            bounded: u32::from(hyper.bounded),
            ..TrainerState::zeroed()
        }
    }

    /// Writes or reads what changes, of a training that is flushed.
    pub(crate) fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        let [first, second] = &mut self.unbiased;
        for number in [&mut self.rate, &mut self.scale, &mut self.l1_applied, first, second] {
            coder.finite(std::slice::from_mut(number))?;
        }
        [&mut self.dim, &mut self.steps].into_iter().try_for_each(|count| coder.value(count))?;
        [&mut self.time, &mut self.epoch].into_iter().try_for_each(|count| coder.value(count))?;
        if coder.is_reading() && !(self.rate > 0.0 && self.shrink() > 0.0) {
            // it is about to be that of the next epoch
            self.rate = self.learning_rate;
        }
        self.check().ok()
    }

    /// Whether this could be a state.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.magic != MAGIC {
            return Err("it does not begin like one");
        }
        let Some(hyper) = self.read_hyperparameters() else { return Err("unknown hyperparameters") };
        hyper.validate().map_err(|_| "hyperparameters out of range")?;
        let outputs = if hyper.kind.has_class_numbers() { 1..=MAX_OUTPUTS } else { 1..=1 };
        let room = if self.sparse() { self.dim <= self.capacity } else { self.dim == self.capacity };
        if !outputs.contains(&self.outputs) || self.sparse > 1 || !room {
            return Err("sizes that do not fit each other");
        }
        let sound = self.scale > 0.0 && self.scale <= 1.0 && self.pending < self.batch_size;
        // the hyperparameters see to it, unless somebody else has written the rate: a scale of 0 or less would stay so
        let shrinks = self.shrink() > 0.0 && self.shrink() <= 1.0;
        if sound && shrinks { Ok(()) } else { Err("numbers out of range") }
    }

    fn read_hyperparameters(&self) -> Option<Hyperparameters> {
        let schedule_numbers = self.schedule_numbers.map(|number| (number != NO_NUMBER).then_some(number));
        Some(Hyperparameters {
            kind: *ModelKind::LINEAR.get(self.kind as usize)?,
            learning_rate: self.learning_rate,
            schedule: Schedule::new(self.schedule, schedule_numbers)?,
            optimizer: Optimizer::new(self.optimizer, self.optimizer_numbers)?,
            batch_size: self.batch_size,
            l1: self.l1,
            l2: self.l2,
            bounded: self.bounded != 0,
            reach: self.reach,
            averaging: false,
            solver: Solver::Sgd,
            loss_number: self.loss_number,
            design: None,
        })
    }

    /// How it is trained.
    pub(crate) fn hyperparameters(&self) -> Hyperparameters {
        self.read_hyperparameters().expect("a checked state")
    }

    #[inline(always)]
    pub(crate) fn kind(&self) -> ModelKind {
        ModelKind::LINEAR[self.kind as usize]
    }

    /// The number of the loss.
    #[inline(always)]
    pub(crate) fn number(&self) -> f32 {
        self.loss_number as f32
    }

    /// Changes the number of the loss.
    pub(crate) fn set_number(&mut self, number: f64) {
        self.loss_number = number;
    }

    #[inline(always)]
    pub(crate) fn optimizer(&self) -> Optimizer {
        Optimizer::new(self.optimizer, self.optimizer_numbers).expect("a checked state")
    }

    #[inline(always)]
    pub(crate) fn is_sgd(&self) -> bool {
        self.optimizer == 0
    }

    #[inline(always)]
    pub(crate) fn sparse(&self) -> bool {
        self.sparse != 0
    }

    #[inline(always)]
    pub(crate) fn has_l1(&self) -> bool {
        self.l1 > 0.0
    }

    /// Whether features that a tuple does not touch change nevertheless, otherwise than by the scale.
    #[inline(always)]
    pub(crate) fn is_lazy(&self) -> bool {
        !self.is_sgd() || self.has_l1()
    }

    /// Whether sparse tuples are learned from one by one, and nothing changes but the weights of their features, the
    /// scale and the intercept, along the derivative of one decision.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.sparse() && !self.is_lazy() && self.batch_size == 1 && self.outputs == 1 && self.kind().is_pointwise()
    }

    #[inline(always)]
    pub(crate) fn is_bounded(&self) -> bool {
        self.bounded != 0
    }

    /// The factor that the penalty of l2 puts on the weights with every step.
    #[inline(always)]
    pub(crate) fn shrink(&self) -> f64 {
        1.0 - self.penalty_rate() * self.l2
    }

    /// What l1 takes from a weight's magnitude with every step, not counting the scale.
    #[inline(always)]
    pub(crate) fn threshold(&self) -> f64 {
        self.penalty_rate() * self.l1
    }

    /// As [`Hyperparameters::penalty_rate`], of the rate now.
    #[inline(always)]
    fn penalty_rate(&self) -> f64 {
        if self.is_bounded() { self.rate / (1.0 + self.curvature_of_step() * self.reach) } else { self.rate }
    }

    /// Begins the next epoch of a training that is flushed.
    pub(crate) fn begin_epoch(&mut self) {
        self.epoch = self.epoch.saturating_add(1);
        let hyper = self.hyperparameters();
        // that of the theorem is fixed for each buffer
        if !hyper.schedule.averages() {
            self.rate = hyper.learning_rate_at(self.epoch);
        }
        self.totals = Totals::default();
    }

    /// Counts a step of the pending gradient and returns what it consists of. The scale is that after the step.
    #[inline(always)]
    pub(crate) fn begin_step(&mut self) -> Step {
        let share = self.bounded_share(self.pending) as f32;
        self.pending = 0;
        self.squares = 0.0;
        self.steps = self.steps.saturating_add(1);
        self.time += u32::from(self.sparse());
        self.scale *= self.shrink();
        self.unbiased = self.optimizer().count_step(self.unbiased);
        let mut cut = 0.0;
        if self.has_l1() {
            self.pending_l1 += 1;
            // going through all weights takes time: penalties are gathered until they are a thousandth of the
            // learning rate, which is little beside a step (Langford et al. call the number of steps K)
            if self.l1 * f64::from(self.pending_l1) > MIN_L1_STEP {
                cut = self.take_pending_l1();
            }
        }
        let scaled_rate = (self.rate / self.scale) as f32;
        Step { share, rate: self.rate as f32, scaled_rate, cut }
    }

    /// The same for one tuple of a [plain](TrainerState::is_plain) training.
    #[inline(always)]
    pub(crate) fn begin_plain_step(&mut self) -> Step {
        self.steps = self.steps.saturating_add(1);
        self.time += 1;
        self.scale *= self.shrink();
        Step { share: 1.0, rate: self.rate as f32, scaled_rate: (self.rate / self.scale) as f32, cut: 0.0 }
    }

    /// How much the loss bends along a step of the whole rate, at most, if |x|² is 1.
    #[inline(always)]
    pub(crate) fn curvature_of_step(&self) -> f64 {
        self.rate * self.optimizer().steps_in_the_end() * self.kind().curvature()
    }

    /// What the sum of the gradients of so many tuples is to be multiplied by: 1 / tuples, or less if steps are
    /// bounded. Along the mean gradient the loss bends by curvature * mean square at most;
    /// momentum goes 1 / (1 - β) times as far in the end.
    #[inline(always)]
    pub(crate) fn bounded_share(&self, tuples: u32) -> f64 {
        let tuples = f64::from(tuples.max(1));
        if !self.is_bounded() {
            return 1.0 / tuples;
        }
        1.0 / (tuples + self.curvature_of_step() * self.squares)
    }

    /// Bounds the gradient of a tuple whose step is made alone.
    #[inline(always)]
    pub(crate) fn bound_single(&mut self, gradient: &mut [f32]) {
        if self.batch_size == 1 && self.is_bounded() {
            let factor = self.bounded_share(1) as f32;
            gradient.iter_mut().for_each(|derivative| *derivative *= factor);
            self.squares = 0.0;
        }
    }

    /// What l1 is to take from the magnitudes of the array for the steps that it has not been applied to,
    /// which are none then.
    #[inline(always)]
    pub(crate) fn take_pending_l1(&mut self) -> f64 {
        let cut = f64::from(self.pending_l1) * self.threshold() / self.scale;
        self.pending_l1 = 0;
        cut
    }

    /// Adds what another training, of the same epoch, has counted.
    pub(crate) fn add(&mut self, other: &TrainerState) {
        self.dim = self.dim.max(other.dim);
        if other.steps > self.steps {
            (self.steps, self.unbiased) = (other.steps, other.unbiased);
        }
        self.totals.add(&other.totals);
    }

    /// The result of the epoch, given |w|² and |w|₁ of the model.
    pub(crate) fn report(&self, norms: (f64, f64)) -> EpochReport {
        EpochReport::new(&self.hyperparameters(), self.epoch, self.rate, &self.totals, norms)
    }
}

/// The share of the learning rate that l1 takes at least at once.
pub(crate) const MIN_L1_STEP: f64 = 1.0 / 1024.0 - 1e-12;
