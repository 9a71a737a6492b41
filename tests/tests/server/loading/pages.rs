//! How PostgreSQL counts the pages that are read.

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
