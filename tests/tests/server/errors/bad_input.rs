//! Bad input: every error with its SQLSTATE, message and hint, and nothing stored.

use corgipile_tests::{Database, clustered, small};

/// A database with the small table `t(id, label, a, b, c)`.
fn with_small_table() -> Database {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    db
}

/// Each way to call training: all give the same error.
fn rejects(db: &mut Database, arguments: &str, code: &str) -> corgipile_tests::Failure {
    let listed = db.rejects(&format!("SELECT corgipile_train({arguments})"), code);
    let failure = db.rejects(&format!("SELECT * FROM corgipile_train({arguments})"), code);
    assert_eq!(listed, failure, "in the select list and in FROM");
    failure
}

#[test]
fn a_missing_table_is_named() {
    let mut db = Database::new();
    rejects(&mut db, "'nowhere'", "42P01").says(&["nowhere"]);
    rejects(&mut db, "'public.nowhere'", "42P01").says(&["nowhere"]);
    rejects(&mut db, "'SELECT * FROM nowhere'", "42P01").says(&["nowhere"]);
    for name in ["''", "'  '", "'a.b.c.d'", "'\"'", "'.'", "'t; DROP TABLE t'"] {
        let failure = db.attempt(&format!("SELECT * FROM corgipile_train({name})")).expect_err(name);
        let known = ["42P01", "42601", "42602", "22023", "0A000"].contains(&failure.code.as_str());
        assert!(known, "{name}: {failure:#?}");
    }
}

#[test]
fn a_missing_column_is_named_and_the_columns_listed() {
    let mut db = with_small_table();
    rejects(&mut db, "'t', label => 'lable'", "42703").says(&["lable"]).hints(&["label", "a, b, c"]);
    rejects(&mut db, "'t', features => '{a,z}'", "42703").says(&["\"z\""]).hints(&["a, b, c"]);
    rejects(&mut db, "'SELECT a, b FROM t'", "42703").says(&["label"]).hints(&["a, b"]);
    rejects(&mut db, "'t', features => '{A}'", "42703").says(&["\"A\""]);
    rejects(&mut db, "'t', features => '{ctid}'", "42703");
}

#[test]
fn a_column_name_that_stands_for_two_columns_is_refused() {
    let mut db = with_small_table();
    let failure = rejects(&mut db, "'SELECT label, a, b AS a FROM t', features => '{a}'", "42702");
    failure.says(&["\"a\""]);
}

#[test]
fn wrong_types_are_refused() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (label int, day date, note text, x real, xs text[], ys real[]);
            INSERT INTO t VALUES (0, now(), 'a', 1, '{}', '{1}'), (1, now(), 'b', 2, '{}', '{2}')",
    );
    rejects(&mut db, "'t', label => 'day'", "42804").says(&["day", "date"]);
    rejects(&mut db, "'t', label => 'ys', features => '{x}'", "42804").says(&["ys", "real[]"]);
    rejects(&mut db, "'t', features => '{day}'", "42804").says(&["day", "date"]);
    rejects(&mut db, "'t', features => '{xs}'", "42804").says(&["xs", "text[]"]);
    rejects(&mut db, "'t', features => '{x,day}'", "42804").says(&["day", "date"]);
    rejects(&mut db, "'t', features => '{x,ys}'", "42804").says(&["ys", "real[]"]);
    rejects(&mut db, "'t', features => '{x,x}'", "22023").says(&["x", "twice"]);
}

#[test]
fn odd_lists_of_features_are_refused() {
    let mut db = with_small_table();
    for (features, codes) in [
        ("'{}'", ["22023", "42703"]),
        ("'{NULL}'", ["22004", "22023"]),
        ("'{a,NULL}'", ["22004", "22023"]),
        ("'{{a,b},{b,c}}'", ["22023", "2202E"]),
    ] {
        let failure = db.attempt(&format!("SELECT * FROM corgipile_train('t', features => {features})"));
        let failure = failure.expect_err(features);
        assert!(codes.contains(&failure.code.as_str()), "{features}: {failure:#?}");
    }
    assert_eq!(db.models(), 0);
}

#[test]
fn no_rows_are_an_error() {
    let mut db = with_small_table();
    rejects(&mut db, "'SELECT * FROM t WHERE false'", "22000").says(&["no rows"]);
    db.run("DELETE FROM t");
    rejects(&mut db, "'t'", "22000").says(&["no rows"]);
    db.run("TRUNCATE t");
    rejects(&mut db, "'t'", "22000").says(&["no rows"]);
    rejects(&mut db, "'t', options => '{\"standardize\": true}'", "22000").says(&["no rows"]);
}

#[test]
fn rows_that_are_all_skipped_are_no_rows() {
    let mut db = with_small_table();
    db.run("UPDATE t SET a = NULL");
    rejects(&mut db, "'t', options => '{\"nulls\": \"skip\"}'", "22000").says(&["no rows"]);
    rejects(&mut db, "'t', options => '{\"nulls\": \"skip\", \"standardize\": true}'", "22000").says(&["no rows"]);
}

#[test]
fn one_class_is_an_error_that_names_it() {
    let mut db = with_small_table();
    db.run("UPDATE t SET label = 4");
    rejects(&mut db, "'t'", "22000").says(&["label", "4"]).hints(&["two classes"]);
    rejects(&mut db, "'t', 'svm'", "22000").says(&["4"]);
}

#[test]
fn three_classes_are_an_error_that_names_them() {
    let mut db = with_small_table();
    db.run("UPDATE t SET label = 7 WHERE id = 50");
    let failure = rejects(&mut db, "'t', seed => 1", "22000");
    failure.says(&["label", "0", "1", "7"]).hints(&["two classes"]);
    db.run("ALTER TABLE t ALTER label TYPE text USING 'class ' || label");
    rejects(&mut db, "'t', seed => 1", "22000").says(&["class 7"]);
}

#[test]
fn a_null_is_an_error_that_names_the_row() {
    let mut db = with_small_table();
    let ctid = |db: &mut Database| db.line("SELECT ctid FROM t WHERE a IS NULL OR label IS NULL");
    db.run("UPDATE t SET label = NULL WHERE id = 30");
    let at = ctid(&mut db);
    rejects(&mut db, "'t'", "22004").says(&["label is NULL", &at]).hints(&["nulls", "skip"]);
    db.run("UPDATE t SET label = 1, a = NULL WHERE id = 30");
    let at = ctid(&mut db);
    rejects(&mut db, "'t'", "22004").says(&["NULL", &at]).hints(&["nulls", "skip"]);
    rejects(&mut db, "'t', options => '{\"standardize\": true}'", "22004").says(&["NULL", &at]);
    rejects(&mut db, "'SELECT * FROM (SELECT * FROM t OFFSET 0) s', features => '{a,b}'", "22004").says(&["NULL"]);
}

#[test]
fn a_null_array_and_a_null_element_are_errors_that_name_the_row() {
    let mut db = Database::new();
    clustered(&mut db, "t", 200);
    db.run("UPDATE t SET features_v = NULL WHERE id = 77");
    let at = db.line("SELECT ctid FROM t WHERE id = 77");
    rejects(&mut db, "'t'", "22004").says(&["features are NULL", &at]).hints(&["skip"]);
    db.run("UPDATE t SET features_v = '{1,NULL,3,4,5}' WHERE id = 77");
    let at = db.line("SELECT ctid FROM t WHERE id = 77");
    rejects(&mut db, "'t'", "22004").says(&["NULL", "2", &at]).hints(&["skip"]);
}

#[test]
fn skipped_rows_are_counted_once_and_left_out() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    db.run(
        "UPDATE t SET features_v = NULL WHERE id % 100 = 1; UPDATE t SET label = NULL WHERE id % 100 = 2;
            UPDATE t SET features_v[3] = NULL WHERE id % 100 = 3",
    );
    for options in ["{\"nulls\": \"skip\"}", "{\"nulls\": \"skip\", \"standardize\": true}"] {
        let epochs = db.train(&format!("'t', max_epochs => 3, seed => 1, options => '{options}'"));
        assert!(epochs.iter().all(|e| e.tuples == 970), "{epochs:?}");
        let id = epochs[0].model_id;
        assert_eq!(db.line(&format!("SELECT skipped FROM corgipile.models WHERE model_id = {id}")), "30");
        let evaluation = db.evaluate(id, "t");
        assert_eq!((evaluation.tuples, evaluation.skipped), (970.0, 30.0));
    }
}

#[test]
fn skipping_gives_the_model_of_a_table_without_those_rows() {
    let mut db = with_small_table();
    db.run("UPDATE t SET b = NULL WHERE id % 9 = 0");
    let order = "shuffle => 'no_shuffle', features => '{a,b,c}'";
    let skipped = db.trained(&format!("'t', {order}, options => '{{\"nulls\": \"skip\"}}'"));
    let without = db.trained(&format!("'SELECT * FROM t WHERE b IS NOT NULL', {order}"));
    assert_eq!(skipped.bits(), without.bits());
}

#[test]
fn nan_and_infinity_are_errors_that_name_the_row() {
    let mut db = Database::new();
    for kind in ["real", "double precision", "numeric"] {
        for value in ["NaN", "Infinity", "-Infinity"] {
            db.run(&format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT i AS id, i % 2 AS label, i::{kind} AS a,
                        ARRAY[i, i]::{kind}[] AS xs
                 FROM generate_series(1, 50) i; UPDATE t SET a = '{value}', xs[2] = '{value}' WHERE id = 20"
            ));
            let at = db.line("SELECT ctid FROM t WHERE id = 20");
            rejects(&mut db, "'t', features => '{a}', learning_rate => 1e-4", "22003").says(&["a", &at]);
            rejects(&mut db, "'t', features => '{xs}', learning_rate => 1e-4", "22003").says(&["2", &at]);
            rejects(&mut db, "'t', features => '{a}', options => '{\"standardize\": true}'", "22003").says(&[&at]);
        }
    }
    for kind in ["real", "double precision", "numeric"] {
        db.run(&format!(
            "DROP TABLE t; CREATE TABLE t AS SELECT i AS id, (i % 2)::{kind} AS label, i AS a
             FROM generate_series(1, 50) i;
             UPDATE t SET label = 'NaN' WHERE id = 20"
        ));
        let at = db.line("SELECT ctid FROM t WHERE id = 20");
        rejects(&mut db, "'t', features => '{a}'", "22003").says(&["label", &at]);
    }
}

#[test]
fn values_beyond_the_range_of_real_are_errors() {
    let mut db = Database::new();
    for kind in ["double precision", "numeric"] {
        db.run(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT i AS id, i % 2 AS label, i::{kind} AS a,
             ARRAY[i]::{kind}[] AS xs
             FROM generate_series(1, 50) i; UPDATE t SET a = '1e39', xs[1] = '-1e200' WHERE id = 20"
        ));
        let at = db.line("SELECT ctid FROM t WHERE id = 20");
        rejects(&mut db, "'t', features => '{a}'", "22003").says(&["range", &at]);
        rejects(&mut db, "'t', features => '{xs}'", "22003").says(&["range", &at]);
    }
    // Values too small for real are zero, as in a cast that PostgreSQL would refuse: nothing is lost that matters.
    db.run(
        "DROP TABLE t; CREATE TABLE t AS SELECT i AS id, i % 2 AS label, i::float8 / 50 AS a
            FROM generate_series(1, 50) i;
            UPDATE t SET a = 1e-60 WHERE id = 20",
    );
    db.train("'t', features => '{a}'");
}

#[test]
fn a_diverging_loss_names_the_epoch_and_suggests_a_smaller_learning_rate() {
    let mut db = with_small_table();
    db.run("UPDATE t SET a = a * 1e18");
    for model in ["logistic", "svm"] {
        let failure = rejects(&mut db, &format!("'t', '{model}', learning_rate => 1e25, seed => 1"), "22003");
        failure.says(&["epoch"]).hints(&["learning_rate"]);
        let number = failure.message.split_whitespace().any(|w| w.trim_end_matches(':').parse::<u32>().is_ok());
        assert!(number, "{failure:#?}");
    }
}

#[test]
fn rows_of_different_length_are_errors_that_name_the_row() {
    let mut db = Database::new();
    for (value, says) in [("{1,2}", "2"), ("{1,2,3,4,5,6}", "6"), ("{}", "")] {
        clustered(&mut db, "t", 200);
        db.run(&format!("UPDATE t SET features_v = '{value}' WHERE id = 150"));
        let at = db.line("SELECT ctid FROM t WHERE id = 150");
        rejects(&mut db, "'t', shuffle => 'no_shuffle'", "2202E").says(&[&at, says]).hints(&["same length"]);
        rejects(&mut db, "'t', options => '{\"standardize\": true}', shuffle => 'no_shuffle'", "2202E").says(&[&at]);
        db.run("DROP TABLE t");
    }
}

#[test]
fn multi_dimensional_arrays_are_errors_and_other_lower_bounds_are_not() {
    let mut db = Database::new();
    clustered(&mut db, "t", 200);
    let expected = db.trained("'t', shuffle => 'no_shuffle', max_epochs => 2").bits();
    db.run(
        "UPDATE t SET features_v = ('[7:11]=' || features_v::text)::real[] WHERE id % 2 = 0;
            CREATE TABLE ordered AS SELECT * FROM t ORDER BY id",
    );
    assert_eq!(db.trained("'ordered', shuffle => 'no_shuffle', max_epochs => 2").bits(), expected);
    db.run("UPDATE t SET features_v = '{{1,2,3,4,5}}' WHERE id = 10");
    let at = db.line("SELECT ctid FROM t WHERE id = 10");
    rejects(&mut db, "'t'", "2202E").says(&["dimensions", &at]).hints(&["one dimension"]);
}

#[test]
fn unknown_names_are_errors_that_list_the_known() {
    let mut db = with_small_table();
    rejects(&mut db, "'t', 'randomforest'", "22023").says(&["model", "randomforest"]).hints(&["logistic", "svm"]);
    rejects(&mut db, "'t', 'Logistic'", "22023").says(&["Logistic"]);
    rejects(&mut db, "'t', ''", "22023");
    let failure = rejects(&mut db, "'t', shuffle => 'fisher_yates'", "22023");
    failure.says(&["fisher_yates"]).hints(&["no_shuffle", "block_only", "corgipile"]);
    let failure = rejects(&mut db, "'t', options => '{\"standardise\": true}'", "22023");
    failure.says(&["standardise"]).hints(&["standardize", "l2", "decay", "nulls"]);
}

#[test]
fn options_of_the_wrong_kind_or_range_are_refused() {
    let mut db = with_small_table();
    for options in [
        "[]",
        "1",
        "\"x\"",
        "null",
        "true",
        "{\"standardize\": 1}",
        "{\"standardize\": \"yes\"}",
        "{\"standardize\": null}",
        "{\"l2\": -1}",
        "{\"l2\": \"0.1\"}",
        "{\"l2\": true}",
        "{\"l2\": 1e400}",
        "{\"l2\": null}",
        "{\"decay\": 0}",
        "{\"decay\": 1.01}",
        "{\"decay\": -0.5}",
        "{\"decay\": []}",
        "{\"nulls\": \"ignore\"}",
        "{\"nulls\": true}",
        "{\"nulls\": null}",
    ] {
        rejects(&mut db, &format!("'t', options => '{options}'"), "22023");
    }
    rejects(&mut db, "'t', options => '{\"nulls\": \"ignore\"}'", "22023").says(&["nulls"]);
    rejects(&mut db, "'t', options => '{\"decay\": 2}'", "22023").says(&["decay"]);
    rejects(&mut db, "'t', learning_rate => 1, options => '{\"l2\": 5}'", "22023").says(&["l2"]);
    assert_eq!(db.train("'t', max_epochs => 1, options => '{}'").len(), 1);
}

#[test]
fn sizes_that_are_nonsense_are_refused() {
    let mut db = with_small_table();
    for size in
        ["", "big", "0", "0kB", "-8kB", "1kB", "8191", "64 KiB", "1e3kB", "NaN", "99999999999999999999TB", "10%"]
    {
        rejects(&mut db, &format!("'t', block_size => '{size}'"), "22023").says(&["block_size"]);
    }
    for size in ["", "auto%", "0", "0%", "-1%", "-64MB", "101%", "1000%", "NaN%", "%", "ten%", "0MB", "64 parsecs"] {
        rejects(&mut db, &format!("'t', buffer_size => '{size}'"), "22023").says(&["buffer_size"]);
    }
    for size in ["1MB", "64kB", "8192", "8kB", "1.5MB", " 64kB "] {
        db.train(&format!("'t', max_epochs => 1, block_size => '{size}'"));
    }
    for size in ["auto", "0.5%", "100%", "64kB", "1TB", " 10 % "] {
        db.train(&format!("'t', max_epochs => 1, buffer_size => '{size}'"));
    }
}

#[test]
fn learning_rates_and_epochs_out_of_range_are_refused() {
    let mut db = with_small_table();
    for rate in ["0", "-0.1", "'NaN'", "'Infinity'", "'-Infinity'"] {
        rejects(&mut db, &format!("'t', learning_rate => {rate}"), "22023").says(&["learning_rate"]);
    }
    for epochs in ["0", "-1", "-2147483648"] {
        rejects(&mut db, &format!("'t', max_epochs => {epochs}"), "22023").says(&["max_epochs"]);
    }
}

#[test]
fn a_null_argument_is_named_unless_null_is_its_default() {
    let mut db = with_small_table();
    rejects(&mut db, "NULL", "22004").says(&["source"]);
    rejects(&mut db, "NULL::text", "22004").says(&["source"]);
    for argument in ["model", "label", "max_epochs", "shuffle"] {
        let sql = format!("SELECT corgipile_train_uda('t', {argument} => NULL)");
        db.rejects(&sql, "22004").says(&[argument]);
    }
    let all =
        "model => NULL, label => NULL, features => NULL, learning_rate => NULL, max_epochs => NULL, shuffle => NULL,
               block_size => NULL, buffer_size => NULL, seed => NULL, name => NULL, options => NULL, loader => NULL,
               workers => NULL, warm_start => NULL, group_by => NULL, grid => NULL, sample => NULL";
    assert_eq!(db.train(&format!("'t', {all}")).len(), 20);
}

#[test]
fn a_name_is_compared_exactly() {
    let mut db = with_small_table();
    db.train("'t', max_epochs => 1, name => 'fraud'");
    db.train("'t', max_epochs => 1, name => 'Fraud'");
    assert_eq!(db.lines("SELECT DISTINCT version FROM corgipile.models"), ["1"]);
    db.train("'t', max_epochs => 1, name => 'größer; DROP TABLE t; --'");
}

#[test]
fn a_source_that_is_not_one_select_is_refused() {
    let mut db = with_small_table();
    for source in [
        "SELECT * FROM t; SELECT * FROM t",
        "SELECT 1; DROP TABLE t",
        "WITH",
        "SELECT",
        "SELECT * FROM t WHERE",
        "(SELECT * FROM t",
        "VALUES",
        "SELECT * INTO u FROM t",
    ] {
        let failure = db.attempt(&format!("SELECT * FROM corgipile_train($${source}$$)")).expect_err(source);
        assert!(["42601", "42703", "42P01", "0A000"].contains(&failure.code.as_str()), "{source}: {failure:#?}");
    }
    rejects(&mut db, "'SELECT * FROM t; SELECT * FROM t'", "42601");
    rejects(&mut db, "'SELECT * FROM t WHERE'", "42601");
    assert_eq!(db.line("SELECT count(*) FROM t"), "100");
    assert_eq!(db.models(), 0);
}

#[test]
fn a_source_that_writes_or_locks_is_refused() {
    let mut db = with_small_table();
    for source in [
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
        "WITH i AS (INSERT INTO t VALUES (1000, 1, 1, 1, 1) RETURNING *) SELECT * FROM i",
        "WITH u AS (UPDATE t SET a = 0 RETURNING *) SELECT * FROM u",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t FOR SHARE",
        "SELECT * FROM (SELECT * FROM t FOR UPDATE) s",
    ] {
        rejects(&mut db, &format!("'{source}'"), "0A000");
    }
    for source in
        ["DELETE FROM t RETURNING *", "INSERT INTO t VALUES (1000, 1, 1, 1, 1)", "COPY t TO STDOUT", "EXPLAIN SELECT 1"]
    {
        let failure = db.attempt(&format!("SELECT * FROM corgipile_train('{source}')")).expect_err(source);
        assert!(["42601", "42P01", "42602", "0A000"].contains(&failure.code.as_str()), "{source}: {failure:#?}");
    }
    assert_eq!(db.line("SELECT count(*), count(*) FILTER (WHERE a = 0) FROM t"), "100|0");
}

#[test]
fn an_error_of_the_source_passes_through() {
    let mut db = with_small_table();
    rejects(&mut db, "'SELECT label, a / (a - a) AS x FROM t'", "22012");
    rejects(&mut db, "'SELECT label, nofunction(a) AS x FROM t'", "42883");
    db.run(
        "CREATE FUNCTION fails(real) RETURNS real LANGUAGE plpgsql AS $$ BEGIN
           RAISE EXCEPTION USING errcode = 'check_violation', message = 'boom', detail = 'a detail', hint = 'a hint';
         END $$",
    );
    let failure = rejects(&mut db, "'SELECT label, fails(a) AS x FROM t'", "23514");
    assert_eq!((&*failure.message, &*failure.detail, &*failure.hint), ("boom", "a detail", "a hint"));
}

#[test]
fn a_read_only_transaction_trains_nothing() {
    let mut db = with_small_table();
    db.run("SET default_transaction_read_only = on");
    rejects(&mut db, "'t'", "25006");
    // It is said before hours of training.
    rejects(&mut db, "'t', max_epochs => 1000000", "25006");
    db.run("SET default_transaction_read_only = off");
    db.train("'t', max_epochs => 1");
    db.run("SET default_transaction_read_only = on");
    assert_eq!(db.line("SELECT corgipile_predict(max(model_id), ARRAY[1,2,3]) IS NOT NULL FROM corgipile.models"), "t");
    assert_eq!(
        db.lines("SELECT e.* FROM corgipile.models, corgipile_evaluate(model_id, 't') e WHERE metric = 'loss'").len(),
        1
    );
    assert_eq!(db.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), "100");
}

#[test]
fn a_model_that_does_not_exist_is_an_error() {
    let mut db = Database::new();
    db.fails_with("SELECT corgipile_predict(12345, ARRAY[1.0])", "42704").says(&["12345"]);
    for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
        db.fails_with(&format!("SELECT {function}('nobody', ARRAY[1.0])"), "42704").says(&["nobody"]);
        db.fails_with(&format!("SELECT {function}(-1, ARRAY[1.0])"), "42704");
    }
    db.fails_with("SELECT * FROM corgipile_evaluate('nobody', 'SELECT 1')", "42704");
    db.fails_with("SELECT * FROM corgipile_evaluate(9, 'SELECT 1')", "42704");
}

#[test]
fn predict_refuses_what_the_model_cannot_take() {
    let mut db = with_small_table();
    let id = db.train("'t', max_epochs => 2")[0].model_id;
    for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
        let mut fails =
            |features: &str, code: &str| db.fails_with(&format!("SELECT {function}({id}, {features})"), code);
        fails("ARRAY[1.0, 2]", "2202E").says(&["3", "2"]);
        fails("ARRAY[1.0, 2, 3, 4]", "2202E").says(&["3", "4"]);
        fails("'{}'::real[]", "2202E");
        fails("'{{1,2,3}}'::real[]", "2202E");
        fails("ARRAY[1.0, NULL, 3]", "22004").says(&["2"]);
        fails("ARRAY[1, 'NaN', 3]::real[]", "22003").says(&["2"]);
        fails("ARRAY[1, 'Infinity', 3]::float8[]", "22003");
        fails("ARRAY[1, 1e39, 3]::float8[]", "22003");
        fails("ARRAY['a', 'b', 'c']", "42804");
        assert_eq!(db.line(&format!("SELECT {function}({id}, NULL::real[])")), "NULL");
        assert_eq!(db.line(&format!("SELECT {function}(NULL::bigint, ARRAY[1,2,3])")), "NULL");
    }
}

#[test]
fn proba_of_an_svm_is_refused_with_what_to_do() {
    let mut db = with_small_table();
    let id = db.train("'t', 'svm', max_epochs => 2")[0].model_id;
    db.fails_with(&format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3])"), "0A000").hints(&["logistic"]);
    assert_ne!(db.line(&format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])")), "NULL");
}

#[test]
fn evaluate_refuses_bad_sources() {
    let mut db = with_small_table();
    let id = db.train("'t', max_epochs => 2")[0].model_id;
    let mut fails = |source: &str, code: &str| {
        db.fails_with(&format!("SELECT * FROM corgipile_evaluate({id}, $${source}$$)"), code)
    };
    fails("nowhere", "42P01").says(&["nowhere"]);
    fails("SELECT a, b, c FROM t", "42703").says(&["label"]);
    fails("SELECT label, a, b FROM t", "42703").says(&["c"]);
    fails("SELECT * FROM t WHERE false", "22000").says(&["no rows"]);
    fails("SELECT * FROM t; SELECT 1", "42601");
    fails("SELECT * FROM t FOR UPDATE", "0A000");
    fails("SELECT label, a::text AS a, b, c FROM t", "42804");
    fails("SELECT label, 'NaN'::real AS a, b, c FROM t", "22003");
    fails("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", "0A000");
    assert_eq!(db.line("SELECT count(*) FROM t"), "100");
}

#[test]
fn a_failure_in_a_later_epoch_stores_nothing_and_the_session_goes_on() {
    let mut db = with_small_table();
    db.run(
        "CREATE SEQUENCE calls; CREATE FUNCTION late(real) RETURNS real LANGUAGE plpgsql AS
            'BEGIN IF nextval(''calls'') > 90 THEN RAISE EXCEPTION ''late''; END IF; RETURN $1; END'",
    );
    db.rejects("SELECT * FROM corgipile_train('SELECT label, late(a) AS x FROM t')", "P0001").says(&["late"]);
    assert_eq!(db.train("'t', max_epochs => 2").len(), 2);
}

#[test]
fn arrays_that_are_all_empty_are_an_error_that_names_a_row() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i % 2 AS label, '{}'::real[] AS x FROM generate_series(1, 10) i");
    db.rejects("SELECT * FROM corgipile_train('t')", "2202E").says(&["empty", "(0,"]);
}

#[test]
fn too_many_epochs_and_too_long_names_are_refused_before_training() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    rejects(&mut db, "'t', max_epochs => 1000001", "22023").says(&["max_epochs", "1000000"]);
    rejects(&mut db, "'t', max_epochs => 2147483647", "22023").says(&["max_epochs"]);
    rejects(&mut db, "'t', name => repeat('x', 1025)", "22023").says(&["name", "1024"]);
    db.train("'t', max_epochs => 1, name => repeat('x', 1024)");
}

#[test]
fn a_name_that_another_session_takes_meanwhile_gets_another_version() {
    let mut db = Database::new();
    small(&mut db, "t", 100);
    let mut other = db.session();
    other.run("BEGIN; SELECT FROM corgipile_train('t', max_epochs => 1, name => 'm')");
    let mut late = db.session();
    let thread = std::thread::spawn(move || {
        late.run("SELECT FROM corgipile_train('t', max_epochs => 1, name => 'm')");
    });
    // The late one has trained when it waits for the first to end.
    while db.line("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'object'") == "0" {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    other.run("COMMIT");
    thread.join().expect("the late session trains");
    assert_eq!(db.lines("SELECT version FROM corgipile.models ORDER BY 1"), ["1", "2"]);
}

#[test]
fn a_database_with_another_encoding_is_refused() {
    let mut db = Database::new();
    let name = format!("{}_latin1", db.name());
    db.run(&format!("CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"));
    let psql = |sql: &str| {
        let mut psql = corgipile_tests::program("psql");
        psql.args(["-Xq", "-v", "VERBOSITY=verbose", "-d", &name, "-c", sql]);
        String::from_utf8_lossy(&psql.output().expect("psql runs").stderr).into_owned()
    };
    assert_eq!(psql("CREATE EXTENSION corgipile; CREATE TABLE t (label int, a real)"), "");
    for call in ["corgipile_train('t')", "corgipile_train('tä')", "corgipile_shuffle(NULL::t)"] {
        let message = psql(&format!("SELECT * FROM {call}"));
        assert!(message.contains("0A000") && message.contains("encoding is not UTF8"), "{call}: {message}");
    }
    db.run(&format!("DROP DATABASE {name}"));
}
