//! Weights of rows and of classes.

use corgipile_tests::{Database, Model, assert_close};

fn table(db: &mut Database) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, label, label || '' AS word, label + normal(i, 1) AS a, normal(i, 2) AS b, 1 + i % 3 AS w,
                CASE label WHEN 1 THEN 3.0 ELSE 1.0 END AS v
         FROM (SELECT i, (uniform(i, 0) < 0.2)::int AS label FROM generate_series(1, 300::bigint) i) r ORDER BY i",
    );
}

/// Trains on the rows as they lie.
fn trained(db: &mut Database, source: &str, arguments: &str, options: &str) -> Model {
    db.trained(&format!(
        "'{source}', {arguments}, features => '{{a,b}}', shuffle => 'no_shuffle', max_epochs => 3,
         learning_rate => 0.05, standardize => false, options => '{options}'"
    ))
}

#[test]
fn a_weight_of_2_is_a_row_that_is_there_twice() {
    let mut db = Database::new();
    table(&mut db);
    // in one mini-batch of all rows
    db.run("CREATE TABLE twice AS SELECT t.* FROM t, generate_series(1, w) ORDER BY id");
    for model in ["'logistic'", "'svm'", "'linear'", "'softmax'"] {
        let weighted = db.trained(&format!(
            "'t', {model}, features => '{{a,b}}', shuffle => 'no_shuffle', max_epochs => 3, learning_rate => 0.05,
             standardize => false, options => '{{\"batch_size\": 1000, \"weight\": \"w\", \"schedule\": \"constant\"}}'"
        ));
        let twice = trained(&mut db, "twice", model, r#"{"batch_size": 1000, "schedule": "constant"}"#);
        assert_close(&weighted.parameters(), &twice.parameters(), 1e-4);
    }
}

#[test]
fn equal_weights_of_1_change_nothing() {
    let mut db = Database::new();
    table(&mut db);
    for model in ["'logistic'", "'svm'", "'linear'", "'softmax'"] {
        let plain = trained(&mut db, "t", model, "{}");
        let weighted = trained(&mut db, "SELECT *, 1.0::real AS one FROM t", model, r#"{"weight": "one"}"#);
        assert_close(&weighted.parameters(), &plain.parameters(), 1e-5);
    }
}

#[test]
fn rows_of_weight_0_are_not_learned_from() {
    let mut db = Database::new();
    table(&mut db);
    let some = trained(&mut db, "SELECT * FROM t WHERE w > 1", "'logistic'", "{}");
    let zero = trained(&mut db, "SELECT *, (w > 1)::int AS used FROM t", "'logistic'", r#"{"weight": "used"}"#);
    assert_close(&zero.parameters(), &some.parameters(), 1e-5);
    db.rejects("SELECT * FROM corgipile_train('SELECT *, 0 AS zero FROM t', options => '{\"weight\": \"zero\"}', features => '{a}')", "22000")
        .says(&["weight 0"]);
}

#[test]
fn balanced_class_weights_are_those_of_scikit_learn() {
    let mut db = Database::new();
    table(&mut db);
    // n / (k n_c)
    let (n, ones): (i64, i64) = (300, db.value("SELECT count(*) FROM t WHERE label = 1"));
    let (w0, w1) = (n as f64 / (2.0 * (n - ones) as f64), n as f64 / (2.0 * ones as f64));
    for (model, label) in [("'logistic'", "label"), ("'svm'", "word"), ("'softmax'", "word")] {
        let arguments = format!("{model}, '{label}'");
        let balanced = trained(&mut db, "t", &arguments, r#"{"class_weight": "balanced"}"#);
        let given = trained(&mut db, "t", &arguments, &format!(r#"{{"class_weight": {{"0": {w0}, "1": {w1}}}}}"#));
        let column = trained(
            &mut db,
            &format!("SELECT *, CASE label WHEN 0 THEN {w0} ELSE {w1} END AS c FROM t"),
            &arguments,
            r#"{"weight": "c"}"#,
        );
        assert_close(&balanced.parameters(), &given.parameters(), 1e-5);
        assert_close(&balanced.parameters(), &column.parameters(), 1e-5);
    }
}

#[test]
fn weights_of_rows_and_classes_multiply_and_labels_without_one_have_1() {
    let mut db = Database::new();
    table(&mut db);
    let product = trained(&mut db, "SELECT *, w * v AS p FROM t", "'logistic'", r#"{"weight": "p"}"#);
    let both = trained(&mut db, "t", "'logistic'", r#"{"weight": "w", "class_weight": {"1": 3}}"#);
    assert_close(&both.parameters(), &product.parameters(), 1e-5);
    let stored = db.line("SELECT hyperparameters->'class_weight', hyperparameters->'weight' FROM corgipile.models ORDER BY model_id DESC LIMIT 1");
    assert_eq!(stored, "{\"1\": 3.0}|\"w\"");
}

#[test]
fn the_weight_is_no_feature_unless_it_is_named() {
    let mut db = Database::new();
    table(&mut db);
    db.train("'SELECT label, a, b, w FROM t', options => '{\"weight\": \"w\"}'");
    assert_eq!(db.line("SELECT features FROM corgipile.models"), "{a,b}");
    let sql = "SELECT * FROM corgipile_train('t', features => '{a,w}', options => '{\"weight\": \"w\"}')";
    db.rejects(sql, "22023").says(&["weight", "\"w\"", "a feature"]);
    db.rejects("SELECT * FROM corgipile_train('t', options => '{\"weight\": \"label\"}')", "22023")
        .says(&["the label"]);
    db.rejects("SELECT * FROM corgipile_train('t', options => '{\"weight\": \"wait\"}')", "42703").says(&["\"wait\""]);
    db.rejects("SELECT * FROM corgipile_train('t', features => '{a}', options => '{\"weight\": \"word\"}')", "42804")
        .says(&["weight column \"word\"", "text"]);
}

#[test]
fn weights_that_are_none_are_refused() {
    let mut db = Database::new();
    for (value, code, words) in [
        ("-1", "22003", "weight -1 is negative"),
        ("'NaN'", "22003", "weight is NaN"),
        ("'Infinity'", "22003", "weight is Infinity"),
        ("1e300", "22003", "weight is out of range"),
        ("NULL", "22004", "weight is NULL"),
    ] {
        db.run(&format!(
            "DROP TABLE IF EXISTS t;
             CREATE TABLE t (label int, a real, k int[], v real[], w float8);
             INSERT INTO t VALUES (0, 1, '{{1}}', '{{1}}', 1), (1, 2, '{{2}}', '{{1}}', 1), (0, 3, '{{1}}', '{{2}}', {value})"
        ));
        for features in ["{a}", "{k,v}"] {
            let train = |options: &str| {
                format!("SELECT * FROM corgipile_train('t', features => '{features}', options => '{options}')")
            };
            db.rejects(&train(r#"{"weight": "w", "nulls": "error"}"#), code).says(&[words, "(0,3)"]);
            if value == "NULL" {
                db.run(&train(r#"{"weight": "w", "nulls": "skip"}"#));
                assert_eq!(
                    db.line(
                        "SELECT skipped, history->0->>'tuples' FROM corgipile.models ORDER BY model_id DESC LIMIT 1"
                    ),
                    "1|2"
                );
            }
        }
    }
}

#[test]
fn class_weights_of_unknown_labels_are_refused() {
    let mut db = Database::new();
    table(&mut db);
    let rejects = |db: &mut Database, arguments: &str, weights: &str, code: &str| {
        let sql = format!(
            "SELECT * FROM corgipile_train('t', {arguments}, features => '{{a}}', options => '{{\"class_weight\": {weights}}}')"
        );
        db.rejects(&sql, code)
    };
    rejects(&mut db, "'logistic'", r#"{"2": 1}"#, "22023").says(&["label 2"]).hints(&["0, 1"]);
    rejects(&mut db, "'softmax', 'word'", r#"{"yes": 1}"#, "22023").says(&["label yes"]).hints(&["0, 1"]);
    rejects(&mut db, "'logistic'", r#"{"yes": 1}"#, "22P02").says(&["label", "integer", "yes"]);
    rejects(&mut db, "'logistic'", r#"{"1": 1, "01": 2}"#, "22023").says(&["twice"]);
    rejects(&mut db, "'logistic'", r#"{"1": -1}"#, "22023").says(&["class_weight", "at least 0"]);
    rejects(&mut db, "'logistic'", r#"{"1": "heavy"}"#, "22023").says(&["class_weight"]);
    rejects(&mut db, "'logistic'", "{}", "22023").says(&["class_weight"]);
    rejects(&mut db, "'logistic'", r#""equal""#, "22023").says(&["class_weight", "balanced"]);
    rejects(&mut db, "'linear', 'b'", r#""balanced""#, "22023").says(&["class_weight", "linear"]);
    rejects(&mut db, "'logistic'", r#"{"0": 0, "1": 0}"#, "22000").says(&["weight 0"]);
}
