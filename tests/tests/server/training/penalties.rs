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

/// Creates table `many`, whose labels depend on the features x1 to x3 and not on x4 to x10, as columns, as the array x
/// and as a sparse vector (k, v), with groups and weights of rows.
fn many(db: &mut Session) {
    let columns: Vec<String> = (1..=10).map(|i| format!("x[{i}] AS x{i}")).collect();
    db.run(&format!(
        "CREATE TABLE many AS
         SELECT i AS id, x, ARRAY[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] AS k, x AS v, {},
                2 * x[1] - 1.5 * x[2] + x[3] + normal(i, 21) / 2 AS y,
                (2 * x[1] - 1.5 * x[2] + x[3] + normal(i, 21) > 0)::int AS two,
                CASE WHEN 2 * x[1] - x[3] + normal(i, 21) > 1 THEN 'a' WHEN 2 * x[2] - x[3] + normal(i, 22) > 0 THEN 'b' ELSE 'c' END AS three,
                CASE WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END AS site, 0.5 + 2 * uniform(i, 30) AS w
           FROM (SELECT i, ARRAY(SELECT normal(i, j) FROM generate_series(1, 10) j)::real[] AS x
                   FROM generate_series(1, 2000::bigint) i) _",
        columns.join(", ")
    ));
}

/// The weights of a model, output by output.
fn weights(db: &mut Session, id: i64) -> Vec<f64> {
    db.column::<f64>(&format!(
        "SELECT w::float8 FROM corgipile.models, unnest(weights) WITH ORDINALITY AS u(w, i) WHERE model_id = {id} ORDER BY i"
    ))
}

/// Asserts that the weights of x4 to x10 are 0 in every output, and those of x1 to x3 are not in all of them.
fn only_three_matter(db: &mut Session, id: i64, what: &str) {
    let weights = weights(db, id);
    assert_eq!(weights.len() % 10, 0, "{what}: {weights:?}");
    for feature in 0..10 {
        let of_feature: Vec<f64> = weights.chunks(10).map(|output| output[feature]).collect();
        let matters = of_feature.iter().any(|w| *w != 0.0);
        assert_eq!(matters, feature < 3, "{what}: x{} has {of_feature:?} of {weights:?}", feature + 1);
    }
}

const COLUMNS: &str = "{x1,x2,x3,x4,x5,x6,x7,x8,x9,x10}";

/// Kinds of models, their labels, and a penalty that no noise is above.
const KINDS: [(&str, &str, f64); 9] = [
    ("linear", "y", 0.1),
    ("logistic", "two", 0.05),
    ("svm", "two", 0.05),
    ("squared_hinge", "two", 0.1),
    ("softmax", "three", 0.03),
    ("svm", "three", 0.06),
    ("huber", "y", 0.1),
    ("quantile", "y", 0.1),
    ("poisson", "two", 0.03),
];

#[test]
fn weights_that_should_be_0_are_0_in_the_stored_model() {
    let mut db = Database::new();
    many(&mut db);
    for (model, label, l1) in KINDS {
        for features in [COLUMNS, "{x}", "{k,v}"] {
            for more in ["", r#", learning_rate => 0.02, options => '{"averaging": false}'"#] {
                let solver = if model == "poisson" { ", solver => 'sgd'" } else { "" };
                let arguments = format!(
                    "'many', model => '{model}', label => '{label}', features => '{features}', l1 => {l1}, seed => 1{solver}{more}"
                );
                let id = db.train(&arguments)[0].model_id;
                only_three_matter(&mut db, id, &arguments);
            }
        }
    }
}

#[test]
fn optimizers_and_strategies_leave_the_same_weights_at_0() {
    let mut db = Database::new();
    many(&mut db);
    for more in [
        "optimizer => 'momentum'",
        "optimizer => 'momentum', learning_rate => 0.001, l2 => 0.01",
        "optimizer => 'adam', learning_rate => 0.01, batch_size => 16",
        "batch_size => 32",
        "standardize => false",
        "shuffle => 'no_shuffle'",
        "shuffle => 'mrs'",
        "shuffle => 'shuffle_once'",
        "shuffle => 'sliding_window'",
        r#"options => '{"schedule": "theorem1", "mu": 0.1, "a": 100}'"#,
    ] {
        for (model, label, l1) in [("linear", "y", 0.1), ("logistic", "two", 0.05)] {
            // the steps of momentum are ten times as long; those of Adam are in units of the gradients of mini-batches,
            // of which the noise of the mean gradient is a tenth
            let l1 = if more.contains("momentum") { 10.0 * l1 } else { l1 };
            let l1 = if more.contains("adam") { 0.4 } else { l1 };
            let arguments = format!(
                "'many', model => '{model}', label => '{label}', features => '{{x}}', l1 => {l1}, seed => 1, {more}"
            );
            let id = db.train(&arguments)[0].model_id;
            only_three_matter(&mut db, id, &arguments);
        }
    }
}

#[test]
fn every_model_of_a_call_gets_its_zeros_from_its_own_rows() {
    let mut db = Database::new();
    many(&mut db);
    let calls = [
        ("group_by => 'site'", 2),
        ("group_by => 'site', workers => 2, block_size => '8kB'", 2),
        ("workers => 2, block_size => '8kB'", 1),
        (r#"options => '{"weight": "w"}'"#, 1),
        (r#"group_by => 'site', options => '{"weight": "w"}'"#, 2),
        (r#"options => '{"keep": "best"}'"#, 1),
        (r#"options => '{"keep": "best", "validation_fraction": 0.2}'"#, 1),
        ("options => '{\"validation_fraction\": 0.2}', workers => 2, block_size => '8kB'", 1),
        (r#"grid => '[{"l2": 0}, {"l2": 0.01}]'"#, 2),
        (r#"grid => '[{"l2": 0}, {"l2": 0.01}]', group_by => 'site'"#, 4),
    ];
    for (more, models) in calls {
        for (model, label, l1) in KINDS.into_iter().step_by(2) {
            let solver = if model == "poisson" { ", solver => 'sgd'" } else { "" };
            // half of the rows have more noise
            let l1 = if more.contains("site") { 1.3 * l1 } else { l1 };
            let arguments = format!(
                "'many', model => '{model}', label => '{label}', features => '{{x}}', l1 => {l1}, seed => 1{solver}, {more}"
            );
            let mut ids: Vec<i64> = db.train(&arguments).iter().map(|epoch| epoch.model_id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), models, "{arguments}");
            for id in ids {
                only_three_matter(&mut db, id, &arguments);
            }
        }
    }
}

#[test]
fn a_compressed_table_has_the_zeros_of_its_rows() {
    let mut db = Database::new();
    many(&mut db);
    for (model, label, l1) in KINDS {
        db.line(&format!(
            "SELECT corgipile_compress('many', 'packed', label => '{label}', features => '{{x}}', batch_rows => 50)"
        ));
        for more in ["", ", workers => 2, block_size => '8kB'"] {
            let solver = if model == "poisson" { ", solver => 'sgd'" } else { "" };
            let arguments = format!(
                "'packed', model => '{model}', label => '{label}', l1 => {l1}, seed => 1, max_epochs => 60, learning_rate => 0.1{solver}{more}"
            );
            let id = db.train(&arguments)[0].model_id;
            only_three_matter(&mut db, id, &arguments);
        }
        db.run("DROP TABLE packed");
    }
}

/// Features, label and weight.
type Row = (Vec<f64>, f64, f64);

/// The weights of the Lasso, by coordinate descent, of standardized features.
fn lasso(rows: &[Row], l1: f64) -> Vec<f64> {
    let dim = rows[0].0.len();
    let total: f64 = rows.iter().map(|row| row.2).sum();
    let mean = |of: &dyn Fn(&Row) -> f64| rows.iter().map(|row| row.2 * of(row)).sum::<f64>() / total;
    let target = mean(&|row| row.1);
    let columns: Vec<Vec<f64>> = (0..dim)
        .map(|j| {
            let center = mean(&|row| row.0[j]);
            let deviation = mean(&|row| (row.0[j] - center).powi(2)).sqrt();
            rows.iter().map(|row| (row.0[j] - center) / deviation).collect()
        })
        .collect();
    let mut rest: Vec<f64> = rows.iter().map(|row| row.1 - target).collect();
    let mut weights = vec![0.0_f64; dim];
    for _ in 0..200 {
        (0..dim).for_each(|j| {
            let pull: f64 = (0..rows.len()).map(|i| rows[i].2 * columns[j][i] * rest[i]).sum::<f64>() / total;
            let free = pull + weights[j];
            let new = if free.abs() <= l1 { 0.0 } else { free - l1.copysign(free) };
            (0..rows.len()).for_each(|i| rest[i] -= (new - weights[j]) * columns[j][i]);
            weights[j] = new;
        });
    }
    weights
}

#[test]
fn the_zeros_of_a_linear_model_are_those_of_the_lasso() {
    let mut db = Database::new();
    many(&mut db);
    for weight in ["1", "w"] {
        let rows: Vec<Row> = {
            let x = db.column::<f64>("SELECT u::float8 FROM many, unnest(x) WITH ORDINALITY AS _(u, i) ORDER BY id, i");
            let y = db.column::<f64>("SELECT y FROM many ORDER BY id");
            let w = db.column::<f64>(&format!("SELECT {weight}::float8 FROM many ORDER BY id"));
            x.chunks(10).zip(y).zip(w).map(|((x, y), w)| (x.to_vec(), y, w)).collect()
        };
        for l1 in [0.005, 0.01, 0.02, 0.5, 1.2, 1.8] {
            let options = if weight == "w" { r#", options => '{"weight": "w"}'"# } else { "" };
            let arguments = format!(
                "'many', model => 'linear', label => 'y', features => '{{x}}', l1 => {l1}, seed => 1, max_epochs => 60{options}"
            );
            let id = db.train(&arguments)[0].model_id;
            let (found, expected) = (weights(&mut db, id), lasso(&rows, l1));
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(*found == 0.0, *expected == 0.0, "{arguments}: {found} {expected}");
            }
        }
    }
}

#[test]
fn a_warm_start_goes_on_from_weights_that_are_not_0_yet() {
    let mut db = Database::new();
    many(&mut db);
    let train = |epochs: u32| {
        format!(
            r#"'many', model => 'logistic', label => 'two', features => '{{x}}', l1 => 0.05, seed => 1, max_epochs => {epochs}, learning_rate => 0.02"#
        )
    };
    let whole = db.train(&train(6))[0].model_id;
    let half = db.train(&train(3))[0].model_id;
    let rest = db.train(&format!("{}, options => '{{\"warm_start\": {half}}}'", train(3)))[0].model_id;
    assert_eq!(weights(&mut db, rest), weights(&mut db, whole));
    only_three_matter(&mut db, whole, "6 epochs");
}

/// Rows with a number and a category: some categories have few rows.
fn categories(db: &mut Session) {
    db.run(
        "CREATE TABLE c AS SELECT i, i % 3 AS site, 1 + i % 2 AS w, normal(i, 1) AS x, g, 'n' || i % 300 AS noise,
                2 * normal(i, 1) + length(g) + 0.5 * normal(i, 2) AS y, normal(i, 1) + (length(g) - 2) + normal(i, 3) > 0 AS b
           FROM (SELECT i, repeat(chr(97 + width_bucket(uniform(i, 5) ^ 3, 0, 1, 12)), 1 + i % 3) AS g
                   FROM generate_series(1, 900) i) _",
    );
}

const L2: &str = "SELECT string_agg(coalesce(hyperparameters->>'l2_on', 'all') || ' ' ||
                         CASE WHEN (hyperparameters->>'l2')::float8 > 0
                              THEN round(1 / (hyperparameters->>'l2')::numeric, 3)::text ELSE 'none' END, ', ' ORDER BY name)
                  FROM corgipile.models WHERE name LIKE '";

#[test]
fn the_default_penalty_is_one_on_the_weights_of_categories_and_follows_the_rows() {
    let mut db = Database::new();
    categories(&mut db);
    db.run("CREATE TABLE rows AS SELECT count(*) AS n, sum(w)::float8 ^ 2 / sum(w * w) AS effective FROM c");
    let of = |db: &mut Session, more: &str| -> String {
        db.run(&format!("SELECT corgipile_train('c', label => 'b', seed => 1, name => 'm', {more})"));
        let l2 = db.line(&format!("{L2}m%'"));
        db.run("SELECT corgipile_drop(model_id) FROM corgipile.models");
        l2
    };
    let effective: String = db.line("SELECT round(effective::numeric, 3) FROM rows");
    for more in ["", ", workers => 2", ", prefetch => 'on'", ", options => '{\"cache\": \"off\"}'"] {
        assert_eq!(of(&mut db, &format!("features => '{{x,noise}}'{more}")), "categories 900.000", "{more}");
    }
    assert_eq!(
        of(&mut db, "features => '{x,noise}', options => '{\"weight\": \"w\"}'"),
        format!("categories {effective}")
    );
    for without in
        ["features => '{x}'", "features => '{x,noise}', l2 => 0", "features => '{x,noise}', learning_rate => 0.1"]
    {
        assert_eq!(of(&mut db, without), "all none", "{without}");
    }
    // of several models, what suits one may not suit another
    assert_eq!(of(&mut db, "features => '{x,noise}', group_by => 'site'"), ["all none"; 3].join(", "));
    assert_eq!(of(&mut db, "features => '{x,noise}', grid => '{\"batch_size\": [1, 4]}'"), ["all none"; 2].join(", "));
    assert_eq!(of(&mut db, "features => '{x,noise}', l2 => 0.01"), "all 100.000");
    assert_eq!(of(&mut db, "features => '{x,noise}', l1 => 0.01"), "all none");
    let options = "features => '{x,noise}', l2 => 0.01, options => '{\"l2_on\": \"categories\"}'";
    assert_eq!(of(&mut db, options), "categories 100.000");
    let told =
        db.fails_with("SELECT corgipile_train('c', label => 'b', options => '{\"l2_on\": \"categories\"}')", "22023");
    told.says(&["l2_on"]);
}

/// A few rows say all there is to know of a category: a penalty would keep the model from it.
#[test]
fn there_is_no_penalty_where_the_rows_held_out_have_less_loss_without() {
    let mut db = Database::new();
    db.run("CREATE TABLE sure AS SELECT 'c' || i % 60 AS g, (i * 7919 % 60 % 2 = i % 2) AND i % 60 < 30 AS b, i % 60 < 30 AS label
              FROM generate_series(1, 240) i");
    let told = db.notices(&["SELECT FROM corgipile_train('sure', features => '{g}', seed => 1)"]);
    assert!(!told.contains("l2"), "{told}");
    categories(&mut db);
    let told = db.notices(&["SELECT FROM corgipile_train('c', label => 'b', features => '{x,noise}', seed => 1)"]);
    assert!(told.contains(", l2 1.111e-3 on categories: loss ") && told.contains(" without it"), "{told}");
    assert_eq!(told.matches("NOTICE").count(), 1, "the trial reports nothing: {told}");
    // categories that say nothing at all are kept out as far as possible
    db.run(
        "CREATE TABLE noise AS SELECT 'n' || i % 200 AS g, uniform(i, 1) < 0.5 AS label FROM generate_series(1, 600) i",
    );
    let told = db.notices(&["SELECT FROM corgipile_train('noise', features => '{g}', seed => 1)"]);
    assert!(told.contains(", l2 1.667e-2 on categories: loss "), "{told}");
}

#[test]
fn a_penalty_on_categories_is_the_ridge_of_their_effects_alone() {
    let mut db = Database::new();
    categories(&mut db);
    // without a number, w = n (mean - b) / (n + 1), and the residuals add up to 0
    db.run(
        "CREATE VIEW of_category AS SELECT g, count(*)::float8 AS n, avg(y) AS mean FROM c GROUP BY g;
         CREATE VIEW least AS SELECT g, b + n * (mean - b) / (n + 1) AS y FROM of_category,
                (SELECT sum(n / (n + 1) * mean) / sum(n / (n + 1)) AS b FROM of_category) AS intercept",
    );
    let furthest = "SELECT max(abs(corgipile_predict('m', c) - least.y)) FROM c JOIN least USING (g)";
    let newton = "solver => 'newton', l2 => 1.0 / 900, options => '{\"l2_on\": \"categories\"}'";
    db.train(&format!("'c', 'linear', 'y', '{{g}}', name => 'm', {newton}"));
    let exact: f64 = db.value(furthest);
    assert!(exact < 1e-4, "{exact}");
    db.run("SELECT corgipile_drop('m')");
    let by_sgd = "seed => 1, l2 => 1.0 / 900, options => '{\"l2_on\": \"categories\"}'";
    db.train(&format!("'c', 'linear', 'y', '{{g}}', name => 'm', {by_sgd}"));
    let by_steps: f64 = db.value(furthest);
    assert!(by_steps < 0.1, "{by_steps}");
    // a number in units that are a thousand times as small has a weight that is next to no penalty
    db.run("CREATE TABLE large AS SELECT g, 1000 * x AS x, y FROM c");
    let slope = |db: &mut Session, source: &str, more: &str, unit: f64| -> f64 {
        db.run("SELECT corgipile_drop(model_id) FROM corgipile.models");
        db.train(&format!("'{source}', 'linear', 'y', '{{x,g}}', name => 'm', {more}"));
        let slope: f64 = db.value(&format!(
            "SELECT regr_slope(corgipile_predict('m', r) - at_0, x) FROM {source} AS r,
            LATERAL (SELECT corgipile_predict('m', 0::float8, r.g) AS at_0) AS _"
        ));
        slope * unit
    };
    let all = "solver => 'newton', standardize => false, l2 => 1.0 / 900";
    let expected = slope(&mut db, "large", all, 1000.0);
    let [small_batches, processes] = ["batch_size => 4", "workers => 2"].map(|more| format!("{by_sgd}, {more}"));
    for (how, tolerance) in [(newton, 1e-4), (by_sgd, 0.02), (&small_batches, 0.02), (&processes, 0.02)] {
        let found = slope(&mut db, "c", how, 1.0);
        assert!((found - expected).abs() < tolerance, "{how}: {found}, not {expected}");
    }
    let strong = slope(&mut db, "c", "solver => 'newton', l2 => 1.0", 1.0);
    assert!(strong < 0.8 * expected, "a penalty on all weights would show: {strong}");
}

#[test]
fn a_penalty_on_categories_goes_on_with_the_training() {
    let mut db = Database::new();
    categories(&mut db);
    for model in ["'linear', 'y'", "'logistic', 'b'"] {
        let whole = db.trained(&format!("'c', {model}, '{{x,noise}}', seed => 1, max_epochs => 6"));
        db.run(&format!(
            "SELECT corgipile_train('c', {model}, '{{x,noise}}', seed => 1, max_epochs => 4, name => 'm')"
        ));
        let continued = db.trained("'c', warm_start => 'm', max_epochs => 2");
        assert_eq!(continued.bits(), whole.bits(), "{model}");
        db.run("SELECT corgipile_drop('m')");
    }
}
