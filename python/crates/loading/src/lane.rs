//! The rows of a lane that are in memory, in the order in which they are wanted.

use crate::batch::{Builder, MISSING, Pieces, Place};
use crate::pipeline::Buffer;
use crate::plan::{Plan, RowsOfBatch};
use shuffle::Window;
use source::SourceError;
use std::collections::VecDeque;

/// The rows of a lane: buffers, or what goes through a window.
pub(crate) enum Lane {
    /// Buffers, the one in use first.
    Buffers(VecDeque<Buffer>),
    /// A window.
    Window(Box<WindowOfLane>),
}

impl Lane {
    pub(crate) fn new(plan: &Plan, epoch: u64, lane: u32) -> Lane {
        if plan.config().shuffle.has_window() {
            Lane::Window(Box::new(WindowOfLane::new(plan, epoch, lane)))
        } else {
            Lane::Buffers(VecDeque::new())
        }
    }

    /// The row of the lane, as they are read, that has to come before a batch can be made; None if all have.
    pub(crate) fn lacks(&self, rows: &RowsOfBatch) -> Option<u64> {
        let end = rows.first + u64::from(rows.rows);
        match self {
            Lane::Buffers(buffers) => {
                let there = buffers.back().map_or(rows.first, |last| last.first + last.places.len() as u64);
                (there < end).then_some(there)
            }
            Lane::Window(window) => (window.first + (window.places.len() as u64) < end).then_some(window.came),
        }
    }

    /// A buffer comes; how much of its memory is given back at once.
    pub(crate) fn push(&mut self, buffer: Buffer) -> u64 {
        match self {
            Lane::Buffers(buffers) => {
                buffers.push_back(buffer);
                0
            }
            Lane::Window(window) => window.push(buffer),
        }
    }

    /// Gathers the rows of a batch; how much memory is given back.
    pub(crate) fn gather(&mut self, rows: &RowsOfBatch, builder: &mut Builder<'_>) -> Result<u64, SourceError> {
        let end = rows.first + u64::from(rows.rows);
        match self {
            Lane::Buffers(buffers) => {
                for buffer in &*buffers {
                    let inside = |row: u64| row.saturating_sub(buffer.first).min(buffer.places.len() as u64) as usize;
                    builder.gather(&buffer.pieces, &buffer.places[inside(rows.first)..inside(end)])?;
                }
                let mut released = 0;
                while buffers.front().is_some_and(|used| used.first + used.places.len() as u64 <= end) {
                    released += buffers.pop_front().map_or(0, |used| used.bytes);
                }
                Ok(released)
            }
            Lane::Window(window) => {
                window.skip(rows.first);
                builder.gather(&window.pieces, &window.places.make_contiguous()[..rows.rows as usize])?;
                window.skip(end);
                Ok(0)
            }
        }
    }
}

/// A lane's rows as they go through a window.
pub(crate) struct WindowOfLane {
    window: Window<Place>,
    /// rows that came so far, and that will come
    came: u64,
    rows: u64,
    /// all pieces of the epoch, and how many of their rows are still to go; those of which none are, are empty
    pieces: Vec<Pieces>,
    left: Vec<u32>,
    /// the rows that went, and how many rows of the lane did before them
    places: VecDeque<Place>,
    first: u64,
}

impl WindowOfLane {
    fn new(plan: &Plan, epoch: u64, lane: u32) -> WindowOfLane {
        WindowOfLane {
            window: Window::new(plan.config().seed, epoch + 1, lane.into(), plan.window()),
            came: 0,
            rows: plan.lanes.tuples_before(lane, plan.rows()),
            pieces: Vec::new(),
            left: Vec::new(),
            places: VecDeque::new(),
            first: 0,
        }
    }

    fn push(&mut self, buffer: Buffer) -> u64 {
        let base = self.left.len() as u32;
        for &(piece, row) in &buffer.places {
            let place = if piece == MISSING { (piece, row) } else { (base + piece, row) };
            if piece != MISSING {
                self.left.resize(self.left.len().max(place.0 as usize + 1), 0);
                self.left[place.0 as usize] += 1;
            }
            self.places.extend(self.window.push(place));
        }
        // a piece may have no rows at all
        let pieces = buffer.pieces.first().map_or(0, Pieces::len);
        self.left.resize(base as usize + pieces, 0);
        self.came += buffer.places.len() as u64;
        if self.came == self.rows {
            self.places.extend(self.window.finish());
        }
        if self.pieces.is_empty() {
            self.pieces = buffer.pieces;
        } else {
            self.pieces.iter_mut().zip(buffer.pieces).for_each(|(pieces, more)| pieces.append(more));
        }
        buffer.bytes
    }

    /// Forgets the rows before the lane's row number `first`, and the pieces that are used up by that.
    fn skip(&mut self, first: u64) {
        while self.first < first {
            let Some((piece, _)) = self.places.pop_front() else { return };
            self.first += 1;
            if piece == MISSING {
                continue;
            }
            self.left[piece as usize] -= 1;
            if self.left[piece as usize] == 0 {
                self.pieces.iter_mut().for_each(|pieces| pieces.clear(piece as usize));
            }
        }
    }
}
