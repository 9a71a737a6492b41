//! Sparse tuples: an array of indices and an array of values.

use corgipile_tests::{Database, Failure, assert_close};

const TRAINING: &str =
    "max_epochs => 3, seed => 11, learning_rate => 0.05, standardize => false, shuffle => 'no_shuffle'";

/// Tables with the same tuples of 40 features, about 6 of them not 0: `dense(id, label, x)` and
/// `sparse(id, label, features_k, features_v)`, indices from 1.
fn twins(db: &mut Database) {
    db.run(
        "CREATE TABLE dense AS
         SELECT i AS id, (uniform(i, 0) < 0.4)::int AS label, uniform(i, 99) AS w,
                ARRAY(SELECT CASE WHEN uniform(i, j) < 0.15 THEN normal(i, j + 50) + uniform(i, 0) ELSE 0 END
                      FROM generate_series(1, 40) j ORDER BY j)::real[] AS x
         FROM generate_series(1, 400::bigint) i;
         CREATE TABLE sparse AS
         SELECT id, label, w, ARRAY(SELECT j::int FROM unnest(x) WITH ORDINALITY u(v, j) WHERE v <> 0 ORDER BY j) AS features_k,
                ARRAY(SELECT v FROM unnest(x) WITH ORDINALITY u(v, j) WHERE v <> 0 ORDER BY j) AS features_v
         FROM dense ORDER BY id",
    );
}

/// A table `t(features_k, features_v, label)` with two sound rows before and one after the row with these arrays.
fn one_bad_row(db: &mut Database, types: (&str, &str), indices: &str, values: &str) {
    db.run(&format!(
        "DROP TABLE IF EXISTS t;
         CREATE TABLE t (label int, features_k {}, features_v {});
         INSERT INTO t VALUES (0, '{{1,3}}', '{{1,2}}'), (1, '{{2}}', '{{1}}'), (0, {indices}, {values}), (1, '{{1}}', '{{1}}')",
        types.0, types.1
    ));
}

/// The error that training gives in the table and in a query that is spooled.
fn rejects(db: &mut Database, options: &str, code: &str) -> Failure {
    let failure = db.rejects(&format!("SELECT * FROM corgipile_train('t', options => '{options}')"), code);
    failure.says(&["(0,3)"]);
    let spooled = format!("SELECT * FROM corgipile_train('SELECT * FROM t ORDER BY ctid', options => '{options}')");
    db.rejects(&spooled, code).says(&["number 3"]);
    let filtered = format!("SELECT * FROM corgipile_train('SELECT * FROM t WHERE label < 5', options => '{options}')");
    assert_eq!(db.rejects(&filtered, code), failure);
    failure
}

#[test]
fn dense_and_sparse_tuples_give_the_same_model() {
    let mut db = Database::new();
    twins(&mut db);
    for (model, options) in [
        ("logistic", "{}"),
        ("svm", "{}"),
        ("linear", "{}"),
        ("softmax", "{}"),
        ("logistic", r#"{"l2": 0.01}"#),
        ("svm", r#"{"l1": 0.001, "l2": 0.01}"#),
        ("logistic", r#"{"batch_size": 16, "l2": 0.01}"#),
        ("linear", r#"{"batch_size": 10, "optimizer": "momentum"}"#),
        ("softmax", r#"{"batch_size": 10, "optimizer": "adam", "l1": 0.001}"#),
        ("logistic", r#"{"schedule": "theorem1", "mu": 0.1}"#),
        ("logistic", r#"{"class_weight": "balanced", "weight": "w"}"#),
    ] {
        let train = |source: &str, features: &str| {
            // theorem1 has a rate per buffer, and the tables have different numbers of pages
            format!(
                "'{source}', '{model}', features => '{features}', options => '{options}', buffer_size => '100%', {TRAINING}"
            )
        };
        let dense = db.train(&train("dense", "{x}"));
        let sparse = db.train(&train("sparse", "{features_k,features_v}"));
        for (dense, sparse) in dense.iter().zip(&sparse) {
            assert!((dense.loss - sparse.loss).abs() <= 1e-3 * dense.loss, "{model} {options}: {dense:?} {sparse:?}");
        }
        let (dense, sparse) = (db.model(dense[0].model_id), db.model(sparse[0].model_id));
        assert_close(&sparse.parameters(), &dense.parameters(), 2e-3);
    }
}

#[test]
fn every_strategy_learns_from_sparse_tuples() {
    let mut db = Database::new();
    twins(&mut db);
    for strategy in ["no_shuffle", "shuffle_once", "epoch_shuffle", "sliding_window", "mrs", "block_only", "corgipile"]
    {
        for options in ["{}", r#"{"standardize": true}"#] {
            let epochs = db.train(&format!(
                "'sparse', shuffle => '{strategy}', seed => 3, options => '{options}', buffer_size => '20%'"
            ));
            assert!(epochs[19].loss < epochs[0].loss && epochs[19].tuples >= 400, "{strategy} {options}: {epochs:?}");
        }
    }
}

#[test]
fn the_papers_columns_are_found_by_name() {
    let mut db = Database::new();
    twins(&mut db);
    let found = db.trained(&format!("'sparse', {TRAINING}"));
    let named = db.trained(&format!("'sparse', features => '{{features_k,features_v}}', {TRAINING}"));
    assert_eq!(found.bits(), named.bits());
    let stored = db.line(
        "SELECT features, feature_kind, index_base, cardinality(weights) FROM corgipile.models WHERE model_id = 1",
    );
    assert_eq!(stored, "{features_k,features_v}|sparse|1|40");
    db.run("CREATE VIEW renamed AS SELECT label, features_k AS k, features_v AS v FROM sparse");
    let renamed = db.trained(&format!("'renamed', features => '{{k,v}}', {TRAINING}"));
    assert_eq!(found.bits(), renamed.bits());
}

#[test]
fn arrays_of_all_integers_hold_indices_and_arrays_of_all_numbers_values() {
    let mut db = Database::new();
    twins(&mut db);
    db.run("UPDATE sparse SET features_v = ARRAY(SELECT round(v) FROM unnest(features_v) v)");
    db.run("CREATE TABLE whole AS SELECT * FROM sparse ORDER BY id");
    let expected = db.trained(&format!("'whole', {TRAINING}"));
    for indices in ["smallint", "int", "bigint"] {
        for values in ["real", "float8", "smallint", "int", "bigint", "numeric"] {
            db.run(&format!(
                "DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT label, features_k::{indices}[], features_v::{values}[]
                 FROM sparse ORDER BY id"
            ));
            assert_eq!(db.trained(&format!("'t', {TRAINING}")).bits(), expected.bits(), "{indices}[], {values}[]");
        }
    }
}

#[test]
fn the_sequence_of_indices_in_a_row_and_how_it_is_stored_do_not_matter() {
    let mut db = Database::new();
    twins(&mut db);
    let expected = db.trained(&format!("'sparse', {TRAINING}")).bits();
    db.run(
        "CREATE TABLE reversed AS
         SELECT id, label, ARRAY(SELECT k FROM unnest(features_k) k ORDER BY k DESC) AS features_k,
                ARRAY(SELECT v FROM unnest(features_k, features_v) u(k, v) ORDER BY k DESC) AS features_v
         FROM sparse ORDER BY id;
         CREATE TABLE toasted (id bigint, label int, features_v real[], features_k int[]);
         ALTER TABLE toasted ALTER features_v SET STORAGE external, ALTER features_k SET STORAGE external;
         ALTER TABLE toasted SET (toast_tuple_target = 128);
         INSERT INTO toasted SELECT id, label, features_v, features_k FROM sparse ORDER BY id;",
    );
    // a row that does not fit where the last one went leaves room for others
    let inserted = "SELECT s.* FROM toasted t JOIN sparse s USING (id) ORDER BY t.ctid";
    let in_sequence = db.trained(&format!("'{inserted}', {TRAINING}")).bits();
    assert_eq!(db.trained(&format!("'toasted', {TRAINING}")).bits(), in_sequence);
    for source in [
        "reversed",
        "SELECT * FROM sparse WHERE id > 0",
        "SELECT features_v, label, features_k FROM sparse ORDER BY id",
    ] {
        assert_eq!(db.trained(&format!("'{source}', {TRAINING}")).bits(), expected, "{source}");
    }
}

#[test]
fn long_rows_are_read_from_toast() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, ARRAY(SELECT 3 * j FROM generate_series(1, 5000) j) AS features_k,
                ARRAY(SELECT normal(i, j) + i % 2 FROM generate_series(1, 5000) j)::real[] AS features_v
         FROM generate_series(1, 20) i",
    );
    assert_eq!(db.line("SELECT pg_relation_size(reltoastrelid) > 100000 FROM pg_class WHERE relname = 't'"), "t");
    let id = db.train("'t', seed => 1")[0].model_id;
    assert_eq!(db.evaluate(id, "t").accuracy, 1.0);
    assert_eq!(db.line("SELECT cardinality(weights) FROM corgipile.models"), "15000");
}

#[test]
fn indices_count_from_1_or_as_said_from_0() {
    let mut db = Database::new();
    twins(&mut db);
    let from_1 = db.trained(&format!("'sparse', {TRAINING}"));
    db.run(
        "CREATE TABLE from_0 AS SELECT id, label, ARRAY(SELECT k - 1 FROM unnest(features_k) k) AS features_k, features_v
         FROM sparse ORDER BY id",
    );
    let from_0 = db.trained(&format!("'from_0', options => '{{\"index_base\": 0}}', {TRAINING}"));
    assert_eq!(from_0.bits(), from_1.bits());
    one_bad_row(&mut db, ("int[]", "real[]"), "'{0,2}'", "'{1,1}'");
    rejects(&mut db, "{}", "2202E").says(&["index 0", "features_k", "below 1"]).hints(&["index_base", "0"]);
    assert_eq!(db.train("'t', options => '{\"index_base\": 0}'")[0].tuples, 4);
}

#[test]
fn indices_that_are_none_are_refused() {
    let mut db = Database::new();
    for (types, indices, options, words) in [
        ("int[]", "'{1,-1}'", "{}", ["index -1 ", "below 1"]),
        ("int[]", "'{-1}'", r#"{"index_base": 0}"#, ["index -1 ", "below 0"]),
        ("int[]", "'{-2147483648}'", "{}", ["index -2147483648 ", "below 1"]),
        ("bigint[]", "'{-9223372036854775808}'", "{}", ["index -9223372036854775808 ", "below 1"]),
        ("bigint[]", "'{9223372036854775807}'", "{}", ["index 9223372036854775807 ", "above 134217727"]),
        ("bigint[]", "'{4294967297}'", "{}", ["index 4294967297 ", "above 134217727"]),
        ("int[]", "'{2000000000}'", "{}", ["index 2000000000 ", "above 134217727"]),
        ("int[]", "'{1,7}'", r#"{"dimensions": 6}"#, ["index 7 ", "above 6"]),
        ("int[]", "'{1,6}'", r#"{"dimensions": 6, "index_base": 0}"#, ["index 6 ", "above 5"]),
        ("smallint[]", "'{-5,1}'", "{}", ["index -5 ", "below 1"]),
        ("int[]", "'{2,1,2}'", "{}", ["index 2 ", "twice"]),
        ("int[]", "'{3,3}'", "{}", ["index 3 ", "twice"]),
    ] {
        let values = format!("'{{{}}}'", vec!["1"; indices.split(',').count()].join(","));
        one_bad_row(&mut db, (types, "real[]"), indices, &values);
        rejects(&mut db, options, "2202E").says(&words).says(&["features_k"]);
    }
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let mut db = Database::new();
    for (indices, values, code, words) in [
        ("'{1,2}'", "'{1}'", "2202E", ["2 elements", "1"]),
        ("'{}'", "'{1}'", "2202E", ["0 elements", "1"]),
        ("'{1}'", "'{}'", "2202E", ["1 elements", "0"]),
        ("'{{1,2}}'", "'{1,2}'", "2202E", ["features_k", "2 dimensions"]),
        ("'{1,2}'", "'{{1,2}}'", "2202E", ["features_v", "2 dimensions"]),
        ("'{1,2}'", "'{1,NaN}'", "22003", ["features_v[2]", "NaN"]),
        ("'{2,1}'", "'{-Infinity,1}'", "22003", ["features_v[2]", "-Infinity"]),
        ("'{1,NULL}'", "'{1,1}'", "22004", ["element 2", "features_k"]),
        ("'{1,2}'", "'{1,NULL}'", "22004", ["element 2", "features_v"]),
        ("NULL", "'{1}'", "22004", ["features are NULL", ""]),
        ("'{1}'", "NULL", "22004", ["features are NULL", ""]),
    ] {
        one_bad_row(&mut db, ("int[]", "float8[]"), indices, values);
        rejects(&mut db, r#"{"nulls": "error"}"#, code).says(&words);
        if code == "22004" {
            let epochs = db.train("'t', options => '{\"nulls\": \"skip\"}'");
            assert_eq!(epochs[0].tuples, 3);
            assert_eq!(db.line("SELECT skipped FROM corgipile.models ORDER BY model_id DESC LIMIT 1"), "1");
        }
    }
    one_bad_row(&mut db, ("int[]", "float8[]"), "'{1}'", "'{1e300}'");
    rejects(&mut db, "{}", "22003").says(&["features_v[1]", "out of range", "1e300"]);
}

#[test]
fn a_row_without_features_is_a_tuple_all_the_same() {
    let mut db = Database::new();
    one_bad_row(&mut db, ("int[]", "real[]"), "'{}'", "'{}'");
    let epochs = db.train("'t', seed => 1");
    assert_eq!(epochs[0].tuples, 4);
    assert_eq!(db.line("SELECT cardinality(weights) FROM corgipile.models"), "3");
    db.run("UPDATE t SET features_k = '{}', features_v = '{}'");
    db.rejects("SELECT * FROM corgipile_train('t', seed => 1)", "22000");
    // only the intercept is left to be learned
    let epochs = db.train("'t', seed => 1, options => '{\"dimensions\": 5}'");
    assert_eq!(db.model(epochs[0].model_id).weights, [0.0; 5]);
}

#[test]
fn types_that_are_no_indices_or_values_are_refused() {
    let mut db = Database::new();
    twins(&mut db);
    let train = |columns: &str| {
        format!("SELECT * FROM corgipile_train('SELECT label, {columns} FROM sparse', features => '{{k,v}}')")
    };
    let swapped = db.rejects(&train("features_v AS k, features_k AS v"), "42804");
    swapped.says(&["\"k\"", "real[]"]).hints(&["the first must contain integers"]);
    // vectors next to others, which have one length
    for columns in [
        "features_k::real[] AS k, features_v AS v",
        "features_k::text[] AS k, features_v AS v",
        "features_k AS k, features_v::text[] AS v",
        "features_k AS k, 1 AS v",
    ] {
        db.rejects(&train(columns), "2202E").says(&["features instead of"]).hints(&["have the same length"]);
    }
    db.rejects("SELECT * FROM corgipile_train('sparse', features => '{id,features_k,features_v}')", "2202E");
}

#[test]
fn the_number_of_dimensions_can_be_said() {
    let mut db = Database::new();
    twins(&mut db);
    let id = db.train("'sparse', options => '{\"dimensions\": 100}', max_epochs => 1")[0].model_id;
    assert_eq!(db.model(id).weights.len(), 100);
    assert_eq!(
        db.line(&format!("SELECT hyperparameters->>'dimensions' FROM corgipile.models WHERE model_id = {id}")),
        "100"
    );
    db.rejects("SELECT * FROM corgipile_train('sparse', options => '{\"dimensions\": 39}')", "2202E")
        .says(&["index 40", "above 39"])
        .hints(&["dimensions"]);
    // as many weights as an array may have elements, shared by two classes
    let wide = "SELECT label, ARRAY[67108864] AS features_k, ARRAY[1.0] AS features_v FROM sparse";
    db.rejects(&format!("SELECT * FROM corgipile_train('{wide}', 'softmax')"), "2202E")
        .says(&["index 67108864", "above 67108863"])
        .hints(&["134217727 weights"]);
}

#[test]
fn standardizing_divides_sparse_features_by_their_deviation_and_keeps_their_zeros() {
    let mut db = Database::new();
    twins(&mut db);
    let id =
        db.train(&format!("'sparse', {}", TRAINING.replace("standardize => false", "standardize => true")))[0].model_id;
    let stored = db.line(&format!(
        "SELECT count(*), max(abs(m)), max(abs(s - d)) < 1e-6
         FROM corgipile.models, unnest(feature_mean, feature_scale) WITH ORDINALITY u(m, s, j),
              LATERAL (SELECT stddev_pop(x[j]::float8) AS d FROM dense) r
         WHERE model_id = {id}"
    ));
    assert_eq!(stored, "40|0|t");
    // as if the rows had been divided by hand
    db.run(&format!(
        "CREATE TABLE divided AS
         SELECT id, s.label, features_k,
                ARRAY(SELECT v / feature_scale[k] FROM unnest(features_k, features_v) u(k, v))::real[] AS features_v
         FROM sparse s, corgipile.models WHERE model_id = {id} ORDER BY id"
    ));
    let by_hand = db.trained(&format!("'divided', {TRAINING}"));
    assert_close(&db.model(id).parameters(), &by_hand.parameters(), 1e-4);
}

#[test]
fn a_million_dimensions_train_in_the_memory_of_the_non_zeros() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT (i % 2)::int AS label,
                ARRAY(SELECT DISTINCT (uniform(i, j) * 999999)::int + 1 FROM generate_series(1, 39) j ORDER BY 1) AS features_k,
                array_fill(1::real, ARRAY[39]) AS features_v
         FROM generate_series(1, 2000::bigint) i;
         DELETE FROM t WHERE cardinality(features_k) <> 39",
    );
    let epochs = db.train("'t', seed => 1, max_epochs => 3, options => '{\"l2\": 0.0001}'");
    assert!(epochs[2].loss < epochs[0].loss, "{epochs:?}");
    let dim: i32 = db.value("SELECT cardinality(weights) FROM corgipile.models");
    assert!((999_000..=1_000_000).contains(&dim), "{dim}");
}

#[test]
fn rows_without_any_feature_are_no_model_unless_it_is_said_how_many_there_are() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i % 2 AS label, '{}'::int[] AS features_k, '{}'::real[] AS features_v FROM generate_series(1, 10) i");
    db.rejects("SELECT * FROM corgipile_train('t', max_epochs => 1)", "22000")
        .says(&["all index arrays are empty"])
        .hints(&["dimensions"]);
    db.run("SELECT * FROM corgipile_train('t', max_epochs => 1, name => 'm', options => '{\"dimensions\": 3}')");
    let predicted: f64 = db.value("SELECT corgipile_predict('m', features_k, features_v) FROM t LIMIT 1");
    assert!([0.0, 1.0].contains(&predicted), "{predicted}");
}
