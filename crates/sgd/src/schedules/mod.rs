//! The schedules, a file for each with its numbers, their checks and its learning rates, and their list.

mod constant;
mod exponential;
mod inverse_scaling;
mod rule;
mod theorem1;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::invalid::{InvalidHyperparameter, Parameter};
use crate::range::Range;
use constant::Constant;
use exponential::Exponential;
use inverse_scaling::InverseScaling;
use rule::{Rule, Values};
use theorem1::Theorem1;

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
    /// Theorem 1 of the CorgiPile paper: in buffer s of bn tuples 6 / (bn mu (s + a)) for a tuple, and as many times
    /// that for a mini-batch as it has tuples, if its loss allows. The model is the average of those after each buffer,
    /// weighted by (s + a)³.
    Theorem1 {
        /// Above 0: how convex the objective is.
        mu: f64,
        /// At least 0; None: such that the first rate of a tuple is the learning rate, or 0 if that is not possible.
        a: Option<f64>,
    },
}

/// Evaluates an expression with a schedule's own type.
macro_rules! with_rule {
    ($schedule:expr, $rule:ident => $body:expr) => {
        match $schedule {
            Schedule::Constant => {
                let $rule = Constant;
                $body
            }
            Schedule::Exponential { decay } => {
                let $rule = Exponential { decay };
                $body
            }
            Schedule::InverseScaling { power } => {
                let $rule = InverseScaling { power };
                $body
            }
            Schedule::Theorem1 { mu, a } => {
                let $rule = Theorem1 { mu, a };
                $body
            }
        }
    };
}

impl Schedule {
    /// All of them, with their defaults.
    pub const ALL: [Schedule; 4] = [
        Schedule::Constant,
        Schedule::EXPONENTIAL,
        Schedule::InverseScaling { power: InverseScaling::DEFAULT.power },
        // without the mu that depends on other hyperparameters
        Schedule::Theorem1 { mu: 0.0, a: None },
    ];

    /// All names, the default first.
    pub const NAMES: [&str; 4] = [Exponential::NAME, Constant::NAME, InverseScaling::NAME, Theorem1::NAME];

    /// The papers' default of the decay.
    pub const DECAY: f64 = Exponential::DEFAULT.decay;

    /// The default of the power.
    pub const POWER: f64 = InverseScaling::DEFAULT.power;

    /// What the decay may be.
    pub const DECAYS: Range = Exponential::PARAMETERS[0].range;

    /// What power and mu may be.
    pub const POSITIVE: Range = InverseScaling::PARAMETERS[0].range;

    /// What a may be.
    pub const SHIFTS: Range = Theorem1::PARAMETERS[1].range;

    /// The papers' default: a decay of 0.95.
    pub const EXPONENTIAL: Schedule = Schedule::Exponential { decay: Exponential::DEFAULT.decay };

    /// The schedule with this place in [`ALL`](Schedule::ALL) and these numbers.
    pub(crate) fn new(place: u32, [first, second]: Values) -> Option<Schedule> {
        match place {
            0 => Some(Schedule::Constant),
            1 => Some(Schedule::Exponential { decay: first? }),
            2 => Some(Schedule::InverseScaling { power: first? }),
            3 => Some(Schedule::Theorem1 { mu: first?, a: second }),
            _ => None,
        }
    }

    /// The place in [`ALL`](Schedule::ALL), and the numbers.
    pub(crate) fn place_and_values(self) -> (u32, Values) {
        let place = Self::ALL.iter().position(|other| other.name() == self.name()).unwrap_or_default();
        (place as u32, with_rule!(self, rule => rule.values()))
    }

    /// All names, for the hint of an error.
    pub fn known() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The schedule of this name, with its defaults.
    pub fn named(name: &str) -> Option<Schedule> {
        Self::ALL.into_iter().find(|schedule| schedule.name() == name)
    }

    /// The name that the option `schedule` has.
    pub fn name(self) -> &'static str {
        fn name<R: Rule>(_: R) -> &'static str {
            R::NAME
        }
        with_rule!(self, rule => name(rule))
    }

    /// Its numbers: each with its value, None if it is left open.
    pub fn parameters(self) -> impl Iterator<Item = (&'static Parameter, Option<f64>)> {
        fn parameters<R: Rule>(_: R) -> &'static [Parameter] {
            R::PARAMETERS
        }
        with_rule!(self, rule => parameters(rule)).iter().zip(self.place_and_values().1)
    }

    /// The same schedule with another value of this number; None if it has no such number.
    pub fn with_parameter(self, name: &str, value: f64) -> Option<Schedule> {
        let place = self.parameters().position(|(parameter, _)| parameter.name == name)?;
        let (own, mut values) = self.place_and_values();
        values[place] = Some(value);
        Schedule::new(own, values)
    }

    /// Whether the rates are those of buffers, and the model is an average.
    pub fn averages(self) -> bool {
        matches!(self, Schedule::Theorem1 { .. })
    }

    /// Checks the ranges of its numbers.
    pub(crate) fn validate(self) -> Result<(), InvalidHyperparameter> {
        with_rule!(self, rule => rule.validate())
    }

    /// The learning rate in `epoch`, of which the first is `first`.
    pub(crate) fn learning_rate(self, first: f64, epoch: u32) -> f64 {
        with_rule!(self, rule => rule.learning_rate(first, epoch))
    }
}

impl fmt::Display for Schedule {
    /// The name and the numbers: "exponential, decay 0.95".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_rule!(*self, rule => rule.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_is_found_by_its_name_and_keeps_its_numbers() {
        for schedule in Schedule::ALL {
            assert_eq!(Schedule::named(schedule.name()), Some(schedule));
            let (place, values) = schedule.place_and_values();
            assert_eq!(Schedule::new(place, values), Some(schedule));
            let mut changed = schedule;
            for (parameter, value) in schedule.parameters() {
                assert!(parameter.default.is_none() || parameter.default == value, "{}", parameter.name);
                changed = changed.with_parameter(parameter.name, 0.25).unwrap();
                assert_eq!(changed.parameters().find(|(other, _)| *other == parameter).unwrap().1, Some(0.25));
                let wrong = changed.with_parameter(parameter.name, -1.0).unwrap().validate().unwrap_err();
                assert_eq!(
                    (wrong.name, &*wrong.reason),
                    (parameter.name, &*format!("must be {}", parameter.range.words()))
                );
            }
            assert_eq!(changed.validate(), Ok(()));
            assert_eq!(schedule.with_parameter("momentum", 0.5), None);
        }
        assert_eq!(Schedule::named("Constant"), None);
        assert_eq!(Schedule::known(), "constant, exponential, inverse_scaling, theorem1");
    }

    #[test]
    fn a_schedule_is_shown_with_its_numbers() {
        let shown = [Schedule::Constant, Schedule::EXPONENTIAL, Schedule::Theorem1 { mu: 0.1, a: Some(3.0) }];
        let shown = shown.map(|schedule| schedule.to_string());
        assert_eq!(shown, ["constant", "exponential, decay 0.95", "theorem1, mu 0.1, a 3"]);
    }
}
