//! Seeded permutations of blocks and of the tuples in a buffer.
//!
//! It guarantees that every order is a pure function of its arguments. It prevents runs that cannot be repeated.

use crate::Strategy;
use crate::partition::BlockPartition;
use crate::random::{BLOCKS, EPOCH, NODES, ONCE, TUPLES, WALK, count, shuffle_pausing, stream, stream_key};
use crate::strategies::{BlockOrder, Sort};
use crate::stratified::stratified;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What SplitMix64 adds to its state before each output.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The order in which `epoch` reads the blocks into `buffers` buffers: a permutation of `0..blocks`, or, for a strategy
/// that [reads one buffer](Strategy::reads_one_buffer), its part in the first buffer.
///
/// The natural order if `strategy` does not shuffle blocks, and in epoch 0. CorgiPile's blocks are random, but the same
/// number in each buffer comes from every part of the table: see [`stratified`](crate::stratified).
pub fn block_order(strategy: Strategy, seed: i64, epoch: u64, blocks: u32, buffers: u32) -> Vec<u32> {
    block_order_pausing(strategy, seed, epoch, [blocks, buffers], &mut || {})
}

/// As [`block_order`] of this many blocks for this many buffers, with pauses.
pub fn block_order_pausing(
    strategy: Strategy,
    seed: i64,
    epoch: u64,
    [blocks, buffers]: [u32; 2],
    pause: &mut impl FnMut(),
) -> Vec<u32> {
    let mut order = allocation::with_capacity(blocks as usize);
    count(0..blocks, &mut order, pause);
    let rng = &mut stream(BLOCKS, seed, epoch, 0);
    match if epoch > 0 { strategy.definition().blocks } else { BlockOrder::Natural } {
        BlockOrder::Natural => {}
        BlockOrder::Random => shuffle_pausing(rng, &mut order, pause),
        BlockOrder::Stratified => return stratified(rng, order, buffers as usize, pause),
        BlockOrder::OneBuffer => {
            shuffle_pausing(rng, &mut order, pause);
            order.truncate(blocks.div_ceil(buffers.max(1)) as usize);
        }
    }
    order
}

/// Shuffles `order`, the order of the tuples in buffer number `buffer` of `epoch`, in place.
///
/// Does nothing if `strategy` does not shuffle tuples, and in epoch 0.
///
/// # Panics
/// If `order` has more than 2^32 elements, which no index of 32 bits can distinguish.
pub fn shuffle_tuples<T>(strategy: Strategy, seed: i64, epoch: u64, buffer: u64, order: &mut [T]) {
    shuffle_tuples_pausing(strategy, seed, [epoch, buffer], order, &mut || {});
}

/// As [`shuffle_tuples`] for one of several processes, whose buffers have orders of their own: that in which a
/// [mixer](crate::Mixer) with this [deal](crate::Mixer::set_deal) permutes a buffer.
pub fn shuffle_dealt_tuples<T>(
    deal: BlockPartition,
    strategy: Strategy,
    seed: i64,
    [epoch, buffer]: [u64; 2],
    order: &mut [T],
) {
    shuffle_tuples(strategy, seed, epoch, deal.ordinal(buffer), order);
}

/// As [`shuffle_tuples`], with pauses.
pub(crate) fn shuffle_tuples_pausing<T>(
    strategy: Strategy,
    seed: i64,
    [epoch, buffer]: [u64; 2],
    order: &mut [T],
    pause: &mut impl FnMut(),
) {
    if strategy.shuffles_tuples() && epoch > 0 {
        shuffle_pausing(&mut stream(TUPLES, seed, epoch, buffer), order, pause);
    }
}

/// The keys by which a full shuffle sorts the tuples of a table, ascending.
///
/// The key of a tuple is a function of seed, epoch and the tuple's number alone: a sorted copy can be sorted again from
/// any order. No two tuples have the same key, because SplitMix64 gives each of 2^64 outputs once; so no order depends
/// on what a sort makes of equal keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKeys(u64);

impl SortKeys {
    /// The keys for an epoch; None if `strategy` does not sort then. One sort serves all epochs of `shuffle_once`, with
    /// epoch 0; `epoch_shuffle` leaves epoch 0 in natural order.
    pub fn for_epoch(strategy: Strategy, seed: i64, epoch: u64) -> Option<SortKeys> {
        match strategy.definition().sort {
            Sort::Once => Some(SortKeys::once(seed)),
            Sort::EachEpoch if epoch > 0 => Some(SortKeys(stream_key(EPOCH, seed, epoch, 0))),
            Sort::EachEpoch | Sort::Never => None,
        }
    }

    /// The keys of one sort that serves all epochs.
    pub fn once(seed: i64) -> SortKeys {
        SortKeys(stream_key(ONCE, seed, 0, 0))
    }

    /// The keys of the permutation of this number that jobs have in common (`python/crates/joader`).
    pub fn common(seed: i64, number: u64) -> SortKeys {
        SortKeys(stream_key(WALK, seed, 0, number))
    }

    /// Keys by which elements are distributed to nodes, the first or second time (`python/crates/joader`).
    pub fn placement(seed: i64, time: u64) -> SortKeys {
        SortKeys(stream_key(NODES, seed, 0, time))
    }

    /// The key of tuple number `number`, from 0 in natural order.
    #[inline]
    pub fn key(self, number: u64) -> i64 {
        SplitMix64::seed_from_u64(self.0.wrapping_add(number.wrapping_mul(GAMMA))).next_u64().cast_signed()
    }
}
