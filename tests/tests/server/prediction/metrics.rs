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
