//! The kind of model that follows from the label where the call names none.

use corgipile_tests::{Database, Session};

fn table(db: &mut Session) {
    db.run(
        "CREATE TYPE size AS ENUM ('small', 'large');
         CREATE TABLE t AS SELECT i, normal(i, 1) AS x, normal(i, 2) AS z, (ARRAY['a', 'b', 'c'])[1 + i / 100] AS species,
                i / 150 = 0 AS flag, CASE WHEN i < 150 THEN 'yes' ELSE 'no' END AS answer, (i / 150)::int AS bit,
                CASE WHEN i < 150 THEN 'small' ELSE 'large' END::size AS size, i * 1.5 AS price, i % 10 AS digit,
                1 + i % 3 AS third, 1000 + i AS many, 3 + i % 5 AS grade, (i % 7) / 2.0 AS half, i % 3 AS site
           FROM generate_series(0, 299) AS i",
    );
}

fn chosen(db: &mut Session, label: &str, more: &str) -> String {
    db.run(&format!("SELECT corgipile_train('t', label => '{label}', features => '{{x,z}}', max_epochs => 1 {more})"));
    db.line("SELECT model FROM corgipile.models ORDER BY model_id DESC LIMIT 1")
}

#[test]
fn the_model_follows_the_label() {
    let mut db = Database::new();
    table(&mut db);
    for (label, model) in [
        ("species", "softmax"),
        ("flag", "logistic"),
        ("answer", "logistic"),
        ("size", "logistic"),
        ("bit", "logistic"),
        ("digit", "softmax"),
        ("third", "softmax"),
        ("price", "linear"),
        ("many", "linear"),
        ("half", "linear"),
    ] {
        assert_eq!(chosen(&mut db, label, ""), model, "{label}");
        assert_eq!(chosen(&mut db, label, ", learning_rate => 0.1"), model, "{label} with a rate");
    }
    for (loss, model) in [("huber", "huber"), ("hinge", "svm"), ("poisson", "poisson")] {
        let label = if loss == "hinge" { "answer" } else { "price" };
        assert_eq!(chosen(&mut db, label, &format!(", options => '{{\"loss\": \"{loss}\"}}'")), model);
    }
    let unclear = "SELECT corgipile_train('t', label => 'grade', features => '{x}')";
    db.fails_with(unclear, "22023").says(&["\"grade\"", "name the model"]).hints(&["'softmax'", "'linear'"]);
    assert_eq!(chosen(&mut db, "digit", ", model => 'auto'"), "softmax");
    assert_eq!(chosen(&mut db, "grade", ", model => 'linear', name => 'grades'"), "linear");
    // a model that is trained further stays of its kind
    assert_eq!(chosen(&mut db, "grade", ", model => 'auto', warm_start => 'grades'"), "linear");
}

#[test]
fn groups_searches_and_warm_starts_choose_alike() {
    let mut db = Database::new();
    table(&mut db);
    let models = "SELECT string_agg(DISTINCT model, ',') FROM corgipile.models";
    chosen(&mut db, "species", ", group_by => 'site', name => 'g'");
    assert_eq!(db.line(models), "softmax");
    db.run(
        "SELECT corgipile_search('t', label => 'price', features => '{x}', trials => 2, max_epochs => 1, name => 's')",
    );
    assert_eq!(db.line(&format!("{models} WHERE name = 's'")), "linear");
    // whatever the label is now
    db.run("UPDATE t SET price = (i % 2)");
    db.run("SELECT corgipile_train('t', warm_start => 's', max_epochs => 1)");
    assert_eq!(db.line("SELECT model FROM corgipile.models ORDER BY model_id DESC LIMIT 1"), "linear");
    let factor: f64 = db.value("SELECT corgipile_cluster_factor('t', label => 'species', features => '{x,z}')");
    assert!(factor > 1.0);
}

/// A class that the sample lacks makes the model one for several.
#[test]
fn a_class_that_few_rows_have_is_one_nevertheless() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT CASE WHEN i = 150000 THEN 'rare' WHEN i % 2 = 0 THEN 'a' ELSE 'b' END AS label,
                sin(i) + i % 2 AS x FROM generate_series(1, 200000) AS i",
    );
    let model = db.trained("'t', features => '{x}', max_epochs => 1, seed => 1");
    assert_eq!(db.line("SELECT model || ' ' || classes::text FROM corgipile.models"), "softmax {a,b,rare}");
    let named = db.trained("'t', 'softmax', features => '{x}', max_epochs => 1, seed => 1");
    assert_eq!(model.bits(), named.bits());
}

#[test]
fn the_choice_is_told_with_its_alternative() {
    let mut db = Database::new();
    table(&mut db);
    let told = |label: &str| {
        db.notices(&[&format!(
            "SELECT FROM corgipile_train('t', label => '{label}', features => '{{x}}', max_epochs => 1, learning_rate => 0.1)"
        )])
    };
    for (label, message, hint) in [
        ("species", "model softmax: label \"species\" has several classes", "'svm' or 'mlp'"),
        ("bit", "model logistic: label \"bit\" has two classes", "'linear'"),
        ("price", "model linear: label \"price\" has numbers to predict", "'softmax'"),
    ] {
        let told = told(label);
        assert!(told.contains(message) && told.contains(hint), "{told}");
    }
    assert_eq!(told("flag"), "", "a boolean leaves nothing to choose");
    let plan = db.lines("EXPLAIN SELECT FROM corgipile_train('t', label => 'species', features => '{x}')");
    assert!(plan.iter().any(|line| line.trim() == "Model: auto"), "{plan:?}");
}
