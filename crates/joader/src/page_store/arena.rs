//! Where the words of the entries lie.
//!
//! Entries are chained by their places, in a ring with entry 0, which stands at the beginning and has no words. Room is
//! looked for behind where it was found last: so what goes is what came long ago, and its neighbours go with it, until
//! there is room in one piece.

use super::PageStore;
use super::entries::NONE;
use crate::jobs::{Job, JobSet, MAX_JOBS};

impl PageStore<'_> {
    /// The entry behind which there is room for so many words, after others may have gone.
    pub(super) fn make_room(&mut self, words: u64) -> Option<u32> {
        if words > self.header.arena {
            return None;
        }
        loop {
            if let Some(before) = self.sweep(words) {
                return Some(before);
            }
            self.drop_claims(self.stalled()?);
        }
    }

    /// Goes once round the arena, and lets go what may on the way, until there is room.
    fn sweep(&mut self, words: u64) -> Option<u32> {
        let mut place = self.header.hand;
        // once more to the place where it began
        let mut steps = self.header.placed + 1;
        loop {
            let behind = self.entries[place as usize].behind;
            if self.gap_behind(place) >= words {
                self.header.hand = place;
                return Some(place);
            }
            if behind != NONE && self.entries[behind as usize].may_go() {
                self.header.counters.evicted += 1;
                self.remove(behind);
                continue;
            }
            if steps == 0 {
                return None;
            }
            steps -= 1;
            place = behind;
        }
    }

    /// Words between an entry and the next.
    fn gap_behind(&self, i: u32) -> u64 {
        let next = match self.entries[i as usize].behind {
            NONE => self.header.arena,
            next => self.entries[next as usize].start,
        };
        next - self.entries[i as usize].words().end
    }

    /// Gives an entry its place behind another.
    pub(super) fn place(&mut self, i: u32, before: u32, words: u64) {
        let (start, behind) = (self.entries[before as usize].words().end, self.entries[before as usize].behind);
        let entry = &mut self.entries[i as usize];
        (entry.start, entry.len, entry.before, entry.behind) = (start, words, before, behind);
        self.entries[before as usize].behind = i;
        self.entries[behind as usize].before = i;
        self.header.hand = i;
        self.header.placed += 1;
    }

    /// Takes an entry's place away, if it has one.
    pub(super) fn unplace(&mut self, i: u32) {
        let (before, behind) = (self.entries[i as usize].before, self.entries[i as usize].behind);
        if self.entries[before as usize].behind != i {
            return;
        }
        self.entries[before as usize].behind = behind;
        self.entries[behind as usize].before = before;
        self.header.placed -= 1;
        if self.header.hand == i {
            self.header.hand = before;
        }
    }

    /// The job with the most claims, of several the first; None if nothing is claimed.
    fn stalled(&self) -> Option<Job> {
        let mut counts = [0_u32; MAX_JOBS];
        for entry in &self.entries[1..self.header.fresh as usize] {
            JobSet::from_bits(entry.claims).iter().for_each(|job| counts[job.number()] += 1);
        }
        let claiming = JobSet::ALL.iter().filter(|job| counts[job.number()] > 0);
        claiming.min_by_key(|job| std::cmp::Reverse(counts[job.number()]))
    }

    /// A job has to decode again all that is kept for it.
    fn drop_claims(&mut self, job: Job) {
        let mut others = JobSet::ALL;
        others.remove(job);
        self.entries[1..self.header.fresh as usize].iter_mut().for_each(|entry| entry.claims &= others.bits());
    }
}
