//! The decisions of a trained network: weights layer after layer, each output by output, intercepts layer after layer.
//!
//! Guarantees: a tuple's decisions are the same bits, no matter who asks, one tuple at a time or a batch.

use tuples::Matrix;
use tuples::pause::Pauses;

use super::units::Activate;
use super::{Network, products};
use crate::kernels::{decision, sparse_decision};
use crate::view::ParametersView;
use simd::Level;

/// The features of a tuple.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tuple<'a> {
    Dense(&'a [f32]),
    Sparse(&'a [u32], &'a [f32]),
}

/// Fills `out` with the outputs of the network for a tuple.
pub(crate) fn decide(network: &Network, model: &ParametersView<'_>, tuple: Tuple<'_>, out: &mut [f32]) {
    let (mut weights, mut intercepts) = (model.weights, model.intercepts);
    let (mut inputs_of_layer, mut outputs_of_layer) = (Vec::new(), Vec::new());
    let (layers, mut pauses) = (network.hidden.sizes().len() + 1, Pauses::default());
    for (i, (inputs, outputs)) in network.layers(model.dim, model.outputs).enumerate() {
        let (own, rest) = weights.split_at(inputs * outputs);
        let (own_intercepts, rest_intercepts) = intercepts.split_at(outputs);
        (weights, intercepts) = (rest, rest_intercepts);
        let of_unit = |weights: &[f32]| match (i, tuple) {
            (0, Tuple::Dense(features)) => decision(weights, 0.0, features),
            (0, Tuple::Sparse(indices, values)) => sparse_decision(weights, 0.0, indices, values),
            _ => decision(weights, 0.0, &inputs_of_layer),
        };
        outputs_of_layer.clear();
        // a unit has its weights and an intercept
        let units = own.chunks_exact(inputs).inspect(|_| pauses.after(inputs + 1));
        allocation::extend(&mut outputs_of_layer, units.map(of_unit));
        let activation = (i + 1 < layers).then_some(network.activation);
        Level::PORTABLE.run(Activate {
            activation,
            numbers: &mut outputs_of_layer,
            scale: 1.0,
            intercepts: own_intercepts,
        });
        std::mem::swap(&mut inputs_of_layer, &mut outputs_of_layer);
    }
    out.copy_from_slice(&inputs_of_layer);
}

/// The outputs of the network for each row of a matrix, row by row. They may differ from those of [`decide`] in their
/// last digits.
pub fn decide_rows(network: &Network, model: &ParametersView<'_>, features: &dyn Matrix) -> Vec<f32> {
    let (mut weights, mut intercepts) = (model.weights, model.intercepts);
    let (rows, layers) = (features.rows(), network.hidden.sizes().len() + 1);
    let mut inputs_of_layer = Vec::new();
    for (i, (inputs, outputs)) in network.layers(model.dim, model.outputs).enumerate() {
        let (own, rest) = weights.split_at(inputs * outputs);
        let (own_intercepts, rest_intercepts) = intercepts.split_at(outputs);
        (weights, intercepts) = (rest, rest_intercepts);
        let mut outputs_of_layer = allocation::zeros(rows * outputs);
        if i == 0 {
            let by_input: Vec<f32> =
                allocation::collect((0..inputs).flat_map(|j| own[j..].iter().step_by(inputs)).copied());
            features.times_matrix(&by_input, outputs, &mut outputs_of_layer, &mut Vec::new());
        } else {
            products::times_transposed(&inputs_of_layer, own, rows, inputs, &mut outputs_of_layer);
        }
        let activation = (i + 1 < layers).then_some(network.activation);
        Level::detect().run(Activate {
            activation,
            numbers: &mut outputs_of_layer,
            scale: 1.0,
            intercepts: own_intercepts,
        });
        inputs_of_layer = outputs_of_layer;
    }
    inputs_of_layer
}
