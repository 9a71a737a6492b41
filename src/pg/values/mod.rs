//! Values of PostgreSQL's types, read without copies where that can be.

pub mod array;
pub mod distinct;
mod fold;
pub mod jsonb;
pub mod number;
pub mod record;
pub mod sparse;
pub mod varlena;
