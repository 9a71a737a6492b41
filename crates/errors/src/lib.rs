//! Every error that corgipile raises itself, by domain.
//!
//! Code returns `Result<_, Error>`, and the border to PostgreSQL calls [`OrRaise::or_raise`]. Each domain has an enum
//! with a variant for each thing that can be wrong, where its message, SQLSTATE and hint are ([`Report`]). What is
//! wrong with what PostgreSQL is asked for is crate `pg`'s.
// Used by the extension alone: a field or a variant needs no text beyond its name, and no caller asks whether a length
// is 0.
#![allow(missing_docs, clippy::len_without_is_empty, clippy::new_without_default, clippy::result_unit_err)]

mod aggregate;
mod argument;
mod decoder;
pub mod limits;
mod models;
mod nodes;
mod predict;
mod source;
mod the_model;
mod toc;
mod training;
mod words;

pub use aggregate::AggregateError;
pub use argument::{ArgumentError, meant};
pub use decoder::{DecoderError, RowFault};
pub use models::{ModelError, OwnerNeeded};
pub use nodes::{Errand, NodeError};
pub use pg::errors::{Code, Error as PgError, Report, did_you_mean, excerpt, raise};
pub use pg::tuples::place::RowAt;
pub use predict::PredictError;
pub use source::SourceError;
pub use the_model::{INLINE_MODEL_ID, TheModel};
pub use toc::TocError;
pub use training::TrainingError;
pub use words::{NAMED, one_of, some_of};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error, Report)]
#[error(transparent)]
pub enum Error {
    Aggregate(#[from] AggregateError),
    Argument(#[from] ArgumentError),
    Decoder(#[from] DecoderError),
    Model(#[from] ModelError),
    Node(#[from] NodeError),
    Pg(#[from] PgError),
    Predict(#[from] PredictError),
    Source(#[from] SourceError),
    Toc(#[from] TocError),
    Training(#[from] TrainingError),
}

/// Turns our `Result` into a value or a PostgreSQL error.
pub trait OrRaise<T> {
    /// The value, or the error raised.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|e| raise(&e))
    }
}

impl From<tuples::OutOfMemory> for Error {
    fn from(error: tuples::OutOfMemory) -> Error {
        PgError::OutOfMemory(error.bytes).into()
    }
}
