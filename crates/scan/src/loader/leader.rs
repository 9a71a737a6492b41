//! The leader's end of the double buffer: it learns from the buffers of a worker.

use super::filled_buffer::FilledBuffer;
use super::load_request::{LoadRequest, LoadStart};
use super::messages::{EpochEnd, RELEASE, SLOTS, START_EPOCH, WORKER_NAME, WorkerMessage};
use crate::scan_control::ScanReport;
use crate::tuple_shuffle::TupleShuffle;
use crate::worker_rows::{json, launch};
use decode::Decoder;
use errors::{Result, TrainingError};
use pg::executor::query::Running;
use pg::process::dsm::{Attachment, Handle, Segment, SegmentPool};
use pg::process::parallel::{Unavailable, Workers};
use tuples::Batch;

/// A running worker, and the buffers that it fills.
pub struct Leader {
    workers: Workers,
    segments: SegmentPool,
    buffers: [MappedBuffer; SLOTS],
    /// is the last buffer still being learned from?
    holds: bool,
    /// the epoch whose buffers are being read; 0 is the preparation pass
    epoch: u64,
    /// does the worker wait for the leader before each epoch?
    waits: bool,
    /// of the worker's nodes, at the end of the epoch before
    report: Option<ScanReport>,
}

/// One of the worker's buffers, mapped as long as the worker uses the same memory for it.
#[derive(Default)]
struct MappedBuffer {
    rows: Option<Attachment>,
    rest: Option<Attachment>,
}

/// What the worker has sent.
pub enum Received {
    /// The batch has the next buffer.
    Filled,
    EndOfEpoch,
    /// The rows have something that a sample of them did not contain.
    MissingInSample(String),
    /// There is no shared memory, not even for the first buffer, for this reason, in PostgreSQL's words.
    NoSharedMemory(String),
}

impl Leader {
    /// Starts a worker on a query that is running here.
    pub fn launch(request: &LoadRequest, query: &Running) -> std::result::Result<Leader, Unavailable> {
        Ok(Leader {
            workers: launch(WORKER_NAME, 1, &[&json(request)], false, query)?,
            segments: SegmentPool::default(),
            buffers: Default::default(),
            holds: false,
            // one that is to be resumed is still to be begun
            epoch: request.first_epoch() - u64::from(matches!(request.start, LoadStart::Resume { .. })),
            waits: request.waits,
            report: None,
        })
    }

    /// The epoch whose buffers are being read.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Report of the worker's nodes. None before the end of the first epoch.
    pub fn report(&self) -> Option<&ScanReport> {
        self.report.as_ref()
    }

    /// Waits for the end of the preparation pass. What a sample of the rows did not contain, if that ends the worker.
    pub fn prepare(&mut self, decoder: &mut Decoder) -> Result<Option<String>> {
        match self.receive(&mut Batch::dense(0))? {
            WorkerMessage::EpochEnd(end) => {
                self.end_epoch(*end, decoder);
                Ok(None)
            }
            WorkerMessage::MissingInSample(what) => Ok(Some(what)),
            _ => Err(TrainingError::WorkerLost.into()),
        }
    }

    /// Waits for the next buffer of the epoch. Releases the one before, which must be in `batch`.
    pub fn next(&mut self, decoder: &mut Decoder, batch: &mut Batch) -> Result<Received> {
        match self.receive(batch)? {
            WorkerMessage::Filled(filled) => {
                self.attach(&filled, batch)?;
                self.holds = true;
                Ok(Received::Filled)
            }
            WorkerMessage::NoSharedMemory(why) => Ok(Received::NoSharedMemory(why)),
            WorkerMessage::EpochEnd(end) => {
                batch.clear();
                self.end_epoch(*end, decoder);
                Ok(Received::EndOfEpoch)
            }
            WorkerMessage::MissingInSample(what) => Ok(Received::MissingInSample(what)),
            WorkerMessage::Done(_) => Err(TrainingError::WorkerLost.into()),
        }
    }

    /// The worker may begin the next epoch, if it has not already.
    pub fn next_epoch(&mut self) {
        self.epoch += 1;
        if self.waits {
            self.workers.send(0, &[START_EPOCH]);
        }
    }

    /// Ends the worker. If all epochs are over, the leader's nodes take over what it has measured.
    pub fn finish(mut self, query: &Running, batch: &mut Batch, all_epochs: bool) -> Result<()> {
        if all_epochs && let WorkerMessage::Done(done) = self.receive(batch)? {
            query.add_measured(&done.instruments);
            query.top::<TupleShuffle>().with(|scan, node| scan.adopt(node, &done.report));
        }
        if std::mem::take(&mut self.holds) {
            batch.release();
        }
        self.workers.finish();
        self.buffers = Default::default();
        self.segments.end();
        Ok(())
    }

    /// Releases the buffer in `batch`, and waits for the worker's next message.
    fn receive(&mut self, batch: &mut Batch) -> Result<WorkerMessage> {
        if std::mem::take(&mut self.holds) {
            batch.release();
            self.workers.send(0, &[RELEASE]);
        }
        let message = self.workers.receive(0).ok_or(TrainingError::WorkerLost)?;
        serde_json::from_slice(&message).map_err(|_| TrainingError::WorkerLost.into())
    }

    fn end_epoch(&mut self, end: EpochEnd, decoder: &mut Decoder) {
        if let Some(state) = &end.decoder_state {
            decoder.adopt(state);
        }
        decoder.set_counts(end.counts);
        self.report = Some(end.report);
    }

    fn attach(&mut self, filled: &FilledBuffer, batch: &mut Batch) -> Result<()> {
        let buffer = self.buffers.get_mut(filled.slot).ok_or(TrainingError::WorkerLost)?;
        let attached = filled.rows.map(|handle| keep(&self.segments, &mut buffer.rows, handle)).transpose();
        let attached = attached.and_then(|rows| Ok((rows, keep(&self.segments, &mut buffer.rest, filled.rest)?)));
        let (rows, rest) = attached.inspect_err(|_| self.wait_for_end())?;
        Ok(filled.read(rows, &rest, batch)?)
    }

    /// Waits until the worker has ended; raises its error. A buffer that is gone was that of a worker that is ending:
    /// it keeps what the leader has not released, unless it fails.
    fn wait_for_end(&self) {
        while self.workers.receive(0).is_some() {}
    }
}

/// The memory of the segment with this name, which stays attached by what is put into `place`.
fn keep(segments: &SegmentPool, place: &mut Option<Attachment>, handle: Handle) -> Result<Segment> {
    if place.as_ref().is_none_or(|attached| attached.handle() != handle) {
        *place = None;
    }
    let segment = segments.attach(handle).ok_or(TrainingError::WorkerLost)?;
    *place = Some(segment.attachment());
    Ok(segment)
}
