//! Models as values that predict without being stored, written by hand or refused.

use super::export::{quoted, table, train};
use corgipile_tests::{Database, Failure};

#[test]
fn a_model_as_a_value_predicts_from_wherever_it_comes() {
    let mut db = Database::new();
    table(&mut db);
    let ids = train(&mut db);
    // Two that are wide enough to be stored out of line, and differ.
    db.run(
        "CREATE TABLE wide AS SELECT i % 2 AS label, ARRAY(SELECT normal(i, j)::real FROM generate_series(1, 3000) j) AS x
           FROM generate_series(1, 20::bigint) i",
    );
    let wide = [1, 2].map(|seed| {
        db.train(&format!("'wide', max_epochs => 1, seed => {seed}, learning_rate => 0.1 * {seed}"))[0].model_id
    });
    db.run(&format!(
        "CREATE TABLE models AS SELECT id, corgipile_export(id) AS model FROM unnest(ARRAY[{}, {}]::bigint[]) id",
        wide[0], wide[1]
    ));
    assert_eq!(
        db.line("SELECT sum(pg_column_size(model)) > 30000, pg_relation_size('models') <= 8192 FROM models"),
        "t|t"
    );
    let by = |model: &str| {
        format!("SELECT corgipile_predict_proba({model}, w.x) FROM models m, wide w ORDER BY m.id, w.x[1]")
    };
    let expected = db.lines(&by("m.id"));
    assert_eq!(db.lines(&by("m.model")), expected);
    assert_ne!(expected[..20], expected[20..]);
    // The column of the same row has another value in the next statement, and in a snapshot of its own.
    let first =
        db.lines("SELECT corgipile_predict_proba((SELECT model FROM models WHERE id = 10), x) FROM wide ORDER BY x[1]");
    assert_eq!(first, expected[..20]);
    db.run(&format!("UPDATE models SET model = corgipile_export({}) WHERE id = {}", wide[1], wide[0]));
    assert_eq!(
        db.lines("SELECT corgipile_predict_proba(model, x) FROM models, wide WHERE id = 10 ORDER BY x[1]"),
        expected[20..]
    );

    // A parameter, and a variable that changes from one evaluation to the next.
    db.run("PREPARE predict(jsonb) AS SELECT corgipile_predict_proba($1, x) FROM t WHERE id = 1; SET plan_cache_mode = force_generic_plan");
    let of = |id: i64| format!("SELECT corgipile_predict_proba({id}, x) FROM t WHERE id = 1");
    for _ in 0..2 {
        for id in [ids[0], ids[3]] {
            let model = db.line(&format!("SELECT corgipile_export({id})"));
            assert_eq!(db.line(&format!("EXECUTE predict({})", quoted(&model))), db.line(&of(id)));
        }
    }
    db.run(&format!(
        "DO $$
         DECLARE m jsonb; i bigint; features real[] := '{{1,2,3}}';
         BEGIN
             FOR round IN 1..3 LOOP
                 FOREACH i IN ARRAY ARRAY[{}, {}] LOOP
                     m := corgipile_export(i);
                     ASSERT corgipile_predict_proba(m, features) = corgipile_predict_proba(i, features);
                 END LOOP;
             END LOOP;
         END $$",
        ids[0], ids[3]
    ));
    // More models than are kept at a time, row by row.
    assert_eq!(
        db.line(&format!(
            "SELECT count(*), bool_and(corgipile_predict_proba(corgipile_export({id}) || jsonb_build_object('source', j::text), x)
                                       = corgipile_predict_proba({id}, x))
               FROM t, generate_series(1, 7) j WHERE id < 20",
            id = ids[0]
        )),
        "133|t"
    );
    // The type's name means another type from one statement to the next.
    db.run("CREATE SCHEMA one; CREATE SCHEMA two; CREATE DOMAIN one.answer AS int; CREATE DOMAIN two.answer AS text");
    let model = db.line(&format!("SELECT corgipile_export({}) || '{{\"label_type\": \"answer\"}}'", ids[0]));
    let ask = format!("SELECT corgipile_predict({}, x) FROM t WHERE id = 1", quoted(&model));
    db.fails_with(&ask, "22023").says(&["label_type", "answer"]);
    db.run("SET search_path = public, one");
    let label = db.line(&ask);
    db.run("SET search_path = public, two");
    db.fails_with(&ask, "0A000").says(&["text labels"]);
    db.run("SET search_path = public, one");
    assert_eq!(db.line(&ask), label);
    db.run("DROP DOMAIN one.answer");
    db.fails_with(&ask, "22023").says(&["label_type", "answer"]);
    db.run("RESET search_path");

    let parallel = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
                    SET max_parallel_workers_per_gather = 2;";
    let model = db.line(&format!("SELECT corgipile_export({})", ids[0]));
    let sum = |model: &str| format!("SELECT sum(corgipile_predict({model}, x)) FROM t");
    let alone = db.line(&sum(&quoted(&model)));
    db.run(parallel);
    assert!(db.lines(&format!("EXPLAIN {}", sum(&quoted(&model)))).iter().any(|line| line.contains("Workers Planned")));
    assert_eq!(db.line(&sum(&quoted(&model))), alone);
}

/// A model of two numbers and a column of categories, written by hand;
/// `feature_mean` and `feature_scale` make nothing of it.
const BY_HAND: &str = r#"{"corgipile_model": 1, "model": "logistic", "label": "y", "label_type": "integer", "classes": ["-1", "1"],
    "features": ["a", "level", "b"], "feature_kind": "columns", "categories": {"level": ["low", "high", "mid"]},
    "weights": [0.5, 10, 20, 40, -3], "intercepts": [0.25]}"#;

#[test]
fn a_model_can_be_written_by_hand() {
    let mut db = Database::new();
    let predict = |function: &str, a: f64, level: &str, b: f64| {
        format!(
            "SELECT {function}({}, r) FROM (SELECT {a}::float8 AS a, '{level}'::text AS level, {b}::real AS b) r",
            quoted(BY_HAND)
        )
    };
    // 0.5 * 2 + 20 - 3 * b + 0.25 = 21.25 - 3 b
    assert_eq!(db.line(&predict("corgipile_predict", 2.0, "high", 7.0)), "1");
    assert_eq!(db.line(&predict("corgipile_predict_label", 2.0, "high", 7.125)), "-1");
    let probabilities: Vec<f64> = db.value(&predict("corgipile_predict_proba", 2.0, "high", 7.0));
    assert!((probabilities[1] - 1.0 / (1.0 + f64::exp(-0.25))).abs() < 1e-7, "{probabilities:?}");
    let said = db.fails_with(&predict("corgipile_predict", 2.0, "huge", 7.0), "22023");
    said.says(&["huge", "level", "the given model"]);
    db.fails_with(&format!("SELECT corgipile_predict({}, ARRAY[1, 2])", quoted(BY_HAND)), "0A000")
        .says(&["the given model"]);

    let id: i64 = db.value(&format!("SELECT corgipile_import({})", quoted(BY_HAND)));
    assert_eq!(
        db.line(&format!(
            "SELECT name, source, weights, hyperparameters, history FROM corgipile.models WHERE model_id = {id}"
        )),
        "NULL||{0.5,10,20,40,-3}|{}|[]"
    );
    assert_eq!(db.value::<i64>("SELECT count(*) FROM corgipile.coefficients"), 6);
    // Numbers at the ends of their types, to the bit; each number is the nearest of its type.
    let extreme = r#"{"model": "linear", "label_type": "real", "feature_kind": "array", "features": ["x"], "intercepts": [-0.0],
        "weights": [3.4028235e38, -1e-45, 0.1, 16777217],
        "feature_mean": [1e308, 4.9e-324, 0.1, -1], "feature_scale": [2.2250738585072014e-308, 1, 1e-320, 3]}"#;
    db.run(&format!(
        "CREATE TABLE m AS SELECT corgipile_import({}::jsonb - 'classes' - 'categories' || '{extreme}') AS id",
        quoted(BY_HAND)
    ));
    let numbers = "SELECT weights, feature_mean, feature_scale FROM corgipile.models WHERE model_id = ";
    let expected =
        "{3.4028235e+38,-1e-45,0.1,1.6777216e+07}|{1e+308,5e-324,0.1,-1}|{2.2250738585072014e-308,1,1e-320,3}";
    assert_eq!(db.line(&format!("{numbers} (SELECT id FROM m)")), expected);
    let again: i64 = db.value("SELECT corgipile_import(corgipile_export(id)) FROM m");
    assert_eq!(db.line(&format!("{numbers} {again}")), expected);
}

#[test]
fn what_is_no_model_is_refused_by_the_key_that_is_wrong() {
    let mut db = Database::new();
    db.run(&format!("CREATE TABLE base AS SELECT {} AS model", quoted(BY_HAND)));
    // BY_HAND with these members instead
    let with = |patch: &str| format!("(SELECT model || {} FROM base)", quoted(patch));
    let mut refuse = |model: &str, words: &[&str]| -> Failure {
        let failure = db.rejects(&format!("SELECT corgipile_import({model})"), "22023");
        failure.says(words);
        assert!(!failure.hint.is_empty() && failure.message.len() < 300 && failure.hint.len() < 600, "{failure:?}");
        let in_prediction =
            format!("SELECT corgipile_predict({model}, r) FROM (SELECT 1 AS a, 'low' AS level, 2 AS b) r");
        assert_eq!(db.fails_with(&in_prediction, "22023"), failure);
        failure
    };
    for model in [
        "'[]'::jsonb",
        "'1'::jsonb",
        "'null'::jsonb",
        "'\"a\"'::jsonb",
        "('[' || repeat('[', 5000) || repeat(']', 5000) || ']')::jsonb",
    ] {
        refuse(model, &["\"model\"", "not a JSON object"]);
    }
    refuse("'{}'::jsonb", &["corgipile_model", "missing"]);
    for key in [
        "corgipile_model",
        "model",
        "label",
        "label_type",
        "classes",
        "features",
        "feature_kind",
        "weights",
        "intercepts",
    ] {
        refuse(&format!("(SELECT model - '{key}' FROM base)"), &[&format!("\"{key}\""), "missing"])
            .hints(&["corgipile_export"]);
        refuse(&with(&format!("{{\"{key}\": null}}")), &[&format!("\"{key}\"")]);
        refuse(&with(&format!("{{\"{key}\": {{\"a\": [1e400]}}}}")), &[&format!("\"{key}\"")]);
    }
    for version in ["2", "0"] {
        refuse(&with(&format!("{{\"corgipile_model\": {version}, \"new\": 1}}")), &["\"corgipile_model\"", version])
            .hints(&["version 1"]);
    }
    for version in ["\"1\"", "-1", "1.5", "1e300", "1e400", "[1]"] {
        refuse(&with(&format!("{{\"corgipile_model\": {version}}}")), &["\"corgipile_model\""]);
    }
    refuse(&with(r#"{"weigths": [1]}"#), &["\"weigths\"", "unknown"]).hints(&["weights", "history"]);
    refuse("(SELECT model || jsonb_build_object(repeat('x', 100000), 1) FROM base)", &["xxx...", "unknown"]);
    refuse(&with(r#"{"model": "tree"}"#), &["\"model\"", "tree"]).hints(&["softmax"]);
    refuse("(SELECT model || jsonb_build_object('model', repeat('x', 100000)) FROM base)", &["\"model\""]);

    let cases: [(&str, &[&str]); 16] = [
        (
            "classes",
            &[
                "[]",
                "[\"1\"]",
                "[\"1\", \"2\", \"3\"]",
                "[\"1\", \"1\"]",
                "[1, 2]",
                "[\"1\", null]",
                "\"1\"",
                "[\"a\", \"b\"]",
                "[\"1\", \"NaN\"]",
                "[\"1\", \"1e999\"]",
            ],
        ),
        (
            "label_type",
            &["\"nonsense\"", "\"\"", "\"int; DROP TABLE base\"", "\"int, text\"", "5", "\"no.such.type.at.all\""],
        ),
        ("label", &["1", "[\"y\"]"]),
        (
            "weights",
            &[
                "[]",
                "[1, 2, 3, 4]",
                "[1, 2, 3, 4, 5, 6]",
                "[1, 2, 3, 4, 1e39]",
                "[1, 2, 3, 4, -1e39]",
                "[1, 2, 3, 4, 1e400]",
                "[1, 2, 3, 4, null]",
                "[1, 2, 3, 4, \"5\"]",
                "[[1, 2, 3, 4, 5]]",
                "\"AAAA\"",
                "\"AAA\"",
                "\"....\"",
                "\"\"",
                "\"AAAAAA==\"",
                "\"AAAAAA==\\n\"",
                "7",
                "true",
                // NaN, infinity, and five numbers without what fills up
                "\"AAAAAAAAAAAAAAAAAAAAAAAAwH8=\"",
                "\"AAAAAAAAAAAAAAAAAAAAAAAAgH8=\"",
                "\"AAAAAAAAAAAAAAAAAAAAAAAAAAA\"",
            ],
        ),
        ("intercepts", &["[]", "[1, 2]", "1", "\"AADAfw==\"", "[1e39]", "[1e400]"]),
        ("feature_mean", &["[1, 2, 3, 4, 5]", "\"\""]),
        ("feature_scale", &["[1, 2, 3, 4, 5]", "[1]"]),
        ("features", &["[]", "[\"a\"]", "[\"a\", 1, \"b\"]", "\"a\"", "{}"]),
        ("feature_kind", &["\"array\"", "\"sparse\"", "\"Columns\"", "1"]),
        (
            "categories",
            &[
                "{\"level\": []}",
                "{\"level\": [\"low\", \"low\", \"mid\"]}",
                "{\"c\": [\"low\", \"high\", \"mid\"]}",
                "{}",
                "[]",
                "{\"level\": [1, 2, 3]}",
                "{\"level\": \"low\"}",
            ],
        ),
        ("index_base", &["0", "1", "2", "-1", "\"1\"", "1e20"]),
        ("hyperparameters", &["[]", "{\"handle_unknown\": \"maybe\"}", "{\"nulls\": 1}", "{\"a\": 1e400}"]),
        ("skipped", &["-1", "1.5", "1e19", "9223372036854775808", "\"1\""]),
        ("preparation_seconds", &["-1", "1e300", "1e400", "\"1\""]),
        ("shuffle_bytes", &["-1", "1e30"]),
        (
            "history",
            &[
                "{}",
                "[1]",
                "[{}]",
                "[{\"epoch\": \"1\"}]",
                "[{\"epoch\": 1, \"other\": 1}]",
                "[{\"epoch\": 1, \"loss\": 1e400}]",
                "[{\"epoch\": 3000000000}]",
                "\"\"",
            ],
        ),
    ];
    for (key, values) in cases {
        for value in values {
            // Where several keys do not fit each other, the message is about one of them.
            let named = match (key, *value) {
                ("features" | "categories" | "index_base", _) => "key",
                ("feature_mean", _) => "feature_scale",
                ("feature_scale", _) => "feature_mean",
                _ => key,
            };
            refuse(&with(&format!("{{\"{key}\": {value}}}")), &[named]);
        }
    }
    refuse(
        &with(r#"{"feature_mean": [1, 2, 3, 4], "feature_scale": [1, 2, 3, 4, 5]}"#),
        &["\"feature_mean\" of the model has 4 numbers"],
    );
    refuse(&with(r#"{"feature_mean": [1, 2, 3, 4, 5], "feature_scale": [1, 2, 3, 0, 5]}"#), &["feature_scale", "0"]);
    refuse(&with(r#"{"feature_mean": [1, 2, 3, 4, 5], "feature_scale": [1, 2, 3, -4, 5]}"#), &["feature_scale", "-4"]);
    refuse(
        &with(r#"{"feature_mean": [1, 2, 3, 4, 1e309], "feature_scale": [1, 2, 3, 4, 5]}"#),
        &["feature_mean", "double precision"],
    );
    refuse(&with(r#"{"weights": [1, 2, 3, 1e39, 5]}"#), &["weights", "real", "position 4"]);
    refuse(&with(r#"{"model": "linear"}"#), &["\"classes\"", "linear"]);
    refuse(&with(r#"{"model": "softmax", "intercepts": [1, 2]}"#), &["\"weights\"", "5 numbers", "2 for each feature"]);
    refuse(&with(r#"{"model": "softmax", "classes": ["1", "2", "3"]}"#), &["\"intercepts\"", "1 numbers", "3"])
        .hints(&["per class"]);
    refuse(&with(r#"{"model": "softmax", "classes": ["1"]}"#), &["\"classes\"", "at least 2"]);
    let nested = "(SELECT model || jsonb_build_object('hyperparameters', (repeat('{\"a\":', 3000) || '1' || repeat('}', 3000))::jsonb) FROM base)";
    refuse(nested, &["\"hyperparameters\"", "nested too deeply"]).hints(&["127 levels"]);
    let number = "(SELECT model || '{\"hyperparameters\": {\"a\": 1e400}}' FROM base)";
    refuse(number, &["\"hyperparameters\"", "out of range for type double precision"]);
    let long = "(SELECT model || jsonb_build_object('hyperparameters', jsonb_build_object('a', repeat('x', 1048577))) FROM base)";
    refuse(long, &["hyperparameters", "1048576"]);
    let many = "(SELECT model || jsonb_build_object('features', (SELECT jsonb_agg(''::text) FROM generate_series(1, 1000001))) FROM base)";
    refuse(many, &["features", "1000000"]);
    // The session, and what is right, are unharmed.
    db.run("SELECT corgipile_import(model) FROM base");
    // as deep as it may be, there and back
    let deep = "(SELECT model || jsonb_build_object('hyperparameters', (repeat('{\"a\":', 127) || '1' || repeat('}', 127))::jsonb) FROM base)";
    let id: i64 = db.value(&format!("SELECT corgipile_import({deep})"));
    db.run(&format!("SELECT corgipile_import(corgipile_export({id}))"));
}
