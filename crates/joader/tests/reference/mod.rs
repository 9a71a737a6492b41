//! The paper's Algorithms 1 and 2, written down as they stand there (with the two misprints mended), and its sampling tree.
//!
//! Nothing of the crate is used: sets are lists of vertices, and |I| and |S| are counted.

use std::collections::BTreeMap;

/// Random numbers for the tree alone (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

/// The tree: a vertex for each set of jobs, with the elements that exactly these jobs still need.
pub struct Tree {
    pub vertices: BTreeMap<u64, Vec<u32>>,
    random: Random,
}

impl Tree {
    pub fn new(sets: &[Vec<u32>], seed: u64) -> Self {
        let mut needed: BTreeMap<u32, u64> = BTreeMap::new();
        for (job, set) in sets.iter().enumerate() {
            for &element in set {
                *needed.entry(element).or_default() |= 1 << job;
            }
        }
        let mut tree = Self { vertices: BTreeMap::new(), random: Random(seed) };
        for (element, jobs) in needed {
            tree.vertices.entry(jobs).or_default().push(element);
        }
        tree
    }

    pub fn size(&self, job: usize) -> usize {
        self.count(|jobs| jobs >> job & 1 == 1)
    }

    fn count(&self, of: impl Fn(u64) -> bool) -> usize {
        self.vertices.iter().filter(|&(&jobs, _)| of(jobs)).map(|(_, elements)| elements.len()).sum()
    }

    fn sample(&mut self, of: impl Fn(u64) -> bool) -> u32 {
        let n = self.count(&of);
        let mut rank = self.random.below(n);
        for (_, elements) in self.vertices.iter().filter(|&(&jobs, _)| of(jobs)) {
            if rank < elements.len() {
                return elements[rank];
            }
            rank -= elements.len();
        }
        unreachable!()
    }

    /// Algorithms 1 and 2 for these jobs, and the removal of what they have drawn, with compensation.
    pub fn round(&mut self, jobs: &[usize]) -> Vec<(usize, u32)> {
        let sizes: BTreeMap<usize, usize> = jobs.iter().map(|&job| (job, self.size(job))).collect();
        let mut jobs: Vec<usize> = jobs.iter().copied().filter(|job| sizes[job] > 0).collect();
        jobs.sort_by_key(|job| (sizes[job], *job));
        let (mut draws, mut excluded) = (Vec::new(), None);
        while !jobs.is_empty() {
            let all: u64 = jobs.iter().map(|job| 1 << job).sum();
            let in_s = move |of: u64| excluded.is_some_and(|earlier| of & earlier == earlier);
            let in_i = move |of: u64| of & all == all && !in_s(of);
            let s = self.count(in_s);
            let mut c = self.count(in_i);
            let mut chosen = 0;
            for job in &jobs {
                if self.random.unit() * (sizes[job] - s) as f64 >= c as f64 {
                    break;
                }
                chosen += 1;
                c = sizes[job] - s;
            }
            if chosen == 0 {
                let first = jobs.remove(0);
                draws.push((first, self.sample(|of| of >> first & 1 == 1 && !in_s(of) && !in_i(of))));
            } else {
                let element = self.sample(in_i);
                draws.extend(jobs.drain(..chosen).map(|job| (job, element)));
            }
            excluded = Some(all);
        }
        for &(job, element) in &draws {
            self.remove(job, element);
        }
        draws
    }

    /// The element goes to the vertex of those that still need it.
    fn remove(&mut self, job: usize, element: u32) {
        let found = self.vertices.iter().find(|(jobs, elements)| *jobs >> job & 1 == 1 && elements.contains(&element));
        let jobs = *found.expect("the element is needed").0;
        let vertex = self.vertices.get_mut(&jobs).unwrap();
        vertex.retain(|&other| other != element);
        if vertex.is_empty() {
            self.vertices.remove(&jobs);
        }
        if jobs != 1 << job {
            self.vertices.entry(jobs & !(1 << job)).or_default().push(element);
        }
    }
}

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
    // nobody takes I
    for &element in &others {
        drawn[first] = element;
        turn(sets, &jobs[1..], &next_s, drawn, probability / rest(first), outcomes);
    }
    // the first so many take it, and then one does not
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

/// How improbable it is that counts differ that much from what is expected, in standard deviations: the statistic's
/// cube root is nearly normal (Wilson and Hilferty).
pub fn deviation(counts: &[(f64, f64)]) -> f64 {
    let statistic: f64 = counts.iter().map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    let freedom = (counts.len() - 1).max(1) as f64;
    ((statistic / freedom).cbrt() - (1.0 - 2.0 / (9.0 * freedom))) / (2.0 / (9.0 * freedom)).sqrt()
}
