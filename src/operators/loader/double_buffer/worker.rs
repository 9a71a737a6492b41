//! The end of the double buffer that loads.

use super::SLOTS;
use super::message::{Filled, GO_ON, Message};
use crate::errors::{ResourceError, Result};
use crate::pg::process::dsm::{Segment, SegmentPool};
use crate::pg::process::parallel::Worker;
use serde::Serialize;
use std::rc::Rc;
use tuples::Batch;

/// The buffers of a worker, to be filled in turn.
pub struct Slots<'a> {
    worker: &'a Worker,
    arena: Rc<SegmentPool>,
    slots: Vec<Slot>,
    /// of how many the leader has not let go yet
    lent: usize,
    /// of how many epochs it has said that they may begin
    goes: usize,
    next: usize,
    filled: bool,
}

struct Slot {
    batch: Batch,
    rest: Option<Segment>,
}

impl<'a> Slots<'a> {
    /// Empty buffers, without memory so far.
    pub fn new(worker: &'a Worker) -> Slots<'a> {
        let arena = Rc::new(SegmentPool::default());
        let slot = |_| Slot { batch: Batch::with_allocator(arena.clone()), rest: None };
        Slots { worker, slots: (0..SLOTS).map(slot).collect(), arena, lent: 0, goes: 0, next: 0, filled: false }
    }

    /// The buffer to be filled next, as soon as the leader has let go of it; None if it wants no more.
    pub fn next(&mut self) -> Option<&mut Batch> {
        while self.lent == SLOTS {
            self.listen()?;
        }
        Some(&mut self.slots[self.next].batch)
    }

    /// Waits until the leader lets it [go on](super::Leader::start_epoch); None if it wants no more.
    pub fn wait_to_go_on(&mut self) -> Option<()> {
        while self.goes == 0 {
            self.listen()?;
        }
        self.goes -= 1;
        Some(())
    }

    fn listen(&mut self) -> Option<()> {
        match *self.worker.receive()?.first()? {
            GO_ON => self.goes += 1,
            _ => self.lent -= 1,
        }
        Some(())
    }

    /// Gives the leader the buffer that [`next`](Slots::next) gave. None if it wants no more.
    ///
    /// # Errors
    /// [`ResourceError::OutOfMemory`]
    pub fn publish(&mut self) -> Result<Option<()>> {
        if !self.filled {
            self.make_room()?;
        }
        let Slot { batch, rest } = &mut self.slots[self.next];
        let bytes = Filled::rest_bytes(batch);
        if rest.as_ref().is_none_or(|rest| rest.bytes() < bytes) {
            *rest = None;
            // later buffers may have a few tuples more
            *rest = Some(self.arena.make(bytes + bytes / 8 + 64).ok_or(ResourceError::OutOfMemory(bytes))?);
        }
        let Some(rest) = rest else { return Ok(None) };
        Filled::write(batch, rest);
        let rows = batch.memory().and_then(|memory| self.arena.handle_at(memory.floats().as_ptr()));
        let message = Message::<()>::Filled(Filled::of(batch, self.next, rows, rest.handle()));
        self.next = (self.next + 1) % SLOTS;
        self.lent += 1;
        self.filled = true;
        Ok(self.send(&message))
    }

    /// Makes room in the other buffers for as much as the first one has room for: if memory is short, better now than when
    /// the leader has begun to learn.
    fn make_room(&mut self) -> Result<()> {
        let first = &self.slots[self.next].batch;
        if first.is_sparse() {
            return Ok(());
        }
        let (dim, weighted, room) = (first.dim(), first.weights().is_some(), first.capacity());
        for (_, slot) in self.slots.iter_mut().enumerate().filter(|(i, _)| *i != self.next) {
            slot.batch.become_dense(dim);
            slot.batch.set_weighted(weighted);
            slot.batch.reserve(room)?;
        }
        Ok(())
    }

    /// Tells the leader something else. None if it wants no more.
    pub fn tell<M: Serialize>(&self, message: M) -> Option<()> {
        self.send(&Message::Other(message))
    }

    fn send<M: Serialize>(&self, message: &Message<M>) -> Option<()> {
        let message = serde_json::to_vec(message).expect("plain values are always JSON");
        self.worker.send(&message).then_some(())
    }

    /// Frees the buffers, as far as this process is concerned, as soon as the leader has let go of all of them: what it
    /// has not attached yet would go with this process.
    pub fn end(mut self) {
        while self.lent > 0 && self.listen().is_some() {}
        drop(self.slots);
        self.arena.end();
    }

    /// Why there was no shared memory even for the first buffer, if so.
    pub fn refused(&self) -> Option<String> {
        self.arena.refused().filter(|_| !self.filled)
    }
}
