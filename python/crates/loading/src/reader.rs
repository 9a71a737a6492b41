//! The batches of one process in one epoch.

use crate::batch::{Batch, Builder};
use crate::lane::Lane;
use crate::pipeline::{Job, Pipeline};
use crate::plan::{Plan, RowsOfBatch, Worker};
use source::SourceError;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reads the batches of a rank, or those of one of its workers, from any one on.
pub struct Reader {
    plan: Arc<Plan>,
    pipeline: Option<Pipeline>,
    epoch: u64,
    rank: u32,
    /// the next batch of the rank that is this worker's, and how many of others are behind it
    number: u64,
    stride: u64,
    /// what is in use, by lane
    lanes: HashMap<u32, Lane>,
    threads: usize,
    budget: u64,
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// A batch.
    Batch(Batch),
    /// Nothing yet: ask again.
    Pending,
    /// The end of the epoch.
    End,
}

impl Reader {
    /// A reader of the batches of `rank` in `epoch`, from batch number `from` on; of every this many of them, if there
    /// are several workers. It starts `threads` threads with the first batch, which hold `budget` bytes, or 0 for twice
    /// what the plan has in its buffers.
    pub fn new(
        plan: Arc<Plan>,
        epoch: u64,
        rank: u32,
        from: u64,
        worker: Worker,
        threads: usize,
        budget: u64,
    ) -> Reader {
        let active = plan.active_workers(worker.workers);
        let idle = worker.index >= active;
        let number = if idle { u64::MAX } else { from + u64::from(worker.index) };
        let lanes = HashMap::new();
        Reader { plan, pipeline: None, epoch, rank, number, stride: active.into(), lanes, threads, budget }
    }

    /// Waits for the next batch, no longer than `patience`.
    ///
    /// # Errors
    /// What cannot be read, once; then that it was cancelled.
    pub fn next(&mut self, patience: Duration) -> Result<Next, SourceError> {
        let until = Instant::now() + patience;
        let Some(rows) = self.rows_of(self.number) else {
            self.close();
            return Ok(Next::End);
        };
        if self.pipeline.is_none() {
            self.start()?;
        }
        if !self.has_all(&rows, until)? {
            return Ok(Next::Pending);
        }
        let batch = self.gather(&rows)?;
        self.number += self.stride;
        Ok(Next::Batch(batch))
    }

    fn rows_of(&self, number: u64) -> Option<RowsOfBatch> {
        if number == u64::MAX { None } else { self.plan.batch(self.rank, number) }
    }

    /// Ends the threads. There are no more batches then.
    pub fn close(&mut self) {
        self.number = u64::MAX;
        self.lanes.clear();
        if let Some(pipeline) = self.pipeline.take() {
            pipeline.join();
        }
    }

    fn start(&mut self) -> Result<(), SourceError> {
        let sequence = self.plan.sequence(self.epoch);
        let of_lanes = u64::from(self.plan.lanes()) / u64::from(self.plan.config().world_size) / self.stride;
        let windows = self.plan.config().shuffle.has_window();
        let mut lanes: Vec<(u32, u32)> = Vec::new();
        for turn in 0..of_lanes {
            if let Some(rows) = self.rows_of(self.number + turn * self.stride) {
                let first = if windows { 0 } else { sequence.buffer_of(&self.plan.lanes, rows.lane, rows.first) };
                lanes.push((rows.lane, first));
            }
        }
        self.lanes = lanes.iter().map(|(lane, _)| (*lane, Lane::new(&self.plan, self.epoch, *lane))).collect();
        let a_buffer = self.plan.rows() / u64::from(self.plan.buffers()) / u64::from(self.plan.lanes());
        let held = self.plan.bytes_of(a_buffer) * lanes.len() as u64;
        // room for blocks of unequal size
        let budget = if self.budget > 0 { self.budget } else { 2 * held + held / 8 };
        let job = Job { plan: self.plan.clone(), sequence, epoch: self.epoch, lanes, budget };
        let no_thread = |error| SourceError::Invalid(format!("the system gives no thread to read with: {error}"));
        self.pipeline = Some(Pipeline::start(job, self.threads).map_err(no_thread)?);
        Ok(())
    }

    /// Whether the rows of a batch are in memory.
    fn has_all(&mut self, rows: &RowsOfBatch, until: Instant) -> Result<bool, SourceError> {
        let (Some(pipeline), Some(lane)) = (&self.pipeline, self.lanes.get_mut(&rows.lane)) else { return Ok(true) };
        while let Some(row) = lane.lacks(rows) {
            let number = pipeline.job().sequence.buffer_of(&self.plan.lanes, rows.lane, row);
            let patience = until.saturating_duration_since(Instant::now());
            let Some(buffer) = pipeline.take((rows.lane, number), patience)? else { return Ok(false) };
            pipeline.release(lane.push(buffer));
        }
        Ok(true)
    }

    fn gather(&mut self, rows: &RowsOfBatch) -> Result<Batch, SourceError> {
        let mut builder = Builder::new(&self.plan.layout, rows.rows as usize + usize::from(rows.padded));
        let Some(pipeline) = &self.pipeline else { return builder.finish() };
        if let Some(lane) = self.lanes.get_mut(&rows.lane) {
            let released = lane.gather(rows, &mut builder)?;
            if released > 0 {
                pipeline.release(released);
            }
        }
        if rows.padded
            && let Some(row) = self.plan.substitute(&pipeline.job().sequence, rows.lane)
        {
            let again = pipeline.read_now(row)?;
            builder.gather(&again.pieces, &again.places)?;
        }
        builder.finish()
    }
}
