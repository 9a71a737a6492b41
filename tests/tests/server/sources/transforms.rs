//! Numbers that are taken by their logarithms. The oracle is SQL: a model must be that of a source that computes
//! sign(x) * ln(1 + |x|) by itself.

use corgipile_tests::{Database, assert_close};

/// Table `t`: numbers over many decades, signed ones, and others; `logs` with the logarithms of the former.
fn tables(db: &mut Database) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, (uniform(i, 0) + 0.1 * normal(i, 2) > 0.5)::int AS label, exp(2 + 2.5 * normal(i, 2))::real AS wide,
                (CASE WHEN uniform(i, 3) < 0.02 THEN -1 ELSE 1 END * exp(2 + 2.5 * normal(i, 4)))::real AS signed,
                normal(i, 5)::real AS plain, CASE WHEN i % 9 > 0 THEN exp(2 + 2.5 * normal(i, 6))::real END AS gaps,
                (ARRAY['red', 'green', 'blue'])[1 + i % 3] AS colour, uniform(i, 7) < 0.1 AS flag
           FROM generate_series(1, 3000) i ORDER BY i;
         CREATE FUNCTION log_of(x float8) RETURNS real IMMUTABLE LANGUAGE sql AS 'SELECT (sign(x) * ln(1 + abs(x)))::real';
         CREATE TABLE logs AS
         SELECT id, label, log_of(wide) AS wide, log_of(signed) AS signed, plain, log_of(gaps) AS gaps, colour, flag
           FROM t ORDER BY id",
    );
}

const TRAINING: &str = "seed => 5, max_epochs => 3, shuffle => 'no_shuffle', learning_rate => 0.05";
const WIDE: &str = r#""transform": ["gaps", "wide"]"#;

#[test]
fn the_logarithms_are_those_that_sql_takes() {
    let mut db = Database::new();
    tables(&mut db);
    for (features, options) in [
        ("{wide,plain,gaps,flag}", ""),
        ("{wide,colour,plain,gaps,flag}", ""),
        ("{wide,colour,plain,gaps}", r#", "standardize": false"#),
        ("{wide,plain,gaps}", r#", "standardize": true"#),
        ("{wide,plain,gaps}", r#", "nulls": "skip""#),
    ] {
        for model in ["logistic", "linear", "mlp"] {
            let train = |source: &str, transform: &str| {
                format!(
                    "'{source}', '{model}', features => '{features}', {TRAINING}, batch_size => 4, options => '{{{transform}{options}}}'"
                )
            };
            let transformed = db.trained(&train("t", WIDE));
            let by_hand = db.trained(&train("logs", r#""transform": "none""#));
            assert_close(&transformed.parameters(), &by_hand.parameters(), 1e-3);
            let stored = |id: i64, what: &str| format!("SELECT {what} FROM corgipile.models WHERE model_id = {id}");
            let means: [Vec<f64>; 2] = [transformed.id, by_hand.id]
                .map(|id| db.value::<Option<Vec<f64>>>(&stored(id, "feature_mean")).unwrap_or_default());
            assert_close(&means[0], &means[1], 1e-5);
        }
    }
}

#[test]
fn columns_that_span_decades_are_chosen_and_told_and_the_record_trains_the_same_model() {
    let mut db = Database::new();
    tables(&mut db);
    for features in ["{wide,plain,signed,flag,gaps}", "{colour,wide,plain,signed,flag,gaps}"] {
        let train = |more: &str| format!("'t', features => '{features}', seed => 5, max_epochs => 3 {more}");
        let told = db.notices(&[&format!("SELECT * FROM corgipile_train({})", train(""))]);
        assert!(
            told.contains(
                "numbers that span orders of magnitude are transformed by sign(x) * ln(1 + |x|): wide, signed, gaps"
            ),
            "{told}"
        );
        let id: i64 = db.value("SELECT max(model_id) FROM corgipile.models");
        let record = format!("SELECT hyperparameters->'transform' FROM corgipile.models WHERE model_id = {id}");
        assert_eq!(db.line(&record), r#"{"log": ["wide", "signed", "gaps"]}"#);
        let chosen = db.model(id).bits();
        assert_eq!(db.trained(&train(", prefetch => 'on'")).bits(), chosen, "worker");
        let options = format!(
            "options => (SELECT hyperparameters - '{{pages_per_block,buffer_blocks,seed,max_epochs,workers,model,label}}'::text[] FROM corgipile.models WHERE model_id = {id})"
        );
        assert_eq!(db.trained(&train(&format!(", {options}"))).bits(), chosen, "record");
        // what stands for a NULL is a number of the data, whose logarithm is the mean of those that are there
        let fill = "SELECT abs(log_of(f) - (SELECT avg(log_of(gaps)::float8) FROM t)) < 1e-5
                      FROM corgipile.models, unnest(feature_fill[cardinality(feature_fill):]) f WHERE model_id = ";
        assert!(db.value::<bool>(&format!("{fill}{id}")));
    }
    for options in
        [r#"{"transform": "none"}"#, r#"{"standardize": true}"#, r#"{"standardize": false, "batch_size": 8}"#]
    {
        let id =
            db.train(&format!("'t', features => '{{wide,plain}}', {TRAINING}, options => '{options}'"))[0].model_id;
        let record = format!("SELECT hyperparameters->>'transform' FROM corgipile.models WHERE model_id = {id}");
        assert_eq!(db.line(&record), "none", "{options}");
    }
}

#[test]
fn a_number_is_predicted_by_the_logarithms_of_a_column_only_if_they_tell_as_much_of_it() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE sales AS
         SELECT exp(15 + 2.5 * normal(i, 1))::float8 AS amount, exp(3 + 2 * normal(i, 2))::float8 AS visits, uniform(i, 3) AS noise
           FROM generate_series(1, 5000) i;
         CREATE TABLE shares AS SELECT *, 0.1 * amount + 1e5 * noise AS label FROM sales;
         CREATE TABLE decades AS SELECT *, 3 * ln(1 + amount) + 0.2 * ln(1 + visits) + noise AS label FROM sales",
    );
    for (source, is_taken, least) in [("shares", false, 0.999), ("decades", true, 0.99)] {
        for model in ["linear", "mlp_regression"] {
            let id = db.train(&format!("'{source}', '{model}', seed => 1"))[0].model_id;
            let transform = format!("SELECT hyperparameters->>'transform' FROM corgipile.models WHERE model_id = {id}");
            let found: String = db.value(&transform);
            assert!(found.contains("amount") == is_taken, "{source}, {model}: {found}");
            if model == "linear" {
                let r2: f64 =
                    db.value(&format!("SELECT value FROM corgipile_evaluate({id}, '{source}') WHERE metric = 'r2'"));
                assert!(r2 > least, "{source}: {r2}");
            }
        }
    }
}

#[test]
fn predictions_evaluations_exports_and_warm_starts_take_the_same_logarithms() {
    let mut db = Database::new();
    tables(&mut db);
    for (name, features) in [("dense", "{plain,wide,gaps}"), ("mixed", "{plain,wide,colour,gaps}")] {
        let options = format!("features => '{features}', seed => 5, learning_rate => 0.01");
        let id = db.train(&format!("'t', name => '{name}', max_epochs => 5, {options}"))[0].model_id;
        let decision = "m.intercepts[1] + m.weights[1] * (plain - m.feature_mean[1]) / m.feature_scale[1]
             + m.weights[2] * (log_of(wide) - m.feature_mean[2]) / m.feature_scale[2]
             + m.weights[n] * (log_of(coalesce(gaps, m.feature_fill[n])) - m.feature_mean[n]) / m.feature_scale[n]
             + CASE WHEN n > 3 THEN m.weights[2 + array_position(ARRAY['blue', 'green', 'red'], colour)] ELSE 0 END";
        let as_by_hand = format!(
            "SELECT count(*) FROM t, (SELECT *, cardinality(weights) AS n FROM corgipile.models WHERE model_id = {id}) m,
                    LATERAL (SELECT {decision}) z(z)
              WHERE abs(1 / (1 + exp(-z)) - (corgipile_predict_proba({id}, t))[2]) < 1e-5"
        );
        assert_eq!(db.value::<i64>(&as_by_hand), 3000, "{name}");
        let right: f64 = db.value(&format!("SELECT avg((corgipile_predict({id}, t) = label)::int)::float8 FROM t"));
        assert_eq!(db.evaluate(id, "t").accuracy, right);
        let columns = features.trim_matches(['{', '}']);
        for call in [
            format!("corgipile_predict_proba('{name}', {columns})"),
            format!("corgipile_predict_proba(corgipile_export('{name}'), t)"),
            format!("corgipile_predict_proba(corgipile_import(corgipile_export('{name}'), 'copy'), t)"),
        ] {
            let same = format!("SELECT bool_and({call} = corgipile_predict_proba({id}, t)) FROM t WHERE id < 20");
            assert!(db.value::<bool>(&same), "{call}");
        }
        let two = db.train(&format!("'t', max_epochs => 2, {options}"))[0].model_id;
        let three = db.train(&format!("'t', max_epochs => 3, warm_start => '{two}'"))[0].model_id;
        assert_eq!(db.model(three).bits(), db.model(id).bits(), "{name}");
        let otherwise = format!(
            "SELECT * FROM corgipile_train('t', warm_start => '{two}', options => '{{\"transform\": \"none\"}}')"
        );
        db.rejects(&otherwise, "22023").hints(&["option transform"]);
    }
}

#[test]
fn numbers_of_arrays_are_taken_by_their_logarithms_if_that_is_said() {
    let mut db = Database::new();
    tables(&mut db);
    let dense = |table: &str| format!("SELECT label, ARRAY[wide, plain, gaps] AS x FROM {table}");
    let plain = "SELECT label, ARRAY[wide, log_of(plain), gaps] AS x FROM logs";
    let train = |source: &str, transform: &str| {
        format!("'{source}', features => '{{x}}', {TRAINING}, options => '{{\"transform\": \"{transform}\"}}'")
    };
    let logs = db.trained(&train(&dense("t"), "log"));
    let by_hand = db.trained(&train(plain, "none"));
    assert_close(&logs.parameters(), &by_hand.parameters(), 1e-3);
    let same = format!(
        "SELECT bool_and(abs((corgipile_predict_proba({}, ARRAY[wide, plain, gaps]))[2]
                           - (corgipile_predict_proba({}, ARRAY[log_of(wide), log_of(plain), log_of(gaps)]))[2]) < 1e-4) FROM t",
        logs.id, by_hand.id
    );
    assert!(db.value::<bool>(&same));
    // of its own accord nothing is done to arrays
    let untold = db.trained(&train(&dense("t"), "auto")).bits();
    assert_eq!(db.trained(&train(&dense("t"), "none")).bits(), untold);
    let sparse = |value: &str| {
        format!(
            "'SELECT label, ARRAY[1, 3] AS k, ARRAY[{value}(wide), {value}(plain)] AS v FROM t', features => '{{k,v}}', {TRAINING}"
        )
    };
    let logs = db.trained(&format!("{}, options => '{{\"transform\": \"log\"}}'", sparse("")));
    let by_hand = db.trained(&sparse("log_of"));
    assert_close(&logs.parameters(), &by_hand.parameters(), 1e-4);
}

#[test]
fn transforms_that_cannot_be_are_refused() {
    let mut db = Database::new();
    tables(&mut db);
    let train = |features: &str, transform: &str| {
        format!(
            "SELECT * FROM corgipile_train('t', features => '{features}', options => '{{\"transform\": {transform}}}')"
        )
    };
    for transform in
        ["\"sqrt\"", "1", "[]", "[1]", "{}", "{\"log\": []}", "{\"log\": \"wide\"}", "{\"exp\": [\"wide\"]}"]
    {
        db.rejects(&train("{wide,colour}", transform), "22023").says(&["transform", "must be", "array of columns"]);
    }
    for column in ["colour", "plain", "nobody"] {
        db.rejects(&train("{wide,colour}", &format!("[\"{column}\"]")), "22023").says(&["transform", column]);
    }
    let arrays = "SELECT * FROM corgipile_train('SELECT label, ARRAY[wide] AS wide FROM t', options => '{\"transform\": [\"wide\"]}')";
    db.rejects(arrays, "22023").says(&["transform", "wide"]);
    db.fails_with(
        "SELECT * FROM corgipile_train_uda('t', features => '{wide}', options => '{\"transform\": \"log\"}')",
        "0A000",
    );
    db.train(&format!("'t', features => '{{wide,plain}}', name => 'm', {TRAINING}"));
    for transform in ["[\"wide\", \"colour\"]", "\"sqrt\""] {
        let import = format!(
            "SELECT corgipile_import(jsonb_set(corgipile_export('m'), '{{hyperparameters,transform}}', '{transform}'))"
        );
        db.fails_with(&import, "22023").says(&["hyperparameters", "transform"]);
    }
}
