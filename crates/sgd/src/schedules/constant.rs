//! Always the same learning rate.

use std::fmt;

use super::rule::{Rule, Values};
use crate::invalid::{InvalidHyperparameter, Parameter};

#[derive(Debug, Clone, Copy)]
pub(super) struct Constant;

impl Rule for Constant {
    const NAME: &'static str = "constant";
    const PARAMETERS: &'static [Parameter] = &[];

    fn validate(self) -> Result<(), InvalidHyperparameter> {
        Ok(())
    }

    fn values(self) -> Values {
        [None; 2]
    }

    fn learning_rate(self, first: f64, _: u32) -> f64 {
        first
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAME)
    }
}
