//! Sources, and how each kind of them is opened.

use crate::errors;
use crate::waiting::in_thread;
use pyo3::prelude::*;
use source::Cancel;
use sources::OnError;
use std::sync::Arc;

/// Rows that can be read in blocks.
#[pyclass(frozen, module = "corgipile._native")]
pub struct Source(pub(crate) Arc<dyn source::Source>);

#[pymethods]
impl Source {
    /// How many rows there are.
    #[getter]
    pub(crate) fn rows(&self) -> u64 {
        self.0.units().iter().map(|unit| unit.rows).sum()
    }

    /// About how many bytes of memory they take.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.units().iter().map(|unit| unit.bytes).sum()
    }

    /// What the rows, their number and order, depend on.
    #[getter]
    fn fingerprint(&self) -> u64 {
        self.0.fingerprint()
    }

    /// Names of the columns and their types, as Arrow calls them.
    #[getter]
    fn columns(&self) -> Vec<(String, String)> {
        let schema = self.0.schema();
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    }

    /// How many damaged rows were skipped so far.
    #[getter]
    fn skipped(&self) -> u64 {
        self.0.skipped()
    }
}

/// What to do about damaged rows, by the name that users know.
fn on_error(name: &str) -> PyResult<OnError> {
    match name {
        "raise" => Ok(OnError::Raise),
        "skip" => Ok(OnError::Skip),
        _ => Err(pyo3::exceptions::PyValueError::new_err(format!("on_error: {name:?} is neither 'raise' nor 'skip'"))),
    }
}

/// Opens a source without the interpreter's lock, and stops at Ctrl-C.
fn open<S: source::Source + 'static>(
    py: Python<'_>,
    open: impl FnOnce(&Cancel) -> Result<S, source::SourceError> + Send,
) -> PyResult<Source> {
    let opened = in_thread(py, |cancel| open(cancel).map_err(errors::of_source), || Ok(()))?;
    Ok(Source(Arc::new(opened)))
}

/// Rows of Parquet files.
#[pyfunction]
#[pyo3(signature = (paths, columns=None, on_error="raise", fixed_lists=true))]
pub fn parquet(
    py: Python<'_>,
    paths: Vec<String>,
    columns: Option<Vec<String>>,
    on_error: &str,
    fixed_lists: bool,
) -> PyResult<Source> {
    let options = sources::parquet::Options { columns, on_error: self::on_error(on_error)?, fixed_lists };
    open(py, |cancel| sources::parquet::open(&paths, options, cancel))
}
