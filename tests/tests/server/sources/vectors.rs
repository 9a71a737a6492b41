//! Vectors that are no SQL arrays: pgvector's `vector`, `halfvec` and `sparsevec`, and `bytea`. The oracle is the same
//! rows as `real[]`, in the same table, so that they come in the same order: the models have the same bits.

use corgipile_tests::{Database, Session, in_several_buffers, sample};

with_both! {
    every_strategy_learns_the_bits_of_arrays
    every_model_learns_the_bits_of_arrays
    groups_grids_and_processes_learn_the_bits_of_arrays
    every_storage_gives_the_bits_of_arrays
    rows_of_a_label_and_a_vector_are_copied_by_the_run
    rows_with_nulls_are_left_out_as_arrays_are
    predictions_are_those_of_arrays
    evaluations_are_those_of_arrays
    compressed_tables_are_those_of_arrays
    the_aggregate_learns_the_bits_of_arrays
    models_go_on_and_travel_as_those_of_arrays_do
    the_only_column_of_vectors_is_the_features
    plans_views_and_coefficients_show_vectors
}

/// Makes a table `t` of this many rows: `x` is an array, `v`, `h`, `s` and `k, w` are the same numbers as vectors, `n`
/// as numerics; `b` are bytes, and `bx` the same as an array. A half has each number exactly.
pub fn table(db: &mut Session, rows: usize, dim: usize) {
    db.run(&format!(
        "CREATE TABLE t (id int, label smallint, target real, class text, g text,
                         x real[], v vector, h halfvec, s sparsevec, k int[], w real[], n numeric[], b bytea, bx real[]);
         INSERT INTO t
         SELECT i, label, target, class, g, x, vec(x), half(x), sparse(x),
                ARRAY(SELECT j::int FROM unnest(x) WITH ORDINALITY u(e, j) WHERE e <> 0 ORDER BY j),
                ARRAY(SELECT e FROM unnest(x) WITH ORDINALITY u(e, j) WHERE e <> 0 ORDER BY j), x::numeric[],
                (SELECT string_agg(decode(lpad(to_hex(e::int), 2, '0'), 'hex'), '' ORDER BY j) FROM unnest(bx) WITH ORDINALITY u(e, j)), bx
           FROM (SELECT i, (2 * i > {rows})::int::int2 AS label, (normal(i, 1) + i / 100.0)::real AS target, 'class ' || i * 3 / {rows} AS class,
                        'g' || i % 3 AS g,
                        ARRAY(SELECT CASE WHEN uniform(i, j) < 0.6 THEN floor(uniform(i, j) * 100 - 30 + 10 * (2 * i > {rows})::int) / 8 ELSE 0 END
                                FROM generate_series(1, {dim}) j ORDER BY j)::real[] AS x,
                        ARRAY(SELECT floor(uniform(i, j) * 206) + 50 * (2 * i > {rows})::int FROM generate_series(1, {dim}) j ORDER BY j)::real[] AS bx
                   FROM generate_series(1, {rows}) i) r;
         ANALYZE t"
    ));
}

/// Columns of vectors, and columns of arrays with the same numbers, with an option that these need.
const PAIRS: [(&str, &str); 5] = [("v", "x"), ("h", "x"), ("n", "x"), ("b", "bx"), ("s", "k,w")];

/// The bits of all models that a training stores. `options` are members of a JSON object.
fn bits(db: &mut Session, features: &str, dim: usize, (arguments, options): (&str, &str)) -> Vec<Vec<u32>> {
    let dimensions = if features.contains(',') { format!(r#""dimensions": {dim}"#) } else { String::new() };
    let options: Vec<&str> = [options, &dimensions].into_iter().filter(|members| !members.is_empty()).collect();
    let name = if arguments.contains("group_by") { "of_groups" } else { "m" };
    let arguments = in_several_buffers(&format!(
        "'t', features => '{{{features}}}', options => '{{{}}}', seed => 7, max_epochs => 2, name => '{name}', {arguments}",
        options.join(", ")
    ));
    let mut ids: Vec<i64> = db.train(&arguments).iter().map(|epoch| epoch.model_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| db.model(id).bits()).collect()
}

/// Asserts that trainings on each kind of vectors give the models of trainings on arrays.
fn assert_same_models(db: &mut Session, dim: usize, arguments: &str, options: &str) {
    for (vectors, arrays) in PAIRS {
        let mut trained = |features: &str| bits(db, features, dim, (arguments, options));
        let (given, expected) = (trained(vectors), trained(arrays));
        assert!(
            expected.iter().flatten().filter(|weight| **weight != 0).count() > dim / 2,
            "{arguments}: {expected:?}"
        );
        assert_eq!(given, expected, "{vectors}: {arguments} {options}");
    }
}

fn every_strategy_learns_the_bits_of_arrays(mut db: Database) {
    table(&mut db, 400, 12);
    for strategy in ["corgipile", "no_shuffle", "block_only", "shuffle_once", "epoch_shuffle", "sliding_window", "mrs"]
    {
        assert_same_models(&mut db, 12, &format!("shuffle => '{strategy}'"), "");
    }
}

fn every_model_learns_the_bits_of_arrays(mut db: Database) {
    // rows that are all alike are copied by the run: 28 numbers with a header of one byte, and of four
    for dim in [28, 40] {
        db.run("DROP TABLE IF EXISTS t");
        table(&mut db, 300, dim);
        for arguments in [
            "model => 'svm', learning_rate => 0.01",
            "model => 'linear', label => 'target'",
            "model => 'softmax', label => 'class'",
            "model => 'mlp', label => 'class', hidden_layer_sizes => '{5}'",
            "standardize => true, optimizer => 'adam', batch_size => 16",
            "standardize => false, learning_rate => 0.01, l2 => 0.01",
        ] {
            assert_same_models(&mut db, dim, arguments, "");
        }
    }
}

fn groups_grids_and_processes_learn_the_bits_of_arrays(mut db: Database) {
    table(&mut db, 600, 10);
    for (arguments, options) in [
        ("group_by => 'g'", ""),
        (r#"grid => '{"learning_rate": [0.1, 0.01], "l2": [0, 0.01]}'"#, ""),
        ("prefetch => 'on'", ""),
        ("workers => 2", ""),
        ("sample => 0.5", ""),
        ("validation_fraction => 0.2", r#""keep": "best""#),
        ("prefetch => 'off'", r#""cache": "off""#),
        ("prefetch => 'off'", r#""cache": "on""#),
    ] {
        assert_same_models(&mut db, 10, arguments, options);
    }
}

fn every_storage_gives_the_bits_of_arrays(mut db: Database) {
    let fastest = db.fastest_compression();
    let all = [("external", "pglz"), ("extended", fastest), ("extended", "pglz"), ("main", "pglz")];
    for (storage, compression) in all.into_iter().take(sample(4, 2)) {
        db.run("DROP TABLE IF EXISTS t");
        db.run(&format!("SET default_toast_compression = {compression}"));
        table(&mut db, 60, 1500);
        for column in ["v", "h", "s", "b"] {
            db.run(&format!("ALTER TABLE t ALTER {column} SET STORAGE {storage}"));
        }
        db.run("UPDATE t SET v = v::text::vector, h = h::text::halfvec, s = s::text::sparsevec, b = b::text::bytea");
        assert_same_models(&mut db, 1500, "learning_rate => 0.001, standardize => false", "");
    }
}

fn rows_of_a_label_and_a_vector_are_copied_by_the_run(mut db: Database) {
    // with a header of one byte up to 30 numbers; fewer than 3 are too short to be compared as a whole
    for dim in [1, 2, 3, 7, 8, 30, 31, 100] {
        db.run("DROP TABLE IF EXISTS t, u");
        table(&mut db, 300, dim);
        // the array lies behind a column of variable length, and is read otherwise
        db.run("CREATE TABLE u (label smallint, v vector, x real[]); INSERT INTO u SELECT label, v, x FROM t");
        for what in ["", "UPDATE u SET label = NULL WHERE x[1] < -2", "UPDATE u SET v = NULL, x = NULL WHERE x[1] > 6"]
        {
            if !what.is_empty() {
                db.run(what);
            }
            let mut trained = |features: &str| {
                db.trained(&format!("'u', features => '{{{features}}}', seed => 7, max_epochs => 2")).bits()
            };
            assert_eq!(trained("v"), trained("x"), "{dim} numbers, {what}");
        }
    }
}

fn rows_with_nulls_are_left_out_as_arrays_are(mut db: Database) {
    table(&mut db, 300, 10);
    db.run(
        "UPDATE t SET x = NULL, v = NULL, h = NULL, s = NULL, k = NULL, n = NULL, b = NULL, bx = NULL WHERE id % 7 < 2;
         UPDATE t SET label = NULL WHERE id % 11 = 0",
    );
    assert_same_models(&mut db, 10, "nulls => 'skip'", "");
    assert_same_models(&mut db, 10, "nulls => 'impute'", "");
    for (vectors, _) in PAIRS {
        let train = format!("SELECT corgipile_train('t', features => '{{{vectors}}}', nulls => 'error')");
        db.rejects(&train, "22004").says(&["are NULL in row"]);
    }
    // no vector at all
    let none = "SELECT corgipile_train('SELECT label, v FROM t WHERE v IS NULL', features => '{v}')";
    db.rejects(none, "22000").says(&["all 85 rows are left out because they have NULLs"]);
}

/// The answers of a model for `features` in every row, in each way.
fn answers(db: &mut Session, model: &str, features: &str) -> Vec<Vec<String>> {
    let ask = |function: &str| db.lines(&format!("SELECT {function}({model}, {features}) FROM t ORDER BY id"));
    ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"].map(ask).to_vec()
}

fn predictions_are_those_of_arrays(mut db: Database) {
    table(&mut db, 60, 9);
    db.run("UPDATE t SET x = NULL, v = NULL, h = NULL, s = NULL, k = NULL, w = NULL, n = NULL, b = NULL, bx = NULL WHERE id = 7");
    for (vectors, arrays) in PAIRS {
        let name = format!("of_{vectors}");
        let options = if vectors == "s" { "{\"dimensions\": 9}" } else { "{}" };
        let id = db.train(&format!("'t', features => '{{{vectors}}}', name => '{name}', seed => 1"))[0].model_id;
        db.train(&format!("'t', features => '{{{arrays}}}', name => 'arrays', options => '{options}', seed => 1"));
        let places: Vec<String> = arrays.split(',').map(|column| format!("t.{column}")).collect();
        let expected = answers(&mut db, "'arrays'", &places.join(", "));
        assert_eq!(expected[0][6], "NULL");
        let of_value = format!("corgipile_export('{name}')");
        for model in [format!("'{name}'"), id.to_string(), of_value] {
            assert_eq!(answers(&mut db, &model, &format!("t.{vectors}")), expected, "{vectors}");
            assert_eq!(answers(&mut db, &model, "t"), expected, "{vectors} in a row");
            assert_eq!(answers(&mut db, &model, "t, nulls => 'skip'"), expected, "{vectors} in a row");
        }
        // and each model takes the numbers of the other
        assert_eq!(answers(&mut db, &format!("'{name}'"), &places.join(", ")), expected, "arrays to {vectors}");
        assert_eq!(answers(&mut db, "'arrays'", &format!("t.{vectors}")), expected, "{vectors} to arrays");
    }
    // a model of dense features takes sparse vectors, and the other way round
    assert_eq!(answers(&mut db, "'of_v'", "t.s"), answers(&mut db, "'of_v'", "t.x"));
    assert_eq!(answers(&mut db, "'of_s'", "t.h"), answers(&mut db, "'of_s'", "t.v"));
}

fn evaluations_are_those_of_arrays(mut db: Database) {
    table(&mut db, 200, 9);
    for (vectors, arrays) in PAIRS {
        let options = if vectors == "s" { "{\"dimensions\": 9}" } else { "{}" };
        db.train(&format!("'t', features => '{{{vectors}}}', name => 'vectors', seed => 1"));
        db.train(&format!("'t', features => '{{{arrays}}}', name => 'arrays', options => '{options}', seed => 1"));
        let metrics = |name: &str| format!("SELECT metric, value::text FROM corgipile_evaluate('{name}', 't')");
        db.assert_same_rows(&metrics("vectors"), &metrics("arrays"));
        let loss: f64 = db.value("SELECT value FROM corgipile_evaluate('vectors', 't') WHERE metric = 'loss'");
        assert!(loss > 0.0 && loss < 0.69, "{vectors}: {loss}");
    }
    // a column of another kind is not one that the model was trained on
    let other = "SELECT * FROM corgipile_evaluate('vectors', 'SELECT label, v AS s FROM t')";
    assert_eq!(db.fails_with(other, "42804").hint, "It was trained on sparse vectors in column s.");
}

fn compressed_tables_are_those_of_arrays(mut db: Database) {
    table(&mut db, 250, 9);
    for (vectors, arrays) in PAIRS {
        let dimensions = if vectors == "s" { ", dimensions => 9" } else { "" };
        let compress = |features: &str, to: &str, more: &str| {
            format!(
                "SELECT corgipile_compress('t', '{to}', features => '{{{features}}}', batch_rows => 60, seed => 2{more})"
            )
        };
        db.run("DROP TABLE IF EXISTS of_vectors, of_arrays");
        db.run(&compress(vectors, "of_vectors", ""));
        db.run(&compress(arrays, "of_arrays", dimensions));
        let column = if arrays.contains(',') { "features" } else { arrays };
        db.assert_same_rows(
            &format!("SELECT label, {vectors}::text FROM of_vectors"),
            &format!("SELECT label, {column}::text FROM of_arrays"),
        );
    }
    let options = "SELECT corgipile_compress('t', 'no', features => '{s}', dimensions => 9)";
    db.fails_with(options, "22023").says(&["dimensions"]);
}

fn the_aggregate_learns_the_bits_of_arrays(mut db: Database) {
    table(&mut db, 250, 9);
    for (vectors, arrays) in PAIRS {
        let sparse = vectors == "s";
        let weights = |features: &str| {
            format!(
                "SELECT corgipile_sgd_weights(corgipile_sgd_agg(corgipile_sgd_init('logistic', 9, 0.01, sparse => {sparse}),
                        2 * label - 1, {features} ORDER BY id)) FROM t"
            )
        };
        let expected = db.line(&weights(arrays));
        assert!(expected.len() > 20 && !expected.contains("NaN"), "{expected}");
        assert_eq!(db.line(&weights(vectors)), expected, "{vectors}");
        let options = if sparse { "{\"dimensions\": 9}" } else { "{}" };
        let mut trained = |features: &str, options: &str| {
            let arguments =
                format!("'t', features => '{{{features}}}', seed => 3, max_epochs => 2, options => '{options}'");
            let id: Vec<i64> = db.column(&format!("SELECT model_id FROM corgipile_train_uda({arguments})"));
            db.model(id[0]).bits()
        };
        assert_eq!(trained(vectors, "{}"), trained(arrays, options), "{vectors}");
    }
    let other = "SELECT corgipile_sgd_agg(corgipile_sgd_init('svm', 8, 0.01), 2 * label - 1, v) FROM t";
    db.fails_with(other, "2202E").says(&["9 features instead of 8"]);
    let sparse = "SELECT corgipile_sgd_agg(corgipile_sgd_init('svm', 9, 0.01), 2 * label - 1, s) FROM t";
    db.fails_with(sparse, "22023").says(&["the state is for dense features"]);
}

fn models_go_on_and_travel_as_those_of_arrays_do(mut db: Database) {
    table(&mut db, 250, 9);
    for (vectors, _) in PAIRS {
        let train = |more: &str| format!("'t', features => '{{{vectors}}}', seed => 3, {more}");
        let whole = db.trained(&train("max_epochs => 4"));
        db.train(&train("max_epochs => 2, name => 'first'"));
        let on = db.trained("'t', warm_start => 'first', max_epochs => 2");
        assert_eq!(on.bits(), whole.bits(), "{vectors}");
        let imported: i64 =
            db.value(&format!("SELECT corgipile_import(corgipile_export({}), name => 'imported')", on.id));
        assert_eq!(db.model(imported).bits(), on.bits(), "{vectors}");
        assert_eq!(answers(&mut db, "'imported'", "t"), answers(&mut db, &on.id.to_string(), &format!("t.{vectors}")));
    }
}

fn the_only_column_of_vectors_is_the_features(mut db: Database) {
    table(&mut db, 100, 9);
    let mut features = |columns: &str| {
        let source = format!("SELECT label, {columns} FROM t");
        let id = db.train(&format!("'{source}', max_epochs => 1"))[0].model_id;
        db.line(&format!("SELECT features FROM corgipile.models WHERE model_id = {id}"))
    };
    for column in ["v", "h", "s", "n", "b"] {
        assert_eq!(features(column), format!("{{{column}}}"));
    }
    // bytes are the features if there is nothing better
    assert_eq!(features("b, h"), "{h}");
    assert_eq!(features("b, x"), "{x}");
    // a vector is one feature of several, but a sparse one is the only feature
    assert_eq!(features("class, target, v"), "{class,target,v}");
    assert_eq!(features("class, h, n"), "{class,h,n}");
    assert_eq!(features("class, s"), "{s}");
    assert_eq!(features("class, target, s"), "{class,target}");
    let two = "SELECT corgipile_train('SELECT label, v, s FROM t')";
    assert_eq!(db.rejects(two, "42703").hint, "Name one of the array columns v, s in features.");
}

fn plans_views_and_coefficients_show_vectors(mut db: Database) {
    table(&mut db, 100, 3);
    db.run("CREATE DOMAIN embedding AS vector; ALTER TABLE t ADD e embedding; UPDATE t SET e = v; CREATE VIEW seen AS SELECT label, e, s FROM t");
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_train('seen', features => '{e}')").join("\n");
    assert!(plan.contains("Features: e\n") && plan.contains("CorgiPileBlockShuffle"), "{plan}");
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_train('seen', features => '{s}')").join("\n");
    assert!(plan.contains("Features: s (sparse)"), "{plan}");
    for (column, kind, base) in [("e", "array", "NULL"), ("s", "sparse", "1")] {
        let of_view = db.trained(&format!("'seen', features => '{{{column}}}', seed => 1, name => 'm'"));
        let of_table = db.trained(&format!("'t', features => '{{{column}}}', seed => 1"));
        assert_eq!(of_view.bits(), of_table.bits());
        let stored = format!("SELECT feature_kind, index_base FROM corgipile.models WHERE model_id = {}", of_view.id);
        assert_eq!(db.line(&stored), format!("{kind}|{base}"));
        let names = format!("SELECT feature FROM corgipile.coefficients WHERE model_id = {}", of_view.id);
        let expected = ["(intercept)".to_owned()].into_iter().chain((1..=3).map(|i| format!("{column}[{i}]")));
        assert_eq!(db.lines(&names), expected.collect::<Vec<_>>());
    }
    // rows come shuffled with their vectors
    db.assert_same_rows("SELECT v::text, s::text FROM corgipile_shuffle(NULL::t)", "SELECT v::text, s::text FROM t");
}

#[test]
fn bytes_and_numerics_learn_without_pgvector() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (label int, b bytea, n numeric[], x real[]);
         INSERT INTO t SELECT i % 2, set_byte(set_byte('\\x0000ff', 0, i % 256), 1, (i * 7 + 90 * (i % 2)) % 256),
                              ARRAY[i / 8.0, i % 7, -i], ARRAY[i % 256, (i * 7 + 90 * (i % 2)) % 256, 255]
                         FROM generate_series(1, 500) i",
    );
    for arguments in ["shuffle => 'corgipile'", "standardize => false, learning_rate => 0.0001", "model => 'softmax'"] {
        let trained = |db: &mut Database, features: &str| {
            db.trained(&format!("'t', features => '{{{features}}}', seed => 2, max_epochs => 2, {arguments}")).bits()
        };
        assert_eq!(trained(&mut db, "b"), trained(&mut db, "x"), "{arguments}");
        db.run("ALTER TABLE t ADD y float8[]; UPDATE t SET y = n");
        assert_eq!(trained(&mut db, "n"), trained(&mut db, "y"), "{arguments}");
        db.run("ALTER TABLE t DROP y");
    }
    db.train("'t', features => '{b}', max_epochs => 1, name => 'm'");
    let of_bytes = db.lines("SELECT corgipile_predict_proba('m', b) FROM t");
    assert_eq!(of_bytes, db.lines("SELECT corgipile_predict_proba('m', x) FROM t"));
    assert_eq!(of_bytes, db.lines("SELECT corgipile_predict_proba('m', t) FROM t"));
    db.run("INSERT INTO t (label, b, n) VALUES (1, '', '{}')");
    let empty = "SELECT corgipile_train('SELECT label, b FROM t WHERE b = ''''', features => '{b}')";
    db.rejects(empty, "2202E").says(&["feature array is empty"]);
    for (value, message) in [
        ("NaN", "feature n[2] is NaN"),
        ("-Infinity", "feature n[2] is -Infinity"),
        ("1e60", "feature n[2] is out of range"),
    ] {
        let source = format!("SELECT label, ARRAY[1, ''{value}'']::numeric[] AS n FROM t");
        db.rejects(&format!("SELECT corgipile_train('{source}', features => '{{n}}')"), "22003").says(&[message]);
    }
    let null = "SELECT corgipile_train('SELECT label, ARRAY[1, NULL]::numeric[] AS n FROM t', features => '{n}', nulls => 'error')";
    db.rejects(null, "22004").says(&["feature n[2] is NULL"]);
}
