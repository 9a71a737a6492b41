//! CorgiPileTupleShuffle: mixes the tuples of some random blocks.
//!
//! Fills a buffer from the BlockShuffle below, decides in which order the tuples in it are learned from and which of
//! them stay ([`shuffle::Mixer`]), and gives them in that order, until the blocks are used up. To SGD it hands the whole
//! buffer as a Batch, to any other parent slots.

mod exec;
mod explain;

use super::block_shuffle::{self, BlockShuffle};
use super::{Decoder, FullShuffle, Shuffling};
use crate::errors::Result;
use crate::pg::executor::custom_scan::{CustomScan, Flags, Methods, Node, Scan};
use crate::pg::executor::explain::Explain;
use crate::pg::process::parallel::Unavailable;
use crate::pg::tuples::tuple_buffer::TupleBuffer;
use exec::Places;
use serde::{Deserialize, Serialize};
use shuffle::{BlockPartition, Geometry, Mixer};
use std::time::Duration;
use tuples::Batch;

/// State of the node.
pub struct TupleShuffle {
    shuffling: Shuffling,
    mixer: Mixer,
    /// has this epoch begun?
    begun: bool,
    /// how many processes share the buffer's memory
    processes: u32,
    /// where the tuples in SGD's batch are
    places: Places,
    /// tuples for a parent that wants slots
    tuples: Option<TupleBuffer>,
    /// the order in which to give the tuples in the buffer, and how many of them were given as slots
    order: Vec<u32>,
    position: usize,
    timing: bool,
    measured: Measured,
    /// where buffers are filled, if there is a choice, and why
    loader: Option<(&'static str, Option<Unavailable>)>,
}

/// What EXPLAIN ANALYZE shows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Measured {
    buffers: u64,
    /// of the fullest buffer
    blocks: u64,
    tuples: usize,
    bytes: usize,
    shuffle: Duration,
}

/// What this node and the one below have found out and measured, for the nodes of the same plan in another process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    measured: Measured,
    below: block_shuffle::Report,
}

static METHODS: Methods = Methods::of::<TupleShuffle>(c"CorgiPileTupleShuffle");

impl CustomScan for TupleShuffle {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn begin(node: Node, eflags: Flags) -> TupleShuffle {
        node.use_minimal_slot();
        node.begin_child(eflags);
        let shuffling: Shuffling = node.private();
        TupleShuffle {
            mixer: Mixer::new(shuffling.strategy, shuffling.seed),
            shuffling,
            begun: false,
            processes: 1,
            places: Places::default(),
            tuples: None,
            order: Vec::new(),
            position: 0,
            timing: node.timing(),
            measured: Measured::default(),
            loader: None,
        }
    }

    fn next(&mut self, node: Node) -> bool {
        exec::next(self, node)
    }

    fn rescan(&mut self, node: Node) {
        self.start_over(node);
        node.rescan_child();
    }

    fn end(&mut self, node: Node) {
        node.end_child();
    }

    fn explain(&mut self, node: Node, explain: Explain) {
        explain::explain(self, node, explain);
    }
}

impl TupleShuffle {
    /// Makes the next scan one of this epoch.
    pub fn set_epoch(&mut self, node: Node, epoch: u64) {
        self.start_over(node);
        blocks(node).with(|scan, _| scan.set_epoch(epoch));
    }

    /// Says where buffers are filled, and why, for EXPLAIN.
    pub fn set_loader(&mut self, place: &'static str, why: Option<Unavailable>) {
        self.loader = Some((place, why));
    }

    /// Makes the next scan, the first of this process, one of this epoch, of a source whose tables had so many pages when
    /// another process began to read it.
    pub fn resume(&mut self, node: Node, epoch: u64, pages: Vec<u32>) {
        self.set_epoch(node, epoch);
        blocks(node).with(|scan, _| scan.set_pages(pages));
    }

    /// Keeps no tuples in the batch, which others see.
    pub fn keep_in_file_only(&mut self, node: Node) {
        blocks(node).with(|scan, _| scan.keep_in_file_only());
    }

    /// Are the tuples of all blocks kept?
    pub fn keeps_all(&self, node: Node) -> bool {
        blocks(node).with(|scan, _| scan.keeps_all())
    }

    /// Lets go of the tuples that are kept: another process reads on.
    pub fn forget(&mut self, node: Node) {
        blocks(node).with(|scan, _| scan.forget());
    }

    /// See [`BlockShuffle::pages_of_tables`].
    pub fn pages_of_tables(&self, node: Node) -> Option<Vec<u32>> {
        blocks(node).with(|scan, below| scan.pages_of_tables(below))
    }

    /// What was found out and measured here.
    pub fn report(&self, node: Node) -> Report {
        Report { measured: self.measured.clone(), below: blocks(node).with(|scan, _| scan.report()) }
    }

    /// Takes over what another process has found out, and adds what it has measured.
    pub fn add_report(&mut self, node: Node, report: Report) {
        let Report { measured, below } = report;
        self.measured.buffers += measured.buffers;
        self.measured.blocks = self.measured.blocks.max(measured.blocks);
        self.measured.tuples = self.measured.tuples.max(measured.tuples);
        self.measured.bytes = self.measured.bytes.max(measured.bytes);
        self.measured.shuffle += measured.shuffle;
        blocks(node).with(|scan, _| scan.add_report(below));
    }

    /// How the source falls into blocks, and how many of them the buffer really held; known once it has been read.
    pub fn geometry(&self, node: Node) -> Geometry {
        let (geometry, deal) = blocks(node).with(|scan, _| (*scan.geometry(), scan.deal()));
        let blocks = self.measured.blocks.max(1) as u32;
        let of_all =
            if deal == BlockPartition::SINGLE { blocks } else { geometry.buffer_blocks.min(blocks * deal.processes()) };
        Geometry { buffer_blocks: of_all, ..geometry }
    }

    /// How the source falls into blocks, and how many of them a buffer should hold; known once it has been opened.
    pub fn planned_geometry(&self, node: Node) -> Geometry {
        blocks(node).with(|scan, _| *scan.geometry())
    }

    /// What the full shuffle for the epoch under way has cost; None if the strategy makes none.
    pub fn full_shuffle(&self, node: Node) -> Option<FullShuffle> {
        blocks(node).with(|scan, _| scan.full_shuffle())
    }

    /// The number, from 1, of the block that was begun last in this epoch.
    pub fn block(&self, node: Node) -> usize {
        blocks(node).with(|scan, _| scan.blocks_begun())
    }

    /// Makes this the scan of one of several processes, from the next epoch on: see [`BlockShuffle::set_deal`].
    pub fn set_deal(&mut self, node: Node, deal: BlockPartition, pages: Vec<u32>) {
        self.mixer.set_deal(deal);
        self.processes = deal.processes();
        blocks(node).with(|scan, _| scan.set_deal(deal, pages));
    }

    /// The number, from 0, of the buffer that was filled last in this epoch, if there are several processes.
    pub fn buffer(&self, node: Node) -> u64 {
        blocks(node).with(|scan, _| scan.buffer())
    }

    /// See [`BlockShuffle::reads_tables`].
    pub fn reads_tables(&self, node: Node) -> bool {
        blocks(node).with(|scan, below| scan.reads_tables(below))
    }

    /// See [`BlockShuffle::peek`].
    ///
    /// # Errors
    /// What is wrong with the rows.
    pub fn peek(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<bool> {
        blocks(node).with(|scan, below| scan.peek(below, decoder, batch))
    }

    /// The epoch of the scan that is under way, or of the next.
    pub fn epoch(&self, node: Node) -> u64 {
        blocks(node).with(|scan, _| scan.epoch())
    }

    /// Ends the epoch. What is in the buffer may still be wanted in the next.
    fn start_over(&mut self, node: Node) {
        self.begun = false;
        self.position = 0;
        self.order.clear();
        node.scan_slot().clear();
    }
}

/// The BlockShuffle below.
fn blocks(node: Node) -> Scan<BlockShuffle> {
    node.child()
        .unwrap_or_else(|| pgrx::error!("CorgiPileTupleShuffle stands on another node than CorgiPileBlockShuffle"))
}
