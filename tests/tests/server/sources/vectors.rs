//! Vectors that are no SQL arrays: pgvector's `vector`, `halfvec` and `sparsevec`, and `bytea`. The oracle is the same rows as
//! `real[]`, in the same table, so that they come in the same order: the models have the same bits.

use corgipile_tests::{Database, Session, in_several_buffers};

/// Runs tests with types of the same layouts that are made here, and with pgvector's own where the server has it.
macro_rules! with_both {
    ($($test:ident)+) => {
        mod made_here {
            use corgipile_tests::Database;

            $(#[test] fn $test() { super::$test(Database::with_vectors_made_here()) })+
        }

        mod pgvector {
            use corgipile_tests::Database;

            $(#[test] fn $test() {
                if let Some(db) = Database::with_pgvector($test) {
                    super::$test(db)
                }
            })+
        }
    };
}

with_both! {
    every_strategy_learns_the_bits_of_arrays
    every_model_learns_the_bits_of_arrays
    groups_grids_and_processes_learn_the_bits_of_arrays
    every_storage_gives_the_bits_of_arrays
    rows_with_nulls_are_left_out_as_arrays_are
    predictions_are_those_of_arrays
    evaluations_are_those_of_arrays
    compressed_tables_are_those_of_arrays
    the_aggregate_learns_the_bits_of_arrays
    models_go_on_and_travel_as_those_of_arrays_do
    the_only_column_of_vectors_is_the_features
    plans_views_and_coefficients_show_vectors
    what_is_wrong_with_a_vector_is_named
    bytes_that_are_no_vector_are_refused
    a_type_of_the_same_name_is_not_read
}

/// Makes a table `t` of so many rows: `x` is an array, `v`, `h`, `s` and `k, w` are the same numbers as vectors, `n` as numerics;
/// `b` are bytes, and `bx` the same as an array. A half has each number exactly.
fn table(db: &mut Session, rows: usize, dim: usize, types: &str) {
    db.run(&format!(
        "CREATE TABLE t (id int, label smallint, target real, class text, g text, {types});
         INSERT INTO t
         SELECT i, label, target, class, g, x, vec(x), half(x), sparse(x),
                ARRAY(SELECT j::int FROM unnest(x) WITH ORDINALITY u(e, j) WHERE e <> 0 ORDER BY j),
                ARRAY(SELECT e FROM unnest(x) WITH ORDINALITY u(e, j) WHERE e <> 0 ORDER BY j), x::numeric[],
                (SELECT string_agg(decode(lpad(to_hex(e::int), 2, '0'), 'hex'), '' ORDER BY j) FROM unnest(bx) WITH ORDINALITY u(e, j)), bx
           FROM (SELECT i, (2 * i > {rows})::int2 AS label, (normal(i, 1) + i / 100.0)::real AS target, 'class ' || i * 3 / {rows} AS class,
                        'g' || i % 3 AS g,
                        ARRAY(SELECT CASE WHEN uniform(i, j) < 0.6 THEN floor(uniform(i, j) * 100 - 30 + 10 * (2 * i > {rows})::int) / 8 ELSE 0 END
                                FROM generate_series(1, {dim}) j ORDER BY j)::real[] AS x,
                        ARRAY(SELECT floor(uniform(i, j) * 255) + (2 * i > {rows})::int FROM generate_series(1, {dim}) j ORDER BY j)::real[] AS bx
                   FROM generate_series(1, {rows}) i) r;
         ANALYZE t"
    ));
}

const TYPES: &str = "x real[], v vector, h halfvec, s sparsevec, k int[], w real[], n numeric[], b bytea, bx real[]";

/// Columns of vectors, and columns of arrays with the same numbers, with an option that these need.
const PAIRS: [(&str, &str); 5] = [("v", "x"), ("h", "x"), ("n", "x"), ("b", "bx"), ("s", "k,w")];

/// The bits of all models that a training stores.
fn bits(db: &mut Session, features: &str, dim: usize, arguments: &str) -> Vec<Vec<u32>> {
    let dimensions = if features.contains(',') { format!(r#"'{{"dimensions": {dim}}}'"#) } else { "'{}'".into() };
    let arguments = in_several_buffers(&format!(
        "'t', features => '{{{features}}}', options => {dimensions}, seed => 7, max_epochs => 2, {arguments}"
    ));
    let mut ids: Vec<i64> = db.train(&arguments).iter().map(|epoch| epoch.model_id).collect();
    ids.dedup();
    ids.into_iter().map(|id| db.model(id).bits()).collect()
}

/// Asserts that trainings on each kind of vectors give the models of trainings on arrays.
fn assert_same_models(db: &mut Session, dim: usize, arguments: &str) {
    for (vectors, arrays) in PAIRS {
        let (given, expected) = (bits(db, vectors, dim, arguments), bits(db, arrays, dim, arguments));
        assert!(
            expected.iter().flatten().filter(|weight| **weight != 0).count() > dim / 2,
            "{arguments}: {expected:?}"
        );
        assert_eq!(given, expected, "{vectors}: {arguments}");
    }
}

fn every_strategy_learns_the_bits_of_arrays(mut db: Database) {
    table(&mut db, 400, 12, TYPES);
    for strategy in ["corgipile", "no_shuffle", "block_only", "shuffle_once", "epoch_shuffle", "sliding_window", "mrs"]
    {
        assert_same_models(&mut db, 12, &format!("shuffle => '{strategy}'"));
    }
}

fn every_model_learns_the_bits_of_arrays(mut db: Database) {
    // rows that are all alike are copied by the run: 28 numbers with a header of one byte, and of four
    for dim in [28, 40] {
        db.run("DROP TABLE IF EXISTS t");
        table(&mut db, 300, dim, TYPES);
        for arguments in [
            "model => 'svm', learning_rate => 0.01",
            "model => 'linear', label => 'target'",
            "model => 'softmax', label => 'class'",
            "model => 'mlp', label => 'class', hidden_layers => '{5}'",
            "standardize => true, optimizer => 'adam', batch_size => 16",
            "standardize => false, learning_rate => 0.01, l2 => 0.01",
        ] {
            assert_same_models(&mut db, dim, arguments);
        }
    }
}

fn groups_grids_and_processes_learn_the_bits_of_arrays(mut db: Database) {
    table(&mut db, 600, 10, TYPES);
    for arguments in [
        "group_by => '{g}'",
        "grid => '{\"learning_rate\": [0.1, 0.01], \"l2\": [0, 0.01]}'",
        "loader => 'worker'",
        "workers => 2",
        "sample => 0.5",
        "cache => 'off'",
        "cache => 'on'",
        "validation_fraction => 0.2, keep => 'best'",
    ] {
        assert_same_models(&mut db, 10, arguments);
    }
}

fn every_storage_gives_the_bits_of_arrays(mut db: Database) {
    for (storage, compression) in [("external", "pglz"), ("extended", "pglz"), ("extended", "lz4"), ("main", "pglz")] {
        db.run("DROP TABLE IF EXISTS t");
        db.run(&format!("SET default_toast_compression = {compression}"));
        table(&mut db, 60, 1500, TYPES);
        for column in ["v", "h", "s", "b"] {
            db.run(&format!("ALTER TABLE t ALTER {column} SET STORAGE {storage}"));
        }
        db.run("UPDATE t SET v = v::text::vector, h = h::text::halfvec, s = s::text::sparsevec, b = b::text::bytea; VACUUM FULL t");
        assert_same_models(&mut db, 1500, "learning_rate => 0.001, standardize => false");
    }
}

fn rows_with_nulls_are_left_out_as_arrays_are(mut db: Database) {
    table(&mut db, 300, 10, TYPES);
    db.run(
        "UPDATE t SET x = NULL, v = NULL, h = NULL, s = NULL, k = NULL, n = NULL, b = NULL, bx = NULL WHERE id % 7 < 2;
         UPDATE t SET label = NULL WHERE id % 11 = 0",
    );
    assert_same_models(&mut db, 10, "nulls => 'skip'");
    assert_same_models(&mut db, 10, "nulls => 'impute'");
    for (vectors, _) in PAIRS {
        let train = format!("SELECT corgipile_train('t', features => '{{{vectors}}}', nulls => 'error')");
        db.rejects(&train, "22004").says(&["are NULL in row"]);
    }
    // no vector at all
    let none = "SELECT corgipile_train('SELECT label, v FROM t WHERE v IS NULL', features => '{v}')";
    db.rejects(none, "22023");
}

/// The answers of a model for `features` in every row, in each way.
fn answers(db: &mut Session, model: &str, features: &str) -> Vec<Vec<String>> {
    let ask = |function: &str| db.lines(&format!("SELECT {function}({model}, {features}) FROM t ORDER BY id"));
    ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"].map(ask).to_vec()
}

fn predictions_are_those_of_arrays(mut db: Database) {
    table(&mut db, 60, 9, TYPES);
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
    table(&mut db, 200, 9, TYPES);
    for (vectors, arrays) in PAIRS {
        let options = if vectors == "s" { "{\"dimensions\": 9}" } else { "{}" };
        db.train(&format!("'t', features => '{{{vectors}}}', name => 'vectors', seed => 1"));
        db.train(&format!("'t', features => '{{{arrays}}}', name => 'arrays', options => '{options}', seed => 1"));
        let metrics = |name: &str| format!("SELECT metric, value::text FROM corgipile_evaluate('{name}', 't')");
        db.assert_same_rows(&metrics("vectors"), &metrics("arrays"));
        let loss: f64 = db.value("SELECT value FROM corgipile_evaluate('vectors', 't') WHERE metric = 'loss'");
        assert!(loss > 0.0 && loss < 0.69, "{vectors}: {loss}");
    }
    // a column of another kind is none that the model was trained on
    let other = "SELECT * FROM corgipile_evaluate('vectors', 'SELECT label, v AS s FROM t')";
    db.fails_with(other, "42804").says(&["sparse vectors in column s"]);
}

fn compressed_tables_are_those_of_arrays(mut db: Database) {
    table(&mut db, 250, 9, TYPES);
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
    table(&mut db, 250, 9, TYPES);
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
    db.fails_with(sparse, "22023").says(&["sparse"]);
}

fn models_go_on_and_travel_as_those_of_arrays_do(mut db: Database) {
    table(&mut db, 250, 9, TYPES);
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
    table(&mut db, 100, 9, TYPES);
    let mut features = |columns: &str| {
        let source = format!("SELECT label, class, {columns} FROM t");
        let id = db.train(&format!("'{source}', max_epochs => 1"))[0].model_id;
        db.line(&format!("SELECT features FROM corgipile.models WHERE model_id = {id}"))
    };
    for column in ["v", "h", "s", "n", "b"] {
        assert_eq!(features(column), format!("{{{column}}}"));
    }
    // bytes are the features if there is nothing better
    assert_eq!(features("b, h"), "{h}");
    assert_eq!(features("b, x"), "{x}");
    let two = "SELECT corgipile_train('SELECT label, v, s FROM t')";
    assert_eq!(db.rejects(two, "42703").hint, "Name one of the array columns v, s in features.");
    // as before, columns of numbers come first
    let id = db.train("'SELECT label, target, v FROM t', max_epochs => 1")[0].model_id;
    assert_eq!(db.line(&format!("SELECT features FROM corgipile.models WHERE model_id = {id}")), "{target}");
}

fn plans_views_and_coefficients_show_vectors(mut db: Database) {
    table(&mut db, 100, 3, TYPES);
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

fn what_is_wrong_with_a_vector_is_named(mut db: Database) {
    table(&mut db, 50, 9, TYPES);
    db.run("INSERT INTO t (label, x, v, h, s, n, b) SELECT 0, x[:8], vec(x[:8]), half(x[:8]), sparse(x[:8]), n[:8], substr(b, 1, 8) FROM t WHERE id = 1");
    for column in ["v", "h", "s", "n", "b"] {
        let failure = db.rejects(
            &format!(
                "SELECT corgipile_train('t', features => '{{{column}}}', standardize => false, learning_rate => 1)"
            ),
            "2202E",
        );
        failure.says(&["8 features instead of 9 in row ("]);
        assert_eq!(
            failure.hint,
            "All feature arrays, vectors or byte strings have the same length, and arrays one dimension."
        );
        let beside = db.rejects(&format!("SELECT corgipile_train('t', features => '{{target,{column}}}')"), "42804");
        beside.says(&[&format!("feature column \"{column}\" has type ")]);
        assert_eq!(
            beside.hint,
            "A column of arrays, vectors or bytes is the only feature: name no other, or make one array of all in a query as source."
        );
        db.train(&format!("'SELECT * FROM t WHERE id > 1', features => '{{{column}}}', max_epochs => 1, name => 'm'"));
        let short = format!("SELECT corgipile_predict('m', {column}) FROM t WHERE id IS NULL");
        db.fails_with(&short, "2202E").says(&["\"m\"", "has 9 features, 8 given"]);
        let short = "SELECT corgipile_predict('m', t) FROM t WHERE id IS NULL";
        db.fails_with(short, "2202E").says(&["\"m\"", "has 9 features, 8 given"]);
        let evaluated = "SELECT * FROM corgipile_evaluate('m', 't')";
        db.fails_with(evaluated, "2202E").says(&["8 features instead of 9 in row"]);
    }
    for option in ["index_base => 0", "dimensions => 9", "unseen => 'zero'"] {
        db.rejects(&format!("SELECT corgipile_train('t', features => '{{s}}', {option})"), "22023").says(&["sparse"]);
    }
    let wrong_type = "SELECT corgipile_predict('m', now())";
    db.fails_with(wrong_type, "2202E").says(&["\"m\"", "has 9 features, 1 given"]);
}

fn bytes_that_are_no_vector_are_refused(mut db: Database) {
    db.run("CREATE TABLE bad (label int, v vector, h halfvec, s sparsevec)");
    let (one, zero) = ("0000803f", "00000000");
    let of_vector = [
        "".to_owned(),                           // nothing
        "0300".into(),                           // half a header
        "03000000".into(),                       // three numbers, and none of them
        format!("03000000{one}{one}"),           // two
        format!("03000000{one}{one}{one}{one}"), // four
        format!("03000000{one}{one}{one}00"),
        format!("03000100{one}{one}{one}"), // something where there is to be nothing
        format!("ffff0000{one}{one}{one}"), // -1, or 65,535
    ];
    let of_half =
        ["0300".to_owned(), "03000000003c003c".into(), "03000000003c003c003c3c".into(), "03000100003c003c003c".into()];
    let word = |n: i32| n.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let sparse =
        |dim: i32, len: i32, unused: i32, entries: &str| format!("{}{}{}{entries}", word(dim), word(len), word(unused));
    let of_sparse = [
        String::new(),
        word(3),
        sparse(3, 1, 0, ""),
        sparse(3, 1, 0, &word(0)),
        sparse(3, 1, 1, &format!("{zero}{one}")),
        sparse(3, 1, 0, &format!("{zero}{one}{one}")),
        sparse(3, -1, 0, ""),
        sparse(3, i32::MAX, 0, ""),
        sparse(-3, 1, 0, &format!("{zero}{one}")),
        sparse(3, 1, 0, &format!("{}{one}", word(3))), // beyond the last dimension
        sparse(3, 1, 0, &format!("{}{one}", word(-1))), // and before the first
        sparse(3, 2, 0, &format!("{}{}{one}{one}", word(1), word(1))), // twice
        sparse(3, 2, 0, &format!("{}{}{one}{one}", word(2), word(0))), // descending
        sparse(2, 3, 0, &format!("{}{}{}{one}{one}{one}", word(0), word(1), word(2))),
    ];
    let good = ["v", "h", "s"].map(|column| match column {
        "v" => ("v", "vector", format!("03000000{one}{zero}{one}")),
        "h" => ("h", "halfvec", "03000000003c0000003c".to_owned()),
        _ => ("s", "sparsevec", sparse(3, 1, 0, &format!("{}{one}", word(1)))),
    });
    for ((column, kind, good), bad) in good.iter().zip([&of_vector[..], &of_half, &of_sparse]) {
        let insert = |label: usize, bytes: &str| {
            format!("INSERT INTO bad (label, {column}) VALUES ({label}, '\\x{bytes}'::bytea::{kind});")
        };
        db.run(&format!("TRUNCATE bad; {} {}", insert(0, good), insert(1, good)));
        db.train(&format!("'bad', features => '{{{column}}}', max_epochs => 1, name => 'm'"));
        for bytes in bad {
            // behind good rows, among them, and alone: who learns the dimensions from it, learns nothing
            for before in [2, 1, 0] {
                let rows: String = (0..4).map(|i| insert(i % 2, if i == before { bytes } else { good })).collect();
                db.run(&format!("TRUNCATE bad; {rows}"));
                for source in ["bad", "SELECT * FROM bad ORDER BY ctid"] {
                    let train = format!("SELECT corgipile_train('{source}', features => '{{{column}}}')");
                    let failure = db.rejects(&train, "XX001");
                    failure.says(&["feature vector is damaged, or has a layout that is not known,", "row"]);
                    assert!(failure.hint.contains("pgvector"), "{failure:?}");
                }
            }
            let predict = format!("SELECT corgipile_predict('m', '\\x{bytes}'::bytea::{kind})");
            db.fails_with(&predict, "XX001").says(&["the given vector is damaged"]);
            db.fails_with("SELECT corgipile_predict('m', bad) FROM bad", "XX001");
            db.fails_with("SELECT * FROM corgipile_evaluate('m', 'bad')", "XX001");
            let compress = format!("SELECT corgipile_compress('bad', 'compressed', features => '{{{column}}}')");
            db.fails_with(&compress, "XX001");
        }
    }
    not_finite_is_named(&mut db);
}

/// pgvector refuses such numbers, and a value may have them all the same.
fn not_finite_is_named(db: &mut Session) {
    for (column, kind, bytes, place) in [
        ("v", "vector", "03000000 0000803f 0000807f 0000803f", 2),
        ("h", "halfvec", "03000000 003c 003c 007e", 3),
        ("s", "sparsevec", "03000000 02000000 00000000 00000000 02000000 0000803f 0000c07f", 3),
    ] {
        let value = format!("'\\x{}'::bytea::{kind}", bytes.replace(' ', ""));
        db.run(&format!(
            "TRUNCATE bad; INSERT INTO bad (label, {column}) SELECT i % 2, {value} FROM generate_series(1, 9) i"
        ));
        let train = format!("SELECT corgipile_train('bad', features => '{{{column}}}')");
        db.rejects(&train, "22003").says(&[&format!("feature {column}[{place}] is "), "in row (0,"]);
        let compress = format!("SELECT corgipile_compress('bad', 'compressed', features => '{{{column}}}')");
        db.fails_with(&compress, "22003").says(&[&format!("feature {column}[{place}] is ")]);
    }
}

fn a_type_of_the_same_name_is_not_read(mut db: Database) {
    db.run(
        "CREATE SCHEMA mine;
         CREATE TYPE mine.vector AS ENUM ('one', 'two');
         CREATE TYPE mine.halfvec AS (dim int, x real[]);
         CREATE TYPE mine.sparsevec;
         CREATE FUNCTION mine.sparse_in(cstring) RETURNS mine.sparsevec IMMUTABLE STRICT LANGUAGE internal AS 'int4in';
         CREATE FUNCTION mine.sparse_out(mine.sparsevec) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int4out';
         CREATE TYPE mine.sparsevec (INPUT = mine.sparse_in, OUTPUT = mine.sparse_out, LIKE = int);
         CREATE TABLE others (label int, v mine.vector, h mine.halfvec, s mine.sparsevec, b box);
         INSERT INTO others SELECT i % 2, 'one', (2, ARRAY[1, i])::mine.halfvec, '7', box(point(0, 0), point(1, 1)) FROM generate_series(1, 10) i",
    );
    for member_of_the_extension in [false, true] {
        if member_of_the_extension {
            // as the owner of the extension may, who need not be a superuser
            db.run(
                "SET allow_system_table_mods = on;
                 INSERT INTO pg_depend (classid, objid, objsubid, refclassid, refobjid, refobjsubid, deptype)
                 SELECT 'pg_type'::regclass, t.oid, 0, 'pg_extension'::regclass, e.oid, 0, 'e'
                   FROM pg_type t, pg_extension e
                  WHERE t.typnamespace = 'mine'::regnamespace AND t.typname IN ('vector', 'halfvec', 'sparsevec') AND e.extname = 'vector'",
            );
        }
        for column in ["h", "s", "b"] {
            let train = format!("SELECT corgipile_train('others', features => '{{{column}}}')");
            db.rejects(&train, "42804").says(&[&format!("feature column \"{column}\" has type ")]);
        }
        // an enum is one, whatever its name
        db.train("'others', features => '{v}', max_epochs => 1, name => 'by_enum'");
        assert_eq!(db.line("SELECT feature_kind FROM corgipile.models WHERE name = 'by_enum' LIMIT 1"), "columns");
        assert!(db.attempt("SELECT corgipile_predict('by_enum', 'one'::mine.vector)").is_ok());
        db.fails_with("SELECT corgipile_predict('by_enum', '7'::mine.sparsevec)", "42804");
    }
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
        ("-Infinity", "feature n[2] is -infinity"),
        ("1e60", "feature n[2] is out of range"),
    ] {
        let source = format!("SELECT label, ARRAY[1, ''{value}'']::numeric[] AS n FROM t");
        db.rejects(&format!("SELECT corgipile_train('{source}', features => '{{n}}')"), "22003").says(&[message]);
    }
    let null = "SELECT corgipile_train('SELECT label, ARRAY[1, NULL]::numeric[] AS n FROM t', features => '{n}', nulls => 'error')";
    db.rejects(null, "22004").says(&["feature n[2] is NULL"]);
}
