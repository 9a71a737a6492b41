//! JOADER's server and jobs for Python.

use crate::batches::to_dict;
use crate::errors;
use crate::sources::Source;
use preparing::{Callables, Processes};
use pyo3::create_exception;
use pyo3::exceptions::{PyConnectionError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use service::{
    BufferSize, Cluster, FollowerOptions, Held, JobError, JobOptions, LeaderOptions, Mode, NextOfJob, Opened, Opener,
    Opening, Position, ServerOptions, ServiceError, Token, admin, proto,
};
use source::SourceError;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

create_exception!(corgipile, JoaderError, PyRuntimeError, "What a JOADER server refuses, or that it went.");

/// How long somebody who waits does not look for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a thread that wants another batch leaves the job to others.
const TURN: Duration = Duration::from_millis(1);

fn error(error: ServiceError) -> PyErr {
    let text = error.to_string();
    match error {
        ServiceError::NoServer { .. } => PyConnectionError::new_err(text),
        ServiceError::Refused(_) => PyValueError::new_err(text),
        ServiceError::Conflict(_) | ServiceError::Unknown(_) | ServiceError::Lost(_) => JoaderError::new_err(text),
    }
}

fn error_of_job(of: JobError) -> PyErr {
    let text = of.to_string();
    match of {
        JobError::Service(of) => error(of),
        JobError::Source(of) => errors::of_source(of),
        JobError::Element { .. } => errors::SourceError::new_err(text),
        JobError::Misused(_) => PyValueError::new_err(text),
    }
}

/// Waits for what is asked of a server, and looks for Ctrl-C meanwhile.
fn ask<T: Send + 'static>(
    py: Python<'_>,
    question: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> PyResult<T> {
    let (tell, told) = std::sync::mpsc::channel();
    // who is interrupted does not wait for the answer
    std::thread::Builder::new().name("joader question".to_owned()).spawn(move || tell.send(question()))?;
    let told = Mutex::new(told);
    loop {
        match py.detach(|| told.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE)) {
            Ok(answer) => return answer.map_err(error),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the asking thread panicked")),
        }
    }
}

/// A module of Python that opens what a text tells.
struct ByPython(Py<PyAny>);

/// What it gave: an object whose method `columns` gives sources.
struct OpenedByPython(Py<PyAny>);

/// What Python raised, as a source's error.
fn of_python(error: &PyErr) -> SourceError {
    let said = Python::attach(|py| error.value(py).str().map(|text| text.to_string()));
    SourceError::Invalid(said.unwrap_or_else(|_| error.to_string()))
}

impl Opener for ByPython {
    fn open(&self, source: &str) -> Result<Arc<dyn Opened>, SourceError> {
        let opened = Python::attach(|py| self.0.call_method1(py, "open_text", (source,)));
        Ok(Arc::new(OpenedByPython(opened.map_err(|error| of_python(&error))?)))
    }

    fn hold(&self, passing: &str) -> Result<Option<Box<dyn Held>>, SourceError> {
        let held = Python::attach(|py| {
            let held = self.0.call_method1(py, "hold_text", (passing,))?;
            Ok((held.getattr(py, "text")?.extract(py)?, held))
        });
        let (text, held) = held.map_err(|error: PyErr| of_python(&error))?;
        Ok(Some(Box::new(HeldByPython { text, _held: held })))
    }
}

/// What Python holds.
struct HeldByPython {
    text: String,
    _held: Py<PyAny>,
}

impl Held for HeldByPython {
    fn source(&self) -> &str {
        &self.text
    }
}

impl Opened for OpenedByPython {
    fn columns(&self, columns: Option<&[String]>) -> Result<Arc<dyn source::Source>, SourceError> {
        let source = Python::attach(|py| {
            let source = self.0.call_method1(py, "columns", (columns.map(<[String]>::to_vec),))?;
            Ok(source.bind(py).cast::<Source>().map_err(PyErr::from)?.get().0.clone())
        });
        source.map_err(|error: PyErr| of_python(&error))
    }

    fn passing(&self) -> Option<String> {
        Python::attach(|py| self.0.call_method0(py, "passing").and_then(|text| text.extract(py))).ok().flatten()
    }
}

fn processes(python: PathBuf, number: usize, path: String) -> Processes {
    Processes::new(python, number).variable("PYTHONPATH", path)
}

/// Role, address, node, nodes, certificate or trusted ones, key, name in the certificate, and the token's file.
type ToldOfCluster = (String, String, u32, u32, PathBuf, PathBuf, Option<String>, PathBuf);

fn of_cluster(told: ToldOfCluster) -> PyResult<Cluster> {
    let (role, address, node, nodes, certificate, key, name, token) = told;
    let token = Token::read(&token).map_err(error)?;
    if role == "follower" {
        let (leader, trusts) = (address, certificate);
        return Ok(Cluster::Follower(FollowerOptions { leader, node, nodes, trusts, name, token }));
    }
    let refused = |_| PyValueError::new_err(format!("listen: {address:?} is not an address such as 10.0.0.1:7400"));
    let listen = address.parse().map_err(refused)?;
    Ok(Cluster::Leader(LeaderOptions { listen, node, nodes, certificate, key, token }))
}

/// Serves until Ctrl-C, or until `stop` says so, which is asked now and then. `ready` is called once jobs can connect.
#[pyfunction]
#[pyo3(signature = (path, *, memory, threads, seed, data_sets, opener, python, python_path, processes, log, cluster, ready, stop))]
#[expect(clippy::too_many_arguments)]
pub fn joader_serve(
    py: Python<'_>,
    path: PathBuf,
    memory: u64,
    threads: usize,
    seed: i64,
    data_sets: Option<PathBuf>,
    opener: Py<PyAny>,
    python: PathBuf,
    python_path: String,
    processes: usize,
    log: &str,
    cluster: Option<ToldOfCluster>,
    ready: Py<PyAny>,
    stop: Py<PyAny>,
) -> PyResult<()> {
    let logged = match log {
        "text" => {
            let colours = std::io::stderr().is_terminal();
            tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(colours).with_target(false).try_init()
        }
        "json" => tracing_subscriber::fmt().json().with_writer(std::io::stderr).with_target(false).try_init(),
        _ => Ok(()),
    };
    // a second server in one process logs as the first does
    drop(logged);
    let (to_stop, stopped) = watch::channel(());
    let options = ServerOptions {
        path: path.clone(),
        memory,
        threads,
        seed,
        cluster: cluster.map(of_cluster).transpose()?,
        data_sets,
    };
    let opener = Arc::new(ByPython(opener));
    let callables: Box<dyn Callables> = Box::new(self::processes(python, processes, python_path));
    let (tell, is_ready) = std::sync::mpsc::channel();
    let is_ready = Mutex::new(is_ready);
    let server = std::thread::Builder::new().name("joader".to_owned()).spawn(move || {
        service::serve(options, opener, Some(callables), stopped, move || {
            let _ = tell.send(());
        })
    })?;
    let mut failed = None;
    while !server.is_finished() {
        match py.detach(|| is_ready.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE)) {
            Ok(()) => {
                if let Err(error) = ready.call0(py) {
                    failed = Some(error);
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // it was reported already
            Err(RecvTimeoutError::Disconnected) => py.detach(|| std::thread::sleep(PATIENCE)),
        }
        let ends = py.check_signals().and_then(|()| stop.call0(py)?.extract::<bool>(py));
        if !matches!(ends, Ok(false)) {
            failed = ends.err();
            break;
        }
    }
    drop(to_stop);
    let ended = py.detach(|| server.join());
    match (ended, failed) {
        (_, Some(error)) => Err(error),
        (Ok(Ok(())), None) => Ok(()),
        (Ok(Err(error)), None) => match error.raw_os_error() {
            Some(number) => Err(PyOSError::new_err((number, error.to_string(), path.into_os_string()))),
            None => Err(PyOSError::new_err(error.to_string())),
        },
        (Err(_), None) => Err(PyRuntimeError::new_err("the server's thread panicked")),
    }
}

fn info<'py>(py: Python<'py>, info: proto::DataSetInfo) -> PyResult<Bound<'py, PyDict>> {
    let data_set = info.data_set.unwrap_or_default();
    let told = PyDict::new(py);
    told.set_item("name", data_set.name)?;
    told.set_item("source", data_set.source)?;
    told.set_item("columns", data_set.columns)?;
    told.set_item("element_size", data_set.element_size)?;
    told.set_item("sampler", data_set.sampler)?;
    told.set_item("rows", info.rows)?;
    told.set_item("elements", info.elements)?;
    told.set_item("bytes", info.bytes)?;
    told.set_item("fingerprint", info.fingerprint)?;
    told.set_item("jobs", info.jobs)?;
    told.set_item("error", (!info.error.is_empty()).then_some(info.error))?;
    Ok(told)
}

/// Creates a data set, or gives the one of that name another source.
#[pyfunction]
#[pyo3(signature = (path, name, source, *, columns, element_size, sampler, replaces))]
#[expect(clippy::too_many_arguments)]
pub fn joader_put<'py>(
    py: Python<'py>,
    path: PathBuf,
    name: String,
    source: String,
    columns: Vec<String>,
    element_size: String,
    sampler: String,
    replaces: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let data_set = proto::DataSet { name, source, columns, element_size, sampler };
    info(py, ask(py, move || admin::put_data_set(&path, data_set, replaces))?)
}

/// Drops a data set.
#[pyfunction]
pub fn joader_drop(py: Python<'_>, path: PathBuf, name: String) -> PyResult<()> {
    ask(py, move || admin::drop_data_set(&path, &name))
}

/// All data sets.
#[pyfunction]
pub fn joader_data_sets<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyList>> {
    let data_sets = ask(py, move || admin::data_sets(&path))?;
    PyList::new(py, data_sets.into_iter().map(|of| info(py, of)).collect::<PyResult<Vec<_>>>()?)
}

/// What a server and its jobs do.
#[pyfunction]
pub fn joader_status<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyDict>> {
    let status = ask(py, move || admin::status(&path))?;
    let told = PyDict::new(py);
    macro_rules! set {
        ($dict:ident, $of:ident, $($name:ident),*) => { $($dict.set_item(stringify!($name), &$of.$name)?;)* };
    }
    if let Some(server) = status.server {
        set!(
            told,
            server,
            memory,
            used,
            elements,
            loads,
            bytes_loaded,
            bytes_saved,
            evictions,
            seconds,
            errors,
            outside
        );
    }
    let jobs = PyList::empty(py);
    for job in status.jobs {
        let dict = PyDict::new(py);
        set!(dict, job, job, name, data_set, epoch, left, elements, rows, loads, merged, hits, again, outside, errors);
        set!(dict, job, held, stalled, process, seconds, rank, world_size);
        jobs.append(dict)?;
    }
    told.set_item("jobs", jobs)?;
    Ok(told)
}

/// A job of a server, which threads may share.
#[pyclass(module = "corgipile._native", frozen)]
pub struct JoaderJob {
    job: Mutex<service::Job>,
    /// in another one, which was forked off, the lock may be held by no one
    process: u32,
    /// threads that wait for the lock: one that has just had it lets them go first
    asking: AtomicUsize,
}

impl JoaderJob {
    fn with<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&mut service::Job) -> T + Send) -> PyResult<T> {
        if self.process != std::process::id() {
            return Err(PyValueError::new_err("a job cannot be used in a process that was forked off"));
        }
        self.asking.fetch_add(1, Ordering::Relaxed);
        Ok(py.detach(|| {
            let mut job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
            self.asking.fetch_sub(1, Ordering::Relaxed);
            ask(&mut job)
        }))
    }

    fn let_others(&self, py: Python<'_>) {
        if self.asking.load(Ordering::Relaxed) > 0 {
            py.detach(|| std::thread::sleep(TURN));
        }
    }
}

/// Epoch, elements that are left, the buffer's elements and its number, rows of it that were given, batches of the
/// epoch that were, and the fingerprint.
type PlaceOfJob = (u64, Vec<(u32, u32)>, Vec<u32>, u64, u64, u64, u64);

#[pymethods]
impl JoaderJob {
    #[new]
    #[pyo3(signature = (
        path, *, name, rank, world_size, timeout, data_set, columns, filter, recipe, seed, epochs, batch_size, buffer_elements, buffer_share,
        drop_last, place, opener, python, python_path
    ))]
    #[expect(clippy::too_many_arguments)] // all by name
    fn new(
        path: PathBuf,
        name: String,
        rank: u32,
        world_size: u32,
        timeout: u32,
        data_set: String,
        columns: Vec<String>,
        filter: String,
        recipe: String,
        seed: i64,
        epochs: u64,
        batch_size: usize,
        buffer_elements: Option<u32>,
        buffer_share: f64,
        drop_last: bool,
        place: Option<PlaceOfJob>,
        opener: Py<PyAny>,
        python: PathBuf,
        python_path: String,
    ) -> PyResult<JoaderJob> {
        let fingerprint = place.as_ref().map(|place| place.6);
        let position = place.map(|(epoch, left, buffer, number, given, batches, _)| Position {
            epoch,
            left: left.into_iter().flat_map(|(start, end)| start..end).collect(),
            buffer,
            number,
            given,
            batches,
        });
        let options = JobOptions {
            path,
            name,
            rank,
            world_size,
            timeout,
            data_set,
            columns,
            filter,
            recipe,
            seed,
            epoch: position.as_ref().map_or(0, |position| position.epoch),
            epochs,
            batch_size,
            buffer: buffer_elements.map_or(BufferSize::Share(buffer_share), BufferSize::Elements),
            drop_last,
            position,
            fingerprint,
        };
        let callables: Arc<dyn Callables> = Arc::new(processes(python, 1, python_path));
        let opening = Opening { opener: Arc::new(ByPython(opener)), callables: Some(callables) };
        let job = Mutex::new(service::Job::new(options, opening).map_err(error)?);
        Ok(JoaderJob { job, process: std::process::id(), asking: AtomicUsize::new(0) })
    }

    /// The next batch; None at the end of an epoch, and of the last one.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        loop {
            self.let_others(py);
            let next = self.with(py, |job| {
                let next = job.next(PATIENCE);
                let layout = matches!(next, Ok(NextOfJob::Batch(_))).then(|| job.layout().cloned());
                (next, layout.flatten())
            })?;
            match next {
                (Ok(NextOfJob::Batch(batch)), Some(layout)) => return to_dict(py, &layout, batch).map(Some),
                (Ok(NextOfJob::Batch(_)), None) => return Err(PyRuntimeError::new_err("a batch without columns")),
                (Ok(NextOfJob::EpochEnd(_) | NextOfJob::End), _) => return Ok(None),
                (Ok(NextOfJob::Pending), _) => py.check_signals()?,
                (Err(error), _) => return Err(error_of_job(error)),
            }
        }
    }

    /// The epoch of the next batch.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |job| job.epoch())
    }

    /// Rows of an epoch, once it has registered.
    #[getter]
    fn rows(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.with(py, |job| job.rows())
    }

    /// Where it is; None before it has begun.
    #[getter]
    fn place(&self, py: Python<'_>) -> PyResult<Option<PlaceOfJob>> {
        let place = self.with(py, |job| job.position())?;
        Ok(place.map(|(position, fingerprint)| {
            let Position { epoch, left, buffer, number, given, batches } = position;
            (epoch, ranges(&left), buffer, number, given, batches, fingerprint)
        }))
    }

    /// How it gets its elements, and why it reads by itself if it does.
    #[getter]
    fn mode(&self, py: Python<'_>) -> PyResult<(&'static str, Option<String>)> {
        Ok(match self.with(py, |job| job.mode())? {
            Mode::Connecting => ("connecting", None),
            Mode::Connected => ("connected", None),
            Mode::Direct(why) => ("direct", Some(why)),
        })
    }

    /// What it was given, and how.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.with(py, |job| job.counts())?;
        let told = PyDict::new(py);
        told.set_item("shared", counts.shared)?;
        told.set_item("outside", counts.outside)?;
        told.set_item("direct", counts.direct)?;
        told.set_item("errors", counts.errors)?;
        told.set_item("registered", counts.registered)?;
        Ok(told)
    }

    /// Leaves.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, service::Job::close)
    }
}

/// Ascending numbers as half-open ranges.
fn ranges(of: &BTreeSet<u32>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in of {
        match ranges.last_mut() {
            Some((_, end)) if *end == *number => *end += 1,
            _ => ranges.push((*number, number + 1)),
        }
    }
    ranges
}
