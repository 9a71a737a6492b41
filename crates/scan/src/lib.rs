//! How rows are read: the nodes BlockShuffle and TupleShuffle, the loader in a worker, reading shared among trainings.
//!
//! Between our own nodes whole buffers travel ([`tuples::Batch`]); to any other parent each node speaks the executor's
//! protocol of one slot at a time.
// Used by the extension alone: a field or a variant needs no text beyond its name, and no caller asks whether a length
// is 0.
#![allow(missing_docs, clippy::len_without_is_empty, clippy::new_without_default, clippy::result_unit_err)]

pub mod block_shuffle;
mod buffers;
pub mod loader;
pub mod mini_batches;
mod plan;
pub mod preparation;
pub mod progress;
pub mod reading_groups;
pub mod scan_control;
pub mod shuffle_scan;
mod source;
#[cfg(feature = "pg_test")]
pub mod testing;
pub mod tuple_shuffle;
pub mod worker_rows;

pub use buffers::Buffers;
pub use source::{Source, looks_like_query};
