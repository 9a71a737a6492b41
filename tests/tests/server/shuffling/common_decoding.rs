//! Pages that sessions decode for each other: each session's rows are exactly those of its own snapshot, whatever
//! others write, vacuum, abort or break off meanwhile.

use corgipile_tests::{Database, Session, sample};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any stop may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Rows of a table `t` of thirty pages, of which the first waits at gate 1 when it is decoded, the last at gate 2, and
/// the others a moment, so that whoever decodes them is not done before others come. That `waits()` is immutable is a
/// lie that makes it be decoded in common, like any other expression.
fn gated(db: &mut Database) {
    db.run(
        "CREATE TABLE t (id int, label real, a real, gate int, pad text) WITH (autovacuum_enabled = off);
         INSERT INTO t SELECT i, i % 97, i % 7, CASE i WHEN 1 THEN 1 WHEN 2000 THEN 2 ELSE -(i % 10 = 0)::int END, repeat('x', 80)
           FROM generate_series(1, 2000) i;
         CREATE FUNCTION waits(gate int, number real) RETURNS real IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
            IF gate > 0 THEN
                PERFORM pg_advisory_lock_shared(gate), pg_advisory_unlock_shared(gate);
            ELSIF gate < 0 THEN
                PERFORM pg_sleep(0.001);
            END IF;
            RETURN number;
         END $$;",
    );
    mark(db);
}

/// Marks all pages as visible to all. VACUUM does not know yet of a commit that is not yet on disk.
fn mark(db: &mut Database) {
    db.run("SET synchronous_commit = on");
    db.run("CREATE TABLE commits ()");
    db.run("VACUUM ANALYZE t");
}

const GATED: &str = "SELECT label, waits(gate, a) AS a FROM t";

/// A statement that is true if a training, whose model stays 0, meets exactly the rows that the statement sees. Its
/// loss is then half the mean of the squared labels.
fn meets_its_rows(source: &str, condition: &str, more: &str) -> String {
    format!(
        "SELECT bool_and(e.tuples = s.n AND abs(e.loss - s.mean / 2) <= 1e-6 * s.mean)
           FROM (SELECT count(*) AS n, avg(label::float8 ^ 2) AS mean FROM t WHERE {condition}) AS s,
                corgipile_train('{source}', model => 'linear', label => 'label', standardize => false,
                                learning_rate => 1e-30, share => true, loader => 'in_process',
                                block_size => '1MB'{more}) AS e"
    )
}

fn gated_training() -> String {
    meets_its_rows(GATED, "true", ", max_epochs => 1")
}

/// Blocks of which a process has taken pages.
fn taken_by(db: &mut Database, pid: i32) -> i64 {
    db.value(&format!("SELECT blocks_taken FROM corgipile.stat_reading_groups WHERE pid = {pid}"))
}

fn no_member_is_left(db: &mut Database) {
    db.wait_for("SELECT count(*) FROM corgipile.stat_reading_groups WHERE datname = current_database()", "0");
}

/// Two trainings that have decoded all pages in common, but for the last, at which they wait: gate 2 is still shut.
/// On a busy machine the two may miss each other; then others begin.
fn two_at_gate_2(db: &mut Database) -> [(i32, corgipile_tests::Background); 2] {
    for _ in 0..20 {
        let started = may_be_at_gate_2(db);
        if started.iter().map(|(pid, _)| taken_by(db, *pid)).sum::<i64>() > 0 {
            return started;
        }
        db.run("SELECT pg_advisory_unlock(2)");
        for (_, training) in started {
            let (_, ended) = training.join();
            ended.expect("a training that takes nothing ends as any other");
        }
        no_member_is_left(db);
    }
    panic!("no pages were taken");
}

fn may_be_at_gate_2(db: &mut Database) -> [(i32, corgipile_tests::Background); 2] {
    db.run("SELECT pg_advisory_lock(1), pg_advisory_lock(2)");
    let started = [0, 1].map(|_| {
        let mut session = db.session();
        (session.pid(), session.in_background(&gated_training()))
    });
    db.wait_for_waiters(2);
    db.run("SELECT pg_advisory_unlock(1)");
    // the one that waits for its page first is at gate 2 by itself, too
    let at_gate_2 = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 2 AND NOT granted
                      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    db.wait_for(at_gate_2, "2");
    started
}

#[test]
fn readers_of_older_and_newer_snapshots_take_what_has_not_changed_and_nothing_else() {
    let mut db = Database::new();
    gated(&mut db);
    let first = two_at_gate_2(&mut db);
    let mut older = db.session();
    older.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    let before = db.line("SELECT count(*), sum(label) FROM t");
    db.run("BEGIN; UPDATE t SET label = 1e6 WHERE id % 100 = 7; INSERT INTO t SELECT 0, 1e6, 0, 0, NULL; ROLLBACK");
    db.run("UPDATE t SET label = 1000 WHERE id = 100");
    db.run("DELETE FROM t WHERE id = 500");
    db.run("INSERT INTO t VALUES (2001, 2000, 3, 0, NULL)");
    // neither may it mark what the first two do not see, nor may it take that away
    db.run("VACUUM t");
    let mut newer = db.session();
    let (older_pid, newer_pid) = (older.pid(), newer.pid());
    let newer = newer.in_background(&gated_training());
    db.wait_for_waiters(3);
    let older = older.in_background(&gated_training());
    db.wait_for_waiters(4);
    for pid in [older_pid, newer_pid] {
        assert!(taken_by(&mut db, pid) > 0, "both have taken what has not changed");
    }
    db.run("SELECT pg_advisory_unlock(2)");
    let [(_, one), (_, other)] = first;
    for (who, reader) in [("first", one), ("second", other), ("newer", newer), ("older", older)] {
        assert_eq!(reader.join().1.expect("no error"), ["t"], "{who}");
    }
    assert_ne!(db.line("SELECT count(*), sum(label) FROM t"), before);
    no_member_is_left(&mut db);
}

#[test]
fn who_makes_or_takes_pages_may_end_in_any_way_and_disturbs_nobody() {
    let mut db = Database::new();
    gated(&mut db);
    for end in ["cancel", "terminate"] {
        let [(pid, stopped), (_, other)] = two_at_gate_2(&mut db);
        // what the one has made, the third still takes from the second
        db.line(&format!("SELECT pg_{end}_backend({pid})"));
        let code = match end {
            "cancel" => stopped.stopped_within(PATIENCE).1,
            _ => stopped.join().1.expect_err("it was terminated").code,
        };
        // who is terminated may lose the connection before it is told
        let codes: &[&str] = if end == "cancel" { &["57014"] } else { &["57P01", "closed"] };
        assert!(codes.contains(&code.as_str()), "{code} after {end}");
        db.wait_for("SELECT count(*) FROM corgipile.stat_reading_groups WHERE datname = current_database()", "1");
        let mut third = db.session();
        let pid = third.pid();
        let third = third.in_background(&gated_training());
        db.wait_for_waiters(2);
        assert!(taken_by(&mut db, pid) > 0, "{end}");
        db.run("SELECT pg_advisory_unlock(2)");
        for reader in [other, third] {
            assert_eq!(reader.join().1.expect("no error"), ["t"], "{end}");
        }
        no_member_is_left(&mut db);
    }
}

#[test]
fn readers_of_other_columns_filters_and_labels_take_nothing_from_each_other() {
    let mut db = Database::new();
    gated(&mut db);
    let first = two_at_gate_2(&mut db);
    let others = [
        ("SELECT label, waits(gate, -a) AS a FROM t", "true"),
        ("SELECT label, waits(gate, a) AS a FROM t WHERE id % 2 = 0", "id % 2 = 0"),
        ("SELECT label, waits(gate, a) AS a FROM t WHERE id < 1500 OR gate > 0", "id < 1500 OR gate > 0"),
    ];
    let readers = others.map(|(source, condition)| {
        let mut session = db.session();
        let statement = meets_its_rows(source, condition, ", max_epochs => 1");
        (session.pid(), session.in_background(&statement))
    });
    db.wait_for_waiters(5);
    for (pid, _) in &readers {
        assert_eq!(taken_by(&mut db, *pid), 0);
    }
    db.run("SELECT pg_advisory_unlock(2)");
    for (_, reader) in first.into_iter().chain(readers) {
        assert_eq!(reader.join().1.expect("no error"), ["t"]);
    }
}

#[test]
fn who_reads_a_function_that_was_replaced_meanwhile_takes_nothing_from_those_who_read_the_old_one() {
    let mut db = Database::new();
    gated(&mut db);
    let [(_, one), (_, other)] = two_at_gate_2(&mut db);
    let body: String = db.value("SELECT prosrc FROM pg_proc WHERE proname = 'waits'");
    db.run(&format!(
        "CREATE OR REPLACE FUNCTION waits(gate int, number real) RETURNS real IMMUTABLE LANGUAGE plpgsql AS $${}$$",
        body.replace("RETURN number", "RETURN -number")
    ));
    let mut third = db.session();
    let pid = third.pid();
    let third = third.in_background(&gated_training());
    db.wait_for_waiters(3);
    assert_eq!(taken_by(&mut db, pid), 0);
    db.run("SELECT pg_advisory_unlock(2)");
    for reader in [one, other, third] {
        assert_eq!(reader.join().1.expect("no error"), ["t"]);
    }
}

/// A table of 300 rows whose arrays are out of line.
fn toasted(db: &mut Database) {
    db.run(
        "CREATE TABLE t (id int, label real, features_v real[]) WITH (autovacuum_enabled = off);
         ALTER TABLE t ALTER features_v SET STORAGE EXTERNAL;
         INSERT INTO t SELECT i, i % 5, (SELECT array_agg(sin(i * j)::real) FROM generate_series(1, 600) j)
           FROM generate_series(1, 600) i",
    );
    mark(db);
}

/// Weights of a training whose steps are the same in whatever order the rows come, but for rounding.
fn full_batch(share: bool, more: &str) -> String {
    format!(
        "DROP TABLE IF EXISTS trained; CREATE TEMPORARY TABLE trained AS
            SELECT max(model_id) AS id FROM corgipile_train('t', model => 'linear', features => '{{features_v}}',
                max_epochs => 40, batch_size => 100000, learning_rate => 0.01, loader => 'in_process',
                block_size => '8kB', share => {share}{more}, options => '{{\"cache\": \"off\"}}');
         SELECT array_to_string(weights, ' ') FROM corgipile.models, trained WHERE model_id = id"
    )
}

fn numbers(line: &str) -> Vec<f64> {
    line.split(' ').map(|number| number.parse().expect("weights are numbers")).collect()
}

fn assert_close(weights: &str, expected: &[f64], what: &str) {
    for (weight, expected) in numbers(weights).iter().zip(expected) {
        assert!((weight - expected).abs() < 1e-4 + 1e-3 * expected.abs(), "{what}: {weight}, {expected}");
    }
}

/// Runs a statement in several sessions at once, and gives what each gives.
fn at_once(db: &Database, statements: &[String]) -> Vec<String> {
    let start = |statement: &String| db.session().in_background(statement);
    let running: Vec<_> = statements.iter().map(start).collect();
    running.into_iter().map(|session| session.join().1.expect("no error").remove(0)).collect()
}

#[test]
fn models_of_rows_out_of_line_are_those_of_readers_that_are_alone() {
    let mut db = Database::new();
    toasted(&mut db);
    for more in ["", ", standardize => false", ", seed => 5 /* held out */"] {
        let statement = |share| match more.contains("held out") {
            true => full_batch(share, more).replace("{\"cache\"", "{\"validation_fraction\": 0.25, \"cache\""),
            false => full_batch(share, more),
        };
        let alone = numbers(&db.line(&statement(false)));
        // on a machine with other things to do, one may have ended before another begins
        let taken = (0..20).any(|_| {
            let (together, taken) = watched(&db, &vec![statement(true); 3]);
            together.iter().for_each(|weights| assert_close(weights, &alone, more));
            taken > 0
        });
        assert!(taken, "{more}: blocks were taken");
    }
}

/// What several statements give that run at the same time, and how many blocks one of them has taken from others, as
/// far as was seen.
fn watched(db: &Database, statements: &[String]) -> (Vec<String>, usize) {
    let (runs, taken) = (AtomicBool::new(true), AtomicUsize::new(0));
    let mut together = Vec::new();
    thread::scope(|scope| {
        let mut watcher = db.session();
        let (runs, taken) = (&runs, &taken);
        scope.spawn(move || {
            while runs.load(Ordering::Relaxed) {
                let seen: i64 = watcher.value(
                    "SELECT coalesce(max(blocks_taken), 0) FROM corgipile.stat_reading_groups
                      WHERE datname = current_database()",
                );
                taken.fetch_max(seen as usize, Ordering::Relaxed);
            }
        });
        together = at_once(db, statements);
        runs.store(false, Ordering::Relaxed);
    });
    (together, taken.into_inner())
}

#[test]
fn classes_that_are_met_in_another_order_are_the_same_classes() {
    let mut db = Database::new();
    toasted(&mut db);
    db.run("ALTER TABLE t ADD class text; UPDATE t SET class = CASE WHEN id > 300 THEN 'b' ELSE 'a' END");
    db.run("VACUUM FULL t");
    db.run("VACUUM t");
    let statement = |seed| {
        format!(
            "CREATE TEMPORARY TABLE trained AS SELECT max(model_id) AS id FROM
                corgipile_train('SELECT class, ARRAY[(class = ''b'')::int * 2 - 1]::real[] || features_v[1:1] AS f FROM t',
                    label => 'class', features => '{{f}}', max_epochs => 20, seed => {seed}, loader => 'in_process',
                    block_size => '8kB', share => true, options => '{{\"cache\": \"off\"}}');
             SELECT weights[1] > 0 FROM corgipile.models, trained WHERE model_id = id"
        )
    };
    // which class a training meets first depends on its seed
    let statements: Vec<String> = (0..6).map(statement).collect();
    assert_eq!(at_once(&db, &statements), vec!["t"; 6]);
}

#[test]
fn a_store_that_is_full_or_none_at_all_changes_no_rows() {
    let mut db = Database::new();
    toasted(&mut db);
    let alone = numbers(&db.line(&full_batch(false, "")));
    for memory in ["0", "64kB", "1MB"] {
        let name = db.name().to_owned();
        db.run(&format!("ALTER DATABASE {name} SET corgipile.share_memory = '{memory}'"));
        let together = at_once(&db, &vec![full_batch(true, ""); 3]);
        together.iter().for_each(|weights| assert_close(weights, &alone, memory));
        no_member_is_left(&mut db);
    }
}

#[test]
fn without_memory_for_it_nothing_is_decoded_in_common() {
    let mut db = Database::new();
    gated(&mut db);
    let name = db.name().to_owned();
    db.run(&format!("ALTER DATABASE {name} SET corgipile.share_memory = 0"));
    db.run("SELECT pg_advisory_lock(2)");
    let readers = [0, 1].map(|_| {
        let mut session = db.session();
        (session.pid(), session.in_background(&gated_training()))
    });
    db.wait_for_waiters(2);
    for (pid, _) in &readers {
        assert_eq!(taken_by(&mut db, *pid), 0);
    }
    db.run("SELECT pg_advisory_unlock(2)");
    for (_, reader) in readers {
        assert_eq!(reader.join().1.expect("no error"), ["t"]);
    }
}

#[test]
fn explain_says_what_was_decoded_in_common() {
    let mut db = Database::new();
    gated(&mut db);
    let [(_, one), (_, other)] = two_at_gate_2(&mut db);
    let third = db.session().in_background(&format!(
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM corgipile_train('{GATED}', model => 'linear',
           label => 'label', standardize => false, max_epochs => 1, share => true, loader => 'in_process',
           block_size => '1MB')"
    ));
    db.wait_for_waiters(3);
    db.run("SELECT pg_advisory_unlock(2)");
    let lines = third.join().1.expect("no error");
    let line = lines.iter().find_map(|line| line.trim().strip_prefix("Decoded in Common: ")).expect("a line about it");
    let numbers: Vec<i64> = line.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    let [made, taken, kilobytes] = numbers[..] else { panic!("{line}") };
    assert_eq!(line, format!("{made} pages for others, {taken} taken, {kilobytes}kB not read"));
    assert!(taken > 0 && kilobytes == 8 * taken, "{line}");
    for reader in [one, other] {
        assert_eq!(reader.join().1.expect("no error"), ["t"]);
    }
}

/// Runs statements, each given by its number, until `stop`.
fn again_and_again(mut session: Session, stop: &AtomicBool, statement: impl Fn(usize) -> String) -> usize {
    session.run("SET synchronous_commit = on"); // or VACUUM would mark little
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        session.run(&statement(count));
        count += 1;
    }
    count
}

#[test]
fn whatever_others_write_vacuum_and_break_off_each_reader_meets_exactly_the_rows_that_it_sees() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, label real, a real, b real, pad text)
           WITH (autovacuum_enabled = off, fillfactor = 80);
         INSERT INTO t SELECT i, i % 97, i % 7, i % 11, repeat('x', 60) FROM generate_series(1, 6000) i",
    );
    mark(&mut db);
    let sources = [
        ("SELECT label, sqrt(a) + b AS f FROM t", "true"),
        ("SELECT label, sqrt(a) + b AS f FROM t WHERE id % 3 > 0", "id % 3 > 0"),
    ];
    let stop = AtomicBool::new(false);
    let (taken, checked, pid_of_victim) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let (stop, taken, checked) = (&stop, &taken, &checked);
        for reader in 0..4 {
            let mut session = db.session();
            scope.spawn(move || {
                let (source, condition) = sources[usize::from(reader == 3)];
                let more = ", max_epochs => 60, options => ''{\"cache\": \"off\"}''".replace("''", "'");
                let statement = meets_its_rows(source, condition, &more).replace("1MB", "64kB");
                while !stop.load(Ordering::Relaxed) {
                    // of every second, the snapshot is older than the training
                    if reader % 2 == 0 {
                        session.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
                        session.line("SELECT count(*) FROM pg_class");
                        thread::sleep(Duration::from_millis(30));
                        assert_eq!(session.line(&statement), "t", "reader {reader}");
                        session.run("ROLLBACK");
                    } else {
                        assert_eq!(session.line(&statement), "t", "reader {reader}");
                    }
                    checked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // one that is broken off again and again
        let mut victim = db.session();
        pid_of_victim.store(victim.pid() as usize, Ordering::Relaxed);
        let victims_pid = &pid_of_victim;
        scope.spawn(move || {
            let statement = meets_its_rows(sources[0].0, "true", ", max_epochs => 20").replace("1MB", "64kB");
            while !stop.load(Ordering::Relaxed) {
                if let Err(failure) = victim.attempt(&statement) {
                    assert_eq!(failure.code, "57014", "{failure:?}");
                }
            }
        });
        let mut canceller = db.session();
        scope.spawn(move || {
            let pid = victims_pid.load(Ordering::Relaxed);
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(40));
                canceller.line(&format!("SELECT pg_cancel_backend({pid})"));
                let seen: i64 = canceller.value(
                    "SELECT coalesce(max(blocks_taken), 0) FROM corgipile.stat_reading_groups
                      WHERE datname = current_database()",
                );
                taken.fetch_max(seen as usize, Ordering::Relaxed);
            }
        });
        let row = |i: usize| i * 7919 % 6000 + 1;
        let (one, other, vacuum) = (db.session(), db.session(), db.session());
        scope.spawn(move || {
            again_and_again(one, stop, |i| match i % 4 {
                0 => format!("UPDATE t SET label = label + 500 WHERE id = {}", row(i)), // mostly HOT
                1 => format!("UPDATE t SET label = 300, pad = repeat('y', 900) WHERE id = {}", row(i)),
                2 => format!("INSERT INTO t SELECT 10000 + {i}, 777, 1, 1"),
                _ => format!("DELETE FROM t WHERE id = {} OR id = 10000 + {i} - 9", row(i)),
            })
        });
        scope.spawn(move || {
            again_and_again(other, stop, |i| {
                let change = match i % 2 {
                    0 => format!("UPDATE t SET label = 1e5 WHERE id BETWEEN {0} AND {0} + 5", row(i)),
                    _ => format!("DELETE FROM t WHERE id BETWEEN {0} AND {0} + 5", row(i)),
                };
                let end = if i % 3 == 0 { "UPDATE t SET label = 5 WHERE label = 1e5; COMMIT" } else { "ROLLBACK" };
                format!("BEGIN; {change}; {end}; SELECT pg_sleep(0.01)")
            })
        });
        scope.spawn(move || again_and_again(vacuum, stop, |_| "VACUUM t".to_owned()));
        let (begun, least) = (Instant::now(), Duration::from_secs(sample(12, 2)));
        let enough = || checked.load(Ordering::Relaxed) > 8 && taken.load(Ordering::Relaxed) > 0;
        while begun.elapsed() < least || begun.elapsed() < Duration::from_secs(60) && !enough() {
            thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let (taken, checked) = (taken.into_inner(), checked.into_inner());
    assert!(checked > 8 && taken > 0, "{checked} trainings were checked, {taken} blocks were taken by one of them");
    no_member_is_left(&mut db);
}
