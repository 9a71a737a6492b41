//! A seeded choice of blocks, the same in every epoch.

use crate::random::{SAMPLE, below, stream};

/// Chooses a fraction of `blocks` blocks, rounded up, without looking at what is in them: any set of this many is as
/// likely as any other. In ascending order; all of them if `fraction` is 1 or more,
/// one if it is 0 or less and there is one.
pub fn sample_blocks(seed: i64, blocks: u32, fraction: f64) -> Vec<u32> {
    let wanted = (f64::from(blocks) * fraction).ceil().clamp(1.0, f64::from(blocks.max(1))) as usize;
    let rng = &mut stream(SAMPLE, seed, 0, 0);
    let mut chosen = allocation::with_capacity(wanted);
    for block in 0..blocks {
        // of those that are left, this many are still wanted
        let (left, missing) = ((blocks - block) as usize, wanted - chosen.len());
        if missing == left || below(rng, left) < missing {
            chosen.push(block);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_wanted_size_and_no_block_twice() {
        for (blocks, fraction, expected) in
            [(0, 0.5, 0), (1, 0.01, 1), (10, 0.5, 5), (10, 0.51, 6), (10, 1.0, 10), (1000, 0.001, 1), (7, 0.999, 7)]
        {
            let sample = sample_blocks(3, blocks, fraction);
            assert_eq!(sample.len(), expected, "{fraction} of {blocks}");
            assert!(sample.is_sorted_by(|a, b| a < b) && sample.iter().all(|block| *block < blocks));
        }
    }

    #[test]
    fn every_block_and_every_pair_is_equally_likely() {
        const SEEDS: i64 = 20_000;
        let (mut single, mut pairs) = ([0.0; 6], [[0.0; 6]; 6]);
        for seed in 0..SEEDS {
            let sample = sample_blocks(seed, 6, 0.5);
            for &i in &sample {
                single[i as usize] += 1.0;
                sample.iter().for_each(|&j| pairs[i as usize][j as usize] += 1.0);
            }
        }
        // within five standard deviations of 1/2, and of 3/6 * 2/5
        let near = |count: f64, p: f64| (count - SEEDS as f64 * p).abs() < 5.0 * (SEEDS as f64 * p * (1.0 - p)).sqrt();
        for i in 0..6 {
            assert!(near(single[i], 0.5), "{single:?}");
            assert!((0..6).all(|j| i == j || near(pairs[i][j], 0.2)), "{pairs:?}");
        }
    }
}
