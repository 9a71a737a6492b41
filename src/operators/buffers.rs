//! The tuples of a running query, as whoever learns from them wants them.

use super::tuple_shuffle::TupleShuffle;
use super::{Decoder, FullShuffle};
use crate::error::{Error, Result};
use crate::pg::custom_scan::Scan;
use crate::pg::query::Running;
use shuffle::Geometry;
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
