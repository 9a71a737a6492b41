//! What the native modules of Python are made of: sources, plans and readers, and with feature `joader` JOADER's server
//! and jobs.
//!
//! It only translates. It guarantees that anyone who waits for rows does not hold the interpreter's lock, and that
//! Ctrl-C works while he waits; and that an error is one of Python's usual classes.

mod arrays;
mod batches;
mod errors;
#[cfg(feature = "joader")]
mod joader;
mod map_style;
mod offline;
mod plan;
#[cfg(feature = "joader")]
mod slots;
mod sources;
mod types;

pub use ::sources::libsvm::MOST_DENSE;
pub use arrays::memory;
pub use errors::SourceError;
#[cfg(feature = "joader")]
pub use joader::{JoaderError, JoaderJob, joader_data_sets, joader_drop, joader_put, joader_serve, joader_status};
pub use map_style::{Items, items};
pub use offline::{corgi2, shuffle_once};
pub use plan::{Plan, Reader};
#[cfg(feature = "joader")]
pub use slots::{Preparers, Slot, dict_to_slot, slot_to_dict};
pub use sources::{
    HeldSnapshot, Shuffled, Source, arrow, build_index, csv, has_password, libsvm, parquet, postgres,
    postgres_shuffled, tfrecord, webdataset,
};
