//! Penalties are in the units of the data, whatever labels are scaled by.

use corgipile_tests::{Database, Session};

fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS SELECT 1000 * x + 300 * normal(i, 3) AS y, x, normal(i, 2) AS noise
           FROM (SELECT i, normal(i, 1) AS x FROM generate_series(1, 4000) i) _",
    );
}

/// What a unit of the feature's deviation adds to a prediction.
fn effect(db: &mut Session, id: i64) -> f64 {
    db.value(&format!("SELECT regr_slope(corgipile_predict({id}, t), x) * stddev_pop(x) FROM t"))
}

#[test]
fn the_least_squares_with_a_penalty_are_where_they_are_computed_to_be() {
    let mut db = Database::new();
    table(&mut db);
    let without: f64 = db.value("SELECT regr_slope(y, x) * stddev_pop(x) FROM t");
    let train = |db: &mut Session, options: &str, penalty: &str| {
        let last = db.train(&format!(
            "'t', model => 'linear', label => 'y', features => '{{x}}', max_epochs => 40, seed => 1, standardize => true, {penalty} {options}"
        ));
        effect(db, last[0].model_id)
    };
    // bounded steps, the default, are shorter than the rate, and so is the penalty on the average; but they are the
    // shorter the longer a row is, which the penalty cannot be
    for (options, tolerance) in [(", learning_rate => 0.01", 0.01), ("", 0.08), (", batch_size => 16", 0.03)] {
        // of one standardized feature, the Lasso takes l1 from the coefficient, and the ridge divides it by 1 + l2
        for l1 in [2.0, 400.0] {
            let found = train(&mut db, options, &format!("l1 => {l1}"));
            assert!((found - (without - l1)).abs() < tolerance * without, "l1 {l1}: {found}, not {}", without - l1);
        }
        let found = train(&mut db, options, "l2 => 0.25");
        assert!((found - without / 1.25).abs() < tolerance * without, "{options} {found}, not {}", without / 1.25);
    }
}

#[test]
fn a_penalty_means_the_same_for_labels_in_another_unit() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE small AS SELECT y / 1000 AS y, x, noise FROM t");
    // of a loss that grows with the error, a penalty of squares weighs the more the larger the unit is
    for (model, in_thousands, in_ones) in [
        ("linear", "l2 => 0.25", "l2 => 0.25"),
        ("linear", "l1 => 0.4", "l1 => 400"),
        ("quantile", "l2 => 0.5", "l2 => 0.0005"),
        ("epsilon_insensitive", "l1 => 0.2", "l1 => 0.2"),
    ] {
        let train = |db: &mut Session, table: &str, penalty: &str| {
            let epochs = db.train(&format!(
                "'{table}', model => '{model}', label => 'y', features => '{{x}}', max_epochs => 30, seed => 1, {penalty}"
            ));
            effect(db, epochs[0].model_id)
        };
        let (small, large) = (train(&mut db, "small", in_thousands), train(&mut db, "t", in_ones));
        assert!((small - large / 1000.0).abs() < 0.01 * small.abs() + 1e-3, "{model} {in_ones}: {small} {large}");
    }
}

#[test]
fn the_threshold_is_that_of_the_epoch_that_is_kept() {
    let mut db = Database::new();
    table(&mut db);
    let train = |epochs: i64, keep: &str| {
        format!(
            r#"'t', model => 'huber', label => 'y', features => '{{x,noise}}', seed => 5, max_epochs => {epochs}, learning_rate => 5,
               options => '{{"schedule": "constant", "averaging": false, "keep": "{keep}"}}'"#
        )
    };
    let epochs = db.train(&train(30, "best"));
    let best = epochs.iter().min_by(|a, b| a.loss.total_cmp(&b.loss)).unwrap().epoch;
    assert!(best < 30, "{epochs:?}");
    let last = db.train(&train(best.into(), "last"))[0].model_id;
    let threshold =
        |id: i64| format!("SELECT hyperparameters->>'loss_threshold' FROM corgipile.models WHERE model_id = {id}");
    let (kept, own) = (db.line(&threshold(epochs[0].model_id)), db.line(&threshold(last)));
    assert_eq!(kept, own);
}

#[test]
fn a_group_without_weight_is_the_error_that_it_is_alone() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "CREATE TABLE w AS SELECT y, x, CASE WHEN x > 0 THEN 'some' ELSE 'none' END AS site, (x > 0)::int AS w FROM t",
    );
    for solver in ["newton", "sgd"] {
        let train = |source: &str, more: &str| {
            format!(
                r#"SELECT corgipile_train('{source}', model => 'linear', label => 'y', features => '{{x}}', max_epochs => 2{more},
                       options => '{{"weight": "w", "solver": "{solver}"}}')"#
            )
        };
        let alone = db.fails_with(&train("SELECT * FROM w WHERE w = 0", ""), "22000").message;
        assert_eq!(db.fails_with(&train("w", ", group_by => 'site'"), "22000").message, alone);
        assert_eq!(
            db.fails_with(&train("w", ", group_by => 'site', workers => 2, block_size => '8kB'"), "22000").message,
            alone
        );
        db.run(&train("w", ""));
    }
}
