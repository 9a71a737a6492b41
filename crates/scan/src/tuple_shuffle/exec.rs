//! Execution: whole buffers for SGD, slot by slot for any other parent.

use super::places::SparsePlaces;
use super::state::{TupleShuffle, blocks};
use crate::block_shuffle::Limits;
use crate::scan_control::ScanControl;
use decode::Decoder;
use errors::{OrRaise, Result};
use pg::check_for_interrupts;
use pg::executor::custom_scan::Node;
use pg::tuples::slot::Slot;
use pg::tuples::tuple_buffer::TupleBuffer;
use shuffle::CHUNKS_PER_BUFFER;
use std::time::Instant;
use tuples::Batch;

pub fn next(scan: &mut TupleShuffle, node: Node) -> bool {
    scan.give(node.scan_slot()) || (scan.fill_slots(node) > 0 && scan.give(node.scan_slot()))
}

/// How many tuples before it is given a tuple is prefetched, and how many before that its place: the buffer is larger
/// than the caches.
const AHEAD: usize = 8;

/// The buffer's tuples, whatever holds them.
trait HeldTuples {
    fn len(&self) -> usize;
    fn bytes(&self) -> usize;
    /// Moves tuples, one after the other, and keeps the first `len`.
    fn keep(&mut self, node: Node, moves: impl Iterator<Item = (u32, u32)>, len: usize);
    /// Appends tuples of the blocks below, of which an epoch has begun.
    fn fill(&mut self, node: Node, limits: Limits) -> Result<()>;
    /// Writes into `order` the places of the tuples of the buffer as they came, if these are not simply all; says how
    /// many bytes they have.
    fn arrived(&self, _node: Node, _order: &mut Vec<u32>) -> Result<Option<usize>> {
        Ok(None)
    }
}

struct DecodedTuples<'a> {
    decoder: &'a mut Decoder,
    batch: &'a mut Batch,
    places: &'a mut SparsePlaces,
}

impl HeldTuples for DecodedTuples<'_> {
    fn len(&self) -> usize {
        self.batch.len()
    }

    fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    fn keep(&mut self, node: Node, moves: impl Iterator<Item = (u32, u32)>, len: usize) {
        match len {
            0 => {
                match blocks(node).with(|blocks, _| blocks.tuples_kept()) {
                    Some(kept) => {
                        self.batch.truncate(kept);
                        self.batch.detach_order();
                    }
                    None => self.batch.clear(),
                }
                self.places.clear();
            }
            len if !self.batch.is_sparse() => self.batch.fill_holes(moves, len),
            len => {
                self.places.extend_to(self.batch.len());
                self.places.keep(self.batch, moves, len);
            }
        }
    }

    fn fill(&mut self, node: Node, limits: Limits) -> Result<()> {
        let before = self.batch.len();
        let result = blocks(node).run(|blocks, below| {
            let result = blocks.fill(below, self.decoder, self.batch, limits);
            let given = blocks.arrived().map_or(self.batch.len() - before, |arrived| arrived.tuples);
            (result, given)
        });
        if !self.places.is_empty() {
            self.places.extend_to(self.batch.len());
        }
        result
    }

    fn arrived(&self, node: Node, order: &mut Vec<u32>) -> Result<Option<usize>> {
        blocks(node).with(|blocks, _| {
            let Some(arrived) = blocks.arrived() else { return Ok(None) };
            allocation::try_reserve(order, arrived.tuples)?;
            arrived.append_to(order);
            Ok(Some(arrived.bytes))
        })
    }
}

impl HeldTuples for TupleBuffer {
    fn len(&self) -> usize {
        self.len()
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn keep(&mut self, _node: Node, moves: impl Iterator<Item = (u32, u32)>, len: usize) {
        self.fill_holes(moves, len);
    }

    /// The last of the blocks may be split by the memory: what is left of it comes first the next time.
    fn fill(&mut self, node: Node, limits: Limits) -> Result<()> {
        let before = self.len();
        blocks(node).run(|scan, below| {
            scan.allow(limits.blocks);
            while (self.bytes() as u64) < limits.bytes {
                match scan.next_row(below) {
                    Some(row) => self.push(row),
                    None => break,
                }
            }
            (Ok(()), self.len() - before)
        })
    }
}

impl TupleShuffle {
    /// Decodes the next block of the epoch into `batch`, to look at it: nothing of it is counted.
    /// False at the end of the epoch.
    pub fn peek(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<bool> {
        blocks(node).with(|scan, below| scan.peek(below, decoder, batch))
    }

    /// Fills `batch`, which must be the same in every call, with the next buffer, and sets its order to that in which
    /// to learn. False, with an empty order, at the end of the epoch;
    /// what is in the batch by then may be wanted in the next.
    pub fn next_batch(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<bool> {
        let mut places = std::mem::take(&mut self.places);
        self.next_order(node, &mut DecodedTuples { decoder, batch, places: &mut places })?;
        places.translate(&mut self.order);
        self.places = places;
        let any = !self.order.is_empty();
        batch.take_order(&mut self.order)?;
        Ok(any)
    }

    /// Puts the next tuple of the buffer into a slot for minimal tuples. False if all were given.
    #[inline]
    pub fn give(&mut self, slot: Slot<'_>) -> bool {
        let (Some(tuples), Some(i)) = (&mut self.tuples, self.order.get(self.position)) else { return false };
        if let Some(place) = self.order.get(self.position + 2 * AHEAD) {
            tuples.prefetch_place(*place as usize);
        }
        if let Some(ahead) = self.order.get(self.position + AHEAD) {
            tuples.prefetch(*ahead as usize);
        }
        tuples.store(*i as usize, slot);
        self.position += 1;
        true
    }

    /// Fills the buffer of tuples and mixes them. How many there are to give: 0 at the end of the epoch.
    pub fn fill_slots(&mut self, node: Node) -> usize {
        node.scan_slot().clear();
        let mut tuples = self.tuples.take().unwrap_or_else(TupleBuffer::new);
        self.next_order(node, &mut tuples).or_raise();
        self.tuples = Some(tuples);
        self.position = 0;
        self.order.len()
    }

    /// Reads until there are tuples to give, or the epoch is over.
    fn next_order(&mut self, node: Node, held: &mut impl HeldTuples) -> Result<()> {
        self.order.clear();
        self.begin_epoch(node, held)?;
        while self.order.is_empty() && !self.mixer.ended() {
            self.read(node, held)?;
        }
        Ok(())
    }

    /// Begins the epoch, if that has not been done.
    fn begin_epoch(&mut self, node: Node, held: &mut impl HeldTuples) -> Result<()> {
        if self.begun {
            return Ok(());
        }
        let child = blocks(node);
        let epoch = child.with(|blocks, _| blocks.epoch());
        let set_epoch = |epoch| child.with(|blocks, _| blocks.control(&ScanControl::epoch(epoch)));
        if self.mixer.needs_epoch_before(epoch) {
            set_epoch(epoch - 1);
            self.mixer.begin_epoch(epoch - 1);
            while !self.mixer.ended() {
                self.read(node, held)?;
            }
            self.order.clear();
            set_epoch(epoch);
        }
        self.mixer.begin_epoch(epoch);
        self.begun = true;
        Ok(())
    }

    /// Lets those tuples go that were learned from, reads others, and mixes them.
    fn read(&mut self, node: Node, held: &mut impl HeldTuples) -> Result<()> {
        let child = blocks(node);
        let kept = self.mixer.kept();
        held.keep(node, self.mixer.take_moves(), kept);
        child.run(|blocks, below| (blocks.begin_epoch(below), 0))?;
        let before = child.with(|blocks, _| blocks.blocks_read());
        held.fill(node, self.limits(node, held.bytes() as u64))?;
        let (read, last) = child.with(|blocks, _| (blocks.blocks_read() - before, blocks.at_end()));
        self.mix(node, held, last)?;
        // a sample before the first epoch says nothing of the buffers that are learned from
        if !child.with(|blocks, _| blocks.is_sampling()) {
            self.counters.blocks = self.counters.blocks.max(read);
            self.counters.buffers += u64::from(!self.order.is_empty());
        }
        Ok(())
    }

    /// How much to read into a buffer that has `bytes` by now. If tuples stay in it, a part of its memory is left for
    /// those that come later.
    fn limits(&self, node: Node, bytes: u64) -> Limits {
        let blocks = blocks(node).with(|scan, _| match self.shuffling.block_by_block {
            true => usize::from(scan.at_block_end()),
            false => scan.blocks_for(&self.mixer),
        });
        let memory = self.shuffling.buffer_memory() / u64::from(self.processes);
        if !self.mixer.keeps_tuples() {
            return Limits { blocks, bytes: memory, spare: (0, 0) };
        }
        let (chunk, parts) = (memory / u64::from(CHUNKS_PER_BUFFER + 1), CHUNKS_PER_BUFFER as usize);
        // an estimate of what is to come must not fall short by a little: the buffer would be doubled
        let spare = (blocks.div_ceil(parts) + blocks.div_ceil(4 * parts), chunk);
        Limits { blocks, bytes: (memory - chunk).max(bytes + chunk), spare }
    }

    /// Finds the order of the tuples in the buffer, `last` if no more will come in this epoch.
    fn mix(&mut self, node: Node, held: &impl HeldTuples, last: bool) -> Result<()> {
        let start = self.timing.then(Instant::now);
        self.order.clear();
        let (tuples, bytes) = match held.arrived(node, &mut self.order)? {
            Some(bytes) => {
                let order = if self.shuffling.shuffled_above { &mut [][..] } else { &mut self.order };
                self.mixer.arrived_at(last, order, &mut check_for_interrupts);
                (self.order.len(), bytes)
            }
            None => {
                let tuples = held.len();
                // each tuple once, or, with one of a reservoir after each, twice
                let places = if self.mixer.keeps_tuples() { 2 * tuples } else { tuples };
                allocation::try_reserve(&mut self.order, places)?;
                if self.shuffling.shuffled_above {
                    self.order.extend(0..tuples as u32);
                    self.mixer.arrived_at(last, &mut [], &mut check_for_interrupts);
                } else {
                    self.mixer.arrived(tuples, last, &mut self.order, &mut check_for_interrupts);
                }
                (tuples, held.bytes())
            }
        };
        self.counters.tuples = self.counters.tuples.max(tuples);
        self.counters.bytes = self.counters.bytes.max(bytes);
        if let Some(start) = start {
            self.counters.shuffle += start.elapsed();
        }
        Ok(())
    }
}
