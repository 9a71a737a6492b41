//! keep_versions: which models a training deletes, and which never.

use corgipile_tests::{Cluster, Database, Session};

const MODELS: &str = "SELECT coalesce(name, source), version FROM corgipile.models ORDER BY model_id";

/// A training of one epoch, in a transaction of its own.
fn train(session: &mut Session, arguments: &str) -> i64 {
    session.train(&format!("{arguments}, max_epochs => 1, learning_rate => 0.1, seed => 1"))[0].model_id
}

#[test]
fn the_latest_versions_are_kept_and_older_ones_go() {
    let mut db = Database::with_small_table(100);
    db.run("SET corgipile.keep_versions = 2");
    for _ in 0..4 {
        train(&mut db, "'t', name => 'm'");
        train(&mut db, "'t', name => 'other'");
    }
    assert_eq!(db.lines(MODELS), ["m|3", "other|3", "m|4", "other|4"]);
    assert_eq!(db.line("SELECT boot_val FROM pg_settings WHERE name = 'corgipile.keep_versions'"), "50");
    train(&mut db, r#"'t', name => 'm', options => '{"keep_versions": 0}'"#);
    assert_eq!(db.lines(MODELS), ["m|3", "other|3", "m|4", "other|4", "m|5"], "0: all");
    train(&mut db, r#"'t', name => 'm', options => '{"keep_versions": 1}'"#);
    assert_eq!(db.lines(MODELS), ["other|3", "other|4", "m|6"], "the option overrides the setting");
    db.run("SET corgipile.keep_versions = 0");
    train(&mut db, "'t', name => 'm'");
    db.run("SELECT corgipile_train_uda('t', name => 'm', max_epochs => 1, options => '{\"keep_versions\": 1}')");
    assert_eq!(db.lines(MODELS), ["other|3", "other|4", "m|8"]);
    db.fails_with("SET corgipile.keep_versions = -1", "22023");
}

#[test]
fn versions_that_somebody_has_chosen_are_kept() {
    let mut db = Database::with_small_table(100);
    for _ in 0..4 {
        train(&mut db, "'t', name => 'm'");
    }
    db.run("SELECT corgipile_deploy('m', 2)");
    db.run(
        "SELECT corgipile_comment((SELECT model_id FROM corgipile.models WHERE version = 3), 'the one of the report')",
    );
    let continued: i64 = db.value("SELECT model_id FROM corgipile.models WHERE version = 1");
    let before = train(&mut db, "'t', name => 'again'");
    train(&mut db, &format!(r#"'t', name => 'm', warm_start => '{continued}', options => '{{"keep_versions": 1}}'"#));
    assert_eq!(db.lines(MODELS), ["m|1", "m|2", "m|3", "again|1", "m|5"], "continued, deployed, with a comment");
    assert_eq!(db.line("SELECT corgipile_predict('m', ARRAY[1,2,3]) IS NOT NULL"), "t");
    train(&mut db, r#"'t', name => 'm', options => '{"keep_versions": 1}'"#);
    assert_eq!(db.lines(MODELS), ["m|2", "m|3", "again|1", "m|6"]);
    // the name means the deployed version still, and a number is not given again
    assert_eq!(db.line("SELECT version FROM corgipile.current_models WHERE name = 'm'"), "2");
    assert_eq!(db.model(before).weights.len(), 3);
}

#[test]
fn of_models_without_a_name_those_of_the_same_training_go() {
    let mut db = Database::with_small_table(100);
    db.run("CREATE TABLE u AS TABLE t; SET corgipile.keep_versions = 2");
    let first = train(&mut db, "'t'");
    let granted = train(&mut db, "'t'");
    db.run(&format!("SELECT corgipile_grant({granted}, 'public')"));
    train(&mut db, "'u'");
    train(&mut db, "'t', model => 'svm'");
    train(&mut db, "'t', label => 'a', features => '{b,c}', model => 'linear'");
    train(&mut db, "'t', name => 'named'");
    let grid: Vec<i64> = (db.train(r#"'t', max_epochs => 1, grid => '{"learning_rate": [0.1, 0.2, 0.3]}'"#).iter())
        .map(|row| row.model_id)
        .collect();
    let of_source = |db: &mut Session| -> Vec<i64> {
        db.column(
            "SELECT model_id FROM corgipile.models WHERE name IS NULL AND source = 't' AND model = 'logistic' ORDER BY 1",
        )
    };
    assert_eq!(of_source(&mut db), [&[granted][..], &grid].concat(), "a grid is one training");
    assert_eq!(db.models(), 8);
    assert!(!of_source(&mut db).contains(&first));
    let last = train(&mut db, "'t'");
    assert_eq!(of_source(&mut db), [&[granted][..], &grid, &[last]].concat());
    let later = train(&mut db, "'t'");
    assert_eq!(of_source(&mut db), [granted, last, later]);
}

#[test]
fn what_a_transaction_has_stored_it_does_not_delete() {
    let mut db = Database::with_small_table(100);
    db.run("SET corgipile.keep_versions = 1; BEGIN");
    let ids: Vec<i64> = ["'t', name => 'm'", "'t', name => 'm'", "'t'", "'t'"]
        .iter()
        .map(|arguments| train(&mut db, arguments))
        .collect();
    db.run("COMMIT");
    assert_eq!(db.column::<i64>("SELECT model_id FROM corgipile.models ORDER BY 1"), ids);
    db.run("BEGIN");
    train(&mut db, "'t', name => 'm'");
    train(&mut db, "'t'");
    assert_eq!(db.models(), 2);
    db.run("ROLLBACK");
    assert_eq!(db.column::<i64>("SELECT model_id FROM corgipile.models ORDER BY 1"), ids, "nothing has happened");
    let all = "SELECT count(*) FROM generate_series(0, 3) AS fold,
        LATERAL corgipile_train(format('SELECT * FROM t WHERE id %% 4 <> %s', fold), name => 'folds', max_epochs => 1)";
    db.run(all);
    assert_eq!(db.line("SELECT count(*) FROM corgipile.models WHERE name = 'folds'"), "4");
}

#[test]
fn nobody_deletes_what_somebody_else_owns() {
    let mut db = Database::with_small_table(100);
    let (ann, bob) = (db.role("ann"), db.role("bob"));
    db.run(&format!("GRANT SELECT ON t TO {ann}, {bob}; GRANT {ann} TO {bob}"));
    let (mut as_ann, mut as_bob) = (db.session_as(&ann), db.session_as(&bob));
    for arguments in ["'t', name => 'm'", "'t'"] {
        train(&mut as_ann, arguments);
        train(&mut as_ann, arguments);
        // a member of the owner, and a superuser
        for session in [&mut as_bob, &mut *db] {
            session.run("SET corgipile.keep_versions = 1");
            train(session, arguments);
            train(session, arguments);
        }
    }
    assert_eq!(
        db.lines("SELECT owner::text LIKE 'ann%', count(*) FROM corgipile.models GROUP BY 1 ORDER BY 1"),
        ["f|4", "t|4"]
    );
}

#[test]
fn a_training_neither_waits_for_a_deletion_nor_fails_because_of_one() {
    let mut db = Database::with_small_table(100);
    for arguments in ["'t', name => 'm'", "'t'"] {
        for _ in 0..3 {
            train(&mut db, arguments);
        }
    }
    // somebody is about to change an old one
    let mut other = db.session();
    let oldest: i64 = db.value("SELECT min(model_id) FROM corgipile.models WHERE name IS NULL");
    other.run(&format!("BEGIN; SELECT corgipile_comment({oldest}, 'mine')"));
    db.run("SET corgipile.keep_versions = 1; SET lock_timeout = '5s'");
    train(&mut db, "'t'");
    assert_eq!(db.line("SELECT count(*) FROM corgipile.models WHERE name IS NULL"), "2", "the oldest and the newest");
    other.run("COMMIT");
    // two at a time under one name
    let mut second = db.session();
    second.run("SET corgipile.keep_versions = 1");
    db.run("BEGIN");
    train(&mut db, "'t', name => 'm'");
    let waiting = second.in_background("SELECT corgipile_train('t', name => 'm', max_epochs => 1)");
    other.wait_for_waiters(1);
    db.run("COMMIT");
    let (mut second, result) = waiting.join();
    result.unwrap();
    assert_eq!(db.lines("SELECT version FROM corgipile.models WHERE name = 'm'"), ["5"]);
    // under a snapshot of the transaction, what others have deleted would be an error
    train(&mut db, r#"'t', options => '{"keep_versions": 0}'"#);
    second.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t");
    train(&mut db, "'t'");
    let models = db.models();
    train(&mut second, "'t'");
    second.run("COMMIT");
    assert_eq!(db.models(), models + 1, "nothing was deleted");
}

#[test]
fn a_model_that_a_transaction_is_using_stays() {
    let cluster = Cluster::new(&["shared_preload_libraries = 'corgipile'"]);
    let mut session = cluster.session();
    session.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, i % 3 AS a, i % 5 AS b, i % 7 AS c FROM generate_series(1, 100) i",
    );
    let first = train(&mut session, "'t', name => 'm'");
    let mut other = cluster.session();
    let predict = format!("SELECT corgipile_predict({first}, ARRAY[1,2,3])");
    other.run("BEGIN");
    let predicted = other.line(&predict);
    session.run("SET corgipile.keep_versions = 1");
    train(&mut session, "'t', name => 'm'");
    assert_eq!(other.line(&predict), predicted, "in its next statement, too");
    other.run("COMMIT");
    train(&mut session, "'t', name => 'm'");
    other.fails_with(&predict, "42704");
    assert_eq!(session.lines("SELECT version FROM corgipile.models"), ["3"]);
}
