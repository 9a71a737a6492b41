//! Where the numbers of a network lie.

use std::ops::Range;

use loss::Network;

/// One layer's numbers.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// input by input: one for each output
    pub(super) weights: Range<usize>,
    pub(super) intercepts: Range<usize>,
}

/// The layers in memory: all weights, then all intercepts. None if no memory could hold them.
pub(super) fn layers(network: &Network, dim: usize, outputs: usize) -> Option<Vec<Layer>> {
    let weights = network.weights(dim, outputs);
    let total = weights.checked_add(network.intercepts(outputs))?;
    total.checked_mul(size_of::<f32>())?;
    let (mut weight, mut intercept) = (0, weights);
    let layer = |(inputs, outputs): (usize, usize)| {
        let layer = Layer {
            inputs,
            outputs,
            weights: weight..weight + inputs * outputs,
            intercepts: intercept..intercept + outputs,
        };
        (weight, intercept) = (layer.weights.end, layer.intercepts.end);
        layer
    };
    Some(network.layers(dim, outputs).map(layer).collect())
}
