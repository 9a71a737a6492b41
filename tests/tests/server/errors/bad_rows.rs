//! Bad rows: each error names the row, and nothing is stored.

use super::rejects;
use corgipile_tests::{Database, clustered};

/// A training to which a NULL is an error.
const NULLS: &str = r#"'t', options => '{"nulls": "error"}'"#;

#[test]
fn no_rows_are_an_error() {
    let mut db = Database::with_small_table(100);
    db.run("DELETE FROM t");
    rejects(&mut db, "'t'", "22000").says(&["no rows"]);
    db.run("TRUNCATE t");
    rejects(&mut db, "'t'", "22000").says(&["no rows"]);
    rejects(&mut db, "'t', options => '{\"standardize\": true}'", "22000").says(&["no rows"]);
}

#[test]
fn rows_that_are_all_skipped_are_no_rows() {
    let mut db = Database::with_small_table(100);
    db.run("UPDATE t SET a = NULL");
    let all = "all 100 rows are left out because they have NULLs";
    for options in [r#"{"nulls": "skip"}"#, r#"{"nulls": "skip", "standardize": true}"#] {
        rejects(&mut db, &format!("'t', options => '{options}'"), "22000").says(&[all]);
    }
}

#[test]
fn one_class_is_an_error_of_other_models_too() {
    let mut db = Database::with_small_table(100);
    db.run("UPDATE t SET label = 4");
    rejects(&mut db, "'t', 'svm'", "22000").says(&["label", "4"]).hints(&["two classes"]);
}

#[test]
fn three_classes_are_an_error_that_names_them() {
    let mut db = Database::with_small_table(100);
    db.run("UPDATE t SET label = 7 WHERE id = 50");
    let failure = rejects(&mut db, "'t', 'logistic', seed => 1", "22000");
    failure.says(&["label", "0", "1", "7"]).hints(&["two classes"]);
    db.run("ALTER TABLE t ALTER label TYPE text USING 'class ' || label");
    rejects(&mut db, "'t', 'logistic', seed => 1", "22000").says(&["class 7"]);
}

#[test]
fn a_null_is_an_error_that_names_the_row() {
    let mut db = Database::with_small_table(100);
    let ctid = |db: &mut Database| db.line("SELECT ctid FROM t WHERE a IS NULL OR label IS NULL");
    db.run("UPDATE t SET label = NULL WHERE id = 30");
    let at = ctid(&mut db);
    rejects(&mut db, NULLS, "22004").says(&["label is NULL", &at]).hints(&["nulls", "skip"]);
    db.run("UPDATE t SET label = 1, a = NULL WHERE id = 30");
    let at = ctid(&mut db);
    rejects(&mut db, NULLS, "22004").says(&["NULL", &at]).hints(&["nulls", "skip"]);
    rejects(&mut db, "'t', options => '{\"standardize\": true, \"nulls\": \"error\"}'", "22004").says(&["NULL", &at]);
    rejects(
        &mut db,
        "'SELECT * FROM (SELECT * FROM t OFFSET 0) s', features => '{a,b}', options => '{\"nulls\": \"error\"}'",
        "22004",
    )
    .says(&["NULL"]);
}

#[test]
fn a_null_array_and_a_null_element_are_errors_that_name_the_row() {
    let mut db = Database::new();
    clustered(&mut db, "t", 200);
    db.run("UPDATE t SET features_v = NULL WHERE id = 77");
    let at = db.line("SELECT ctid FROM t WHERE id = 77");
    rejects(&mut db, NULLS, "22004").says(&["features are NULL", &at]).hints(&["skip"]);
    db.run("UPDATE t SET features_v = '{1,NULL,3,4,5}' WHERE id = 77");
    let at = db.line("SELECT ctid FROM t WHERE id = 77");
    rejects(&mut db, NULLS, "22004").says(&["NULL", "2", &at]).hints(&["skip"]);
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
    let mut db = Database::with_small_table(100);
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
fn a_failure_in_a_later_epoch_stores_nothing_and_the_session_goes_on() {
    let mut db = Database::with_small_table(100);
    db.run(
        "CREATE SEQUENCE calls; CREATE FUNCTION late(real) RETURNS real LANGUAGE plpgsql AS
            'BEGIN IF nextval(''calls'') > 90 THEN RAISE EXCEPTION ''late''; END IF; RETURN $1; END'",
    );
    db.rejects("SELECT * FROM corgipile_train('SELECT label, late(a) AS x FROM t')", "P0001").says(&["late"]);
    assert_eq!(db.train("'t', max_epochs => 2").len(), 2);
}
