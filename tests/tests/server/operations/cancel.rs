//! Stopping in mid-epoch: at once, with nothing stored and nothing left behind.

use corgipile_tests::{Database, Session, clustered, log};
use postgres::NoTls;
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Would take hours: whatever ends it is not its own end.
const ENDLESS: &str = "SELECT * FROM corgipile_train('t', max_epochs => 1000000)";

/// Longer than any stop may take on a loaded machine, and far shorter than what is stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a session is in the middle of a statement that has run for some time.
fn wait_until_active(db: &mut Database, pid: i32) {
    let active = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active'
         AND clock_timestamp() - query_start > interval '100 ms'"
    );
    db.wait_for(&active, "1");
}

/// Asserts that a stopped session has left nothing: no model, no temporary file, no warning.
fn nothing_is_left(db: &mut Database, pid: i32) {
    assert_eq!(db.models(), 0);
    let files = format!("SELECT name FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp{pid}.%'");
    db.wait_for(&files, ""); // the error is reported before what it leaves is put away
    let log = log(db.name());
    let stopped = |line: &String| line.contains("canceling statement") || line.contains("terminating connection");
    assert!(log.iter().any(stopped), "the log tells of the stop");
    let complaints: Vec<_> = log
        .into_iter()
        .filter(|line| {
            line.contains("WARNING") || line.contains("PANIC") || line.contains("leak") || line.contains("panicked")
        })
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// Asserts that a session that was interrupted works as before.
fn works(session: &mut Session) {
    let expected = session.line("SELECT count(*) FROM t");
    assert_eq!(session.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), expected);
    session.run("BEGIN; SELECT corgipile_train('t', max_epochs => 2); ROLLBACK");
}

/// Runs a statement until no cancel that is still on its way hits it.
fn wait_out_cancels(session: &mut Session, sql: &str) {
    while let Err(failure) = session.attempt(sql) {
        assert_eq!(failure.code, "57014", "{failure:#?}");
    }
}

#[test]
fn pg_cancel_backend_stops_training_in_every_shape() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    for sql in [
        ENDLESS,
        "SELECT corgipile_train('t', max_epochs => 1000000)",
        "SELECT * FROM corgipile_train('t', 'svm', max_epochs => 1000000, shuffle => 'no_shuffle')",
        "SELECT * FROM corgipile_train('t', max_epochs => 1000000, buffer_size => '100%')",
        "SELECT * FROM corgipile_train('SELECT t.label, t.features_v FROM t', max_epochs => 1000000)",
        "SELECT * FROM corgipile_train('SELECT t.label, t.features_v FROM t JOIN t u USING (id)',
         max_epochs => 1000000)",
        "EXPLAIN ANALYZE SELECT * FROM corgipile_train('t', max_epochs => 1000000)",
        "SELECT * FROM corgipile_search('t', max_epochs => 1000000)",
        "SELECT * FROM corgipile_search('t', 'mlp', max_epochs => 1000000, folds_by => 'id', features => '{features_v}')",
        "DO 'BEGIN PERFORM * FROM corgipile_train(''t'', max_epochs => 1000000); END'",
    ] {
        let mut session = db.session();
        let pid = session.pid();
        let statement = session.in_background(sql);
        wait_until_active(&mut db, pid);
        db.run(&format!("SELECT pg_cancel_backend({pid})"));
        let (mut session, code) = statement.stopped_within(PATIENCE);
        assert_eq!(code, "57014", "{sql}");
        nothing_is_left(&mut db, pid);
        works(&mut session);
    }
}

#[test]
fn statement_timeout_stops_training_standardizing_evaluating_and_shuffling() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let pid = db.pid();
    db.run("CREATE VIEW endless AS SELECT t.label, t.features_v FROM t, generate_series(1, 1000000)");
    let id = db.train("'t', max_epochs => 1")[0].model_id;
    for sql in [
        ENDLESS,
        "SELECT * FROM corgipile_train('endless')",
        "SELECT * FROM corgipile_train('endless', options => '{\"standardize\": true}')",
        &format!("SELECT * FROM corgipile_evaluate({id}, 'endless')"),
        "SELECT count(*) FROM generate_series(1, 1000000) g,
         LATERAL (SELECT * FROM corgipile_shuffle(NULL::t, seed => g) OFFSET 0) s",
        "SELECT count(*) FROM corgipile_shuffle(NULL::t) s, generate_series(1, 10000000) g",
    ] {
        db.run("SET statement_timeout = '200ms'");
        db.fails_with(sql, "57014");
        db.run("SET statement_timeout = '120s'");
        works(&mut db);
    }
    db.run(&format!("DELETE FROM corgipile.stored_models WHERE model_id = {id}"));
    nothing_is_left(&mut db, pid);
}

#[test]
fn pg_terminate_backend_ends_the_session_in_mid_epoch() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    for sql in [
        ENDLESS,
        "SELECT * FROM corgipile_train('SELECT t.label, t.features_v FROM t JOIN t u USING (id)',
         max_epochs => 1000000)",
        "SELECT count(*) FROM corgipile_shuffle(NULL::t) s, generate_series(1, 10000000) g",
    ] {
        let mut session = db.session();
        let pid = session.pid();
        let statement = session.in_background(sql);
        wait_until_active(&mut db, pid);
        db.run(&format!("SELECT pg_terminate_backend({pid})"));
        let (_, code) = statement.stopped_within(PATIENCE);
        assert!(code == "57P01" || code == "closed", "{sql}: {code}");
        db.wait_for(&format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"), "0");
        nothing_is_left(&mut db, pid);
    }
    works(&mut db);
}

#[test]
fn a_client_that_goes_away_does_not_leave_a_session_training() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let name = db.name().to_owned();
    db.run(&format!("ALTER DATABASE {name} SET client_connection_check_interval = '100ms'"));
    let mut psql = corgipile_tests::program("psql")
        .args(["-X", "-d", db.name(), "-c", ENDLESS])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("psql starts");
    let training =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                    AND state = 'active' AND query LIKE '%1000000%'";
    let deadline = Instant::now() + PATIENCE;
    while db.line(training) != "1" {
        assert!(Instant::now() < deadline, "psql trains");
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(100));
    psql.kill().expect("psql can be killed");
    psql.wait().expect("psql ends");
    let deadline = Instant::now() + PATIENCE;
    while db.line(training) != "0" {
        assert!(Instant::now() < deadline, "the session ends when its client has gone");
        sleep(Duration::from_millis(20));
    }
    assert_eq!(db.models(), 0);
}

#[test]
fn many_cancels_at_odd_times_leave_a_session_that_works() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    db.run("ALTER TABLE t ADD big text; UPDATE t SET big = repeat('x', 3000) WHERE id % 5 = 0; SET work_mem = '64kB'");
    let statements = [
        ENDLESS,
        "SELECT corgipile_train('t', 'svm', max_epochs => 1000000, options => '{\"standardize\": true}')",
        "SELECT * FROM corgipile_train('SELECT label, features_v, big FROM t ORDER BY id', max_epochs => 1000000)",
        "SELECT count(*) FROM generate_series(1, 1000000) g,
         LATERAL (SELECT * FROM corgipile_shuffle(NULL::t, seed => g) OFFSET 0) s",
    ];
    let mut session = db.session();
    session.run("SET work_mem = '64kB'");
    let pid = session.pid();
    for round in 0..40_u64 {
        let token = session.cancel_token();
        // From before the first row to well into training, in steps that share no factor with anything.
        let delay = Duration::from_micros(round * 733 % 23_000);
        let (ended, ends) = mpsc::channel::<()>();
        let canceller = std::thread::spawn(move || {
            sleep(delay);
            // A cancel that comes before the statement is lost: ask until it has ended.
            loop {
                token.cancel_query(NoTls).expect("a cancel can be sent");
                if ends.recv_timeout(Duration::from_millis(20)) != Err(mpsc::RecvTimeoutError::Timeout) {
                    break;
                }
            }
        });
        let sql = statements[round as usize % statements.len()];
        let failure = session.attempt(sql).expect_err("the statement is cancelled");
        assert_eq!(failure.code, "57014", "{sql}");
        drop(ended);
        canceller.join().expect("the canceller does not panic");
        // A cancel on its way when the statement ended hits the next one, which may be this.
        wait_out_cancels(&mut session, "SELECT 1");
    }
    // Who sends a cancel does not learn when it arrives: on a busy machine that may be even later.
    wait_out_cancels(&mut session, "SELECT pg_sleep(1)");
    works(&mut session);
    nothing_is_left(&mut db, pid);
}

#[test]
fn a_cancelled_training_leaves_the_transaction_to_its_savepoint() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    db.run("BEGIN; SAVEPOINT s; SET LOCAL statement_timeout = '100ms'");
    db.fails_with(ENDLESS, "57014");
    db.fails_with("SELECT 1", "25P02");
    db.run("ROLLBACK TO s; SELECT corgipile_train('t', max_epochs => 1, name => 'after'); COMMIT");
    assert_eq!(db.lines("SELECT name FROM corgipile.models"), ["after"]);
}

#[test]
fn a_lock_timeout_on_the_table_stops_training_before_it_begins() {
    let mut db = Database::new();
    clustered(&mut db, "t", 200);
    let mut other = db.session();
    other.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
    db.run("SET lock_timeout = '100ms'");
    db.rejects("SELECT * FROM corgipile_train('t')", "55P03");
    db.fails_with("SELECT * FROM corgipile_shuffle(NULL::t)", "55P03");
    other.run("ROLLBACK");
    db.train("'t', max_epochs => 1");
}

/// What takes seconds by its size alone: a layer of many units, a mini-batch of many numbers, a large model as JSON.
#[test]
fn a_timeout_stops_what_is_large_long_before_its_end() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i, i % 2 AS label, ARRAY[i % 7, i % 5, 1]::real[] AS x FROM generate_series(1, 16) i;
         CREATE TABLE wide AS SELECT i, i % 2 AS label,
                (SELECT array_agg(sin(i * j)) FROM generate_series(1, 1000) j) AS x FROM generate_series(1, 3000) i;
         CREATE FUNCTION in_one(encoding text) RETURNS bigint LANGUAGE sql AS $$
           SELECT sum(bytes)::bigint FROM corgipile_compress('wide', 'to_' || encoding, features => '{x}',
             batch_rows => 3000, encoding => encoding) $$",
    );
    for sql in [
        "SELECT count(*) FROM corgipile_train('t', 'mlp', features => '{x}', max_epochs => 1,
                                              options => '{\"hidden_layer_sizes\": [1500000], \"batch_size\": 16}')",
        "SELECT in_one('gzip')",
        "SELECT in_one('toc')",
    ] {
        db.run("BEGIN");
        let start = Instant::now();
        db.run(sql);
        let whole = start.elapsed();
        db.run("ROLLBACK");
        // of what was timed on the same machine a moment before, a tenth, and then what it may take to notice
        db.run(&format!("SET statement_timeout = '{}ms'", whole.as_millis() / 10));
        let start = Instant::now();
        db.fails_with(sql, "57014");
        let stopped = start.elapsed();
        db.run("SET statement_timeout = '120s'");
        assert!(stopped < whole / 2, "{sql} takes {whole:?}, and was stopped after {stopped:?}");
    }
}
