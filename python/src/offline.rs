//! Copies of a source in another order.

use crate::sources::{Source, apart};
use loading::Offline;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use source::{Cancel, SourceError};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells Python's function of the progress, if there is one: rows that were read and written, of how many.
fn teller<'a>(
    py: Python<'a>,
    progress: Option<&'a Py<PyAny>>,
    done: &'a AtomicU64,
    of: u64,
) -> impl FnMut() -> PyResult<()> + 'a {
    move || match progress {
        Some(progress) => progress.call1(py, (done.load(Ordering::Relaxed), of)).map(drop),
        None => Ok(()),
    }
}

/// Copies a source's rows into an Arrow file, fully shuffled, in about so much memory.
#[pyfunction]
#[pyo3(signature = (source, path, seed, memory, progress=None))]
pub fn shuffle_once(
    py: Python<'_>,
    source: &Source,
    path: PathBuf,
    seed: i64,
    memory: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let (rows, done) = (source.rows(), AtomicU64::new(0));
    let work = |cancel: &Cancel| Offline::new(&*source.0, seed, &path, cancel, &done).shuffle_once(memory);
    apart(py, work, teller(py, progress.as_ref(), &done, 2 * rows))
}

/// Copies a source's rows into an Arrow file in the order in which CorgiPile reads them.
#[pyfunction]
#[pyo3(signature = (source, path, seed, block_size, buffer_size, progress=None))]
pub fn corgi2(
    py: Python<'_>,
    source: &Source,
    path: PathBuf,
    seed: i64,
    block_size: &str,
    buffer_size: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let size =
        |argument, text: &str| text.parse().map_err(|error| PyValueError::new_err(format!("{argument}: {error}")));
    let (block_size, buffer_size) = (size("block_size", block_size)?, size("buffer_size", buffer_size)?);
    let (rows, done) = (source.rows(), AtomicU64::new(0));
    let work = |cancel: &Cancel| {
        Offline::new(&*source.0, seed, &path, cancel, &done).corgi2(block_size, buffer_size).map_err(SourceError::from)
    };
    apart(py, work, teller(py, progress.as_ref(), &done, 2 * rows))
}
