//! Newton's method: the exact optimum of a loss with two derivatives, in a few passes over the tuples, whatever their
//! order.
//!
//! A pass adds up loss, gradient and Hessian at one point ([`Sums`]); between two passes [`Descent`] makes a step, of
//! which the next pass tells whether it was too long. Everything is in f64.
//!
//! Guarantees: the same bits for the same sequence of tuples, however it is cut and whatever instructions the processor
//! has; the objective never grows from one accepted point to the next, so that no start and no data make it diverge;
//! features that others determine keep their weights, and do no harm. It prevents that a model of the least loss takes
//! hundreds of epochs of small steps, and a reader who compares it with a textbook's result.

mod cholesky;
mod descent;
mod distributions;
mod engine;
mod inference;
mod sums;

pub use distributions::{two_sided_quantile, two_sided_tail};
pub use engine::NewtonEngine;
pub use inference::{Estimate, Estimates, Inference, Weighting};

/// Multiplications between two pauses: some milliseconds.
const PER_PAUSE: usize = 1 << 24;

#[cfg(test)]
mod tests;
