//! Execution: slot by slot for any parent, whole buffers for TupleShuffle.

use super::cache::{Cache, DecodedPage};
use super::order::EpochOrder;
use super::page_rows::{HeapPage, SpoolPage};
use super::pages::Pages;
use super::state::{BlockShuffle, Division, LeafScan, Limits, Sample};
use crate::progress;
use decode::Decoder;
use errors::{OrRaise, Result};
use options::shuffling::SAMPLE_ROWS;
use pg::check_for_interrupts;
use pg::detoasted::count_so_far as detoasted;
use pg::executor::custom_scan::Node;
use pg::tuples::heap::HeapRows;
use pg::tuples::slot::Slot;
use pg::tuples::spool::SpoolRows;
use shuffle::{BlockPartition, SortKeys, Strategy, block_order_pausing};
use std::ops::Range;
use std::time::Instant;
use tuples::Batch;

/// The next tuple, in the scan slot. False at the end of the epoch, and at a pause.
pub fn next(scan: &mut BlockShuffle, node: Node) -> bool {
    scan.begin_epoch(node).or_raise();
    loop {
        if let (Some(i), Some(pages)) = (scan.reading.page.next(), &mut scan.source.pages) {
            if pages.give(i, node) {
                return true;
            }
            continue;
        }
        match scan.next_page() {
            Some(rows) => scan.reading.page = 0..rows,
            None => return false,
        }
    }
}

impl BlockShuffle {
    /// The next tuple that passes the node's qual, as its projection makes it: what the executor would give the node's
    /// parent. None at the end of the epoch, and at a pause.
    pub fn next_row<'a>(&mut self, node: Node<'a>) -> Option<Slot<'a>> {
        while next(self, node) {
            if node.passes_qual() {
                return Some(node.project());
            }
        }
        None
    }

    /// Begins the epoch, if that has not been done.
    pub fn begin_epoch(&mut self, node: Node) -> Result<()> {
        if self.begun {
            return Ok(());
        }
        self.open(node)?;
        if let Some((pages, is_sample)) = self.division.divided
            && is_sample != (self.epoch == 0 && self.division.samples_first)
        {
            self.divide(pages)?;
        }
        if self.process.partition != BlockPartition::SINGLE {
            self.process.epoch = self.process.partition.share(self.shuffling.seed, self.epoch, &self.division.geometry);
        }
        self.reading.order = self.shared_order(self.own_order());
        self.counters.order.begin_epoch(self.epoch, self.process.partition.index());
        self.reading.position = 0;
        self.reading.prefetched = 0;
        if let Some(cache) = self.cache.as_mut().filter(|_| self.epoch > 0) {
            cache.begin_epoch(&self.division.geometry)?;
        }
        if self.source.leaves.is_some() && self.counters.epochs > 0 {
            node.rescan_child(); // for EXPLAIN ANALYZE, which counts loops
        }
        self.begun = true;
        if self.shows_progress {
            progress::begin_epoch(self.epoch, self.reading.order.len());
        }
        self.counters.epochs += 1;
        Ok(())
    }

    /// The order of the epoch that begins, as the reader draws it by itself.
    fn own_order(&self) -> EpochOrder {
        let Self { shuffling, epoch, division: Division { geometry, .. }, .. } = self;
        if self.process.partition == BlockPartition::SINGLE {
            // pages of a sample come in random order, so that the first of them are a sample, too
            let (strategy, epoch) = match self.is_sampling() {
                true => (Strategy::BlockOnly, 1),
                false => (shuffling.strategy, *epoch),
            };
            let sizes = [geometry.blocks, geometry.buffers()];
            let pause = &mut check_for_interrupts;
            let order = block_order_pausing(strategy, shuffling.seed, epoch, sizes, pause);
            let pages = if strategy.reads_one_buffer() { self.pages_in(&order) } else { geometry.pages };
            return EpochOrder::known(order, pages);
        }
        let order = self.process.epoch.blocks();
        EpochOrder::known(allocation::copy(order), self.pages_in(order))
    }

    /// Pages of these blocks together.
    fn pages_in(&self, blocks: &[u32]) -> u32 {
        blocks.iter().map(|block| self.pages_of(*block).len() as u32).sum()
    }

    /// Opens the pages, or, if they are those of a copy, makes the one for this epoch.
    fn open(&mut self, node: Node) -> Result<()> {
        let strategy = self.shuffling.strategy;
        let mut pages = match self.source.pages.take() {
            copy if strategy.sorts() => {
                let keys = SortKeys::for_epoch(strategy, self.shuffling.seed, self.epoch);
                Pages::Spool(self.source.copies.for_epoch(node, copy.and_then(Pages::into_spool), keys))
            }
            Some(pages) => {
                self.source.pages = Some(pages);
                return Ok(());
            }
            None => Pages::open(node, self.source.leaves.as_deref())?,
        };
        if let (Pages::PartitionedPages(tables), Some(agreed)) = (&mut pages, &self.division.agreed_pages) {
            tables.agree(agreed)?;
        }
        let agreed = self.division.agreed_pages.as_ref().map(|pages| pages.iter().sum());
        let all = agreed.unwrap_or(pages.count());
        self.divide(all)?;
        self.join_group(node, &pages);
        self.divide(all)?; // the group may have blocks of another size
        self.source.layout = self.source.decodes_raw.as_ref().and_then(|columns| pages.layout(node, columns));
        self.source.pages = Some(pages);
        Ok(())
    }

    fn divide(&mut self, pages: u32) -> Result<()> {
        let is_sample = self.epoch == 0 && self.division.samples_first;
        self.division.divided = Some((pages, is_sample));
        let (geometry, chosen) = match self.shuffling.preparation_sample(pages).filter(|_| is_sample) {
            Some(sample) => sample,
            None => self.shuffling.sampled(pages)?,
        };
        self.division.geometry = geometry;
        self.division.sample = chosen.map(|blocks| Sample { blocks, pages });
        Ok(())
    }

    /// Goes to the next page and returns how many rows it has.
    fn next_page(&mut self) -> Option<usize> {
        if self.reading.block.is_empty() && !self.next_block() {
            return None;
        }
        let page = self.reading.block.next()?;
        let next = match self.reading.block.is_empty() {
            false => Some(self.reading.block.start),
            true => self.reading.order.get(self.reading.position).and_then(|block| {
                let pages = self.pages_of(block);
                Some(pages.start).filter(|first| self.of_source(block).start == *first)
            }),
        };
        Some(self.source.pages.as_mut()?.load(page, next))
    }

    /// Goes to the next block. False at the end, or if the parent has had enough for now.
    fn next_block(&mut self) -> bool {
        if self.reading.position == self.reading.order.len() || self.allowance == 0 {
            return false;
        }
        self.draw_to(self.reading.position + 1);
        let block =
            self.reading.order.get(self.reading.position).unwrap_or_else(|| panic!("a block is drawn for each place"));
        self.reading.block = self.pages_of(block);
        self.reading.order.begin_block(self.reading.block.len() as u32);
        let number = self.number_of(block);
        self.counters.order.push(number);
        self.reading.position += 1;
        self.allowance -= 1;
        self.counters.blocks += 1;
        if self.shows_progress {
            progress::blocks(self.reading.position);
        }
        self.prefetch();
        true
    }

    /// Asks for the next block, or for several if blocks are small or the tablespace can fetch more at once.
    fn prefetch(&mut self) {
        let Some(pages) = &self.source.pages else { return };
        if self.cache().is_some_and(|cache| cache.has_all_in_memory(&self.division.geometry)) {
            return;
        }
        let per_block = self.division.geometry.pages_per_block.max(1);
        // Each block is a seek away from the one before: even a disk that does one thing at a time should have the next
        // at hand.
        let ahead = if pages.io_concurrency() == 0 { 0 } else { pages.io_concurrency().max(PAGES_AHEAD) };
        let until = (self.reading.position + ahead.div_ceil(per_block) as usize).min(self.reading.order.len());
        self.draw_to(until);
        for block in (self.reading.prefetched.max(self.reading.position)..until)
            .map_while(|place| self.reading.order.get(place))
            .collect::<Vec<_>>()
        {
            let wanted = self.of_source(block);
            self.source.pages.iter_mut().for_each(|pages| pages.prefetch(wanted.clone()));
        }
        self.reading.prefetched = self.reading.prefetched.max(until);
    }

    /// The pages of a block that are not in the cache.
    pub(super) fn of_source(&self, block: u32) -> Range<u32> {
        let pages = self.pages_of(block);
        match self.cache() {
            Some(cache) => cache.of_source(block, pages.start, pages),
            None => pages,
        }
    }

    /// Decodes tuples into `batch` until `limits.blocks` more blocks were read, the buffer has `limits.bytes` bytes or
    /// more, or the epoch is over. Rows are appended in the order of the scan, but for those that the
    /// [cache](BlockShuffle::cache) has in memory: it says where the buffer's tuples are.
    pub fn fill(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch, limits: Limits) -> Result<()> {
        self.begin_epoch(node)?;
        self.allowance = limits.blocks;
        let detoasted_before = detoasted();
        if let Some(cache) = self.cache_mut() {
            cache.begin_buffer();
        }
        loop {
            if self.reading.block.is_empty() && !self.next_block() {
                break;
            }
            let (before, skipped) = (batch.len(), decoder.skipped());
            if !self.give_cached(decoder, batch, limits)? {
                let (block, first) = self.block_under_way();
                let page = self.reading.block.start - first;
                let rows = self.decode_page(node, decoder, batch)?;
                if let Some(cache) = self.cache_mut() {
                    let (tuples, skipped) = (before..batch.len(), decoder.skipped() - skipped);
                    cache.decoded(batch, DecodedPage { block, page, tuples, skipped });
                }
                if batch.capacity() - batch.len() < 2 * rows {
                    self.reserve(batch, rows, limits)?;
                }
            }
            if self.is_sampling() && decoder.decoded() >= SAMPLE_ROWS {
                self.reading.order.end_at(self.reading.position);
            }
            if self.buffer_bytes(batch) >= limits.bytes {
                break;
            }
        }
        if !self.cache().is_some_and(Cache::has_decoded) {
            return Ok(());
        }
        let (pages_left, raw) = (self.pages_left(), self.reads_raw());
        if let Some(cache) = self.cache_mut() {
            let detoasted = detoasted() - detoasted_before;
            let dear = !raw || decoder.converts() || detoasted * DETOASTED_MANY > batch.len() as u64;
            cache.end_buffer(batch, pages_left, dear)?;
        }
        Ok(())
    }

    /// Decodes into `batch` the next block of the epoch; false at its end. Nothing of it is counted.
    pub fn peek(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<bool> {
        let (counters, cache) = (std::mem::take(&mut self.counters), self.cache.take());
        let result = self.fill(node, decoder, batch, Limits { blocks: 1, bytes: u64::MAX, spare: (0, 0) });
        (self.counters, self.cache) = (counters, cache);
        result.map(|()| !self.at_end())
    }

    /// Are rows decoded without going through a slot?
    pub(super) fn reads_raw(&self) -> bool {
        match &self.source.pages {
            Some(Pages::PartitionedPages(tables)) => tables.are_raw() && !self.source.projects,
            _ => self.source.layout.is_some(),
        }
    }

    /// Pages still to come in this epoch.
    fn pages_left(&self) -> u32 {
        self.reading.block.len() as u32 + self.reading.order.pages_left()
    }

    /// Gives tuples of the block under way from the cache, if they are there.
    fn give_cached(&mut self, decoder: &mut Decoder, batch: &mut Batch, limits: Limits) -> Result<bool> {
        let (block, first) = self.block_under_way();
        let Some(cache) = self.cache.as_mut().filter(|_| self.epoch > 0) else { return Ok(false) };
        cache.give(block, first, &mut self.reading.block, limits.bytes, decoder, batch)
    }

    /// The block that was begun last, and its first page.
    fn block_under_way(&self) -> (u32, u32) {
        let block = self.reading.order.get(self.reading.position - 1).unwrap_or_else(|| panic!("a block was begun"));
        (block, self.pages_of(block).start)
    }

    /// Decodes the next page of the block under way into `batch`, and returns how many rows it has.
    fn decode_page(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<usize> {
        let start = self.timing.then(Instant::now);
        let Some(rows) = self.next_page() else { return Ok(0) };
        let loaded = self.timing.then(Instant::now);
        decoder.begin_block(self.block_under_way().0);
        match (&mut self.source.pages, &mut self.source.layout) {
            (Some(Pages::Heap(scan)), Some(layout)) => {
                let page =
                    &mut HeapPage { rows: HeapRows::new(scan, layout, &mut self.source.toast), names_table: false };
                node.in_tuple_memory(|| decoder.decode_page(batch, page))?;
            }
            (Some(Pages::Spool(spool)), Some(layout)) => {
                let page = &mut SpoolPage(SpoolRows::new(spool, layout, &mut self.source.toast));
                node.in_tuple_memory(|| decoder.decode_page(batch, page))?;
            }
            (Some(Pages::PartitionedPages(tables)), _) if !self.source.projects => {
                node.run_child(|| {
                    let before = batch.len();
                    let result = tables.decode(rows, &mut self.source.toast, decoder, batch);
                    (result, batch.len() - before)
                })?;
            }
            (Some(pages), _) => decode_through_slot(node, pages, rows, decoder, batch)?,
            (None, _) => {}
        }
        if let (Some(start), Some(loaded)) = (start, loaded) {
            self.counters.scan += loaded - start;
            self.counters.decode += loaded.elapsed();
        }
        Ok(rows)
    }

    fn buffer_bytes(&self, batch: &Batch) -> u64 {
        self.cache().map_or(batch.bytes(), |cache| cache.arrived().bytes) as u64
    }

    /// Makes room for the rest of the buffer, as if its pages had all as many rows as the last, and for what stays of
    /// it in later ones: a buffer that grows bit by bit is copied again and again,
    /// and takes twice its memory meanwhile.
    fn reserve(&mut self, batch: &mut Batch, rows: usize, limits: Limits) -> Result<()> {
        let left = self.reading.order.len() - self.reading.position;
        let blocks = (self.allowance + limits.spare.0).min(left);
        let pages_of =
            |blocks: usize| self.reading.block.len() + blocks * self.division.geometry.pages_per_block as usize;
        let bytes = (limits.bytes + limits.spare.1).saturating_sub(self.buffer_bytes(batch)) as usize;
        let room = bytes / (batch.bytes() / batch.len().max(1)).max(1);
        let buffer = pages_of(blocks).saturating_mul(rows).min(room.saturating_add(rows));
        if let Some(cache) = self.cache() {
            let (stay, all) = cache.will_stay(batch, self.pages_left());
            if stay > 0 {
                let wanted = if all { stay } else { buffer + stay };
                if batch.reserve(wanted.max(buffer)).is_ok() {
                    return Ok(());
                }
                self.cache_mut().into_iter().for_each(Cache::memory_is_out);
            }
        }
        Ok(batch.reserve(buffer)?)
    }
}

/// Decoding is expensive if one row in this many has an array that was TOASTed or compressed: to get it costs some 50
/// times what another row costs.
const DETOASTED_MANY: u64 = 16;

/// Pages that are asked for in advance at least, unless asking is turned off (effective_io_concurrency): 512 kB.
const PAGES_AHEAD: u32 = 64;

/// Decodes the rows that pass the node's qual, as its projection makes them.
fn decode_through_slot(
    node: Node,
    pages: &mut Pages<LeafScan>,
    rows: usize,
    decoder: &mut Decoder,
    batch: &mut Batch,
) -> Result<()> {
    for i in 0..rows {
        if pages.give(i, node) && node.passes_qual() {
            let at = pages.at(i);
            node.in_tuple_memory(|| node.project().with_row(|row| decoder.decode_row(batch, row, at)))?;
        }
    }
    Ok(())
}
