//! Models after their training: in the table, in memory, as values, and by name.

mod catalog;
mod current_versions;
mod export;
mod export_onnx;
mod export_sql;
mod fastpath;
mod groups;
mod inline_models;
mod kept_memory;
mod management;
mod name_locks;
mod names;
mod one_statement;
mod publishing;
mod replaced;
mod shared_models;
mod stored_bytes;
mod survival;
mod transactions;
