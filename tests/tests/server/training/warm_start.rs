//! warm_start: to train on where a training has ended is to have trained longer, bit for bit.

use corgipile_tests::{Database, Session};

fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE made AS
         SELECT i::int AS id, (ARRAY['yes', 'no'])[1 + (uniform(i, 0) < 0.4)::int] AS answer,
                (ARRAY['cat', 'ant', 'bee'])[1 + (uniform(i, 6) * 3)::int % 3] AS animal,
                (uniform(i, 0) < 0.4)::int + normal(i, 5) AS target,
                ARRAY[(uniform(i, 0) < 0.4)::int + normal(i, 1), normal(i, 2), 2 * normal(i, 3)]::real[] AS x,
                CASE WHEN i % 7 = 0 THEN '{2}' ELSE '{1,3}' END::int[] AS k,
                CASE WHEN i % 7 = 0 THEN ARRAY[normal(i, 1)] ELSE ARRAY[1 + normal(i, 1), normal(i, 2)] END::real[] AS v,
                normal(i, 7) AS number, (ARRAY['north', 'south', 'east'])[1 + i % 3] AS site, i % 5 = 0 AS test
           FROM generate_series(1, 3000) i;
         -- since PostgreSQL 16, CREATE TABLE AS leaves empty pages behind the last, and with them the order is another
         CREATE TABLE t (LIKE made); INSERT INTO t SELECT * FROM made; DROP TABLE made;
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
    for loader in ["on", "off"] {
        both(
            &mut db,
            &format!("label => 'answer', features => '{{x}}', {SIZES}"),
            &format!(", prefetch => '{loader}'"),
        );
    }
}

#[test]
fn other_rows_or_options_make_it_a_new_training_with_the_weights_of_the_model() {
    let mut db = Database::new();
    table(&mut db);
    db.run(&format!("SELECT FROM corgipile_train('t', label => 'answer', features => '{{x}}', name => 'm', {SIZES}, max_epochs => 2)"));
    let rows = db.train("'SELECT * FROM t WHERE id > 1000', warm_start => 'm', max_epochs => 1, learning_rate => 0.5, options => '{\"l2\": 0.1}'");
    assert_eq!((rows[0].epoch, rows[0].tuples, rows[0].learning_rate), (1, 2000, 0.5));
    let rows = db.lines(
        "SELECT DISTINCT group_value, grid_point FROM corgipile_train('t', warm_start => 'm', max_epochs => 1, group_by => 'site',
             grid => '{\"l2\": [0, 0.1]}')",
    );
    assert_eq!(rows.len(), 6);
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_train('t', warm_start => 'm')");
    assert!(plan.iter().any(|line| line.contains("Continues: model 1 after epoch 2")), "{plan:#?}");
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_train('t', warm_start => 'm', learning_rate => 0.1)");
    assert!(plan.iter().any(|line| line.contains("Begins With: the weights of model 1")), "{plan:#?}");
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
    db.run(
        "SELECT FROM corgipile_train_uda('t', label => 'answer', features => '{x}', name => 'uda', max_epochs => 1)",
    );
    db.fails_with("SELECT * FROM corgipile_train('t', warm_start => 'uda')", "22023")
        .says(&["without its training state"]);
}

#[test]
fn the_column_of_weights_is_that_of_the_first_training() {
    let mut db = Database::new();
    table(&mut db);
    db.run("ALTER TABLE t ADD w real; UPDATE t SET w = 1 + id % 3");
    db.run("VACUUM FULL t");
    both(&mut db, &format!(r#"label => 'answer', features => '{{x}}', {SIZES}, options => '{{"weight": "w"}}'"#), "");
}

#[test]
fn probabilities_are_fitted_to_models_of_the_best_epoch() {
    let mut db = Database::new();
    table(&mut db);
    // so few rows that they are fitted to models of parts of them, and a rate that makes the first epoch the best
    let rest = r#"'SELECT * FROM t WHERE id <= 300', model => 'svm', label => 'answer', features => '{x}', seed => 5,
                  learning_rate => 3, options => '{"probability": true, "keep": "best"}'"#;
    let sigmoids = |db: &mut Session, id: i64| {
        db.line(&format!("SELECT weights, sigmoid_slopes, sigmoid_offsets FROM corgipile.models WHERE model_id = {id}"))
    };
    let whole = db.trained(&format!("{rest}, max_epochs => 5")).id;
    let begun = db.trained(&format!("{rest}, max_epochs => 3")).id;
    let next = db.trained(&format!("'SELECT * FROM t WHERE id <= 300', warm_start => '{begun}', max_epochs => 2")).id;
    assert_eq!(sigmoids(&mut db, next), sigmoids(&mut db, whole));
    let best = "SELECT epoch FROM corgipile.all_training_history WHERE model_id = ";
    let best: i32 = db.value(&format!("{best}{next} ORDER BY coalesce(validation_loss, loss), epoch LIMIT 1"));
    assert!(best < 3, "the best epoch is before the last of the first training: {best}");
}

#[test]
fn what_is_said_again_changes_nothing() {
    let mut db = Database::new();
    table(&mut db);
    for again in [
        "optimizer => 'sgd'",
        "optimizer => 'momentum'",
        r#"optimizer => 'momentum', options => '{"momentum": 0.8}'"#,
        "schedule => 'exponential'",
        r#"options => '{"validation_fraction": 0.3, "validation_by": "row"}'"#,
    ] {
        let rest = format!("label => 'answer', features => '{{x}}', seed => 7, {again}");
        let whole = db.trained(&format!("'t', {rest}, max_epochs => 4"));
        let begun = db.trained(&format!("'t', {rest}, max_epochs => 2"));
        let next = db.train(&format!("'t', warm_start => '{}', max_epochs => 2, {again}", begun.id));
        assert_eq!(next[0].epoch, 3, "{again}");
        assert_eq!(db.model(next[0].model_id).bits(), whole.bits(), "{again}");
    }
}

/// Values and numbers of the models that a call stores, by group.
fn groups(db: &mut Session, arguments: &str) -> Vec<(String, i64)> {
    let sql =
        format!("SELECT DISTINCT group_value COLLATE \"C\", model_id FROM corgipile_train({arguments}) ORDER BY 1");
    db.rows(&sql, &[]).iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn a_model_of_a_group_goes_on_with_the_rows_of_its_group() {
    let mut db = Database::new();
    table(&mut db);
    for more in ["", r#", options => '{"validation_fraction": 0.2}'"#] {
        let arguments = format!("'t', label => 'answer', features => '{{x}}', {SIZES}, group_by => 'site'{more}");
        let whole = groups(&mut db, &format!("{arguments}, max_epochs => 5"));
        let first = groups(&mut db, &format!("{arguments}, max_epochs => 2"));
        assert_eq!(first.len(), 3);
        for ((site, id), (_, whole)) in first.iter().zip(&whole) {
            let second = groups(&mut db, &format!("'t', warm_start => '{id}', max_epochs => 3"));
            assert_eq!(second.len(), 1, "{second:?}");
            assert_eq!(second[0].0, *site);
            assert_eq!(db.model(second[0].1).bits(), db.model(*whole).bits(), "{site}{more}");
            let third = groups(&mut db, &format!("'t', warm_start => '{}', max_epochs => 1", second[0].1));
            assert_eq!(third[0].0, *site, "it is still the model of its group");
        }
        let id = first[0].1;
        let each = groups(&mut db, &format!("'t', warm_start => '{id}', group_by => 'site', max_epochs => 1"));
        assert_eq!(each.len(), 3);
        let fails = |source: &str| format!("SELECT * FROM corgipile_train('{source}', warm_start => '{id}')");
        db.fails_with(&fails("SELECT answer, x FROM t"), "42703").says(&["site"]);
        db.fails_with(&fails("SELECT answer, x, site FROM t WHERE id % 3 = 0"), "22000").says(&["no rows"]);
    }
}

/// A model that begins with the weights of another one has the same decisions before it has learned anything: one epoch
/// at a rate of nothing.
#[test]
fn the_weights_say_the_same_whatever_features_and_targets_are_scaled_by() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE moved AS SELECT id, answer, animal, 5 + 3 * target AS target, ARRAY[2 * x[1] + 7, x[2] - 3, 9 * x[3]]::real[] AS x, number, site FROM t");
    for (model, label, features) in [
        ("logistic", "answer", "{x}"),
        ("svm", "answer", "{number,site}"),
        ("softmax", "animal", "{x}"),
        ("linear", "target", "{x}"),
        ("huber", "target", "{number,site}"),
        ("mlp", "animal", "{x}"),
        ("mlp_regression", "target", "{x}"),
    ] {
        for (first, second) in [("true", "false"), ("false", "true"), ("true", "true")] {
            let standardize =
                |to: &str| format!(r#"options => '{{"standardize": {to}, "optimizer": "adam", "batch_size": 4096}}'"#);
            let first = format!(
                "'t', model => '{model}', label => '{label}', features => '{features}', seed => 3, learning_rate => 0.01, max_epochs => 3, {}",
                standardize(first)
            );
            let first = db.train(&first)[0].model_id;
            let second = format!(
                "'moved', warm_start => '{first}', learning_rate => 1e-12, max_epochs => 1, {}",
                standardize(second)
            );
            let second = db.train(&second)[0].model_id;
            let [a, b] = [first, second].map(|id| format!("corgipile_predict({id}, moved)"));
            let differs = match label {
                "target" => format!("abs({a}::float8 - {b}::float8) > 1e-3 * (1 + abs({a}::float8))"),
                _ => format!("{a} <> {b}").replace("corgipile_predict", "corgipile_predict_label"),
            };
            let differ: i64 = db.value(&format!("SELECT count(*) FROM moved WHERE {differs}"));
            // of classes, those on the border
            assert!(differ <= 3, "{model} {features} {first} {second}: {differ}");
        }
    }
}

#[test]
fn newtons_method_learns_the_rows_of_this_call_with_its_penalty_and_groups() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE up AS SELECT i AS x, 2 * i AS y, i % 2 AS side FROM generate_series(1, 50) i;
         CREATE TABLE down AS SELECT i AS x, -3 * i + 1 + i % 2 * 10 AS y, i % 2 AS side FROM generate_series(1, 50) i",
    );
    let first = db.train(
        r#"'up', model => 'linear', label => 'y', features => '{x}', options => '{"solver": "newton"}', name => 'm'"#,
    );
    assert_eq!(first.last().unwrap().r2, Some(1.0));
    let begun = db.train("'SELECT x, -3 * x + 1 AS y FROM up', warm_start => 'm'").pop().unwrap();
    assert!((slope(&mut db, &format!("corgipile_predict({}, up)", begun.model_id)) + 3.0).abs() < 1e-5);
    for (l2, group) in [("0.5", ""), ("0", ", group_by => 'side'")] {
        let own = format!(
            r#"'down', model => 'linear', label => 'y', features => '{{x}}'{group}, options => '{{"solver": "newton", "l2": {l2}}}'"#
        );
        let warm = format!(r#"'down', warm_start => 'm'{group}, options => '{{"l2": {l2}}}'"#);
        let models = |db: &mut Session, arguments: &str| {
            let sql = format!(
                "SELECT DISTINCT coalesce(group_value, '') COLLATE \"C\", model_id FROM corgipile_train({arguments}) ORDER BY 1"
            );
            let ids: Vec<i64> = db.rows(&sql, &[]).iter().map(|row| row.get(1)).collect();
            ids.into_iter().map(|id| db.model(id)).collect::<Vec<_>>()
        };
        let (own, warm) = (models(&mut db, &own), models(&mut db, &warm));
        assert_eq!(own.len(), warm.len());
        for (own, warm) in own.iter().zip(&warm) {
            assert!((own.weights[0] - warm.weights[0]).abs() < 1e-5, "{l2} {group}: {own:?} {warm:?}");
            assert!((own.intercepts[0] - warm.intercepts[0]).abs() < 1e-4, "{l2} {group}: {own:?} {warm:?}");
        }
    }
    // counts, for which Newton's method is the default
    db.run("CREATE TABLE counts AS SELECT x, (exp(x / 20.0))::int AS y, (exp(3 - x / 20.0))::int AS z FROM up");
    let first = db.train("'counts', model => 'poisson', label => 'y', features => '{x}', name => 'p'");
    assert!((slope(&mut db, &format!("ln(corgipile_predict({}, up))", first[0].model_id)) - 0.05).abs() < 0.01);
    let second = db.train("'SELECT x, z AS y FROM counts', warm_start => 'p'");
    assert!((slope(&mut db, &format!("ln(corgipile_predict({}, up))", second[0].model_id)) + 0.05).abs() < 0.01);
}

#[test]
fn weights_of_classes_are_those_of_this_call_and_its_rows() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE rare (y boolean, x real[]); CREATE TABLE common (LIKE rare);
         INSERT INTO rare SELECT uniform(i, 0) < 0.1 AS y, ARRAY[(uniform(i, 0) < 0.1)::int + normal(i, 1), normal(i, 2)]::real[] AS x FROM generate_series(1, 4000) i;
         INSERT INTO common SELECT NOT y, x FROM rare",
    );
    let fresh = "learning_rate => 0.05, seed => 3";
    for class_weight in ["\"balanced\"", r#"{"true": 9}"#, r#"{"true": 1, "false": 0.1}"#] {
        for before in ["", r#""class_weight": "balanced", "#, r#""class_weight": {"true": 3}, "#] {
            for (model, of_table) in [("logistic", "rare"), ("softmax", "common")] {
                let first = db.train(&format!(
                    r#"'rare', model => '{model}', label => 'y', features => '{{x}}', {fresh}, max_epochs => 1, options => '{{{before}"l2": 0}}'"#
                ))[0].model_id;
                let warm = db.train(&format!(
                    r#"'{of_table}', warm_start => '{first}', max_epochs => 30, options => '{{"class_weight": {class_weight}}}'"#
                )).pop().unwrap();
                let own = db.train(&format!(
                    r#"'{of_table}', model => '{model}', label => 'y', features => '{{x}}', {fresh}, max_epochs => 31, options => '{{"class_weight": {class_weight}}}'"#
                )).pop().unwrap();
                let (warm_recall, own_recall) =
                    (recall(&mut db, warm.model_id, of_table), recall(&mut db, own.model_id, of_table));
                assert!(
                    (warm_recall - own_recall).abs() < 0.05,
                    "{before} {class_weight} {model}: {warm_recall} {own_recall}"
                );
            }
        }
    }
    db.fails_with(
        r#"SELECT corgipile_train('rare', warm_start => '1', options => '{"class_weight": {"maybe": 2}}')"#,
        "22P02",
    )
    .says(&["maybe"]);
}

fn slope(db: &mut Session, of: &str) -> f64 {
    db.value(&format!("SELECT regr_slope({of}, x) FROM up"))
}

fn recall(db: &mut Session, id: i64, table: &str) -> f64 {
    db.value(&format!("SELECT avg(corgipile_predict_label({id}, {table})::boolean::int)::float8 FROM {table} WHERE y"))
}

#[test]
fn what_is_held_out_was_held_out_before() {
    let mut db = Database::new();
    table(&mut db);
    let train = |more: &str| format!("'t', label => 'answer', features => '{{x}}', {SIZES}, max_epochs => 1{more}");
    let none = db.train(&train(""))[0].model_id;
    let by_row = db.train(&train(r#", options => '{"validation_fraction": 0.3}'"#))[0].model_id;
    let by_block =
        db.train(&train(r#", options => '{"validation_fraction": 0.3, "validation_by": "block"}'"#))[0].model_id;
    let column = db.train(&train(r#", options => '{"validation_column": "test"}'"#))[0].model_id;
    for (id, more) in [
        (none, r#", options => '{"validation_fraction": 0.3}'"#),
        (none, r#", options => '{"probability": true}', model => 'svm'"#),
        (by_row, ", seed => 8"),
        (by_row, ", shuffle => 'shuffle_once'"),
        (by_row, r#", options => '{"validation_fraction": 0.2}'"#),
        (by_row, r#", options => '{"validation_fraction": 0.3, "validation_by": "block"}'"#),
        (by_row, r#", options => '{"validation_column": "test"}'"#),
        (by_block, ", block_size => '8kB'"),
        (by_block, ", seed => 8"),
        (column, r#", options => '{"validation_fraction": 0.3}'"#),
    ] {
        let failure = db.rejects(&format!("SELECT corgipile_train('t', warm_start => '{id}'{more})"), "22023");
        if !more.contains("svm") {
            failure.says(&["trained on rows that are to be held out"]).hints(&["without warm_start"]);
        }
    }
    db.run("UPDATE t SET id = id WHERE id % 2 = 0");
    let told = |db: &Database, arguments: &str| {
        db.notices(&[&format!("SELECT FROM corgipile_train('t', max_epochs => 1, {arguments})")])
    };
    let by_place = "by their position in the table";
    assert!(told(&db, &format!("warm_start => '{by_row}', block_size => '8kB'")).contains(by_place));
    assert!(!told(&db, &format!("warm_start => '{column}', seed => 9")).contains(by_place));
}

#[test]
fn blocks_that_are_held_out_are_as_large_as_before_where_the_table_has_grown() {
    let mut db = Database::new();
    // a row a page
    db.run(
        "CREATE TABLE wide (id int, y float8, a float8, filler char(5000));
         ALTER TABLE wide ALTER filler SET STORAGE plain;
         INSERT INTO wide SELECT i, i % 3, i % 7, '' FROM generate_series(1, 400) i",
    );
    let id = db.train(
        "'wide', 'linear', label => 'y', features => '{a}', max_epochs => 1, learning_rate => 0.01, seed => 7,
         options => '{\"validation_fraction\": 0.25, \"validation_by\": \"block\"}'",
    )[0]
    .model_id;
    db.run("INSERT INTO wide SELECT i, i % 3, i % 7, '' FROM generate_series(401, 1200) i");
    let pages = |db: &mut Session, id: i64| {
        db.value::<i32>(&format!(
            "SELECT (hyperparameters->>'pages_per_block')::int FROM corgipile.models WHERE model_id = {id}"
        ))
    };
    let fresh = "'wide', 'linear', label => 'y', features => '{a}', max_epochs => 1, learning_rate => 0.01, seed => 7";
    let fresh = db.train(fresh)[0].model_id;
    assert_eq!(pages(&mut db, id), 1);
    assert_ne!(pages(&mut db, fresh), 1, "the automatic size is another now");
    for block_size in ["", ", block_size => 'auto'"] {
        let again = db.train(&format!("'wide', warm_start => '{id}', max_epochs => 1{block_size}"))[0].model_id;
        assert_eq!(pages(&mut db, again), 1, "{block_size}");
    }
}

#[test]
fn a_penalty_that_ends_is_none() {
    let mut db = Database::new();
    table(&mut db);
    for (model, label) in [
        ("logistic", "answer"),
        ("svm", "answer"),
        ("squared_hinge", "answer"),
        ("linear", "target"),
        ("huber", "target"),
    ] {
        let model = match model {
            "squared_hinge" => r#"model => 'svm', options => '{"loss": "squared_hinge", "l2": 0.5, "schedule": "constant", "averaging": false}'"#.to_owned(),
            "huber" => r#"model => 'linear', options => '{"loss": "huber", "l2": 0.5, "schedule": "constant", "averaging": false}'"#.to_owned(),
            _ => format!(r#"model => '{model}', options => '{{"l2": 0.5, "schedule": "constant", "averaging": false}}'"#),
        };
        let first = db
            .train(&format!("'t', {model}, label => '{label}', features => '{{x}}', {SIZES}, max_epochs => 1"))[0]
            .model_id;
        // the same tuples in the same order, one at a time, and in mini-batches of one, which another engine learns
        // from
        let next = |options: &str| {
            format!(r#"'t', warm_start => '{first}', max_epochs => 1, options => '{{"l2": 0{options}}}'"#)
        };
        let ids = ["", r#", "l1": 1e-30"#].map(|options| db.train(&next(options))[0].model_id);
        let [fast, reference] = ids.map(|id| db.model(id).weights);
        for (a, b) in fast.iter().zip(&reference) {
            assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{model}: {fast:?} {reference:?}");
        }
    }
}

#[test]
fn a_useless_model_is_reported_and_the_profile_is_that_of_the_rows() {
    let mut db = Database::new();
    table(&mut db);
    db.train("'t', model => 'linear', label => 'target', features => '{x}', max_epochs => 2, name => 'm', learning_rate => 0.001");
    db.run("CREATE TABLE far AS SELECT target + 1000 AS target, ARRAY[x[1] + 50, x[2], x[3]]::real[] AS x FROM t");
    let told =
        db.notices(&["SELECT FROM corgipile_train('far', warm_start => 'm', max_epochs => 1, learning_rate => 1e-9)"]);
    assert!(told.contains("worse than a constant baseline"), "{told}");
    let drift: f64 =
        db.value("SELECT max(psi) FROM corgipile_drift((SELECT max(model_id) FROM corgipile.models), 'far')");
    assert!(drift < 0.01, "{drift}");
}

#[test]
fn a_number_of_the_optimizer_leaves_the_optimizer_as_it_was() {
    let mut db = Database::new();
    table(&mut db);
    let options = r#"options => '{"optimizer": "momentum", "schedule": "inverse_scaling", "power": 0.3}'"#;
    let first = db.train(&format!("'t', label => 'answer', features => '{{x}}', {SIZES}, max_epochs => 1, {options}"))
        [0]
    .model_id;
    let id = db.train(&format!(
        r#"'t', warm_start => '{first}', max_epochs => 1, options => '{{"momentum": 0.5, "power": 0.2}}'"#
    ))[0]
        .model_id;
    let record: String = db.value(&format!(
        "SELECT concat_ws(' ', hyperparameters->>'optimizer', hyperparameters->>'momentum', hyperparameters->>'schedule', hyperparameters->>'power') FROM corgipile.models WHERE model_id = {id}"
    ));
    assert_eq!(record, "momentum 0.5 inverse_scaling 0.2");
    db.fails_with(
        &format!(r#"SELECT corgipile_train('t', warm_start => '{first}', options => '{{"beta1": 0.5}}')"#),
        "22023",
    )
    .says(&["beta1"]);
}

#[test]
fn the_best_epoch_may_be_one_of_the_first_training() {
    let mut db = Database::new();
    table(&mut db);
    // of one of them, the class that sorts first comes first: the stored weights are those of the classes as sorted
    for (label, source) in [("answer", "t"), ("is_no", "SELECT answer = ''no'' AS is_no, x FROM t")] {
        let first = format!(
            r#"'{source}', label => '{label}', features => '{{x}}', seed => 7, max_epochs => 4, learning_rate => 3, options => '{{"keep": "best", "schedule": "constant"}}'"#
        );
        let first = db.train(&first)[0].model_id;
        // at such a rate no epoch is better but by chance
        let worse = db.train(&format!("'{source}', warm_start => '{first}', max_epochs => 2"));
        let lowest: f64 =
            db.value(&format!("SELECT min(loss) FROM corgipile.training_history WHERE model_id = {first}"));
        assert!(worse.iter().all(|epoch| epoch.loss > lowest), "{lowest} {worse:?}");
        assert_eq!(db.model(worse[0].model_id).bits(), db.model(first).bits(), "{label}");
        // and the training goes on where the last epoch was
        let third = db.train(&format!("'{source}', warm_start => '{}', max_epochs => 1", worse[0].model_id));
        assert_eq!(third[0].epoch, 7);
    }
    let arguments = format!(
        r#"label => 'answer', features => '{{x}}', {SIZES}, options => '{{"keep": "best", "validation_fraction": 0.3}}'"#
    );
    both(&mut db, &arguments, "");
    let id = db.train("'t', label => 'answer', features => '{x}', max_epochs => 1")[0].model_id;
    let sql = format!(r#"SELECT * FROM corgipile_train('t', warm_start => '{id}', options => '{{"keep": "best"}}')"#);
    db.fails_with(&sql, "0A000").says(&["best epoch"]);
}

#[test]
fn a_category_that_the_model_does_not_have_and_a_damaged_state_say_what_to_do() {
    let mut db = Database::new();
    table(&mut db);
    db.train("'t', label => 'answer', features => '{number,site}', max_epochs => 1, name => 'm'");
    let elsewhere = "SELECT answer, number, CASE id WHEN 9 THEN ''west'' ELSE site END AS site FROM t";
    for loader in ["off", "on"] {
        db.rejects(
            &format!("SELECT corgipile_train('{elsewhere}', warm_start => 'm', prefetch => '{loader}')"),
            "22023",
        )
        .says(&["category west of column \"site\"", "unknown to the model"])
        .hints(&["keeps its categories", "query as source"]);
        let odd = "SELECT CASE id WHEN 9 THEN ''maybe'' ELSE answer END AS answer, number, site FROM t";
        db.rejects(&format!("SELECT corgipile_train('{odd}', warm_start => 'm', prefetch => '{loader}')"), "22023")
            .says(&["label maybe"])
            .hints(&["no, yes"]);
    }
    for damage in [
        "'\\x00'",
        "substr(training_state, 1, length(training_state) - 1)",
        "set_byte(training_state, 0, 255)",
        "set_byte(training_state, 9, 255)",
        "training_state || '\\x00'",
    ] {
        db.run(&format!("BEGIN; UPDATE corgipile.stored_models SET training_state = {damage}"));
        let failure = db.attempt("SELECT corgipile_train('t', warm_start => 'm')").expect_err(damage);
        assert_eq!(failure.code, "22023", "{damage}");
        failure.says(&["training state cannot be read"]).hints(&["damaged", "train the model again"]);
        db.run("ROLLBACK");
    }
}

#[test]
fn all_epochs_together_are_a_million_at_most() {
    let mut db = Database::new();
    table(&mut db);
    db.train("'t', label => 'answer', features => '{x}', max_epochs => 10, name => 'm'");
    // what 999,990 epochs would leave: the header is JSON behind its length
    db.run(
        "UPDATE corgipile.stored_models SET training_state = s.state FROM (
            SELECT set_byte(set_byte(substr(training_state, 1, 8), 0, (n + 4) & 255), 1, (n + 4) >> 8)
                   || replace(convert_from(substr(training_state, 9, n), 'UTF8'), '\"epochs\":10', '\"epochs\":999990')::bytea
                   || substr(training_state, 9 + n) AS state
              FROM (SELECT training_state, get_byte(training_state, 0) + 256 * get_byte(training_state, 1) AS n
                      FROM corgipile.stored_models) m) s",
    );
    for more in ["max_epochs => 11", "max_epochs => 5, grid => '{\"max_epochs\": [3, 11]}'"] {
        db.rejects(&format!("SELECT corgipile_train('t', warm_start => 'm', {more})"), "22023")
            .says(&["\"max_epochs\"", "11 epochs after 999990 are more than 1000000"]);
    }
    assert_eq!(db.train("'t', warm_start => 'm', max_epochs => 1").len(), 1);
}

#[test]
fn a_model_that_was_granted_is_trained_on_as_ones_own() {
    let mut db = Database::new();
    table(&mut db);
    let (owner, friend, stranger) = (db.role("owner"), db.role("friend"), db.role("stranger"));
    db.run(&format!("GRANT SELECT ON t TO {owner}, {friend}, {stranger}"));
    let (mut o, mut f, mut s) = (db.session_as(&owner), db.session_as(&friend), db.session_as(&stranger));
    let first = o.train(&format!("'t', label => 'answer', features => '{{x}}', {SIZES}, max_epochs => 2, name => 'm'"));
    o.run(&format!("SELECT corgipile_grant('m', '{friend}')"));
    let before = o.line("SELECT md5(m::text) FROM corgipile.stored_models m");
    let theirs = f.train("'t', warm_start => 'm', max_epochs => 3, name => 'm'");
    let whole = o.train(&format!("'t', label => 'answer', features => '{{x}}', {SIZES}, max_epochs => 5"));
    assert_eq!(f.model(theirs[0].model_id).bits(), o.model(whole[0].model_id).bits());
    // a model of the friend's own; the owner's is as it was, and its state is not shown
    let own =
        format!("SELECT owner, version, granted_to FROM corgipile.models WHERE model_id = {}", theirs[0].model_id);
    assert_eq!(f.line(&own), format!("{friend}|1|{{}}"));
    let now = format!("SELECT md5(m::text) FROM corgipile.stored_models m WHERE model_id = {}", first[0].model_id);
    assert_eq!(o.line(&now), before);
    o.fails_with(&format!("SELECT corgipile_predict({}, ARRAY[1,2,3])", theirs[0].model_id), "42501");
    s.fails_with("SELECT corgipile_train('t', warm_start => 'm')", "42501");
    // anyone who may use the model still needs the rows
    db.run(&format!("REVOKE SELECT ON t FROM {friend}"));
    f.fails_with(&format!("SELECT corgipile_train('t', warm_start => '{}')", theirs[0].model_id), "42501").says(&["t"]);
}

/// Both ways in which the function is run: as a node of the plan, and as a function.
fn both_ways(arguments: &str) -> [String; 2] {
    [
        format!("SELECT max(model_id) FROM corgipile_train({arguments})"),
        format!("SELECT max((r).model_id) FROM (SELECT corgipile_train({arguments}) AS r) AS rows"),
    ]
}

#[test]
fn an_argument_that_is_given_is_honoured_also_if_it_is_the_default() {
    let mut db = Database::new();
    table(&mut db);
    db.run("ALTER TABLE t ADD label text; UPDATE t SET label = answer");
    db.run("VACUUM FULL t");
    let first = r#"'t', label => 'answer', features => '{x}', name => 'm', max_epochs => 2, seed => 7, learning_rate => 0.5,
                   shuffle => 'no_shuffle', block_size => '16kB', buffer_size => '50%', sample => 0.5,
                   options => '{"decay": 0.5, "batch_size": 8, "l2": 0.01, "tolerance": 0, "patience": 3,
                                "keep": "best", "class_weight": "balanced"}'"#;
    db.train(first);
    let record = "SELECT COALESCE(hyperparameters->>'%', 'default'), label FROM corgipile.models WHERE model_id = ";
    let mut says = |given: &str, key: &str, expected: &str| {
        for sql in both_ways(&format!("'t', warm_start => 'm', max_epochs => 1{given}")) {
            let id: i64 = db.value(&sql);
            let (value, label) = {
                let line = db.line(&format!("{}{id}", record.replace('%', key)));
                let (value, label) = line.split_once('|').unwrap();
                (value.to_owned(), label.to_owned())
            };
            assert_eq!(if key == "label" { label } else { value }, expected, "{sql}");
        }
    };
    for (argument, default) in [
        ("model", "'logistic'"),
        ("label", "'label'"),
        ("shuffle", "'corgipile'"),
        ("block_size", "'auto'"),
        ("buffer_size", "'10%'"),
        ("seed", "0"),
        ("learning_rate", "0.01"),
        ("sample", "1"),
        ("workers", "1"),
    ] {
        let key = argument;
        let expected = match argument {
            "model" => "default",
            "sample" => "1.0",
            _ => default.trim_matches('\''),
        };
        says(&format!(", {argument} => {default}"), key, expected);
    }
    // nothing given, or NULL
    for (argument, value) in [
        ("label", "answer"),
        ("shuffle", "no_shuffle"),
        ("block_size", "16kB"),
        ("buffer_size", "50%"),
        ("sample", "0.5"),
        ("seed", "7"),
        ("learning_rate", "0.5"),
    ] {
        says("", argument, value);
        says(&format!(", {argument} => NULL"), argument, value);
    }
    for (options, key, expected) in [
        (r#"{"decay": 0.95}"#, "decay", "0.95"),
        // the schedule is as it was, and so is its number
        (r#"{"schedule": "exponential"}"#, "decay", "0.5"),
        (r#"{"l2": 0}"#, "l2", "0"),
        (r#"{"tolerance": 0.001}"#, "tolerance", "0.001"),
        (r#"{"patience": 5}"#, "patience", "5"),
        (r#"{"keep": "last"}"#, "keep", "default"),
    ] {
        let expected = if expected == "0" { "0.0" } else { expected };
        says(&format!(", options => '{options}'"), key, expected);
        says(&format!(", grid => '[{{\"learning_rate\": 0.01}}]', options => '{options}'"), "learning_rate", "0.01");
    }
    // twenty epochs are the default, whatever the first training had
    assert_eq!(
        db.value::<i64>(
            "SELECT count(*) FROM corgipile_train('t', warm_start => 'm', options => '{\"patience\": 99}')"
        ),
        20
    );
    assert_eq!(db.value::<i64>("SELECT count(*) FROM corgipile_train('t', warm_start => 'm', max_epochs => 20, options => '{\"patience\": 99}')"), 20);
}

#[test]
fn a_default_that_does_not_fit_the_model_is_refused_by_name() {
    let mut db = Database::new();
    table(&mut db);
    let mut fails = |first: &str, again: &str, words: &[&str]| {
        let id = db.train(&format!("'t', {first}, max_epochs => 1, seed => 1"))[0].model_id;
        for sql in both_ways(&format!("'t', warm_start => '{id}', max_epochs => 1, {again}")) {
            db.fails_with(&sql, "22023").says(words);
        }
    };
    let x = "label => 'answer', features => '{x}'";
    fails(&format!("{x}, model => 'svm'"), "model => 'logistic'", &["svm model"]);
    let mut option = |first: &str, again: &str, words: &[&str]| {
        fails(&format!("{x}, options => '{first}'"), &format!("options => '{again}'"), words);
    };
    option(r#"{"optimizer": "momentum"}"#, r#"{"beta1": 0.9}"#, &["beta1"]);
    option(
        r#"{"validation_fraction": 0.2, "validation_by": "block"}"#,
        r#"{"validation_by": "row"}"#,
        &["validation_by"],
    );
    let sparse = r#"label => 'answer', features => '{k,v}', options => '{"index_base": 0}'"#;
    fails(sparse, r#"options => '{"index_base": 1}'"#, &["index_base"]);
    let network = r#"model => 'mlp', label => 'answer', features => '{x}', options => '{"activation": "relu", "hidden_layer_sizes": [3], "output": "softmax"}'"#;
    fails(network, r#"options => '{"activation": "sigmoid"}'"#, &["activation"]);
    fails(network, r#"options => '{"output": "sigmoid"}'"#, &["output"]);
    fails(network, r#"options => '{"hidden_layer_sizes": [16, 16]}'"#, &["hidden"]);
}

#[test]
fn the_defaults_that_the_function_does_not_declare_are_in_its_comment() {
    let mut db = Database::new();
    table(&mut db);
    let comment = db.line("SELECT obj_description(oid, 'pg_proc') FROM pg_proc WHERE proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype");
    let declared = "SELECT pg_get_function_arguments(oid) FROM pg_proc WHERE proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype";
    assert_eq!(
        db.line(declared).matches("DEFAULT NULL").count(),
        35,
        "all but source, whose values could not be told apart"
    );
    // what a training with the arguments of the comment is, one without them is, too
    let arguments = "model => 'auto', label => 'label', shuffle => 'corgipile', block_size => 'auto', \
                     buffer_size => 'auto', prefetch => 'auto', workers => 1";
    for argument in arguments.split(", ").map(|argument| argument.trim().replace(" => ", " ").replace('\'', "")) {
        assert!(comment.contains(&argument), "{argument} in {comment}");
    }
    db.run("ALTER TABLE t RENAME answer TO label");
    let [one, other] = ["", arguments].map(|arguments| {
        let comma = if arguments.is_empty() { "" } else { ", " };
        let epochs = db.train(&format!("'t', features => '{{x}}', seed => 3{comma}{arguments}"));
        assert_eq!(epochs.len(), 100);
        let id = epochs[0].model_id;
        (db.model(id).bits(), db.line(&format!("SELECT hyperparameters FROM corgipile.models WHERE model_id = {id}")))
    });
    assert_eq!(one, other);
}
