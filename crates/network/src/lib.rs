//! Feed-forward networks, trained by mini-batches.
//!
//! Guarantees: a mini-batch is learned from as a whole, or in pieces whose sizes depend on the network and the batch
//! size alone, or, if the network is small and the tuples are dense, tuple by tuple. So a model is a function of the
//! sequence of tuples, whatever buffers they came in; on one kind of processor bit for bit. Features are seen through
//! [`Matrix`] only, but those of dense tuples by small networks: what makes the rows, and in what form, is the business
//! of others.

mod data_parallel;
mod engine;
mod gradient;
mod init;
mod layers;
mod losses;
mod rows;
mod small;
mod step;
mod steps;

pub use engine::NetworkEngine;

#[cfg(test)]
mod tests;
