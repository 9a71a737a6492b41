//! CorgiPileTupleShuffle: mixes the tuples of some random blocks.
//!
//! Fills a buffer from the BlockShuffle below, shuffles an index over it, and gives the tuples in that order, until the
//! blocks are used up; then the next buffer. To SGD it hands the whole buffer as a Batch, to any other parent slots.

mod exec;
mod explain;

use super::Shuffling;
use super::block_shuffle::BlockShuffle;
use crate::pg::custom_scan::{CustomScan, Flags, Methods, Node, Scan};
use crate::pg::explain::Explain;
use crate::pg::tuple_buffer::TupleBuffer;
use shuffle::Geometry;
use std::time::Duration;

/// State of the node.
pub struct TupleShuffle {
    shuffling: Shuffling,
    /// number of the buffer within the epoch
    buffer: u64,
    /// tuples for a parent that wants slots, the order in which to give them, and how many were given
    tuples: Option<TupleBuffer>,
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
        TupleShuffle {
            shuffling: node.private(),
            buffer: 0,
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

    fn start_over(&mut self, node: Node) {
        self.buffer = 0;
        self.position = 0;
        self.order.clear();
        if let Some(tuples) = &mut self.tuples {
            node.scan_slot().clear();
            tuples.clear();
        }
    }
}

/// The BlockShuffle below.
fn blocks(node: Node) -> Scan<BlockShuffle> {
    node.child()
        .unwrap_or_else(|| pgrx::error!("CorgiPileTupleShuffle stands on another node than CorgiPileBlockShuffle"))
}
