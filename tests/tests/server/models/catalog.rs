//! Models as rows of a table: what a row tells, and rows that somebody has edited.

use super::transactions::predict;
use corgipile_tests::{Database, clustered};

#[test]
fn a_stored_model_tells_everything_about_its_training() {
    let mut db = Database::with_small_table(200);
    let epochs = db.train(
        "'t', 'svm', features => '{a,c}', learning_rate => 0.02, max_epochs => 3, shuffle => 'block_only',
         block_size => '16kB', buffer_size => '50%', seed => 4, name => 'first',
         options => '{\"l2\": 0.001, \"decay\": 0.9,
         \"standardize\": true, \"nulls\": \"skip\"}'",
    );
    let stored = db.line(
        "SELECT name, owner, model, source, label, label_type, classes, features, array_length(weights, 1), skipped,
                created_at BETWEEN now() - interval '1 minute' AND now() + interval '1 minute',
                preparation_seconds BETWEEN 0 AND 60
         FROM corgipile.models",
    );
    assert_eq!(stored, "first|postgres|svm|t|label|integer|{0,1}|{a,c}|2|0|t|t");
    let hyperparameters = db.lines(
        "SELECT key, value FROM corgipile.models, jsonb_each_text(hyperparameters)
                                    WHERE key <> 'buffer_blocks' ORDER BY key COLLATE \"C\"",
    );
    let expected = [
        "block_size|16kB",
        "buffer_size|50%",
        "decay|0.9",
        "l2|0.001",
        "learning_rate|0.02",
        "max_epochs|3",
        "nulls|skip",
        "pages_per_block|2",
        "seed|4",
        "shuffle|block_only",
        "standardize|true",
    ];
    for line in expected {
        assert!(hyperparameters.iter().any(|given| given == line), "no {line} in {hyperparameters:?}");
    }
    let history = corgipile_tests::epochs_of(&db.rows(
        "SELECT model_id, epoch, loss, accuracy, learning_rate, tuples, seconds, r2 FROM corgipile.training_history
         WHERE name = 'first' ORDER BY epoch",
        &[],
    ));
    assert_eq!(history, epochs);
}

#[test]
fn coefficients_have_the_names_of_their_features() {
    let mut db = Database::with_small_table(200);
    let model = db.trained("'t', features => '{b,a}', seed => 1, name => 'm', options => '{\"standardize\": true}'");
    let rows = db.rows(
        "SELECT feature, standardized_coefficient::float8, mean, scale FROM corgipile.coefficients
         WHERE name = 'm' AND model_id = $1",
        &[&model.id],
    );
    assert_eq!(rows.len(), 3);
    for (feature, weight) in [("b", model.weights[0]), ("a", model.weights[1]), ("(intercept)", model.intercept)] {
        let row = rows.iter().find(|row| row.get::<_, &str>(0) == feature).expect("a row per feature");
        assert!((row.get::<_, f64>(1) - f64::from(weight)).abs() < 1e-6, "{feature}");
        assert_eq!(row.get::<_, Option<f64>>(2).is_some(), feature != "(intercept)", "{feature} has a mean");
    }
}

#[test]
fn coefficients_per_unit_are_those_of_the_features_as_they_are() {
    let mut db = Database::with_small_table(400);
    for (model, label, more) in [
        ("linear", "a", ""),
        ("softmax", "label", ""),
        ("logistic", "label", ", standardize => false"),
        ("svm", "label", ""),
    ] {
        db.run("TRUNCATE corgipile.stored_models");
        db.train(&format!(
            "'SELECT label, 100 + 30 * a AS a, 1e-3 * b AS b FROM t', '{model}', '{label}',
                            '{{{}b}}', seed => 1{more}",
            if label == "a" { "" } else { "a," }
        ));
        let features = if label == "a" { "ARRAY[1e-3 * b]" } else { "ARRAY[100 + 30 * a, 1e-3 * b]" };
        let names = if label == "a" { "ARRAY['b']" } else { "ARRAY['a', 'b']" };
        // the decision, from weights of standardized features and from those per unit
        let differ: f64 = db.value(&format!(
            "SELECT max(abs(standardized - per_unit)) FROM (
               SELECT t.id, c.class, sum(standardized_coefficient * CASE feature WHEN '(intercept)' THEN 1
                                         ELSE (x[array_position(names, feature)] - coalesce(mean, 0)) / coalesce(scale, 1) END) AS standardized,
                      sum(coefficient * CASE feature WHEN '(intercept)' THEN 1 ELSE x[array_position(names, feature)] END) AS per_unit
                 FROM corgipile.coefficients AS c, (SELECT id, {features}::float8[] AS x, {names} AS names FROM t WHERE id % 8 = 0) AS t
                GROUP BY t.id, c.class) AS decisions"
        ));
        assert!(differ < 1e-4, "{model}: {differ}");
    }
}

#[test]
fn coefficients_of_an_array_have_a_row_per_element() {
    let mut db = Database::new();
    clustered(&mut db, "t", 200);
    let model = db.trained("'t', seed => 1");
    let rows = db.rows(
        "SELECT DISTINCT feature, standardized_coefficient::real FROM corgipile.coefficients ORDER BY feature",
        &[],
    );
    assert_eq!(rows.len(), 6);
    let mut given: Vec<u32> = rows.iter().map(|row| row.get::<_, f32>(1).to_bits()).collect();
    let mut expected = model.bits();
    given.sort_unstable();
    expected.sort_unstable();
    assert_eq!(given, expected);
}

#[test]
fn arrays_of_arrays_in_an_edited_row_are_no_model() {
    let mut db = Database::with_small_table(100);
    let id = db.train("'t', 'softmax', features => '{a,b}', max_epochs => 1")[0].model_id;
    for (change, column) in [
        ("features = '{{a,b}}'", "features"),
        ("features = '{{a},{b}}'", "features"),
        ("classes = '{{0,1}}'", "classes"),
        ("classes = '{{0},{1}}'", "classes"),
        ("classes = '{0,NULL}'", "classes"),
        ("weights = ARRAY[weights]", "weights"),
        ("feature_mean = '{{1,2}}', feature_scale = '{1,2}'", "feature_mean"),
    ] {
        db.run(&format!("BEGIN; UPDATE corgipile.stored_models SET {change}"));
        let failure = db.attempt(&format!("SELECT corgipile_predict({id}, ARRAY[1,2])")).expect_err(change);
        assert_eq!(failure.code, "XX001", "{change}: {failure:#?}");
        failure.says(&[column, "one dimension"]);
        db.run("ROLLBACK");
    }
}

#[test]
fn json_in_an_edited_row_that_cannot_be_read_is_said() {
    let mut db = Database::with_small_table(100);
    let id = db.train("'t', features => '{a,b}', max_epochs => 1")[0].model_id;
    let deep = format!("'{}1{}'", "{\"a\":".repeat(300), "}".repeat(300));
    for column in ["hyperparameters", "categories"] {
        for (value, words) in [(deep.as_str(), "nested too deeply"), ("'{\"a\": 1e400}'", "out of range")] {
            for call in [
                format!("SELECT corgipile_predict({id}, ARRAY[1,2])"),
                format!("SELECT corgipile_export({id})"),
                format!(
                    "SELECT corgipile_train('t', features => '{{a,b}}', max_epochs => 2, warm_start => {id}::text)"
                ),
            ] {
                db.run(&format!("BEGIN; UPDATE corgipile.stored_models SET {column} = {value}, name = '{id}'"));
                let failure = db.attempt(&call).expect_err(&call);
                assert_eq!(failure.code, "XX001", "{column}, {call}: {failure:#?}");
                failure.says(&[column, words]);
                db.run("ROLLBACK");
            }
        }
    }
}

#[test]
fn a_model_that_an_administrator_has_damaged_is_an_error_and_no_crash() {
    let mut db = Database::with_small_table(100);
    let id = db.train("'t', max_epochs => 1, options => '{\"standardize\": true}'")[0].model_id;
    for damage in [
        "weights = '{}'",
        "weights = '{1,2}'",
        "weights = '{1,NULL,3}'",
        "weights = '{{1,2,3}}'",
        "feature_mean = '{}'",
        "feature_scale = '{1}'",
        "feature_scale = NULL",
        "classes = '{}'",
        "classes = '{a}'",
        "classes = '{0,1,2}'",
        "model = 'unknown'",
        "features = '{}'",
        "hyperparameters = '[]'",
        "hyperparameters = 'null'",
        "label_type = 'text'",
        "label_type = 0",
        "classes = '{x,y}'",
        "intercepts = '{NaN}'",
        "intercepts = '{}'",
        "intercepts = '{1,2}'",
        "intercepts = '{1,2,3}'",
        "intercepts = '{NULL}'",
        "classes = NULL",
        "model = 'linear'",
        "model = 'softmax'",
        "model = 'softmax', intercepts = '{1,2}', weights = '{1,2,3,4,5,6}', feature_mean = NULL, feature_scale = NULL",
        "model = 'softmax', intercepts = '{1,2}', weights = '{1,2,3,4,5}'",
        "feature_kind = 'array'",
        "feature_kind = 'sparse'",
        "feature_kind = 'sparse', index_base = 1",
        "feature_kind = 'sparse', index_base = -7, features = '{a,b}'",
        "feature_kind = ''",
        "index_base = 1",
        "categories = '[]'",
        "categories = 'null'",
        "categories = '1'",
        "categories = '{\"a\": \"x\"}'",
        "categories = '{\"a\": []}'",
        "categories = '{\"a\": [1]}'",
        "categories = '{\"a\": [\"x\", \"y\"]}'",
        "categories = '{\"a\": [\"x\", \"x\"]}'",
        "categories = '{\"z\": [\"x\"]}'",
        "features = '{a,a,a}'",
        "features = '{a,NULL,c}'",
        "hyperparameters = '{\"nulls\": 1, \"handle_unknown\": [1e400]}'",
        "history = '{}'",
        "weights = '[5:7]={1,2,3}'",
    ] {
        db.run("BEGIN");
        // A constraint that refuses the damage is as good.
        if db.attempt(&format!("UPDATE corgipile.stored_models SET {damage}")).is_ok() {
            for call in [
                format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])"),
                format!("SELECT corgipile_predict_label({id}, ARRAY[1,2,3])"),
                format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3])"),
                format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3], ARRAY[1,2,3])"),
                format!("SELECT corgipile_predict_proba({id}, t) FROM t"),
                format!("SELECT * FROM corgipile_evaluate({id}, 't')"),
                "SELECT * FROM corgipile.coefficients".to_owned(),
                "SELECT * FROM corgipile.training_history".to_owned(),
            ] {
                db.run("SAVEPOINT s");
                if let Err(failure) = db.attempt(&call) {
                    assert_ne!(failure.code, "closed", "{damage}, {call}");
                }
                db.run("ROLLBACK TO s");
            }
        }
        db.run("ROLLBACK");
    }
    assert_ne!(db.line(&predict(id)), "NULL");
}

#[test]
fn models_outlive_their_label_type_their_table_and_their_owner() {
    let mut db = Database::new();
    let user = db.role("user");
    db.run(&format!(
        "CREATE TYPE mood AS ENUM ('sad', 'happy');
         CREATE TABLE t AS SELECT (ARRAY['sad', 'happy'])[1 + i % 2]::mood AS label, i % 2 AS x
         FROM generate_series(1, 50) i;
         GRANT SELECT ON t TO {user}"
    ));
    let id = db.session_as(&user).train("'t', learning_rate => 0.5")[0].model_id;
    db.run(&format!("DROP TABLE t; DROP TYPE mood; DROP OWNED BY {user}; DROP ROLE {user}"));
    assert_eq!(db.line(&format!("SELECT corgipile_predict_label({id}, ARRAY[1])")), "happy");
    assert_eq!(db.models(), 1);
    let stranger = db.role("stranger");
    let mut session = db.session_as(&stranger);
    assert_eq!(session.models(), 0);
    session.fails_with(&format!("SELECT corgipile_predict_label({id}, ARRAY[1])"), "42501");
}
