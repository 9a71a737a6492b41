//! How well buffers of blocks are mixed, by Theorem 1 of the CorgiPile paper (section 4.2).
//!
//! The error after T tuples is at most about `(1 - α) h_D σ² / T`, with `α = (n - 1) / (N - 1)` for n of N blocks
//! in the buffer; that of single tuples drawn at random is `σ² / T`. So `(1 - α) h_D` says how many times as many
//! tuples it takes, where it is above 1.

use crate::Geometry;

/// What Theorem 1 says of the blocks and the buffer of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixing {
    /// h_D of these blocks.
    pub cluster_factor: f64,
    /// `(1 - α) h_D`: 0 if the whole table is in the buffer.
    pub error_factor: f64,
}

/// How alike the gradients of two tuples of a block are, from 0, if they are as different as any, to 1, if they are the
/// same: the intraclass correlation, of blocks of `per_block` tuples with this h_D (Kish's design effect is
/// `h_D = 1 + (per_block - 1) * correlation`). Negative where they differ more than any.
pub fn correlation(cluster_factor: f64, per_block: f64) -> f64 {
    if per_block > 1.0 { (cluster_factor - 1.0) / (per_block - 1.0) } else { 0.0 }
}

impl Mixing {
    /// That of `tuples` tuples in these blocks, if tuples of a block are so alike. Of blocks larger than those of which
    /// `correlation` is, it is what is to be feared: the more a block holds, the less alike are its ends.
    pub fn new(correlation: f64, tuples: u64, geometry: &Geometry) -> Mixing {
        let (blocks, in_buffer) = (f64::from(geometry.blocks), f64::from(geometry.buffer_blocks));
        let per_block = tuples as f64 / blocks.max(1.0);
        let cluster_factor = (1.0 + (per_block - 1.0) * correlation).max(0.0);
        let alpha = if blocks > 1.0 { (in_buffer - 1.0) / (blocks - 1.0) } else { 1.0 };
        Mixing { cluster_factor, error_factor: (1.0 - alpha) * cluster_factor }
    }

    /// How many times as many epochs as with a full shuffle the theorem expects, at least 1.
    pub fn epochs_factor(&self) -> f64 {
        self.error_factor.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 blocks of 20 tuples, of which `n` are in the buffer.
    fn mixing(correlation: f64, n: u32) -> Mixing {
        let geometry = Geometry { pages: 1000, pages_per_block: 1, blocks: 1000, buffer_blocks: n };
        Mixing::new(correlation, 20_000, &geometry)
    }

    #[test]
    fn the_extremes_are_those_of_the_paper() {
        // "all samples in the same block are identical": h_D = b; "fully shuffled": h_D = 1
        assert_eq!(mixing(1.0, 1), Mixing { cluster_factor: 20.0, error_factor: 20.0 });
        assert_eq!(mixing(0.0, 1), Mixing { cluster_factor: 1.0, error_factor: 1.0 });
        // "all tuples are fetched to the buffer"
        assert_eq!(mixing(1.0, 1000).error_factor, 0.0);
        // n >> (h_D - 1)(N - 1) / h_D + 1 outperforms single tuples
        let n = (19.0 * 999.0 / 20.0_f64 + 1.0).ceil() as u32;
        assert!(mixing(1.0, n).error_factor <= 1.0 && mixing(1.0, n - 1).error_factor > 1.0);
        assert_eq!(mixing(1.0, n).epochs_factor(), 1.0);
    }

    #[test]
    fn a_correlation_gives_back_the_factor_that_it_comes_from() {
        for (factor, per_block) in [(1.0, 20.0), (20.0, 20.0), (0.0, 20.0), (7.5, 20.0)] {
            assert!((mixing(correlation(factor, per_block), 1).cluster_factor - factor).abs() < 1e-12);
        }
        assert_eq!(correlation(1.0, 1.0), 0.0);
        let one = Geometry { pages: 1, pages_per_block: 1, blocks: 1, buffer_blocks: 1 };
        assert_eq!(Mixing::new(0.5, 3, &one).error_factor, 0.0);
    }
}
