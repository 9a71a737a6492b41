//! What training learns: as much as a full shuffle, the textbook's numbers, and the same bits for a seed.

use corgipile_tests::{
    Database, Objective, Session, Textbook, Tuple, Writers, assert_close, clustered, epochs_of, shuffled_copy,
};

#[test]
fn a_clustered_table_reaches_the_accuracy_of_a_full_shuffle_and_no_shuffle_does_not() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    shuffled_copy(&mut db, "t", "shuffled");
    for model in ["logistic", "svm"] {
        let mut accuracy = |table: &str, shuffle: &str| {
            let arguments = format!(
                "'{table}', '{model}', features => '{{features_v}}', shuffle => '{shuffle}', seed => 1,
                      buffer_size => '10%', learning_rate => 0.01, standardize => false"
            );
            let id = db.train(&arguments)[0].model_id;
            db.evaluate(id, "t").accuracy
        };
        let full = accuracy("shuffled", "no_shuffle");
        let corgipile = accuracy("t", "corgipile");
        let none = accuracy("t", "no_shuffle");
        assert!(full > 0.83, "{model}: the full shuffle reaches {full}");
        assert!((full - corgipile).abs() < 0.01, "{model}: corgipile {corgipile}, full shuffle {full}");
        assert!(none < full - 0.1, "{model}: no_shuffle {none}, full shuffle {full}");
    }
}

#[test]
fn a_row_per_epoch_has_the_documented_columns() {
    let mut db = Database::new();
    clustered(&mut db, "t", 400);
    let rows = db.rows("SELECT * FROM corgipile_train('t', max_epochs => 3, learning_rate => 0.1)", &[]);
    let columns: Vec<_> = rows[0].columns().iter().map(|c| (c.name(), c.type_().name())).collect();
    let expected = [
        ("model_id", "int8"),
        ("epoch", "int4"),
        ("loss", "float8"),
        ("accuracy", "float8"),
        ("learning_rate", "float8"),
        ("tuples", "int8"),
        ("seconds", "float8"),
        ("r2", "float8"),
        ("validation_loss", "float8"),
        ("validation_score", "float8"),
        ("grid_point", "jsonb"),
        ("group_value", "text"),
    ];
    assert_eq!(columns, expected);
    let epochs = epochs_of(&rows);
    assert_eq!(epochs.iter().map(|e| e.epoch).collect::<Vec<_>>(), [1, 2, 3]);
    for (i, epoch) in epochs.iter().enumerate() {
        assert_eq!(epoch.model_id, epochs[0].model_id);
        assert_eq!(epoch.tuples, 400);
        assert!((epoch.learning_rate - 0.1 * 0.95_f64.powi(i as i32)).abs() < 1e-12);
        assert!(epoch.loss > 0.0 && epoch.loss.is_finite() && (0.0..=1.0).contains(&epoch.accuracy.unwrap()));
        assert!(epoch.seconds >= 0.0 && epoch.seconds < 60.0);
    }
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let mut db = Database::new();
    clustered(&mut db, "t", 400);
    let epochs = db.train("'t'");
    assert_eq!(epochs.len(), 100, "the most, since a million steps are more");
    // a mean square of 1 of each of five features that are standardized, and the constant 1
    let rate = 1.0 / 6.0;
    assert!((epochs[0].learning_rate - rate).abs() < 1e-6);
    let fallen = epochs[99].learning_rate / epochs[0].learning_rate;
    assert!((fallen - 0.955_f64.powi(99)).abs() < 1e-9 && (0.0095..0.0115).contains(&fallen), "{fallen}");
    let stored = db.line(
        "SELECT model, label, features, hyperparameters->>'shuffle', hyperparameters->>'buffer_size',
                (hyperparameters->>'decay')::float8, (hyperparameters->>'l2')::float8,
                hyperparameters->>'standardize', hyperparameters->>'nulls', hyperparameters->>'max_epochs'
         FROM corgipile.models",
    );
    assert_eq!(stored, "logistic|label|{features_v}|corgipile|auto|0.955|0|auto|impute|100");
}

#[test]
fn epochs_and_decay_are_chosen_together_with_the_rate_only() {
    let mut db = Database::new();
    clustered(&mut db, "t", 25_000);
    let mut chosen = |arguments: &str| {
        let epochs = db.train(&format!("'t', seed => 1{arguments}"));
        let stored = db.line(
            "SELECT hyperparameters->>'max_epochs', hyperparameters->>'decay' FROM corgipile.models ORDER BY model_id DESC LIMIT 1",
        );
        (epochs.len(), stored)
    };
    let found = |epochs: usize, decay: &str| (epochs, format!("{epochs}|{decay}"));
    // a million steps are 40 epochs, and 0.8913 to the power of 40 is a hundredth
    assert_eq!(chosen(""), found(40, "0.8913"));
    assert_eq!(chosen(", prefetch => 'on'"), found(40, "0.8913"));
    assert_eq!(chosen(", workers => 2"), found(40, "0.8913"));
    assert_eq!(chosen(", model => 'svm', max_epochs => 3"), found(3, "0.8913"));
    assert_eq!(chosen(", options => '{\"decay\": 0.5}'"), found(40, "0.5"));
    assert_eq!(chosen(", learning_rate => 0.1"), found(20, "0.95"));
    assert_eq!(chosen(", optimizer => 'adam'"), found(20, "0.95"));
    assert_eq!(chosen(", model => 'mlp', hidden_layer_sizes => '{2}'"), found(20, "0.95"));
    let points = "SELECT grid_point->>'max_epochs', max(epoch)
                    FROM corgipile_train('t', seed => 1, grid => '[{\"max_epochs\": 2}, {\"l2\": 0.1}, {\"learning_rate\": 0.1}]')
                   GROUP BY grid_point ORDER BY 2";
    assert_eq!(db.lines(points), ["2|2", "NULL|20", "NULL|40"]);
    db.run(
        "CREATE TABLE wide AS
         SELECT i % 2 AS label, (SELECT array_agg(uniform(i, j)::real) FROM generate_series(1, 60) j) AS x,
                ARRAY[i, 60] AS k, '{1,1}'::real[] AS v FROM generate_series(1, 59) i",
    );
    let features = |features: &str| {
        format!(
            "SELECT max(epoch), min(learning_rate) / max(learning_rate) < 0.02
               FROM corgipile_train('wide', features => '{features}')"
        )
    };
    assert_eq!(db.lines(&features("{x}")), ["20|t"], "more features than rows");
    assert_eq!(db.lines(&features("{k,v}")), ["20|t"]);
    db.run("INSERT INTO wide SELECT * FROM wide LIMIT 2");
    assert_eq!(db.lines(&features("{x}")), ["100|t"], "a feature less than rows");
    assert_eq!(db.lines(&features("{k,v}")), ["100|t"]);
    let explained = db.lines("EXPLAIN SELECT * FROM corgipile_train('t')").join("\n");
    assert!(explained.contains("Epochs: auto") && explained.contains("Learning Rate: auto"), "{explained}");
}

/// Trains without a shuffle and compares every epoch and the model with the textbook's SGD.
fn agrees_with_the_textbook(model: &str, objective: Objective, l2: f64, decay: f64) {
    let mut db = Database::with_small_table(300);
    let tuples: Vec<Tuple> = db
        .rows("SELECT 2.0::float8 * label - 1, ARRAY[a, b, c]::float8[] FROM t ORDER BY ctid", &[])
        .iter()
        .map(|row| Tuple { label: row.get(0), weight: 1.0, features: row.get(1) })
        .collect();
    let epochs = db.train(&format!(
        "'t', '{model}', learning_rate => 0.05, standardize => false, max_epochs => 5, shuffle => 'no_shuffle',
         options => '{{\"l2\": {l2}, \"decay\": {decay}}}'"
    ));
    let mut textbook = Textbook { l2, ..Textbook::new(objective, 3, 1, 0.05) };
    for epoch in &epochs {
        let loss = textbook.epoch(&tuples);
        assert!((epoch.loss - loss).abs() <= 1e-4 * loss, "{epoch:?}, the textbook's loss {loss}");
        // A value of exactly 0, as in the first tuple, may count as either class.
        let right = textbook.accuracy;
        assert!((epoch.accuracy.unwrap() - right).abs() <= 1.01 / 300.0, "{epoch:?}, the textbook's accuracy {right}");
        textbook.rate *= decay;
    }
    assert_close(&db.model(epochs[0].model_id).parameters(), &textbook.parameters(), 1e-4);
}

#[test]
fn logistic_regression_agrees_with_the_textbook() {
    agrees_with_the_textbook("logistic", Objective::Logistic, 0.0, 0.95);
}

#[test]
fn the_svm_agrees_with_the_textbook() {
    agrees_with_the_textbook("svm", Objective::Hinge, 0.0, 0.95);
}

#[test]
fn l2_shrinks_the_weights_but_not_the_intercept_as_in_the_textbook() {
    agrees_with_the_textbook("logistic", Objective::Logistic, 0.1, 0.95);
    agrees_with_the_textbook("svm", Objective::Hinge, 0.1, 0.95);
}

#[test]
fn the_decay_of_the_learning_rate_can_be_chosen() {
    agrees_with_the_textbook("logistic", Objective::Logistic, 0.0, 0.5);
    agrees_with_the_textbook("logistic", Objective::Logistic, 0.0, 1.0);
}

#[test]
fn evaluate_agrees_with_the_textbook() {
    let mut db = Database::with_small_table(300);
    let trained = db.trained("'t', seed => 1, max_epochs => 3, standardize => false");
    let (mut loss, mut right) = (0.0, 0.0);
    for row in db.rows("SELECT label, a, b, c FROM t", &[]) {
        let y = if row.get::<_, i32>(0) == 1 { 1.0 } else { -1.0 };
        let terms = (0..3).map(|i| f64::from(row.get::<_, f32>(i + 1)) * f64::from(trained.weights[i]));
        let margin = y * (terms.sum::<f64>() + f64::from(trained.intercept));
        loss += (-margin).exp().ln_1p();
        right += f64::from(margin > 0.0);
    }
    let evaluation = db.evaluate(trained.id, "t");
    assert!((evaluation.loss - loss / 300.0).abs() < 1e-4, "{evaluation:?}");
    assert!((evaluation.accuracy - right / 300.0).abs() < 1e-9, "{evaluation:?}");
    assert_eq!((evaluation.tuples, evaluation.skipped), (300.0, 0.0));
}

#[test]
fn standardize_learns_the_mean_and_the_population_deviation() {
    let mut db = Database::with_small_table(500);
    db.run("UPDATE t SET a = a * 1000 + 5000, c = c / 100; ALTER TABLE t ADD constant real DEFAULT 7");
    let arguments = "'t', features => '{a,b,c,constant}', max_epochs => 3, shuffle => 'no_shuffle'";
    let id = db.train(&format!("{arguments}, options => '{{\"standardize\": true}}'"))[0].model_id;
    let rows = db.rows("SELECT feature_mean, feature_scale FROM corgipile.models WHERE model_id = $1", &[&id]);
    let (mean, scale): (Vec<f64>, Vec<f64>) = (rows[0].get(0), rows[0].get(1));
    let truth = db.rows(
        "SELECT ARRAY[avg(a::float8), avg(b::float8), avg(c::float8), 7],
                ARRAY[stddev_pop(a::float8), stddev_pop(b::float8), stddev_pop(c::float8)] FROM t",
        &[],
    );
    let (true_mean, true_scale): (Vec<f64>, Vec<f64>) = (truth[0].get(0), truth[0].get(1));
    for (given, expected) in mean.iter().zip(&true_mean).chain(scale.iter().zip(&true_scale)) {
        assert!((given - expected).abs() <= 1e-6 * expected.abs(), "{mean:?} {scale:?}, {true_mean:?} {true_scale:?}");
    }
    // A constant has nothing to tell: its weight stays zero, and dividing by its deviation would be dividing by zero.
    let model = db.model(id);
    assert!(scale[3].is_finite() && scale[3] != 0.0, "{scale:?}");
    assert_eq!(model.weights[3], 0.0);

    // The same as training on standardized columns.
    let by_hand = db.trained(
        "'SELECT label, (a - ma) / sa AS a, (b - mb) / sb AS b, (c - mc) / sc AS c, 0 AS constant FROM t,
          (SELECT avg(a::float8) ma, avg(b::float8) mb, avg(c::float8) mc, stddev_pop(a::float8) sa,
                  stddev_pop(b::float8) sb, stddev_pop(c::float8) sc FROM t) s', features => '{a,b,c,constant}',
          max_epochs => 3, shuffle => 'no_shuffle'",
    );
    let wide = |w: &[f32]| w.iter().map(|w| f64::from(*w)).collect::<Vec<_>>();
    assert_close(&wide(&model.weights), &wide(&by_hand.weights), 1e-3);
    // Predictions apply the same to the user's unscaled features.
    let differing: i64 = db.value(&format!(
        "SELECT count(*) FROM t, (SELECT avg(a::float8) ma, avg(b::float8) mb, avg(c::float8) mc,
         stddev_pop(a::float8) sa,
                  stddev_pop(b::float8) sb, stddev_pop(c::float8) sc FROM t) s
         WHERE abs((corgipile_predict_proba({id}, ARRAY[a, b, c, constant]))[2] - (corgipile_predict_proba({},
             ARRAY[(a - ma) / sa, (b - mb) / sb, (c - mc) / sc, 0]))[2]) > 1e-3",
        by_hand.id
    ));
    assert_eq!(differing, 0);
}

#[test]
fn the_same_seed_gives_the_same_weights_bit_for_bit() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    // Another physical copy, in another file, written by another statement.
    db.run("CREATE TABLE copy (LIKE t); INSERT INTO copy SELECT * FROM t; CREATE TABLE wide AS SELECT * FROM t");
    let same_pages = db.line("SELECT pg_relation_size('t') = pg_relation_size('wide')") == "t";
    assert!(same_pages || db.major() > 15, "CREATE TABLE AS leaves empty pages only since PostgreSQL 16");
    let train = |s: &mut Session, table: &str, rest: &str| {
        s.trained(&format!("'{table}', features => '{{features_v}}', max_epochs => 3, buffer_size => '20%'{rest}"))
            .bits()
    };
    for model in ["logistic", "svm"] {
        let first = train(&mut db, "t", &format!(", model => '{model}', seed => 42"));
        assert_eq!(first, train(&mut db, "t", &format!(", model => '{model}', seed => 42")));
        assert_eq!(first, train(&mut db, "copy", &format!(", model => '{model}', seed => 42")));
        assert_eq!(first == train(&mut db, "wide", &format!(", model => '{model}', seed => 42")), same_pages);
        assert_eq!(first, train(&mut db.session(), "t", &format!(", model => '{model}', seed => 42")));
        assert_ne!(first, train(&mut db, "t", &format!(", model => '{model}', seed => 43")));
        assert_ne!(first, train(&mut db, "t", &format!(", model => '{model}', seed => -42")));
    }
}

#[test]
fn a_seed_that_was_drawn_is_stored_and_repeats_the_run() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    let drawn = db.trained("'t', max_epochs => 2");
    let other = db.trained("'t', max_epochs => 2");
    let seed = |db: &mut Database, id: i64| -> i64 {
        db.value(&format!("SELECT (hyperparameters->>'seed')::bigint FROM corgipile.models WHERE model_id = {id}"))
    };
    let (first, second) = (seed(&mut db, drawn.id), seed(&mut db, other.id));
    assert_ne!(first, second, "two runs draw different seeds");
    assert_ne!(drawn.bits(), other.bits());
    assert_eq!(db.trained(&format!("'t', max_epochs => 2, seed => {first}")).bits(), drawn.bits());
}

#[test]
fn every_bigint_is_a_seed() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    for seed in [i64::MIN, -1, 0, 1, i64::MAX] {
        let model = db.trained(&format!("'t', max_epochs => 1, seed => '{seed}'"));
        let stored: i64 = db.value(&format!(
            "SELECT (hyperparameters->>'seed')::bigint FROM corgipile.models WHERE model_id = {}",
            model.id
        ));
        assert_eq!(stored, seed);
    }
}

#[test]
fn two_classes_in_one_row_each_are_enough() {
    let mut db = Database::new();
    db.run("CREATE TABLE t (label int, x real); INSERT INTO t VALUES (0, -1), (1, 1)");
    let epochs = db.train("'t', max_epochs => 50, learning_rate => 0.5");
    assert_eq!((epochs[49].tuples, epochs[49].accuracy), (2, Some(1.0)));
}

#[test]
fn max_epochs_1_and_a_block_larger_than_the_table_work() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    for size in ["block_size => '10MB'", "buffer_size => '100%'", "buffer_size => '1GB'", "block_size => '8192'"] {
        let epochs = db.train(&format!("'t', max_epochs => 1, {size}"));
        assert_eq!((epochs.len(), epochs[0].tuples), (1, 1000), "{size}");
    }
}

#[test]
fn the_buffer_is_bounded_by_the_setting() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    db.run("SET corgipile.max_buffer_memory = '64kB'");
    let bounded = db.train("'t', max_epochs => 2, buffer_size => '100%', seed => 1");
    assert_eq!(bounded[1].tuples, 5000);
    let bytes: i64 = db.value(
        "SELECT (hyperparameters->>'buffer_blocks')::bigint * (hyperparameters->>'pages_per_block')::bigint
         FROM corgipile.models",
    );
    assert!((1..40).contains(&bytes), "a buffer of {bytes} pages");
    db.fails_with("SET corgipile.max_buffer_memory = '1kB'", "22023");
    db.run("RESET corgipile.max_buffer_memory");
    assert_eq!(db.line("SHOW corgipile.max_buffer_memory"), "1GB");
}

#[test]
fn every_strategy_trains_on_every_row() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    for strategy in ["no_shuffle", "block_only", "corgipile"] {
        let epochs = db.train(&format!("'t', max_epochs => 3, shuffle => '{strategy}'"));
        assert!(epochs.iter().all(|e| e.tuples == 3000), "{strategy}: {epochs:?}");
    }
}

#[test]
fn every_epoch_counts_every_row_once_while_others_write() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    let writers = Writers::start(&db, "t");
    for _ in 0..8 {
        db.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        let count: i64 = db.value("SELECT count(*) FROM t");
        let epochs = db.train("'t', max_epochs => 5");
        db.run("COMMIT");
        assert!(epochs.iter().all(|e| e.tuples == count), "{count} rows: {epochs:?}");
        let epochs = db.train("'t', max_epochs => 5");
        assert!(epochs.iter().all(|e| e.tuples == epochs[0].tuples), "{epochs:?}");
    }
    writers.stop();
}

#[test]
fn a_buffer_of_too_few_blocks_is_noticed() {
    let mut db = Database::with_small_table(5000);
    let name = db.name().to_owned();
    let notices = |db: &Database, arguments: &str| {
        let sql =
            format!("SELECT FROM corgipile_train('t', 'logistic', max_epochs => 1, learning_rate => 1e-6 {arguments})");
        db.notices(&[&sql])
    };
    assert_eq!(notices(&db, ""), "", "the default buffer is never of few blocks");
    let notice = notices(&db, ", buffer_size => '10%'");
    assert!(notice.contains("NOTICE:  the buffer holds only") && notice.contains("HINT:  Use a larger"), "{notice}");
    for enough in [", buffer_size => '100%'", ", buffer_size => '80%'", ", shuffle => 'no_shuffle'"] {
        assert_eq!(notices(&db, enough), "", "{enough}");
    }
    // The hint names what would help: where a setting cuts the buffer, a larger buffer_size would not.
    let pages: i32 = db.value("SELECT (pg_relation_size('t') / 8192)::int");
    assert!((32..80).contains(&pages), "{pages} pages");
    for (arguments, hint) in [
        (", block_size => '16kB', buffer_size => '40%'", "HINT:  Use a smaller block_size, or a larger buffer_size."),
        (", buffer_size => '64kB'", "HINT:  Use a larger buffer_size; '100%' shuffles a small table fully."),
    ] {
        assert!(notices(&db, arguments).contains(hint), "{arguments}: {}", notices(&db, arguments));
    }
    db.run(&format!("ALTER DATABASE {name} SET corgipile.max_buffer_memory = '64kB'"));
    for (arguments, hint) in [
        (", buffer_size => '100%'", "HINT:  Raise the setting corgipile.max_buffer_memory"),
        (", buffer_size => '1MB'", "HINT:  Raise the setting corgipile.max_buffer_memory"),
        (
            ", block_size => '16kB', buffer_size => '100%'",
            "HINT:  Use a smaller block_size, or raise the setting corgipile.max_buffer_memory",
        ),
        (", buffer_size => '64kB'", "HINT:  Use a larger buffer_size"),
    ] {
        assert!(notices(&db, arguments).contains(hint), "{arguments}: {}", notices(&db, arguments));
    }
    // The buffer is full of what was TOASTed before it has a tenth of its pages.
    db.run(&format!(
        "CREATE TABLE toasted (id int, label int, x real[]); ALTER TABLE toasted ALTER x SET STORAGE EXTERNAL;
         INSERT INTO toasted SELECT i, i % 2, array_fill((i % 2)::real, ARRAY[3000]) FROM generate_series(1, 3000) i;
         ALTER DATABASE {name} SET corgipile.max_buffer_memory = '1MB'"
    ));
    let sql = "SELECT FROM corgipile_train('toasted', 'logistic', features => '{x}', max_epochs => 1, learning_rate => 1e-6, \
               buffer_size => '100%')";
    let notice = db.notices(&[sql]);
    assert!(notice.contains("HINT:  Raise the setting corgipile.max_buffer_memory"), "{notice}");
}
