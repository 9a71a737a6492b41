//! The elements that one job still needs in its epoch: a bit for each, and how many there are in stretches of them.
//!
//! It guarantees that any element can be asked for, taken out, and found by its place among those that are left, at a
//! cost that grows with the number of levels only: one more for sixteen times as many elements, 2 for 10,000 and 5 for
//! 100,000,000. The counts take 7% more than the bits. Nothing is allocated after the set has been made, so that no
//! draw can fail.

use crate::elements::ElementSet;
use crate::error::SamplerError;

const WORD: usize = u64::BITS as usize;
/// Words that the lowest level counts together: they fill a cache line, and so do `FAN_OUT` counts.
const WORDS_PER_BLOCK: usize = 8;
const BLOCK: usize = WORD * WORDS_PER_BLOCK;
const FAN_OUT: usize = 16;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct NeedSet {
    /// The element of bit 0, a multiple of `BLOCK`.
    base: usize,
    words: Vec<u64>,
    /// How many bits are set in each block, then in each `FAN_OUT` of these, until one level has `FAN_OUT` at most.
    levels: Vec<Vec<u32>>,
    len: usize,
}

impl NeedSet {
    pub(crate) fn new(elements: &ElementSet) -> Result<Self, SamplerError> {
        let span = elements.span();
        let base = span.start as usize / BLOCK * BLOCK;
        let mut blocks = (span.end as usize - base).div_ceil(BLOCK);
        let words = zeros(blocks * WORDS_PER_BLOCK)?;
        let mut levels = Vec::new();
        loop {
            allocation::try_reserve(&mut levels, 1)?;
            levels.push(zeros(blocks)?);
            if blocks <= FAN_OUT {
                break;
            }
            blocks = blocks.div_ceil(FAN_OUT);
        }
        let mut set = Self { base, words, levels, len: 0 };
        set.refill(elements);
        Ok(set)
    }

    /// Has all of these elements again, which must be those that it was made of.
    pub(crate) fn refill(&mut self, elements: &ElementSet) {
        self.words.fill(0);
        for range in elements.ranges() {
            set_bits(&mut self.words, range.start as usize - self.base, range.end as usize - self.base);
        }
        for (count, words) in self.levels[0].iter_mut().zip(self.words.chunks_exact(WORDS_PER_BLOCK)) {
            *count = words.iter().map(|word| word.count_ones()).sum();
        }
        for level in 1..self.levels.len() {
            let (below, above) = self.levels.split_at_mut(level);
            for (count, counts) in above[0].iter_mut().zip(below[level - 1].chunks(FAN_OUT)) {
                *count = counts.iter().sum();
            }
        }
        self.len = elements.len();
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn contains(&self, element: u32) -> bool {
        let bit = (element as usize).wrapping_sub(self.base);
        self.words.get(bit / WORD).is_some_and(|word| word >> (bit % WORD) & 1 == 1)
    }

    /// Takes out an element, which must be in the set.
    pub(crate) fn remove(&mut self, element: u32) {
        debug_assert!(self.contains(element), "element {element} is not there");
        let bit = element as usize - self.base;
        self.words[bit / WORD] &= !(1 << (bit % WORD));
        let mut place = bit / BLOCK;
        for counts in &mut self.levels {
            counts[place] -= 1;
            place /= FAN_OUT;
        }
        self.len -= 1;
    }

    /// The element that `rank` smaller ones precede. `rank` must be below [`len`](Self::len).
    pub(crate) fn nth(&self, rank: usize) -> u32 {
        debug_assert!(rank < self.len, "{rank} of {}", self.len);
        let (mut rank, mut place) = (rank as u32, 0);
        for counts in self.levels.iter().rev() {
            place *= FAN_OUT;
            while rank >= counts[place] {
                rank -= counts[place];
                place += 1;
            }
        }
        let mut word = place * WORDS_PER_BLOCK;
        while rank >= self.words[word].count_ones() {
            rank -= self.words[word].count_ones();
            word += 1;
        }
        (self.base + word * WORD + nth_bit(self.words[word], rank) as usize) as u32
    }

    /// The elements' words that lie in this set, as numbers of words from element 0 on.
    pub(crate) fn word_numbers(&self) -> std::ops::Range<usize> {
        let first = self.base / WORD;
        first..first + self.words.len()
    }

    /// The word of this number: bit `b` stands for element `64 * number + b`.
    pub(crate) fn word(&self, number: usize) -> u64 {
        self.words.get(number.wrapping_sub(self.base / WORD)).copied().unwrap_or(0)
    }
}

fn zeros<T: Clone + Default>(n: usize) -> Result<Vec<T>, SamplerError> {
    let mut zeros = Vec::new();
    allocation::try_reserve_exact(&mut zeros, n)?;
    zeros.resize(n, T::default());
    Ok(zeros)
}

/// Sets the bits from `from` up to `until`, word by word.
fn set_bits(words: &mut [u64], from: usize, until: usize) {
    let (first, last) = (from / WORD, (until - 1) / WORD);
    let from_first = u64::MAX << (from % WORD);
    let until_last = u64::MAX >> (WORD - 1 - (until - 1) % WORD);
    if first == last {
        words[first] |= from_first & until_last;
    } else {
        words[first] |= from_first;
        words[first + 1..last].fill(u64::MAX);
        words[last] |= until_last;
    }
}

/// The place of the set bit that `rank` lower ones precede, of which there must be more than `rank`.
pub(crate) fn nth_bit(word: u64, rank: u32) -> u32 {
    let (mut rest, mut rank, mut place) = (word, rank, 0);
    for half in [32, 16, 8, 4, 2, 1] {
        let low = (rest & ((1 << half) - 1)).count_ones();
        if rank >= low {
            rank -= low;
            rest >>= half;
            place += half;
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(ranges: &[(u32, u32)]) -> ElementSet {
        ElementSet::from_ranges(ranges.iter().map(|&(from, until)| from..until)).unwrap()
    }

    fn all(need: &NeedSet) -> Vec<u32> {
        (0..need.len()).map(|rank| need.nth(rank)).collect()
    }

    #[test]
    fn every_bit_of_a_word_is_found_by_its_rank() {
        for word in [1, u64::MAX, 1 << 63, 0x8000_0000_0000_0001, 0x0f0f_00ff_1234_5678] {
            let places: Vec<u32> = (0..64).filter(|place| word >> place & 1 == 1).collect();
            let found: Vec<u32> = (0..word.count_ones()).map(|rank| nth_bit(word, rank)).collect();
            assert_eq!(found, places);
        }
    }

    #[test]
    fn sets_of_all_depths_know_their_elements_by_rank() {
        for n in [1, 511, 512, 513, 8192, 8193, 131_072, 131_073, 3_000_000] {
            let need = NeedSet::new(&set(&[(700, 700 + n)])).unwrap();
            assert_eq!(need.len(), n as usize);
            for rank in [0, n / 3, n / 2, n - 1] {
                assert_eq!(need.nth(rank as usize), 700 + rank);
            }
        }
    }

    #[test]
    fn an_empty_set_has_nothing() {
        let need = NeedSet::new(&set(&[])).unwrap();
        assert_eq!((need.len(), need.contains(0), need.word(0)), (0, false, 0));
    }

    #[test]
    fn the_largest_element_is_found() {
        let need = NeedSet::new(&set(&[(u32::MAX - 5, u32::MAX)])).unwrap();
        assert_eq!(need.nth(4), u32::MAX - 1);
        assert!(need.contains(u32::MAX - 1) && !need.contains(u32::MAX) && !need.contains(0));
    }

    proptest! {
        #[test]
        fn what_is_left_is_what_was_not_taken_out(
            ranges in prop::collection::vec((0_u32..3000, 0_u32..400), 1..6),
            ranks in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
        ) {
            let elements = set(&ranges.iter().map(|&(from, n)| (from, from + n)).collect::<Vec<_>>());
            let mut need = NeedSet::new(&elements).unwrap();
            let mut left: Vec<u32> = elements.iter().collect();
            for rank in ranks {
                if left.is_empty() {
                    break;
                }
                let rank = rank.index(left.len());
                let element = need.nth(rank);
                prop_assert_eq!(element, left.remove(rank));
                prop_assert!(need.contains(element));
                need.remove(element);
                prop_assert!(!need.contains(element));
            }
            prop_assert_eq!(&all(&need), &left);
            let words = need.word_numbers().map(|number| need.word(number).count_ones() as usize);
            prop_assert_eq!(words.sum::<usize>(), left.len());
            need.refill(&elements);
            prop_assert_eq!(all(&need), elements.iter().collect::<Vec<_>>());
        }
    }
}
