//! Theorem 1 of the CorgiPile paper, whose rates are those of buffers: see [`Theorem1`](crate::average::Theorem1).

use std::fmt;

use super::rule::{Rule, Values};
use crate::invalid::{InvalidHyperparameter, Parameter, within};
use crate::range::Range;

#[derive(Debug, Clone, Copy)]
pub(super) struct Theorem1 {
    pub(super) mu: f64,
    pub(super) a: Option<f64>,
}

impl Rule for Theorem1 {
    const NAME: &'static str = "theorem1";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "mu", default: None, range: Range::above(0.0) },
        Parameter { name: "a", default: None, range: Range::from(0.0) },
    ];

    fn validate(self) -> Result<(), InvalidHyperparameter> {
        within(Self::PARAMETERS[0].range, self.mu, "mu")?;
        self.a.map_or(Ok(()), |a| within(Self::PARAMETERS[1].range, a, "a"))
    }

    fn values(self) -> Values {
        [Some(self.mu), self.a]
    }

    /// What the first rate should be.
    fn learning_rate(self, first: f64, _: u32) -> f64 {
        first
    }
}

impl fmt::Display for Theorem1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, mu {}", Self::NAME, self.mu)?;
        self.a.map_or(Ok(()), |a| write!(f, ", a {a}"))
    }
}
