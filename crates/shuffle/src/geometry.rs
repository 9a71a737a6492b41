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

use crate::size::{BlockSize, BufferSize, MAX_BLOCK_BYTES, SizeError, WHOLE_TABLE_BYTES};
use std::ops::Range;

/// How many blocks the buffer holds at least if the block size is automatic and a block is more than a page.
///
/// Many, because neighbours are alike in more than their label: kdd99 sorted by label has bursts of one attack after
/// the other, of which a buffer of 256 blocks leaves a loss 0.6% above that of a full shuffle, and one of 225 blocks
/// 1.1%, more than the study allows (docs/results, "Blocks in the buffer"). And where each block is of one class, its
/// share in a buffer of 64 blocks scatters by 6%, which takes 0.005 from the accuracy of single trainings. Not more,
/// because small blocks cost random reads: of 64 kB in a table of 170 MB, of 400 kB in one of 1 GB,
/// of 4 MB in one of 10 GB.
pub const MIN_BLOCKS_IN_BUFFER: u32 = 256;

/// How many buffers an epoch takes if the size of the buffer is automatic and the table is not small: the papers' 10%.
const BUFFERS: u32 = 10;

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
    pub fn new(pages: u32, page_bytes: u32, block: BlockSize, buffer: BufferSize) -> Result<Geometry, SizeError> {
        let buffer_pages = buffer.pages(pages, page_bytes);
        let of_blocks = |pages_per_block| match buffer {
            BufferSize::Auto => Geometry::in_buffers(pages, pages_per_block, BufferSize::buffers(pages, page_bytes)),
            _ => Geometry::of_blocks(pages, pages_per_block, buffer_pages),
        };
        match block {
            BlockSize::Auto => {
                // all but one whole blocks and a short one may do, if the buffer holds the whole table
                let largest = buffer_pages / (MIN_BLOCKS_IN_BUFFER - 1);
                let largest = largest.min(pages_in(MAX_BLOCK_BYTES, page_bytes)).max(1);
                let mut geometries = (1..=largest).rev().map(of_blocks);
                let mixing = geometries.find(|geometry| geometry.buffer_blocks >= MIN_BLOCKS_IN_BUFFER);
                Ok(mixing.unwrap_or_else(|| of_blocks(1)))
            }
            BlockSize::Bytes(bytes) if bytes < u64::from(page_bytes) => {
                Err(SizeError::BlockBelowPage { bytes, page_bytes })
            }
            BlockSize::Bytes(bytes) => Ok(of_blocks(pages_in(bytes, page_bytes))),
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

    /// The geometry of blocks of `pages_per_block` pages in so many buffers, or fewer if there are fewer blocks. A
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

impl BufferSize {
    /// How many of a table's `pages` pages of `page_bytes` bytes the buffer is for.
    ///
    /// # Panics
    /// If `page_bytes` is 0.
    pub fn pages(self, pages: u32, page_bytes: u32) -> u32 {
        match self {
            BufferSize::Auto => pages.div_ceil(BufferSize::buffers(pages, page_bytes)),
            // a part of a page more than asked for is one buffer less: 10% are ten buffers, not eleven
            BufferSize::Percent(percent) => (f64::from(pages) * percent / 100.0).ceil() as u32,
            BufferSize::Bytes(bytes) => u32::try_from(bytes / u64::from(page_bytes)).unwrap_or(u32::MAX),
        }
        .min(pages)
    }

    /// How many automatic buffers a table of `pages` pages takes.
    fn buffers(pages: u32, page_bytes: u32) -> u32 {
        if u64::from(pages) * u64::from(page_bytes) <= WHOLE_TABLE_BYTES {
            return 1;
        }
        (pages / MIN_BLOCKS_IN_BUFFER).clamp(1, BUFFERS)
    }
}

/// Whole pages in so many bytes, or as many as a table can have.
fn pages_in(bytes: u64, page_bytes: u32) -> u32 {
    u32::try_from(bytes / u64::from(page_bytes)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u32 = 8192;
    const TENTH: BufferSize = BufferSize::Percent(10.0);

    fn geometry(pages: u32, block: &str, buffer: &str) -> Geometry {
        Geometry::new(pages, PAGE, block.parse().unwrap(), buffer.parse().unwrap()).unwrap()
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
            let g = Geometry::new(pages, page, BlockSize::Auto, BufferSize::Auto).unwrap();
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
        let with = |bytes| Geometry::new(100, PAGE, BlockSize::Bytes(bytes), TENTH);
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
