//! `share`: sessions that read the same table together. Each has its own rows, once per epoch, no matter who comes and
//! goes.

use corgipile_tests::{Database, Session, clustered};
use std::collections::BTreeSet;
use std::time::Duration;

/// Longer than any stop may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A cursor over the rows of a table that shares, a block of a page at a time.
fn open(session: &mut Session, seed: u32, more: &str) {
    session.run(&format!(
        "BEGIN; DECLARE c CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t, seed => {seed}, shared_scan => true,
                                                    block_size => '8kB', buffer_size => '8kB'{more})"
    ));
}

/// The next rows of a session's cursor.
fn fetch(session: &mut Session, rows: usize) -> Vec<i32> {
    session.lines(&format!("FETCH {rows} FROM c")).iter().map(|id| id.parse().expect("ids are numbers")).collect()
}

/// All rows of two cursors, taken by turns.
fn by_turns(one: (&mut Session, usize), other: (&mut Session, usize)) -> [Vec<i32>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    loop {
        let came = [fetch(one.0, one.1), fetch(other.0, other.1)];
        if came.iter().all(Vec::is_empty) {
            return all;
        }
        all.iter_mut().zip(came).for_each(|(all, came)| all.extend(came));
    }
}

fn members(db: &mut Database) -> String {
    let of_database = "FROM corgipile.stat_shared_scans WHERE datname = current_database()";
    db.line(&format!("SELECT count(*) {of_database}"))
}

fn sorted(mut ids: Vec<i32>) -> Vec<i32> {
    ids.sort_unstable();
    ids
}

#[test]
fn each_reader_has_every_row_once_and_takes_the_blocks_that_the_other_has_read() {
    let mut db = Database::new();
    clustered(&mut db, "t", 30_000);
    let ids: Vec<i32> = db.column("SELECT id FROM t ORDER BY id");
    for speeds in [(100, 100), (300, 100), (37, 211)] {
        let (mut one, mut other) = (db.session(), db.session());
        open(&mut one, 1, "");
        open(&mut other, 2, "");
        let mut early = fetch(&mut one, 2000);
        let mut rows = by_turns((&mut one, speeds.0), (&mut other, speeds.1));
        early.append(&mut rows[0]);
        assert_eq!(sorted(early), ids);
        assert_eq!(sorted(rows[1].clone()), ids);
        let seen = db.lines(
            "SELECT relation, epoch, blocks_remaining, blocks_drawn + blocks_followed = blocks, blocks_followed > 0
               FROM corgipile.stat_shared_scans WHERE datname = current_database()",
        );
        assert_eq!(seen[0].rsplit_once('|').expect("columns").0, "t|1|0|t");
        assert!(seen.iter().any(|row| row.ends_with('t')) && seen.len() == 2, "{seen:?}");
        let drawn: i64 = db.value(
            "SELECT sum(blocks_drawn)::bigint FROM corgipile.stat_shared_scans
                                     WHERE datname = current_database()",
        );
        let blocks: i64 =
            db.value("SELECT max(blocks) FROM corgipile.stat_shared_scans WHERE datname = current_database()");
        assert!(drawn < 2 * blocks, "{drawn} blocks were drawn by two readers of {blocks}");
        one.run("COMMIT");
        other.run("ROLLBACK");
        assert_eq!(members(&mut db), "0");
    }
}

/// What is drawn are blocks, and a filter leaves out none: so a reader whose filter chooses the first rows of a sorted
/// table does not make others read these first.
#[test]
fn a_filter_of_one_reader_leaves_the_order_of_another_uniform() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let mut shares = Vec::new();
    for (seed, speeds) in (1..=20).flat_map(|seed| [(seed, (100, 100)), (seed, (100, 300))]) {
        let (mut everything, mut part) = (db.session(), db.session());
        open(&mut everything, seed, "");
        open(&mut part, seed + 100, ") WHERE (id <= 6000");
        fetch(&mut part, speeds.1);
        let [ids, of_part] = by_turns((&mut everything, speeds.0), (&mut part, speeds.1));
        assert!(ids.len() == 20_000 && of_part.iter().all(|id| *id <= 6000));
        shares.push(ids[..10_000].iter().filter(|id| **id <= 6000).count() as f64 / 10_000.0);
    }
    // 190 blocks, of which three tenths have these rows: .033 is the standard deviation of an order that is uniform
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((mean - 0.3).abs() < 4.0 * 0.033 / (shares.len() as f64).sqrt(), "{mean} of the first half: {shares:?}");
}

#[test]
fn readers_of_samples_and_of_a_table_that_grows_have_their_own_rows() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    let (mut one, mut other) = (db.session(), db.session());
    open(&mut one, 1, ", sample => 0.5");
    let mut sampled = fetch(&mut one, 100);
    db.run("INSERT INTO t SELECT i, 0, ARRAY[1, 2, 3, 4, 5] FROM generate_series(5001, 20000) i");
    open(&mut other, 2, "");
    let mut rows = by_turns((&mut one, 200), (&mut other, 500));
    sampled.append(&mut rows[0]);
    let distinct: BTreeSet<i32> = sampled.iter().copied().collect();
    assert!(distinct.len() == sampled.len() && distinct.iter().all(|id| *id <= 5000), "rows of the sample, once");
    let alone: Vec<i32> = db.column(
        "SELECT id FROM corgipile_shuffle(NULL::t, seed => 1, block_size => '8kB', buffer_size => '8kB') ORDER BY id",
    );
    assert_eq!(sorted(std::mem::take(&mut rows[1])), alone);
    let groups = db.line(
        "SELECT count(DISTINCT scan_group) FROM corgipile.stat_shared_scans
                           WHERE datname = current_database()",
    );
    assert_eq!(groups, "1");
}

#[test]
fn who_ends_in_any_way_is_no_member_any_more_and_disturbs_nobody() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    let ids: Vec<i32> = db.column("SELECT id FROM t ORDER BY id");
    let mut reader = db.session();
    open(&mut reader, 1, "");
    let mut rows = fetch(&mut reader, 100);
    for (i, end) in ["ROLLBACK", "CLOSE c", "SELECT 1 / 0", "cancel", "terminate"].into_iter().enumerate() {
        let mut session = db.session();
        let pid = session.pid();
        open(&mut session, i as u32, "");
        fetch(&mut session, 500);
        db.wait_for("SELECT count(*) FROM corgipile.stat_shared_scans WHERE datname = current_database()", "2");
        match end {
            "cancel" => {
                let waits = session.in_background("SELECT pg_sleep(100)");
                db.wait_for(&format!("SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}"), "PgSleep");
                db.line(&format!("SELECT pg_cancel_backend({pid})"));
                assert_eq!(waits.stopped_within(PATIENCE).1, "57014");
            }
            "terminate" => db.run(&format!("SELECT pg_terminate_backend({pid})")),
            statement => drop(session.attempt(statement)),
        }
        db.wait_for("SELECT count(*) FROM corgipile.stat_shared_scans WHERE datname = current_database()", "1");
        rows.extend(fetch(&mut reader, 100));
    }
    rows.extend(fetch(&mut reader, 10_000));
    assert_eq!(sorted(rows), ids);
    reader.run("COMMIT");
    assert_eq!(members(&mut db), "0");
}

/// Trainings of one session after the other: each is alone, and each time the rows are complete.
#[test]
fn trainings_share_whatever_reads_for_them_and_record_it() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    db.run(
        "CREATE TABLE p (LIKE t) PARTITION BY RANGE (id);
            CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
            CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (100000);
            INSERT INTO p SELECT * FROM t; ANALYZE p",
    );
    let mut reader = db.session();
    open(&mut reader, 1, "");
    fetch(&mut reader, 100);
    for (arguments, tuples) in [
        ("'t'", 5000),
        ("'t', prefetch => 'on'", 5000),
        ("'t', workers => 3", 5000),
        ("'t', options => '{\"cache\": \"off\"}'", 5000),
        ("'SELECT * FROM t WHERE id % 2 = 0'", 2500),
        ("'p'", 5000),
        ("'SELECT t.* FROM t JOIN p USING (id)'", 5000), // spooled
    ] {
        let call = format!(
            "{arguments}, features => '{{features_v}}', max_epochs => 3, block_size => '8kB', buffer_size => '10%', seed => 7"
        );
        let rows = db.train(&format!("{call}, shared_scan => true"));
        assert!(rows.iter().all(|row| row.tuples == tuples), "{arguments}");
        let id = rows[0].model_id;
        let recorded = "hyperparameters->'shared_scan', hyperparameters->>'order_digest' ~ '^[0-9a-f]{16}$'";
        assert_eq!(db.line(&format!("SELECT {recorded} FROM corgipile.models WHERE model_id = {id}")), "true|t");
        assert_eq!(members(&mut db), "1", "{arguments}");
        let id = db.train(&call)[0].model_id;
        assert_eq!(db.line(&format!("SELECT {recorded} FROM corgipile.models WHERE model_id = {id}")), "NULL|NULL");
    }
}

/// A process that shares and is alone has, to the bit, what it has without. (Of several workers, each is a member.)
#[test]
fn alone_a_training_gives_the_same_model_as_without_share() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    for arguments in [
        "options => '{\"cache\": \"off\"}'",
        "prefetch => 'on', options => '{\"cache\": \"off\"}'",
        "sample => 0.4, shuffle => 'block_only'",
        "standardize => true, buffer_size => '100%'",
    ] {
        let weights = |db: &mut Database, share: bool| {
            let rows = db.train(&format!(
                "'t', features => '{{features_v}}', max_epochs => 4, block_size => '8kB', seed => 7, shared_scan => {share}, {arguments}"
            ));
            db.line(&format!("SELECT weights, intercepts FROM corgipile.models WHERE model_id = {}", rows[0].model_id))
        };
        assert_eq!(weights(&mut db, true), weights(&mut db, false), "{arguments}");
    }
}

#[test]
fn the_setting_is_the_default_and_asks_nothing_of_other_strategies() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    let shuffled = |more: &str| format!("EXPLAIN (COSTS OFF) SELECT * FROM corgipile_shuffle(NULL::t{more})");
    let shows = |lines: Vec<String>| lines.iter().any(|line| line.trim() == "Shared Scan: on");
    assert!(!shows(db.lines(&shuffled(""))));
    assert!(shows(db.lines(&shuffled(", shared_scan => true"))));
    db.run("SET corgipile.shared_scan = on");
    assert!(shows(db.lines(&shuffled(""))));
    assert!(!shows(db.lines(&shuffled(", shared_scan => false"))));
    assert!(!shows(db.lines(&shuffled(", shuffle => 'no_shuffle'"))));
    db.fails_with("SELECT count(*) FROM corgipile_shuffle(NULL::t, shuffle => 'mrs', shared_scan => true)", "0A000");
    db.fails_with("SELECT corgipile_train('t', shuffle => 'shuffle_once', shared_scan => true)", "0A000");
}

#[test]
fn explain_says_what_was_shared_or_why_nothing_was() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    db.run("CREATE TEMPORARY TABLE mine AS SELECT * FROM t");
    let line = |db: &mut Database, table: &str| {
        let lines = db.lines(&format!(
            "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
             SELECT * FROM corgipile_shuffle(NULL::{table}, shared_scan => true, block_size => '8kB')"
        ));
        let share = lines.iter().find_map(|line| line.trim().strip_prefix("Shared Scan: ").map(str::to_owned));
        share.expect("a line about it")
    };
    let pages: i64 = db.value("SELECT pg_relation_size('t') / 8192");
    assert_eq!(line(&mut db, "t"), format!("up to 1 member, {pages} blocks drawn, 0 followed"));
    assert_eq!(line(&mut db, "mine"), "off (no other session can read a temporary table)");
    let mut reader = db.session();
    open(&mut reader, 1, "");
    fetch(&mut reader, 10);
    assert!(line(&mut db, "t").starts_with("up to 2 members, "));
}

#[test]
fn others_see_no_more_than_that_somebody_reads() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let (alice, bob, monitor) = (db.role("alice"), db.role("bob"), db.role("monitor"));
    db.run(&format!("GRANT SELECT ON t TO {alice}; GRANT pg_read_all_stats TO {monitor}"));
    let mut session = db.session_as(&alice);
    let pid = session.pid();
    open(&mut session, 1, "");
    fetch(&mut session, 10);
    let columns = format!(
        "SELECT datname = current_database(), usename, relation, epoch, blocks > 0, blocks_remaining > 0, blocks_drawn > 0
           FROM corgipile.stat_shared_scans WHERE pid = {pid}"
    );
    let all = format!("t|{alice}|t|1|t|t|t");
    assert_eq!(db.session_as(&alice).line(&columns), all);
    assert_eq!(db.session_as(&monitor).line(&columns), all);
    assert_eq!(db.session_as(&bob).line(&columns), "t|NULL|NULL|NULL|NULL|NULL|NULL");
}

#[test]
fn a_shared_model_can_be_continued_and_is_recorded_as_shared_from_then_on() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let first =
        db.train("'t', features => '{features_v}', max_epochs => 2, shared_scan => true, name => 'm'")[0].model_id;
    let more = db.train("'t', warm_start => 'm', max_epochs => 2, name => 'm2'")[0].model_id;
    let digests: Vec<String> = db.column(&format!(
        "SELECT hyperparameters->>'order_digest' FROM corgipile.models
          WHERE model_id IN ({first}, {more}) AND hyperparameters @> '{{\"shared_scan\": true}}' ORDER BY model_id"
    ));
    assert!(digests.len() == 2 && digests[0] != digests[1], "{digests:?}");
}
