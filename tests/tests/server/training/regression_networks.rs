//! Networks that predict numbers.

use corgipile_tests::{Cluster, Database, Session, assert_close};

/// A target that is not linear in its features, in large units, sorted by it.
fn bowl(db: &mut Session) {
    db.run(
        "CREATE TABLE bowl AS
         SELECT *, ARRAY[a, b] AS x, ARRAY[1, 2] AS k, ARRAY[a, b] AS v, (a > 0)::int AS part, id % 7 = 0 AS test,
                (ARRAY['left', 'right'])[1 + (a > 0)::int] AS side, least(5, 1 + floor(4 * (a * a + b * b)) / 2)::real AS rating,
                nullif(a, b) AS gap
           FROM (SELECT i AS id, a, b, (3e6 + 1e5 * (a * a + b * b))::float8 AS y
                   FROM (SELECT i, (2 * uniform(i, 1) - 1)::real AS a, (2 * uniform(i, 2) - 1)::real AS b
                           FROM generate_series(1, 3000) i) AS u) AS t ORDER BY y;
         ANALYZE bowl",
    );
}

const QUICK: &str = "seed => 1, max_epochs => 5";

fn kind(db: &mut Session, id: i64) -> String {
    db.line(&format!(
        "SELECT model, output, classes, hyperparameters->>'objective' FROM corgipile.models WHERE model_id = {id}"
    ))
}

#[test]
fn a_network_predicts_a_number_where_the_label_is_one() {
    let mut db = Database::new();
    bowl(&mut db);
    let linear = db.train("'bowl', 'linear', 'y', '{x}', seed => 1")[0].model_id;
    let score = |db: &mut Session, id: i64| -> Vec<f64> {
        db.column(&format!(
            "SELECT value FROM corgipile_evaluate({id}, 'bowl') WHERE metric IN ('r2', 'rmse', 'mae') ORDER BY metric"
        ))
    };
    assert!(score(&mut db, linear)[1] < 0.05, "no line fits a bowl");
    for (features, call) in [("{x}", "x"), ("{a,b}", "a, b"), ("{k,v}", "k, v"), ("{side,gap,b}", "bowl")] {
        let epochs = db.train(&format!("'bowl', 'mlp', 'y', '{features}', seed => 1"));
        let id = epochs[0].model_id;
        assert_eq!(kind(&mut db, id), "mlp_regression|identity|NULL|regression");
        let found = score(&mut db, id);
        let expected: Vec<f64> = db.column(&format!(
            "SELECT unnest(ARRAY[avg(abs(e)), 1 - sum(e * e) / sum((y - m) ^ 2), sqrt(avg(e * e))])
               FROM (SELECT y, corgipile_predict({id}, {call}) - y AS e, avg(y) OVER () AS m FROM bowl) AS errors"
        ));
        assert_close(&found, &expected, 1e-4);
        assert!(found[1] > 0.9, "{features}: {found:?}");
        // the loss of the last epoch is in the units of the label
        let loss = epochs.last().expect("epochs").loss;
        assert!((0.5..4.0).contains(&(loss / (found[2] * found[2] / 2.0))), "{features}: {loss} {found:?}");
    }
    assert_eq!(
        db.notices(&["SELECT FROM corgipile_train('bowl', 'mlp', 'y', '{x}', max_epochs => 2, seed => 1)"])
            .lines()
            .next(),
        Some("NOTICE:  the network predicts numbers: label \"y\" has many values that are not integers")
    );
}

#[test]
fn classes_stay_classes_and_what_is_said_holds() {
    let mut db = Database::new();
    bowl(&mut db);
    for (model, label, more, expected) in [
        ("mlp", "rating", "", "mlp|softmax|{1,1.5,2,2.5,3,3.5,4,4.5}|classification"),
        ("mlp", "part", "", "mlp|sigmoid|{0,1}|classification"),
        ("mlp", "part", ", options => '{\"objective\": \"regression\"}'", "mlp_regression|identity|NULL|regression"),
        ("mlp", "rating", ", options => '{\"objective\": \"regression\"}'", "mlp_regression|identity|NULL|regression"),
        ("mlp_regression", "rating", "", "mlp_regression|identity|NULL|regression"),
        ("MLP_Regressor", "y", "", "mlp_regression|identity|NULL|regression"),
        ("neural_network", "y", "", "mlp_regression|identity|NULL|regression"),
    ] {
        let id = db.train(&format!("'bowl', '{model}', '{label}', '{{x}}', {QUICK}{more}"))[0].model_id;
        assert_eq!(kind(&mut db, id), expected, "{model} {label} {more}");
    }
    let train = |model: &str, label: &str, options: &str| {
        format!("SELECT FROM corgipile_train('bowl', '{model}', '{label}', '{{x}}', options => '{options}')")
    };
    let refused = [
        (train("mlp", "side", r#"{"objective": "regression"}"#), "42804", &["label", "side"][..]),
        (train("linear", "y", r#"{"objective": "regression"}"#), "22023", &["objective", "model mlp"]),
        (train("mlp", "y", r#"{"objective": "regression", "output": "softmax"}"#), "22023", &["softmax", "regression"]),
        (train("mlp_regression", "y", r#"{"objective": "classification"}"#), "22023", &["objective", "regression"]),
        (train("mlp", "part", r#"{"output": "identity"}"#), "22023", &["identity", "classification"]),
        (train("mlp_regression", "y", r#"{"class_weight": "balanced"}"#), "22023", &["class_weight", "mlp_regression"]),
        (train("mlp", "part", r#"{"objective": "clustering"}"#), "22023", &["objective", "regression"]),
        ("SELECT corgipile_sgd_init('mlp_regression', 3)".into(), "0A000", &["model mlp_regression"]),
        (
            "SELECT corgipile_cluster_factor('bowl', 'y', '{x}', model => 'mlp_regression')".into(),
            "22023",
            &["network"],
        ),
    ];
    for (sql, code, words) in refused {
        db.fails_with(&sql, code).says(words);
    }
    let id = db.train(&format!("'bowl', 'mlp', 'y', '{{x}}', {QUICK}"))[0].model_id;
    for function in ["corgipile_predict_label", "corgipile_predict_proba"] {
        db.fails_with(&format!("SELECT {function}({id}, ARRAY[1, 2]::real[])"), "0A000");
    }
}

#[test]
fn a_regression_network_goes_on_is_trained_again_and_travels() {
    let cluster = Cluster::new(&["shared_preload_libraries = 'corgipile'"]);
    let (mut db, mut other) = (cluster.session(), cluster.session());
    bowl(&mut db);
    let arguments =
        |epochs: u32| format!("'bowl', 'mlp', 'y', '{{a,b}}', seed => 1, max_epochs => {epochs}, batch_size => 8");
    let whole = db.trained(&arguments(6));
    let first = db.trained(&arguments(4));
    for model in ["", "model => 'mlp', ", "model => 'mlp_regression', "] {
        let continued = db.trained(&format!("'bowl', {model}warm_start => '{}', max_epochs => 2", first.id));
        assert_eq!(continued.bits(), whole.bits(), "{model}");
    }
    let again = db.trained(&format!(
        "'bowl', 'mlp', 'y', '{{a,b}}', options => (SELECT hyperparameters - '{{pages_per_block,buffer_blocks}}'::text[]
                                                     FROM corgipile.models WHERE model_id = {})",
        whole.id
    ));
    assert_eq!(again.bits(), whole.bits());
    let ask = |model: &str| format!("SELECT corgipile_predict({model}, a, b) FROM bowl ORDER BY id LIMIT 200");
    let expected = db.lines(&ask(&whole.id.to_string()));
    assert_eq!(other.lines(&ask(&whole.id.to_string())), expected, "from shared memory");
    let value = db.line(&format!("SELECT corgipile_export({})", whole.id));
    assert_eq!(db.lines(&ask(&format!("'{value}'::jsonb"))), expected, "as a value");
    let imported: i64 = db.value(&format!("SELECT corgipile_import('{value}', name => 'copy')"));
    assert_eq!(db.lines(&ask(&imported.to_string())), expected, "imported");
    for (key, wrong) in [("output", "\"softmax\""), ("classes", "[\"a\", \"b\"]"), ("intercepts", "[1, 2]")] {
        let forged = format!("SELECT corgipile_import(jsonb_set('{value}', '{{{key}}}', '{wrong}'))");
        db.fails_with(&forged, "22023").says(&[key]);
    }
}

#[test]
fn groups_grids_and_validation_are_those_of_every_model() {
    let mut db = Database::new();
    bowl(&mut db);
    let grid = r#"[{"hidden_layer_sizes": [20]}, {"hidden_layer_sizes": [1], "activation": "tanh"}]"#;
    let rows = db.rows(
        &format!(
            "SELECT group_value, grid_point::text, r2, validation_score FROM corgipile_train('bowl', 'mlp', 'y', '{{x}}', seed => 1,
               group_by => 'side', options => '{{\"validation_column\": \"test\"}}', grid => '{grid}') WHERE epoch = 20"
        ),
        &[],
    );
    assert_eq!(rows.len(), 4);
    for row in rows {
        let (point, r2, score): (String, f64, f64) = (row.get(1), row.get(2), row.get(3));
        assert!((r2 - score).abs() < 0.2, "{point}: {r2} {score}");
        assert!(!point.contains("20") || score > 0.8, "{point}: {score}");
    }
    // as a part of the rows, in a worker, from a compressed table
    let alone = db.trained(&format!("'bowl', 'mlp', 'y', '{{x}}', {QUICK}")).bits();
    assert_eq!(db.trained(&format!("'bowl', 'mlp', 'y', '{{x}}', {QUICK}, prefetch => 'on'")).bits(), alone);
    db.run("SELECT * FROM corgipile_compress('bowl', 'packed', label => 'y', features => '{x}', batch_rows => 50, seed => 1)");
    let id = db.train("'packed', 'mlp', 'y', options => '{\"objective\": \"regression\", \"standardize\": false}'")[0]
        .model_id;
    assert_eq!(kind(&mut db, id), "mlp_regression|identity|NULL|regression");
}
