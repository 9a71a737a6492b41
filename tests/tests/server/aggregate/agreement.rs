//! An aggregate learns what the nodes learn, from every kind of features, with every model and option.

use corgipile_tests::{Database, Session};

/// Creates tables `dense` (label int, target real, class text, features_v real[8]) and `sparse` (the same with
/// features_k int[], from 1, and features_v), which hold the same 700 tuples, two thirds of whose features are 0.
pub fn dense_and_sparse(session: &mut Session) {
    session.run(
        "CREATE TABLE dense AS
         SELECT id, (x[1] - x[3] + normal(id, 20) / 2 > 0)::int AS label, (2 * x[2] + x[3] - 1 + normal(id, 21))::real AS target,
                CASE WHEN x[1] > 0.5 THEN 'high' WHEN x[4] > 0.5 THEN 'other' ELSE 'Low' END AS class, x AS features_v
           FROM (SELECT i::int AS id, ARRAY(SELECT CASE WHEN uniform(i, 100 + j) < 0.4 THEN normal(i, j) ELSE 0 END
                                     FROM generate_series(1, 8) j)::real[] AS x
                   FROM generate_series(1, 700::bigint) i) r;
         CREATE TABLE sparse AS
         SELECT id, label, target, class,
                ARRAY(SELECT j FROM generate_series(1, 8) j WHERE features_v[j] <> 0 ORDER BY j) AS features_k,
                ARRAY(SELECT features_v[j] FROM generate_series(1, 8) j WHERE features_v[j] <> 0 ORDER BY j) AS features_v
           FROM dense;
         ANALYZE dense; ANALYZE sparse;",
    );
}

/// Weights and intercepts of a stored model.
pub fn parameters(session: &mut Session, id: i64) -> Vec<f64> {
    session.column::<f64>(&format!(
        "SELECT w::float8 FROM corgipile.models, unnest(weights || intercepts) WITH ORDINALITY AS u(w, i)
         WHERE model_id = {id} ORDER BY i"
    ))
}

/// The id of the model that a training function has stored.
pub fn train(session: &mut Session, function: &str, arguments: &str) -> i64 {
    session.column::<i64>(&format!("SELECT model_id FROM {function}({arguments})"))[0]
}

/// The arguments with what is not given as the aggregate has it: it chooses nothing by the tuples.
fn as_aggregates_do(arguments: &str) -> String {
    let rate = if arguments.contains("adam") { 0.001 } else { 0.01 };
    let scales = arguments.contains("standardize");
    let standardize = if scales { "" } else { ", standardize => false" };
    format!("{arguments}, learning_rate => {rate}{standardize}")
}

/// Asserts that numbers differ by less than `bound` of the largest. Weights that l1 holds at 0 are small in an
/// aggregate, and 0 where the node has stored them.
fn assert_near(given: &[f64], expected: &[f64], bound: f64, what: &str) {
    assert_eq!(given.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(0.0, |scale: f64, v| scale.max(v.abs()));
    for (given, expected) in given.iter().zip(expected) {
        let bound = if what.contains("l1") && *expected == 0.0 { 0.01 } else { bound };
        assert!((given - expected).abs() <= bound * scale, "{what}: {given} is not {expected} (of up to {scale})");
    }
}

const KINDS: [(&str, &str); 4] = [("logistic", "label"), ("svm", "label"), ("linear", "target"), ("softmax", "class")];

const OPTIONS: [&str; 9] = [
    "{}",
    r#"{"batch_size": 128}"#,
    r#"{"l2": 0.01}"#,
    r#"{"l1": 0.001, "batch_size": 7}"#,
    r#"{"optimizer": "momentum"}"#,
    r#"{"optimizer": "momentum", "batch_size": 128, "l2": 0.001, "schedule": "inverse_scaling"}"#,
    r#"{"optimizer": "adam"}"#,
    r#"{"optimizer": "adam", "batch_size": 128, "l1": 0.0001, "schedule": "constant"}"#,
    r#"{"standardize": true}"#,
];

/// Trains on both paths with all options, and compares every epoch and the weights.
fn paths_agree(table: &str) {
    let mut db = Database::new();
    dense_and_sparse(&mut db);
    for (model, label) in KINDS {
        let features = if table == "sparse" { "{features_k,features_v}" } else { "{features_v}" };
        // the aggregate scales features, and not targets
        for options in OPTIONS.into_iter().filter(|options| model != "linear" || !options.contains("standardize")) {
            let arguments = format!(
                "'{table}', '{model}', '{label}', '{features}', max_epochs => 4, shuffle => 'no_shuffle', options => '{options}'"
            );
            let what = format!("{table}, {model}, {options}");
            let operator = train(&mut db, "corgipile_train", &as_aggregates_do(&arguments));
            let aggregate = train(&mut db, "corgipile_train_uda", &arguments);
            let (expected, given) = (parameters(&mut db, operator), parameters(&mut db, aggregate));
            assert_near(&given, &expected, 1e-5, &what);
            let mut history = |id| {
                db.column::<f64>(&format!(
                    "SELECT v FROM corgipile.training_history,
                            unnest(ARRAY[loss, coalesce(accuracy, r2), learning_rate, tuples]) WITH ORDINALITY AS u(v, i)
                      WHERE model_id = {id} ORDER BY epoch, i"
                ))
            };
            let (expected, given) = (history(operator), history(aggregate));
            assert_eq!(given.len(), 16);
            for (given, expected) in given.iter().zip(&expected) {
                assert!((given - expected).abs() <= 1e-4 * expected.abs() + 0.003, "{what}: {given} is not {expected}");
            }
        }
    }
}

#[test]
fn both_paths_learn_the_same_from_dense_tuples() {
    paths_agree("dense");
}

#[test]
fn both_paths_learn_the_same_from_sparse_tuples() {
    paths_agree("sparse");
}

#[test]
fn both_paths_learn_the_same_from_columns_of_numbers() {
    let mut db = Database::with_small_table(300);
    db.run("ALTER TABLE t ADD flag boolean, ADD n numeric; UPDATE t SET flag = a > b, n = round(c::numeric, 2);");
    let arguments = "'t', features => '{a,b,c,flag,n}', max_epochs => 3, shuffle => 'no_shuffle',
                     options => '{\"nulls\": \"error\"}'";
    let operator = train(&mut db, "corgipile_train", &as_aggregates_do(arguments));
    let aggregate = train(&mut db, "corgipile_train_uda", arguments);
    let (expected, given) = (parameters(&mut db, operator), parameters(&mut db, aggregate));
    assert_eq!(given.len(), 6);
    assert_near(&given, &expected, 1e-5, "columns");
    let kept = "SELECT label_type, classes, features, feature_kind, skipped, hyperparameters->>'l2',
                       hyperparameters->>'batch_size', hyperparameters->>'nulls' FROM corgipile.models WHERE model_id = ";
    assert_eq!(db.line(&format!("{kept}{aggregate}")), db.line(&format!("{kept}{operator}")));
}

#[test]
fn labels_of_any_type_are_mapped_in_their_order() {
    let mut db = Database::with_small_table(200);
    db.run(
        "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN code AS char(3);
         CREATE TABLE l AS SELECT a, b, c, label, label * 2 - 1 AS signs, label = 1 AS flag, (label / 2.0)::numeric(4, 2) AS half,
                CASE label WHEN 1 THEN 'it''s' ELSE 'B' END AS word, (CASE label WHEN 1 THEN 'glad' ELSE 'sad' END)::mood AS mood,
                (CASE label WHEN 1 THEN 'xyz' ELSE 'a' END)::code AS code, (label * 1e-7)::real AS tiny FROM t;",
    );
    let mut expected = None;
    for label in ["label", "signs", "flag", "half", "word", "mood", "code", "tiny"] {
        for model in ["logistic", "softmax"] {
            let arguments = format!("'l', '{model}', '{label}', '{{a,b,c}}', max_epochs => 2, shuffle => 'no_shuffle'");
            let aggregate = train(&mut db, "corgipile_train_uda", &arguments);
            let operator = train(&mut db, "corgipile_train", &as_aggregates_do(&arguments));
            let classes = |id| format!("SELECT classes FROM corgipile.models WHERE model_id = {id}");
            assert_eq!(db.line(&classes(aggregate)), db.line(&classes(operator)));
            let given = parameters(&mut db, aggregate);
            assert_near(&given, &parameters(&mut db, operator), 1e-5, label);
            if model == "logistic" && label != "word" {
                assert_eq!(&given, expected.get_or_insert(given.clone()), "{label}");
            }
        }
    }
}
