//! Every error that corgipile raises itself, by domain.
//!
//! Code returns `Result<_, Error>`, and the border to PostgreSQL calls [`OrRaise::or_raise`]. Each domain has an enum
//! with a variant for each thing that can be wrong. Its message stands at the variant, its SQLSTATE and hint in its
//! [`Report`]. Errors that PostgreSQL itself raises pass through, as far as pgrx lets them: it raises them anew with
//! SQLSTATE, message, detail and hint, and drops the position in the query.

mod aggregate;
mod argument;
mod decoder;
mod models;
mod nearest;
mod nodes;
mod notice;
mod predict;
mod report;
mod resources;
mod source;
mod the_model;
mod toc;
mod training;
mod words;

pub use aggregate::AggregateError;
pub use argument::ArgumentError;
pub use decoder::{DecoderError, Place, RowAt, RowFault};
pub use models::{ModelError, OwnerNeeded};
pub use nearest::{did_you_mean, nearest};
pub use nodes::{Errand, NodeError};
pub use notice::{Figure, FilledFeature, Notice};
pub use predict::PredictError;
pub use report::{Code, Report};
pub use resources::ResourceError;
pub use source::SourceError;
pub use the_model::{INLINE_MODEL_ID, TheModel};
pub use toc::TocError;
pub use training::TrainingError;
pub use words::{excerpt, one_of};

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;
use words::shortened;

/// `Result` with our error.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of any domain.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum Error {
    Aggregate(#[from] AggregateError),
    Argument(#[from] ArgumentError),
    Decoder(#[from] DecoderError),
    Model(#[from] ModelError),
    Node(#[from] NodeError),
    Predict(#[from] PredictError),
    Resource(#[from] ResourceError),
    Source(#[from] SourceError),
    Toc(#[from] TocError),
    Training(#[from] TrainingError),
}

impl Error {
    fn of_domain(&self) -> &dyn Report {
        match self {
            Error::Aggregate(error) => error,
            Error::Argument(error) => error,
            Error::Decoder(error) => error,
            Error::Model(error) => error,
            Error::Node(error) => error,
            Error::Predict(error) => error,
            Error::Resource(error) => error,
            Error::Source(error) => error,
            Error::Toc(error) => error,
            Error::Training(error) => error,
        }
    }

    /// Raises the error in PostgreSQL; does not return.
    pub fn raise(self) -> ! {
        let mut report = ErrorReport::new(self.sqlstate(), shortened(&self), "corgipile");
        if let Some(hint) = self.hint() {
            report = report.set_hint(shortened(&hint));
        }
        report.report(PgLogLevel::ERROR);
        unreachable!("reporting an ERROR does not return")
    }
}

/// Turns our `Result` into a value or a PostgreSQL error.
pub trait OrRaise<T> {
    /// The value, or the error raised.
    fn or_raise(self) -> T;
}

impl<T> OrRaise<T> for Result<T> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|e| e.raise())
    }
}

impl Report for Error {
    fn sqlstate(&self) -> Code {
        self.of_domain().sqlstate()
    }

    fn hint(&self) -> Option<String> {
        self.of_domain().hint()
    }
}

impl From<::tuples::OutOfMemory> for Error {
    fn from(error: ::tuples::OutOfMemory) -> Error {
        ResourceError::OutOfMemory(error.bytes).into()
    }
}
