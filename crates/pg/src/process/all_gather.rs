//! Processes that give each other numbers, all at once, as often as they like.
//!
//! Each of them has two places in shared memory, which it uses by turns. It writes what it gives, then the number of
//! the round; it waits until all others have written that number, and reads. Before it writes into the same place
//! again, it has waited for everybody in the round between, who were done with reading by then. So one wait per round
//! is enough, and nothing is locked.
//!
//! Waits are mostly for less than a microsecond: they spin, then let others have the processor, and sleep at last. All
//! of them take interrupts: that is how one learns that another process has failed.

use super::nap;
use crate::interrupts::check_for_interrupts;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A process's way to all others.
///
/// No one else has its number, so that what it reads is never being written: anyone who writes into a place again has
/// waited for everybody in the round between.
pub struct AllGather {
    start: *mut u8,
    processes: usize,
    index: usize,
    round: u64,
    /// is the memory still there?
    is_there: Rc<Cell<bool>>,
}

/// What a process says about what it gives.
#[repr(C, align(64))]
struct Header {
    /// the round that it was written for
    round: AtomicU64,
    /// words that are still to come, in this round and those that follow
    words: AtomicU64,
}

const MAX_PROCESSES: usize = shuffle::MAX_PROCESSES as usize;

/// Words that are given in one round.
const WORDS: usize = 1 << 14;

const PLACE: usize = size_of::<Header>() + WORDS * size_of::<u32>();

/// Looks at another's round before other processes get their chance: some microseconds.
const SPINS: u32 = 200;

/// How long to wait before going to sleep.
const PATIENCE: Duration = Duration::from_millis(5);

impl AllGather {
    /// Bytes of shared memory for this many processes.
    pub fn bytes(processes: usize) -> usize {
        2 * processes * PLACE
    }

    /// The way of process number `index` of `processes` into zeroed memory of that many [`bytes`](AllGather::bytes) or
    /// more.
    ///
    /// # Safety
    /// The memory is shared by these processes as long as `is_there` says so, aligned to cache lines, and used for
    /// nothing else. Each process has another index.
    pub(super) unsafe fn join(
        start: *mut u8,
        bytes: usize,
        processes: usize,
        index: usize,
        is_there: Rc<Cell<bool>>,
    ) -> AllGather {
        let room = bytes >= AllGather::bytes(processes) && processes <= MAX_PROCESSES;
        assert!(room && index < processes, "a place for everybody");
        AllGather { start, processes, index, round: 0, is_there }
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Gives words to all, in as many rounds as it takes those who give most. In each round `take` gets what each
    /// process gives, which may be nothing, in the processes' sequence. All processes make the same calls in the same
    /// sequence: one that does not waits for ever.
    pub fn gather(&mut self, words: &[u32], mut take: impl FnMut(&[&[u32]])) {
        let mut rest = words;
        loop {
            self.round += 1;
            let now = rest.len().min(WORDS);
            self.write(&rest[..now], rest.len());
            let (pieces, most) = self.pieces();
            take(&pieces[..self.processes]);
            if most <= WORDS {
                return;
            }
            rest = &rest[now..];
        }
    }

    /// Gives words, as many as everybody else, and replaces them, part by part,
    /// by what `combine` makes of those of all.
    pub fn combine(&mut self, words: &mut [u32], mut combine: impl FnMut(&mut [u32], &[&[u32]])) {
        for part in words.chunks_mut(WORDS) {
            self.round += 1;
            self.write(part, part.len());
            let (pieces, _) = self.pieces();
            combine(part, &pieces[..self.processes]);
        }
    }

    /// The place of a process in this round.
    fn place(&self, process: usize) -> *mut u8 {
        let place = 2 * process + (self.round % 2) as usize;
        // SAFETY: there are two places for each process.
        unsafe { self.start.add(place * PLACE) }
    }

    fn header(&self, process: usize) -> &Header {
        // SAFETY: a place begins with a header, whose numbers are atomic; zeroed memory is a valid one.
        unsafe { &*self.place(process).cast::<Header>() }
    }

    /// Writes what this process gives in this round, of this many words that it still has to give.
    fn write(&self, now: &[u32], words: usize) {
        assert!(self.is_there.get(), "the workers have not been finished");
        let header = self.header(self.index);
        // SAFETY: no one reads this place: all others are at most in the round before, and read the other place.
        unsafe {
            let to = self.place(self.index).add(size_of::<Header>()).cast::<u32>();
            std::ptr::copy_nonoverlapping(now.as_ptr(), to, now.len());
        }
        header.words.store(words as u64, Ordering::Relaxed);
        header.round.store(self.round, Ordering::Release);
    }

    /// What each process gives in this round, waited for; and how many words the process that gives most still had to
    /// give.
    fn pieces(&self) -> ([&[u32]; MAX_PROCESSES], usize) {
        let mut pieces: [&[u32]; MAX_PROCESSES] = [&[]; _];
        let mut most = 0;
        for (process, piece) in pieces.iter_mut().enumerate().take(self.processes) {
            let words = self.wait_for(process);
            most = most.max(words);
            // SAFETY: written before the round was, which was seen; not written again before the round after the next,
            // which does not come while these slices borrow self.
            *piece = unsafe {
                let from = self.place(process).add(size_of::<Header>()).cast();
                std::slice::from_raw_parts(from, words.min(WORDS))
            };
        }
        (pieces, most)
    }

    /// Waits until a process has written what it gives in this round; says how many words it still has to give.
    fn wait_for(&self, process: usize) -> usize {
        let header = self.header(process);
        let has_come = || header.round.load(Ordering::Acquire) == self.round;
        for _ in 0..SPINS {
            if has_come() {
                return header.words.load(Ordering::Relaxed) as usize;
            }
            std::hint::spin_loop();
        }
        let start = Instant::now();
        while !has_come() {
            check_for_interrupts();
            if start.elapsed() < PATIENCE { std::thread::yield_now() } else { nap() }
        }
        header.words.load(Ordering::Relaxed) as usize
    }
}
