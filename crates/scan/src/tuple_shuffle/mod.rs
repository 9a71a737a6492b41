//! CorgiPileTupleShuffle: mixes the tuples of some random blocks.
//!
//! Fills a buffer from the BlockShuffle below, decides in which order the tuples in it are learned from and which of
//! them stay ([`shuffle::Mixer`]), and gives them in that order, until the blocks are used up. To SGD it hands the
//! whole buffer as a Batch, to any other parent slots.

mod exec;
mod explain;
mod node;
mod places;
mod state;

pub use state::TupleShuffle;
