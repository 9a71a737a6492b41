//! A server and its jobs in one process, over a real socket.

use crate::common::{Numbers, Opens, SECOND, Server, all, job_options, next, numbers, sorted, status, until};
use service::{
    BufferSize, Job, JobError, JobOptions, Mode, NextOfJob, Opened, Opener, Opening, Position, ServerOptions,
    ServiceError, admin, proto, serve,
};
use source::SourceError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::watch;

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
    until("jobs do not leave", || status(&server).jobs.is_empty());
    let of = status(&server).server.unwrap();
    // all of them fit into the memory
    assert_eq!(of.loads, 100);
    assert_eq!(server.numbers.read.load(Ordering::Relaxed), 1000);
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
fn rows_that_were_skipped_do_not_make_a_condition_mean_others() {
    let server = Server::start(1 << 20, Numbers { skipped: Some(4), ..Numbers::new(200) });
    server.create(200, "20", "");
    let mut job = server.job(|options| {
        options.columns = vec!["x".to_owned()];
        options.filter = "y % 2 = 1".to_owned();
        options.epochs = 1;
    });
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    loop {
        match next(&mut job) {
            Ok(NextOfJob::Batch(batch)) => rows.extend(numbers(&batch)),
            Ok(NextOfJob::End) => break,
            Ok(_) => {}
            Err(error) => errors.push(error.to_string()),
        }
    }
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("rows 40 to 60: there are 19 instead of 20"), "{errors:?}");
    assert_eq!(sorted(&rows), (0..200).filter(|row| row / 10 % 2 == 1 && !(40..60).contains(row)).collect::<Vec<_>>());
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
    let names = || status(&server).jobs.into_iter().map(|job| job.name).collect::<Vec<_>>();
    until("others do not leave", || names() == ["stalls"]);
    // and it goes on
    let mut rows = 16;
    while let NextOfJob::Batch(batch) = next(&mut stalls).unwrap() {
        rows += batch.rows;
    }
    assert_eq!(rows, 1000);
}

#[test]
fn rows_that_a_job_has_not_looked_at_stay_until_it_has_though_all_of_them_came() {
    let server = Server::start(64 << 10, Numbers::new(5000));
    server.create(5000, "10", "");
    let mut slow = server.job(|options| {
        options.filter = "y < 20".to_owned();
        options.epochs = 1;
        options.buffer = BufferSize::Elements(10);
    });
    let mut rows = Vec::new();
    read_until(&mut slow, &mut rows, 16);
    let until = Instant::now() + 10 * SECOND;
    while slow.counts().shared < 20 {
        assert!(Instant::now() < until, "{:?}", slow.counts());
        std::thread::sleep(SECOND / 100);
    }
    // others take all of the memory several times
    all(&mut server.job(|_| ()));
    assert!(status(&server).server.unwrap().evictions > 400);
    rows.extend(&all(&mut slow)[0]);
    assert_eq!(sorted(&rows), (0..200).collect::<Vec<_>>());
}

/// Opens other rows than the server has read.
struct Changed;

impl Opener for Changed {
    fn open(&self, _: &str) -> Result<Arc<dyn Opened>, SourceError> {
        Ok(Arc::new(Numbers::new(990)))
    }
}

#[test]
fn rows_that_have_changed_are_not_read_by_a_job_itself() {
    let slow = Numbers { slow: SECOND / 500, ..Numbers::new(1000) };
    let mut server = Server::start(1 << 20, slow);
    server.create(1000, "10", "");
    let opening = Opening { opener: Arc::new(Changed), callables: None };
    let mut job = Job::new(job_options(&server.path), opening).unwrap();
    let mut rows = Vec::new();
    read_until(&mut job, &mut rows, 100);
    server.stop();
    let error = loop {
        match next(&mut job) {
            Ok(NextOfJob::Batch(_)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("the source has 990 rows now, and had 1000 when the job began"), "{error}");
}

/// Reads on until this many rows came in all.
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
fn a_job_reads_no_rows_by_itself_that_are_others_than_the_servers() {
    let mut server = Server::start(1 << 20, Numbers { slow: SECOND / 500, ..Numbers::new(1000) });
    server.create(1000, "10", "");
    let changed = Opening { opener: Arc::new(Opens(Numbers { version: 1, ..Numbers::new(1000) })), callables: None };
    let mut job = Job::new(job_options(&server.path), changed).unwrap();
    read_until(&mut job, &mut Vec::new(), 100);
    server.stop();
    let error = loop {
        match next(&mut job) {
            Ok(NextOfJob::Batch(_)) => {}
            Ok(next) => panic!("{next:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, JobError::Service(ServiceError::Lost(_))), "{error:?}");
    assert!(error.to_string().contains("the source is another one now"), "{error}");
}

#[test]
fn a_job_comes_back_to_a_server_that_does_not_have_the_data_set_at_once() {
    let slow = Numbers { slow: SECOND / 100, ..Numbers::new(4000) };
    let mut server = Server::start(1 << 20, slow.clone());
    server.create(4000, "10", "");
    let mut job = server.job(|options| options.epochs = 1);
    let mut rows = Vec::new();
    read_until(&mut job, &mut rows, 100);
    server.stop();
    let again = Server::at(server.path.clone(), 1 << 20, slow);
    // it hears that there is no such data set, and asks again
    let refused = |job: &Job| matches!(job.mode(), Mode::Direct(why) if why.contains("there is no \"numbers\""));
    while !refused(&job) {
        let wanted = rows.len() + 16;
        read_until(&mut job, &mut rows, wanted);
    }
    again.create(4000, "10", "");
    rows.extend(&all(&mut job)[0]);
    assert_eq!(job.counts().registered, 2, "{:?}", job.mode());
    assert_eq!(sorted(&rows), (0..4000).collect::<Vec<_>>());
}

#[test]
fn a_job_that_waits_for_a_server_that_hangs_is_given_up_and_can_be_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("joader");
    // connections wait to be accepted for ever
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let open = || Opening { opener: Arc::new(Opens(Numbers::new(10))), callables: None };
    let mut closed = Job::new(job_options(&path), open()).unwrap();
    assert!(matches!(closed.next(SECOND / 10), Ok(NextOfJob::Pending)));
    let began = Instant::now();
    closed.close();
    assert!(began.elapsed() < 2 * SECOND);
    assert!(matches!(closed.next(SECOND), Err(JobError::Misused(_))));
    let error = next(&mut Job::new(job_options(&path), open()).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the JOADER server went: it has not answered for 7 seconds");
}

/// A job that says to the server what it likes, and hears the first answer.
async fn hostile(path: &Path, said: Vec<proto::from_job::Message>) -> Result<Vec<proto::ToJob>, tonic::Status> {
    let path = path.to_owned();
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { tokio::net::UnixStream::connect(path).await.map(hyper_util::rt::TokioIo::new) }
    });
    let endpoint = tonic::transport::Endpoint::from_static("http://joader.invalid");
    let channel = endpoint.connect_with_connector(connector).await.unwrap();
    let mut client = proto::joader_client::JoaderClient::new(channel);
    let messages = said.into_iter().map(|message| proto::FromJob { message: Some(message) });
    let mut answers = client.train(tokio_stream::iter(messages.collect::<Vec<_>>())).await?.into_inner();
    let mut heard = Vec::new();
    while let Some(answer) = answers.message().await? {
        heard.push(answer);
    }
    Ok(heard)
}

#[test]
fn what_hostile_jobs_say_is_refused_or_does_nothing() {
    use proto::from_job::Message;
    let server = Server::start(1 << 20, Numbers::new(200));
    server.create(200, "10", "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let register = || proto::Register {
        data_set: "numbers".to_owned(),
        epochs: 1,
        window: Some(proto::Window { size: Some(proto::window::Size::Elements(4)) }),
        ..proto::Register::default()
    };
    let left = |ranges: &[(u32, u32)]| proto::Register {
        left: Some(proto::Elements {
            ranges: ranges.iter().map(|&(start, end)| proto::Range { start, end }).collect(),
        }),
        ..register()
    };
    let share = |share| proto::Register {
        window: Some(proto::Window { size: Some(proto::window::Size::Share(share)) }),
        ..register()
    };
    let wrong = [
        left(&[(0, u32::MAX)]),
        left(&[(u32::MAX - 1, u32::MAX)]),
        left(&[(20, 21)]),
        share(f64::NAN),
        share(-1.0),
        share(f64::INFINITY),
        share(0.0),
        proto::Register { window: None, ..register() },
        proto::Register { epochs: 0, ..register() },
        proto::Register { epoch: u64::MAX, epochs: u64::MAX, ..register() },
        proto::Register { recipe: "[".repeat(100_000), ..register() },
        proto::Register { filter: "(".repeat(100_000), ..register() },
    ];
    for wrong in wrong {
        let shown = format!("{wrong:?}").chars().take(200).collect::<String>();
        let refused = runtime.block_on(hostile(&server.path, vec![Message::Register(wrong)]));
        assert_eq!(refused.unwrap_err().code(), tonic::Code::InvalidArgument, "{shown}");
    }
    let refused = runtime.block_on(hostile(&server.path, vec![Message::Done(proto::Done { tickets: vec![1] })]));
    assert_eq!(refused.unwrap_err().code(), tonic::Code::InvalidArgument);
    // tickets that it does not have, and another registration in the middle
    let tickets = |tickets: Vec<u64>| Message::Done(proto::Done { tickets });
    let much = vec![
        Message::Register(register()),
        tickets(vec![u64::MAX, 0, 1, 1, 1, 2]),
        Message::Register(register()),
        tickets((0..100_000).collect()),
    ];
    runtime.block_on(hostile(&server.path, much)).unwrap();
    // the same elements twice are there once, and reversed ranges have none
    for odd in [left(&[(3, 5), (3, 5), (4, 6)]), left(&[(5, 3)])] {
        runtime.block_on(hostile(&server.path, vec![Message::Register(odd)])).unwrap();
    }
    for epoch in all(&mut server.job(|options| options.epochs = 2)) {
        assert_eq!(sorted(&epoch), (0..200).collect::<Vec<_>>());
    }
    nobody_is_left(&server);
}

fn nobody_is_left(server: &Server) {
    let until = Instant::now() + 10 * SECOND;
    while let jobs = status(server).jobs
        && !jobs.is_empty()
    {
        assert!(Instant::now() < until, "{jobs:?}");
        std::thread::sleep(SECOND / 50);
    }
}

#[test]
fn a_job_that_goes_while_it_registers_is_not_there() {
    let slow = Numbers { slow: SECOND / 20, opens: SECOND / 3, ..Numbers::new(200) };
    let server = Server::start(1 << 20, slow);
    server.create(200, "10", "");
    let goes = |options: &dyn Fn(&mut JobOptions)| {
        let mut goes = server.job(options);
        assert!(matches!(goes.next(SECOND / 10), Ok(NextOfJob::Pending)));
        goes.close();
    };
    // its columns are being opened, which nothing stops
    goes(&|options| options.columns = vec!["x".to_owned()]);
    std::thread::sleep(SECOND / 2);
    nobody_is_left(&server);
    // its condition would take another second to look for
    goes(&|options| options.filter = "x > 5".to_owned());
    std::thread::sleep(SECOND / 2);
    let read = server.numbers.read.load(Ordering::Relaxed);
    std::thread::sleep(SECOND / 5);
    assert_eq!(server.numbers.read.load(Ordering::Relaxed), read, "nobody waits for the condition any more");
    nobody_is_left(&server);
    admin::drop_data_set(&server.path, "numbers").unwrap();
}

#[test]
fn a_job_does_not_get_a_data_set_that_was_altered_while_it_registered() {
    let server = Server::start(1 << 20, Numbers { slow: SECOND / 50, ..Numbers::new(200) });
    server.create(200, "10", "");
    let mut job = server.job(|options| options.filter = "x > 20".to_owned());
    assert!(matches!(job.next(SECOND / 10), Ok(NextOfJob::Pending)));
    let data_set = proto::DataSet {
        name: "numbers".to_owned(),
        source: "100".to_owned(),
        element_size: "5".to_owned(),
        ..proto::DataSet::default()
    };
    admin::put_data_set(&server.path, data_set, true).unwrap();
    let error = next(&mut job).unwrap_err();
    assert_eq!(error.to_string(), "dataset: \"numbers\" was altered while the job registered: try again");
    nobody_is_left(&server);
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
fn a_server_with_less_memory_than_the_one_before_lets_a_job_hold_less() {
    let slow = Numbers { slow: SECOND / 100, ..Numbers::new(2000) };
    let mut server = Server::start(1 << 20, slow.clone());
    server.create(2000, "10", "");
    let mut job = server.job(|options| options.epochs = 1);
    let mut rows = Vec::new();
    read_until(&mut job, &mut rows, 300);
    server.stop();
    let again = Server::at(server.path.clone(), 2048, slow);
    again.create(2000, "10", "");
    rows.extend(&all(&mut job)[0]);
    assert_eq!(job.counts().registered, 2);
    assert_eq!(sorted(&rows), (0..2000).collect::<Vec<_>>());
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
        let options = ServerOptions {
            path: path.to_owned(),
            memory: 1 << 20,
            threads: 1,
            seed: 1,
            cluster: None,
            data_sets: None,
        };
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

/// Opens nothing as long as the file is there.
struct OpensUnless(PathBuf, Opens);

impl Opener for OpensUnless {
    fn open(&self, source: &str) -> Result<Arc<dyn Opened>, SourceError> {
        if self.0.exists() {
            return Err(SourceError::Invalid("source: it is away".to_owned()));
        }
        self.1.open(source)
    }
}

#[test]
fn data_sets_are_there_again_when_the_server_is_started_again_also_those_whose_source_comes_later() {
    let directory = tempfile::tempdir().unwrap();
    let (path, away) = (directory.path().join("joader"), directory.path().join("away"));
    let start = || {
        let data_sets = Some(directory.path().join("data sets"));
        let options =
            ServerOptions { path: path.clone(), memory: 1 << 20, threads: 1, seed: 1, cluster: None, data_sets };
        Server::opened_by(options, Numbers::new(100), Arc::new(OpensUnless(away.clone(), Opens(Numbers::new(100)))))
    };
    let put = |name: &str, rows: &str, replaces| {
        let (name, source) = (name.to_owned(), rows.to_owned());
        admin::put_data_set(&path, proto::DataSet { name, source, ..proto::DataSet::default() }, replaces)
    };
    let names = || -> Vec<(String, u64)> {
        let named = |of: proto::DataSetInfo| (of.data_set.unwrap().name, of.rows);
        admin::data_sets(&path).unwrap().into_iter().map(named).collect()
    };
    let server = start();
    for name in ["numbers", "others", "third", "fourth"] {
        put(name, "100", false).unwrap();
    }
    put("others", "200", true).unwrap();
    admin::drop_data_set(&path, "fourth").unwrap();
    drop(server);
    let server = start();
    assert!(admin::data_sets(&path).unwrap().iter().all(|of| of.error.is_empty()));
    let all_three = [("numbers".to_owned(), 100), ("others".to_owned(), 200), ("third".to_owned(), 100)];
    assert_eq!(names(), all_three.clone());
    drop(server);

    std::fs::write(&away, "").unwrap();
    let server = start();
    assert_eq!(names(), all_three.map(|(name, _)| (name, 0)));
    let errors: Vec<String> = admin::data_sets(&path).unwrap().into_iter().map(|of| of.error).collect();
    assert_eq!(errors, ["source: it is away"; 3]);
    let refused = next(&mut server.job(|_| ())).unwrap_err().to_string();
    assert!(refused.contains("\"numbers\" was there before the server was started again: source: it is away"));
    assert!(matches!(put("numbers", "100", false), Err(ServiceError::Conflict(_))), "it is there");
    admin::drop_data_set(&path, "third").unwrap();
    std::fs::remove_file(&away).unwrap();
    assert_eq!(sorted(&all(&mut server.job(|of| of.epochs = 1))[0]), (0..100).collect::<Vec<_>>());
    put("others", "300", true).unwrap();
    drop(server);
    let _server = start();
    assert_eq!(names(), [("numbers".to_owned(), 100), ("others".to_owned(), 300)]);
}
