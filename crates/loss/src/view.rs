//! A model that is read where it lies.

use crate::Network;

/// A [`ModelParameters`](crate::ModelParameters) that lies elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct ParametersView<'a> {
    /// Features per tuple.
    pub dim: usize,
    /// 1, or the number of classes with softmax.
    pub outputs: usize,
    /// As those of a model that is owned.
    pub weights: &'a [f32],
    /// As those of a model that is owned.
    pub intercepts: &'a [f32],
    /// The hidden layers and what they compute, if there are any.
    pub network: Option<&'a Network>,
}
