//! The entries: one per page, found by digest and page.

use super::{Digest, PageStore};
use crate::jobs::Job;
use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// No entry; entry 0 is where the chains begin and end.
pub(super) const NONE: u32 = 0;

/// free, as a zeroed entry is; only tests ask for it
#[cfg(test)]
pub(super) const FREE: u32 = 0;
/// being made by the job that has it pinned
pub(super) const MAKING: u32 = 1;
pub(super) const MADE: u32 = 2;
/// found by nobody; goes with its last pin
pub(super) const DOOMED: u32 = 3;

/// A page.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct Entry {
    pub(super) digest: Digest,
    /// where its words are, and how many; 0 before there are some
    pub(super) start: u64,
    pub(super) len: u64,
    /// the jobs that use it now
    pins: u64,
    /// the jobs that have made or verified it
    pub(super) holders: u64,
    /// the jobs that will come to it
    pub(super) claims: u64,
    pub(super) page: u32,
    pub(super) state: u32,
    /// the next of those with its hash, or of those that are free
    pub(super) chain: u32,
    /// its neighbours in the arena
    pub(super) before: u32,
    pub(super) behind: u32,
    padding: u32,
}

impl Entry {
    pub(super) fn words(&self) -> Range<u64> {
        self.start..self.start + self.len
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pins != 0
    }

    pub(super) fn is_pinned_by(&self, job: Job) -> bool {
        self.pins & bit(job) != 0
    }

    pub(super) fn pin(&mut self, job: Job) {
        debug_assert!(!self.is_pinned_by(job), "a job uses a page once at a time");
        self.pins |= bit(job);
    }

    pub(super) fn unpin(&mut self, job: Job) {
        self.pins &= !bit(job);
    }

    /// The job vouches for the page, and does not come to it again in this epoch.
    pub(super) fn hold(&mut self, job: Job) {
        self.holders |= bit(job);
        self.claims &= !bit(job);
    }

    pub(super) fn forget(&mut self, job: Job) {
        self.pins &= !bit(job);
        self.holders &= !bit(job);
        self.claims &= !bit(job);
    }

    /// May it go for another to be put in its place?
    pub(super) fn may_go(&self) -> bool {
        self.state == MADE && self.claims == 0 && self.pins == 0
    }
}

fn bit(job: Job) -> u64 {
    1 << job.number()
}

impl PageStore<'_> {
    fn bucket(&self, digest: Digest, page: u32) -> usize {
        // by the golden ratio: neighbours get far from each other
        let mixed = (digest[0] ^ u64::from(page)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.buckets.len() - 1)
    }

    /// The entry of a page that is made or being made.
    pub(super) fn find(&self, digest: Digest, page: u32) -> Option<u32> {
        let mut i = self.buckets[self.bucket(digest, page)];
        while i != NONE {
            let entry = &self.entries[i as usize];
            if entry.page == page && entry.digest == digest {
                return Some(i);
            }
            i = entry.chain;
        }
        None
    }

    /// A new entry, which is being made; None if there are too many.
    pub(super) fn add(&mut self, digest: Digest, page: u32) -> Option<u32> {
        let i = match self.header.free {
            NONE if self.header.fresh == self.header.entries => {
                let old = self.any_that_may_go()?;
                self.remove(old);
                self.take_free()
            }
            NONE => {
                self.header.fresh += 1;
                self.header.fresh - 1
            }
            _ => self.take_free(),
        };
        let bucket = self.bucket(digest, page);
        let chain = std::mem::replace(&mut self.buckets[bucket], i);
        self.entries[i as usize] = Entry { digest, page, state: MAKING, chain, ..Entry::zeroed() };
        Some(i)
    }

    fn take_free(&mut self) -> u32 {
        let i = self.header.free;
        self.header.free = self.entries[i as usize].chain;
        i
    }

    /// The next in the arena, from where room is looked for, that may go.
    fn any_that_may_go(&mut self) -> Option<u32> {
        let mut i = self.header.hand;
        for _ in 0..self.header.entries {
            i = self.entries[i as usize].behind;
            if i != NONE && self.entries[i as usize].may_go() {
                self.header.counters.evicted += 1;
                return Some(i);
            }
        }
        None
    }

    /// Takes an entry out of those that are found.
    pub(super) fn unchain(&mut self, i: u32) {
        let Entry { digest, page, chain, .. } = self.entries[i as usize];
        let bucket = self.bucket(digest, page);
        if self.buckets[bucket] == i {
            self.buckets[bucket] = chain;
            return;
        }
        let mut before = self.buckets[bucket] as usize;
        while self.entries[before].chain != i {
            before = self.entries[before].chain as usize;
        }
        self.entries[before].chain = chain;
    }

    /// An entry that is neither found nor placed may be used for another page.
    pub(super) fn free(&mut self, i: u32) {
        self.entries[i as usize] = Entry { chain: self.header.free, ..Entry::zeroed() };
        self.header.free = i;
    }
}
