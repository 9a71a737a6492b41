//! What is left to the extension: the learning rate, which features are scaled,
//! and the size of a network's mini-batches.

use corgipile_tests::{Database, assert_close, clustered};

/// A table of two numbers of very different scales, a flag, a constant, and labels and targets that depend on them,
/// sorted by label.
fn scales(db: &mut Database) {
    db.run(
        "CREATE TABLE t AS SELECT *, (z > 0)::int AS label, 5e6 + 1e5 * z + 1e4 * normal(i, 9) AS target,
                CASE WHEN z < -1 THEN 'low' WHEN z < 1 THEN 'middle' ELSE 'high' END AS class
           FROM (SELECT i, 3e5 + 1e4 * normal(i, 1) AS large, 1e-3 * normal(i, 2) AS small, (uniform(i, 3) < 0.3)::int AS flag,
                        7.5::real AS constant,
                        normal(i, 1) - 2 * normal(i, 2) + 2 * (uniform(i, 3) < 0.3)::int AS z
                   FROM generate_series(1, 4000) AS i) AS numbers ORDER BY z;
         ANALYZE t",
    );
}

const FEATURES: &str = "features => '{large,small,flag,constant}'";

#[test]
fn numbers_of_any_scale_are_learned_from_without_a_word() {
    let mut db = Database::new();
    scales(&mut db);
    for (model, label, least) in [
        ("logistic", "label", 0.985),
        ("svm", "label", 0.985),
        ("softmax", "class", 0.95),
        ("mlp", "class", 0.95),
        ("linear", "target", 0.99),
    ] {
        let epochs = db.train(&format!("'t', '{model}', '{label}', {FEATURES}, seed => 1"));
        let evaluation = db.rows(
            "SELECT metric, value FROM corgipile_evaluate($1::bigint, 't') WHERE metric IN ('accuracy', 'r2')",
            &[&epochs[0].model_id],
        );
        let score: f64 = evaluation[0].get(1);
        assert!(score > least, "{model}: {score}");
    }
}

#[test]
fn what_is_chosen_is_told_recorded_and_what_the_definition_says() {
    let mut db = Database::new();
    scales(&mut db);
    let id = db.train(&format!("'t', {FEATURES}, seed => 1"))[0].model_id;
    let kept =
        "SELECT hyperparameters->>'bounded_steps', hyperparameters->>'averaging', hyperparameters->>'standardize',
                       feature_mean[3], feature_scale[3], feature_mean[4], feature_scale[4] FROM corgipile.models";
    assert_eq!(db.line(kept), "true|true|auto|0|1|7.5|1");
    // two numbers of deviation 1, the flag as it is, nothing of the constant, and the intercept
    let expected: f64 = db.value("SELECT 1 / (2 + avg(flag)::float8 + 1) FROM t");
    let rate = |db: &mut Database, id: i64| -> f64 {
        db.value(&format!(
            "SELECT (hyperparameters->>'learning_rate')::float8 FROM corgipile.models WHERE model_id = {id}"
        ))
    };
    assert_close(&[rate(&mut db, id)], &[expected], 1e-9);
    for (more, factor) in [(", model => 'svm'", 0.1), (", batch_size => 8", 8.0), (", optimizer => 'momentum'", 0.1)] {
        let id = db.train(&format!("'t', {FEATURES}, max_epochs => 1{more}"))[0].model_id;
        assert_close(&[rate(&mut db, id)], &[factor * expected], 1e-9);
    }
    // features as they are
    let raw: f64 = db.value("SELECT 1 / (avg(large ^ 2 + small ^ 2 + flag + 7.5 ^ 2) + 1)::float8 FROM t");
    let id = db.train(&format!("'t', {FEATURES}, max_epochs => 1, standardize => false"))[0].model_id;
    assert_close(&[rate(&mut db, id)], &[raw], 1e-6);
    // 20 epochs of 4,000 rows, of which none is held out, in 2,000 steps would be 40 rows a step
    db.train(&format!("'t', 'mlp', {FEATURES}, seed => 1, max_epochs => 1"));
    let last = "SELECT hyperparameters->>'batch_size', hyperparameters->>'optimizer', hyperparameters->>'activation', hidden_layer_sizes::text
                  FROM corgipile.models ORDER BY model_id DESC LIMIT 1";
    assert_eq!(db.line(last), "2|adam|relu|{100}");
    // what is given is taken as it is, and nothing is chosen
    let plain = db.notices(&[
        "SELECT FROM corgipile_train('t', 'logistic', features => '{large,small}', learning_rate => 1e-12, standardize => false)",
    ]);
    assert_eq!(plain, "");
}

#[test]
fn the_record_of_a_model_trains_it_again_with_every_choice_given() {
    let mut db = Database::new();
    scales(&mut db);
    clustered(&mut db, "other", 2000);
    db.run("CREATE TABLE words AS SELECT label, CASE WHEN small > 0 THEN 'plus' END AS word, nullif(flag, 1) AS flag FROM t");
    for (source, model, label, more) in [
        ("t", "logistic", "label", "features => '{large,small,flag}'"),
        ("t", "linear", "target", "features => '{large,small,flag}'"),
        ("t", "softmax", "class", "features => '{large,small,flag}', batch_size => 16"),
        ("t", "mlp", "class", "features => '{large,small,flag}', max_epochs => 3"),
        ("other", "svm", "label", "features => '{features_v}', optimizer => 'momentum'"),
        ("words", "logistic", "label", "features => '{word,flag}'"),
    ] {
        let arguments = format!("'{source}', '{model}', '{label}', {more}");
        let first = db.trained(&arguments);
        let features = more.split("'").nth(1).expect("features");
        let again = db.trained(&format!(
            "'{source}', '{model}', '{label}', '{features}',
             options => (SELECT hyperparameters - '{{pages_per_block,buffer_blocks}}'::text[] FROM corgipile.models WHERE model_id = {})",
            first.id
        ));
        assert_eq!(again.bits(), first.bits(), "{arguments}");
    }
}

#[test]
fn a_regression_is_in_the_units_of_its_label() {
    let mut db = Database::new();
    scales(&mut db);
    let epochs = db.train("'t', 'linear', 'target', '{large,small,flag}', seed => 1");
    let id = epochs[0].model_id;
    let mean: f64 = db.value(&format!("SELECT avg(corgipile_predict({id}, ARRAY[large, small, flag]))::float8 FROM t"));
    let expected: f64 = db.value("SELECT avg(target)::float8 FROM t");
    assert_close(&[mean], &[expected], 1e-3);
    // the loss is half of the mean square of the errors, and the noise alone has a variance of 1e8
    let loss: f64 = db.value(&format!(
        "SELECT avg((corgipile_predict({id}, ARRAY[large, small, flag]) - target) ^ 2)::float8 / 2 FROM t"
    ));
    assert!((4.5e7..6e7).contains(&loss), "{loss}");
    let last = epochs.last().expect("epochs").loss;
    assert!((last / loss - 1.0).abs() < 0.2, "{last} {loss}");
    assert_close(&[db.value("SELECT loss FROM corgipile.training_history ORDER BY epoch DESC LIMIT 1")], &[last], 1e-9);
    // and so is that on rows that are held out
    let epochs = db.rows(
        "SELECT validation_loss FROM corgipile_train('t', 'linear', 'target', '{large,small,flag}', seed => 1, validation_fraction => 0.3)",
        &[],
    );
    let held_out: f64 = epochs[19].get(0);
    assert!((4e7..6.5e7).contains(&held_out), "{held_out}");
}

#[test]
fn a_model_worse_than_a_constant_is_warned_of() {
    let mut db = Database::new();
    scales(&mut db);
    db.run("CREATE TABLE noise AS SELECT (uniform(i, 1) < 0.2)::int AS label, normal(i, 2) AS a, normal(i, 3) AS b, normal(i, 4) AS y
              FROM generate_series(1, 3000) AS i");
    let warnings = |db: &Database, arguments: &str| -> Vec<String> {
        let all = db.notices(&[&format!("SELECT FROM corgipile_train({arguments})")]);
        all.lines().filter(|line| line.starts_with("WARNING")).map(str::to_owned).collect()
    };
    let bad = "standardize => false, learning_rate => 3, decay => 1, seed => 1";
    for (arguments, figure) in [
        (format!("'noise', 'logistic', features => '{{a,b}}', {bad}"), "its loss is "),
        (format!("'noise', 'svm', features => '{{a,b}}', {bad}"), ", that of the best constant 0.3"),
        (format!("'noise', 'softmax', features => '{{a,b}}', {bad}"), ", that of the best constant 0.4"),
        ("'noise', 'linear', 'y', features => '{a,b}', learning_rate => 0.3, decay => 1, standardize => false, seed => 1".into(), "its R2 is -"),
    ] {
        let arguments = arguments.replace("decay => 1, ", "options => '{\"decay\": 1}', ");
        let warned = warnings(&db, &arguments);
        let start = "WARNING:  the model is worse than a constant baseline: ";
        assert!(
            warned.len() == 1 && warned[0].starts_with(start) && warned[0].contains(figure),
            "{arguments}: {warned:?}"
        );
    }
    let grid =
        "'noise', features => '{a,b}', standardize => false, grid => '{\"learning_rate\": [0.001, 3, 4]}', seed => 1";
    let several = "WARNING:  2 of 3 models are worse than a constant baseline";
    assert_eq!(warnings(&db, grid), [several]);
    // labels that nothing tells of are no reason to warn, nor is a first epoch
    for (model, label) in
        [("logistic", "label"), ("svm", "label"), ("softmax", "label"), ("linear", "y"), ("mlp", "label"), ("mlp", "y")]
    {
        for seed in 1..4 {
            let arguments = format!("'noise', '{model}', '{label}', '{{a,b}}', seed => {seed}");
            assert!(warnings(&db, &arguments).is_empty(), "{arguments}");
        }
        assert!(warnings(&db, &format!("'t', '{model}', 'label', '{{large,small}}', max_epochs => 1")).is_empty());
    }
}

#[test]
fn a_small_table_is_shuffled_as_a_whole_and_a_large_one_by_tenths_or_16_mb() {
    let mut db = Database::new();
    clustered(&mut db, "small", 20_000);
    // few rows on many pages: 70 MB
    db.run(
        "CREATE TABLE large (label int, x real, filler text);
         ALTER TABLE large ALTER COLUMN filler SET STORAGE PLAIN;
         INSERT INTO large SELECT i % 2, i, repeat('x', 7000) FROM generate_series(1, 9000) AS i",
    );
    db.run("VACUUM ANALYZE large");
    for (source, features, cache, buffers) in
        [("small", "{features_v}", "4GB", 1), ("large", "{x}", "4GB", 4), ("large", "{x}", "8MB", 10)]
    {
        db.run(&format!("SET effective_cache_size = '{cache}'"));
        let id = db.train(&format!("'{source}', features => '{features}', max_epochs => 1"))[0].model_id;
        let expected: i64 = db.value(&format!(
            "SELECT ceil(pg_relation_size('{source}') / 8192.0 / (hyperparameters->>'pages_per_block')::int / {buffers})::int8
               FROM corgipile.models WHERE model_id = {id}"
        ));
        let blocks: i64 = db.value(&format!(
            "SELECT (hyperparameters->>'buffer_blocks')::int8 FROM corgipile.models WHERE model_id = {id}"
        ));
        assert_eq!(blocks, expected, "{source}, {cache}");
    }
}

#[test]
fn a_training_goes_on_as_if_it_had_not_ended() {
    let mut db = Database::new();
    scales(&mut db);
    for (model, label) in [("logistic", "label"), ("linear", "target"), ("softmax", "class")] {
        let arguments = |epochs: u32, name: &str| {
            format!(
                "'t', '{model}', '{label}', '{{large,small,flag}}', seed => 1, max_epochs => {epochs}, name => '{name}'"
            )
        };
        let whole = db.trained(&arguments(6, &format!("{model} whole")));
        db.trained(&arguments(4, model));
        let continued = db.trained(&format!("'t', warm_start => '{model}', max_epochs => 2"));
        assert_eq!(continued.bits(), whole.bits(), "{model}");
    }
}
