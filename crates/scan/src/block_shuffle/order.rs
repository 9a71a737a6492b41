//! The order in which an epoch's blocks are read: known when the epoch begins, or drawn on the way, together with other
//! readers.

/// The blocks of an epoch, in the order in which they are read, as far as it is known.
#[derive(Debug, Default)]
pub struct EpochOrder {
    drawn: Vec<u32>,
    blocks: usize,
    /// pages of the blocks that were not begun
    pages_left: u32,
}

impl EpochOrder {
    /// An order that is known, of blocks that have this many pages together.
    pub fn known(order: Vec<u32>, pages: u32) -> EpochOrder {
        EpochOrder { blocks: order.len(), drawn: order, pages_left: pages }
    }

    /// The order of this many blocks, each of which is still to be drawn.
    pub fn open(blocks: usize, pages: u32) -> EpochOrder {
        EpochOrder { drawn: Vec::new(), blocks, pages_left: pages }
    }

    pub fn blocks(&self) -> impl Iterator<Item = u32> {
        self.drawn.iter().copied()
    }

    pub fn len(&self) -> usize {
        self.blocks
    }

    pub fn drawn(&self) -> usize {
        self.drawn.len()
    }

    /// The next place is this block's.
    pub fn push(&mut self, block: u32) {
        self.drawn.push(block);
    }

    /// The block in a place; None if it is not drawn yet, or the place is beyond the last block.
    pub fn get(&self, place: usize) -> Option<u32> {
        self.drawn.get(place).copied()
    }

    /// No more than the first `blocks` blocks, all of which are drawn, are read.
    pub fn end_at(&mut self, blocks: usize) {
        self.drawn.truncate(blocks);
        (self.blocks, self.pages_left) = (self.drawn.len(), 0);
    }

    /// A block of this many pages was begun.
    pub fn begin_block(&mut self, pages: u32) {
        self.pages_left = self.pages_left.saturating_sub(pages);
    }

    /// Pages of the blocks that were not begun.
    pub fn pages_left(&self) -> u32 {
        self.pages_left
    }
}
