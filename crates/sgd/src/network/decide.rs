//! The decisions of a trained network: weights layer after layer, each output by output, intercepts layer after layer.
//!
//! Guarantees: a tuple's decisions are the same bits whoever asks, one tuple at a time or a batch.

use tuples::Matrix;

use super::products;
use super::shape::Network;
use super::units::Activate;
use crate::ParametersView;
use crate::kernels::{Level, decision, sparse_decision};

/// The features of a tuple.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tuple<'a> {
    Dense(&'a [f32]),
    Sparse(&'a [u32], &'a [f32]),
}

/// Fills `out` with the outputs of the network for a tuple.
pub(crate) fn decide(network: &Network, model: &ParametersView<'_>, tuple: Tuple<'_>, out: &mut [f32]) {
    let (mut weights, mut intercepts) = (model.weights, model.intercepts);
    let (mut said, mut says) = (Vec::new(), Vec::new());
    let layers = network.hidden.sizes().len() + 1;
    for (i, (inputs, outputs)) in network.layers(model.dim, model.outputs).enumerate() {
        let (own, rest) = weights.split_at(inputs * outputs);
        let (own_intercepts, rest_intercepts) = intercepts.split_at(outputs);
        (weights, intercepts) = (rest, rest_intercepts);
        let of_unit = |weights: &[f32]| match (i, tuple) {
            (0, Tuple::Dense(features)) => decision(weights, 0.0, features),
            (0, Tuple::Sparse(indices, values)) => sparse_decision(weights, 0.0, indices, values),
            _ => decision(weights, 0.0, &said),
        };
        says.clear();
        says.extend(own.chunks_exact(inputs).map(of_unit));
        let activation = (i + 1 < layers).then_some(network.activation);
        Level::PORTABLE.run(Activate { activation, numbers: &mut says, scale: 1.0, intercepts: own_intercepts });
        std::mem::swap(&mut said, &mut says);
    }
    out.copy_from_slice(&said);
}

/// The outputs of the network for each row of a matrix, row by row. They may differ from those of [`decide`] in their last
/// digits.
pub(crate) fn decide_rows(network: &Network, model: &ParametersView<'_>, features: &dyn Matrix) -> Vec<f32> {
    let (mut weights, mut intercepts) = (model.weights, model.intercepts);
    let (rows, layers) = (features.rows(), network.hidden.sizes().len() + 1);
    let mut said = Vec::new();
    for (i, (inputs, outputs)) in network.layers(model.dim, model.outputs).enumerate() {
        let (own, rest) = weights.split_at(inputs * outputs);
        let (own_intercepts, rest_intercepts) = intercepts.split_at(outputs);
        (weights, intercepts) = (rest, rest_intercepts);
        let mut says = vec![0.0; rows * outputs];
        if i == 0 {
            let by_input: Vec<f32> = (0..inputs).flat_map(|j| own[j..].iter().step_by(inputs)).copied().collect();
            features.times_matrix(&by_input, outputs, &mut says, &mut Vec::new());
        } else {
            products::times_transposed(&said, own, rows, inputs, &mut says);
        }
        let activation = (i + 1 < layers).then_some(network.activation);
        Level::detect().run(Activate { activation, numbers: &mut says, scale: 1.0, intercepts: own_intercepts });
        said = says;
    }
    said
}
