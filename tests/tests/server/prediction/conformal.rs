//! Intervals and sets of labels: thresholds are recomputed in SQL from predictions, and coverage is counted.

use corgipile_tests::stored::{DENSE, MIXED, SOFTMAX, SPARSE};
use corgipile_tests::{Database, Session, Stored};

/// Rows with features as an array, as columns and as sparse arrays, and labels of each kind. The first 999 are to
/// calibrate with.
fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, ARRAY[a, b, c]::real[] AS x, a, b, (ARRAY['low', 'high', 'mid'])[1 + i % 3] AS level,
                CASE WHEN i % 4 = 0 THEN '{3,1}' ELSE '{1,2,3}' END::int[] AS k,
                CASE WHEN i % 4 = 0 THEN ARRAY[c, a] ELSE ARRAY[a, b, c] END::real[] AS v,
                CASE WHEN 0.5 * a - 1.25 * b + 2 * c + normal(i, 5) > 0 THEN 1 ELSE -1 END AS sign,
                (ARRAY['ant', 'bee', 'cat'])[1 + i % 3] AS animal, 20 * a - b + 3 * normal(i, 4) AS target
         FROM generate_series(1, 4000) i,
              LATERAL (SELECT normal(i, 1)::real AS a, CASE WHEN i % 4 = 0 THEN 0 ELSE normal(i, 2)::real END AS b,
                              normal(i, 3)::real AS c) n",
    );
}

/// The rows to calibrate with, with this label.
fn held_out(label: &str) -> String {
    format!("SELECT {label} AS label, * FROM t WHERE id < 1000")
}

#[test]
fn an_interval_is_as_wide_as_the_order_statistic_of_the_distances() {
    let mut db = Database::new();
    table(&mut db);
    let linear = |stored| Stored { model: "linear", classes: "NULL", label_type: "float8", ..stored };
    linear(DENSE).store(&mut db, "array");
    linear(SPARSE).store(&mut db, "sparse");
    MIXED.store(&mut db, "mixed");
    for (model, features) in [("array", "x"), ("sparse", "k, v"), ("array", "k, v"), ("mixed", "t"), ("array", "t")] {
        let given = db.line(&format!("SELECT corgipile_calibrate('{model}', '{}')", held_out("target")));
        assert_eq!(given, "(999,0,0.999)");
        for (coverage, rank) in [(0.9, 900), (0.5, 500), (0.999, 999), (0.9005, 901)] {
            let (low, high): (f64, f64) = {
                let rows = db.rows(
                    &format!(
                        "WITH scores AS (
                             SELECT abs(target::real::float8 - corgipile_predict('{model}', {features})) AS score
                               FROM t WHERE id < 1000 ORDER BY 1 OFFSET {rank} - 1 LIMIT 1)
                         SELECT max(abs(i.lower - (f - score)) / (abs(f) + score)), max(abs(i.upper - (f + score)) / (abs(f) + score))
                           FROM t, scores, corgipile_predict('{model}', {features}) AS f,
                                corgipile_predict_interval('{model}', {features}, {coverage}) AS i"
                    ),
                    &[],
                );
                (rows[0].get(0), rows[0].get(1))
            };
            assert!(low < 1e-6 && high < 1e-6, "{model} {features} {coverage}: {low} {high}");
        }
        let inside: f64 = db.value(&format!(
            "SELECT avg((target BETWEEN lower AND upper)::int)::float8
               FROM t, corgipile_predict_interval('{model}', {features}) WHERE id >= 1000"
        ));
        assert!((0.87..0.93).contains(&inside), "{model} {features}: {inside}");
    }
}

#[test]
fn a_set_has_the_labels_whose_scores_are_within_the_order_statistic() {
    let mut db = Database::new();
    table(&mut db);
    DENSE.store(&mut db, "logistic");
    SPARSE.store(&mut db, "sparse");
    SOFTMAX.store(&mut db, "softmax");
    for (model, label, features) in
        [("logistic", "sign", "x"), ("sparse", "sign", "k, v"), ("softmax", "animal", "x"), ("softmax", "animal", "t")]
    {
        db.run(&format!("SELECT corgipile_calibrate('{model}', '{}')", held_out(label)));
        for (coverage, rank) in [(0.9, 900), (0.6, 600)] {
            let different = format!(
                "WITH p AS (SELECT id, c.class, 1 - c.p AS score, {label}::text = c.class AS is_true,
                                   c.class = ANY (corgipile_predict_set('{model}', {features}, {coverage})) AS chosen
                              FROM t, unnest((SELECT classes FROM corgipile.models WHERE name = '{model}'),
                                             corgipile_predict_proba('{model}', {features})) AS c(class, p)),
                      q AS (SELECT score AS q FROM p WHERE is_true AND id < 1000 ORDER BY 1 OFFSET {rank} - 1 LIMIT 1)
                 SELECT count(*) FROM p, q WHERE chosen <> (score <= q) AND abs(score - q) > 2e-6"
            );
            assert_eq!(db.line(&different), "0", "{model} {features} {coverage}");
        }
        let inside: f64 = db.value(&format!(
            "SELECT avg(({label}::text = ANY (corgipile_predict_set('{model}', {features})))::int)::float8 FROM t WHERE id >= 1000"
        ));
        assert!((0.87..0.93).contains(&inside), "{model} {features}: {inside}");
    }
}

#[test]
fn a_model_without_probabilities_is_calibrated_by_its_decisions_and_networks_like_others() {
    let mut db = Database::new();
    table(&mut db);
    Stored { model: "svm", ..DENSE }.store(&mut db, "svm");
    db.run(
        "SELECT corgipile_train('SELECT animal AS label, x FROM t WHERE id > 3000', 'mlp', name => 'mlp', max_epochs => 2, seed => 1);
         SELECT corgipile_train('SELECT target AS label, x FROM t WHERE id > 3000', 'mlp_regression', name => 'numbers', seed => 1,
                                max_epochs => 5)",
    );
    for (model, label) in [("svm", "sign"), ("mlp", "animal")] {
        db.run(&format!("SELECT corgipile_calibrate('{model}', '{}')", held_out(label)));
        let inside: f64 = db.value(&format!(
            "SELECT avg(({label}::text = ANY (corgipile_predict_set('{model}', x)))::int)::float8 FROM t
              WHERE id BETWEEN 1000 AND 3000"
        ));
        assert!((0.87..0.93).contains(&inside), "{model}: {inside}");
    }
    db.run(&format!("SELECT corgipile_calibrate('numbers', '{}')", held_out("target")));
    let inside: f64 = db.value(
        "SELECT avg((target BETWEEN lower AND upper)::int)::float8 FROM t, corgipile_predict_interval('numbers', x)
          WHERE id BETWEEN 1000 AND 3000",
    );
    assert!((0.87..0.93).contains(&inside), "numbers: {inside}");
}

#[test]
fn with_too_few_rows_intervals_are_infinite_and_sets_have_all_labels() {
    let mut db = Database::new();
    table(&mut db);
    MIXED.store(&mut db, "mixed");
    SOFTMAX.store(&mut db, "softmax");
    db.run(
        "SELECT corgipile_calibrate('mixed', 'SELECT target AS label, a, b, level FROM t WHERE id < 9');
         SELECT corgipile_calibrate('softmax', 'SELECT animal AS label, x FROM t WHERE id < 9')",
    );
    assert_eq!(db.line("SELECT corgipile_predict_interval('mixed', t) FROM t WHERE id = 1"), "(-Infinity,Infinity)");
    assert_eq!(db.line("SELECT corgipile_predict_set('softmax', t) FROM t WHERE id = 1"), "{ant,bee,cat}");
    let finite = "SELECT lower > '-Infinity' AND upper < 'Infinity' FROM t, corgipile_predict_interval('mixed', t, 0.8) WHERE id = 1";
    assert_eq!(db.line(finite), "t");
}

#[test]
fn rows_with_nulls_are_left_out_and_counted_and_have_no_interval() {
    let mut db = Database::new();
    table(&mut db);
    let skips = Stored { options: "{\"nulls\": \"skip\"}", ..MIXED };
    skips.store(&mut db, "mixed");
    let source = "SELECT CASE WHEN id > 5 THEN target END AS label, a, b, level FROM t WHERE id <= 100";
    assert_eq!(db.line(&format!("SELECT tuples, skipped FROM corgipile_calibrate('mixed', '{source}')")), "95|5");
    for nothing in [
        "corgipile_predict_interval('mixed', r) FROM (SELECT NULL::real AS a, 1 AS b, 'low' AS level) r",
        "corgipile_predict_interval(NULL::text, t) FROM t WHERE id = 1",
        "corgipile_predict_interval('mixed', t, NULL) FROM t WHERE id = 1",
        "corgipile_predict_interval('mixed', NULL::t)",
    ] {
        assert_eq!(db.line(&format!("SELECT {nothing}")), "NULL", "{nothing}");
    }
}

#[test]
fn a_calibration_goes_with_the_model_and_not_with_its_name() {
    let mut db = Database::new();
    table(&mut db);
    MIXED.store(&mut db, "mixed");
    let interval = "SELECT corgipile_predict_interval({}, t) FROM t WHERE id = 7";
    db.run(&format!("SELECT corgipile_calibrate(1, '{}')", held_out("target")));
    let expected = db.line(&interval.replace("{}", "'mixed'"));
    db.run("SELECT corgipile_import(corgipile_export('mixed'), 'copy')");
    for model in ["1", "2", "'copy'", "corgipile_export('copy')", "(SELECT corgipile_export('mixed'))"] {
        assert_eq!(db.line(&interval.replace("{}", model)), expected, "{model}");
    }
    // a new version has learned something else
    MIXED.store(&mut db, "newer");
    db.run("SELECT corgipile_rename('newer', 'other'); UPDATE corgipile.stored_models SET name = 'mixed', version = 2 WHERE name = 'other'");
    db.fails_with(&interval.replace("{}", "'mixed'"), "55000");
    db.run("SELECT corgipile_deploy('mixed', 1)");
    assert_eq!(db.line(&interval.replace("{}", "'mixed'")), expected);
    // again, in place of the old; a rollback undoes it
    db.run("BEGIN; SELECT corgipile_calibrate('mixed', 'SELECT target + 5 AS label, * FROM t WHERE id < 500')");
    assert_ne!(db.line(&interval.replace("{}", "'mixed'")), expected);
    db.run("ROLLBACK");
    assert_eq!(db.line(&interval.replace("{}", "'mixed'")), expected);
}

#[test]
fn of_many_rows_a_bounded_number_of_scores_is_kept() {
    let mut db = Database::new();
    table(&mut db);
    MIXED.store(&mut db, "mixed");
    db.run("SELECT corgipile_calibrate('mixed', 'SELECT (i * 7919 % 100003)::float8 + 0.25 AS label, 0 AS a, 0 AS b, ''low'' AS level
              FROM generate_series(1, 20000) i')");
    assert_eq!(db.line("SELECT calibration_rows, cardinality(calibration_scores) FROM corgipile.models"), "20000|3072");
    // ranks are rounded up, by less than a 2048th of all; near 1 they are exact
    for (coverage, most) in [(0.5, 10.0), (0.9, 10.0), (0.999, 0.0)] {
        let rows = db.rows(
            &format!(
                "SELECT count(*)::float8 - ceil({coverage}::float8 * 20001)
                   FROM (SELECT abs((i * 7919 % 100003)::float8 + 0.25 - 10.25) AS score FROM generate_series(1, 20000) i) s,
                        corgipile_predict_interval('mixed', (SELECT r FROM (SELECT 0 AS a, 0 AS b, 'low' AS level) r), {coverage}) AS p
                  WHERE score <= (upper - lower) / 2"
            ),
            &[],
        );
        let beyond: f64 = rows[0].get(0);
        assert!((0.0..=most).contains(&beyond), "{coverage}: {beyond} more than asked");
    }
}

#[test]
fn who_may_change_a_model_may_calibrate_it_and_reads_rows_by_its_own_rights() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE closed AS SELECT * FROM t; GRANT SELECT ON t TO PUBLIC");
    let (alice, bob) = (db.role("alice"), db.role("bob"));
    MIXED.store(&mut db, "mixed");
    db.run(&format!("UPDATE corgipile.stored_models SET owner = '{alice}'; SELECT corgipile_grant(1, '{bob}')"));
    let call =
        |from: &str| format!("SELECT corgipile_calibrate(1, 'SELECT target AS label, * FROM {from} WHERE id < 1000')");
    db.session_as(&bob).fails_with(&call("t"), "42501").says(&["owner"]);
    db.session_as(&alice).fails_with(&call("closed"), "42501").says(&["closed"]);
    db.session_as(&alice).run(&call("t"));
    assert_eq!(db.session_as(&bob).lines("SELECT FROM t, corgipile_predict_interval(1, t)").len(), 4000);
    db.fails_with(&format!("BEGIN READ ONLY; {}", call("t")), "25006");
    db.run("ROLLBACK");
}

#[test]
fn a_document_whose_calibration_cannot_be_is_refused() {
    let mut db = Database::new();
    table(&mut db);
    MIXED.store(&mut db, "mixed");
    db.run("SELECT corgipile_calibrate('mixed', 'SELECT target AS label, a, b, level FROM t WHERE id < 5')");
    for (change, says) in [
        ("m - 'calibration_rows'", "calibration_rows"),
        ("m - 'calibration_scores'", "calibration_scores"),
        ("m || '{\"calibration_scores\": [1, 2, 3]}'", "must have 4 for the 4 rows"),
        ("m || '{\"calibration_scores\": [1, 2, 3, 2]}'", "position 4"),
        ("m || '{\"calibration_scores\": [1, 2, 3, 1e999]}'", "calibration_scores"),
        ("m || '{\"calibration_rows\": -4}'", "calibration_rows"),
        ("m || '{\"calibration_rows\": 3073}'", "3072"),
    ] {
        let sql = format!("SELECT corgipile_import({change}, 'bad') FROM corgipile_export('mixed') AS m");
        db.fails_with(&sql, "22023").says(&[says]);
    }
    // an administrator may have written anything
    db.run("UPDATE corgipile.stored_models SET calibration_rows = 77");
    db.fails_with("SELECT corgipile_predict('mixed', t) FROM t", "XX001").says(&["calibration_rows"]);
}
