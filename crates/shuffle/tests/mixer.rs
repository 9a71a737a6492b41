//! Windows and reservoirs: frozen, valid, and the same however the reads were cut.

use proptest::prelude::*;
use shuffle::{Geometry, Mixer, SortKeys, Strategy, TupleOrder};
use std::collections::HashSet;

fn order(strategy: Strategy, (tuples, block, buffer): (u32, u32, u32), seed: i64, epoch: u64) -> Vec<u32> {
    let geometry = Geometry::of_tuples(tuples, block, buffer);
    let mut order = TupleOrder::new(strategy, seed, epoch, geometry, || {}).unwrap();
    std::iter::from_fn(|| order.next_tuple().unwrap()).collect()
}

fn sorted(order: &[u32]) -> Vec<u32> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted
}

/// Keeps of the buffer what the mixer says.
fn keep(mixer: &mut Mixer, buffer: &mut Vec<u32>) {
    for (from, to) in mixer.take_moves() {
        buffer[to as usize] = buffer[from as usize];
    }
    buffer.truncate(mixer.kept());
}

/// What a mixer makes of `tuples` tuples, of which `first` come in the first call and the others cut as `cuts` says,
/// cyclically; epoch after epoch up to `epochs`.
fn mixed(strategy: Strategy, seed: i64, epochs: u64, tuples: u32, first: u32, cuts: &[u32]) -> Vec<Vec<u32>> {
    let mut mixer = Mixer::new(strategy, seed);
    let (mut buffer, mut order, mut result) = (Vec::new(), Vec::new(), Vec::new());
    for epoch in 1..=epochs {
        assert!(!mixer.needs_epoch_before(epoch));
        mixer.begin_epoch(epoch);
        let (mut seen, mut given) = (0, Vec::new());
        let mut chunks = std::iter::once(first).chain(cuts.iter().copied().cycle());
        while !mixer.ended() {
            keep(&mut mixer, &mut buffer);
            let until = tuples.min(seen + chunks.next().unwrap());
            buffer.extend(seen..until);
            seen = until;
            mixer.arrived(buffer.len(), seen == tuples, &mut order, &mut || {});
            given.extend(order.iter().map(|place| buffer[*place as usize]));
        }
        result.push(given);
    }
    result
}

/// TensorFlow's shuffle and Bismarck's reservoirs have to do, on the papers' example of 1000 tuples sorted by label in
/// blocks of 20 with a buffer of 10 blocks, what the papers' Figure 3 shows of them.
#[test]
fn the_papers_example_looks_as_in_their_figure() {
    let example = |strategy| order(strategy, (1000, 20, 200), 1, 1);
    let natural: Vec<u32> = (0..1000).collect();
    assert_eq!(example(Strategy::NoShuffle), natural);

    let window = example(Strategy::SlidingWindow);
    assert_eq!(sorted(&window), natural);
    // a tuple comes at most a window early, and may stay for long
    assert!(window.iter().zip(0..).all(|(&tuple, position)| tuple <= position + 200));
    assert!(window[..100].iter().all(|&tuple| tuple < 300));
    assert!(window[900..].iter().filter(|&&tuple| tuple >= 700).count() > 70);

    let mrs = example(Strategy::Mrs);
    // the reservoir of 100 tuples is not learned from in the first epoch
    assert_eq!(mrs.len(), 900);
    assert_eq!(mrs.iter().collect::<HashSet<_>>().len(), 900);

    let second = order(Strategy::Mrs, (1000, 20, 200), 1, 2);
    assert_eq!(second.len(), 1800);
    // every second tuple is one that the first epoch has kept, and they come round again after 100
    let again: Vec<u32> = second.iter().copied().skip(1).step_by(2).collect();
    assert!(again.iter().all(|tuple| !mrs.contains(tuple)));
    assert_eq!(again[..100], again[100..200]);
    assert_eq!(again[..100].iter().collect::<HashSet<_>>().len(), 100);

    let corgipile = example(Strategy::CorgiPile);
    for buffer in corgipile.chunks(200) {
        let blocks: HashSet<u32> = buffer.iter().map(|tuple| tuple / 20).collect();
        assert_eq!(blocks.len(), 10, "a buffer is ten whole blocks");
    }
    let blocks = example(Strategy::BlockOnly);
    assert!(blocks.chunks(20).all(|block| block.windows(2).all(|pair| pair[0] + 1 == pair[1])));
    for strategy in [Strategy::ShuffleOnce, Strategy::EpochShuffle] {
        let first: Vec<u32> = example(strategy)[..100].to_vec();
        assert!((30..70).contains(&first.iter().filter(|&&tuple| tuple < 500).count()), "{strategy}: {first:?}");
    }
}

/// The expected orders are printed by `orders.py`, next to this file, which shares no code with the crate.
#[test]
fn orders_of_windows_reservoirs_and_sorts_never_change() {
    #[rustfmt::skip]
    let frozen: [(Strategy, i64, u64, &[u32]); 14] = [
        (Strategy::SlidingWindow, 0, 1, &[0, 4, 7, 9, 2, 11, 12, 1, 10, 16, 17, 15, 18, 8, 20, 21, 3, 13, 22, 5, 14, 6, 19]),
        (Strategy::SlidingWindow, 42, 1, &[3, 2, 4, 8, 10, 5, 7, 12, 15, 14, 13, 18, 19, 16, 21, 22, 17, 20, 9, 6, 11, 1, 0]),
        (Strategy::SlidingWindow, 42, 2, &[4, 3, 9, 10, 11, 5, 8, 12, 7, 2, 13, 6, 0, 14, 19, 16, 20, 22, 1, 18, 17, 21, 15]),
        (Strategy::SlidingWindow, -1, 5, &[2, 1, 4, 0, 8, 7, 9, 6, 15, 10, 14, 11, 13, 5, 17, 20, 3, 19, 18, 16, 22, 21, 12]),
        (Strategy::Mrs, 0, 1, &[0, 4, 5, 7, 3, 9, 8, 11, 12, 6, 14, 1, 16, 13, 17, 19, 20, 21, 22]),
        (Strategy::Mrs, 42, 1, &[4, 1, 6, 5, 8, 0, 9, 2, 12, 13, 14, 15, 16, 10, 18, 19, 20, 21, 22]),
        (Strategy::Mrs, 42, 2, &[1, 17, 5, 7, 6, 11, 2, 3, 8, 17, 9, 7, 10, 11, 11, 3, 3, 17, 13, 7, 14, 11, 15, 3, 16, 17, 17, 7, 12, 11, 19, 3, 20, 17, 21, 7, 0, 11]),
        (Strategy::Mrs, -1, 5, &[1, 16, 2, 18, 6, 2, 7, 9, 4, 16, 5, 18, 3, 2, 9, 9, 12, 16, 0, 18, 14, 2, 15, 9, 16, 16, 8, 18, 13, 2, 19, 9, 17, 16, 21, 18, 22, 2]),
        (Strategy::ShuffleOnce, 0, 1, &[11, 7, 22, 5, 9, 20, 1, 0, 14, 8, 6, 10, 16, 2, 4, 12, 18, 3, 19, 17, 13, 21, 15]),
        (Strategy::ShuffleOnce, 42, 1, &[20, 15, 2, 18, 4, 5, 12, 1, 9, 14, 21, 0, 6, 11, 3, 8, 19, 16, 22, 17, 10, 13, 7]),
        (Strategy::ShuffleOnce, 42, 2, &[20, 15, 2, 18, 4, 5, 12, 1, 9, 14, 21, 0, 6, 11, 3, 8, 19, 16, 22, 17, 10, 13, 7]),
        (Strategy::EpochShuffle, 0, 1, &[18, 11, 14, 21, 8, 3, 13, 22, 12, 17, 0, 20, 7, 9, 15, 2, 16, 10, 1, 6, 5, 4, 19]),
        (Strategy::EpochShuffle, 42, 1, &[18, 15, 9, 10, 8, 13, 14, 12, 1, 22, 21, 5, 11, 3, 20, 19, 6, 17, 7, 2, 4, 16, 0]),
        (Strategy::EpochShuffle, 42, 2, &[1, 7, 10, 22, 2, 4, 18, 12, 15, 6, 0, 8, 5, 20, 3, 16, 19, 14, 17, 9, 21, 11, 13]),
    ];
    for (strategy, seed, epoch, expected) in frozen {
        assert_eq!(order(strategy, (23, 2, 8), seed, epoch), expected, "{strategy}, seed {seed}, epoch {epoch}");
    }
}

#[test]
fn keys_of_sorts_never_change_and_are_all_different() {
    #[rustfmt::skip]
    let frozen: [(Strategy, i64, u64, u64, i64); 6] = [
        (Strategy::ShuffleOnce, 0, 1, 0, -2168894705127012774),
        (Strategy::EpochShuffle, 0, 1, 0, -334984727825028969),
        (Strategy::ShuffleOnce, 42, 7, 1, -225608043979715931),
        (Strategy::EpochShuffle, 42, 7, 1, 4122096001738687203),
        (Strategy::ShuffleOnce, -1, 3, 1000, 6012944614834555176),
        (Strategy::EpochShuffle, -1, 3, 1000, 7296093467778302101),
    ];
    for (strategy, seed, epoch, number, key) in frozen {
        assert_eq!(SortKeys::for_epoch(strategy, seed, epoch).unwrap().key(number), key, "{strategy}, {seed}, {epoch}");
    }
    let keys = SortKeys::for_epoch(Strategy::EpochShuffle, 42, 1).unwrap();
    let distinct: HashSet<i64> = (0..100_000).map(|number| keys.key(number)).collect();
    assert_eq!(distinct.len(), 100_000);
}

#[test]
fn one_sort_serves_all_epochs_or_each_has_its_own() {
    let once = |epoch| SortKeys::for_epoch(Strategy::ShuffleOnce, 7, epoch);
    assert!(once(0).is_some());
    assert_eq!(once(0), once(1));
    assert_eq!(once(1), once(20));
    let each = |epoch| SortKeys::for_epoch(Strategy::EpochShuffle, 7, epoch);
    assert_eq!(each(0), None);
    assert_ne!(each(1), each(2));
    assert_ne!(each(1), once(1));
    assert_ne!(SortKeys::for_epoch(Strategy::ShuffleOnce, 8, 1), once(1));
    for strategy in Strategy::ALL.into_iter().filter(|s| !s.sorts()) {
        assert_eq!(SortKeys::for_epoch(strategy, 7, 1), None);
    }
}

#[test]
fn every_tuple_is_equally_likely_in_every_place_of_a_sorted_copy() {
    const N: usize = 31;
    let mut counts = [[0_u32; N]; N];
    for seed in 0..N as i64 * 1000 {
        for (place, &tuple) in order(Strategy::ShuffleOnce, (N as u32, 1, 4), seed, 1).iter().enumerate() {
            counts[place][tuple as usize] += 1;
        }
    }
    let chi_square: f64 = counts.iter().flatten().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
    // rows and columns add up, so (N - 1)^2 = 900 degrees of freedom; 1035 is the 0.999 quantile
    assert!(chi_square < 1035.0, "chi-square {chi_square}");
}

/// Algorithm R keeps each of n tuples with probability capacity / n.
#[test]
fn every_tuple_is_equally_likely_to_stay_in_the_reservoir() {
    const N: usize = 40;
    const EPOCHS: u64 = 20_000;
    let mut stayed = [0_u32; N];
    let mut mixer = Mixer::new(Strategy::Mrs, 42);
    let (mut buffer, mut order): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for epoch in 1..=EPOCHS {
        mixer.begin_epoch(epoch);
        for chunk in [0..10, 10..40] {
            keep(&mut mixer, &mut buffer);
            buffer.extend(chunk.clone());
            mixer.arrived(buffer.len(), chunk.end == 40, &mut order, &mut || {});
        }
        assert_eq!(mixer.capacity(), 5);
        keep(&mut mixer, &mut buffer);
        buffer.iter().for_each(|tuple| stayed[*tuple as usize] += 1);
    }
    let expected = EPOCHS as f64 * 5.0 / N as f64;
    let chi_square: f64 = stayed.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    // 39 degrees of freedom; 72.1 is the 0.999 quantile
    assert!(chi_square < 72.1, "chi-square {chi_square}");
}

#[test]
fn a_window_forgets_a_tuple_after_a_window_on_average() {
    let order = order(Strategy::SlidingWindow, (20_000, 1, 100), 3, 1);
    let delay: f64 = order.iter().zip(0..).map(|(&tuple, position)| f64::from(position) - f64::from(tuple)).sum();
    assert_eq!(delay, 0.0, "a permutation: what comes late makes room for what comes early");
    // A tuple that came in at time t goes out at one of t + 1, t + 2, ... with probability 1/100 each time: 100 later
    // on average. Positions run 100 behind, so it is the deviation that shows: that of the geometric distribution,
    // nearly 100.
    let middle = &order[5000..15_000];
    let square = |(&tuple, position): (&u32, u32)| (f64::from(position) - f64::from(tuple)).powi(2);
    let deviation = (middle.iter().zip(5000..).map(square).sum::<f64>() / middle.len() as f64).sqrt();
    assert!((95.0..105.0).contains(&deviation), "{deviation}");
}

#[test]
fn a_table_of_one_tuple_trains_it_in_every_epoch_and_an_empty_one_nothing() {
    for strategy in Strategy::ALL {
        for epoch in 1..4 {
            assert_eq!(order(strategy, (1, 1, 1), 5, epoch), [0], "{strategy}, epoch {epoch}");
            assert_eq!(order(strategy, (1, 20, 200), 5, epoch), [0], "{strategy}, epoch {epoch}");
            assert!(order(strategy, (0, 20, 200), 5, epoch).is_empty(), "{strategy}, epoch {epoch}");
        }
    }
}

#[test]
fn a_window_of_one_tuple_keeps_the_natural_order() {
    assert_eq!(order(Strategy::SlidingWindow, (50, 1, 1), 1, 1), (0..50).collect::<Vec<_>>());
}

#[test]
fn an_epoch_that_was_broken_off_leaves_the_next_as_it_is() {
    let expected = mixed(Strategy::Mrs, 9, 3, 100, 20, &[3]);
    let mut mixer = Mixer::new(Strategy::Mrs, 9);
    let (mut buffer, mut order) = (Vec::<u32>::new(), Vec::new());
    let mut given = Vec::new();
    // The third epoch is begun three times; twice it is left after some reads.
    for (epoch, reads) in [(1, 99), (2, 99), (3, 2), (3, 5), (3, 99)] {
        assert!(!mixer.needs_epoch_before(epoch));
        mixer.begin_epoch(epoch);
        let mut seen = 0;
        given.clear();
        for _ in 0..reads {
            if mixer.ended() {
                break;
            }
            keep(&mut mixer, &mut buffer);
            let until = if epoch == 1 && seen == 0 { 20 } else { 100.min(seen + 7) };
            buffer.extend(seen..until);
            seen = until;
            mixer.arrived(buffer.len(), seen == 100, &mut order, &mut || {});
            given.extend(order.iter().map(|place| buffer[*place as usize]));
        }
    }
    assert_eq!(given, expected[2]);
    assert!(mixer.needs_epoch_before(3), "its reservoir has given way to that of the third");
    assert!(!mixer.needs_epoch_before(4));
    assert!(mixer.needs_epoch_before(7));
}

#[test]
fn the_preparation_pass_is_in_natural_order_or_the_copys() {
    for strategy in Strategy::ALL {
        let pass = order(strategy, (100, 3, 20), 11, 0);
        let expected = match strategy {
            Strategy::ShuffleOnce => order(strategy, (100, 3, 20), 11, 1),
            _ => (0..100).collect(),
        };
        assert_eq!(pass, expected, "{strategy}");
    }
}

#[test]
fn a_long_sort_asks_whether_to_go_on() {
    let mut asked = 0;
    let geometry = Geometry::of_tuples(1_000_000, 20, 1000);
    TupleOrder::new(Strategy::EpochShuffle, 1, 1, geometry, || asked += 1).unwrap();
    assert!(asked > 5, "{asked}");
}

proptest! {
    #[test]
    fn an_order_sees_every_tuple_once_and_is_a_function_of_its_arguments(
        seed: i64, epoch in 0..5_u64, tuples in 0..2000_u32, block in 0..50_u32, buffer in 0..2500_u32,
        strategy in prop::sample::select(&Strategy::ALL[..])
    ) {
        let got = order(strategy, (tuples, block, buffer), seed, epoch);
        prop_assert_eq!(&got, &order(strategy, (tuples, block, buffer), seed, epoch));
        if strategy.permutes() || epoch == 0 {
            prop_assert_eq!(sorted(&got), (0..tuples).collect::<Vec<_>>());
        }
    }

    #[test]
    fn seeds_and_epochs_that_differ_give_orders_that_differ(seed: i64, epoch in 1..4_u64) {
        let sizes = (300, 5, 60);
        for strategy in Strategy::ALL {
            let this = order(strategy, sizes, seed, epoch);
            let random = strategy != Strategy::NoShuffle;
            prop_assert_eq!(this != order(strategy, sizes, seed.wrapping_add(1), epoch), random, "{}", strategy);
            let anew = random && strategy != Strategy::ShuffleOnce;
            prop_assert_eq!(this != order(strategy, sizes, seed, epoch + 1), anew, "{}", strategy);
        }
    }

    /// Of n tuples each is dropped, or stays in the reservoir; in later epochs one of the last reservoir follows each.
    #[test]
    fn a_reservoir_keeps_half_a_buffer_and_gives_the_rest(seed: i64, tuples in 2..800_u32, first in 2..100_u32) {
        let first = first.min(tuples);
        let kept = first / 2;
        let orders = mixed(Strategy::Mrs, seed, 3, tuples, first, &[10]);
        prop_assert_eq!(orders[0].len() as u32, tuples - kept);
        let mut unseen: Vec<u32> = (0..tuples).collect();
        for (order, twice) in orders.iter().zip([false, true, true]) {
            let dropped: Vec<u32> = order.iter().copied().step_by(if twice { 2 } else { 1 }).collect();
            if twice {
                prop_assert_eq!(order.len() as u32, 2 * (tuples - kept));
                let again: HashSet<u32> = order.iter().copied().skip(1).step_by(2).collect();
                prop_assert!(again.is_subset(&unseen.iter().copied().collect()));
            }
            let distinct: HashSet<u32> = dropped.iter().copied().collect();
            prop_assert_eq!(distinct.len() as u32, tuples - kept);
            unseen = (0..tuples).filter(|tuple| !distinct.contains(tuple)).collect();
        }
    }

    #[test]
    fn it_does_not_matter_how_reads_are_cut_once_the_buffer_was_full(
        seed: i64, tuples in 0..1000_u32, first in 1..200_u32,
        cuts in prop::collection::vec(0..60_u32, 1..8), other in prop::collection::vec(1..400_u32, 1..4)
    ) {
        prop_assume!(cuts.iter().any(|cut| *cut > 0));
        for strategy in [Strategy::SlidingWindow, Strategy::Mrs] {
            let one = mixed(strategy, seed, 3, tuples, first, &cuts);
            prop_assert_eq!(&one, &mixed(strategy, seed, 3, tuples, first, &other), "{}", strategy);
        }
    }

    /// The reservoir is one of its own epoch: an epoch run from scratch is that of a training that has come so far.
    #[test]
    fn an_epoch_from_scratch_is_that_of_a_long_training(seed: i64, tuples in 0..400_u32, buffer in 1..100_u32) {
        let geometry = Geometry::of_tuples(tuples, 1, buffer);
        let first = geometry.buffer_blocks.min(tuples);
        for strategy in [Strategy::SlidingWindow, Strategy::Mrs] {
            let training = mixed(strategy, seed, 4, tuples, first.max(1), &[(geometry.buffer_blocks / 8).max(1)]);
            for (epoch, expected) in (1..).zip(training) {
                prop_assert_eq!(order(strategy, (tuples, 1, buffer), seed, epoch), expected, "{}", strategy);
            }
        }
    }
}

/// The same tuples, once in the first places as they came and once anywhere: the orders say the same.
#[test]
fn it_does_not_matter_where_the_tuples_of_a_buffer_are() {
    for strategy in Strategy::ALL.into_iter().filter(|strategy| !Mixer::new(*strategy, 1).keeps_tuples()) {
        let (mut here, mut there) = (Mixer::new(strategy, 7), Mixer::new(strategy, 7));
        for epoch in 0..3 {
            [&mut here, &mut there].into_iter().for_each(|mixer| mixer.begin_epoch(epoch));
            if here.keeps_tuples() {
                continue;
            }
            for (len, last) in [(100, false), (0, false), (7, false), (40, true)] {
                let places: Vec<u32> = (0..len).map(|i| 1000 - 3 * i).collect();
                let (mut order, mut moved) = (Vec::new(), places.clone());
                here.arrived(len as usize, last, &mut order, &mut || {});
                there.arrived_at(last, &mut moved, &mut || {});
                let told: Vec<u32> = order.iter().map(|place| places[*place as usize]).collect();
                assert_eq!((told, here.ended()), (moved, there.ended()), "{strategy:?}, epoch {epoch}");
            }
        }
    }
}

#[test]
fn whatever_takes_long_asks_whether_to_go_on() {
    let tuples = 1_100_000;
    for strategy in [Strategy::CorgiPile, Strategy::ShuffleOnce] {
        for block in [1, tuples] {
            let asked = std::cell::Cell::new(0_usize);
            let geometry = Geometry::of_tuples(tuples, block, tuples);
            let mut order = TupleOrder::new(strategy, 1, 1, geometry, || asked.set(asked.get() + 1)).unwrap();
            order.next_tuple().unwrap();
            // four times in each pass over the tuples: for blocks or a sort, a buffer, an order
            assert!(asked.get() >= 8, "{strategy}, {block}: {}", asked.get());
        }
    }
}
