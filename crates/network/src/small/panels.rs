//! Where the numbers of a small network lie: in chunks, padded with zeros.
//!
//! The lanes of a chunk are units of the first hidden layer, for one input: that is how features, one after the other,
//! make what units say without sums over lanes. In all other layers they are inputs, for one output: there are mostly
//! fewer outputs than inputs, and back from the outputs there are no sums over lanes. A panel is the chunks of the same
//! units, or of the same inputs, one after the other.
//!
//! Guarantees: what is between the numbers is 0 and stays so, whatever is learned, unless the network has diverged.

use std::ops::Range;

use simd::{Chunk, LANES};

use crate::layers::Layer;

/// Tuples that are gone through together.
pub(super) const BLOCK: usize = 4;

/// Where one layer's numbers lie, in chunks.
#[derive(Debug, Clone)]
pub(super) struct Panels {
    pub(super) outputs: usize,
    /// chunks of a panel: one for each input of the first layer, one for each output of others
    pub(super) rows: usize,
    pub(super) weights: Range<usize>,
    pub(super) intercepts: Range<usize>,
    /// what the units say: for each tuple of a block `width` chunks
    pub(super) units: Range<usize>,
    pub(super) width: usize,
}

/// The layers one after the other, their weights, and their intercepts behind them.
pub(super) fn panels(layers: &[Layer]) -> Vec<Panels> {
    let chunks_of = |i: usize, layer: &Layer| match i {
        0 => layer.inputs * layer.outputs.div_ceil(LANES),
        _ => layer.outputs * layer.inputs.div_ceil(LANES),
    };
    let weights: usize = layers.iter().enumerate().map(|(i, layer)| chunks_of(i, layer)).sum();
    let (mut weight, mut intercept, mut unit) = (0, weights, 0);
    let panels = |(i, layer): (usize, &Layer)| {
        let (chunks, width) = (chunks_of(i, layer), layer.outputs.div_ceil(LANES));
        let panels = Panels {
            outputs: layer.outputs,
            rows: if i == 0 { layer.inputs } else { layer.outputs },
            weights: weight..weight + chunks,
            intercepts: intercept..intercept + width,
            units: unit..unit + BLOCK * width,
            width,
        };
        (weight, intercept, unit) = (panels.weights.end, panels.intercepts.end, panels.units.end);
        panels
    };
    layers.iter().enumerate().map(panels).collect()
}

/// Copies numbers, if there are some, into the panels.
pub(super) fn load(panels: &[Panels], layers: &[Layer], numbers: &[f32], chunks: &mut [Chunk]) {
    if numbers.is_empty() {
        return;
    }
    for (i, (of, layer)) in panels.iter().zip(layers).enumerate() {
        let weights = &mut chunks[of.weights.clone()];
        for (input, row) in numbers[layer.weights.clone()].chunks_exact(layer.outputs).enumerate() {
            if i == 0 {
                let parts = row.chunks(LANES).enumerate();
                parts.for_each(|(panel, part)| weights[panel * of.rows + input][..part.len()].copy_from_slice(part));
            } else {
                let panel = &mut weights[input / LANES * of.rows..][..of.rows];
                panel.iter_mut().zip(row).for_each(|(chunk, weight)| chunk[input % LANES] = *weight);
            }
        }
        let intercepts = chunks[of.intercepts.clone()].as_flattened_mut();
        intercepts[..layer.outputs].copy_from_slice(&numbers[layer.intercepts.clone()]);
    }
}

/// Copies the panels back.
pub(super) fn unload(panels: &[Panels], layers: &[Layer], chunks: &[Chunk], numbers: &mut [f32]) {
    if numbers.is_empty() {
        return;
    }
    for (i, (of, layer)) in panels.iter().zip(layers).enumerate() {
        let weights = &chunks[of.weights.clone()];
        for (input, row) in numbers[layer.weights.clone()].chunks_exact_mut(layer.outputs).enumerate() {
            if i == 0 {
                let parts = row.chunks_mut(LANES).enumerate();
                parts.for_each(|(panel, part)| part.copy_from_slice(&weights[panel * of.rows + input][..part.len()]));
            } else {
                let panel = &weights[input / LANES * of.rows..][..of.rows];
                panel.iter().zip(row).for_each(|(chunk, weight)| *weight = chunk[input % LANES]);
            }
        }
        let intercepts = chunks[of.intercepts.clone()].as_flattened();
        numbers[layer.intercepts.clone()].copy_from_slice(&intercepts[..layer.outputs]);
    }
}
