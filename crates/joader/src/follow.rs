//! Following: a job draws what another has drawn last, if it still needs it.
//!
//! It is made for blocks of a table that several processes read, and so for what can be had there: all that jobs know
//! of each other lies in atomics ([`Board`]), nobody waits for anybody, and nobody draws for others. A job
//! ([`Follower`]) that wants its next element takes
//!
//! 1. the one that was drawn last of all it still needs, among the few that were drawn last: it is still cached;
//! 2. else, of those that come next in an order of its own, one that most jobs need that have nothing to follow at the
//!    moment, and of these one that the fewest others need: what can be shared later is kept for then.
//!
//! So jobs of one speed meet whenever they have begun, as on a [`Walk`](crate::Walk); and a fast one draws for a slow
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

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use shuffle::{FOLLOW, below, stream};

use crate::elements::ElementSet;
use crate::error::SamplerError;
use crate::jobs::{Job, JobSet};
use crate::members::Members;
use crate::sampler::{Draw, Sampler};

/// Elements of a job's own order that are looked at when it has nothing to follow: the best of the next ones is drawn.
const CANDIDATES: usize = 64;

/// The place of an element that was drawn.
const DRAWN: u32 = u32::MAX;

/// What jobs know of each other. Several processes may have it in shared memory, where zeros are a valid beginning; the
/// order of memory does not matter, since nothing else is told by it.
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
    /// The job is there no more, and needs nothing. Whoever sees that a process has died says this for it.
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

    /// Who needs an element.
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

/// One job: what it still has to draw, with 4 bytes for each element of its own and 4 for each below the largest.
#[derive(Debug)]
pub struct Follower {
    job: Job,
    /// The elements in the job's own order, and where each stands there, by its number. Those before `first` are drawn,
    /// and some of the others.
    order: Vec<u32>,
    places: Vec<u32>,
    first: usize,
    left: usize,
    /// Draws in the ring that were this job's, or that it has followed: of this epoch, and of those before, sorted.
    own: Vec<u64>,
    before: Vec<u64>,
}

impl Follower {
    /// A job that has drawn all of its elements: it has none.
    pub fn new(job: Job) -> Self {
        Self { job, order: Vec::new(), places: Vec::new(), first: 0, left: 0, own: Vec::new(), before: Vec::new() }
    }

    /// The job joins, if it has not, and begins an epoch with these elements, each of them once, in the order in which
    /// it draws them if nobody else is there. Those that are beyond the board are drawn, too, but nobody follows.
    ///
    /// # Errors
    /// [`SamplerError::OutOfMemory`]: then nothing has changed.
    pub fn begin_epoch(
        &mut self,
        board: &Board<'_>,
        order: impl ExactSizeIterator<Item = u32> + Clone,
    ) -> Result<(), SamplerError> {
        let (count, end) = (order.len(), order.clone().max().map_or(0, |last| last as usize + 1));
        self.order.try_reserve_exact(count.saturating_sub(self.order.len()))?;
        self.places.try_reserve_exact(end.saturating_sub(self.places.len()))?;
        let ring = board.recent.len();
        for (draws, most) in [(&mut self.own, 2 * ring), (&mut self.before, 3 * ring)] {
            draws.try_reserve_exact(most.saturating_sub(draws.len()))?;
        }
        let oldest = board.oldest();
        self.before.append(&mut self.own);
        self.before.retain(|draw| *draw >= oldest);
        self.before.sort_unstable();
        self.before.dedup();
        self.before.truncate(ring); // of a ring that others have damaged not more is remembered
        self.order.clear();
        self.places.clear();
        self.places.resize(end, DRAWN);
        (self.first, self.left) = (0, count);
        board.forget(self.job);
        for element in order {
            self.places[element as usize] = self.order.len() as u32;
            self.order.push(element);
            if let Some(needs) = board.needs.get(element as usize) {
                needs.fetch_or(bit(self.job), Relaxed);
            }
        }
        board.members.fetch_or(bit(self.job), Relaxed);
        Ok(())
    }

    /// The next element; None at the end of the epoch.
    pub fn draw(&mut self, board: &Board<'_>) -> Option<Followed> {
        if self.left == 0 {
            return None;
        }
        let recent = board.recent().find(|(draw, element)| {
            // the bit says whether it is needed, but shared memory is not to be trusted with an index
            board.needs(*element) & bit(self.job) != 0
                && self.is_left(*element)
                && self.before.binary_search(draw).is_err()
        });
        let (draw, element) = match recent {
            Some(recent) => recent,
            None => {
                let element = self.choose(board)?;
                (board.push(element), element)
            }
        };
        self.take(element, board);
        self.remember(draw, board);
        Some(Followed { element, followed: recent.is_some() })
    }

    /// How many elements are left in the epoch.
    pub fn remaining(&self) -> usize {
        self.left
    }

    fn remember(&mut self, draw: u64, board: &Board<'_>) {
        let ring = board.recent.len();
        if self.own.len() == 2 * ring {
            let oldest = board.oldest();
            self.own.retain(|draw| *draw >= oldest);
            // of a ring that others have damaged nothing is remembered
            self.own.truncate((2 * ring).saturating_sub(1));
        }
        if ring > 0 {
            self.own.push(draw);
        }
    }

    fn is_left(&self, element: u32) -> bool {
        self.places.get(element as usize).is_some_and(|&place| place != DRAWN)
    }

    /// The elements that are left, in the job's own order.
    fn in_order(&self) -> impl Iterator<Item = u32> {
        self.order[self.first..].iter().copied().filter(|element| self.is_left(*element))
    }

    /// One of the elements that are left: see the module's second rule. Of those that are equally good, the first.
    fn choose(&self, board: &Board<'_>) -> Option<u32> {
        let members = board.members.load(Relaxed) & !bit(self.job);
        if members == 0 {
            return self.in_order().next();
        }
        let idle = board.idle(self.job);
        let busy = members & !idle;
        let (mut best, mut chosen) = (None, None);
        for element in self.in_order().take(CANDIDATES) {
            let needs = board.needs(element);
            let rank = Some(((needs & idle).count_ones(), u64::BITS - (needs & busy).count_ones()));
            if rank > best {
                (best, chosen) = (rank, Some(element));
            }
        }
        chosen
    }

    fn take(&mut self, element: u32, board: &Board<'_>) {
        if let Some(needs) = board.needs.get(element as usize) {
            needs.fetch_and(!bit(self.job), Relaxed);
        }
        self.places[element as usize] = DRAWN;
        self.left -= 1;
        while self.order.get(self.first).is_some_and(|element| !self.is_left(*element)) {
            self.first += 1;
        }
        if self.order.len() - self.first > 2 * self.left + CANDIDATES {
            self.close_gaps();
        }
    }

    /// Drops what was drawn from the order. What that costs was saved up by as many draws.
    fn close_gaps(&mut self) {
        let Self { order, places, .. } = self;
        order.retain(|element| places[*element as usize] != DRAWN);
        for (place, element) in order.iter().enumerate() {
            places[*element as usize] = place as u32;
        }
        self.first = 0;
    }
}

/// Followers in one process, as a [`Sampler`]. In a round, jobs draw by their numbers.
pub struct Follow {
    seed: i64,
    needs: Vec<AtomicU64>,
    recent: Vec<AtomicU64>,
    drawn: AtomicU64,
    present: AtomicU64,
    /// Elements that were ever wanted, and their numbers on the board.
    elements: Vec<u32>,
    numbers: HashMap<u32, u32>,
    members: Members<Member>,
}

struct Member {
    /// By their numbers on the board, in the order of the epoch.
    elements: Vec<u32>,
    epoch: u64,
    follower: Option<Follower>,
}

impl Follow {
    /// A sampler without jobs. Jobs follow to the last `window` elements that were drawn: as many as stay cached.
    ///
    /// # Errors
    /// [`SamplerError::OutOfMemory`]
    pub fn new(seed: i64, window: usize) -> Result<Self, SamplerError> {
        let mut recent = Vec::new();
        recent.try_reserve_exact(window)?;
        recent.resize_with(window, AtomicU64::default);
        Ok(Self {
            seed,
            needs: Vec::new(),
            recent,
            drawn: AtomicU64::new(0),
            present: AtomicU64::new(0),
            elements: Vec::new(),
            numbers: HashMap::new(),
            members: Members::default(),
        })
    }

    /// The numbers of these elements, which have new ones if they were never wanted before.
    fn number(&mut self, elements: &ElementSet) -> Result<Vec<u32>, SamplerError> {
        let mut numbered = Vec::new();
        numbered.try_reserve_exact(elements.len())?;
        let new = elements.iter().filter(|element| !self.numbers.contains_key(element)).count();
        self.numbers.try_reserve(new).map_err(|_| SamplerError::OutOfMemory)?;
        self.elements.try_reserve(new)?;
        self.needs.try_reserve(new)?;
        for element in elements.iter() {
            let next = self.elements.len() as u32;
            let number = *self.numbers.entry(element).or_insert(next);
            if number == next {
                self.elements.push(element);
                self.needs.push(AtomicU64::new(0));
            }
            numbered.push(number);
        }
        Ok(numbered)
    }

    /// The job's member, and the board.
    fn parts(&mut self, job: Job) -> Option<(&mut Member, Board<'_>)> {
        let Self { needs, recent, drawn, present, members, .. } = self;
        Some((members.get_mut(job)?, Board { needs, recent, drawn, members: present }))
    }
}

impl Sampler for Follow {
    fn join(&mut self, elements: ElementSet) -> Result<Job, SamplerError> {
        let elements = self.number(&elements)?;
        let job = self.members.insert(Member { elements, epoch: 0, follower: None })?;
        self.begin_epoch(job).inspect_err(|_| drop(self.members.remove(job)))?;
        Ok(job)
    }

    fn leave(&mut self, job: Job) {
        if let Some((_, board)) = self.parts(job) {
            board.leave(job);
            self.members.remove(job);
        }
    }

    fn begin_epoch(&mut self, job: Job) -> Result<(), SamplerError> {
        let seed = self.seed;
        let (member, board) = self.parts(job).ok_or(SamplerError::UnknownJob(job))?;
        member.epoch += 1;
        let mut rng = stream(FOLLOW, seed, member.epoch, job.number() as u64);
        for place in (1..member.elements.len()).rev() {
            member.elements.swap(place, below(&mut rng, place + 1));
        }
        let follower = member.follower.get_or_insert_with(|| Follower::new(job));
        follower.begin_epoch(&board, member.elements.iter().copied())
    }

    fn remaining(&self, job: Job) -> usize {
        self.members.get(job).and_then(|member| member.follower.as_ref()).map_or(0, Follower::remaining)
    }

    fn round(&mut self, jobs: JobSet, draws: &mut Vec<Draw>) {
        draws.clear();
        for job in jobs.iter() {
            let drawn = self.parts(job).and_then(|(member, board)| member.follower.as_mut()?.draw(&board));
            if let Some(Followed { element, .. }) = drawn {
                draws.push(Draw { job, element: self.elements[element as usize] });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[derive(Default)]
    struct Memory {
        needs: Vec<AtomicU64>,
        recent: Vec<AtomicU64>,
        drawn: AtomicU64,
        members: AtomicU64,
    }

    impl Memory {
        fn new(elements: usize, window: usize) -> Self {
            let zeros = |n| (0..n).map(|_| AtomicU64::new(0)).collect();
            Self { needs: zeros(elements), recent: zeros(window), ..Self::default() }
        }

        fn board(&self) -> Board<'_> {
            Board { needs: &self.needs, recent: &self.recent, drawn: &self.drawn, members: &self.members }
        }
    }

    fn begun(number: usize, board: &Board<'_>, elements: impl ExactSizeIterator<Item = u32> + Clone) -> Follower {
        let mut follower = Follower::new(Job::of_number(number));
        follower.begin_epoch(board, elements).unwrap();
        follower
    }

    #[test]
    fn jobs_in_several_threads_draw_each_of_their_elements_once() {
        let memory = Memory::new(900, 16);
        let epochs_of = |number: usize| {
            let (board, mut follower) = (memory.board(), Follower::new(Job::of_number(number)));
            for _ in 0..20 {
                // a part of them is beyond the board
                let wanted = number as u32 * 50..1000 - number as u32;
                follower.begin_epoch(&board, wanted.clone()).unwrap();
                let drawn: Vec<u32> = std::iter::from_fn(|| follower.draw(&board)).map(|draw| draw.element).collect();
                assert_eq!(drawn.len(), wanted.len());
                assert_eq!(drawn.into_iter().collect::<BTreeSet<_>>(), wanted.collect());
            }
            board.leave(Job::of_number(number));
        };
        std::thread::scope(|scope| {
            (0..8).for_each(|number| drop(scope.spawn(move || epochs_of(number))));
        });
        assert_eq!(memory.members.load(Relaxed), 0);
        assert!(memory.needs.iter().all(|needs| needs.load(Relaxed) == 0));
    }

    #[test]
    fn a_job_follows_the_last_one_that_it_needs() {
        let memory = Memory::new(10, 3);
        let board = memory.board();
        let (mut first, mut second) = (begun(0, &board, 0..10), begun(1, &board, 0..10));
        let drawn: Vec<u32> = (0..5).map(|_| first.draw(&board).unwrap().element).collect();
        // the first two are no longer among the last three
        for element in [drawn[4], drawn[3], drawn[2]] {
            assert_eq!(second.draw(&board), Some(Followed { element, followed: true }));
        }
        let fresh = second.draw(&board).unwrap();
        assert!(!fresh.followed && !drawn[2..].contains(&fresh.element));
        assert_eq!(memory.drawn.load(Relaxed), 6);
    }

    #[test]
    fn what_an_idle_job_needs_is_drawn_before_and_what_a_busy_one_needs_after() {
        let memory = Memory::new(30, 8);
        let board = memory.board();
        let mut fast = begun(0, &board, (0..30).rev());
        let mut slow = begun(1, &board, 0..10);
        let two: Vec<u32> = (0..2).map(|_| fast.draw(&board).unwrap().element).collect();
        assert_eq!(two, [9, 8], "the slow one has nothing to follow");
        let others: Vec<u32> = (0..4).map(|_| fast.draw(&board).unwrap().element).collect();
        assert_eq!(others, [29, 28, 27, 26], "it has two to follow");
        assert_eq!(slow.draw(&board), Some(Followed { element: 8, followed: true }));
        assert_eq!(fast.draw(&board), Some(Followed { element: 7, followed: false }));
    }

    #[test]
    fn alone_a_job_draws_in_its_own_order_in_every_epoch() {
        for window in [0, 3, 10, 64] {
            let memory = Memory::new(12, window);
            let board = memory.board();
            let mut job = Follower::new(Job::of_number(0));
            for epoch in 0..20_u32 {
                // a part of the elements, in another order each time
                let order = (0..10 - epoch % 3).map(|i| (7 * i + epoch) % 12).collect::<BTreeSet<_>>();
                let order: Vec<u32> = order.into_iter().map(|element| (5 * element + epoch) % 12).collect();
                job.begin_epoch(&board, order.iter().copied()).unwrap();
                let drawn: Vec<u32> = std::iter::from_fn(|| job.draw(&board)).map(|draw| draw.element).collect();
                assert_eq!(drawn, order, "a ring of {window}, epoch {epoch}");
            }
        }
    }

    #[test]
    fn a_job_that_has_left_is_drawn_for_no_more() {
        let memory = Memory::new(40, 8);
        let board = memory.board();
        let mut fast = begun(0, &board, 0..40);
        drop(begun(1, &board, 0..3));
        board.leave(Job::of_number(1));
        assert_eq!(memory.members.load(Relaxed), 1);
        assert_eq!(memory.needs[0].load(Relaxed), 1);
        assert!((0..40).all(|_| fast.draw(&board).is_some()));
        assert_eq!(fast.draw(&board), None);
    }

    /// Draws that followed nobody, of jobs that begin at these rounds, draw in every so manieth, and have so many
    /// epochs.
    fn read(jobs: &[(u64, u64, u32)], elements: u32, window: usize) -> u64 {
        let memory = Memory::new(elements as usize, window);
        let board = memory.board();
        let mut running: Vec<_> = jobs.iter().map(|job| (Follower::new(Job::of_number(0)), *job)).collect();
        for round in 0.. {
            let mut all_done = true;
            for (number, (follower, (begins, every, epochs))) in running.iter_mut().enumerate() {
                if follower.remaining() == 0 && *epochs > 0 && round >= *begins {
                    *follower = Follower::new(Job::of_number(number));
                    follower.begin_epoch(&board, 0..elements).unwrap();
                    *epochs -= 1;
                }
                if (round - (*begins).min(round)).is_multiple_of(*every) {
                    follower.draw(&board);
                }
                all_done &= *epochs == 0 && follower.remaining() == 0;
            }
            if all_done {
                break;
            }
        }
        memory.drawn.load(Relaxed)
    }

    #[test]
    fn jobs_that_begin_at_different_moments_read_once_per_lap() {
        let quarters = [(0, 1, 3), (250, 1, 3), (500, 1, 3), (750, 1, 3)];
        assert!((3740..=3750).contains(&read(&quarters, 1000, 4)), "{}", read(&quarters, 1000, 4));
    }

    #[test]
    fn slow_jobs_find_most_of_what_they_need_where_fast_ones_are() {
        let speeds = [(0, 1, 4), (0, 2, 2), (0, 4, 1)];
        let reads = read(&speeds, 1000, 10);
        assert!((4000..4400).contains(&reads), "{reads} of 4000 that the fastest needs, and 7000 of all alone");
    }

    #[test]
    fn a_damaged_ring_leads_to_no_element_that_is_not_there() {
        let memory = Memory::new(10, 4);
        let board = memory.board();
        let mut job = begun(0, &board, 3..7);
        for damage in [u64::MAX, 1, 5, 1000] {
            board.recent.iter().for_each(|recent| recent.store(damage, Relaxed));
            board.drawn.store(u64::MAX - 1, Relaxed);
            assert!((3..7).contains(&job.draw(&board).unwrap().element));
        }
        assert_eq!(job.draw(&board), None);
    }
}
