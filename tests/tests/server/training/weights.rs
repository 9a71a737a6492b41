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

/// The ways in which a model is trained, with what they call their labels.
const WAYS: [&str; 9] = [
    "'linear', 'b', features => '{a}', solver => 'newton', options => '{\"l2\": 0.1%}'",
    "'logistic', features => '{a,b}', solver => 'newton', options => '{\"l2\": 0.1%}'",
    "'poisson', features => '{a,b}', options => '{\"l2\": 0.1%}'",
    "'logistic', features => '{a,b}', options => '{\"l2\": 0.01%}'",
    "'svm', 'word', features => '{a,b}', optimizer => 'adam', batch_size => 16, options => '{\"averaging\": true%}'",
    "'huber', 'b', features => '{a}', options => '{\"l2\": 0.01%}'",
    "'softmax', 'word', features => '{a,b}', l1 => 0.001, options => '{\"keep\": \"best\"%}'",
    "'mlp', 'word', features => '{a,b}', hidden_layer_sizes => '{4}', options => '{\"l2\": 0.01%}'",
    "'logistic', features => '{a,b}', options => '{\"class_weight\": \"balanced\", \"validation_fraction\": 0.2%}'",
];

/// Trains in one of the ways with this column of weights, if there is one.
fn of_way(db: &mut Database, source: &str, way: &str, weight: Option<&str>) -> (Model, Vec<f64>) {
    let option = weight.map_or(String::new(), |weight| format!(", \"weight\": \"{weight}\""));
    let way = way.replace('%', &option);
    let rows = db.rows(
        &format!(
            "SELECT * FROM corgipile_train($${source}$$, {way}, shuffle => 'no_shuffle', max_epochs => 4, seed => 3)"
        ),
        &[],
    );
    let losses = rows.iter().flat_map(|row| {
        [Some(row.get::<_, f64>("loss")), row.get::<_, Option<f64>>("validation_loss")].into_iter().flatten()
    });
    (db.model(rows[0].get("model_id")), losses.collect())
}

#[test]
fn only_how_weights_compare_counts() {
    let mut db = Database::new();
    table(&mut db);
    for way in WAYS {
        let (model, losses) = of_way(&mut db, "t", way, Some("w"));
        // a power of 2 has the bits of no rounding
        let (scaled, of_scaled) = of_way(&mut db, "SELECT *, w * 1024 AS v2 FROM t", way, Some("v2"));
        assert_eq!((scaled.bits(), of_scaled), (model.bits(), losses.clone()), "{way}");
        for factor in ["1500.0", "1 / 20000.0"] {
            let source = format!("SELECT *, w * {factor} AS v2 FROM t");
            let (scaled, of_scaled) = of_way(&mut db, &source, way, Some("v2"));
            assert_close(&scaled.parameters(), &model.parameters(), 1e-4);
            assert_close(&of_scaled, &losses, 1e-5);
        }
        let (plain, plain_losses) = of_way(&mut db, "t", way, None);
        let (same, same_losses) = of_way(&mut db, "SELECT *, 7 AS seven FROM t", way, Some("seven"));
        assert_close(&same.parameters(), &plain.parameters(), 1e-5);
        assert_close(&same_losses, &plain_losses, 1e-6);
    }
}

#[test]
fn with_newtons_method_a_weight_of_2_is_a_row_that_is_there_twice() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE twice AS SELECT t.* FROM t, generate_series(1, w) ORDER BY id");
    for way in WAYS.iter().take(3).copied().chain([
        "'logistic', features => '{a,b}', solver => 'newton', options => '{\"l2\": 0.1, \"class_weight\": \"balanced\"%}'",
        "'logistic', features => '{a,b}', solver => 'newton', options => '{\"l2\": 0.1, \"class_weight\": {\"1\": 3}%}'",
        "'linear', 'b', features => '{n}', solver => 'newton', options => '{\"l2\": 0.1%}'",
    ]) {
        // a mean that stands for NULLs is that of the weighted rows, too
        let nulls = |table: &str| format!("SELECT *, CASE WHEN id % 4 > 0 THEN a END AS n FROM {table}");
        let (weighted, losses) = of_way(&mut db, &nulls("t"), way, Some("w"));
        let (twice, of_twice) = of_way(&mut db, &nulls("twice"), way, None);
        assert_close(&weighted.parameters(), &twice.parameters(), 1e-5);
        assert_close(&losses, &of_twice, 1e-6);
    }
}

#[test]
fn rows_of_weight_0_are_as_if_they_were_not_there() {
    let mut db = Database::new();
    table(&mut db);
    for way in WAYS.iter().filter(|way| !way.contains("validation_fraction")) {
        let far =
            "SELECT id, label, word, CASE w WHEN 1 THEN 1e6 ELSE a END AS a, b, (w > 1)::int * 2.5 AS used FROM t";
        let (zero, losses) = of_way(&mut db, far, way, Some("used"));
        let (without, of_without) = of_way(&mut db, "SELECT * FROM t WHERE w > 1", way, None);
        assert_eq!((zero.bits(), losses), (without.bits(), of_without), "{way}");
    }
}

#[test]
fn a_group_is_weighted_and_balanced_as_it_is_alone() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE g AS SELECT *, CASE WHEN id % 5 = 0 THEN 'rare' ELSE 'often' END AS site, CASE WHEN id % 5 = 0 THEN 100 * w ELSE w END AS w2 FROM t");
    for weights in
        [r#"{"weight": "w2"}"#, r#"{"class_weight": "balanced"}"#, r#"{"weight": "w2", "class_weight": {"1": 5}}"#]
    {
        let training = format!(
            "features => '{{a,b}}', shuffle => 'no_shuffle', max_epochs => 3, learning_rate => 0.05, standardize => false,
             l2 => 0.1, options => '{weights}'"
        );
        let rows = db.rows(
            &format!("SELECT DISTINCT group_value, model_id FROM corgipile_train('g', {training}, group_by => 'site')"),
            &[],
        );
        assert_eq!(rows.len(), 2);
        for row in rows {
            let (group, id): (String, i64) = (row.get(0), row.get(1));
            let alone = db.trained(&format!("$$SELECT * FROM g WHERE site = '{group}'$$, {training}"));
            assert_eq!(db.model(id).bits(), alone.bits(), "{weights} {group}");
        }
    }
}

#[test]
fn losses_of_held_out_rows_and_of_evaluations_are_weighted() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "CREATE TABLE h AS SELECT *, id % 3 = 0 AS held FROM t;
         CREATE TABLE twice AS SELECT h.* FROM h, generate_series(1, w) WHERE held ORDER BY id",
    );
    for (model, label) in [("logistic", "label"), ("linear", "b"), ("softmax", "word")] {
        let rows = db.rows(
            &format!(
                "SELECT * FROM corgipile_train('h', '{model}', '{label}', '{{a}}', max_epochs => 2, name => '{model}',
                     options => '{{\"weight\": \"w\", \"validation_column\": \"held\"}}')"
            ),
            &[],
        );
        let judged: f64 = rows[1].get("validation_loss");
        let mut loss = |source: &str| -> f64 {
            let sql = format!("SELECT value FROM corgipile_evaluate('{model}', $${source}$$) WHERE metric = 'loss'");
            db.value(&sql)
        };
        let expected = loss("SELECT id, label, word, a, b FROM twice");
        for found in [judged, loss("SELECT * FROM h WHERE held")] {
            assert!((found - expected).abs() < 1e-6 * expected, "{model}: {found} {expected}");
        }
    }
    db.fails_with("SELECT * FROM corgipile_evaluate('linear', 'SELECT a, b, 0 AS w FROM t')", "22000")
        .says(&["weight 0"]);
}

#[test]
fn what_is_skipped_and_imputed_is_told_by_group() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "CREATE TABLE g AS SELECT CASE WHEN id % 10 > 0 THEN label END AS label, CASE WHEN id % 7 > 1 THEN a END AS a, b,
                CASE WHEN id <= 100 THEN 'first' ELSE 'second' END AS site FROM t",
    );
    for more in ["", ", standardize => false, learning_rate => 0.01", ", workers => 2", ", prefetch => 'on'"] {
        let training = |source: &str| format!("$${source}$$, features => '{{a,b}}', max_epochs => 2 {more}");
        let of_model = "SELECT skipped || ' ' || imputed FROM corgipile.models WHERE model_id = ";
        let groups = db.rows(
            &format!(
                "SELECT DISTINCT group_value, model_id FROM corgipile_train({}, group_by => 'site')",
                training("g")
            ),
            &[],
        );
        assert_eq!(groups.len(), 2);
        for row in groups {
            let (group, id): (String, i64) = (row.get(0), row.get(1));
            let found = db.line(&format!("{of_model} {id}"));
            let alone = db.train(&training(&format!("SELECT * FROM g WHERE site = '{group}'")))[0].model_id;
            assert_eq!(found, db.line(&format!("{of_model} {alone}")), "{more} {group}");
            assert_ne!(found, "0 0");
        }
    }
}

#[test]
fn weights_are_frequencies_or_precisions_as_the_user_says() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE twice AS SELECT t.* FROM t, generate_series(1, w) ORDER BY id");
    for (model, label, l2) in
        [("linear", "b", 0.0), ("logistic", "label", 0.0), ("linear", "b", 0.1), ("logistic", "label", 0.1)]
    {
        let mut estimates = |source: &str, weight: &str, weights: &str| -> Vec<f64> {
            let options = if weight.is_empty() { String::new() } else { format!(", \"weight\": \"{weight}\"") };
            db.run(&format!(
                "SELECT FROM corgipile_train($${source}$$, '{model}', '{label}', '{{a}}', solver => 'newton', name => 'm',
                     options => '{{\"l2\": {l2}{options}}}')"
            ));
            db.column::<f64>(&format!(
                "SELECT unnest(ARRAY[coefficient, std_error, p_value])
                   FROM corgipile_coefficients('m', $${source}$$, weight_type => {weights})"
            ))
        };
        let twice = estimates("twice", "", "NULL");
        let frequencies = estimates("t", "w", "'frequencies'");
        assert_close(&frequencies, &twice, 1e-5);
        let precisions = estimates("t", "w", "'precisions'");
        for (source, weight) in [
            ("SELECT *, w * 1500.0 AS v2 FROM t", "v2"),
            ("SELECT *, w AS v2 FROM t UNION ALL SELECT *, 0 FROM t WHERE id % 2 = 0", "v2"),
        ] {
            assert_close(&estimates(source, weight, "'precisions'"), &precisions, 1e-4);
        }
        // of one weight they are those of no weights
        let plain = estimates("t", "", "NULL");
        assert_close(&estimates("SELECT *, 3 AS v2 FROM t", "v2", "'precisions'"), &plain, 1e-5);
        assert!(frequencies.iter().zip(&precisions).any(|(a, b)| (a - b).abs() > 1e-3 * a.abs()));
    }
    db.fails_with("SELECT * FROM corgipile_coefficients('m', 't', weight_type => 'counts')", "22023").says(&[
        "weight_type",
        "counts",
        "precisions, frequencies",
    ]);
}

#[test]
fn the_best_constant_is_that_of_the_rows_that_are_judged_and_weighs_as_they_do() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE shift AS SELECT held, label, label * 2 + 2.5 * uniform(i, 1) AS x, ARRAY[label * 2 + 2.5 * uniform(i, 1)]::real[] AS v
           FROM (SELECT i, i % 4 = 0 AS held, CASE WHEN i % 4 = 0 THEN i % 8 / 4 ELSE (i % 97 = 0)::int END AS label
                   FROM generate_series(1, 8000::bigint) AS i) AS r",
    );
    let told = |db: &Database, sql: &str| db.notices(&[sql]);
    let worse = "worse than a constant baseline";
    let found = told(
        &db,
        r#"SELECT FROM corgipile_train('shift', features => '{x}', seed => 1, options => '{"validation_column": "held"}')"#,
    );
    assert!(!found.contains(worse), "{found}");
    db.run("SELECT corgipile_compress('shift', 'packed', features => '{v}', seed => 1)");
    for weights in ["balanced", r#"{"1": 5}"#] {
        let found = told(
            &db,
            &format!(
                "SELECT FROM corgipile_train('packed', seed => 1, class_weight => '{weights}', max_epochs => 10, learning_rate => 0.3)"
            ),
        );
        assert!(!found.contains(worse), "{weights}: {found}");
    }
    // a class of which all rows are held out counts in their loss
    let found = told(
        &db,
        r#"SELECT FROM corgipile_train('SELECT x, CASE WHEN held THEN 2 ELSE label END AS label, held FROM shift', 'softmax',
               features => '{x}', seed => 1, max_epochs => 2, class_weight => 'balanced', options => '{"validation_column": "held"}')"#,
    );
    assert!(found.contains("in no training row"), "{found}");
}
