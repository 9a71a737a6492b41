//! Models of every kind, with every optimizer: what the server learns is what the textbook learns.

use corgipile_tests::{Database, Objective, Rule, Session, Textbook, Tuple, assert_close};

/// A table of 300 rows with features of different scales, two classes, three, and a target that depends on them.
fn table(db: &mut Database) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, a, b, c, (a + b > 0.4)::int AS two, (ARRAY['red', 'green', 'blue'])[k] AS three,
                2 * a - b + 0.5 + 0.1 * normal(i, 7) AS y, 0.5 + uniform(i, 9) AS w
         FROM (SELECT i, k, k - 2 + normal(i, 1) AS a, 2 * (k % 2) + normal(i, 2) AS b, 0.3 * normal(i, 3) AS c
               FROM (SELECT i, 1 + (3 * uniform(i, 5))::int % 3 AS k FROM generate_series(1, 300::bigint) i) k) r
         ORDER BY i",
    );
}

/// The rows of `t` in the order in which they lie, with this label and weight.
fn tuples(db: &mut Session, label: &str, weight: &str) -> Vec<Tuple> {
    let sql =
        format!("SELECT ({label})::float8, ({weight})::real::float8, a::real, b::real, c::real FROM t ORDER BY ctid");
    let tuple = |row: &postgres::Row| Tuple {
        label: row.get(0),
        weight: row.get(1),
        features: (2..5).map(|i| f64::from(row.get::<_, f32>(i))).collect(),
    };
    db.rows(&sql, &[]).iter().map(tuple).collect()
}

/// Trains on `t` as it lies, without decay unless the options say so, and compares each epoch's loss and the model in
/// the end with the textbook's.
fn agrees(db: &mut Database, arguments: &str, options: &str, mut textbook: Textbook, tuples: &[Tuple]) {
    let options = format!("{{\"schedule\": \"constant\"{options}}}");
    let epochs = db.train(&format!(
        "'t', {arguments}, features => '{{a,b,c}}', shuffle => 'no_shuffle', max_epochs => 4,
         learning_rate => {}, standardize => false, options => '{options}'",
        textbook.rate
    ));
    for epoch in &epochs {
        let loss = textbook.epoch(tuples);
        assert!((epoch.loss - loss).abs() <= 2e-4 * loss.abs(), "{arguments}, {options}: {epoch:?}, textbook's {loss}");
    }
    assert_close(&db.model(epochs[0].model_id).parameters(), &textbook.parameters(), 1e-3);
}

const SIGN: &str = "2 * two - 1";

#[test]
fn linear_regression_agrees_with_the_textbook() {
    let mut db = Database::new();
    table(&mut db);
    let tuples = tuples(&mut db, "y::real", "1");
    agrees(&mut db, "'linear', 'y'", "", Textbook::new(Objective::Squares, 3, 1, 0.02), &tuples);
}

#[test]
fn softmax_on_three_classes_of_text_agrees_with_the_textbook() {
    let mut db = Database::new();
    table(&mut db);
    // blue, green, red: the classes ascend
    let tuples = tuples(&mut db, "array_position(ARRAY['blue', 'green', 'red'], three) - 1", "1");
    agrees(&mut db, "'softmax', 'three'", "", Textbook::new(Objective::CrossEntropy, 3, 3, 0.05), &tuples);
    assert_eq!(db.value::<Vec<String>>("SELECT classes FROM corgipile.models"), ["blue", "green", "red"]);
}

#[test]
fn every_model_agrees_with_the_textbook_in_mini_batches() {
    let mut db = Database::new();
    table(&mut db);
    let signs = tuples(&mut db, SIGN, "1");
    for size in [2, 7, 128, 1000] {
        for (name, objective) in [("logistic", Objective::Logistic), ("svm", Objective::Hinge)] {
            let textbook = Textbook { batch_size: size, ..Textbook::new(objective, 3, 1, 0.1) };
            agrees(&mut db, &format!("'{name}', 'two'"), &format!(", \"batch_size\": {size}"), textbook, &signs);
        }
        let targets = tuples(&mut db, "y::real", "1");
        let textbook = Textbook { batch_size: size, ..Textbook::new(Objective::Squares, 3, 1, 0.02) };
        agrees(&mut db, "'linear', 'y'", &format!(", \"batch_size\": {size}"), textbook, &targets);
    }
}

#[test]
fn momentum_and_adam_agree_with_the_textbook() {
    let mut db = Database::new();
    table(&mut db);
    let signs = tuples(&mut db, SIGN, "1");
    for size in [1, 32] {
        for (optimizer, rule, rate) in [
            ("\"optimizer\": \"momentum\"", Rule::Momentum(0.9), 0.01),
            ("\"optimizer\": \"momentum\", \"momentum\": 0.5", Rule::Momentum(0.5), 0.01),
            ("\"optimizer\": \"adam\"", Rule::Adam(0.9, 0.999, 1e-8), 0.01),
            (
                "\"optimizer\": \"adam\", \"beta1\": 0.8, \"beta2\": 0.9, \"epsilon\": 0.1",
                Rule::Adam(0.8, 0.9, 0.1),
                0.01,
            ),
        ] {
            let textbook = Textbook { batch_size: size, rule, ..Textbook::new(Objective::Logistic, 3, 1, rate) };
            agrees(&mut db, "'logistic', 'two'", &format!(", \"batch_size\": {size}, {optimizer}"), textbook, &signs);
        }
    }
}

#[test]
fn penalties_agree_with_the_textbook_and_spare_the_intercepts() {
    let mut db = Database::new();
    table(&mut db);
    let signs = tuples(&mut db, SIGN, "1");
    for (l1, l2) in [(0.01, 0.0), (0.0, 0.1), (0.02, 0.05)] {
        for (optimizer, rule) in
            [("sgd", Rule::Plain), ("momentum", Rule::Momentum(0.9)), ("adam", Rule::Adam(0.9, 0.999, 1e-8))]
        {
            let textbook = Textbook { l1, l2, rule, batch_size: 4, ..Textbook::new(Objective::Logistic, 3, 1, 0.02) };
            let options = format!(", \"batch_size\": 4, \"l1\": {l1}, \"l2\": {l2}, \"optimizer\": \"{optimizer}\"");
            agrees(&mut db, "'logistic', 'two'", &options, textbook, &signs);
        }
    }
}

#[test]
fn weights_agree_with_the_textbook() {
    let mut db = Database::new();
    table(&mut db);
    let (signs, targets) = (tuples(&mut db, SIGN, "w"), tuples(&mut db, "y::real", "w"));
    for size in [1, 16] {
        let options = format!(", \"batch_size\": {size}, \"weight\": \"w\"");
        let logistic = Textbook { batch_size: size, ..Textbook::new(Objective::Logistic, 3, 1, 0.05) };
        agrees(&mut db, "'logistic', 'two'", &options, logistic, &signs);
        let linear = Textbook { batch_size: size, ..Textbook::new(Objective::Squares, 3, 1, 0.02) };
        agrees(&mut db, "'linear', 'y'", &options, linear, &targets);
    }
}

#[test]
fn a_linear_model_has_r2_and_all_others_have_accuracy() {
    let mut db = Database::new();
    table(&mut db);
    let linear = db.train("'t', 'linear', 'y', '{a,b,c}', learning_rate => 0.05, seed => 1");
    assert!(linear.iter().all(|epoch| epoch.accuracy.is_none()), "{linear:?}");
    let r2 = linear[19].r2.expect("a linear model has r2");
    assert!((0.9..1.0).contains(&r2), "{linear:?}");
    for (model, label) in [("logistic", "two"), ("svm", "two"), ("softmax", "two"), ("softmax", "three")] {
        let epochs = db.train(&format!("'t', '{model}', '{label}', '{{a,b,c}}', learning_rate => 0.05, seed => 1"));
        assert!(epochs.iter().all(|epoch| epoch.r2.is_none()), "{epochs:?}");
        assert!(epochs[19].accuracy > Some(0.6), "{epochs:?}");
    }
    let history = db.lines("SELECT accuracy IS NULL, r2 IS NULL FROM corgipile.training_history WHERE epoch = 20");
    assert_eq!(history, ["t|f", "f|t", "f|t", "f|t", "f|t"]);
}

#[test]
fn softmax_numbers_classes_of_any_type_in_their_order() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TYPE colour AS ENUM ('red', 'green', 'blue')");
    for (label, classes) in [
        ("three", "{blue,green,red}"),
        ("three::colour", "{red,green,blue}"),
        ("length(three) - 4", "{-1,0,1}"),
        ("(length(three) * 1.5)::numeric", "{4.5,6.0,7.5}"),
        ("length(three) / 4.0::real", "{0.75,1,1.25}"),
        ("three = 'red'", "{f,t}"),
        ("length(three)::bigint * 10000000000", "{30000000000,40000000000,50000000000}"),
    ] {
        let source = format!("SELECT {label} AS label, a, b, c FROM t").replace('\'', "''");
        let id = db.train(&format!("'{source}', 'softmax', max_epochs => 2, seed => 1"))[0].model_id;
        assert_eq!(db.line(&format!("SELECT classes FROM corgipile.models WHERE model_id = {id}")), classes, "{label}");
    }
}

#[test]
fn softmax_with_a_thousand_classes_trains() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT 'class ' || i % 1000 AS label, (i % 1000)::real AS a, (i % 7)::real AS b FROM generate_series(1, 5000) i");
    let epochs = db.train("'t', 'softmax', max_epochs => 1, learning_rate => 0.0001, seed => 1");
    assert_eq!(epochs[0].tuples, 5000);
    assert_eq!(
        db.line("SELECT cardinality(classes), cardinality(weights), cardinality(intercepts) FROM corgipile.models"),
        "1000|2000|1000"
    );
    db.run("CREATE TABLE many AS SELECT i AS label, 1.0 AS a FROM generate_series(1, 10001) i");
    db.rejects("SELECT * FROM corgipile_train('many', 'softmax')", "54000")
        .says(&["10000", "label"])
        .hints(&["linear"]);
}

#[test]
fn what_is_no_target_and_what_is_no_class_is_refused() {
    let mut db = Database::new();
    table(&mut db);
    let rejects = |db: &mut Database, arguments: &str, code: &str| {
        db.rejects(&format!("SELECT * FROM corgipile_train({arguments}, features => '{{a,b}}')"), code)
    };
    rejects(&mut db, "'t', 'linear', 'three'", "42804").says(&["three", "text"]).hints(&["number", "logistic"]);
    rejects(&mut db, "'SELECT ''infinity''::real AS label, a, b FROM t', 'linear'", "22003")
        .says(&["Infinity", "in row ("]);
    rejects(&mut db, "'SELECT 1e300::float8 AS label, a, b FROM t', 'linear'", "22003")
        .says(&["out of range", "1e300"]);
    rejects(&mut db, "'SELECT 1 AS label, a, b FROM t', 'softmax'", "22000").says(&["only one value"]);
    // an SVM finds out by itself in a pass before the first epoch
    rejects(&mut db, "'t', 'logistic', 'three', learning_rate => 0.1, standardize => false, nulls => 'skip'", "22000")
        .says(&["more than two"])
        .hints(&["softmax", "svm_one_vs_rest"]);
    for label in ["two = 1", "two::bigint", "two::numeric", "two::smallint"] {
        let epochs = db.train(&format!("'SELECT {label} AS label, a, b FROM t', 'linear', features => '{{a,b}}'"));
        assert_eq!(epochs[0].tuples, 300, "{label}");
    }
}
