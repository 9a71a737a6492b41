//! How loading in a worker ends: by errors, cancels, kills and late leaders, with nothing left behind.

use super::loader::{loader, same_in_a_worker};
use corgipile_tests::{Database, Session, clustered, log};
use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than any stop may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);

const ENDLESS: &str = "SELECT * FROM corgipile_train('t', max_epochs => 1000000, prefetch => 'on')";

/// The segments of dynamic shared memory that a process has mapped.
fn segments(db: &mut Session, pid: i32) -> BTreeSet<String> {
    db.column::<String>(&format!(
        "SELECT DISTINCT substring(line FROM '/dev/shm/(PostgreSQL\\.\\d+)')
           FROM regexp_split_to_table(pg_read_file('/proc/{pid}/maps'), '\\n') line WHERE line ~ '/dev/shm/PostgreSQL'"
    ))
    .into_iter()
    .collect()
}

/// Asserts that a process has not kept a segment of each of this many rounds. Some more are no leak: the server keeps
/// its statistics in such segments, too, and a process maps one when it first comes upon statistics that lie there,
/// which may be at any time when other tests make and drop databases.
fn no_segments_leak(db: &mut Session, pid: i32, before: &BTreeSet<String>, rounds: usize) {
    let now = segments(db, pid);
    let more: Vec<_> = now.difference(before).collect();
    assert!(more.len() < rounds, "{rounds} rounds have left {more:?} beside {before:?}");
}

#[test]
fn an_error_in_a_worker_is_that_of_the_statement() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    let pid = db.pid();
    db.run("CREATE VIEW quotients AS SELECT label, features_v, 1 / (id - 3500) AS q FROM t");
    db.run("CREATE TABLE bad AS TABLE t; UPDATE bad SET features_v = '{1,NaN,3,4,5}' WHERE id = 3900");
    let at = db.line("SELECT ctid FROM bad WHERE id = 3900");
    // the first worker of a session leaves it with memory that the session's others share
    db.run("BEGIN; SELECT corgipile_train('t', max_epochs => 1, prefetch => 'on'); ROLLBACK");
    let before = segments(&mut db, pid);
    for _ in 0..5 {
        db.rejects("SELECT * FROM corgipile_train('bad', prefetch => 'on')", "22003")
            .says(&["feature features_v[2] is NaN in row", &at])
            .hints(&["Correct such rows"]);
        db.rejects("SELECT * FROM corgipile_train('quotients', features => '{q}', prefetch => 'on')", "22012")
            .says(&["division by zero"]);
        db.rejects("SELECT corgipile_train('SELECT 1 AS label, id AS x FROM t', prefetch => 'on')", "22000")
            .says(&["only one value"]);
        db.rejects(
            "SELECT corgipile_train('SELECT id % 3 AS label, id AS x FROM t', 'logistic', prefetch => 'on')",
            "22000",
        )
        .says(&["more than two values"]);
        db.rejects("SELECT corgipile_train('SELECT * FROM t WHERE false', prefetch => 'on')", "22000")
            .says(&["no rows"]);
        db.rejects(
            "SELECT corgipile_train('t', options => '{\"class_weight\": {\"7\": 2}}', prefetch => 'on')",
            "22023",
        );
        // the leader's own
        db.rejects("SELECT corgipile_train('t', 'linear', learning_rate => 1e8, prefetch => 'on')", "22003")
            .says(&["diverged"]);
        // in a subtransaction, and the transaction goes on
        db.run(
            "DO $$ BEGIN
                 PERFORM * FROM corgipile_train('bad', prefetch => 'on');
             EXCEPTION WHEN numeric_value_out_of_range THEN
                 PERFORM * FROM corgipile_train('t', max_epochs => 1, prefetch => 'on', name => 'after');
                 DELETE FROM corgipile.stored_models WHERE name = 'after';
             END $$",
        );
        assert!(db.parallel_workers().is_empty());
    }
    no_segments_leak(&mut db, pid, &before, 5);
    same_in_a_worker(&mut db, "'t', max_epochs => 2");
    no_complaints(&db);
}

/// Runs a training whose source is read only after its leader was stopped, as a busy machine stops any process, and
/// which goes on when its worker has ended or waits for it; its outcome, or its SQLSTATE.
fn while_the_leader_stands_still(db: &mut Database, source: &str, buffer: &str) -> String {
    let slow = format!("SELECT label, features_v FROM {source} WHERE id > 1 OR pg_sleep(2)::text = ''");
    let sql = format!(
        "SELECT count(*) || ' epoch, ' || sum(tuples) || ' tuples' FROM corgipile_train($source${slow}$source$,
             max_epochs => 1, prefetch => 'on', shuffle => 'no_shuffle', block_size => '8kB', buffer_size => '{buffer}')"
    );
    let mut session = db.session();
    let leader = session.pid();
    let training = std::thread::spawn(move || match session.attempt(&sql) {
        Ok(lines) => lines.concat(),
        Err(failure) => failure.code,
    });
    let worker = db.wait_for_parallel_workers(1)[0];
    let waits = |db: &mut Database, pid: i32| {
        db.lines(&format!("SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}")).concat()
    };
    let deadline = Instant::now() + PATIENCE;
    while waits(db, leader) != "MessageQueueReceive" || waits(db, worker) != "PgSleep" {
        assert!(Instant::now() < deadline, "leader and worker do not wait");
        sleep(Duration::from_millis(1));
    }
    db.run(&format!("COPY (SELECT WHERE false) TO PROGRAM 'kill -STOP {leader}'"));
    let stood = Instant::now();
    while !["", "MessageQueueReceive"].contains(&waits(db, worker).as_str()) && stood.elapsed() < PATIENCE {
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(100)); // a process that ends is gone by now
    db.run(&format!("COPY (SELECT WHERE false) TO PROGRAM 'kill -CONT {leader}'"));
    training.join().expect("the session's thread does not panic")
}

#[test]
fn a_worker_is_there_until_a_late_leader_has_its_buffers() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    assert_eq!(while_the_leader_stands_still(&mut db, "t", "100%"), "1 epoch, 4000 tuples");
    // in the second buffer, with the first one not taken yet
    db.run("CREATE TABLE bad AS TABLE t; UPDATE bad SET features_v = '{1,NaN,3,4,5}' WHERE id = 3900");
    assert_eq!(while_the_leader_stands_still(&mut db, "bad", "50%"), "22003");
    no_complaints(&db);
}

/// Asserts that the log has no warning of a leak and no panic.
fn no_complaints(db: &Database) {
    let complaints: Vec<_> = log(db.name())
        .into_iter()
        .filter(|line| ["WARNING", "PANIC", "leak", "panicked"].iter().any(|word| line.contains(word)))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// Runs an endless training in another session until `stop`, which gets leader and worker, has ended it; gives its
/// SQLSTATE. Nothing may be left afterwards.
fn stopped(db: &mut Database, sql: &str, stop: impl FnOnce(&mut Database, i32, i32)) -> String {
    let mut session = db.session();
    let pid = session.pid();
    let sql = sql.to_owned();
    let thread =
        std::thread::spawn(move || session.attempt(&sql).map_or_else(|failure| failure.code, |_| "00000".into()));
    let worker = db.wait_for_parallel_workers(1)[0];
    sleep(Duration::from_millis(200)); // in mid-epoch
    let mapped = segments(db, pid);
    assert!(!mapped.is_empty(), "there is dynamic shared memory");
    stop(db, pid, worker);
    let deadline = Instant::now() + PATIENCE;
    while !thread.is_finished() {
        assert!(Instant::now() < deadline, "the statement does not stop");
        sleep(Duration::from_millis(5));
    }
    let code = thread.join().expect("the session's thread does not panic");
    db.wait_for_parallel_workers(0);
    let left = |db: &mut Database| -> Vec<String> {
        // what the server itself has, and the session of the leader, lives on
        let own = db.pid();
        let mine = segments(db, own);
        db.column::<String>("SELECT pg_ls_dir('/dev/shm')")
            .into_iter()
            .filter(|name| mapped.contains(name) && !mine.contains(name))
            .collect()
    };
    while !left(db).is_empty() {
        assert!(Instant::now() < deadline, "segments stay: {:?}", left(db));
        sleep(Duration::from_millis(10));
    }
    let files = format!("SELECT name FROM pg_ls_tmpdir() WHERE name ~ '^pgsql_tmp({pid}|{worker})\\.'");
    assert_eq!(db.lines(&files), Vec::<String>::new());
    assert_eq!(db.models(), 0);
    no_complaints(db);
    code
}

#[test]
fn whoever_is_stopped_nothing_is_left() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let spooled = "SELECT corgipile_train('SELECT t.label, t.features_v FROM t JOIN t u USING (id)',
                   max_epochs => 1000000, prefetch => 'on', options => '{\"cache\": \"on\"}')";
    let nested = "DO $$ BEGIN PERFORM * FROM corgipile_train('t', max_epochs => 1000000, prefetch => 'on');
                  EXCEPTION WHEN division_by_zero THEN NULL; END $$";
    for sql in [ENDLESS, spooled, nested] {
        let cancel = |db: &mut Database, leader: i32, _| db.run(&format!("SELECT pg_cancel_backend({leader})"));
        assert_eq!(stopped(&mut db, sql, cancel), "57014", "{sql}");
        let end = |db: &mut Database, leader: i32, _| db.run(&format!("SELECT pg_terminate_backend({leader})"));
        let code = stopped(&mut db, sql, end);
        // the client may find the connection closed before it reads the error
        assert!(["57P01", "closed"].contains(&code.as_str()), "{sql}: {code}");
        let kill = |db: &mut Database, _, worker: i32| db.run(&format!("SELECT pg_terminate_backend({worker})"));
        assert_eq!(stopped(&mut db, sql, kill), "57P01", "{sql}");
        let timeout = format!("SET statement_timeout = '1s'; {sql}");
        assert_eq!(stopped(&mut db, &timeout, |_, _, _| {}), "57014", "{sql}");
    }
    same_in_a_worker(&mut db, "'t', max_epochs => 2");
}

#[test]
fn if_no_worker_is_free_the_leader_loads() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    stopped(&mut db, ENDLESS, |db, leader, _| {
        // of the whole server, of which one runs
        db.run("BEGIN; SET LOCAL max_parallel_workers = 1");
        let why = loader(db, "'t', max_epochs => 1, prefetch => 'on'");
        assert_eq!(why, ("off".into(), "no worker process was free".into()));
        db.run(&format!("ROLLBACK; SELECT pg_cancel_backend({leader})"));
    });
}

#[test]
fn trainings_with_workers_do_not_leak() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    let pid = db.pid();
    let run = |db: &mut Database| {
        db.run("SELECT * FROM corgipile_train('t', max_epochs => 2, prefetch => 'on')");
        db.fails_with(
            "SELECT * FROM corgipile_train('t', max_epochs => 2, learning_rate => 1e38, prefetch => 'on')",
            "22003",
        );
    };
    run(&mut db);
    let before = segments(&mut db, pid);
    for _ in 0..10 {
        run(&mut db);
    }
    no_segments_leak(&mut db, pid, &before, 10);
    let before = segments(&mut db, pid);
    db.run("BEGIN");
    for _ in 0..10 {
        db.run("SELECT * FROM corgipile_train('t', max_epochs => 2, prefetch => 'on')");
    }
    no_segments_leak(&mut db, pid, &before, 10);
    db.run("COMMIT");
    no_complaints(&db);
}
