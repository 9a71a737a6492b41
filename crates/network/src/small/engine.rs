//! How the engine learns as a small network: with copies of its numbers.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use tuples::Batch;

use super::learn::{Learn, Tuples};
use super::numbers::Small;
use super::panels::{load, unload};
use super::pass::Pass;
use crate::engine::NetworkEngine;

impl NetworkEngine {
    /// Learns from dense tuples as a small network, which this is.
    pub(crate) fn learn_small(&mut self, batch: &Batch, range: Range<usize>) {
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
        self.level.run(Learn { hyper, pass, weights, first, second, steps, pending, tuples });
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
