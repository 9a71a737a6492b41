//! The node's state, and what the reader above controls and learns.

use super::places::SparsePlaces;
use crate::block_shuffle::BlockShuffle;
use crate::scan_control::{BlockCounters, BufferCounters, LoaderShown, ScanControl, ScanReport};
use options::shuffling::Shuffling;
use pg::executor::custom_scan::{Flags, Node, Scan};
use pg::tuples::tuple_buffer::TupleBuffer;
use shuffle::{BlockPartition, Mixer};

/// State of the node.
pub struct TupleShuffle {
    pub(super) shuffling: Shuffling,
    pub(super) mixer: Mixer,
    pub(super) begun: bool,
    /// how many processes share the buffer's memory
    pub(super) processes: u32,
    /// where the tuples in SGD's batch are
    pub(super) places: SparsePlaces,
    /// tuples for a parent that wants slots
    pub(super) tuples: Option<TupleBuffer>,
    /// the order in which to give the tuples in the buffer, and how many of them were given as slots
    pub(super) order: Vec<u32>,
    pub(super) position: usize,
    pub(super) timing: bool,
    pub(super) counters: BufferCounters,
    /// who fills the buffers, if there is a choice
    pub(super) loader: Option<LoaderShown>,
}

impl TupleShuffle {
    /// The state of a node that begins.
    pub fn new(node: Node, eflags: Flags) -> TupleShuffle {
        node.use_minimal_slot();
        node.begin_child(eflags);
        let shuffling: Shuffling = node.private();
        TupleShuffle {
            mixer: Mixer::new(shuffling.strategy, shuffling.seed),
            shuffling,
            begun: false,
            processes: 1,
            places: SparsePlaces::default(),
            tuples: None,
            order: Vec::new(),
            position: 0,
            timing: node.timing(),
            counters: BufferCounters::default(),
            loader: None,
        }
    }

    /// Takes the control of the reader above, and passes it on.
    pub fn control(&mut self, node: Node, control: &ScanControl) {
        if control.epoch.is_some() {
            self.start_over(node);
        }
        if let Some(rank) = control.rank {
            self.mixer.set_deal(rank.partition());
            self.processes = rank.processes;
        }
        if let Some(loader) = &control.loader {
            self.loader = Some(loader.clone());
        }
        blocks(node).with(|scan, _| scan.control(control));
    }

    /// Reports the findings and measurements of this node and the one below.
    pub fn report(&self, node: Node) -> ScanReport {
        let (report, partition) = blocks(node).with(|scan, below| (scan.report(below), scan.partition()));
        let blocks = self.counters.blocks.max(1) as u32;
        let buffer_blocks = match partition == BlockPartition::SINGLE {
            true => blocks,
            false => report.planned_geometry.buffer_blocks.min(blocks * partition.processes()),
        };
        ScanReport { buffer_blocks, buffers: self.counters.clone(), ..report }
    }

    /// Takes over the findings of another process, and adds its measurements.
    pub fn adopt(&mut self, node: Node, report: &ScanReport) {
        self.counters.add(&report.buffers);
        blocks(node).with(|scan, _| scan.adopt(report));
    }

    /// Adds what another process has measured that has read a part of the blocks.
    pub fn count(&mut self, node: Node, counters: &BlockCounters) {
        blocks(node).with(|scan, _| scan.count(counters));
    }

    /// Ends the epoch. What is in the buffer may still be wanted in the next.
    pub(super) fn start_over(&mut self, node: Node) {
        self.begun = false;
        self.position = 0;
        self.order.clear();
        node.scan_slot().clear();
    }
}

pub fn blocks(node: Node) -> Scan<BlockShuffle> {
    node.child().unwrap_or_else(|| pgrx::error!("the input of CorgiPileTupleShuffle is not CorgiPileBlockShuffle"))
}
