//! Predictions from rows, whose columns are found by name, with categories.

use super::arrays::assert_near;
use corgipile_tests::stored::{DENSE, MIXED, SPARSE};
use corgipile_tests::{Database, Session, Stored, skip};

/// A table with rows of numbers and categories.
pub fn levels(db: &mut Session) {
    db.run(
        "CREATE TYPE level AS ENUM ('low', 'mid', 'high', 'extreme');
         CREATE TABLE t (id int PRIMARY KEY, b numeric, dropped text, level level, note text, a smallint);
         ALTER TABLE t DROP COLUMN dropped;
         INSERT INTO t SELECT i, i / 7.0, (ARRAY['low', 'mid', 'high'])[1 + i % 3]::level, repeat('x', i), i - 5
         FROM generate_series(1, 60) i",
    );
}

/// What [`MIXED`] predicts for rows of [`levels`].
const MIXED_VALUE: &str =
    "0.5 * a + CASE level::text WHEN 'low' THEN 10 WHEN 'high' THEN 20 ELSE 40 END - 3 * b + 0.25";

#[test]
fn the_columns_of_a_row_are_found_by_name() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "m");
    for from in [
        "t",
        "(SELECT * FROM t) t",
        "(SELECT 1 AS one, a::float8, b::real, level::text FROM t) t",
        "(SELECT level::varchar(10), a::bigint, NULL::text AS note, b FROM t OFFSET 0) t",
        "(SELECT level::text::char(20) AS level, a::real, b FROM t) t",
        "(SELECT a, b, level FROM t UNION ALL SELECT a, b, level FROM t) t",
        "(WITH x AS MATERIALIZED (SELECT * FROM t) SELECT * FROM x) t",
    ] {
        let wrong = db.lines(&format!(
            "SELECT id FROM (SELECT row_number() OVER () AS id, corgipile_predict('m', t) AS z, {MIXED_VALUE} AS y FROM {from}) s
             WHERE abs(z - y) > 1e-4 OR z IS NULL"
        ));
        assert!(wrong.is_empty(), "{from}: {wrong:?}");
    }
    db.run(
        "CREATE TYPE triple AS (a real, level text, b real); CREATE DOMAIN checked AS triple CHECK (VALUE IS NOT NULL)",
    );
    for value in [
        "ROW(1, 'mid', 2)::triple",
        "ROW(1, 'mid', 2)::checked",
        "jsonb_populate_record(NULL::triple, '{\"a\":1,\"level\":\"mid\",\"b\":2}')",
    ] {
        let z: f64 = db.value(&format!("SELECT corgipile_predict('m', {value})"));
        assert_near(&[z], &[0.5 + 40.0 - 6.0 + 0.25]);
    }
}

#[test]
fn a_row_predicts_what_its_arrays_do() {
    let mut db = Database::new();
    let dense = DENSE.store(&mut db, "dense");
    let sparse = SPARSE.store(&mut db, "sparse");
    let columns = Stored { features: "'{c,a,b}'", kind: "columns", ..DENSE }.store(&mut db, "columns");
    db.run(
        "CREATE TABLE t (id int, a real, b float8, c boolean, x real[], k bigint[], v float8[]);
         INSERT INTO t SELECT i, r, s, i % 2 = 0, ARRAY[(i % 2 = 0)::int, r, s], '{1,2,3}', ARRAY[(i % 2 = 0)::int, r, s]
         FROM generate_series(1, 100) i, LATERAL (SELECT normal(i, 1)::real AS r, normal(i, 2)::real AS s) n",
    );
    let differing = db.lines(&format!(
        "WITH p AS (SELECT corgipile_predict_proba({dense}, x) AS expected, corgipile_predict_proba({dense}, t) AS array_row,
                           corgipile_predict_proba({sparse}, t) AS sparse_row, corgipile_predict_proba({columns}, t) AS columns_row,
                           corgipile_predict_proba({columns}, ARRAY[c::int, a, b]) AS columns_array,
                           corgipile_predict_proba({sparse}, k, v) AS sparse
                    FROM t)
         SELECT * FROM p WHERE array_row <> expected OR columns_row <> expected OR columns_array <> expected
                OR abs(sparse_row[2] - expected[2]) > 1e-6 OR sparse <> sparse_row"
    ));
    assert!(differing.is_empty(), "{differing:#?}");
    assert_eq!(db.line(&format!("SELECT count(corgipile_predict_label({columns}, t)) FROM t")), "100");
}

#[test]
fn a_row_that_does_not_fit_the_model_is_an_error_that_says_why() {
    let mut db = Database::new();
    let mixed = MIXED.store(&mut db, "mixed");
    let sparse = SPARSE.store(&mut db, "sparse");
    let dense = DENSE.store(&mut db, "dense");
    for (id, row, code, says, hint) in [
        (mixed, "SELECT 1 AS a, 2 AS b", "42703", "\"level\"", "a, b"),
        (mixed, "SELECT 1 AS a, 2 AS b, 'low' AS \"Level\"", "42703", "\"level\"", "Level"),
        (mixed, "SELECT 1 AS a, 2 AS b, 3 AS a, 'low' AS level", "42702", "\"a\"", "different names"),
        (mixed, "SELECT 1 AS a, NULL::int AS b, 'low' AS level", "22004", "feature b", "coalesce"),
        (mixed, "SELECT 1 AS a, 2 AS b, NULL::text AS level", "22004", "feature level", "coalesce"),
        (mixed, "SELECT 'NaN'::real AS a, 2 AS b, 'low' AS level", "22003", "feature a", ""),
        (mixed, "SELECT 1 AS a, 1e300::float8 AS b, 'low' AS level", "22003", "feature b", ""),
        (mixed, "SELECT 1 AS a, 2 AS b, 'Low' AS level", "22023", "\"Low\" of column \"level\"", "handle_unknown"),
        (mixed, "SELECT 1 AS a, 2 AS b, '' AS level", "22023", "\"level\"", "handle_unknown"),
        (mixed, "SELECT 1 AS a, 2 AS b, 3 AS level", "42804", "integer", "text or an enum"),
        (mixed, "SELECT '1' AS a, 2 AS b, 'low' AS level", "42804", "text", "numbers"),
        (mixed, "SELECT '{1}'::real[] AS a, 2 AS b, 'low' AS level", "42804", "real[]", "numbers"),
        (mixed, "SELECT now() AS a, 2 AS b, 'low' AS level", "42804", "timestamp", "numbers"),
        (dense, "SELECT '{1,2}'::real[] AS x", "2202E", "2 given", ""),
        (dense, "SELECT '{1,NULL,3}'::real[] AS x", "22004", "x[2]", "coalesce"),
        (dense, "SELECT '{1,2,Infinity}'::float8[] AS x", "22003", "x[3]", ""),
        (dense, "SELECT 1 AS x", "42804", "integer", "array of numbers"),
        (dense, "SELECT NULL::real[] AS x", "22004", "feature x", "coalesce"),
        (sparse, "SELECT '{1}'::int[] AS k", "42703", "\"v\"", "k"),
        (sparse, "SELECT '{1}'::real[] AS k, '{1}'::real[] AS v", "42804", "\"k\"", "integers"),
        (sparse, "SELECT '{1}'::int[] AS k, '{a}'::text[] AS v", "42804", "\"v\"", "numbers"),
        (sparse, "SELECT '{1,9}'::int[] AS k, '{1,2}'::real[] AS v", "2202E", "index 9", "handle_unknown"),
        (sparse, "SELECT '{1,2}'::int[] AS k, '{1,NaN}'::real[] AS v", "22003", "v[2]", ""),
    ] {
        let failure = db.fails_with(&format!("SELECT corgipile_predict({id}, t) FROM ({row}) t"), code);
        failure.says(&[says]).hints(if hint.is_empty() { &[] } else { std::slice::from_ref(&hint) });
    }
    db.fails_with(&format!("SELECT corgipile_predict({mixed}, ROW(1, 'low', 2))"), "42703")
        .says(&["\"a\""])
        .hints(&["ROW()", "FROM t"]);
    db.fails_with(&format!("SELECT corgipile_predict({mixed}, ROW())"), "42703");
    for arrays in ["ARRAY[1,0,0,1,2]", "'{1}'::int[], '{1}'::int[]"] {
        db.fails_with(&format!("SELECT corgipile_predict({mixed}, {arrays})"), "0A000")
            .hints(&["a, level, b", "FROM t"]);
    }
}

#[test]
fn unseen_categories_count_as_zero_if_the_model_was_trained_so() {
    let mut db = Database::new();
    levels(&mut db);
    db.run("UPDATE t SET level = 'extreme' WHERE id <= 2");
    Stored { options: "{\"handle_unknown\": \"ignore\"}", ..MIXED }.store(&mut db, "zero");
    MIXED.store(&mut db, "error");
    let z: Vec<f64> =
        db.column("SELECT corgipile_predict('zero', t) - (0.5 * a - 3 * b + 0.25) FROM t WHERE id <= 3 ORDER BY id");
    assert_near(&z, &[0.0, 0.0, 10.0]);
    db.fails_with("SELECT corgipile_predict('error', t) FROM t", "22023").says(&["\"extreme\"", "\"level\""]);
}

#[test]
fn categories_are_equal_as_their_collation_says() {
    let mut db = Database::new();
    if !db.is_built_with("icu") {
        return skip(categories_are_equal_as_their_collation_says, "the server was built without ICU");
    }
    db.run(
        "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         CREATE TABLE t (a int, b int, level text COLLATE blind); INSERT INTO t VALUES (0, 0, 'HIGH'), (0, 0, 'Mid')",
    );
    MIXED.store(&mut db, "m");
    let z: Vec<f64> = db.column("SELECT corgipile_predict('m', t) FROM t ORDER BY 1");
    assert_near(&z, &[20.25, 40.25]);
    db.fails_with(
        "SELECT corgipile_predict('m', t) FROM (SELECT a, b, level COLLATE \"C\" AS level FROM t) t",
        "22023",
    );
}

#[test]
fn rows_follow_a_table_that_is_altered() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "m");
    let ask = format!("SELECT count(*) FROM t WHERE abs(corgipile_predict('m', t) - ({MIXED_VALUE})) < 1e-4");
    db.run("PREPARE p AS SELECT count(corgipile_predict('m', t)) FROM t");
    assert_eq!(db.line(&ask), "60");
    assert_eq!(db.line("EXECUTE p"), "60");
    for change in [
        "ALTER TABLE t DROP COLUMN note",
        "ALTER TABLE t ADD COLUMN first text DEFAULT 'x'",
        "ALTER TABLE t ADD COLUMN c numeric; UPDATE t SET c = b; ALTER TABLE t DROP b; ALTER TABLE t RENAME c TO b",
        "ALTER TABLE t ALTER a TYPE float8",
        "ALTER TABLE t ALTER level TYPE text",
        "ALTER TABLE t SET (fillfactor = 50)",
    ] {
        db.run(change);
        assert_eq!(db.line(&ask), "60", "{change}");
        assert_eq!(db.line("EXECUTE p"), "60", "{change}");
    }
    db.run("ALTER TABLE t RENAME a TO aa");
    db.fails_with("EXECUTE p", "42703").says(&["\"a\""]);
    // A row older than a column has its default.
    db.run("ALTER TABLE t ADD COLUMN a int DEFAULT 2");
    let ask = ask.replace("0.5 * a", "0.5 * 2");
    assert_eq!(db.line(&ask), "60");
}

#[test]
fn rows_of_two_types_and_two_models_do_not_mix() {
    let mut db = Database::new();
    MIXED.store(&mut db, "one");
    Stored { weights: "'{1,0,0,0,0}'", intercepts: "'{0}'", ..MIXED }.store(&mut db, "two");
    db.run(
        "CREATE TABLE t AS SELECT i AS a, 2 * i AS b, 'low' AS level FROM generate_series(1, 20) i;
         CREATE TABLE s AS SELECT 'mid' AS level, i::real AS b, -i AS a FROM generate_series(1, 20) i",
    );
    let wrong: i64 = db.value(
        "SELECT count(*) FROM (SELECT a, b, level, corgipile_predict('one', t) AS one, corgipile_predict('two', t) AS two FROM t
                               UNION ALL
                               SELECT a, b, level, corgipile_predict('one', s), corgipile_predict('two', s) FROM s) x
         WHERE one <> 0.5 * a + CASE level WHEN 'low' THEN 10 ELSE 40 END - 3 * b + 0.25 OR two <> a",
    );
    assert_eq!(wrong, 0);
    let wrong: i64 = db.value(
        "SELECT count(*) FROM s JOIN t ON t.a = -s.a
         WHERE corgipile_predict('two', s) <> s.a OR corgipile_predict('two', t) <> t.a",
    );
    assert_eq!(wrong, 0);
}

#[test]
fn rows_can_be_wide_and_toasted_and_come_from_variables() {
    let mut db = Database::new();
    let id = DENSE.store(&mut db, "dense");
    let weights = "(SELECT array_agg(1::real) FROM generate_series(1, 5000))";
    let long = Stored { model: "linear", classes: "NULL", weights, ..DENSE }.store(&mut db, "long");
    db.run(
        "CREATE TABLE t (junk text, x real[]); ALTER TABLE t ALTER junk SET STORAGE external;
         INSERT INTO t SELECT repeat('x', 100000), ARRAY[i, 0, 0] FROM generate_series(-5, 5) i;
         CREATE TABLE long AS SELECT array_agg(i % 10) AS x FROM generate_series(1, 5000) i",
    );
    assert_eq!(db.line(&format!("SELECT sum(corgipile_predict({id}, t)) FROM t")), "1");
    assert_eq!(db.line(&format!("SELECT corgipile_predict({long}, long) FROM long")), "22500.125");
    db.run(&format!(
        "CREATE FUNCTION score() RETURNS float8 LANGUAGE plpgsql AS $$
         DECLARE r t; s record; total float8 = 0;
         BEGIN
           FOR r IN SELECT * FROM t LOOP r.x[2] = 0; total = total + corgipile_predict({id}, r); END LOOP;
           FOR s IN SELECT x FROM t LOOP total = total + corgipile_predict({id}, s); END LOOP;
           RETURN total;
         END $$"
    ));
    assert_eq!(db.line("SELECT score()"), "2");
    assert_eq!(db.line("SELECT score()"), "2");
}
