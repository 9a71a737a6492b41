//! What the blocks of a buffer have in common with the table: judged by the worst order that a table can be in.

use shuffle::{BlockPartition, Geometry, Strategy, block_order};

/// Blocks, and room in the buffer: even and uneven, few and many buffers, short tables and long ones.
const GEOMETRIES: [(u32, u32); 10] =
    [(33, 4), (64, 7), (99, 10), (100, 50), (101, 51), (250, 10), (303, 31), (500, 50), (640, 64), (997, 100)];

/// Those of 47 rows a page in blocks of 8 pages, of 1e6, 1e7 and 1e8 rows, as they are by default where seeks are
/// cheap.
const SMALL_BLOCKS: [(u32, u32); 3] = [(2660, 266), (26_596, 259), (265_958, 257)];

const SEEDS: i64 = 2000;

/// The blocks of each buffer for one seed, no matter who reads them.
fn buffers(geometry: &Geometry, processes: u32, seed: i64) -> Vec<Vec<u32>> {
    let mut buffers = Vec::new();
    for process in 0..processes {
        let share = BlockPartition::new(processes, process).share(seed, 1, geometry);
        for (place, block) in (0..).zip(share.blocks()) {
            let buffer = share.buffer(place) as usize;
            buffers.resize_with(buffers.len().max(buffer + 1), Vec::new);
            buffers[buffer].push(*block);
        }
    }
    buffers
}

#[test]
fn one_process_has_the_order_of_the_blocks() {
    for (blocks, room) in GEOMETRIES {
        let geometry = Geometry::of_tuples(blocks, 1, room);
        let order = block_order(Strategy::CorgiPile, 7, 1, blocks, geometry.buffers());
        assert_eq!(buffers(&geometry, 1, 7).concat(), order);
    }
}

/// Chi-square of how often each block was in each buffer. On average it is the number of blocks times that of the
/// buffers less one, whatever the draw, as long as all blocks are equally likely.
#[test]
fn every_block_is_equally_likely_in_every_buffer() {
    for (blocks, room) in GEOMETRIES {
        let geometry = Geometry::of_tuples(blocks, 1, room);
        let mut counts = vec![vec![0.0; blocks as usize]; geometry.buffers() as usize];
        let mut sizes = vec![0.0; counts.len()];
        for seed in 0..SEEDS {
            for (buffer, drawn) in buffers(&geometry, 1, seed).iter().enumerate() {
                sizes[buffer] = drawn.len() as f64;
                drawn.iter().for_each(|block| counts[buffer][*block as usize] += 1.0);
            }
        }
        let mut chi_square = 0.0;
        for (counts, size) in counts.iter().zip(&sizes) {
            let p = size / f64::from(blocks);
            let expected = SEEDS as f64 * p;
            chi_square += counts.iter().map(|count: &f64| (count - expected).powi(2) / expected).sum::<f64>();
            let worst = counts.iter().map(|count| (count - expected).abs()).fold(0.0, f64::max);
            let deviation = (expected * (1.0 - p)).sqrt();
            assert!(worst < 5.0 * deviation, "{blocks} blocks in buffers of {room}: {counts:?}, {expected} expected");
        }
        let mean = f64::from(blocks) * (sizes.len() as f64 - 1.0);
        assert!(
            chi_square < mean + 4.5 * (2.0 * mean).sqrt(),
            "{blocks} in buffers of {room}: {chi_square}, not {mean}"
        );
    }
}

/// An order of the table: of each block the share of a class in it; their mean, and their variance with n - 1 below.
struct Order {
    name: String,
    shares: Vec<f64>,
    mean: f64,
    variance: f64,
}

impl Order {
    fn new(name: String, blocks: u32, share: impl Fn(f64) -> f64) -> Order {
        let shares: Vec<f64> = (0..blocks).map(|block| share(f64::from(block))).collect();
        let n = f64::from(blocks);
        let mean = shares.iter().sum::<f64>() / n;
        let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Order { name, shares, mean, variance }
    }

    /// The first half of each period is of the class; a block may be of both.
    fn periodic(blocks: u32, period: f64, phase: f64) -> Order {
        let until = |at: f64| {
            let periods = (at / period).floor();
            (periods * period / 2.0) + (at - periods * period).min(period / 2.0)
        };
        let phase = phase * period;
        let share = |block: f64| until(block + phase + 1.0) - until(block + phase);
        Order::new(format!("period {period:.2} from {phase:.2}"), blocks, share)
    }

    fn sorted(blocks: u32, share: f64) -> Order {
        let first = share * f64::from(blocks);
        Order::new(format!("sorted, {share:.2} first"), blocks, |block| (first - block).clamp(0.0, 1.0))
    }

    fn drifting(blocks: u32, power: i32) -> Order {
        Order::new(format!("drifting, power {power}"), blocks, |block| (block / f64::from(blocks)).powi(power))
    }

    /// The variance of what a buffer of `size` has, for the paper's draw: any set of blocks is as likely as any other.
    fn variance_of_simple_draw(&self, size: f64) -> f64 {
        size * (1.0 - size / self.shares.len() as f64) * self.variance
    }
}

/// By how much each order is mixed worse than by the simple draw: the standard deviation of what a buffer gets, divided
/// by that of the simple draw, over all buffers and seeds.
fn unevenness(orders: &[Order], (blocks, room): (u32, u32), processes: u32) -> Vec<f64> {
    let geometry = Geometry::of_tuples(blocks, 1, room);
    let mut squares = vec![(0.0, 0.0); orders.len()];
    // 4,000 buffers: the deviation within 1.2% of the true one
    for seed in 0..4000 / i64::from(geometry.buffers()) {
        for drawn in buffers(&geometry, processes, seed) {
            for (order, (ours, simple)) in orders.iter().zip(&mut squares) {
                let got: f64 = drawn.iter().map(|block| order.shares[*block as usize]).sum();
                *ours += (got - drawn.len() as f64 * order.mean).powi(2);
                *simple += order.variance_of_simple_draw(drawn.len() as f64);
            }
        }
    }
    squares.iter().map(|(ours, simple)| (ours / simple).sqrt()).collect()
}

#[test]
fn no_order_is_mixed_worse_than_by_the_simple_draw() {
    for (blocks, room) in GEOMETRIES.into_iter().chain(SMALL_BLOCKS) {
        let periods = [2.0, 3.0, 10.0 / 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 13.0, 16.0, 20.0, 50.0, 100.0];
        let buffers = f64::from(Geometry::of_tuples(blocks, 1, room).buffers());
        let periods = periods.into_iter().chain([buffers, 2.0 * buffers, buffers / 2.0, f64::from(room)]);
        let mut orders = vec![Order::drifting(blocks, 1), Order::drifting(blocks, 6)];
        for period in periods.filter(|period| *period >= 2.0 && *period < f64::from(blocks)) {
            orders.extend([0.0, 0.17].map(|phase| Order::periodic(blocks, period, phase)));
        }
        orders.extend([0.1, 0.2, 0.5, 0.9].map(|share| Order::sorted(blocks, share)));
        for (order, ratio) in orders.iter().zip(unevenness(&orders, (blocks, room), 1)) {
            assert!(ratio < 1.1, "{ratio} of the simple draw's deviation: {} of {blocks} in {room}", order.name);
        }
    }
}

/// Where a buffer has at least 50 blocks, as a table of 500 pages gives it. Smaller ones have too few strata for that.
#[test]
fn sorted_tables_are_mixed_twice_as_well_as_by_the_simple_draw() {
    for (blocks, room) in GEOMETRIES.into_iter().chain(SMALL_BLOCKS).filter(|(_, room)| *room >= 50) {
        let orders = [0.2, 0.33, 0.5, 0.51, 0.7].map(|share| Order::sorted(blocks, share));
        for (order, ratio) in orders.iter().zip(unevenness(&orders, (blocks, room), 1)) {
            assert!(ratio < 0.5, "{ratio} of the simple draw's deviation: {} of {blocks} in {room}", order.name);
        }
    }
}

#[test]
fn several_processes_mix_no_order_worse_than_the_simple_draw() {
    for (blocks, room, processes) in [(500, 50, 2), (500, 50, 5), (303, 31, 3), (997, 100, 8), (26_596, 259, 4)] {
        let mut orders = vec![Order::drifting(blocks, 1), Order::sorted(blocks, 0.5)];
        for period in [2.0, 3.0, 5.0, 8.0, 10.0, 20.0, 40.0, 80.0, f64::from(processes), f64::from(10 * processes)] {
            orders.extend([0.0, 0.17].map(|phase| Order::periodic(blocks, period, phase)));
        }
        for (order, ratio) in orders.iter().zip(unevenness(&orders, (blocks, room), processes)) {
            assert!(ratio < 1.1, "{ratio}: {} of {blocks} in {room} for {processes} processes", order.name);
        }
    }
}

/// Blocks at any distance from each other share a buffer no more often than by the simple draw, in two epochs neither.
#[test]
fn no_distance_brings_blocks_together() {
    const BLOCKS: usize = 500;
    const BUFFERS: usize = 10;
    let mut together = vec![[0.0, 0.0]; BLOCKS];
    let mut pairs = vec![0.0; BLOCKS];
    for seed in 0..60 {
        let buffer_of = [1, 2].map(|epoch| {
            let order = block_order(Strategy::CorgiPile, seed, epoch, BLOCKS as u32, BUFFERS as u32);
            let mut buffer_of = vec![0; BLOCKS];
            order.iter().enumerate().for_each(|(place, block)| buffer_of[*block as usize] = place * BUFFERS / BLOCKS);
            buffer_of
        });
        for distance in 1..BLOCKS {
            for first in 0..BLOCKS - distance {
                let meet = buffer_of.each_ref().map(|buffer| buffer[first] == buffer[first + distance]);
                pairs[distance] += 1.0;
                together[distance][0] += f64::from(u8::from(meet[0]));
                together[distance][1] += f64::from(u8::from(meet[0] && meet[1]));
            }
        }
    }
    for distance in 1..BLOCKS {
        // five standard deviations above 1/10, and above 1/100
        for (met, p) in together[distance].into_iter().zip([0.1_f64, 0.01]) {
            let most = p + 5.0 * (p / pairs[distance]).sqrt();
            assert!(met / pairs[distance] < most, "distance {distance}: {} instead of {p}", met / pairs[distance]);
        }
    }
}
