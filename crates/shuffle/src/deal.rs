//! Several processes that learn one model together: who reads which blocks, and who learns from how many tuples when.
//!
//! Each of k processes fills a buffer of its own with a k-th of the blocks that one process would have in its buffer, and
//! shuffles the tuples in it. Taken in turns, a tuple of each process after the other, their tuples make one sequence.
//!
//! It guarantees what Theorem 3 of the CorgiPile paper (the journal version, section 6) asks for: that sequence is one
//! that a single process with the whole buffer could have drawn. There is one random order of all blocks, of which k at a
//! time go to the k processes; the blocks that they have in their buffers at the same time follow each other in it, no tuple
//! of them is missing or there twice, and none comes before those of the buffers before. So nobody may go on to the next
//! buffer before all others are done with theirs, which [`Share::buffer`] lets them know.
//!
//! It also guarantees that a process gets the same blocks in every epoch, so that it may keep what it has decoded, and that
//! these are blocks from everywhere: processes that learn on their own for a while do not learn different things.
//!
//! Everything is a function of seed, epoch, geometry, and of how many tuples each process has: no process has to ask
//! another what to do.

use crate::permutation::{block_order, round_order};
use crate::{Geometry, Strategy};

/// More processes are not to be had: a wait for all of them would take longer than the work.
pub const MAX_PROCESSES: u32 = 64;

/// One of the processes that learn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deal {
    processes: u32,
    index: u32,
}

impl Deal {
    /// The only process there is.
    pub const ALONE: Deal = Deal { processes: 1, index: 0 };

    /// Process number `index`, from 0, of `processes`.
    ///
    /// # Panics
    /// If there is no such process, or there are more than [`MAX_PROCESSES`].
    pub fn new(processes: u32, index: u32) -> Deal {
        assert!(index < processes && processes <= MAX_PROCESSES, "process {index} of {processes}");
        Deal { processes, index }
    }

    /// How many processes there are.
    pub fn processes(self) -> u32 {
        self.processes
    }

    /// Which of them this one is, from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The blocks that are this process's in an epoch.
    ///
    /// Blocks are dealt in rounds, one to each process; the last round may not be enough for all. The order of the rounds is
    /// that of as many blocks of a single process ([`block_order`](crate::block_order)), whose buffer has room for a k-th of
    /// the blocks.
    pub fn share(self, seed: i64, epoch: u64, geometry: &Geometry) -> Share {
        let rounds = self.rounds(geometry);
        let order = match self {
            Deal::ALONE => block_order(Strategy::CorgiPile, seed, epoch, rounds.blocks, rounds.buffers()),
            _ => round_order(seed, epoch, rounds.blocks, rounds.buffers()),
        };
        let mut share = Share { blocks: Vec::with_capacity(order.len()), ends: Vec::new() };
        let mut place = 0;
        while place < order.len() {
            let end = place + rounds.left_in_buffer(place as u32) as usize;
            share.blocks.extend(order[place..end].iter().filter_map(|round| self.block(*round, &rounds, geometry)));
            share.ends.push(share.blocks.len() as u32);
            place = end;
        }
        share
    }

    /// The rounds as if they were blocks.
    fn rounds(self, geometry: &Geometry) -> Geometry {
        let rounds = geometry.blocks.div_ceil(self.processes);
        let room = if geometry.buffers() == 1 { rounds } else { geometry.buffer_blocks / self.processes };
        Geometry::of_tuples(rounds, 1, room)
    }

    /// The block that this process gets in a round.
    ///
    /// As many rounds as there are buffers deal out blocks that lie together, to each process as many that follow each other.
    /// Each buffer gets one of these rounds, and by that one of so many blocks that follow each other, as a single process's
    /// does. What is left at the table's end is dealt out block by block.
    fn block(self, round: u32, rounds: &Geometry, geometry: &Geometry) -> Option<u32> {
        let (run, processes) = (rounds.buffers(), self.processes);
        let whole = geometry.blocks / (run * processes) * run; // rounds
        let (begun, rest) = (round / run * run, round % run);
        let block = match round < whole {
            true => begun * processes + self.index * run + rest,
            false => round * processes + self.index,
        };
        (block < geometry.blocks).then_some(block)
    }

    /// What names the order of the tuples in this process's buffer number `buffer` of an epoch: no two processes draw the
    /// same, and a process on its own draws what it would without any others.
    pub(crate) fn ordinal(self, buffer: u64) -> u64 {
        u64::from(self.index) << 32 | buffer
    }
}

/// The blocks that one process reads in an epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Share {
    blocks: Vec<u32>,
    /// how many of the blocks are in the buffers up to each; one buffer may end where the one before did
    ends: Vec<u32>,
}

impl Share {
    /// The blocks, in the order in which to read them.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// The buffer, from 0, that the block in place `position` belongs to; behind the last block, the number of buffers.
    pub fn buffer(&self, position: u32) -> u64 {
        self.ends.partition_point(|end| *end <= position) as u64
    }

    /// How many blocks, beginning with the one in place `position`, still belong to the same buffer; at least 1.
    pub fn left_in_buffer(&self, position: u32) -> u32 {
        let end = self.ends.get(self.buffer(position) as usize);
        end.map_or(1, |end| end - position)
    }
}

/// Who has learned from how much, while the tuples of all processes' buffers are gone through: one tuple each, the first
/// process first, as long as it has any.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    /// tuples that each process has left
    left: Vec<usize>,
    /// whose turn it is
    next: usize,
}

impl Turns {
    /// Begins buffers of so many tuples.
    pub fn begin(&mut self, tuples: impl Iterator<Item = usize>) {
        self.left.clear();
        self.left.extend(tuples);
        self.next = 0;
    }

    /// Tuples that are left to all processes.
    pub fn left(&self) -> usize {
        self.left.iter().sum()
    }

    /// Goes on by `tuples` turns, or as many as are left, and returns how many of them were those of process `index`.
    pub fn take(&mut self, tuples: usize, index: usize) -> usize {
        let before = self.left[index];
        let mut wanted = tuples.min(self.left());
        // to the end of a round
        while wanted > 0 && self.next > 0 {
            wanted -= self.turn();
        }
        // whole rounds, until somebody has none left
        while wanted > 0 {
            let having = self.left.iter().filter(|left| **left > 0);
            let (players, least) = having.fold((0, usize::MAX), |(n, least), left| (n + 1, least.min(*left)));
            let rounds = least.min(wanted / players);
            if rounds == 0 {
                break;
            }
            self.left.iter_mut().for_each(|left| *left = left.saturating_sub(rounds));
            wanted -= rounds * players;
        }
        while wanted > 0 {
            wanted -= self.turn();
        }
        before - self.left[index]
    }

    /// One process's turn; how many tuples that came to.
    fn turn(&mut self) -> usize {
        let left = &mut self.left[self.next];
        let taken = usize::from(*left > 0);
        *left -= taken;
        self.next = (self.next + 1) % self.left.len();
        taken
    }
}
