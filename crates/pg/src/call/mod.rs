//! Calls: of our functions and triggers by PostgreSQL, and statements of ours that PostgreSQL runs.

pub mod arguments;
pub mod attempt;
pub mod cursor;
pub mod function;
pub mod spi;
pub(crate) mod spread_row;
pub mod trigger;
