//! Bad sources: what is not there, has other types, writes, or is no query.

use super::rejects;
use corgipile_tests::Database;

#[test]
fn a_missing_table_is_named() {
    let mut db = Database::new();
    rejects(&mut db, "'SELECT * FROM nowhere'", "42P01").says(&["nowhere"]);
    for name in ["''", "'  '", "'a.b.c.d'", "'\"'", "'.'", "'t; DROP TABLE t'"] {
        let failure = db.attempt(&format!("SELECT * FROM corgipile_train({name})")).expect_err(name);
        let known = ["42P01", "42601", "42602", "22023", "0A000"].contains(&failure.code.as_str());
        assert!(known, "{name}: {failure:#?}");
    }
}

#[test]
fn columns_are_told_apart_by_case_and_those_of_the_system_are_none() {
    let mut db = Database::with_small_table(100);
    rejects(&mut db, "'t', features => '{A}'", "42703").says(&["\"A\""]);
    rejects(&mut db, "'t', features => '{ctid}'", "42703");
}

#[test]
fn wrong_types_are_refused() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (label int, x real, xs point, ys real[]);
            INSERT INTO t VALUES (0, 1, '(0,0)', '{1}'), (1, 2, '(1,1)', '{2}')",
    );
    rejects(&mut db, "'t', label => 'ys', features => '{x}'", "42804").says(&["ys", "real[]"]);
    rejects(&mut db, "'t', features => '{xs}'", "42804").says(&["xs", "point"]);
}

#[test]
fn odd_lists_of_features_are_refused() {
    let mut db = Database::with_small_table(100);
    for (features, codes) in
        [("'{NULL}'", ["22004", "22023"]), ("'{a,NULL}'", ["22004", "22023"]), ("'{{a,b},{b,c}}'", ["22023", "2202E"])]
    {
        let failure = db.attempt(&format!("SELECT * FROM corgipile_train('t', features => {features})"));
        let failure = failure.expect_err(features);
        assert!(codes.contains(&failure.code.as_str()), "{features}: {failure:#?}");
    }
    assert_eq!(db.models(), 0);
}

#[test]
fn a_source_that_is_not_one_select_is_refused() {
    let mut db = Database::with_small_table(100);
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
    rejects(&mut db, "'SELECT * FROM t WHERE'", "42601");
    assert_eq!(db.line("SELECT count(*) FROM t"), "100");
    assert_eq!(db.models(), 0);
}

#[test]
fn a_source_that_writes_or_locks_is_refused() {
    let mut db = Database::with_small_table(100);
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
    let mut db = Database::with_small_table(100);
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
fn evaluate_refuses_bad_sources() {
    let mut db = Database::with_small_table(100);
    let id = db.train("'t', max_epochs => 2")[0].model_id;
    let mut fails = |source: &str, code: &str| {
        db.fails_with(&format!("SELECT * FROM corgipile_evaluate({id}, $${source}$$)"), code)
    };
    fails("nowhere", "42P01").says(&["nowhere"]);
    fails("SELECT label, a, b FROM t", "42703").says(&["c"]);
    fails("SELECT * FROM t; SELECT 1", "42601");
    fails("SELECT * FROM t FOR UPDATE", "0A000");
    fails("SELECT label, a::text AS a, b, c FROM t", "42804");
    fails("SELECT label, 'NaN'::real AS a, b, c FROM t", "22003");
    fails("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", "0A000");
    assert_eq!(db.line("SELECT count(*) FROM t"), "100");
}
