//! Followers as a sampler.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use shuffle::{Board, FOLLOW, Followed, Follower, below, stream};

use crate::elements::ElementSet;
use crate::error::SamplerError;
use crate::members::Members;
use crate::sampler::{Draw, Sampler};
use shuffle::{Job, JobSet};

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
        allocation::try_reserve_exact(&mut recent, window)?;
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
        allocation::try_reserve_exact(&mut numbered, elements.len())?;
        let new = elements.iter().filter(|element| !self.numbers.contains_key(element)).count();
        allocation::fallible(|| self.numbers.try_reserve(new)).map_err(|_| SamplerError::OutOfMemory)?;
        allocation::try_reserve(&mut self.elements, new)?;
        allocation::try_reserve(&mut self.needs, new)?;
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
        Ok(follower.begin_epoch(&board, member.elements.iter().copied())?)
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
