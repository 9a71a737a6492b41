//! Calls: the arguments of our functions, aggregates and triggers, and statements of ours that PostgreSQL runs.

pub mod aggregate;
pub mod arguments;
pub mod spi;
pub mod trigger;
