//! What holds of every log of events: joins, leaves, epochs and rounds of any jobs, at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use joader::{Dependent, Draw, ElementSet, Follow, Independent, Job, JobSet, Meeting, Sampler, SamplerError, Walk};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Event {
    Join(Vec<Range<u32>>),
    /// The job at this place of those that are there.
    Leave(prop::sample::Index),
    Epoch(prop::sample::Index),
    /// This many rounds of the jobs with these bits.
    Rounds(u64, usize),
}

fn event() -> impl Strategy<Value = Event> {
    let range = (0_u32..700, 1_u32..500).prop_map(|(from, n)| from..from + n);
    prop_oneof![
        3 => prop::collection::vec(range, 0..4).prop_map(Event::Join),
        1 => any::<prop::sample::Index>().prop_map(Event::Leave),
        2 => any::<prop::sample::Index>().prop_map(Event::Epoch),
        6 => (any::<u64>(), 1_usize..120).prop_map(|(jobs, n)| Event::Rounds(jobs, n)),
    ]
}

fn samplers(seed: i64) -> Vec<Box<dyn Sampler>> {
    vec![
        Box::new(Dependent::new(seed, Meeting::Intersection).unwrap()),
        Box::new(Dependent::new(seed, Meeting::Vertex).unwrap()),
        Box::new(Independent::new(seed)),
        Box::new(Walk::new(seed)),
        Box::new(Follow::new(seed, 5).unwrap()),
    ]
}

/// A sampler under a log, with what each of its jobs must still need.
struct Replay {
    sampler: Box<dyn Sampler>,
    jobs: BTreeMap<Job, (ElementSet, BTreeSet<u32>)>,
    /// All rounds.
    drawn: Vec<Vec<Draw>>,
    /// How often two jobs met, how often they were expected to, and the variance of that.
    met: f64,
    expected: f64,
    variance: f64,
}

impl Replay {
    fn new(sampler: Box<dyn Sampler>) -> Self {
        Self { sampler, jobs: BTreeMap::new(), drawn: Vec::new(), met: 0.0, expected: 0.0, variance: 0.0 }
    }

    fn apply(&mut self, event: &Event) {
        let nth = |jobs: &BTreeMap<Job, _>, place: &prop::sample::Index| {
            (!jobs.is_empty()).then(|| *jobs.keys().nth(place.index(jobs.len())).unwrap())
        };
        match event {
            Event::Join(ranges) => {
                let set = ElementSet::from_ranges(ranges.iter().cloned()).unwrap();
                match self.sampler.join(set.clone()) {
                    Ok(job) => assert!(self.jobs.insert(job, (set.clone(), set.iter().collect())).is_none()),
                    Err(error) => assert_eq!((error, self.jobs.len()), (SamplerError::TooManyJobs, 64)),
                }
            }
            Event::Leave(place) => {
                if let Some(job) = nth(&self.jobs, place) {
                    self.sampler.leave(job);
                    self.jobs.remove(&job);
                    assert_eq!(self.sampler.begin_epoch(job), Err(SamplerError::UnknownJob(job)));
                }
            }
            Event::Epoch(place) => {
                if let Some(job) = nth(&self.jobs, place) {
                    self.sampler.begin_epoch(job).unwrap();
                    let (set, need) = self.jobs.get_mut(&job).unwrap();
                    *need = set.iter().collect();
                }
            }
            Event::Rounds(jobs, n) => (0..*n).for_each(|_| self.round(JobSet::from_bits(*jobs))),
        }
    }

    /// A round: each of its jobs that is not done draws one of the elements that it still needs, and no one else does.
    fn round(&mut self, jobs: JobSet) {
        let mut draws = Vec::new();
        self.expect_meeting(jobs);
        self.sampler.round(jobs, &mut draws);
        let drawing = self.jobs.iter().filter(|&(&job, (_, need))| jobs.contains(job) && !need.is_empty());
        let drawing: Vec<Job> = drawing.map(|(&job, _)| job).collect();
        assert_eq!(draws.iter().map(|draw| draw.job).collect::<Vec<_>>(), drawing);
        for draw in &draws {
            let need = &mut self.jobs.get_mut(&draw.job).unwrap().1;
            assert!(need.remove(&draw.element), "{} has drawn {} before, or does not want it", draw.job, draw.element);
            assert_eq!(self.sampler.remaining(draw.job), need.len());
        }
        if let [a, b, ..] = draws[..]
            && draws.iter().all(|draw| draw.element == a.element)
        {
            self.met += 1.0;
            assert_ne!(a.job, b.job);
        }
        self.drawn.push(draws);
    }

    /// All jobs of a round meet with |I| / max |D|, given all that was drawn before.
    fn expect_meeting(&mut self, jobs: JobSet) {
        let needs = self.jobs.iter().filter(|&(&job, (_, need))| jobs.contains(job) && !need.is_empty());
        let needs: Vec<&BTreeSet<u32>> = needs.map(|(_, (_, need))| need).collect();
        if let [first, _, ..] = needs[..] {
            let common = first.iter().filter(|&element| needs.iter().all(|need| need.contains(element))).count();
            let p = common as f64 / needs.iter().map(|need| need.len()).max().unwrap() as f64;
            self.expected += p;
            self.variance += p * (1.0 - p);
        }
    }

    /// Every job draws what is left, and then nothing.
    fn finish(&mut self) {
        while self.jobs.values().any(|(_, need)| !need.is_empty()) {
            self.round(JobSet::ALL);
        }
        assert!(self.jobs.keys().all(|&job| self.sampler.remaining(job) == 0));
        self.round(JobSet::ALL);
        assert_eq!(self.drawn.last(), Some(&Vec::new()));
    }
}

fn replay(sampler: Box<dyn Sampler>, log: &[Event]) -> Replay {
    let mut replay = Replay::new(sampler);
    log.iter().for_each(|event| replay.apply(event));
    replay.finish();
    replay
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// `Replay` has the assertions: each element once per job and epoch, and nothing is left behind.
    #[test]
    fn every_job_draws_each_element_once_per_epoch(log in prop::collection::vec(event(), 1..25), seed: i64) {
        for sampler in samplers(seed) {
            replay(sampler, &log);
        }
    }

    #[test]
    fn the_same_seed_and_log_give_the_same_draws(log in prop::collection::vec(event(), 1..15), seed: i64) {
        for (a, b) in samplers(seed).into_iter().zip(samplers(seed)) {
            prop_assert_eq!(replay(a, &log).drawn, replay(b, &log).drawn);
        }
    }

    /// What a job of the independent sampler draws does not depend on others that join after it.
    #[test]
    fn alone_a_job_draws_the_same(log in prop::collection::vec(event(), 1..15), seed: i64, n in 1_u32..300) {
        let order = |log: &[Event]| {
            let mut replay = Replay::new(Box::new(Independent::new(seed)));
            replay.apply(&Event::Join(vec![0..n, 400..500]));
            let first = *replay.jobs.keys().next().unwrap();
            let of_others = |event: &&Event| matches!(event, Event::Join(_) | Event::Rounds(..));
            log.iter().filter(of_others).for_each(|event| replay.apply(event));
            replay.finish();
            let draws = replay.drawn.into_iter().flatten().filter(move |draw| draw.job == first);
            draws.map(|draw| draw.element).collect::<Vec<_>>()
        };
        prop_assert_eq!(order(&log), order(&[]));
    }
}

/// Under random logs, jobs of a round meet with |I| / max |D| (two of them, and all of several): the difference from
/// the sum of these probabilities is a martingale's, whatever happens between rounds.
#[test]
fn jobs_meet_as_often_as_can_be_under_joins_leaves_and_all_speeds() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut met, mut expected, mut variance) = (0.0, 0.0, 0.0);
    for seed in 0..150 {
        let log = prop::collection::vec(event(), 10..40).new_tree(&mut runner).unwrap().current();
        let mut replay = Replay::new(Box::new(Dependent::new(seed, Meeting::Intersection).unwrap()));
        log.iter().for_each(|event| replay.apply(event));
        met += replay.met;
        expected += replay.expected;
        variance += replay.variance;
    }
    assert!(variance > 1000.0, "{variance}: too few rounds to tell");
    assert!((met - expected).abs() < 4.0 * f64::sqrt(variance), "{met} instead of {expected} (variance {variance})");
}

/// Two jobs of all relations, and nested ones: first rounds, exactly |I| / max |D| and |I| / |Dn|.
#[test]
fn first_rounds_meet_with_the_closed_forms() {
    const ROUNDS: usize = 60_000;
    let families: [&[Range<u32>]; 7] = [
        &[0..10, 0..10],
        &[0..10, 5..15],
        &[0..10, 0..4],
        &[3..5, 0..10],
        &[0..6, 6..10],
        &[0..2, 0..4, 0..7, 0..12],
        &[0..20, 5..15, 8..12],
    ];
    for (seed, family) in families.into_iter().enumerate() {
        let mut sampler = Dependent::new(seed as i64, Meeting::Intersection).unwrap();
        let join = |set: &Range<u32>| sampler.join(ElementSet::from_ranges([set.clone()]).unwrap()).unwrap();
        let jobs: Vec<Job> = family.iter().map(join).collect();
        let (mut met, mut draws) = (0, Vec::new());
        for _ in 0..ROUNDS {
            jobs.iter().for_each(|&job| sampler.begin_epoch(job).unwrap());
            sampler.round(JobSet::ALL, &mut draws);
            met += usize::from(draws.iter().all(|draw| draw.element == draws[0].element));
        }
        let common = (0..20).filter(|element| family.iter().all(|set| set.contains(element))).count();
        let p = common as f64 / family.iter().map(|set| set.len()).max().unwrap() as f64;
        let (expected, deviation) = (ROUNDS as f64 * p, (ROUNDS as f64 * p * (1.0 - p)).sqrt());
        assert!((met as f64 - expected).abs() <= 4.5 * deviation, "{met} instead of {expected} of {family:?}");
    }
}

/// Jobs of one set and speed meet in every round with either sampler; with a walk also if they have begun at different
/// times.
#[test]
fn equal_jobs_always_meet() {
    for sampler in [0, 1, 3, 4] {
        let mut replay = Replay::new(samplers(5).swap_remove(sampler));
        (0..64).for_each(|_| replay.apply(&Event::Join(vec![0..1000, 3000..3001])));
        replay.finish();
        let same = |draws: &Vec<Draw>| draws.iter().all(|draw| draw.element == draws[0].element);
        assert!(replay.drawn.iter().all(same));
        assert_eq!(replay.drawn.len(), 1002);
    }
    let (all, mut walk) = (0..1000, Replay::new(Box::new(Walk::new(5))));
    walk.apply(&Event::Join(vec![all.clone()]));
    walk.apply(&Event::Rounds(1, 700));
    walk.apply(&Event::Join(vec![all.clone()]));
    walk.apply(&Event::Rounds(3, 300));
    walk.sampler.begin_epoch(*walk.jobs.keys().next().unwrap()).unwrap();
    walk.jobs.first_entry().unwrap().get_mut().1.extend(0..1000);
    walk.finish();
    let met = walk.drawn.iter().filter(|draws| draws.len() == 2 && draws[0].element == draws[1].element).count();
    assert_eq!((met, walk.drawn.iter().filter(|draws| draws.len() == 2).count()), (1000, 1000));
}
