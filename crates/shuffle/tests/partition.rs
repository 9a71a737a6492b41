//! Theorem 3 of the CorgiPile paper: the order that k processes produce is one that a single process could produce.

use proptest::prelude::*;
use shuffle::{BlockPartition, Geometry, Mixer, PartitionEpoch, RoundRobin, Strategy};
use std::collections::HashSet;

/// A table of tuples, this many in each block; blocks may be empty.
#[derive(Debug, Clone)]
struct Table {
    blocks: Vec<Vec<u32>>,
    geometry: Geometry,
}

impl Table {
    fn new(sizes: &[u32], buffer_blocks: u32) -> Table {
        let mut next = 0..;
        let blocks = sizes.iter().map(|size| next.by_ref().take(*size as usize).collect()).collect();
        Table { blocks, geometry: Geometry::of_tuples(sizes.len() as u32, 1, buffer_blocks) }
    }

    /// The tuples that are in the buffers of all processes at the same time.
    fn buffers(&self, k: u32, seed: i64, epoch: u64) -> Vec<HashSet<u32>> {
        let mut buffers: Vec<HashSet<u32>> = Vec::new();
        for blocks in blocks_of_buffers(k, seed, epoch, &self.geometry) {
            buffers.push(blocks.iter().flat_map(|block| &self.blocks[*block as usize]).copied().collect());
        }
        buffers
    }
}

fn shares(k: u32, seed: i64, epoch: u64, geometry: &Geometry) -> Vec<PartitionEpoch> {
    (0..k).map(|index| BlockPartition::new(k, index).share(seed, epoch, geometry)).collect()
}

/// The blocks that are in the buffers of all processes at the same time.
fn blocks_of_buffers(k: u32, seed: i64, epoch: u64, geometry: &Geometry) -> Vec<Vec<u32>> {
    let mut buffers: Vec<Vec<u32>> = Vec::new();
    for share in shares(k, seed, epoch, geometry) {
        for (place, block) in (0..).zip(share.blocks()) {
            let buffer = share.buffer(place) as usize;
            buffers.resize_with(buffers.len().max(buffer + 1), Vec::new);
            buffers[buffer].push(*block);
        }
    }
    buffers
}

/// One of the processes, in an epoch.
struct Process {
    share: PartitionEpoch,
    mixer: Mixer,
    position: u32,
    /// tuples of its buffer that are still to be learned from, the last one first, and that buffer's number
    left: Vec<u32>,
    buffer: u64,
}

impl Process {
    fn new(table: &Table, deal: BlockPartition, seed: i64, epoch: u64) -> Process {
        let share = deal.share(seed, epoch, &table.geometry);
        let mut mixer = Mixer::new(Strategy::CorgiPile, seed);
        mixer.set_deal(deal);
        mixer.begin_epoch(epoch);
        Process { share, mixer, position: 0, left: Vec::new(), buffer: u64::MAX }
    }

    /// Fills the buffer if there is nothing left in it; at most `room` blocks, as if they filled the memory.
    fn fill(&mut self, table: &Table, room: u32) {
        let blocks = self.share.blocks();
        while self.left.is_empty() && !self.mixer.ended() {
            self.buffer = self.share.buffer(self.position);
            let left = self.share.blocks().len() as u32 - self.position;
            let until = self.position + self.share.left_in_buffer(self.position).min(room).min(left);
            let read = &blocks[self.position as usize..until as usize];
            let tuples: Vec<u32> = read.iter().flat_map(|block| &table.blocks[*block as usize]).copied().collect();
            self.position = until;
            let mut order = Vec::new();
            self.mixer.arrived(tuples.len(), until as usize == blocks.len(), &mut order, &mut || {});
            self.left = order.iter().rev().map(|place| tuples[*place as usize]).collect();
        }
        if self.left.is_empty() {
            self.buffer = u64::MAX;
        }
    }
}

/// A buffer's number, and tuples in the order in which they are learned from.
type OfBuffer = (u64, Vec<u32>);

/// What `k` processes learn from, buffer by buffer, cut into mini-batches; and how many tuples of each batch are of
/// each process.
fn together(
    table: &Table,
    k: u32,
    (seed, epoch): (i64, u64),
    batch: usize,
    room: u32,
) -> (Vec<OfBuffer>, Vec<Vec<usize>>) {
    let mut processes: Vec<Process> =
        (0..k).map(|i| Process::new(table, BlockPartition::new(k, i), seed, epoch)).collect();
    let mut turns = RoundRobin::default();
    let (mut orders, mut batches) = (Vec::new(), Vec::new());
    let mut shares = vec![0; k as usize];
    loop {
        processes.iter_mut().for_each(|process| process.fill(table, room));
        let buffer = processes.iter().map(|process| process.buffer).min().unwrap();
        if buffer == u64::MAX {
            break;
        }
        let held = |process: &Process| if process.buffer == buffer { process.left.len() } else { 0 };
        turns.begin(processes.iter().map(held));
        let mut order = Vec::new();
        while turns.left() > 0 {
            let missing = batch - shares.iter().sum::<usize>();
            let takes: Vec<usize> = (0..k as usize).map(|i| turns.clone().take(missing, i)).collect();
            turns.take(missing, 0);
            let mut took: Vec<Vec<u32>> = Vec::new();
            for ((process, share), take) in processes.iter_mut().zip(&mut shares).zip(&takes) {
                let at = process.left.len() - take;
                took.push(process.left.split_off(at).into_iter().rev().collect());
                *share += take;
            }
            // the sums of a mini-batch do not know an order; this is the one that is claimed
            let longest = took.iter().map(Vec::len).max().unwrap();
            order.extend((0..longest).flat_map(|i| took.iter().filter_map(move |took| took.get(i)).copied()));
            if shares.iter().sum::<usize>() == batch {
                batches.push(std::mem::replace(&mut shares, vec![0; k as usize]));
            }
        }
        orders.push((buffer, order));
    }
    if shares.iter().any(|share| *share > 0) {
        batches.push(shares);
    }
    (orders, batches)
}

prop_compose! {
    fn table()(sizes in prop::collection::vec(prop_oneof![4 => 1..9_u32, 1 => Just(0)], 0..60), buffer in 1..70_u32) -> Table {
        Table::new(&sizes, buffer)
    }
}

proptest! {
    #[test]
    fn what_k_processes_learn_from_is_an_order_of_one(
        table in table(), k in 1..=9_u32, seed: i64, epoch in 1..100_u64, batch in 1..40_usize, room in 1..9_u32,
    ) {
        let (orders, batches) = together(&table, k, (seed, epoch), batch, room);
        // buffer by buffer: the same tuples, each once
        let mut alone = table.buffers(k, seed, epoch);
        let mut buffers: Vec<u64> = Vec::new();
        for (buffer, order) in &orders {
            for tuple in order {
                prop_assert!(alone[*buffer as usize].remove(tuple), "tuple {} in buffer {}", tuple, buffer);
            }
            buffers.push(*buffer);
        }
        prop_assert!(alone.iter().all(HashSet::is_empty), "{:?} were left out", alone);
        prop_assert!(buffers.is_sorted(), "{:?}", buffers);
        // batch by batch: as many tuples as one process has in them
        let tuples: usize = orders.iter().map(|(_, order)| order.len()).sum();
        let sizes: Vec<usize> = batches.iter().map(|shares| shares.iter().sum()).collect();
        let whole = sizes.iter().take_while(|size| **size == batch).count();
        prop_assert_eq!(whole, tuples / batch);
        prop_assert_eq!(&sizes[whole..], if tuples.is_multiple_of(batch) { vec![] } else { vec![tuples % batch] });
    }

    /// In turns, where all have as many.
    #[test]
    fn processes_have_turns_in_proportion_to_their_tuples(
        tuples in prop::collection::vec(0..200_usize, 1..9), batch in 1..50_usize,
    ) {
        let k = tuples.len();
        let mut sequence: Vec<(usize, usize)> = (0..k).flat_map(|i| (0..tuples[i]).map(move |j| (i, j))).collect();
        // by (j + 1/2) / n, and of equal ones the first process's
        sequence.sort_by_key(|(i, _)| *i);
        sequence.sort_by(|(i, j), (other, l)| ((2 * j + 1) * tuples[*other]).cmp(&((2 * l + 1) * tuples[*i])));
        let mut turns = RoundRobin::default();
        turns.begin(tuples.iter().copied());
        let mut taken = vec![0; k];
        while turns.left() > 0 {
            let before = turns.clone();
            for (i, taken) in taken.iter_mut().enumerate() {
                let mut turns = before.clone();
                *taken += turns.take(batch, i);
            }
            turns.take(batch, 0);
            let done = tuples.iter().sum::<usize>() - turns.left();
            prop_assert_eq!(taken.iter().sum::<usize>(), done);
            for (i, taken) in taken.iter().enumerate() {
                let expected = sequence[..done].iter().filter(|(process, _)| *process == i).count();
                prop_assert_eq!(*taken, expected, "{} after {} turns of {:?}", i, done, &tuples);
            }
        }
        prop_assert_eq!(&taken, &tuples);
        // as many as are left, however many are asked for
        turns.begin(tuples.iter().copied());
        turns.take(1.min(turns.left()), 0);
        let left = turns.left();
        prop_assert_eq!(turns.take_of_all(usize::MAX).iter().sum::<usize>(), left);
    }

    /// Theorem 3, for blocks: what is in the buffers of k processes is what may be in the buffers of one.
    #[test]
    fn buffers_of_all_processes_are_buffers_of_one(
        blocks in 0..700_u32, buffer in 1..700_u32, k in 1..=64_u32, seed: i64, epoch in 1..1000_u64,
    ) {
        let geometry = Geometry::of_tuples(blocks, 1, buffer);
        let k = k.min(geometry.buffer_blocks);
        let buffers = blocks_of_buffers(k, seed, epoch, &geometry);
        // each block once, and no buffer larger than one may be
        let mut all: Vec<u32> = buffers.concat();
        all.sort_unstable();
        prop_assert!(all.iter().copied().eq(0..blocks));
        prop_assert!(buffers.iter().all(|buffer| buffer.len() <= geometry.buffer_blocks as usize));
        // as many to each process, of each buffer, to a block
        let shares = shares(k, seed, epoch, &geometry);
        for buffer in 0..buffers.len() as u64 {
            let count = |share: &PartitionEpoch| (0..share.blocks().len() as u32).filter(|p| share.buffer(*p) == buffer).count();
            let sizes: Vec<usize> = shares.iter().map(count).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{:?}", sizes);
        }
    }

    #[test]
    fn a_process_gets_the_same_blocks_in_every_epoch(
        blocks in 0..700_u32, buffer in 1..700_u32, k in 1..=8_u32, seed: i64, epoch in 1..1000_u64,
    ) {
        let geometry = Geometry::of_tuples(blocks, 1, buffer);
        let ours = |epoch| -> Vec<Vec<u32>> {
            let sorted = |share: &PartitionEpoch| { let mut blocks = share.blocks().to_vec(); blocks.sort_unstable(); blocks };
            shares(k, seed, epoch, &geometry).iter().map(sorted).collect()
        };
        prop_assert_eq!(ours(epoch), ours(epoch + 1));
    }
}

#[test]
fn a_process_on_its_own_does_what_it_would_without_any_others() {
    let table = Table::new(&[3; 20], 6);
    let (orders, _) = together(&table, 1, (42, 3), 5, u32::MAX);
    let order: Vec<u32> = orders.into_iter().flat_map(|(_, order)| order).collect();
    let mut alone =
        shuffle::TupleOrder::new(Strategy::CorgiPile, 42, 3, Geometry::of_tuples(60, 3, 18), || {}).unwrap();
    assert_eq!(order, std::iter::from_fn(|| alone.next_tuple().unwrap()).collect::<Vec<_>>());
}

#[test]
fn processes_draw_orders_of_their_own() {
    // both have 8 tuples in one buffer
    let (orders, _) = together(&Table::new(&[8, 8], 2), 2, (1, 1), 16, u32::MAX);
    let of = |first: u32| orders[0].1.iter().filter(|t| (first..first + 8).contains(t)).map(|t| t - first).collect();
    let (a, b): (Vec<u32>, Vec<u32>) = (of(0), of(8));
    assert_eq!((a.len(), b.len()), (8, 8));
    assert_ne!(a, b);
}

/// The expected shares are printed by `orders.py`, next to this file. A change here means that no one's stored seed
/// gives the model it gave before.
#[test]
fn shares_never_change() {
    #[rustfmt::skip]
    let frozen: [_; 4] = [
        ((23, 8, 2), (42, 1), "[[[12, 0, 21, 14], [9, 22, 11, 13], [7, 16, 1, 17]], [[3, 6, 8, 18], [15, 20, 4, 5], [19, 2, 10]]]"),
        ((23, 8, 2), (42, 2), "[[[17, 1, 12, 11], [22, 9, 21, 16], [7, 14, 13, 0]], [[18, 6, 10, 2], [4, 3, 20, 15], [8, 19, 5]]]"),
        ((23, 8, 3), (-1, 7), "[[[14, 0], [17, 8], [16, 18], [22, 10]], [[6, 4], [9, 2], [15, 19], [7, 13]], [[3, 12], [5, 21], [20, 1], [11]]]"),
        ((9, 9, 2), (5, 1), "[[[5, 3, 4, 1, 8]], [[7, 6, 2, 0]]]"),
    ];
    for ((blocks, buffer, k), (seed, epoch), expected) in frozen {
        let of_process = |share: &PartitionEpoch| {
            let mut buffers: Vec<Vec<u32>> = Vec::new();
            for (place, block) in (0..).zip(share.blocks()) {
                let buffer = share.buffer(place) as usize;
                buffers.resize_with(buffers.len().max(buffer + 1), Vec::new);
                buffers[buffer].push(*block);
            }
            buffers
        };
        let shares = shares(k, seed, epoch, &Geometry::of_tuples(blocks, 1, buffer));
        assert_eq!(format!("{:?}", shares.iter().map(of_process).collect::<Vec<_>>()), expected);
    }
}

/// A table sorted by label, of which one process alone must not learn what the others know nothing of.
#[test]
fn a_process_has_blocks_from_everywhere_in_every_buffer() {
    let geometry = Geometry::of_tuples(6000, 1, 600);
    for share in shares(4, 3, 2, &geometry) {
        let mut counts = vec![[0; 10]; geometry.buffers() as usize];
        for (place, block) in (0..).zip(share.blocks()) {
            counts[share.buffer(place) as usize][*block as usize / 600] += 1;
        }
        // of 600 neighbours, a simple draw has 15 in a buffer give or take 3.7; here only those of two strata vary
        assert!(counts.iter().flatten().all(|n| (11..=19).contains(n)), "{counts:?}");
    }
}

/// What makes the order of several processes as good as one's: a tuple may come anywhere in its buffer, no matter who
/// has it.
#[test]
fn a_tuple_is_equally_likely_in_every_place() {
    const TUPLES: usize = 8;
    let table = Table::new(&[2; TUPLES / 2], 4);
    let mut counts = [[0_u32; TUPLES]; TUPLES];
    for epoch in 1..=8000 {
        let order: Vec<u32> = together(&table, 2, (3, epoch), 4, u32::MAX).0.remove(0).1;
        order.iter().enumerate().for_each(|(place, tuple)| counts[place][*tuple as usize] += 1);
    }
    // the first process has every second place, and in every epoch the same blocks
    let first = shares(2, 3, 1, &table.geometry)[0].blocks().to_vec();
    for (place, counts) in counts.iter().enumerate() {
        let has = |tuple: usize| first.contains(&(tuple as u32 / 2)) == place.is_multiple_of(2);
        let ours: Vec<u32> = (0..TUPLES).filter(|tuple| has(*tuple)).map(|t| counts[t]).collect();
        assert_eq!(ours.len(), TUPLES / 2);
        let chi_square: f64 = ours.iter().map(|&n| (f64::from(n) - 2000.0).powi(2) / 2000.0).sum();
        assert!(chi_square < 20.0, "place {place}: {counts:?}"); // 3 degrees of freedom: one in 6000
    }
}

#[test]
#[should_panic(expected = "process 2 of 2")]
fn a_process_that_does_not_exist_gets_nothing() {
    BlockPartition::new(2, 2);
}
