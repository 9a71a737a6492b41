//! Sources, and how each kind of them is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use loading::Size;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use source::{Cancel, SourceError};
use sources::index::{IndexOptions, IndexedFormat};
use sources::{Dataset, Filled, OnError};

use crate::errors;
use crate::types;

/// Rows that can be read in blocks.
#[pyclass(frozen, module = "corgipile._native")]
pub struct Source(pub(crate) Arc<dyn source::Source>);

#[pymethods]
impl Source {
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

    /// What was said about skipped rows and files, the first of them.
    #[getter]
    fn messages(&self) -> Vec<String> {
        self.0.messages()
    }
}

/// What to do about damaged rows, by the name that users know.
fn on_error(name: &str) -> PyResult<OnError> {
    match name {
        "raise" => Ok(OnError::Raise),
        "skip" => Ok(OnError::Skip),
        _ => Err(PyValueError::new_err(format!("on_error: {name:?} is neither 'raise' nor 'skip'"))),
    }
}

/// Whether lists of one length are given as such, by the name that users know.
fn fixed_lists(lists: &str) -> PyResult<bool> {
    match lists {
        "auto" => Ok(true),
        "ragged" => Ok(false),
        _ => Err(PyValueError::new_err(format!("lists: {lists:?} is neither 'auto' nor 'ragged'"))),
    }
}

/// Where indexes are: whether to build them, and the file or directory.
type Index = (bool, Option<PathBuf>);

fn index_options((build, place): Index) -> IndexOptions {
    let is_directory = place.as_ref().is_some_and(|place| place.is_dir());
    let (directory, file) = if is_directory { (place, None) } else { (None, place) };
    IndexOptions { build, directory, file }
}

/// Does something without the interpreter's lock, calls `tick` with it now and then, and stops at Ctrl-C.
pub(crate) fn apart<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cancel) -> Result<T, SourceError> + Send,
    mut tick: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
    let cancel = Cancel::default();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| work(&cancel));
        let mut pause = Duration::from_millis(1);
        while !thread.is_finished() {
            py.detach(|| std::thread::sleep(pause));
            pause = (2 * pause).min(Duration::from_millis(50));
            if let Err(interrupt) = py.check_signals().and_then(|()| tick()) {
                cancel.cancel();
                let _ = py.detach(|| thread.join());
                return Err(interrupt);
            }
        }
        let panicked = |_| PyRuntimeError::new_err("a thread that opened a source panicked");
        thread.join().map_err(panicked)?.map_err(errors::of_source)
    })
}

/// Opens a source, with `fill_value` where a number or a truth value is missing.
fn open(
    py: Python<'_>,
    fill_value: Option<f64>,
    open: impl FnOnce(&Cancel) -> Result<Dataset, SourceError> + Send,
) -> PyResult<Source> {
    let mut data = apart(py, open, || Ok(()))?;
    if fill_value.is_some() {
        data.keep_missing();
    }
    filled(Arc::new(data), fill_value)
}

fn filled(source: Arc<dyn source::Source>, fill_value: Option<f64>) -> PyResult<Source> {
    let Some(value) = fill_value else { return Ok(Source(source)) };
    Ok(Source(Arc::new(Filled::new(source, value).map_err(errors::of_source)?)))
}

/// Rows of Parquet files.
#[pyfunction]
pub fn parquet(
    py: Python<'_>,
    paths: Vec<String>,
    columns: Option<Vec<String>>,
    on_error: &str,
    lists: &str,
    fill_value: Option<f64>,
) -> PyResult<Source> {
    let (on_error, fixed_lists) = (self::on_error(on_error)?, fixed_lists(lists)?);
    let options = sources::parquet::Options { columns, on_error, fixed_lists };
    open(py, fill_value, |cancel| sources::parquet::open(&paths, options, cancel))
}

/// Rows of Arrow files and streams.
#[pyfunction]
pub fn arrow(
    py: Python<'_>,
    paths: Vec<String>,
    columns: Option<Vec<String>>,
    on_error: &str,
    lists: &str,
    memory_map: bool,
    fill_value: Option<f64>,
) -> PyResult<Source> {
    let (on_error, fixed_lists) = (self::on_error(on_error)?, fixed_lists(lists)?);
    let options = sources::ipc::Options { columns, memory_map, fixed_lists, on_error };
    open(py, fill_value, |cancel| sources::ipc::open(&paths, &options, cancel))
}

/// Records of TFRecord files.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub fn tfrecord(
    py: Python<'_>,
    paths: Vec<String>,
    columns: Option<Vec<String>>,
    features: Option<Vec<(String, String)>>,
    raw: bool,
    on_error: &str,
    lists: &str,
    index: Index,
    fill_value: Option<f64>,
) -> PyResult<Source> {
    let features = features.map(|features| features.iter().map(|(name, of)| types::feature(name, of)).collect());
    let options = sources::tfrecord::Options {
        features: features.transpose()?,
        columns,
        raw,
        fixed_lists: fixed_lists(lists)?,
        on_error: self::on_error(on_error)?,
        index: index_options(index),
    };
    open(py, fill_value, |cancel| sources::tfrecord::open(&paths, &options, cancel))
}

/// Samples of tar files.
#[pyfunction]
pub fn webdataset(
    py: Python<'_>,
    paths: Vec<String>,
    columns: Option<Vec<String>>,
    on_error: &str,
    index: Index,
    fill_value: Option<f64>,
) -> PyResult<Source> {
    let options =
        sources::webdataset::Options { columns, on_error: self::on_error(on_error)?, index: index_options(index) };
    open(py, fill_value, |cancel| sources::webdataset::open(&paths, &options, cancel))
}

/// Rows of CSV files.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub fn csv(
    py: Python<'_>,
    paths: Vec<String>,
    columns: Option<Vec<String>>,
    header: bool,
    delimiter: u8,
    quote: u8,
    types: BTreeMap<String, String>,
    nulls: Vec<String>,
    on_error: &str,
    index: Index,
    fill_value: Option<f64>,
) -> PyResult<Source> {
    let types = types.into_iter().map(|(name, of)| Ok((types::column(&name, &of)?, name)));
    let types = types.map(|named| named.map(|(of, name)| (name, of))).collect::<PyResult<_>>()?;
    let (on_error, index) = (self::on_error(on_error)?, index_options(index));
    let options = sources::csv::Options { columns, header, delimiter, quote, types, nulls, on_error, index };
    open(py, fill_value, |cancel| sources::csv::open(&paths, &options, cancel))
}

/// Rows of LIBSVM files.
#[pyfunction]
pub fn libsvm(
    py: Python<'_>,
    paths: Vec<String>,
    dense: Option<usize>,
    zero_based: Option<bool>,
    on_error: &str,
    index: Index,
    fill_value: Option<f64>,
) -> PyResult<Source> {
    let (on_error, index) = (self::on_error(on_error)?, index_options(index));
    let options = sources::libsvm::Options { dense, zero_based, on_error, index };
    open(py, fill_value, |cancel| sources::libsvm::open(&paths, &options, cancel))
}

/// Rows of a table, and the snapshot under which they are read.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub fn postgres(
    py: Python<'_>,
    connection: String,
    table: String,
    columns: Option<Vec<String>>,
    filter: Option<String>,
    snapshot: Option<String>,
    lists: &str,
    fill_value: Option<f64>,
) -> PyResult<(Source, String)> {
    let fixed_lists = fixed_lists(lists)?;
    let options = sources::postgres::Options { connection, table, columns, filter, snapshot, fixed_lists };
    let opened = apart(py, |cancel| sources::postgres::open(&options, cancel), || Ok(()))?;
    Ok((filled(Arc::new(opened.data), fill_value)?, opened.snapshot))
}

/// Whether a connection string has a password.
#[pyfunction]
pub fn has_password(connection: &str) -> PyResult<bool> {
    sources::postgres::has_password(connection).map_err(errors::of_source)
}

/// A snapshot of somebody else, held on.
#[pyclass(frozen, module = "corgipile._native")]
pub struct HeldSnapshot(sources::postgres::HeldSnapshot);

#[pymethods]
impl HeldSnapshot {
    #[new]
    fn new(py: Python<'_>, connection: String, snapshot: String) -> PyResult<HeldSnapshot> {
        let hold = |cancel: &_| sources::postgres::HeldSnapshot::hold(&connection, &snapshot, cancel);
        Ok(HeldSnapshot(apart(py, hold, || Ok(()))?))
    }

    /// What it is called now.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }
}

/// Rows that the server shuffles.
#[pyclass(frozen, module = "corgipile._native")]
pub struct Shuffled {
    opened: Arc<sources::postgres::Shuffled>,
    shuffle: sources::postgres::Shuffle,
    fill_value: Option<f64>,
}

#[pymethods]
impl Shuffled {
    /// The rows, which are those of any epoch.
    #[getter]
    fn source(&self) -> PyResult<Source> {
        self.epoch(0, 0)
    }

    /// The snapshot under which they are read.
    #[getter]
    fn snapshot(&self) -> &str {
        self.opened.snapshot()
    }

    /// The same rows, shuffled in this way.
    fn with_shuffle(&self, strategy: String, block_size: &str, buffer_size: &str) -> PyResult<Shuffled> {
        let size = |argument: &str, text: &str| match text.parse() {
            Ok(Size::Auto) => Ok("auto".to_owned()),
            Ok(Size::Bytes(bytes)) => Ok(format!("{bytes}B")),
            Ok(Size::Percent(percent)) => Ok(format!("{percent}%")),
            Ok(Size::Rows(_)) => {
                let what = "the server measures in bytes: say this many, such as \"64MiB\"";
                Err(PyValueError::new_err(format!("{argument}: {text} rows: {what}")))
            }
            Err(error) => Err(PyValueError::new_err(format!("{argument}: {error}"))),
        };
        let (block_size, buffer_size) = (size("block_size", block_size)?, size("buffer_size", buffer_size)?);
        let shuffle = sources::postgres::Shuffle { strategy, block_size, buffer_size };
        Ok(Shuffled { opened: self.opened.clone(), shuffle, fill_value: self.fill_value })
    }

    /// The rows in the order of an epoch, from 0.
    fn epoch(&self, seed: i64, epoch: u64) -> PyResult<Source> {
        filled(Arc::new(self.opened.epoch(&self.shuffle, seed, epoch)), self.fill_value)
    }
}

/// Rows of a table, a view or a query, to be shuffled by the server.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub fn postgres_shuffled(
    py: Python<'_>,
    connection: String,
    table: String,
    columns: Option<Vec<String>>,
    filter: Option<String>,
    snapshot: Option<String>,
    lists: &str,
    fill_value: Option<f64>,
) -> PyResult<Shuffled> {
    let fixed_lists = fixed_lists(lists)?;
    let options = sources::postgres::Options { connection, table, columns, filter, snapshot, fixed_lists };
    let opened = apart(py, |cancel| sources::postgres::Shuffled::open(&options, cancel), || Ok(()))?;
    let auto = || "auto".to_owned();
    let shuffle = sources::postgres::Shuffle { strategy: "corgipile".into(), block_size: auto(), buffer_size: auto() };
    let opened = Shuffled { opened: Arc::new(opened), shuffle, fill_value };
    opened.source()?; // the value is one of all columns
    Ok(opened)
}

/// Builds the index of a file, unless it has one. `progress` is called with the bytes that are done and all of them.
///
/// It returns what there is now, with `built` telling whether it was built now.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub fn build_index<'py>(
    py: Python<'py>,
    path: PathBuf,
    format: &str,
    header: bool,
    delimiter: u8,
    quote: u8,
    directory: Option<PathBuf>,
    force: bool,
    on_error: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let on_error = self::on_error(on_error)?;
    let lines = sources::csv::CsvLines { header, delimiter, quote };
    let format: &dyn IndexedFormat = match format {
        "tfrecord" => &sources::tfrecord::TfRecord,
        "webdataset" => &sources::webdataset::WebDataset,
        "csv" => &lines,
        "libsvm" => &sources::libsvm::LibSvm,
        _ => return Err(PyValueError::new_err(format!("format: there is no index of the format {format:?}"))),
    };
    let options = IndexOptions { build: true, directory, file: None };
    let (done, all) = (AtomicU64::new(0), AtomicU64::new(0));
    let build = |cancel: &Cancel| {
        if !force && let Some(built) = sources::index::already_built(&path, format, &options)? {
            return Ok((built, false));
        }
        let mut note = |at, of| {
            done.store(at, Ordering::Relaxed);
            all.store(of, Ordering::Relaxed);
        };
        Ok((sources::index::build(&path, format, &options, on_error, &mut note, cancel)?, true))
    };
    let (built, is_new) = apart(py, build, || match &progress {
        Some(progress) => progress.call1((done.load(Ordering::Relaxed), all.load(Ordering::Relaxed))).map(drop),
        None => Ok(()),
    })?;
    let told = PyDict::new(py);
    told.set_item("path", built.path.into_os_string())?;
    told.set_item("rows", built.rows)?;
    told.set_item("units", built.units)?;
    told.set_item("resumed_at", built.resumed_at)?;
    told.set_item("damage", built.damage)?;
    told.set_item("built", is_new)?;
    Ok(told)
}
