//! Blocks of unequal size, with more tuples than 32 bits count: what a data set outside of a table is cut into.
//!
//! It guarantees that every tuple is in exactly one block, and that blocks are about as large as was asked for whatever
//! the data set comes in: what is small is joined, what is huge is split evenly.

use std::ops::Range;

/// Runs of tuples, numbered from 0 in natural order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    /// tuples up to the end of each block
    ends: Vec<u64>,
}

/// A data set would be cut into more blocks than 32 bits count, or has more tuples than 64 bits do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are too many blocks")]
pub struct TooManyBlocks;

impl Blocks {
    /// Blocks of this many tuples each.
    pub fn new(tuples: impl IntoIterator<Item = u64>) -> Result<Blocks, TooManyBlocks> {
        let mut blocks = Blocks::default();
        tuples.into_iter().try_for_each(|tuples| blocks.push(tuples))?;
        Ok(blocks)
    }

    /// Blocks of at most about `size`, made of units that are cheap to read by themselves. Of each unit its tuples are
    /// given and its weight, in whatever `size` is meant: tuples or bytes.
    ///
    /// Small units that lie next to each other make a block together; a unit that is much larger than a block becomes
    /// several of the same size. One that is larger by up to a half is left whole: to read parts of a unit is
    /// expensive.
    pub fn of_units(units: impl IntoIterator<Item = (u64, u64)>, size: u64) -> Result<Blocks, TooManyBlocks> {
        Blocks::of_whole_units(units, size, size)
    }

    /// The same of units of which a part costs as much as the whole: one is a block, however much larger than `size`,
    /// unless it is larger than `largest` by more than a half. Then it becomes several of at most about that size.
    pub fn of_whole_units(
        units: impl IntoIterator<Item = (u64, u64)>,
        size: u64,
        largest: u64,
    ) -> Result<Blocks, TooManyBlocks> {
        let size = size.max(1);
        let largest = largest.max(size);
        let mut blocks = Blocks::default();
        // units that are joined so far
        let (mut joined, mut weight_joined) = (0, 0);
        for (tuples, weight) in units.into_iter().filter(|(tuples, _)| *tuples > 0) {
            if joined > 0 && weight.saturating_add(weight_joined) > size {
                blocks.push(joined)?;
                (joined, weight_joined) = (0, 0);
            }
            if weight > largest.saturating_add(largest / 2) {
                let parts = weight.div_ceil(largest).min(tuples);
                for part in 0..parts {
                    blocks.push(part_end(tuples, part + 1, parts) - part_end(tuples, part, parts))?;
                }
            } else {
                (joined, weight_joined) = (joined + tuples, weight_joined + weight);
            }
        }
        if joined > 0 {
            blocks.push(joined)?;
        }
        Ok(blocks)
    }

    fn push(&mut self, tuples: u64) -> Result<(), TooManyBlocks> {
        if self.ends.len() >= u32::MAX as usize {
            return Err(TooManyBlocks);
        }
        self.ends.push(self.tuples().checked_add(tuples).ok_or(TooManyBlocks)?);
        Ok(())
    }

    /// How many blocks there are.
    pub fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many tuples all blocks have.
    pub fn tuples(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The tuples of block number `block`.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn tuples_of(&self, block: u32) -> Range<u64> {
        let block = block as usize;
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        start..self.ends[block]
    }
}

/// Where part number `part - 1` of `parts` ends.
fn part_end(tuples: u64, part: u64, parts: u64) -> u64 {
    (u128::from(tuples) * u128::from(part) / u128::from(parts)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(blocks: &Blocks) -> Vec<u64> {
        (0..blocks.len()).map(|block| blocks.tuples_of(block)).map(|tuples| tuples.end - tuples.start).collect()
    }

    #[test]
    fn small_units_are_joined_and_huge_ones_split_evenly() {
        let of = |units: &[u64], size| sizes(&Blocks::of_units(units.iter().map(|&n| (n, n)), size).unwrap());
        assert_eq!(of(&[3, 3, 3, 3], 7), [6, 6]);
        assert_eq!(of(&[10], 3), [2, 3, 2, 3]);
        assert_eq!(of(&[1, 0, 1, 0], 100), [2]);
        // larger by no more than a half
        assert_eq!(of(&[15, 15], 10), [15, 15]);
        assert_eq!(of(&[16, 1, 1], 10), [8, 8, 2]);
        assert_eq!(of(&[0, 0], 10), [0; 0]);
    }

    #[test]
    fn units_that_are_read_whole_are_split_only_where_they_are_larger_than_a_buffer() {
        let units = [(3, 3), (4, 4), (40, 40), (1, 1), (160, 160), (2, 2)];
        assert_eq!(sizes(&Blocks::of_whole_units(units, 10, 50).unwrap()), [7, 40, 1, 40, 40, 40, 40, 2]);
        assert_eq!(sizes(&Blocks::of_whole_units(units, 10, 110).unwrap()), [7, 40, 1, 160, 2]);
    }

    #[test]
    fn a_weight_is_not_the_number_of_tuples() {
        // two tuples of a gigabyte each cannot be cut further
        let blocks = Blocks::of_units([(2, 2 << 30), (1000, 1000)], 1 << 20).unwrap();
        assert_eq!(sizes(&blocks), [1, 1, 1000]);
    }

    #[test]
    fn more_tuples_than_32_bits_count_have_their_blocks() {
        let blocks = Blocks::of_units([(10 << 32, 10 << 32)], 1 << 32).unwrap();
        assert_eq!((blocks.len(), blocks.tuples_of(9)), (10, 9 << 32..10 << 32));
        assert_eq!(Blocks::new([u64::MAX, 1]), Err(TooManyBlocks));
    }
}
