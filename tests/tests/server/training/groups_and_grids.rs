//! Rows that are held out for validation, models by group, and grids: whatever several models learn at once, each of
//! them is what its own training would have made.

use corgipile_tests::{Database, Session, small};

/// A table with groups and a flag, over enough pages for several buffers.
fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i::int AS id, (uniform(i, 0) < 0.4) AS positive, (ARRAY['ant', 'bee', 'cat'])[1 + (uniform(i, 6) * 3)::int % 3] AS animal,
                (uniform(i, 0) < 0.4)::int + normal(i, 5) AS target,
                ARRAY[(uniform(i, 0) < 0.4)::int + normal(i, 1), normal(i, 2), 2 * normal(i, 3)]::real[] AS x,
                CASE WHEN i % 7 = 0 THEN '{2}' ELSE '{1,3}' END::int[] AS k,
                CASE WHEN i % 7 = 0 THEN ARRAY[normal(i, 1)] ELSE ARRAY[1 + normal(i, 1), normal(i, 2)] END::real[] AS v,
                (ARRAY['north', 'south', 'east', 'west'])[1 + (uniform(i, 4) * uniform(i, 5) * 4)::int % 4] AS site,
                i % 5 = 0 AS test
           FROM generate_series(1, 9000) i;
         ANALYZE t",
    );
}

/// What is to be trained in each kind of way: model, label, features, options.
const WAYS: [(&str, &str, &str, &str); 5] = [
    ("logistic", "positive", "{x}", "{}"),
    ("svm", "positive", "{x}", r#"{"batch_size": 16, "optimizer": "momentum", "standardize": true}"#),
    ("linear", "target", "{k,v}", r#"{"optimizer": "adam", "l1": 0.0001}"#),
    ("softmax", "animal", "{x}", r#"{"batch_size": 8, "l2": 0.001}"#),
    ("logistic", "positive", "{k,v}", r#"{"schedule": "theorem1", "mu": 0.01, "class_weight": "balanced"}"#),
];

const SIZES: &str = "max_epochs => 3, seed => 7, block_size => '16kB', buffer_size => '20%', learning_rate => 0.005";

fn arguments(source: &str, (model, label, features, options): (&str, &str, &str, &str), more: &str) -> String {
    // scales would be those of all rows, and not of a group's
    let scales = if options.contains("standardize") { "" } else { ", standardize => false" };
    format!("$${source}$$, '{model}', '{label}', '{features}', {SIZES}{scales}, options => '{options}'{more}")
}

fn with(options: &str, more: &str) -> String {
    match options {
        "{}" => format!("{{{more}}}"),
        options => format!("{}, {more}}}", options.trim_end_matches('}')),
    }
}

/// The loss of a model on the rows that are held out, each of which weighs the inverse of the rows of its class that
/// were learned from.
fn balanced_loss(db: &mut Database, id: i64, label: &str) -> f64 {
    let (mut losses, mut weights) = (0.0, 0.0);
    for row in db.rows(&format!("SELECT {label}::text, count(*) FROM t WHERE NOT test GROUP BY 1"), &[]) {
        let (class, rows): (String, i64) = (row.get(0), row.get(1));
        let of_class = |metric: &str| {
            format!(
                "SELECT value FROM corgipile_evaluate({id}, 'SELECT * FROM t WHERE test AND {label}::text = ''{class}''')
                  WHERE metric = '{metric}'"
            )
        };
        let (loss, tuples): (f64, f64) = (db.value(&of_class("loss")), db.value(&of_class("tuples")));
        losses += loss * tuples / rows as f64;
        weights += tuples / rows as f64;
    }
    losses / weights
}

#[test]
fn rows_that_are_held_out_are_not_learned_from_and_are_what_validation_is_about() {
    let mut db = Database::new();
    table(&mut db);
    for way @ (model, label, features, options) in WAYS {
        let alone = db.trained(&arguments("SELECT * FROM t WHERE NOT test", way, ""));
        let held_out = with(options, r#""validation_column": "test""#);
        let rows = db.rows(
            &format!("SELECT * FROM corgipile_train({})", arguments("t", (model, label, features, &held_out), "")),
            &[],
        );
        let last = rows.last().expect("three epochs");
        let id: i64 = last.get("model_id");
        assert_eq!(db.model(id).bits(), alone.bits(), "{way:?}");
        let judged =
            db.rows("SELECT metric, value FROM corgipile_evaluate($1::bigint, 'SELECT * FROM t WHERE test')", &[&id]);
        for (column, row) in [("validation_score", 0), ("validation_loss", 1)] {
            let (given, mut expected): (f64, f64) = (last.get(column), judged[row].get(1));
            if column == "validation_loss" && options.contains("balanced") {
                expected = balanced_loss(&mut db, id, label);
            }
            // a training has its targets in single precision
            assert!(
                (given - expected).abs() < 1e-8 * expected.abs().max(1.0),
                "{way:?}, {column}: {given}, {expected}"
            );
        }
        let tuples: i64 = last.get("tuples");
        assert_eq!(tuples, 7200);
    }
}

#[test]
fn a_fraction_of_rows_or_blocks_is_the_same_in_each_epoch() {
    let mut db = Database::new();
    table(&mut db);
    for (by, strategy) in
        [("row", "corgipile"), ("row", "epoch_shuffle"), ("block", "corgipile"), ("row", "no_shuffle")]
    {
        let options = format!(r#"{{"validation_fraction": 0.25, "validation_by": "{by}"}}"#);
        let train = |seed: i32| {
            format!(
                "SELECT tuples, validation_loss FROM corgipile_train('t', label => 'positive', features => '{{x}}', max_epochs => 3,
                     shuffle => '{strategy}', seed => {seed}, block_size => '8kB', options => '{options}')"
            )
        };
        let first = db.rows(&train(1), &[]);
        let tuples: Vec<i64> = first.iter().map(|row| row.get(0)).collect();
        assert_eq!([tuples[0]; 3][..], tuples[..], "{by} {strategy}");
        let fraction = 1.0 - tuples[0] as f64 / 9000.0;
        assert!((fraction - 0.25).abs() < 0.04, "{by} {strategy}: {fraction}");
        let losses = |rows: &[postgres::Row]| rows.iter().map(|row| row.get::<_, f64>(1)).collect::<Vec<_>>();
        let again = db.rows(&train(1), &[]);
        let other = db.rows(&train(2), &[]);
        assert_eq!(losses(&again), losses(&first), "{by} {strategy}");
        assert_ne!(losses(&other), losses(&first), "{by} {strategy}");
    }
}

#[test]
fn training_stops_early_when_the_loss_does() {
    let mut db = Database::new();
    table(&mut db);
    for part in ["", r#""validation_column": "test", "#] {
        let train = |options: &str| {
            format!(
                "SELECT epoch, COALESCE(validation_loss, loss) AS loss, model_id FROM corgipile_train('t', label => 'positive',
                     features => '{{x}}', learning_rate => 0.05, max_epochs => 30, seed => 3, options => '{{{part}{options}}}')"
            )
        };
        let rows = db.rows(&train(r#""tolerance": 0.001, "patience": 3"#), &[]);
        let losses: Vec<f64> = rows.iter().map(|row| row.get(1)).collect();
        // scikit-learn: an epoch is no better if its loss is not below the lowest by the tolerance
        let (mut lowest, mut stale, mut stop) = (f64::INFINITY, 0, 0);
        let all: Vec<f64> = db.rows(&train(r#""nulls": "error""#), &[]).iter().map(|row| row.get(1)).collect();
        for (i, loss) in all.iter().enumerate() {
            stale = if *loss > lowest - 0.001 { stale + 1 } else { 0 };
            lowest = lowest.min(*loss);
            if stale == 3 {
                stop = i + 1;
                break;
            }
        }
        assert!(stop > 0 && stop < 30, "{all:?}");
        assert_eq!(losses, all[..stop], "{part}");
        let best = db.rows(&train(r#""keep": "best""#), &[]);
        let (at, _) = all.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).expect("epochs");
        let kept = db.model(best[0].get(2));
        let until = format!(
            "'t', label => 'positive', features => '{{x}}', learning_rate => 0.05, max_epochs => {}, seed => 3,
             options => '{{{part}\"nulls\": \"error\"}}'",
            at + 1
        );
        assert_eq!(kept.bits(), db.trained(&until).bits(), "{part}: the model of epoch {}", at + 1);
    }
}

#[test]
fn each_model_of_a_grid_is_that_of_its_own_training() {
    let mut db = Database::new();
    table(&mut db);
    for (model, label, features, options) in WAYS.into_iter().take(4) {
        let (momentum, adam) =
            (r#"{"optimizer": "momentum", "momentum": 0.5}"#, r#"{"optimizer": "adam", "max_epochs": 2}"#);
        let grid = format!(r#"[{{"learning_rate": 0.02, "l2": 0.01}}, {{"batch_size": 4}}, {momentum}, {adam}, {{}}]"#);
        let options = if options.contains("standardize") { r#"{"standardize": true}"# } else { "{}" };
        let rows = db.rows(
            &format!(
                "SELECT DISTINCT grid_point, model_id FROM corgipile_train({}, name => '{model} {features}', grid => '{grid}') ORDER BY 2",
                arguments("t", (model, label, features, options), "")
            ),
            &[],
        );
        assert_eq!(rows.len(), 5, "{model}");
        for (i, row) in rows.iter().enumerate() {
            let (point, id): (serde_json::Value, i64) = (row.get(0), row.get(1));
            let mut says = point.as_object().expect("an object").clone();
            let mut more = String::new();
            let mut own: serde_json::Map<_, _> = serde_json::from_str(options).expect("options");
            let mut arguments = arguments("t", (model, label, features, options), "").replace(options, "OPTIONS");
            if let Some(rate) = says.remove("learning_rate") {
                arguments = arguments.replace("learning_rate => 0.005", &format!("learning_rate => {rate}"));
            }
            if let Some(epochs) = says.remove("max_epochs") {
                arguments = arguments.replace("max_epochs => 3", &format!("max_epochs => {epochs}"));
            }
            own.append(&mut says);
            more.push_str(&serde_json::Value::Object(own).to_string());
            let alone = db.trained(&arguments.replace("OPTIONS", &more));
            assert_eq!(db.model(id).bits(), alone.bits(), "{model} {point}");
            let name: String = db.value(&format!("SELECT name FROM corgipile.models WHERE model_id = {id}"));
            assert_eq!(name, format!("{model} {features}/{}", i + 1));
        }
    }
    let product = db.lines(
        "SELECT DISTINCT grid_point FROM corgipile_train('t', label => 'positive', features => '{x}', max_epochs => 1,
             grid => '{\"l2\": [0, 0.1], \"learning_rate\": [0.1, 0.01, 0.001]}')",
    );
    assert_eq!(product.len(), 6);
    let plan = db.lines(
        "EXPLAIN SELECT * FROM corgipile_train('t', label => 'positive', features => '{x}',
             grid => '{\"l2\": [0, 0.1], \"learning_rate\": [0.1, 0.01, 0.001]}')",
    );
    assert!(plan.iter().any(|line| line.trim() == "Grid Points: 6"), "{plan:#?}");
}

#[test]
fn each_group_has_the_model_of_its_own_rows() {
    let mut db = Database::new();
    table(&mut db);
    for (i, way @ (model, ..)) in WAYS.into_iter().enumerate().filter(|(i, _)| ![1, 4].contains(i)) {
        let rows = db.rows(
            &format!(
                "SELECT DISTINCT group_value, model_id, max(tuples) OVER (PARTITION BY model_id) FROM corgipile_train({}, group_by => 'site') ORDER BY 2",
                arguments("t", way, &format!(", name => 'g{i}'"))
            ),
            &[],
        );
        let sites: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(sites, ["east", "north", "south", "west"], "{model}: in the order of their values");
        for row in &rows {
            let (site, id, tuples): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
            let alone = db.trained(&arguments(&format!("SELECT * FROM t WHERE site = '{site}'"), way, ""));
            assert_eq!(db.model(id).bits(), alone.bits(), "{model} {site}");
            assert_eq!(db.value::<i64>(&format!("SELECT count(*) FROM t WHERE site = '{site}'")), tuples);
            let name: String = db.value(&format!("SELECT name FROM corgipile.models WHERE model_id = {id}"));
            assert_eq!(name, format!("g{i}/{site}"));
        }
    }
    // all at once: groups, points, and rows that are held out
    let rows = db.lines(
        "SELECT DISTINCT group_value, grid_point FROM corgipile_train('t', label => 'positive', features => '{x}', max_epochs => 2,
             group_by => 'site', grid => '{\"l2\": [0, 0.1]}', options => '{\"validation_column\": \"test\"}')
          WHERE validation_loss > 0",
    );
    assert_eq!(rows.len(), 8);
}

#[test]
fn explain_shows_parts_and_when_to_stop() {
    let mut db = Database::new();
    table(&mut db);
    let plan = db.lines(
        "EXPLAIN SELECT * FROM corgipile_train('t', label => 'positive', features => '{x}', group_by => 'site',
             options => '{\"validation_fraction\": 0.1, \"validation_by\": \"block\", \"patience\": 3}')",
    );
    for line in ["Group By: site", "Validation: 0.1 of the blocks", "Early Stopping: tolerance 0.001, patience 3"] {
        assert!(plan.iter().any(|shown| shown.trim() == line), "{line}: {plan:#?}");
    }
    let plan = db.lines("EXPLAIN ANALYZE SELECT * FROM corgipile_train('t', label => 'positive', features => '{x}', max_epochs => 1, group_by => 'site')");
    assert!(plan.iter().any(|shown| shown.trim() == "Models: 4"), "{plan:#?}");
}

#[test]
fn what_cannot_be_is_said_before_anything_is_trained() {
    let mut db = Database::new();
    table(&mut db);
    let mut fails = |arguments: &str, code: &str, words: &[&str]| {
        let sql = format!("SELECT * FROM corgipile_train('t', label => 'positive', features => '{{x}}', {arguments})");
        db.fails_with(&sql, code).says(words);
    };
    fails(r#"grid => '{"l2": 0.1}'"#, "22023", &["l2", "array"]);
    fails(r#"grid => '{"l2": []}'"#, "22023", &["no points"]);
    fails(r#"grid => '[]'"#, "22023", &["no points"]);
    fails(r#"grid => '[1]'"#, "22023", &["array of objects"]);
    fails(r#"grid => '{"standardize": [true]}'"#, "22023", &["standardize", "the same for all points"]);
    fails(r#"grid => '{"l2": [-1]}'"#, "22023", &["l2"]);
    fails(r#"grid => '{"max_epochs": [0]}'"#, "22023", &["max_epochs"]);
    fails(
        "grid => (SELECT jsonb_build_object('l2', jsonb_agg(i)) FROM generate_series(1, 1001) i)",
        "22023",
        &["1000"],
    );
    fails("group_by => 'site', shuffle => 'mrs'", "0A000", &["mrs"]);
    fails("group_by => 'nobody'", "42703", &["nobody"]);
    fails("group_by => 'x'", "22023", &["x", "a feature"]);
    fails("group_by => 'k'", "42804", &["k"]);
    fails(r#"options => '{"validation_column": "site"}'"#, "42804", &["site"]);
    fails(r#"options => '{"validation_column": "positive"}'"#, "22023", &["the label"]);
    fails(r#"options => '{"validation_by": "row"}'"#, "22023", &["validation_fraction"]);
    fails(r#"options => '{"validation_fraction": 1}'"#, "22023", &["between 0 and 1"]);
    fails(
        r#"options => '{"validation_fraction": 0.1, "validation_column": "test"}'"#,
        "22023",
        &["cannot be combined"],
    );
    fails(r#"options => '{"validation_fraction": 0.1}', shuffle => 'sliding_window'"#, "0A000", &["sliding_window"]);
    fails(
        r#"options => '{"validation_fraction": 0.1, "validation_by": "block"}', shuffle => 'epoch_shuffle'"#,
        "22023",
        &["block"],
    );
    fails(r#"options => '{"patience": 0}'"#, "22023", &["patience"]);
    fails(r#"options => '{"keep": "first"}'"#, "22023", &["last"]);
    assert_eq!(db.value::<i64>("SELECT count(*) FROM corgipile.models"), 0);
}

#[test]
fn a_null_group_or_flag_is_an_error_or_left_out() {
    let mut db = Database::new();
    small(&mut db, "s", 500);
    db.run("ALTER TABLE s ADD g int, ADD f boolean; UPDATE s SET g = id % 3, f = id % 4 = 0; UPDATE s SET g = NULL WHERE id = 7; UPDATE s SET f = NULL WHERE id = 9");
    let train =
        |more: &str| format!("SELECT * FROM corgipile_train('s', features => '{{a,b,c}}', max_epochs => 2, {more})");
    db.fails_with(&train(r#"group_by => 'g', options => '{"nulls": "error"}'"#), "22004")
        .says(&["group is NULL"])
        .hints(&["skip"]);
    db.fails_with(&train(r#"options => '{"validation_column": "f", "nulls": "error"}'"#), "22004")
        .says(&["validation"])
        .hints(&["skip"]);
    for options in [r#"{"nulls": "skip"}"#, "{}"] {
        let tuples: i64 = db.value(&format!(
            "SELECT sum(tuples)::bigint FROM ({}) r WHERE epoch = 2",
            train(&format!("group_by => 'g', options => '{options}'"))
        ));
        assert_eq!(tuples, 499, "{options}");
    }
    // columns that mean something are no features unless they are named
    db.run(
        "SELECT FROM corgipile_train('s', max_epochs => 1, group_by => 'g', options => '{\"nulls\": \"skip\", \"validation_column\": \"f\"}')",
    );
    assert_eq!(db.lines("SELECT DISTINCT features FROM corgipile.models"), ["{a,b,c}"]);
}

#[test]
fn a_point_that_diverges_leaves_the_others_alone() {
    let mut db = Database::new();
    table(&mut db);
    let train = |rates: &str| {
        format!(
            "SELECT DISTINCT grid_point ->> 'learning_rate' FROM corgipile_train('t', model => 'linear', label => 'target', features => '{{x}}',
                 max_epochs => 2, grid => '{{\"learning_rate\": [{rates}]}}')"
        )
    };
    assert_eq!(db.lines(&train("100000, 0.001")), ["0.001"]);
    db.fails_with(&train("100000, 200000"), "22003").says(&["diverged"]);
}

#[test]
fn models_that_would_take_all_memory_are_refused_before_they_are_made() {
    let mut db = Database::new();
    db.run("CREATE TABLE sparse AS SELECT i AS label, ARRAY[1, i * 20000000 + 2] AS k, ARRAY[1, 1]::real[] AS v FROM generate_series(0, 1) i;
            CREATE TABLE many AS SELECT i % 2 AS label, i / 2 AS site, (i % 2)::real AS x FROM generate_series(0, 9999) i;
            SET statement_timeout = '20s'");
    let grid = |points: usize| {
        format!("(SELECT jsonb_build_object('learning_rate', jsonb_agg(i / 1e4)) FROM generate_series(1, {points}) i)")
    };
    let train =
        |source, more: &str| format!("SELECT count(*) FROM corgipile_train('{source}', max_epochs => 1, {more})");
    // 1,000 times 20 million weights, known after a row, or before
    db.fails_with(&train("sparse", &format!("features => '{{k,v}}', grid => {}", grid(1000))), "54000");
    let known = format!("features => '{{k,v}}', options => '{{\"dimensions\": 20000002}}', grid => {}", grid(1000));
    db.fails_with(&train("sparse", &known), "54000");
    // 5,000 groups times 21 models are more than 100,000, however small
    db.fails_with(&train("many", &format!("features => '{{x}}', group_by => 'site', grid => {}", grid(21))), "54000");
    db.run(&train("many", "features => '{x}', group_by => 'site'"));
}

#[test]
fn more_epochs_than_there_is_memory_for_are_refused_before_they_are_trained() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i % 2 AS label, i % 10 AS site, i::real AS x FROM generate_series(1, 1000) i");
    for more in [
        "group_by => 'site', max_epochs => 1000000",
        "grid => '{\"l2\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}', max_epochs => 1000000",
        "group_by => 'site', grid => '{\"max_epochs\": [1, 1000000]}'",
    ] {
        db.rejects(&format!("SELECT corgipile_train('t', features => '{{x}}', {more})"), "54000")
            .says(&["epochs together"])
            .hints(&["fewer epochs", "fewer models per call"]);
    }
    // what stops early may say that it could take as long
    let stops = db.train("'t', features => '{x}', group_by => 'site', max_epochs => 1000000, options => '{\"tolerance\": 10, \"patience\": 2}'");
    assert!(stops.len() < 100, "{}", stops.len());
    assert_eq!(db.models(), 10);
}
