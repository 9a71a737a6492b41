//! Decoded tuples, kept from the first epoch for those that follow.
//!
//! A page of the source is in one of three places: in memory, which means that its tuples stay where they were decoded,
//! at the beginning of the learner's batch; in a temporary file; or in none, and is read and decoded again. Pages find
//! their places buffer by buffer, in the order in which the first epoch reads them: first the memory is filled, then
//! the file. So of every block the first pages are in memory, then come those in the file, then the rest, and of most
//! blocks all are in one place.
//!
//! In a later epoch a buffer is a list of places in the batch ([`Arrived`]), in the order in which the tuples would
//! have come from the source: nothing is copied, and the order in the buffer is a permutation of the list. Tuples that
//! are not in memory come in behind those that are. Buffers end with the same page as without a cache, so that the
//! learner sees the same sequence.

mod file;

use crate::scan_control::KeptTuples;
use decode::Decoder;
use errors::Result;
use file::TupleFile;
use options::cache::CacheMode;
use pg::check_for_interrupts;
use shuffle::Geometry;
use std::ops::Range;
use tuples::Batch;

/// The tuples of a buffer: places in the batch, in the order in which they came.
#[derive(Debug, Default)]
pub struct Arrived {
    runs: Vec<Range<u32>>,
    pub tuples: usize,
    pub bytes: usize,
}

impl Arrived {
    /// Appends each place to `order`.
    pub fn append_to(&self, order: &mut Vec<u32>) {
        self.runs.iter().for_each(|run| allocation::extend(order, run.clone()));
    }

    fn clear(&mut self) {
        self.runs.clear();
        (self.tuples, self.bytes) = (0, 0);
    }

    fn push(&mut self, batch: &Batch, places: Range<usize>) {
        self.tuples += places.len();
        self.bytes += batch.bytes_of(places.clone());
        let places = places.start as u32..places.end as u32;
        match self.runs.last_mut() {
            Some(last) if last.end == places.start => last.end = places.end,
            _ => self.runs.push(places),
        }
    }
}

/// Decoded tuples of some blocks.
pub struct Cache {
    mode: CacheMode,
    /// bytes of tuples that may stay in the batch besides the buffer's; None if none may, not even the buffer's own
    memory: Option<u64>,
    state: CacheState,
    /// by their numbers; empty before the first epoch
    blocks: Vec<BlockPlaces>,
    /// where in the batch the tuples of each page end that is in memory
    ends: Vec<u32>,
    /// bytes of these tuples
    in_memory: u64,
    /// pages that were considered, and what they take packed
    packed: (u64, u64),
    file: Option<TupleFile>,
    arrived: Arrived,
    /// the pages that were decoded for the buffer under way, if they may be kept
    decoded: Vec<DecodedPage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheState {
    /// the first buffer will tell what is worth it
    Watching,
    /// what still fits is kept: up to this many bytes in memory, unless that is full, and perhaps in the file
    Filling { memory: Option<u64>, file: bool },
    /// nothing more is kept
    Closed,
    /// nothing was kept
    Off(&'static str),
}

/// Where the pages of a block are: the first ones in memory, the next ones in the file, the others in the source.
#[derive(Debug, Clone, Default)]
struct BlockPlaces {
    /// the first of those in memory, as a number in `ends`, and how many they are
    first: u32,
    in_memory: u32,
    /// rows on them that are left out
    skipped: u32,
    in_file: u32,
    area: Range<u64>,
}

/// A page that was read from the source.
#[derive(Debug)]
pub struct DecodedPage {
    pub block: u32,
    /// which of the block's pages it is, from 0
    pub page: u32,
    /// where in the batch its tuples are
    pub tuples: Range<usize>,
    /// rows on it that were left out
    pub skipped: u64,
}

impl Cache {
    /// An empty cache, for tuples of `memory` bytes besides the buffer's; with None, no tuples stay in the batch.
    pub fn new(mode: CacheMode, memory: Option<u64>) -> Cache {
        Cache {
            mode,
            memory,
            state: CacheState::Watching,
            blocks: Vec::new(),
            ends: Vec::new(),
            in_memory: 0,
            packed: (0, 0),
            file: None,
            arrived: Arrived::default(),
            decoded: Vec::new(),
        }
    }

    pub fn share_memory(&mut self, processes: u32) {
        self.memory = self.memory.map(|memory| memory / u64::from(processes));
    }

    /// Begins an epoch other than the preparation pass.
    pub fn begin_epoch(&mut self, geometry: &Geometry) -> Result<()> {
        allocation::resize(&mut self.blocks, geometry.blocks as usize, BlockPlaces::default());
        if let Some(file) = &mut self.file
            && !file.flush()?
        {
            self.state = CacheState::Closed;
        }
        Ok(())
    }

    /// Begins a buffer. The batch must hold the tuples in memory and no others.
    pub fn begin_buffer(&mut self) {
        self.arrived.clear();
        self.decoded.clear();
    }

    /// The tuples of the buffer.
    pub fn arrived(&self) -> &Arrived {
        &self.arrived
    }

    /// How many tuples stay in the batch, in its first places.
    pub fn kept(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    /// The pages of a block, or of what is left of it, that have to be read from the source.
    /// `first` is the block's first.
    pub fn of_source(&self, block: u32, first: u32, pages: Range<u32>) -> Range<u32> {
        let kept = self.blocks.get(block as usize).map_or(0, |places| places.in_memory + self.pages_in_file(places));
        pages.start.max(first + kept).min(pages.end)..pages.end
    }

    /// Pages of a block that can be read from the file: all those that were put there, or none if the file was full
    /// before they were written.
    fn pages_in_file(&self, places: &BlockPlaces) -> u32 {
        let there = self.file.as_ref().is_some_and(|file| file.has(&places.area));
        if there { places.in_file } else { 0 }
    }

    /// Gives the tuples of some pages at the beginning of `pages`, which is what is left of a block whose first page is
    /// `first`, and takes these pages away. False if the next page must be read from the source. No more pages are
    /// given than it takes to make the buffer have `limit` bytes.
    pub fn give(
        &mut self,
        block: u32,
        first: u32,
        pages: &mut Range<u32>,
        limit: u64,
        decoder: &mut Decoder,
        batch: &mut Batch,
    ) -> Result<bool> {
        let Some(places) = self.blocks.get(block as usize).filter(|_| pages.start < pages.end) else {
            return Ok(false);
        };
        let page = pages.start - first;
        if page < places.in_memory {
            check_for_interrupts();
            if page == 0 {
                decoder.leave_out(places.skipped.into());
            }
            let (mut from, until) = (places.first + page, places.first + places.in_memory);
            while from < until && (self.arrived.bytes as u64) < limit {
                // all at once if they do not fill the buffer, else page by page
                let all = self.tuples_of(from..until);
                let fit = ((self.arrived.bytes + batch.bytes_of(all.clone())) as u64) < limit;
                let next = if fit { until } else { from + 1 };
                self.arrived.push(batch, self.tuples_of(from..next));
                pages.start += next - from;
                from = next;
            }
            return Ok(true);
        }
        let in_file = self.pages_in_file(places);
        let Some(file) = self.file.as_mut().filter(|_| page < places.in_memory + in_file) else { return Ok(false) };
        check_for_interrupts();
        if page == places.in_memory {
            file.open(places.area.clone());
        }
        let before = batch.len();
        file.read_page(decoder, batch)?;
        self.arrived.push(batch, before..batch.len());
        pages.start += 1;
        Ok(true)
    }

    /// BlockPlaces of the tuples of some pages in memory.
    fn tuples_of(&self, pages: Range<u32>) -> Range<usize> {
        let end_of = |page: u32| self.ends[page as usize] as usize;
        pages.start.checked_sub(1).map_or(0, end_of)..end_of(pages.end - 1)
    }

    /// A page was read from the source. Pages of one block come in their sequence, if perhaps not all of them in one
    /// buffer; in one buffer, each page's tuples follow those of the page before, or of what was given in between.
    pub fn decoded(&mut self, batch: &Batch, page: DecodedPage) {
        self.arrived.push(batch, page.tuples.clone());
        if matches!(self.state, CacheState::Watching | CacheState::Filling { .. }) {
            self.decoded.push(page);
        }
    }

    /// Tuples that will stay in the batch if `pages` more pages come in this epoch, as far as can be said: this many of
    /// them, and whether these are all.
    pub fn will_stay(&self, batch: &Batch, pages: u32) -> (usize, bool) {
        let seen = (self.ends.len() + self.decoded.len()).max(1) as f64;
        let more = batch.len() as f64 / seen * f64::from(pages) * (1.0 + SLACK);
        let bytes = batch.bytes() as f64 / batch.len().max(1) as f64;
        let memory = match self.state {
            CacheState::Watching => self.memory.filter(|memory| batch.bytes() as f64 + more * bytes <= *memory as f64),
            CacheState::Filling { memory, .. } => memory,
            CacheState::Closed | CacheState::Off(_) => None,
        };
        let Some(memory) = memory else { return (0, false) };
        let fit = (memory - memory.min(self.in_memory)) as f64 / bytes.max(1.0);
        (more.min(fit) as usize, more <= fit)
    }

    /// There is no memory for tuples besides the buffer's.
    pub fn memory_is_out(&mut self) {
        match &mut self.state {
            CacheState::Watching => self.memory = self.memory.map(|_| 0),
            CacheState::Filling { memory, .. } => *memory = None,
            CacheState::Closed | CacheState::Off(_) => {}
        }
    }

    /// Whether all pages of the source are in memory.
    pub fn has_all_in_memory(&self, geometry: &Geometry) -> bool {
        self.ends.len() == geometry.pages as usize
    }

    /// Whether there are pages that were decoded for this buffer, and may be kept.
    pub fn has_decoded(&self) -> bool {
        !self.decoded.is_empty()
    }

    /// Puts the pages that were decoded for this buffer where they are to stay. `left` more will come in this epoch;
    /// `expensive`: decoding a row costs much more than reading a decoded one.
    pub fn end_buffer(&mut self, batch: &mut Batch, left: u32, expensive: bool) -> Result<()> {
        if self.state == CacheState::Watching && !self.decoded.is_empty() {
            self.state = self.decide(batch, left, expensive);
        }
        let pages = std::mem::take(&mut self.decoded);
        let mut left = left as usize + pages.len();
        for page in pages {
            let CacheState::Filling { memory, file } = self.state else { break };
            left -= 1;
            let packed = self.packs(batch, &page, left, memory);
            let bytes = batch.settled_bytes_of(page.tuples.clone(), packed) as u64;
            if memory.is_some_and(|memory| self.in_memory.saturating_add(bytes) <= memory) {
                batch.settle(page.tuples.clone(), packed);
                self.keep(&page, bytes);
            } else {
                // from here on, nothing more in memory: what stays there has no gaps
                let file = file && self.write(page, batch)?;
                self.state = if file { CacheState::Filling { memory: None, file } } else { CacheState::Closed };
            }
        }
        Ok(())
    }

    /// Whether what is on a page is to stay packed, so that there is room for the `left` pages that are still to come.
    fn packs(&mut self, batch: &Batch, page: &DecodedPage, left: usize, memory: Option<u64>) -> bool {
        let [open, packed] = [false, true].map(|packed| batch.settled_bytes_of(page.tuples.clone(), packed) as u64);
        self.packed.0 += 1;
        self.packed.1 += packed;
        let rest = self.packed.1 as f64 / self.packed.0 as f64 * left as f64 * (1.0 + SLACK);
        open > packed && memory.is_some_and(|memory| (self.in_memory + open) as f64 + rest > memory as f64)
    }

    /// What to do, after the first buffer.
    fn decide(&self, batch: &Batch, left: u32, expensive: bool) -> CacheState {
        let pages = self.decoded.len() as f64;
        let all = batch.bytes() as f64 / pages * (pages + f64::from(left));
        // blocks are expensive to open, but compressed where they come from
        let blocks = batch.has_mini_batches();
        let file = (self.mode == CacheMode::On || expensive) && !blocks;
        match self.memory {
            Some(_) if left == 0 => CacheState::Filling { memory: Some(u64::MAX), file },
            Some(memory) if file || blocks || all <= memory as f64 => {
                CacheState::Filling { memory: Some(memory), file }
            }
            None if file => CacheState::Filling { memory: None, file },
            Some(_) => CacheState::Off("larger than corgipile.cache_memory, and fast to decode"),
            None => CacheState::Off("fast to decode"),
        }
    }

    /// Keeps the tuples of a page where they are, if they are the next behind those that are kept.
    fn keep(&mut self, page: &DecodedPage, bytes: u64) {
        let (kept, pages) = (self.kept(), self.ends.len() as u32);
        let places = &mut self.blocks[page.block as usize];
        let is_next = page.page == 0 || (page.page == places.in_memory && places.first + places.in_memory == pages);
        if !is_next || page.tuples.start != kept {
            return;
        }
        if places.in_memory == 0 {
            places.first = pages;
        }
        places.in_memory += 1;
        places.skipped += page.skipped as u32;
        self.ends.push(page.tuples.end as u32);
        self.in_memory += bytes;
    }

    /// Writes the tuples of a page to the file, if it is the next of its block. False if the file is full.
    fn write(&mut self, page: DecodedPage, batch: &Batch) -> Result<bool> {
        let strict = self.mode == CacheMode::On;
        let file = self.file.get_or_insert_with(|| TupleFile::create(strict));
        let places = &mut self.blocks[page.block as usize];
        let is_next = places.in_file == 0 || places.area.end == file.end();
        if !is_next || page.page != places.in_memory + places.in_file {
            return Ok(true);
        }
        let area = file.push(batch, page.tuples, page.skipped as u32);
        if places.in_file == 0 {
            places.area.start = area.start;
        }
        places.in_file += 1;
        places.area.end = area.end;
        file.flush_much()
    }

    /// What is kept: bytes in memory, bytes in the file, and how many of the source's blocks; or why nothing is.
    pub fn contents(&self, geometry: &Geometry) -> KeptTuples {
        if let CacheState::Off(reason) = self.state {
            return Err(reason.to_owned());
        }
        let is_kept = |block: &u32| {
            let pages = geometry.pages_of(*block);
            self.of_source(*block, pages.start, pages).is_empty()
        };
        let bytes = self.file.as_ref().map_or(0, TupleFile::bytes);
        Ok((self.in_memory, bytes, (0..geometry.blocks).filter(is_kept).count()))
    }

    /// Deletes the file.
    pub fn end(self) {
        if let Some(file) = self.file {
            file.delete();
        }
    }
}

/// The part of the expected tuples that may come in addition before the batch has to grow again.
const SLACK: f64 = 1.0 / 32.0;
