//! The tuples of a running query, as whoever learns from them wants them.

use super::tuple_shuffle::TupleShuffle;
use super::{Decoder, FullShuffle};
use crate::error::{Error, Result};
use crate::pg::check_for_interrupts;
use crate::pg::custom_scan::Scan;
use crate::pg::query::Running;
use shuffle::{Deal, Geometry};
use std::time::Duration;
use tuples::{Batch, TupleSource};

/// The tuples of a source, buffer by buffer, epoch by epoch.
pub struct Buffers {
    query: Running,
    pub decoder: Decoder,
}

impl Buffers {
    pub fn new(query: Running, decoder: Decoder) -> Buffers {
        Buffers { query, decoder }
    }

    /// The query that is running.
    pub fn query(&self) -> &Running {
        &self.query
    }

    /// How the source falls into blocks, and how many of them the buffer really held; known once it has been read.
    pub fn geometry(&self) -> Geometry {
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

    fn full_shuffle(&self) -> Option<FullShuffle> {
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

    /// Is the source a table, and not a copy of what another plan gives?
    pub fn reads_table(&self) -> bool {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.reads_table(node))
    }

    /// Makes these the buffers of one of several processes, from the next epoch on: its share of the blocks, and its part of
    /// the memory. All of them see so many pages.
    pub fn set_deal(&mut self, deal: Deal, pages: u32) {
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
    /// What is wrong with the rows; [`Error::NoRows`]
    pub fn peek(&mut self, batch: &mut Batch) -> Result<()> {
        let Buffers { query, decoder } = self;
        let top: Scan<TupleShuffle> = query.top();
        query.run(|| {
            let epoch = top.with(|scan, node| scan.epoch(node));
            let (mut any, mut more) = (false, true);
            while more && !(any && !decoder.labels().lack_class()) {
                check_for_interrupts();
                batch.clear();
                more = top.with(|scan, node| scan.peek(node, decoder, batch))?;
                any |= !batch.is_empty();
            }
            top.with(|scan, node| scan.set_epoch(node, epoch));
            if any { Ok(()) } else { Err(Error::NoRows("train on")) }
        })
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
        let Buffers { query, decoder } = self;
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
        self.query.rescan();
        Ok(())
    }
}
