//! Servers and jobs for tests, in one process.

use arrow::array::{Array, ArrayRef, FixedSizeListArray, Int64Array, RecordBatch, UInt8Array};
use arrow::datatypes::{Field, SchemaRef};
use loading::{Batch, Column, Values};
use service::{
    BufferSize, Cluster, Job, JobError, JobOptions, NextOfJob, Opened, Opener, Opening, ServerOptions, admin, proto,
    serve,
};
use source::{Cancel, Source, SourceError, Unit};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

pub const SECOND: Duration = Duration::from_secs(1);

/// Rows with their own numbers, ten in a unit, and with the numbers of their units.
#[derive(Clone)]
pub struct Numbers {
    pub units: Vec<Unit>,
    pub columns: Option<Vec<String>>,
    pub read: Arc<AtomicU64>,
    /// rows of this unit cannot be read
    pub broken: Option<u64>,
    pub slow: Duration,
    /// rows of another version are others
    pub version: u64,
    /// how long it takes to open columns
    pub opens: Duration,
    /// there is a picture of one pixel in each row, too
    pub pictures: bool,
    /// the first row of this unit is damaged and skipped, where only x is read
    pub skipped: Option<u64>,
}

impl Numbers {
    pub fn new(rows: u64) -> Numbers {
        let units = vec![Unit { rows: 10, bytes: 160 }; (rows / 10) as usize];
        Numbers {
            units,
            columns: None,
            read: Arc::default(),
            broken: None,
            slow: Duration::ZERO,
            version: 0,
            opens: Duration::ZERO,
            pictures: false,
            skipped: None,
        }
    }

    fn batch(&self, rows: Range<u64>) -> RecordBatch {
        let x: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| row as i64)));
        let y: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.map(|row| row as i64 / 10)));
        let mut picture: ArrayRef = Arc::new(UInt8Array::from(vec![0; x.len()]));
        for _ in 0..3 {
            let field = Arc::new(Field::new_list_field(picture.data_type().clone(), false));
            picture = Arc::new(FixedSizeListArray::new(field, 1, picture, None));
        }
        let picture = self.pictures.then_some(("picture", picture));
        let columns = [("x", x), ("y", y)].into_iter().chain(picture);
        let wanted = |name: &str| self.columns.as_ref().is_none_or(|columns| columns.iter().any(|of| of == name));
        RecordBatch::try_from_iter(columns.filter(|(name, _)| wanted(name))).unwrap()
    }
}

impl Source for Numbers {
    fn schema(&self) -> SchemaRef {
        self.batch(0..0).schema()
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn read(&self, rows: Range<u64>, _: &Cancel) -> Result<RecordBatch, SourceError> {
        self.read.fetch_add(rows.end - rows.start, Ordering::Relaxed);
        if self.broken.is_some_and(|unit| rows.contains(&(unit * 10))) {
            return Err(SourceError::Invalid("it is broken".to_owned()));
        }
        std::thread::sleep(self.slow);
        let batch = self.batch(rows.clone());
        let is_short = self.columns.as_ref().is_some_and(|columns| columns == &["x"])
            && self.skipped.is_some_and(|unit| rows.contains(&(unit * 10)));
        Ok(if is_short { batch.slice(1, batch.num_rows() - 1) } else { batch })
    }

    fn fingerprint(&self) -> u64 {
        self.units.len() as u64 + (self.version << 32)
    }
}

impl Opened for Numbers {
    fn columns(&self, columns: Option<&[String]>) -> Result<Arc<dyn Source>, SourceError> {
        std::thread::sleep(columns.map_or(Duration::ZERO, |_| self.opens));
        for column in columns.into_iter().flatten() {
            if column != "x" && column != "y" {
                return Err(SourceError::Invalid(format!("columns: there is no {column:?}")));
            }
        }
        Ok(Arc::new(Numbers { columns: columns.map(<[String]>::to_vec), ..self.clone() }))
    }
}

/// Opens the same rows, whatever the text says, which may be a number of rows.
pub struct Opens(pub Numbers);

impl Opener for Opens {
    fn open(&self, source: &str) -> Result<Arc<dyn Opened>, SourceError> {
        match source.parse() {
            Ok(rows) => Ok(Arc::new(Numbers { units: Numbers::new(rows).units, ..self.0.clone() })),
            Err(_) => Err(SourceError::Invalid(format!("source: {source:?} is not a number of rows"))),
        }
    }
}

pub struct Server {
    pub path: PathBuf,
    pub stop: Option<watch::Sender<()>>,
    pub thread: Option<JoinHandle<()>>,
    pub numbers: Numbers,
    pub directory: Option<tempfile::TempDir>,
}

impl Server {
    pub fn start(memory: u64, numbers: Numbers) -> Server {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("joader");
        let mut server = Server::at(path, memory, numbers);
        server.directory = Some(directory);
        server
    }

    pub fn at(path: PathBuf, memory: u64, numbers: Numbers) -> Server {
        Server::of(path, memory, numbers, None)
    }

    /// One of a cluster.
    pub fn of(path: PathBuf, memory: u64, numbers: Numbers, cluster: Option<Cluster>) -> Server {
        Server::with(ServerOptions { path, memory, threads: 2, seed: 1, cluster, data_sets: None }, numbers)
    }

    pub fn with(options: ServerOptions, numbers: Numbers) -> Server {
        let opener = Arc::new(Opens(numbers.clone()));
        Server::opened_by(options, numbers, opener)
    }

    pub fn opened_by(options: ServerOptions, numbers: Numbers, opener: Arc<dyn Opener>) -> Server {
        let (stop, stopped) = watch::channel(());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let path = options.path.clone();
        let thread = std::thread::spawn(move || {
            serve(options, opener, None, stopped, move || ready.send(()).unwrap()).unwrap();
        });
        is_ready.recv().unwrap();
        Server { path, stop: Some(stop), thread: Some(thread), numbers, directory: None }
    }

    pub fn create(&self, rows: u64, element_size: &str, sampler: &str) {
        let data_set = proto::DataSet {
            name: "numbers".to_owned(),
            source: rows.to_string(),
            element_size: element_size.to_owned(),
            sampler: sampler.to_owned(),
            ..proto::DataSet::default()
        };
        admin::put_data_set(&self.path, data_set, false).unwrap();
    }

    pub fn job(&self, options: impl FnOnce(&mut JobOptions)) -> Job {
        let mut wanted = job_options(&self.path);
        options(&mut wanted);
        Job::new(wanted, Opening { opener: Arc::new(Opens(self.numbers.clone())), callables: None }).unwrap()
    }

    pub fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

pub fn job_options(path: &Path) -> JobOptions {
    JobOptions {
        path: path.to_owned(),
        name: "job".to_owned(),
        rank: 0,
        world_size: 1,
        timeout: 600,
        data_set: "numbers".to_owned(),
        columns: Vec::new(),
        filter: String::new(),
        recipe: String::new(),
        seed: 5,
        epoch: 0,
        epochs: 2,
        batch_size: 16,
        buffer: BufferSize::Elements(4),
        drop_last: false,
        position: None,
        fingerprint: None,
    }
}

pub fn numbers(batch: &Batch) -> Vec<i64> {
    let Column::Fixed(Values::I8(numbers)) = &batch.columns[0] else { panic!() };
    numbers.clone()
}

/// What comes next within a minute.
pub fn next(job: &mut Job) -> Result<NextOfJob, JobError> {
    let until = Instant::now() + 60 * SECOND;
    loop {
        match job.next(SECOND / 10)? {
            NextOfJob::Pending => assert!(Instant::now() < until, "nothing comes: {:?}", job.mode()),
            next => return Ok(next),
        }
    }
}

/// The rows of each epoch, as they come.
pub fn all(job: &mut Job) -> Vec<Vec<i64>> {
    let (mut epochs, mut rows) = (Vec::new(), Vec::new());
    loop {
        match next(job).unwrap() {
            NextOfJob::Batch(batch) => rows.extend(numbers(&batch)),
            NextOfJob::EpochEnd(_) => epochs.push(std::mem::take(&mut rows)),
            NextOfJob::Pending => {}
            NextOfJob::End => return epochs,
        }
    }
}

pub fn sorted(rows: &[i64]) -> Vec<i64> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    rows
}

pub fn status(server: &Server) -> proto::StatusReply {
    admin::status(&server.path).unwrap()
}

/// Waits until something holds, no longer than a minute.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + 60 * SECOND;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(SECOND / 50);
    }
}
