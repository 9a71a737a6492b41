//! The loader: which rows belong into which batch, and threads that read them ahead.
//!
//! It knows nothing of Python and nothing of file formats. A [`Plan`] says, for any process, what each of its batches
//! holds: a pure function of seed, epoch and the source. A [`Reader`] reads these batches from the source.
//!
//! It guarantees that every rank gets equally many batches, that an iteration begun in the middle of an epoch goes on
//! exactly as it would have, having read no more than a buffer of each lane again, and that no thread is started before
//! the first batch is wanted or left behind after the last.

#![forbid(unsafe_code)]

mod batch;
mod lane;
mod memory;
mod offline;
mod pieces;
mod pile;
mod pipeline;
mod plan;
mod reader;
mod size;

pub use batch::{Batch, Column, Values};
pub use memory::Memory;
pub use offline::Offline;
pub use pieces::{ColumnKind, Layout};
pub use pile::Pile;
pub use plan::{Config, Plan, PlanError, Ranks, RowsOfBatch, Shuffle, Worker, elements};
pub use reader::{Next, Reader};
pub use size::{Size, SizeError};
