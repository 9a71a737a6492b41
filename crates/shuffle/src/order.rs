//! The order of a whole epoch, tuple by tuple, without a table.

use crate::permutation::block_order_pausing;
use crate::random::{PER_PAUSE, count};
use crate::{Geometry, Mixer, SortKeys, Strategy};

/// The memory for an order could not be allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: an order of {tuples} tuples could not be allocated")]
pub struct OutOfMemory {
    /// Tuples of the table.
    pub tuples: u32,
}

/// The numbers, from 0, of a table's tuples in the order in which SGD sees them in one epoch: what training does with
/// blocks of pages, done with blocks of tuples ([`Geometry::of_tuples`]).
pub struct TupleOrder<P> {
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
    pause: P,
}

/// How often a sort asks whether to go on: once in this many comparisons.
const COMPARISONS_PER_PAUSE: u32 = 1 << 18;

impl<P: FnMut()> TupleOrder<P> {
    /// The order of `epoch`. `pause` is called now and then during whatever takes long; it may panic to end it.
    pub fn new(
        strategy: Strategy,
        seed: i64,
        epoch: u64,
        geometry: Geometry,
        mut pause: P,
    ) -> Result<TupleOrder<P>, OutOfMemory> {
        let keys = SortKeys::for_epoch(strategy, seed, epoch);
        let copy = keys.map(|keys| sorted(keys, geometry.pages, &mut pause)).transpose()?;
        // The order of the blocks is made in one go, and dealt to buffers meanwhile: room for both.
        let blocks = 2 * geometry.blocks as usize;
        room(&mut Vec::<u32>::new(), blocks, geometry.pages)?;
        let mut order = TupleOrder {
            geometry,
            mixer: Mixer::new(strategy, seed),
            blocks: Vec::new(),
            position: 0,
            copy,
            buffer: Vec::new(),
            order: Vec::new(),
            given: 0,
            pause,
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
        let sizes = [self.geometry.blocks, self.geometry.buffers()];
        self.blocks = block_order_pausing(strategy, seed, epoch, sizes, &mut self.pause);
        self.position = 0;
    }

    /// The number of the next tuple, None at the end.
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
        let mut since_pause = 0;
        for block in &self.blocks[self.position..until] {
            let tuples = self.geometry.pages_of(*block);
            room(&mut self.buffer, tuples.len(), self.geometry.pages)?;
            // many small blocks, or a large one
            since_pause += tuples.len();
            if since_pause >= PER_PAUSE {
                since_pause = 0;
                (self.pause)();
            }
            match &self.copy {
                Some(copy) => {
                    for part in copy[tuples.start as usize..tuples.end as usize].chunks(PER_PAUSE) {
                        self.buffer.extend_from_slice(part);
                        if part.len() == PER_PAUSE {
                            (self.pause)();
                        }
                    }
                }
                None => count(tuples, &mut self.buffer, &mut self.pause),
            }
        }
        self.position = until;
        // a place per tuple, two with what a reservoir adds
        room(&mut self.order, 2 * self.buffer.len(), self.geometry.pages)?;
        let last = until == self.blocks.len();
        self.mixer.arrived(self.buffer.len(), last, &mut self.order, &mut self.pause);
        Ok(true)
    }
}

/// The numbers below `tuples` by their keys.
fn sorted(keys: SortKeys, tuples: u32, pause: &mut impl FnMut()) -> Result<Vec<u32>, OutOfMemory> {
    let (mut keyed, mut numbers) = (Vec::new(), Vec::new());
    room(&mut keyed, tuples as usize, tuples)?;
    room(&mut numbers, tuples as usize, tuples)?;
    for from in (0..tuples).step_by(PER_PAUSE) {
        let until = from.saturating_add(PER_PAUSE as u32).min(tuples);
        keyed.extend((from..until).map(|number| (keys.key(number.into()), number)));
        pause();
    }
    let mut comparisons = 0_u32;
    keyed.sort_unstable_by(|a, b| {
        comparisons = comparisons.wrapping_add(1);
        if comparisons.is_multiple_of(COMPARISONS_PER_PAUSE) {
            pause();
        }
        a.cmp(b)
    });
    for part in keyed.chunks(PER_PAUSE) {
        numbers.extend(part.iter().map(|(_, number)| *number));
        pause();
    }
    Ok(numbers)
}

fn room<T>(items: &mut Vec<T>, more: usize, tuples: u32) -> Result<(), OutOfMemory> {
    allocation::try_reserve(items, more).map_err(|_| OutOfMemory { tuples })
}
