//! The formats that rows are read from in blocks: one file or folder each, behind [`source::Source`].
//!
//! A format finds its units when it is opened and reads parts of them ([`UnitReader`]). What all formats have in common
//! is in [`Dataset`]: which units a range of rows touches, what is skipped, how parts become one batch.

mod columns;
mod dataset;
mod files;
mod layout;
pub mod parquet;

pub use dataset::{Dataset, OnError, UnitReader};
