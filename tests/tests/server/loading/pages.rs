//! How pages are read, and how PostgreSQL counts them.

use corgipile_tests::{Database, clustered, skip};

#[test]
fn pages_that_are_found_in_their_old_buffers_are_hits_in_pg_stat_io() {
    let mut db = Database::new();
    if db.major() < 18 {
        return skip(
            pages_that_are_found_in_their_old_buffers_are_hits_in_pg_stat_io,
            "only since PostgreSQL 18 are there statistics of one session",
        );
    }
    clustered(&mut db, "t", 20000);
    db.run("VACUUM t");
    let pages: i64 = db.value("SELECT pg_relation_size('t') / 8192");
    let mut hits = |epochs: i32| -> i64 {
        let counted = "SELECT sum(hits)::bigint FROM pg_stat_get_backend_io(pg_backend_pid())";
        db.run("SELECT pg_stat_force_next_flush()");
        let before: i64 = db.value(counted);
        db.train(&format!(
            "'t', max_epochs => {epochs}, learning_rate => 0.01, seed => 1, options => '{{\"cache\": \"off\"}}'"
        ));
        db.run("SELECT pg_stat_force_next_flush()");
        db.value::<i64>(counted) - before
    };
    hits(1);
    let (few, many) = (hits(2), hits(22));
    let in_epochs = many - few;
    assert!((20 * pages..21 * pages + 200).contains(&in_epochs), "{in_epochs} hits of {pages} pages in 20 epochs");
}

/// How often this session has read from disk, where PostgreSQL says so.
fn reads(db: &mut Database) -> Option<i64> {
    if db.major() < 18 {
        return None;
    }
    db.run("SELECT pg_stat_force_next_flush()");
    let counted = "object = 'relation' AND context <> 'init'";
    Some(db.value(&format!("SELECT sum(reads)::bigint FROM pg_stat_get_backend_io(pg_backend_pid()) WHERE {counted}")))
}

#[test]
fn pages_that_come_from_disk_give_the_same_rows_in_the_same_order() {
    let mut db = Database::new();
    let columns = "SELECT i AS id, repeat('x', 200) AS filler FROM generate_series(1, 30000) i";
    db.run(&format!("CREATE TABLE t AS {columns}"));
    db.run("CREATE TABLE p (id integer, filler text) PARTITION BY RANGE (id)");
    for part in 0..3 {
        let (from, to) = (part * 10000 + 1, (part + 1) * 10000 + 1);
        db.run(&format!("CREATE TABLE p{part} PARTITION OF p FOR VALUES FROM ({from}) TO ({to})"));
    }
    db.run(&format!("INSERT INTO p {columns}"));
    db.run("SET effective_io_concurrency = 16");
    for source in ["t", "p"] {
        for block_size in ["8kB", "64kB", "1MB"] {
            let call = format!(
                "corgipile_shuffle(NULL::{source}, seed => 3, block_size => '{block_size}', buffer_size => '10%')"
            );
            let order = |db: &mut Database| -> String {
                db.value(&format!("SELECT md5(string_agg(id::text, ',')) || count(DISTINCT id) FROM {call}"))
            };
            // writes new files, past the server's buffers
            let forget = format!("VACUUM FULL {source}");
            db.run(&forget);
            let before = reads(&mut db);
            let cold = order(&mut db);
            if let (Some(before), Some(after)) = (before, reads(&mut db)) {
                let pages: i64 = db.value(
                    "SELECT sum(pg_relation_size(relid) / 8192)::bigint FROM pg_partition_tree('p') WHERE isleaf",
                );
                let (calls, most) = (after - before, if block_size == "1MB" { pages / 2 } else { pages });
                assert!(calls <= most, "{source}, {block_size}: {pages} pages by {calls} reads");
            }
            assert!(cold.ends_with("30000"), "{source}, {block_size}: {cold}");
            assert_eq!(order(&mut db), cold, "{source}, {block_size}");
            db.run(&forget);
            let few: i64 = db.value(&format!("SELECT count(*) FROM (SELECT FROM {call} LIMIT 100) few"));
            assert_eq!(few, 100);
            assert_eq!(order(&mut db), cold, "{source}, {block_size}, after a scan that was given up");
            db.run(&forget);
            db.run(&format!("BEGIN; DECLARE c CURSOR FOR SELECT id FROM {call}; FETCH 5000 c; FETCH 5000 c; COMMIT"));
            assert_eq!(order(&mut db), cold, "{source}, {block_size}, after a cursor");
        }
    }
}
