//! In which order SGD sees a table's tuples: strategies, seeded permutations, and the geometry of blocks and buffers.
//!
//! It guarantees that an order is a pure function of its arguments: anyone who knows the seed, the epoch and the
//! numbers of blocks and buffers (a rescan, another worker, another machine) computes the same order without asking
//! anyone. It prevents what the authors' prototype did: one permutation drawn per query and used for every buffer and
//! epoch, and a default geometry that leaves two or three blocks in the buffer, which on clustered data is almost no
//! shuffle at all.
//!
//! The strategies are those of Table 1 of Xu et al., "In-Database Machine Learning with CorgiPile: Stochastic Gradient
//! Descent without Full Data Shuffle", SIGMOD 2022; multiplexed reservoir sampling is that of Feng et al., "Towards a
//! Unified Architecture for in-RDBMS Analytics" (Bismarck), SIGMOD 2012.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod blocks;
mod digest;
mod folds;
mod follow;
mod geometry;
mod lanes;
mod mixer;
mod mixing;
mod order;
mod partition;
mod permutation;
mod random;
mod sample;
mod size;
mod strategies;
mod stratified;
mod window;

pub use blocks::{Blocks, TooManyBlocks};
pub use digest::OrderDigest;
pub use folds::{Cuts, DISTINCT, FoldKeys, FoldRule, Strata, ValueCounts, part_of_key};
pub use follow::{Board, Followed, Follower, Job, JobSet, MAX_JOBS};
pub use geometry::{FEW_BLOCKS, Geometry, MIN_BLOCKS_IN_BUFFER, Seeks, Sizes};
pub use lanes::{BlockSequence, LaneBatch, Lanes, Share};
pub use mixer::Mixer;
pub use mixing::{Mixing, correlation};
pub use order::{OutOfMemory, TupleOrder};
pub use partition::{BlockPartition, MAX_PROCESSES, PartitionEpoch, RoundRobin};
pub use permutation::{SortKeys, block_order, block_order_pausing, shuffle_dealt_tuples, shuffle_tuples};
pub use random::{ALONE, FOLLOW, SHARED, below, stream};
pub use sample::sample_blocks;
pub use size::{BlockSize, BufferSize, CHEAP_BLOCK_BYTES, MAX_BLOCK_BYTES, SizeError, WHOLE_TABLE_BYTES};
pub use strategies::{CHUNKS_PER_BUFFER, Strategy, UnknownStrategy};
pub use window::Window;
