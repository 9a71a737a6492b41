//! The buffers of a worker, and its messages.

use super::filled_buffer::FilledBuffer;
use super::messages::{SLOTS, START_EPOCH, WorkerMessage};
use crate::worker_rows::json;
use errors::{PgError, Result};
use pg::process::dsm::{Segment, SegmentPool};
use pg::process::parallel::Worker;
use std::rc::Rc;
use tuples::Batch;

/// The buffers of a worker, to be filled in turn.
pub struct WorkerBuffers<'a> {
    worker: &'a Worker,
    segments: Rc<SegmentPool>,
    buffers: Vec<WorkerBuffer>,
    /// buffers that the leader has not released yet
    lent: usize,
    /// epochs that may begin and have not begun yet
    started_epochs: usize,
    /// the buffer to be filled next
    next: usize,
    /// has any buffer been filled?
    filled: bool,
}

struct WorkerBuffer {
    batch: Batch,
    rest: Option<Segment>,
}

impl<'a> WorkerBuffers<'a> {
    /// Empty buffers, without memory so far.
    pub fn new(worker: &'a Worker) -> WorkerBuffers<'a> {
        let segments = Rc::new(SegmentPool::default());
        let buffer = |_| WorkerBuffer { batch: Batch::with_allocator(segments.clone()), rest: None };
        WorkerBuffers {
            worker,
            buffers: (0..SLOTS).map(buffer).collect(),
            segments,
            lent: 0,
            started_epochs: 0,
            next: 0,
            filled: false,
        }
    }

    /// Waits until the leader has released the buffer to be filled next. None if it wants no more.
    pub fn next(&mut self) -> Option<&mut Batch> {
        while self.lent == SLOTS {
            self.poll_leader()?;
        }
        Some(&mut self.buffers[self.next].batch)
    }

    /// Waits until the leader [starts the next epoch](super::Leader::next_epoch). None if it wants no more.
    pub fn wait_for_epoch(&mut self) -> Option<()> {
        while self.started_epochs == 0 {
            self.poll_leader()?;
        }
        self.started_epochs -= 1;
        Some(())
    }

    /// Waits for a message of the leader.
    fn poll_leader(&mut self) -> Option<()> {
        match *self.worker.receive()?.first()? {
            START_EPOCH => self.started_epochs += 1,
            _ => self.lent -= 1,
        }
        Some(())
    }

    /// Gives the leader the buffer that [`next`](WorkerBuffers::next) gave. None if it wants no more.
    pub fn publish(&mut self) -> Result<Option<()>> {
        if !self.filled {
            self.make_room()?;
        }
        let WorkerBuffer { batch, rest } = &mut self.buffers[self.next];
        let bytes = FilledBuffer::rest_bytes(batch);
        if rest.as_ref().is_none_or(|rest| rest.bytes() < bytes) {
            *rest = None;
            // later buffers may have a few tuples more
            *rest = Some(self.segments.make(bytes + bytes / 8 + 64).ok_or(PgError::OutOfMemory(bytes))?);
        }
        let Some(rest) = rest else { return Ok(None) };
        FilledBuffer::write(batch, rest);
        let rows = batch.memory().and_then(|memory| self.segments.handle_at(memory.floats().as_ptr()));
        let message = WorkerMessage::Filled(FilledBuffer::new(batch, self.next, rows, rest.handle()));
        self.next = (self.next + 1) % SLOTS;
        self.lent += 1;
        self.filled = true;
        Ok(self.tell(&message))
    }

    /// Makes room in the other buffers for as much as the first one has room for: if memory is short, better now than
    /// when the leader has begun to learn.
    fn make_room(&mut self) -> Result<()> {
        let first = &self.buffers[self.next].batch;
        if first.is_sparse() {
            return Ok(());
        }
        let (dim, weighted, room) = (first.dim(), first.weights().is_some(), first.capacity());
        for (_, buffer) in self.buffers.iter_mut().enumerate().filter(|(i, _)| *i != self.next) {
            buffer.batch.become_dense(dim);
            buffer.batch.set_weighted(weighted);
            buffer.batch.reserve(room)?;
        }
        Ok(())
    }

    /// Sends the leader a message. None if it wants no more.
    pub fn tell(&self, message: &WorkerMessage) -> Option<()> {
        self.worker.send(&json(message)).then_some(())
    }

    /// Frees the buffers, as far as this process is concerned, as soon as the leader has released all of them: what it
    /// has not attached yet would go with this process.
    pub fn end(mut self) {
        while self.lent > 0 && self.poll_leader().is_some() {}
        drop(self.buffers);
        self.segments.end();
    }

    /// Why there was no shared memory even for the first buffer, if so.
    pub fn refused(&self) -> Option<String> {
        self.segments.refused().filter(|_| !self.filled)
    }
}
