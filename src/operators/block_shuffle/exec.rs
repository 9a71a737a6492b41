//! Execution: slot by slot for any parent, whole buffers for TupleShuffle.

use super::BlockShuffle;
use super::pages::Pages;
use crate::error::{OrRaise, Result, RowAt};
use crate::operators::decoder::{Decoder, PageRows};
use crate::pg::array::ArrayReader;
use crate::pg::custom_scan::Node;
use crate::pg::heap::PageScan;
use crate::pg::row::{Layout, Row};
use crate::pg::spool::Spool;
use crate::pg::toast::Toast;
use crate::pg::uniform::{Destination, Run, Uniform};
use shuffle::{Deal, SortKeys, block_order};
use std::time::Instant;
use tuples::Batch;

/// How much to read at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// more blocks to begin
    pub blocks: usize,
    /// that the buffer may have in the end, but for the rows of one page
    pub bytes: u64,
    /// blocks and bytes that the buffer will have to hold beyond that later on
    pub spare: (usize, u64),
}

/// The next tuple, in the scan slot. False at the end of the epoch, and at a pause.
pub fn next(scan: &mut BlockShuffle, node: Node) -> bool {
    scan.begin_epoch(node).or_raise();
    loop {
        if let (Some(i), Some(pages)) = (scan.page.next(), &mut scan.pages) {
            pages.store(i, node.scan_slot());
            return true;
        }
        match scan.next_page() {
            Some(rows) => scan.page = 0..rows,
            None => return false,
        }
    }
}

impl BlockShuffle {
    /// Begins the epoch, if that has not been done.
    pub fn begin_epoch(&mut self, node: Node) -> Result<()> {
        if self.begun {
            return Ok(());
        }
        self.open(node)?;
        let Self { shuffling, epoch, geometry, .. } = self;
        self.order = block_order(shuffling.strategy, shuffling.seed, *epoch, geometry.blocks, geometry.buffers());
        if self.deal != Deal::ALONE {
            self.share = self.deal.share(&self.order, geometry);
            self.order = self.share.blocks().to_vec();
        }
        self.position = 0;
        self.prefetched = 0;
        self.begun = true;
        self.measured.epochs += 1;
        Ok(())
    }

    /// Opens the pages, or, if they are those of a copy, makes the one for this epoch.
    fn open(&mut self, node: Node) -> Result<()> {
        let strategy = self.shuffling.strategy;
        let pages = match self.pages.take() {
            pages if strategy.sorts() => {
                let keys = SortKeys::of(strategy, self.shuffling.seed, self.epoch);
                self.copies.for_epoch(node, pages, keys)
            }
            Some(pages) => {
                self.pages = Some(pages);
                return Ok(());
            }
            None => Pages::open(node),
        };
        self.geometry = self.shuffling.geometry(self.agreed_pages.unwrap_or(pages.count()))?;
        self.layout = self.decodes_raw.as_ref().and_then(|columns| pages.layout(node, columns));
        self.pages = Some(pages);
        Ok(())
    }

    /// Goes to the next page and returns how many rows it has.
    fn next_page(&mut self) -> Option<usize> {
        if self.block.is_empty() && !self.next_block() {
            return None;
        }
        let page = self.block.next()?;
        let next = match self.block.is_empty() {
            false => Some(self.block.start),
            true => self.order.get(self.position).map(|block| self.geometry.pages_of(*block).start),
        };
        Some(self.pages.as_mut()?.load(page, next))
    }

    /// Goes to the next block. False at the end, or if the parent has had enough for now.
    fn next_block(&mut self) -> bool {
        if self.position == self.order.len() || self.allowance == 0 {
            return false;
        }
        self.block = self.geometry.pages_of(self.order[self.position]);
        self.position += 1;
        self.allowance -= 1;
        self.measured.blocks += 1;
        self.prefetch();
        true
    }

    /// Asks for the next block, or for as many as the tablespace can fetch at once if blocks are small.
    fn prefetch(&mut self) {
        let Some(pages) = &mut self.pages else { return };
        let per_block = self.geometry.pages_per_block.max(1);
        let blocks = pages.io_concurrency().div_ceil(per_block) as usize;
        let until = (self.position + blocks).min(self.order.len());
        for place in self.prefetched.max(self.position)..until {
            pages.prefetch(self.geometry.pages_of(self.order[place]));
        }
        self.prefetched = self.prefetched.max(until);
    }

    /// Decodes tuples into `batch` until `limits.blocks` more blocks were read, the batch has `limits.bytes` bytes or more,
    /// or the epoch is over. Rows are appended in the order of the scan.
    pub fn fill(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch, limits: Limits) -> Result<()> {
        self.begin_epoch(node)?;
        self.allowance = limits.blocks;
        loop {
            let start = self.timing.then(Instant::now);
            let Some(rows) = self.next_page() else { return Ok(()) };
            let loaded = self.timing.then(Instant::now);
            self.toast.forget();
            match (&mut self.pages, &mut self.layout) {
                (Some(Pages::Heap(scan)), Some(layout)) => {
                    let page = &mut HeapPage { scan, layout, toast: &mut self.toast, rows };
                    node.in_tuple_memory(|| decoder.decode_page(batch, page))?;
                }
                (Some(Pages::Spool(spool)), Some(layout)) => {
                    let page = &mut SpoolPage { spool, layout, toast: &mut self.toast, rows };
                    node.in_tuple_memory(|| decoder.decode_page(batch, page))?;
                }
                (Some(pages), None) => decode_through_slot(node, pages, rows, decoder, batch)?,
                (None, _) => return Ok(()),
            }
            if let (Some(start), Some(loaded)) = (start, loaded) {
                self.measured.scan += loaded - start;
                self.measured.decode += loaded.elapsed();
            }
            if batch.bytes() as u64 >= limits.bytes {
                return Ok(());
            }
            if batch.capacity() < batch.len() * 2 {
                self.reserve(batch, rows, limits)?;
            }
        }
    }

    /// Makes room for the rest of the buffer, as if its pages had all as many rows as the last: a buffer that grows bit by
    /// bit is copied again and again, and takes twice its memory meanwhile.
    fn reserve(&self, batch: &mut Batch, rows: usize, limits: Limits) -> Result<()> {
        let blocks = (self.allowance + limits.spare.0).min(self.order.len() - self.position);
        let pages = self.block.len() + blocks * self.geometry.pages_per_block as usize;
        let bytes = (limits.bytes + limits.spare.1).saturating_sub(batch.bytes() as u64) as usize;
        let room = bytes / (batch.bytes() / batch.len().max(1)).max(1);
        Ok(batch.reserve((pages * rows).min(room + rows))?)
    }
}

/// A page of the heap whose rows are read raw.
struct HeapPage<'a> {
    scan: &'a mut PageScan,
    layout: &'a mut Layout,
    toast: &'a mut Toast,
    rows: usize,
}

impl PageRows for HeapPage<'_> {
    fn len(&self) -> usize {
        self.rows
    }

    #[inline]
    fn row(&mut self, i: usize) -> Row<'_> {
        self.scan.row(i, self.layout, self.toast)
    }

    fn at(&self, i: usize) -> RowAt {
        self.scan.at(i)
    }

    fn uniform(&self, arrays: ArrayReader, len: usize) -> Option<Uniform> {
        self.layout.uniform(arrays, len)
    }

    #[inline]
    fn copy_run(&mut self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        self.scan.copy_run(end, uniform, to)
    }

    #[inline]
    fn prefetch_next(&self, i: usize) {
        self.scan.prefetch_next(i);
    }
}

/// A page of the spool.
struct SpoolPage<'a> {
    spool: &'a mut Spool,
    layout: &'a mut Layout,
    toast: &'a mut Toast,
    rows: usize,
}

impl PageRows for SpoolPage<'_> {
    fn len(&self) -> usize {
        self.rows
    }

    fn row(&mut self, i: usize) -> Row<'_> {
        self.spool.row(i, self.layout, self.toast)
    }

    fn at(&self, i: usize) -> RowAt {
        self.spool.at(i)
    }

    fn uniform(&self, arrays: ArrayReader, len: usize) -> Option<Uniform> {
        self.layout.uniform(arrays, len)
    }

    fn copy_run(&mut self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        self.spool.copy_run(end, uniform, to)
    }

    fn prefetch_next(&self, _i: usize) {} // a page is copied before it is read: that puts it into the cache
}

/// Decodes the rows that pass the node's qual, as its projection makes them.
fn decode_through_slot(
    node: Node,
    pages: &mut Pages,
    rows: usize,
    decoder: &mut Decoder,
    batch: &mut Batch,
) -> Result<()> {
    for i in 0..rows {
        pages.store(i, node.scan_slot());
        if node.passes_qual() {
            node.in_tuple_memory(|| decoder.decode_row(batch, node.project().row(), pages.at(i)))?;
        }
    }
    Ok(())
}
