//! Small networks, whose numbers stay in the processor's caches, on dense tuples.
//!
//! Guarantees: tuples add to the gradient one after the other, however many are gone through together. So a model is a
//! function of the sequence of tuples, bit for bit, and every processor gives the same bits.
//! It prevents a library for large matrices, which packs what it multiplies, from taking ten times as long as the
//! multiplications of a network of some hundred weights.

mod learn;
mod panels;
mod pass;
mod products;

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use tuples::{Batch, OutOfMemory};

use super::engine::NetworkEngine;
use super::layers::Layer;
use crate::Hyperparameters;
use crate::kernels::Aligned;
use crate::optimizers::with_method;
use learn::{Learn, Tuples};
use panels::{Panels, load, unload};
use pass::Pass;
use simd::LANES;

/// Tuples that are gone through together.
const BLOCK: usize = 4;

/// Numbers that a small network has at most, whatever its mini-batches.
const FEW: usize = 1 << 14;

/// A network of more is small as long as its numbers times its batch size are at most this: large products are made
/// faster by the library.
const PRODUCT: usize = 1 << 21;

/// Numbers that a small network has at most, with the smallest of mini-batches.
const MANY: usize = 1 << 17;

/// Tuples times numbers that are worth learning from at once: enough for what comes before and after to be nothing.
const WORK: usize = 1 << 25;

/// As many tuples at most, and at least.
const PIECE: [usize; 2] = [2048, 256];

/// The numbers of a small network as it computes with them, while it learns: between two calls only those of the engine
/// are true.
#[derive(Debug)]
pub(super) struct Small {
    layers: Vec<Panels>,
    /// chunks of all weights; the intercepts come behind them
    weights: usize,
    numbers: Vec<Aligned>,
    first: Vec<Aligned>,
    second: Vec<Aligned>,
    gradient: Vec<Aligned>,
    /// what units say of a block of tuples, then the derivatives by what they are given
    units: Vec<Aligned>,
    /// the derivatives by what the units of a layer say
    back: Vec<Aligned>,
}

impl Small {
    /// For a network of these layers; None if it is not small.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub(super) fn new(layers: &[Layer], hyper: &Hyperparameters) -> Result<Option<Small>, OutOfMemory> {
        let numbers = layers.last().map_or(0, |layer| layer.intercepts.end);
        let product = numbers.saturating_mul(hyper.batch_size as usize);
        if numbers > FEW && (numbers > MANY || product > PRODUCT) {
            return Ok(None);
        }
        let panels = panels::panels(layers);
        let end = |range: fn(&Panels) -> &Range<usize>| panels.last().map_or(0, |layer| range(layer).end);
        let (weights, all) = (end(|layer| &layer.weights), end(|layer| &layer.intercepts));
        let moments = hyper.optimizer.moments();
        let widest = panels.iter().map(|layer| layer.width).max().unwrap_or(0);
        Ok(Some(Small {
            weights,
            numbers: zeros(all)?,
            first: zeros(if moments > 0 { all } else { 0 })?,
            second: zeros(if moments > 1 { all } else { 0 })?,
            gradient: zeros(all)?,
            units: zeros(end(|layer| &layer.units))?,
            back: zeros(BLOCK * widest)?,
            layers: panels,
        }))
    }

    /// The most tuples that are worth learning from at once.
    pub(super) fn piece(&self) -> usize {
        let [most, least] = PIECE;
        (WORK / (LANES * self.numbers.len()).max(1)).clamp(least, most)
    }
}

impl NetworkEngine {
    /// Learns from dense tuples as a small network, which this is.
    pub(super) fn learn_small(&mut self, batch: &Batch, range: Range<usize>) {
        self.load_small();
        let NetworkEngine { small: Some(small), hyper, network, steps, pending, totals, .. } = self else { return };
        let Small { layers, weights, .. } = small;
        let pass = Pass {
            network: *network,
            layers,
            numbers: cast_slice_mut(&mut small.numbers),
            gradient: cast_slice_mut(&mut small.gradient),
            units: cast_slice_mut(&mut small.units),
            back: cast_slice_mut(&mut small.back),
            totals,
        };
        let (tuples, weights) = (Tuples::new(batch, range), *weights);
        let (first, second) = (cast_slice_mut(&mut small.first), cast_slice_mut(&mut small.second));
        let level = self.level;
        with_method!(hyper.optimizer, method => {
            level.run(Learn { method, hyper, pass, weights, first, second, steps, pending, tuples });
        });
        if self.pending > 0 {
            self.touched = None;
        }
        self.unload_small();
    }

    /// A gradient of no tuples is 0 here, and anything there.
    fn load_small(&mut self) {
        let NetworkEngine { small: Some(small), layers, numbers, first, second, gradient, pending, .. } = self else {
            return;
        };
        load(&small.layers, layers, numbers, cast_slice_mut(&mut small.numbers));
        load(&small.layers, layers, first, cast_slice_mut(&mut small.first));
        load(&small.layers, layers, second, cast_slice_mut(&mut small.second));
        if *pending > 0 {
            load(&small.layers, layers, gradient, cast_slice_mut(&mut small.gradient));
        }
    }

    fn unload_small(&mut self) {
        let NetworkEngine { small: Some(small), layers, numbers, first, second, gradient, pending, .. } = self else {
            return;
        };
        unload(&small.layers, layers, cast_slice(&small.numbers), numbers);
        unload(&small.layers, layers, cast_slice(&small.first), first);
        unload(&small.layers, layers, cast_slice(&small.second), second);
        match *pending {
            0 => gradient.fill(0.0),
            _ => unload(&small.layers, layers, cast_slice(&small.gradient), gradient),
        }
    }
}

/// So many chunks of zeros.
fn zeros(chunks: usize) -> Result<Vec<Aligned>, OutOfMemory> {
    let mut zeros = Vec::new();
    let error = OutOfMemory { bytes: chunks.saturating_mul(size_of::<Aligned>()) };
    zeros.try_reserve_exact(chunks).map_err(|_| error)?;
    zeros.resize(chunks, Aligned([0.0; LANES]));
    Ok(zeros)
}
