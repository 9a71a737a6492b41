//! What went wrong, as exceptions of Python's usual classes.

use std::io::ErrorKind;

use loading::PlanError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use source::SourceError as Error;

create_exception!(
    corgipile,
    SourceError,
    PyException,
    "Data that is damaged, changed while it was read, or of another schema than it should be."
);

/// The exception for what a source says.
pub(crate) fn of_source(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Damaged { .. } | Error::Schema { .. } | Error::Changed { .. } | Error::Database(_) => {
            SourceError::new_err(text)
        }
        Error::Invalid(_) => PyValueError::new_err(text),
        // with the number of the error, Python chooses the class: FileNotFoundError, PermissionError
        Error::Io { path, error } => match error.raw_os_error() {
            Some(number) => {
                // which Python says itself
                let said = error.to_string().replace(&format!(" (os error {number})"), "");
                PyOSError::new_err((number, said, path.into_os_string()))
            }
            None if error.kind() == ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
            None => PyOSError::new_err(text),
        },
        Error::Cancelled => PyRuntimeError::new_err(text),
    }
}

/// The exception for a plan that cannot be made.
pub(crate) fn of_plan(error: PlanError) -> PyErr {
    match error {
        PlanError::Source(error) => of_source(error),
        error => PyValueError::new_err(error.to_string()),
    }
}
