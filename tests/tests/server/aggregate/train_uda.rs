//! `corgipile_train_uda()`: a row per epoch, the rows that it sees, and what it refuses.

use super::agreement::{parameters, train};
use corgipile_tests::{Database, clustered, shuffled_copy};

#[test]
fn a_row_per_epoch_has_the_columns_of_corgipile_train() {
    let mut db = Database::new();
    clustered(&mut db, "t", 400);
    let mut columns = |function: &str| {
        let rows = db.rows(&format!("SELECT * FROM {function}('t', max_epochs => 2)"), &[]);
        assert_eq!(rows.len(), 2);
        rows[0].columns().iter().map(|c| (c.name().to_owned(), c.type_().name().to_owned())).collect::<Vec<_>>()
    };
    // what else there is belongs to options that an aggregate does not have
    assert_eq!(columns("corgipile_train_uda"), columns("corgipile_train")[..8]);
    let mut db = Database::new();
    clustered(&mut db, "t", 400);
    let stored =
        "SELECT hyperparameters->>'path', hyperparameters->>'shuffle', shuffle_bytes, model FROM corgipile.models";
    db.run("SELECT FROM corgipile_train_uda('t', 'svm', max_epochs => 1)");
    assert_eq!(db.line(stored), "uda|no_shuffle|NULL|svm");
}

#[test]
fn corgipile_train_uda_may_run_in_parallel_if_asked() {
    let mut db = Database::new();
    clustered(&mut db, "sorted", 20_000);
    shuffled_copy(&mut db, "sorted", "t");
    db.run(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2; ALTER TABLE t SET (parallel_workers = 2);",
    );
    let id = train(&mut db, "corgipile_train_uda", "'t', max_epochs => 2, options => '{\"parallel\": true}'");
    assert_eq!(db.line("SELECT hyperparameters->>'parallel' FROM corgipile.models"), "true");
    assert!(db.evaluate(id, "t").accuracy > 0.7);
    assert_eq!(db.line("SHOW max_parallel_workers_per_gather"), "2");
    db.rejects("SELECT * FROM corgipile_train_uda('t', options => '{\"parallel\": 1}')", "22023");
}

#[test]
fn rows_with_nulls_are_skipped_and_counted_if_asked() {
    let mut db = Database::new();
    let report = db.line(
        "SELECT r.tuples, r.skipped, r.epoch FROM (
           SELECT corgipile_sgd_agg(s, label, x) AS state
             FROM corgipile_sgd_init('logistic', 2, options => '{\"nulls\": \"skip\"}') s,
                  (VALUES (1, ARRAY[1, 2]), (NULL, ARRAY[1, 2]), (-1, NULL), (-1, ARRAY[NULL, 1]), (-1, ARRAY[0, 1])) v(label, x)
         ) e, corgipile_sgd_report(state) r",
    );
    assert_eq!(report, "2|3|1");
    assert_eq!(
        db.line("SELECT corgipile_sgd_agg(corgipile_sgd_init('svm', 1), 1, ARRAY[1]) FROM (SELECT) e WHERE false"),
        "NULL"
    );
    db.run(
        "CREATE TABLE t (label int, a real, b real);
         INSERT INTO t SELECT i % 2, i, nullif(i % 5, 0) FROM generate_series(1, 50) i;",
    );
    db.rejects("SELECT * FROM corgipile_train_uda('t')", "22004").says(&["NULL"]);
    let id = train(&mut db, "corgipile_train_uda", "'t', options => '{\"nulls\": \"skip\"}'");
    assert_eq!(db.line(&format!("SELECT skipped FROM corgipile.models WHERE model_id = {id}")), "10");
}

#[test]
fn a_training_that_diverges_is_an_error() {
    let mut db = Database::new();
    let failure = db.fails_with(
        "SELECT corgipile_sgd_agg(corgipile_sgd_init('linear', 1, 10), 1, ARRAY[1000]) FROM generate_series(1, 100)",
        "22003",
    );
    failure.says(&["diverged", "epoch 1"]).hints(&["learning_rate"]);
}

#[test]
fn shuffle_once_trains_on_a_copy_in_random_order_that_is_gone_afterwards() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let objects = "SELECT count(*) FROM pg_class";
    let before = db.line(objects);
    let train_on = |db: &mut Database, shuffle: &str, seed: i64| {
        let id =
            train(db, "corgipile_train_uda", &format!("'t', max_epochs => 3, shuffle => '{shuffle}', seed => {seed}"));
        (db.evaluate(id, "t").accuracy, parameters(db, id))
    };
    let (shuffled, first) = train_on(&mut db, "shuffle_once", 1);
    let (clustered, _) = train_on(&mut db, "no_shuffle", 1);
    assert!(shuffled > 0.83 && clustered < shuffled - 0.1, "{shuffled} {clustered}");
    assert_eq!(train_on(&mut db, "shuffle_once", 1).1, first, "the seed decides");
    assert_ne!(train_on(&mut db, "shuffle_once", 2).1, first);
    assert_eq!(db.line(objects), before);
    let line = db.line(
        "SELECT shuffle_bytes > pg_relation_size('t') / 2, shuffle_bytes < pg_relation_size('t') * 2,
                (history->0->>'shuffle_seconds')::float8 > 0, (history->1->>'shuffle_seconds')::float8 = 0
           FROM corgipile.models WHERE hyperparameters->>'shuffle' = 'shuffle_once' LIMIT 1",
    );
    assert_eq!(line, "t|t|t|t");
    db.run("BEGIN; SELECT setseed(0.1)");
    let expected = db.line("SELECT random()");
    db.run("SELECT setseed(0.1); SELECT FROM corgipile_train_uda('t', max_epochs => 1, shuffle => 'shuffle_once')");
    assert_eq!(db.line("SELECT random()"), expected, "the session's random numbers go on as if nothing had been");
    db.run("COMMIT");
}

#[test]
fn nothing_is_left_after_an_error() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    let state = "SELECT (SELECT count(*) FROM pg_class), current_setting('synchronize_seqscans'),
                        current_setting('max_parallel_workers_per_gather')";
    let before = db.line(state);
    db.run(
        "DO $$ BEGIN
           PERFORM corgipile_train_uda('t', 'linear', learning_rate => 1000, shuffle => 'shuffle_once');
         EXCEPTION WHEN numeric_value_out_of_range THEN NULL; END $$",
    );
    assert_eq!(db.line(state), before);
    assert_eq!(db.models(), 0);
}

#[test]
fn a_training_by_aggregate_can_be_stopped() {
    let mut db = Database::new();
    clustered(&mut db, "t", 50_000);
    let objects = "SELECT count(*) FROM pg_class";
    let before = db.line(objects);
    for shuffle in ["no_shuffle", "shuffle_once"] {
        db.fails_with(
            &format!(
                "SET statement_timeout = 500; SELECT * FROM corgipile_train_uda('t', max_epochs => 1000000, shuffle => '{shuffle}')"
            ),
            "57014",
        );
        assert_eq!(db.line(objects), before);
        assert_eq!(db.models(), 0);
    }
}

#[test]
fn a_source_may_be_a_query_and_names_may_be_odd() {
    let mut db = Database::new();
    clustered(&mut db, "t", 400);
    db.run("CREATE SCHEMA \"Odd Schema\"; CREATE TABLE \"Odd Schema\".\"a\"\"b\" AS SELECT label AS \"the Label\", features_v AS \"x;y\" FROM t");
    let arguments = "max_epochs => 2";
    let table = train(&mut db, "corgipile_train_uda", &format!("'t', {arguments}"));
    let odd = format!("'\"Odd Schema\".\"a\"\"b\"', label => 'the Label', features => '{{x;y}}', {arguments}");
    let odd = train(&mut db, "corgipile_train_uda", &odd);
    let query =
        train(&mut db, "corgipile_train_uda", &format!("'SELECT label, features_v FROM t -- all', {arguments}"));
    let expected = parameters(&mut db, table);
    assert_eq!(parameters(&mut db, odd), expected);
    assert_eq!(parameters(&mut db, query), expected);
    db.rejects("SELECT * FROM corgipile_train_uda('DELETE FROM t RETURNING *')", "42602");
}

#[test]
fn what_an_aggregate_cannot_do_is_said() {
    let mut db = Database::with_small_table(100);
    db.run("CREATE TABLE words AS SELECT label, a, CASE WHEN b > 0 THEN 'x' ELSE 'y' END AS word, b AS w FROM t");
    let mut fails =
        |arguments: &str, code: &str| db.rejects(&format!("SELECT * FROM corgipile_train_uda({arguments})"), code);
    fails("'t', shuffle => 'corgipile'", "22023").says(&["\"shuffle\"", "corgipile"]).hints(&["shuffle_once"]);
    fails("'t', options => '{\"class_weight\": \"balanced\"}'", "0A000");
    fails("'words', features => '{a}', options => '{\"weight\": \"w\"}'", "0A000");
    fails("'words', features => '{a,word}'", "0A000");
    fails("'t', options => '{\"schedule\": \"theorem1\", \"mu\": 1}'", "0A000");
    fails("'nowhere'", "42P01");
    fails("NULL", "22004");
    fails("'t', max_epochs => 0", "22023");
    fails("'t', label => 'id'", "22000");
    fails("'SELECT * FROM t WHERE false'", "22000");
    fails("'SELECT * FROM t WHERE label = 1'", "22000");
    fails("'t', learning_rate => 1e30, model => 'linear'", "22003");
}

#[test]
fn privileges_and_row_security_are_the_users_own() {
    let mut db = Database::new();
    clustered(&mut db, "t", 400);
    let user = db.role("user");
    let mut session = db.session_as(&user);
    session.fails_with("SELECT * FROM corgipile_train_uda('t')", "42501");
    db.run(&format!(
        "GRANT SELECT ON t TO {user}; ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id % 2 = 0);"
    ));
    for shuffle in ["no_shuffle", "shuffle_once"] {
        let tuples: i64 = session.value(&format!(
            "SELECT max(tuples) FROM corgipile_train_uda('t', max_epochs => 1, shuffle => '{shuffle}')"
        ));
        assert_eq!(tuples, 200);
    }
    assert_eq!(session.line("SELECT DISTINCT owner::text FROM corgipile.models"), user);
}

#[test]
fn all_epochs_see_the_rows_of_the_calling_statement() {
    let mut db = Database::new();
    clustered(&mut db, "t", 400);
    let tuples: Vec<i64> = db.column(
        "WITH more AS (INSERT INTO t SELECT * FROM t RETURNING 1)
         SELECT tuples FROM corgipile_train_uda('t', max_epochs => 2)",
    );
    assert_eq!(tuples, [400, 400]);
    db.run("BEGIN; DELETE FROM t WHERE id > 300");
    for shuffle in ["no_shuffle", "shuffle_once"] {
        let sql = format!("SELECT max(tuples) FROM corgipile_train_uda('t', max_epochs => 1, shuffle => '{shuffle}')");
        assert_eq!(db.value::<i64>(&sql), 600, "{shuffle}: what the transaction itself has written counts");
    }
    db.run("ROLLBACK");
}
