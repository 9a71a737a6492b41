//! Defaults that depend on other choices.

use sgd::{Activation, Hyperparameters, ModelKind};

/// The learning rate of the first epoch, with Adam or another optimizer; of networks, with units of this activation.
pub fn learning_rate(kind: ModelKind, adapts: bool, activation: Option<Activation>) -> f64 {
    match activation {
        _ if adapts && kind == ModelKind::Mlp => Hyperparameters::new(kind).learning_rate,
        _ if adapts => 0.001,
        Some(activation) => activation.learning_rate(),
        None => Hyperparameters::new(kind).learning_rate,
    }
}
