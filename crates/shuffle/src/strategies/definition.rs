//! Everything that a strategy says about itself.

use super::retention::Retention;
use crate::Geometry;
use std::ffi::CStr;

/// A buffer that keeps tuples from one read to the next reads a part of itself at once: one in this many.
pub const CHUNKS_PER_BUFFER: u32 = 8;

/// The order in which blocks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockOrder {
    /// As they lie.
    Natural,
    /// Random.
    Random,
    /// Random, with as many blocks of each part of the table in every buffer.
    Stratified,
    /// Random, and only those of the first buffer.
    OneBuffer,
}

/// When a copy of the table is sorted into random order, to be read instead of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// There is no copy.
    Never,
    /// Before the first epoch.
    Once,
    /// Before every epoch.
    EachEpoch,
}

/// Everything that a strategy says about itself. One that says nothing else reads the table as it lies:
/// [`Definition::NATURAL`].
pub(crate) struct Definition {
    /// The name by which users know the strategy.
    pub(crate) name: &'static str,
    /// The order in which blocks are read.
    pub(crate) blocks: BlockOrder,
    pub(crate) shuffles_tuples: bool,
    /// When a copy of the table is sorted.
    pub(crate) sort: Sort,
    /// What keeps tuples in the buffer from one read to the next.
    pub(crate) retention: Option<fn() -> Box<dyn Retention>>,
    /// What EXPLAIN calls the number of tuples that are kept.
    pub(crate) capacity_label: Option<&'static CStr>,
    /// Whether each tuple comes exactly once in an epoch.
    pub(crate) permutes: bool,
    /// Whether several processes can learn from it together.
    pub(crate) supports_workers: bool,
    /// Whether an aggregate can learn from it: all that it may ask of PostgreSQL is one sort.
    pub(crate) supports_aggregate: bool,
    /// Why decoded tuples cannot be kept for the next epoch.
    pub(crate) uncacheable: Option<&'static str>,
}

impl Definition {
    /// A strategy that reads the table as it lies.
    pub(super) const NATURAL: Definition = Definition {
        name: "",
        blocks: BlockOrder::Natural,
        shuffles_tuples: false,
        sort: Sort::Never,
        retention: None,
        capacity_label: None,
        permutes: true,
        supports_workers: false,
        supports_aggregate: false,
        uncacheable: None,
    };
}

/// The blocks of a chunk of the buffer.
pub(super) fn chunk_of(geometry: &Geometry) -> u32 {
    (geometry.buffer_blocks / CHUNKS_PER_BUFFER).max(1)
}
