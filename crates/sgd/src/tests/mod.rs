//! Tests of the trainer against independent computations, and of what it guarantees to the bit.

mod aggregate;
mod averaging;
mod bits;
mod cluster;
mod columns;
mod data_parallel;
mod elsewhere;
mod evaluation;
mod halting;
mod hand;
mod mini_batches;
mod panel;
mod pending_l1;
mod reference;
mod reference_engine;
mod sparse_rows;
mod steps;
mod textbook;
mod textbook_step;
mod theorem;
mod zeros;

pub(crate) use textbook_step::textbook_step;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tuples::Batch;

use crate::ModelKind;

/// The kinds whose labels are -1 and 1.
pub(crate) const BINARY: [ModelKind; 2] = [ModelKind::Logistic, ModelKind::Svm];

/// Numbers that look random, from -1 to 1.
#[derive(Debug)]
pub(crate) struct Noise(SplitMix64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise(SplitMix64::seed_from_u64(seed))
    }

    pub(crate) fn next(&mut self) -> f32 {
        (self.0.next_u64() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}

/// A batch of the given tuples.
pub(crate) fn batch_of<'a>(dim: usize, tuples: impl IntoIterator<Item = (f32, &'a [f32])>) -> Batch {
    let mut batch = Batch::new(dim);
    for (label, features) in tuples {
        batch.push(label).unwrap().copy_from_slice(features);
    }
    batch
}

/// A sparse batch of the given tuples, without their zeros.
pub(crate) fn sparse_of<'a>(tuples: impl IntoIterator<Item = (f32, &'a [f32])>) -> Batch {
    let mut batch = Batch::sparse();
    for (label, features) in tuples {
        batch.set_dim(features.len());
        let entries = || features.iter().enumerate().filter(|(_, x)| **x != 0.0);
        let (indices, values) = batch.push_sparse(label, entries().count()).unwrap();
        for (k, (j, x)) in entries().enumerate() {
            (indices[k], values[k]) = (j as u32, *x);
        }
    }
    batch
}

/// `n` tuples around a random hyperplane, some on the wrong side of it, in a scrambled order.
pub(crate) fn noisy_batch(dim: usize, n: usize, seed: u64) -> Batch {
    let mut noise = Noise::new(seed);
    let truth: Vec<f32> = (0..dim).map(|_| noise.next()).collect();
    let mut batch = Batch::new(dim);
    for _ in 0..n {
        let features: Vec<f32> = (0..dim).map(|_| noise.next()).collect();
        let z: f32 = truth.iter().zip(&features).map(|(w, x)| w * x).sum();
        let label = if z + 0.3 * noise.next() > 0.1 { 1.0 } else { -1.0 };
        batch.push(label).unwrap().copy_from_slice(&features);
    }
    for (k, i) in (1..n).rev().enumerate() {
        batch.order_mut().swap(i, k * 7919 % (i + 1));
    }
    batch
}
