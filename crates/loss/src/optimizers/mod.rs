//! The optimizers, a file for each with its numbers, their checks, its step and what it does with steps that a weight
//! has missed, and their list.

mod adam;
mod l1;
mod lazy_weights;
mod method;
mod momentum;
mod sgd;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::invalid::{InvalidHyperparameter, Parameter};
use crate::range::Range;
pub use adam::Adam;
pub use l1::{F64_CUTS, MIN_L1_STEP, cut_all, wrap};
pub use lazy_weights::{LazyWeights, MissedSteps, l1_bits};
pub use method::{Method, Rule};
pub use momentum::Momentum;
pub use sgd::Sgd;

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

/// Evaluates an expression with an optimizer's own type: compiled for each of them.
#[macro_export]
macro_rules! with_method {
    ($optimizer:expr, $method:ident => $body:expr) => {
        match $optimizer {
            $crate::Optimizer::Sgd => {
                let $method = $crate::optimizers::Sgd;
                $body
            }
            $crate::Optimizer::Momentum { beta } => {
                let $method = $crate::optimizers::Momentum::new([beta, 0.0, 0.0]);
                $body
            }
            $crate::Optimizer::Adam { beta1, beta2, epsilon } => {
                let $method = $crate::optimizers::Adam::new([beta1, beta2, epsilon]);
                $body
            }
        }
    };
}

impl Optimizer {
    /// All of them, with their defaults.
    pub const ALL: [Optimizer; 3] = [Optimizer::Sgd, Optimizer::MOMENTUM, Optimizer::ADAM];

    /// All names, the default first.
    pub const NAMES: [&str; 3] = [Sgd::NAME, Momentum::NAME, Adam::NAME];

    /// The default of Momentum's β and Adam's β1.
    pub const BETA: f64 = Adam::DEFAULT.beta1;

    /// The default of Adam's β2.
    pub const BETA2: f64 = Adam::DEFAULT.beta2;

    /// The default of Adam's ε.
    pub const EPSILON: f64 = Adam::DEFAULT.epsilon;

    /// What β, β1 and β2 may be.
    pub const BETAS: Range = Adam::PARAMETERS[0].range;

    /// What ε may be; it is above 0 and finite also in f32.
    pub const EPSILONS: Range = Adam::PARAMETERS[2].range;

    /// Momentum with β = 0.9.
    pub const MOMENTUM: Optimizer = Optimizer::Momentum { beta: Momentum::DEFAULT.beta };

    /// Adam with β1 = 0.9, β2 = 0.999, ε = 1e-8.
    pub const ADAM: Optimizer =
        Optimizer::Adam { beta1: Adam::DEFAULT.beta1, beta2: Adam::DEFAULT.beta2, epsilon: Adam::DEFAULT.epsilon };

    /// The optimizer with this place in [`ALL`](Optimizer::ALL) and these numbers.
    #[inline(always)]
    pub fn new(place: u32, [a, b, c]: [f64; 3]) -> Option<Optimizer> {
        match place {
            0 => Some(Optimizer::Sgd),
            1 => Some(Optimizer::Momentum { beta: a }),
            2 => Some(Optimizer::Adam { beta1: a, beta2: b, epsilon: c }),
            _ => None,
        }
    }

    /// The place in [`ALL`](Optimizer::ALL), and the numbers.
    pub fn place_and_values(self) -> (u32, [f64; 3]) {
        let place = Self::ALL.iter().position(|other| other.name() == self.name()).unwrap_or_default();
        (place as u32, with_method!(self, method => method.values()))
    }

    /// The optimizer of this name, with its defaults.
    pub fn named(name: &str) -> Option<Optimizer> {
        Self::ALL.into_iter().find(|optimizer| optimizer.name() == name)
    }

    /// The name that the option `optimizer` has.
    pub fn name(self) -> &'static str {
        fn name<M: Method>(_: M) -> &'static str {
            M::NAME
        }
        with_method!(self, method => name(method))
    }

    /// How many numbers it remembers of each weight.
    #[inline(always)]
    pub fn moments(self) -> usize {
        #[inline(always)]
        fn moments<M: Method>(_: M) -> usize {
            M::MOMENTS
        }
        with_method!(self, method => moments(method))
    }

    /// Its default learning rate, if that is not the model's.
    pub fn learning_rate(self) -> Option<f64> {
        fn learning_rate<M: Method>(_: M) -> Option<f64> {
            M::LEARNING_RATE
        }
        with_method!(self, method => learning_rate(method))
    }

    /// Its numbers: each with its value.
    pub fn parameters(self) -> impl Iterator<Item = (&'static Parameter, f64)> {
        fn parameters<M: Method>(_: M) -> &'static [Parameter] {
            M::PARAMETERS
        }
        with_method!(self, method => parameters(method)).iter().zip(self.place_and_values().1)
    }

    /// The same optimizer with another value of this number; None if it has no such number.
    pub fn with_parameter(self, name: &str, value: f64) -> Option<Optimizer> {
        let place = self.parameters().position(|(parameter, _)| parameter.name == name)?;
        let (own, mut values) = self.place_and_values();
        values[place] = value;
        Optimizer::new(own, values)
    }

    /// How many times its step a gradient moves the weights in the end, if it moves them at all evenly:
    /// 1 / (1 - β) with momentum.
    pub fn steps_in_the_end(self) -> f64 {
        match self {
            Optimizer::Momentum { beta } => 1.0 / (1.0 - beta),
            _ => 1.0,
        }
    }

    /// Checks the ranges of its numbers.
    pub(crate) fn validate(self) -> Result<(), InvalidHyperparameter> {
        with_method!(self, method => method.validate())
    }

    /// Counts a step in what some optimizers need: see [`Method::count_step`].
    #[inline(always)]
    pub fn count_step(self, unbiased: [f64; 2]) -> [f64; 2] {
        with_method!(self, method => method.count_step(unbiased))
    }
}

impl fmt::Display for Optimizer {
    /// The name and the numbers: "momentum 0.9".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_method!(*self, method => method.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_optimizer_is_found_by_its_name_and_keeps_its_numbers() {
        for optimizer in Optimizer::ALL {
            assert_eq!(Optimizer::named(optimizer.name()), Some(optimizer));
            let (place, values) = optimizer.place_and_values();
            assert_eq!(Optimizer::new(place, values), Some(optimizer));
            for (parameter, value) in optimizer.parameters() {
                assert_eq!(parameter.default, Some(value), "{}", parameter.name);
                let changed = optimizer.with_parameter(parameter.name, 0.25).unwrap();
                assert_eq!(changed.parameters().find(|(other, _)| *other == parameter).unwrap().1, 0.25);
                let wrong = optimizer.with_parameter(parameter.name, -1.0).unwrap().validate().unwrap_err();
                assert_eq!(wrong.name, parameter.name);
            }
            assert_eq!(optimizer.with_parameter("decay", 0.5), None);
        }
        assert_eq!(Optimizer::named("Adam"), None);
        assert_eq!(Optimizer::ALL.map(Optimizer::name), Optimizer::NAMES);
    }

    #[test]
    fn an_optimizer_is_shown_with_its_numbers() {
        let shown = Optimizer::ALL.map(|optimizer| optimizer.to_string());
        assert_eq!(shown, ["sgd", "momentum 0.9", "adam, beta1 0.9, beta2 0.999, epsilon 1e-8"]);
    }
}
