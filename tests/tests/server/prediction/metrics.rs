//! corgipile_evaluate() against scikit-learn's figures for the same rows; see tests/golden/evaluate.py.

use corgipile_tests::stored::{DENSE, SOFTMAX};
use corgipile_tests::{Database, Session, Stored};
use serde_json::{Map, Value};

/// The rows of tests/golden/evaluate.py.
pub(super) fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT *, CASE WHEN i * 29 % 7 + CASE WHEN z > 0 THEN 3 ELSE 0 END > 4 THEN 1 ELSE -1 END AS sign,
                z + (i * 17 % 11) / 4.0 - 1 AS target,
                (ARRAY['ant', 'bee', 'cat'])[1 + CASE WHEN i % 5 = 0 THEN i % 3
                                                      WHEN za > zb AND za > zc THEN 0 WHEN zb > zc THEN 1 ELSE 2 END] AS animal
           FROM (SELECT *, 0.5 * a - 1.25 * b + 2 * c + 0.125 AS z, a + 2 * b + 3 * c + 0.1 AS za, -a + 0.5 * b + 2 * c + 0.2 AS zb,
                        -2 * b + 1.5 * c - 0.3 AS zc
                   FROM (SELECT i, (i * 37 % 101) / 16.0 - 3 + 1 / 64.0 AS a, (i * 53 % 97) / 8.0 - 6 AS b, (i * 11 % 13) / 4.0 - 1.5 AS c
                           FROM generate_series(1, 400) i) AS x) AS s",
    );
}

fn golden(model: &str) -> Map<String, Value> {
    let all: Value = serde_json::from_str(include_str!("../../../golden/evaluate.json")).expect("JSON");
    all[model].as_object().expect("figures of a model").clone()
}

/// All metrics by name.
fn metrics(db: &mut Session, model: &str, source: &str) -> Vec<(String, Option<f64>)> {
    let rows = db.rows("SELECT metric, value FROM corgipile_evaluate($1::text, $2)", &[&model, &source]);
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn every_metric_is_that_of_scikit_learn() {
    let mut db = Database::new();
    table(&mut db);
    for kind in ["logistic", "svm"] {
        Stored { model: kind, ..DENSE }.store(&mut db, kind);
    }
    Stored { model: "linear", classes: "NULL", label_type: "numeric", ..DENSE }.store(&mut db, "linear");
    SOFTMAX.store(&mut db, "softmax");
    for (kind, label) in [("logistic", "sign"), ("svm", "sign"), ("linear", "target"), ("softmax", "animal")] {
        let given = metrics(&mut db, kind, &format!("SELECT {label} AS label, ARRAY[a, b, c]::real[] AS x FROM t"));
        let mut expected = golden(kind);
        expected.insert("tuples".into(), 400.into());
        expected.insert("skipped".into(), 0.into());
        assert_eq!(given.len(), expected.len(), "{kind}: {given:?}");
        for (name, value) in given {
            let (value, expected) = (value.unwrap_or(f64::NAN), expected[&name].as_f64().expect("a number"));
            assert!((value - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{kind} {name}: {value}, {expected}");
        }
    }
}

/// The model and the rows of the golden figures, with labels that are texts.
const TEXTS: &str = "SELECT CASE WHEN sign = 1 THEN 'yes' ELSE 'no' END AS label, ARRAY[a, b, c]::real[] AS x FROM t";

fn store_of_texts(db: &mut Session, name: &str, options: &str) {
    Stored { model: "logistic", classes: "'{no,yes}'", label_type: "text", options, ..DENSE }.store(db, name);
}

#[test]
fn of_two_texts_each_has_its_metrics_unless_one_is_positive() {
    let mut db = Database::new();
    table(&mut db);
    store_of_texts(&mut db, "m", "{}");
    store_of_texts(&mut db, "of_no", r#"{"positive": "no"}"#);
    let expected = golden("texts");
    let assert_all = |given: &[(String, Option<f64>)], expected: &Map<String, Value>| {
        for (name, expected) in expected {
            let found = given.iter().find(|(metric, _)| metric == name).unwrap_or_else(|| panic!("{name}")).1;
            let (found, expected) = (found.unwrap_or(f64::NAN), expected.as_f64().expect("a number"));
            assert!((found - expected).abs() <= 1e-6, "{name}: {found}, {expected}");
        }
    };
    let positive = |label: &str| -> Map<String, Value> {
        let of = |name: &str| (name.to_owned(), expected[&format!("{name}[{label}]")].clone());
        ["precision", "recall", "f1", "pr_auc", "roc_auc"].into_iter().map(of).collect()
    };
    assert_all(&metrics(&mut db, "m", TEXTS), &expected);
    assert_all(&metrics(&mut db, "of_no", TEXTS), &positive("no"));
    for label in ["no", "yes"] {
        let rows = db
            .rows("SELECT metric, value FROM corgipile_evaluate('of_no', $1::text, positive => $2)", &[&TEXTS, &label]);
        let given: Vec<_> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_all(&given, &positive(label));
    }
    db.fails_with(&format!("SELECT corgipile_evaluate('m', $${TEXTS}$$, positive => 'maybe')"), "22023")
        .says(&["maybe", "no, yes"]);
    // a training records it
    db.run("SELECT FROM corgipile_train($$SELECT 'class ' || sign AS label, a FROM t$$, features => '{a}', max_epochs => 1, name => 'p', positive => 'class -1')");
    assert_eq!(db.line("SELECT hyperparameters ->> 'positive' FROM corgipile.models WHERE name = 'p'"), "class -1");
    db.fails_with(
        "SELECT corgipile_train($$SELECT 'class ' || sign AS label, a FROM t$$, features => '{a}', max_epochs => 1, positive => 'other')",
        "22023",
    );
}

#[test]
fn the_confusion_matrix_has_a_row_for_each_pair_of_labels() {
    let mut db = Database::new();
    table(&mut db);
    SOFTMAX.store(&mut db, "softmax");
    let source = "SELECT animal AS label, ARRAY[a, b, c]::real[] AS x FROM t";
    let expected = golden("softmax");
    let rows = db.rows("SELECT actual, predicted, tuples FROM corgipile_confusion('softmax', $1::text)", &[&source]);
    assert_eq!(rows.len(), 9);
    for row in rows {
        let (actual, predicted, tuples): (String, String, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(
            expected[&format!("confusion[{actual},{predicted}]")].as_i64(),
            Some(tuples),
            "{actual} {predicted}"
        );
    }
    Stored { model: "linear", classes: "NULL", label_type: "numeric", ..DENSE }.store(&mut db, "linear");
    db.fails_with(
        "SELECT corgipile_confusion('linear', 'SELECT target AS label, ARRAY[a, b, c]::real[] AS x FROM t')",
        "22023",
    );
}

#[test]
fn curves_are_those_of_scikit_learn() {
    let mut db = Database::new();
    table(&mut db);
    Stored { model: "logistic", ..DENSE }.store(&mut db, "m");
    let source = "SELECT sign AS label, ARRAY[a, b, c]::real[] AS x FROM t";
    let expected = golden("curves");
    for (curve, expected) in &expected {
        let rows = db.rows(
            "SELECT x, y FROM corgipile_curves('m', $1::text, points => 1000) WITH ORDINALITY AS c(curve, label, x, y, threshold, tuples, i)
              WHERE curve = $2 ORDER BY i",
            &[&source, curve],
        );
        let coordinates =
            |i: usize| expected[i].as_array().expect("numbers").iter().map(|x| x.as_f64().expect("a number"));
        assert_eq!(rows.len(), coordinates(0).count(), "{curve}");
        for ((row, x), y) in rows.iter().zip(coordinates(0)).zip(coordinates(1)) {
            let found: (f64, f64) = (row.get(0), row.get(1));
            assert!((found.0 - x).abs() < 1e-6 && (found.1 - y).abs() < 1e-6, "{curve}: {found:?}, {x}, {y}");
        }
    }
    // the lift of all rows is 1, and that of the first rows their precision by the share of all
    let lift =
        db.rows("SELECT x, y, tuples FROM corgipile_curves('m', $1::text) WHERE curve = 'lift' ORDER BY x", &[&source]);
    let last = lift.last().expect("points");
    assert_eq!((last.get::<_, f64>(0), last.get::<_, f64>(1), last.get::<_, i64>(2)), (1.0, 1.0, 400));
    let points: i64 = db
        .value(&format!("SELECT count(*) FROM corgipile_curves('m', $${source}$$, points => 10) WHERE curve = 'roc'"));
    assert!((10..=13).contains(&points), "{points}");
    store_of_texts(&mut db, "texts", "{}");
    let labels = db.lines(&format!("SELECT DISTINCT label FROM corgipile_curves('texts', $${TEXTS}$$) ORDER BY 1"));
    assert_eq!(labels, ["no", "yes"]);
    db.fails_with(&format!("SELECT corgipile_curves('texts', $${TEXTS}$$, points => 1)"), "22023");
}

#[test]
fn a_curve_of_more_rows_than_work_mem_holds_is_exact() {
    let mut db = Database::new();
    DENSE.store(&mut db, "m");
    db.run(
        "SET work_mem = '64kB';
         CREATE TABLE many AS
         SELECT CASE WHEN uniform(i, 1) < 0.3 THEN 1 ELSE -1 END AS label,
                ARRAY[round(normal(i, 2) * 100) / 64, 0, 0]::real[] AS x FROM generate_series(1, 100000) i",
    );
    // of all pairs of a positive and a negative row: those in order, and half of the ties
    let expected: f64 = db.value(
        "SELECT (sum(positive * (below + negative / 2.0)) / (sum(positive) * sum(negative)))::float8
           FROM (SELECT *, sum(negative) OVER (ORDER BY score) - negative AS below
                   FROM (SELECT x[1] AS score, count(*) FILTER (WHERE label = 1) AS positive,
                                count(*) FILTER (WHERE label = -1) AS negative FROM many GROUP BY x[1]) g) s",
    );
    let area: f64 = db.value("SELECT value FROM corgipile_evaluate('m', 'many') WHERE metric = 'roc_auc'");
    assert!((area - expected).abs() < 1e-12, "{area}, {expected}");
}

#[test]
fn what_is_not_defined_is_null_or_0() {
    let mut db = Database::new();
    DENSE.store(&mut db, "m");
    let given = metrics(&mut db, "m", "SELECT -1 AS label, ARRAY[-9, 0, 0]::real[] AS x FROM generate_series(1, 5)");
    let value = |name: &str| given.iter().find(|(metric, _)| metric == name).expect("the metric").1;
    assert_eq!(
        [value("roc_auc"), value("precision"), value("recall"), value("f1")],
        [None, Some(0.0), Some(0.0), Some(0.0)]
    );
    assert_eq!(value("confusion[-1,-1]"), Some(5.0));
}
