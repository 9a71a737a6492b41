//! A block of tuples through the layers and back: what they say of every weight.

use loss::design::units::{activate_chunks, derive_chunks};
use loss::totals::Totals;
use loss::{Activation, Network, Output};
use simd::{Chunk, LANES, Simd};

use super::panels::Panels;
use super::products::{Rows, combine, spread};
use crate::losses::{FEW, few_losses_and_gradients, loss_and_gradient};

/// The numbers that a block of tuples goes through.
pub(super) struct Pass<'a> {
    pub(super) network: Network,
    pub(super) layers: &'a [Panels],
    pub(super) numbers: &'a mut [Chunk],
    pub(super) gradient: &'a mut [Chunk],
    pub(super) units: &'a mut [Chunk],
    pub(super) back: &'a mut [Chunk],
    pub(super) totals: &'a mut Totals,
}

/// Tuples.
pub(super) struct Block<'a, const R: usize> {
    pub(super) features: [&'a [f32]; R],
    pub(super) labels: [f32; R],
    pub(super) weights: [f32; R],
}

/// What becomes of gradients.
#[derive(Clone, Copy)]
pub(super) enum Gradients {
    /// They are the first of their mini-batch.
    First,
    /// They are added to those of their mini-batch.
    Added,
    /// They make a step at once, these multiples of those of weights and of intercepts.
    Step([f32; 2]),
}

impl Pass<'_> {
    /// Counts the tuples, and takes their gradients, with minus. Weights are `scale` times the numbers.
    #[inline(always)]
    pub(super) fn run<const R: usize, S: Simd>(
        &mut self,
        simd: S,
        block: &Block<'_, R>,
        scale: f32,
        gradients: Gradients,
    ) {
        for i in 0..self.layers.len() {
            self.forward(simd, i, &block.features, scale);
        }
        self.losses(block);
        for i in (0..self.layers.len()).rev() {
            self.backward(simd, i, &block.features, scale, gradients);
        }
    }

    /// What the units of a layer say.
    #[inline(always)]
    fn forward<const R: usize, S: Simd>(&mut self, simd: S, i: usize, features: &[&[f32]; R], scale: f32) {
        let Pass { network, layers, numbers, units, .. } = self;
        let layer = &layers[i];
        let (width, weights) = (layer.width, &numbers[layer.weights.clone()]);
        let (before, own) = units.split_at_mut(layer.units.start);
        let own = &mut own[..R * width];
        match i.checked_sub(1).map(|i| &layers[i]) {
            None => {
                for panel in 0..width {
                    let sums = combine(simd, &weights[panel * layer.rows..][..layer.rows], *features);
                    for r in 0..R {
                        simd.store(sums[r], &mut own[r * width + panel]);
                    }
                }
            }
            Some(inputs) => {
                let rows = Rows { panels: weights, count: layer.rows };
                let of = said_by(inputs, before);
                rows.dots::<R, S>(simd, of, own.as_flattened_mut(), width * LANES);
            }
        }
        let intercepts = &numbers[layer.intercepts.clone()];
        if i + 1 < layers.len() {
            for r in 0..R {
                let row = &mut own[r * width..][..width];
                activate_chunks(network.activation, row, scale, intercepts);
                // all others say 0 of 0
                if network.activation == Activation::Sigmoid && !layer.outputs.is_multiple_of(LANES) {
                    row.as_flattened_mut()[layer.outputs..].fill(0.0);
                }
            }
            return;
        }
        for r in 0..R {
            let row = &mut own[r * width..][..width].as_flattened_mut()[..layer.outputs];
            row.iter_mut().zip(intercepts.as_flattened()).for_each(|(z, b)| *z = *z * scale + b);
        }
    }

    /// From what the last layer says to the derivatives of the losses by it.
    #[inline(always)]
    fn losses<const R: usize>(&mut self, block: &Block<'_, R>) {
        let Some(layer) = self.layers.last() else { return };
        let rows = self.units[layer.units.clone()].as_flattened_mut();
        if R > 1 && self.network.output == Output::Softmax && layer.outputs <= FEW && layer.width == 1 {
            let (rows, _) = rows.as_chunks_mut::<LANES>();
            let mut rows = rows.iter_mut();
            let out = [(); R].map(|()| rows.next().map_or(&mut [][..], |row| &mut row[..layer.outputs]));
            few_losses_and_gradients(self.totals, out, &block.labels, &block.weights);
            return;
        }
        for r in 0..R {
            let out = &mut rows[r * layer.width * LANES..][..layer.outputs];
            loss_and_gradient(self.network.output, self.totals, out, block.labels[r], block.weights[r]);
        }
    }

    /// From the derivatives by what the units of a layer are given to the gradient of its numbers, and to the
    /// derivatives by what those of the layer before are given.
    #[inline(always)]
    fn backward<const R: usize, S: Simd>(
        &mut self,
        simd: S,
        i: usize,
        features: &[&[f32]; R],
        scale: f32,
        gradients: Gradients,
    ) {
        let Pass { network, layers, numbers, gradient, units, back, .. } = self;
        let (layer, inputs) = (&layers[i], i.checked_sub(1).map(|i| &layers[i]));
        let (before, own) = units.split_at_mut(layer.units.start);
        let own = &mut own[..R * layer.width];
        if let Some(inputs) = inputs {
            let (weights, of) = (&numbers[layer.weights.clone()], numbers_of::<R>(layer, own));
            for panel in 0..inputs.width {
                let sums = combine(simd, &weights[panel * layer.rows..][..layer.rows], of);
                for r in 0..R {
                    simd.store(sums[r], &mut back[r * inputs.width + panel]);
                }
            }
        }
        let (to, fresh, factors) = match gradients {
            Gradients::First => (&mut **gradient, true, None),
            Gradients::Added => (&mut **gradient, false, None),
            Gradients::Step(factors) => (&mut **numbers, false, Some(factors)),
        };
        add_intercepts::<R, S>(simd, layer, own, &mut to[layer.intercepts.clone()], fresh, factors);
        if let Some([factor, _]) = factors {
            own.as_flattened_mut().iter_mut().for_each(|number| *number *= factor);
        }
        let weights = &mut to[layer.weights.clone()];
        let Some(inputs) = inputs else {
            for panel in 0..layer.width {
                let vectors = loaded::<R, S>(simd, own, layer.width, panel);
                spread(simd, &mut weights[panel * layer.rows..][..layer.rows], *features, vectors, fresh);
            }
            return;
        };
        let of = numbers_of::<R>(layer, own);
        let said = &mut before[inputs.units.start..][..R * inputs.width];
        for panel in 0..inputs.width {
            let vectors = loaded::<R, S>(simd, said, inputs.width, panel);
            spread(simd, &mut weights[panel * layer.rows..][..layer.rows], of, vectors, fresh);
        }
        derive_chunks(network.activation, &back[..R * inputs.width], said, scale);
    }
}

/// What the units of a layer say of each tuple.
#[inline(always)]
fn said_by<'a, const R: usize>(layer: &Panels, units: &'a [Chunk]) -> [&'a [Chunk]; R] {
    let mut said = [&units[..0]; R];
    for r in 0..R {
        said[r] = &units[layer.units.start + r * layer.width..][..layer.width];
    }
    said
}

/// The numbers of a layer's units for each tuple.
#[inline(always)]
fn numbers_of<'a, const R: usize>(layer: &Panels, own: &'a [Chunk]) -> [&'a [f32]; R] {
    let mut numbers = [&own.as_flattened()[..0]; R];
    for r in 0..R {
        numbers[r] = &own[r * layer.width..][..layer.width].as_flattened()[..layer.outputs];
    }
    numbers
}

/// The same chunk of each tuple's.
#[inline(always)]
fn loaded<const R: usize, S: Simd>(simd: S, chunks: &[Chunk], width: usize, place: usize) -> [S::Vector; R] {
    let mut vectors = [simd.splat(0.0); R];
    for r in 0..R {
        vectors[r] = simd.load(&chunks[r * width + place]);
    }
    vectors
}

/// Adds the derivatives of each tuple to `to`, or their multiple; with `fresh`, that is taken for 0.
#[inline(always)]
fn add_intercepts<const R: usize, S: Simd>(
    simd: S,
    layer: &Panels,
    own: &[Chunk],
    to: &mut [Chunk],
    fresh: bool,
    factors: Option<[f32; 2]>,
) {
    let factor = simd.splat(factors.map_or(1.0, |[_, factor]| factor));
    for (i, to) in to.iter_mut().enumerate() {
        let mut sum = if fresh { simd.splat(0.0) } else { simd.load(to) };
        for r in 0..R {
            sum = simd.fma(factor, simd.load(&own[r * layer.width + i]), sum);
        }
        simd.store(sum, to);
    }
}
