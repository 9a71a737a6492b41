use proptest::prelude::*;

use super::*;
use crate::{ElementSet, Independent, Sampler};

/// Misses of these requests, none of them claimed; `to_come` of each is how often it is asked for again.
fn misses(policy: impl Policy, capacity: usize, requests: &[u32]) -> u64 {
    let mut cache = Cache::new(capacity, policy);
    for (at, element) in requests.iter().enumerate() {
        let to_come = requests[at + 1..].iter().filter(|later| *later == element).count();
        cache.request(*element, JobSet::default(), to_come);
    }
    let (hits, misses) = cache.hits_and_misses();
    assert_eq!(hits + misses, requests.len() as u64);
    misses
}

/// The fewest misses that there can be, by trying everything.
fn fewest(cached: &[u32], capacity: usize, requests: &[u32]) -> u64 {
    let Some((element, later)) = requests.split_first() else { return 0 };
    if cached.contains(element) {
        return fewest(cached, capacity, later);
    }
    let with = |kept: &[u32]| [kept, &[*element]].concat();
    let not_kept = fewest(cached, capacity, later);
    let kept = if cached.len() < capacity {
        fewest(&with(cached), capacity, later)
    } else {
        let without = |gone: &u32| cached.iter().copied().filter(|other| other != gone).collect::<Vec<_>>();
        cached.iter().map(|gone| fewest(&with(&without(gone)), capacity, later)).min().unwrap_or(not_kept)
    };
    1 + kept.min(not_kept)
}

/// The obvious cache: who goes is the one whose rank is the least.
fn naive(capacity: usize, requests: &[u32], rank: impl Fn(usize, usize, usize) -> usize) -> u64 {
    let (mut cached, mut misses): (Vec<(u32, usize, usize)>, _) = (Vec::new(), 0);
    for (at, element) in requests.iter().enumerate() {
        if let Some(entry) = cached.iter_mut().find(|entry| entry.0 == *element) {
            entry.2 = at;
            continue;
        }
        misses += 1;
        if cached.len() == capacity {
            let to_come = |element| requests[at..].iter().filter(|later| **later == element).count();
            let least = (0..capacity).min_by_key(|&place| {
                let (element, read_at, used_at) = cached[place];
                rank(to_come(element), read_at, used_at)
            });
            cached.remove(least.unwrap());
        }
        cached.push((*element, at, at));
    }
    misses
}

proptest! {
    #[test]
    fn policies_are_what_they_are_called(requests in prop::collection::vec(0_u32..12, 0..80), capacity in 1_usize..9) {
        prop_assert_eq!(misses(Lru::default(), capacity, &requests), naive(capacity, &requests, |_, _, used| used));
        prop_assert_eq!(misses(Fifo::default(), capacity, &requests), naive(capacity, &requests, |_, read, _| read));
        let by_count = |to_come: usize, _, used: usize| to_come * 1000 + used;
        prop_assert_eq!(misses(RefCnt::default(), capacity, &requests), naive(capacity, &requests, by_count));
    }

    #[test]
    fn nobody_does_better_than_the_optimum(requests in prop::collection::vec(0_u32..6, 0..14), capacity in 1_usize..4) {
        let optimum = misses(Optimum::new(&requests), capacity, &requests);
        prop_assert_eq!(optimum, fewest(&[], capacity, &requests));
    }

    #[test]
    fn the_optimum_bounds_all_policies(requests in prop::collection::vec(0_u32..30, 0..300), capacity in 1_usize..25) {
        let optimum = misses(Optimum::new(&requests), capacity, &requests);
        for others in [
            misses(Lru::default(), capacity, &requests),
            misses(Fifo::default(), capacity, &requests),
            misses(RefCnt::default(), capacity, &requests),
            misses(MinIo, capacity, &requests),
            misses(Replacement::new(1), capacity, &requests),
        ] {
            prop_assert!(optimum <= others);
        }
    }

    /// Whatever is claimed, taken and left: no more is cached than there is room for, and a claim that was not lost is
    /// found.
    #[test]
    fn what_is_claimed_is_there(
        events in prop::collection::vec((0_u32..20, 0_u64..8, 0_usize..3, any::<bool>()), 0..120),
        capacity in 1_usize..6,
    ) {
        let jobs = jobs(3);
        let mut cache = Cache::new(capacity, Lru::default());
        for (element, claims, job, takes) in events {
            let claims = JobSet::from_bits(claims);
            if takes {
                let claimed = cache.entries.get(&element).is_some_and(|entry| entry.claims.contains(jobs[job]));
                let taken = cache.take(jobs[job], element);
                prop_assert!(!claimed || taken == Taken::Cached);
            } else {
                cache.request(element, claims, 1);
            }
            prop_assert!(cache.entries.len() <= capacity);
        }
        jobs.iter().for_each(|&job| cache.leave(job));
        prop_assert!(cache.entries.values().all(|entry| entry.claims.is_empty()));
        // everything may go again
        (100..100 + capacity as u32).for_each(|element| { cache.request(element, JobSet::default(), 0); });
        prop_assert!((100..100 + capacity as u32).all(|element| cache.contains(element)));
    }
}

fn jobs(n: usize) -> Vec<Job> {
    let mut sampler = Independent::new(0);
    (0..n).map(|_| sampler.join(ElementSet::default()).unwrap()).collect()
}

#[test]
fn what_a_policy_says_itself() {
    let requests = [1, 2, 3, 1, 4, 1, 2];
    assert_eq!(misses(Lru::default(), 3, &requests), 5); // 4 replaces 2
    assert_eq!(misses(Fifo::default(), 3, &requests), 6); // 4 replaces 1, which replaces 2
    assert_eq!(misses(MinIo, 3, &requests), 4); // 4 does not get in
    assert_eq!(misses(Optimum::new(&requests), 2, &requests), 4); // neither do 3 and 4
    assert_eq!(misses(Lru::default(), 0, &requests), 7);
}

#[test]
fn random_replacement_replaces_all_equally_often() {
    let mut counts = [0; 5];
    for seed in 0..5000 {
        let mut cache = Cache::new(5, Replacement::new(seed));
        (0..6).for_each(|element| assert!(!cache.request(element, JobSet::default(), 0)));
        let gone: Vec<u32> = (0..5).filter(|&element| !cache.contains(element)).collect();
        assert_eq!(gone.len(), 1);
        counts[gone[0] as usize] += 1;
    }
    assert!(counts.iter().all(|&count: &i32| (count - 1000).abs() < 130), "{counts:?}");
}

/// What no one has still to draw goes before what was used longer ago but is claimed, or is still to be drawn.
#[test]
fn what_was_drawn_stays_until_it_is_taken() {
    let job = jobs(2);
    let both: JobSet = job.iter().copied().collect();
    let mut cache = Cache::new(3, RefCnt::default());
    cache.request(1, both, 0);
    cache.request(2, JobSet::default(), 1);
    cache.request(3, JobSet::default(), 0);
    assert_eq!(cache.take(job[0], 1), Taken::Cached);
    cache.request(4, JobSet::default(), 1);
    assert!(!cache.contains(3));
    cache.request(5, JobSet::default(), 2);
    assert!(cache.contains(1) && !cache.contains(2), "job 1 has not taken its element yet");
    assert_eq!(cache.take(job[1], 1), Taken::Cached);
    cache.request(6, JobSet::default(), 2);
    assert!(!cache.contains(1));
    assert_eq!(cache.hits_and_misses(), (0, 6));
}

#[test]
fn a_job_that_stalls_loses_its_claims_and_reads_again() {
    let job = jobs(2);
    let of = |n: usize| JobSet::from_iter([job[n]]);
    let mut cache = Cache::new(3, RefCnt::default());
    // job 0 takes nothing, and has all of the cache; job 1 goes on
    (0..3).for_each(|element| {
        cache.request(element, of(0), 0);
    });
    for element in 10..20 {
        assert!(!cache.request(element, of(1), 0));
        assert_eq!(cache.take(job[1], element), Taken::Cached, "nobody waits for job 0");
    }
    // what is left of its elements is found, although it has no claim any more
    let kept: Vec<u32> = (0..3).filter(|&element| cache.contains(element)).collect();
    assert_eq!(kept, [1, 2], "what was read for the stalled job is still to come, unlike what job 1 has taken");
    assert_eq!(cache.take(job[0], 0), Taken::Again);
    assert_eq!(cache.take(job[0], 1), Taken::Cached);
    let (hits, misses) = cache.hits_and_misses();
    assert_eq!((hits, misses), (1, 14));
}

#[test]
fn a_job_that_leaves_keeps_nothing() {
    let job = jobs(1);
    let mut cache = Cache::new(2, RefCnt::default());
    cache.request(1, JobSet::from_iter([job[0]]), 0);
    cache.request(2, JobSet::from_iter([job[0]]), 3);
    cache.leave(job[0]);
    cache.expect(2, 0);
    cache.expect(1, 1);
    cache.request(3, JobSet::default(), 0);
    assert!(cache.contains(1) && !cache.contains(2));
}
