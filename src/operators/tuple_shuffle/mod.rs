//! CorgiPileTupleShuffle: mixes the tuples of some random blocks.
//!
//! Fills a buffer from the BlockShuffle below, decides in which order the tuples in it are learned from and which of
//! them stay ([`shuffle::Mixer`]), and gives them in that order, until the blocks are used up. To SGD it hands the whole
//! buffer as a Batch, to any other parent slots.

mod exec;
mod explain;

use super::block_shuffle::BlockShuffle;
use super::{FullShuffle, Shuffling};
use crate::pg::custom_scan::{CustomScan, Flags, Methods, Node, Scan};
use crate::pg::explain::Explain;
use crate::pg::tuple_buffer::TupleBuffer;
use exec::Places;
use shuffle::{Geometry, Mixer};
use std::time::Duration;

/// State of the node.
pub struct TupleShuffle {
    shuffling: Shuffling,
    mixer: Mixer,
    /// has this epoch begun?
    begun: bool,
    /// where the tuples in SGD's batch are
    places: Places,
    /// tuples for a parent that wants slots
    tuples: Option<TupleBuffer>,
    /// the order in which to give the tuples in the buffer, and how many of them were given as slots
    order: Vec<u32>,
    position: usize,
    timing: bool,
    measured: Measured,
}

/// What EXPLAIN ANALYZE shows.
#[derive(Default)]
struct Measured {
    buffers: u64,
    /// of the fullest buffer
    blocks: u64,
    tuples: usize,
    bytes: usize,
    shuffle: Duration,
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
            places: Places::default(),
            tuples: None,
            order: Vec::new(),
            position: 0,
            timing: node.timing(),
            measured: Measured::default(),
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

    /// How the source falls into blocks, and how many of them the buffer really held; known once it has been read.
    pub fn geometry(&self, node: Node) -> Geometry {
        let geometry = blocks(node).with(|scan, _| *scan.geometry());
        Geometry { buffer_blocks: self.measured.blocks.max(1) as u32, ..geometry }
    }

    /// What the full shuffle for the epoch under way has cost; None if the strategy makes none.
    pub fn full_shuffle(&self, node: Node) -> Option<FullShuffle> {
        blocks(node).with(|scan, _| scan.full_shuffle())
    }

    /// The number, from 1, of the block that was begun last in this epoch.
    pub fn block(&self, node: Node) -> usize {
        blocks(node).with(|scan, _| scan.blocks_begun())
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
