//! CorgiPileBlockShuffle: the blocks of a table in random order.
//!
//! A block is a run of contiguous heap pages. Each scan visits every block once, in the seeded random order of its
//! epoch, and gives the tuples that the statement's snapshot sees; a rescan is the next epoch. The number of pages is
//! fixed when the first scan begins, so that every epoch sees the same rows.
//!
//! The tables of a partitioned table are read as if they were one: their nodes hang below an Append, and a node on top
//! of that takes their blocks in random order.
//!
//! If the rows come from another plan, the node has that plan as its child. It spools the child's rows once and
//! shuffles the pages of the spool. A full shuffle of any source is made in the same way: the rows are sorted on their
//! way into the spool, which is then read as it lies.

mod cache;
mod exec;
mod explain;
mod full_shuffle;
mod node;
mod order;
mod page_rows;
mod pages;
mod partitioned_pages;
mod shared_order;
mod sharing;
mod state;

pub use state::{BlockShuffle, Limits};
