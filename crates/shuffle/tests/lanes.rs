//! Lanes: the order that they make together is one that a single process could produce, no matter who reads them.

use proptest::prelude::*;
use shuffle::{BlockSequence, Blocks, Lanes, Strategy as Order, block_order, shuffle_tuples};
use std::collections::HashSet;

/// An epoch in lanes.
#[derive(Debug, Clone)]
struct Case {
    sizes: Vec<u64>,
    buffers: u32,
    lanes: u32,
    together: u32,
    batch: u32,
    seed: i64,
    epoch: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let sizes = prop::collection::vec(prop_oneof![3 => 1..40_u64, 1 => Just(0)], 0..40);
    let numbers = (1..12_u32, 1..5_u32, 1..5_u32, 1..50_u32, any::<i64>(), 0..4_u64);
    (sizes, numbers).prop_map(|(sizes, (buffers, together, groups, batch, seed, epoch))| Case {
        sizes,
        buffers,
        lanes: together * groups,
        together,
        batch,
        seed,
        epoch,
    })
}

impl Case {
    fn parts(&self) -> (Blocks, Lanes, BlockSequence) {
        let blocks = Blocks::new(self.sizes.iter().copied()).unwrap();
        let lanes = Lanes::new(self.lanes, self.together, self.batch, blocks.tuples());
        let sequence = BlockSequence::new(Order::CorgiPile, self.seed, self.epoch, &blocks, self.buffers);
        (blocks, lanes, sequence)
    }

    /// All tuples of a lane, in its order.
    fn lane(&self, lane: u32) -> Vec<u64> {
        let (blocks, lanes, sequence) = self.parts();
        let mut tuples = Vec::new();
        for buffer in 0..sequence.buffers() {
            let share = sequence.share(&blocks, &lanes, lane, buffer);
            assert_eq!(share.first, tuples.len() as u64);
            let held: Vec<u64> = share.runs.into_iter().flatten().collect();
            let mut order: Vec<u32> = (0..held.len() as u32).collect();
            let ordinal = u64::from(lane) << 32 | u64::from(buffer);
            shuffle_tuples(Order::CorgiPile, self.seed, self.epoch, ordinal, &mut order);
            tuples.extend(order.iter().map(|place| held[*place as usize]));
        }
        tuples
    }

    /// The batches, in turns.
    fn batches(&self) -> Vec<Vec<u64>> {
        let lanes = self.parts().1;
        let tuples: Vec<Vec<u64>> = (0..self.lanes).map(|lane| self.lane(lane)).collect();
        let batch = |number| {
            let batch = lanes.batch(number);
            let first = batch.first as usize;
            tuples[batch.lane as usize][first..first + batch.tuples as usize].to_vec()
        };
        (0..lanes.batches()).map(batch).collect()
    }
}

proptest! {
    /// Theorem 3: with the lanes' batches taken in turns, the tuples are those of a single process's buffers, one
    /// buffer after the other, and each is there once.
    #[test]
    fn any_order_of_lanes_is_one_of_a_single_process(case in cases()) {
        let (blocks, _, sequence) = case.parts();
        let tuples: Vec<u64> = case.batches().concat();
        let mut from = 0;
        for buffer in 0..sequence.buffers() {
            let single: HashSet<u64> =
                sequence.blocks_of(buffer).iter().flat_map(|block| blocks.tuples_of(*block)).collect();
            let until = from + single.len();
            let seen: HashSet<u64> = tuples[from..until].iter().copied().collect();
            prop_assert_eq!(seen, single);
            from = until;
        }
        prop_assert_eq!(from as u64, blocks.tuples());
        prop_assert_eq!(from, tuples.len());
        // and these buffers are filled as a single process fills them
        let order: Vec<u32> = (0..sequence.buffers()).flat_map(|buffer| sequence.blocks_of(buffer).to_vec()).collect();
        let alone = block_order(Order::CorgiPile, case.seed, case.epoch, blocks.len(), sequence.buffers());
        prop_assert_eq!(order, alone);
    }

    #[test]
    fn only_batches_of_the_last_step_are_not_full_and_they_differ_by_one_at_most(case in cases()) {
        let sizes: Vec<usize> = case.batches().iter().map(Vec::len).collect();
        let last = sizes.len() - sizes.len().min(case.together as usize);
        prop_assert!(sizes[..last].iter().all(|size| *size == case.batch as usize));
        let (least, most) = (sizes[last..].iter().min(), sizes[last..].iter().max());
        prop_assert!(most.zip(least).is_none_or(|(most, least)| most - least <= 1));
        prop_assert_eq!(sizes.len() % case.together as usize, 0);
    }

    /// A place of a lane is found again without going through the places before it.
    #[test]
    fn a_place_is_in_the_buffer_that_is_found_for_it(case in cases()) {
        let (blocks, lanes, sequence) = case.parts();
        for lane in 0..case.lanes {
            for buffer in 0..sequence.buffers() {
                let share = sequence.share(&blocks, &lanes, lane, buffer);
                let tuples: u64 = share.runs.iter().map(|run| run.end - run.start).sum();
                for place in share.first..share.first + tuples {
                    prop_assert_eq!(sequence.buffer_of(&lanes, lane, place), buffer);
                }
            }
            let all = lanes.tuples_before(lane, blocks.tuples());
            prop_assert_eq!(sequence.buffer_of(&lanes, lane, all), sequence.buffers());
        }
    }

    /// A lane reads at most two blocks in part from each buffer.
    #[test]
    fn lanes_share_no_more_than_the_blocks_at_their_ends(case in cases()) {
        let (blocks, lanes, sequence) = case.parts();
        for buffer in 0..sequence.buffers() {
            let full = sequence.blocks_of(buffer).iter().filter(|block| !blocks.tuples_of(**block).is_empty()).count();
            let runs: usize = (0..case.lanes)
                .map(|lane| sequence.share(&blocks, &lanes, lane, buffer).runs.len())
                .sum();
            prop_assert!(runs < full + case.lanes as usize, "{} runs of {} blocks", runs, full);
        }
    }
}

/// A single lane is the extension's single process: the same seed gives the same order in both.
#[test]
fn a_single_lane_has_the_order_of_a_single_process() {
    let case = Case { sizes: vec![5; 20], buffers: 4, lanes: 1, together: 1, batch: 7, seed: 42, epoch: 2 };
    let geometry = shuffle::Geometry::of_tuples(100, 5, 25);
    let mut single = shuffle::TupleOrder::new(Order::CorgiPile, 42, 2, geometry, || {}).unwrap();
    let single: Vec<u64> = std::iter::from_fn(|| single.next_tuple().unwrap()).map(u64::from).collect();
    assert_eq!(case.batches().concat(), single);
}

#[test]
fn blocks_are_dealt_anew_in_each_epoch() {
    let case = |epoch| Case { sizes: vec![10; 64], buffers: 4, lanes: 2, together: 2, batch: 10, seed: 1, epoch };
    let of = |epoch| case(epoch).lane(0).into_iter().collect::<HashSet<u64>>();
    // half of its tuples would be the same by chance
    let common = of(1).intersection(&of(2)).count();
    assert!((80..240).contains(&common), "{common} of 320 tuples stayed in their lane");
}

#[test]
fn more_tuples_than_32_bits_count_are_dealt_without_looking_at_each() {
    let blocks = Blocks::of_units([(5 << 40, 5 << 40)], 1 << 34).unwrap();
    let lanes = Lanes::new(8, 8, 64, blocks.tuples());
    let sequence = BlockSequence::new(Order::CorgiPile, 3, 1, &blocks, 10);
    let share = sequence.share(&blocks, &lanes, 5, 9);
    let tuples: u64 = share.runs.iter().map(|run| run.end - run.start).sum();
    assert_eq!(share.first + tuples, lanes.tuples_before(5, 5 << 40));
    assert_eq!(lanes.tuples_before(5, 5 << 40), 5 << 37);
    assert_eq!(sequence.buffer_of(&lanes, 5, share.first), 9);
    assert_eq!(lanes.batches(), (5 << 40) / 64);
}
