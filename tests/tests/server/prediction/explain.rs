//! corgipile_coefficients(), corgipile_importance() and corgipile_explain() against statsmodels, scikit-learn and shap;
//! see tests/golden/explain.py.

use corgipile_tests::stored::{DENSE, MIXED, SOFTMAX};
use corgipile_tests::{Database, Session};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("../../../golden/explain.json")).expect("JSON")
}

/// Stores the rows of a data set as a table of its name. Returns the feature columns.
fn store(db: &mut Session, name: &str, set: &Value) -> Vec<String> {
    let rows = set["rows"].as_array().expect("rows");
    let columns: Vec<&String> = rows[0].as_object().expect("a row").keys().collect();
    let category = set["category"].as_str();
    let typed = |column: &&String| {
        format!("\"{column}\" {}", if category == Some(column.as_str()) { "text" } else { "float8" })
    };
    let typed: Vec<String> = columns.iter().map(typed).collect();
    db.run(&format!(
        "CREATE TABLE {name} AS SELECT * FROM jsonb_to_recordset('{}') AS r({})",
        set["rows"],
        typed.join(", ")
    ));
    let weight = set["weight"].as_str();
    let is_feature = |column: &&&String| column.as_str() != "label" && weight != Some(column.as_str());
    columns.iter().filter(is_feature).map(|column| format!("\"{column}\"")).collect()
}

#[test]
fn coefficients_are_those_of_statsmodels_on_six_sets() {
    let golden = golden();
    let mut db = Database::new();
    for (name, set) in golden["inference"].as_object().expect("sets") {
        let features = store(&mut db, name, set).join(",");
        let weight = set["weight"].as_str().map_or(String::new(), |weight| format!(", \"weight\": \"{weight}\""));
        let model = set["model"].as_str().expect("a model");
        let label = if model == "logistic" { ", (label > 0)::int AS label" } else { ", label" };
        db.run(&format!(
            "CREATE VIEW {name}_rows AS SELECT {features} {} {label} FROM {name};
             SELECT FROM corgipile_train('{name}_rows', '{model}', features => '{{{features}}}', solver => 'newton',
                 name => '{name}', options => '{{\"transform\": \"none\"{weight}}}')",
            set["weight"].as_str().map_or(String::new(), |weight| format!(", \"{weight}\"")),
        ));
        let sql = "SELECT feature, coefficient, std_error, statistic, p_value, lower, upper
                     FROM corgipile_coefficients($1::text, $1 || '_rows', 0.9, $2)";
        // statsmodels has weights of least squares, and frequencies of other models
        let weights = if model == "linear" { "precisions" } else { "frequencies" };
        let (mut left_out, mut compared) = (0, 0);
        for row in db.rows(sql, &[name, &weights]) {
            let (feature, coefficient): (String, f64) = (row.get(0), row.get(1));
            let Some(expected) = set["estimates"].get(&feature) else {
                // the category that the others are compared with
                let nulls = (2..7).map(|i| row.get::<_, Option<f64>>(i));
                assert!(coefficient == 0.0 && nulls.flatten().count() == 0, "{name}: {feature}");
                left_out += 1;
                continue;
            };
            let expected: Vec<f64> = expected.as_array().expect("figures").iter().filter_map(Value::as_f64).collect();
            let found: Vec<f64> = (1..7).map(|i| row.get(i)).collect();
            let (value, error) = (expected[0].abs(), expected[1]);
            // intervals and coefficients within a millionth of themselves and of the error
            for i in [0, 4, 5] {
                assert!(
                    (found[i] - expected[i]).abs() <= 1e-6 * (value + error),
                    "{name} {feature}: {found:?} {expected:?}"
                );
            }
            assert!((found[1] / error - 1.0).abs() <= 1e-6, "{name} {feature}: {found:?} {expected:?}");
            let tolerance = 1e-6 * expected[2].abs().max(1.0);
            assert!((found[2] - expected[2]).abs() <= tolerance, "{name} {feature}: {found:?} {expected:?}");
            assert!((found[3] - expected[3]).abs() <= 1e-6, "{name} {feature}: {found:?} {expected:?}");
            compared += 1;
        }
        let categories = usize::from(set["category"].is_string());
        assert_eq!((left_out, compared), (categories, set["estimates"].as_object().map_or(0, |e| e.len())), "{name}");
    }
}

#[test]
fn a_model_that_was_trained_by_gradients_says_how_far_it_is_from_the_optimum() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT (uniform(i, 1) < 1 / (1 + exp(-normal(i, 2))))::int AS label, normal(i, 2)::real AS a,
                normal(i, 3)::real AS b FROM generate_series(1, 5000) i;
         SELECT FROM corgipile_train('t', max_epochs => 1, learning_rate => 0.0001, name => 'early');
         SELECT FROM corgipile_train('t', solver => 'newton', name => 'optimum');",
    );
    let far = db.notices(&["SELECT FROM corgipile_coefficients('early', 't')"]);
    assert!(far.contains("the model does not minimize the loss on these rows: a is "), "{far}");
    let at = db.notices(&["SELECT FROM corgipile_coefficients('optimum', 't'::regclass)"]);
    assert_eq!(at, "");
}

#[test]
fn permutation_importance_is_that_of_scikit_learn_and_a_function_of_the_seed() {
    let golden = &golden()["importance"];
    let mut db = Database::new();
    super::metrics::table(&mut db);
    DENSE.store(&mut db, "m");
    let source = "SELECT sign AS label, ARRAY[a, b, c]::real[] AS x FROM t";
    let sql =
        "SELECT feature, importance, stddev, effect FROM corgipile_importance('m', $1, repeats => 200, seed => $2)";
    let rows = db.rows(sql, &[&source, &7_i64]);
    assert_eq!(rows.len(), 3);
    for (i, row) in rows.iter().enumerate() {
        let [mean, deviation, effect] =
            ["mean", "deviation", "effect"].map(|key| golden[key][i].as_f64().expect("a number"));
        let found: [f64; 3] = [row.get(1), row.get(2), row.get(3)];
        assert_eq!(row.get::<_, String>(0), format!("x[{}]", i + 1));
        // two means of 200 drops each
        assert!(
            (found[0] - mean).abs() < 4.0 * deviation * (2.0_f64 / 200.0).sqrt(),
            "{i}: {found:?} {mean} {deviation}"
        );
        assert!((found[1] / deviation - 1.0).abs() < 0.25, "{i}: {found:?} {deviation}");
        assert!((found[2] / effect - 1.0).abs() < 1e-9, "{i}: {found:?} {effect}");
    }
    let numbers =
        |rows: Vec<postgres::Row>| rows.iter().map(|row| (row.get(1), row.get(2))).collect::<Vec<(f64, f64)>>();
    let first = numbers(rows);
    assert_eq!(numbers(db.rows(sql, &[&source, &7_i64])), first);
    assert_ne!(numbers(db.rows(sql, &[&source, &8_i64])), first);
}

#[test]
fn categories_of_a_column_are_permuted_together_and_large_tables_are_sampled() {
    let mut db = Database::new();
    MIXED.store(&mut db, "m");
    db.run(
        "CREATE TABLE t AS SELECT a, level, b, corgipile_predict('m', s) AS label
           FROM (SELECT normal(i, 1)::real AS a, (ARRAY['low', 'mid', 'high'])[1 + i % 3] AS level, 0::real AS b
                   FROM generate_series(1, 30000) i) s",
    );
    let rows = db.rows("SELECT feature, importance, effect FROM corgipile_importance('m', 't')", &[]);
    let features: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(features, ["a", "level", "b"]);
    // R2 is 1, and of a column it falls by twice its share of the variance: of a that is 1/4, of the levels 155.6
    let [a, level, b]: [f64; 3] = std::array::from_fn(|i| rows[i].get(1));
    let all = 0.25 + 1400.0 / 9.0;
    assert!(
        (a - 0.5 / all).abs() < 3e-4 && (level - 2.0 * (1.0 - 0.25 / all)).abs() < 0.02 && b == 0.0,
        "{a} {level} {b}"
    );
    let effects: Vec<f64> = rows.iter().map(|row| row.get(2)).collect();
    assert!((effects[0] - 0.5).abs() < 0.01 && (effects[1] - (1400.0_f64 / 9.0).sqrt()).abs() < 1e-6, "{effects:?}");
    let told = db.notices(&["SELECT FROM corgipile_importance('m', 't', max_rows => 1000)"]);
    assert!(told.starts_with("NOTICE:  1000 rows are used, from blocks drawn at random\n"), "{told}");
}

#[test]
fn contributions_are_those_of_shap_and_add_up_to_the_decision() {
    let golden = &golden()["contributions"];
    let mut db = Database::new();
    super::metrics::table(&mut db);
    DENSE.store(&mut db, "m");
    db.run("CREATE VIEW rows AS SELECT i, sign AS label, ARRAY[a, b, c]::real[] AS x FROM t");
    for (i, expected) in golden["rows"].as_array().expect("rows").iter().enumerate() {
        let sql = "SELECT e.contribution FROM rows r, corgipile_explain('m', r, 'rows') e WHERE r.i = $1";
        let found: Vec<f64> = db.rows(sql, &[&(i as i32 + 1)]).iter().map(|row| row.get(0)).collect();
        let base = golden["base"].as_f64().expect("a number");
        let expected: Vec<f64> =
            [base].into_iter().chain(expected.as_array().expect("a row").iter().filter_map(Value::as_f64)).collect();
        assert_eq!(found.len(), 4);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6, "{i}: {found} {expected}");
        }
    }
    let worst: f64 = db.value(
        "SELECT max(abs(s.z - (0.5 * x[1] - 1.25 * x[2] + 2 * x[3] + 0.125)))
           FROM rows r, LATERAL (SELECT sum(contribution) AS z FROM corgipile_explain('m', r, 'rows')) s",
    );
    assert!(worst < 1e-5, "{worst}");
}

#[test]
fn every_linear_model_is_explained_by_name_by_id_and_by_value() {
    let mut db = Database::new();
    let id = MIXED.store(&mut db, "m");
    SOFTMAX.store(&mut db, "s");
    db.run("CREATE TABLE t AS SELECT 2::real AS a, 'high' AS level, 3::real AS b, ARRAY[1, 2, 3]::real[] AS x");
    let expected = ["(base)|NULL|0.25", "a|NULL|1", "level|NULL|20", "b|NULL|-9"];
    // weights are in the sequence of the columns: a, three of level, b
    for model in ["'m'".to_owned(), id.to_string(), "corgipile_export('m')".to_owned()] {
        assert_eq!(db.lines(&format!("SELECT e.* FROM t, corgipile_explain({model}, t) e")), expected, "{model}");
    }
    let of_classes = db.lines(
        "SELECT class, sum(contribution)::numeric(10, 4) FROM t, corgipile_explain('s', t) GROUP BY class ORDER BY class",
    );
    assert_eq!(of_classes, ["ant|14.1000", "bee|6.2000", "cat|0.2000"]);
}

#[test]
fn means_are_those_of_all_rows_whatever_their_labels_are() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i, i % 3 > 0 AS label, (i % 7)::real AS a, i % 11 AS \"label_\", (ARRAY['x', 'y'])[1 + i % 2] AS c
           FROM generate_series(1, 100) i;
         SELECT FROM corgipile_train('t', 'logistic', features => '{a,label_,c}', solver => 'newton', name => 'm', l2 => 0.1)",
    );
    let mut of = |source: &str| {
        db.lines(&format!(
            "SELECT feature, contribution FROM (SELECT t FROM t WHERE i = 5) r, corgipile_explain('m', r.t, '{source}') e ORDER BY 1"
        ))
    };
    let expected = of("t");
    assert_eq!(expected.len(), 4);
    for source in [
        "SELECT a, label_, c FROM t",
        "SELECT a, label_, c, CASE WHEN i > 50 THEN label END AS label FROM t",
        "SELECT a, label_, c, NULL::int AS label FROM t",
        "SELECT a, label_, c, 99 AS label FROM t",
        "SELECT a, label_, c, ''foo'' AS label FROM t",
    ] {
        assert_eq!(of(source), expected, "{source}");
    }
}

#[test]
fn what_is_left_out_is_told_and_rows_that_weigh_nothing_are_none() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i, (i * 7 % 5 > 2)::int AS label, (i % 7)::real AS a, 1 AS w FROM generate_series(1, 100) i;
         SELECT FROM corgipile_train('t', features => '{a}', solver => 'newton', name => 'm', options => '{\"weight\": \"w\"}')",
    );
    let half = "SELECT a, w, CASE WHEN i > 50 THEN label END AS label FROM t";
    for function in ["coefficients", "importance"] {
        let told = db.notices(&[&format!("SELECT FROM corgipile_{function}('m', '{half}')")]);
        assert!(told.contains("50 of 100 rows (50.0%) are left out because they have NULLs"), "{function}: {told}");
    }
    let nothing = "SELECT FROM corgipile_coefficients('m', 'SELECT a, label, 0 AS w FROM t')";
    db.fails_with(nothing, "22000").says(&["all rows have the weight 0"]);
}

#[test]
fn categories_are_compared_with_the_first_one_that_rows_have() {
    let mut db = Database::new();
    // without noise effects are exact, so that they are known without another program
    db.run(
        "CREATE TABLE k AS SELECT c, a, 3 + 2 * a + CASE c WHEN 'p' THEN 9 WHEN 'q' THEN 1 WHEN 'r' THEN 4 ELSE 6 END AS y
         FROM (SELECT (ARRAY['p', 'q', 'r', 's'])[1 + i % 4] AS c, uniform(i, 1) AS a FROM generate_series(1, 800) i) x",
    );
    db.train("'k', 'linear', label => 'y', features => '{a,c}', solver => 'newton', name => 'm'");
    let on = |db: &mut Database, source: &str| -> Vec<(String, f64)> {
        let rows = db.rows(
            &format!("SELECT feature, round(coefficient::numeric, 3)::float8 AS b FROM corgipile_coefficients('m', $${source}$$)"),
            &[],
        );
        rows.iter().map(|row| (row.get("feature"), row.get("b"))).collect()
    };
    let named = |pairs: &[(&str, f64)]| pairs.iter().map(|(name, b)| ((*name).to_owned(), *b)).collect::<Vec<_>>();
    let all = named(&[("(intercept)", 12.0), ("a", 2.0), ("c=p", 0.0), ("c=q", -8.0), ("c=r", -5.0), ("c=s", -3.0)]);
    assert_eq!(on(&mut db, "SELECT * FROM k"), all);
    let some = named(&[("(intercept)", 4.0), ("a", 2.0), ("c=p", 0.0), ("c=q", 0.0), ("c=r", 3.0), ("c=s", 5.0)]);
    assert_eq!(on(&mut db, "SELECT * FROM k WHERE c <> 'p'"), some);
    let told = db.notices(&[
        "SELECT FROM corgipile_coefficients('m', 'SELECT coalesce(nullif(c, ''s''), ''new'') AS c, a, y FROM k')",
    ]);
    assert!(told.contains("200 of 800 rows"), "{told}");
}

/// All labels of 'p' are positive: compared with it, no other category would have a standard error that says anything.
#[test]
fn categories_are_not_compared_with_one_that_decides_the_label() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE k AS SELECT (ARRAY['p', 'q', 'r', 's'])[1 + i % 4] AS c, uniform(i, 1) AS a,
                i % 4 = 0 OR uniform(i, 2) > 0.5 AS y FROM generate_series(1, 2000) i",
    );
    db.train("'k', label => 'y', features => '{a,c}', solver => 'sgd', name => 'm'");
    let told = db.notices(&["SELECT FROM corgipile_coefficients('m', 'k')"]);
    assert!(told.contains("perfect separation: the coefficients of c=p diverge on these rows"), "{told}");
    let errors =
        "SELECT string_agg(feature || CASE WHEN std_error IS NULL THEN ' none' WHEN std_error < 0.2 THEN ' small'
                                                  ELSE ' large' END, ', ' ORDER BY feature)
                  FROM corgipile_coefficients('m', 'k')";
    assert_eq!(db.line(errors), "(intercept) small, a small, c=p large, c=q none, c=r small, c=s small");
    // as without those rows, which say nothing of the others
    let others = "SELECT string_agg(round(std_error::numeric, 3)::text, ' ' ORDER BY feature) \
                  FROM corgipile_coefficients('m', 'SELECT * FROM k {rows}') WHERE feature <> 'c=p'";
    let without = db.line(&others.replace("{rows}", "WHERE c <> ''p''"));
    assert_eq!(db.line(&others.replace("{rows}", "")), without);
}

/// A standard error of 0: what it divides is infinitely many of it, and 0 is not a number of it.
#[test]
fn a_model_without_errors_has_statistics_that_are_none() {
    let mut db = Database::new();
    db.run("CREATE TABLE f AS SELECT 7.0 AS y, i % 4 AS a, i % 3 AS b FROM generate_series(1, 300) i");
    db.run("SELECT corgipile_train('f', 'linear', 'y', '{a,b}', solver => 'newton', name => 'm')");
    let of = "SELECT string_agg(concat_ws(' ', feature, coefficient, std_error, coalesce(statistic::text, 'NULL'),
                                          coalesce(p_value::text, 'NULL'), lower, upper), ', ' ORDER BY feature)
              FROM corgipile_coefficients('m', 'f')";
    assert_eq!(db.line(of), "(intercept) 7 0 Infinity 0 7 7, a 0 0 NULL NULL 0 0, b 0 0 NULL NULL 0 0");
}
