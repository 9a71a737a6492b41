//! Which rows belong into which batch.
//!
//! It guarantees that all ranks have equally many batches, of the same size at each step, unless unequal ones are asked
//! for; that is what keeps gradients that are averaged between them from waiting for ever.

use crate::pieces::Layout;
use crate::size::Size;
use shuffle::{BlockSequence, Blocks, Lanes, MAX_BLOCK_BYTES, MIN_BLOCKS_IN_BUFFER, Strategy, TooManyBlocks};
use source::{Source, SourceError, Unit};
use std::sync::Arc;

/// How rows are shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shuffle {
    /// Blocks in random order, and the rows in a buffer full of them.
    CorgiPile,
    /// As `CorgiPile`, with the paper's draw: all sets of blocks are equally likely in a buffer.
    CorgiPileSimple,
    /// Blocks in random order, the rows in them as they lie.
    BlockOnly,
    /// As `BlockOnly`, with the blocks drawn as `CorgiPile` draws them.
    BlockOnlyStratified,
    /// Rows as they lie, through a window of a buffer's size.
    SlidingWindow,
    /// Blocks in random order, their rows through a window of a buffer's size.
    BlockWindow,
    /// Rows as they lie.
    None,
}

impl Shuffle {
    /// All of them, by the names users know.
    pub const ALL: [(&'static str, Shuffle); 7] = [
        ("corgipile", Shuffle::CorgiPile),
        ("corgipile_simple", Shuffle::CorgiPileSimple),
        ("block_only", Shuffle::BlockOnly),
        ("block_only_stratified", Shuffle::BlockOnlyStratified),
        ("sliding_window", Shuffle::SlidingWindow),
        ("block_window", Shuffle::BlockWindow),
        ("no_shuffle", Shuffle::None),
    ];

    /// What it does with blocks and with the rows of a buffer.
    fn strategy(self) -> Strategy {
        match self {
            Shuffle::CorgiPile => Strategy::CorgiPile,
            Shuffle::CorgiPileSimple => Strategy::CorgiPileSimple,
            Shuffle::BlockOnlyStratified => Strategy::BlockOnlyStratified,
            Shuffle::BlockOnly | Shuffle::BlockWindow => Strategy::BlockOnly,
            Shuffle::SlidingWindow | Shuffle::None => Strategy::NoShuffle,
        }
    }

    /// Whether rows go through a window.
    pub fn has_window(self) -> bool {
        matches!(self, Shuffle::SlidingWindow | Shuffle::BlockWindow)
    }
}

/// What becomes of the last rows of an epoch, if they do not suffice for a batch of the same size on every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranks {
    /// Some rows come again, at most one less than there are ranks.
    Pad,
    /// Some rows are left out, at most one less than there are ranks.
    Drop,
    /// Ranks get different numbers of rows, and perhaps of batches, for those that join them (`torch`'s `Join`).
    Join,
}

/// What users can choose.
#[derive(Debug, Clone)]
pub struct Config {
    /// Rows that lie together and are read together.
    pub block_size: Size,
    /// Rows that are shuffled among each other: those in the memory of all processes together.
    pub buffer_size: Size,
    /// How rows are shuffled.
    pub shuffle: Shuffle,
    /// Names the orders; another seed, other orders.
    pub seed: i64,
    /// Rows in a batch of one rank.
    pub batch_size: u32,
    /// Lanes of an epoch, a multiple of `together`.
    pub lanes: u32,
    /// Lanes over which the last rows are spread evenly, a multiple of the ranks: all, if the order is to be the same
    /// for any number of ranks; as many as there are ranks, if it may depend on it.
    pub together: u32,
    /// Processes that learn together.
    pub world_size: u32,
    /// What becomes of the last rows.
    pub ranks: Ranks,
    /// Whether batches that are not full are left out.
    pub drop_last: bool,
}

/// Why a plan cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// An argument is invalid.
    #[error("{argument}: {what}")]
    Argument {
        /// Its name.
        argument: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// Columns that no array can hold.
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl From<PlanError> for SourceError {
    fn from(error: PlanError) -> SourceError {
        match error {
            PlanError::Source(error) => error,
            error => SourceError::Invalid(error.to_string()),
        }
    }
}

/// One of the workers of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker {
    /// Which it is, from 0.
    pub index: u32,
    /// How many there are, at least 1.
    pub workers: u32,
}

/// What a batch of a rank holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsOfBatch {
    /// Whose rows they are.
    pub lane: u32,
    /// Rows of the lane before them.
    pub first: u64,
    /// How many rows of the lane.
    pub rows: u32,
    /// Whether a row that came before comes again behind them.
    pub padded: bool,
}

/// Every batch of every epoch.
pub struct Plan {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) layout: Layout,
    pub(crate) blocks: Blocks,
    pub(crate) lanes: Lanes,
    pub(crate) config: Config,
    buffers: u32,
    bytes: u64,
}

/// More lanes would be more threads and buffers than anybody has.
const MAX_LANES: u32 = 1 << 16;

fn refuse<T>(argument: &'static str, what: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::Argument { argument, what: what.into() })
}

impl Plan {
    /// The plan for `source`.
    ///
    /// # Errors
    /// [`PlanError`]
    pub fn new(source: Arc<dyn Source>, config: Config) -> Result<Plan, PlanError> {
        if config.batch_size == 0 {
            return refuse("batch_size", "a batch has at least 1 row");
        }
        if config.world_size == 0 {
            return refuse("world_size", "there is at least 1 rank");
        }
        let (lanes, together, world_size) = (config.lanes, config.together, config.world_size);
        if together == 0 || !together.is_multiple_of(world_size) {
            return refuse("lanes", format!("{together} is not a multiple of the {world_size} ranks that share them"));
        }
        if lanes == 0 || lanes > MAX_LANES || !lanes.is_multiple_of(together) {
            return refuse("lanes", format!("{lanes} is not a multiple of {together}, or more than {MAX_LANES}"));
        }
        let layout = Layout::new(&source.schema())?;
        let rows = source.units().iter().map(|unit| unit.rows).sum();
        let bytes = source.units().iter().map(|unit| unit.bytes).sum::<u64>().max(rows);
        let buffers = buffers(config.buffer_size, rows, bytes);
        let blocks = blocks(&*source, config.block_size, buffers, [rows, bytes])?;
        let buffers = buffers.min(blocks.len().max(1).into()) as u32;
        let lanes = Lanes::new(lanes, together, config.batch_size, rows);
        if rows / u64::from(lanes.lanes()) / u64::from(buffers) >= u32::MAX.into() {
            return refuse("buffer_size", "a lane's buffer has less than 4294967295 rows");
        }
        Ok(Plan { source, layout, blocks, lanes, config, buffers, bytes })
    }

    /// What the user chose.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Rows of the source.
    pub fn rows(&self) -> u64 {
        self.blocks.tuples()
    }

    /// About how many bytes of memory a row takes.
    pub(crate) fn bytes_of(&self, rows: u64) -> u64 {
        (u128::from(rows) * u128::from(self.bytes) / u128::from(self.rows().max(1))) as u64
    }

    /// Blocks of the source.
    pub fn blocks(&self) -> u32 {
        self.blocks.len()
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> u32 {
        self.lanes.lanes()
    }

    /// How many buffers an epoch takes.
    pub fn buffers(&self) -> u32 {
        self.buffers
    }

    /// Names and kinds of the columns.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How many rows a lane's window holds.
    pub(crate) fn window(&self) -> usize {
        (self.rows() / u64::from(self.buffers) / u64::from(self.lanes())) as usize
    }

    /// The order of the blocks in an epoch, from 0: the first of them is what the extension counts as epoch 1.
    pub(crate) fn sequence(&self, epoch: u64) -> BlockSequence {
        let buffers = if self.config.shuffle.has_window() {
            // a window takes in a part of itself at once
            self.buffers.saturating_mul(shuffle::CHUNKS_PER_BUFFER)
        } else {
            self.buffers
        };
        BlockSequence::new(self.config.shuffle.strategy(), self.config.seed, epoch + 1, &self.blocks, buffers)
    }

    /// Shuffles the rows of a lane's buffer.
    pub(crate) fn shuffle<T>(&self, epoch: u64, lane: u32, buffer: u32, order: &mut [T]) {
        let ordinal = u64::from(lane) << 32 | u64::from(buffer);
        shuffle::shuffle_tuples(self.config.shuffle.strategy(), self.config.seed, epoch + 1, ordinal, order);
    }

    /// How many batches a rank has in an epoch.
    pub fn batches(&self, rank: u32) -> u64 {
        let world_size = u64::from(self.config.world_size);
        let steps = self.lanes.batches() / world_size;
        // only the last lanes' steps may be empty
        let last = (0..steps).rev().take(self.lanes.together() as usize);
        steps - last.take_while(|step| self.batch(rank, *step).is_none()).count() as u64
    }

    /// Batch number `number` of a rank; None behind its last.
    pub fn batch(&self, rank: u32, number: u64) -> Option<RowsOfBatch> {
        let world_size = u64::from(self.config.world_size);
        let first = number * world_size;
        if first >= self.lanes.batches() {
            return None;
        }
        let batch = self.lanes.batch(first + u64::from(rank));
        let (rows, padded) = match self.config.ranks {
            Ranks::Pad => (batch.tuples, self.lanes.batch(first).tuples > batch.tuples),
            Ranks::Drop => (self.lanes.batch(first + world_size - 1).tuples, false),
            Ranks::Join => (batch.tuples, false),
        };
        let in_all = rows + u32::from(padded);
        let wanted = if self.config.drop_last { self.config.batch_size } else { 1 };
        (in_all >= wanted).then_some(RowsOfBatch { lane: batch.lane, first: batch.first, rows, padded })
    }

    /// The row that comes again behind the last batch of a lane.
    pub(crate) fn substitute(&self, sequence: &BlockSequence, lane: u32) -> Option<u64> {
        sequence.substitute(&self.blocks, lane.into())
    }

    /// How many of `workers` workers of a rank have batches of their own: each has whole lanes, the same number of
    /// them.
    pub fn active_workers(&self, workers: u32) -> u32 {
        let lanes = self.lanes() / self.config.world_size;
        (1..=workers.clamp(1, lanes)).rev().find(|workers| lanes.is_multiple_of(*workers)).unwrap_or(1)
    }

    /// What orders and batches depend on, but for seed and epoch. The same number of another plan means the same
    /// batches.
    pub fn fingerprint(&self) -> u64 {
        let config = &self.config;
        let numbers = [
            self.source.fingerprint(),
            self.rows(),
            self.blocks.len().into(),
            self.buffers.into(),
            config.shuffle as u64,
        ];
        // FNV-1a, which never changes
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }
}

/// How many buffers an epoch takes: as few as have room for the rows.
pub(crate) fn buffers(size: Size, rows: u64, bytes: u64) -> u64 {
    match size {
        Size::Auto if bytes <= shuffle::WHOLE_TABLE_BYTES => 1,
        Size::Auto => 10,
        Size::Rows(size) => rows.div_ceil(size.max(1)),
        Size::Bytes(size) => bytes.div_ceil(size.max(1)),
        // a buffer of 10% is a tenth, whatever floats make of it
        Size::Percent(percent) => (100.0 / percent - 1e-9).ceil() as u64,
    }
    .clamp(1, rows.clamp(1, u32::MAX.into()))
}

/// A source cut into blocks of this size, which must not be [`Size::Auto`], for the one that orders them by other rules
/// than a plan's.
///
/// # Errors
/// If there are too many of them.
pub fn elements(source: &dyn Source, size: Size) -> Result<Blocks, SourceError> {
    let rows = source.units().iter().map(|unit| unit.rows).sum();
    let bytes = source.units().iter().map(|unit| unit.bytes).sum::<u64>().max(rows);
    Ok(blocks(source, size, 1, [rows, bytes])?)
}

/// Blocks of about `size` bytes, each of which is read without reading more than it, unless it would take more memory
/// than `largest`.
pub(crate) fn of_whole_runs(source: &dyn Source, size: u64, largest: u64) -> Result<Blocks, TooManyBlocks> {
    let weight = |unit: &Unit| (unit.rows, unit.bytes.max(1));
    match source.whole_runs() {
        None => Blocks::of_units(source.units().iter().map(weight), size),
        Some(runs) => Blocks::of_whole_units(runs.iter().map(weight), size, largest),
    }
}

/// The blocks of a source, of this size.
pub(crate) fn blocks(
    source: &dyn Source,
    size: Size,
    buffers: u64,
    [rows, bytes]: [u64; 2],
) -> Result<Blocks, PlanError> {
    let by_bytes = |size| Blocks::of_units(source.units().iter().map(|unit| (unit.rows, unit.bytes.max(1))), size);
    let by_rows = |size| Blocks::of_units(source.units().iter().map(|unit| (unit.rows, unit.rows)), size);
    let blocks = match size {
        // as the extension does: as large as they can be with hundreds of them in the buffer
        Size::Auto => {
            let size = (bytes / buffers / u64::from(MIN_BLOCKS_IN_BUFFER)).min(MAX_BLOCK_BYTES);
            // memory for a buffer is there, and not for more
            of_whole_runs(source, size, bytes / buffers)
        }
        Size::Rows(size) => by_rows(size),
        Size::Bytes(size) => by_bytes(size),
        Size::Percent(percent) => by_rows((rows as f64 * percent / 100.0).ceil() as u64),
    };
    blocks.or_else(|_| refuse("block_size", "the source has too many blocks of this size: choose a larger one"))
}
