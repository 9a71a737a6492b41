//! The vectors of `dependent_sampling.json`: exact probabilities of one round, and misses in closed form and by another
//! simulator.

#[path = "reference/exact.rs"]
mod exact;
#[path = "reference/statistics.rs"]
mod statistics;
#[path = "reference/tree.rs"]
mod tree;

use std::collections::BTreeMap;

use exact::distribution;
use joader::{Cache, Dependent, Draw, ElementSet, Independent, JobSet, Lru, Meeting, Policy, RefCnt, Sampler};
use serde_json::Value;
use statistics::deviation;
use tree::{Random, Tree};

fn oracle() -> Value {
    serde_json::from_str(include_str!("dependent_sampling.json")).unwrap()
}

fn fraction(value: &Value) -> f64 {
    let (above, below) = value.as_str().unwrap().split_once('/').unwrap();
    above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap()
}

fn sets(case: &Value) -> Vec<Vec<u32>> {
    let set = |set: &Value| set.as_array().unwrap().iter().map(|element| element.as_u64().unwrap() as u32).collect();
    case["sets"].as_array().unwrap().iter().map(set).collect()
}

/// Means over a distribution of what all, two and how many different ones draw.
fn check_case(case: &Value, outcomes: &BTreeMap<Vec<u32>, f64>, tolerance: f64) {
    let mean = |of: &dyn Fn(&[u32]) -> f64| outcomes.iter().map(|(drawn, p)| p * of(drawn)).sum::<f64>();
    let near = |value: f64, expected: &Value, what: &str| {
        let expected = fraction(expected);
        assert!((value - expected).abs() < tolerance, "{what}: {value} instead of {expected} in {case}");
    };
    near(mean(&|drawn| f64::from(drawn.iter().all(|d| *d == drawn[0]))), &case["p_all_equal"], "all equal");
    let distinct = |drawn: &[u32]| drawn.iter().collect::<std::collections::BTreeSet<_>>().len() as f64;
    near(mean(&distinct), &case["expected_distinct_reads"], "distinct");
    for (pair, expected) in case["pairs"].as_object().into_iter().flatten() {
        let job = |place: usize| usize::from(pair.as_bytes()[place] - b'0');
        near(mean(&|drawn| f64::from(drawn[job(0)] == drawn[job(1)])), expected, pair);
    }
}

fn element_set(elements: &[u32]) -> ElementSet {
    ElementSet::from_ranges(elements.iter().map(|&element| element..element + 1)).unwrap()
}

/// How often each outcome of a first round was drawn.
fn drawn(sampler: &mut dyn Sampler, sets: &[Vec<u32>], rounds: usize) -> BTreeMap<Vec<u32>, f64> {
    let jobs: Vec<_> = sets.iter().map(|set| sampler.join(element_set(set)).unwrap()).collect();
    let (mut draws, mut counts) = (Vec::new(), BTreeMap::new());
    for _ in 0..rounds {
        jobs.iter().for_each(|&job| sampler.begin_epoch(job).unwrap());
        sampler.round(JobSet::ALL, &mut draws);
        *counts.entry(draws.iter().map(|draw| draw.element).collect()).or_default() += 1.0;
    }
    counts
}

#[test]
fn the_reference_has_the_oracles_probabilities() {
    for case in oracle()["cases"].as_array().unwrap() {
        check_case(case, &distribution(&sets(case)), 1e-12);
    }
}

#[test]
fn a_round_has_the_oracles_probabilities() {
    const ROUNDS: usize = 400_000;
    for (seed, case) in oracle()["cases"].as_array().unwrap().iter().enumerate() {
        let mut sampler = Dependent::new(seed as i64, Meeting::Intersection).unwrap();
        let mut counts = drawn(&mut sampler, &sets(case), ROUNDS);
        counts.values_mut().for_each(|count| *count /= ROUNDS as f64);
        check_case(case, &counts, 0.004);
    }
}

/// Every possible outcome of a round, as often as Algorithm 1 says: 60 random families of up to 5 sets.
#[test]
fn rounds_are_distributed_as_algorithm_1_says() {
    const ROUNDS: usize = 40_000;
    let mut random = Random(1);
    for family in 0..60 {
        let sets: Vec<Vec<u32>> = (0..2 + random.below(4))
            .map(|_| {
                let bits = 1 + random.below(63);
                (0..6).filter(|element| bits >> element & 1 == 1).collect()
            })
            .collect();
        let expected = distribution(&sets);
        let mut sampler = Dependent::new(family, Meeting::Intersection).unwrap();
        let counts = drawn(&mut sampler, &sets, ROUNDS);
        assert!(counts.keys().all(|drawn| expected.contains_key(drawn)), "impossible draws from {sets:?}");
        let often = expected.iter().map(|(drawn, p)| (counts.get(drawn).copied().unwrap_or(0.0), p * ROUNDS as f64));
        // rare outcomes count together
        let (rare, mut cells): (Vec<_>, Vec<_>) = often.partition(|&(_, expected)| expected < 8.0);
        let rare = rare.iter().fold((0.0, 0.0), |sum: (f64, f64), cell| (sum.0 + cell.0, sum.1 + cell.1));
        cells.extend((rare.1 > 0.0).then_some(rare));
        assert!(deviation(&cells) < 4.5, "{} for {sets:?}", deviation(&cells));
    }
}

/// Rounds one after the other, from the same start: the tree's and the sampler's draws meet as often.
#[test]
fn epochs_meet_as_often_as_the_trees() {
    let sets: Vec<Vec<u32>> =
        vec![(0..30).collect(), (10..50).collect(), (0..50).step_by(2).collect(), (25..40).collect()];
    let runs = 400;
    let (mut ours, mut trees) = (Vec::new(), Vec::new());
    for seed in 0..runs {
        let mut tree = Tree::new(&sets, seed);
        let rounds = std::iter::repeat_with(|| tree.round(&[0, 1, 2, 3])).take_while(|draws| !draws.is_empty());
        trees.push(rounds.map(|draws| distinct(draws.iter().map(|draw| draw.1))).sum::<usize>() as f64);
        let mut sampler = Dependent::new(seed as i64, Meeting::Intersection).unwrap();
        ours.push(requests(&mut sampler, &sets).iter().map(Vec::len).sum::<usize>() as f64);
    }
    let (a, b) = (mean(&ours), mean(&trees));
    let error = ((variance(&ours) + variance(&trees)) / runs as f64).sqrt();
    assert!((a - b).abs() < 4.0 * error, "{a} instead of {b}, +-{error}");
}

fn distinct(elements: impl Iterator<Item = u32>) -> usize {
    elements.collect::<std::collections::BTreeSet<_>>().len()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// What jobs with these sets draw in an epoch: in each round the different elements.
fn requests(sampler: &mut dyn Sampler, sets: &[Vec<u32>]) -> Vec<Vec<u32>> {
    for set in sets {
        sampler.join(element_set(set)).unwrap();
    }
    let (mut draws, mut requests): (Vec<Draw>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
    loop {
        sampler.round(JobSet::ALL, &mut draws);
        if draws.is_empty() {
            return requests;
        }
        let mut round: Vec<u32> = Vec::new();
        for draw in &draws {
            if !round.contains(&draw.element) {
                round.push(draw.element);
            }
        }
        requests.push(round);
    }
}

/// Misses of a cache, averaged over seeds, and the standard error of that.
fn misses<P: Policy>(
    sets: impl Fn(u64) -> Vec<Vec<u32>>,
    sampler: impl Fn(i64) -> Box<dyn Sampler>,
    capacity: usize,
    policy: impl Fn() -> P,
) -> f64 {
    let run = |seed: u64| {
        let sets = sets(seed);
        let mut left: BTreeMap<u32, usize> = BTreeMap::new();
        sets.iter().flatten().for_each(|&element| *left.entry(element).or_default() += 1);
        let mut sampler = sampler(seed as i64);
        sets.iter().for_each(|set| {
            sampler.join(element_set(set)).unwrap();
        });
        let (mut cache, mut draws) = (Cache::new(capacity, policy()), Vec::new());
        loop {
            sampler.round(JobSet::ALL, &mut draws);
            if draws.is_empty() {
                return cache.hits_and_misses().1 as f64;
            }
            draws.iter().for_each(|draw| *left.get_mut(&draw.element).unwrap() -= 1);
            for (place, draw) in draws.iter().enumerate() {
                if draws[..place].iter().all(|earlier| earlier.element != draw.element) {
                    cache.request(draw.element, JobSet::default(), left[&draw.element]);
                }
            }
        }
    };
    mean(&(0..5).map(run).collect::<Vec<_>>())
}

fn dependent(seed: i64) -> Box<dyn Sampler> {
    Box::new(Dependent::new(seed, Meeting::Intersection).unwrap())
}

fn independent(seed: i64) -> Box<dyn Sampler> {
    Box::new(Independent::new(seed))
}

fn within(value: f64, expected: f64, part: f64) {
    assert!((value - expected).abs() <= part * expected, "{value} instead of {expected}");
}

#[test]
fn nested_sets_miss_a_slot_as_often_as_the_closed_form_says() {
    for (n, expected) in [(5000, 13465.7), (2500, 12157.6)] {
        let nested = |_| vec![(0..10_000).collect(), (0..n).collect()];
        within(misses(nested, dependent, 1, Lru::default), expected, 0.005);
    }
}

#[test]
fn misses_are_those_of_the_other_simulator() {
    let oracle = &oracle()["simulation_means_over_5_seeds"];
    let equal = |_| vec![(0..10_000).collect(), (0..10_000).collect()];
    let shifted = |_| vec![(0..10_000).collect(), (5000..15_000).collect()];
    let samples = |seed: u64| {
        let mut random = Random(seed);
        let mut sample = || {
            let mut all: Vec<u32> = (0..13_333).collect();
            (0..10_000).for_each(|place| all.swap(place, place + random.below(13_333 - place)));
            all.truncate(10_000);
            all
        };
        (0..4).map(|_| sample()).collect()
    };
    for capacity in [1, 100, 5000] {
        assert_eq!(misses(equal, dependent, capacity, Lru::default), 10_000.0);
        assert_eq!(misses(shifted, dependent, capacity, Lru::default), 15_000.0);
    }
    let of = |case: &str, samplers: &str| oracle[case][samplers].as_f64().unwrap();
    within(misses(equal, independent, 5000, Lru::default), of("equal sets of 10000", "ISA LRU cache 5000"), 0.01);
    let expected = of("[0,10000) and [5000,15000)", "ISA LRU cache 1000");
    within(misses(shifted, independent, 1000, Lru::default), expected, 0.01);
    let sampled = &oracle["4 x sample of 10000 out of 13333"];
    for capacity in [1, 1000, 4000] {
        let of = |samplers: &str| sampled[samplers][capacity.to_string()].as_f64().unwrap();
        within(misses(samples, dependent, capacity, RefCnt::default), of("DSA RefCnt"), 0.01);
        within(misses(samples, dependent, capacity, Lru::default), of("DSA LRU"), 0.01);
        within(misses(samples, independent, capacity, Lru::default), of("ISA LRU"), 0.01);
    }
}
