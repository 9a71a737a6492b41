//! Models in the statement that trains them: what it has trained it may use,
//! and what other sessions store it does not see.

use corgipile_tests::{Database, Session};
use std::time::Duration;

/// A call that trains the same model each time.
const TRAIN: &str = "corgipile_train('t', max_epochs => 2, seed => 1, features => '{a,b,c}')";

const FEATURES: &str = "ARRAY[1,2,3]";

/// A version of model `v`, which differs from those of other rates.
fn train_v(rate: f64) -> String {
    format!("corgipile_train('t', max_epochs => 1, seed => 1, learning_rate => {rate}, name => 'v')")
}

fn trained(db: &mut Session) -> i64 {
    db.value(&format!("SELECT model_id FROM {TRAIN} LIMIT 1"))
}

#[test]
fn a_statement_predicts_with_the_model_that_it_trains() {
    let mut db = Database::with_small_table(300);
    let id = trained(&mut db);
    let probabilities = db.line(&format!("SELECT corgipile_predict_proba({id}, {FEATURES})"));
    let sum = db.line(&format!("SELECT sum(corgipile_predict({id}, ARRAY[a,b,c])) FROM t"));
    for statement in [
        format!("SELECT corgipile_predict_proba((SELECT model_id FROM {TRAIN} LIMIT 1), {FEATURES})"),
        format!("SELECT corgipile_predict_proba(m.model_id, {FEATURES}) FROM {TRAIN} AS m WHERE epoch = 2"),
        format!("SELECT corgipile_predict_proba(m.model_id, '{{1,2,3}}'::int[], {FEATURES}) FROM {TRAIN} AS m LIMIT 1"),
        format!(
            "SELECT DISTINCT p FROM {TRAIN} AS m, LATERAL (SELECT corgipile_predict_proba(m.model_id, {FEATURES}) p) x"
        ),
        format!(
            "WITH m AS (SELECT model_id FROM {TRAIN}) SELECT DISTINCT corgipile_predict_proba(model_id, {FEATURES}) FROM m"
        ),
        format!(
            "SELECT DISTINCT corgipile_predict_proba((e).model_id, {FEATURES}) FROM (SELECT {TRAIN} AS e OFFSET 0) x"
        ),
        format!(
            "SELECT corgipile_predict_proba(corgipile_export(m.model_id), {FEATURES}) FROM {TRAIN} AS m WHERE epoch = 1"
        ),
        format!(
            "SELECT corgipile_predict_proba(corgipile_import(corgipile_export(m.model_id)), {FEATURES})
               FROM {TRAIN} AS m WHERE epoch = 1"
        ),
    ] {
        assert_eq!(db.line(&statement), probabilities, "{statement}");
    }
    for predicted in ["corgipile_predict(model_id, ARRAY[a,b,c])", "corgipile_predict_label(model_id, t)::float8"] {
        let statement = format!("WITH m AS (SELECT model_id FROM {TRAIN} LIMIT 1) SELECT sum({predicted}) FROM m, t");
        assert_eq!(db.line(&statement), sum, "{statement}");
    }
    // by a name that is known only when the training has run
    let by_name = TRAIN.replace("seed", "name => 'mine', seed");
    let statement = format!(
        "SELECT corgipile_predict_proba('mi' || left('ne', epoch + 1), {FEATURES}) FROM {by_name} WHERE epoch = 1"
    );
    assert_eq!(db.line(&statement), probabilities);
}

#[test]
fn a_statement_does_with_the_model_that_it_trains_what_else_there_is_to_do() {
    let mut db = Database::with_small_table(300);
    let id = trained(&mut db);
    let accuracy = format!("SELECT value FROM corgipile_evaluate({id}, 't') WHERE metric = 'accuracy'");
    let accuracy = db.line(&accuracy);
    for statement in [
        format!(
            "SELECT value FROM corgipile_evaluate((SELECT model_id FROM {TRAIN} LIMIT 1), 't') WHERE metric = 'accuracy'"
        ),
        format!(
            "SELECT value FROM (SELECT model_id FROM {TRAIN} LIMIT 1) m, corgipile_evaluate(m.model_id, 't')
              WHERE metric = 'accuracy'"
        ),
    ] {
        assert_eq!(db.line(&statement), accuracy, "{statement}");
    }
    let named = TRAIN.replace("seed", "name => 'mine', seed");
    db.run(&format!(
        "SELECT corgipile_comment(model_id, 'good'), corgipile_grant('mine', 'public'), corgipile_rename('mine', 'ours'),
                corgipile_deploy('ours', 1) FROM {named} LIMIT 1"
    ));
    assert_eq!(
        db.line("SELECT name, comment, deployed, granted_to FROM corgipile.models WHERE name IS NOT NULL"),
        "ours|good|t|{public}"
    );
    assert_eq!(db.line(&format!("SELECT corgipile_drop(model_id) FROM {TRAIN} LIMIT 1")), "1");
    // a training that goes on from another one
    let further = "SELECT loss FROM corgipile_train('t', max_epochs => 1, warm_start";
    let expected = db.line(&format!("{further} => '{id}')"));
    assert_eq!(db.line(&format!("{further} => (SELECT model_id::text FROM {TRAIN} LIMIT 1))")), expected);
    // models of groups and of a grid
    let models = db.lines(&format!(
        "SELECT group_value, corgipile_predict_proba(model_id, {FEATURES})
           FROM corgipile_train('SELECT *, id % 3 AS part FROM t', group_by => 'part', features => '{{a,b,c}}', max_epochs => 1,
                                seed => 1, grid => '{{\"learning_rate\": [0.1, 0.01]}}') ORDER BY model_id"
    ));
    assert_eq!(models.len(), 6);
    let stored = format!(
        "SELECT hyperparameters ->> 'group', corgipile_predict_proba(model_id, {FEATURES}) FROM corgipile.models
          WHERE hyperparameters ? 'group' ORDER BY model_id"
    );
    assert_eq!(
        db.lines(&stored).iter().map(|line| line.split_once('|').unwrap().1).collect::<Vec<_>>(),
        models.iter().map(|line| line.split_once('|').unwrap().1).collect::<Vec<_>>()
    );
}

#[test]
fn functions_and_blocks_predict_with_the_models_that_they_train() {
    let mut db = Database::with_small_table(300);
    let id = trained(&mut db);
    let expected = db.line(&format!("SELECT corgipile_predict_proba({id}, {FEATURES})"));
    for volatility in ["VOLATILE", "STABLE"] {
        db.run(&format!(
            "CREATE OR REPLACE FUNCTION train_and_ask(OUT p float8[]) {volatility} LANGUAGE plpgsql AS $$
             DECLARE id bigint;
             BEGIN
                SELECT model_id INTO id FROM {TRAIN} LIMIT 1;
                p := corgipile_predict_proba(id, {FEATURES});
             END $$;
             CREATE OR REPLACE FUNCTION ask_sql() RETURNS float8[] {volatility} LANGUAGE sql AS $$
                SELECT corgipile_predict_proba((SELECT model_id FROM {TRAIN} LIMIT 1), {FEATURES}) $$"
        ));
        assert_eq!(db.line("SELECT train_and_ask()"), expected, "{volatility}");
        assert_eq!(db.line("SELECT ask_sql()"), expected, "{volatility}");
        assert_eq!(db.line("SELECT DISTINCT train_and_ask() FROM generate_series(1, 3)"), expected, "{volatility}");
    }
    db.run(&format!(
        "DO $$
         DECLARE p float8[];
         BEGIN
            SELECT corgipile_predict_proba((SELECT model_id FROM {TRAIN} LIMIT 1), {FEATURES}) INTO p;
            ASSERT p::text = '{expected}', p::text;
         END $$"
    ));
    db.run(&format!(
        "PREPARE p AS SELECT corgipile_predict_proba((SELECT model_id FROM {TRAIN} LIMIT 1), {FEATURES});
         SET plan_cache_mode = force_generic_plan"
    ));
    for _ in 0..2 {
        assert_eq!(db.line("EXECUTE p"), expected);
    }
}

#[test]
fn parallel_workers_see_what_their_transaction_has_stored() {
    let mut db = Database::with_small_table(300);
    let id = trained(&mut db);
    let expected = db.line(&format!("SELECT sum(corgipile_predict({id}, ARRAY[a,b,c])) FROM t"));
    db.run(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off;
         ALTER TABLE t SET (parallel_workers = 2)",
    );
    db.run(
        "CREATE FUNCTION process() RETURNS int PARALLEL SAFE LANGUAGE plpgsql AS 'BEGIN RETURN pg_backend_pid(); END'",
    );
    // A function that is STABLE looks with the snapshot of the statement that calls it, older than what it has trained.
    for volatility in ["VOLATILE", "STABLE"] {
        db.run(&format!(
            "CREATE OR REPLACE FUNCTION train_and_ask() RETURNS TABLE (total float8, in_workers bool) {volatility}
             LANGUAGE plpgsql AS $$
             DECLARE model bigint; leader int := pg_backend_pid();
             BEGIN
                SELECT model_id INTO model FROM {TRAIN} LIMIT 1;
                -- unlike INTO, it may run in parallel
                RETURN QUERY SELECT sum(corgipile_predict(model, ARRAY[a,b,c])), bool_and(process() <> leader) FROM t;
             END $$"
        ));
        assert_eq!(db.line("SELECT * FROM train_and_ask()"), format!("{expected}|t"), "{volatility}");
    }
}

#[test]
fn a_version_that_a_statement_stores_is_the_one_it_uses_from_then_on() {
    let mut db = Database::with_small_table(300);
    let ask = format!("corgipile_predict_proba('v', {FEATURES})");
    db.run(&format!("SELECT FROM {}", train_v(0.01)));
    let first = db.line(&format!("SELECT {ask}"));
    let both = db.lines(&format!(
        "SELECT CASE WHEN i = 2 THEN (SELECT min(model_id) FROM {}) END IS NULL, {ask} FROM generate_series(1, 3) i",
        train_v(0.3)
    ));
    let second = db.line(&format!("SELECT {ask}"));
    assert_ne!(first, second);
    assert_eq!(both, [format!("t|{first}"), format!("f|{second}"), format!("t|{second}")]);
    // so does the query of a cursor, as with any volatile function
    db.run(&format!("BEGIN; DECLARE c CURSOR FOR SELECT {ask} FROM generate_series(1, 3)"));
    assert_eq!(db.line("FETCH c"), second);
    db.run(&format!("SELECT FROM {}", train_v(0.1)));
    let third = db.line("FETCH c");
    assert!(third != first && third != second);
    db.run("ROLLBACK");
    assert_eq!(db.line(&format!("SELECT {ask}")), second);
}

#[test]
fn a_statement_uses_one_version_of_what_others_store() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let mut db = Database::with_small_table(300);
        let ask = format!("corgipile_predict_proba('v', {FEATURES})");
        db.run(&format!("SELECT FROM {}; SELECT pg_advisory_lock(1)", train_v(0.01)));
        let first = db.line(&format!("SELECT {ask}"));
        let mut waits = db.session();
        let pid = waits.pid();
        // In the middle of the statement it waits, and it stores a model of its own, which makes it look again.
        let statement = format!(
            "BEGIN ISOLATION LEVEL {level};
             SELECT CASE i WHEN 2 THEN pg_advisory_xact_lock(1)::text
                           WHEN 3 THEN (SELECT min(model_id)::text FROM {TRAIN}) END IS NULL, {ask}
               FROM generate_series(1, 4) i"
        );
        let waiting = std::thread::spawn(move || {
            let lines = waits.lines(&statement);
            (waits, lines)
        });
        let locked = format!("SELECT count(*) FROM pg_locks WHERE pid = {pid} AND NOT granted");
        while db.line(&locked) == "0" {
            std::thread::sleep(Duration::from_millis(10));
        }
        let latest: i64 = db.value(&format!("SELECT min(model_id) FROM {}", train_v(0.3)));
        let second = db.line(&format!("SELECT {ask}"));
        assert_ne!(first, second);
        db.run("SELECT pg_advisory_unlock(1)");
        let (mut waits, lines) = waiting.join().expect("the statement ends");
        let expected = ["f", "f", "f", "t"].map(|none| format!("{none}|{first}"));
        assert_eq!(
            lines.iter().map(|l| l.split_once('|').unwrap().1).collect::<Vec<_>>(),
            expected.iter().map(|l| l.split_once('|').unwrap().1).collect::<Vec<_>>(),
            "{level}"
        );
        // The next statement sees it, or, if the transaction must not, says why it does not.
        let by_id = format!("SELECT corgipile_predict_proba({latest}, {FEATURES})");
        if level == "READ COMMITTED" {
            assert_eq!(waits.line(&by_id), second);
        } else {
            waits
                .fails_with(&by_id, "42704")
                .says(&[&latest.to_string(), "does not exist"])
                .hints(&["REPEATABLE READ"]);
        }
    }
}

#[test]
fn what_a_subtransaction_has_stored_goes_with_it() {
    let mut db = Database::with_small_table(300);
    let ask = format!("corgipile_predict_proba('v', {FEATURES})");
    db.run(&format!("SELECT FROM {}", train_v(0.01)));
    let first = db.line(&format!("SELECT {ask}"));
    for volatility in ["VOLATILE", "STABLE"] {
        db.run(&format!(
            "CREATE OR REPLACE FUNCTION undone(OUT inside float8[], OUT afterwards float8[]) {volatility} LANGUAGE plpgsql AS $$
             BEGIN
                PERFORM {ask};
                BEGIN
                    PERFORM {};
                    inside := {ask};
                    RAISE EXCEPTION 'undo';
                EXCEPTION WHEN raise_exception THEN
                    afterwards := {ask};
                END;
             END $$",
            train_v(0.3)
        ));
        for level in ["READ COMMITTED", "REPEATABLE READ"] {
            db.run(&format!("BEGIN ISOLATION LEVEL {level}"));
            assert_eq!(db.line("SELECT afterwards FROM undone()"), first, "{volatility} {level}");
            assert_eq!(db.line("SELECT inside = afterwards FROM undone()"), "f", "{volatility} {level}");
            db.run("COMMIT");
        }
    }
}

#[test]
fn what_is_there_but_not_for_the_statement_is_told_apart_from_what_is_nowhere() {
    let mut db = Database::with_small_table(300);
    let mut other = db.session();
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    other.models();
    let user = db.role("user");
    let mut stranger = db.session_as(&user);
    stranger.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    stranger.models();
    let id = trained(&mut db);
    db.run(&format!("SELECT FROM {}", train_v(0.1)));
    let predict = |model: &str| format!("SAVEPOINT s; SELECT corgipile_predict({model}, {FEATURES})");
    for model in [&id.to_string(), "'v'"] {
        other.fails_with(&predict(model), "42704").says(&["does not exist"]).hints(&["stored", "REPEATABLE READ"]);
        other.run("ROLLBACK TO s");
        // To whom it would not be shown either way nothing is said of it.
        stranger.fails_with(&predict(model), "42704").hints(&["See corgipile.models"]);
        stranger.run("ROLLBACK TO s");
    }
    other.fails_with(&predict("'nowhere'"), "42704").hints(&["See corgipile.models"]);
}

#[test]
fn a_statement_evaluates_the_model_that_it_trains_wherever_the_evaluation_stands() {
    let mut db = Database::with_small_table(300);
    let id = trained(&mut db);
    let expected = db.line(&format!("SELECT value FROM corgipile_evaluate({id}, 't') WHERE metric = 'accuracy'"));
    let last = format!("(SELECT max(model_id) AS model_id FROM {TRAIN}) AS m");
    for statement in [
        format!(
            "WITH m AS (SELECT * FROM {TRAIN}) SELECT value FROM m, corgipile_evaluate(m.model_id, 't') WHERE epoch = 2 LIMIT 1"
        ),
        format!("SELECT (SELECT value FROM corgipile_evaluate(m.model_id, 't') WHERE metric = 'accuracy') FROM {last}"),
        format!("SELECT (corgipile_evaluate(m.model_id, 't')).value FROM {last} LIMIT 1"),
        format!("SELECT value FROM {last} CROSS JOIN LATERAL corgipile_evaluate(m.model_id, 't'::regclass) LIMIT 1"),
        format!(
            "SELECT avg(value) FILTER (WHERE metric = 'accuracy') FROM {last}, LATERAL corgipile_evaluate(model_id, 't')"
        ),
        // the source asks the model, too
        format!(
            "SELECT value FROM {last}, LATERAL corgipile_evaluate(m.model_id, format(
                 'SELECT * FROM t WHERE corgipile_predict(%s, a, b, c) IS NOT NULL', m.model_id)) LIMIT 1"
        ),
        // by a name, where the call takes something of the training's rows
        format!(
            "SELECT e.value FROM {} AS m, LATERAL corgipile_evaluate(left('named', m.epoch + 3), 't') AS e WHERE m.epoch = 2 LIMIT 1",
            TRAIN.replace("seed", "name => 'named', seed")
        ),
    ] {
        assert_eq!(db.line(&statement), expected, "{statement}");
    }
}

/// Trains another version of `kept`, and keeps it only if its loss is below that of the version that the name meant
/// before.
fn retrain(arguments: &str) -> String {
    format!(
        "WITH trained AS (
             SELECT max(model_id) AS model_id FROM corgipile_train('t', features => '{{a,b,c}}', name => 'kept', seed => 1, {arguments})
         ), judged AS (
             SELECT model_id, (SELECT value FROM corgipile_evaluate(model_id, 't') WHERE metric = 'loss') AS loss,
                    (SELECT value FROM corgipile.current_models AS c, corgipile_evaluate(c.model_id, 't')
                      WHERE c.name = 'kept' AND metric = 'loss') AS before
               FROM trained
         )
         SELECT CASE WHEN loss >= before THEN 'dropped ' || corgipile_drop(model_id)
                     ELSE 'deployed ' || corgipile_deploy('kept', NULL) - model_id END FROM judged"
    )
}

#[test]
fn one_statement_trains_evaluates_and_keeps_a_version_only_if_it_is_better() {
    let mut db = Database::with_small_table(300);
    let versions = "SELECT string_agg(version::text, ',' ORDER BY version) FROM corgipile.models";
    assert_eq!(db.line(&retrain("max_epochs => 3")), "deployed 0");
    assert_eq!(db.line(&retrain("max_epochs => 1, learning_rate => 0.00001")), "dropped 1");
    assert_eq!(db.line(versions), "1");
    assert_eq!(db.line(&retrain("max_epochs => 50")), "deployed 0");
    assert_eq!(db.line(versions), "1,3");
    db.run("SELECT corgipile_deploy('kept', 3)");
    assert_eq!(db.line(&retrain("max_epochs => 1, learning_rate => 0.00001")), "dropped 1");
    assert_eq!(db.line("SELECT version FROM corgipile.current_models WHERE name = 'kept'"), "3");
}
