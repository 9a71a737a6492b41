//! Tuples, and textbooks in f64, for the tests of the crates that train.

pub mod networks;
mod textbook_step;

use loss::{ModelKind, ModelParameters};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tuples::Batch;

pub use textbook_step::textbook_step;

/// The kinds whose labels are -1 and 1.
pub const BINARY: [ModelKind; 2] = [ModelKind::Logistic, ModelKind::Svm];

/// Numbers that look random, from -1 to 1.
#[derive(Debug)]
pub struct Noise(SplitMix64);

impl Noise {
    /// Noise that depends on the seed alone.
    pub fn new(seed: u64) -> Noise {
        Noise(SplitMix64::seed_from_u64(seed))
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> f32 {
        (self.0.next_u64() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}

/// A batch of the given tuples.
pub fn batch_of<'a>(dim: usize, tuples: impl IntoIterator<Item = (f32, &'a [f32])>) -> Batch {
    let mut batch = Batch::new(dim);
    for (label, features) in tuples {
        batch.push(label).unwrap().copy_from_slice(features);
    }
    batch
}

/// A sparse batch of the given tuples, without their zeros.
pub fn sparse_of<'a>(tuples: impl IntoIterator<Item = (f32, &'a [f32])>) -> Batch {
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
pub fn noisy_batch(dim: usize, n: usize, seed: u64) -> Batch {
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

/// The kinds whose losses have two derivatives.
pub const SMOOTH: [ModelKind; 3] = [ModelKind::Linear, ModelKind::Logistic, ModelKind::Poisson];

/// A [`noisy_batch`] with labels of one of these kinds.
pub fn smooth_batch(kind: ModelKind, dim: usize, tuples: usize, seed: u64) -> Batch {
    let mut batch = noisy_batch(dim, tuples, seed);
    let mut noise = Noise::new(seed);
    match kind {
        ModelKind::Linear => batch.labels_mut().iter_mut().for_each(|y| *y = 3.0 * *y + noise.next()),
        ModelKind::Poisson => batch.labels_mut().iter_mut().for_each(|y| *y = (3.0 + 2.0 * *y + noise.next()).round()),
        _ => {}
    }
    batch
}

/// The decision of the only output.
pub fn decision(model: &ModelParameters, features: &[f32]) -> f32 {
    assert_eq!(model.outputs, 1, "one output");
    let mut out = [0.0];
    model.decisions(features, &mut out);
    out[0]
}
