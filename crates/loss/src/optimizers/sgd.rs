//! Plain SGD: w ← w - η g.

use std::fmt;

use super::l1::{cut, pending_l1};
use super::lazy_weights::{LazyWeights, MissedSteps};
use super::method::{Method, Rule, Values};
use crate::invalid::{InvalidHyperparameter, Parameter};

/// Plain SGD.
#[derive(Debug, Clone, Copy)]
pub struct Sgd;

impl Method for Sgd {
    const NAME: &'static str = "sgd";
    const MOMENTS: usize = 0;
    const LEARNING_RATE: Option<f64> = None;
    const PARAMETERS: &'static [Parameter] = &[];

    fn validate(self) -> Result<(), InvalidHyperparameter> {
        Ok(())
    }

    fn values(self) -> Values {
        [0.0; 3]
    }

    type Rule = Step;

    #[inline(always)]
    fn rule(self, _: [f64; 2], rate: f32) -> Step {
        Step { rate }
    }

    /// A step without a gradient does nothing but what l1 takes, whose sum is known.
    #[inline(always)]
    fn catch_up(self, steps: &MissedSteps, lazy: &mut LazyWeights, features: impl Iterator<Item = usize>) {
        for j in features {
            let before = lazy.l1_applied_to(steps, j);
            if before != steps.l1_applied {
                lazy.mark_l1_applied(steps, j);
                let weights = lazy.weights.get_mut(j * steps.outputs..(j + 1) * steps.outputs);
                for u in weights.unwrap_or_default() {
                    *u = cut(*u, pending_l1(*u, before, steps.l1_applied) as f32);
                }
            }
        }
    }
}

impl fmt::Display for Sgd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAME)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Step {
    rate: f32,
}

impl Rule for Step {
    const IS_PLAIN: bool = true;

    #[inline(always)]
    fn rate(self) -> f32 {
        self.rate
    }

    #[inline(always)]
    fn step_one(self, w: &mut f32, _: Option<&mut f32>, _: Option<&mut f32>, gradient: f32) {
        *w += self.rate * gradient;
    }

    #[inline(always)]
    fn step(self, parameters: &mut [f32], _: &mut [f32], _: &mut [f32], gradient: &[f32], share: f32) {
        parameters.iter_mut().zip(gradient).for_each(|(w, g)| *w += self.rate * (share * g));
    }
}
