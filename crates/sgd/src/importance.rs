//! Permutation importance: by how much a model's score drops when a feature's values are permuted among the rows
//! (Breiman, Random Forests, 2001).
//!
//! Guarantees: the permutations are a function of seed, feature and repetition; features that belong together, as the
//! categories of a column, move together; the model sees nothing else changed.

use std::ops::Range;

use loss::{ModelKind, ModelParameters};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tuples::pause::pause;
use tuples::{Batch, OutOfMemory};

use crate::Evaluation;

/// A model and the rows on which its features are judged.
#[derive(Debug)]
pub struct Importance<'a> {
    kind: ModelKind,
    model: &'a ModelParameters,
    rows: &'a Batch,
    score: f64,
}

/// How important a feature is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drop {
    /// The mean drop of the score.
    pub mean: f64,
    /// The population standard deviation of the drops.
    pub deviation: f64,
}

impl Importance<'_> {
    /// For a model and rows as [`Evaluation`] takes them.
    pub fn new<'a>(kind: ModelKind, model: &'a ModelParameters, rows: &'a Batch) -> Importance<'a> {
        Importance { kind, model, rows, score: score(kind, model, rows) }
    }

    /// The drop over this many permutations of these features.
    pub fn drop_of(&self, features: &Range<usize>, repeats: u32, seed: u64) -> Result<Drop, OutOfMemory> {
        let mut random = SplitMix64::seed_from_u64(seed ^ (features.start as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut drops = Vec::new();
        for _ in 0..repeats {
            let donors = permutation(self.rows.len(), &mut random);
            let permuted = permuted(self.rows, features, &donors)?;
            drops.push(self.score - score(self.kind, self.model, &permuted));
        }
        let count = drops.len().max(1) as f64;
        let mean = drops.iter().sum::<f64>() / count;
        let variance = drops.iter().map(|drop| (drop - mean).powi(2)).sum::<f64>() / count;
        Ok(Drop { mean, deviation: variance.sqrt() })
    }

    /// The population standard deviation of what these features add to the decision of a linear model of one output:
    /// of a single feature, the size of its weight times its deviation. None of other models.
    pub fn effect_of(&self, features: &Range<usize>) -> Option<f64> {
        if self.model.outputs > 1 || self.model.network.is_some() {
            return None;
        }
        let parts = (0..self.rows.len()).map(|i| contribution(self.model.weights_of(0), self.rows, i, features));
        let (mut mean, mut squares) = (0.0, 0.0);
        for (n, part) in parts.enumerate() {
            let before = part - mean;
            mean += before / (n + 1) as f64;
            squares += before * (part - mean);
        }
        Some((squares / self.rows.len().max(1) as f64).sqrt())
    }
}

/// What features of a row add to a decision.
fn contribution(weights: &[f32], rows: &Batch, i: usize, features: &Range<usize>) -> f64 {
    let product = |j: usize, x: f32| f64::from(weights.get(j).copied().unwrap_or_default()) * f64::from(x);
    if rows.is_sparse() {
        let (indices, values) = rows.sparse_row(i);
        let places = places(indices, features);
        return indices[places.clone()].iter().zip(&values[places]).map(|(j, x)| product(*j as usize, *x)).sum();
    }
    features.clone().zip(&rows.features(i)[features.clone()]).map(|(j, x)| product(j, *x)).sum()
}

/// The entries of a sparse row that belong to these features.
fn places(indices: &[u32], features: &Range<usize>) -> Range<usize> {
    let place = |feature: usize| indices.partition_point(|index| (*index as usize) < feature);
    place(features.start)..place(features.end)
}

fn score(kind: ModelKind, model: &ModelParameters, rows: &Batch) -> f64 {
    pause();
    let mut evaluation = Evaluation::new(kind);
    evaluation.add(model, rows);
    evaluation.accuracy().or(evaluation.r2()).unwrap_or_default()
}

/// Places in random order.
fn permutation(count: usize, random: &mut SplitMix64) -> Vec<usize> {
    let mut places: Vec<usize> = allocation::collect(0..count);
    for i in (1..count).rev() {
        let other = (u128::from(random.next_u64()) * (i as u128 + 1)) >> 64;
        places.swap(i, other as usize);
    }
    places
}

fn permuted(rows: &Batch, features: &Range<usize>, donors: &[usize]) -> Result<Batch, OutOfMemory> {
    let mut permuted = if rows.is_sparse() { Batch::sparse() } else { Batch::dense(rows.dim()) };
    if rows.is_sparse() {
        permuted.set_dim(rows.dim());
    }
    permuted.set_exact(rows.exact_labels().is_some());
    for (i, &donor) in donors.iter().enumerate() {
        if !rows.is_sparse() {
            let row = permuted.push(rows.label(i))?;
            row.copy_from_slice(rows.features(i));
            row[features.clone()].copy_from_slice(&rows.features(donor)[features.clone()]);
            continue;
        }
        let ((indices, values), (of_donor, its_values)) = (rows.sparse_row(i), rows.sparse_row(donor));
        let (own, given) = (places(indices, features), places(of_donor, features));
        let (new_indices, new_values) = permuted.push_sparse(rows.label(i), indices.len() - own.len() + given.len())?;
        let all = indices[..own.start].iter().chain(&of_donor[given.clone()]).chain(&indices[own.end..]);
        new_indices.iter_mut().zip(all).for_each(|(place, index)| *place = *index);
        let all = values[..own.start].iter().chain(&its_values[given]).chain(&values[own.end..]);
        new_values.iter_mut().zip(all).for_each(|(place, value)| *place = *value);
    }
    permuted.exact_labels_mut().copy_from_slice(rows.exact_labels().unwrap_or_default());
    Ok(permuted)
}
