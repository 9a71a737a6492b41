//! Weights of rows, weights of classes and warm starts against numpy: see tests/golden/weights.py.

use corgipile_tests::{Database, Session};
use serde_json::{Value, json};

fn golden() -> Value {
    serde_json::from_str(include_str!("../../../golden/weights.json")).expect("JSON")
}

/// The rows of weights.py; `one` is a weight that is not one.
fn table(db: &mut Session) {
    db.run(&format!(
        "CREATE TABLE t (id int, a float8, b float8, number float8, \"binary\" int, triple int, count int, w float8, one int);
         INSERT INTO t
         SELECT i, CASE WHEN holes THEN NULL ELSE a END, b,
                10 + 3 * a - b + 8 * e + CASE WHEN i % 20 = 0 THEN 60 ELSE 0 END, (a + v + 4 * e > 0.7)::int,
                CASE WHEN a + 2 * e > 0.8 THEN 2 WHEN b + 2 * e > 1.1 THEN 1 ELSE 0 END, floor(exp(1 + 0.4 * a) * (1 + e)),
                i % 5 * CASE WHEN v > 0 THEN 0.5 ELSE 0.25 END, 1
           FROM (SELECT i, false AS holes, 4 * (i * 7919 % 1000 / 1000.0::float8 - 0.5) AS a, 1 + 3 * v AS b, v, e
                   FROM (SELECT i, i * 104729 % 997 / 997.0::float8 - 0.5 AS v, i * 15485863 % 991 / 991.0::float8 - 0.5 AS e
                           FROM generate_series(1, {}::bigint) AS i) AS r) AS r
          ORDER BY i;
         CREATE TABLE gaps (LIKE t);
         INSERT INTO gaps SELECT * FROM t ORDER BY id;
         UPDATE gaps SET a = NULL WHERE id % 7 = 0",
        golden()["rows"]
    ));
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("numbers").iter().map(|x| x.as_f64().expect("a number")).collect()
}

/// Trains, and gives the coefficients in the units of the data, of each class the slopes and then the intercept.
fn coefficients(db: &mut Session, source: &str, options: &Value) -> Result<(i64, Vec<f64>), String> {
    let id = match db.attempt(&format!("SELECT min(model_id) FROM corgipile_train('{source}', options => '{options}')"))
    {
        Ok(lines) => lines[0].parse().expect("a number"),
        Err(failure) => return Err(format!("{failure:?}")),
    };
    let sql = format!(
        "SELECT coefficient FROM corgipile.all_coefficients WHERE model_id = {id} ORDER BY class_number, feature = '(intercept)', feature_number"
    );
    Ok((id, db.column(&sql)))
}

/// What is apart, if anything is.
fn compared(what: &str, found: Result<(i64, Vec<f64>), String>, expected: &[f64], tolerance: f64) -> Option<String> {
    let found = match found {
        Ok((_, found)) => found,
        Err(failure) => return Some(format!("{what}: {failure}")),
    };
    let size = expected.iter().fold(1.0_f64, |size, x| size.max(x.abs()));
    let is_near =
        found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance * size);
    (!is_near).then(|| format!("{what}: {found:?}, not {expected:?}"))
}

fn none_of(differences: &[String]) {
    assert!(differences.is_empty(), "{} differ\n{}", differences.len(), differences.join("\n"));
}

/// Adds a key.
fn with(mut options: Value, key: &str, value: Value) -> Value {
    options[key] = value;
    options
}

/// All rows in a step, for so long and so slowly in the end that the model is at the minimum.
fn to_the_minimum(options: Value, rate: f64) -> Value {
    let long = [
        ("solver", json!("sgd")),
        ("batch_size", json!(100_000)),
        ("max_epochs", json!(6000)),
        ("decay", json!(0.9992)),
    ];
    long.into_iter()
        .chain([("learning_rate", json!(rate))])
        .fold(options, |options, (key, value)| with(options, key, value))
}

#[test]
fn models_are_at_the_minimum_of_the_weighted_objective() {
    let mut db = Database::new();
    table(&mut db);
    let mut differences = Vec::new();
    for optimum in golden()["optima"].as_array().expect("optima") {
        let model = optimum["model"].as_str().expect("a model");
        let label = match model {
            "linear" | "huber" => "number",
            "poisson" => "count",
            "softmax" => "triple",
            _ => "binary",
        };
        let mut options = json!({
            "model": model, "label": label, "features": ["a", "b"], "l2": optimum["l2"], "seed": 1,
            "standardize": optimum["standardize"], "transform": "none",
        });
        if model == "squared_hinge" {
            options["model"] = json!("svm");
            options["loss"] = json!("squared_hinge");
        }
        for key in ["weight", "class_weight"] {
            if !optimum[key].is_null() {
                options[key] = optimum[key].clone();
            }
        }
        let expected: Vec<f64> = optimum["coefficients"]
            .as_array()
            .expect("coefficients")
            .iter()
            .flat_map(|output| {
                output.as_array().map_or_else(|| vec![output.as_f64().expect("a number")], |_| numbers(output))
            })
            .collect();
        let is_standardized = optimum["standardize"] == true;
        let mut tries = Vec::new();
        if ["logistic", "linear", "poisson"].contains(&model) {
            let newton = with(with(options.clone(), "solver", json!("newton")), "max_epochs", json!(50));
            tries.push(("newton", newton, 5e-6));
        }
        if model != "poisson" {
            // the steepest curvature of the loss along a row, and the rate that it bears
            let curvature = match model {
                "logistic" => 0.25,
                "squared_hinge" => 2.0,
                "softmax" => 0.5,
                _ => 1.0,
            };
            let rate = 1.0 / (curvature * if is_standardized { 3.0 } else { 5.0 });
            tries.push(("sgd", to_the_minimum(options, rate), 2e-3));
        }
        for (solver, options, tolerance) in tries {
            let found = coefficients(&mut db, "t", &options);
            differences.extend(compared(&format!("{solver} {options}"), found, &expected, tolerance));
        }
    }
    none_of(&differences);
}

#[test]
fn the_weighted_mean_stands_for_nulls() {
    let mut db = Database::new();
    table(&mut db);
    let options = json!({"label": "binary", "features": ["a", "b"], "l2": 0.1, "standardize": true, "solver": "newton",
                         "max_epochs": 50, "transform": "none"});
    let golden = golden();
    let plain = coefficients(&mut db, "gaps", &options);
    let weighted = coefficients(&mut db, "gaps", &with(options, "weight", json!("w")));
    none_of(
        &[
            compared("plain", plain, &numbers(&golden["nulls"][""]), 5e-6),
            compared("weighted", weighted, &numbers(&golden["nulls"]["w"]), 5e-6),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>(),
    );
}

#[test]
fn a_warm_start_steps_by_the_weights_of_its_own_call() {
    let mut db = Database::new();
    table(&mut db);
    let golden = golden();
    let expected = |name: &str| numbers(&golden["warm start"][name]);
    let rest = json!({"label": "binary", "features": ["a", "b"], "standardize": false, "batch_size": 1000, "transform": "none",
                      "learning_rate": 0.1, "schedule": "constant", "seed": 1});
    let epochs = |options: &Value, n: i32| with(options.clone(), "max_epochs", json!(n));
    let weighted = with(rest.clone(), "weight", json!("w"));
    let first = coefficients(&mut db, "t", &epochs(&rest, 3));
    let id = first.as_ref().map_or(0, |(id, _)| *id).to_string();
    let next = |options: &Value| with(epochs(options, 2), "warm_start", json!(id));
    let slower = with(weighted.clone(), "learning_rate", json!(0.05));
    let second = coefficients(&mut db, "t", &next(&slower));
    let balanced = coefficients(&mut db, "t", &with(next(&slower), "class_weight", json!("balanced")));
    let begun = coefficients(&mut db, "t", &epochs(&weighted, 2));
    let id = begun.map_or(0, |(id, _)| id).to_string();
    let same = coefficients(&mut db, "t", &with(json!({"max_epochs": 3}), "warm_start", json!(id)));
    none_of(
        &[
            compared("first", first, &expected("first"), 1e-5),
            compared("second", second, &expected("second"), 1e-5),
            compared("balanced", balanced, &expected("balanced"), 1e-5),
            compared("same weights", same, &expected("same weights"), 1e-5),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>(),
    );
}
