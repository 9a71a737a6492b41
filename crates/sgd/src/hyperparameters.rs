//! What the user chooses: the model, and how it is trained.
//!
//! Guarantees: whatever [`Hyperparameters::validate`] lets pass has a learning rate above 0 in the first epoch and an
//! L2 penalty that shrinks weights without turning their sign. It prevents a run whose parameters can only diverge.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Activation, Design, Range};

/// Which loss a model minimises, and whether it is linear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    /// Logistic regression: ln(1 + e^(-y z)), y = -1 or 1.
    Logistic,
    /// Linear support vector machine: the hinge loss max(0, 1 - y z), y = -1 or 1.
    Svm,
    /// Linear regression: (z - y)²/2, y any number.
    Linear,
    /// Multinomial logistic regression: the cross entropy -ln p_y with p_k = e^(z_k) / Σ e^(z_j), y = 0, 1, ...
    Softmax,
    /// Feed-forward network of a [`Design`]: the cross entropy of what its last layer says, y = 0, 1, ...
    Mlp,
}

impl ModelKind {
    /// The linear models.
    pub const LINEAR: [ModelKind; 4] = [ModelKind::Logistic, ModelKind::Svm, ModelKind::Linear, ModelKind::Softmax];

    /// All of them, the linear ones first.
    pub const ALL: [ModelKind; 5] =
        [ModelKind::Logistic, ModelKind::Svm, ModelKind::Linear, ModelKind::Softmax, ModelKind::Mlp];

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            ModelKind::Logistic => "logistic",
            ModelKind::Svm => "svm",
            ModelKind::Linear => "linear",
            ModelKind::Softmax => "softmax",
            ModelKind::Mlp => "mlp",
        }
    }

    /// All names, for the hint of an error: "logistic, svm, linear, softmax, mlp".
    pub fn known() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Whether it puts tuples into classes: all but linear do.
    pub fn is_classifier(self) -> bool {
        self != ModelKind::Linear
    }

    /// Whether it has an output for each of any number of classes, whose numbers from 0 are its labels.
    pub fn has_class_numbers(self) -> bool {
        matches!(self, ModelKind::Softmax | ModelKind::Mlp)
    }

    /// Whether its labels are -1 and 1 and its decisions' signs are classes.
    pub fn is_binary(self) -> bool {
        matches!(self, ModelKind::Logistic | ModelKind::Svm)
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No model is called this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown model \"{0}\"")]
pub struct UnknownModel(pub String);

impl FromStr for ModelKind {
    type Err = UnknownModel;

    fn from_str(name: &str) -> Result<ModelKind, UnknownModel> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| UnknownModel(name.to_owned()))
    }
}

/// How a mean gradient g becomes a step of the weights w, at learning rate η.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Optimizer {
    /// w ← w - η g.
    Sgd,
    /// v ← β v + g, w ← w - η v, as PyTorch has it.
    Momentum {
        /// In [0, 1).
        beta: f64,
    },
    /// Kingma & Ba (2015): m ← β1 m + (1 - β1) g, v ← β2 v + (1 - β2) g², w ← w - η m̂ / (√v̂ + ε), where m̂ and v̂ are
    /// m and v divided by 1 - β1^t and 1 - β2^t in step t.
    Adam {
        /// In [0, 1).
        beta1: f64,
        /// In [0, 1).
        beta2: f64,
        /// Above 0.
        epsilon: f64,
    },
}

impl Optimizer {
    /// All names, the default first.
    pub const NAMES: [&str; 3] = ["sgd", "momentum", "adam"];

    /// The default of Momentum's β and Adam's β1.
    pub const BETA: f64 = 0.9;

    /// The default of Adam's β2.
    pub const BETA2: f64 = 0.999;

    /// The default of Adam's ε.
    pub const EPSILON: f64 = 1e-8;

    /// What β, β1 and β2 may be.
    pub const BETAS: Range = Range::from(0.0).below(1.0);

    /// What ε may be; it is above 0 and finite also in f32.
    pub const EPSILONS: Range = Range::above(0.0);

    /// Momentum with the default β.
    pub const MOMENTUM: Optimizer = Optimizer::Momentum { beta: Self::BETA };

    /// Adam with the default β1, β2 and ε.
    pub const ADAM: Optimizer = Optimizer::Adam { beta1: Self::BETA, beta2: Self::BETA2, epsilon: Self::EPSILON };

    /// How many numbers it remembers of each weight.
    pub fn moments(self) -> usize {
        match self {
            Optimizer::Sgd => 0,
            Optimizer::Momentum { .. } => 1,
            Optimizer::Adam { .. } => 2,
        }
    }

    /// The name that the option `optimizer` has.
    pub fn name(self) -> &'static str {
        match self {
            Optimizer::Sgd => "sgd",
            Optimizer::Momentum { .. } => "momentum",
            Optimizer::Adam { .. } => "adam",
        }
    }
}

/// How the learning rate goes on from epoch to epoch, s = 1, 2, ...
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Schedule {
    /// Always the same.
    Constant,
    /// η decay^(s-1).
    Exponential {
        /// In (0, 1].
        decay: f64,
    },
    /// η / s^power.
    InverseScaling {
        /// Above 0.
        power: f64,
    },
    /// Theorem 1 of the CorgiPile paper: in buffer s of bn tuples 6 / (bn mu (s + a)) for a tuple, and as many times that for a
    /// mini-batch as it has tuples, if its loss allows. The model is the average of those after each buffer, weighted by
    /// (s + a)³.
    Theorem1 {
        /// Above 0: how convex the objective is.
        mu: f64,
        /// At least 0; None: such that the first rate of a tuple is the learning rate, or 0 if that is not possible.
        a: Option<f64>,
    },
}

impl Schedule {
    /// All names, the default first.
    pub const NAMES: [&str; 4] = ["exponential", "constant", "inverse_scaling", "theorem1"];

    /// The papers' default of the decay.
    pub const DECAY: f64 = 0.95;

    /// The default of the power.
    pub const POWER: f64 = 0.5;

    /// What the decay may be.
    pub const DECAYS: Range = Range::above(0.0).to(1.0);

    /// What power and mu may be.
    pub const POSITIVE: Range = Range::above(0.0);

    /// What a may be.
    pub const SHIFTS: Range = Range::from(0.0);

    /// The papers' default.
    pub const EXPONENTIAL: Schedule = Schedule::Exponential { decay: Self::DECAY };

    /// The name that the option `schedule` has.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::Constant => "constant",
            Schedule::Exponential { .. } => "exponential",
            Schedule::InverseScaling { .. } => "inverse_scaling",
            Schedule::Theorem1 { .. } => "theorem1",
        }
    }
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
    /// What a network is made of; None for linear models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<Design>,
}

/// A hyperparameter is out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} {reason}")]
pub struct InvalidHyperparameter {
    /// The argument or option: the name of the field, wherever it is.
    pub name: &'static str,
    /// What it should be, such as "must be finite and greater than 0".
    pub reason: String,
}

impl Hyperparameters {
    /// What a learning rate may be; it is above 0 also in f32.
    pub const LEARNING_RATES: Range = Range::above(0.0);

    /// What l1 and l2 may be.
    pub const PENALTIES: Range = Range::from(0.0);

    /// The batch size of a training on [blocks](tuples::MiniBatch): each is a mini-batch, however many tuples it has.
    pub const WHOLE_MINI_BATCHES: u32 = u32::MAX;

    /// The largest batch size.
    pub const MAX_BATCH_SIZE: u32 = 1_000_000;

    /// The batch size of networks unless another is given.
    pub const NETWORK_BATCH_SIZE: u32 = 250;

    /// The defaults: learning rate 0.01, decay 0.95, plain SGD, a step per tuple, no penalty. A network has two hidden layers
    /// and other defaults for learning rate and batch size.
    pub fn new(kind: ModelKind) -> Hyperparameters {
        Hyperparameters {
            kind,
            learning_rate: if kind == ModelKind::Mlp { Activation::Sigmoid.learning_rate() } else { 0.01 },
            schedule: Schedule::EXPONENTIAL,
            optimizer: Optimizer::Sgd,
            batch_size: if kind == ModelKind::Mlp { Self::NETWORK_BATCH_SIZE } else { 1 },
            l1: 0.0,
            l2: 0.0,
            design: (kind == ModelKind::Mlp).then(Design::default),
        }
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
        let averages = matches!(self.schedule, Schedule::Theorem1 { .. });
        require(
            self.design.is_none() || !averages,
            "schedule",
            "must not be \"theorem1\", which is about convex losses",
        )?;
        let sizes = 1..=Self::MAX_BATCH_SIZE;
        let is_size = sizes.contains(&self.batch_size) || self.batch_size == Hyperparameters::WHOLE_MINI_BATCHES;
        require(is_size, "batch_size", "must be from 1 to 1000000")?;
        within(Self::PENALTIES, self.l1, "l1")?;
        within(Self::PENALTIES, self.l2, "l2")?;
        require(self.learning_rate * self.l2 < 1.0, "l2", "times learning_rate must be less than 1")
    }

    /// The step size in `epoch`, counted from 1. With [`Schedule::Theorem1`] it is another one in every buffer, and this is
    /// only what the first should be.
    pub fn learning_rate_at(&self, epoch: u32) -> f64 {
        match self.schedule {
            Schedule::Constant | Schedule::Theorem1 { .. } => self.learning_rate,
            Schedule::Exponential { decay } => self.learning_rate * decay.powf(f64::from(epoch) - 1.0),
            Schedule::InverseScaling { power } => self.learning_rate / f64::from(epoch).powf(power),
        }
    }
}

impl Schedule {
    fn validate(self) -> Result<(), InvalidHyperparameter> {
        match self {
            Schedule::Constant => Ok(()),
            Schedule::Exponential { decay } => within(Schedule::DECAYS, decay, "decay"),
            Schedule::InverseScaling { power } => within(Schedule::POSITIVE, power, "power"),
            Schedule::Theorem1 { mu, a } => {
                within(Schedule::POSITIVE, mu, "mu")?;
                a.map_or(Ok(()), |a| within(Schedule::SHIFTS, a, "a"))
            }
        }
    }
}

impl Optimizer {
    fn validate(self) -> Result<(), InvalidHyperparameter> {
        match self {
            Optimizer::Sgd => Ok(()),
            Optimizer::Momentum { beta } => within(Optimizer::BETAS, beta, "momentum"),
            Optimizer::Adam { beta1, beta2, epsilon } => {
                within(Optimizer::BETAS, beta1, "beta1")?;
                within(Optimizer::BETAS, beta2, "beta2")?;
                // what is added to the root of a gradient's square must not vanish in f32
                let in_f32 = epsilon >= f64::from(f32::MIN_POSITIVE) && epsilon <= 1e30;
                let sound = Optimizer::EPSILONS.contains(epsilon) && in_f32;
                require(sound, "epsilon", "must be greater than 0 and finite in type real")
            }
        }
    }
}

fn within(range: Range, number: f64, name: &'static str) -> Result<(), InvalidHyperparameter> {
    if range.contains(number) {
        Ok(())
    } else {
        Err(InvalidHyperparameter { name, reason: format!("must be {}", range.words()) })
    }
}

fn require(sound: bool, name: &'static str, reason: &str) -> Result<(), InvalidHyperparameter> {
    if sound { Ok(()) } else { Err(InvalidHyperparameter { name, reason: reason.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_from_its_name() {
        for kind in ModelKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.to_string(), kind.name());
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        assert_eq!(ModelKind::known(), "logistic, svm, linear, softmax, mlp");
    }

    #[test]
    fn an_unknown_name_is_refused_and_quoted() {
        let error = "Logistic".parse::<ModelKind>().unwrap_err();
        assert_eq!(error, UnknownModel("Logistic".to_owned()));
        assert_eq!(error.to_string(), "unknown model \"Logistic\"");
    }

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
                design: Some(Design::default()),
            };
            let json = serde_json::to_string(&hyper).unwrap();
            assert_eq!(serde_json::from_str::<Hyperparameters>(&json).unwrap(), hyper);
        }
    }
}
