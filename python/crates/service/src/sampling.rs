//! Who draws what next: a sampler of `joader` for each data set, and how far each job is ahead.
//!
//! It guarantees that each job draws each of its elements once in each of its epochs, and that a job which takes
//! nothing stops no one: it is left out of rounds once it has drawn enough. Jobs of one speed are kept together: a
//! round waits until one of them needs it, and then all that have room for it draw.
//!
//! Nothing in it knows of time, threads or memory.

use fixedbitset::FixedBitSet;
use joader::{Dependent, Draw, ElementSet, Follow, Independent, Job, JobSet, Meeting, Sampler, SamplerError};
use std::collections::{BTreeMap, HashMap};

/// A job of a server, never used again for another one.
pub type JobId = u64;

/// How jobs of a data set draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SamplerKind {
    /// JOADER's dependent sampling: each job's order is exactly uniform, whatever the others want (Proposition 1).
    #[default]
    Dependent,
    /// What others have just drawn, where the job needs it: the fewest reads. Elements that many jobs want come first,
    /// so that a job's order is uniform only if all jobs want the same elements.
    Follow,
    /// Each job for itself, for comparison.
    Independent,
}

impl SamplerKind {
    /// All of them, by the names users know.
    pub const ALL: [(&'static str, SamplerKind); 3] = [
        ("dependent", SamplerKind::Dependent),
        ("follow", SamplerKind::Follow),
        ("independent", SamplerKind::Independent),
    ];

    /// The sampler of this name; the default if it is empty.
    pub fn named(name: &str) -> Option<SamplerKind> {
        if name.is_empty() {
            return Some(SamplerKind::default());
        }
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind)
    }

    fn sampler(self, seed: i64, elements: u32) -> Result<Box<dyn Sampler + Send>, SamplerError> {
        Ok(match self {
            SamplerKind::Follow => Box::new(Follow::new(seed, follow_window(elements))?),
            SamplerKind::Dependent => Box::new(Dependent::new(seed, Meeting::Vertex)?),
            SamplerKind::Independent => Box::new(Independent::new(seed)),
        })
    }
}

/// As for the trainings of the database: a fifth of the elements, so that jobs which read in bursts find what the
/// others have read meanwhile.
fn follow_window(elements: u32) -> usize {
    (elements as usize / 5).clamp(64, 2048)
}

/// What a job draws from, and how far ahead.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The elements of whole epochs.
    pub elements: ElementSet,
    /// What is left of the first epoch, if that is not all of it.
    pub left: Option<ElementSet>,
    /// Number of the first epoch.
    pub epoch: u64,
    /// Number of the first epoch that is not wanted any more.
    pub end: u64,
    /// How many elements it draws before it has taken the first of them.
    pub ahead: u32,
}

/// A job has drawn an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Which job.
    pub job: JobId,
    /// In which of its epochs.
    pub epoch: u64,
    /// What.
    pub element: u32,
}

struct Member {
    wanted: Wanted,
    number: Job,
    epoch: u64,
    /// the sampler knows what is left of an epoch only
    is_partial: bool,
    /// drawn and not taken
    claimed: u32,
    /// not drawn yet in this epoch
    need: FixedBitSet,
}

impl Member {
    fn has_room(&self) -> bool {
        self.claimed < self.wanted.ahead
    }

    fn is_hungry(&self) -> bool {
        self.claimed <= self.wanted.ahead / 2
    }
}

/// The jobs of one data set.
pub struct Sampling {
    sampler: Box<dyn Sampler + Send>,
    jobs: BTreeMap<JobId, Member>,
    ids: HashMap<Job, JobId>,
    elements: u32,
    draws: Vec<Draw>,
    has_more_to_come: bool,
}

impl Sampling {
    /// No one draws yet from this many elements.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(kind: SamplerKind, seed: i64, elements: u32) -> Result<Sampling, SamplerError> {
        let sampler = kind.sampler(seed, elements)?;
        Ok(Sampling {
            sampler,
            jobs: BTreeMap::new(),
            ids: HashMap::new(),
            elements,
            draws: Vec::new(),
            has_more_to_come: false,
        })
    }

    /// A job comes.
    ///
    /// # Errors
    /// If there are [`joader::MAX_JOBS`] already, or memory runs out.
    pub fn join(&mut self, id: JobId, wanted: Wanted) -> Result<(), SamplerError> {
        let first = wanted.left.as_ref().unwrap_or(&wanted.elements);
        let number = self.sampler.join(first.clone())?;
        let need = bits(first, self.elements);
        let (epoch, is_partial) = (wanted.epoch, wanted.left.is_some());
        self.ids.insert(number, id);
        self.has_more_to_come = true;
        self.jobs.insert(id, Member { wanted, number, epoch, is_partial, claimed: 0, need });
        Ok(())
    }

    /// A job goes. Nothing happens if it has gone.
    pub fn leave(&mut self, id: JobId) {
        if let Some(member) = self.jobs.remove(&id) {
            self.sampler.leave(member.number);
            self.ids.remove(&member.number);
        }
    }

    /// Whether no one draws.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// A job has taken one of the elements that it had drawn.
    pub fn taken(&mut self, id: JobId) {
        if let Some(member) = self.jobs.get_mut(&id) {
            member.claimed = member.claimed.saturating_sub(1);
        }
    }

    /// The epoch of a job, and how many elements it has still to draw in it.
    pub fn position(&self, id: JobId) -> Option<(u64, usize)> {
        self.jobs.get(&id).map(|member| (member.epoch, self.sampler.remaining(member.number)))
    }

    /// How many of these jobs have still to draw an element in their epochs.
    pub fn to_come(&self, element: u32, of: impl Fn(JobId) -> bool) -> usize {
        self.jobs.iter().filter(|(id, member)| of(**id) && member.need.contains(element as usize)).count()
    }

    /// Whether more jobs have still to draw some elements than before this was last asked: one has joined or begun an
    /// epoch.
    pub fn take_more_to_come(&mut self) -> bool {
        std::mem::take(&mut self.has_more_to_come)
    }

    /// Draws until no one needs a draw. `drawn` has what was drawn, in its order.
    ///
    /// # Errors
    /// If memory runs out at the beginning of an epoch: the job has gone then.
    pub fn decide(&mut self, drawn: &mut Vec<Drawn>) -> Result<(), (JobId, SamplerError)> {
        loop {
            let needs = |member: &Member| self.sampler.remaining(member.number) > 0;
            let begins = |member: &Member| !needs(member) && member.epoch + 1 < member.wanted.end;
            if !self.jobs.values().any(|member| member.is_hungry() && (needs(member) || begins(member))) {
                return Ok(());
            }
            // all that have room, so that those of one speed stay together
            let begin = |(_, member): &(&JobId, &Member)| member.has_room() && begins(member);
            let ended: Vec<JobId> = self.jobs.iter().filter(begin).map(|(id, _)| *id).collect();
            for id in ended {
                if let Err(error) = self.begin_epoch(id) {
                    self.leave(id);
                    return Err((id, error));
                }
            }
            let round: JobSet =
                self.jobs.values().filter(|member| member.has_room()).map(|member| member.number).collect();
            self.sampler.round(round, &mut self.draws);
            for draw in &self.draws {
                let Some(&id) = self.ids.get(&draw.job) else { continue };
                let Some(member) = self.jobs.get_mut(&id) else { continue };
                member.need.remove(draw.element as usize);
                member.claimed += 1;
                drawn.push(Drawn { job: id, epoch: member.epoch, element: draw.element });
            }
        }
    }

    fn begin_epoch(&mut self, id: JobId) -> Result<(), SamplerError> {
        let Some(member) = self.jobs.get_mut(&id) else { return Ok(()) };
        member.epoch += 1;
        if member.wanted.elements.is_empty() {
            // nothing to draw in any epoch
            member.epoch = member.wanted.end.saturating_sub(1).max(member.epoch);
            return Ok(());
        }
        if member.is_partial {
            self.sampler.leave(member.number);
            self.ids.remove(&member.number);
            member.number = self.sampler.join(member.wanted.elements.clone())?;
            self.ids.insert(member.number, id);
            member.is_partial = false;
        } else {
            self.sampler.begin_epoch(member.number)?;
        }
        member.need = bits(&member.wanted.elements, self.elements);
        self.has_more_to_come = true;
        Ok(())
    }
}

/// A bit for each of all elements: whether it is one of these.
pub(crate) fn bits(elements: &ElementSet, all: u32) -> FixedBitSet {
    let mut bits = FixedBitSet::with_capacity(all as usize);
    for range in elements.ranges() {
        bits.insert_range(range.start as usize..range.end as usize);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(range: std::ops::Range<u32>) -> ElementSet {
        ElementSet::from_ranges([range]).unwrap()
    }

    fn wanted(elements: ElementSet, epochs: u64, ahead: u32) -> Wanted {
        Wanted { elements, left: None, epoch: 0, end: epochs, ahead }
    }

    /// Runs jobs that take at random, and gives what each has drawn in each of its epochs.
    fn run(kind: SamplerKind, jobs: &[Wanted], takes: impl IntoIterator<Item = usize>) -> Vec<BTreeMap<u64, Vec<u32>>> {
        let mut sampling = Sampling::new(kind, 7, 100).unwrap();
        let mut drawn = Vec::new();
        for (id, wanted) in jobs.iter().enumerate() {
            sampling.join(id as JobId, wanted.clone()).unwrap();
        }
        sampling.decide(&mut drawn).unwrap();
        for taker in takes {
            sampling.taken((taker % jobs.len()) as JobId);
            sampling.decide(&mut drawn).unwrap();
        }
        let mut of = vec![BTreeMap::<u64, Vec<u32>>::new(); jobs.len()];
        for draw in drawn {
            of[draw.job as usize].entry(draw.epoch).or_default().push(draw.element);
        }
        of
    }

    proptest! {
        #[test]
        fn each_element_is_drawn_once_in_each_epoch(
            kind in prop::sample::select(SamplerKind::ALL.map(|(_, kind)| kind).to_vec()),
            bounds in prop::collection::vec((0_u32..100, 0_u32..100, 0_u64..4, 1_u32..20), 1..6),
            takes in prop::collection::vec(0_usize..6, 0..3000),
        ) {
            let jobs: Vec<Wanted> = bounds
                .iter()
                .map(|&(a, b, epochs, ahead)| wanted(set(a.min(b)..a.max(b)), epochs, ahead))
                .collect();
            let of = run(kind, &jobs, takes);
            for (job, epochs) in jobs.iter().zip(of) {
                prop_assert!(epochs.keys().all(|epoch| *epoch < job.end.max(1)));
                let last = epochs.keys().max().copied();
                for (epoch, mut elements) in epochs {
                    let count = elements.len();
                    elements.sort_unstable();
                    elements.dedup();
                    prop_assert_eq!(elements.len(), count, "an element was drawn twice");
                    let all: Vec<u32> = job.elements.iter().collect();
                    prop_assert!(elements.iter().all(|element| all.contains(element)));
                    prop_assert!(Some(epoch) == last || elements == all, "epoch {} ended early", epoch);
                }
            }
        }
    }

    #[test]
    fn a_job_that_takes_nothing_is_left_out_and_stops_nobody() {
        let jobs = [wanted(set(0..100), 3, 8), wanted(set(0..100), 3, 8)];
        let of = run(SamplerKind::Dependent, &jobs, std::iter::repeat_n(0, 300));
        assert_eq!(of[0].values().map(Vec::len).sum::<usize>(), 300);
        assert_eq!(of[1].values().map(Vec::len).sum::<usize>(), 8);
    }

    #[test]
    fn equal_jobs_that_take_by_turns_draw_the_same() {
        for kind in [SamplerKind::Follow, SamplerKind::Dependent] {
            let jobs = [wanted(set(0..100), 2, 8), wanted(set(0..100), 2, 8)];
            let of = run(kind, &jobs, (0..400).map(|i| i / 3));
            assert_eq!(of[0], of[1], "{kind:?}");
        }
    }

    /// Next to a job that wants the first 30 of 100 elements, the orders of a job that wants all of them.
    fn orders_next_to_a_part(kind: SamplerKind) -> impl Iterator<Item = Vec<u32>> {
        (0..200).map(move |seed| {
            let (mut sampling, mut drawn) = (Sampling::new(kind, seed, 100).unwrap(), Vec::new());
            sampling.join(0, wanted(set(0..30), 4, 4)).unwrap();
            sampling.join(1, wanted(set(0..100), 1, 4)).unwrap();
            for taken in 0..240 {
                sampling.decide(&mut drawn).unwrap();
                sampling.taken(taken % 2);
            }
            drawn.iter().filter(|draw| draw.job == 1).map(|draw| draw.element).collect()
        })
    }

    #[test]
    fn by_default_a_jobs_order_is_uniform_next_to_jobs_that_want_a_part() {
        // of 30 shared elements, those that come in the first half of the epoch: 15 of an order that is uniform
        let early = |kind| {
            let orders = orders_next_to_a_part(kind);
            orders.map(|order| order[..50].iter().filter(|element| **element < 30).count()).sum::<usize>() as f64
                / 200.0
        };
        let mean = early(SamplerKind::default());
        assert!((mean - 15.0).abs() < 0.8, "{mean}: more than 4 standard errors from 15");
        assert!(early(SamplerKind::Follow) > 25.0, "a job that follows others does not draw uniformly");
    }

    #[test]
    fn what_is_left_of_an_epoch_comes_first_and_then_whole_ones() {
        let partial = Wanted { left: Some(set(10..13)), epoch: 4, ..wanted(set(10..20), 6, 4) };
        let of = run(SamplerKind::Follow, &[partial], std::iter::repeat_n(0, 100));
        let sorted = |epoch: u64| {
            let mut elements = of[0][&epoch].clone();
            elements.sort_unstable();
            elements
        };
        assert_eq!((sorted(4), sorted(5)), (vec![10, 11, 12], (10..20).collect()));
        assert_eq!(of[0].len(), 2);
    }

    #[test]
    fn who_has_still_to_draw_an_element_is_known() {
        let mut sampling = Sampling::new(SamplerKind::Follow, 1, 10).unwrap();
        let mut drawn = Vec::new();
        sampling.join(1, wanted(set(0..10), 1, 1)).unwrap();
        sampling.join(2, wanted(set(5..10), 1, 1)).unwrap();
        let to_come = |sampling: &Sampling| (0..10).map(|e| sampling.to_come(e, |_| true)).sum::<usize>();
        assert_eq!(to_come(&sampling), 15);
        assert!(sampling.take_more_to_come() && !sampling.take_more_to_come());
        sampling.decide(&mut drawn).unwrap();
        assert_eq!(to_come(&sampling), 15 - drawn.len());
        sampling.leave(2);
        assert_eq!(sampling.to_come(7, |id| id == 2), 0);
        assert_eq!(sampling.position(2), None);
    }
}
