//! Several processes that learn one model together: who reads which blocks, and who learns from how many tuples when.
//!
//! Each of k processes fills a buffer of its own with a k-th of the blocks that one process would have in its buffer,
//! and shuffles the tuples in it. Taken in turns, a tuple of each process after the other as long as all have as many
//! ([`RoundRobin`]), their tuples make one sequence.
//!
//! It guarantees what Theorem 3 of the CorgiPile paper (the journal version, section 6) asks for: that sequence is one
//! that a single process with the whole buffer could have drawn. The blocks that the k processes have in their buffers
//! at the same time are as many as one process has in its buffer, a k-th of them drawn by each; no tuple of them is
//! missing or there twice, and none comes before those of the buffers before. So no one may go on to the next buffer
//! before all others are done with theirs, which [`PartitionEpoch::buffer`] lets them know.
//!
//! It also guarantees that a process gets the same blocks in every epoch, so that it may keep what it has decoded, and
//! that these are drawn at random from everywhere: processes that learn on their own for a while do not learn different
//! things, and no period of the table puts what is alike into one process's hands. To the others' buffers a process is
//! one more stratum: what all of them have in their buffers varies no more than each draw by itself.
//!
//! Everything is a function of seed, epoch, geometry, and of how many tuples each process has: no process has to ask
//! another what to do.

use crate::Geometry;
use crate::random::{BLOCKS, RANKS, stream};
use crate::stratified::stratified;

/// More processes are not to be had: a wait for all of them would take longer than the work.
pub const MAX_PROCESSES: u32 = 64;

/// One of the processes that learn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPartition {
    processes: u32,
    index: u32,
}

impl BlockPartition {
    /// The only process there is.
    pub const SINGLE: BlockPartition = BlockPartition { processes: 1, index: 0 };

    /// Process number `index`, from 0, of `processes`.
    ///
    /// # Panics
    /// If there is no such process, or there are more than [`MAX_PROCESSES`].
    pub fn new(processes: u32, index: u32) -> BlockPartition {
        assert!(index < processes && processes <= MAX_PROCESSES, "process {index} of {processes}");
        BlockPartition { processes, index }
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
    /// Each process draws the order of its own blocks as a single process draws that of all ([`stratified`]), for as
    /// many buffers as all of them need. In epoch 0 it is the natural one.
    pub fn share(self, seed: i64, epoch: u64, geometry: &Geometry) -> PartitionEpoch {
        let buffers = self.buffers(geometry);
        let mut blocks = self.blocks(seed, geometry);
        let (each, more) = (blocks.len() as u32 / buffers, blocks.len() as u32 % buffers);
        if epoch > 0 {
            let rng = &mut stream(BLOCKS, seed, epoch, self.ordinal(0));
            blocks = stratified(rng, blocks, buffers as usize, &mut || {});
        }
        PartitionEpoch {
            blocks,
            ends: allocation::collect((1..=buffers).map(|buffer| buffer * each + buffer.min(more))),
        }
    }

    /// How many buffers an epoch takes, at least 1: each process has room for a k-th of the blocks that one process has
    /// room for.
    fn buffers(self, geometry: &Geometry) -> u32 {
        let blocks = geometry.blocks.div_ceil(self.processes);
        let room = if geometry.buffers() == 1 { blocks } else { geometry.buffer_blocks / self.processes };
        Geometry::of_tuples(blocks, 1, room).buffers().max(1)
    }

    /// The blocks that are this process's in every epoch, in natural order: as many as any other's, but for one, and
    /// the same number from every part of the table.
    fn blocks(self, seed: i64, geometry: &Geometry) -> Vec<u32> {
        let blocks: Vec<u32> = allocation::collect(0..geometry.blocks);
        if self.processes == 1 {
            return blocks;
        }
        let dealt = stratified(&mut stream(RANKS, seed, 0, 0), blocks, self.processes as usize, &mut || {});
        let (each, more) = (geometry.blocks / self.processes, geometry.blocks % self.processes);
        let first = |process: u32| (process * each + process.min(more)) as usize;
        let mut ours = allocation::copy(&dealt[first(self.index)..first(self.index + 1)]);
        ours.sort_unstable();
        ours
    }

    /// What names the order of the tuples in this process's buffer number `buffer` of an epoch: no two processes draw
    /// the same, and a process on its own draws what it would without any others.
    pub(crate) fn ordinal(self, buffer: u64) -> u64 {
        u64::from(self.index) << 32 | buffer
    }
}

/// The blocks that one process reads in an epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionEpoch {
    blocks: Vec<u32>,
    /// how many of the blocks are in the buffers up to each; one buffer may end where the one before did
    ends: Vec<u32>,
}

impl PartitionEpoch {
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

/// Who has learned from how much, while the tuples of all processes' buffers are gone through. In turns, if all have as
/// many; a process with twice as many has two turns for one of the others', so that the end of the buffers is mixed as
/// their begin is. (The tuple in place j of n, from 0, has its turn by (j + 1/2) / n.)
#[derive(Debug, Clone, Default)]
pub struct RoundRobin {
    /// tuples that each process had, and has left
    all: Vec<usize>,
    left: Vec<usize>,
}

impl RoundRobin {
    /// Begins buffers of this many tuples.
    pub fn begin(&mut self, tuples: impl Iterator<Item = usize>) {
        self.all.clear();
        self.all.extend(tuples);
        self.left.clone_from(&self.all);
    }

    /// Tuples that are left to all processes.
    pub fn left(&self) -> usize {
        self.left.iter().sum()
    }

    /// Goes on by `tuples` turns, or as many as are left, and returns how many of them were those of process `index`.
    pub fn take(&mut self, tuples: usize, index: usize) -> usize {
        let before = self.left[index];
        let total: usize = self.all.iter().sum();
        let gone = (total - self.left()).saturating_add(tuples).min(total);
        // Rounding the processes' shares gives each turn but for a half. What is certain comes at once, the rest by
        // turns.
        let certain = (2 * gone as u128).saturating_sub(self.all.len() as u128);
        for (left, all) in self.left.iter_mut().zip(&self.all) {
            let taken = (certain * *all as u128 + total as u128) / (2 * total as u128).max(1);
            *left = (*left).min(all - (taken as usize).min(*all));
        }
        while total - self.left() < gone {
            self.turn();
        }
        before - self.left[index]
    }

    /// As [`take`](RoundRobin::take), how many of the turns were those of each process.
    pub fn take_of_all(&mut self, tuples: usize) -> Vec<usize> {
        let before = self.left.clone();
        if !before.is_empty() {
            self.take(tuples, 0);
        }
        before.iter().zip(&self.left).map(|(before, left)| before - left).collect()
    }

    /// One process's turn.
    fn turn(&mut self) {
        // (taken + 1/2) / all, and of equal ones the first process's
        let place = |i: usize| (2 * (self.all[i] - self.left[i]) + 1) as u128;
        let first = (0..self.left.len()).filter(|i| self.left[*i] > 0).reduce(|one, other| {
            let is_before = place(other) * (self.all[one] as u128) < place(one) * (self.all[other] as u128);
            if is_before { other } else { one }
        });
        if let Some(first) = first {
            self.left[first] -= 1;
        }
    }
}
