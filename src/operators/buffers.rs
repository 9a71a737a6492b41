//! The tuples of a running query, as whoever learns from them wants them.

use super::loader::{LoadRequest, Next, Remote};
use super::tuple_shuffle::TupleShuffle;
use super::{Decoder, FullShuffle, preparation};
use crate::errors::{Error, Result, TrainingError};
use crate::pg::check_for_interrupts;
use crate::pg::executor::custom_scan::Scan;
use crate::pg::executor::query::Running;
use crate::pg::process::parallel::{NO_SHARED_MEMORY, Unavailable};
use shuffle::{BlockPartition, Geometry};
use std::time::Duration;
use tuples::{Batch, TupleSource};

/// The tuples of a source, buffer by buffer, epoch by epoch.
pub struct Buffers {
    query: Running,
    pub decoder: Decoder,
    /// the worker that fills them, if one does
    remote: Option<Remote>,
    /// why there is none although one was started
    unable: Option<Unavailable>,
}

impl Buffers {
    pub fn new(query: Running, decoder: Decoder) -> Buffers {
        Buffers { query, decoder, remote: None, unable: None }
    }

    /// The query that is running.
    pub fn query(&self) -> &Running {
        &self.query
    }

    /// How the source falls into blocks, and how many of them the buffer really held; known once it has been read.
    pub fn geometry(&self) -> Geometry {
        if let Some(remote) = &self.remote {
            return remote.geometry();
        }
        self.query.top::<TupleShuffle>().with(|scan, node| scan.geometry(node))
    }

    /// Time that a full shuffle before this epoch took.
    pub fn full_shuffle_time(&self) -> Duration {
        self.full_shuffle().map_or(Duration::ZERO, |copy| copy.time)
    }

    /// Space that the copy of a full shuffle takes; None if there is none.
    pub fn full_shuffle_bytes(&self) -> Option<u64> {
        self.full_shuffle().map(|copy| copy.bytes)
    }

    /// What the full shuffle for the epoch under way has cost; None if the strategy makes none.
    pub fn full_shuffle(&self) -> Option<FullShuffle> {
        if let Some(remote) = &self.remote {
            return remote.full_shuffle();
        }
        self.query.top::<TupleShuffle>().with(|scan, node| scan.full_shuffle(node))
    }

    /// The number, from 1, in the epoch's order, of the block of which the last batch has tuples, with
    /// [`Shuffling::block_by_block`](super::Shuffling).
    pub fn block(&self) -> usize {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.block(node))
    }

    /// How the source falls into blocks, and how many of them a buffer should hold; known once it has been opened.
    pub fn planned_geometry(&self) -> Geometry {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.planned_geometry(node))
    }

    /// Makes the next epoch this one.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.set_epoch(node, epoch));
    }

    /// Does the source consist of tables, and not of a copy of what another plan gives?
    pub fn reads_tables(&self) -> bool {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.reads_tables(node))
    }

    /// Pages of each of these tables; known once they have been opened.
    pub fn pages_of_tables(&self) -> Option<Vec<u32>> {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.pages_of_tables(node))
    }

    /// Makes these the buffers of one of several processes, from the next epoch on: its share of the blocks, and its part of
    /// the memory. All of them see so many pages of each table.
    pub fn set_deal(&mut self, deal: BlockPartition, pages: Vec<u32>) {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.set_deal(node, deal, pages));
    }

    /// The number, from 0, of the buffer that was filled last in this epoch, if there are several processes.
    pub fn buffer(&self) -> u64 {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.buffer(node))
    }

    /// Reads from the epoch that is about to begin, which then begins anew, until it is known what tuples are like:
    /// how long they are, and of two classes both. `batch` has the last of them.
    ///
    /// # Errors
    /// What is wrong with the rows; [`TrainingError::NoRows`]
    pub fn peek(&mut self, batch: &mut Batch) -> Result<()> {
        let Buffers { query, decoder, .. } = self;
        let top: Scan<TupleShuffle> = query.top();
        query.run(|| {
            let epoch = top.with(|scan, node| scan.epoch(node));
            let (mut any, mut more) = (false, true);
            while more && (!any || decoder.labels().lack_class()) {
                check_for_interrupts();
                batch.clear();
                more = top.with(|scan, node| scan.peek(node, decoder, batch))?;
                any |= !batch.is_empty();
            }
            top.with(|scan, node| scan.set_epoch(node, epoch));
            if any { Ok(()) } else { Err(TrainingError::NoRows("train on").into()) }
        })
    }

    /// Has a worker process do this from now on.
    ///
    /// # Errors
    /// Why there is none.
    pub fn load_elsewhere(&mut self, job: &LoadRequest) -> std::result::Result<(), Unavailable> {
        self.remote = Some(Remote::start(job, &self.query)?);
        Ok(())
    }

    /// Ends the worker process, if there is one, after all epochs; `batch` has no buffer any more. What it has measured is
    /// added to what the nodes have.
    ///
    /// # Errors
    /// [`TrainingError::WorkerLost`]; those of the worker are raised.
    pub fn end_worker(&mut self, batch: &mut Batch) -> Result<()> {
        match self.remote.take() {
            Some(remote) => remote.finish(&self.query, batch, true),
            None => Ok(()),
        }
    }

    /// As [`end_worker`](Buffers::end_worker), before all epochs are over.
    ///
    /// # Errors
    /// As there.
    pub fn stop_worker(&mut self, batch: &mut Batch) -> Result<()> {
        match self.remote.take() {
            Some(remote) => remote.finish(&self.query, batch, false),
            None => Ok(()),
        }
    }

    /// Why the worker has not filled a single buffer, if so.
    pub fn unable(&self) -> Option<&Unavailable> {
        self.unable.as_ref()
    }

    /// Goes through all rows before the first epoch; see [`preparation`].
    ///
    /// # Errors
    /// Those of [`preparation::prepare`].
    pub fn prepare(&mut self, batch: &mut Batch, standardize: bool) -> Result<()> {
        match &mut self.remote {
            Some(remote) => remote.prepare(&mut self.decoder),
            None => preparation::prepare(self, batch, standardize),
        }
    }

    /// Begins the epoch here that the worker could not begin.
    fn load_here(&mut self, batch: &mut Batch, why: &str) -> Result<()> {
        let Some(remote) = self.remote.take() else { return Ok(()) };
        let epoch = remote.epoch();
        remote.finish(&self.query, batch, false)?;
        self.unable = Some(format!("{NO_SHARED_MEMORY}: {why}").into());
        self.decoder.begin_epoch();
        self.query.top::<TupleShuffle>().with(|scan, node| scan.set_epoch(node, epoch));
        *batch = Batch::dense(0);
        Ok(())
    }

    /// Ends the query.
    pub fn finish(self) {
        self.into_decoder();
    }

    /// Ends the query, and keeps what was learned about its rows.
    pub fn into_decoder(self) -> Decoder {
        self.query.finish();
        self.decoder
    }
}

impl TupleSource for Buffers {
    type Error = Error;

    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        if let Some(remote) = &mut self.remote {
            match remote.next(&mut self.decoder, batch)? {
                Next::Filled => return Ok(true),
                Next::EndOfEpoch => return Ok(false),
                Next::Unable(why) => self.load_here(batch, &why)?,
            }
        }
        let Buffers { query, decoder, .. } = self;
        let top: Scan<TupleShuffle> = query.top();
        query.run(|| {
            top.run(|scan, node| {
                let result = scan.next_batch(node, decoder, batch);
                (result, batch.order().len())
            })
        })
    }

    fn next_epoch(&mut self) -> Result<()> {
        self.decoder.begin_epoch();
        match &mut self.remote {
            Some(remote) => remote.next_epoch(),
            None => self.query.rescan(),
        }
        Ok(())
    }
}
