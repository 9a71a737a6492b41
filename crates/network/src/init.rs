//! The first weights: drawn uniformly from ±√(6 / (inputs + outputs)) of their layer (Glorot and Bengio 2010).
//!
//! Guarantees: those of an input are a function of seed, layer, input and the layer's size. So an input that comes
//! later, of sparse tuples, has the weights that it would have had from the beginning, but for their unit.

use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use tuples::pause;

/// The purpose of the streams; crates/shuffle has those of the others, and how a stream is named.
const WEIGHTS: u64 = u64::from_le_bytes(*b"weights\0");

/// Fills the weights of one input of a layer to all of its outputs.
pub(super) fn draw(weights: &mut [f32], seed: i64, layer: usize, input: usize, bound: f64) {
    let words = [WEIGHTS, seed.cast_unsigned(), layer as u64, input as u64];
    let key = words.into_iter().fold(0, |key, word| SplitMix64::seed_from_u64(key ^ word).next_u64());
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(key);
    for weight in pause::parts_mut(weights).flatten() {
        // the middle of one of 2^24 cells: never 0
        let uniform = ((stream.next_u64() >> 40) as f64 + 0.5) / (1u64 << 24) as f64;
        *weight = (bound * (2.0 * uniform - 1.0)) as f32;
    }
}

/// The largest weight of a layer.
pub(super) fn bound(inputs: usize, outputs: usize) -> f64 {
    (6.0 / (inputs + outputs).max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_uniform_within_their_bound_and_differ() {
        let mut weights = vec![0.0; 50_000];
        weights.chunks_mut(50).enumerate().for_each(|(i, row)| draw(row, 7, 0, i, 0.25));
        assert!(weights.iter().all(|w| w.abs() < 0.25 && *w != 0.0));
        let moment = |power| weights.iter().map(|w| f64::from(*w).powi(power)).sum::<f64>() / 50_000.0;
        assert!(moment(1).abs() < 0.002, "{}", moment(1));
        assert!((moment(2) - 0.25f64.powi(2) / 3.0).abs() < 0.0003, "{}", moment(2));
        let row = |seed, layer, input| {
            let mut row = [0.0; 3];
            draw(&mut row, seed, layer, input, 1.0);
            row
        };
        for other in [row(8, 0, 0), row(7, 1, 0), row(7, 0, 1)] {
            assert_ne!(row(7, 0, 0), other);
        }
        assert_eq!(row(-1, 2, 3), row(-1, 2, 3));
    }
}
