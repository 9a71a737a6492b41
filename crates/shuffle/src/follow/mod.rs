//! Following: a job draws what another has drawn last, if it still needs it.
//!
//! It is made for blocks of a table that several processes read, and so for what can be had there: all that jobs know
//! of each other lies in atomics ([`Board`]), no one waits for anybody, and no one draws for others. A job
//! ([`Follower`]) that wants its next element takes
//!
//! 1. the one that was drawn last of all it still needs, among the few that were drawn last: it is still cached;
//! 2. else, of those that come next in an order of its own, one that most jobs need that have nothing to follow at the
//!    moment, and of these one that the fewest others need: what can be shared later is kept for then.
//!
//! So jobs of one speed meet whenever they have begun, as on JOADER's walk; and a fast one draws for a slow
//! one what that still needs, as often as the slow one comes by, as in dependent sampling.
//!
//! What it has drawn in an epoch itself, a job does not follow in the next. So alone it draws in its own order, as if
//! it had not been asked to share.
//!
//! What it gives up is a property of dependent sampling: that a job's order is uniform whatever elements it wants. Here
//! elements that many want come sooner. Where each job wants all elements, or a part of them that was drawn at random,
//! the numbers of elements are mere names: exchange them everywhere, and every course of events is as likely as before.
//! Then each order of a job's elements is equally likely. A table's blocks are such elements, as long as the moments at
//! which jobs draw do not depend on what is in a block; those of dependent sampling must not, either. As on a walk, the
//! orders of several jobs hang together, and so do those of a job's epochs, by way of the others.

mod follower;
mod jobs;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use follower::Follower;
pub use jobs::{Job, JobSet, MAX_JOBS};

/// What jobs know of each other. Several processes may have it in shared memory, where zeros are a valid beginning; the
/// order of memory does not matter, since nothing else depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Board<'a> {
    /// Of each element, the jobs that still need it in their epochs. Only the job itself changes its bit, or who knows
    /// that it is gone.
    pub needs: &'a [AtomicU64],
    /// The elements that were drawn last, as a ring, each one more than its number.
    pub recent: &'a [AtomicU64],
    /// How many were ever put into the ring.
    pub drawn: &'a AtomicU64,
    /// The jobs that are there.
    pub members: &'a AtomicU64,
}

/// What a follower has drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The element.
    pub element: u32,
    /// Whether another had drawn it shortly before.
    pub followed: bool,
}

impl Board<'_> {
    /// The job is there no more, and needs nothing. Anyone who sees that a process has died says this for it.
    pub fn leave(&self, job: Job) {
        self.members.fetch_and(!bit(job), Relaxed);
        self.forget(job);
    }

    /// The job needs nothing.
    fn forget(&self, job: Job) {
        for needs in self.needs {
            if needs.load(Relaxed) & bit(job) != 0 {
                needs.fetch_and(!bit(job), Relaxed);
            }
        }
    }

    fn needs(&self, element: u32) -> u64 {
        self.needs.get(element as usize).map_or(0, |needs| needs.load(Relaxed))
    }

    /// The elements that were drawn last, the last one first, each with the number of its draw.
    fn recent(&self) -> impl Iterator<Item = (u64, u32)> {
        let (drawn, len) = (self.drawn.load(Relaxed), self.recent.len() as u64);
        (1..=drawn.min(len)).filter_map(move |back| {
            let place = (drawn - back) % len;
            // another process may have counted its draw, and not have written it
            let element = self.recent[place as usize].load(Relaxed).checked_sub(1)?;
            Some((drawn - back, element as u32))
        })
    }

    /// Puts an element into the ring, and gives the number of its draw.
    fn push(&self, element: u32) -> u64 {
        let drawn = self.drawn.fetch_add(1, Relaxed);
        if !self.recent.is_empty() {
            let place = drawn % self.recent.len() as u64;
            self.recent[place as usize].store(u64::from(element) + 1, Relaxed);
        }
        drawn
    }

    /// The first of the draws that are in the ring.
    fn oldest(&self) -> u64 {
        self.drawn.load(Relaxed).saturating_sub(self.recent.len() as u64)
    }

    /// The other jobs that have less than two elements to follow: when they come by, they need one.
    fn idle(&self, job: Job) -> u64 {
        let (mut once, mut twice) = (0, 0);
        for (_, element) in self.recent() {
            let needs = self.needs(element);
            twice |= once & needs;
            once |= needs;
        }
        self.members.load(Relaxed) & !twice & !bit(job)
    }
}

fn bit(job: Job) -> u64 {
    1 << job.number()
}
