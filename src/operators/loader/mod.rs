//! Loading in a worker process: BlockShuffle, decoder and TupleShuffle run there, and fill one buffer while SGD learns from
//! the other.
//!
//! The worker gets the leader's plan of the source, and how its rows become tuples; it sends buffers, and what it has
//! learned about the rows. The leader's own nodes stay idle, or have run the epochs before.

mod double_buffer;
mod job;
mod worker;

use super::tuple_shuffle::{self, TupleShuffle};
use super::{Decoder, FullShuffle};
use crate::errors::{Result, TrainingError};
use crate::operators::loader::double_buffer::{Event, Leader};
use crate::pg::executor::query::Running;
use crate::pg::process::parallel::Unavailable;
pub use job::{LoadRequest, Task};
use job::{Progress, WorkerMessage};
use shuffle::Geometry;
use tuples::Batch;
pub use worker::KIND;

/// The worker that loads.
pub struct Remote {
    leader: Leader,
    /// the epoch whose buffers are being read; 0 is the preparation pass
    epoch: u64,
    waits: bool,
    progress: Progress,
}

/// What came instead of a buffer, or with it.
pub enum Next {
    Filled,
    EndOfEpoch,
    /// there is no shared memory, not even for the first buffer, in PostgreSQL's words
    Unable(String),
}

impl Remote {
    /// Starts a worker on a query that is running here.
    ///
    /// # Errors
    /// Why there is none.
    pub fn start(job: &LoadRequest, query: &Running) -> std::result::Result<Remote, Unavailable> {
        let plan = query.plan_bytes();
        let text = serde_json::to_vec(job).expect("plain values are always JSON");
        let leader = Leader::launch(worker::KIND.name, &[&text, &plan.plan, &plan.text], query.snapshot())?;
        // one that is to be resumed is still to be begun
        let epoch = job.epoch() - u64::from(matches!(job.task, Task::Resume { .. }));
        Ok(Remote { leader, epoch, waits: job.waits, progress: Progress::default() })
    }

    /// The epoch whose buffers are being read.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How the source falls into blocks, as far as the worker has read it.
    pub fn geometry(&self) -> Geometry {
        self.progress.geometry()
    }

    /// What the full shuffle for the epoch has cost.
    pub fn full_shuffle(&self) -> Option<FullShuffle> {
        self.progress.full_shuffle
    }

    /// Waits for the end of the preparation pass.
    ///
    /// # Errors
    /// [`TrainingError::WorkerLost`]; those of the worker are raised.
    pub fn prepare(&mut self, decoder: &mut Decoder) -> Result<()> {
        match self.leader.next(&mut Batch::dense(0))? {
            Event::Other(WorkerMessage::Progress(progress)) => {
                self.take(*progress, decoder);
                Ok(())
            }
            _ => Err(TrainingError::WorkerLost.into()),
        }
    }

    /// Waits for the next buffer of the epoch.
    ///
    /// # Errors
    /// As [`prepare`](Remote::prepare).
    pub fn next(&mut self, decoder: &mut Decoder, batch: &mut Batch) -> Result<Next> {
        match self.leader.next(batch)? {
            Event::Filled => Ok(Next::Filled),
            Event::Other(WorkerMessage::Unable(why)) => Ok(Next::Unable(why)),
            Event::Other(WorkerMessage::Progress(progress)) => {
                batch.clear();
                self.take(*progress, decoder);
                Ok(Next::EndOfEpoch)
            }
            Event::Other(WorkerMessage::Done(_)) => Err(TrainingError::WorkerLost.into()),
        }
    }

    fn take(&mut self, mut progress: Progress, decoder: &mut Decoder) {
        if let Some(found) = progress.found.take() {
            decoder.adopt(&found);
        }
        decoder.set_counts(progress.counts);
        self.progress = progress;
    }

    /// The worker may go on to the next epoch, if it has not already.
    pub fn next_epoch(&mut self) {
        self.epoch += 1;
        if self.waits {
            self.leader.start_epoch();
        }
    }

    /// Ends the worker. If it is through with all epochs, the leader's nodes show what it has measured.
    ///
    /// # Errors
    /// As [`prepare`](Remote::prepare).
    pub fn finish(mut self, query: &Running, batch: &mut Batch, through: bool) -> Result<()> {
        if through && let Event::Other(WorkerMessage::Done(done)) = self.leader.next(batch)? {
            query.add_measured(&done.instruments);
            query.top::<TupleShuffle>().with(|scan, node| scan.add_report(node, done.nodes));
        }
        self.leader.finish(batch);
        Ok(())
    }
}

/// What the nodes of a query have measured.
fn report(query: &Running) -> tuple_shuffle::Report {
    query.top::<TupleShuffle>().with(|scan, node| scan.report(node))
}
