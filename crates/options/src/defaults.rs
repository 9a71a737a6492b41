//! Defaults that depend on other choices.

use loss::{Activation, Hyperparameters, ModelKind, Optimizer, Schedule};

/// The factor of the learning rate from epoch to epoch.
pub fn decay(kind: ModelKind) -> f64 {
    match Hyperparameters::new(kind).schedule {
        Schedule::Exponential { decay } => decay,
        _ => Schedule::DECAY,
    }
}

/// The learning rate of the first epoch; of networks, with units of this activation.
pub fn learning_rate(kind: ModelKind, optimizer: Optimizer, activation: Option<Activation>) -> f64 {
    let of_model = Hyperparameters::new(kind);
    if of_model.optimizer.name() == optimizer.name() {
        return of_model.learning_rate;
    }
    let of_others = || activation.map_or(of_model.learning_rate, Activation::learning_rate);
    optimizer.learning_rate().unwrap_or_else(of_others)
}
