//! corgipile_evaluate(): what it says of every kind of model is recomputed from the stored weights, in SQL.

use corgipile_tests::stored::{DENSE, MIXED, SOFTMAX, SPARSE};
use corgipile_tests::{Database, Session, Stored};

/// The metrics in the order in which they come.
fn metrics(db: &mut Session, model: &str, source: &str) -> (Vec<String>, Vec<f64>) {
    let rows = db.rows("SELECT metric, value FROM corgipile_evaluate($1::text, $2)", &[&model, &source]);
    rows.iter().map(|row| (row.get::<_, String>(0), row.get::<_, Option<f64>>(1).unwrap_or(f64::NAN))).unzip()
}

/// Asserts that evaluation gives the quality that `name` says, and the loss, over `tuples` rows.
fn assert_metrics(db: &mut Session, model: &str, source: &str, name: &str, [quality, loss, tuples]: [f64; 3]) {
    let (names, values) = metrics(db, model, source);
    assert_eq!(names[..4], [name, "loss", "tuples", "skipped"], "{model} on {source}");
    for (given, expected) in values.iter().zip([quality, loss, tuples, 0.0]) {
        assert!(
            (given - expected).abs() <= 1e-6 * expected.abs().max(1.0),
            "{model} on {source}: {values:?}, {quality} {loss} {tuples}"
        );
    }
}

/// Rows with three features as an array, as columns and as sparse arrays, and a label of each type.
fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, ARRAY[a, b, c]::real[] AS x, a::float8 AS a, b::real AS b, c > 0 AS c,
                CASE WHEN i % 4 = 0 THEN '{3,1}' ELSE '{1,2,3}' END::int[] AS k,
                CASE WHEN i % 4 = 0 THEN ARRAY[c, a] ELSE ARRAY[a, b, c] END::real[] AS v,
                (ARRAY[-1, 1])[1 + i % 2] AS sign, (ARRAY['ant', 'bee', 'cat'])[1 + i % 3] AS animal,
                (a - b + normal(i, 4))::numeric AS target, (ARRAY['low', 'high', 'mid'])[1 + i % 3] AS level
         FROM generate_series(1, 500) i,
              LATERAL (SELECT normal(i, 1)::real AS a, CASE WHEN i % 4 = 0 THEN 0 ELSE normal(i, 2)::real END AS b,
                              normal(i, 3)::real AS c) n",
    );
}

/// The decision of [`DENSE`] and [`SPARSE`] for a row of [`table`].
const DECISION: &str = "(0.5 * x[1]::float8 - 1.25 * x[2]::float8 + 2 * x[3]::float8 + 0.125)";

/// What this query gives: three numbers.
fn expected(db: &mut Session, query: &str) -> [f64; 3] {
    let rows = db.rows(query, &[]);
    [rows[0].get(0), rows[0].get(1), rows[0].get(2)]
}

#[test]
fn two_classes_are_judged_by_accuracy_and_by_the_loss_of_the_model() {
    let mut db = Database::new();
    table(&mut db);
    for (model, loss) in [("logistic", "ln(1 + exp(-sign * z))"), ("svm", "greatest(0, 1 - sign * z)")] {
        let expected = expected(
            &mut db,
            &format!(
                "SELECT avg(((sign > 0) = (z > 0))::int)::float8, avg({loss}), count(*)::float8 FROM (SELECT sign, {DECISION} AS z FROM t) s"
            ),
        );
        for (form, stored, columns) in [("array", DENSE, "x"), ("sparse", SPARSE, "k, v")] {
            let name = format!("{model} {form}");
            Stored { model, ..stored }.store(&mut db, &name);
            let source = format!("SELECT sign AS label, {columns} FROM t");
            assert_metrics(&mut db, &name, &source, "accuracy", expected);
            let right = db.line(&format!(
                "SELECT avg((corgipile_predict('{name}', s) = label)::int)::float8::real FROM ({source}) s"
            ));
            assert_eq!(right, format!("{}", expected[0] as f32), "{name}: predictions are as right as evaluation says");
        }
    }
}

#[test]
fn regression_is_judged_by_r2_and_half_the_squared_error() {
    let mut db = Database::new();
    table(&mut db);
    let expected = expected(
        &mut db,
        &format!(
            "SELECT 1 - sum((z - target) ^ 2) / (sum(target ^ 2) - sum(target) ^ 2 / count(*)), avg((z - target) ^ 2) / 2,
                    count(*)::float8
             FROM (SELECT target::float8, {DECISION} AS z FROM t) s"
        ),
    );
    let linear = |stored| Stored { model: "linear", classes: "NULL", label_type: "numeric", ..stored };
    linear(DENSE).store(&mut db, "array");
    linear(SPARSE).store(&mut db, "sparse");
    assert_metrics(&mut db, "array", "SELECT target AS label, x FROM t", "r2", expected);
    assert_metrics(&mut db, "array", "SELECT target::real AS label, x FROM t", "r2", expected);
    assert_metrics(&mut db, "sparse", "SELECT target AS label, k, v FROM t", "r2", expected);
    db.fails_with("SELECT * FROM corgipile_evaluate('array', 'SELECT animal AS label, x FROM t')", "42804")
        .hints(&["number"]);
}

#[test]
fn many_classes_are_judged_by_accuracy_and_cross_entropy() {
    let mut db = Database::new();
    table(&mut db);
    SOFTMAX.store(&mut db, "m");
    let expected = expected(
        &mut db,
        "SELECT avg((z = greatest(za, zb, zc))::int)::float8, avg(ln(exp(za) + exp(zb) + exp(zc)) - z), count(*)::float8
         FROM (SELECT *, CASE animal WHEN 'ant' THEN za WHEN 'bee' THEN zb ELSE zc END AS z
               FROM (SELECT animal, x[1]::float8 + 2 * x[2] + 3 * x[3] + 0.1 AS za, -x[1]::float8 + 0.5 * x[2] + 2 * x[3] + 0.2 AS zb,
                            -2 * x[2]::float8 + 1.5 * x[3] - 0.3 AS zc FROM t) s) s",
    );
    assert_metrics(&mut db, "m", "SELECT animal AS label, x FROM t", "accuracy", expected);
    let right: f64 = db.value("SELECT avg((corgipile_predict_label('m', x) = animal)::int)::float8 FROM t");
    assert!((right - expected[0]).abs() < 1e-12);
    db.fails_with(
        "SELECT * FROM corgipile_evaluate('m', $$SELECT CASE id WHEN 77 THEN 'dog' ELSE animal END AS label, x FROM t$$)",
        "22023",
    )
    .says(&["dog"])
    .hints(&["ant", "bee", "cat"]);
}

#[test]
fn columns_of_numbers_and_categories_are_evaluated_as_they_are_predicted() {
    let mut db = Database::new();
    table(&mut db);
    MIXED.store(&mut db, "plain");
    Stored { mean: "'{1,0,0,0,-2}'", scale: "'{2,1,1,1,0.5}'", ..MIXED }.store(&mut db, "standardized");
    for (name, a, b) in [("plain", "a", "b"), ("standardized", "(a - 1) / 2", "(b + 2) / 0.5")] {
        let expected = expected(
            &mut db,
            &format!(
                "SELECT 1 - sum((z - target) ^ 2) / (sum(target ^ 2) - sum(target) ^ 2 / count(*)), avg((z - target) ^ 2) / 2,
                        count(*)::float8
                 FROM (SELECT target::float8, 0.5 * {a} + CASE level WHEN 'low' THEN 10 WHEN 'high' THEN 20 ELSE 40 END
                                              - 3 * {b} + 0.25::float8 AS z FROM t) s"
            ),
        );
        for source in [
            "SELECT target AS label, a, level, b FROM t",
            "SELECT b, 7 AS other, level::varchar, target AS label, a FROM t",
        ] {
            assert_metrics(&mut db, name, source, "r2", expected);
        }
    }
}

#[test]
fn evaluation_handles_what_training_has_not_seen_as_prediction_does() {
    let mut db = Database::new();
    table(&mut db);
    MIXED.store(&mut db, "categories");
    Stored { options: "{\"handle_unknown\": \"ignore\"}", ..MIXED }.store(&mut db, "categories, zero");
    SPARSE.store(&mut db, "indices");
    Stored { options: "{\"handle_unknown\": \"ignore\"}", ..SPARSE }.store(&mut db, "indices, zero");
    let categories = "SELECT target AS label, a, CASE id WHEN 7 THEN 'none' ELSE level END AS level, b FROM t";
    let indices = "SELECT sign AS label, k || 9 AS k, v || 1::real AS v FROM t";
    db.fails_with(&format!("SELECT * FROM corgipile_evaluate('categories', $${categories}$$)"), "22023")
        .says(&["none", "level"])
        .hints(&["handle_unknown"]);
    db.fails_with(&format!("SELECT * FROM corgipile_evaluate('indices', '{indices}')"), "2202E")
        .says(&["9", "k"])
        .hints(&["handle_unknown"]);
    let loss: f64 = db.value(&format!(
        "SELECT avg((corgipile_predict('categories, zero', s) - label::float8) ^ 2) / 2 FROM ({categories}) s"
    ));
    let (_, values) = metrics(&mut db, "categories, zero", categories);
    assert!((values[1] - loss).abs() < 1e-5 * loss, "{values:?} {loss}");
    assert_eq!(
        metrics(&mut db, "indices, zero", indices),
        metrics(&mut db, "indices", "SELECT sign AS label, k, v FROM t")
    );
}

#[test]
fn rows_with_nulls_are_errors_or_skipped_as_in_training() {
    let mut db = Database::new();
    table(&mut db);
    for (stored, columns) in
        [(DENSE, "CASE WHEN id > 3 THEN x END AS x"), (SPARSE, "k, CASE WHEN id > 3 THEN v ELSE '{NULL,1,1}' END AS v")]
    {
        let source = format!("SELECT sign AS label, {columns} FROM t WHERE id % 4 = 0 OR id = 3");
        stored.store(&mut db, "error");
        Stored { options: "{\"nulls\": \"skip\"}", ..stored }.store(&mut db, "skip");
        db.fails_with(&format!("SELECT * FROM corgipile_evaluate('error', $${source}$$)"), "22004");
        let (_, values) = metrics(&mut db, "skip", &source);
        assert_eq!(values[2..4], [125.0, 1.0]);
        db.run("DELETE FROM corgipile.stored_models");
    }
}

#[test]
fn columns_of_other_types_than_in_training_are_an_error_that_names_those() {
    let mut db = Database::new();
    table(&mut db);
    DENSE.store(&mut db, "array");
    SPARSE.store(&mut db, "sparse");
    MIXED.store(&mut db, "mixed");
    Stored { features: "'{a,b,c}'", kind: "columns", ..DENSE }.store(&mut db, "columns");
    for (model, source, hint) in [
        ("array", "SELECT sign AS label, a AS x FROM t", "an array of numbers in column x"),
        ("sparse", "SELECT sign AS label, a AS k, b AS v FROM t", "indices in column k and values in column v"),
        ("mixed", "SELECT target AS label, a, 1 AS level, b FROM t", "categories in this column"),
        ("mixed", "SELECT target AS label, animal AS a, level, b FROM t", "numbers in this column"),
        ("columns", "SELECT sign AS label, a, b, level AS c FROM t", "numbers in this column"),
    ] {
        db.fails_with(&format!("SELECT * FROM corgipile_evaluate('{model}', '{source}')"), "42804").hints(&[hint]);
    }
    // Other types of numbers are numbers, too.
    let (_, values) = metrics(&mut db, "columns", "SELECT sign AS label, a::numeric, b::int, c FROM t");
    assert_eq!(values[2], 500.0);
    db.fails_with("SELECT * FROM corgipile_evaluate('array', 'SELECT sign AS label, x[1:2] AS x FROM t')", "2202E");
    db.fails_with("SELECT * FROM corgipile_evaluate('mixed', 'SELECT target AS label, a, b FROM t')", "42703");
}

#[test]
fn trained_models_of_every_kind_predict_what_they_were_judged_by() {
    let mut db = Database::new();
    table(&mut db);
    for (features, columns) in
        [("{x}", "x"), ("{k,v}", "k, v"), ("{a,b,c}", "a, b, c"), ("{a,level,c}", "a, level, c"), ("{level}", "level")]
    {
        for standardize in [false, true] {
            if standardize && features == "{level}" {
                continue; // there is nothing to scale
            }
            for (kind, label) in [("logistic", "sign"), ("svm", "sign"), ("softmax", "animal"), ("linear", "target")] {
                let source = format!("SELECT {label} AS label, {columns} FROM t");
                let id = db.train(&format!(
                    "'{source}', '{kind}', features => '{features}', max_epochs => 3, seed => 1,
                     options => '{{\"standardize\": {standardize}}}'"
                ))[0]
                    .model_id;
                let quality = if kind == "linear" {
                    format!(
                        "1 - sum((corgipile_predict({id}, s) - label::float8) ^ 2) / (var_pop(label::float8) * count(*))"
                    )
                } else {
                    format!("avg((corgipile_predict_label({id}, s) = label::text)::int)::float8")
                };
                let expected: f64 = db.value(&format!("SELECT {quality} FROM ({source}) s"));
                let given: f64 = db.value(&format!(
                    "SELECT value FROM corgipile_evaluate({id}, '{source}') WHERE metric IN ('accuracy', 'r2')"
                ));
                let tolerance = if kind == "linear" { 1e-5 } else { 0.0 };
                assert!((given - expected).abs() <= tolerance, "{kind} {features} {standardize}: {given} {expected}");
            }
        }
    }
}

#[test]
fn a_null_is_an_error_and_not_an_empty_result() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i % 2 AS label, i::real AS x FROM generate_series(1, 20) i");
    db.train("'t', max_epochs => 1, name => 'm'");
    db.rejects("SELECT * FROM corgipile_evaluate(NULL::text, 't')", "22004").says(&["\"name\""]);
    db.rejects("SELECT * FROM corgipile_evaluate(NULL::bigint, 't')", "22004").says(&["\"model_id\""]);
    db.rejects("SELECT * FROM corgipile_evaluate('m', NULL)", "22004").says(&["\"source\""]);
    db.rejects("SELECT corgipile_evaluate(1, NULL)", "22004").says(&["\"source\""]);
    // of a row, a NULL is nothing to be answered
    assert_eq!(
        db.line("SELECT corgipile_predict('m', NULL::real[]), corgipile_predict(NULL::text, ARRAY[1])"),
        "NULL|NULL"
    );
}

#[test]
fn names_of_metrics_are_those_of_one_pair_of_classes() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT (ARRAY['a', 'a,b', 'b', 'b,a', '\"', '', ' c', 'x]', 'ü d'])[1 + i % 9] AS label, i::real AS x
           FROM generate_series(1, 90) i",
    );
    db.train("'t', 'softmax', max_epochs => 1, name => 'm'");
    let names: Vec<String> = db.column("SELECT metric FROM corgipile_evaluate('m', 't')");
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    for name in [
        "confusion[a,b]",
        "confusion[\"a,b\",a]",
        "confusion[a,\"b,a\"]",
        "confusion[\"\"\"\",\"\"]",
        "confusion[\" c\",\"x]\"]",
        "f1[ü d]",
        "roc_auc[\"b,a\"]",
    ] {
        assert!(distinct.contains(&name.to_owned()), "{name} is not in {names:?}");
    }
}

#[test]
fn targets_are_compared_as_the_table_has_them_and_not_in_single_precision() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE far AS SELECT 1e12::float8 + 1000 * x AS y, x, ARRAY[x] AS v, ARRAY[1] AS k, i % 10 = 0 AS odd
           FROM (SELECT i, (i % 100)::float8 AS x FROM generate_series(1, 3000) i) s;
         SELECT FROM corgipile_compress('SELECT y, v FROM far', 'compressed', label => 'y', features => '{v}');
         CREATE TABLE gaps AS SELECT CASE WHEN NOT odd THEN y END AS y, x, v, k, odd FROM far",
    );
    for (features, predict) in [("{x}", "x => x"), ("{v}", "v"), ("{k,v}", "k, v")] {
        let id = db
            .trained(&format!(
                "'far', 'linear', label => 'y', features => '{features}', solver => 'newton', standardize => false"
            ))
            .id;
        let predict = match features {
            "{x}" => format!("corgipile_predict({id}, far)"),
            _ => format!("corgipile_predict({id}, {predict})"),
        };
        for source in ["far", "SELECT y, x, v, k FROM far WHERE NOT odd", "gaps", "compressed"] {
            if source == "compressed" && features != "{v}" {
                continue;
            }
            let rows = if source == "far" || source == "compressed" { "far" } else { "far WHERE NOT odd" };
            let expected = db.rows(
                &format!(
                    "SELECT sqrt(avg((y - p) ^ 2)), avg(abs(y - p)), 1 - sum((y - p) ^ 2) / (count(*) * var_pop(y - 1e12))
                       FROM (SELECT y, {predict} AS p FROM {rows}) s"
                ),
                &[],
            );
            for (i, metric) in ["rmse", "mae", "r2"].into_iter().enumerate() {
                let (found, expected): (f64, f64) = (
                    db.value(&format!(
                        "SELECT value FROM corgipile_evaluate({id}, $${source}$$, nulls => 'skip') WHERE metric = '{metric}'"
                    )),
                    expected[0].get(i),
                );
                let what = format!("{features} {source} {metric}: {found} {expected}");
                assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{what}");
            }
        }
        // an interval for all rows reaches as far as the farthest of them
        db.run(&format!("SELECT FROM corgipile_calibrate({id}, 'far'::text)"));
        let worst: f64 = db.value(&format!("SELECT max(abs(y - {predict})) FROM far"));
        let found: f64 = db
            .value(&format!("SELECT max(s) FROM corgipile.models, unnest(calibration_scores) s WHERE model_id = {id}"));
        assert!((found - worst).abs() <= 1e-9 * worst, "{features}: {found} {worst}");
    }
}

#[test]
fn standard_errors_are_those_of_targets_in_double_precision() {
    let mut db = Database::new();
    db.run("CREATE TABLE far AS SELECT 1e8 + x + normal(i, 1) AS y, x FROM (SELECT i, normal(i, 2) AS x FROM generate_series(1, 2000) i) s");
    let id = db.trained("'far', 'linear', label => 'y', features => '{x}', solver => 'newton'").id;
    let of = |feature: &str, column: &str| {
        format!("(SELECT {column} FROM corgipile_coefficients({id}, 'far'::text) WHERE feature = '{feature}')")
    };
    let expected: f64 = db.value(&format!(
        "WITH model AS (SELECT {} AS a, {} AS b)
         SELECT sqrt(sum((y - a - b * x) ^ 2) / (count(*) - 2) / (count(*) * var_pop(x))) FROM far, model",
        of("(intercept)", "coefficient"),
        of("x", "coefficient")
    ));
    let found: f64 = db.value(&format!("SELECT {}", of("x", "std_error")));
    assert!((found - expected).abs() <= 1e-3 * expected, "{found} {expected}");
}
