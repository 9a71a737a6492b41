//! Orders: frozen, valid, uniform, and different wherever they should be.

use proptest::prelude::*;
use shuffle::{Strategy, block_order, shuffle_tuples};
use std::collections::{HashMap, HashSet};

fn tuple_order(seed: i64, epoch: u64, buffer: u64, n: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    shuffle_tuples(Strategy::CorgiPile, seed, epoch, buffer, &mut order);
    order
}

fn fnv1a(order: &[u32]) -> u64 {
    let step = |h: u64, byte: u8| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    order.iter().flat_map(|i| i.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, step)
}

/// The expected orders are printed by `orders.py`, next to this file, which shares no code with the crate. A change
/// here means that no one's stored seed gives the order it gave before.
#[test]
fn orders_of_blocks_never_change() {
    #[rustfmt::skip]
    let frozen = [
        (0, 1, [7, 8, 11, 0, 2, 4, 5, 9, 6, 1, 10, 3]),
        (42, 1, [10, 0, 7, 5, 3, 11, 4, 6, 1, 8, 2, 9]),
        (42, 2, [5, 4, 1, 9, 11, 8, 10, 3, 0, 7, 6, 2]),
        (-1, 20, [10, 5, 11, 7, 1, 4, 6, 8, 3, 2, 0, 9]),
        (-9223372036854775808, 18446744073709551615, [10, 5, 3, 2, 1, 11, 7, 6, 8, 9, 4, 0]),
        (9223372036854775807, 3, [1, 6, 0, 10, 9, 2, 5, 8, 11, 7, 4, 3]),
    ];
    for (seed, epoch, order) in frozen {
        assert_eq!(block_order(Strategy::CorgiPile, seed, epoch, 12, 1), order, "seed {seed}, epoch {epoch}");
        assert_eq!(block_order(Strategy::BlockOnly, seed, epoch, 12, 4), order, "seed {seed}, epoch {epoch}");
    }
}

#[test]
fn orders_of_stratified_blocks_never_change() {
    #[rustfmt::skip]
    let frozen = [
        (0, 1, 4, [4, 1, 3, 7, 8, 0, 12, 10, 6, 13, 11, 2, 5, 9]),
        (42, 1, 4, [4, 13, 2, 12, 9, 5, 11, 0, 8, 10, 1, 6, 3, 7]),
        (42, 2, 3, [13, 3, 7, 1, 4, 10, 6, 5, 11, 12, 9, 2, 8, 0]),
        (-1, 20, 7, [13, 1, 0, 3, 12, 11, 5, 8, 4, 7, 9, 2, 6, 10]),
        (7, 3, 13, [5, 12, 13, 1, 3, 4, 9, 0, 7, 10, 6, 11, 8, 2]),
    ];
    for (seed, epoch, buffers, order) in frozen {
        let got = block_order(Strategy::CorgiPile, seed, epoch, 14, buffers);
        assert_eq!(got, order, "seed {seed}, epoch {epoch}, {buffers} buffers");
    }
}

#[test]
fn orders_of_many_blocks_never_change() {
    for (blocks, buffers, hash) in
        [(1000, 10, 0x271a_dab9_0dc9_49b9), (333, 2, 0x261d_e7fc_aab5_48fa), (4099, 64, 0xc3c5_4faf_26e1_72d6)]
    {
        assert_eq!(fnv1a(&block_order(Strategy::CorgiPile, 42, 3, blocks, buffers)), hash, "{blocks} in {buffers}");
    }
}

#[test]
fn orders_of_tuples_never_change() {
    #[rustfmt::skip]
    let frozen = [
        (0, 1, 0, [0, 3, 2, 6, 4, 5, 1, 9, 8, 7, 10]),
        (42, 1, 0, [2, 3, 0, 4, 7, 5, 6, 8, 9, 1, 10]),
        (42, 1, 1, [1, 10, 2, 3, 4, 8, 9, 5, 6, 0, 7]),
        (42, 2, 0, [4, 8, 9, 2, 3, 5, 6, 1, 7, 10, 0]),
        (-1, 20, 7, [7, 10, 8, 3, 5, 1, 4, 0, 6, 9, 2]),
        (7, 1, 18446744073709551615, [0, 10, 6, 5, 9, 8, 4, 3, 1, 7, 2]),
    ];
    for (seed, epoch, buffer, order) in frozen {
        assert_eq!(tuple_order(seed, epoch, buffer, 11), order, "seed {seed}, epoch {epoch}, buffer {buffer}");
    }
}

#[test]
fn the_order_of_a_large_buffer_never_changes() {
    assert_eq!(fnv1a(&tuple_order(42, 1, 0, 100_000)), 0x9230_be2c_c9c4_8fa5);
}

#[test]
fn epoch_zero_and_no_shuffle_keep_the_natural_order() {
    let natural: Vec<u32> = (0..1000).collect();
    for strategy in Strategy::ALL {
        for epoch in [0, 1] {
            let order = block_order(strategy, 42, epoch, 1000, 10);
            assert_eq!(order == natural, epoch == 0 || !strategy.shuffles_blocks(), "{strategy}, epoch {epoch}");
            let mut order = natural.clone();
            shuffle_tuples(strategy, 42, epoch, 0, &mut order);
            assert_eq!(order == natural, epoch == 0 || !strategy.shuffles_tuples(), "{strategy}, epoch {epoch}");
        }
    }
}

#[test]
fn seeds_epochs_and_buffers_that_differ_give_orders_that_differ() {
    let mut orders = HashSet::new();
    for seed in [0, 1, 2, -1, i64::MIN, i64::MAX] {
        for epoch in [1, 2, 3, 20, u64::MAX] {
            assert!(orders.insert(block_order(Strategy::CorgiPile, seed, epoch, 64, 8)), "seed {seed}, epoch {epoch}");
            for buffer in [0, 1, 2, 9, u64::MAX] {
                let order = tuple_order(seed, epoch, buffer, 64);
                assert!(orders.insert(order), "seed {seed}, epoch {epoch}, buffer {buffer}");
            }
        }
    }
}

/// Chi-square of how often each of the 24 orders of four things came up; 49.7 is the 0.999 quantile for 23 degrees of
/// freedom. The seeds are fixed, so the outcome is too.
fn chi_square_of_24_orders(orders: impl Iterator<Item = Vec<u32>>) -> f64 {
    let mut counts: HashMap<Vec<u32>, u32> = HashMap::new();
    orders.for_each(|order| *counts.entry(order).or_default() += 1);
    assert_eq!(counts.len(), 24);
    let expected = f64::from(counts.values().sum::<u32>()) / 24.0;
    counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
}

#[test]
fn all_orders_are_equally_likely_over_seeds_epochs_and_buffers() {
    let of_seeds = (0..24_000).map(|seed| block_order(Strategy::CorgiPile, seed, 1, 4, 1));
    let of_epochs = (1..=24_000).map(|epoch| block_order(Strategy::CorgiPile, 42, epoch, 4, 1));
    let of_buffers = (0..24_000).map(|buffer| tuple_order(42, 1, buffer, 4));
    for chi_square in
        [chi_square_of_24_orders(of_seeds), chi_square_of_24_orders(of_epochs), chi_square_of_24_orders(of_buffers)]
    {
        assert!(chi_square < 49.7, "chi-square {chi_square}");
    }
}

#[test]
fn every_tuple_is_equally_likely_in_every_place_of_a_buffer() {
    const N: usize = 31;
    let mut counts = [[0_u32; N]; N];
    for buffer in 0..N as u64 * 1000 {
        for (place, &tuple) in tuple_order(42, 1, buffer, N as u32).iter().enumerate() {
            counts[place][tuple as usize] += 1;
        }
    }
    let chi_square: f64 = counts.iter().flatten().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
    // rows and columns add up, so (N - 1)^2 = 900 degrees of freedom; 1035 is the 0.999 quantile
    assert!(chi_square < 1035.0, "chi-square {chi_square}");
}

proptest! {
    #[test]
    fn an_order_of_blocks_is_a_permutation_or_one_buffer_of_it_and_a_function_of_its_arguments(
        seed: i64, epoch: u64, blocks in 0..3000_u32, buffers in 0..40_u32, strategy in prop::sample::select(&Strategy::ALL[..])
    ) {
        let order = block_order(strategy, seed, epoch, blocks, buffers);
        prop_assert_eq!(&order, &block_order(strategy, seed, epoch, blocks, buffers));
        let mut sorted = order;
        sorted.sort_unstable();
        if strategy.reads_one_buffer() && epoch > 0 {
            prop_assert_eq!(sorted.len() as u32, blocks.div_ceil(buffers.max(1)));
            prop_assert!(sorted.is_sorted_by(|a, b| a < b) && sorted.iter().all(|block| *block < blocks));
        } else {
            prop_assert_eq!(sorted, (0..blocks).collect::<Vec<_>>());
        }
    }

    /// The buffer need not hold the identity: what is in it is permuted by place.
    #[test]
    fn an_order_of_tuples_permutes_whatever_is_in_the_buffer(
        seed: i64, epoch: u64, buffer: u64, content in prop::collection::vec(any::<u32>(), 0..3000)
    ) {
        let places = tuple_order(seed, epoch, buffer, content.len() as u32);
        let mut shuffled = content.clone();
        shuffle_tuples(Strategy::CorgiPile, seed, epoch, buffer, &mut shuffled);
        let expected: Vec<u32> = places.iter().map(|&place| content[place as usize]).collect();
        prop_assert_eq!(shuffled, expected);
        let distinct: HashSet<u32> = places.iter().copied().collect();
        prop_assert_eq!(distinct.len(), content.len());
    }
}
