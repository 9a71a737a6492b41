//! The arguments of corgipile_train() and the keys of its argument `options`: one table, and what is read and shown by
//! it, as values that every layer above understands.
//!
//! It guarantees that ranges, defaults and what a warm start takes over are written once. To add an option is to add an
//! entry to [`table`], and to use it.
// Used by the extension alone: a field or a variant needs no text beyond its name, and no caller asks whether a length
// is 0.
#![allow(missing_docs, clippy::len_without_is_empty, clippy::new_without_default, clippy::result_unit_err)]

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
pub mod settings;
pub mod shuffling;
pub mod table;
mod trials;
pub mod warm_start;
