//! A model as a JSON document, docs/reference/model-format.md: written, and read from whoever gives it,
//! who is trusted with nothing.

mod keys;
mod number;
mod read;
mod write;

pub use read::ModelDocument;
pub use write::export;
