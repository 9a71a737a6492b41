//! The numbers of a small network while it learns, and which networks are small.

use std::ops::Range;

use loss::Hyperparameters;
use loss::kernels::Aligned;
use simd::LANES;
use tuples::OutOfMemory;

use super::panels::{BLOCK, Panels, panels};
use crate::layers::Layer;

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
pub(crate) struct Small {
    pub(super) layers: Vec<Panels>,
    /// chunks of all weights; the intercepts come behind them
    pub(super) weights: usize,
    pub(super) numbers: Vec<Aligned>,
    pub(super) first: Vec<Aligned>,
    pub(super) second: Vec<Aligned>,
    pub(super) gradient: Vec<Aligned>,
    /// what units say of a block of tuples, then the derivatives by what they are given
    pub(super) units: Vec<Aligned>,
    /// the derivatives by what the units of a layer say
    pub(super) back: Vec<Aligned>,
}

impl Small {
    /// For a network of these layers; None if it is not small.
    pub(crate) fn new(layers: &[Layer], hyper: &Hyperparameters) -> Result<Option<Small>, OutOfMemory> {
        let numbers = layers.last().map_or(0, |layer| layer.intercepts.end);
        let product = numbers.saturating_mul(hyper.batch_size as usize);
        if numbers > FEW && (numbers > MANY || product > PRODUCT) {
            return Ok(None);
        }
        let panels = panels(layers);
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
    pub(crate) fn piece(&self) -> usize {
        let [most, least] = PIECE;
        (WORK / (LANES * self.numbers.len()).max(1)).clamp(least, most)
    }
}

fn zeros(chunks: usize) -> Result<Vec<Aligned>, OutOfMemory> {
    let mut zeros = Vec::new();
    allocation::try_reserve_exact(&mut zeros, chunks)?;
    zeros.resize(chunks, Aligned([0.0; LANES]));
    Ok(zeros)
}
