//! Columns of text and enums: categories, one-hot.

use corgipile_tests::{Database, assert_close, skip};

const TRAINING: &str = "max_epochs => 3, seed => 11, learning_rate => 0.05, shuffle => 'no_shuffle'";

/// A table with two columns of categories and two of numbers, whose columns depend on the label.
fn table(db: &mut Database) {
    db.run(
        "CREATE TYPE size AS ENUM ('small', 'large', 'huge');
         CREATE TABLE t AS
         SELECT i AS id, label, (ARRAY['red', 'green', 'blue'])[1 + (2.5 * uniform(i, 1) * (1 + label) / 2)::int] AS colour,
                normal(i, 2) + label AS a, (ARRAY['small', 'large', 'huge']::size[])[1 + (2 * uniform(i, 3))::int] AS size,
                uniform(i, 4) < 0.3 AS b
         FROM (SELECT i, (uniform(i, 0) < 0.5)::int AS label FROM generate_series(1, 400::bigint) i) r ORDER BY i",
    );
}

#[test]
fn categories_are_columns_of_zeros_and_ones() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "CREATE TABLE by_hand AS
         SELECT label, (colour = 'blue')::int AS blue, (colour = 'green')::int AS green, (colour = 'red')::int AS red, a,
                (size = 'small')::int AS small, (size = 'large')::int AS large, (size = 'huge')::int AS huge, b
         FROM t ORDER BY id",
    );
    for (model, options) in [
        ("logistic", "{}"),
        ("svm", r#"{"l2": 0.01}"#),
        ("linear", r#"{"batch_size": 8}"#),
        ("softmax", r#"{"optimizer": "adam"}"#),
    ] {
        let categories = db
            .trained(&format!("'t', '{model}', features => '{{colour,a,size,b}}', {TRAINING}, options => '{options}'"));
        let by_hand = db.trained(&format!("'by_hand', '{model}', {TRAINING}, options => '{options}'"));
        assert_close(&categories.parameters(), &by_hand.parameters(), 1e-3);
    }
    let stored = db.line("SELECT features, feature_kind, categories->'colour', categories->'size', categories->'a' FROM corgipile.models WHERE model_id = 1");
    assert_eq!(
        stored,
        "{colour,a,size,b}|columns|[\"blue\", \"green\", \"red\"]|[\"small\", \"large\", \"huge\"]|NULL"
    );
    let names = db
        .column::<String>("SELECT feature FROM corgipile.coefficients WHERE model_id = 1 AND feature <> '(intercept)'");
    let expected = ["colour=blue", "colour=green", "colour=red", "a", "size=small", "size=large", "size=huge", "b"];
    assert_eq!(names, expected);
}

#[test]
fn text_of_every_type_gives_the_same_categories() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE DOMAIN word AS text CHECK (VALUE <> ''); CREATE TYPE colour AS ENUM ('blue', 'green', 'red')");
    let expected = db.trained(&format!("'t', features => '{{colour,a}}', {TRAINING}")).bits();
    for kind in ["varchar(10)", "char(5)", "char(9)", "word", "colour"] {
        let source = format!("SELECT label, a, colour::{kind} AS colour FROM t");
        let id = db.train(&format!("'{source}', features => '{{colour,a}}', {TRAINING}"))[0].model_id;
        assert_eq!(db.model(id).bits(), expected, "{kind}");
        let stored = db.line(&format!("SELECT categories->'colour' FROM corgipile.models WHERE model_id = {id}"));
        assert_eq!(stored, "[\"blue\", \"green\", \"red\"]", "{kind}");
    }
}

#[test]
fn text_that_only_looks_different_is_one_category() {
    let mut db = Database::new();
    if !db.is_built_with("icu") {
        return skip(text_that_only_looks_different_is_one_category, "the server was built without ICU");
    }
    db.run(
        "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         CREATE TABLE t AS SELECT i % 2 AS label, (ARRAY['Red', 'red', 'RED', 'blue', 'Blue', 'a', 'b', 'c', 'd', 'e', 'A'])[1 + i % 11] COLLATE blind AS c
         FROM generate_series(0, 99) i",
    );
    db.train("'t', features => '{c}'");
    assert_eq!(db.line("SELECT jsonb_array_length(categories->'c') FROM corgipile.models"), "7");
}

#[test]
fn only_numbers_are_standardized() {
    let mut db = Database::new();
    table(&mut db);
    let id = db
        .train(&format!("'t', features => '{{a,colour,b}}', {TRAINING}, options => '{{\"standardize\": true}}'"))[0]
        .model_id;
    let stored = db.line(&format!(
        "SELECT feature_mean[2:4], feature_scale[2:4],
                abs(feature_mean[1] - (SELECT avg(a) FROM t)) < 1e-6, abs(feature_scale[1] - (SELECT stddev_pop(a) FROM t)) < 1e-6,
                abs(feature_mean[5] - (SELECT avg(b::int) FROM t)) < 1e-6
         FROM corgipile.models WHERE model_id = {id}"
    ));
    assert_eq!(stored, "{0,0,0}|{1,1,1}|t|t|t");
    db.run(
        "CREATE TABLE by_hand AS
         SELECT label, ((a - avg(a) OVER ()) / stddev_pop(a) OVER ())::real AS a, (colour = 'blue')::int AS blue,
                (colour = 'green')::int AS green, (colour = 'red')::int AS red,
                ((b::int - avg(b::int) OVER ()) / stddev_pop(b::int) OVER ())::real AS b
         FROM t ORDER BY id",
    );
    let by_hand = db.trained(&format!("'by_hand', {TRAINING}"));
    assert_close(&db.model(id).parameters(), &by_hand.parameters(), 1e-3);
}

#[test]
fn categories_alone_are_features_and_every_strategy_learns_from_them() {
    let mut db = Database::new();
    table(&mut db);
    for strategy in ["no_shuffle", "shuffle_once", "epoch_shuffle", "sliding_window", "mrs", "block_only", "corgipile"]
    {
        for options in ["{}", r#"{"standardize": true, "class_weight": "balanced"}"#] {
            let epochs = db.train(&format!(
                "'t', features => '{{colour,size}}', shuffle => '{strategy}', seed => 1, learning_rate => 0.05, options => '{options}'"
            ));
            assert!(epochs[19].tuples >= 400 && epochs[19].loss < epochs[0].loss, "{strategy} {options}: {epochs:?}");
        }
    }
    // no names are needed
    assert_eq!(db.trained("'SELECT label, colour FROM t', max_epochs => 1").weights.len(), 3);
}

#[test]
fn null_and_overlong_categories_are_refused() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE bad AS SELECT * FROM t WHERE id <= 10; UPDATE bad SET colour = NULL WHERE id = 3");
    let train = |source: &str, options: &str| {
        format!("SELECT * FROM corgipile_train('{source}', features => '{{colour,a}}', options => '{options}')")
    };
    db.rejects(&train("bad", r#"{"nulls": "error"}"#), "22004")
        .says(&["feature colour is NULL", "(0,"])
        .hints(&["skip"]);
    db.run(&train("bad", r#"{"nulls": "skip"}"#));
    assert_eq!(db.line("SELECT skipped, history->0->>'tuples' FROM corgipile.models"), "1|9");
    db.run("UPDATE bad SET colour = repeat('x', 8192) WHERE id = 3");
    db.rejects(&train("bad", r#"{"hash": "off"}"#), "54000").says(&["colour", "8192 bytes", "(0,"]);
    db.rejects(&train("SELECT label, colour, ''NaN''::real AS a FROM t", "{}"), "22003").says(&[
        "feature a",
        "NaN",
        "in row (",
    ]);
}

#[test]
fn a_volatile_source_is_read_once_and_has_no_surprises() {
    let mut db = Database::new();
    table(&mut db);
    let source = "SELECT label, a, ''c'' || (20 * random())::int AS c FROM t";
    let epochs = db.train(&format!("'{source}', features => '{{a,c}}', seed => 1, max_epochs => 3"));
    assert_eq!(epochs[2].tuples, 400);
}

#[test]
fn labels_or_categories_that_appear_after_the_first_pass_are_an_error() {
    let mut db = Database::new();
    table(&mut db);
    // says that it gives the same each time, and does not
    db.run(
        "CREATE SEQUENCE s;
         CREATE FUNCTION liar(text) RETURNS text STABLE LANGUAGE plpgsql AS
         $$ BEGIN RETURN CASE WHEN nextval('s') > 400 THEN 'new' ELSE $1 END; END $$",
    );
    let train = |arguments: &str| format!("SELECT * FROM corgipile_train({arguments}, shuffle => 'no_shuffle')");
    db.rejects(&train("'SELECT label, liar(colour) AS colour FROM t', features => '{colour}'"), "55000")
        .says(&["category new", "(0,1)"])
        .hints(&["store"]);
    db.run("ALTER SEQUENCE s RESTART");
    db.rejects(&train("'SELECT liar(colour) AS label, a FROM t', 'softmax'"), "55000").says(&["label new", "(0,1)"]);
}
