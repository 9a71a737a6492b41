//! corgipile_io_profile(): what it measures varies, its shape does not.

use corgipile_tests::{Database, Session, clustered};
use std::thread;
use std::time::Duration;

/// A table of about this many pages.
fn table(db: &mut Database, name: &str, pages: u32) {
    db.run(&format!(
        "CREATE TABLE {name} AS SELECT i AS id, repeat('x', 2000) AS filler FROM generate_series(1, 4 * {pages}) i"
    ));
}

#[test]
fn each_size_has_a_row_and_the_smallest_that_is_fast_enough_is_recommended() {
    let mut db = Database::new();
    table(&mut db, "t", 1300);
    let rows =
        db.lines("SELECT block_size, random_mb_per_s > 0, sequential_mb_per_s > 0 FROM corgipile_io_profile('t')");
    let sizes: Vec<&str> = rows.iter().map(|row| row.strip_suffix("|t|t").expect(row)).collect();
    assert_eq!(sizes[..10], ["8kB", "16kB", "32kB", "64kB", "128kB", "256kB", "512kB", "1MB", "2MB", "4MB"]);
    assert_eq!(sizes.len(), 11, "and half of the table: {sizes:?}");
    let rows = db.lines(
        "SELECT bool_and(abs(ratio - random_mb_per_s / sequential_mb_per_s) < 1e-9),
                count(DISTINCT sequential_mb_per_s), count(*) FILTER (WHERE recommended),
                COALESCE(min(n) FILTER (WHERE ratio >= 0.9), 0) = COALESCE(min(n) FILTER (WHERE recommended), 0)
           FROM corgipile_io_profile('t', '1MB') WITH ORDINALITY AS p(block_size, random_mb_per_s, sequential_mb_per_s,
                                                                      ratio, recommended, n)",
    );
    assert!(["t|1|1|t", "t|1|0|t"].contains(&rows[0].as_str()), "{rows:?}");
}

#[test]
fn sizes_and_budgets_can_be_given() {
    let mut db = Database::new();
    table(&mut db, "t", 300);
    let sizes = |db: &mut Database, arguments: &str| {
        db.lines(&format!("SELECT block_size FROM corgipile_io_profile({arguments})")).join(" ")
    };
    assert_eq!(sizes(&mut db, "'t', '8kB'"), "8kB");
    assert_eq!(sizes(&mut db, "'t', '100 kB'"), "8kB 16kB 32kB 64kB 96kB");
    // a page of the budget each, and next to no time: a block of each size is read at least
    assert_eq!(sizes(&mut db, "'t', '64kB', max_read => '8kB', max_seconds => 1e-9"), "8kB 16kB 32kB 64kB");
}

#[test]
fn every_kind_of_table_with_pages_can_be_measured() {
    let mut db = Database::new();
    table(&mut db, "t", 100);
    db.run(
        "CREATE TEMP TABLE temporary AS SELECT * FROM t;
         CREATE UNLOGGED TABLE unlogged AS SELECT * FROM t;
         CREATE MATERIALIZED VIEW materialized AS SELECT * FROM t;
         CREATE TABLE toasted (x text); ALTER TABLE toasted ALTER x SET STORAGE external;
         INSERT INTO toasted SELECT repeat('x', 200000)",
    );
    for relation in ["temporary", "unlogged", "materialized"] {
        assert_eq!(
            db.line(&format!("SELECT count(*) FROM corgipile_io_profile('{relation}', '128kB')")),
            "5",
            "{relation}"
        );
    }
    let toast = db.line("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'toasted'");
    assert_eq!(db.line(&format!("SELECT count(*) FROM corgipile_io_profile('{toast}', '16kB')")), "2");
    assert_eq!(db.line("SELECT count(*), count(DISTINCT filler) FROM t"), "400|1", "nothing has happened to the table");
}

#[test]
fn what_has_no_pages_or_too_few_is_refused() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE parent (id int) PARTITION BY RANGE (id); CREATE VIEW v AS SELECT 1 AS x; CREATE TABLE empty (x int);
         CREATE TABLE tiny AS SELECT 1 AS x",
    );
    let profile = |relation: &str| format!("SELECT * FROM corgipile_io_profile({relation})");
    db.fails_with(&profile("'parent'"), "42809").says(&["parent"]).hints(&["partitions"]);
    db.fails_with(&profile("'v'"), "42809").says(&["\"v\"", "pages"]).hints(&["materialized view"]);
    db.fails_with(&profile("'empty'"), "55000").says(&["0 pages", "too few"]).hints(&["16 pages"]);
    db.fails_with(&profile("'tiny'"), "55000").says(&["1 pages"]);
    db.fails_with(&profile("1::oid::regclass"), "42P01").says(&["OID 1"]);
    db.fails_with(&profile("'missing'"), "42P01");
    db.fails_with(&profile("NULL"), "22004").says(&["relation"]);
}

#[test]
fn what_is_no_size_or_time_is_refused() {
    let mut db = Database::new();
    table(&mut db, "t", 20);
    let hints = ["64kB"];
    for (arguments, words) in [
        ("max_block_size => 'large'", ["max_block_size", "large"]),
        ("max_block_size => '10%'", ["max_block_size", "10%"]),
        ("max_block_size => '1kB'", ["max_block_size", "one page"]),
        ("max_block_size => '2GB'", ["max_block_size", "1GB"]),
        ("max_read => '-1MB'", ["max_read", "-1MB"]),
        ("max_seconds => 0", ["max_seconds", "0"]),
        ("max_seconds => 'NaN'", ["max_seconds", "NaN"]),
        ("max_seconds => 1e9", ["max_seconds", "3600"]),
    ] {
        let failure = db.fails_with(&format!("SELECT * FROM corgipile_io_profile('t', {arguments})"), "22023");
        failure.says(&words);
        assert!(
            failure.hint.is_empty() || failure.hint.contains(hints[0]) || failure.hint.contains("8kB"),
            "{failure:?}"
        );
    }
    for argument in ["max_block_size", "max_read", "max_seconds"] {
        let sql = format!("SELECT * FROM corgipile_io_profile('t', {argument} => NULL)");
        db.fails_with(&sql, "22004").says(&[argument]);
    }
}

#[test]
fn who_may_not_read_a_table_may_not_measure_it() {
    let mut db = Database::new();
    table(&mut db, "t", 20);
    let role = db.role("reader");
    let profile = "SELECT count(*) FROM corgipile_io_profile('t')";
    let mut session: Session = db.session_as(&role);
    session.fails_with(profile, "42501").says(&["permission denied", "table t"]);
    db.run(&format!("GRANT SELECT (id) ON t TO {role}"));
    session.fails_with(profile, "42501");
    db.run(&format!("GRANT SELECT ON t TO {role}"));
    assert_eq!(session.line(profile), "5");
}

#[test]
fn it_can_be_cancelled() {
    let mut db = Database::new();
    table(&mut db, "t", 2000);
    let token = db.cancel_token();
    let running = thread::spawn(move || {
        let sql = "DO 'BEGIN LOOP PERFORM * FROM corgipile_io_profile(''t''); END LOOP; END'";
        let failure = db.fails_with(sql, "57014");
        failure.says(&["canceling statement due to user request"]);
        assert_eq!(db.line("SELECT count(*) FROM t"), "8000", "the session goes on");
    });
    thread::sleep(Duration::from_millis(300));
    token.cancel_query(postgres::NoTls).expect("the server is there");
    running.join().expect("the statement was cancelled");
}

#[test]
fn a_block_of_every_size_that_is_measured_can_be_trained_on() {
    let mut db = Database::new();
    clustered(&mut db, "t", 30_000);
    let sizes: Vec<String> = db.column("SELECT block_size FROM corgipile_io_profile('t')");
    for size in sizes.iter().map(String::as_str).chain(["50MB", "1GB"]) {
        let id = db.train(&format!("'t', block_size => '{size}', max_epochs => 1, seed => 1"))[0].model_id;
        let pages = format!(
            "SELECT (hyperparameters ->> 'pages_per_block')::bigint * 8192 = pg_size_bytes('{size}') FROM corgipile.models
              WHERE model_id = {id}"
        );
        assert_eq!(db.line(&pages), "t", "{size}");
        assert_eq!(
            db.line(&format!("SELECT count(*) FROM corgipile_shuffle(NULL::t, block_size => '{size}')")),
            "30000"
        );
    }
    // the memory of the buffer is the bound, and is reported
    let cut = "SET corgipile.max_buffer_memory = '1MB'";
    let train = "SELECT FROM corgipile_train('t', block_size => '50MB', max_epochs => 1, seed => 1, name => 'cut')";
    for call in [train, "SELECT count(*) FROM corgipile_shuffle(NULL::t, block_size => '50MB')"] {
        let told = db.notices(&[cut, call]);
        assert!(told.contains("NOTICE:  blocks have 1MB instead of 50MB"), "{told}");
        assert!(!db.notices(&[cut, &call.replace("50MB", "1MB")]).contains("instead of"));
    }
    assert_eq!(
        db.line("SELECT DISTINCT hyperparameters ->> 'pages_per_block' FROM corgipile.models WHERE name = 'cut'"),
        "128"
    );
    assert!(!db.notices(&[cut, "SELECT corgipile_cluster_factor('t', block_size => '50MB')"]).contains("instead of"));
}

#[test]
fn advice_follows_from_the_disk_and_theorem_1() {
    let mut db = Database::new();
    clustered(&mut db, "sorted", 20_000);
    db.run("CREATE TABLE mixed AS SELECT * FROM sorted ORDER BY sin(id)");
    let pages: f64 = db.value("SELECT (pg_relation_size('sorted') / 8192)::float8");
    for (table, buffer) in [("sorted", "10%"), ("sorted", "100%"), ("mixed", "10%")] {
        let measured: f64 =
            db.value(&format!("SELECT corgipile_cluster_factor('{table}', features => '{{features_v}}')"));
        let advice = format!(
            "corgipile_advise('{table}', features => '{{features_v}}', buffer_size => '{buffer}', max_seconds => 0.2)"
        );
        let wrong = db.lines(&format!(
            "SELECT a FROM {advice} a,
                    LATERAL (SELECT 20000.0 / blocks AS b, 1 - (buffer_blocks - 1.0) / NULLIF(blocks - 1.0, 0) AS rest) t
              WHERE abs(error_factor - rest * cluster_factor) > 1e-6 OR cluster_factor NOT BETWEEN 0 AND b + 1e-6
                 OR blocks <> ceil({pages:.1} / (pg_size_bytes(block_size) / 8192)) OR buffer_blocks NOT BETWEEN 1 AND blocks
                 OR abs(epochs - 50 * greatest(1, error_factor)) > 1e-6 OR abs(seconds - epochs * epoch_seconds) > 1e-6"
        ));
        assert!(wrong.is_empty(), "{table}: {wrong:?}");
        // the default block of so small a table is about a 256th of it
        let near: f64 = db.value(&format!("SELECT cluster_factor FROM {advice} ORDER BY abs(blocks - 300) LIMIT 1"));
        assert!((near - measured).abs() < 0.5 * measured.max(1.0), "{table}: {near}, {measured}");
        assert_eq!(db.line(&format!("SELECT count(*) FILTER (WHERE recommended) FROM {advice}")), "1");
        let worst: f64 = db.value(&format!("SELECT max(error_factor) FROM {advice}"));
        assert_eq!(worst > 10.0, (table, buffer) == ("sorted", "10%"), "{table}, {buffer}: {worst}");
    }
    let failed =
        db.fails_with("SELECT corgipile_advise('sorted', features => '{features_v}', max_seconds => 0)", "22023");
    failed.says(&["max_seconds"]);
    db.fails_with("SELECT corgipile_advise('sorted', features => '{features_v}', buffer_size => 'x')", "22023");
    db.fails_with("SELECT corgipile_advise(NULL)", "22004");
}
