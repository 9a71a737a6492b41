//! CorgiPileBlockShuffle: the blocks of a table in random order.
//!
//! A block is a run of contiguous heap pages. Each scan visits every block once, in the seeded random order of its
//! epoch, and gives the tuples that the statement's snapshot sees; a rescan is the next epoch. The number of pages is
//! fixed when the first scan begins, so that every epoch sees the same rows.
//!
//! The tables of a partitioned table are read as if they were one: their nodes hang below an Append, and a node on top of
//! that takes their blocks in random order.
//!
//! If the rows come from something else, the node has that plan as its child: it spools the
//! child's rows once and shuffles the pages of the spool. So it does with any source that is to be shuffled fully: then
//! it sorts the rows on their way into the spool, and reads that as it lies.

mod cache;
mod exec;
mod explain;
mod full_shuffle;
mod pages;
mod partitioned_pages;

use super::{Decoder, FullShuffle, Shuffling};
use crate::errors::{OrRaise, Result};
use crate::pg::executor::custom_scan::{CustomScan, Flags, Methods, Node, Scan};
use crate::pg::executor::explain::Explain;
use crate::pg::tuples::row::Layout;
use crate::pg::tuples::toast::Toast;
use crate::settings;
use cache::{Arrived, Cache};
pub use cache::{CacheMode, CachePlan};
pub use exec::Limits;
use full_shuffle::{Copies, Costs};
use pages::Pages;
use serde::{Deserialize, Serialize};
use shuffle::{BlockPartition, Geometry, Mixer, PartitionEpoch};
use std::ops::Range;
use std::time::Duration;
use tuples::Batch;

/// State of the node.
pub struct BlockShuffle {
    shuffling: Shuffling,
    epoch: u64,
    /// opened by the first scan, kept by rescans
    pages: Option<Pages>,
    copies: Copies,
    /// tuples for later epochs, if there may be any
    cache: Option<Cache>,
    /// of the blocks that are read
    geometry: Geometry,
    /// which these are, if not all
    sample: Option<Sample>,
    /// which of several processes that read this source together this one is, and what of this epoch's blocks is its own
    deal: BlockPartition,
    share: PartitionEpoch,
    /// pages of each table, if all of them have to agree on that
    agreed_pages: Option<Vec<u32>>,
    /// the nodes of the tables of a partitioned source; None of any other
    leaves: Option<Vec<Scan<BlockShuffle>>>,
    /// is anything computed on their rows here?
    projects: bool,
    /// is this one of these nodes, which another reads?
    is_leaf: bool,
    /// has this epoch begun?
    begun: bool,
    /// the blocks of this epoch, those before `position` done or under way
    order: Vec<u32>,
    position: usize,
    /// blocks of `order` that were asked for in advance
    prefetched: usize,
    /// pages that are left of the block under way, and rows that are left on the page under way
    block: Range<u32>,
    page: Range<usize>,
    /// how many more blocks may be begun before the scan pauses
    allowance: usize,
    layout: Option<Layout>,
    decodes_raw: Option<Vec<usize>>,
    toast: Toast,
    /// is this the source of a training, and not of an evaluation or the like?
    shows_progress: bool,
    timing: bool,
    measured: Measured,
    /// was all of it read by a worker process?
    elsewhere: bool,
    /// what a worker process has kept
    kept_elsewhere: Option<Kept>,
}

/// The blocks that are read.
struct Sample {
    /// their numbers among the blocks of the source, ascending
    blocks: Vec<u32>,
    /// of the source
    pages: u32,
}

/// What EXPLAIN ANALYZE shows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Measured {
    blocks: u64,
    epochs: u64,
    scan: Duration,
    decode: Duration,
}

/// Bytes in memory, bytes in a file, and blocks that were kept; or why none were.
type Kept = std::result::Result<(u64, u64, usize), String>;

/// What a node has found out and measured, for the node of the same plan in another process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// pages, pages per block, blocks, blocks in the buffer
    geometry: [u32; 4],
    measured: Measured,
    copies: Costs,
    kept: Option<Kept>,
}

static METHODS: Methods = Methods::of::<BlockShuffle>(c"CorgiPileBlockShuffle");

impl CustomScan for BlockShuffle {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn begin(node: Node, eflags: Flags) -> BlockShuffle {
        let mut leaves: Option<Vec<Scan<BlockShuffle>>> = None;
        let decodes_raw = match node.relation() {
            Some(_) => {
                node.use_heap_slot();
                if node.has_qual() { None } else { node.plain_columns() }
            }
            None => {
                node.begin_child(eflags);
                leaves = node.leaves();
                match &leaves {
                    Some(leaves) => leaves.iter().for_each(|leaf| leaf.with(|leaf, _| leaf.is_leaf = true)),
                    None => node.use_minimal_slot(),
                }
                node.plain_columns()
            }
        };
        let shuffling: Shuffling = node.private();
        let kept = shuffling.cache.filter(|plan| plan.obstacle(shuffling.strategy).is_none());
        let cache = kept.map(|plan| Cache::new(plan.mode, Some(settings::cache_memory())));
        // whoever trains says something about keeping tuples
        let shuffling_of_training = shuffling.cache.is_some();
        BlockShuffle {
            epoch: shuffling.first_epoch,
            geometry: shuffling.geometry(0).or_raise(),
            shuffling,
            sample: None,
            pages: None,
            copies: Copies::default(),
            deal: BlockPartition::SINGLE,
            share: PartitionEpoch::default(),
            agreed_pages: None,
            projects: leaves.is_some()
                && decodes_raw.as_ref().is_none_or(|columns| !columns.iter().copied().eq(0..columns.len())),
            leaves,
            is_leaf: false,
            cache,
            begun: false,
            order: Vec::new(),
            position: 0,
            prefetched: 0,
            block: 0..0,
            page: 0..0,
            allowance: usize::MAX,
            layout: None,
            decodes_raw,
            toast: Toast::new(),
            shows_progress: shuffling_of_training,
            timing: node.timing(),
            measured: Measured::default(),
            elsewhere: false,
            kept_elsewhere: None,
        }
    }

    fn next(&mut self, node: Node) -> bool {
        exec::next(self, node)
    }

    fn rescan(&mut self, _node: Node) {
        // An epoch that nobody has begun is not over.
        if self.begun {
            self.set_epoch(self.epoch + 1);
        }
    }

    fn end(&mut self, node: Node) {
        if let Some(pages) = self.pages.take() {
            pages.end();
        }
        if let Some(cache) = self.cache.take() {
            cache.end();
        }
        self.copies.end();
        node.end_child();
    }

    fn explain(&mut self, node: Node, explain: Explain) {
        explain::explain(self, node, explain);
    }
}

impl BlockShuffle {
    /// The epoch of the scan that is under way, or of the next.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Makes the next scan one of this epoch.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.begun = false;
        self.page = 0..0;
        self.block = 0..0;
    }

    /// The cache, unless this is the preparation pass.
    fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref().filter(|_| self.epoch > 0)
    }

    fn cache_mut(&mut self) -> Option<&mut Cache> {
        self.cache.as_mut().filter(|_| self.epoch > 0)
    }

    /// How many tuples of the epochs before must stay at the beginning of the batch while the others go; None if the order
    /// of arrival is not kept apart from the batch.
    pub fn tuples_kept(&self) -> Option<usize> {
        self.cache().map(Cache::kept)
    }

    /// The tuples that have come since the last fill began, if they are anywhere in the batch.
    pub fn arrived(&self) -> Option<&Arrived> {
        self.cache().map(Cache::arrived)
    }

    /// How the source falls into blocks; known as soon as an epoch has begun.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Lets the next scan, the first of this process, read so many pages of each table: those that there were when another
    /// process began.
    pub fn set_pages(&mut self, pages: Vec<u32>) {
        self.agreed_pages = Some(pages);
    }

    /// Pages of each table, if tables are read here, and not a copy of what another plan gives; known as soon as an epoch has
    /// begun.
    pub fn pages_of_tables(&self, node: Node) -> Option<Vec<u32>> {
        let pages = self.pages.as_ref().filter(|_| self.reads_tables(node))?;
        Some(self.agreed_pages.clone().unwrap_or_else(|| pages.of_tables()))
    }

    /// Keeps no tuples in the batch, which others see, but perhaps in a file.
    pub fn keep_in_file_only(&mut self) {
        let plan = self.shuffling.cache.filter(|_| self.cache.is_some());
        self.cache = plan.map(|plan| Cache::new(plan.mode, None));
    }

    /// Are the tuples of all blocks kept?
    pub fn keeps_all(&self) -> bool {
        let contents = self.cache.as_ref().map(|cache| cache.contents(&self.geometry));
        matches!(contents, Some(Ok((_, _, blocks))) if blocks == self.geometry.blocks as usize)
    }

    /// Lets go of the tuples that are kept.
    pub fn forget(&mut self) {
        if let Some(cache) = self.cache.take() {
            cache.end();
        }
    }

    /// What was found out and measured here.
    pub fn report(&self) -> Report {
        let Geometry { pages, pages_per_block, blocks, buffer_blocks } = self.geometry;
        Report {
            geometry: [pages, pages_per_block, blocks, buffer_blocks],
            measured: self.measured.clone(),
            copies: self.copies.costs(),
            kept: self.cache.as_ref().map(|cache| cache.contents(&self.geometry).map_err(str::to_owned)),
        }
    }

    /// Takes over what another process has found out, and adds what it has measured.
    pub fn add_report(&mut self, report: Report) {
        let Report { geometry: [pages, pages_per_block, blocks, buffer_blocks], measured, copies, kept } = report;
        self.kept_elsewhere = kept;
        self.geometry = Geometry { pages, pages_per_block, blocks, buffer_blocks };
        self.elsewhere = self.pages.is_none();
        if self.elsewhere {
            self.copies.show(copies);
        }
        self.measured.blocks += measured.blocks;
        self.measured.epochs += measured.epochs;
        self.measured.scan += measured.scan;
        self.measured.decode += measured.decode;
    }

    /// How many blocks a mixer wants next; known as soon as an epoch has begun.
    pub fn blocks_for(&self, mixer: &Mixer) -> usize {
        if self.deal == BlockPartition::SINGLE {
            return mixer.blocks(&self.geometry, self.position as u32) as usize;
        }
        // what is left of a block, in a buffer that was cut to its memory, does not go with the blocks of the next
        match self.share.buffer(self.position as u32) == self.buffer() || self.at_block_end() {
            true => self.share.left_in_buffer(self.position as u32) as usize,
            false => 0,
        }
    }

    /// Makes this the scan of one of several processes, from the next epoch on, all of which see so many pages.
    pub fn set_deal(&mut self, deal: BlockPartition, pages: Vec<u32>) {
        self.deal = deal;
        self.agreed_pages = Some(pages);
        if let Some(cache) = &mut self.cache {
            cache.share_memory(deal.processes());
        }
    }

    /// Which of several processes this one is.
    pub fn deal(&self) -> BlockPartition {
        self.deal
    }

    /// The number, from 0, of the buffer that the block belongs to that was begun last, if there are several processes.
    pub fn buffer(&self) -> u64 {
        self.share.buffer((self.position as u32).saturating_sub(1))
    }

    /// Does the source consist of tables that are read here, and not of a copy of what another plan gives?
    pub fn reads_tables(&self, node: Node) -> bool {
        node.relation().is_some() || self.leaves.is_some()
    }

    /// Decodes into `batch` the next block of the epoch; false at its end. Nothing of it is counted.
    ///
    /// # Errors
    /// What is wrong with the rows.
    pub fn peek(&mut self, node: Node, decoder: &mut Decoder, batch: &mut Batch) -> Result<bool> {
        let (measured, cache) = (std::mem::take(&mut self.measured), self.cache.take());
        let result = self.fill(node, decoder, batch, Limits { blocks: 1, bytes: u64::MAX, spare: (0, 0) });
        (self.measured, self.cache) = (measured, cache);
        result.map(|()| !self.at_end())
    }

    /// What the full shuffle for the epoch under way has cost; None if the strategy makes none.
    pub fn full_shuffle(&self) -> Option<FullShuffle> {
        self.shuffling.strategy.sorts().then(|| self.copies.cost())
    }

    /// Blocks begun in this epoch.
    pub fn blocks_begun(&self) -> usize {
        self.position
    }

    /// Are all rows of the last block read?
    pub fn at_block_end(&self) -> bool {
        self.block.is_empty() && self.page.is_empty()
    }

    /// Blocks begun since the first scan.
    pub fn blocks_read(&self) -> u64 {
        self.measured.blocks
    }

    /// How the source falls, or would at this moment fall, into blocks. Not known of a spool before it was filled.
    pub fn planned_geometry(&self, node: Node) -> Option<Geometry> {
        let pages = match &self.pages {
            _ if self.elsewhere => return Some(self.geometry),
            Some(pages) => self.agreed_pages.as_ref().map_or(pages.count(), |pages| pages.iter().sum()),
            None => match &self.leaves {
                Some(leaves) => {
                    leaves.iter().fold(0u32, |sum, leaf| sum.saturating_add(leaf.with(|_, leaf| pages_of(leaf))))
                }
                None => node.relation()?.pages(),
            },
        };
        Some(self.shuffling.sampled(pages).or_raise().0)
    }

    /// The pages of one of the blocks that are read, counted from 0.
    fn pages_of(&self, block: u32) -> Range<u32> {
        match &self.sample {
            Some(Sample { blocks, pages }) => {
                Geometry { pages: *pages, ..self.geometry }.pages_of(blocks[block as usize])
            }
            None => self.geometry.pages_of(block),
        }
    }

    /// Lets the scan begin `blocks` more blocks; then it pauses, which to the executor looks like its end.
    pub fn allow(&mut self, blocks: usize) {
        self.allowance = blocks;
    }

    /// Is the epoch over, and not merely paused?
    pub fn at_end(&self) -> bool {
        self.begun && self.position == self.order.len() && self.at_block_end()
    }
}

/// Pages of the node's table at this moment.
fn pages_of(node: Node) -> u32 {
    node.relation().map_or(0, |relation| relation.pages())
}
