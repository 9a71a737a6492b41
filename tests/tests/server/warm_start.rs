//! warm_start: to train on where a training has ended is to have trained longer, bit for bit.

use corgipile_tests::{Database, Session};

fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i::int AS id, (ARRAY['yes', 'no'])[1 + (uniform(i, 0) < 0.4)::int] AS answer,
                (ARRAY['cat', 'ant', 'bee'])[1 + (uniform(i, 6) * 3)::int % 3] AS animal,
                (uniform(i, 0) < 0.4)::int + normal(i, 5) AS target,
                ARRAY[(uniform(i, 0) < 0.4)::int + normal(i, 1), normal(i, 2), 2 * normal(i, 3)]::real[] AS x,
                CASE WHEN i % 7 = 0 THEN '{2}' ELSE '{1,3}' END::int[] AS k,
                CASE WHEN i % 7 = 0 THEN ARRAY[normal(i, 1)] ELSE ARRAY[1 + normal(i, 1), normal(i, 2)] END::real[] AS v,
                normal(i, 7) AS number, (ARRAY['north', 'south', 'east'])[1 + i % 3] AS site, i % 5 = 0 AS test
           FROM generate_series(1, 3000) i;
         ANALYZE t",
    );
}

const SIZES: &str = "seed => 7, block_size => '16kB', buffer_size => '20%', learning_rate => 0.005";

/// Trains five epochs at once, and two and three; gives both models' bits and losses.
fn both(db: &mut Session, arguments: &str, again: &str) {
    let whole = db.train(&format!("'t', {arguments}, max_epochs => 5"));
    let first = db.train(&format!("'t', {arguments}, max_epochs => 2"));
    let second = db.train(&format!("'t', warm_start => '{}', max_epochs => 3{again}", first[0].model_id));
    let losses = |epochs: &[corgipile_tests::Epoch]| {
        epochs.iter().map(|e| (e.epoch, e.loss, e.learning_rate)).collect::<Vec<_>>()
    };
    assert_eq!([losses(&first), losses(&second)].concat(), losses(&whole), "{arguments}");
    assert_eq!(db.model(second[0].model_id).bits(), db.model(whole[0].model_id).bits(), "{arguments}");
    let history: Vec<i32> =
        db.column(&format!("SELECT epoch FROM corgipile.training_history WHERE model_id = {}", second[0].model_id));
    assert_eq!(history, [1, 2, 3, 4, 5]);
}

#[test]
fn two_epochs_and_three_are_five_for_every_model_optimizer_and_schedule() {
    let mut db = Database::new();
    table(&mut db);
    let models = [("logistic", "answer"), ("svm", "answer"), ("linear", "target"), ("softmax", "animal")];
    let optimizers = [r#""optimizer": "sgd""#, r#""optimizer": "momentum""#, r#""optimizer": "adam""#];
    let schedules = [
        r#""schedule": "constant""#,
        r#""decay": 0.5"#,
        r#""schedule": "inverse_scaling", "power": 0.3"#,
        r#""schedule": "theorem1", "mu": 0.01"#,
    ];
    for (i, (model, label)) in models.into_iter().enumerate() {
        for (j, optimizer) in optimizers.into_iter().enumerate() {
            for (k, schedule) in schedules.into_iter().enumerate() {
                let n = i + j + k;
                let features = if n % 2 == 0 { "{x}" } else { "{k,v}" };
                let batch = if (i + k) % 3 == 0 { 8 } else { 1 };
                let more = ["", r#", "l2": 0.001"#, r#", "l1": 0.0001"#, r#", "standardize": true"#][n % 4];
                let options = format!(r#"{{{optimizer}, {schedule}, "batch_size": {batch}{more}}}"#);
                both(
                    &mut db,
                    &format!(
                        "model => '{model}', label => '{label}', features => '{features}', {SIZES}, options => '{options}'"
                    ),
                    "",
                );
            }
        }
    }
}

#[test]
fn what_was_learned_about_the_rows_is_known_already() {
    let mut db = Database::new();
    table(&mut db);
    for arguments in [
        r#"label => 'answer', features => '{number,site}', options => '{"standardize": true, "class_weight": "balanced"}'"#,
        r#"label => 'answer', features => '{x}', options => '{"class_weight": {"yes": 2}}'"#,
        r#"model => 'softmax', label => 'animal', features => '{k,v}', options => '{"standardize": true, "dimensions": 9}'"#,
        r#"label => 'answer', features => '{x}', options => '{"validation_column": "test", "tolerance": 0}'"#,
        r#"label => 'answer', features => '{x}', options => '{"validation_fraction": 0.3}', shuffle => 'epoch_shuffle'"#,
        "label => 'answer', features => '{x}', shuffle => 'mrs'",
        "label => 'answer', features => '{x}', shuffle => 'sliding_window'",
        "label => 'answer', features => '{x}', shuffle => 'shuffle_once'",
    ] {
        both(&mut db, &format!("{arguments}, {SIZES}"), "");
    }
    for loader in ["worker", "in_process"] {
        both(&mut db, &format!("label => 'answer', features => '{{x}}', {SIZES}"), &format!(", loader => '{loader}'"));
    }
}

#[test]
fn a_training_that_goes_on_may_differ_in_what_is_no_state() {
    let mut db = Database::new();
    table(&mut db);
    db.run(&format!("SELECT FROM corgipile_train('t', label => 'answer', features => '{{x}}', name => 'm', {SIZES}, max_epochs => 2)"));
    let rows = db.train("'SELECT * FROM t WHERE id > 1000', warm_start => 'm', max_epochs => 1, learning_rate => 0.5, options => '{\"l2\": 0.1}'");
    assert_eq!((rows[0].epoch, rows[0].tuples), (3, 2000));
    assert!((rows[0].learning_rate - 0.5 * 0.95f64.powi(2)).abs() < 1e-12);
    let rows = db.lines(
        "SELECT DISTINCT group_value, grid_point FROM corgipile_train('t', warm_start => 'm', max_epochs => 1, group_by => 'site',
             grid => '{\"l2\": [0, 0.1]}')",
    );
    assert_eq!(rows.len(), 6);
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_train('t', warm_start => 'm')");
    assert!(plan.iter().any(|line| line.contains("Continues: model 1 after epoch 2")), "{plan:#?}");
}

#[test]
fn what_does_not_fit_the_model_is_an_error() {
    let mut db = Database::new();
    table(&mut db);
    db.run(&format!("SELECT FROM corgipile_train('t', label => 'answer', features => '{{x}}', name => 'm', {SIZES}, max_epochs => 2)"));
    let mut fails = |arguments: &str, code: &str, words: &[&str]| {
        db.fails_with(&format!("SELECT * FROM corgipile_train({arguments})"), code).says(words);
    };
    fails("'t', warm_start => 'nobody'", "42704", &["nobody"]);
    fails("'t', warm_start => '77'", "42704", &["77"]);
    fails("'t', warm_start => 'm', model => 'svm'", "22023", &["logistic model"]);
    fails("'t', warm_start => 'm', features => '{k,v}'", "22023", &["features"]);
    fails("'SELECT answer, k AS x FROM t', warm_start => 'm'", "2202E", &["features instead of 3"]);
    fails("'SELECT answer, id AS x FROM t', warm_start => 'm'", "22023", &["features"]);
    fails(
        "$$SELECT CASE id WHEN 7 THEN 'perhaps' ELSE answer END AS answer, x FROM t$$, warm_start => 'm'",
        "22023",
        &["perhaps"],
    );
    fails("'SELECT id AS answer, x FROM t', warm_start => 'm'", "22023", &["classes"]);
    fails(r#"'t', warm_start => 'm', options => '{"optimizer": "adam"}'"#, "22023", &["optimizer"]);
    fails(r#"'t', warm_start => 'm', options => '{"batch_size": 16}'"#, "22023", &["batch_size"]);
    fails("'t', warm_start => 'm', workers => 2", "0A000", &["warm start"]);
    db.run(
        "SELECT FROM corgipile_train_uda('t', label => 'answer', features => '{x}', name => 'uda', max_epochs => 1)",
    );
    db.fails_with("SELECT * FROM corgipile_train('t', warm_start => 'uda')", "22023")
        .says(&["without its training state"]);
}
