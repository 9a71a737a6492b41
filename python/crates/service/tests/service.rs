//! A server and its jobs in one process, over a real socket.

use arrow::array::{Array, ArrayRef, FixedSizeListArray, Int64Array, RecordBatch, UInt8Array};
use arrow::datatypes::{Field, SchemaRef};
use loading::{Batch, Column, Values};
use service::{
    BufferSize, Job, JobOptions, Mode, NextOfJob, Opened, Opener, Opening, Position, ServerOptions, ServiceError,
    admin, proto, serve,
};
use source::{Cancel, Source, SourceError, Unit};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

const SECOND: Duration = Duration::from_secs(1);

/// Rows with their own numbers, ten in a unit, and with the numbers of their units.
#[derive(Clone)]
struct Numbers {
    units: Vec<Unit>,
    columns: Option<Vec<String>>,
    read: Arc<AtomicU64>,
    /// rows of this unit cannot be read
    broken: Option<u64>,
    slow: Duration,
    /// there is a picture of one pixel in each row, too
    pictures: bool,
}

impl Numbers {
    fn new(rows: u64) -> Numbers {
        let units = vec![Unit { rows: 10, bytes: 160 }; (rows / 10) as usize];
        Numbers { units, columns: None, read: Arc::default(), broken: None, slow: Duration::ZERO, pictures: false }
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
        Ok(self.batch(rows))
    }

    fn fingerprint(&self) -> u64 {
        self.units.len() as u64
    }
}

impl Opened for Numbers {
    fn columns(&self, columns: Option<&[String]>) -> Result<Arc<dyn Source>, SourceError> {
        for column in columns.into_iter().flatten() {
            if column != "x" && column != "y" {
                return Err(SourceError::Invalid(format!("columns: there is no {column:?}")));
            }
        }
        Ok(Arc::new(Numbers { columns: columns.map(<[String]>::to_vec), ..self.clone() }))
    }
}

/// Opens the same rows, whatever the text says, which may be a number of rows.
struct Opens(Numbers);

impl Opener for Opens {
    fn open(&self, source: &str) -> Result<Arc<dyn Opened>, SourceError> {
        match source.parse() {
            Ok(rows) => Ok(Arc::new(Numbers { units: Numbers::new(rows).units, ..self.0.clone() })),
            Err(_) => Err(SourceError::Invalid(format!("source: {source:?} is no number of rows"))),
        }
    }
}

struct Server {
    path: PathBuf,
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    numbers: Numbers,
    directory: Option<tempfile::TempDir>,
}

impl Server {
    fn start(memory: u64, numbers: Numbers) -> Server {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("joader");
        let mut server = Server::at(path, memory, numbers);
        server.directory = Some(directory);
        server
    }

    fn at(path: PathBuf, memory: u64, numbers: Numbers) -> Server {
        let (stop, stopped) = watch::channel(());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let options = ServerOptions { path: path.clone(), memory, threads: 2, seed: 1 };
        let opener = Arc::new(Opens(numbers.clone()));
        let thread = std::thread::spawn(move || {
            serve(options, opener, None, stopped, move || ready.send(()).unwrap()).unwrap();
        });
        is_ready.recv().unwrap();
        Server { path, stop: Some(stop), thread: Some(thread), numbers, directory: None }
    }

    fn create(&self, rows: u64, element_size: &str, sampler: &str) {
        let data_set = proto::DataSet {
            name: "numbers".to_owned(),
            source: rows.to_string(),
            element_size: element_size.to_owned(),
            sampler: sampler.to_owned(),
            ..proto::DataSet::default()
        };
        admin::put_data_set(&self.path, data_set, false).unwrap();
    }

    fn job(&self, options: impl FnOnce(&mut JobOptions)) -> Job {
        let mut wanted = job_options(&self.path);
        options(&mut wanted);
        Job::new(wanted, Opening { opener: Arc::new(Opens(self.numbers.clone())), callables: None }).unwrap()
    }

    fn stop(&mut self) {
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

fn job_options(path: &Path) -> JobOptions {
    JobOptions {
        path: path.to_owned(),
        name: "job".to_owned(),
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

fn numbers(batch: &Batch) -> Vec<i64> {
    let Column::Fixed(Values::I8(numbers)) = &batch.columns[0] else { panic!() };
    numbers.clone()
}

/// What comes next within a minute.
fn next(job: &mut Job) -> Result<NextOfJob, SourceError> {
    let until = Instant::now() + 60 * SECOND;
    loop {
        match job.next(SECOND / 10)? {
            NextOfJob::Pending => assert!(Instant::now() < until, "nothing comes: {:?}", job.mode()),
            next => return Ok(next),
        }
    }
}

/// The rows of each epoch, as they come.
fn all(job: &mut Job) -> Vec<Vec<i64>> {
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

fn sorted(rows: &[i64]) -> Vec<i64> {
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    rows
}

fn status(server: &Server) -> proto::StatusReply {
    admin::status(&server.path).unwrap()
}

#[test]
fn a_job_gets_each_row_once_in_each_epoch_and_in_another_order() {
    for (element_size, sampler) in [("10", ""), ("1", "dependent"), ("35", "independent")] {
        let server = Server::start(1 << 20, Numbers::new(200));
        server.create(200, element_size, sampler);
        let epochs = all(&mut server.job(|_| ()));
        assert_eq!(epochs.len(), 2);
        for epoch in &epochs {
            assert_eq!(sorted(epoch), (0..200).collect::<Vec<_>>(), "elements of {element_size}");
            assert_ne!(*epoch, sorted(epoch));
        }
        assert_ne!(epochs[0], epochs[1]);
    }
}

#[test]
fn equal_jobs_read_each_element_once_and_all_that_they_hold_is_given_back() {
    let slow = Numbers { slow: SECOND / 1000, ..Numbers::new(1000) };
    let server = Server::start(1 << 20, slow);
    server.create(1000, "10", "");
    let epochs: Vec<Vec<Vec<i64>>> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..4)
            .map(|number| {
                let mut job = server.job(|options| options.name = format!("job {number}"));
                scope.spawn(move || all(&mut job))
            })
            .collect();
        jobs.into_iter().map(|job| job.join().unwrap()).collect()
    });
    for epoch in epochs.iter().flatten() {
        assert_eq!(sorted(epoch), (0..1000).collect::<Vec<_>>());
    }
    let status = status(&server);
    let of = status.server.unwrap();
    // all of them fit into the memory
    assert_eq!(of.loads, 100);
    assert_eq!(server.numbers.read.load(Ordering::Relaxed), 1000);
    assert!(status.jobs.is_empty());
    // 8 epochs were given, and one was read
    assert_eq!(of.bytes_saved, 7 * of.bytes_loaded);
}

#[test]
fn columns_and_conditions_are_the_jobs_own_and_what_is_equal_is_shared() {
    let server = Server::start(1 << 20, Numbers::new(200));
    server.create(200, "10", "");
    let mut job = server.job(|options| {
        options.columns = vec!["x".to_owned()];
        options.filter = "x % 2 = 0 AND y < 5".to_owned();
    });
    for epoch in all(&mut job) {
        assert_eq!(sorted(&epoch), (0..50).step_by(2).collect::<Vec<_>>());
    }
    assert_eq!(job.rows(), Some(25));
    let before = status(&server).server.unwrap().loads;
    assert_eq!(before, 5, "elements without such rows are not read for the job");
    all(&mut server.job(|options| options.columns = vec!["x".to_owned()]));
    assert_eq!(status(&server).server.unwrap().loads, 20);
    all(&mut server.job(|_| ()));
    assert_eq!(status(&server).server.unwrap().loads, 40, "other columns are other reads");
}

#[test]
fn an_element_that_cannot_be_read_is_an_error_for_the_job_and_the_others_come() {
    let server = Server::start(1 << 20, Numbers { broken: Some(7), ..Numbers::new(200) });
    server.create(200, "10", "");
    let mut job = server.job(|options| options.epochs = 1);
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    loop {
        match next(&mut job) {
            Ok(NextOfJob::Batch(batch)) => rows.extend(numbers(&batch)),
            Ok(NextOfJob::End) => break,
            Ok(_) => {}
            Err(error) => errors.push(error.to_string()),
        }
    }
    assert_eq!(errors, ["rows 70 to 80: it is broken"]);
    assert_eq!(sorted(&rows), (0..70).chain(80..200).collect::<Vec<_>>());
    assert_eq!(job.counts().errors, 1);
}

#[test]
fn elements_that_find_no_room_come_all_the_same() {
    // a slot has a schema, too: there is room for one or two
    let server = Server::start(2048, Numbers::new(200));
    server.create(200, "50", "");
    for epoch in all(&mut server.job(|_| ())) {
        assert_eq!(sorted(&epoch), (0..200).collect::<Vec<_>>());
    }
    assert!(status(&server).server.unwrap().outside > 0);
}

#[test]
fn a_job_holds_a_quarter_of_the_memory_at_most_also_if_rows_grow_when_they_are_prepared() {
    let server = Server::start(1 << 20, Numbers { pictures: true, ..Numbers::new(1000) });
    server.create(1000, "1", "");
    // 10 kB each
    let mut job = server.job(|options| {
        options.recipe = r#"[{"step": "resize", "column": "picture", "height": 100, "width": 100}]"#.to_owned();
        options.buffer = BufferSize::Share(0.5);
        options.batch_size = 1;
    });
    assert!(matches!(next(&mut job).unwrap(), NextOfJob::Batch(_)));
    let held = status(&server).jobs[0].held;
    assert!((1..=26).contains(&held), "it holds {held} elements");
    for epoch in all(&mut job) {
        assert!(epoch.len() >= 999);
    }
    assert_eq!(status(&server).server.unwrap().outside, 0);
}

#[test]
fn a_job_that_goes_or_stalls_stops_nobody() {
    let server = Server::start(16 << 10, Numbers::new(1000));
    server.create(1000, "10", "");
    let mut stalls = server.job(|options| options.name = "stalls".to_owned());
    assert!(matches!(next(&mut stalls).unwrap(), NextOfJob::Batch(_)));
    let mut goes = server.job(|options| options.name = "goes".to_owned());
    assert!(matches!(next(&mut goes).unwrap(), NextOfJob::Batch(_)));
    drop(goes);
    for epoch in all(&mut server.job(|_| ())) {
        assert_eq!(sorted(&epoch), (0..1000).collect::<Vec<_>>());
    }
    let names: Vec<String> = status(&server).jobs.into_iter().map(|job| job.name).collect();
    assert_eq!(names, ["stalls"]);
    // and it goes on
    let mut rows = 16;
    while let NextOfJob::Batch(batch) = next(&mut stalls).unwrap() {
        rows += batch.rows;
    }
    assert_eq!(rows, 1000);
}

/// Reads on until so many rows came in all.
fn read_until(job: &mut Job, rows: &mut Vec<i64>, wanted: usize) {
    while rows.len() < wanted {
        let NextOfJob::Batch(batch) = next(job).unwrap() else { panic!() };
        rows.extend(numbers(&batch));
    }
}

#[test]
fn without_its_server_a_job_reads_by_itself_and_rejoins_another_one() {
    let slow = Numbers { slow: SECOND / 100, ..Numbers::new(2000) };
    let mut server = Server::start(1 << 20, slow.clone());
    server.create(2000, "10", "");
    let mut job = server.job(|_| ());
    let mut rows = Vec::new();
    read_until(&mut job, &mut rows, 300);
    server.stop();
    read_until(&mut job, &mut rows, 900);
    assert!(matches!(job.mode(), Mode::Direct(_)), "{:?}", job.mode());
    let alone = job.counts().direct;
    assert!(alone > 0);
    let again = Server::at(server.path.clone(), 1 << 20, slow);
    again.create(2000, "10", "");
    let rest = all(&mut job);
    assert_eq!(job.counts().registered, 2, "it has rejoined: {:?}", job.mode());
    rows.extend(&rest[0]);
    assert_eq!(sorted(&rows), (0..2000).collect::<Vec<_>>(), "each row once, from whomever it came");
    assert_eq!(sorted(&rest[1]), (0..2000).collect::<Vec<_>>());
    assert!(status(&again).server.unwrap().loads > 0);
}

#[test]
fn a_server_of_other_rows_is_not_rejoined() {
    let slow = Numbers { slow: SECOND / 500, ..Numbers::new(1000) };
    let mut server = Server::start(1 << 20, slow.clone());
    server.create(1000, "10", "");
    let mut job = server.job(|options| options.epochs = 1);
    let mut rows = Vec::new();
    read_until(&mut job, &mut rows, 100);
    server.stop();
    let again = Server::at(server.path.clone(), 1 << 20, Numbers::new(500));
    again.create(500, "10", "");
    rows.extend(&all(&mut job)[0]);
    assert_eq!(sorted(&rows), (0..1000).collect::<Vec<_>>());
    assert_eq!(job.counts().registered, 1);
}

#[test]
fn another_process_goes_on_where_a_job_was() {
    let server = Server::start(1 << 20, Numbers::new(1000));
    server.create(1000, "10", "");
    for stop in [0, 1, 100, 500, 999] {
        let mut job = server.job(|_| ());
        let mut rows = Vec::new();
        read_until(&mut job, &mut rows, stop);
        let position = job.position();
        job.close();
        let mut other = server.job(|options| {
            let (position, fingerprint) = position.unwrap_or_else(|| {
                (Position { left: (0..100).collect(), ..Position::default() }, options.fingerprint.unwrap_or_default())
            });
            options.fingerprint = (fingerprint != 0).then_some(fingerprint);
            options.position = Some(position);
        });
        let rest = all(&mut other);
        rows.extend(&rest[0]);
        assert_eq!(sorted(&rows), (0..1000).collect::<Vec<_>>(), "after {stop} rows");
        assert_eq!(sorted(&rest[1]), (0..1000).collect::<Vec<_>>());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let server = Server::start(1 << 20, Numbers::new(200));
    let refused = |options: &dyn Fn(&mut JobOptions)| match next(&mut server.job(|of| options(of))) {
        Err(error) => error.to_string(),
        Ok(next) => panic!("{next:?}"),
    };
    assert_eq!(refused(&|_| ()), "dataset: there is no \"numbers\"; there is none yet");
    server.create(200, "10", "");
    assert_eq!(refused(&|options| options.columns = vec!["z".to_owned()]), "columns: there is no \"z\"");
    assert!(refused(&|options| options.filter = "z < 3".to_owned()).starts_with("where: "));
    let create = |name: &str, source: &str, size: &str, sampler: &str, replaces| {
        let (name, source) = (name.to_owned(), source.to_owned());
        let (element_size, sampler) = (size.to_owned(), sampler.to_owned());
        let data_set = proto::DataSet { name, source, columns: Vec::new(), element_size, sampler };
        admin::put_data_set(&server.path, data_set, replaces)
    };
    assert!(matches!(create("numbers", "200", "", "", false), Err(ServiceError::Conflict(_))));
    assert!(matches!(create("others", "200", "", "", true), Err(ServiceError::Unknown(_))));
    assert!(matches!(create("others", "many", "", "", false), Err(ServiceError::Refused(_))));
    assert!(matches!(create("others", "10", "-3", "", false), Err(ServiceError::Refused(_))));
    assert!(matches!(create("others", "10", "", "best", false), Err(ServiceError::Refused(_))));
    assert!(matches!(create("", "10", "", "", false), Err(ServiceError::Refused(_))));
    let mut job = server.job(|_| ());
    next(&mut job).unwrap();
    assert!(matches!(create("numbers", "10", "", "", true), Err(ServiceError::Conflict(_))));
    assert!(matches!(admin::drop_data_set(&server.path, "numbers"), Err(ServiceError::Conflict(_))));
    assert_eq!(admin::data_sets(&server.path).unwrap()[0].jobs, 1);
    job.close();
    let until = Instant::now() + 10 * SECOND;
    while admin::drop_data_set(&server.path, "numbers").is_err() {
        assert!(Instant::now() < until);
        std::thread::sleep(SECOND / 50);
    }
    let nobody = server.path.with_extension("nobody");
    assert!(matches!(admin::status(&nobody), Err(ServiceError::NoServer { .. })));
}

#[test]
fn a_socket_that_a_killed_server_left_is_taken_over_and_one_in_use_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("joader");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = Server::at(path.clone(), 1 << 20, Numbers::new(10));
    let serve_again = |path: &Path| {
        let options = ServerOptions { path: path.to_owned(), memory: 1 << 20, threads: 1, seed: 1 };
        let (_stop, stopped) = watch::channel(());
        serve(options, Arc::new(Opens(Numbers::new(10))), None, stopped, || ())
    };
    assert_eq!(serve_again(&path).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert_eq!(serve_again(&file).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    drop(server);
    assert!(!path.exists());
}
