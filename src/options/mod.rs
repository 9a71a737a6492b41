//! What users can say to a training: arguments and options, as values that every layer above understands.

pub mod cache;
pub mod limits;
pub mod loader;
pub mod rows;
pub mod shuffling;
