//! SVMs of more than two classes: one for each class against the others, in one pass.

use corgipile_tests::{Database, Session};

/// Four species around four corners, sorted by species; one of them is rare.
fn species(db: &mut Session) {
    db.run(
        "CREATE TABLE species AS
         SELECT i AS id, name, (name = 'emu')::int AS flag, ARRAY[a, b] AS x, ARRAY[1, 2] AS k, a, b, i % 5 = 0 AS test, i % 2 AS part
           FROM (SELECT i, (ARRAY['cat', 'dog', 'emu', 'fox'])[1 + k] AS name,
                        (CASE WHEN k IN (0, 1) THEN 3 ELSE -3 END + normal(i, 2))::real AS a,
                        (CASE WHEN k IN (0, 2) THEN 3 ELSE -3 END + normal(i, 3))::real AS b
                   FROM (SELECT i, (ARRAY[0, 0, 0, 1, 1, 1, 2, 2, 2, 3])[1 + i % 10] AS k FROM generate_series(1, 3000) i) AS r) AS u
          ORDER BY name",
    );
}

#[test]
fn an_svm_tells_more_than_two_classes_apart_however_its_features_come() {
    let mut db = Database::new();
    species(&mut db);
    for call in [
        "'{a,b}'",
        "'{x}'",
        "'{k,x}'",
        "'{a,b}', batch_size => 16",
        "'{a,b}', workers => 2",
        "'{a,b}', options => '{\"class_weight\": \"balanced\"}'",
        "'{a,b}', validation_fraction => 0.2, options => '{\"keep\": \"best\"}'",
        "'{a,b}', optimizer => 'adam'",
    ] {
        let id = db.train(&format!("'species', 'svm', 'name', seed => 1, features => {call}"))[0].model_id;
        let kind = format!("SELECT model, classes FROM corgipile.models WHERE model_id = {id}");
        assert_eq!(db.line(&kind), "svm_one_vs_rest|{cat,dog,emu,fox}", "{call}");
        let found = db.evaluate(id, "species");
        assert!(found.accuracy > 0.98, "{call}: {found:?}");
        let right: f64 =
            db.value(&format!("SELECT avg((corgipile_predict_label({id}, t) = name)::int)::float8 FROM species AS t"));
        assert!((right - found.accuracy).abs() < 1e-9, "{call}: {right}");
    }
}

#[test]
fn each_class_has_its_figures_and_there_are_no_probabilities() {
    let mut db = Database::new();
    species(&mut db);
    let id = db.train("'species', 'svm', 'name', '{a,b}', seed => 1")[0].model_id;
    let metrics = db.lines(&format!("SELECT metric FROM corgipile_evaluate({id}, 'species')"));
    for metric in ["accuracy", "loss", "roc_auc", "f1[emu]", "roc_auc[fox]", "confusion[cat,fox]"] {
        assert!(metrics.iter().any(|found| found == metric), "{metric}: {metrics:?}");
    }
    assert!(!metrics.iter().any(|found| found == "log_loss"), "{metrics:?}");
    // the area of a class by the definition, from decisions that an import as a regression gives
    let loss: f64 = db.value(&format!("SELECT value FROM corgipile_evaluate({id}, 'species') WHERE metric = 'loss'"));
    assert!(loss < 0.3, "{loss}");
    let failure =
        db.attempt(&format!("SELECT corgipile_predict_proba({id}, ARRAY[1, 2])")).expect_err("no probabilities");
    assert_eq!(failure.code, "0A000", "{failure:?}");
}

#[test]
fn coefficients_are_those_of_each_class_under_its_name() {
    let mut db = Database::new();
    species(&mut db);
    for (loss, kind) in [("hinge", "svm_one_vs_rest"), ("squared_hinge", "squared_hinge_one_vs_rest")] {
        let options = format!("options => '{{\"loss\": \"{loss}\"}}', name => '{loss}'");
        db.train(&format!("'species', 'svm', 'name', '{{a,b}}', seed => 1, {options}"));
        // class after class, as the weights are stored: two features of each
        let wrong = format!(
            "SELECT m.model, count(*), cardinality(m.classes) * 3,
                    count(*) FILTER (WHERE c.class = m.classes[c.class_number]
                                       AND c.standardized_coefficient = CASE c.feature_number WHEN 0 THEN m.intercepts[c.class_number]
                                                                        ELSE m.weights[(c.class_number - 1) * 2 + c.feature_number] END)
               FROM corgipile.models m JOIN corgipile.all_coefficients c USING (model_id) WHERE m.name = '{loss}'
              GROUP BY m.model, m.classes"
        );
        assert_eq!(db.line(&wrong), format!("{kind}|12|12|12"));
        let shown = format!("SELECT DISTINCT class FROM corgipile.coefficients WHERE name = '{loss}' ORDER BY class");
        assert_eq!(db.lines(&shown), ["cat", "dog", "emu", "fox"]);
    }
    // a model of one decision has no class to name
    db.train("'species', 'svm', 'flag', '{a,b}', seed => 1, name => 'two'");
    assert_eq!(db.line("SELECT count(*), count(class) FROM corgipile.coefficients WHERE name = 'two'"), "3|0");
}

#[test]
fn of_two_classes_an_svm_is_what_it_was() {
    let mut db = Database::new();
    species(&mut db);
    let id = db.train("'species', 'svm', 'flag', '{a,b}', seed => 1")[0].model_id;
    assert_eq!(db.line(&format!("SELECT model, classes FROM corgipile.models WHERE model_id = {id}")), "svm|{0,1}");
    // each output is the SVM of its class against the rest, to the sequence of the same rows
    let all = db.trained("'species', 'svm', 'name', '{a,b}', seed => 1, max_epochs => 20");
    let one = db.trained("'species', 'svm', 'flag', '{a,b}', seed => 1, max_epochs => 20");
    for j in 0..2 {
        let (of_all, alone) = (all.weights[2 * 2 + j], one.weights[j]);
        assert!((of_all - alone).abs() < 1e-3 * alone.abs().max(1.0), "{of_all} {alone}");
    }
}

#[test]
fn models_of_groups_and_grids_travel_and_go_on() {
    let mut db = Database::new();
    species(&mut db);
    let rows = db.train("'species', 'svm', 'name', '{a,b}', seed => 1, max_epochs => 3, group_by => 'part', grid => '{\"l2\": [0, 0.001]}'");
    assert_eq!(rows.iter().filter(|row| row.epoch == 3).count(), 4);
    let id = rows[0].model_id;
    let copy: i64 = db.value(&format!("SELECT corgipile_import(corgipile_export({id}), 'copy')"));
    let same: bool = db.value(&format!(
        "SELECT bool_and(corgipile_predict_label({id}, t) = corgipile_predict_label({copy}, t)) FROM species AS t"
    ));
    assert!(same);
    let first = db.train("'species', 'svm', 'name', '{a,b}', seed => 1, max_epochs => 3")[0].model_id;
    let more = db.train(&format!("'species', label => 'name', seed => 1, warm_start => '{first}', max_epochs => 2"));
    assert_eq!(more.last().expect("epochs").epoch, 5);
}

#[test]
fn the_squared_hinge_is_an_svm_of_two_classes_and_of_more_wherever_a_loss_is() {
    let mut db = Database::new();
    species(&mut db);
    let loss = "options => '{\"loss\": \"squared_hinge\"}'";
    for call in [
        "'{a,b}'",
        "'{x}'",
        "'{k,x}'",
        "'{a,b}', batch_size => 16",
        "'{a,b}', workers => 2",
        "'{a,b}', class_weight => 'balanced', validation_fraction => 0.2",
        "'{a,b}', optimizer => 'adam'",
        "'{a,b}', optimizer => 'momentum', l1 => 1e-6, l2 => 1e-6",
    ] {
        for (label, kind) in [("flag", "squared_hinge"), ("name", "squared_hinge_one_vs_rest")] {
            let id =
                db.train(&format!("'species', 'svm', '{label}', seed => 1, {loss}, features => {call}"))[0].model_id;
            let says = format!("SELECT model, hyperparameters->>'loss' FROM corgipile.models WHERE model_id = {id}");
            assert_eq!(db.line(&says), format!("{kind}|squared_hinge"), "{call}");
            let found = db.evaluate(id, "species");
            assert!(found.accuracy > 0.97, "{call} {label}: {found:?}");
        }
    }
    // the loss by its definition, of decisions that an import as a regression gives
    let id = db.train(&format!("'species', 'svm', 'flag', '{{a,b}}', seed => 1, name => 'two', {loss}"))[0].model_id;
    let told: f64 = db.value(&format!("SELECT value FROM corgipile_evaluate({id}, 'species') WHERE metric = 'loss'"));
    let counted: f64 = db.value(&format!(
        "WITH d AS (SELECT m - 'classes' || '{{\"model\": \"linear\", \"label_type\": \"pg_catalog.float8\"}}'
                           #- '{{hyperparameters,loss}}' AS m FROM corgipile_export({id}) AS m)
         SELECT avg(greatest(0, 1 - (2 * flag - 1) * corgipile_predict((SELECT m FROM d), t)) ^ 2) FROM species AS t"
    ));
    assert!((told - counted).abs() < 1e-6 * (1.0 + counted), "{told} {counted}");
    // grids, groups, warm starts, searches and the rest ask the model
    let rows = db.train(&format!(
        "'species', 'svm', 'name', '{{a,b}}', seed => 1, max_epochs => 3, group_by => 'part', grid => '{{\"l2\": [0, 0.01]}}', {loss}"
    ));
    assert_eq!(rows.len(), 12);
    let half = db.train(&format!(
        "'species', 'svm', 'name', '{{a,b}}', seed => 1, learning_rate => 0.01, max_epochs => 2, {loss}"
    ))[0]
        .model_id;
    let gone_on = db.train(&format!("'species', 'svm', warm_start => '{half}', max_epochs => 2"))[0].model_id;
    let whole = db.train(&format!(
        "'species', 'svm', 'name', '{{a,b}}', seed => 1, learning_rate => 0.01, max_epochs => 4, {loss}"
    ))[0]
        .model_id;
    let of = |id| format!("SELECT weights, intercepts FROM corgipile.models WHERE model_id = {id}");
    assert_eq!(db.line(&of(gone_on)), db.line(&of(whole)));
    let best: f64 = db.value(&format!(
        "SELECT mean_test_score FROM corgipile_search('species', 'svm', 'name', '{{a,b}}', trials => 2, folds => 3, max_epochs => 3, seed => 1, {loss}) LIMIT 1"
    ));
    assert!(best > 0.95, "{best}");
    let importance: f64 =
        db.value(&format!("SELECT min(importance) FROM corgipile_importance({whole}, 'species', seed => 1)"));
    assert!(importance > 0.2, "{importance}");
    assert_eq!(db.line("SELECT count(DISTINCT feature) FROM corgipile_drift('two', 'species')"), "2");
    let expression: String = db.value(&format!("SELECT corgipile_export({whole}, 'sql', 'label')"));
    let right: f64 = db.value(&format!(
        "SELECT avg((label = corgipile_predict_label({whole}, t))::int)::float8 FROM species AS t, LATERAL (SELECT {expression} AS label) AS l"
    ));
    assert_eq!(right, 1.0);
    assert_eq!(db.line(&format!("SELECT length(corgipile_export_onnx({whole})) > 500")), "t");
    let uda = "SELECT model_id FROM corgipile_train_uda('species', 'squared_hinge', 'flag', '{x}', learning_rate => 0.01, max_epochs => 5,
                   shuffle => 'shuffle_once') LIMIT 1";
    let id: i64 = db.value(uda);
    let found = db.evaluate(id, "species");
    assert!(found.accuracy > 0.95, "{found:?}");
    db.run(&format!("SELECT FROM corgipile_calibrate({whole}, 'SELECT * FROM species WHERE id % 7 = 0')"));
    let sets: f64 = db
        .value(&format!("SELECT avg((name = ANY (corgipile_predict_set({whole}, t)))::int)::float8 FROM species AS t"));
    assert!(sets > 0.87, "{sets}");
}

#[test]
fn an_svm_tells_many_classes_apart_where_nothing_else_asks_for_a_first_pass() {
    let mut db = Database::new();
    species(&mut db);
    db.run(
        "ALTER TABLE species ALTER a SET NOT NULL, ALTER b SET NOT NULL, ALTER name SET NOT NULL;
         SELECT corgipile_compress('species', 'packed', 'name', '{a,b}', batch_rows => 50, seed => 1)",
    );
    for call in [
        "'species', 'svm', 'name', features => '{a,b}', learning_rate => 0.05, standardize => false",
        "'species', 'svm', 'name', features => '{a,b}', learning_rate => 0.05, standardize => false, nulls => 'skip'",
        "'species', 'svm', 'name', features => '{x}', learning_rate => 0.05, standardize => false, nulls => 'error'",
        "'species', 'squared_hinge', 'name', features => '{a,b}', learning_rate => 0.01, standardize => false, nulls => 'skip'",
        "'species', 'svm', 'name', features => '{k,x}', learning_rate => 0.05, standardize => false",
        "'packed', 'svm', 'name', learning_rate => 0.05",
    ] {
        let id = db.train(&format!("{call}, seed => 1, max_epochs => 5"))[0].model_id;
        assert_eq!(
            db.line(&format!("SELECT classes FROM corgipile.models WHERE model_id = {id}")),
            "{cat,dog,emu,fox}",
            "{call}"
        );
        let source = if call.contains("packed") { "packed" } else { "species" };
        let found = db.evaluate(id, source);
        assert!(found.accuracy > 0.95, "{call}: {found:?}");
    }
}
