//! Solver newton: the optimum, whatever the rows, their order and what else is asked for.

use corgipile_tests::{Database, Session};

/// Rows of two classes that no hyperplane separates, sorted by class, with categories, NULLs and weights.
fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i, (uniform(i, 1) < 1 / (1 + exp(-(a - 2 * b + CASE c WHEN 'x' THEN 1 ELSE 0 END))))::int AS label,
                CASE WHEN i % 50 > 0 THEN a END AS a, b, c, 1 + i % 3 AS w
           FROM (SELECT i, normal(i, 2) AS a, normal(i, 3) AS b, (ARRAY['x', 'y', 'z'])[1 + i % 3] AS c
                   FROM generate_series(1, 4000) i) s
          ORDER BY label",
    );
}

/// Weights and intercept of a model.
fn weights(db: &mut Session, name: &str) -> Vec<f64> {
    db.column(&format!("SELECT coefficient FROM corgipile.coefficients WHERE name = '{name}' ORDER BY feature"))
}

fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 2e-6 * expected.abs().max(1.0), "{what}: {found} {expected}");
    }
}

#[test]
fn the_model_is_the_same_whatever_the_order_the_scaling_and_the_buffer() {
    let mut db = Database::new();
    table(&mut db);
    let train = |db: &mut Session, name: &str, how: &str| {
        db.run(&format!(
            "SELECT FROM corgipile_train('t', features => '{{a,b,c}}', solver => 'newton', name => '{name}',
                 options => '{{\"transform\": \"none\", \"l2\": 0.001, \"weight\": \"w\"}}' {how})"
        ));
        weights(db, name)
    };
    let expected = train(&mut db, "m", "");
    assert_eq!(expected.len(), 6);
    for (i, how) in [
        ", shuffle => 'no_shuffle'",
        ", shuffle => 'shuffle_once', seed => 3",
        ", seed => 9, buffer_size => '10%'",
        ", prefetch => 'on'",
    ]
    .into_iter()
    .enumerate()
    {
        assert_near(&train(&mut db, &format!("m{i}"), how), &expected, how);
    }
}

#[test]
fn it_ends_when_the_loss_is_least_and_says_so_if_that_is_not_to_be() {
    let mut db = Database::new();
    table(&mut db);
    let epochs: i64 = db.value("SELECT count(*) FROM corgipile_train('t', features => '{b,c}', solver => 'newton')");
    assert!((4..10).contains(&epochs), "{epochs}");
    let of_linear: i64 = db
        .value("SELECT count(*) FROM corgipile_train('t', 'linear', 'b', features => '{c,label}', solver => 'newton')");
    assert_eq!(of_linear, 2);
    let told =
        db.notices(&["SELECT FROM corgipile_train('t', features => '{b}', solver => 'newton', max_epochs => 2)"]);
    assert!(told.contains("WARNING:  the model has not converged\n"), "{told}");
    let told = db.notices(&["SELECT FROM corgipile_train('SELECT b > 0 AS label, b FROM t', solver => 'newton')"]);
    assert!(told.contains("perfect separation"), "{told}");
}

#[test]
fn groups_grids_validation_and_warm_starts_are_those_of_their_own_trainings() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        r#"SELECT FROM corgipile_train('t', features => '{b}', solver => 'newton', group_by => 'c', name => 'g');
           SELECT FROM corgipile_train('SELECT * FROM t WHERE c = ''y''', features => '{b}', solver => 'newton', name => 'y');
           SELECT FROM corgipile_train('t', features => '{b}', solver => 'newton', grid => '{"l2": [0, 0.5]}', name => 'p');
           SELECT FROM corgipile_train('t', features => '{b}', solver => 'newton', l2 => 0.5, name => 'l2');
           SELECT FROM corgipile_train('t', features => '{b}', solver => 'newton', name => 'all');
           SELECT FROM corgipile_train('t', features => '{b}', solver => 'newton', max_epochs => 2, name => 'begun');
           SELECT FROM corgipile_train('t', warm_start => 'begun', max_epochs => 20, name => 'ended');"#,
    );
    let of = |db: &mut Session, key: &str, value: &str| -> Vec<f64> {
        db.column(&format!(
            "SELECT coefficient FROM corgipile.coefficients JOIN corgipile.models USING (model_id)
              WHERE hyperparameters->>'{key}' = '{value}' AND starts_with(models.name, '{}') ORDER BY feature",
            if key == "group" { "g" } else { "p" }
        ))
    };
    let (group, alone) = (of(&mut db, "group", "y"), weights(&mut db, "y"));
    assert_near(&group, &alone, "a group");
    let (point, alone) = (of(&mut db, "l2", "0.5"), weights(&mut db, "l2"));
    assert_near(&point, &alone, "a point of a grid");
    let (ended, whole) = (weights(&mut db, "ended"), weights(&mut db, "all"));
    assert_near(&ended, &whole, "a warm start");
    let score: f64 = db.value(
        "SELECT min(validation_score) FROM corgipile_train('t', features => '{b}', solver => 'newton',
                validation_fraction => 0.25, seed => 1) WHERE epoch > 1",
    );
    assert!(score > 0.75, "{score}");
}

#[test]
fn counts_come_to_the_optimum_however_they_come_and_far_from_one() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE counts AS
         SELECT i, floor(1000 * exp(0.3 * a - 0.2 * b) * (0.5 + uniform(i, 1))) AS y, a, b, ARRAY[a, b] AS x, ARRAY[1, 2] AS k, i % 2 AS part,
                i % 7 = 0 AS held
           FROM (SELECT i, normal(i, 2)::real AS a, normal(i, 3)::real AS b FROM generate_series(1, 3000) i) s ORDER BY 2",
    );
    let train = |name: &str, features: &str, more: &str| {
        format!(
            "SELECT FROM corgipile_train('counts', 'poisson', 'y', '{{{features}}}', solver => 'newton', name => '{name}'{more})"
        )
    };
    // no other line has a smaller deviance: the derivatives by the weights are 0
    let slopes = |db: &mut Session, name: &str, rows: &str| -> Vec<f64> {
        db.column(&format!(
            "SELECT unnest(ARRAY[avg(y - p), avg((y - p) * a), avg((y - p) * b)]) / avg(y)
               FROM (SELECT y, a, b, corgipile_predict('{name}', r) AS p FROM counts AS r WHERE {rows}) AS t"
        ))
    };
    for (name, features, more, rows) in [
        ("columns", "a,b", "", "true"),
        ("array", "x", ", standardize => false, shuffle => 'no_shuffle'", "true"),
        ("sparse", "k,x", "", "true"),
        ("held", "a,b", ", options => '{\"validation_column\": \"held\"}'", "NOT held"),
        ("both", "a,b", ", group_by => 'part'", "true"),
    ] {
        db.run(&train(name, features, more));
        let models: Vec<String> = match name {
            "both" => db.lines("SELECT name FROM corgipile.models WHERE name LIKE 'both/%' ORDER BY name"),
            name => vec![name.to_owned()],
        };
        for (i, model) in models.iter().enumerate() {
            let rows = if models.len() > 1 { format!("part = {i}") } else { rows.to_owned() };
            let found = slopes(&mut db, model, &rows);
            assert!(found.iter().all(|slope| slope.abs() < 1e-6), "{model}: {found:?}");
        }
    }
    let passes: i64 = db.value("SELECT count(*) FROM corgipile.training_history WHERE name = 'columns'");
    assert!(passes <= 8, "{passes}");
    // a training that goes on, and one with a penalty
    db.run(&train("first", "a,b", ", max_epochs => 2"));
    db.run("SELECT FROM corgipile_train('counts', warm_start => 'first', max_epochs => 10, name => 'second')");
    assert_near(&weights(&mut db, "second"), &weights(&mut db, "columns"), "warm start");
    db.run(&train("penalised", "a,b", ", l2 => 100, options => '{\"validation_fraction\": 0.2}'"));
    let sizes = |db: &mut Session, name: &str| weights(db, name).iter().map(|w| w.abs()).sum::<f64>();
    let (of_plain, of_penalised) = (sizes(&mut db, "columns"), sizes(&mut db, "penalised"));
    assert!(of_penalised < of_plain, "{of_penalised} {of_plain}");
}

#[test]
fn one_solver_does_not_go_on_where_the_other_has_ended() {
    let mut db = Database::new();
    table(&mut db);
    for (solver, other) in [("sgd", "newton"), ("newton", "sgd")] {
        db.run(&format!("SELECT FROM corgipile_train('t', features => '{{b}}', solver => '{solver}', max_epochs => 1, name => '{solver}')"));
        let on = |solver: &str, from: &str| {
            format!("SELECT FROM corgipile_train('t', warm_start => '{from}', max_epochs => 1, solver => '{solver}')")
        };
        db.fails_with(&on(other, solver), "22023").says(&[&format!("it was trained with solver {solver}")]);
        db.run(&on(solver, solver));
    }
}

#[test]
fn an_exact_fit_is_one_step_from_the_optimum() {
    let mut db = Database::new();
    let told = db.notices(&["SELECT FROM corgipile_train('SELECT i AS a, i * 7 % 11 AS b, 3 * i - i * 7 % 11 AS y
         FROM generate_series(1, 2000) i', 'linear', 'y', '{a,b}', solver => 'newton', standardize => false, name => 'm')"]);
    assert!(!told.contains("least loss"), "{told}");
    let epochs: i64 = db.value("SELECT count(*) FROM corgipile.training_history WHERE name = 'm'");
    assert!(epochs <= 3, "{epochs}");
}

#[test]
fn a_category_that_nobody_has_seen_is_predicted_as_the_mean_of_those_that_were() {
    let mut db = Database::new();
    // in group 1 there is no z, which is far from all others
    db.run(
        "CREATE TABLE f AS SELECT i % 2 AS g, c, CASE c WHEN 'z' THEN 100.0 WHEN 'y' THEN 4.0 ELSE 1.0 END AS y
         FROM (SELECT i, (ARRAY['a', 'b', 'y', 'z'])[1 + i / 2 % 4] AS c FROM generate_series(1, 4000) i) s WHERE i % 2 = 0 OR c <> 'z'",
    );
    let options = "features => '{c}', label => 'y', solver => 'newton'";
    let predicted = |db: &mut Session, model: &str, category: &str| -> f64 {
        db.value(&format!("SELECT corgipile_predict('{model}', r) FROM (VALUES ('{category}')) r (c)"))
    };
    db.train(&format!("'f', 'linear', {options}, name => 'all'"));
    for (category, expected) in [("a", 1.0), ("b", 1.0), ("y", 4.0), ("z", 100.0), ("new", 106.0 / 4.0)] {
        let found = predicted(&mut db, "all", category);
        assert!((found - expected).abs() < 1e-4, "{category}: {found}");
    }
    // a penalty that is all but nothing chooses the same of all optima
    db.train(&format!("'f', 'linear', {options}, name => 'least', l2 => 1e-9"));
    let [all, least] = ["all", "least"].map(|name| weights(&mut db, name));
    assert!(all.iter().zip(&least).all(|(a, b)| (a - b).abs() < 1e-3), "{all:?} {least:?}");
    db.train(&format!("'f', 'linear', {options}, name => 'of', group_by => 'g'"));
    let categories: Vec<String> = db.column("SELECT DISTINCT c FROM f WHERE g = 1 ORDER BY c");
    let mean: f64 = db.value("SELECT avg(y)::float8 FROM (SELECT DISTINCT c, y FROM f WHERE g = 1) s");
    assert!(!categories.contains(&"z".to_owned()), "{categories:?}");
    let absent = predicted(&mut db, "of/1", "z");
    assert!((absent - mean).abs() < 1e-4, "{absent} {mean}");
    // counts, whose logarithm is linear: the mean of the logarithms
    db.train("'f', 'poisson', features => '{c}', label => 'y', name => 'counts', l2 => 0");
    let of_counts = predicted(&mut db, "counts", "new");
    assert!((of_counts - 400f64.powf(0.25)).abs() < 1e-3, "{of_counts}");
}

#[test]
fn the_first_pass_finds_the_accuracy_of_predicting_the_first_class() {
    let mut db = Database::new();
    table(&mut db);
    let share: f64 = db.value("SELECT avg((label = 0)::int)::float8 FROM t");
    let first = db.train("'t', features => '{a,b}', solver => 'newton', name => 'm'")[0].accuracy;
    assert!(first.is_some_and(|accuracy| (accuracy - share).abs() < 1e-9), "{first:?} {share}");
}

#[test]
fn counts_are_trained_by_it_with_rows_held_out_too() {
    let mut db = Database::new();
    db.run("CREATE TABLE n AS SELECT i, normal(i, 1) AS a, floor(exp(1 + normal(i, 1)) + uniform(i, 2)) AS y FROM generate_series(1, 3000) i ORDER BY y");
    for held in ["validation_fraction => 0.2", "validation_fraction => 0.2, options => '{\"keep\": \"best\"}'"] {
        let model =
            db.train(&format!("'n', 'poisson', label => 'y', features => '{{a}}', seed => 1, {held}"))[0].model_id;
        let solver: Option<String> =
            db.value(&format!("SELECT hyperparameters->>'solver' FROM corgipile.models WHERE model_id = {model}"));
        assert_eq!(solver.as_deref(), Some("newton"), "{held}");
    }
}

#[test]
fn features_that_others_determine_but_for_rounding_are_reported() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS
         SELECT a, b, a + b AS total, a - b AS difference, 0.1 * a + normal(i, 5) AS near, c, a - 2 * b + normal(i, 4) AS y,
                (uniform(i, 6) < 0.5)::int AS label, ARRAY[a, b, a + b] AS v
           FROM (SELECT i, 1e5 + 10 * normal(i, 1) AS a, 2e5 + 10 * normal(i, 2) AS b, (ARRAY['x', 'y', 'z'])[1 + i % 3] AS c
                   FROM generate_series(1, 3000) i) s",
    );
    let told = |db: &Database, statement: &str| {
        let told = db.notices(&[statement]);
        told.contains("combinations of others (condition number").then_some(told)
    };
    let cases = [
        ("{a,b,total}", "linear", "y", Some("total")),
        ("{total,a,b}", "linear", "y", Some("b")),
        ("{a,b,difference,c}", "linear", "y", Some("difference")),
        ("{a,b,total}", "logistic", "label", Some("total")),
        ("{v}", "linear", "y", Some("v[3]")),
        ("{a,b,near,c}", "linear", "y", None),
        ("{a,b}", "logistic", "label", None),
    ];
    for (i, (features, model, label, expected)) in cases.into_iter().enumerate() {
        let trained = told(
            &db,
            &format!(
                "SELECT FROM corgipile_train('t', '{model}', label => '{label}', features => '{features}', solver => 'newton', name => 'm{i}')"
            ),
        );
        let compared = told(&db, &format!("SELECT * FROM corgipile_coefficients('m{i}', 't'::text)"));
        let Some(feature) = expected else {
            assert_eq!((trained, compared), (None, None), "{features}");
            continue;
        };
        for told in [trained, compared] {
            let told = told.unwrap_or_else(|| panic!("{features} {model}"));
            assert!(told.contains(&format!("or more): {feature}\n")), "{features}: {told}");
        }
        let of = |column: &str| {
            format!("SELECT {column} FROM corgipile_coefficients('m{i}', 't'::text) WHERE feature = '{feature}'")
        };
        assert_eq!(db.value::<f64>(&of("coefficient")), 0.0, "as of a feature that others determine exactly");
        assert_eq!(db.value::<Option<f64>>(&of("std_error")), None);
    }
    let slopes =
        "SELECT coefficient FROM corgipile_coefficients('m0', 't'::text) WHERE feature IN ('a', 'b') ORDER BY feature";
    let slopes: Vec<f64> = db.column(slopes);
    assert!((slopes[0] - 1.0).abs() < 0.01 && (slopes[1] + 2.0).abs() < 0.01, "{slopes:?}");
    let told = told(
        &db,
        "SELECT FROM corgipile_train('t', 'linear', label => 'y', features => '{a,b,total}', options => '{\"l2\": 0.001}', solver => 'newton')",
    );
    assert_eq!(told, None, "a penalty tells which");
}
