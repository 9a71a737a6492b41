//! What Algorithm 1 of the paper, its two misprints mended, may come to, and how probably. Nothing of the crate is
//! used.

use std::collections::BTreeMap;

/// The exact distribution of one round: what each of these sets' jobs draws, and how probable that is.
pub fn distribution(sets: &[Vec<u32>]) -> BTreeMap<Vec<u32>, f64> {
    let mut jobs: Vec<usize> = (0..sets.len()).collect();
    jobs.sort_by_key(|&job| (sets[job].len(), job));
    let mut outcomes = BTreeMap::new();
    turn(sets, &jobs, &[], &mut vec![0; sets.len()], 1.0, &mut outcomes);
    outcomes
}

/// One turn of Algorithm 1's loop, with all that may come of it.
fn turn(
    sets: &[Vec<u32>],
    jobs: &[usize],
    s: &[u32],
    drawn: &mut Vec<u32>,
    probability: f64,
    outcomes: &mut BTreeMap<Vec<u32>, f64>,
) {
    let Some(&first) = jobs.first() else {
        *outcomes.entry(drawn.clone()).or_default() += probability;
        return;
    };
    let needed_by_all = |element: &u32| jobs.iter().all(|&job| sets[job].contains(element));
    let (i, others): (Vec<u32>, Vec<u32>) =
        sets[first].iter().filter(|element| !s.contains(element)).partition(|element| needed_by_all(element));
    let next_s = [s, &i].concat();
    let rest = |job: usize| (sets[job].len() - s.len()) as f64;
    // no one takes I
    for &element in &others {
        drawn[first] = element;
        turn(sets, &jobs[1..], &next_s, drawn, probability / rest(first), outcomes);
    }
    // the first this many take it, and then one does not
    for chosen in 1..=jobs.len() {
        let all_did = i.len() as f64 / rest(jobs[chosen - 1]);
        let refuses = jobs.get(chosen).map_or(1.0, |&job| 1.0 - rest(jobs[chosen - 1]) / rest(job));
        for &element in i.iter().filter(|_| refuses > 0.0) {
            jobs[..chosen].iter().for_each(|&job| drawn[job] = element);
            let branch = probability * all_did / i.len() as f64 * refuses;
            turn(sets, &jobs[chosen..], &next_s, drawn, branch, outcomes);
        }
    }
}
