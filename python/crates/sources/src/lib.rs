//! The formats that rows are read from in blocks: one file or folder each, behind [`source::Source`].
//!
//! A format finds its units when it is opened and reads parts of them ([`UnitReader`]). What all formats have in common
//! is in [`Dataset`]: which units a range of rows touches, what is skipped, how parts become one batch. Formats that do
//! not say where their rows begin have an [`index`].

mod columns;
pub mod csv;
mod dataset;
mod files;
mod filled;
pub mod index;
mod indexed;
pub mod ipc;
mod layout;
pub mod libsvm;
pub mod parquet;
mod pool;
pub mod postgres;
pub mod tfrecord;
pub mod webdataset;

pub use dataset::{Dataset, OnError, Part, UnitReader};
pub use filled::Filled;
