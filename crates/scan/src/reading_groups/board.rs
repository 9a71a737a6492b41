//! A group's board in its segment: where in the words what is.

use shuffle::Board;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first word of a board, by which its segment is known.
const MAGIC: u64 = u64::from_le_bytes(*b"corgirg1");

/// Words before the arrays; what all members write is on cache lines of its own.
const LEN_OF_RECENT: usize = 1;
const DRAWN: usize = 8;
const MEMBERS: usize = 16;
const HEADER: usize = 24;

/// Blocks drawn last that members follow, at least and at most. A member draws the blocks of a buffer at a stretch, a
/// tenth of the table by default, while others learn from theirs: who finds less than a buffer in the ring misses most
/// of what was read meanwhile (docs/results/joader.md, jobs that read by buffers). To look at all of them takes a few
/// microseconds.
const RECENT: [usize; 2] = [64, 2048];

/// A ring has one of this many blocks of the table.
const RECENT_PART: usize = 5;

/// Blocks that a table of this many may have one day, when it has grown: members that come later know of them.
pub fn room_for(blocks: u32) -> usize {
    let blocks = blocks as usize;
    blocks + blocks / 4 + 1024
}

pub fn bytes(blocks: usize) -> usize {
    (HEADER + RECENT[1] + blocks) * size_of::<u64>()
}

/// Makes zeros the empty board of this many blocks.
pub fn begin(words: &[AtomicU64], blocks: u32) {
    let [least, most] = RECENT;
    words[LEN_OF_RECENT].store((blocks as usize / RECENT_PART).clamp(least, most) as u64, Relaxed);
    words[0].store(MAGIC, Relaxed);
}

/// The board; None if it is something else.
pub fn of(words: &[AtomicU64]) -> Option<Board<'_>> {
    let is_one = words.len() > HEADER + RECENT[1] && words[0].load(Relaxed) == MAGIC;
    let recent = (words.get(LEN_OF_RECENT)?.load(Relaxed) as usize).min(RECENT[1]);
    is_one.then(|| Board {
        needs: &words[HEADER + RECENT[1]..],
        recent: &words[HEADER..HEADER + recent],
        drawn: &words[DRAWN],
        members: &words[MEMBERS],
    })
}
