//! Execution: whole buffers for SGD, slot by slot for any other parent.

use super::{TupleShuffle, blocks};
use crate::errors::{OrRaise, ResourceError, Result};
use crate::operators::Decoder;
use crate::operators::block_shuffle::Limits;
use crate::pg::check_for_interrupts;
use crate::pg::executor::custom_scan::Node;
use crate::pg::tuples::tuple_buffer::TupleBuffer;
use shuffle::CHUNKS_PER_BUFFER;
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

/// What holds the tuples in the buffer.
trait Held {
    fn len(&self) -> usize;
    fn bytes(&self) -> usize;
    /// Moves tuples, one after the other, and keeps the first `len`.
    fn keep(&mut self, node: Node, moves: impl Iterator<Item = (u32, u32)>, len: usize);
    /// Appends tuples of the blocks below, of which an epoch has begun.
    fn fill(&mut self, node: Node, limits: Limits) -> Result<()>;
    /// Writes into `order` the places of the tuples of the buffer as they came, if these are not simply all; says how many
    /// bytes they have.
    fn arrived(&self, _node: Node, _order: &mut Vec<u32>) -> Result<Option<usize>> {
        Ok(None)
    }
}

/// Decoded tuples.
struct Decoded<'a> {
    decoder: &'a mut Decoder,
    batch: &'a mut Batch,
    places: &'a mut Places,
}

/// Where sparse tuples are in the batch that are said to be in other places: none fits the place of another, so that all
/// close up in their sequence. Without entries every tuple is where it is said to be.
#[derive(Default)]
pub struct Places(Vec<u32>);

impl Places {
    /// Moves what is said of the tuples, and removes all behind the first `len`.
    fn keep(&mut self, batch: &mut Batch, moves: impl Iterator<Item = (u32, u32)>, len: usize) {
        moves.for_each(|(from, to)| self.0[to as usize] = self.0[from as usize]);
        self.0.truncate(len);
        // marked, then counted
        let mut moved = vec![0; batch.len()];
        self.0.iter().for_each(|place| moved[*place as usize] = 1);
        let mut stay = Vec::with_capacity(len);
        for (from, to) in (0..).zip(&mut moved).filter(|(_, stays)| **stays == 1) {
            *to = stay.len() as u32;
            stay.push(from);
        }
        batch.retain(&stay);
        self.0.iter_mut().for_each(|place| *place = moved[*place as usize]);
    }

    /// Makes places that are said those that are.
    fn translate(&self, order: &mut [u32]) {
        if !self.0.is_empty() {
            order.iter_mut().for_each(|place| *place = self.0[*place as usize]);
        }
    }
}

impl Held for Decoded<'_> {
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
                self.places.0.clear();
            }
            len if !self.batch.is_sparse() => self.batch.fill_holes(moves, len),
            len => {
                self.places.0.extend(self.places.0.len() as u32..self.batch.len() as u32);
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
        if !self.places.0.is_empty() {
            self.places.0.extend(self.places.0.len() as u32..self.batch.len() as u32);
        }
        result
    }

    fn arrived(&self, node: Node, order: &mut Vec<u32>) -> Result<Option<usize>> {
        blocks(node).with(|blocks, _| {
            let Some(arrived) = blocks.arrived() else { return Ok(None) };
            room(order, arrived.tuples)?;
            arrived.append_to(order);
            Ok(Some(arrived.bytes))
        })
    }
}

/// Makes room for places.
fn room(order: &mut Vec<u32>, places: usize) -> Result<()> {
    order.try_reserve(places).map_err(|_| ResourceError::OutOfMemory(places * size_of::<u32>()).into())
}

impl Held for TupleBuffer {
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
        blocks(node).with(|scan, _| scan.allow(limits.blocks));
        while (self.bytes() as u64) < limits.bytes {
            match node.child_row() {
                Some(row) => self.push(row),
                None => break,
            }
        }
        Ok(())
    }
}

impl TupleShuffle {
    /// Fills `batch`, which must be the same in every call, with the next buffer, and sets its order to that in which to
    /// learn. False, with an empty order, at the end of the epoch; what is in the batch by then may be wanted in the next.
    pub fn next_batch(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<bool> {
        let mut places = std::mem::take(&mut self.places);
        self.next_order(node, &mut Decoded { decoder, batch, places: &mut places })?;
        places.translate(&mut self.order);
        self.places = places;
        batch.set_order(&self.order)?;
        Ok(!self.order.is_empty())
    }

    /// Fills the buffer of tuples and mixes them. False at the end of the epoch.
    fn fill_slots(&mut self, node: Node) -> bool {
        node.scan_slot().clear();
        let mut tuples = self.tuples.take().unwrap_or_else(TupleBuffer::new);
        self.next_order(node, &mut tuples).or_raise();
        self.tuples = Some(tuples);
        self.position = 0;
        !self.order.is_empty()
    }

    /// Reads until there are tuples to give, or the epoch is over.
    fn next_order(&mut self, node: Node, held: &mut impl Held) -> Result<()> {
        self.order.clear();
        self.begin_epoch(node, held)?;
        while self.order.is_empty() && !self.mixer.ended() {
            self.read(node, held)?;
        }
        Ok(())
    }

    /// Begins the epoch, if that has not been done.
    fn begin_epoch(&mut self, node: Node, held: &mut impl Held) -> Result<()> {
        if self.begun {
            return Ok(());
        }
        let child = blocks(node);
        let epoch = child.with(|blocks, _| blocks.epoch());
        if self.mixer.needs_epoch_before(epoch) {
            child.with(|blocks, _| blocks.set_epoch(epoch - 1));
            self.mixer.begin_epoch(epoch - 1);
            while !self.mixer.ended() {
                self.read(node, held)?;
            }
            self.order.clear();
            child.with(|blocks, _| blocks.set_epoch(epoch));
        }
        self.mixer.begin_epoch(epoch);
        self.begun = true;
        Ok(())
    }

    /// Lets those tuples go that were learned from, reads others, and mixes them.
    fn read(&mut self, node: Node, held: &mut impl Held) -> Result<()> {
        let child = blocks(node);
        let kept = self.mixer.kept();
        held.keep(node, self.mixer.take_moves(), kept);
        child.run(|blocks, below| (blocks.begin_epoch(below), 0))?;
        let before = child.with(|blocks, _| blocks.blocks_read());
        held.fill(node, self.limits(node, held.bytes() as u64))?;
        let (read, last) = child.with(|blocks, _| (blocks.blocks_read() - before, blocks.at_end()));
        self.measured.blocks = self.measured.blocks.max(read);
        self.mix(node, held, last)
    }

    /// How much to read into a buffer that has `bytes` by now. If tuples stay in it, a part of its memory is left for those
    /// that come later.
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
    fn mix(&mut self, node: Node, held: &impl Held, last: bool) -> Result<()> {
        let start = self.timing.then(Instant::now);
        self.order.clear();
        let (tuples, bytes) = match held.arrived(node, &mut self.order)? {
            Some(bytes) => {
                let order = if self.shuffling.in_parts { &mut [][..] } else { &mut self.order };
                self.mixer.arrived_at(last, order, &mut check_for_interrupts);
                (self.order.len(), bytes)
            }
            None => {
                let tuples = held.len();
                // each tuple once, or, with one of a reservoir after each, twice
                room(&mut self.order, if self.mixer.keeps_tuples() { 2 * tuples } else { tuples })?;
                if self.shuffling.in_parts {
                    self.order.extend(0..tuples as u32);
                    self.mixer.arrived_at(last, &mut [], &mut check_for_interrupts);
                } else {
                    self.mixer.arrived_pausing(tuples, last, &mut self.order, &mut check_for_interrupts);
                }
                (tuples, held.bytes())
            }
        };
        self.measured.buffers += u64::from(!self.order.is_empty());
        self.measured.tuples = self.measured.tuples.max(tuples);
        self.measured.bytes = self.measured.bytes.max(bytes);
        if let Some(start) = start {
            self.measured.shuffle += start.elapsed();
        }
        Ok(())
    }
}
