//! Feed-forward network of a [`Design`] that predicts a number: (z - y)²/2, y any number.

use super::definition::{Defaults, Model, Task};
use super::linear::Linear;
use super::mlp::Mlp;
use crate::{Design, Output};

pub(crate) struct MlpRegression;

impl Model for MlpRegression {
    const NAME: &'static str = "mlp_regression";
    const ALIASES: &'static [&'static str] = &["mlp_regressor", "neural_network_regression"];
    const DESCRIPTION: &'static str = "a network for regression";
    const TASK: Task = Task::Regression;
    const HAS_PROBABILITIES: bool = false;
    const CURVATURE: f64 = 1.0;

    fn exact_loss(decisions: &[f32], y: f64, _: f64) -> f64 {
        Linear::exact_loss(decisions, y, 0.0)
    }

    fn defaults() -> Defaults {
        let design = Design { output: Some(Output::Identity), ..Design::default() };
        // the squared error feels the noise of the last steps, which rarely changes a class
        Defaults { decay: 0.9, design: Some(design), ..Mlp::defaults() }
    }
}
