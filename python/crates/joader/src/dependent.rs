//! Dependent sampling: jobs draw the same element as often as their orders can stay uniform (JOADER's Algorithms 1 and
//! 2, with partial sampling and jobs that join, leave and begin epochs at any time).
//!
//! # What is guaranteed
//!
//! *Each job's order is exactly uniform, whatever the others do.* Given everything that any job has drawn so far, each
//! job of a round draws each element that it still needs with the same probability, 1/|D|. The probability of an order
//! of n elements is therefore 1/n · 1/(n-1) ··· 1/1, and it stays that when others join, leave, are faster or slower,
//! or begin epochs in between, as long as anyone who decides that does not know what will be drawn.
//!
//! *They meet as often as that allows.* An element that two jobs both need can be drawn by each of them with
//! probability 1/|D| at most, so that they meet with |I| / max(|D1|, |D2|) at most, where I is what both need; and so
//! it is. All of n jobs meet with |I| / max |D|.
//!
//! # The step
//!
//! The jobs of a round are sorted by how many elements they need, D1 to Dm; the *undecided* jobs are those from some
//! place k on. S is what earlier turns have excluded, and I what all of the undecided need, less S.
//!
//! 1. The first undecided job draws e from Dk - S, each element equally likely.
//! 2. If e is in I, the next job draws e, too, with probability (|Dk| - |S|) / (|Dk+1| - |S|); if it does, the one
//!    after it with (|Dk+1| - |S|) / (|Dk+2| - |S|), and so on, up to the first that does not.
//! 3. S grows by I; who has drawn is decided; and the others take the next turn.
//!
//! This is Algorithm 1 with two misprints mended: its line 13 must set c to |D| - |S|, and its line 17 choose from
//! D - S - I. There the first job tosses a coin for I, with |I| / (|D| - |S|), and then draws from what it has chosen;
//! to draw from D - S and see whether it lies in I is the same, and needs no |I|.
//!
//! # Why it is uniform
//!
//! By induction on the number of undecided jobs: *whichever jobs are undecided, and whatever part S of what all of them
//! need is excluded, each of them draws uniformly from D - S.* (In the first turn nothing is excluded: that is the
//! claim above.) Let a_i = |D_i| - |S|, ascending. The first job draws uniformly by definition. The i-th one draws e in
//! this turn if e is in I and all before it do, which happens with |I|/a_k · a_k/a_k+1 ··· a_i-1/a_i = |I|/a_i, and e
//! is uniform in I: each element of I has 1/a_i. Otherwise, with 1 - |I|/a_i, it is in the next turn, with whichever
//! others. S + I is excluded there, which is all that the jobs of this turn have in common, however the turn has ended;
//! so it draws each of the other a_i - |I| elements with 1/(a_i - |I|), and that makes 1/a_i again.
//!
//! # What it costs
//!
//! Nothing is counted but what each job still needs ([`NeedSet`], and [`Needers`] for the same by element): not how
//! many elements each set of jobs has in common, of which there may be 2^64, and which change with everyone who joins.
//! The paper's tree has a vertex for each such set, and moves an element from vertex to vertex as jobs draw it
//! (compensation); here an element that a job has drawn loses that job's bit, and has all others. What is needed of S
//! is found by drawing, too:
//!
//! - *an element of D - S*: elements of D are drawn until one is not in S;
//! - *a coin of (A - s) / (B - s)*, with s = |S| unknown: with (B - A) / B it fails; otherwise an element of A's set
//!   is drawn, and if it is in S, all begins again. A round fails with (B - A)/B and succeeds with A/B · (A - s)/A, so
//!   that in the end it fails with (B - A) / (B - A + A - s).
//!
//! Both take |D| / (|D| - |S|) tries on average, of a set that is nearly excluded very many. But by the induction a job
//! is still undecided when S is excluded with probability (|D| - |S|) / |D| only: that makes one try on average,
//! however alike the sets are. A toss decides its job or ends the turn, so that a round of m jobs has fewer than 2m of
//! them. If tries have taken as long as counting would, S is counted. That they have failed tells nothing of what
//! follows: the result is as uniform.

use rand_xoshiro::Xoshiro256PlusPlus;
use shuffle::{SHARED, below, stream};

use crate::elements::ElementSet;
use crate::error::SamplerError;
use crate::members::Members;
use crate::need::{NeedSet, nth_bit};
use crate::needers::Needers;
use crate::sampler::{Draw, Sampler};
use shuffle::{Job, JobSet, MAX_JOBS};

/// Which jobs of a round draw the same element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meeting {
    /// Those that have chosen the same intersection, as Algorithm 2 says.
    #[default]
    Intersection,
    /// Also those that come upon elements of the same vertex of the sampling tree (appendix C), that is, elements that
    /// the same jobs of the round need: the later of them draws the element of the earlier one. Orders are as uniform,
    /// because all elements of a vertex are equally likely for either.
    Vertex,
}

/// Tries before S is counted, for each `WORDS_PER_TRY` words that counting would look at.
const PATIENCE: usize = 64;
const WORDS_PER_TRY: usize = 256;

struct Member {
    elements: ElementSet,
    need: NeedSet,
}

/// See the module's documentation.
pub struct Dependent {
    rng: Xoshiro256PlusPlus,
    meeting: Meeting,
    patience: usize,
    members: Members<Member>,
    needers: Needers,
    /// The jobs of a round, and what was drawn in it, kept for their memory.
    order: Vec<(usize, Job)>,
    vertices: Vec<(JobSet, u32)>,
}

impl Dependent {
    /// A sampler without jobs.
    pub fn new(seed: i64, meeting: Meeting) -> Result<Self, SamplerError> {
        let (mut order, mut vertices) = (Vec::new(), Vec::new());
        allocation::try_reserve_exact(&mut order, MAX_JOBS)?;
        allocation::try_reserve_exact(&mut vertices, MAX_JOBS)?;
        let rng = stream(SHARED, seed, 0, 0);
        let (members, needers) = (Members::default(), Needers::default());
        Ok(Self { rng, meeting, patience: PATIENCE, members, needers, order, vertices })
    }
}

impl Sampler for Dependent {
    fn join(&mut self, elements: ElementSet) -> Result<Job, SamplerError> {
        let need = NeedSet::new(&elements)?;
        let job = self.members.insert(Member { elements, need })?;
        let elements = &self.members[job].elements;
        match self.needers.make_room(elements, job) {
            Ok(()) => self.needers.insert(elements, job),
            Err(error) => {
                self.members.remove(job);
                return Err(error);
            }
        }
        Ok(job)
    }

    fn leave(&mut self, job: Job) {
        if let Some(member) = self.members.remove(job) {
            self.needers.remove_all(&member.elements, job);
        }
        if self.members.is_empty() {
            self.needers = Needers::default();
        }
    }

    fn begin_epoch(&mut self, job: Job) -> Result<(), SamplerError> {
        let member = self.members.get_mut(job).ok_or(SamplerError::UnknownJob(job))?;
        member.need.refill(&member.elements);
        self.needers.insert(&member.elements, job);
        Ok(())
    }

    fn remaining(&self, job: Job) -> usize {
        self.members.get(job).map_or(0, |member| member.need.len())
    }

    fn round(&mut self, jobs: JobSet, draws: &mut Vec<Draw>) {
        draws.clear();
        let mut order = std::mem::take(&mut self.order);
        let mut vertices = std::mem::take(&mut self.vertices);
        order.clear();
        order.extend(jobs.iter().map(|job| (self.remaining(job), job)).filter(|&(remaining, _)| remaining > 0));
        // jobs that need equally many are in the order of their numbers
        order.sort_unstable();
        vertices.clear();
        Round {
            members: &self.members,
            needers: &self.needers,
            order: &order,
            rng: &mut self.rng,
            meeting: self.meeting,
            patience: self.patience,
            vertices: &mut vertices,
        }
        .decide(draws);
        (self.order, self.vertices) = (order, vertices);
        for draw in draws.iter() {
            if let Some(member) = self.members.get_mut(draw.job) {
                member.need.remove(draw.element);
                self.needers.remove(draw.element, draw.job);
            }
        }
        draws.sort_unstable_by_key(|draw| draw.job);
    }
}

/// A round under way. A *place* is one in the order of the jobs.
struct Round<'a> {
    members: &'a Members<Member>,
    needers: &'a Needers,
    /// Ascending, with how many elements they need.
    order: &'a [(usize, Job)],
    rng: &'a mut Xoshiro256PlusPlus,
    meeting: Meeting,
    patience: usize,
    /// What was drawn, with those of the round's jobs who need it.
    vertices: &'a mut Vec<(JobSet, u32)>,
}

/// What earlier turns have excluded: all that these jobs need, or nothing without any.
#[derive(Clone, Copy, Default)]
struct Excluded {
    by: JobSet,
    /// |S|, if it had to be counted.
    counted: Option<usize>,
}

impl<'a> Round<'a> {
    fn decide(&mut self, draws: &mut Vec<Draw>) {
        let all: JobSet = self.order.iter().map(|&(_, job)| job).collect();
        let (mut place, mut undecided, mut excluded) = (0, all, Excluded::default());
        while place < self.order.len() {
            let mut element = self.draw_outside(place, &mut excluded);
            if self.meeting == Meeting::Vertex {
                element = self.of_vertex(element, all);
            }
            let (turn, is_in_i) = (undecided, self.needers.of(element).has_all(undecided));
            loop {
                let job = self.order[place].1;
                draws.push(Draw { job, element });
                undecided.remove(job);
                place += 1;
                if !is_in_i || place == self.order.len() || !self.accepts(place, &mut excluded) {
                    break;
                }
            }
            excluded = Excluded { by: turn, counted: None };
        }
    }

    fn need(&self, place: usize) -> &'a NeedSet {
        &self.members[self.order[place].1].need
    }

    fn is_excluded(&self, excluded: &Excluded, element: u32) -> bool {
        !excluded.by.is_empty() && self.needers.of(element).has_all(excluded.by)
    }

    /// Any element that the job needs.
    fn draw_from(&mut self, place: usize) -> u32 {
        let need = self.need(place);
        need.nth(below(self.rng, need.len()))
    }

    /// Any element that the job needs and that is not excluded.
    fn draw_outside(&mut self, place: usize, excluded: &mut Excluded) -> u32 {
        if excluded.by.is_empty() {
            return self.draw_from(place);
        }
        for _ in 0..self.tries(place) {
            let element = self.draw_from(place);
            if !self.is_excluded(excluded, element) {
                return element;
            }
        }
        let left = self.need(place).len() - self.count(excluded);
        let mut rank = below(self.rng, left) as u32;
        for number in self.need(place).word_numbers() {
            let word = self.need(place).word(number) & !self.excluded_word(excluded, number);
            if rank < word.count_ones() {
                return number as u32 * u64::BITS + nth_bit(word, rank);
            }
            rank -= word.count_ones();
        }
        unreachable!("{left} elements are not excluded")
    }

    /// Whether this job draws what the one before it has drawn: with (A - s) / (B - s).
    fn accepts(&mut self, place: usize, excluded: &mut Excluded) -> bool {
        let (fewer, more) = (self.order[place - 1].0, self.order[place].0);
        if fewer == more {
            return true;
        }
        if excluded.by.is_empty() {
            return below(self.rng, more) < fewer;
        }
        if excluded.counted.is_none() {
            for _ in 0..self.tries(place) {
                if below(self.rng, more) < more - fewer {
                    return false;
                }
                let element = self.draw_from(place - 1);
                if !self.is_excluded(excluded, element) {
                    return true;
                }
            }
        }
        let counted = self.count(excluded);
        below(self.rng, more - counted) < fewer - counted
    }

    /// How often drawing is tried before S is counted.
    fn tries(&self, place: usize) -> usize {
        self.patience * (1 + self.need(place).word_numbers().len() / WORDS_PER_TRY)
    }

    /// |S|
    fn count(&self, excluded: &mut Excluded) -> usize {
        if let Some(counted) = excluded.counted {
            return counted;
        }
        let numbers = self.need(self.order.len() - 1).word_numbers();
        let counted = numbers.map(|number| self.excluded_word(excluded, number).count_ones() as usize).sum();
        excluded.counted = Some(counted);
        counted
    }

    /// What is excluded of the elements of a word.
    fn excluded_word(&self, excluded: &Excluded, number: usize) -> u64 {
        let words = excluded.by.iter().map(|job| self.members[job].need.word(number));
        words.reduce(|all, word| all & word).unwrap_or(0)
    }

    /// The element of this one's vertex that was drawn earlier in the round, or else this one.
    fn of_vertex(&mut self, element: u32, all: JobSet) -> u32 {
        let vertex = JobSet::from_bits(self.needers.of(element).bits() & all.bits());
        if let Some(&(_, earlier)) = self.vertices.iter().find(|&&(of, _)| of == vertex) {
            return earlier;
        }
        self.vertices.push((vertex, element));
        element
    }
}

#[cfg(test)]
#[path = "../tests/reference/exact.rs"]
mod exact;
#[cfg(test)]
#[path = "../tests/reference/statistics.rs"]
mod statistics;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A sampler that tries so often counts whatever is excluded: the outcomes of a round must be as probable.
    fn deviation(patience: usize, sets: &[Vec<u32>]) -> f64 {
        const ROUNDS: usize = 60_000;
        let mut sampler = Dependent { patience, ..Dependent::new(3, Meeting::Intersection).unwrap() };
        let set = |set: &Vec<u32>| ElementSet::from_ranges(set.iter().map(|&element| element..element + 1)).unwrap();
        let jobs: Vec<Job> = sets.iter().map(|of| sampler.join(set(of)).unwrap()).collect();
        let (mut draws, mut counts) = (Vec::new(), BTreeMap::new());
        for _ in 0..ROUNDS {
            jobs.iter().for_each(|&job| sampler.begin_epoch(job).unwrap());
            sampler.round(JobSet::ALL, &mut draws);
            *counts.entry(draws.iter().map(|draw| draw.element).collect::<Vec<_>>()).or_insert(0.0) += 1.0;
        }
        let expected = exact::distribution(sets);
        assert!(counts.keys().all(|drawn| expected.contains_key(drawn)));
        let cell = |(drawn, p): (&Vec<u32>, &f64)| (counts.get(drawn).copied().unwrap_or(0.0), p * ROUNDS as f64);
        statistics::deviation(&expected.iter().map(cell).collect::<Vec<_>>())
    }

    #[test]
    fn counting_what_is_excluded_gives_the_same_distribution_as_trying() {
        let far = |set: &[u32]| set.iter().map(|element| element * 700).collect::<Vec<_>>();
        let families = [
            vec![vec![1, 2], vec![1, 2, 3], vec![2, 3, 4, 5]],
            vec![vec![1, 2, 3], vec![1, 2, 3, 4], vec![1, 2, 3, 4, 5]],
            vec![far(&[3, 4]), far(&[0, 3, 4]), far(&[0, 1, 2, 3, 4, 5])],
            vec![vec![1, 2], vec![2, 3, 4], vec![2, 3, 4, 5], vec![0, 2, 3, 4, 5]],
        ];
        for (family, patience) in families.iter().flat_map(|family| [0, 1, PATIENCE].map(|patience| (family, patience)))
        {
            assert!(deviation(patience, family) < 4.5, "{family:?} after {patience} tries");
        }
    }

    #[test]
    fn jobs_at_one_vertex_draw_the_same_element() {
        // in half of all rounds job 0 chooses 0 or 1 alone; where job 1 does so afterwards, it must be the same
        let sets = [vec![0, 1, 2, 3], vec![0, 1, 2, 3, 4], vec![2, 3, 4, 5, 6, 7]];
        let met = |meeting| {
            let mut sampler = Dependent::new(1, meeting).unwrap();
            let set =
                |set: &Vec<u32>| ElementSet::from_ranges(set.iter().map(|&element| element..element + 1)).unwrap();
            let jobs: Vec<Job> = sets.iter().map(|of| sampler.join(set(of)).unwrap()).collect();
            let (mut draws, mut at_vertex, mut met) = (Vec::new(), 0, 0);
            for _ in 0..20_000 {
                jobs.iter().for_each(|&job| sampler.begin_epoch(job).unwrap());
                sampler.round(JobSet::ALL, &mut draws);
                let both = draws[0].element < 2 && draws[1].element < 2;
                at_vertex += u32::from(both);
                met += u32::from(both && draws[0].element == draws[1].element);
            }
            f64::from(met) / f64::from(at_vertex)
        };
        assert_eq!(met(Meeting::Vertex), 1.0);
        assert!((met(Meeting::Intersection) - 0.5).abs() < 0.05);
    }

    #[test]
    fn nothing_is_drawn_by_jobs_that_are_not_there() {
        let mut sampler = Dependent::new(1, Meeting::Intersection).unwrap();
        let mut draws = Vec::new();
        sampler.round(JobSet::ALL, &mut draws);
        assert_eq!(draws, []);
        let job = sampler.join(ElementSet::default()).unwrap();
        sampler.round(JobSet::ALL, &mut draws);
        assert_eq!((draws.len(), sampler.remaining(job)), (0, 0));
        sampler.leave(job);
        sampler.leave(job);
        assert_eq!(sampler.begin_epoch(job), Err(SamplerError::UnknownJob(job)));
    }
}
