//! Losses of linear regressions other than the squared one. The constants are scikit-learn's: the script that made them
//! stands next to each.

use corgipile_tests::{Database, Session, assert_close, in_several_buffers};

/// Counts whose rate is e to the power of what is linear in the features, sorted by the count.
fn counts(db: &mut Session) {
    db.run(
        "CREATE TABLE counts AS
         SELECT i AS id, a, b, ARRAY[a, b] AS x, ARRAY[1, 2] AS k,
                floor(exp(1 + 0.8 * a - 0.5 * (b - 11.5)) * 2 * uniform(i, 3))::float8 AS y
           FROM (SELECT i, (2 * uniform(i, 1) - 1)::float8 AS a, (10 + 3 * uniform(i, 2))::float8 AS b
                   FROM generate_series(1, 3000) i) AS u ORDER BY y;
         ANALYZE counts",
    );
}

/// By metric, sorted by its name.
fn metrics(db: &mut Session, id: i64, source: &str, names: &str) -> Vec<f64> {
    db.column(&format!(
        "SELECT value FROM corgipile_evaluate({id}, '{source}') WHERE metric = ANY ('{{{names}}}') ORDER BY metric"
    ))
}

#[test]
fn a_loss_is_an_option_of_model_linear_or_a_model_of_its_own() {
    let mut db = Database::new();
    counts(&mut db);
    let mut models = Vec::new();
    for call in [
        "'linear', options => '{\"loss\": \"poisson\"}'",
        "'poisson'",
        "'Poisson_Regression', options => '{\"loss\": \"poisson\"}'",
    ] {
        let (model, rest) =
            call.split_once(", ").map_or((call, String::new()), |(model, rest)| (model, format!(", {rest}")));
        let id = db.train(&format!("'counts', {model}, 'y', '{{a,b}}', seed => 1, max_epochs => 5{rest}"))[0].model_id;
        models.push(db.line(&format!(
            "SELECT model, hyperparameters->>'loss', classes, weights, intercepts FROM corgipile.models WHERE model_id = {id}"
        )));
    }
    assert!(models[0].starts_with("poisson|poisson|NULL|"), "{}", models[0]);
    assert_eq!((&models[1], &models[2]), (&models[0], &models[0]));
    let squared = db.train("'counts', 'linear', 'y', '{a,b}', seed => 1, max_epochs => 5")[0].model_id;
    assert_eq!(
        db.line(&format!("SELECT hyperparameters->>'loss' FROM corgipile.models WHERE model_id = {squared}")),
        "squared_error"
    );
}

#[test]
fn a_poisson_regression_is_that_of_the_least_deviance_whatever_the_scale_of_the_counts() {
    let mut db = Database::new();
    counts(&mut db);
    for scale in ["1e-3", "1", "1e6"] {
        let source = format!("SELECT y * {scale} AS y, a, b FROM counts");
        let id = db.train(&format!("'{source}', 'poisson', 'y', '{{a,b}}', seed => 1"))[0].model_id;
        let found = metrics(&mut db, id, &source, "d2,mean_poisson_deviance,r2,mae,rmse");
        // the same from the predictions, by the definitions
        let expected: Vec<f64> = db.column(&format!(
            "SELECT unnest(ARRAY[1 - avg(d) / avg(d0), avg(abs(y - p)), avg(d), 1 - avg((y - p) ^ 2) / var_pop(y), sqrt(avg((y - p) ^ 2))])
               FROM (SELECT y, p, 2 * (CASE WHEN y > 0 THEN y * ln(y / p) ELSE 0 END - y + p) AS d,
                            2 * (CASE WHEN y > 0 THEN y * ln(y / m) ELSE 0 END - y + m) AS d0
                       FROM (SELECT y, corgipile_predict({id}, ARRAY[a, b]) AS p, avg(y) OVER () AS m FROM ({source}) AS s) AS t) AS t"
        ));
        assert_close(&found, &expected, 1e-6);
        // no other line has a smaller deviance: the derivatives by the weights are all but 0
        let slopes: Vec<f64> = db.column(&format!(
            "SELECT unnest(ARRAY[avg(y - p), avg((y - p) * a), avg((y - p) * (b - 11.5))]) / avg(y)
               FROM (SELECT y, a, b, corgipile_predict({id}, ARRAY[a, b]) AS p FROM ({source}) AS s) AS t"
        ));
        assert!(slopes.iter().all(|slope| slope.abs() < 0.03), "{scale}: {slopes:?}");
    }
}

#[test]
fn counts_are_learned_from_sparse_rows_groups_grids_mini_batches_workers_and_held_out_rows() {
    let mut db = Database::new();
    counts(&mut db);
    let d2 = |db: &mut Session, id: i64| metrics(db, id, "counts", "d2")[0];
    for call in [
        "'{a,b}'",
        "'{x}'",
        "'{k,x}'",
        "'{a,b}', batch_size => 16",
        "'{a,b}', optimizer => 'momentum'",
        "'{a,b}', optimizer => 'adam'",
        "'{a,b}', workers => 2",
        "'{a,b}', validation_fraction => 0.2, options => '{\"keep\": \"best\"}'",
        "'{a,b}', options => '{\"l1\": 1e-6, \"l2\": 1e-6}'",
    ] {
        let id = db.train(&format!("'counts', 'poisson', 'y', seed => 1, features => {call}"))[0].model_id;
        let found = d2(&mut db, id);
        assert!(found > 0.25, "{call}: {found}");
    }
    let several =
        db.train("'counts', 'poisson', 'y', '{a,b}', seed => 1, max_epochs => 20, grid => '{\"l2\": [0, 0.5]}'");
    let last: Vec<_> = several.iter().filter(|row| row.epoch == 1).map(|row| row.model_id).collect();
    assert!(d2(&mut db, last[0]) > d2(&mut db, last[1]));
    let before = db
        .train("'counts', 'linear', 'y', '{a,b}', seed => 1, max_epochs => 4, options => '{\"loss\": \"poisson\", \"solver\": \"sgd\"}'")[0]
        .model_id;
    let after = db.train(&format!("'counts', 'linear', seed => 1, warm_start => '{before}', max_epochs => 4"));
    assert_eq!(after.last().expect("epochs").epoch, 8);
    assert!(d2(&mut db, after[0].model_id) > 0.25);
}

#[test]
fn counts_of_features_with_a_long_tail_are_those_of_the_least_deviance_and_what_suits_no_newton_is_left_to_sgd() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE skewed AS
         SELECT *, ARRAY[a, b] AS x, floor(sqrt(a) * exp(0.3 * b) * (0.5 + uniform(i, 4))) AS y
           FROM (SELECT i, exp(1.5 * normal(i, 2))::real AS a, normal(i, 3)::real AS b, i % 2 AS part FROM generate_series(1, 4000) i) AS s
          ORDER BY y",
    );
    let train = |more: &str| {
        let name = if more.contains("group_by") { "of_parts" } else { "m" };
        format!("SELECT FROM corgipile_train('skewed', 'poisson', 'y', seed => 1, name => '{name}', {more})")
    };
    for (features, more) in [
        ("a,b", ""),
        ("x", ""),
        ("a,b", ", workers => 2"),
        ("a,b", ", group_by => 'part'"),
        ("a,b", ", shuffle => 'no_shuffle', options => '{\"transform\": \"none\"}'"),
    ] {
        let told = db.notices(&[&train(&format!("features => '{{{features}}}'{more}"))]);
        assert!(told.contains("solver newton, "), "{features}{more}: {told}");
        if more.contains("group_by") {
            continue;
        }
        let gradient: Vec<f64> = db.column(
            "SELECT unnest(ARRAY[avg(y - p), avg((y - p) * f), avg((y - p) * b)]) / avg(y)
               FROM (SELECT y, b, CASE WHEN hyperparameters->'transform'->'log' ? 'a' THEN ln(1 + a) ELSE a END AS f, corgipile_predict('m', s) AS p
                       FROM skewed AS s, (SELECT hyperparameters FROM corgipile.models ORDER BY model_id DESC LIMIT 1) AS m) AS t",
        );
        assert!(gradient.iter().all(|slope| slope.abs() < 1e-3), "{features}{more}: {gradient:?}");
    }
    // and so are the points that a search draws
    let worst: f64 = db.value(
        "SELECT max(mean_test_loss) FROM corgipile_search('skewed', 'poisson', 'y', '{a,b}', seed => 1, trials => 4, name => 'found')",
    );
    let found: f64 = db.value("SELECT value FROM corgipile_evaluate('found', 'skewed') WHERE metric = 'd2'");
    let best: f64 = db.value("SELECT value FROM corgipile_evaluate('m', 'skewed') WHERE metric = 'd2'");
    assert!(worst < 1.0 && (found - best).abs() < 1e-3, "{worst} {found} {best}");
    let said = "learning_rate => 0.001; optimizer => 'adam'; batch_size => 8; options => '{\"l1\": 1e-6}'; options => '{\"momentum\": 0.5}';
                options => '{\"averaging\": false}'; shuffle => 'mrs'; solver => 'sgd'";
    let of_rows = |more: &str| train(&format!("features => '{{a,b}}', max_epochs => 1, {more}"));
    for more in said.split("; ").map(str::trim) {
        let told = db.notices(&[&of_rows(more)]);
        assert!(!told.contains("newton"), "{more}: {told}");
        let solver = "SELECT hyperparameters->'solver' IS NULL FROM corgipile.models ORDER BY model_id DESC LIMIT 1";
        assert_eq!(db.line(solver), "t", "{more}");
    }
    let wide = "SELECT FROM corgipile_train('SELECT y, array_fill(b, ARRAY[257]) AS x FROM skewed', 'poisson', 'y', '{x}', max_epochs => 1)";
    assert!(db.notices(&[wide]).contains("learning rate "));
    let plan = db.lines(&format!("EXPLAIN (COSTS OFF) {}", train("features => '{a,b}'"))).join("\n");
    assert!(plan.contains("Solver: auto"), "{plan}");
}

#[test]
fn quantiles_and_counts_are_not_judged_by_the_mean() {
    let mut db = Database::new();
    delays(&mut db);
    let train = "SELECT FROM corgipile_train('delays', 'quantile', 'y', '{a,b}', seed => 1,
                     options => '{\"quantile\": 0.98, \"validation_fraction\": 0.2}')";
    let told = db.notices(&[train]);
    assert!(!told.contains("worse than"), "{told}");
    // by R2, the strongest penalty would be the best of a quantile far out
    let best = db.line(
        "SELECT grid_point->>'l2' FROM corgipile_search('delays', 'quantile', 'y', '{a,b}', seed => 1, grid => '{\"l2\": [0, 0.3]}',
             max_epochs => 20, options => '{\"quantile\": 0.98}') WHERE rank = 1",
    );
    assert_eq!(best, "0");
}

/// A target far from 0 with skewed noise and, in every fiftieth row, an outlier; sorted by it.
fn delays(db: &mut Session) {
    db.run(
        "CREATE TABLE delays AS
         SELECT i AS id, a, b, 1e5 + 1e3 * (2 * a - b - 0.5 * ln(uniform(i, 3)) + CASE WHEN i % 50 = 0 THEN 40 ELSE 0 END) AS y
           FROM (SELECT i, normal(i, 1)::float8 AS a, (3 * uniform(i, 2))::float8 AS b FROM generate_series(1, 4000) i) AS u
          ORDER BY 4;
         ANALYZE delays",
    );
}

#[test]
fn a_quantile_has_its_fraction_of_the_labels_below_it_whatever_their_scale() {
    let mut db = Database::new();
    delays(&mut db);
    for quantile in ["0.1", "0.5", "0.9"] {
        for scale in ["1e-5", "1", "1e4"] {
            let source = format!("SELECT y * {scale} AS y, a, b FROM delays");
            let options = format!("options => '{{\"loss\": \"quantile\", \"quantile\": {quantile}}}'");
            let id = db.train(&format!("'{source}', 'linear', 'y', '{{a,b}}', seed => 1, {options}"))[0].model_id;
            let found = metrics(&mut db, id, &source, "fraction_below,loss,mean_pinball_loss");
            let expected: Vec<f64> = db.column(&format!(
                "SELECT unnest(ARRAY[avg((e <= 0)::int), avg(greatest({quantile} * e, ({quantile} - 1) * e)),
                                     avg(greatest({quantile} * e, ({quantile} - 1) * e))]::float8[])
                   FROM (SELECT y::real - corgipile_predict({id}, ARRAY[a, b]) AS e FROM ({source}) AS s) AS t"
            ));
            assert_close(&found, &expected, 1e-5);
            let wanted: f64 = quantile.parse().expect("a number");
            assert!((found[0] - wanted).abs() < 0.01, "{quantile} {scale}: {found:?}");
        }
    }
}

#[test]
fn outliers_pull_neither_huber_nor_the_tube_and_the_threshold_is_that_of_the_joint_optimum() {
    let mut db = Database::new();
    delays(&mut db);
    let model = |db: &mut Session, loss: &str| {
        let id = db.train(&format!("'delays', '{loss}', 'y', '{{a,b}}', seed => 1"))[0].model_id;
        let coefficients = format!(
            "SELECT (corgipile_predict({id}, ARRAY[1, 1]) - corgipile_predict({id}, ARRAY[0, 1])) / 1000,
                    (corgipile_predict({id}, ARRAY[0, 1]) - corgipile_predict({id}, ARRAY[0, 0])) / 1000,
                    corgipile_predict({id}, ARRAY[0, 0]) / 1000"
        );
        let line = db.line(&coefficients);
        let numbers: Vec<f64> = line.split('|').map(|number| number.parse().expect("a number")).collect();
        (id, numbers)
    };
    let (_, squared) = model(&mut db, "linear");
    let (id, huber) = model(&mut db, "huber");
    let (_, tube) = model(&mut db, "epsilon_insensitive");
    assert!(squared[2] > 101.1, "a mean with outliers: {squared:?}");
    for robust in [&huber, &tube] {
        assert!((robust[0] - 2.0).abs() < 0.05 && (robust[1] + 1.0).abs() < 0.05, "{robust:?}");
        assert!((100.2..100.7).contains(&robust[2]), "{robust:?}");
    }
    // at the joint optimum the mean of min(e², δ²) is σ² = (δ / 1.35)²
    let ratio: f64 = db.value(&format!(
        "SELECT avg(least(e * e, d * d)) / (d / 1.35) ^ 2
           FROM (SELECT y - corgipile_predict({id}, ARRAY[a, b]) AS e,
                        (SELECT (hyperparameters->>'loss_threshold')::float8 FROM corgipile.models WHERE model_id = {id}) AS d
                   FROM delays) AS t GROUP BY d"
    ));
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
    let found = metrics(&mut db, id, "delays", "loss")[0];
    let expected: f64 = db.value(&format!(
        "SELECT avg(least(e, d) * (e - least(e, d) / 2))
           FROM (SELECT abs(y - corgipile_predict({id}, ARRAY[a, b])) AS e,
                        (SELECT (hyperparameters->>'loss_threshold')::float8 FROM corgipile.models WHERE model_id = {id}) AS d
                   FROM delays) AS t"
    ));
    assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
}

#[test]
fn errors_within_the_tube_cost_nothing_in_units_of_the_label() {
    let mut db = Database::new();
    delays(&mut db);
    let options = "options => '{\"loss\": \"epsilon_insensitive\", \"loss_epsilon\": 500}'";
    let id = db.train(&format!("'delays', 'linear', 'y', '{{a,b}}', seed => 1, {options}"))[0].model_id;
    let found = metrics(&mut db, id, "delays", "loss")[0];
    let expected: f64 =
        db.value(&format!("SELECT avg(greatest(0, abs(y - corgipile_predict({id}, ARRAY[a, b])) - 500)) FROM delays"));
    assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
    let last: f64 = db.value(&format!(
        "SELECT loss FROM corgipile.training_history WHERE model_id = {id} ORDER BY epoch DESC LIMIT 1"
    ));
    assert!((last / expected - 1.0).abs() < 0.1, "{last} {expected}");
}

#[test]
fn numbers_of_losses_are_kept_go_with_a_model_and_vary_in_a_grid() {
    let mut db = Database::new();
    delays(&mut db);
    let ids: Vec<i64> = db
        .train("'delays', 'quantile', 'y', '{a,b}', seed => 1, max_epochs => 2, grid => '{\"quantile\": [0.2, 0.8]}'")
        .iter()
        .filter(|row| row.epoch == 2)
        .map(|row| row.model_id)
        .collect();
    for (id, quantile) in ids.iter().zip(["0.2", "0.8"]) {
        let says = format!("SELECT hyperparameters->>'quantile' FROM corgipile.models WHERE model_id = {id}");
        assert_eq!(db.line(&says), quantile);
        let before = metrics(&mut db, *id, "delays", "loss");
        let copy: i64 = db.value(&format!("SELECT corgipile_import(corgipile_export({id}), 'copy{id}')"));
        assert_eq!(metrics(&mut db, copy, "delays", "loss"), before);
    }
    for loss in ["huber", "quantile", "epsilon_insensitive"] {
        let call = format!("'delays', '{loss}', 'y', '{{a,b}}', seed => 1");
        let whole = db.trained(&format!("{call}, max_epochs => 6, options => '{{\"decay\": 0.9}}'"));
        let half = db.train(&format!("{call}, max_epochs => 3, options => '{{\"decay\": 0.9}}'"))[0].model_id;
        let both = db.trained(&format!("'delays', seed => 1, warm_start => '{half}', max_epochs => 3"));
        assert_eq!(both.bits(), whole.bits(), "{loss}: a training that goes on is one that never stopped");
        let workers = db.train(&format!("{call}, workers => 2"))[0].model_id;
        let alone = db.train(&call)[0].model_id;
        let [together, alone] = [workers, alone].map(|id| metrics(&mut db, id, "delays", "mae")[0]);
        assert!((together / alone - 1.0).abs() < 0.05, "{loss}: {together} {alone}");
    }
}

#[test]
fn an_aggregate_learns_counts_too() {
    let mut db = Database::new();
    counts(&mut db);
    let id: i64 = db.value(
        "SELECT model_id FROM corgipile_train_uda('counts', 'poisson', 'y', '{a,b}', learning_rate => 0.01, max_epochs => 40, shuffle => 'shuffle_once',
                                                  options => '{\"standardize\": true}') LIMIT 1",
    );
    let found = metrics(&mut db, id, "counts", "d2")[0];
    assert!(found > 0.2, "{found}");
    let failure = db.attempt("SELECT corgipile_sgd_init('huber', 2)").expect_err("its threshold follows the epochs");
    assert_eq!(failure.code, "0A000", "{failure:?}");
}

#[test]
fn what_a_loss_cannot_be_is_refused() {
    let mut db = Database::new();
    counts(&mut db);
    for (call, code, word) in [
        (
            "'counts', 'poisson', 'y', '{a,b}', options => '{\"loss\": \"squared_error\"}'",
            "22023",
            "must be \"poisson\" for model poisson",
        ),
        ("'counts', 'linear', 'y', '{a,b}', options => '{\"loss\": \"poison\"}'", "22023", "poisson"),
        (
            "'counts', 'linear', 'y', '{a,b}', options => '{\"loss\": \"squared_hinge\"}'",
            "22023",
            "must be \"squared_error\" or \"huber\" or \"epsilon_insensitive\" or \"quantile\" or \"poisson\" for model linear",
        ),
        (
            "'counts', 'svm', 'y', '{a,b}', options => '{\"loss\": \"huber\"}'",
            "22023",
            "must be \"hinge\" or \"squared_hinge\" for model svm",
        ),
        (
            "'counts', 'squared_hinge', 'y', '{a,b}', options => '{\"loss\": \"hinge\"}'",
            "22023",
            "must be \"squared_hinge\" for model squared_hinge",
        ),
        (
            "'counts', 'logistic', 'y', '{a,b}', options => '{\"loss\": \"squared_error\"}'",
            "22023",
            "applies only to models linear and svm",
        ),
        (
            "'counts', 'poisson', 'y', '{a,b}', options => '{\"schedule\": \"theorem1\", \"mu\": 1}'",
            "22023",
            "bends without a bound",
        ),
        ("'counts', 'quantile', 'y', '{a,b}', options => '{\"quantile\": 1}'", "22023", "between 0 and 1"),
        (
            "'counts', 'linear', 'y', '{a,b}', options => '{\"quantile\": 0.5}'",
            "22023",
            "applies only to loss quantile",
        ),
        ("'counts', 'huber', 'y', '{a,b}', options => '{\"loss_epsilon\": 0}'", "22023", "greater than 0"),
        ("'counts', 'huber', 'y', '{a,b}', options => '{\"quantile\": 0.5}'", "22023", "applies only to loss quantile"),
    ] {
        let failure = db.attempt(&format!("SELECT corgipile_train({call})")).expect_err(call);
        assert_eq!(failure.code, code, "{failure:?}");
        assert!(format!("{failure:?}").contains(&word.replace('"', "\\\"")), "{failure:?}");
    }
}

#[test]
fn a_rate_beyond_double_precision_is_an_error_and_not_infinite() {
    let mut db = Database::new();
    counts(&mut db);
    let id = db.train("'counts', 'poisson', 'y', '{a,b}', seed => 1, max_epochs => 3")[0].model_id;
    let failure =
        db.attempt(&format!("SELECT corgipile_predict({id}, ARRAY[1e4, 0])")).expect_err("e to the power of thousands");
    assert_eq!(failure.code, "22003", "{failure:?}");
    let least: f64 = db.value(&format!("SELECT corgipile_predict({id}, ARRAY[-1e4, 0])"));
    assert_eq!(least, 0.0);
    let failure = db
        .attempt(&format!("SELECT * FROM corgipile_evaluate({id}, 'SELECT 1 AS y, 1e4::float8 AS a, 0::float8 AS b')"))
        .expect_err("the same");
    assert_eq!(failure.code, "22003", "{failure:?}");
}

#[test]
fn searches_intervals_and_importance_know_the_losses() {
    let mut db = Database::new();
    counts(&mut db);
    let search = |more: &str| {
        format!("FROM corgipile_search('counts', label => 'y', features => '{{a,b}}', folds => 3, seed => 1, {more})")
    };
    // a rate that learns nothing is worse than one that learns
    for model in ["huber", "quantile", "epsilon_insensitive", "poisson"] {
        let points = r#"grid => '{"learning_rate": [1e-9, 0.01]}', max_epochs => 5"#;
        let best: f64 = db.value(&format!(
            "SELECT (grid_point->>'learning_rate')::float8 {} WHERE rank = 1",
            search(&format!("model => '{model}', {points}"))
        ));
        assert_eq!(best, 0.01, "{model}");
    }
    // rates are not below 0, and 9 of 10 counts lie within
    db.train("'SELECT * FROM counts WHERE id % 2 = 0', 'poisson', 'y', '{a,b}', seed => 1, name => 'rates'");
    db.run("SELECT corgipile_calibrate('rates', 'SELECT * FROM counts WHERE id % 4 = 1')");
    let (least, inside): (f64, f64) = {
        let row = &db.rows(
            "SELECT min((i).lower), avg((y BETWEEN (i).lower AND (i).upper)::int)::float8
               FROM (SELECT y, corgipile_predict_interval('rates', ARRAY[a, b]) AS i FROM counts WHERE id % 4 = 3) AS p",
            &[],
        )[0];
        (row.get(0), row.get(1))
    };
    assert!(least >= 0.0, "{least}");
    assert!((0.86..0.94).contains(&inside), "{inside}");
    let order =
        db.column::<String>("SELECT feature FROM corgipile_importance('rates', 'counts') ORDER BY importance DESC");
    assert_eq!(order, ["a", "b"], "deviations of what they add: 0.46 and 0.43");
    assert_eq!(
        db.line("SELECT coalesce(bool_and(verdict IS NULL), false) FROM corgipile_drift('rates', 'SELECT * FROM counts WHERE id % 2 = 0')"),
        "t"
    );
}

#[test]
fn counts_whose_steps_run_away_have_diverged_and_nothing_is_stored() {
    let mut db = Database::new();
    db.run("CREATE TABLE n AS SELECT i / 100.0 AS a, floor(exp(i / 1000.0)) AS y FROM generate_series(1, 3000) i");
    db.rejects("SELECT corgipile_train_uda('n', 'poisson', label => 'y', features => '{a}')", "22003");
    db.rejects(
        "SELECT corgipile_train('n', 'poisson', label => 'y', features => '{a}', standardize => false, learning_rate => 1,
                                options => '{\"bounded_steps\": false}')",
        "22003",
    );
    // a point of a search that has is last, and told of
    let told = db.notices(&["SELECT FROM corgipile_search('n', 'poisson', label => 'y', features => '{a}', seed => 1,
         standardize => false, options => '{\"bounded_steps\": false}', grid => '{\"learning_rate\": [1e-5, 1]}')"]);
    assert!(told.contains("1 of 2 points diverged: {\"learning_rate\":1}"), "{told}");
    assert_eq!(db.models(), 1);
    // and all processes know which points have, when they judge those that are left
    let grid = in_several_buffers(
        "'n', 'poisson', label => 'y', features => '{a}', seed => 1, standardize => false, max_epochs => 4, workers => 2,
         validation_fraction => 0.2, options => '{\"bounded_steps\": false}', grid => '{\"learning_rate\": [1e-5, 0.01]}'",
    );
    let told = db.notices(&[&format!("SELECT FROM corgipile_train({grid})")]);
    assert!(told.contains("{\"learning_rate\":0.01} diverged in epoch") && !told.contains("ERROR"), "{told}");
}
