//! A linear model: what training hands over and prediction uses.
//!
//! Guarantees: [`LinearModel::decision`] and [`Evaluation`](crate::Evaluation) compute the same bits for the same
//! tuple, so that a prediction can never contradict the accuracy that was reported.

use crate::kernels::decision;

/// Weights and intercept. A tuple is positive if its decision is above 0, negative otherwise, also at exactly 0.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearModel {
    /// One weight per feature.
    pub weights: Vec<f32>,
    /// The decision where all features are 0.
    pub intercept: f32,
}

impl LinearModel {
    /// The model that training starts from: all zeros.
    pub fn new(dim: usize) -> LinearModel {
        LinearModel { weights: vec![0.0; dim], intercept: 0.0 }
    }

    /// w·x + intercept, in f32, summed in the order that SIMD dictates on every machine.
    ///
    /// # Panics
    /// If `features` are not as many as the weights.
    pub fn decision(&self, features: &[f32]) -> f32 {
        assert_eq!(features.len(), self.weights.len(), "as many features as weights");
        decision(&self.weights, self.intercept, features)
    }

    /// Whether no parameter is infinite or NaN.
    pub fn is_finite(&self) -> bool {
        self.intercept.is_finite() && self.weights.iter().all(|w| w.is_finite())
    }

    /// Swaps the classes: flips all signs, which is exact. Zeros stay as positive as training makes them.
    pub fn negate(&mut self) {
        for parameter in self.weights.iter_mut().chain([&mut self.intercept]) {
            *parameter = 0.0 - *parameter;
        }
    }
}
