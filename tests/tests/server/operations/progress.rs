//! corgipile.stat_progress_train: what other sessions see of a training.

use corgipile_tests::{Database, clustered};
use std::time::Duration;

/// Longer than any stop may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_running_training_is_shown_to_other_sessions_until_it_is_stopped() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    for (source, relation, more, stop, code) in [
        ("t", "t", "", "pg_cancel_backend", "57014"),
        ("t", "t", ", prefetch => 'on', options => '{\"cache\": \"off\"}'", "pg_cancel_backend", "57014"),
        ("t", "t", ", workers => 2", "pg_cancel_backend", "57014"),
        ("SELECT t.* FROM t JOIN t u USING (id)", "NULL", "", "pg_cancel_backend", "57014"),
        ("t", "t", ", trials => 3, folds => 2", "pg_cancel_backend", "57014"),
        ("t", "t", "", "pg_terminate_backend", "57P01"),
    ] {
        let mut session = db.session();
        let pid = session.pid();
        let function = if more.contains("trials") { "corgipile_search" } else { "corgipile_train" };
        let train =
            format!("SELECT * FROM {function}('{source}', features => '{{features_v}}', max_epochs => 1000000{more})");
        let thread = session.in_background(&train);
        let of_training = format!("FROM corgipile.stat_progress_train WHERE pid = {pid}");
        db.wait_for(&format!("SELECT epoch > 2 AND blocks_done > 0 {of_training}"), "t");
        let columns = format!(
            "SELECT datname = current_database(), usename = current_user, relation, epochs_total,
                    blocks_done BETWEEN 1 AND blocks_total, loss > 0, tuples >= 40000, tuples_per_second > 0,
                    started_at BETWEEN now() - interval '1 min' AND now(), estimated_end > now() {of_training}"
        );
        db.wait_for(&columns, &format!("t|t|{relation}|1000000|t|t|t|t|t|t"));
        let epoch: i32 = db.value(&format!("SELECT epoch {of_training}"));
        db.wait_for(&format!("SELECT epoch > {epoch} {of_training}"), "t");
        db.line(&format!("SELECT {stop}({pid})"));
        let ended = thread.stopped_within(PATIENCE).1;
        // a client may find its connection closed before it has read why
        assert!(ended == code || (code == "57P01" && ended == "closed"), "{ended}");
        db.wait_for(&format!("SELECT * {of_training}"), "");
    }
}

#[test]
fn a_training_that_has_ended_or_failed_is_not_shown() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let mine = "SELECT * FROM corgipile.stat_progress_train WHERE pid = pg_backend_pid()";
    db.train("'t', features => '{features_v}', max_epochs => 2");
    assert!(db.lines(mine).is_empty());
    db.rejects("SELECT * FROM corgipile_train('SELECT 1 AS label, id AS x FROM t')", "22000");
    assert!(db.lines(mine).is_empty());
    db.run("BEGIN; SAVEPOINT s");
    db.fails_with("SELECT corgipile_train('SELECT 1 AS label, id AS x FROM t')", "22000").says(&["only one value"]);
    db.run("ROLLBACK TO s");
    assert!(db.lines(mine).is_empty());
    db.run("COMMIT");
    // a training sees itself, and the one whose source it is in
    let seen = "SELECT epoch % 2 AS label, loss FROM corgipile_train('SELECT label, features_v,
                  (SELECT count(*) FROM corgipile.stat_progress_train WHERE pid = pg_backend_pid()) AS n FROM t',
                  features => '{features_v}', max_epochs => 4)";
    assert_eq!(db.train(&format!("$${seen}$$, max_epochs => 1"))[0].tuples, 4);
    assert!(db.lines(mine).is_empty());
}

#[test]
fn others_see_no_more_than_that_a_training_runs() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let (alice, bob, monitor) = (db.role("alice"), db.role("bob"), db.role("monitor"));
    db.run(&format!("GRANT SELECT ON t TO {alice}; GRANT pg_read_all_stats TO {monitor}"));
    let mut session = db.session_as(&alice);
    let pid = session.pid();
    let train = "SELECT * FROM corgipile_train('t', features => '{features_v}', max_epochs => 1000000)";
    let thread = session.in_background(train);
    let of_training = format!("FROM corgipile.stat_progress_train WHERE pid = {pid}");
    db.wait_for(&format!("SELECT epoch > 1 {of_training}"), "t");
    let columns = format!(
        "SELECT datname = current_database(), usename, relation, epochs_total, loss IS NULL, tuples IS NULL,
                started_at IS NULL {of_training}"
    );
    let all = format!("t|{alice}|t|1000000|f|f|f");
    db.session_as(&alice).wait_for(&columns, &all);
    db.session_as(&monitor).wait_for(&columns, &all);
    db.session_as(&bob).wait_for(&columns, "t|NULL|NULL|NULL|t|t|t");
    db.line(&format!("SELECT pg_cancel_backend({pid})"));
    assert_eq!(thread.stopped_within(PATIENCE).1, "57014");
}

#[test]
fn a_training_by_aggregate_is_shown() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    for (source, relation) in [("t", "t"), ("SELECT * FROM t", "NULL")] {
        let mut session = db.session();
        let pid = session.pid();
        let train = format!(
            "SELECT * FROM corgipile_train_uda('{source}', features => '{{features_v}}', max_epochs => 1000000)"
        );
        let thread = session.in_background(&train);
        let of_training = format!("FROM corgipile.stat_progress_train WHERE pid = {pid}");
        let columns = format!(
            "SELECT relation, epoch > 2, epochs_total, blocks_total IS NULL, loss > 0, tuples >= 40000, tuples_per_second > 0 {of_training}"
        );
        db.wait_for(&columns, &format!("{relation}|t|1000000|t|t|t|t"));
        db.line(&format!("SELECT pg_cancel_backend({pid})"));
        assert_eq!(thread.stopped_within(PATIENCE).1, "57014");
        db.wait_for(&format!("SELECT * {of_training}"), "");
    }
}

/// PostgreSQL looks for a cancel while it sends a notice.
#[test]
fn a_training_that_is_cancelled_in_a_notice_is_not_shown() {
    let mut db = Database::new();
    clustered(&mut db, "t", 100);
    let mut session = db.session();
    let pid = session.pid();
    for i in 0..30 {
        let train = "SELECT * FROM corgipile_train('t', features => '{features_v}', max_epochs => 1000000,
                                                   options => '{\"verbose\": true}')";
        let thread = session.in_background(train);
        db.wait_for(&format!("SELECT epoch > {i} FROM corgipile.stat_progress_train WHERE pid = {pid}"), "t");
        db.line(&format!("SELECT pg_cancel_backend({pid})"));
        let ended;
        (session, ended) = thread.stopped_within(PATIENCE);
        assert_eq!(ended, "57014");
        assert!(db.lines(&format!("SELECT * FROM corgipile.stat_progress_train WHERE pid = {pid}")).is_empty());
    }
}

#[test]
fn no_end_is_estimated_from_what_has_not_been_learned_from() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let mut session = db.session();
    let pid = session.pid();
    // one buffer, read in no time, and learned from for seconds
    let train = "SELECT * FROM corgipile_train('t', 'mlp', features => '{features_v}', buffer_size => '100%',
                     max_epochs => 1000000, options => '{\"hidden_layer_sizes\": [2000, 500]}')";
    let thread = session.in_background(train);
    let seen = format!(
        "SELECT epoch, tuples, loss IS NULL, tuples_per_second IS NULL, estimated_end IS NULL
           FROM corgipile.stat_progress_train WHERE pid = {pid} AND tuples > 0"
    );
    db.wait_for(&seen, "1|20000|t|t|t");
    db.line(&format!("SELECT pg_cancel_backend({pid})"));
    assert_eq!(thread.stopped_within(PATIENCE).1, "57014");
}
