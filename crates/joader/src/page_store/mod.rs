//! Decoded pages that several jobs share: which of them are where in a piece of memory, and who may use them.
//!
//! The store keeps the books; the words of the pages lie in an *arena* beside it, which it never touches. Whoever calls
//! holds a lock for the time of each call, and copies words in and out without it: what is pinned stays where it is.
//!
//! It guarantees:
//!
//! - An entry is taken only if one of its *holders*, who have made or verified it, is still there after the taker has
//!   looked whether the page is what it was ([`PageStore::confirm`]). Why that is needed, and why it will do, is said
//!   where the pages come from. Who has the number of a job that has left holds nothing of it.
//! - What is pinned is not freed. What is claimed is freed only for lack of memory, and then the job that claims the
//!   most loses its claims, as in [`Cache`](crate::Cache): a job that stalls stops nobody.
//! - A job that leaves takes its pins, claims and holds with it, and what it was making. Nothing is left of it.
//!
//! It prevents that a page which is dear to decode is decoded once per job. Several jobs may come to a page at one
//! time: the first makes it, the others are told so and see to something else ([`Request::Making`]).

mod arena;
mod entries;
#[cfg(test)]
mod tests;

use crate::jobs::{Job, JobSet, MAX_JOBS};
use bytemuck::{Pod, Zeroable};
use entries::{DOOMED, Entry, MADE, MAKING, NONE};
use std::ops::Range;

/// What jobs must have in common to use each other's pages: a digest of all that decoded words depend on but the row.
pub type Digest = [u64; 2];

/// What the caller knows a job by, to find out whether it keeps up what it vouches with.
pub type Witness = [u64; 2];

/// Words of the arena per entry that there may be: pages with less are not dear.
const WORDS_PER_ENTRY: u64 = 1024;

const ENTRIES: Range<u64> = 64..1 << 16;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Header {
    /// words of the arena
    arena: u64,
    counters: Counters,
    entries: u32,
    buckets: u32,
    /// the entry behind which room is looked for next
    hand: u32,
    /// entries that were never used begin here, and those that are free again with this one
    fresh: u32,
    free: u32,
    /// entries that have a place in the arena
    placed: u32,
}

/// What was done so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Counters {
    /// Pages that were put into the store.
    pub made: u64,
    /// Pages that were taken out of it, and their words.
    pub taken: u64,
    /// See `taken`.
    pub words_taken: u64,
    /// Pages that went because there was no room for another.
    pub evicted: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Member {
    digest: Digest,
    witness: Witness,
    present: u64,
}

/// The books, for as long as the lock is held.
pub struct PageStore<'a> {
    header: &'a mut Header,
    members: &'a mut [Member],
    buckets: &'a mut [u32],
    entries: &'a mut [Entry],
}

/// What a job is told of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// It is there, and pinned now: check it, then [`confirm`](PageStore::confirm), copy, [`unpin`](PageStore::unpin).
    Made(Pin),
    /// Another job is making it.
    Making,
    /// It is this job's to make: [`allocate`](PageStore::allocate), copy, then [`publish`](PageStore::publish); or
    /// [`abandon`](PageStore::abandon).
    Make(Ticket),
    /// It is not there, and not to be made.
    Absent,
}

/// A page that a job uses.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Pin {
    job: Job,
    entry: u32,
    /// Where its words are in the arena.
    pub words: Range<u64>,
}

/// A page that a job makes.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Ticket {
    job: Job,
    entry: u32,
}

impl<'a> PageStore<'a> {
    fn counts(arena: u64) -> (usize, usize) {
        // and entry 0, which stands for none
        let entries = (arena / WORDS_PER_ENTRY).clamp(ENTRIES.start, ENTRIES.end - 2) as usize + 1;
        (entries, entries.next_power_of_two())
    }

    /// Words of 8 bytes that the books take for an arena of so many words of 4.
    pub fn index_words(arena: u64) -> usize {
        let (entries, buckets) = Self::counts(arena);
        let bytes = size_of::<Header>()
            + MAX_JOBS * size_of::<Member>()
            + buckets * size_of::<u32>()
            + entries * size_of::<Entry>();
        bytes.div_ceil(size_of::<u64>())
    }

    /// Begins the books of an empty arena.
    ///
    /// # Panics
    /// If there are less than [`index_words`](Self::index_words).
    pub fn create(index: &'a mut [u64], arena: u64) -> Self {
        let (entries, buckets) = Self::counts(arena);
        index.fill(0);
        let header: &mut Header = bytemuck::from_bytes_mut(&mut bytemuck::cast_slice_mut(index)[..size_of::<Header>()]);
        *header = Header { arena, entries: entries as u32, buckets: buckets as u32, fresh: 1, ..Header::zeroed() };
        Self::open(index)
    }

    /// The books that [`create`](Self::create) has begun.
    ///
    /// # Panics
    /// If they were not begun here.
    pub fn open(index: &'a mut [u64]) -> Self {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(index);
        let (header, bytes) = bytes.split_at_mut(size_of::<Header>());
        let header: &mut Header = bytemuck::from_bytes_mut(header);
        let (members, bytes) = bytes.split_at_mut(MAX_JOBS * size_of::<Member>());
        let (buckets, bytes) = bytes.split_at_mut(header.buckets as usize * size_of::<u32>());
        let entries = &mut bytes[..header.entries as usize * size_of::<Entry>()];
        PageStore {
            header,
            members: bytemuck::cast_slice_mut(members),
            buckets: bytemuck::cast_slice_mut(buckets),
            entries: bytemuck::cast_slice_mut(entries),
        }
    }

    /// A job comes, whose number is nobody else's.
    pub fn join(&mut self, job: Job, digest: Digest, witness: Witness) {
        self.leave(job);
        self.members[job.number()] = Member { digest, witness, present: 1 };
    }

    /// From now on the job decodes what this is the digest of. It holds what it has verified as before.
    pub fn set_digest(&mut self, job: Job, digest: Digest) {
        self.members[job.number()].digest = digest;
    }

    /// A job goes, with its pins, claims and holds. It must not copy any more.
    pub fn leave(&mut self, job: Job) {
        if std::mem::take(&mut self.members[job.number()].present) == 0 {
            return;
        }
        for i in 1..self.header.fresh {
            let entry = &mut self.entries[i as usize];
            let was_pinned = entry.is_pinned_by(job);
            entry.forget(job);
            match entry.state {
                MAKING if was_pinned => self.doom(i),
                // nobody is left who could vouch for it
                MADE if entry.holders == 0 => self.doom(i),
                _ => {}
            }
            self.free_if_doomed(i);
        }
    }

    /// Whichever jobs have such a witness go: a number may be another job's by the time that its owner says goodbye.
    pub fn leave_by(&mut self, is_one: impl Fn(Witness) -> bool) {
        for job in
            self.members().iter().filter(|job| is_one(self.members[job.number()].witness)).collect::<JobSet>().iter()
        {
            self.leave(job);
        }
    }

    /// The jobs that are there.
    pub fn members(&self) -> JobSet {
        self.jobs(|member| member.present != 0)
    }

    /// The other jobs that decode the same.
    pub fn peers(&self, job: Job) -> JobSet {
        let digest = self.members[job.number()].digest;
        let mut peers = self.jobs(|member| member.present != 0 && member.digest == digest);
        peers.remove(job);
        peers
    }

    fn jobs(&self, is_one: impl Fn(&Member) -> bool) -> JobSet {
        JobSet::ALL.iter().filter(|job| is_one(&self.members[job.number()])).collect()
    }

    /// A job comes to a page. If nobody has made it, and another job decodes the same, it may make it, if it wants to.
    pub fn request(&mut self, job: Job, page: u32, may_make: bool) -> Request {
        let digest = self.members[job.number()].digest;
        match self.find(digest, page) {
            Some(i) if self.entries[i as usize].state == MADE => {
                let entry = &mut self.entries[i as usize];
                entry.pin(job);
                Request::Made(Pin { job, entry: i, words: entry.words() })
            }
            Some(_) => Request::Making,
            None if !may_make || self.peers(job).is_empty() => Request::Absent,
            None => match self.add(digest, page) {
                Some(entry) => {
                    self.entries[entry as usize].pin(job);
                    Request::Make(Ticket { job, entry })
                }
                None => Request::Absent,
            },
        }
    }

    /// A job comes to one of several pages, whichever suits it best: the first that is there; else the first that it
    /// may make; else, if another makes each of them, none. Says which it is. `wanted` gives the jobs that come to a
    /// page.
    pub fn choose(&mut self, job: Job, pages: &[u32], wanted: impl Fn(u32) -> JobSet) -> (usize, Request) {
        let (digest, peers) = (self.members[job.number()].digest, self.peers(job));
        if peers.is_empty() {
            return (0, Request::Absent);
        }
        let mut absent = None;
        for (i, page) in pages.iter().enumerate() {
            match self.find(digest, *page) {
                Some(entry) if self.entries[entry as usize].state == MADE => {
                    return (i, self.request(job, *page, false));
                }
                Some(_) => {}
                None => absent = absent.or(Some(i)),
            }
        }
        match absent {
            Some(i) => {
                let is_wanted = wanted(pages[i]).bits() & peers.bits() != 0;
                (i, self.request(job, pages[i], is_wanted))
            }
            None => (0, Request::Making),
        }
    }

    /// The job has seen, since it has pinned the page, that the page is as it was; `is_alive` says whether a job keeps
    /// up what it vouches with. True if the words may be used, and then the job vouches, too. If not, nobody will find
    /// them any more.
    pub fn confirm(&mut self, pin: &Pin, is_alive: impl Fn(Witness) -> bool) -> bool {
        let holders = JobSet::from_bits(self.entries[pin.entry as usize].holders);
        if !holders.iter().any(|job| is_alive(self.members[job.number()].witness)) {
            self.doom(pin.entry);
            return false;
        }
        self.entries[pin.entry as usize].hold(pin.job);
        self.header.counters.taken += 1;
        self.header.counters.words_taken += pin.words.end - pin.words.start;
        true
    }

    /// The page is not as it was: nobody will find these words any more.
    pub fn reject(&mut self, pin: &Pin) {
        self.doom(pin.entry);
    }

    /// The job does not use the page any more.
    pub fn unpin(&mut self, pin: Pin) {
        self.entries[pin.entry as usize].unpin(pin.job);
        self.free_if_doomed(pin.entry);
    }

    /// Room for the words of a page that is being made; None if there is none.
    pub fn allocate(&mut self, ticket: &Ticket, words: u64) -> Option<Range<u64>> {
        let before = self.make_room(words)?;
        self.place(ticket.entry, before, words);
        Some(self.entries[ticket.entry as usize].words())
    }

    /// The words of a page are where they are to be, and the page was as it is after they were read. `needing` are the
    /// jobs that will come to it: it is kept for those of them that decode the same.
    pub fn publish(&mut self, ticket: Ticket, needing: JobSet) {
        let claims = needing.bits() & self.peers(ticket.job).bits();
        let entry = &mut self.entries[ticket.entry as usize];
        entry.unpin(ticket.job);
        (entry.state, entry.claims) = (MADE, claims);
        entry.holders = 0;
        entry.hold(ticket.job);
        self.header.counters.made += 1;
    }

    /// The page is not made after all.
    pub fn abandon(&mut self, ticket: Ticket) {
        self.entries[ticket.entry as usize].unpin(ticket.job);
        self.doom(ticket.entry);
        self.free_if_doomed(ticket.entry);
    }

    /// What was done so far, by all jobs.
    pub fn counters(&self) -> Counters {
        self.header.counters
    }

    /// Nobody finds an entry from now on; it goes with its last pin.
    fn doom(&mut self, i: u32) {
        if matches!(self.entries[i as usize].state, MADE | MAKING) {
            self.unchain(i);
            let entry = &mut self.entries[i as usize];
            (entry.state, entry.holders, entry.claims) = (DOOMED, 0, 0);
        }
    }

    fn free_if_doomed(&mut self, i: u32) {
        if self.entries[i as usize].state == DOOMED && !self.entries[i as usize].is_pinned() {
            self.unplace(i);
            self.free(i);
        }
    }

    /// An entry goes, which nobody has pinned.
    fn remove(&mut self, i: u32) {
        debug_assert!(i != NONE && !self.entries[i as usize].is_pinned());
        self.doom(i);
        self.free_if_doomed(i);
    }
}
