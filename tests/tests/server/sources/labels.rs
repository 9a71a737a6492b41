//! Labels of every type: two classes, in ascending order, given back as the user wrote them.

use corgipile_tests::Database;

/// Creates `t(label, x)` with 60 rows: `first` where x < 0, `second` elsewhere, beginning with the one or the other.
fn table(db: &mut Database, kind: &str, first: &str, second: &str, first_comes_first: bool) {
    let sign = if first_comes_first { 1 } else { -1 };
    db.run(&format!(
        "DROP TABLE IF EXISTS t;
         CREATE TABLE t (label {kind}, x real);
         INSERT INTO t SELECT CASE WHEN x < 0 THEN {first} ELSE {second} END::{kind}, x
         FROM generate_series(-30, 29) i, LATERAL (SELECT {sign} * (i + 0.5) / 10 AS x) s ORDER BY i"
    ));
}

/// Trains on labels of a type and checks classes, predictions and probabilities.
fn check(db: &mut Database, kind: &str, first: &str, second: &str) {
    for first_comes_first in [true, false] {
        table(db, kind, first, second, first_comes_first);
        for model in ["logistic", "svm"] {
            let epochs = db.train(&format!("'t', '{model}', learning_rate => 0.5, seed => 1, shuffle => 'no_shuffle'"));
            let id = epochs[0].model_id;
            let stored = db.line(&format!(
                "SELECT label_type = '{kind}'::regtype::text, array_length(classes, 1),
                 classes[1]::{kind} = ({first})::{kind},
                        classes[2]::{kind} = ({second})::{kind}, weights[1] > 0
                 FROM corgipile.models WHERE model_id = {id}"
            ));
            assert_eq!(stored, "t|2|t|t|t", "{kind} {model}, first comes first: {first_comes_first}");
            let predicted = db.line(&format!(
                "SELECT corgipile_predict_label({id}, ARRAY[-2]::real[])::{kind} = ({first})::{kind},
                        corgipile_predict_label({id}, ARRAY[2]::real[])::{kind} = ({second})::{kind}"
            ));
            assert_eq!(predicted, "t|t", "{kind} {model}");
            assert_eq!(db.evaluate(id, "t").accuracy, 1.0);
        }
    }
}

/// [`check`], and that `corgipile_predict` gives these numbers.
fn check_numeric(kind: &str, first: &str, second: &str, values: [f64; 2]) {
    let mut db = Database::new();
    check(&mut db, kind, first, second);
    let id: i64 = db.value("SELECT max(model_id) FROM corgipile.models");
    let predicted: Vec<f64> =
        db.column(&format!("SELECT corgipile_predict({id}, ARRAY[x]) FROM (VALUES (-2::real), (2)) v(x) ORDER BY x"));
    assert_eq!(predicted, values, "{kind}");
}

#[test]
fn smallint_labels_come_back() {
    check_numeric("smallint", "-32768", "32767", [-32768.0, 32767.0]);
}

#[test]
fn integer_labels_come_back() {
    check_numeric("integer", "0", "7", [0.0, 7.0]);
    check_numeric("integer", "-1", "1", [-1.0, 1.0]);
    check_numeric("integer", "1", "2", [1.0, 2.0]);
}

#[test]
fn bigint_labels_come_back() {
    check_numeric("bigint", "-5000000000", "4000000000", [-5e9, 4e9]);
    // Neighbours that double precision cannot distinguish.
    let mut db = Database::new();
    check(&mut db, "bigint", "9007199254740992", "9007199254740993");
}

#[test]
fn real_labels_come_back() {
    check_numeric("real", "0.5", "1.5", [0.5, 1.5]);
    check_numeric("real", "-1", "1", [-1.0, 1.0]);
}

#[test]
fn double_precision_labels_come_back() {
    check_numeric("double precision", "-0.1", "1e300", [-0.1, 1e300]);
}

#[test]
fn numeric_labels_come_back() {
    check_numeric("numeric", "-1.50", "2.25", [-1.5, 2.25]);
}

#[test]
fn boolean_labels_come_back() {
    let mut db = Database::new();
    check(&mut db, "boolean", "false", "true");
    let id: i64 = db.value("SELECT max(model_id) FROM corgipile.models");
    assert_eq!(db.line(&format!("SELECT corgipile_predict({id}, ARRAY[-2.0])")), "0");
    assert_eq!(db.line(&format!("SELECT corgipile_predict({id}, ARRAY[2.0])")), "1");
}

#[test]
fn text_labels_come_back_as_labels_and_not_as_numbers() {
    let mut db = Database::new();
    for (kind, first, second) in [
        ("text", "'cat'", "'dog'"),
        ("text", "''", "'Größe, \"quoted\" {}\\'"),
        ("varchar(8)", "'ham'", "'spam'"),
        ("char(6)", "'no'", "'yes'"),
    ] {
        table(&mut db, kind, first, second, false);
        let id = db.train("'t', learning_rate => 0.5, standardize => false, seed => 1")[0].model_id;
        let predicted = db.line(&format!(
            "SELECT corgipile_predict_label({id}, ARRAY[-2.0])::{kind} = {first}::{kind},
                    corgipile_predict_label({id}, ARRAY[2.0])::{kind} = {second}::{kind}"
        ));
        assert_eq!(predicted, "t|t", "{kind}");
        assert_eq!(db.evaluate(id, "t").accuracy, 1.0);
        db.fails_with(&format!("SELECT corgipile_predict({id}, ARRAY[2.0])"), "0A000")
            .hints(&["corgipile_predict_label"]);
    }
}

#[test]
fn text_classes_ascend() {
    let mut db = Database::new();
    for first_comes_first in [true, false] {
        table(&mut db, "text", "'a'", "'b'", first_comes_first);
        let id = db.train("'t', learning_rate => 0.5")[0].model_id;
        assert_eq!(db.line(&format!("SELECT classes FROM corgipile.models WHERE model_id = {id}")), "{a,b}");
    }
}

#[test]
fn enum_labels_come_back_in_the_order_of_their_type() {
    let mut db = Database::new();
    db.run("CREATE TYPE mood AS ENUM ('sad', 'happy')");
    check(&mut db, "mood", "'sad'", "'happy'");
}

#[test]
fn domains_are_labels_as_their_base_types_are() {
    let mut db = Database::new();
    db.run("CREATE DOMAIN sign AS int CHECK (VALUE IN (-1, 1))");
    table(&mut db, "sign", "-1", "1", true);
    let id = db.train("'t', learning_rate => 0.5")[0].model_id;
    assert_eq!(db.line(&format!("SELECT corgipile_predict({id}, ARRAY[-2.0])")), "-1");
}

#[test]
fn negative_zero_is_zero() {
    let mut db = Database::new();
    for kind in ["real", "double precision"] {
        db.run(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (label {kind}, x real);
             INSERT INTO t VALUES ('-0', -1), (1, 1), (0, -2), ('-0', -3), (1, 2)"
        ));
        let id = db.train("'t', learning_rate => 0.5")[0].model_id;
        assert_eq!(db.line(&format!("SELECT corgipile_predict({id}, ARRAY[-2.0]) = 0")), "t");
        assert_eq!(db.evaluate(id, "t").accuracy, 1.0);
    }
}

#[test]
fn numeric_labels_that_are_equal_are_one_class() {
    let mut db = Database::new();
    db.run("CREATE TABLE t (label numeric, x real); INSERT INTO t VALUES (1.0, -1), (2, 1), (1.00, -2), (2.000, 3)");
    let epochs = db.train("'t', learning_rate => 0.5");
    assert_eq!(epochs[19].accuracy, Some(1.0));
    assert_eq!(db.evaluate(epochs[0].model_id, "t").accuracy, 1.0);
}

#[test]
fn the_probabilities_are_of_the_classes_in_ascending_order_and_sum_to_one() {
    let mut db = Database::new();
    table(&mut db, "integer", "3", "5", false);
    let model = db.trained("'t', learning_rate => 0.5, standardize => false, seed => 1");
    for x in [-2.0_f64, -0.1, 0.0, 0.3, 2.0, 1000.0] {
        let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba({}, ARRAY[{x}]::float8[])", model.id));
        let z = f64::from(model.weights[0]) * x + f64::from(model.intercept);
        assert!((p[1] - 1.0 / (1.0 + (-z).exp())).abs() < 1e-6, "{x}: {p:?}");
        assert!((p[0] + p[1] - 1.0).abs() < 1e-12, "{x}: {p:?}");
        let label = db.line(&format!("SELECT corgipile_predict({}, ARRAY[{x}]::float8[])", model.id));
        assert_eq!(label, if p[1] > 0.5 { "5" } else { "3" });
    }
}

#[test]
fn the_label_column_can_have_any_name_and_place() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (a real, \"Is Spam?\" boolean, b real);
            INSERT INTO t SELECT i, i > 0, -i FROM generate_series(-20, 20) i",
    );
    let epochs = db.train("'t', label => 'Is Spam?'");
    assert!(epochs[19].accuracy > Some(0.9));
    assert_eq!(db.line("SELECT label, features FROM corgipile.models"), "Is Spam?|{a,b}");
}

#[test]
fn evaluate_on_labels_that_the_model_has_not_seen_is_an_error() {
    let mut db = Database::new();
    table(&mut db, "integer", "3", "5", true);
    let id = db.train("'t'")[0].model_id;
    db.fails_with(&format!("SELECT * FROM corgipile_evaluate({id}, 'SELECT 4 AS label, 1::real AS x')"), "22023")
        .says(&["4"])
        .hints(&["3", "5"]);
}

#[test]
fn evaluate_accepts_one_class_alone() {
    let mut db = Database::new();
    table(&mut db, "integer", "3", "5", true);
    let id = db.train("'t', learning_rate => 0.5")[0].model_id;
    let evaluation = db.evaluate(id, "SELECT * FROM t WHERE label = 5");
    assert_eq!((evaluation.accuracy, evaluation.tuples), (1.0, 30.0));
}

#[test]
fn labels_too_long_to_keep_are_refused() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT repeat('x', 9000 * (i % 2)) AS label, i AS x FROM generate_series(1, 10) i");
    db.rejects("SELECT * FROM corgipile_train('t')", "54000").says(&["too long"]).hints(&["8191"]);
}

#[test]
fn long_labels_that_differ_at_the_end_are_two_classes() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT repeat('x', 5000) || (i % 2) AS label, i % 2 AS x FROM generate_series(1, 50) i");
    let id = db.train("'t', learning_rate => 0.5")[0].model_id;
    assert_eq!(db.evaluate(id, "t").accuracy, 1.0);
}

#[test]
fn ratings_and_whole_numbers_stay_classes_and_what_is_measured_is_none() {
    let mut db = Database::with_small_table(200);
    let classes = |db: &mut Database, label: &str| {
        let id = db.train(&format!("'SELECT {label} AS label, a FROM t', 'softmax', max_epochs => 1"))[0].model_id;
        db.line(&format!("SELECT array_length(classes, 1) FROM corgipile.models WHERE model_id = {id}"))
    };
    assert_eq!(classes(&mut db, "1 + (id % 9) / 2::real"), "9", "1.0, 1.5, ... 5.0");
    assert_eq!(classes(&mut db, "(id % 20) / 2::numeric"), "20");
    assert_eq!(classes(&mut db, "(id % 60)::float8"), "60", "whole numbers");
    assert_eq!(classes(&mut db, "((id % 60) / 2::real)::text"), "60", "texts");
    // a fraction that comes late is found, too
    let mut fails = |label: &str| {
        db.fails_with(&format!("SELECT corgipile_train('SELECT {label} AS label, a FROM t', 'softmax')"), "22000")
    };
    fails("CASE WHEN id < 200 THEN id % 30 ELSE 0.5 END").says(&["not all integers (0.5)"]);
    fails("(id % 21) / 2::numeric").says(&["\"label\"", "more than 20"]);
    // two values are two classes, whatever they are
    db.train("'SELECT CASE WHEN a > 0 THEN 0.25 ELSE 0.75 END AS label, b FROM t', max_epochs => 1");
}

#[test]
fn each_class_needs_two_rows_if_there_are_many() {
    let mut db = Database::with_small_table(200);
    db.train("'SELECT id / 10 AS label, a FROM t', 'softmax', max_epochs => 1");
    // few classes are what they are said to be: a table may be small
    db.train("'SELECT id AS label, a FROM t WHERE id <= 20', 'softmax', max_epochs => 1");
    db.train("'SELECT least(id, 100) AS label, a FROM t', 'softmax', max_epochs => 1");
    db.rejects("SELECT corgipile_train('SELECT least(id, 101) AS label, a FROM t', 'softmax')", "22000");
}

#[test]
fn a_linear_regression_of_two_values_is_made_and_remarked_upon_once() {
    let db = Database::with_small_table(200);
    let told = |label: &str, more: &str| {
        let call = format!(
            "SELECT FROM corgipile_train('SELECT {label} AS label, a FROM t', 'linear', max_epochs => 2{more})"
        );
        db.notices(&[&call]).matches("has only two values").count()
    };
    assert_eq!(told("label", ""), 1);
    assert_eq!(told("label = 1", ""), 1);
    assert_eq!(told("7 - 3 * label", ", workers => 2"), 1);
    assert_eq!(told("label", ", prefetch => ''on''".replace("''", "'").as_str()), 1);
    assert_eq!(told("id % 3", ""), 0);
    assert_eq!(told("5", ""), 0);
    // no one measures the targets
    assert_eq!(told("label", ", standardize => false"), 0);
}
