//! Lanes: an epoch cut lengthwise, so that any number of processes and workers reads it in the same order.
//!
//! The order of an epoch is that of a single process: buffer after buffer, each full of blocks that were drawn again
//! for this epoch. Its places are dealt to the lanes a batch at a time, in turns. A lane gets its part of each buffer,
//! as many tuples as it has places there, in whole blocks but for the first and the last of them; it reads them into a
//! buffer of its own, which is by so much smaller, and shuffles them there.
//!
//! It guarantees Theorem 3 of the CorgiPile paper (the journal version, section 6) by construction: when the lanes'
//! batches are taken in turns, all tuples of a buffer come before those of the next one, each exactly once, so that a
//! single process with the whole buffer could have drawn the same order. And it guarantees that what a lane does is a
//! function of seed, epoch and the numbers of lanes and of tuples in a batch, not of who reads it: lanes may move from
//! one process to another, whose number may change.

use crate::{Blocks, Strategy, block_order};
use std::ops::Range;

/// How the places of an epoch are dealt to lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    lanes: u32,
    together: u32,
    batch: u32,
    tuples: u64,
}

/// A batch, and where it is in its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneBatch {
    /// Whose it is.
    pub lane: u32,
    /// Tuples of the lane before it.
    pub first: u64,
    /// Tuples in it; fewer than asked for in the last step only, where they may be none.
    pub tuples: u32,
}

impl Lanes {
    /// `lanes` lanes for an epoch of `tuples`, in batches of `batch` tuples. `together` lanes, a divisor of all, make a
    /// step: what is left for the last step is spread evenly over its lanes.
    ///
    /// # Panics
    /// If one of the numbers but the last is 0, or `together` is no divisor of `lanes`.
    pub fn new(lanes: u32, together: u32, batch: u32, tuples: u64) -> Lanes {
        assert!(
            batch > 0 && together > 0 && lanes > 0 && lanes.is_multiple_of(together),
            "{together} of {lanes} lanes"
        );
        Lanes { lanes, together, batch, tuples }
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// How many lanes make a step.
    pub fn together(&self) -> u32 {
        self.together
    }

    /// Tuples in a whole step.
    fn step(&self) -> u64 {
        u64::from(self.together) * u64::from(self.batch)
    }

    /// How many batches the epoch has, those of the last step that have no tuples included: whole steps.
    pub fn batches(&self) -> u64 {
        self.tuples.div_ceil(self.step()) * u64::from(self.together)
    }

    /// Batch number `number` of the epoch, below [`batches`](Lanes::batches).
    pub fn batch(&self, number: u64) -> LaneBatch {
        let lane = (number % u64::from(self.lanes)) as u32;
        let (step, place) = (number / u64::from(self.together), (number % u64::from(self.together)) as u32);
        let tuples = if step < self.tuples / self.step() { self.batch } else { self.last_batch(place).1 };
        LaneBatch { lane, first: number / u64::from(self.lanes) * u64::from(self.batch), tuples }
    }

    /// How many of the first `places` places of the epoch are lane number `lane`'s.
    pub fn tuples_before(&self, lane: u32, places: u64) -> u64 {
        let (steps, rest) = (places / self.step(), places % self.step());
        // steps take turns with groups of lanes
        let groups = u64::from(self.lanes / self.together);
        let (group, place) = (u64::from(lane / self.together), lane % self.together);
        let whole = (steps + groups - 1 - group) / groups * u64::from(self.batch);
        if rest == 0 || steps % groups != group {
            return whole;
        }
        let last = steps == self.tuples / self.step();
        let (start, tuples) =
            if last { self.last_batch(place) } else { (u64::from(place) * u64::from(self.batch), self.batch) };
        whole + rest.saturating_sub(start).min(tuples.into())
    }

    /// Tuples of the last, incomplete step before the batch of the lane that comes in place `place`, and in it.
    fn last_batch(&self, place: u32) -> (u64, u32) {
        let left = self.tuples % self.step();
        let (each, more) = (left / u64::from(self.together), left % u64::from(self.together));
        let place = u64::from(place);
        (place * each + place.min(more), (each + u64::from(place < more)) as u32)
    }
}

/// The blocks of one epoch in the order in which they are read, and how they fall into buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSequence {
    order: Vec<u32>,
    /// tuples up to the end of each buffer
    ends: Vec<u64>,
}

/// What a lane has in one of its buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Tuples of the lane before these.
    pub first: u64,
    /// The runs of tuples, none of them empty: whole blocks, but perhaps for the first and the last.
    pub runs: Vec<Range<u64>>,
}

impl BlockSequence {
    /// The order of `blocks` in `epoch`, for `buffers` buffers, or fewer if there are fewer blocks.
    pub fn new(strategy: Strategy, seed: i64, epoch: u64, blocks: &Blocks, buffers: u32) -> BlockSequence {
        let buffers = buffers.clamp(1, blocks.len().max(1));
        let order = block_order(strategy, seed, epoch, blocks.len(), buffers);
        let mut ends = allocation::with_capacity(buffers as usize);
        let mut tuples = 0;
        for buffer in 0..buffers {
            let of_buffer = &order[places(order.len(), buffers, buffer)];
            tuples += of_buffer.iter().map(|block| length(&blocks.tuples_of(*block))).sum::<u64>();
            ends.push(tuples);
        }
        BlockSequence { order, ends }
    }

    /// How many buffers the epoch takes, at least 1.
    pub fn buffers(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The blocks in the buffer of a single process, in the order in which they are read.
    pub fn blocks_of(&self, buffer: u32) -> &[u32] {
        &self.order[places(self.order.len(), self.buffers(), buffer)]
    }

    /// Places of the epoch before those of buffer number `buffer`.
    fn start(&self, buffer: u32) -> u64 {
        if buffer == 0 { 0 } else { self.ends[buffer as usize - 1] }
    }

    /// The buffer that has place number `tuple` of a lane; behind its last, the number of buffers.
    pub fn buffer_of(&self, lanes: &Lanes, lane: u32, tuple: u64) -> u32 {
        self.ends.partition_point(|end| lanes.tuples_before(lane, *end) <= tuple) as u32
    }

    /// What lane number `lane` has in its buffer number `buffer`, below [`buffers`](BlockSequence::buffers).
    pub fn share(&self, blocks: &Blocks, lanes: &Lanes, lane: u32, buffer: u32) -> Share {
        let (start, end) = (self.start(buffer), self.ends[buffer as usize]);
        let of = |lane| lanes.tuples_before(lane, end) - lanes.tuples_before(lane, start);
        let before: u64 = (0..lane).map(of).sum();
        let mut share = Share { first: lanes.tuples_before(lane, start), runs: Vec::new() };
        let (mut skip, mut wanted) = (before, of(lane));
        for tuples in self.blocks_of(buffer).iter().map(|block| blocks.tuples_of(*block)) {
            let skipped = skip.min(length(&tuples));
            skip -= skipped;
            let from = tuples.start + skipped;
            let run = from..tuples.end.min(from.saturating_add(wanted));
            wanted -= length(&run);
            if !run.is_empty() {
                share.runs.push(run);
            }
            if wanted == 0 {
                break;
            }
        }
        share
    }

    /// Tuple number `place` of the last buffer that has any, which stands in where a batch lacks one; None if there
    /// are no tuples.
    pub fn substitute(&self, blocks: &Blocks, place: u64) -> Option<u64> {
        let last = (0..self.buffers()).rev().find(|buffer| self.start(*buffer) < self.ends[*buffer as usize])?;
        let mut place = place % (self.ends[last as usize] - self.start(last));
        for tuples in self.blocks_of(last).iter().map(|block| blocks.tuples_of(*block)) {
            if place < length(&tuples) {
                return Some(tuples.start + place);
            }
            place -= length(&tuples);
        }
        None
    }
}

/// The places of a buffer's blocks in the order: the first buffers have a block more than the others.
fn places(blocks: usize, buffers: u32, buffer: u32) -> Range<usize> {
    let (each, more) = (blocks / buffers as usize, blocks % buffers as usize);
    let start = |buffer: usize| buffer * each + buffer.min(more);
    start(buffer as usize)..start(buffer as usize + 1)
}

fn length(tuples: &Range<u64>) -> u64 {
    tuples.end - tuples.start
}
