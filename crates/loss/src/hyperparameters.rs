//! What the user chooses: the model, and how it is trained.
//!
//! Guarantees: whatever [`Hyperparameters::validate`] lets pass has a learning rate above 0 in the first epoch and an
//! L2 penalty that shrinks weights without turning their sign. It prevents a run whose parameters can only diverge.

use serde::{Deserialize, Serialize};

use crate::invalid::{InvalidHyperparameter, require, within};
use crate::range::Range;
use crate::{Design, Link, LossNumber, ModelKind, Optimizer, Penalized, Schedule, Solver};

/// How much data there is to learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// how many rows
    pub tuples: u64,
    /// how many features each of them has, zeros included
    pub features: usize,
}

/// How a model is trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Hyperparameters {
    /// The loss to be minimised.
    pub kind: ModelKind,
    /// Step size in the first epoch, above 0.
    pub learning_rate: f64,
    /// The step sizes after that.
    pub schedule: Schedule,
    /// What is done with a gradient.
    pub optimizer: Optimizer,
    /// Tuples over which a gradient is averaged, 1 to 1,000,000.
    pub batch_size: u32,
    /// Strength of the penalty l1 |w|₁ on the weights, not on intercepts; at least 0.
    pub l1: f64,
    /// Strength of the penalty l2/2 |w|² on the weights, not on intercepts; at least 0.
    pub l2: f64,
    /// Which weights l2 is on.
    #[serde(default)]
    pub l2_on: Penalized,
    /// Whether a step is divided by 1 + rate * curvature * (|x|² + 1), of a mini-batch its mean: however large the
    /// learning rate and however long a row, a step then does not go beyond the least loss on its way. Not of networks,
    /// nor with Adam.
    #[serde(default)]
    pub bounded: bool,
    /// The mean over the tuples of |x|² + 1, times how much the loss bends in units of its curvature: bounded steps
    /// divide penalties by as much as such a tuple's gradient, so that one weighs against the other what it does in the
    /// objective. 0 if it is not known: then penalties are not divided.
    #[serde(default)]
    pub reach: f64,
    /// Whether the model is the mean of the iterates, of which the one after t tuples has a weight that grows as t³.
    /// Not of networks, nor with [`Schedule::Theorem1`], which has a mean of its own.
    #[serde(default)]
    pub averaging: bool,
    /// How the loss is made small. Newton's method takes nothing of the others but l2.
    #[serde(default)]
    pub solver: Solver,
    /// The [number](ModelKind::loss_number) of the loss, in units of the targets that are learned from; 0 of a loss
    /// that has none.
    #[serde(default)]
    pub loss_number: f64,
    /// What a network is made of; None for linear models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<Design>,
}

impl Hyperparameters {
    /// The batch size of a training on [whole mini-batches](tuples::MiniBatch), however many tuples each of them has.
    pub const WHOLE_MINI_BATCHES: u32 = u32::MAX;

    /// What a learning rate may be; it is above 0 also in f32.
    pub const LEARNING_RATES: Range = Range::above(0.0);

    /// What l1 and l2 may be.
    pub const PENALTIES: Range = Range::from(0.0);

    /// The largest batch size.
    pub const MAX_BATCH_SIZE: u32 = 1_000_000;

    /// The defaults: plain SGD, no penalty, and what the model says:
    /// for linear ones learning rate 0.01, decay 0.95 and a step per tuple.
    pub fn new(kind: ModelKind) -> Hyperparameters {
        let defaults = kind.defaults();
        Hyperparameters {
            kind,
            learning_rate: defaults.learning_rate,
            schedule: Schedule::Exponential { decay: defaults.decay },
            optimizer: defaults.optimizer,
            batch_size: defaults.batch_size,
            l1: 0.0,
            l2: 0.0,
            l2_on: Penalized::All,
            bounded: false,
            reach: 0.0,
            averaging: false,
            solver: Solver::Sgd,
            loss_number: kind.loss_number().map_or(0.0, |number| number.default),
            design: defaults.design,
        }
    }

    /// The weights of a model of this many features and outputs, or what takes as much memory.
    pub fn weights(&self, dim: usize, outputs: usize) -> usize {
        match self.design {
            Some(design) => design.weights(dim, outputs),
            // the Hessian and its factor, in doubles
            None if self.solver == Solver::Newton => dim.saturating_mul(dim).saturating_mul(4),
            None => dim.max(1).saturating_mul(outputs),
        }
    }

    /// Whether there is a learning rate that follows from the tuples: for linear models by plain SGD or momentum, with
    /// a schedule whose rates are those of epochs.
    pub fn has_automatic_rate(&self) -> bool {
        self.can_bound() && !self.schedule.averages() && self.solver == Solver::Sgd
    }

    /// Whether steps can be bounded: those of an optimizer with a rate of its own do not grow with the row, and a
    /// network's loss has no such bound.
    fn can_bound(&self) -> bool {
        self.design.is_none() && self.optimizer.learning_rate().is_none()
    }

    /// Takes the size of mini-batches that suits this many epochs of this many tuples: at least 2,000 steps, as far as
    /// there are tuples, and no more than 32 of them in a step.
    pub fn with_automatic_batch_size(self, epochs: u32, tuples: u64) -> Hyperparameters {
        const STEPS: u64 = 2_000;
        let largest = self.kind.defaults().batch_size;
        let size = u64::from(epochs).saturating_mul(tuples) / STEPS;
        Hyperparameters { batch_size: size.clamp(1, largest.into()) as u32, ..self }
    }

    /// The epochs of a training that no one has given any, and before which no one has counted the tuples.
    pub const EPOCHS: u32 = 20;

    /// The epochs of linear models that suit such data: as many as make a million steps, up to 100, where that is more
    /// than 20. Features that go together are distinguished by many small steps, which a small table has in many epochs
    /// only. With as many features as tuples, or more, it is 20 unless a penalty was chosen for the weights of
    /// categories: there more steps learn the tuples by heart, and with the penalty they do not. Where 20
    /// epochs would be more than five million steps, it is as many as make these, and at least 3: with the decay that
    /// follows from it, more have changed the scores of sets that were repeated by 0.004 at most
    /// (docs/results/others.csv).
    pub fn automatic_epochs(&self, data: Extent) -> u32 {
        let is_penalized = self.l2 > 0.0 && self.l2_on == Penalized::Categories;
        if data.features as u64 >= data.tuples && !is_penalized { Self::EPOCHS } else { epochs_of(data.tuples) }
    }

    /// As many epochs as such data may have, whatever the penalty is.
    pub fn most_automatic_epochs(data: Extent) -> u32 {
        let few = if data.features as u64 >= data.tuples { Self::EPOCHS } else { 0 };
        epochs_of(data.tuples).max(few)
    }

    /// Takes the decay with which the learning rate falls to a hundredth, or what else suits the kind of model, over
    /// the epochs that suit such data. It is a matter of the data, and not of the epochs that were asked for, so that a
    /// training that goes on goes on as if it had never stopped. Bounded steps give long rows less weight, the less the
    /// lower the rate: while it is high, the model is not that of the least loss.
    pub fn with_automatic_decay(self, data: Extent) -> Hyperparameters {
        let decay = self.kind.defaults().automatic_fall.powf(1.0 / f64::from(self.automatic_epochs(data)));
        // as many digits as a reader takes in, and the same on every machine
        let decay = (decay * 1e4).round() / 1e4;
        Hyperparameters { schedule: Schedule::Exponential { decay }, ..self }
    }

    /// Takes notice of tuples of which |x|² has this mean, and targets that one.
    pub fn with_reach(self, mean_square: f64, mean_target: Option<f64>) -> Hyperparameters {
        Hyperparameters { reach: (mean_square + 1.0) * self.bend_of_link(mean_target), ..self }
    }

    /// How much the loss bends on the average, in units of its curvature: with a logarithmic link by what is predicted,
    /// of which the mean is that of the targets.
    fn bend_of_link(&self, mean_target: Option<f64>) -> f64 {
        match self.kind.link() {
            Link::Identity => 1.0,
            Link::Logarithm => mean_target.filter(|mean| *mean > 0.0).unwrap_or(1.0),
        }
    }

    /// Whether the model is a mean of the models that the training comes through.
    pub fn has_mean(&self) -> bool {
        self.averaging || self.schedule.averages()
    }

    /// The learning rate of penalties, where that of gradients is `rate`.
    #[inline(always)]
    pub fn penalty_rate(&self, rate: f64) -> f64 {
        match self.bounded {
            true => rate / (1.0 + rate * self.optimizer.steps_in_the_end() * self.kind.curvature() * self.reach),
            false => rate,
        }
    }

    /// Takes the learning rate that suits tuples of which |x|² has this mean,
    /// with bounded steps and the mean of the iterates as the model.
    ///
    /// A tuple's step moves its decision by rate * gradient * (|x|² + 1): with the reciprocal of the mean of that, by
    /// about the gradient. A mini-batch may step as far as its tuples one by one, and momentum adds up 1 / (1 - β)
    /// steps. The hinge's gradient does not fade as margins are reached, so that its rate is a tenth. With a
    /// logarithmic link the loss bends by what is predicted, of which the mean is that of the targets: the rate is
    /// divided by it.
    pub fn with_automatic_rate(self, mean_square: f64, mean_target: Option<f64>) -> Hyperparameters {
        let of_kind = self.kind.defaults().automatic_rate;
        let steps = self.optimizer.steps_in_the_end();
        let of_link = self.bend_of_link(mean_target);
        let of_tuples = f64::from(self.batch_size) * of_kind / (steps * (mean_square + 1.0) * of_link);
        // the penalty must not turn signs, and the rate is to be a number also where the features are all but infinite
        let longest = if self.l2 > 0.0 { 0.5 / self.l2 } else { f64::MAX };
        let learning_rate = of_tuples.min(longest).clamp(f64::from(f32::MIN_POSITIVE), 1e6);
        Hyperparameters { learning_rate, bounded: true, averaging: true, ..self }
    }

    /// Takes a penalty on the weights of categories that is 1/2 |w|² next to the sum of the losses of this many rows,
    /// as scikit-learn's is by default on all weights (C = 1, alpha = 1). What few rows say of a category is noise;
    /// what all rows say of a number is not, and a penalty on it costs accuracy.
    pub fn with_automatic_penalty(self, rows: f64) -> Hyperparameters {
        Hyperparameters { l2: 1.0 / rows.max(1.0), l2_on: Penalized::Categories, ..self }
    }

    /// The same for targets that were divided by `scale`: the least of the objective is where it was, in the other
    /// unit. The weights of a linear model are divided, too, and the loss by a power of the scale, so that penalties
    /// are to be multiplied by what is left of that; those of a network stay what they are, as only its last layer is
    /// divided. A rate at which the penalty would turn signs is lowered.
    pub fn of_scaled_targets(self, scale: f64) -> Hyperparameters {
        let units = self.kind.target_units();
        let loss_number = self.loss_number / scale.powi(units.number);
        if self.design.is_some() {
            return Hyperparameters { loss_number, ..self };
        }
        let (l1, l2) = (self.l1 * scale.powi(1 - units.loss), self.l2 * scale.powi(2 - units.loss));
        let learning_rate = if l2 > self.l2 { self.learning_rate.min(0.5 / l2) } else { self.learning_rate };
        Hyperparameters { loss_number, l1, l2, learning_rate, ..self }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`InvalidHyperparameter`] for the first that is out of its range. `learning_rate * l2` must be less than 1,
    /// because the penalty multiplies the weights by 1 - learning_rate * l2 at every step; `l2` is blamed.
    pub fn validate(&self) -> Result<(), InvalidHyperparameter> {
        require(
            Self::LEARNING_RATES.contains(self.learning_rate) && self.learning_rate as f32 > 0.0,
            "learning_rate",
            "must be finite and greater than 0, also in type real",
        )?;
        self.schedule.validate()?;
        self.optimizer.validate()?;
        require(
            self.design.is_none() || !self.schedule.averages(),
            "schedule",
            "must not be \"theorem1\", which is about convex losses",
        )?;
        require(
            self.kind.link() == Link::Identity || !self.schedule.averages(),
            "schedule",
            "must not be \"theorem1\" with model poisson, whose loss bends without a bound",
        )?;
        require(
            !self.bounded || self.can_bound(),
            "bounded_steps",
            "must be false with optimizer \"adam\" and for networks",
        )?;
        require(
            !self.averaging || self.design.is_none() && !self.schedule.averages(),
            "averaging",
            "must be false for networks and with schedule \"theorem1\", which averages by itself",
        )?;
        let sizes = 1..=Self::MAX_BATCH_SIZE;
        let is_size = sizes.contains(&self.batch_size) || self.batch_size == Hyperparameters::WHOLE_MINI_BATCHES;
        require(is_size, "batch_size", "must be from 1 to 1000000")?;
        if let Some(LossNumber { name, range, .. }) = self.kind.loss_number() {
            within(range, self.loss_number, name)?;
        }
        within(Self::PENALTIES, self.l1, "l1")?;
        within(Self::PENALTIES, self.l2, "l2")?;
        if self.solver == Solver::Newton {
            require(
                self.kind.is_smooth(),
                "solver",
                "\"newton\" is for losses of one decision with a second derivative: those of logistic, linear and poisson",
            )?;
            require(self.l1 == 0.0, "l1", "must be 0 with solver \"newton\": |w| has no derivative at 0")?;
            let plain = !self.bounded && !self.averaging && !self.schedule.averages();
            return require(
                plain,
                "solver",
                "\"newton\" goes without bounded_steps, averaging and schedule \"theorem1\"",
            );
        }
        require(self.learning_rate * self.l2 < 1.0, "l2", "times learning_rate must be less than 1")
    }

    /// The step size in `epoch`, counted from 1. With [`Schedule::Theorem1`] it is another one in every buffer, and
    /// this is only what the first should be.
    pub fn learning_rate_at(&self, epoch: u32) -> f64 {
        self.schedule.learning_rate(self.learning_rate, epoch)
    }
}

/// The epochs of a linear model that suit this many tuples.
fn epochs_of(tuples: u64) -> u32 {
    const STEPS: u64 = 1_000_000;
    const ENOUGH: u64 = 5_000_000;
    const LEAST: u64 = 3;
    const MOST: u64 = 100;
    let tuples = tuples.max(1);
    let enough = ENOUGH.div_ceil(tuples).clamp(LEAST, Hyperparameters::EPOCHS.into());
    STEPS.div_ceil(tuples).clamp(enough, MOST) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        let hyper = Hyperparameters::new(ModelKind::Svm);
        assert_eq!((hyper.learning_rate, hyper.schedule, hyper.batch_size), (0.01, Schedule::EXPONENTIAL, 1));
        assert_eq!((hyper.optimizer, hyper.l1, hyper.l2), (Optimizer::Sgd, 0.0, 0.0));
        assert_eq!(hyper.validate(), Ok(()));
        for optimizer in [Optimizer::MOMENTUM, Optimizer::ADAM] {
            assert_eq!(Hyperparameters { optimizer, ..hyper }.validate(), Ok(()));
        }
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let valid = Hyperparameters::new(ModelKind::Logistic);
        let refused = |hyper: Hyperparameters| hyper.validate().unwrap_err().name;
        for learning_rate in [0.0, -0.1, 1e-46, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(Hyperparameters { learning_rate, ..valid }), "learning_rate");
        }
        for decay in [0.0, -0.5, 1.000_001, f64::NAN] {
            assert_eq!(refused(Hyperparameters { schedule: Schedule::Exponential { decay }, ..valid }), "decay");
        }
        for number in [0.0, -0.5, f64::INFINITY, f64::NAN] {
            let power = Schedule::InverseScaling { power: number };
            assert_eq!(refused(Hyperparameters { schedule: power, ..valid }), "power");
            let mu = Schedule::Theorem1 { mu: number, a: None };
            assert_eq!(refused(Hyperparameters { schedule: mu, ..valid }), "mu");
        }
        for a in [-1.0, f64::INFINITY, f64::NAN] {
            assert_eq!(refused(Hyperparameters { schedule: Schedule::Theorem1 { mu: 1.0, a: Some(a) }, ..valid }), "a");
        }
        for beta in [-0.1, 1.0, f64::NAN] {
            let (momentum, epsilon) = (Optimizer::Momentum { beta }, 1e-8);
            assert_eq!(refused(Hyperparameters { optimizer: momentum, ..valid }), "momentum");
            let first = Optimizer::Adam { beta1: beta, beta2: 0.9, epsilon };
            assert_eq!(refused(Hyperparameters { optimizer: first, ..valid }), "beta1");
            let second = Optimizer::Adam { beta1: 0.9, beta2: beta, epsilon };
            assert_eq!(refused(Hyperparameters { optimizer: second, ..valid }), "beta2");
        }
        for epsilon in [0.0, -1.0, 1e-50, f64::NAN, f64::INFINITY] {
            let optimizer = Optimizer::Adam { beta1: 0.9, beta2: 0.9, epsilon };
            assert_eq!(refused(Hyperparameters { optimizer, ..valid }), "epsilon");
        }
        for batch_size in [0, 1_000_001] {
            assert_eq!(refused(Hyperparameters { batch_size, ..valid }), "batch_size");
        }
        for penalty in [-1e-9, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(Hyperparameters { l1: penalty, ..valid }), "l1");
            assert_eq!(refused(Hyperparameters { l2: penalty, ..valid }), "l2");
        }
        assert_eq!(refused(Hyperparameters { l2: 100.0, ..valid }), "l2");
        assert_eq!(Hyperparameters { schedule: Schedule::Constant, l2: 99.9, ..valid }.validate(), Ok(()));
    }

    #[test]
    fn the_learning_rate_follows_its_schedule_from_the_second_epoch_on() {
        let valid = Hyperparameters { learning_rate: 0.8, ..Hyperparameters::new(ModelKind::Svm) };
        let rates = |schedule| [1, 2, 4].map(|epoch| Hyperparameters { schedule, ..valid }.learning_rate_at(epoch));
        assert_eq!(rates(Schedule::Constant), [0.8, 0.8, 0.8]);
        assert_eq!(rates(Schedule::Exponential { decay: 0.5 }), [0.8, 0.4, 0.1]);
        assert_eq!(rates(Schedule::InverseScaling { power: 0.5 }), [0.8, 0.8 / 2f64.sqrt(), 0.4]);
        let decaying = Hyperparameters { schedule: Schedule::Exponential { decay: 0.5 }, ..valid };
        assert_eq!(decaying.learning_rate_at(u32::MAX), 0.0);
    }

    #[test]
    fn small_tables_get_more_epochs_and_large_ones_fewer_and_the_rate_falls_to_a_hundredth_over_them() {
        for (tuples, features, epochs, decay) in [
            (0, 0, 20, 0.7943),
            (2, 1, 100, 0.955),
            (10_000, 9_999, 100, 0.955),
            (10_000, 10_000, 20, 0.7943),
            (16_000, 1, 63, 0.9295),
            (40_000, 1, 25, 0.8318),
            (50_000, 1, 20, 0.7943),
            (250_000, 1, 20, 0.7943),
            (730_000, 1, 7, 0.5179),
            (1_000_000, 28, 5, 0.3981),
            (10_000_000, 28, 3, 0.2154),
            (u64::MAX, 28, 3, 0.2154),
            (u64::MAX, usize::MAX, 20, 0.7943),
        ] {
            let data = Extent { tuples, features };
            let hyper = Hyperparameters::new(ModelKind::Linear);
            assert_eq!(hyper.automatic_epochs(data), epochs, "{data:?}");
            assert!(Hyperparameters::most_automatic_epochs(data) >= epochs);
            let hyper = hyper.with_automatic_decay(data);
            assert_eq!(hyper.schedule, Schedule::Exponential { decay });
            // it is the rate of the epoch after the last that is a hundredth
            let fallen = hyper.learning_rate_at(epochs + 1) / hyper.learning_rate;
            assert!((0.0099..0.0101).contains(&fallen), "{data:?}: {fallen}");
            let quantile = Hyperparameters::new(ModelKind::Quantile).with_automatic_decay(data);
            let fallen = quantile.learning_rate_at(epochs + 1) / quantile.learning_rate;
            assert!((0.00098..0.00102).contains(&fallen), "{data:?}: {fallen}");
        }
    }

    #[test]
    fn a_penalty_on_categories_lets_a_table_of_many_features_have_as_many_epochs_as_others() {
        let wide = Extent { tuples: 400, features: 700 };
        let hyper = Hyperparameters::new(ModelKind::Logistic);
        assert_eq!(hyper.automatic_epochs(wide), 20);
        let penalized = hyper.with_automatic_penalty(400.0);
        assert_eq!(penalized.automatic_epochs(wide), 100);
        assert_eq!(penalized.with_automatic_decay(wide).schedule, Schedule::Exponential { decay: 0.955 });
        assert_eq!(Hyperparameters::most_automatic_epochs(wide), 100);
        assert_eq!(penalized.automatic_epochs(Extent { tuples: 1_000_000, features: 1_000_000 }), 5);
    }

    #[test]
    fn hyperparameters_survive_json() {
        for (schedule, optimizer) in [
            (Schedule::Constant, Optimizer::Sgd),
            (Schedule::Theorem1 { mu: 0.1, a: Some(3.0) }, Optimizer::ADAM),
            (Schedule::InverseScaling { power: 0.3 }, Optimizer::MOMENTUM),
        ] {
            let kind = ModelKind::Svm;
            let (learning_rate, batch_size, l1, l2) = (0.1, 7, 1e-9, 1e-7);
            let hyper = Hyperparameters {
                kind,
                learning_rate,
                schedule,
                optimizer,
                batch_size,
                l1,
                l2,
                l2_on: Penalized::Categories,
                bounded: true,
                reach: 2.5,
                averaging: true,
                solver: Solver::Newton,
                loss_number: 0.0,
                design: Some(Design::default()),
            };
            let json = serde_json::to_string(&hyper).unwrap();
            assert_eq!(serde_json::from_str::<Hyperparameters>(&json).unwrap(), hyper);
        }
    }
}
