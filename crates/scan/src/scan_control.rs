//! The control that goes down to the shuffling nodes, and the report that comes back.
//!
//! SGD, TupleShuffle and BlockShuffle pass on one [`ScanControl`] and one [`ScanReport`]. Worker processes get and send
//! the same two.

use options::rows::Prepare;
use pg::process::parallel::Unavailable;
use pg::tuples::sorter::SortSpace;
use serde::{Deserialize, Serialize};
use shuffle::{BlockPartition, Geometry, OrderDigest};
use std::time::Duration;

/// How the nodes below a reader are to read on. What is None stays as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ScanControl {
    /// The next scan is one of this epoch.
    pub epoch: Option<u64>,
    /// The scan reads this many pages of each table: those that there were when the first process began.
    pub pages_of_tables: Option<Vec<u32>>,
    /// Blocks have this many pages: as many as the first process has found.
    pub pages_per_block: Option<u32>,
    /// From the next epoch on, this process reads one partition of the blocks.
    pub rank: Option<Rank>,
    /// From the next epoch on, all of this many processes read all blocks, each for itself.
    pub replica: Option<Rank>,
    pub cache: Option<CacheControl>,
    /// What epoch 0, which comes before the first one that is learned from, reads; of few pages, all.
    pub preparation: Option<Prepare>,
    /// What EXPLAIN says about who fills the buffers.
    #[serde(skip)]
    pub loader: Option<LoaderShown>,
}

/// Which of several processes this one is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Rank {
    pub processes: u32,
    /// from 0, which is the leader's
    pub rank: u32,
}

/// What becomes of decoded tuples that are kept for later epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheControl {
    /// None are kept in the batch, because another process sees it.
    FileOnly,
    /// All are freed, because another process reads on.
    Free,
    /// All are freed, because tuples will be scaled otherwise: the next epoch keeps its own.
    Restart,
}

/// Who fills the buffers, and why it is not a worker.
#[derive(Debug, Clone)]
pub struct LoaderShown {
    pub place: &'static str,
    pub why: Option<Unavailable>,
}

impl ScanControl {
    /// Makes the next scan one of this epoch.
    pub fn epoch(epoch: u64) -> ScanControl {
        ScanControl { epoch: Some(epoch), ..ScanControl::default() }
    }

    /// The same for another one of the processes.
    pub fn of(&self, rank: Rank) -> ScanControl {
        ScanControl { rank: self.rank.map(|_| rank), replica: self.replica.map(|_| rank), ..self.clone() }
    }
}

impl Rank {
    /// The partition of the blocks that this process reads.
    pub fn partition(self) -> BlockPartition {
        BlockPartition::new(self.processes, self.rank)
    }
}

/// Findings and measurements of the nodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScanReport {
    /// The epoch of the scan that is under way, or of the next.
    pub epoch: u64,
    /// The number, from 1, of the block that was begun last in this epoch.
    pub block: usize,
    /// The number, from 0, of the buffer that this block belongs to, if there are several processes.
    pub buffer: u64,
    /// How the source falls into blocks, and how many of them a buffer should hold. Known once the source is open.
    #[serde(with = "GeometryFields")]
    pub planned_geometry: Geometry,
    /// Pages that the preparation pass has read, of how many, if it is the last that was read and has left some out.
    pub sampled_pages: Option<[u32; 2]>,
    /// The most blocks that were in the buffers of all processes.
    pub buffer_blocks: u32,
    /// Does the source consist of tables, and not of a copy of what another plan gives?
    pub reads_tables: bool,
    /// Pages of each of these tables. Known once they are open.
    pub pages_of_tables: Option<Vec<u32>>,
    /// None if the strategy makes none.
    pub full_shuffles: Option<FullShuffleCosts>,
    /// What is kept for later epochs. Known at the end of an epoch.
    pub kept: Option<KeptTuples>,
    /// Is the source to be read together with other sessions?
    pub shares: bool,
    /// Why the source is not read together with other sessions, although that was asked for.
    pub not_shared: Option<String>,
    pub blocks: BlockCounters,
    pub buffers: BufferCounters,
}

/// Measurements of BlockShuffle.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct BlockCounters {
    /// blocks begun in all epochs
    pub blocks: u64,
    pub epochs: u64,
    pub scan: Duration,
    pub decode: Duration,
    pub share: ShareCounters,
    #[serde(with = "digest")]
    pub order: OrderDigest,
}

/// What it came to that other sessions read the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ShareCounters {
    /// of the reading group, at most, this reader among them; 0: it was no member
    pub members: u32,
    /// blocks that the reader has drawn by itself, and those that another member had drawn before
    pub drawn: u64,
    pub followed: u64,
}

/// A digest travels as a number.
mod digest {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use shuffle::OrderDigest;

    pub fn serialize<S: Serializer>(digest: &OrderDigest, serializer: S) -> Result<S::Ok, S::Error> {
        digest.value().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OrderDigest, D::Error> {
        let mut digest = OrderDigest::default();
        digest.add(u64::deserialize(deserializer)?);
        Ok(digest)
    }
}

/// Measurements of TupleShuffle.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct BufferCounters {
    pub buffers: u64,
    /// of the fullest buffer
    pub blocks: u64,
    pub tuples: usize,
    pub bytes: usize,
    pub shuffle: Duration,
}

/// Bytes in memory, bytes in a file, and blocks that are kept; or why none are.
pub type KeptTuples = std::result::Result<(u64, u64, usize), String>;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FullShuffleCosts {
    /// to read the source, or the copy before, to sort it and to write the copy, for the epoch under way, 0 if the copy
    /// serves it, too; and for all epochs
    pub epoch: Duration,
    pub total: Duration,
    /// of the last copy
    pub bytes: u64,
    /// of the last sort
    pub space: Option<SortSpace>,
}

/// As serde sees [`Geometry`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Geometry")]
struct GeometryFields {
    pages: u32,
    pages_per_block: u32,
    blocks: u32,
    buffer_blocks: u32,
}

impl BlockCounters {
    /// Adds what another process has measured.
    pub fn add(&mut self, other: &BlockCounters) {
        self.blocks += other.blocks;
        self.epochs += other.epochs;
        self.scan += other.scan;
        self.decode += other.decode;
        self.share.members = self.share.members.max(other.share.members);
        self.share.drawn += other.share.drawn;
        self.share.followed += other.share.followed;
        self.order.add(other.order.value());
    }
}

impl BufferCounters {
    /// Adds what another process has measured.
    pub fn add(&mut self, other: &BufferCounters) {
        self.buffers += other.buffers;
        self.blocks = self.blocks.max(other.blocks);
        self.tuples = self.tuples.max(other.tuples);
        self.bytes = self.bytes.max(other.bytes);
        self.shuffle += other.shuffle;
    }
}

impl ScanReport {
    /// How the source falls into blocks, and how many of them the buffer really held. Known once it has been read.
    pub fn geometry(&self) -> Geometry {
        Geometry { buffer_blocks: self.buffer_blocks, ..self.planned_geometry }
    }

    /// Time that a full shuffle before this epoch took.
    pub fn full_shuffle_time(&self) -> Duration {
        self.full_shuffles.as_ref().map_or(Duration::ZERO, |costs| costs.epoch)
    }

    /// Bytes of the copy that a full shuffle has made. None if it made no copy.
    pub fn full_shuffle_bytes(&self) -> Option<u64> {
        self.full_shuffles.as_ref().map(|costs| costs.bytes)
    }

    /// Are the tuples of all blocks kept? Known at the end of an epoch.
    pub fn keeps_all(&self) -> bool {
        matches!(self.kept, Some(Ok((_, _, blocks))) if blocks == self.planned_geometry.blocks as usize)
    }
}
