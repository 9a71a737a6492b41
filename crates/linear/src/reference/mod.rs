//! The reference engine: training with any loss, optimizer, penalty and batch size, on dense or sparse tuples.
//!
//! Guarantees: all that there is to know of a training is its [`TrainerState`] and one slice of f32, its memory, of
//! which [`Arrays`](arrays::Arrays) are views: an engine owns them, and an aggregate's state is their bytes; both are
//! stepped by the same code.

mod arrays;
mod classes;
mod data_parallel;
mod dense;
mod engine;
mod exempt;
mod gradients;
mod lazy;
mod memory;
mod mini_batches;
mod sparse;
mod sparse_plain;
mod state;
mod training;

pub use engine::ReferenceEngine;
pub(crate) use sparse::Row;
pub(crate) use state::{Progress, TrainerState};
pub(crate) use training::{Training, grow, memory_size};
