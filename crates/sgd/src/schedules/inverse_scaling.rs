//! The learning rate η / s^power in epoch s = 1, 2, ...

use std::fmt;

use super::rule::{Rule, Values};
use crate::invalid::{InvalidHyperparameter, Parameter, within};
use crate::range::Range;

#[derive(Debug, Clone, Copy)]
pub(super) struct InverseScaling {
    pub(super) power: f64,
}

impl InverseScaling {
    pub(super) const DEFAULT: InverseScaling = InverseScaling { power: 0.5 };
}

impl Rule for InverseScaling {
    const NAME: &'static str = "inverse_scaling";
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "power", default: Some(Self::DEFAULT.power), range: Range::above(0.0) }];

    fn validate(self) -> Result<(), InvalidHyperparameter> {
        within(Self::PARAMETERS[0].range, self.power, "power")
    }

    fn values(self) -> Values {
        [Some(self.power), None]
    }

    fn learning_rate(self, first: f64, epoch: u32) -> f64 {
        first / f64::from(epoch).powf(self.power)
    }
}

impl fmt::Display for InverseScaling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, power {}", Self::NAME, self.power)
    }
}
