//! Heap pages in any order, each giving the tuples that a snapshot sees.
//!
//! heapgetpage() does the reading, pruning, visibility checks and conflict checks of a sequential scan. A page whose
//! tuples everybody sees needs none of that but the reading, which is then done here, one page ahead: the next page
//! comes to the processor while the rows of this one are read.

mod buffers;
mod relation;
mod rows;
mod scan;

pub use relation::HeapRelation;
pub use rows::HeapRows;
pub use scan::PageScan;
