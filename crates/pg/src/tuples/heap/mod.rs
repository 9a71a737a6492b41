//! Heap pages in any order, each giving the tuples that a snapshot sees.
//!
//! heapgetpage() does the reading, pruning, visibility checks and conflict checks of a sequential scan. A page whose
//! tuples everybody sees needs none of that but the reading, and tuples of one transaction need one visibility check
//! for them all. So these are done here, one page ahead: the next page comes to the processor while the rows of this
//! one are read. Where conflicts or the age of snapshots are to be looked for, or a standby may not trust its pages, it
//! is left to heapgetpage().

mod buffers;
mod relation;
mod rows;
mod scan;
mod stream;
mod visibility;
#[cfg(feature = "pg_test")]
pub mod visibility_fuzzer;

pub use relation::HeapRelation;
pub use rows::HeapRows;
pub use scan::PageScan;
