//! Models and transactions: predictions follow what is committed, rolled back, deleted and updated.

use corgipile_tests::Database;

pub fn predict(id: i64) -> String {
    format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])")
}

#[test]
fn a_rolled_back_training_leaves_no_model() {
    let mut db = Database::with_small_table(100);
    db.run("BEGIN");
    let id = db.train("'t', max_epochs => 2, name => 'gone'")[0].model_id;
    assert_eq!(db.models(), 1, "the model is there within its transaction");
    assert_ne!(db.line(&predict(id)), "NULL");
    let mut other = db.session();
    assert_eq!(other.models(), 0, "and nowhere else");
    other.fails_with(&predict(id), "42704");
    db.run("ROLLBACK");
    assert_eq!(db.models(), 0);
    db.fails_with(&predict(id), "42704");
    db.fails_with("SELECT corgipile_predict('gone', ARRAY[1,2,3])", "42704");
    db.train("'t', max_epochs => 2, name => 'gone'");
}

#[test]
fn savepoints_take_models_back_and_keep_them() {
    let mut db = Database::with_small_table(100);
    db.run("BEGIN; SELECT corgipile_train('t', max_epochs => 1, name => 'a'); SAVEPOINT s");
    let id = db.train("'t', max_epochs => 1, name => 'b'")[0].model_id;
    db.line(&predict(id));
    db.run("ROLLBACK TO s");
    db.fails_with(&predict(id), "42704");
    db.run("ROLLBACK TO s; SELECT corgipile_train('t', max_epochs => 1, name => 'c'); RELEASE s; COMMIT");
    assert_eq!(db.lines("SELECT name FROM corgipile.models ORDER BY name"), ["a", "c"]);
}

#[test]
fn predictions_follow_deletes_updates_and_rollbacks() {
    let mut db = Database::with_small_table(300);
    let id = db.train("'t', seed => 1")[0].model_id;
    let mut other = db.session();
    let ask = format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3])");
    let before = db.line(&ask);
    assert_eq!(other.line(&ask), before);

    db.run("BEGIN; UPDATE corgipile.stored_models SET intercepts = ARRAY[intercepts[1] + 1]");
    let during = db.line(&ask);
    assert_ne!(during, before, "an update is seen at once by its transaction");
    assert_eq!(other.line(&ask), before, "and by no other");
    db.run("ROLLBACK");
    assert_eq!(db.line(&ask), before);

    db.run("UPDATE corgipile.stored_models SET intercepts = ARRAY[intercepts[1] + 1]");
    assert_eq!(db.line(&ask), during);
    assert_eq!(other.line(&ask), during, "a committed update is seen by sessions that had the old one cached");

    db.run("BEGIN; DELETE FROM corgipile.stored_models");
    db.fails_with(&ask, "42704");
    db.run("ROLLBACK");
    assert_eq!(db.line(&ask), during);
    db.run("DELETE FROM corgipile.stored_models");
    db.fails_with(&ask, "42704");
    other.fails_with(&ask, "42704");
}

#[test]
fn a_name_given_to_another_model_means_that_model() {
    let mut db = Database::with_small_table(300);
    let mut other = db.session();
    db.train("'t', seed => 1, name => 'current'");
    let ask = "SELECT corgipile_predict_proba('current', ARRAY[1,2,3])";
    let first = other.line(ask);
    db.run(
        "DELETE FROM corgipile.stored_models WHERE name = 'current';
            SELECT corgipile_train('t', seed => 1, learning_rate => 0.3, name => 'current')",
    );
    let second = other.line(ask);
    assert_ne!(first, second);
    db.run("UPDATE corgipile.stored_models SET name = 'old' WHERE name = 'current'");
    other.fails_with(ask, "42704");
    assert_eq!(other.line("SELECT corgipile_predict_proba('old', ARRAY[1,2,3])"), second);
}

#[test]
fn a_repeatable_read_transaction_keeps_its_model() {
    let mut db = Database::with_small_table(300);
    let id = db.train("'t', seed => 1")[0].model_id;
    let ask = format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3])");
    let mut other = db.session();
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let before = other.line(&ask);
    db.run("UPDATE corgipile.stored_models SET intercepts = ARRAY[intercepts[1] + 1]");
    let after = db.line(&ask);
    assert_eq!(other.line(&ask), before);
    other.run("COMMIT");
    assert_eq!(other.line(&ask), after);
}

#[test]
fn many_models_in_one_statement_do_not_mix() {
    let mut db = Database::with_small_table(200);
    for seed in 1..=40 {
        db.run(&format!(
            "SELECT corgipile_train('t', max_epochs => 1, seed => {seed}, learning_rate => 0.01 * {seed}, standardize => false)"
        ));
    }
    let differing: i64 = db.value(
        "SELECT count(*) FROM t, corgipile.models m
         WHERE abs((corgipile_predict_proba(m.model_id, ARRAY[a, b, c]))[2]
                   - 1 / (1 + exp(-(m.weights[1]::float8 * a + m.weights[2]::float8 * b + m.weights[3]::float8 * c
                                    + m.intercepts[1])))) > 1e-5",
    );
    assert_eq!(differing, 0);
}

#[test]
fn predict_can_stand_anywhere_in_a_query() {
    let mut db = Database::with_small_table(300);
    let id = db.train("'t', seed => 1, learning_rate => 0.1")[0].model_id;
    let accuracy: f64 =
        db.value(&format!("SELECT avg((corgipile_predict({id}, ARRAY[a, b, c]) = label)::int)::float8 FROM t"));
    assert!((accuracy - db.evaluate(id, "t").accuracy).abs() < 1e-9);
    db.run(&format!(
        "CREATE VIEW scored AS SELECT *, corgipile_predict({id}, ARRAY[a, b, c]) AS score FROM t;
         CREATE FUNCTION score(t) RETURNS float8 STABLE LANGUAGE sql
           AS 'SELECT corgipile_predict({id}, ARRAY[$1.a, $1.b, $1.c])'"
    ));
    assert_eq!(
        db.line("SELECT count(*) FROM scored WHERE score = 1"),
        db.line("SELECT count(*) FROM t WHERE t.score = 1")
    );
    // strict are those of matrices, which have no NULLs
    let provolatile = db.lines(
        "SELECT DISTINCT provolatile, proparallel, proisstrict = ('corgipile.toc'::regtype = ANY (proargtypes::oid[]))
           FROM pg_proc WHERE proname LIKE 'corgipile\\_predict%'",
    );
    assert_eq!(provolatile, ["s|s|t"]);
}

#[test]
fn predictions_are_the_same_in_parallel_workers() {
    let mut db = Database::with_small_table(20_000);
    let id = db.train("'t', max_epochs => 2, seed => 1")[0].model_id;
    let count = format!("SELECT count(*), sum(corgipile_predict({id}, ARRAY[a, b, c])) FROM t");
    let serial = db.line(&count);
    db.run(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
            SET max_parallel_workers_per_gather = 2",
    );
    let plan = db.lines(&format!("EXPLAIN {count}"));
    assert!(plan.iter().any(|line| line.contains("Gather")), "{plan:#?}");
    assert_eq!(db.line(&count), serial);
    // Also a model that no one else can see yet.
    db.run("BEGIN");
    let id = db.train("'t', max_epochs => 2, seed => 1")[0].model_id;
    assert_eq!(db.line(&format!("SELECT count(*), sum(corgipile_predict({id}, ARRAY[a, b, c])) FROM t")), serial);
    db.run("ROLLBACK");
}
