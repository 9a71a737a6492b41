//! The schedules: their numbers, the checks of these, and their learning rates.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::invalid::{InvalidHyperparameter, Parameter, within};
use crate::range::Range;

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

/// The numbers of a schedule, in the order of its [parameters](Schedule::parameters); None for one that is left open,
/// or that there is not.
type Values = [Option<f64>; 2];

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

    /// The papers' default: a decay of 0.95.
    pub const EXPONENTIAL: Schedule = Schedule::Exponential { decay: Schedule::DECAY };

    /// The number by which it is stored, the name, and the numbers.
    fn definition(self) -> (u32, &'static str, &'static [Parameter], Values) {
        const fn number(name: &'static str, default: Option<f64>, range: Range) -> Parameter {
            Parameter { name, default, range }
        }
        const DECAY: &[Parameter] = &[number("decay", Some(Schedule::DECAY), Schedule::DECAYS)];
        const POWER: &[Parameter] = &[number("power", Some(Schedule::POWER), Schedule::POSITIVE)];
        const THEOREM: &[Parameter] = &[number("mu", None, Schedule::POSITIVE), number("a", None, Schedule::SHIFTS)];
        match self {
            Schedule::Constant => (0, "constant", &[], [None; 2]),
            Schedule::Exponential { decay } => (1, "exponential", DECAY, [Some(decay), None]),
            Schedule::InverseScaling { power } => (2, "inverse_scaling", POWER, [Some(power), None]),
            Schedule::Theorem1 { mu, a } => (3, "theorem1", THEOREM, [Some(mu), a]),
        }
    }

    /// The schedule stored by this number, with these numbers of its own.
    pub fn new(place: u32, [first, second]: Values) -> Option<Schedule> {
        match place {
            0 => Some(Schedule::Constant),
            1 => Some(Schedule::Exponential { decay: first? }),
            2 => Some(Schedule::InverseScaling { power: first? }),
            3 => Some(Schedule::Theorem1 { mu: first?, a: second }),
            _ => None,
        }
    }

    /// The number by which it is stored, and its own numbers.
    pub fn place_and_values(self) -> (u32, Values) {
        let (place, _, _, values) = self.definition();
        (place, values)
    }

    /// The name that the option `schedule` has.
    pub fn name(self) -> &'static str {
        self.definition().1
    }

    /// Its numbers: each with its value, None if it is left open.
    pub fn parameters(self) -> impl Iterator<Item = (&'static Parameter, Option<f64>)> {
        let (_, _, parameters, values) = self.definition();
        parameters.iter().zip(values)
    }

    /// Whether the rates are those of buffers, and the model is an average.
    pub fn averages(self) -> bool {
        matches!(self, Schedule::Theorem1 { .. })
    }

    /// Checks the ranges of its numbers.
    pub(crate) fn validate(self) -> Result<(), InvalidHyperparameter> {
        let mut given = self.parameters().filter_map(|(parameter, value)| Some((parameter, value?)));
        given.try_for_each(|(parameter, value)| within(parameter.range, value, parameter.name))
    }

    /// The learning rate in `epoch`, counted from 1, of which the first is `first`; of the theorem, whose rates are
    /// those of buffers, what the first should be.
    pub(crate) fn learning_rate(self, first: f64, epoch: u32) -> f64 {
        match self {
            Schedule::Constant | Schedule::Theorem1 { .. } => first,
            Schedule::Exponential { decay } => first * decay.powf(f64::from(epoch) - 1.0),
            Schedule::InverseScaling { power } => first / f64::from(epoch).powf(power),
        }
    }
}

impl fmt::Display for Schedule {
    /// The name and the numbers: "exponential, decay 0.95".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let mut given = self.parameters().filter_map(|(parameter, value)| Some((parameter.name, value?)));
        given.try_for_each(|(name, value)| write!(f, ", {name} {value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_is_found_by_its_name_and_keeps_its_numbers() {
        let all = [
            Schedule::EXPONENTIAL,
            Schedule::Constant,
            Schedule::InverseScaling { power: Schedule::POWER },
            Schedule::Theorem1 { mu: 0.0, a: None },
        ];
        assert_eq!(all.map(Schedule::name), Schedule::NAMES);
        for schedule in all {
            let (place, mut values) = schedule.place_and_values();
            assert_eq!(Schedule::new(place, values), Some(schedule));
            let mut changed = schedule;
            for (i, (parameter, value)) in schedule.parameters().enumerate() {
                assert!(parameter.default.is_none() || parameter.default == value, "{}", parameter.name);
                values[i] = Some(0.25);
                changed = Schedule::new(place, values).unwrap();
                assert_eq!(changed.parameters().nth(i), Some((parameter, Some(0.25))));
                let mut negative = values;
                negative[i] = Some(-1.0);
                let wrong = Schedule::new(place, negative).unwrap().validate().unwrap_err();
                assert_eq!(
                    (wrong.name, &*wrong.reason),
                    (parameter.name, &*format!("must be {}", parameter.range.words()))
                );
            }
            assert_eq!(changed.validate(), Ok(()));
        }
    }

    #[test]
    fn a_schedule_is_shown_with_its_numbers() {
        let shown = [Schedule::Constant, Schedule::EXPONENTIAL, Schedule::Theorem1 { mu: 0.1, a: Some(3.0) }];
        let shown = shown.map(|schedule| schedule.to_string());
        assert_eq!(shown, ["constant", "exponential, decay 0.95", "theorem1, mu 0.1, a 3"]);
    }
}
