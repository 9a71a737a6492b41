//! The learning rate η decay^(s-1) in epoch s = 1, 2, ...

use std::fmt;

use super::rule::{Rule, Values};
use crate::invalid::{InvalidHyperparameter, Parameter, within};
use crate::range::Range;

#[derive(Debug, Clone, Copy)]
pub(super) struct Exponential {
    pub(super) decay: f64,
}

impl Exponential {
    pub(super) const DEFAULT: Exponential = Exponential { decay: 0.95 };
}

impl Rule for Exponential {
    const NAME: &'static str = "exponential";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "decay", default: Some(Self::DEFAULT.decay), range: Range::above(0.0).to(1.0) }];

    fn validate(self) -> Result<(), InvalidHyperparameter> {
        within(Self::PARAMETERS[0].range, self.decay, "decay")
    }

    fn values(self) -> Values {
        [Some(self.decay), None]
    }

    fn learning_rate(self, first: f64, epoch: u32) -> f64 {
        first * self.decay.powf(f64::from(epoch) - 1.0)
    }
}

impl fmt::Display for Exponential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, decay {}", Self::NAME, self.decay)
    }
}
