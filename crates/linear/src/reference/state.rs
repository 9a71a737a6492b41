//! What is known of a training besides its arrays: hyperparameters, sizes, and the numbers that change.
//!
//! Guarantees: a state that [is sound](TrainerState::is_sound) describes a training that [`TrainerState::new`] could
//! have made, as far as its sizes go; whatever its other numbers are, computing with them is merely wrong.

use bytemuck::{Pod, Zeroable};
use loss::bytes::Coder;
use loss::optimizers::MIN_L1_STEP;
use loss::totals::Totals;
use loss::{EpochReport, Hyperparameters, Optimizer};

/// The end of the list of touched features.
pub(crate) const END: u32 = u32::MAX;

/// What is known of a training besides its arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainerState {
    pub(crate) hyper: Hyperparameters,
    pub(crate) sparse: bool,
    pub(crate) now: Progress,
}

/// Sizes, and the numbers that change: without padding, as an aggregate stores them.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Progress {
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
    /// [multiple](loss::optimizers::wrap) of what every weight's last digit is
    pub(crate) l1_applied: f64,
    pub(crate) taken: StepsTaken,
    /// of the tuples in the pending gradient, the weights times the squares of the rows' lengths, with the constant 1;
    /// only of use if steps are bounded
    pub(crate) squares: f64,
    /// what the epoch's tuples add up to
    pub(crate) totals: Totals,
    pub(crate) outputs: u32,
    pub(crate) epoch: u32,
    /// tuples in the gradient that has not made a step yet
    pub(crate) pending: u32,
    /// sparse: steps since the last sweep
    pub(crate) time: u32,
    /// steps whose l1 penalty has not been applied yet
    pub(crate) pending_l1: u32,
    /// sparse: the first of the features that the pending gradient has touched
    pub(crate) touched: u32,
}

/// Steps so far, t.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct StepsTaken {
    pub(crate) steps: u64,
    /// 1 - β1^t and 1 - β2^t of adam
    pub(crate) unbiased: [f64; 2],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// by which the sum of gradients is multiplied to give their mean, or less if steps are bounded
    pub(crate) share: f32,
    pub(crate) rate: f32,
    /// the learning rate for the array, which is to be multiplied by the scale
    pub(crate) scaled_rate: f32,
    /// how much l1 takes from the magnitudes of the array after this step; 0 for nothing
    pub(crate) cut: f64,
}

impl TrainerState {
    /// Before the first epoch. The hyperparameters are valid.
    pub(crate) fn new(hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> TrainerState {
        let now = Progress {
            dim: dim as u64,
            capacity: dim as u64,
            rate: hyper.learning_rate,
            scale: 1.0,
            outputs: u32::try_from(outputs).unwrap_or(u32::MAX),
            touched: END,
            ..Progress::zeroed()
        };
        TrainerState { hyper, sparse, now }
    }

    /// Writes or reads what changes, of a training that is flushed.
    pub(crate) fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        let [first, second] = &mut self.now.taken.unbiased;
        for number in [&mut self.now.rate, &mut self.now.scale, &mut self.now.l1_applied, first, second] {
            coder.finite(std::slice::from_mut(number))?;
        }
        [&mut self.now.dim, &mut self.now.taken.steps].into_iter().try_for_each(|count| coder.value(count))?;
        [&mut self.now.time, &mut self.now.epoch].into_iter().try_for_each(|count| coder.value(count))?;
        if coder.is_reading() && !(self.now.rate > 0.0 && self.shrink() > 0.0) {
            // it is about to be that of the next epoch
            self.now.rate = self.hyper.learning_rate;
        }
        (self.has_room() && self.is_sound()).then_some(())
    }

    /// Whether there is room for the features.
    pub(crate) fn has_room(&self) -> bool {
        let Progress { dim, capacity, .. } = self.now;
        if self.sparse { dim <= capacity } else { dim == capacity }
    }

    /// Whether the numbers could be those of such a training.
    pub(crate) fn is_sound(&self) -> bool {
        let Progress { scale, pending, .. } = self.now;
        // the hyperparameters see to it, unless somebody else has written the rate: a scale of 0 or less would stay so
        let shrinks = self.shrink() > 0.0 && self.shrink() <= 1.0;
        scale > 0.0 && scale <= 1.0 && pending < self.hyper.batch_size && shrinks
    }

    /// Whether features that a tuple does not touch change nevertheless, otherwise than by the scale.
    #[inline(always)]
    pub(crate) fn is_lazy(&self) -> bool {
        self.hyper.optimizer != Optimizer::Sgd || self.hyper.l1 > 0.0
    }

    /// Whether sparse tuples are learned from one by one, and nothing changes but the weights of their features, the
    /// scale and the intercept, along the derivative of one decision.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.sparse
            && !self.is_lazy()
            && self.hyper.batch_size == 1
            && self.now.outputs == 1
            && self.hyper.kind.is_pointwise()
    }

    /// The factor that the penalty of l2 puts on the weights with every step.
    #[inline(always)]
    pub(crate) fn shrink(&self) -> f64 {
        1.0 - self.hyper.penalty_rate(self.now.rate) * self.hyper.l2
    }

    /// What l1 takes from a weight's magnitude with every step, not counting the scale.
    #[inline(always)]
    pub(crate) fn threshold(&self) -> f64 {
        self.hyper.penalty_rate(self.now.rate) * self.hyper.l1
    }

    /// Begins the next epoch of a training that is flushed.
    pub(crate) fn begin_epoch(&mut self) {
        self.now.epoch = self.now.epoch.saturating_add(1);
        // that of the theorem is fixed for each buffer
        if !self.hyper.schedule.averages() {
            self.now.rate = self.hyper.learning_rate_at(self.now.epoch);
        }
        self.now.totals = Totals::default();
    }

    /// Counts a step of the pending gradient and returns what it consists of. The scale is that after the step.
    #[inline(always)]
    pub(crate) fn begin_step(&mut self) -> Step {
        let share = self.bounded_share(self.now.pending) as f32;
        self.now.pending = 0;
        self.now.squares = 0.0;
        self.now.taken.steps = self.now.taken.steps.saturating_add(1);
        self.now.time += u32::from(self.sparse);
        self.now.scale *= self.shrink();
        self.now.taken.unbiased = self.hyper.optimizer.count_step(self.now.taken.unbiased);
        let mut cut = 0.0;
        if self.hyper.l1 > 0.0 {
            self.now.pending_l1 += 1;
            // going through all weights takes time: penalties are gathered until they are a thousandth of the
            // learning rate, which is little compared with a step (Langford et al. call the number of steps K)
            if self.hyper.l1 * f64::from(self.now.pending_l1) > MIN_L1_STEP {
                cut = self.take_pending_l1();
            }
        }
        let scaled_rate = (self.now.rate / self.now.scale) as f32;
        Step { share, rate: self.now.rate as f32, scaled_rate, cut }
    }

    /// The same for one tuple of a [plain](TrainerState::is_plain) training.
    #[inline(always)]
    pub(crate) fn begin_plain_step(&mut self) -> Step {
        self.now.taken.steps = self.now.taken.steps.saturating_add(1);
        self.now.time += 1;
        self.now.scale *= self.shrink();
        Step { share: 1.0, rate: self.now.rate as f32, scaled_rate: (self.now.rate / self.now.scale) as f32, cut: 0.0 }
    }

    /// How much the loss bends along a step of the whole rate, at most, if |x|² is 1.
    #[inline(always)]
    pub(crate) fn curvature_of_step(&self) -> f64 {
        self.now.rate * self.hyper.optimizer.steps_in_the_end() * self.hyper.kind.curvature()
    }

    /// What the sum of the gradients of this many tuples is to be multiplied by: 1 / tuples, or less if steps are
    /// bounded. Along the mean gradient the loss bends by curvature * mean square at most;
    /// momentum goes 1 / (1 - β) times as far in the end.
    #[inline(always)]
    pub(crate) fn bounded_share(&self, tuples: u32) -> f64 {
        let tuples = f64::from(tuples.max(1));
        if !self.hyper.bounded {
            return 1.0 / tuples;
        }
        1.0 / (tuples + self.curvature_of_step() * self.now.squares)
    }

    /// Bounds the gradient of a tuple whose step is made alone.
    #[inline(always)]
    pub(crate) fn bound_single(&mut self, gradient: &mut [f32]) {
        if self.hyper.batch_size == 1 && self.hyper.bounded {
            let factor = self.bounded_share(1) as f32;
            gradient.iter_mut().for_each(|derivative| *derivative *= factor);
            self.now.squares = 0.0;
        }
    }

    /// What l1 is to take from the magnitudes of the array for the steps that it has not been applied to,
    /// which are not then.
    #[inline(always)]
    pub(crate) fn take_pending_l1(&mut self) -> f64 {
        let cut = f64::from(self.now.pending_l1) * self.threshold() / self.now.scale;
        self.now.pending_l1 = 0;
        cut
    }

    /// Adds what another training, of the same epoch, has counted.
    pub(crate) fn add(&mut self, other: &TrainerState) {
        self.now.dim = self.now.dim.max(other.now.dim);
        if other.now.taken.steps > self.now.taken.steps {
            self.now.taken = other.now.taken;
        }
        self.now.totals.add(&other.now.totals);
    }

    /// The result of the epoch, given |w|² and |w|₁ of the model.
    pub(crate) fn report(&self, norms: (f64, f64)) -> EpochReport {
        EpochReport::new(&self.hyper, self.now.epoch, self.now.rate, &self.now.totals, norms)
    }
}
