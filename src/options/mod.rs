//! What users can say to a training: arguments and options, as values that every layer above understands.

pub mod cache;
pub mod loader;
pub mod model_name;
pub mod row_groups;
pub mod rows;
pub mod shuffling;
