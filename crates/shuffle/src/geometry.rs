//! How a table's pages fall into blocks, and how many blocks the buffer holds.
//!
//! It guarantees that every page is in exactly one block, that the default leaves enough blocks in the buffer to mix
//! classes, and that an epoch does not end with a scrap of a buffer.
//!
//! It prevents two failures. In the authors' prototype, 10 MB blocks of a 289 MB table left two or three blocks in a
//! 10% buffer, and the accuracy on clustered data came out anywhere between chance and a full shuffle's. And if buffers
//! are filled to the brim, the last one holds what is left: of 642 blocks with 64 in the buffer, two. When tuples are
//! sorted by label these are of one class, and as they are the last that SGD sees, they spoil the model of every epoch:
//! 0.60 instead of 0.89 on 400,000 x 28. So the blocks are spread evenly over as few buffers as do.
//!
//! What is automatic depends on what a seek costs. Where it is expensive, blocks are large, and the buffer, a tenth of
//! the table, holds many of them. Where it is cheap, blocks are small, and a buffer of some hundreds of them fits the
//! caches of the processor: an epoch of 1.7 GB in memory took 147 ns a row with a tenth of it as the buffer, and 103
//! with 16 MB (`benches/speed/run calls`).

use crate::size::{BlockSize, BufferSize, CHEAP_BLOCK_BYTES, MAX_BLOCK_BYTES, SizeError, WHOLE_TABLE_BYTES};
use std::ops::Range;

/// How many blocks the buffer holds at least if the block size is automatic and a block is more than a page.
///
/// Many, because neighbours are alike in more than their label: kdd99 sorted by label has bursts of one attack after
/// the other, of which a buffer of 256 blocks leaves a loss 0.6% above that of a full shuffle, and one of 225 blocks
/// 1.1%, more than the study allows (docs/results, "Blocks in the buffer"). And where each block is of one class, its
/// share in a buffer of 64 blocks scatters by 6%, which takes 0.005 from the accuracy of single trainings. Not more,
/// because small blocks cost random reads: of 64 kB in a table of 170 MB, of 400 kB in one of 1 GB,
/// of 4 MB in one of 10 GB. Where seeks are cheap, the automatic buffer holds barely more: 16 MB of blocks of 64 kB.
pub const MIN_BLOCKS_IN_BUFFER: u32 = 256;

/// In a buffer of fewer blocks, one block more of a class changes the class's part of the buffer by over a tenth. An
/// automatic buffer holds at least as many, also of blocks whose size is given.
pub const FEW_BLOCKS: u32 = 10;

/// The most buffers that an epoch takes if the size of the buffer is automatic and seeks are expensive: the papers'
/// 10%.
const BUFFERS: u32 = 10;

/// What it costs to read a block that does not follow the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seeks {
    /// Little: the table is in memory, or on a disk quick at random reads.
    Cheap,
    /// As much as to read many pages.
    Expensive,
}

/// What the geometry of a table is chosen by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// The size of a block, as it is asked for.
    pub block: BlockSize,
    /// The size of the buffer, as it is asked for.
    pub buffer: BufferSize,
    /// What seeks cost.
    pub seeks: Seeks,
    /// Pages of a block, if they were chosen before, by another process for instance. The size of an automatic buffer
    /// still depends on `block`: on whether the size of a block was asked for.
    pub pages_per_block: Option<u32>,
}

/// A table's pages in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Pages of the table.
    pub pages: u32,
    /// Pages in each block but the last, which may have fewer. At least 1; may be more than `pages`.
    pub pages_per_block: u32,
    /// Blocks of the table; 0 only if it has no pages.
    pub blocks: u32,
    /// Blocks that fill the buffer: at least 1, even for an empty table, and otherwise at most `blocks`. Some buffers
    /// of an epoch may have one less.
    pub buffer_blocks: u32,
}

impl Geometry {
    /// The geometry of a table of `pages` pages of `page_bytes` bytes (PostgreSQL's BLCKSZ) each.
    ///
    /// An epoch takes as few buffers as the size of the buffer allows, in whole blocks, and they are filled evenly, so
    /// that a buffer may be smaller than asked for: 60% of a table are two buffers of 50%.
    ///
    /// # Errors
    /// [`SizeError::BlockBelowPage`]. A block larger than the table is no error.
    ///
    /// # Panics
    /// If `page_bytes` is 0.
    pub fn new(pages: u32, page_bytes: u32, sizes: &Sizes) -> Result<Geometry, SizeError> {
        let buffer_pages = sizes.buffer_pages(pages, page_bytes);
        let of_blocks = |pages_per_block| match sizes.buffer {
            BufferSize::Auto => {
                Geometry::in_buffers(pages, pages_per_block, sizes.buffers(pages, page_bytes, pages_per_block))
            }
            _ => Geometry::of_blocks(pages, pages_per_block, buffer_pages),
        };
        match (sizes.block, sizes.pages_per_block) {
            (BlockSize::Bytes(bytes), _) if bytes < u64::from(page_bytes) => {
                Err(SizeError::BlockBelowPage { bytes, page_bytes })
            }
            (_, Some(pages_per_block)) => Ok(of_blocks(pages_per_block.max(1))),
            (BlockSize::Bytes(bytes), None) => Ok(of_blocks(pages_in(bytes, page_bytes))),
            (BlockSize::Auto, None) => {
                // all but one whole blocks and a short one may do, if the buffer holds the whole table
                let largest = buffer_pages / (MIN_BLOCKS_IN_BUFFER - 1);
                let largest = largest.min(sizes.largest_block(pages, page_bytes)).max(1);
                let mut geometries = (1..=largest).rev().map(of_blocks);
                let mixing = geometries.find(|geometry| geometry.buffer_blocks >= MIN_BLOCKS_IN_BUFFER);
                Ok(mixing.unwrap_or_else(|| of_blocks(1)))
            }
        }
    }

    /// The geometry of `tuples` tuples, each of which counts as a page, in blocks of `tuples_per_block`, for a buffer
    /// that has room for `buffer_tuples`; 0 of either counts as 1.
    pub fn of_tuples(tuples: u32, tuples_per_block: u32, buffer_tuples: u32) -> Geometry {
        Geometry::of_blocks(tuples, tuples_per_block.max(1), buffer_tuples.clamp(1, tuples.max(1)))
    }

    /// The geometry of blocks of `pages_per_block` pages, for a buffer that has room for `buffer_pages`.
    fn of_blocks(pages: u32, pages_per_block: u32, buffer_pages: u32) -> Geometry {
        let blocks = pages.div_ceil(pages_per_block);
        // a buffer for the whole table also holds its last block, which may be short
        let room = if buffer_pages == pages { blocks } else { buffer_pages / pages_per_block };
        Geometry::in_buffers(pages, pages_per_block, blocks.div_ceil(room.max(1)))
    }

    /// The geometry of blocks of `pages_per_block` pages in this many buffers, or fewer if there are fewer blocks. A
    /// buffer may be larger than this part of the pages, by less than a block.
    fn in_buffers(pages: u32, pages_per_block: u32, buffers: u32) -> Geometry {
        let blocks = pages.div_ceil(pages_per_block);
        Geometry { pages, pages_per_block, blocks, buffer_blocks: blocks.div_ceil(buffers.max(1)).max(1) }
    }

    /// How many buffers an epoch takes.
    pub fn buffers(&self) -> u32 {
        self.blocks.div_ceil(self.buffer_blocks)
    }

    /// How many blocks, beginning with the one in place `position` of [`block_order`](crate::block_order), still belong
    /// to the same buffer: the first buffers may have a block more than the others.
    pub fn left_in_buffer(&self, position: u32) -> u32 {
        let (large, buffers) = (self.buffer_blocks, self.buffers());
        let large_buffers = self.blocks.saturating_sub((large - 1) * buffers);
        match position.checked_sub(large_buffers * large) {
            None => large - position % large,
            Some(behind) if large > 1 => large - 1 - behind % (large - 1),
            Some(_) => 1,
        }
    }

    /// The pages of block number `block`, in `0..blocks`; those of any other are empty.
    pub fn pages_of(&self, block: u32) -> Range<u32> {
        let start = block.saturating_mul(self.pages_per_block).min(self.pages);
        start..start.saturating_add(self.pages_per_block).min(self.pages)
    }
}

impl Sizes {
    /// How many of a table's `pages` pages of `page_bytes` bytes the buffer is for.
    ///
    /// # Panics
    /// If `page_bytes` is 0.
    pub fn buffer_pages(&self, pages: u32, page_bytes: u32) -> u32 {
        match self.buffer {
            BufferSize::Auto => {
                let pages_per_block = match (self.pages_per_block, self.block) {
                    (Some(pages), _) => pages,
                    (None, BlockSize::Bytes(bytes)) => pages_in(bytes, page_bytes),
                    (None, BlockSize::Auto) => self.largest_block(pages, page_bytes),
                };
                pages.div_ceil(self.buffers(pages, page_bytes, pages_per_block.max(1)))
            }
            // a part of a page more than asked for is one buffer less: 10% are ten buffers, not eleven
            BufferSize::Percent(percent) => (f64::from(pages) * percent / 100.0).ceil() as u32,
            BufferSize::Bytes(bytes) => pages_in(bytes, page_bytes),
        }
        .min(pages)
    }

    /// How many automatic buffers a table takes, in blocks of `pages_per_block` pages.
    fn buffers(&self, pages: u32, page_bytes: u32, pages_per_block: u32) -> u32 {
        if fits_automatic_buffer(pages, page_bytes) {
            return 1;
        }
        let blocks = pages.div_ceil(pages_per_block);
        let tenths = (pages / MIN_BLOCKS_IN_BUFFER).min(BUFFERS);
        match (self.block, self.seeks) {
            (BlockSize::Auto, Seeks::Cheap) => blocks / MIN_BLOCKS_IN_BUFFER,
            (BlockSize::Auto, Seeks::Expensive) => tenths,
            (BlockSize::Bytes(_), _) => tenths.min(blocks / FEW_BLOCKS),
        }
        .max(1)
    }

    /// Pages of the largest automatic block, at least 1. Of a small table that the buffer holds as a whole, all tuples
    /// are shuffled fully, whatever the blocks.
    fn largest_block(&self, pages: u32, page_bytes: u32) -> u32 {
        let is_whole = self.buffer == BufferSize::Auto && fits_automatic_buffer(pages, page_bytes);
        let bytes = if self.seeks == Seeks::Cheap && !is_whole { CHEAP_BLOCK_BYTES } else { MAX_BLOCK_BYTES };
        pages_in(bytes, page_bytes).max(1)
    }
}

/// Does an automatic buffer hold a table of `pages` pages as a whole?
fn fits_automatic_buffer(pages: u32, page_bytes: u32) -> bool {
    u64::from(pages) * u64::from(page_bytes) <= WHOLE_TABLE_BYTES
}

/// Whole pages in this many bytes, or as many as a table can have.
fn pages_in(bytes: u64, page_bytes: u32) -> u32 {
    u32::try_from(bytes / u64::from(page_bytes)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u32 = 8192;

    fn sizes(block: &str, buffer: &str, seeks: Seeks) -> Sizes {
        Sizes { block: block.parse().unwrap(), buffer: buffer.parse().unwrap(), seeks, pages_per_block: None }
    }

    /// Where seeks are expensive.
    fn geometry(pages: u32, block: &str, buffer: &str) -> Geometry {
        Geometry::new(pages, PAGE, &sizes(block, buffer, Seeks::Expensive)).unwrap()
    }

    /// Where they are cheap.
    fn cheap(pages: u32, block: &str, buffer: &str) -> Geometry {
        Geometry::new(pages, PAGE, &sizes(block, buffer, Seeks::Cheap)).unwrap()
    }

    #[test]
    fn where_seeks_are_cheap_the_default_buffer_has_hundreds_of_blocks_of_64_kb() {
        // rows of 28 reals, of which a page has 47: 1e5 to 1e8; buffers, pages of a block and blocks in a buffer
        for (rows, buffers, pages_per_block, blocks) in
            [(100_000, 1, 8, 266), (1_000_000, 10, 8, 266), (10_000_000, 103, 8, 259), (100_000_000, 1035, 8, 257)]
        {
            let g = cheap(u32::div_ceil(rows, 47), "auto", "auto");
            assert_eq!((g.buffers(), g.pages_per_block, g.buffer_blocks), (buffers, pages_per_block, blocks), "{rows}");
        }
        // up to 64 MB all is as where seeks are expensive, to the bit
        for pages in [0, 1, 255, 256, 511, 2128, 8191, 8192] {
            assert_eq!(cheap(pages, "auto", "auto"), geometry(pages, "auto", "auto"), "{pages}");
        }
        let g = cheap(8193, "auto", "auto");
        assert_eq!((g.buffers(), g.pages_per_block, g.buffer_blocks), (4, 8, 257));
        // pages of 32 kB
        let g = Geometry::new(100_000, 4 * PAGE, &sizes("auto", "auto", Seeks::Cheap)).unwrap();
        assert_eq!((g.buffers(), g.pages_per_block, g.buffer_blocks), (195, 2, 257));
    }

    #[test]
    fn where_seeks_are_cheap_blocks_are_small_in_a_buffer_that_was_asked_for_too() {
        assert_eq!(geometry(212_766, "auto", "10%").pages_per_block, 75);
        let g = cheap(212_766, "auto", "10%");
        assert_eq!((g.buffers(), g.pages_per_block, g.buffer_blocks), (11, 8, 2418));
        assert_eq!(cheap(8192, "auto", "100%").pages_per_block, 8);
        // a buffer for fewer blocks has smaller ones, as everywhere
        assert_eq!(cheap(212_766, "auto", "4MB"), geometry(212_766, "auto", "4MB"));
    }

    #[test]
    fn where_both_sizes_are_given_it_does_not_matter_what_seeks_cost() {
        for pages in [0, 100, 8192, 8193, 21_277, 212_766] {
            for (block, buffer) in [("10MB", "10%"), ("64kB", "16MB"), ("8kB", "100%"), ("2MB", "1%")] {
                assert_eq!(cheap(pages, block, buffer), geometry(pages, block, buffer), "{pages}, {block}, {buffer}");
            }
        }
    }

    #[test]
    fn the_default_buffer_holds_ten_blocks_of_a_size_that_is_given() {
        for seeks in [Seeks::Cheap, Seeks::Expensive] {
            // pages; buffers and blocks in each; the first table has 166 MB, of which a tenth holds one block
            for (pages, buffers, blocks) in [(21_277, 1, 17), (40_000, 3, 11), (128_000, 10, 10), (212_766, 10, 17)] {
                let g = Geometry::new(pages, PAGE, &sizes("10MB", "auto", seeks)).unwrap();
                assert_eq!((g.buffers(), g.pages_per_block, g.buffer_blocks), (buffers, 1280, blocks), "{pages}");
            }
        }
    }

    #[test]
    fn a_block_that_was_chosen_before_leaves_the_buffer_as_it_would_be() {
        for seeks in [Seeks::Cheap, Seeks::Expensive] {
            for (pages, buffer) in
                [(300, "auto"), (8192, "auto"), (212_766, "auto"), (212_766, "10%"), (212_766, "1MB")]
            {
                let by = sizes("auto", buffer, seeks);
                let chosen = Geometry::new(pages, PAGE, &by).unwrap();
                let again = Sizes { pages_per_block: Some(chosen.pages_per_block), ..by };
                assert_eq!(Geometry::new(pages, PAGE, &again).unwrap(), chosen, "{pages}, {buffer}, {seeks:?}");
            }
        }
    }

    #[test]
    fn the_default_gives_the_buffer_of_a_middling_table_hundreds_of_blocks() {
        // the prototype's table: 289 MB, where 10 MB blocks failed
        let g = geometry(289 * 128, "auto", "auto");
        assert_eq!(g, Geometry { pages: 36_992, pages_per_block: 14, blocks: 2643, buffer_blocks: 265 });
        assert_eq!(g.buffers(), 10);
        // what is asked for is not exceeded, and so cut to eleven
        let g = geometry(289 * 128, "auto", "10%");
        assert_eq!(g, Geometry { pages: 36_992, pages_per_block: 13, blocks: 2846, buffer_blocks: 259 });
    }

    #[test]
    fn the_default_buffer_holds_a_small_table_and_has_hundreds_of_blocks_of_any_other() {
        // pages, bytes of a page; buffers, pages of a block and blocks in each
        for (pages, page, buffers, pages_per_block, blocks) in [
            (1, PAGE, 1, 1, 1),
            (510, PAGE, 1, 1, 510),
            (511, PAGE, 1, 2, 256),
            (8192, PAGE, 1, 32, 256),
            (8193, PAGE, 10, 3, 274),
            (2048, 4 * PAGE, 1, 8, 256),
            (2049, 4 * PAGE, 8, 1, 257),
            (2560, 4 * PAGE, 10, 1, 256),
        ] {
            let g = Geometry::new(pages, page, &sizes("auto", "auto", Seeks::Expensive)).unwrap();
            let found = (g.buffers(), g.pages_per_block, g.buffer_blocks);
            assert_eq!(found, (buffers, pages_per_block, blocks), "{pages} pages of {page} bytes");
        }
        // blocks that were asked for are as large as that, and the buffer is for as many pages
        let g = geometry(600, "64kB", "auto");
        assert_eq!((g.pages_per_block, g.blocks, g.buffer_blocks), (8, 75, 75));
        let g = geometry(16_384, "64kB", "auto");
        assert_eq!((g.pages_per_block, g.blocks, g.buffer_blocks), (8, 2048, 205));
    }

    #[test]
    fn the_last_buffer_is_no_scrap() {
        // 64 blocks of 12 pages would fit, and leave 2 for the last buffer
        let g = geometry(7693, "96kB", "10%");
        assert_eq!(g, Geometry { pages: 7693, pages_per_block: 12, blocks: 642, buffer_blocks: 59 });
        // 10 blocks fit; 1 + 10 would be one buffer and a scrap
        assert_eq!(geometry(88, "64kB", "640kB").buffer_blocks, 6);
        assert_eq!(geometry(1000, "8kB", "60%").buffer_blocks, 500);
    }

    #[test]
    fn the_default_block_of_a_large_table_is_10_mb() {
        for buffer in ["auto", "10%"] {
            let g = geometry(100 * 1024 * 128, "auto", buffer);
            assert_eq!((g.pages_per_block, g.blocks, g.buffer_blocks), (1280, 10_240, 1024));
        }
    }

    #[test]
    fn the_default_block_of_a_small_table_is_a_page() {
        let g = geometry(300, "auto", "10%");
        assert_eq!((g.pages_per_block, g.blocks, g.buffer_blocks), (1, 300, 30));
    }

    #[test]
    fn an_empty_table_has_no_blocks() {
        for block in ["auto", "1MB"] {
            for buffer in ["auto", "10%", "64MB"] {
                let g = geometry(0, block, buffer);
                assert_eq!((g.blocks, g.buffer_blocks), (0, 1));
                assert!(g.pages_of(0).is_empty());
            }
        }
    }

    #[test]
    fn a_block_larger_than_the_table_is_its_only_one() {
        for buffer in ["auto", "10%"] {
            let g = geometry(5, "10MB", buffer);
            assert_eq!((g.blocks, g.buffer_blocks, g.pages_of(0)), (1, 1, 0..5));
        }
    }

    #[test]
    fn a_buffer_in_bytes_holds_whole_blocks() {
        assert_eq!(geometry(10_000, "64kB", "1MB").buffer_blocks, 16);
        assert_eq!(geometry(10_000, "64kB", "1000kB").buffer_blocks, 15);
        assert_eq!(geometry(10_000, "1MB", "8kB").buffer_blocks, 1);
        assert_eq!(geometry(10_000, "1MB", "1TB").buffer_blocks, 79);
    }

    #[test]
    fn a_buffer_for_the_whole_table_holds_its_short_last_block_too() {
        for buffer in ["100%", "800kB", "1GB"] {
            let g = geometry(100, "240kB", buffer);
            assert_eq!((g.blocks, g.buffer_blocks, g.pages_of(3)), (4, 4, 90..100), "{buffer}");
        }
    }

    #[test]
    fn block_sizes_are_rounded_down_to_whole_pages() {
        assert_eq!(geometry(100, "8192", "10%").pages_per_block, 1);
        assert_eq!(geometry(100, "20000", "10%").pages_per_block, 2);
    }

    #[test]
    fn a_block_smaller_than_a_page_is_an_error_and_a_large_one_is_not() {
        let tenth = sizes("auto", "10%", Seeks::Expensive);
        let with = |bytes| Geometry::new(100, PAGE, &Sizes { block: BlockSize::Bytes(bytes), ..tenth });
        assert_eq!(with(8191), Err(SizeError::BlockBelowPage { bytes: 8191, page_bytes: PAGE }));
        assert_eq!(with(0), Err(SizeError::BlockBelowPage { bytes: 0, page_bytes: PAGE }));
        assert_eq!(geometry(20_000, "50MB", "200MB").pages_per_block, 6400);
        assert_eq!(with(u64::MAX).map(|geometry| (geometry.pages_per_block, geometry.blocks)), Ok((u32::MAX, 1)));
    }

    #[test]
    fn the_largest_table_does_not_overflow() {
        let g = geometry(u32::MAX, "10MB", "100%");
        assert_eq!(g.pages_of(g.blocks - 1), (g.blocks - 1) * 1280..u32::MAX);
        assert!(g.pages_of(u32::MAX).is_empty());
    }
}
