//! Models as rows of a table: transactional, queryable, dumped, deleted; and the cache that follows.

use corgipile_tests::{Database, Failure, Session, clustered, program, small};
use std::thread::JoinHandle;

fn predict(id: i64) -> String {
    format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])")
}

#[test]
fn a_stored_model_tells_everything_about_its_training() {
    let mut db = Database::new();
    small(&mut db, "t", 200);
    let epochs = db.train(
        "'t', 'svm', features => '{a,c}', learning_rate => 0.02, max_epochs => 3, shuffle => 'block_only',
         block_size => '16kB', buffer_size => '50%', seed => 4, name => 'first',
         options => '{\"l2\": 0.001, \"decay\": 0.9,
         \"standardize\": true, \"nulls\": \"skip\"}'",
    );
    let stored = db.line(
        "SELECT name, owner, model, source, label, label_type, classes, features, array_length(weights, 1), skipped,
                created_at BETWEEN now() - interval '1 minute' AND now() + interval '1 minute',
                preparation_seconds BETWEEN 0 AND 60
         FROM corgipile.models",
    );
    assert_eq!(stored, "first|postgres|svm|t|label|integer|{0,1}|{a,c}|2|0|t|t");
    let hyperparameters = db.lines(
        "SELECT key, value FROM corgipile.models, jsonb_each_text(hyperparameters)
                                    WHERE key <> 'buffer_blocks' ORDER BY key COLLATE \"C\"",
    );
    let expected = [
        "block_size|16kB",
        "buffer_size|50%",
        "decay|0.9",
        "l2|0.001",
        "learning_rate|0.02",
        "max_epochs|3",
        "nulls|skip",
        "pages_per_block|2",
        "seed|4",
        "shuffle|block_only",
        "standardize|true",
    ];
    for line in expected {
        assert!(hyperparameters.iter().any(|given| given == line), "no {line} in {hyperparameters:?}");
    }
    let history = corgipile_tests::epochs_of(&db.rows(
        "SELECT model_id, epoch, loss, accuracy, learning_rate, tuples, seconds, r2 FROM corgipile.training_history
         WHERE name = 'first' ORDER BY epoch",
        &[],
    ));
    assert_eq!(history, epochs);
}

#[test]
fn coefficients_have_the_names_of_their_features() {
    let mut db = Database::new();
    small(&mut db, "t", 200);
    let model = db.trained("'t', features => '{b,a}', seed => 1, name => 'm', options => '{\"standardize\": true}'");
    let rows = db.rows(
        "SELECT feature, coefficient::float8, mean, scale FROM corgipile.coefficients
         WHERE name = 'm' AND model_id = $1",
        &[&model.id],
    );
    assert_eq!(rows.len(), 3);
    for (feature, weight) in [("b", model.weights[0]), ("a", model.weights[1]), ("(intercept)", model.intercept)] {
        let row = rows.iter().find(|row| row.get::<_, &str>(0) == feature).expect("a row per feature");
        assert!((row.get::<_, f64>(1) - f64::from(weight)).abs() < 1e-6, "{feature}");
        assert_eq!(row.get::<_, Option<f64>>(2).is_some(), feature != "(intercept)", "{feature} has a mean");
    }
}

#[test]
fn coefficients_of_an_array_have_a_row_per_element() {
    let mut db = Database::new();
    clustered(&mut db, "t", 200);
    let model = db.trained("'t', seed => 1");
    let rows = db.rows("SELECT DISTINCT feature, coefficient::real FROM corgipile.coefficients ORDER BY feature", &[]);
    assert_eq!(rows.len(), 6);
    let mut given: Vec<u32> = rows.iter().map(|row| row.get::<_, f32>(1).to_bits()).collect();
    let mut expected = model.bits();
    given.sort_unstable();
    expected.sort_unstable();
    assert_eq!(given, expected);
}

#[test]
fn a_rolled_back_training_leaves_no_model() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
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
    let mut db = Database::new();
    small(&mut db, "t", 100);
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
    let mut db = Database::new();
    small(&mut db, "t", 300);
    let id = db.train("'t', seed => 1")[0].model_id;
    let mut other = db.session();
    let ask = format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3])");
    let before = db.line(&ask);
    assert_eq!(other.line(&ask), before);

    db.run("BEGIN; UPDATE corgipile.models SET intercepts = ARRAY[intercepts[1] + 1]");
    let during = db.line(&ask);
    assert_ne!(during, before, "an update is seen at once by its transaction");
    assert_eq!(other.line(&ask), before, "and by no other");
    db.run("ROLLBACK");
    assert_eq!(db.line(&ask), before);

    db.run("UPDATE corgipile.models SET intercepts = ARRAY[intercepts[1] + 1]");
    assert_eq!(db.line(&ask), during);
    assert_eq!(other.line(&ask), during, "a committed update is seen by sessions that had the old one cached");

    db.run("BEGIN; DELETE FROM corgipile.models");
    db.fails_with(&ask, "42704");
    db.run("ROLLBACK");
    assert_eq!(db.line(&ask), during);
    db.run("DELETE FROM corgipile.models");
    db.fails_with(&ask, "42704");
    other.fails_with(&ask, "42704");
}

#[test]
fn a_name_given_to_another_model_means_that_model() {
    let mut db = Database::new();
    small(&mut db, "t", 300);
    let mut other = db.session();
    db.train("'t', seed => 1, name => 'current'");
    let ask = "SELECT corgipile_predict_proba('current', ARRAY[1,2,3])";
    let first = other.line(ask);
    db.run(
        "DELETE FROM corgipile.models WHERE name = 'current';
            SELECT corgipile_train('t', seed => 1, learning_rate => 0.3, name => 'current')",
    );
    let second = other.line(ask);
    assert_ne!(first, second);
    db.run("UPDATE corgipile.models SET name = 'old' WHERE name = 'current'");
    other.fails_with(ask, "42704");
    assert_eq!(other.line("SELECT corgipile_predict_proba('old', ARRAY[1,2,3])"), second);
}

#[test]
fn a_repeatable_read_transaction_keeps_its_model() {
    let mut db = Database::new();
    small(&mut db, "t", 300);
    let id = db.train("'t', seed => 1")[0].model_id;
    let ask = format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3])");
    let mut other = db.session();
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let before = other.line(&ask);
    db.run("UPDATE corgipile.models SET intercepts = ARRAY[intercepts[1] + 1]");
    let after = db.line(&ask);
    assert_eq!(other.line(&ask), before);
    other.run("COMMIT");
    assert_eq!(other.line(&ask), after);
}

#[test]
fn many_models_in_one_statement_do_not_mix() {
    let mut db = Database::new();
    small(&mut db, "t", 200);
    for seed in 1..=40 {
        db.run(&format!(
            "SELECT corgipile_train('t', max_epochs => 1, seed => {seed}, learning_rate => 0.01 * {seed})"
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
    let mut db = Database::new();
    small(&mut db, "t", 300);
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
    let provolatile = db.lines(
        "SELECT DISTINCT provolatile, proparallel, proisstrict FROM pg_proc WHERE proname LIKE 'corgipile\\_predict%'",
    );
    assert_eq!(provolatile, ["s|s|t"]);
}

#[test]
fn predictions_are_the_same_in_parallel_workers() {
    let mut db = Database::new();
    small(&mut db, "t", 20_000);
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
    // Also a model that nobody else can see yet.
    db.run("BEGIN");
    let id = db.train("'t', max_epochs => 2, seed => 1")[0].model_id;
    assert_eq!(db.line(&format!("SELECT count(*), sum(corgipile_predict({id}, ARRAY[a, b, c])) FROM t")), serial);
    db.run("ROLLBACK");
}

#[test]
fn pg_dump_and_restore_keep_models_and_their_predictions() {
    let mut db = Database::new();
    small(&mut db, "t", 300);
    db.run(
        "CREATE TYPE answer AS ENUM ('no', 'yes');
            CREATE TABLE e AS SELECT (CASE label WHEN 1 THEN 'yes' ELSE 'no' END)::answer AS label, a, b FROM t",
    );
    let model = db.trained("'t', name => 'kept', seed => 1, options => '{\"standardize\": true}'");
    db.train("'e', 'svm', name => 'of an enum', max_epochs => 2");
    let dump = std::env::temp_dir().join(format!("{}.dump", db.name()));
    let run = |program: &mut std::process::Command| {
        let output = program.output().expect("the program starts");
        assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(program("pg_dump").args(["-Fc", "-f"]).arg(&dump).arg(db.name()));
    let mut restored = Database::empty();
    run(program("pg_restore").args(["--exit-on-error", "-d", restored.name()]).arg(&dump));
    std::fs::remove_file(&dump).expect("the dump is there");

    for query in [
        "SELECT corgipile_predict_proba('kept', ARRAY[a, b, c]) FROM t ORDER BY id",
        "SELECT corgipile_predict_label('of an enum', ARRAY[a, b]) FROM t ORDER BY id",
        "SELECT * FROM corgipile.models ORDER BY model_id",
        "SELECT * FROM corgipile.coefficients ORDER BY model_id, feature",
        "SELECT * FROM corgipile.training_history ORDER BY model_id, epoch",
    ] {
        let expected = db.lines(query);
        assert!(!expected.is_empty(), "{query}");
        assert_eq!(restored.lines(query), expected, "{query}");
    }
    assert_eq!(restored.model(model.id).bits(), model.bits());
    // The next model gets an id of its own.
    let next = restored.train("'t', max_epochs => 1")[0].model_id;
    assert!(next > model.id + 1, "{next}");
    assert_eq!(restored.models(), 3);
}

/// Runs a statement in a thread.
fn in_background(mut session: Session, sql: &str) -> JoinHandle<Result<Vec<String>, Failure>> {
    let sql = sql.to_owned();
    std::thread::spawn(move || session.attempt(&sql))
}

/// Calls that store something; with `gate(a)` for a feature, they wait before they have read a row.
fn calls_that_store(feature: &str) -> Vec<String> {
    let source = format!("$$SELECT label, {feature} AS a FROM t$$");
    vec![
        format!("SELECT count(*) FROM corgipile_train({source}, max_epochs => 2)"),
        format!("SELECT count(*) FROM corgipile_train({source}, max_epochs => 2, name => 'named')"),
        format!(
            "SELECT count(*) FROM (SELECT corgipile_train({source}, max_epochs => 2, grid => '{{\"l2\": [0, 1]}}')) s"
        ),
        format!("SELECT count(*) FROM corgipile_train({source}, 'mlp', max_epochs => 2)"),
        format!("SELECT count(*) FROM corgipile_train_uda({source}, max_epochs => 2)"),
        format!("SELECT count(*) FROM corgipile_train({source}, max_epochs => 3, warm_start => 'm')"),
        format!("SELECT tuples FROM corgipile_compress({source}, 'compressed')"),
        format!(
            "SELECT tuples FROM corgipile_compress($$SELECT label, '{{1}}'::int[] AS k, ARRAY[{feature}] AS v FROM t$$,
                                                   'sparse', features => '{{k,v}}')"
        ),
    ]
}

#[test]
fn dropping_the_extension_waits_for_whoever_stores_something() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    db.run(
        "CREATE FUNCTION gate(real) RETURNS real LANGUAGE plpgsql AS $$ BEGIN
             PERFORM pg_advisory_xact_lock_shared(1); RETURN $1;
         END $$",
    );
    db.train("'SELECT label, a FROM t', max_epochs => 1, name => 'm'");
    let (mut hurried, mut gatekeeper) = (db.session(), db.session());
    hurried.run("SET lock_timeout = '50ms'");
    for call in calls_that_store("gate(a)") {
        gatekeeper.run("SELECT pg_advisory_lock(1)");
        let calling = in_background(db.session(), &call);
        db.wait_for_waiters(1);
        hurried.fails_with("DROP EXTENSION corgipile CASCADE", "55P03");
        gatekeeper.run("SELECT pg_advisory_unlock(1)");
        let result = calling.join().expect("the session's thread does not panic");
        assert!(result.is_ok(), "{call}: {result:#?}");
    }
    // A model that was imported, and not yet committed.
    let mut importing = db.session();
    importing.run("BEGIN; SELECT corgipile_import(corgipile_export('m'), 'again')");
    hurried.fails_with("DROP EXTENSION corgipile CASCADE", "55P03");
    importing.run("COMMIT");
    // Who waits drops in the end, and has not kept the training from storing its model.
    gatekeeper.run("SELECT pg_advisory_lock(1)");
    let training = in_background(db.session(), &calls_that_store("gate(a)")[1]);
    db.wait_for_waiters(1);
    let dropping = in_background(db.session(), "DROP EXTENSION corgipile CASCADE");
    db.wait_for_waiters(2);
    // Meanwhile nobody waits who only reads models.
    assert_eq!(db.line("SELECT corgipile_predict('m', ARRAY[1]) IS NULL"), "f");
    gatekeeper.run("SELECT pg_advisory_unlock(1)");
    for thread in [training, dropping] {
        let result = thread.join().expect("the session's thread does not panic");
        assert!(result.is_ok(), "{result:#?}");
    }
    db.fails_with(&calls_that_store("a")[0], "42883");
}

#[test]
fn who_waits_for_the_extension_to_be_dropped_is_told_so() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    db.train("'SELECT label, a FROM t', max_epochs => 1, name => 'm'");
    let mut calls = calls_that_store("a");
    calls.extend(
        [
            "SELECT corgipile_import(json) FROM exported",
            "SELECT corgipile_predict('m', ARRAY[1])",
            "SELECT * FROM corgipile_evaluate('m', 't')",
        ]
        .map(str::to_owned),
    );
    db.run("CREATE TABLE exported AS SELECT corgipile_export('m') - 'name' AS json");
    db.run("BEGIN; DROP EXTENSION corgipile");
    let threads: Vec<_> = calls.iter().map(|call| in_background(db.session(), call)).collect();
    db.wait_for_waiters(calls.len() as i64);
    db.run("COMMIT");
    for (thread, call) in threads.into_iter().zip(&calls) {
        let failure = thread.join().expect("the session's thread does not panic").expect_err(call);
        assert_eq!(failure.code, "42P01", "{call}: {failure:#?}");
        failure.says(&["relation corgipile.", "does not exist"]).hints(&["dropped"]);
    }
}

#[test]
fn arrays_of_arrays_in_an_edited_row_are_no_model() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    let id = db.train("'t', 'softmax', features => '{a,b}', max_epochs => 1")[0].model_id;
    for (change, column) in [
        ("features = '{{a,b}}'", "features"),
        ("features = '{{a},{b}}'", "features"),
        ("classes = '{{0,1}}'", "classes"),
        ("classes = '{{0},{1}}'", "classes"),
        ("classes = '{0,NULL}'", "classes"),
        ("weights = ARRAY[weights]", "weights"),
        ("feature_mean = '{{1,2}}', feature_scale = '{1,2}'", "feature_mean"),
    ] {
        db.run(&format!("BEGIN; UPDATE corgipile.stored_models SET {change}"));
        let failure = db.attempt(&format!("SELECT corgipile_predict({id}, ARRAY[1,2])")).expect_err(change);
        assert_eq!(failure.code, "XX001", "{change}: {failure:#?}");
        failure.says(&[column, "one dimension"]);
        db.run("ROLLBACK");
    }
}

#[test]
fn json_in_an_edited_row_that_cannot_be_read_is_said() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    let id = db.train("'t', features => '{a,b}', max_epochs => 1")[0].model_id;
    let deep = format!("'{}1{}'", "{\"a\":".repeat(300), "}".repeat(300));
    for column in ["hyperparameters", "categories"] {
        for (value, words) in [(deep.as_str(), "nested too deeply"), ("'{\"a\": 1e400}'", "out of range")] {
            for call in [
                format!("SELECT corgipile_predict({id}, ARRAY[1,2])"),
                format!("SELECT corgipile_export({id})"),
                format!(
                    "SELECT corgipile_train('t', features => '{{a,b}}', max_epochs => 2, warm_start => {id}::text)"
                ),
            ] {
                db.run(&format!("BEGIN; UPDATE corgipile.stored_models SET {column} = {value}, name = '{id}'"));
                let failure = db.attempt(&call).expect_err(&call);
                assert_eq!(failure.code, "XX001", "{column}, {call}: {failure:#?}");
                failure.says(&[column, words]);
                db.run("ROLLBACK");
            }
        }
    }
}

#[test]
fn the_extension_can_be_dropped_and_created_again_in_one_session() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    let id = db.train("'t', max_epochs => 1, name => 'm'")[0].model_id;
    db.line(&predict(id));
    db.run("DROP EXTENSION corgipile");
    db.fails_with(&predict(id), "42883");
    assert_eq!(db.line("SELECT count(*) FROM pg_namespace WHERE nspname = 'corgipile'"), "0");
    assert_eq!(db.line("SELECT count(*) FROM pg_proc WHERE proname LIKE 'corgipile%'"), "0");
    db.run("CREATE EXTENSION corgipile");
    assert_eq!(db.models(), 0);
    db.fails_with("SELECT corgipile_predict('m', ARRAY[1,2,3])", "42704");
    let again = db.train("'t', max_epochs => 1, name => 'm'")[0].model_id;
    assert_ne!(db.line(&predict(again)), "NULL");
    // The same in a transaction that is rolled back.
    db.run("BEGIN; DROP EXTENSION corgipile; ROLLBACK");
    assert_ne!(db.line(&predict(again)), "NULL");
}

#[test]
fn without_the_extension_the_loaded_library_changes_nothing() {
    let mut db = Database::empty();
    db.run("LOAD 'corgipile'; CREATE TABLE t AS SELECT i FROM generate_series(1, 100) i");
    assert_eq!(db.line("SELECT count(*) FROM t, generate_series(1, 3) g"), "300");
    db.fails_with("SELECT * FROM corgipile_train('t')", "42883");
    // A function of somebody else's that has the same name is not ours.
    db.run("CREATE FUNCTION corgipile_train(text) RETURNS TABLE (model_id bigint) LANGUAGE sql AS 'SELECT 1::bigint'");
    assert_eq!(db.lines("SELECT * FROM corgipile_train('t')"), ["1"]);
}

#[test]
fn the_functions_can_live_in_another_schema() {
    let mut db = Database::empty();
    db.run(
        "CREATE SCHEMA ml; CREATE EXTENSION corgipile SCHEMA ml;
            CREATE TABLE t AS SELECT i % 2 AS label, (i % 2)::real AS a, 1::real AS b FROM generate_series(1, 100) i",
    );
    db.fails_with("SELECT * FROM corgipile_train('t')", "42883");
    let plan = db.lines("EXPLAIN SELECT * FROM ml.corgipile_train('t', max_epochs => 3)");
    assert!(plan[0].contains("CorgiPileSGD"), "{plan:#?}");
    assert_eq!(db.lines("SELECT * FROM ml.corgipile_train('t', max_epochs => 3, name => 'm')").len(), 3);
    assert_eq!(
        db.lines("SELECT ml.corgipile_predict('m', ARRAY[1,1]), ml.corgipile_predict_label('m', ARRAY[1,1])"),
        ["1|1"]
    );
    assert_eq!(db.lines("SELECT * FROM ml.corgipile_evaluate('m', 't') LIMIT 4").len(), 4);
    assert_eq!(db.line("SELECT count(*) FROM ml.corgipile_shuffle(NULL::t)"), "100");
    assert_eq!(db.line("SELECT count(*) FROM corgipile.models"), "1");
}

#[test]
fn renamed_functions_still_work() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    db.run("ALTER FUNCTION corgipile_train RENAME TO fit");
    let plan = db.lines("EXPLAIN SELECT * FROM fit('t', max_epochs => 3)");
    assert!(plan[0].contains("CorgiPileSGD"), "{plan:#?}");
    assert_eq!(db.lines("SELECT * FROM fit('t', max_epochs => 3)").len(), 3);
}

#[test]
fn the_functions_have_the_documented_signatures() {
    let mut db = Database::new();
    let train = db.line(
        "SELECT pg_get_function_arguments(oid), pg_get_function_result(oid), provolatile, proparallel
         FROM pg_proc WHERE proname = 'corgipile_train'",
    );
    assert_eq!(
        train,
        "source text, model text DEFAULT NULL::text, label text DEFAULT NULL::text, \
         features text[] DEFAULT NULL::text[], \
         learning_rate double precision DEFAULT NULL::double precision, max_epochs integer DEFAULT NULL::integer, \
         shuffle text DEFAULT NULL::text, block_size text DEFAULT NULL::text, \
         buffer_size text DEFAULT NULL::text, \
         seed bigint DEFAULT NULL::bigint, name text DEFAULT NULL::text, options jsonb DEFAULT NULL::jsonb, \
         loader text DEFAULT NULL::text, workers integer DEFAULT NULL::integer, warm_start text DEFAULT NULL::text, \
         group_by text DEFAULT NULL::text, grid jsonb DEFAULT NULL::jsonb, \
         sample double precision DEFAULT NULL::double precision|\
         TABLE(model_id bigint, epoch integer, loss double precision, accuracy double precision, \
         learning_rate double precision, tuples bigint, seconds double precision, r2 double precision, validation_loss double precision, validation_score double precision, grid_point jsonb, group_value text)|v|u"
    );
    let shuffle = db.line(
        "SELECT pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc
         WHERE proname = 'corgipile_shuffle'",
    );
    assert_eq!(
        shuffle,
        "source anyelement, seed bigint DEFAULT NULL::bigint, block_size text DEFAULT 'auto'::text, \
         buffer_size text DEFAULT 'auto'::text, shuffle text DEFAULT 'corgipile'::text, \
         epoch integer DEFAULT 1, sample double precision DEFAULT NULL::double precision|SETOF anyelement"
    );
    let predict = db.lines(
        "SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc
         WHERE proname LIKE 'corgipile\\_predict%' ORDER BY proname, pg_get_function_arguments(oid) COLLATE \"C\"",
    );
    let mut expected = Vec::new();
    for (suffix, result) in [("", "double precision"), ("_label", "text"), ("_proba", "double precision[]")] {
        for model in ["model jsonb", "model_id bigint", "name text"] {
            let many = format!("{}[]", result.trim_end_matches("[]"));
            for (features, result) in [
                (r#""row" record"#, result),
                ("features anyarray", result),
                ("features corgipile.toc", &many),
                (r#"indices anyarray, "values" anycompatiblearray"#, result),
            ] {
                expected.push(format!("corgipile_predict{suffix}|{model}, {features}|{result}"));
            }
        }
    }
    assert_eq!(predict, expected);
}

#[test]
fn a_model_that_an_administrator_has_damaged_is_an_error_and_no_crash() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    let id = db.train("'t', max_epochs => 1, options => '{\"standardize\": true}'")[0].model_id;
    for damage in [
        "weights = '{}'",
        "weights = '{1,2}'",
        "weights = '{1,NULL,3}'",
        "weights = '{{1,2,3}}'",
        "feature_mean = '{}'",
        "feature_scale = '{1}'",
        "feature_scale = NULL",
        "classes = '{}'",
        "classes = '{a}'",
        "classes = '{0,1,2}'",
        "model = 'unknown'",
        "features = '{}'",
        "hyperparameters = '[]'",
        "hyperparameters = 'null'",
        "label_type = 'text'",
        "label_type = 0",
        "classes = '{x,y}'",
        "intercepts = '{NaN}'",
        "intercepts = '{}'",
        "intercepts = '{1,2}'",
        "intercepts = '{1,2,3}'",
        "intercepts = '{NULL}'",
        "classes = NULL",
        "model = 'linear'",
        "model = 'softmax'",
        "model = 'softmax', intercepts = '{1,2}', weights = '{1,2,3,4,5,6}', feature_mean = NULL, feature_scale = NULL",
        "model = 'softmax', intercepts = '{1,2}', weights = '{1,2,3,4,5}'",
        "feature_kind = 'array'",
        "feature_kind = 'sparse'",
        "feature_kind = 'sparse', index_base = 1",
        "feature_kind = 'sparse', index_base = -7, features = '{a,b}'",
        "feature_kind = ''",
        "index_base = 1",
        "categories = '[]'",
        "categories = 'null'",
        "categories = '1'",
        "categories = '{\"a\": \"x\"}'",
        "categories = '{\"a\": []}'",
        "categories = '{\"a\": [1]}'",
        "categories = '{\"a\": [\"x\", \"y\"]}'",
        "categories = '{\"a\": [\"x\", \"x\"]}'",
        "categories = '{\"z\": [\"x\"]}'",
        "features = '{a,a,a}'",
        "features = '{a,NULL,c}'",
        "hyperparameters = '{\"nulls\": 1, \"unseen\": [1e400]}'",
        "history = '{}'",
        "weights = '[5:7]={1,2,3}'",
    ] {
        db.run("BEGIN");
        // A constraint that refuses the damage is as good.
        if db.attempt(&format!("UPDATE corgipile.models SET {damage}")).is_ok() {
            for call in [
                format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])"),
                format!("SELECT corgipile_predict_label({id}, ARRAY[1,2,3])"),
                format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3])"),
                format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3], ARRAY[1,2,3])"),
                format!("SELECT corgipile_predict_proba({id}, t) FROM t"),
                format!("SELECT * FROM corgipile_evaluate({id}, 't')"),
                "SELECT * FROM corgipile.coefficients".to_owned(),
                "SELECT * FROM corgipile.training_history".to_owned(),
            ] {
                db.run("SAVEPOINT s");
                if let Err(failure) = db.attempt(&call) {
                    assert_ne!(failure.code, "closed", "{damage}, {call}");
                }
                db.run("ROLLBACK TO s");
            }
        }
        db.run("ROLLBACK");
    }
    assert_ne!(db.line(&predict(id)), "NULL");
}

#[test]
fn models_outlive_their_label_type_their_table_and_their_owner() {
    let mut db = Database::new();
    let user = db.role("user");
    db.run(&format!(
        "CREATE TYPE mood AS ENUM ('sad', 'happy');
         CREATE TABLE t AS SELECT (ARRAY['sad', 'happy'])[1 + i % 2]::mood AS label, i % 2 AS x
         FROM generate_series(1, 50) i;
         GRANT SELECT ON t TO {user}"
    ));
    let id = db.session_as(&user).train("'t', learning_rate => 0.5")[0].model_id;
    db.run(&format!("DROP TABLE t; DROP TYPE mood; DROP OWNED BY {user}; DROP ROLE {user}"));
    assert_eq!(db.line(&format!("SELECT corgipile_predict_label({id}, ARRAY[1])")), "happy");
    assert_eq!(db.models(), 1);
    let stranger = db.role("stranger");
    let mut session = db.session_as(&stranger);
    assert_eq!(session.models(), 0);
    session.fails_with(&format!("SELECT corgipile_predict_label({id}, ARRAY[1])"), "42501");
}
