//! The order of a whole epoch, tuple by tuple, without a table.

use crate::{Geometry, Mixer, SortKeys, Strategy, block_order};

/// The memory for an order could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: an order of {tuples} tuples could not be allocated")]
pub struct OutOfMemory {
    /// Tuples of the table.
    pub tuples: u32,
}

/// The numbers, from 0, of a table's tuples in the order in which SGD sees them in one epoch: what training does with
/// blocks of pages, done with blocks of tuples ([`Geometry::of_tuples`]).
#[derive(Debug)]
pub struct TupleOrder {
    geometry: Geometry,
    mixer: Mixer,
    /// the blocks of the epoch, and how many of them were read
    blocks: Vec<u32>,
    position: usize,
    /// the tuples of the sorted copy, if there is one
    copy: Option<Vec<u32>>,
    /// the tuples in the buffer, by place; the places to learn from, and how many were given out
    buffer: Vec<u32>,
    order: Vec<u32>,
    given: usize,
}

/// How often a sort asks whether to go on: once in so many comparisons.
const COMPARISONS_PER_PAUSE: u32 = 1 << 20;

impl TupleOrder {
    /// The order of `epoch`. `pause` is called now and then during a long sort; it may panic to end it.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub fn new(
        strategy: Strategy,
        seed: i64,
        epoch: u64,
        geometry: Geometry,
        pause: impl FnMut(),
    ) -> Result<TupleOrder, OutOfMemory> {
        let copy = SortKeys::of(strategy, seed, epoch).map(|keys| sorted(keys, geometry.pages, pause)).transpose()?;
        // The order of the blocks is made in one go, and dealt to buffers meanwhile: room for both.
        let blocks = 2 * geometry.blocks as usize;
        room(Vec::<u32>::new().try_reserve_exact(blocks), geometry.pages)?;
        let mut order = TupleOrder {
            geometry,
            mixer: Mixer::new(strategy, seed),
            blocks: Vec::new(),
            position: 0,
            copy,
            buffer: Vec::new(),
            order: Vec::new(),
            given: 0,
        };
        if order.mixer.needs_epoch_before(epoch) {
            order.begin(strategy, seed, epoch - 1);
            while order.next_buffer()? {}
        }
        order.begin(strategy, seed, epoch);
        Ok(order)
    }

    fn begin(&mut self, strategy: Strategy, seed: i64, epoch: u64) {
        self.mixer.begin_epoch(epoch);
        self.blocks = block_order(strategy, seed, epoch, self.geometry.blocks, self.geometry.buffers());
        self.position = 0;
    }

    /// The number of the next tuple, None at the end.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub fn next_tuple(&mut self) -> Result<Option<u32>, OutOfMemory> {
        while self.given == self.order.len() {
            if !self.next_buffer()? {
                return Ok(None);
            }
        }
        self.given += 1;
        Ok(Some(self.buffer[self.order[self.given - 1] as usize]))
    }

    /// Fills the buffer. False at the end of the epoch.
    fn next_buffer(&mut self) -> Result<bool, OutOfMemory> {
        self.order.clear();
        self.given = 0;
        if self.mixer.ended() {
            return Ok(false);
        }
        for (from, to) in self.mixer.take_moves() {
            self.buffer[to as usize] = self.buffer[from as usize];
        }
        self.buffer.truncate(self.mixer.kept());
        let blocks = self.mixer.blocks(&self.geometry, self.position as u32) as usize;
        let until = (self.position + blocks).min(self.blocks.len());
        for block in &self.blocks[self.position..until] {
            let tuples = self.geometry.pages_of(*block);
            room(self.buffer.try_reserve(tuples.len()), self.geometry.pages)?;
            match &self.copy {
                Some(copy) => self.buffer.extend_from_slice(&copy[tuples.start as usize..tuples.end as usize]),
                None => self.buffer.extend(tuples),
            }
        }
        self.position = until;
        // a place per tuple, two with what a reservoir adds
        room(self.order.try_reserve(2 * self.buffer.len()), self.geometry.pages)?;
        self.mixer.arrived(self.buffer.len(), until == self.blocks.len(), &mut self.order);
        Ok(true)
    }
}

/// The numbers below `tuples` by their keys.
fn sorted(keys: SortKeys, tuples: u32, mut pause: impl FnMut()) -> Result<Vec<u32>, OutOfMemory> {
    let (mut keyed, mut numbers) = (Vec::new(), Vec::new());
    room(keyed.try_reserve_exact(tuples as usize), tuples)?;
    room(numbers.try_reserve_exact(tuples as usize), tuples)?;
    keyed.extend((0..tuples).map(|number| (keys.key(number.into()), number)));
    let mut comparisons = 0_u32;
    keyed.sort_unstable_by(|a, b| {
        comparisons = comparisons.wrapping_add(1);
        if comparisons.is_multiple_of(COMPARISONS_PER_PAUSE) {
            pause();
        }
        a.cmp(b)
    });
    numbers.extend(keyed.into_iter().map(|(_, number)| number));
    Ok(numbers)
}

fn room(reserved: Result<(), std::collections::TryReserveError>, tuples: u32) -> Result<(), OutOfMemory> {
    reserved.map_err(|_| OutOfMemory { tuples })
}
