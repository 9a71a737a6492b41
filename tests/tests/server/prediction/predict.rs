//! Predictions of every kind of model, from features in every form, against what the stored weights say.
//!
//! Models are written into the table as a superuser can, so that their weights are known exactly and nothing here depends
//! on training.

use corgipile_tests::stored::{DENSE, MIXED, SOFTMAX, SPARSE};
use corgipile_tests::{Database, Session, Stored};

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn assert_near(given: &[f64], expected: &[f64]) {
    assert_eq!(given.len(), expected.len(), "{given:?} {expected:?}");
    for (g, e) in given.iter().zip(expected) {
        assert!((g - e).abs() <= 1e-6 * e.abs().max(1.0), "{given:?} should be {expected:?}");
    }
}

/// Some inputs with different signs and sizes.
const INPUTS: [[f64; 3]; 5] =
    [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [-4.0, 0.5, 0.25], [100.0, -30.0, 0.0], [0.0, 0.0, -0.75]];

#[test]
fn logistic_and_svm_decide_by_the_sign_of_the_stored_weights() {
    let mut db = Database::new();
    let logistic = DENSE.store(&mut db, "logistic");
    let svm = Stored { model: "svm", ..DENSE }.store(&mut db, "svm");
    for [a, b, c] in INPUTS {
        let z = 0.5 * a - 1.25 * b + 2.0 * c + 0.125;
        let expected = if z > 0.0 { 1.0 } else { -1.0 };
        for id in [logistic, svm] {
            let x = format!("{id}, ARRAY[{a},{b},{c}]::float8[]");
            assert_eq!(db.value::<f64>(&format!("SELECT corgipile_predict({x})")), expected);
            assert_eq!(db.line(&format!("SELECT corgipile_predict_label({x})")), expected.to_string());
        }
        let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba({logistic}, ARRAY[{a},{b},{c}]::real[])"));
        assert_near(&p, &[sigmoid(-z), sigmoid(z)]);
    }
    db.fails_with(&format!("SELECT corgipile_predict_proba({svm}, ARRAY[1,2,3])"), "0A000").hints(&["logistic"]);
}

#[test]
fn linear_predicts_the_value_and_has_neither_labels_nor_probabilities() {
    let mut db = Database::new();
    let linear = Stored { model: "linear", classes: "NULL", label_type: "numeric", ..DENSE };
    let id = linear.store(&mut db, "m");
    for [a, b, c] in INPUTS {
        let z: f64 = db.value(&format!("SELECT corgipile_predict('m', ARRAY[{a},{b},{c}]::float8[])"));
        assert_near(&[z], &[0.5 * a - 1.25 * b + 2.0 * c + 0.125]);
    }
    db.fails_with(&format!("SELECT corgipile_predict_label({id}, ARRAY[1,2,3])"), "0A000")
        .hints(&["corgipile_predict()"]);
    db.fails_with(&format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3])"), "0A000")
        .says(&["linear"])
        .hints(&["corgipile_predict()"]);
}

#[test]
fn softmax_gives_every_class_its_probability_and_predicts_the_likeliest() {
    let mut db = Database::new();
    let id = SOFTMAX.store(&mut db, "m");
    for [a, b, c] in INPUTS {
        let x = format!("{id}, ARRAY[{a},{b},{c}]::float8[]");
        let z = [a + 2.0 * b + 3.0 * c + 0.1, -a + 0.5 * b + 2.0 * c + 0.2, -2.0 * b + 1.5 * c - 0.3];
        let largest = z.iter().fold(f64::MIN, |m, z| m.max(*z));
        let sum: f64 = z.iter().map(|z| (z - largest).exp()).sum();
        let expected: Vec<f64> = z.iter().map(|z| (z - largest).exp() / sum).collect();
        let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba({x})"));
        assert_near(&p, &expected);
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{p:?}");
        let best = z.iter().position(|z| *z == largest).expect("one is the largest");
        assert_eq!(db.line(&format!("SELECT corgipile_predict_label({x})")), ["ant", "bee", "cat"][best]);
        db.fails_with(&format!("SELECT corgipile_predict({x})"), "0A000").hints(&["corgipile_predict_label"]);
    }
}

#[test]
fn of_classes_that_are_as_likely_softmax_predicts_the_first() {
    let mut db = Database::new();
    let model = Stored { weights: "'{1,0,0,2,0,0,2,0,0}'", intercepts: "'{0,0,0}'", ..SOFTMAX };
    let id = Stored { classes: "'{10,20,30}'", label_type: "smallint", ..model }.store(&mut db, "m");
    for (x, class) in [("1", 20.0), ("0", 10.0), ("-1", 10.0)] {
        assert_eq!(db.value::<f64>(&format!("SELECT corgipile_predict({id}, ARRAY[{x},0,0])")), class, "{x}");
    }
}

#[test]
fn softmax_probabilities_do_not_overflow() {
    let mut db = Database::new();
    let id = SOFTMAX.store(&mut db, "m");
    let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba({id}, ARRAY[1e6,1e6,1e6])"));
    assert_near(&p, &[1.0, 0.0, 0.0]);
}

#[test]
fn a_standardized_model_standardizes_what_it_is_asked() {
    let mut db = Database::new();
    let linear = Stored { model: "linear", classes: "NULL", ..DENSE };
    Stored { mean: "'{1,-2,0}'", scale: "'{2,0.5,1}'", ..linear }.store(&mut db, "dense");
    // Sparse features are not centred, so that what is not there stays 0.
    Stored { features: "'{k,v}'", kind: "sparse", index_base: "1", mean: "'{0,0,0}'", scale: "'{2,0.5,1}'", ..linear }
        .store(&mut db, "sparse");
    let mixed = Stored { mean: "'{1,0,0,0,-2}'", scale: "'{2,1,1,1,0.5}'", ..MIXED };
    mixed.store(&mut db, "mixed");
    for [a, b, c] in INPUTS {
        let z: f64 = db.value(&format!("SELECT corgipile_predict('dense', ARRAY[{a},{b},{c}]::float8[])"));
        assert_near(&[z], &[0.5 * (a - 1.0) / 2.0 - 1.25 * (b + 2.0) / 0.5 + 2.0 * c + 0.125]);
        let z: f64 = db.value(&format!("SELECT corgipile_predict('sparse', '{{1,2,3}}'::int[], ARRAY[{a},{b},{c}])"));
        assert_near(&[z], &[0.5 * a / 2.0 - 1.25 * b / 0.5 + 2.0 * c + 0.125]);
        let row = format!("SELECT {a}::float8 AS a, 'high' AS level, {b}::float8 AS b");
        let z: f64 = db.value(&format!("SELECT corgipile_predict('mixed', t) FROM ({row}) t"));
        assert_near(&[z], &[0.5 * (a - 1.0) / 2.0 + 20.0 - 3.0 * (b + 2.0) / 0.5 + 0.25]);
    }
    let absent: f64 = db.value("SELECT corgipile_predict('dense', '{3}'::int[], '{4}'::int[])");
    assert_near(&[absent], &[-0.5 / 2.0 - 1.25 * 2.0 / 0.5 + 8.0 + 0.125]);
}

// --- sparse features ---------------------------------------------------------------------------------------------------

#[test]
fn sparse_features_predict_what_the_dense_ones_do() {
    let mut db = Database::new();
    DENSE.store(&mut db, "dense");
    SPARSE.store(&mut db, "one");
    Stored { index_base: "0", ..SPARSE }.store(&mut db, "zero");
    for [a, b, c] in INPUTS {
        let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba('dense', ARRAY[{a},{b},{c}]::real[])"));
        for call in [
            format!("'one', '{{1,2,3}}'::int[], ARRAY[{a},{b},{c}]::real[]"),
            format!("'one', '{{3,1,2}}'::bigint[], ARRAY[{c},{a},{b}]::float8[]"),
            format!("'one', '{{2,1,3}}'::smallint[], ARRAY[{b},{a},{c}]::numeric[]"),
            format!("'zero', '{{0,1,2}}'::int[], ARRAY[{a},{b},{c}]::real[]"),
            // A model takes what it was not trained on, too, if nothing is unclear about it.
            format!("'dense', '{{1,2,3}}'::int[], ARRAY[{a},{b},{c}]::real[]"),
            format!("'one', ARRAY[{a},{b},{c}]::float8[]"),
            format!("'zero', ARRAY[{a},{b},{c}]::float8[]"),
        ] {
            let given: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba({call})"));
            assert_near(&given, &p);
        }
    }
}

#[test]
fn what_a_sparse_tuple_does_not_name_is_0() {
    let mut db = Database::new();
    SPARSE.store(&mut db, "m");
    DENSE.store(&mut db, "dense");
    for model in ["m", "dense"] {
        for (arrays, z) in [
            ("'{}'::int[], '{}'::real[]", 0.125),
            ("'{2}'::int[], '{4}'::real[]", -5.0 + 0.125),
            ("'{3,1}'::int[], '{t,t}'::boolean[]", 2.5 + 0.125),
        ] {
            let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba('{model}', {arrays})"));
            assert_near(&p, &[sigmoid(-z), sigmoid(z)]);
        }
    }
}

#[test]
fn sparse_arrays_that_make_no_sense_are_errors_that_say_why() {
    let mut db = Database::new();
    let id = SPARSE.store(&mut db, "m");
    let last = i64::MAX;
    for (arrays, code, says) in [
        ("'{1,NULL}'::int[], '{1,2}'::real[]", "22004", "index 2"),
        ("'{1,2}'::int[], '{1,NULL}'::real[]", "22004", "feature 2"),
        ("'{1,2}'::int[], '{1}'::real[]", "2202E", "2 indices"),
        ("'{1,2}'::int[], '{}'::real[]", "2202E", "2 indices"),
        ("'{1,2,1}'::int[], '{1,2,3}'::real[]", "2202E", "index 1"),
        ("'{0}'::int[], '{1}'::real[]", "2202E", "index 0"),
        ("'{-5}'::smallint[], '{1}'::real[]", "2202E", "index -5"),
        ("'{1,4}'::int[], '{1,2}'::real[]", "2202E", "index 4"),
        (&format!("'{{{last}}}'::bigint[], '{{1}}'::real[]"), "2202E", "9223372036854775807"),
        (&format!("'{{-{last}}}'::bigint[], '{{1}}'::real[]"), "2202E", "-9223372036854775807"),
        ("'{2}'::int[], '{NaN}'::real[]", "22003", "feature 2"),
        ("'{2}'::int[], '{1e300}'::float8[]", "22003", "feature 2"),
        ("'{{1,2}}'::int[], '{1,2}'::real[]", "2202E", "dimensions"),
        ("'{1,2}'::int[], '{{1,2}}'::real[]", "2202E", "dimensions"),
        ("'{1,2}'::real[], '{1,2}'::real[]", "42804", "real[]"),
        ("'{1,2}'::numeric[], '{1,2}'::real[]", "42804", "numeric[]"),
        ("'{1,2}'::int[], '{1,2}'::text[]", "42804", "text[]"),
        ("'{1,2}'::text[], '{1,2}'::int[]", "42804", "text[]"),
    ] {
        for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
            db.fails_with(&format!("SELECT {function}({id}, {arrays})"), code).says(&[says]);
        }
    }
    db.fails_with(&format!("SELECT corgipile_predict({id}, ARRAY[1,2])"), "2202E").says(&["3 features", "2 given"]);
    assert_eq!(db.line(&format!("SELECT corgipile_predict({id}, '{{3}}'::int[], '{{1}}'::int[])")), "1");
}

#[test]
fn indices_beyond_the_model_count_as_zero_if_it_was_trained_so() {
    let mut db = Database::new();
    Stored { options: "{\"unseen\": \"zero\"}", ..SPARSE }.store(&mut db, "zero");
    SPARSE.store(&mut db, "error");
    let arrays = "'{2,7,4}'::int[], '{1,5,3}'::real[]";
    let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba('zero', {arrays})"));
    assert_near(&p, &[sigmoid(1.125), sigmoid(-1.125)]);
    db.fails_with(&format!("SELECT corgipile_predict_proba('error', {arrays})"), "2202E")
        .says(&["index 7", "3"])
        .hints(&["unseen"]);
    // Below the base nothing can be meant.
    db.fails_with("SELECT corgipile_predict('zero', '{0}'::int[], '{1}'::int[])", "2202E").hints(&["index_base"]);
}

// --- rows --------------------------------------------------------------------------------------------------------------

/// A table with rows of numbers and categories.
fn levels(db: &mut Session) {
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
        (mixed, "SELECT 1 AS a, 2 AS b, 'Low' AS level", "22023", "\"Low\" of column \"level\"", "unseen"),
        (mixed, "SELECT 1 AS a, 2 AS b, '' AS level", "22023", "\"level\"", "unseen"),
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
        (sparse, "SELECT '{1,9}'::int[] AS k, '{1,2}'::real[] AS v", "2202E", "index 9", "unseen"),
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
    Stored { options: "{\"unseen\": \"zero\"}", ..MIXED }.store(&mut db, "zero");
    MIXED.store(&mut db, "error");
    let z: Vec<f64> =
        db.column("SELECT corgipile_predict('zero', t) - (0.5 * a - 3 * b + 0.25) FROM t WHERE id <= 3 ORDER BY id");
    assert_near(&z, &[0.0, 0.0, 10.0]);
    db.fails_with("SELECT corgipile_predict('error', t) FROM t", "22023").says(&["\"extreme\"", "\"level\""]);
}

#[test]
fn categories_are_equal_as_their_collation_says() {
    let mut db = Database::new();
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

// --- calls -------------------------------------------------------------------------------------------------------------

#[test]
fn calls_are_told_apart_by_their_arguments() {
    let mut db = Database::new();
    let id = DENSE.store(&mut db, "m");
    db.run("CREATE TABLE t (x numeric[], k int[], v real[]); INSERT INTO t VALUES ('{1,2,3}', '{1}', '{-9}')");
    for (call, label) in [
        (format!("{id}, ARRAY[1.0,2,3]"), "1"),
        (format!("{id}::int, ARRAY[1,2,3]"), "1"),
        (format!("{id}::smallint, '{{1,2,3}}'::real[]"), "1"),
        (format!("model_id => {id}, features => ARRAY[1,2,3]"), "1"),
        ("'m', ARRAY[1,2,3]".into(), "1"),
        ("'m'::varchar, ARRAY[1,2,3]".into(), "1"),
        ("name => 'm', features => ARRAY[1,2,3]".into(), "1"),
        (format!("{id}, x"), "1"),
        (format!("{id}, t"), "1"),
        ("'m', t".into(), "1"),
        ("'m', t.*".into(), "1"),
        (format!("model_id => {id}, \"row\" => t"), "1"),
        (format!("{id}, k, v"), "-1"),
        ("'m', k, v".into(), "-1"),
        ("name => 'm', indices => k, \"values\" => v".into(), "-1"),
        (format!("{id}, '{{1}}'::int[], ARRAY[-9.5]"), "-1"),
        (format!("(SELECT {id}::bigint), (SELECT k FROM t), (SELECT v FROM t)"), "-1"),
    ] {
        for function in ["corgipile_predict", "corgipile_predict_label"] {
            assert_eq!(db.line(&format!("SELECT {function}({call}) FROM t")), label, "{function}({call})");
        }
    }
}

#[test]
fn a_null_argument_gives_null() {
    let mut db = Database::new();
    let id = DENSE.store(&mut db, "m");
    db.run("CREATE TABLE t (x real[]); INSERT INTO t VALUES ('{1,2,3}')");
    for call in [
        "NULL::bigint, ARRAY[1,2,3]".into(),
        "NULL::text, ARRAY[1,2,3]".into(),
        format!("{id}, NULL::real[]"),
        format!("{id}, NULL::t"),
        format!("{id}, NULL::int[], ARRAY[1]"),
        format!("{id}, ARRAY[1], NULL::real[]"),
        format!("{id}, (SELECT t FROM t WHERE false)"),
    ] {
        for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
            assert_eq!(db.line(&format!("SELECT {function}({call})")), "NULL", "{function}({call})");
        }
    }
    // The row of an outer join that has no match is NULL, too.
    let joined = format!("SELECT corgipile_predict({id}, t) FROM (VALUES (1)) v(i) LEFT JOIN t ON false");
    assert_eq!(db.line(&joined), "NULL");
}

#[test]
fn prepared_statements_predict_with_what_they_are_given() {
    let mut db = Database::new();
    DENSE.store(&mut db, "m");
    Stored { weights: "'{0,0,0}'", intercepts: "'{-1}'", ..DENSE }.store(&mut db, "never");
    levels(&mut db);
    db.run(
        "PREPARE dense (text, real[]) AS SELECT corgipile_predict($1, $2);
         PREPARE sparse (text, int[], real[]) AS SELECT corgipile_predict($1, $2, $3);
         CREATE TYPE holder AS (x real[]);
         PREPARE row (text, holder) AS SELECT corgipile_predict($1, $2)",
    );
    for _ in 0..8 {
        assert_eq!(db.line("EXECUTE dense('m', '{1,2,3}')"), "1");
        assert_eq!(db.line("EXECUTE dense('never', '{1,2,3}')"), "-1");
        assert_eq!(db.line("EXECUTE sparse('m', '{2}', '{1}')"), "-1");
        assert_eq!(db.line("EXECUTE row('m', ROW('{1,2,3}'))"), "1");
        assert_eq!(db.line("EXECUTE row('m', ROW('{1,2,-3}'))"), "-1");
    }
}

#[test]
fn rows_and_arrays_predict_the_same_in_parallel_workers() {
    let mut db = Database::new();
    MIXED.store(&mut db, "mixed");
    SPARSE.store(&mut db, "sparse");
    db.run(
        "CREATE TABLE t AS SELECT i % 100 AS a, (ARRAY['low', 'mid', 'high'])[1 + i % 3] AS level, i % 7 AS b,
                ARRAY[1, 3] AS k, ARRAY[i % 5, -i % 3]::real[] AS v FROM generate_series(1, 20000) i; ANALYZE t",
    );
    let queries = [
        "SELECT sum(corgipile_predict('mixed', t)), sum(corgipile_predict('sparse', k, v)) FROM t",
        "SELECT sum(corgipile_predict('mixed', s)) FROM (SELECT level, b + 1 AS b, a FROM t OFFSET 0) s",
        "SELECT sum(corgipile_predict('sparse', v || 1::real)), sum(corgipile_predict('sparse', (v || 2::real)::numeric[])) FROM t",
        "SELECT corgipile_predict('mixed', (array_agg(s))[7]) FROM (SELECT 'mid' AS level, b, 1 AS a FROM t WHERE b = 2) s",
    ];
    let serial: Vec<String> = queries.iter().map(|query| db.line(query)).collect();
    db.run(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2",
    );
    for query in [queries[0], queries[2]] {
        let plan = db.lines(&format!("EXPLAIN {query}"));
        assert!(plan.iter().any(|line| line.contains("Gather")), "{plan:#?}");
    }
    for (query, serial) in queries.iter().zip(serial) {
        assert_eq!(db.line(query), serial, "{query}");
    }
    let record = "SELECT sum(corgipile_predict('mixed', s)) FROM (SELECT level, b, a FROM t) s WHERE corgipile_predict('mixed', s) > 30";
    let plan = db.lines(&format!("EXPLAIN {record}"));
    assert!(plan.iter().any(|line| line.contains("Gather")), "{plan:#?}");
    let parallel = db.line(record);
    db.run("SET max_parallel_workers_per_gather = 0");
    assert_eq!(db.line(record), parallel);
}

// --- large models ------------------------------------------------------------------------------------------------------

#[test]
fn models_of_a_million_dimensions_predict_and_list_their_weights() {
    let mut db = Database::new();
    let dim = 1 << 20;
    let weights = format!("(SELECT array_agg((i % 97)::real ORDER BY i) FROM generate_series(1, {dim}) i)");
    let scale = format!("(SELECT array_agg(2::float8) FROM generate_series(1, {dim}) i)");
    let mean = format!("(SELECT array_agg(0::float8) FROM generate_series(1, {dim}) i)");
    let model = Stored { model: "linear", classes: "NULL", weights: &weights, intercepts: "'{0.5}'", ..SPARSE };
    model.store(&mut db, "large");
    Stored { mean: &mean, scale: &scale, ..model }.store(&mut db, "scaled");
    for (index, weight) in [(1, 1.0), (96, 96.0), (97, 0.0), (dim, f64::from(dim % 97))] {
        let ask = |model: &str| format!("SELECT corgipile_predict('{model}', ARRAY[{index}], ARRAY[3])");
        assert_eq!(db.value::<f64>(&ask("large")), 3.0 * weight + 0.5, "{index}");
        assert_eq!(db.value::<f64>(&ask("scaled")), 1.5 * weight + 0.5, "{index}");
    }
    db.fails_with(&format!("SELECT corgipile_predict('large', ARRAY[{}], ARRAY[3])", dim + 1), "2202E");
    // Both in one statement, row by row, without reading them again for each.
    db.run("SET statement_timeout = '20s'");
    let sum: f64 = db.value(
        "SELECT sum(corgipile_predict('large', ARRAY[i], ARRAY[1]) - 2 * corgipile_predict('scaled', ARRAY[i], ARRAY[1]))
         FROM generate_series(1, 50000) i",
    );
    assert_eq!(sum, -0.5 * 50000.0);
    let listed = db.line(
        "SELECT count(*), count(DISTINCT feature), sum(coefficient::float8), sum(scale) FROM corgipile.coefficients
         WHERE name = 'scaled'",
    );
    let sum: i64 = (1..=i64::from(dim)).map(|i| i % 97).sum();
    assert_eq!(listed, format!("{}|{}|{}|{}", dim + 1, dim + 1, sum as f64 + 0.5, 2 * dim));
}

#[test]
fn models_in_use_do_not_pile_up_in_memory() {
    let mut db = Database::new();
    let weights = "(SELECT array_agg(1::real) FROM generate_series(1, 1000000))";
    let model = Stored { model: "linear", classes: "NULL", weights, ..SPARSE };
    for i in 0..40 {
        model.store(&mut db, &format!("m{i}"));
    }
    let pid = db.pid();
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the backend runs on this machine");
        let line = status.lines().find(|line| line.starts_with("RssAnon")).expect("Linux says so").to_owned();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number of kB") / 1024
    };
    let before = memory();
    db.run("SELECT sum(corgipile_predict('m' || i % 40, ARRAY[1], ARRAY[2])) FROM generate_series(1, 200) i");
    let after = memory();
    // 64 MB of models that are kept, and one or two on their way
    assert!(after.saturating_sub(before) < 110, "{before} MB before, {after} MB after");
}

#[test]
fn a_statement_can_compare_two_models_that_are_larger_than_the_cache() {
    let mut db = Database::new();
    let weights = "array_fill(1::real, ARRAY[10000000])";
    for name in ["one", "two"] {
        Stored { model: "linear", classes: "NULL", weights, ..SPARSE }.store(&mut db, name);
    }
    db.run("SET statement_timeout = '20s'");
    let difference: f64 = db.value(
        "SELECT max(abs(corgipile_predict('one', ARRAY[i], ARRAY[1]) - corgipile_predict('two', ARRAY[i], ARRAY[1])))
         FROM generate_series(1, 5000) i",
    );
    assert_eq!(difference, 0.0);
}

// --- coefficients ------------------------------------------------------------------------------------------------------

#[test]
fn coefficients_are_named_after_what_they_weigh() {
    let mut db = Database::new();
    DENSE.store(&mut db, "array");
    SPARSE.store(&mut db, "from one");
    Stored { index_base: "0", mean: "'{0,0,0}'", scale: "'{1,2,4}'", ..SPARSE }.store(&mut db, "from zero");
    MIXED.store(&mut db, "mixed");
    SOFTMAX.store(&mut db, "softmax");
    let mut listed = |name: &str| {
        db.lines(&format!(
            "SELECT class, feature, coefficient, mean, scale FROM corgipile.coefficients WHERE name = '{name}'"
        ))
    };
    let none = |rows: &[(&str, &str)]| -> Vec<String> {
        rows.iter().map(|(feature, weight)| format!("NULL|{feature}|{weight}|NULL|NULL")).collect()
    };
    let weights = ["0.125", "0.5", "-1.25", "2"];
    let named = |names: [&'static str; 4]| none(&names.into_iter().zip(weights).collect::<Vec<_>>());
    assert_eq!(listed("array"), named(["(intercept)", "x[1]", "x[2]", "x[3]"]));
    assert_eq!(listed("from one"), named(["(intercept)", "v[1]", "v[2]", "v[3]"]));
    assert_eq!(
        listed("from zero"),
        ["NULL|(intercept)|0.125|NULL|NULL", "NULL|v[0]|0.5|0|1", "NULL|v[1]|-1.25|0|2", "NULL|v[2]|2|0|4"]
    );
    let mixed = [
        ("(intercept)", "0.25"),
        ("a", "0.5"),
        ("level=low", "10"),
        ("level=high", "20"),
        ("level=mid", "40"),
        ("b", "-3"),
    ];
    assert_eq!(listed("mixed"), none(&mixed));
    let mut softmax = Vec::new();
    for (class, weights) in
        [("ant", [0.1, 1.0, 2.0, 3.0]), ("bee", [0.2, -1.0, 0.5, 2.0]), ("cat", [-0.3, 0.0, -2.0, 1.5])]
    {
        for (feature, weight) in ["(intercept)", "x[1]", "x[2]", "x[3]"].into_iter().zip(weights) {
            softmax.push(format!("{class}|{feature}|{weight}|NULL|NULL"));
        }
    }
    assert_eq!(listed("softmax"), softmax);
}

#[test]
fn models_of_every_kind_survive_a_dump() {
    let mut db = Database::new();
    levels(&mut db);
    MIXED.store(&mut db, "mixed");
    SPARSE.store(&mut db, "sparse");
    SOFTMAX.store(&mut db, "softmax");
    let dump = std::env::temp_dir().join(format!("{}.sql", db.name()));
    let run = |program: &mut std::process::Command| {
        let output = program.output().expect("the program starts");
        assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(corgipile_tests::program("pg_dump").arg("-f").arg(&dump).arg(db.name()));
    let mut restored = Database::empty();
    run(corgipile_tests::program("psql").args(["-X", "-v", "ON_ERROR_STOP=1", "-d", restored.name(), "-f"]).arg(&dump));
    std::fs::remove_file(&dump).expect("the dump is there");
    for query in [
        "SELECT * FROM corgipile.models ORDER BY model_id",
        "SELECT * FROM corgipile.coefficients",
        "SELECT corgipile_predict('mixed', t) FROM t ORDER BY id",
        "SELECT corgipile_predict_proba('sparse', '{1,3}'::int[], '{2,0.25}'::real[])",
        "SELECT corgipile_predict_proba('softmax', '{1,2,3}'::real[])",
    ] {
        let expected = db.lines(query);
        assert!(!expected.is_empty(), "{query}");
        assert_eq!(restored.lines(query), expected, "{query}");
    }
}
