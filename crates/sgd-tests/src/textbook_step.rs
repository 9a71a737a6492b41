//! What optimizers make of a gradient, in f64 and as their papers write it: the oracle of all tests of steps.

use loss::Optimizer;

/// The step of step number `t`, from 1, over the learning rate. `moments` are those of the weight, 0 at first.
pub fn textbook_step(optimizer: Optimizer, t: i32, moments: [&mut f64; 2], g: f64) -> f64 {
    let [first, second] = moments;
    match optimizer {
        Optimizer::Sgd => g,
        Optimizer::Momentum { beta } => {
            *first = beta * *first + g;
            *first
        }
        Optimizer::Adam { beta1, beta2, epsilon } => {
            *first = beta1 * *first + (1.0 - beta1) * g;
            *second = beta2 * *second + (1.0 - beta2) * g * g;
            let (m, v) = (*first / (1.0 - beta1.powi(t)), *second / (1.0 - beta2.powi(t)));
            m / (v.sqrt() + epsilon)
        }
    }
}
