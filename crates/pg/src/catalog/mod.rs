//! What the catalogs say of relations and types, files of relations, and tables that are made.

pub mod names;
mod nearest_table;
pub mod new_table;
pub mod relation;
pub mod relation_files;
pub mod sampled;
pub mod statistics;
pub mod types;
