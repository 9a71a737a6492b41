//! Probabilities of SVMs: Platt's sigmoids, recomputed from decisions on the rows that were held out.

use corgipile_tests::{Database, Session};

/// Two classes and three, that overlap, sorted by class. A third of the rows counts four times, and a fifth is to be
/// held out where a column says so.
fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, (k > 0)::int AS label, (k = 0)::int AS opposite, (ARRAY['ant', 'bee', 'cat'])[1 + k] AS animal, ARRAY[a, b] AS x,
                ARRAY[1, 2] AS k, a, b, i % 5 = 0 AS held, CASE WHEN i % 3 = 0 THEN 4 ELSE 1 END AS w, i % 2 AS part
           FROM (SELECT i, i % 3 AS k, (i % 3 + 1.1 * normal(i, 2))::real AS a, ((i % 3 = 1)::int * 2 + normal(i, 3))::real AS b
                   FROM generate_series(1, 6000) i) AS u
          ORDER BY k, i",
    );
}

/// The decisions of a model, as a document that says it is a regression gives them: one column for each output.
fn decisions(db: &mut Session, model: &str, outputs: usize) -> String {
    (0..outputs)
        .map(|k| {
            db.run(&format!(
                "CREATE TEMP TABLE {model}_{k} AS
                 SELECT m - 'classes' - 'sigmoid_slopes' - 'sigmoid_offsets' - 'name' - 'hyperparameters' || jsonb_build_object(
                            'model', 'linear', 'weights', to_jsonb(s.weights[{k} * n + 1:({k} + 1) * n]),
                            'intercepts', to_jsonb(s.intercepts[{k} + 1:{k} + 1])) AS m
                   FROM corgipile_export('{model}') AS m, corgipile.models AS s,
                        LATERAL (SELECT cardinality(s.weights) / cardinality(s.intercepts) AS n) AS n
                  WHERE s.name = '{model}'"
            ));
            format!("corgipile_predict((SELECT m FROM {model}_{k}), t)")
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// The weight of a row, in units of the mean of those that models learn from.
const MEAN_1: &str = "w / (SELECT avg(w) FROM t WHERE NOT held)";

/// How far the derivatives of the cross entropy by slope and offset are from 0, per row: output by output.
fn gradients(db: &mut Session, model: &str, classes: &[&str], label: &str, weight: &str, held: &str) -> Vec<f64> {
    let outputs = if classes.len() == 2 { 1 } else { classes.len() };
    let decisions = decisions(db, model, outputs);
    let mut found = Vec::new();
    for k in 0..outputs {
        let class = if outputs == 1 { classes[1] } else { classes[k] };
        let rows = db.rows(
            &format!(
                "WITH r AS (SELECT (ARRAY[{decisions}])[{k} + 1] AS f, ({label}::text = '{class}') AS y, {weight}::float8 AS w
                              FROM t WHERE {held}),
                      n AS (SELECT sum(w) FILTER (WHERE y) AS own, sum(w) FILTER (WHERE NOT y) AS others FROM r),
                      p AS (SELECT f, w, CASE WHEN y THEN (own + 1) / (own + 2) ELSE 1 / (others + 2) END AS target,
                                   1 / (1 + exp(m.sigmoid_slopes[{k} + 1] * f + m.sigmoid_offsets[{k} + 1])) AS p
                              FROM r, n, corgipile.models AS m WHERE m.name = '{model}')
                 SELECT sum(w * (target - p) * f) / sum(w), sum(w * (target - p)) / sum(w) FROM p"
            ),
            &[],
        );
        found.extend([rows[0].get::<_, f64>(0).abs(), rows[0].get::<_, f64>(1).abs()]);
    }
    found
}

#[test]
fn sigmoids_are_of_the_least_cross_entropy_on_the_rows_held_out_however_features_come() {
    let mut db = Database::new();
    table(&mut db);
    // of the opposite of a label, the class that is seen first is the positive one
    for (i, (label, features, options, weight)) in [
        ("label", "a,b", "", "1"),
        ("opposite", "x", "", "1"),
        ("label", "x", r#", "weight": "w""#, MEAN_1),
        ("label", "k,x", r#", "class_weight": "balanced""#, "1"),
        ("animal", "a,b", r#", "weight": "w", "class_weight": {"bee": 3}"#, MEAN_1),
        ("animal", "x", r#", "keep": "best", "patience": 2"#, "1"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("m{i}");
        db.run(&format!(
            "SELECT FROM corgipile_train('t', 'svm', '{label}', '{{{features}}}', seed => 1, max_epochs => 5, name => '{name}',
                 options => '{{\"probability\": true, \"validation_column\": \"held\"{options}}}')"
        ));
        let classes: &[&str] = if label == "animal" { &["ant", "bee", "cat"] } else { &["0", "1"] };
        let found = gradients(&mut db, &name, classes, label, weight, "held");
        // decisions of SQL are those of the model to the last bit of real
        assert!(found.iter().all(|g| *g < 1e-5), "{features} {options}: {found:?}");
        let sum: f64 = db.value(&format!(
            "SELECT max(abs((SELECT sum(p) FROM unnest(corgipile_predict_proba('{name}', t)) AS p) - 1)) FROM t"
        ));
        assert!(sum < 1e-12, "{sum}");
        let log_loss = format!("SELECT value FROM corgipile_evaluate('{name}', 't') WHERE metric = 'log_loss'");
        let (told, counted): (f64, f64) = (
            db.value(&log_loss),
            db.value(&format!(
                "SELECT sum(-ln((corgipile_predict_proba('{name}', t))[array_position(m.classes, t.{label}::text)]) * {weight})
                          / sum({weight})
                   FROM t, corgipile.models AS m WHERE m.name = '{name}'"
            )),
        );
        assert!((told - counted).abs() < 1e-9, "{told} {counted}");
        let constant = if classes.len() == 2 { 0.6365 } else { 1.0986 };
        assert!(told < 0.9 * constant, "the probabilities say something: {told}");
    }
}

#[test]
fn without_rows_that_are_named_a_tenth_is_held_out_and_recorded() {
    let mut db = Database::new();
    table(&mut db);
    let train = "SELECT FROM corgipile_train('t', 'svm', 'label', '{a,b}', seed => 1, max_epochs => 3, name => 'm',
                     options => '{\"probability\": true}')";
    let told = db.notices(&[train]);
    assert!(told.contains("0.1 of the rows are held out to fit probabilities"), "{told}");
    let of_first = db.line(
        "SELECT hyperparameters->'probability', hyperparameters->'validation_fraction', history->0->'validation_loss' IS NULL,
                (history->0->>'tuples')::int BETWEEN 5200 AND 5600, sigmoid_slopes[1] < 0
           FROM corgipile.models WHERE name = 'm'",
    );
    assert_eq!(of_first, "true|0.1|f|t|t");
    // the same seed, the same sigmoid
    let sigmoid =
        "SELECT sigmoid_slopes, sigmoid_offsets FROM corgipile.models WHERE name = 'm' ORDER BY version DESC LIMIT 1";
    let first = db.line(sigmoid);
    db.run(train);
    assert_eq!(db.line(sigmoid), first);
    // a training that continues holds the same rows out, by their places
    let more = db.notices(&["SELECT FROM corgipile_train('t', warm_start => 'm', max_epochs => 2, name => 'm')"]);
    assert!(more.contains("held out by their position") && !more.contains("tenth"), "{more}");
    assert_ne!(db.line(sigmoid), first);
    let whole =
        "SELECT FROM corgipile_train('t', 'svm', 'label', '{a,b}', seed => 1, max_epochs => 5, learning_rate => 0.01,
                     name => 'w', options => '{\"probability\": true}')";
    db.run(whole);
    db.run(&whole.replace("max_epochs => 5", "max_epochs => 3").replace("'w'", "'p'"));
    db.run("SELECT FROM corgipile_train('t', warm_start => 'p', max_epochs => 2, name => 'p')");
    let of = |name| {
        format!(
            "SELECT weights, sigmoid_slopes, sigmoid_offsets FROM corgipile.models WHERE name = '{name}' ORDER BY version DESC LIMIT 1"
        )
    };
    assert_eq!(db.line(&of("p")), db.line(&of("w")), "bit for bit what one training gives");
}

#[test]
fn where_few_rows_are_held_out_all_are_decided_for_by_models_that_have_not_learned_from_them() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "CREATE TABLE small AS SELECT * FROM t WHERE id % 16 = 0;
         CREATE TABLE mixed AS SELECT * FROM small UNION ALL SELECT t.* FROM t, generate_series(1, 2) WHERE part = 1;
         CREATE TABLE shuffled AS SELECT label, x FROM small ORDER BY md5(id::text);
         SELECT corgipile_compress('shuffled', 'packed', features => '{x}', batch_rows => 10, seed => 1)",
    );
    let crossed = "few rows are held out: probabilities are fitted to all rows";
    let wanted = r#"{"probability": true}"#;
    for (i, (source, label, features, options)) in [
        ("small", "label", "a,b", wanted),
        ("small", "animal", "x", wanted),
        ("small", "label", "k,x", r#"{"probability": true, "weight": "w"}"#),
        ("small", "opposite", "x", r#"{"probability": true, "keep": "best", "class_weight": "balanced"}"#),
        ("small", "label", "a,b", r#"{"probability": true, "validation_fraction": 0.2, "validation_by": "block"}"#),
        ("packed", "label", "x", wanted),
    ]
    .into_iter()
    .enumerate()
    {
        let given = if source == "packed" {
            String::new()
        } else {
            format!("label => '{label}', features => '{{{features}}}',")
        };
        let train = |name: &str| {
            format!(
                "SELECT FROM corgipile_train('{source}', 'svm', {given} seed => 1, max_epochs => 20, name => '{name}{i}', options => '{options}')"
            )
        };
        let told = db.notices(&[&train("m")]);
        assert!(told.contains(crossed), "{source} {label} {options}: {told}");
        db.run(&train("again"));
        let sigmoid = |name: &str| {
            format!("SELECT weights, sigmoid_slopes, sigmoid_offsets FROM corgipile.models WHERE name = '{name}{i}'")
        };
        assert_eq!(db.line(&sigmoid("m")), db.line(&sigmoid("again")));
        // they are barely those of the model's own decisions for all rows, and by no means those of 40 rows
        let classes: &[&str] = if label == "animal" { &["ant", "bee", "cat"] } else { &["0", "1"] };
        let weight = if options.contains("weight\": \"w") { "w" } else { "1" };
        let label = if source == "packed" { "label" } else { label };
        let found = gradients(&mut db, &format!("m{i}"), classes, label, weight, "id % 16 = 0");
        assert!(found.iter().all(|g| (1e-6..0.02).contains(g)), "{source} {label} {options}: {found:?}");
    }
    // a training that goes on has the sigmoid of one that does not stop
    let train = |name: &str, epochs: u32| {
        format!(
            "SELECT FROM corgipile_train('small', 'svm', 'label', '{{a,b}}', seed => 1, max_epochs => {epochs}, learning_rate => 0.01,
                 name => '{name}', options => '{wanted}')"
        )
    };
    let more = "SELECT FROM corgipile_train('small', warm_start => 'part', max_epochs => 2, name => 'part')";
    let told = db.notices(&[&train("whole", 5), &train("part", 3), more]);
    assert_eq!(told.matches(crossed).count(), 3, "{told}");
    let of = |name| {
        format!(
            "SELECT weights, sigmoid_slopes, sigmoid_offsets FROM corgipile.models WHERE name = '{name}' ORDER BY version DESC LIMIT 1"
        )
    };
    assert_eq!(db.line(&of("part")), db.line(&of("whole")));
    // of groups those that are small, each as by itself
    let told = db.notices(&[
        "SELECT FROM corgipile_train('mixed', 'svm', 'label', '{a,b}', seed => 1, max_epochs => 5, name => 'of', group_by => 'part',
             grid => '{\"l2\": [0, 0.1]}', options => '{\"standardize\": false, \"probability\": true}', learning_rate => 0.01)"
    ]);
    assert!(told.contains("few rows are held out: probabilities of 2 of 4 models are fitted to all rows"), "{told}");
    db.run(
        "SELECT FROM corgipile_train('SELECT * FROM mixed WHERE part = 0', 'svm', 'label', '{a,b}', seed => 1, max_epochs => 5, name => 'alone',
             options => '{\"standardize\": false, \"l2\": 0.1, \"probability\": true}', learning_rate => 0.01)"
    );
    let agree = "SELECT count(*) FROM corgipile.models a, corgipile.models o
                  WHERE a.name = 'alone' AND o.name LIKE 'of%' AND a.weights = o.weights AND a.sigmoid_slopes = o.sigmoid_slopes
                    AND a.sigmoid_offsets = o.sigmoid_offsets";
    assert_eq!(db.line(agree), "1");
    // who says which rows are held out has them alone
    let told = db
        .notices(&["SELECT FROM corgipile_train('small', 'svm', 'label', '{a,b}', seed => 1, max_epochs => 2,
                                 options => '{\"probability\": true, \"validation_column\": \"held\"}')"]);
    assert!(!told.contains("few rows"), "{told}");
}

#[test]
fn a_training_that_goes_on_never_fits_to_rows_that_it_may_have_learned_from() {
    let mut db = Database::new();
    table(&mut db);
    let train = |name: &str, options: &str| {
        format!(
            "SELECT FROM corgipile_train('t', 'svm', 'label', '{{a,b}}', seed => 1, max_epochs => 2, name => '{name}', options => '{options}')"
        )
    };
    db.run(&train("plain", "{}"));
    db.run(&train("share", r#"{"probability": true, "validation_fraction": 0.2}"#));
    db.run(&train("column", r#"{"validation_column": "held"}"#));
    let on = |name: &str, rest: &str| {
        format!("SELECT FROM corgipile_train('t', warm_start => '{name}', max_epochs => 1{rest})")
    };
    for (name, rest) in [
        ("plain", r#", options => '{"probability": true}'"#),
        ("plain", r#", options => '{"probability": true, "validation_column": "held"}'"#),
        ("share", r#", options => '{"validation_fraction": 0.3}'"#),
        ("share", r#", options => '{"validation_fraction": 0.2, "validation_by": "block"}'"#),
        ("share", ", seed => 2"),
        ("column", r#", options => '{"probability": true, "validation_fraction": 0.2}'"#),
    ] {
        let failure = db.fails_with(&on(name, rest), "22023");
        failure.says(&["it may have been trained on rows that are to be held out"]);
    }
    db.run(&on("share", ""));
    db.run(&on("share", r#", options => '{"probability": false}'"#));
    db.run(&on("column", r#", name => 'later', options => '{"probability": true}'"#));
    assert_eq!(
        db.line("SELECT count(*) FROM corgipile.models WHERE name = 'later' AND sigmoid_slopes IS NOT NULL"),
        "1"
    );
}

#[test]
fn groups_grids_and_compressed_tables_have_sigmoids_of_their_own() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "SELECT FROM corgipile_train('t', 'svm', 'label', '{a,b}', seed => 1, max_epochs => 3, name => 'g', group_by => 'part',
             grid => '{\"l2\": [0, 0.1]}', options => '{\"probability\": true, \"validation_column\": \"held\"}')",
    );
    assert_eq!(
        db.line(
            "SELECT count(*), count(DISTINCT sigmoid_slopes), count(DISTINCT sigmoid_offsets) FROM corgipile.models"
        ),
        "4|4|4"
    );
    // those of a group are those of its rows alone
    for (name, part) in [("g/part=0, l2=0.1", 0), ("g/part=1, l2=0", 1)] {
        let known: i64 = db.value(&format!("SELECT count(*) FROM corgipile.models WHERE name = '{name}'"));
        let name = match known {
            1 => name.to_owned(),
            _ => db.value(&format!(
                "SELECT name FROM corgipile.models WHERE hyperparameters->>'group' = '{part}' ORDER BY model_id LIMIT 1"
            )),
        };
        db.run(&format!("UPDATE corgipile.stored_models SET name = 'one{part}' WHERE name = '{name}'"));
        let found =
            gradients(&mut db, &format!("one{part}"), &["0", "1"], "label", "1", &format!("held AND part = {part}"));
        assert!(found.iter().all(|g| *g < 1e-5), "{name}: {found:?}");
    }
    db.run(
        "CREATE TABLE shuffled AS SELECT label, x FROM t ORDER BY md5(id::text);
         SELECT corgipile_compress('shuffled', 'packed', features => '{x}', batch_rows => 50, seed => 1)",
    );
    db.run(
        "SELECT FROM corgipile_train('packed', 'svm', seed => 1, max_epochs => 5, name => 'c',
             options => '{\"probability\": true, \"validation_fraction\": 0.3}')",
    );
    let log_loss: f64 = db.value("SELECT value FROM corgipile_evaluate('c', 'packed') WHERE metric = 'log_loss'");
    assert!(log_loss < 0.55, "{log_loss}");
}

#[test]
fn sigmoids_of_several_processes_are_those_of_one() {
    let mut db = Database::new();
    table(&mut db);
    let sizes = "seed => 1, block_size => '8kB', buffer_size => '50%'";
    for (i, (label, features, options, weight)) in [
        ("label", "a,b", "", "1"),
        ("label", "k,x", r#", "class_weight": "balanced""#, "1"),
        ("animal", "a,b", r#", "weight": "w", "keep": "best", "batch_size": 16"#, MEAN_1),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("m{i}");
        db.run(&format!(
            "SELECT FROM corgipile_train('t', 'svm', '{label}', '{{{features}}}', max_epochs => 5, name => '{name}', {sizes}, workers => 3,
                 options => '{{\"probability\": true, \"validation_column\": \"held\"{options}}}')"
        ));
        let processes = format!("SELECT hyperparameters->>'workers' FROM corgipile.models WHERE name = '{name}'");
        assert_eq!(db.line(&processes), "3");
        let classes: &[&str] = if label == "animal" { &["ant", "bee", "cat"] } else { &["0", "1"] };
        let found = gradients(&mut db, &name, classes, label, weight, "held");
        assert!(found.iter().all(|g| *g < 1e-5), "{features} {options}: {found:?}");
    }
    db.run(&format!(
        "SELECT FROM corgipile_train('t', 'svm', 'label', '{{a,b}}', max_epochs => 3, name => 'g', group_by => 'part', {sizes}, workers => 3,
             options => '{{\"probability\": true, \"validation_column\": \"held\"}}')"
    ));
    for part in [0, 1] {
        db.run(&format!("UPDATE corgipile.stored_models SET name = 'g{part}' WHERE name = 'g/{part}'"));
        let found =
            gradients(&mut db, &format!("g{part}"), &["0", "1"], "label", "1", &format!("held AND part = {part}"));
        assert!(found.iter().all(|g| *g < 1e-5), "{part}: {found:?}");
    }
    // of few rows all are decided for; if a mini-batch has all rows, models are the same but for rounding
    for (source, crossed) in [("t", false), ("SELECT * FROM t WHERE id <= 900", true)] {
        let train = |name: &str, processes: u32| {
            format!(
                "SELECT FROM corgipile_train('{source}', 'svm', 'label', '{{a,b}}', max_epochs => 6, name => '{name}', {sizes}, learning_rate => 0.1,
                     batch_size => 10000, workers => {processes}, options => '{{\"probability\": true, \"validation_fraction\": 0.2}}')"
            )
        };
        db.run(&train("alone", 1));
        let told = db.notices(&[&train("together", 3)]);
        assert_eq!(told.contains("all rows"), crossed, "{told}");
        let most: f64 = db.value(
            "SELECT max(abs((corgipile_predict_proba('alone', t))[1] - (corgipile_predict_proba('together', t))[1])) FROM t",
        );
        assert!(most < 1e-4, "{source}: {most}");
    }
    assert!(db.parallel_workers().is_empty());
}

#[test]
fn too_few_rows_of_a_class_are_told_and_what_cannot_be_is_refused() {
    let mut db = Database::new();
    table(&mut db);
    let few = db.notices(&["SELECT FROM corgipile_train('SELECT * FROM t WHERE id <= 60', 'svm', 'label', '{a,b}', seed => 1, max_epochs => 2,
                                options => '{\"probability\": true, \"validation_column\": \"held\"}')"]);
    assert!(few.contains("too few rows for reliable probabilities: only 4 rows of a class are held out"), "{few}");
    let train = |model: &str, rest: &str| {
        format!("SELECT FROM corgipile_train('t', '{model}', 'label', '{{a,b}}', max_epochs => 1, {rest})")
    };
    let wanted = r#"options => '{"probability": true}'"#;
    db.fails_with(&train("logistic", wanted), "22023").says(&["probability", "applies only to model svm"]);
    db.fails_with(&train("svm", r#"options => '{"probability": 1}'"#), "22023").says(&["true or false"]);
    let search =
        format!("SELECT FROM corgipile_search('t', 'svm', 'label', '{{a,b}}', max_epochs => 1, trials => 2, {wanted})");
    db.fails_with(&search, "22023").says(&["probability", "corgipile_train()"]);
    let uda = "SELECT FROM corgipile_train_uda('t', 'svm', 'label', '{x}', options => '{\"probability\": true}')";
    db.fails_with(uda, "0A000").says(&["probability"]);
}

#[test]
fn where_the_draw_holds_nothing_out_all_rows_are_decided_for() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE few AS SELECT i, (i % 2)::int AS label, i % 2 + i / 20.0 AS a, (i = 3)::int AS one, i / 25 AS part
           FROM generate_series(1, 30) i;
         CREATE TABLE batches AS SELECT label, ARRAY[a] AS x FROM few;
         SELECT corgipile_compress('batches', 'packed', features => '{x}', batch_rows => 15, seed => 1)",
    );
    let train = |source: &str, rest: &str, name: &str| {
        format!(
            "SELECT FROM corgipile_train('{source}', 'svm', {rest} seed => 1, max_epochs => 5, name => '{name}', options => '{{\"probability\": true}}')"
        )
    };
    let crossed = "few rows are held out: probabilities";
    for (source, rest, name) in [
        ("SELECT * FROM few WHERE i <= 8", "label => 'label', features => '{a}',", "rows"),
        ("packed", "", "packed"),
        ("few", "label => 'label', features => '{a}', group_by => 'part',", "groups"),
    ] {
        let told = db.notices(&[&train(source, rest, name)]);
        assert!(told.contains(crossed), "{told}");
    }
    let unfit = "SELECT count(*) FROM corgipile.models WHERE sigmoid_slopes IS NULL OR sigmoid_slopes[1] > 0";
    assert_eq!(db.line(unfit), "0");
    let none = "SELECT count(*) FROM corgipile.training_history WHERE name = 'rows' AND validation_loss IS NULL";
    assert_eq!(db.line(none), "5", "nothing has judged the model");
    db.run("SELECT FROM corgipile_train('SELECT * FROM few WHERE i <= 8', warm_start => 'rows', max_epochs => 1, name => 'rows')");
    // of one row nothing can be learned: the probability is the same for all
    let told = db.notices(&[&train("SELECT * FROM few WHERE i <= 8", "label => 'one', features => '{a}',", "one")]);
    assert!(told.contains("a class has only 1 row") && told.contains("shares of the classes"), "{told}");
    let constant = "SELECT count(DISTINCT corgipile_predict_proba('one', few)), sigmoid_slopes[1]
                      FROM few, corgipile.models m WHERE m.name = 'one' GROUP BY 2";
    assert_eq!(db.line(constant), "1|0");
}

#[test]
fn sigmoids_travel_with_the_model_and_are_checked() {
    let mut db = Database::new();
    table(&mut db);
    for (name, label) in [("two", "label"), ("three", "animal")] {
        db.run(&format!(
            "SELECT FROM corgipile_train('t', 'svm', '{label}', '{{a,b}}', seed => 1, max_epochs => 3, name => '{name}',
                 options => '{{\"probability\": true}}');
             SELECT corgipile_import(m, '{name} again') FROM corgipile_export('{name}') AS m"
        ));
        let differences: f64 = db.value(&format!(
            "SELECT max(abs(p.one - p.other) + abs(p.one - p.value)) FROM t, LATERAL unnest(corgipile_predict_proba('{name}', t),
                 corgipile_predict_proba('{name} again', t),
                 corgipile_predict_proba((SELECT corgipile_export('{name}')), t)) AS p(one, other, value)"
        ));
        assert_eq!(differences, 0.0, "{name}");
        let expression: String = db.value(&format!("SELECT corgipile_export('{name}', 'sql', 'probabilities')"));
        let far: f64 = db.value(&format!(
            "SELECT max(abs(p.one - p.other)) FROM t, LATERAL unnest(corgipile_predict_proba('{name}', t), {expression}) AS p(one, other)"
        ));
        assert!(far < 1e-6, "{name}: {far}");
    }
    for (change, says) in [
        ("m - 'sigmoid_slopes'", "sigmoid_slopes"),
        ("m - 'sigmoid_offsets'", "sigmoid_offsets"),
        ("m || '{\"sigmoid_offsets\": [1]}'", "must have 3"),
        ("m || '{\"sigmoid_offsets\": [1, 2, \"x\"]}'", "sigmoid_offsets"),
        ("m || '{\"model\": \"softmax\"}'", "belongs to SVMs"),
    ] {
        let sql = format!("SELECT corgipile_import({change}, 'bad') FROM corgipile_export('three') AS m");
        db.fails_with(&sql, "22023").says(&[says]);
    }
    db.run("UPDATE corgipile.stored_models SET sigmoid_slopes = '{1}' WHERE name = 'three'");
    db.fails_with("SELECT corgipile_predict('three', t) FROM t", "XX001").says(&["sigmoid_slopes"]);
}
