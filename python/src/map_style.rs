//! Items of a map-style data set: Python's objects, which a thread asks for in blocks.
//!
//! To the loader they are rows with nothing but their number. The objects wait here until the batch that has them asks.

use crate::sources::Source;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyRange};
use source::{Cancel, SourceError, Unit};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The objects that were read, and how often each is wanted: a row that comes again is read twice.
type Waiting = HashMap<u64, (Py<PyAny>, u32)>;

struct MapStyle {
    dataset: Py<PyAny>,
    units: [Unit; 1],
    fingerprint: u64,
    waiting: Mutex<Waiting>,
    error: Mutex<Option<PyErr>>,
    /// a data set is asked by one thread at a time
    asking: Mutex<()>,
}

/// How much memory an item is taken for: no one knows.
const BYTES: u64 = 1 << 10;

/// Items that are asked for at once.
const AT_ONCE: u64 = 64;

impl MapStyle {
    /// Asks for some items.
    fn ask(&self, py: Python<'_>, rows: Range<u64>) -> PyResult<()> {
        let dataset = self.dataset.bind(py);
        let objects: Vec<Py<PyAny>> = if dataset.hasattr("__getitems__")? {
            let rows = PyRange::new(py, rows.start as isize, rows.end as isize)?;
            dataset
                .call_method1("__getitems__", (PyList::new(py, rows.try_iter()?.collect::<PyResult<Vec<_>>>()?)?,))?
                .extract()?
        } else {
            rows.clone().map(|row| dataset.get_item(row).map(Bound::unbind)).collect::<PyResult<_>>()?
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for (row, object) in rows.zip(objects) {
            waiting.entry(row).or_insert((object, 0)).1 += 1;
        }
        Ok(())
    }
}

impl source::Source for MapStyle {
    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("item", DataType::Int64, false)]))
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn read(&self, rows: Range<u64>, cancel: &Cancel) -> Result<RecordBatch, SourceError> {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        for start in rows.clone().step_by(AT_ONCE as usize) {
            cancel.check()?;
            let some = start..rows.end.min(start + AT_ONCE);
            if let Err(error) = Python::attach(|py| self.ask(py, some)) {
                let text = error.to_string();
                *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return Err(SourceError::Invalid(text));
            }
        }
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.map(|row| row as i64)));
        RecordBatch::try_from_iter([("item", numbers)]).map_err(|error| SourceError::Invalid(error.to_string()))
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// The items of a data set, for one reader.
#[pyclass(frozen, module = "corgipile._native")]
pub struct Items(Arc<MapStyle>);

#[pymethods]
impl Items {
    #[getter]
    fn source(&self) -> Source {
        Source(self.0.clone())
    }

    /// The items of a batch, by their numbers. Each is given out as often as it was read.
    fn take(&self, py: Python<'_>, rows: PyReadonlyArray1<'_, i64>) -> PyResult<Vec<Py<PyAny>>> {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut items = Vec::with_capacity(rows.len());
        for row in rows.as_array() {
            let row = *row as u64;
            let (object, times) = waiting.get_mut(&row).ok_or_else(|| PyKeyError::new_err(row))?;
            items.push(object.clone_ref(py));
            *times -= 1;
            if *times == 0 {
                waiting.remove(&row);
            }
        }
        Ok(items)
    }

    /// What the data set raised, once.
    fn error(&self) -> Option<PyErr> {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The items of a map-style data set.
#[pyfunction]
pub fn items(dataset: Py<PyAny>, rows: u64, fingerprint: u64) -> Items {
    let units = [Unit { rows, bytes: rows.saturating_mul(BYTES) }];
    let (waiting, error, asking) = (Mutex::default(), Mutex::default(), Mutex::default());
    Items(Arc::new(MapStyle { dataset, units, fingerprint, waiting, error, asking }))
}
