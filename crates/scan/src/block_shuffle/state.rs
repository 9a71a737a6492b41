//! The node's state, and what the reader above controls and learns.

use super::cache::{Arrived, Cache};
use super::full_shuffle::FullShuffleCopies;
use super::order::EpochOrder;
use super::pages::Pages;
use super::partitioned_pages::TableNode;
use super::sharing::Sharing;
use crate::scan_control::{BlockCounters, BufferCounters, CacheControl, KeptTuples, ScanControl, ScanReport};
use errors::OrRaise;
use options::rows::Prepare;
use options::settings;
use options::shuffling::Shuffling;
use pg::executor::custom_scan::{Flags, Node, Scan};
use pg::tuples::heap::HeapRelation;
use pg::tuples::row::Layout;
use pg::tuples::toast::Toast;
use shuffle::{BlockPartition, Geometry, Mixer, PartitionEpoch};
use std::ops::Range;

/// State of the node.
pub struct BlockShuffle {
    pub(super) shuffling: Shuffling,
    pub(super) epoch: u64,
    pub(super) begun: bool,
    pub(super) source: ScannedSource,
    pub(super) division: Division,
    pub(super) process: ProcessPart,
    /// if it is to read together with others
    pub(super) sharing: Option<Sharing>,
    pub(super) reading: Reading,
    /// how many more blocks may be begun before the scan pauses
    pub(super) allowance: usize,
    /// tuples for later epochs, if there may be any
    pub(super) cache: Option<Cache>,
    /// what a worker process has kept
    pub(super) kept_elsewhere: Option<KeptTuples>,
    /// is this the source of a training, and not of an evaluation or the like?
    pub(super) shows_progress: bool,
    pub(super) timing: bool,
    pub(super) counters: BlockCounters,
}

/// What is read.
pub struct ScannedSource {
    /// opened by the first scan, kept by rescans
    pub(super) pages: Option<Pages<LeafScan>>,
    pub(super) copies: FullShuffleCopies,
    /// the nodes of the tables of a partitioned source; None of any other
    pub(super) leaves: Option<Vec<LeafScan>>,
    /// is anything computed on their rows here?
    pub(super) projects: bool,
    /// is this one of these nodes, which another reads?
    pub(super) is_leaf: bool,
    pub(super) layout: Option<Layout>,
    pub(super) decodes_raw: Option<Vec<usize>>,
    pub(super) toast: Toast,
}

/// How its pages are divided into blocks.
pub struct Division {
    /// of the blocks that are read
    pub(super) geometry: Geometry,
    /// which these are, if not all
    pub(super) sample: Option<Sample>,
    /// the pages that were divided into blocks, and whether for a sample before the first epoch
    pub(super) divided: Option<(u32, bool)>,
    /// does epoch 0 read a sample of the pages?
    pub(super) samples_first: bool,
    /// pages of each table, if all of several processes have to agree on that
    pub(super) agreed_pages: Option<Vec<u32>>,
    /// is it that of a worker process, which has read all of it?
    pub(super) is_adopted: bool,
}

/// Which of several processes this one is.
pub struct ProcessPart {
    /// the blocks that it reads of those that several read together, in all epochs and in this one
    pub(super) partition: BlockPartition,
    pub(super) epoch: PartitionEpoch,
    /// is it the first of several processes that all read all blocks, or the only one?
    pub(super) is_first: bool,
}

/// How far the epoch has come.
#[derive(Default)]
pub struct Reading {
    /// the blocks of this epoch, those before `position` done or under way
    pub(super) order: EpochOrder,
    pub(super) position: usize,
    /// blocks of `order` that were asked for in advance
    pub(super) prefetched: usize,
    /// pages that are left of the block under way, and rows that are left on the page under way
    pub(super) block: Range<u32>,
    pub(super) page: Range<usize>,
}

/// The blocks that are read.
pub struct Sample {
    /// their numbers among the blocks of the source, ascending
    pub(super) blocks: Vec<u32>,
    /// of the source
    pub(super) pages: u32,
}

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

/// The node of a table of a partitioned source.
#[derive(Clone)]
pub struct LeafScan(Scan<BlockShuffle>);

impl LeafScan {
    pub(super) fn table(&self) -> Option<HeapRelation<'_>> {
        self.0.relation()
    }
}

impl TableNode for LeafScan {
    fn relation(&self) -> Option<HeapRelation<'_>> {
        self.0.relation()
    }

    fn raw_columns(&self) -> Option<Vec<usize>> {
        self.0.with(|leaf, _| leaf.source.decodes_raw.clone())
    }

    fn run<R>(&self, work: impl FnOnce(Node) -> (R, usize)) -> R {
        self.0.run(|_, node| work(node))
    }

    fn clear_slot(&self) {
        self.0.with(|_, node| node.scan_slot().clear());
    }
}

/// Begins the plan below a node that has no table of its own. The tables of an Append, if it is one of them.
fn begin_child(node: Node, eflags: Flags) -> Option<Vec<LeafScan>> {
    node.begin_child(eflags);
    let leaves: Option<Vec<LeafScan>> = node.leaves().map(|leaves| leaves.into_iter().map(LeafScan).collect());
    match &leaves {
        Some(leaves) => leaves.iter().for_each(|leaf| leaf.0.with(|leaf, _| leaf.source.is_leaf = true)),
        None => node.use_minimal_slot(),
    }
    leaves
}

impl BlockShuffle {
    /// The state of a node that begins.
    pub fn new(node: Node, eflags: Flags) -> BlockShuffle {
        let (leaves, decodes_raw) = match node.relation() {
            Some(_) => {
                node.use_heap_slot();
                (None, if node.has_qual() { None } else { node.plain_columns() })
            }
            None => (begin_child(node, eflags), node.plain_columns()),
        };
        let shuffling: Shuffling = node.private();
        let kept = shuffling.cache.filter(|plan| plan.obstacle(shuffling.strategy).is_none());
        let cache = kept.map(|plan| Cache::new(plan.mode, Some(settings::cache_memory())));
        // anyone who trains says something about keeping tuples
        let shuffling_of_training = shuffling.cache.is_some();
        let projects = leaves.is_some()
            && decodes_raw.as_ref().is_none_or(|columns| !columns.iter().copied().eq(0..columns.len()));
        let (copies, toast) = (FullShuffleCopies::default(), Toast::new());
        BlockShuffle {
            epoch: shuffling.first_epoch,
            begun: false,
            source: ScannedSource {
                pages: None,
                copies,
                leaves,
                projects,
                is_leaf: false,
                layout: None,
                decodes_raw,
                toast,
            },
            division: Division {
                geometry: shuffling.geometry(0).or_raise(),
                sample: None,
                divided: None,
                samples_first: false,
                agreed_pages: None,
                is_adopted: false,
            },
            process: ProcessPart {
                partition: BlockPartition::SINGLE,
                epoch: PartitionEpoch::default(),
                is_first: true,
            },
            sharing: shuffling.share.map(|_| Sharing::Asked),
            reading: Reading::default(),
            allowance: usize::MAX,
            cache,
            kept_elsewhere: None,
            shuffling,
            shows_progress: shuffling_of_training,
            timing: node.timing(),
            counters: BlockCounters::default(),
        }
    }

    /// Takes the control of the reader above.
    pub fn control(&mut self, control: &ScanControl) {
        if let Some(epoch) = control.epoch {
            self.set_epoch(epoch);
        }
        if let Some(pages) = &control.pages_of_tables {
            self.division.agreed_pages = Some(pages.clone());
        }
        if let Some(pages) = control.pages_per_block {
            self.shuffling.pages_per_block = Some(pages);
        }
        if let Some(rank) = control.rank {
            self.process.partition = rank.partition();
            self.cache.iter_mut().for_each(|cache| cache.share_memory(rank.processes));
        }
        if let Some(replica) = control.replica {
            self.process.is_first = replica.rank == 0;
            self.cache.iter_mut().for_each(|cache| cache.share_memory(replica.processes));
        }
        if let Some(preparation) = control.preparation {
            self.division.samples_first = preparation == Prepare::Sample;
        }
        match control.cache {
            Some(control @ (CacheControl::FileOnly | CacheControl::Restart)) => {
                let memory = (control == CacheControl::Restart).then(settings::cache_memory);
                let plan = self.shuffling.cache.filter(|_| self.cache.is_some());
                self.cache.take().into_iter().for_each(Cache::end);
                self.cache = plan.map(|plan| Cache::new(plan.mode, memory));
            }
            Some(CacheControl::Free) => {
                self.cache.take().into_iter().for_each(Cache::end);
                self.sharing.iter_mut().for_each(Sharing::leave);
            }
            None => {}
        }
    }

    /// Reports this node's findings and measurements. TupleShuffle adds its own.
    pub fn report(&self, node: Node) -> ScanReport {
        ScanReport {
            epoch: self.epoch,
            block: self.reading.position,
            buffer: self.buffer(),
            planned_geometry: self.division.geometry,
            sampled_pages: self.sampled_pages(),
            buffer_blocks: self.division.geometry.buffer_blocks,
            reads_tables: self.reads_tables(node),
            pages_of_tables: self.pages_of_tables(node),
            full_shuffles: self.shuffling.strategy.sorts().then(|| self.source.copies.costs().clone()),
            kept: self.cache.as_ref().filter(|_| self.at_end()).map(|cache| cache.contents(&self.division.geometry)),
            shares: self.sharing.is_some(),
            not_shared: self.sharing.as_ref().and_then(Sharing::refusal).map(str::to_owned),
            blocks: self.counters.clone(),
            buffers: BufferCounters::default(),
        }
    }

    /// Takes over the findings of another process, and adds its measurements.
    pub fn adopt(&mut self, report: &ScanReport) {
        self.kept_elsewhere = report.kept.clone();
        self.division.geometry = report.planned_geometry;
        self.division.is_adopted = self.source.pages.is_none();
        if let (true, Some(costs)) = (self.division.is_adopted, &report.full_shuffles) {
            self.source.copies.adopt_costs(costs.clone());
        }
        if let (Some(sharing), Some(why)) = (&mut self.sharing, &report.not_shared) {
            *sharing = Sharing::Alone(why.clone().into());
        }
        self.count(&report.blocks);
    }

    /// Adds what another process has measured.
    pub fn count(&mut self, counters: &BlockCounters) {
        self.counters.add(counters);
    }

    /// The partition of the blocks that this process reads.
    pub fn partition(&self) -> BlockPartition {
        self.process.partition
    }

    /// The epoch of the scan that is under way, or of the next.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Makes the next scan one of this epoch.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.begun = false;
        self.reading.page = 0..0;
        self.reading.block = 0..0;
    }

    /// The cache, unless this is the preparation pass.
    pub(super) fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref().filter(|_| self.epoch > 0)
    }

    pub(super) fn cache_mut(&mut self) -> Option<&mut Cache> {
        self.cache.as_mut().filter(|_| self.epoch > 0)
    }

    /// How many tuples of the epochs before must stay at the beginning of the batch while the others go; None if the
    /// order of arrival is not kept apart from the batch.
    pub fn tuples_kept(&self) -> Option<usize> {
        self.cache().map(Cache::kept)
    }

    /// The tuples that have come since the last fill began, if they are anywhere in the batch.
    pub fn arrived(&self) -> Option<&Arrived> {
        self.cache().map(Cache::arrived)
    }

    /// Pages of each table, if tables are read here, and not a copy of what another plan gives; known as soon as an
    /// epoch has begun.
    fn pages_of_tables(&self, node: Node) -> Option<Vec<u32>> {
        let pages = self.source.pages.as_ref().filter(|_| self.reads_tables(node))?;
        Some(self.division.agreed_pages.clone().unwrap_or_else(|| pages.of_tables()))
    }

    /// How many blocks a mixer wants next; known as soon as an epoch has begun.
    pub fn blocks_for(&self, mixer: &Mixer) -> usize {
        if self.process.partition == BlockPartition::SINGLE {
            return mixer.blocks(&self.division.geometry, self.reading.position as u32) as usize;
        }
        // what is left of a block, in a buffer that was cut to its memory, does not go with the blocks of the next
        match self.process.epoch.buffer(self.reading.position as u32) == self.buffer() || self.at_block_end() {
            true => self.process.epoch.left_in_buffer(self.reading.position as u32) as usize,
            false => 0,
        }
    }

    /// The number, from 0, of the buffer that the block belongs to that was begun last, if there are several processes.
    fn buffer(&self) -> u64 {
        self.process.epoch.buffer((self.reading.position as u32).saturating_sub(1))
    }

    /// Does the source consist of tables that are read here, and not of a copy of what another plan gives?
    fn reads_tables(&self, node: Node) -> bool {
        node.relation().is_some() || self.source.leaves.is_some()
    }

    /// Are all rows of the last block read?
    pub fn at_block_end(&self) -> bool {
        self.reading.block.is_empty() && self.reading.page.is_empty()
    }

    /// Blocks begun since the first scan.
    pub fn blocks_read(&self) -> u64 {
        self.counters.blocks
    }

    /// How the source falls, or would at this moment fall, into blocks. Not known of a spool before it was filled.
    pub fn planned_geometry(&self, node: Node) -> Option<Geometry> {
        let pages = match &self.source.pages {
            _ if self.division.is_adopted => return Some(self.division.geometry),
            Some(pages) => self.division.agreed_pages.as_ref().map_or(pages.count(), |pages| pages.iter().sum()),
            None => match &self.source.leaves {
                Some(leaves) => {
                    leaves.iter().fold(0u32, |sum, leaf| sum.saturating_add(leaf.0.with(|_, leaf| pages_of(leaf))))
                }
                None => node.relation()?.pages(),
            },
        };
        Some(self.shuffling.sampled(pages).or_raise().0)
    }

    /// Is epoch 0, of a sample of the pages, under way?
    pub fn is_sampling(&self) -> bool {
        self.epoch == 0 && self.division.samples_first && self.division.sample.is_some()
    }

    /// Pages that epoch 0 has read, of how many, if it is under way or over and leaves some out.
    fn sampled_pages(&self) -> Option<[u32; 2]> {
        let sample = self.division.sample.as_ref().filter(|_| self.is_sampling())?;
        Some([self.reading.position as u32, sample.pages])
    }

    /// The pages of one of the blocks that are read, counted from 0.
    pub(super) fn pages_of(&self, block: u32) -> Range<u32> {
        match &self.division.sample {
            Some(Sample { blocks, pages }) => {
                Geometry { pages: *pages, ..self.division.geometry }.pages_of(blocks[block as usize])
            }
            None => self.division.geometry.pages_of(block),
        }
    }

    /// The number of one of the blocks that are read among the blocks of the source.
    pub(super) fn number_of(&self, block: u32) -> u32 {
        self.division.sample.as_ref().map_or(block, |sample| sample.blocks[block as usize])
    }

    /// Lets the scan begin `blocks` more blocks; then it pauses, which to the executor looks like its end.
    pub fn allow(&mut self, blocks: usize) {
        self.allowance = blocks;
    }

    /// Is the epoch over, and not merely paused?
    pub fn at_end(&self) -> bool {
        self.begun && self.reading.position == self.reading.order.len() && self.at_block_end()
    }
}

/// Pages of the node's table at this moment.
pub fn pages_of(node: Node) -> u32 {
    node.relation().map_or(0, |relation| relation.pages())
}
