//! The extension's objects: created, moved, renamed, dropped while they are in use, and as documented.

use corgipile_tests::Database;

fn predict(id: i64) -> String {
    format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])")
}

/// Calls that store something; with `gate(a)` for a feature, they wait before they have read a row.
fn calls_that_store(feature: &str) -> Vec<String> {
    // a training that has to look for features, or for its model, reads some rows before it locks the extension
    let source = format!("$$SELECT label, {feature} AS a FROM t$$, features => '{{a}}'");
    vec![
        format!("SELECT count(*) FROM corgipile_train({source}, model => 'logistic', max_epochs => 2)"),
        format!(
            "SELECT count(*) FROM corgipile_train({source}, model => 'logistic', max_epochs => 2, name => 'named')"
        ),
        format!(
            "SELECT count(*) FROM (SELECT corgipile_train({source}, model => 'logistic', max_epochs => 2, grid => '{{\"l2\": [0, 1]}}')) s"
        ),
        format!("SELECT count(*) FROM corgipile_train({source}, model => 'mlp', max_epochs => 2)"),
        format!("SELECT count(*) FROM corgipile_train_uda({source}, max_epochs => 2)"),
        format!("SELECT count(*) FROM corgipile_train({source}, max_epochs => 3, warm_start => 'm')"),
        format!("SELECT tuples FROM corgipile_compress({source}, destination => 'compressed')"),
        format!(
            "SELECT tuples FROM corgipile_compress($$SELECT label, '{{1}}'::int[] AS k, ARRAY[{feature}] AS v FROM t$$,
                                                   'sparse', features => '{{k,v}}')"
        ),
    ]
}

#[test]
fn dropping_the_extension_waits_for_whoever_stores_something() {
    let mut db = Database::with_small_table(100);
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
        let calling = db.session().in_background(&call);
        db.wait_for_waiters(1);
        hurried.fails_with("DROP EXTENSION corgipile CASCADE", "55P03");
        gatekeeper.run("SELECT pg_advisory_unlock(1)");
        let result = calling.join().1;
        assert!(result.is_ok(), "{call}: {result:#?}");
    }
    // A model that was imported, and not yet committed.
    let mut importing = db.session();
    importing.run("BEGIN; SELECT corgipile_import(corgipile_export('m'), 'again')");
    hurried.fails_with("DROP EXTENSION corgipile CASCADE", "55P03");
    importing.run("COMMIT");
    // Who waits drops in the end, and has not kept the training from storing its model.
    gatekeeper.run("SELECT pg_advisory_lock(1)");
    let training = db.session().in_background(&calls_that_store("gate(a)")[1]);
    db.wait_for_waiters(1);
    let dropping = db.session().in_background("DROP EXTENSION corgipile CASCADE");
    db.wait_for_waiters(2);
    // Meanwhile no one waits who only reads models.
    assert_eq!(db.line("SELECT corgipile_predict('m', ARRAY[1]) IS NULL"), "f");
    gatekeeper.run("SELECT pg_advisory_unlock(1)");
    for thread in [training, dropping] {
        let result = thread.join().1;
        assert!(result.is_ok(), "{result:#?}");
    }
    db.fails_with(&calls_that_store("a")[0], "42883");
}

#[test]
fn who_may_not_drop_the_extension_has_no_training_wait() {
    let mut db = Database::with_small_table(100);
    let (alice, bob) = (db.role("alice"), db.role("bob"));
    db.run("GRANT SELECT ON t TO PUBLIC");
    let mut holding = db.session_as(&alice);
    holding.run("BEGIN; SELECT corgipile_train('t', max_epochs => 1, name => 'm')");
    let dropping = db.session_as(&alice).in_background("DROP EXTENSION corgipile");
    db.wait_for_waiters(1);
    db.session_as(&bob).train("'t', max_epochs => 1, name => 'm'");
    holding.run("COMMIT");
    assert_eq!(dropping.join().1.expect_err("she is not its owner").code, "42501");
    assert_eq!(db.models(), 2);
}

#[test]
fn who_waits_for_the_extension_to_be_dropped_is_told_so() {
    let mut db = Database::with_small_table(100);
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
    let threads: Vec<_> = calls.iter().map(|call| db.session().in_background(call)).collect();
    db.wait_for_waiters(calls.len() as i64);
    db.run("COMMIT");
    for (thread, call) in threads.into_iter().zip(&calls) {
        let failure = thread.join().1.expect_err(call);
        assert_eq!(failure.code, "42P01", "{call}: {failure:#?}");
        failure.says(&["relation corgipile.", "does not exist"]).hints(&["dropped"]);
    }
}

#[test]
fn the_extension_can_be_dropped_and_created_again_in_one_session() {
    let mut db = Database::with_small_table(100);
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
    let mut db = Database::with_small_table(100);
    db.run(
        "DO $$ BEGIN
           EXECUTE format('ALTER FUNCTION %s RENAME TO fit', (SELECT oid::regprocedure FROM pg_proc
                           WHERE proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype));
         END $$",
    );
    let plan = db.lines("EXPLAIN SELECT * FROM fit('t', max_epochs => 3)");
    assert!(plan[0].contains("CorgiPileSGD"), "{plan:#?}");
    assert_eq!(db.lines("SELECT * FROM fit('t', max_epochs => 3)").len(), 3);
}

#[test]
fn the_functions_have_the_documented_signatures() {
    let mut db = Database::new();
    let train = db.line(
        "SELECT pg_get_function_arguments(oid), pg_get_function_result(oid), provolatile, proparallel
         FROM pg_proc WHERE proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype",
    );
    assert_eq!(
        train,
        "source text, model text DEFAULT NULL::text, label text DEFAULT NULL::text, \
         features text[] DEFAULT NULL::text[], \
         learning_rate double precision DEFAULT NULL::double precision, max_epochs integer DEFAULT NULL::integer, \
         shuffle text DEFAULT NULL::text, block_size text DEFAULT NULL::text, \
         buffer_size text DEFAULT NULL::text, \
         seed bigint DEFAULT NULL::bigint, name text DEFAULT NULL::text, options jsonb DEFAULT NULL::jsonb, \
         prefetch text DEFAULT NULL::text, workers integer DEFAULT NULL::integer, warm_start text DEFAULT NULL::text, \
         group_by text DEFAULT NULL::text, grid jsonb DEFAULT NULL::jsonb, \
         sample double precision DEFAULT NULL::double precision, batch_size integer DEFAULT NULL::integer, \
         l1 double precision DEFAULT NULL::double precision, l2 double precision DEFAULT NULL::double precision, \
         optimizer text DEFAULT NULL::text, schedule text DEFAULT NULL::text, standardize boolean DEFAULT NULL::boolean, \
         nulls text DEFAULT NULL::text, class_weight text DEFAULT NULL::text, hidden_layer_sizes integer[] DEFAULT NULL::integer[], \
         validation_fraction double precision DEFAULT NULL::double precision, patience integer DEFAULT NULL::integer, \
         \"verbose\" boolean DEFAULT NULL::boolean, shared_scan boolean DEFAULT NULL::boolean, servers text DEFAULT NULL::text, solver text DEFAULT NULL::text, statistics text DEFAULT NULL::text, \
         unseen_group text DEFAULT NULL::text, positive text DEFAULT NULL::text|\
         TABLE(model_id bigint, epoch integer, loss double precision, accuracy double precision, \
         learning_rate double precision, tuples bigint, seconds double precision, r2 double precision, validation_loss double precision, validation_score double precision, grid_point jsonb, group_value text)|v|u"
    );
    let shuffle = db.line(
        "SELECT pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc
         WHERE proname = 'corgipile_shuffle'",
    );
    assert_eq!(
        shuffle,
        "source anyelement, seed bigint DEFAULT NULL::bigint, block_size text DEFAULT NULL::text, \
         buffer_size text DEFAULT NULL::text, shuffle text DEFAULT NULL::text, \
         epoch integer DEFAULT NULL::integer, sample double precision DEFAULT NULL::double precision, \
         shared_scan boolean DEFAULT NULL::boolean|SETOF anyelement"
    );
    let predict = db.lines(
        "SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid) FROM pg_proc
         WHERE proname IN ('corgipile_predict', 'corgipile_predict_label', 'corgipile_predict_proba') ORDER BY proname, pg_get_function_arguments(oid) COLLATE \"C\"",
    );
    let policies = ", nulls text DEFAULT 'as trained'::text, handle_unknown text DEFAULT 'as trained'::text";
    let mut expected = Vec::new();
    for (suffix, result) in [("", "double precision"), ("_label", "text"), ("_proba", "double precision[]")] {
        for model in ["model jsonb", "model_id bigint", "name text"] {
            let many = format!("{}[]", result.trim_end_matches("[]"));
            for (arguments, result) in [
                (r#"feature_1 "any", feature_2 "any", VARIADIC features "any""#.to_owned(), result),
                (format!(r#"features "any"{policies}"#), result),
                ("features corgipile.toc".to_owned(), &many),
                ("features text".to_owned(), result),
                (format!(r#"indices "any", feature_values "any"{policies}"#), result),
            ] {
                expected.push(format!("corgipile_predict{suffix}|{model}, {arguments}|{result}"));
            }
        }
    }
    assert_eq!(predict, expected);
}
