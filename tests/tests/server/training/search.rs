//! Searches: folds are what they are said to be whatever the order of the rows, scores are those of rows that were not
//! learned from, and the model that is stored is the one that the best point makes of all rows.

use corgipile_tests::{Database, Session};
use postgres::Row;

/// 9000 rows, sorted by `positive`, each of which has a number of its own and random numbers.
fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i::int AS id, i > 6300 AS positive, i % 10 AS site, '2024-01-01'::date + i / 20 AS day,
                (ARRAY['ant', 'bee', 'cat'])[1 + i % 3] AS animal,
                normal(i, 4) AS target,
                ARRAY[(i > 6300)::int + normal(i, 1), (i % 3) + normal(i, 2), 2 * normal(i, 3)]::real[] AS x,
                '{1,3}'::int[] AS k, ARRAY[(i > 6300)::int + normal(i, 1), normal(i, 2)]::real[] AS v,
                i % 5 = 0 AS test
           FROM generate_series(1, 9000) i;
         ANALYZE t",
    );
}

/// The strategies that rows in parts can be learned by.
const STRATEGIES: [&str; 5] = ["corgipile", "block_only", "no_shuffle", "shuffle_once", "epoch_shuffle"];

/// With this rate nothing is learned: a model says the same of every row, and a fold's score tells which rows it has.
const NOTHING: &str = r#"grid => '{"learning_rate": [1e-30]}', max_epochs => 1, seed => 11"#;

fn fold_scores(db: &mut Session, arguments: &str) -> Vec<f64> {
    db.value(&format!("SELECT fold_scores FROM corgipile_search({arguments}) WHERE rank = 1"))
}

fn ranked(db: &mut Session, arguments: &str) -> Vec<Row> {
    db.rows(&format!("SELECT * FROM corgipile_search({arguments}) ORDER BY rank"), &[])
}

#[test]
fn folds_are_disjoint_and_complete_and_the_same_with_every_strategy() {
    let mut db = Database::new();
    table(&mut db);
    // of folds of 1800 rows each, the mean of the mean squares is that of all rows if each row is in one of them
    let all: f64 = db.value("SELECT var_pop(target) / 2 FROM t");
    let losses = |db: &mut Session, strategy: &str| {
        let more = "features => '{x}', scoring => 'loss', buffer_size => '30%'";
        fold_scores(db, &format!("'t', 'linear', 'target', {more}, {NOTHING}, shuffle => '{strategy}'"))
    };
    let expected = losses(&mut db, STRATEGIES[0]);
    assert_eq!(expected.len(), 5);
    let mean = expected.iter().sum::<f64>() / 5.0;
    assert!((mean / all - 1.0).abs() < 1e-5, "{mean} {all}");
    // another draw of rows has other sums of random numbers
    let other = fold_scores(
        &mut db,
        &format!("'t', 'linear', 'target', '{{x}}', scoring => 'loss', {}", NOTHING.replace("11", "12")),
    );
    assert!(expected.iter().zip(&other).all(|(a, b)| (a / b - 1.0).abs() > 1e-4), "{expected:?} {other:?}");
    for strategy in &STRATEGIES[1..] {
        let found = losses(&mut db, strategy);
        for (a, b) in expected.iter().zip(&found) {
            assert!((a / b - 1.0).abs() < 1e-5, "{strategy}: {expected:?} {found:?}");
        }
    }
}

#[test]
fn folds_of_partitions_are_the_same_with_every_strategy() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "CREATE TABLE parted (LIKE t) PARTITION BY LIST (site);
         CREATE TABLE parted_low PARTITION OF parted FOR VALUES IN (0, 1, 2, 3);
         CREATE TABLE parted_high PARTITION OF parted DEFAULT;
         INSERT INTO parted SELECT * FROM t",
    );
    let mut found = Vec::new();
    for strategy in ["corgipile", "shuffle_once"] {
        let more = format!("scoring => 'loss', {NOTHING}, shuffle => '{strategy}'");
        found.push(fold_scores(&mut db, &format!("'parted', 'linear', 'target', '{{x}}', {more}")));
    }
    assert!(found[0].iter().zip(&found[1]).all(|(a, b)| (a / b - 1.0).abs() < 1e-5), "{found:?}");
}

#[test]
fn folds_are_stratified_by_label_unless_the_call_says_otherwise() {
    let mut db = Database::new();
    table(&mut db);
    // 2700 of 9000 rows are positive, 540 of 1800 in each fold
    let source = "SELECT positive, animal, 0::real AS nothing FROM t";
    let shares = |db: &mut Session, more: &str| {
        fold_scores(db, &format!("'{source}', label => 'positive', features => '{{nothing}}', {NOTHING}{more}"))
    };
    for share in shares(&mut db, "") {
        assert!((share - 0.7).abs() < 1e-9 || (share - 0.3).abs() < 1e-9, "{share}");
    }
    let plain = shares(&mut db, ", stratify => false");
    assert!(plain.iter().any(|share| (share - 0.7).abs() > 1e-3 && (share - 0.3).abs() > 1e-3), "{plain:?}");
    // three classes of 3000 rows
    let classes =
        fold_scores(&mut db, &format!("'{source}', 'softmax', 'animal', '{{nothing}}', {NOTHING}, folds => 6"));
    assert!(classes.iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-9), "{classes:?}");
}

#[test]
fn rows_of_a_group_are_in_one_fold() {
    let mut db = Database::new();
    table(&mut db);
    // ten sites of 900 rows; two in each of five folds, so that one fold has all of site 3, and half of it is that
    let source = "SELECT site = 3 AS positive, site, x FROM t";
    for strategy in STRATEGIES {
        let arguments = format!("'{source}', label => 'positive', features => '{{x}}', folds_by => 'site', {NOTHING}");
        let mut found = fold_scores(&mut db, &format!("{arguments}, shuffle => '{strategy}'"));
        found.sort_by(f64::total_cmp);
        let expected = if found[0] == 0.5 { [0.5, 1.0, 1.0, 1.0, 1.0] } else { [0.0, 0.0, 0.0, 0.0, 0.5] };
        assert_eq!(found, expected, "{strategy}");
    }
}

#[test]
fn folds_by_time_are_judged_by_what_comes_after_what_they_have_learned_from() {
    let mut db = Database::new();
    table(&mut db);
    for time in ["id", "day"] {
        // four stretches of 2250 rows: the first three folds have no positive row to learn from but in the third, and
        // none to be judged by but in the third
        let source = "SELECT id, day, x, id > 6750 AS positive FROM t";
        let more = format!("features => '{{x}}', folds => 3, folds_by_time => '{time}', seed => 3, max_epochs => 2");
        let found = fold_scores(
            &mut db,
            &format!("'{source}', label => 'positive', {more}, grid => '{{\"learning_rate\": [0.1]}}'"),
        );
        assert!(found[0] > 0.99 && found[1] > 0.98 && found[2] < 0.05, "{time}: {found:?}");
    }
}

#[test]
fn the_model_is_the_one_that_the_best_point_makes_of_all_rows() {
    let mut db = Database::new();
    table(&mut db);
    for (model, label, features, more, grid) in [
        ("logistic", "positive", "{x}", "", r#"[{"l2": 1.0}, {"l2": 0.0001}]"#),
        (
            "logistic",
            "positive",
            "{x}",
            ", shuffle => 'epoch_shuffle'",
            r#"[{"batch_size": 8, "l2": 2}, {"l2": 0.001, "batch_size": 8}]"#,
        ),
        ("linear", "target", "{x}", ", validation_fraction => 0.3", r#"[{"l2": 0.0001}, {"l2": 0.5}]"#),
        ("softmax", "animal", "{x}", ", shuffle => 'sliding'", r#"[{"l2": 0.001}, {"l2": 1.5}]"#),
        ("mlp", "animal", "{x}", ", folds_by => 'site'", r#"[{"hidden_layer_sizes": [4], "l2": 0.0001}]"#),
        ("logistic", "positive", "{k,v}", ", folds_by_time => 'day'", r#"[{"l2": 0.0001}, {"l2": 0.9}]"#),
    ] {
        let more = more.replace(", shuffle => 'sliding'", ", buffer_size => '20%'");
        let call = format!("'t', '{model}', '{label}', '{features}', max_epochs => 3, seed => 5{more}");
        let rows = ranked(
            &mut db,
            &format!("{call}, grid => '{grid}', name => 'best', folds => 3")
                .replace(", folds => 3", if more.contains("fraction") { "" } else { ", folds => 3" }),
        );
        let point: serde_json::Value = rows[0].get("grid_point");
        let id: i64 = rows[0].get("model_id");
        assert!(rows[1..].iter().all(|row| row.get::<_, Option<i64>>("model_id").is_none()));
        let alone = call.split(", folds_by").next().unwrap().replace(", validation_fraction => 0.3", "");
        let alone = db.trained(&format!("{alone}, options => '{point}'"));
        assert_eq!(db.model(id).bits(), alone.bits(), "{call}: {point}");
        let named: i64 = db.value("SELECT max(model_id) FROM corgipile.models WHERE name = 'best'");
        assert_eq!(named, id);
    }
}

#[test]
fn scores_are_those_of_rows_that_were_not_learned_from() {
    let mut db = Database::new();
    table(&mut db);
    for (model, label, features, options) in [
        ("logistic", "positive", "{x}", "{}"),
        ("svm", "positive", "{x}", r#"{"batch_size": 16}"#),
        ("linear", "target", "{x}", "{}"),
        ("softmax", "animal", "{x}", "{}"),
        ("mlp", "animal", "{x}", "{}"),
        ("logistic", "positive", "{k,v}", "{}"),
        ("logistic", "positive", "{x}", r#"{"solver": "newton"}"#),
    ] {
        let call =
            format!("'t', '{model}', '{label}', '{features}', max_epochs => 4, seed => 5, validation_fraction => 0.25");
        let grid = r#"grid => '{"l2": [0, 0.01, 0.5]}'"#;
        let found = ranked(&mut db, &format!("{call}, options => '{options}', {grid}"));
        for row in found {
            let point: serde_json::Value = row.get("grid_point");
            let mut options: serde_json::Value = serde_json::from_str(options).unwrap();
            options["l2"] = point["l2"].clone();
            let expected: (f64, f64) = {
                let sql = format!(
                    "SELECT validation_score, validation_loss FROM corgipile_train({call}, options => '{options}') ORDER BY epoch DESC LIMIT 1"
                );
                let row = &db.rows(&sql, &[])[0];
                (row.get(0), row.get(1))
            };
            let (score, loss): (f64, f64) = (row.get("mean_test_score"), row.get("mean_test_loss"));
            // the rows are the same, the order of those that are learned from is another one
            assert!((score - expected.0).abs() < 0.02, "{model} {point}: {score} {expected:?}");
            assert!((loss / expected.1 - 1.0).abs() < 0.05, "{model} {point}: {loss} {expected:?}");
        }
    }
}

#[test]
fn points_are_ranked_by_the_mean_over_the_folds() {
    let mut db = Database::new();
    table(&mut db);
    for score in ["accuracy", "loss"] {
        db.run(&format!(
            "DROP TABLE IF EXISTS found; CREATE TABLE found AS
             SELECT * FROM corgipile_search('t', label => 'positive', features => '{{x}}', trials => 8, folds => 4, seed => 2,
                                            scoring => '{score}', max_epochs => 2)"
        ));
        let sign = if score == "loss" { "" } else { "-" };
        let wrong: i64 = db.value(&format!(
            "SELECT count(*) FROM (
               SELECT found.*, f.*, row_number() OVER (ORDER BY {sign}f.mean, found.mean_test_loss) AS place
                 FROM found, LATERAL (SELECT avg(s) AS mean, stddev_samp(s) AS deviation, count(*) AS folds
                                        FROM unnest(fold_scores) s) f) AS checked
              WHERE abs(mean_test_score - mean) > 1e-12 OR abs(std_test_score - deviation) > 1e-12 OR folds <> 4 OR rank <> place
                 OR epochs <> 2 OR (model_id IS NULL) = (rank = 1)"
        ));
        assert_eq!((wrong, db.value::<i64>("SELECT count(*) FROM found")), (0, 8));
    }
}

#[test]
fn random_trials_are_drawn_by_the_seed_and_begin_with_the_defaults() {
    let mut db = Database::new();
    table(&mut db);
    let call = |more: &str| {
        format!("'t', label => 'positive', features => '{{x}}', folds => 2, max_epochs => 1, standardize => true{more}")
    };
    let points = |db: &mut Session, more: &str| {
        let sql = format!("SELECT grid_point::text FROM corgipile_search({}) ORDER BY 1", call(more));
        db.column::<String>(&sql)
    };
    let drawn = points(&mut db, ", seed => 1, trials => 30");
    assert_eq!(drawn, points(&mut db, ", seed => 1, trials => 30, shuffle => 'no_shuffle'"));
    assert_ne!(drawn, points(&mut db, ", seed => 2, trials => 30"));
    // the features are standardized: the mean of |x|² is 3, the rate of a call without one 1 / 4
    let is_default = |point: &&String| **point == r#"{"l2": 0.0, "learning_rate": 0.25}"#;
    assert_eq!((drawn.len(), drawn.iter().filter(is_default).count()), (30, 1), "{drawn:?}");
    assert_eq!(points(&mut db, ", seed => 1").len(), 20);
    let given = points(&mut db, ", seed => 1, trials => 3, l2 => 0.1");
    assert!(given.iter().all(|point| !point.contains("l2")), "{given:?}");
    let ranges = r#"{"l2": {"min": 1e-6, "max": 1e-3}, "batch_size": {"min": 2, "max": 64}, "decay": {"min": 0.5, "max": 0.9, "scale": "linear"}, "optimizer": ["sgd", "momentum"]}"#;
    for point in points(&mut db, &format!(", seed => 4, trials => 40, grid => '{ranges}'")) {
        let point: serde_json::Value = serde_json::from_str(&point).unwrap();
        let number = |key: &str| point[key].as_f64().unwrap();
        assert!((1e-6..=1e-3).contains(&number("l2")) && (0.5..=0.9).contains(&number("decay")), "{point}");
        assert!((2.0..=64.0).contains(&number("batch_size")) && number("batch_size").fract() == 0.0, "{point}");
    }
}

#[test]
fn the_rows_held_out_decide_how_many_epochs_are_worth_it() {
    let mut db = Database::new();
    table(&mut db);
    for more in ["patience => 2", "options => '{\"keep\": \"best\"}'"] {
        let call =
            format!("'t', label => 'positive', features => '{{x}}', seed => 3, trials => 2, max_epochs => 30, {more}");
        let rows = ranked(&mut db, &call);
        let (epochs, id): (i32, i64) = (rows[0].get("epochs"), rows[0].get("model_id"));
        assert!(epochs < 30 || more.contains("best"), "{more}: {epochs}");
        let trained: i32 =
            db.rows("SELECT max(epoch) FROM corgipile.training_history WHERE model_id = $1", &[&id])[0].get(0);
        assert_eq!(trained, epochs, "{more}");
    }
}

#[test]
fn a_search_is_a_node_of_the_plan_and_a_function() {
    let mut db = Database::new();
    table(&mut db);
    let call = "corgipile_search('t', label => 'positive', features => '{x}', seed => 3, trials => 2, max_epochs => 2)";
    let plan = db.lines(&format!("EXPLAIN (COSTS OFF) SELECT * FROM {call}")).join("\n");
    for line in ["Custom Scan (CorgiPileSearch)", "Folds: 5 stratified by label", "Points: 2", "Score: accuracy"] {
        assert!(plan.contains(line), "{plan}");
    }
    assert_eq!(db.models(), 0);
    let plan =
        db.lines(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM {call}")).join("\n");
    assert!(plan.contains("Best Point: ") && plan.contains("Best Score: "), "{plan}");
    // an epoch is one pass over the rows, and so is judging; two epochs more for the best, and the pass before all
    assert!(plan.contains("loops=6") || plan.contains("Epochs: 6"), "{plan}");
    let node: String = db.value(&format!(
        "SELECT string_agg(f::text, ' ' ORDER BY rank) FROM (SELECT rank, grid_point, fold_scores FROM {call}) f"
    ));
    let function: String = db.value(&format!(
        "SELECT string_agg(f::text, ' ' ORDER BY rank) FROM (SELECT (s).rank, (s).grid_point, (s).fold_scores FROM (SELECT {call} AS s OFFSET 0) s) f"
    ));
    assert_eq!(node, function);
}

#[test]
fn a_search_needs_the_privileges_of_a_training() {
    let mut db = Database::with_small_table(200);
    let user = db.role("user");
    let mut session = db.session_as(&user);
    let call =
        "SELECT * FROM corgipile_search('t', features => '{a,b}', trials => 2, max_epochs => 1, folds => 2, seed => 1";
    session.rejects(&format!("{call})"), "42501").says(&["t"]);
    db.run(&format!("GRANT SELECT (label, a, b) ON t TO {user}"));
    for strategy in ["corgipile", "shuffle_once"] {
        assert_eq!(session.lines(&format!("{call}, shuffle => '{strategy}', name => 'own')")).len(), 2);
    }
    session.rejects(&format!("{call}, folds_by => 'id')"), "42501");
    let owners: i64 = db.value(&format!("SELECT count(*) FROM corgipile.models WHERE owner = '{user}'"));
    assert_eq!(owners, 2);
}

#[test]
fn compressed_tables_are_searched_by_mini_batches() {
    let mut db = Database::new();
    table(&mut db);
    db.run("SELECT * FROM corgipile_compress('t', 'c', label => 'positive', features => '{x}', batch_rows => 50, seed => 1)");
    let rows =
        ranked(&mut db, "'c', label => 'positive', seed => 3, trials => 3, max_epochs => 3, learning_rate => 0.1");
    let score: f64 = rows[0].get("mean_test_score");
    assert!(score > 0.72, "{score}");
}

#[test]
fn rows_that_are_left_out_are_told_once_whether_the_best_point_reads_the_cache_or_not() {
    let mut db = Database::new();
    table(&mut db);
    db.run("UPDATE t SET x = NULL WHERE id % 900 = 1");
    for more in ["", ", options => '{\"cache\": \"off\"}'", ", workers => 2, trials => 20"] {
        let search = format!(
            "SELECT FROM corgipile_search('t', label => 'positive', features => '{{x}}', max_epochs => 2, seed => 1{more})"
        );
        let told = db.notices(&[&search]);
        let left_out = told.lines().filter(|line| line.contains("left out")).collect::<Vec<_>>();
        assert_eq!(
            left_out,
            ["NOTICE:  10 of 9000 rows (0.1%) are left out because they have NULLs"],
            "{more}: {told}"
        );
    }
}

#[test]
fn points_are_ranked_by_their_loss_where_labels_of_a_fold_are_all_the_same() {
    let mut db = Database::new();
    db.run("CREATE TABLE few AS SELECT i::real AS a, 2 * i AS y FROM generate_series(1, 20) i");
    let call = "'few', 'linear', label => 'y', features => '{a}', folds => 20, seed => 1,
                grid => '{\"learning_rate\": [1e-30, 0.1]}', max_epochs => 20";
    let rows = ranked(&mut db, call);
    let scores: Vec<Vec<Option<f64>>> = rows.iter().map(|row| row.get("fold_scores")).collect();
    assert!(scores.iter().flatten().all(Option::is_none), "{scores:?}");
    let losses: Vec<f64> = rows.iter().map(|row| row.get("mean_test_loss")).collect();
    assert!(losses[0] < losses[1] / 10.0, "{losses:?}");
    let best: serde_json::Value = rows[0].get("grid_point");
    assert_eq!(best["learning_rate"], 0.1);
}

#[test]
fn a_solver_without_rates_has_none_drawn() {
    let mut db = Database::new();
    table(&mut db);
    let points: Vec<serde_json::Value> = db.column(
        "SELECT grid_point FROM corgipile_search('t', label => 'positive', features => '{x}', trials => 3, folds => 2,
                                                 seed => 1, options => '{\"solver\": \"newton\"}')",
    );
    assert!(points.len() == 3 && points.iter().all(|point| point.get("learning_rate").is_none()), "{points:?}");
}
