//! Columns of vectors next to numbers and categories. The oracle is the same rows with all numbers in one array, or as
//! indices and values: the models have the same bits.

use corgipile_tests::{Database, assert_close};

const TRAINING: &str = "max_epochs => 3, seed => 11, shuffle => 'no_shuffle', learning_rate => 0.05";

/// Table `t` with vectors of five numbers, of which the second half decides the label, a number and a text, and the
/// same as one array `x`, and as indices `k` and values `v`.
fn table(db: &mut Database) {
    db.run(
        "CREATE TABLE t AS
         SELECT id, label, e, e::float8[] AS d, (SELECT array_agg((16 * n)::int) FROM unnest(e) n) AS i, words, color,
                ARRAY[words] || e AS x,
                ARRAY[1, 2, 3, 4, 5, 6, 6 + array_position(ARRAY['blue', 'green', 'red'], color)] AS k, ARRAY[words] || e || 1::real AS v
         FROM (SELECT i AS id, (i % 2)::int AS label, (100 * uniform(i, 8))::int::real AS words,
                      (ARRAY['red', 'green', 'blue'])[1 + i % 3] AS color,
                      ARRAY(SELECT ((16 * uniform(i, j))::int / 16.0 + (j > 3)::int * (i % 2))::real
                              FROM generate_series(1, 5) j ORDER BY j) AS e
               FROM generate_series(1, 600) i) r ORDER BY id",
    );
}

#[test]
fn a_vector_and_a_number_are_one_array() {
    let mut db = Database::new();
    table(&mut db);
    for (model, more, options) in [
        ("logistic", "standardize => true", r#""transform": "none""#),
        ("logistic", "standardize => false", r#""transform": "log""#),
        ("svm", "", r#""transform": "none", "l2": 0.01"#),
        ("linear", "batch_size => 8", r#""transform": "none""#),
        ("softmax", "optimizer => 'adam'", r#""transform": "none""#),
        ("mlp", "hidden_layer_sizes => '{3}', batch_size => 4", r#""transform": "none""#),
        ("logistic", "workers => 2, batch_size => 4", r#""transform": "none""#),
        ("logistic", "solver => 'newton'", r#""transform": "none", "l2": 0.01"#),
    ] {
        let more = match model {
            _ if more.is_empty() => TRAINING.to_owned(),
            _ if more.contains("workers") => format!("max_epochs => 3, seed => 11, learning_rate => 0.05, {more}"),
            _ if more.contains("newton") => format!("max_epochs => 5, {more}"),
            _ => format!("{TRAINING}, {more}"),
        };
        let train = |features: &str| {
            format!("'t', features => '{{{features}}}', model => '{model}', {more}, options => '{{{options}}}'")
        };
        let expected = db.trained(&train("x")).bits();
        for vectors in ["e", "d"] {
            assert_eq!(db.trained(&train(&format!("words,{vectors}"))).bits(), expected, "{model} {more} {vectors}");
        }
    }
    let stored = "SELECT feature_kind, features, categories FROM corgipile.models WHERE model_id = 2";
    assert_eq!(db.line(stored), r#"columns|{words,e}|{"e": {"elements": 5}}"#);
    let names: Vec<String> = db.column("SELECT feature FROM corgipile.coefficients WHERE model_id = 2");
    assert_eq!(names, ["(intercept)", "words", "e[1]", "e[2]", "e[3]", "e[4]", "e[5]"]);
}

#[test]
fn a_vector_a_number_and_categories_are_sparse_features() {
    let mut db = Database::new();
    table(&mut db);
    for (model, more) in
        [("logistic", ""), ("softmax", ", optimizer => 'adam'"), ("mlp", ", hidden_layer_sizes => '{3}'")]
    {
        let train = |features: &str, options: &str| {
            format!(
                "'t', features => '{{{features}}}', model => '{model}', {TRAINING}, standardize => false{more}, options => '{options}'"
            )
        };
        let expected = db.trained(&train("k,v", r#"{"dimensions": 9}"#)).bits();
        assert_eq!(db.trained(&train("words,e,color", r#"{"transform": "none"}"#)).bits(), expected, "{model}");
    }
}

#[test]
fn the_plain_call_uses_the_vector_and_predictions_agree_in_every_form() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE documents AS SELECT id, e AS embedding, words::int, color, label FROM t; ALTER TABLE documents ADD PRIMARY KEY (id)");
    let id = db.train("'documents', name => 'm', max_epochs => 10, seed => 1")[0].model_id;
    assert_eq!(db.line("SELECT features FROM corgipile.models"), "{embedding,words,color}");
    assert!(db.evaluate(id, "documents").accuracy > 0.9);
    let right: f64 = db.value("SELECT avg((corgipile_predict('m', d) = label)::int)::float8 FROM documents d");
    assert_eq!(db.evaluate(id, "documents").accuracy, right);
    db.train("'documents', name => 'n', features => '{embedding,words}', max_epochs => 5, seed => 1");
    for call in [
        "corgipile_predict_proba('m', embedding, words, color) = corgipile_predict_proba('m', d)",
        "corgipile_predict_proba('m', embedding::float8[], words::real, color) = corgipile_predict_proba('m', d)",
        "corgipile_predict_proba(corgipile_export('m'), d) = corgipile_predict_proba('m', d)",
        "corgipile_predict_proba('n', embedding, words) = corgipile_predict_proba('n', d)",
        "corgipile_predict_proba('n', embedding || words::real) = corgipile_predict_proba('n', d)",
    ] {
        assert!(db.value::<bool>(&format!("SELECT bool_and({call}) FROM documents d")), "{call}");
    }
    for model in ["m", "n"] {
        let sql: String =
            db.value(&format!("SELECT corgipile_export('{model}', 'sql', prediction => 'probabilities')"));
        let far = format!(
            "SELECT count(*) FROM (SELECT (corgipile_predict_proba('{model}', d))[2] AS a, ({sql})[2] AS b FROM documents d) s
              WHERE abs(a - b) > 1e-5 OR b IS NULL"
        );
        assert_eq!(db.value::<i64>(&far), 0);
        // what columns add up to is the decision
        let sums = format!(
            "SELECT max(abs(z - ln(p / (1 - p)))) FROM (SELECT (corgipile_predict_proba('{model}', d))[2] AS p,
                 (SELECT sum(contribution) FROM corgipile_explain('{model}', d)) AS z FROM documents d LIMIT 20) s"
        );
        assert!(db.value::<f64>(&sums) < 1e-5);
    }
    let explained = "SELECT array_agg(feature) FROM (SELECT d FROM documents d LIMIT 1) s, corgipile_explain('m', d)";
    assert_eq!(db.line(explained), "{(base),embedding,words,color}");
    let importance = "SELECT feature FROM corgipile_importance('m', 'documents') ORDER BY importance DESC LIMIT 1";
    assert_eq!(db.line(importance), "embedding");
    let drift = "SELECT feature, verdict FROM corgipile_drift('m', 'SELECT id, words, color, label,
                     ARRAY[embedding[1], embedding[2] + 3, embedding[3], embedding[4], embedding[5]] AS embedding FROM documents')";
    assert_eq!(
        db.lines(drift),
        [
            "embedding[1]|NULL",
            "embedding[2]|shifted",
            "embedding[3]|NULL",
            "embedding[4]|NULL",
            "embedding[5]|NULL",
            "words|NULL",
            "color|NULL"
        ]
    );
    let error = "SELECT max(abs(coefficient - c)) FROM corgipile_coefficients('n', 'documents')
                   JOIN (SELECT feature, coefficient AS c FROM corgipile.coefficients WHERE model_id = 2) s USING (feature)";
    assert!(db.value::<f64>(error) < 1e-6);
    db.train(&format!("'documents', warm_start => '{id}', max_epochs => 1"));
    db.train("'documents', group_by => 'color', name => 'groups', max_epochs => 1");
}

#[test]
fn nulls_in_vectors_are_imputed_by_the_means_of_their_elements() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "CREATE TABLE gaps AS SELECT id, label, words, CASE WHEN id % 10 > 1 THEN e WHEN id % 10 = 1 THEN ARRAY[NULL, e[2], e[3], e[4], e[5]] END AS e
           FROM t ORDER BY id",
    );
    for more in ["", ", workers => 2", ", prefetch => 'off'"] {
        let told = db.notices(&[&format!(
            "SELECT FROM corgipile_train('gaps', features => '{{e,words}}', name => 'm', max_epochs => 2, seed => 1{more})"
        )]);
        assert!(
            told.contains("NULLs are imputed in 120 of 600 rows (20.0%): e (120, the means of its elements)"),
            "{told}"
        );
        let fill: Vec<f32> =
            db.value("SELECT feature_fill FROM corgipile.models WHERE name = 'm' ORDER BY version DESC LIMIT 1");
        let means: Vec<f64> =
            db.value("SELECT array_agg(m ORDER BY i) FROM (SELECT i, avg(v) AS m FROM gaps, unnest(e) WITH ORDINALITY u(v, i) GROUP BY i) s");
        let fill: Vec<f64> = fill.iter().map(|value| f64::from(*value)).collect();
        assert_close(&fill[..5], &means, 1e-6);
    }
    let filled = "SELECT bool_and(corgipile_predict_proba('m', e, words)
                             = corgipile_predict_proba('m', coalesce(e[1:0], f[1:0]) || (SELECT array_agg(coalesce(e[i], f[i]) ORDER BY i) FROM generate_series(1, 5) i), words))
                    FROM gaps, (SELECT feature_fill AS f FROM corgipile.models WHERE name = 'm' ORDER BY version DESC LIMIT 1) m";
    assert!(db.value::<bool>(filled));
    let sql: String = db.value("SELECT corgipile_export('m', 'sql')");
    let same = format!("SELECT bool_and(corgipile_predict('m', g) = {sql}) FROM gaps g");
    assert!(db.value::<bool>(&same));
    db.rejects("SELECT corgipile_train('gaps', features => '{e,words}', nulls => 'error')", "22004")
        .says(&["feature e"]);
    let skipped = db.train("'gaps', features => '{e,words}', nulls => 'skip', name => 's', max_epochs => 1");
    assert_eq!(skipped[0].tuples, 480);
    assert_eq!(db.value::<i64>("SELECT count(corgipile_predict('s', g)) FROM gaps g"), 480);
    // a table that begins with NULLs
    db.run("CREATE TABLE late AS SELECT id, label, words, CASE WHEN id > 400 THEN e END AS e FROM t ORDER BY id");
    assert_eq!(db.train("'late', features => '{e,words}', max_epochs => 1")[0].tuples, 600);
    db.run("UPDATE late SET e = NULL");
    db.rejects("SELECT corgipile_train('late', features => '{e,words}')", "22000");
}

#[test]
fn lengths_and_types_that_do_not_fit_are_errors() {
    let mut db = Database::new();
    table(&mut db);
    db.train("'t', features => '{e,words,color}', name => 'm', max_epochs => 1");
    db.fails_with("SELECT corgipile_predict('m', e[1:3], words, color) FROM t", "2202E").is(
        "2202E",
        r#"vectors of column "e" of model 1 "m" have 5 elements, 3 given"#,
        "Give a vector as long as those that the model was trained on.",
    );
    db.fails_with("SELECT corgipile_predict('m', words, e, color) FROM t", "42804").hints(&["trained on"]);
    db.fails_with("SELECT corgipile_predict('m', e) FROM t", "0A000").hints(&["Give a row"]);
    let evaluate =
        |columns: &str| format!("SELECT * FROM corgipile_evaluate('m', 'SELECT label, color, {columns} FROM t')");
    db.fails_with(&evaluate("e[1:4] AS e, words"), "2202E").says(&["4 features instead of 5 in row"]);
    db.fails_with(&evaluate("1 AS e, words"), "42804").hints(&["The model was trained on vectors in this column."]);
    db.fails_with(&evaluate("e, e AS words"), "42804").hints(&["The model was trained on numbers in this column."]);
    db.run("CREATE TABLE mixed AS SELECT label, words, CASE WHEN id = 300 THEN e[1:2] ELSE e END AS e FROM t");
    db.rejects("SELECT corgipile_train('mixed', features => '{e,words}')", "2202E")
        .says(&["2 features instead of 5 in row"]);
    db.rejects("SELECT corgipile_train('t', features => '{e,words}', options => '{\"transform\": [\"e\"]}')", "22023")
        .says(&["\"e\"", "not a numeric feature"]);
    db.rejects("SELECT corgipile_train_uda('t', features => '{e,words}')", "0A000")
        .says(&["vectors among other features"]);
    for categories in [
        r#"{"e": {"elements": 4}}"#,
        r#"{"e": {"elements": 0}}"#,
        r#"{"e": {"elements": 5, "buckets": 2}}"#,
        r#"{"e": {"elements": -5}}"#,
    ] {
        let import =
            format!("SELECT corgipile_import(jsonb_set(corgipile_export('m'), '{{categories}}', '{categories}'))");
        db.fails_with(&import, "22023");
    }
}
