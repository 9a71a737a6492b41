//! The end of the double buffer that learns.

use super::message::{Filled, GO_ON, LET_GO, Message};
use super::{QUEUE, SLOTS};
use crate::errors::{Result, TrainingError};
use crate::pg::process::dsm::{Handle, Segment, SegmentPool};
use crate::pg::process::parallel::{Launch, Unavailable, Workers};
use pgrx::pg_sys;
use serde::de::DeserializeOwned;
use std::ffi::CStr;
use tuples::Batch;

/// A running worker, and the buffers that it fills.
pub struct Leader {
    workers: Workers,
    arena: SegmentPool,
    slots: [Slot; SLOTS],
    /// is the last buffer still being learned from?
    holds: bool,
}

/// One of the worker's buffers, mapped as long as the worker uses the same memory for it.
#[derive(Default)]
struct Slot {
    rows: Option<Segment>,
    rest: Option<Segment>,
}

/// What the worker has told.
pub enum Event<M> {
    /// the batch has the next buffer
    Filled,
    Other(M),
}

impl Leader {
    /// Starts a worker of this kind, and tells it this.
    ///
    /// # Errors
    /// Why there is none.
    pub fn launch(
        kind: &'static CStr,
        data: &[&[u8]],
        snapshot: pg_sys::Snapshot,
    ) -> std::result::Result<Leader, Unavailable> {
        let workers = Workers::launch(&Launch { kind, workers: 1, data, shared: 0, queue: QUEUE, snapshot })?;
        Ok(Leader { workers, arena: SegmentPool::default(), slots: Default::default(), holds: false })
    }

    /// Waits for what the worker has to tell. Lets go of the buffer before, which must be in `batch`; if another is
    /// filled, it is there afterwards.
    ///
    /// # Errors
    /// [`TrainingError::WorkerLost`], [`ResourceError::OutOfMemory`]; an error of the worker is raised.
    pub fn next<M: DeserializeOwned>(&mut self, batch: &mut Batch) -> Result<Event<M>> {
        self.release(batch);
        let message = self.workers.receive(0).ok_or(TrainingError::WorkerLost)?;
        match serde_json::from_slice(&message).map_err(|_| TrainingError::WorkerLost)? {
            Message::Other(message) => Ok(Event::Other(message)),
            Message::Filled(filled) => {
                self.take(&filled, batch)?;
                self.holds = true;
                Ok(Event::Filled)
            }
        }
    }

    fn take(&mut self, filled: &Filled, batch: &mut Batch) -> Result<()> {
        let slot = self.slots.get_mut(filled.slot).ok_or(TrainingError::WorkerLost)?;
        let attached = filled.rows.map(|handle| keep(&self.arena, &mut slot.rows, handle)).transpose();
        let attached = attached.and_then(|rows| Ok((rows, keep(&self.arena, &mut slot.rest, filled.rest)?)));
        let (rows, rest) = attached.inspect_err(|_| self.wait_for_end())?;
        Ok(filled.read(rows, &rest, batch)?)
    }

    /// Waits until the worker has ended; raises its error. A buffer that is gone was a worker's that is ending: it keeps
    /// what the leader has not let go, unless it fails.
    fn wait_for_end(&self) {
        while self.workers.receive(0).is_some() {}
    }

    fn release(&mut self, batch: &mut Batch) {
        if std::mem::take(&mut self.holds) {
            batch.release();
            self.workers.send(0, &[LET_GO]);
        }
    }

    /// Lets a worker go on that [waits](super::Slots::wait_to_go_on) for it.
    pub fn start_epoch(&self) {
        self.workers.send(0, &[GO_ON]);
    }

    /// Ends the worker; `batch` no longer has a buffer of it. Nothing could be written until now.
    pub fn finish(mut self, batch: &mut Batch) {
        if std::mem::take(&mut self.holds) {
            batch.release();
        }
        self.workers.finish();
        self.slots = Default::default();
        self.arena.end();
    }
}

/// The segment with this name, which is kept in `place`.
fn keep(arena: &SegmentPool, place: &mut Option<Segment>, handle: Handle) -> Result<Segment> {
    if place.as_ref().is_none_or(|segment| segment.handle() != handle) {
        *place = None;
        *place = arena.attach(handle);
    }
    place.as_ref().and_then(|_| arena.attach(handle)).ok_or(TrainingError::WorkerLost.into())
}

const _: () = assert!(SLOTS > 1, "one is filled while the other is learned from");
