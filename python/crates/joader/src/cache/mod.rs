//! What is kept of the elements that were read.
//!
//! It guarantees that an element which a job has drawn stays until that job has taken it, so that a slower job finds
//! what was read when the others drew; and that a job which stalls stops no one: if everything is kept for somebody,
//! who holds the most loses its claims, and reads again what it comes for. What goes of the rest is up to a [`Policy`].

mod policies;

use std::ops::AddAssign;

use hashbrown::HashMap;

use shuffle::{Job, JobSet, MAX_JOBS};

pub use policies::{Fifo, Lru, MinIo, Optimum, RefCnt, Replacement};

/// What a policy may know of a cached element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// How many jobs have still to draw it in their epochs, or have lost their claim.
    pub to_come: usize,
    /// When it was read, and when it was last asked for: requests are counted from 0.
    pub read_at: u64,
    /// See `read_at`.
    pub used_at: u64,
}

/// What a policy says when the cache is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// This one goes, and is out of the policy's books.
    Cached(u32),
    /// The new one is not kept.
    New,
    /// Nothing may go: all that is cached is claimed.
    None,
}

/// Which cached element makes room for a new one. It hears of those only that may go.
pub trait Policy {
    /// The element may go from now on.
    fn insert(&mut self, element: u32, usage: Use);

    /// The element may not go any more.
    fn remove(&mut self, element: u32);

    /// Who makes room for a new element of this use.
    fn victim(&mut self, new: Use) -> Victim;
}

/// How a job has got an element that it had drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// From the cache.
    Cached,
    /// By reading it again, because it was not kept or the job had lost its claim.
    Again,
}

struct Entry {
    usage: Use,
    /// Who has drawn it and not taken it yet.
    claims: JobSet,
}

/// A cache of this many elements. It counts how often what was asked for was there; what an element consists of is for
/// others to keep.
pub struct Cache<P> {
    capacity: usize,
    policy: P,
    entries: HashMap<u32, Entry>,
    hits: u64,
    misses: u64,
}

impl<P: Policy> Cache<P> {
    /// An empty cache.
    pub fn new(capacity: usize, policy: P) -> Self {
        Self { capacity, policy, entries: HashMap::new(), hits: 0, misses: 0 }
    }

    /// How many requests found their element, and how many had to read it. To take what was claimed is not a request.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// Whether an element is cached.
    pub fn contains(&self, element: u32) -> bool {
        self.entries.contains_key(&element)
    }

    /// An element has been drawn by some jobs in a round; `to_come` others have still to draw it in their epochs.
    /// `claims` are those of the jobs that will [`take`](Self::take) it later. It returns whether it was cached; if
    /// not, it is to be read now.
    pub fn request(&mut self, element: u32, claims: JobSet, to_come: usize) -> bool {
        let now = self.hits + self.misses;
        if let Some(entry) = self.entries.get_mut(&element) {
            if entry.claims.is_empty() {
                self.policy.remove(element);
            }
            entry.usage = Use { to_come, used_at: now, ..entry.usage };
            entry.claims = JobSet::from_bits(entry.claims.bits() | claims.bits());
            if entry.claims.is_empty() {
                self.policy.insert(element, entry.usage);
            }
            self.hits += 1;
            return true;
        }
        self.misses += 1;
        let usage = Use { to_come, read_at: now, used_at: now };
        if self.make_room(usage) {
            if claims.is_empty() {
                self.policy.insert(element, usage);
            }
            self.entries.insert(element, Entry { usage, claims });
        }
        false
    }

    /// A job takes an element that it has drawn, and whose reading it may have missed.
    pub fn take(&mut self, job: Job, element: u32) -> Taken {
        let claimed = self.entries.get(&element).filter(|entry| entry.claims.contains(job));
        if let Some(to_come) = claimed.map(|entry| entry.usage.to_come) {
            self.release(element, job, to_come);
            return Taken::Cached;
        }
        // it was among those to come since it had lost its claim
        let to_come = self.entries.get(&element).map_or(0, |entry| entry.usage.to_come.saturating_sub(1));
        if self.request(element, JobSet::default(), to_come) { Taken::Cached } else { Taken::Again }
    }

    /// Another number of jobs have still to draw an element, because one has left or has begun an epoch.
    pub fn expect(&mut self, element: u32, to_come: usize) {
        if let Some(entry) = self.entries.get_mut(&element) {
            entry.usage.to_come = to_come;
            if entry.claims.is_empty() {
                self.policy.remove(element);
                self.policy.insert(element, entry.usage);
            }
        }
    }

    /// A job has left: nothing is kept for it.
    pub fn leave(&mut self, job: Job) {
        for element in self.claimed_by(job) {
            let to_come = self.entries[&element].usage.to_come;
            self.release(element, job, to_come);
        }
    }

    /// Whether there is room for one element more, after something may have gone.
    fn make_room(&mut self, new: Use) -> bool {
        while self.entries.len() >= self.capacity {
            match self.policy.victim(new) {
                Victim::Cached(element) => {
                    self.entries.remove(&element);
                }
                Victim::New => return false,
                Victim::None => match self.stalled() {
                    Some(job) => self.drop_claims(job),
                    None => return false,
                },
            }
        }
        true
    }

    /// The job with the most claims; of several the first.
    fn stalled(&self) -> Option<Job> {
        let mut counts = [0_usize; MAX_JOBS];
        for job in self.entries.values().flat_map(|entry| entry.claims.iter()) {
            counts[job.number()].add_assign(1);
        }
        let claiming = JobSet::ALL.iter().filter(|job| counts[job.number()] > 0);
        claiming.min_by_key(|job| std::cmp::Reverse(counts[job.number()]))
    }

    /// A job has to come again for all that is kept for it.
    fn drop_claims(&mut self, job: Job) {
        for element in self.claimed_by(job) {
            let to_come = self.entries[&element].usage.to_come + 1;
            self.release(element, job, to_come);
        }
    }

    /// Sorted, so that nothing depends on the order of the table.
    fn claimed_by(&self, job: Job) -> Vec<u32> {
        let claimed = self.entries.iter().filter(|(_, entry)| entry.claims.contains(job));
        let mut elements: Vec<u32> = claimed.map(|(&element, _)| element).collect();
        elements.sort_unstable();
        elements
    }

    /// An element is no longer claimed by a job.
    fn release(&mut self, element: u32, job: Job, to_come: usize) {
        if let Some(entry) = self.entries.get_mut(&element) {
            entry.usage.to_come = to_come;
            entry.claims.remove(job);
            if entry.claims.is_empty() {
                self.policy.insert(element, entry.usage);
            }
        }
    }
}

#[cfg(test)]
mod tests;
