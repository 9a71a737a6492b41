//! Proposition 1, for whole orders: whatever the other jobs do, every order of a job's elements is equally likely.

#[path = "reference/statistics.rs"]
mod statistics;
#[path = "reference/tree.rs"]
mod tree;

use std::collections::BTreeMap;

use joader::{Dependent, Draw, ElementSet, Follow, Independent, Job, JobSet, Meeting, Sampler, Walk};
use statistics::deviation;
use tree::Tree;

fn set(ranges: &[(u32, u32)]) -> ElementSet {
    ElementSet::from_ranges(ranges.iter().map(|&(from, until)| from..until)).unwrap()
}

/// What happens besides the job that is watched.
type Scene = fn(&mut Run);

/// A sampler, and the order in which its job 0 draws.
struct Run {
    sampler: Box<dyn Sampler>,
    watched: Job,
    order: Vec<u32>,
    draws: Vec<Draw>,
}

impl Run {
    fn new(mut sampler: Box<dyn Sampler>, watched: ElementSet, before: &[ElementSet], head_start: usize) -> Self {
        let (mut draws, earlier) = (Vec::new(), before.iter().map(|set| sampler.join(set.clone()).unwrap()));
        let earlier: JobSet = earlier.collect::<Vec<_>>().into_iter().collect();
        (0..head_start).for_each(|_| sampler.round(earlier, &mut draws));
        let watched = sampler.join(watched).unwrap();
        Self { sampler, watched, order: Vec::new(), draws }
    }

    fn round(&mut self, jobs: JobSet) {
        self.sampler.round(jobs, &mut self.draws);
        let own = self.draws.iter().filter(|draw| draw.job == self.watched);
        self.order.extend(own.map(|draw| draw.element));
    }

    fn rounds(&mut self, n: usize) {
        (0..n).for_each(|_| self.round(JobSet::ALL));
    }

    fn only(&mut self, jobs: &[Job]) {
        self.round(jobs.iter().copied().collect());
    }
}

fn dependent(seed: i64) -> Box<dyn Sampler> {
    Box::new(Dependent::new(seed, Meeting::Intersection).unwrap())
}

fn by_vertex(seed: i64) -> Box<dyn Sampler> {
    Box::new(Dependent::new(seed, Meeting::Vertex).unwrap())
}

fn independent(seed: i64) -> Box<dyn Sampler> {
    Box::new(Independent::new(seed))
}

fn walk(seed: i64) -> Box<dyn Sampler> {
    Box::new(Walk::new(seed))
}

fn follow(seed: i64) -> Box<dyn Sampler> {
    Box::new(Follow::new(seed, 3).unwrap())
}

/// The watched job wants 0 to 3. Each scene lasts until it is done.
const SCENES: [(&str, Scene); 8] = [
    ("alone", |run| run.rounds(4)),
    ("beside sets that overlap it", |run| {
        run.sampler.join(set(&[(2, 9)])).unwrap();
        run.sampler.join(set(&[(0, 2), (3, 5)])).unwrap();
        run.rounds(4);
    }),
    ("beside one that joins in mid-epoch", |run| {
        run.rounds(1);
        run.sampler.join(set(&[(0, 4)])).unwrap();
        run.rounds(1);
        run.sampler.join(set(&[(1, 3)])).unwrap();
        run.rounds(2);
    }),
    ("beside one that is faster, and begins epochs", |run| {
        let fast = run.sampler.join(set(&[(0, 3)])).unwrap();
        for _ in 0..4 {
            run.only(&[fast]);
            if run.sampler.remaining(fast) == 0 {
                run.sampler.begin_epoch(fast).unwrap();
            }
            run.rounds(1);
        }
    }),
    ("beside one that is slower, and leaves", |run| {
        let slow = run.sampler.join(set(&[(0, 6)])).unwrap();
        run.only(&[run.watched]);
        run.rounds(1);
        run.only(&[run.watched]);
        run.sampler.leave(slow);
        run.rounds(1);
    }),
    ("beside nested sets", |run| {
        for until in [1, 2, 3, 8] {
            run.sampler.join(set(&[(0, until)])).unwrap();
        }
        run.rounds(4);
    }),
    ("beside one that begins its epoch anew in every round", |run| {
        let other = run.sampler.join(set(&[(1, 6)])).unwrap();
        for _ in 0..4 {
            run.sampler.begin_epoch(other).unwrap();
            run.rounds(1);
        }
    }),
    ("beside one that goes alone, by what the rest has drawn", |run| {
        // who decides may look at what was drawn
        let other = run.sampler.join(set(&[(0, 5)])).unwrap();
        while run.sampler.remaining(run.watched) > 0 {
            run.rounds(1);
            if run.draws.first().is_some_and(|draw| draw.element % 2 == 0) {
                run.only(&[other]);
            }
        }
    }),
];

fn permutations(elements: &[u32]) -> Vec<Vec<u32>> {
    if elements.is_empty() {
        return vec![Vec::new()];
    }
    let with = |first: u32| {
        let others: Vec<u32> = elements.iter().copied().filter(|&element| element != first).collect();
        permutations(&others).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    elements.iter().flat_map(|&first| with(first)).collect()
}

/// How far the counts of all 24 orders are from being equal, in standard deviations.
fn unevenness(sampler: fn(i64) -> Box<dyn Sampler>, scene: Scene, before: &[ElementSet], head_start: usize) -> f64 {
    const RUNS: i64 = 12_000;
    let mut counts: BTreeMap<Vec<u32>, f64> =
        permutations(&[0, 1, 2, 3]).into_iter().map(|order| (order, 0.0)).collect();
    for seed in 0..RUNS {
        let mut run = Run::new(sampler(seed), set(&[(0, 4)]), before, head_start);
        scene(&mut run);
        *counts.get_mut(&run.order).unwrap_or_else(|| panic!("{:?} is not an order of 0 to 3", run.order)) += 1.0;
    }
    deviation(&counts.values().map(|&count| (count, RUNS as f64 / 24.0)).collect::<Vec<_>>())
}

#[test]
fn every_order_of_a_small_set_is_equally_likely_whatever_the_others_do() {
    let before: [(&[ElementSet], usize); 3] =
        [(&[], 0), (&[set(&[(0, 4)])], 2), (&[set(&[(2, 7)]), set(&[(0, 5), (6, 8)])], 3)];
    for (name, scene) in SCENES {
        for (place, (before, head_start)) in before.iter().enumerate() {
            for (kind, sampler) in [("", dependent as fn(i64) -> _), (" by vertex", by_vertex)] {
                let deviation = unevenness(sampler, scene, before, *head_start);
                assert!(deviation < 4.5, "{name}{kind}, with {place} before: {deviation}");
            }
        }
    }
}

#[test]
fn alone_every_order_is_equally_likely_with_all_samplers() {
    for sampler in [independent, walk, follow] {
        assert!(unevenness(sampler, SCENES[0].1, &[], 0) < 4.5);
    }
    // these two look at no other job's elements
    for sampler in [independent, walk] {
        assert!(unevenness(sampler, SCENES[1].1, &[], 0) < 4.5);
    }
}

/// Three of the elements 0 to 3, at random.
fn three_at_random(seed: i64, ordinal: u64) -> ElementSet {
    let mut rng = shuffle::stream(0, seed, ordinal, 0);
    let mut left: Vec<u32> = (0..4).collect();
    left.remove(shuffle::below(&mut rng, 4));
    ElementSet::from_ranges(left.iter().map(|&element| element..element + 1)).unwrap()
}

/// Jobs that want everything, or what was chosen at random, come, go and draw as they like: that does not show in the
/// order of one that follows them.
#[test]
fn every_order_of_a_follower_is_equally_likely_among_jobs_that_want_the_same() {
    const RUNS: i64 = 12_000;
    let all = || set(&[(0, 4)]);
    for head_start in 0..4 {
        let mut counts: BTreeMap<Vec<u32>, f64> =
            permutations(&[0, 1, 2, 3]).into_iter().map(|order| (order, 0.0)).collect();
        for seed in 0..RUNS {
            let before = [all(), three_at_random(seed, 1)];
            let mut run = Run::new(follow(seed), all(), &before, head_start);
            let fast = run.sampler.join(all()).unwrap();
            for round in 0..4 {
                for _ in 0..head_start {
                    if run.sampler.remaining(fast) == 0 {
                        run.sampler.begin_epoch(fast).unwrap();
                    }
                    run.only(&[fast]);
                }
                if round == 1 {
                    run.sampler.join(three_at_random(seed, 2)).unwrap();
                }
                run.rounds(1);
            }
            *counts.get_mut(&run.order).unwrap() += 1.0;
        }
        let deviation = deviation(&counts.values().map(|&count| (count, RUNS as f64 / 24.0)).collect::<Vec<_>>());
        assert!(deviation < 4.5, "{deviation}, with {head_start} draws before and beside");
    }
}

/// The orders of two epochs together: 6 x 6 of them.
#[test]
fn the_order_of_an_epoch_tells_nothing_of_the_next() {
    const RUNS: i64 = 18_000;
    let samplers = [(dependent as fn(i64) -> _, false), (by_vertex, false), (independent, false), (walk, false)];
    for (sampler, follows) in samplers.into_iter().chain([(follow as fn(i64) -> _, true)]) {
        let mut counts: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
        for seed in 0..RUNS {
            let mut run = Run::new(sampler(seed), set(&[(0, 3)]), &[], 0);
            run.rounds(3);
            // no others are under way, or a walk would go the same way
            run.sampler.begin_epoch(run.watched).unwrap();
            if !follows {
                run.sampler.join(set(&[(1, 9)])).unwrap();
            }
            run.rounds(3);
            *counts.entry(run.order).or_default() += 1.0;
        }
        assert_eq!(counts.len(), 36);
        let deviation = deviation(&counts.values().map(|&count| (count, RUNS as f64 / 36.0)).collect::<Vec<_>>());
        assert!(deviation < 4.5, "{deviation}");
    }
}

/// 240 elements, of which others want parts: each part of 24 falls into each tenth of the order equally often.
#[test]
fn elements_of_larger_sets_come_at_all_times() {
    const RUNS: i64 = 600;
    for sampler in [dependent as fn(i64) -> _, by_vertex] {
        let mut counts = [[0.0; 10]; 10];
        for seed in 0..RUNS {
            let before = [set(&[(100, 400)]), set(&[(0, 50)])];
            let mut run = Run::new(sampler(seed), set(&[(0, 240)]), &before, 40);
            let fast = run.sampler.join(set(&[(20, 120), (200, 260)])).unwrap();
            for round in 0..240 {
                run.only(&[fast]);
                if run.sampler.remaining(fast) == 0 {
                    run.sampler.begin_epoch(fast).unwrap();
                }
                if round == 77 {
                    run.sampler.join(set(&[(0, 240)])).unwrap();
                }
                run.rounds(1);
            }
            assert_eq!(run.order.len(), 240);
            run.order.iter().enumerate().for_each(|(at, element)| counts[*element as usize / 24][at / 24] += 1.0);
        }
        // rows and columns have fixed sums: 81 of the 100 counts are free, with a standard deviation of 12.7
        let expected = RUNS as f64 * 2.4;
        let statistic: f64 = counts.iter().flatten().map(|count| (count - expected).powi(2) / expected).sum();
        assert!((40.0..140.0).contains(&statistic), "{statistic}");
    }
}

/// Jobs of speeds 1, 2 and 3 in turn: the paper's tree, with partial sampling, draws as many different elements per
/// round.
#[test]
fn fast_jobs_meet_others_as_often_as_in_the_tree() {
    let sets: Vec<Vec<u32>> = vec![(0..24).collect(), (8..40).collect(), (0..40).step_by(3).collect()];
    let speeds = [vec![0, 1, 2], vec![1, 2], vec![2], vec![0, 2], vec![1]];
    let (mut ours, mut trees, runs) = (BTreeMap::new(), BTreeMap::new(), 3000);
    for seed in 0..runs {
        let mut tree = Tree::new(&sets, seed);
        let mut sampler = dependent(seed as i64);
        let jobs: Vec<Job> = sets
            .iter()
            .map(|set| sampler.join(ElementSet::from_ranges(set.iter().map(|&e| e..e + 1)).unwrap()).unwrap())
            .collect();
        let mut draws = Vec::new();
        for active in speeds.iter().cycle().take(30) {
            sampler.round(active.iter().map(|&job| jobs[job]).collect(), &mut draws);
            let met = |drawn: &mut dyn Iterator<Item = (usize, u32)>| {
                let drawn: Vec<(usize, u32)> = drawn.collect();
                let pairs = drawn.iter().enumerate().flat_map(|(at, a)| drawn[at + 1..].iter().map(move |b| (a, b)));
                pairs.filter(|(a, b)| a.1 == b.1).map(|(a, b)| (a.0.min(b.0), a.0.max(b.0))).collect::<Vec<_>>()
            };
            for pair in met(&mut draws.iter().map(|draw| (draw.job.number(), draw.element))) {
                *ours.entry(pair).or_insert(0.0) += 1.0;
            }
            for pair in met(&mut tree.round(active).into_iter()) {
                *trees.entry(pair).or_insert(0.0) += 1.0;
            }
        }
    }
    assert_eq!(ours.len(), 3);
    for (pair, count) in ours {
        let of_tree: f64 = trees[&pair];
        // meetings of different rounds of a run are nearly independent
        assert!((count - of_tree).abs() < 4.5 * (count + of_tree).sqrt(), "{pair:?}: {count} instead of {of_tree}");
    }
}
