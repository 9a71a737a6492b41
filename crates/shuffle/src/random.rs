//! Seeded random streams, and what is drawn from them.
//!
//! It guarantees that no two purposes, epochs or buffers share a stream, and that shuffles are exactly uniform as far
//! as the generator is random. It prevents the correlation of one permutation that is used again and again.
//!
//! # Streams
//!
//! A stream is named by four 64-bit words: purpose, seed, epoch, ordinal. They become the generator's seed one after
//! the other, `key = splitmix64(key ^ word)` from `key = 0`, where `splitmix64` is the first output of SplitMix64
//! (Steele, Lea, Flood 2014) started at its argument; it is a bijection, so that words that differ in one place never
//! meet. The last key seeds Xoshiro256++ (Blackman, Vigna 2021) through SplitMix64 as its authors recommend.
//!
//! | purpose               | word        | ordinal                       |
//! |-----------------------|-------------|-------------------------------|
//! | order of the blocks   | `"blocks"`  | 0                             |
//! | blocks per process    | `"ranks"`   | 0, the epoch too              |
//! | order within a buffer | `"tuples"`  | of the buffer in the epoch    |
//! | sliding window        | `"window"`  | 0                             |
//! | reservoir             | `"mrs"`     | 0                             |
//! | keys of one sort      | `"once"`    | 0, the epoch too              |
//! | keys of each sort     | `"epoch"`   | 0                             |
//! | sample of blocks      | `"sample"`  | 0, the epoch too              |
//! | shared draws          | `"shared"`  | 0, the epoch too              |
//! | draws that are followed | `"follow"` | the job's number             |
//! | draws of a job alone  | `"alone"`   | which job to join it is       |
//! | keys of a common walk | `"walk"`    | which one, the epoch 0        |
//! | nodes of elements     | `"nodes"`   | first or second hash, 1 or 2  |
//!
//! The last five are of `python/crates/joader`, where jobs are; keys and hashes of it are made as the keys of a sort.
//!
//! Of several processes that learn together ([`BlockPartition`](crate::BlockPartition)), each adds 2^32 times its
//! number to the ordinals of its blocks and of its buffers. So does each lane of an epoch ([`Lanes`](crate::Lanes)) to
//! those of its buffers, and its number to the ordinal of its window.
//!
//! The keys of a sort are not drawn from Xoshiro256++: the last key starts SplitMix64 itself, whose first `n` outputs
//! are those of the tuples `0..n`. They are all different (see [`SortKeys`](crate::SortKeys)).
//!
//! The word of a purpose is its name in ASCII, the first letter in the lowest byte. Epochs count from 1; epoch 0 is the
//! pass that learns means and deviations, where any order serves and the natural one reads fastest.

use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use simd::prefetch;

pub(crate) const BLOCKS: u64 = u64::from_le_bytes(*b"blocks\0\0");
pub(crate) const RANKS: u64 = u64::from_le_bytes(*b"ranks\0\0\0");
pub(crate) const TUPLES: u64 = u64::from_le_bytes(*b"tuples\0\0");
pub(crate) const WINDOW: u64 = u64::from_le_bytes(*b"window\0\0");
pub(crate) const SAMPLE: u64 = u64::from_le_bytes(*b"sample\0\0");
pub(crate) const MRS: u64 = u64::from_le_bytes(*b"mrs\0\0\0\0\0");
pub(crate) const ONCE: u64 = u64::from_le_bytes(*b"once\0\0\0\0");
pub(crate) const EPOCH: u64 = u64::from_le_bytes(*b"epoch\0\0\0");
pub(crate) const WALK: u64 = u64::from_le_bytes(*b"walk\0\0\0\0");
pub(crate) const NODES: u64 = u64::from_le_bytes(*b"nodes\0\0\0");
/// The purpose of draws that jobs share.
pub const SHARED: u64 = u64::from_le_bytes(*b"shared\0\0");
/// The purpose of draws of a job that others follow.
pub const FOLLOW: u64 = u64::from_le_bytes(*b"follow\0\0");
/// The purpose of draws that a job makes for itself.
pub const ALONE: u64 = u64::from_le_bytes(*b"alone\0\0\0");

/// How much of what takes long is done between two pauses: some milliseconds' work.
pub(crate) const PER_PAUSE: usize = 1 << 18;

/// Appends these numbers, with a pause after each [`PER_PAUSE`] of them.
pub(crate) fn count(numbers: std::ops::Range<u32>, to: &mut Vec<u32>, pause: &mut impl FnMut()) {
    allocation::reserve(to, numbers.len());
    for from in numbers.clone().step_by(PER_PAUSE) {
        let until = from.saturating_add(PER_PAUSE as u32).min(numbers.end);
        to.extend(from..until);
        if until - from == PER_PAUSE as u32 {
            pause();
        }
    }
}

/// A number below `n`, which is at least 1 and at most 2^32: each equally likely.
pub fn below(rng: &mut Xoshiro256PlusPlus, n: usize) -> usize {
    loop {
        if let Some((number, _)) = two_below(n as u64, rng.next_u64()) {
            return number;
        }
    }
}

/// The generator of the stream with this name: purpose, seed, epoch and ordinal, mixed as `random.rs` says.
pub fn stream(purpose: u64, seed: i64, epoch: u64, ordinal: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(stream_key(purpose, seed, epoch, ordinal))
}

/// The last key of the stream with this name.
pub(crate) fn stream_key(purpose: u64, seed: i64, epoch: u64, ordinal: u64) -> u64 {
    let words = [purpose, seed.cast_unsigned(), epoch, ordinal];
    words.into_iter().fold(0, |key, word| SplitMix64::seed_from_u64(key ^ word).next_u64())
}

/// Fisher-Yates from the end, two places per draw.
pub(crate) fn shuffle<T>(rng: &mut Xoshiro256PlusPlus, order: &mut [T]) {
    shuffle_pausing(rng, order, &mut || {});
}

/// As [`shuffle`], with pauses.
pub(crate) fn shuffle_pausing<T>(rng: &mut Xoshiro256PlusPlus, order: &mut [T], pause: &mut impl FnMut()) {
    assert!(order.len() as u64 <= 1 << 32, "{} indices of 32 bits cannot all differ", order.len());
    let mut left = order.len();
    while left >= 2 {
        let until = left.saturating_sub(PER_PAUSE).max(1);
        while left > until {
            left = swap_some(rng, order, left, until);
        }
        pause();
    }
}

/// Pairs of places that are drawn before the first of them are swapped. Memory has been asked for all of them by then:
/// of a million places and more, each is in memory that the processor's caches have not.
const DRAWN_AHEAD: usize = 32;

/// Swaps the last of the first `left` places with earlier ones, until `until` are left or enough has been drawn, and
/// says how many are left.
#[inline]
fn swap_some<T>(rng: &mut Xoshiro256PlusPlus, order: &mut [T], mut left: usize, until: usize) -> usize {
    let (mut drawn, mut pairs, mut then_left) = ([(0, 0); DRAWN_AHEAD], 0, left);
    while pairs < DRAWN_AHEAD && then_left > until {
        let Some((last, second_last)) = two_below(then_left as u64, rng.next_u64()) else { continue };
        prefetch(order, last);
        prefetch(order, second_last);
        drawn[pairs] = (last, second_last);
        (pairs, then_left) = (pairs + 1, then_left - 2);
    }
    for &(last, second_last) in &drawn[..pairs] {
        order.swap(left - 1, last);
        order.swap(left - 2, second_last);
        left -= 2;
    }
    left
}

/// The index below `n` and the independent one below `n - 1` that a draw of 64 bits stands for, or None if it is one of
/// the draws to be rejected. `n` must be within `2..=2^32`.
///
/// Brackett-Rozinsky and Lemire, "Batched Ranged Random Integer Generation" (2024): the draw, as a fraction of 2^64,
/// times `n` has the first index as its whole part; what is left of it times `n - 1` has the second. 2^64 draws do not
/// fall evenly on `n (n - 1)` pairs, so that a remainder of them is rejected, as in Lemire's method for one index. For
/// a million tuples that is one draw in sixteen million at most.
#[inline]
fn two_below(n: u64, draw: u64) -> Option<(usize, usize)> {
    let pairs = n * (n - 1);
    let (first, rest) = times(draw, n);
    let (second, rest) = times(rest, n - 1);
    // a rest of at least `pairs` is above the threshold without the division
    let accepted = rest >= pairs || rest >= pairs.wrapping_neg() % pairs;
    accepted.then_some((first as usize, second as usize))
}

/// High and low half of the 128-bit product.
#[inline]
fn times(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    ((product >> 64) as u64, product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For ranges so large that the draws of a pair can be enumerated: they lie next to each other, and exactly
    /// `2^64 / pairs`, rounded down, of them must be accepted, however many there are.
    #[test]
    fn every_pair_of_indices_has_equally_many_draws() {
        for n in [1 << 32, (1 << 32) - 5, 3_037_000_501, 3_037_000_500, 1 << 31, 1_500_000_001, 1 << 30] {
            let pairs = n * (n - 1);
            let first_draw = |pair: u64| (u128::from(pair) << 64).div_ceil(pairs.into());
            let near = |x: u64| [0, 1, 2, x / 3, x / 2, x - 3, x - 2, x - 1];
            for (i, j) in near(n).into_iter().flat_map(|i| near(n - 1).map(|j| (i, j))) {
                let pair = i * (n - 1) + j;
                let draws = first_draw(pair)..first_draw(pair + 1);
                let of_pair: Vec<_> = draws.filter_map(|draw| two_below(n, draw as u64)).collect();
                assert_eq!(of_pair.len() as u64, u64::MAX / pairs, "pair ({i}, {j}) below {n}");
                assert!(of_pair.iter().all(|&got| got == (i as usize, j as usize)), "pair ({i}, {j}) below {n}");
            }
        }
    }

    #[test]
    fn the_largest_draw_stands_for_the_largest_indices() {
        for n in [2, 3, 1_000_000, 1 << 32] {
            assert_eq!(two_below(n, u64::MAX), Some((n as usize - 1, n as usize - 2)));
        }
    }
}
