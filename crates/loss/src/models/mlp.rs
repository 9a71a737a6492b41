//! Feed-forward network of a [`Design`]: the cross entropy of its outputs, y = 0, 1, ...
//!
//! Its last layer has a loss of its own, by the design's [`Output`](crate::Output).

use super::definition::{Defaults, Model, Task};
use crate::math::{cross_entropy, entropy};
use crate::{Design, Optimizer, Schedule};

/// A network.
pub(crate) struct Mlp;

impl Model for Mlp {
    const NAME: &'static str = "mlp";
    const ALIASES: &'static [&'static str] = &["multilayer_perceptron", "neural_network"];
    const DESCRIPTION: &'static str = "a network";
    const TASK: Task = Task::Classes;
    const HAS_PROBABILITIES: bool = true;
    const CURVATURE: f64 = 1.0;

    /// That of softmax outputs.
    fn exact_loss(decisions: &[f32], y: f64, _: f64) -> f64 {
        cross_entropy(decisions, y as usize)
    }

    fn constant_loss(shares: &[f64]) -> Option<f64> {
        Some(entropy(shares))
    }

    fn defaults() -> Defaults {
        Defaults {
            learning_rate: 0.003,
            decay: Schedule::DECAY,
            automatic_rate: 1.0,
            automatic_fall: 0.01,
            batch_size: 32,
            optimizer: Optimizer::ADAM,
            design: Some(Design::default()),
        }
    }
}
