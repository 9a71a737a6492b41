//! What is known of a training beside its arrays: hyperparameters, sizes, and the numbers that change.
//!
//! Guarantees: a head that [`TrainerState::check`] has let pass describes a training that [`TrainerState::new`] could have made, as far as
//! its sizes and hyperparameters go; whatever its other numbers are, computing with them is merely wrong.

use bytemuck::{Pod, Zeroable};

use crate::loss::Totals;
use crate::saved::{Reader, Writer};
use crate::{EpochReport, Hyperparameters, ModelKind, Optimizer, Schedule};

/// Says that bytes are a state, and of which version.
const MAGIC: u64 = u64::from_le_bytes(*b"cgpsgd01");

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
    schedule_numbers: [f64; 2],
    optimizer_numbers: [f64; 3],
    /// features
    pub(crate) dim: u64,
    /// features that there is room for; the same as `dim` if dense
    pub(crate) capacity: u64,
    /// the learning rate now
    pub(crate) rate: f64,
    /// weights are `scale` times what the array holds: the penalty of l2 goes here. In f64, because the factor of one step
    /// may differ from 1 by less than f32 can tell
    pub(crate) scale: f64,
    /// what l1 has taken from every weight's magnitude so far, in units of the array, but for a [multiple](super::update::wrap)
    /// of what every weight's last digit is
    pub(crate) taken: f64,
    /// 1 - β1^t and 1 - β2^t after t steps of adam
    pub(crate) unbiased: [f64; 2],
    /// t
    pub(crate) steps: u64,
    /// what the epoch's tuples have come to
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
    /// steps whose l1 penalty is still to be paid
    pub(crate) pending_l1: u32,
    /// sparse: the first of the features that the pending gradient has touched
    pub(crate) touched: u32,
    padding: u32,
}

/// The numbers of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// by which the sum of gradients is multiplied to give their mean
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
        let (schedule, schedule_numbers) = match hyper.schedule {
            Schedule::Constant => (0, [0.0; 2]),
            Schedule::Exponential { decay } => (1, [decay, 0.0]),
            Schedule::InverseScaling { power } => (2, [power, 0.0]),
            Schedule::Theorem1 { mu, a } => (3, [mu, a.unwrap_or(-1.0)]),
        };
        let (optimizer, optimizer_numbers) = match hyper.optimizer {
            Optimizer::Sgd => (0, [0.0; 3]),
            Optimizer::Momentum { beta } => (1, [beta, 0.0, 0.0]),
            Optimizer::Adam { beta1, beta2, epsilon } => (2, [beta1, beta2, epsilon]),
        };
        let kind = ModelKind::LINEAR.iter().position(|kind| *kind == hyper.kind);
        TrainerState {
            magic: MAGIC,
            learning_rate: hyper.learning_rate,
            l1: hyper.l1,
            l2: hyper.l2,
            schedule_numbers,
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
            ..TrainerState::zeroed()
        }
    }

    /// What changes, of a training that is settled.
    pub(crate) fn save(&self, to: &mut Writer) {
        to.whole(self.capacity);
        to.whole(self.steps);
        to.whole(self.time.into());
        for number in [self.rate, self.scale, self.taken, self.unbiased[0], self.unbiased[1]] {
            to.double(number);
        }
        to.whole(self.epoch.into());
    }

    /// The head of a training that was saved, with these hyperparameters; None if it is not one.
    pub(crate) fn read(
        from: &mut Reader<'_>,
        hyper: Hyperparameters,
        [dim, outputs]: [usize; 2],
        sparse: bool,
    ) -> Option<TrainerState> {
        let mut head = TrainerState::new(hyper, dim, outputs, sparse);
        head.capacity = from.whole()?;
        head.steps = from.whole()?;
        head.time = u32::try_from(from.whole()?).ok()?;
        for place in [&mut head.rate, &mut head.scale, &mut head.taken] {
            *place = from.double()?;
        }
        head.unbiased = [from.double()?, from.double()?];
        head.epoch = u32::try_from(from.whole()?).ok()?;
        let numbers = [head.taken, head.unbiased[0], head.unbiased[1]];
        // the rate is about to be that of the next epoch
        head.rate = if head.rate > 0.0 && head.shrink() > 0.0 { head.rate } else { hyper.learning_rate };
        (numbers.iter().all(|number| number.is_finite()) && head.check().is_ok()).then_some(head)
    }

    /// Whether this could be the head of a state.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.magic != MAGIC {
            return Err("it does not begin like one");
        }
        let Some(hyper) = self.read_hyperparameters() else { return Err("unknown hyperparameters") };
        hyper.validate().map_err(|_| "hyperparameters out of range")?;
        let outputs = match hyper.kind {
            ModelKind::Softmax => 1..=MAX_OUTPUTS,
            _ => 1..=1,
        };
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
        let [first, second, third] = self.optimizer_numbers;
        let [number, a] = self.schedule_numbers;
        Some(Hyperparameters {
            kind: *ModelKind::LINEAR.get(self.kind as usize)?,
            learning_rate: self.learning_rate,
            schedule: match self.schedule {
                0 => Schedule::Constant,
                1 => Schedule::Exponential { decay: number },
                2 => Schedule::InverseScaling { power: number },
                3 => Schedule::Theorem1 { mu: number, a: (a != -1.0).then_some(a) },
                _ => return None,
            },
            optimizer: match self.optimizer {
                0 => Optimizer::Sgd,
                1 => Optimizer::Momentum { beta: first },
                2 => Optimizer::Adam { beta1: first, beta2: second, epsilon: third },
                _ => return None,
            },
            batch_size: self.batch_size,
            l1: self.l1,
            l2: self.l2,
            design: None,
        })
    }

    /// How it is trained.
    pub(crate) fn hyperparameters(&self) -> Hyperparameters {
        self.read_hyperparameters().expect("a checked head")
    }

    #[inline(always)]
    pub(crate) fn kind(&self) -> ModelKind {
        ModelKind::LINEAR[self.kind as usize]
    }

    #[inline(always)]
    pub(crate) fn optimizer(&self) -> Optimizer {
        let [first, second, third] = self.optimizer_numbers;
        match self.optimizer {
            0 => Optimizer::Sgd,
            1 => Optimizer::Momentum { beta: first },
            _ => Optimizer::Adam { beta1: first, beta2: second, epsilon: third },
        }
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

    /// The factor that the penalty of l2 puts on the weights with every step.
    #[inline(always)]
    pub(crate) fn shrink(&self) -> f64 {
        1.0 - self.rate * self.l2
    }

    /// What l1 takes from a weight's magnitude with every step, not counting the scale.
    #[inline(always)]
    pub(crate) fn threshold(&self) -> f64 {
        self.rate * self.l1
    }

    /// Begins the next epoch of a training that is settled.
    pub(crate) fn begin_epoch(&mut self) {
        self.epoch = self.epoch.saturating_add(1);
        let hyper = self.hyperparameters();
        // that of the theorem is fixed for each buffer
        if !matches!(hyper.schedule, Schedule::Theorem1 { .. }) {
            self.rate = hyper.learning_rate_at(self.epoch);
        }
        self.totals = Totals::default();
    }

    /// Counts a step of the pending gradient and says what it consists of. The scale is that after the step.
    #[inline(always)]
    pub(crate) fn begin_step(&mut self) -> Step {
        let share = 1.0 / self.pending.max(1) as f32;
        self.pending = 0;
        self.steps = self.steps.saturating_add(1);
        self.time += u32::from(self.sparse());
        self.scale *= self.shrink();
        if let Optimizer::Adam { beta1, beta2, .. } = self.optimizer() {
            let [first, second] = self.unbiased;
            self.unbiased = [beta1 * first + (1.0 - beta1), beta2 * second + (1.0 - beta2)];
        }
        let mut cut = 0.0;
        if self.has_l1() {
            self.pending_l1 += 1;
            // going through all weights takes time: penalties are gathered until they come to a thousandth of the
            // learning rate, which is little beside a step (Langford et al. call the number of steps K)
            if self.threshold() * f64::from(self.pending_l1) > self.rate * PAYMENT {
                cut = self.pay();
            }
        }
        let scaled_rate = (self.rate / self.scale) as f32;
        Step { share, rate: self.rate as f32, scaled_rate, cut }
    }

    /// What l1 is to take from the magnitudes of the array for the steps that are unpaid, which are none then.
    #[inline(always)]
    pub(crate) fn pay(&mut self) -> f64 {
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

    /// What the epoch came to, given |w|² and |w|₁ of the model.
    pub(crate) fn report(&self, norms: (f64, f64)) -> EpochReport {
        EpochReport::new(&self.hyperparameters(), self.epoch, self.rate, &self.totals, norms)
    }
}

/// The share of the learning rate that l1 takes at least at once.
pub(crate) const PAYMENT: f64 = 1.0 / 1024.0 - 1e-12;
