//! For each element, which jobs still need it: a bit for each job.
//!
//! It says of an element at once whether all of some jobs need it, which [`NeedSet`](crate::need::NeedSet) would have
//! to be asked for job by job, at places of memory far from each other. It takes a byte per element, from the first
//! that anybody wants to the last, and eight as soon as there are more than eight jobs.

use std::ops::{BitAndAssign, BitOrAssign, Not, Range};

use crate::elements::ElementSet;
use crate::error::SamplerError;
use shuffle::{Job, JobSet};

/// Jobs whose bits fit a byte.
const FEW: usize = 8;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Needers {
    /// The element of the first mask.
    base: usize,
    masks: Masks,
}

#[derive(Debug)]
enum Masks {
    Few(Vec<u8>),
    Many(Vec<u64>),
}

impl Default for Masks {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Masks {
    fn len(&self) -> usize {
        match self {
            Self::Few(masks) => masks.len(),
            Self::Many(masks) => masks.len(),
        }
    }
}

impl Needers {
    /// Makes room for a job with these elements. Without memory for it, nothing changes.
    pub(crate) fn make_room(&mut self, elements: &ElementSet, job: Job) -> Result<(), SamplerError> {
        let wanted = elements.span().start as usize..elements.span().end as usize;
        let present = self.base..self.base + self.masks.len();
        let span = match (present.is_empty(), wanted.is_empty()) {
            (_, true) => present.clone(),
            (true, false) => wanted,
            (false, false) => present.start.min(wanted.start)..present.end.max(wanted.end),
        };
        let (after, is_few) = (present.start - span.start.min(present.start), job.number() < FEW);
        self.masks = match &self.masks {
            Masks::Few(_) if is_few && span == present => return Ok(()),
            Masks::Many(_) if span == present => return Ok(()),
            Masks::Few(masks) if is_few => Masks::Few(moved(masks, after, span.len())?),
            Masks::Few(masks) => Masks::Many(moved(masks, after, span.len())?),
            Masks::Many(masks) => Masks::Many(moved(masks, after, span.len())?),
        };
        self.base = span.start;
        Ok(())
    }

    /// The job needs all of these elements, for which there is room.
    pub(crate) fn insert(&mut self, elements: &ElementSet, job: Job) {
        for range in elements.ranges() {
            let places = self.place(range);
            match &mut self.masks {
                Masks::Few(masks) => set(&mut masks[places], 1 << job.number()),
                Masks::Many(masks) => set(&mut masks[places], 1 << job.number()),
            }
        }
    }

    /// The job needs none of these elements.
    pub(crate) fn remove_all(&mut self, elements: &ElementSet, job: Job) {
        for range in elements.ranges() {
            let places = self.place(range);
            match &mut self.masks {
                Masks::Few(masks) => clear(&mut masks[places], 1 << job.number()),
                Masks::Many(masks) => clear(&mut masks[places], 1 << job.number()),
            }
        }
    }

    /// The job does not need this element any more.
    pub(crate) fn remove(&mut self, element: u32, job: Job) {
        let place = element as usize - self.base;
        match &mut self.masks {
            Masks::Few(masks) => masks[place] &= !(1 << job.number()),
            Masks::Many(masks) => masks[place] &= !(1 << job.number()),
        }
    }

    /// The jobs that need an element, which some job wants.
    pub(crate) fn of(&self, element: u32) -> JobSet {
        let place = element as usize - self.base;
        JobSet::from_bits(match &self.masks {
            Masks::Few(masks) => masks[place].into(),
            Masks::Many(masks) => masks[place],
        })
    }

    fn place(&self, range: &Range<u32>) -> Range<usize> {
        range.start as usize - self.base..range.end as usize - self.base
    }
}

/// The masks with this many empty ones before them, and as many in all.
fn moved<A: Copy + Into<B>, B: Copy + Default>(masks: &[A], after: usize, len: usize) -> Result<Vec<B>, SamplerError> {
    let mut all = Vec::new();
    allocation::try_reserve_exact(&mut all, len)?;
    all.resize(after, B::default());
    all.extend(masks.iter().map(|&mask| mask.into()));
    all.resize(len, B::default());
    Ok(all)
}

fn set<T: Copy + BitOrAssign>(masks: &mut [T], bit: T) {
    masks.iter_mut().for_each(|mask| *mask |= bit);
}

fn clear<T: Copy + BitAndAssign + Not<Output = T>>(masks: &mut [T], bit: T) {
    masks.iter_mut().for_each(|mask| *mask &= !bit);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    use crate::members::Members;

    proptest! {
        /// Jobs that join with sets anywhere, need elements no more, and leave: each element has the bits that it must
        /// have.
        #[test]
        fn every_element_has_the_bits_of_those_who_need_it(
            sets in prop::collection::vec((0_u32..300, 0_u32..60, any::<prop::sample::Index>()), 1..14),
        ) {
            let (mut needers, mut numbers) = (Needers::default(), Members::default());
            let mut expected: BTreeMap<u32, JobSet> = BTreeMap::new();
            for (from, n, drawn) in sets {
                let job = numbers.insert(()).unwrap();
                let range = from..from + n;
                let set = ElementSet::from_ranges([range]).unwrap();
                needers.make_room(&set, job).unwrap();
                needers.insert(&set, job);
                set.iter().for_each(|element| expected.entry(element).or_default().insert(job));
                if n > 0 {
                    let element = from + drawn.index(n as usize) as u32;
                    needers.remove(element, job);
                    expected.get_mut(&element).unwrap().remove(job);
                }
                if n % 4 == 3 {
                    needers.remove_all(&set, job);
                    expected.values_mut().for_each(|jobs| jobs.remove(job));
                }
                prop_assert!(expected.iter().all(|(&element, &jobs)| needers.of(element) == jobs));
            }
        }
    }
}
