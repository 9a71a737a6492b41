//! Execution: whole buffers for SGD, slot by slot for any other parent.

use super::{TupleShuffle, blocks};
use crate::error::{OrRaise, Result};
use crate::operators::Decoder;
use crate::pg::custom_scan::Node;
use crate::pg::tuple_buffer::TupleBuffer;
use shuffle::shuffle_tuples;
use std::time::Instant;
use tuples::Batch;

/// The next tuple, in the scan slot.
pub fn next(scan: &mut TupleShuffle, node: Node) -> bool {
    if scan.position == scan.order.len() && !scan.fill_slots(node) {
        return false;
    }
    let Some(tuples) = &scan.tuples else { return false };
    tuples.store(scan.order[scan.position] as usize, node.scan_slot());
    scan.position += 1;
    true
}

impl TupleShuffle {
    /// Clears `batch` and fills it with the next buffer, shuffled. False, with an empty batch, at the end of the epoch.
    pub fn next_batch(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<bool> {
        let child = blocks(node);
        let read = child.with(|blocks, _| blocks.blocks_read());
        batch.clear();
        // A buffer of blocks without visible tuples is not the end.
        while batch.is_empty() && !child.with(|blocks, _| blocks.at_end()) {
            child.run(|blocks, below| {
                let result = blocks.begin_epoch(below).and_then(|()| {
                    let limits = (blocks.left_in_buffer(), self.shuffling.buffer_memory());
                    blocks.fill(below, decoder, batch, limits)
                });
                (result, batch.len())
            })?;
        }
        let (tuples, bytes) = (batch.len(), batch.bytes());
        let (epoch, read) = child.with(|blocks, _| (blocks.epoch(), blocks.blocks_read() - read));
        self.measured.blocks = self.measured.blocks.max(read);
        self.shuffle(epoch, batch.order_mut(), tuples, bytes);
        Ok(tuples > 0)
    }

    /// Fills the buffer of tuples and shuffles it. False at the end of the epoch.
    fn fill_slots(&mut self, node: Node) -> bool {
        let child = blocks(node);
        let read = child.with(|blocks, _| blocks.blocks_read());
        node.scan_slot().clear();
        let mut tuples = self.tuples.take().unwrap_or_else(TupleBuffer::new);
        tuples.clear();
        while tuples.len() == 0 && !child.with(|blocks, _| blocks.at_end()) {
            let blocks = child.with(|blocks, below| blocks.begin_epoch(below).map(|()| blocks.left_in_buffer()));
            self.take_blocks(node, blocks.or_raise(), &mut tuples);
        }
        let mut order: Vec<u32> = (0..tuples.len() as u32).collect();
        let (epoch, read) = child.with(|blocks, _| (blocks.epoch(), blocks.blocks_read() - read));
        self.measured.blocks = self.measured.blocks.max(read);
        self.shuffle(epoch, &mut order, tuples.len(), tuples.bytes());
        self.order = order;
        self.position = 0;
        self.tuples = Some(tuples);
        !self.order.is_empty()
    }

    /// Takes the tuples of up to `blocks` blocks, or as many as the memory allows. The last of them may be split: what is
    /// left of it is the beginning of the next buffer.
    fn take_blocks(&mut self, node: Node, blocks: usize, tuples: &mut TupleBuffer) {
        super::blocks(node).with(|scan, _| scan.allow(blocks));
        while (tuples.bytes() as u64) < self.shuffling.buffer_memory() {
            match node.child_row() {
                Some(row) => tuples.push(row),
                None => return,
            }
        }
    }

    /// Shuffles the order of a full buffer.
    fn shuffle(&mut self, epoch: u64, order: &mut [u32], tuples: usize, bytes: usize) {
        if tuples == 0 {
            return;
        }
        let start = self.timing.then(Instant::now);
        shuffle_tuples(self.shuffling.strategy, self.shuffling.seed, epoch, self.buffer, order);
        self.buffer += 1;
        self.measured.buffers += 1;
        self.measured.tuples = self.measured.tuples.max(tuples);
        self.measured.bytes = self.measured.bytes.max(bytes);
        if let Some(start) = start {
            self.measured.shuffle += start.elapsed();
        }
    }
}
