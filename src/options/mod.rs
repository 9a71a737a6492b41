//! The arguments of corgipile_train() and the keys of its argument `options`: one table, and what is read and shown by
//! it, as values that every layer above understands.
//!
//! It guarantees that ranges, defaults and what a warm start takes over are written once. To add an option is to add an
//! entry to [`table`], and to use it.

mod as_written;
pub mod cache;
pub mod call;
pub mod chosen;
pub mod columns;
pub mod date_parts;
mod defaults;
pub mod entry;
pub mod explain;
pub mod folds;
mod given;
pub mod grid;
pub mod loader;
pub mod loss;
pub mod model_name;
pub mod nodes;
pub mod objective;
pub mod parse;
pub mod request;
mod rounding;
pub mod row_groups;
pub mod rows;
pub mod search;
pub mod shuffling;
pub mod table;
mod trials;
pub mod warm_start;
