//! The paper's sampling tree with its Algorithms 1 and 2, as they stand there, the two misprints mended. Nothing of the
//! crate is used.

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
