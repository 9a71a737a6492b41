//! Lexemes of a `tsvector` and elements of an array of text as hashed features. The oracle of buckets is another
//! implementation of the hash, Python's xxhash, as for hashed texts; that of values is SQL.

use corgipile_tests::Database;

const TRAINING: &str =
    "max_epochs => 3, seed => 11, shuffle => 'no_shuffle', standardize => false, learning_rate => 0.05";
const HASH: &str = r#""hash": 7"#;

/// Table `t` with a number, a tsvector and an array of text, and `sparse` with what these are in seven buckets. Some
/// words of a row share a bucket: bad and film, a NULL and film.
fn tables(db: &mut Database) {
    db.run(
        "CREATE TABLE words AS SELECT * FROM (VALUES ('good', 5), ('bad', 6), ('film', 6), ('plot', 3), (NULL, 1)) v(word, bucket);
         CREATE TABLE elements AS SELECT * FROM (VALUES ('x', 3), ('y', 2), ('z', 4), (NULL, 6)) v(word, bucket);
         CREATE TABLE t AS
         SELECT i AS id, label, normal(i, 2) + label AS a,
                CASE WHEN i % 20 > 0 THEN to_tsvector('simple', repeat('film ', (3 * uniform(i, 3))::int) || repeat('plot ', (2 * uniform(i, 4))::int)
                     || repeat(CASE WHEN uniform(i, 5) < 0.2 + 0.6 * label THEN 'good ' ELSE 'bad ' END, 1 + i::int % 4)) END AS body,
                CASE WHEN i % 30 > 0 THEN (ARRAY['x', 'x', 'y', 'z', NULL])[1 + (3 * uniform(i, 6))::int : 1 + (5 * uniform(i, 7))::int] END AS tags
         FROM (SELECT i, (uniform(i, 0) < 0.5)::int AS label FROM generate_series(1, 600::bigint) i) r ORDER BY i;
         CREATE TABLE sparse AS
         SELECT id, label, ARRAY[1] || coalesce(array_agg(bucket + 2 ORDER BY bucket) FILTER (WHERE bucket IS NOT NULL), '{}') AS k,
                ARRAY[a::real] || coalesce(array_agg(n::real ORDER BY bucket) FILTER (WHERE bucket IS NOT NULL), '{}') AS v
           FROM (SELECT t.id, t.label, t.a, bucket, sum(n) AS n
                   FROM t LEFT JOIN LATERAL (
                        SELECT bucket, 1 + ln(cardinality(positions)) AS n FROM unnest(t.body) JOIN words ON word = lexeme
                        UNION ALL SELECT bucket, 1 FROM words WHERE t.body IS NULL AND word IS NULL
                        UNION ALL SELECT bucket, 1 FROM (SELECT DISTINCT e FROM unnest(t.tags) e) d JOIN elements ON word IS NOT DISTINCT FROM e
                        UNION ALL SELECT bucket, 1 FROM elements WHERE t.tags IS NULL AND word IS NULL) b ON true
                  GROUP BY 1, 2, 3, 4) s
          GROUP BY id, label, a ORDER BY id",
    );
}

#[test]
fn words_are_sparse_features_of_their_buckets() {
    let mut db = Database::new();
    tables(&mut db);
    for (model, options) in
        [("logistic", ""), ("softmax", r#", "optimizer": "adam""#), ("mlp", r#", "hidden_layer_sizes": [3]"#)]
    {
        let words = db.trained(&format!(
            "'t', features => '{{body,a,tags}}', model => '{model}', {TRAINING}, options => '{{{HASH}, \"transform\": \"none\"{options}}}'"
        ));
        let sparse = db.trained(&format!(
            "'sparse', features => '{{k,v}}', model => '{model}', {TRAINING}, options => '{{\"dimensions\": 8{options}}}'"
        ));
        assert_eq!(words.bits(), sparse.bits(), "{model}");
    }
    let stored = "SELECT categories, feature_kind, hyperparameters->'hash' FROM corgipile.models WHERE model_id = 1";
    assert_eq!(
        db.line(stored),
        r#"{"body": {"of": "lexemes", "buckets": 7}, "tags": {"of": "elements", "buckets": 7}}|columns|{"buckets": 7, "columns": ["body", "tags"]}"#
    );
}

#[test]
fn every_way_of_reading_gives_the_same_words() {
    let mut db = Database::new();
    tables(&mut db);
    let train = |source: &str, more: &str| {
        format!(
            "'{source}', features => '{{body,a,tags}}', seed => 11, max_epochs => 3, options => '{{{HASH}}}', {more}"
        )
    };
    let expected = db.trained(&train("t", "prefetch => 'off'")).bits();
    assert_eq!(db.trained(&train("t", "prefetch => 'on'")).bits(), expected);
    db.run("CREATE TYPE tag AS ENUM ('z', 'y', 'x'); CREATE DOMAIN tags AS text[]; CREATE DOMAIN body AS tsvector");
    for tags in ["tag[]", "varchar(9)[]", "tags"] {
        let source = format!("SELECT label, a, body::body AS body, tags::{tags} AS tags FROM t");
        let id = db.train(&train(&source, "prefetch => 'off'"))[0].model_id;
        let other = format!(
            "SELECT max(abs(a - b)) FROM (SELECT unnest(m.weights) a, unnest(n.weights) b FROM corgipile.models m, corgipile.models n WHERE m.model_id = 1 AND n.model_id = {id}) s"
        );
        assert!(db.value::<f32>(&other) < 1e-5, "{tags}");
    }
    let workers = db.train(&train("t", "workers => 2"));
    assert!(workers[2].tuples == 600 && workers[2].loss < workers[0].loss, "{workers:?}");
    db.train(
        &train("t", "group_by => 'id % 2'").replace("'t'", "'SELECT *, id % 2 AS g FROM t'").replace("id % 2'", "g'"),
    );
}

#[test]
fn predictions_evaluations_and_explanations_read_the_same_words() {
    let mut db = Database::new();
    tables(&mut db);
    let id = db.train(&format!(
        "'t', name => 'm', features => '{{body,a,tags}}', seed => 11, max_epochs => 5, options => '{{{HASH}}}'"
    ))[0]
        .model_id;
    let right: f64 = db.value("SELECT avg((corgipile_predict('m', t) = label)::int)::float8 FROM t");
    assert!(right > 0.7, "{right}");
    assert_eq!(db.evaluate(id, "t").accuracy, right);
    for call in [
        "corgipile_predict_proba('m', body, a, tags)",
        "corgipile_predict_proba(corgipile_export('m'), t)",
        "corgipile_predict_proba(corgipile_import(corgipile_export('m'), 'copy'), t)",
    ] {
        let same: bool =
            db.value(&format!("SELECT bool_and({call} = corgipile_predict_proba('m', t)) FROM t WHERE id < 25"));
        assert!(same, "{call}");
    }
    let sums = "SELECT max(abs(z - ln(p / (1 - p)))) FROM (SELECT (corgipile_predict_proba('m', t))[2] AS p,
                    (SELECT sum(contribution) FROM corgipile_explain('m', t)) AS z FROM t LIMIT 50) s";
    assert!(db.value::<f64>(sums) < 1e-5);
    let importance = "SELECT feature FROM corgipile_importance('m', 't') ORDER BY importance DESC LIMIT 1";
    assert_eq!(db.line(importance), "body, tags");
    let drift =
        "SELECT feature, verdict FROM corgipile_drift('m', 'SELECT id, label, a, NULL::tsvector AS body, tags FROM t')";
    assert_eq!(db.lines(drift), ["body|nulls", "a|NULL", "tags|NULL"]);
    // one column of words alone, as a call has it
    db.train("'t', name => 'body', features => '{body}', max_epochs => 3, seed => 1");
    db.train("'t', name => 'tags', features => '{tags}', max_epochs => 3, seed => 1");
    let given = "SELECT bool_and(corgipile_predict('body', body) = corgipile_predict('body', t))
                    AND bool_and(corgipile_predict('tags', tags) = corgipile_predict('tags', t)) FROM t WHERE body IS NOT NULL AND tags IS NOT NULL";
    assert!(db.value::<bool>(given));
    let good: f64 = db.value("SELECT (corgipile_predict_proba('body', to_tsvector('simple', 'a good, good film')))[2]");
    let bad: f64 = db.value("SELECT (corgipile_predict_proba('body', to_tsvector('simple', 'a bad, bad film')))[2]");
    assert!(good > 0.5 && bad < 0.5, "{good} {bad}");
    // a row without words has the intercept alone, and what training has not met has a bucket, too
    let intercept = "SELECT corgipile_predict('body', ''::tsvector) = (intercepts[1] > 0)::int
                            AND corgipile_predict('body', to_tsvector('simple', 'never met')) IS NOT NULL
                       FROM corgipile.models WHERE name = 'body'";
    assert!(db.value::<bool>(intercept));
}

#[test]
fn words_are_features_if_they_are_named_or_nothing_else_is() {
    let mut db = Database::new();
    tables(&mut db);
    let mut features = |arguments: &str| {
        let id = db.train(&format!("{arguments}, max_epochs => 1, seed => 1"))[0].model_id;
        db.line(&format!("SELECT features FROM corgipile.models WHERE model_id = {id}"))
    };
    assert_eq!(features("'t'"), "{a}");
    assert_eq!(features("'t', features => '{*,-id}'"), "{a,body,tags}");
    assert_eq!(features("'SELECT id, body, label FROM t'"), "{body}");
    assert_eq!(features("'SELECT id, body, tags, label FROM t'"), "{body,tags}");
    let told = db.notices(&["SELECT FROM corgipile_train('t', max_epochs => 1)"]);
    assert!(
        told.contains(
            "left out: id (identifies rows, by its name), body (tsvector: name it in features to use its words), \
             tags (text[]: name it in features to use its words)"
        ),
        "{told}"
    );
}

#[test]
fn words_that_cannot_be_read_are_errors() {
    let mut db = Database::new();
    tables(&mut db);
    db.rejects("SELECT corgipile_train('SELECT label, ARRAY[tags, tags] AS tags FROM t WHERE id = 1 OR id = 2', features => '{tags}')", "2202E")
        .says(&["array of column \"tags\" has 2 dimensions in row"]);
    db.rejects("SELECT corgipile_train('t', features => '{body}', options => '{\"hash\": \"off\"}')", "22023")
        .says(&["cannot be off: the words of column \"body\" are hashed"]);
    db.rejects("SELECT corgipile_train('t', features => '{body}', nulls => 'error')", "22004")
        .says(&["feature body is NULL"]);
    db.rejects("SELECT corgipile_train_uda('t', features => '{body}')", "0A000")
        .says(&["features of text, enums or words"]);
    db.train("'t', name => 'm', features => '{body,a,tags}', max_epochs => 1");
    db.fails_with("SELECT corgipile_predict('m', tags, a, tags) FROM t", "42804").hints(&["trained on a tsvector"]);
    db.fails_with("SELECT corgipile_predict('m', body, a, body) FROM t", "42804").hints(&["trained on arrays of text"]);
    db.fails_with("SELECT corgipile_predict('m', body::text, a, tags) FROM t", "42804")
        .hints(&["trained on a tsvector"]);
    db.fails_with("SELECT corgipile_predict('m', body, a, tags, nulls => 'error') FROM t WHERE id = 20", "42883");
    let evaluate = "SELECT * FROM corgipile_evaluate('m', 'SELECT id, label, a, body::text AS body, tags FROM t')";
    db.fails_with(evaluate, "42804").hints(&["The model was trained on a tsvector in this column."]);
    let nulls = |policy: &str| format!("SELECT corgipile_predict('m', t, {policy}) IS NULL FROM t WHERE id = 20");
    assert!(!db.value::<bool>(&nulls("nulls => 'impute'")));
    assert!(db.value::<bool>(&nulls("nulls => 'skip'")));
    db.fails_with(&nulls("nulls => 'error'"), "22004").says(&["body"]);
    for categories in [
        r#"{"body": {"buckets": 7, "of": "lexemes"}, "tags": {"buckets": 8, "of": "elements"}}"#,
        r#"{"body": {"buckets": 7, "of": "words"}}"#,
        r#"{"body": {"elements": 7, "of": "elements"}}"#,
    ] {
        let import =
            format!("SELECT corgipile_import(jsonb_set(corgipile_export('m'), '{{categories}}', '{categories}'))");
        db.fails_with(&import, "22023");
    }
}
