//! Training on compressed mini-batches against training on the rows themselves.

use corgipile_tests::{Database, assert_close, clustered};

/// Compresses table t in its own order, and compares what each kind of model learns from its mini-batches,
/// packed and not.
fn assert_trains_alike(db: &mut Database, features: &str, label: &str, kinds: &[&str], batch: usize, rate: f64) {
    for encoding in ["auto", "toc", "csr"] {
        db.line(&format!(
            "SELECT corgipile_compress('t', 'c', label => '{label}', features => '{{{features}}}', batch_rows => {batch},
                encoding => '{encoding}', shuffle => 'no_shuffle')"
        ));
        for kind in kinds {
            for options in
                ["", ", \"l2\": 0.01", ", \"l1\": 0.001, \"optimizer\": \"momentum\"", ", \"optimizer\": \"adam\""]
            {
                let mut train = |table: &str, options: &str| {
                    let epochs = db.train(&format!(
                        "'{table}', '{kind}', label => '{label}', features => '{{{features}}}', shuffle => 'no_shuffle',
                         max_epochs => 4, seed => 1, learning_rate => {rate}, standardize => false, options => '{{{options}}}'"
                    ));
                    (db.model(epochs[0].model_id), epochs.iter().map(|e| e.loss).collect::<Vec<_>>(), epochs[0].tuples)
                };
                let plain = train("t", &format!("\"batch_size\": {batch}{options}"));
                let packed = train("c", options.trim_start_matches(", "));
                assert_eq!(plain.2, packed.2);
                let numbers = |w: &[f32]| w.iter().map(|w| f64::from(*w)).collect::<Vec<_>>();
                let scale = plain.0.weights.iter().fold(1e-3, |most: f32, w| most.max(w.abs()));
                for (a, b) in numbers(&plain.0.weights).iter().zip(numbers(&packed.0.weights)) {
                    assert!((a - b).abs() <= 1e-5 * f64::from(scale), "{encoding} {kind} {options}: {a} is not {b}");
                }
                assert_close(&packed.1, &plain.1, 1e-5);
                assert_close(&numbers(&packed.0.intercepts), &numbers(&plain.0.intercepts), 1e-5);
            }
        }
        db.run("DROP TABLE c");
    }
}

#[test]
fn a_compressed_table_teaches_what_its_rows_teach() {
    let mut db = Database::new();
    clustered(&mut db, "source", 1000);
    db.run(
        "CREATE TABLE t AS SELECT label, label % 2 + id % 2 AS class, features_v[1] - features_v[2] AS target,
                                     abs(label) + id % 3 AS amount, features_v
              FROM source ORDER BY hashint4(id)",
    );
    assert_trains_alike(&mut db, "features_v", "label", &["logistic", "svm", "squared_hinge"], 64, 0.1);
    let of_classes = ["softmax", "svm_one_vs_rest", "squared_hinge_one_vs_rest"];
    assert_trains_alike(&mut db, "features_v", "class", &of_classes, 50, 0.1);
    let of_numbers = ["linear", "huber", "quantile", "epsilon_insensitive"];
    assert_trains_alike(&mut db, "features_v", "target", &of_numbers, 250, 0.05);
    assert_trains_alike(&mut db, "features_v", "amount", &["poisson"], 250, 0.02);
    assert_trains_alike(&mut db, "features_v", "class", &["mlp"], 50, 0.01);
}

#[test]
fn what_goes_with_training_goes_with_compressed_tables_too() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    db.line("SELECT corgipile_compress('t', 'c', batch_rows => 50, seed => 1)");
    let train = |more: &str| format!("'c', seed => 7, learning_rate => 0.1{more}");
    let one = db.trained(&train(", max_epochs => 6"));
    assert_eq!(db.trained(&train(", max_epochs => 6")).bits(), one.bits());
    let half = db.trained(&train(", max_epochs => 3"));
    let whole = db.trained(&format!("'c', seed => 7, max_epochs => 3, warm_start => '{}'", half.id));
    assert_eq!(whole.bits(), one.bits(), "20 epochs are 10 and 10");
    let grid = db.lines("SELECT model_id, epoch, loss FROM corgipile_train('c', seed => 7, max_epochs => 2, grid => '{\"learning_rate\": [0.1, 0.01]}')");
    assert_eq!(grid.len(), 4);
    let validated = db.rows(
        "SELECT validation_score, tuples FROM corgipile_train('c', seed => 7, max_epochs => 5, learning_rate => 0.1,
                              options => '{\"validation_fraction\": 0.2}')",
        &[],
    );
    assert!(validated[4].get::<_, f64>(0) > 0.8);
    let tuples: i64 = validated[4].get(1);
    assert!((2000..2900).contains(&tuples) && tuples % 50 == 0, "{tuples}");
    // evaluated on the packed rows and on those that were packed
    let (packed, plain) = (db.evaluate(one.id, "c"), db.evaluate(one.id, "t"));
    assert_eq!((packed.tuples, packed.accuracy), (plain.tuples, plain.accuracy));
    assert!((packed.loss - plain.loss).abs() < 1e-6 && plain.accuracy > 0.8);
    for (function, sql_type) in [("corgipile_predict", "float8"), ("corgipile_predict_label", "text")] {
        db.assert_same_rows(
            &format!("SELECT unnest({function}({0}, features_v))::{sql_type}, count(*) FROM c GROUP BY 1", one.id),
            &format!("SELECT {function}({0}, features_v)::{sql_type}, count(*) FROM t GROUP BY 1", one.id),
        );
    }
    let id = one.id;
    let probabilities = format!(
        "SELECT max(abs(p[i][2] - (corgipile_predict_proba({id}, x))[2])) < 1e-6 AND count(*) = 3000
           FROM (SELECT corgipile_predict_proba({id}, features_v) AS p, features_v AS m FROM c) s,
                generate_series(1, corgipile_toc_rows(m)) i,
                LATERAL (SELECT array_agg(corgipile_toc_element(m, i, j) ORDER BY j) AS x FROM generate_series(1, 5) j) r"
    );
    assert_eq!(db.line(&probabilities), "t");
    let by_value = format!(
        "SELECT corgipile_predict(corgipile_export({id}), features_v) = corgipile_predict({id}, features_v) FROM c LIMIT 1"
    );
    assert_eq!(db.line(&by_value), "t");
    let plan = db.lines("EXPLAIN (COSTS OFF) SELECT * FROM corgipile_train('c')").join("\n");
    assert!(plan.contains("Features: features_v (compressed)") && !plan.contains("Batch Size"), "{plan}");
    let balanced = db.train(&train(", max_epochs => 1, options => '{\"class_weight\": \"balanced\"}'"));
    assert_eq!(balanced[0].tuples, 3000);
}

#[test]
fn what_does_not_go_with_compressed_tables_is_refused() {
    let mut db = Database::new();
    clustered(&mut db, "t", 300);
    db.line("SELECT corgipile_compress('t', 'c', batch_rows => 50, seed => 1)");
    db.run("CREATE TABLE w AS SELECT *, 1 AS g, true AS held FROM c");
    for arguments in [
        "'c', options => '{\"standardize\": true}'",
        "'c', options => '{\"batch_size\": 10}'",
        "'c', grid => '[{\"l2\": 0.1}, {\"batch_size\": 10}]'",
        "'w', features => '{features_v}', group_by => 'g'",
        "'w', features => '{features_v}', options => '{\"weight\": \"g\"}'",
        "'w', features => '{features_v}', options => '{\"validation_column\": \"held\"}'",
    ] {
        db.rejects(&format!("SELECT corgipile_train({arguments})"), "0A000").says(&["compressed source"]);
    }
    db.rejects("SELECT corgipile_train_uda('c')", "0A000").says(&["compressed source"]);
    db.fails_with("SELECT corgipile_cluster_factor('c')", "0A000").says(&["compressed source"]);
    db.run("CREATE TABLE short AS SELECT label[1:49] AS label, features_v FROM c;
            CREATE TABLE holes AS SELECT array_replace(label, 1, NULL) AS label, features_v FROM c;
            CREATE TABLE scalar AS SELECT 1 AS label, features_v FROM c;
            CREATE TABLE mixed AS SELECT * FROM c UNION ALL SELECT '{0}'::int[], corgipile_toc(ARRAY[[1,2]]);
            CREATE TABLE nan AS SELECT ARRAY[0, 1] AS label, corgipile_toc(ARRAY[[1,2],[3,'NaN']]::float8[]) AS features_v;
            CREATE TABLE large AS SELECT ARRAY[0, 1] AS label, corgipile_toc(ARRAY[[1,2],[3,1e300]]::float8[]) AS features_v");
    db.rejects("SELECT corgipile_train('short')", "2202E").says(&["49 labels", "50"]);
    db.rejects("SELECT corgipile_train('holes', options => '{\"nulls\": \"error\"}')", "22004")
        .says(&["label", "NULL"]);
    db.rejects("SELECT corgipile_train('scalar')", "42804").says(&["label"]);
    db.rejects("SELECT corgipile_train('mixed', shuffle => 'no_shuffle')", "2202E").says(&["2 features instead of 5"]);
    db.rejects("SELECT corgipile_train('nan')", "22003").says(&["features_v[2] of row 2", "NaN"]);
    db.rejects("SELECT corgipile_train('large')", "22003").says(&["features_v[2] of row 2", "out of range"]);
    let skipped = "SELECT tuples FROM corgipile_train('holes', max_epochs => 1, options => '{\"nulls\": \"skip\"}')";
    db.rejects(skipped, "22000"); // every mini-batch has one
    db.fails_with("SELECT corgipile_predict(1, features_v) FROM c", "42704");
    db.rejects("SELECT corgipile_train($$SELECT ARRAY[0,1] AS label, 'csr 2x0:;'::corgipile.toc AS f$$)", "42703")
        .hints(&["no columns"]);
}

#[test]
fn a_label_that_no_model_knows_is_an_error_wherever_it_is_in_a_mini_batch() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i % 3 AS label, ARRAY[i % 2, i % 3]::real[] AS f FROM generate_series(1, 300) i");
    db.line("SELECT corgipile_compress('t', 'c', batch_rows => 50, seed => 1)");
    db.rejects("SELECT corgipile_train('c', 'logistic')", "22000").says(&["more than two values"]);
    db.train("'SELECT label, f FROM t WHERE label < 2', name => 'two', max_epochs => 1, buffer_size => '100%'");
    db.fails_with("SELECT * FROM corgipile_evaluate('two', 'c')", "22023").says(&["label 2"]);
    db.train("'c', 'softmax', name => 'three', max_epochs => 1");
    let other = "$$SELECT ARRAY[5,5] AS label, 'toc 2x2: 1:1;'::corgipile.toc AS f$$";
    db.rejects(&format!("SELECT corgipile_train({other}, warm_start => 'three')"), "22023").says(&["label 5"]);
    // what is left out adds no class
    let skipped = "$$SELECT l AS label, 'toc 4x2: 1:1; 2:1; 1:2; 2:2'::corgipile.toc AS f
                       FROM (VALUES (ARRAY[7,NULL,8,8]), (ARRAY[1,2,1,2])) v(l)$$";
    let options = "options => '{\"nulls\": \"skip\"}'";
    assert_eq!(db.train(&format!("{skipped}, max_epochs => 1, {options}"))[0].tuples, 4);
}

#[test]
fn a_standardized_model_is_evaluated_on_compressed_rows_as_on_plain_ones() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT (i % 2)::int AS label, ARRAY[1000 + (i % 2) * 10 + i % 7, i % 5]::real[] AS x
           FROM generate_series(1, 3000) i",
    );
    db.line("SELECT corgipile_compress('t', 'c', features => '{x}', seed => 1)");
    for kind in ["logistic", "svm", "softmax", "mlp"] {
        let id = db.train(&format!(
            "'t', '{kind}', features => '{{x}}', max_epochs => 3, seed => 1, options => '{{\"standardize\": true}}'"
        ))[0]
            .model_id;
        let (plain, packed) = (db.evaluate(id, "t"), db.evaluate(id, "c"));
        assert_eq!(plain.accuracy, packed.accuracy, "{kind}");
        assert!((plain.loss - packed.loss).abs() < 1e-4 * plain.loss.max(0.1), "{kind}: {plain:?} {packed:?}");
    }
}

#[test]
fn what_cannot_be_done_with_mini_batches_says_why() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.fails_with("SELECT corgipile_compress('t', 'm', shuffle => 'mrs')", "22023").says(&["mrs"]);
    db.run("CREATE TABLE none (label int[], x corgipile.toc); INSERT INTO none VALUES ('{}', 'csr 0x2:')");
    for kind in ["logistic", "linear", "softmax", "mlp"] {
        db.rejects(&format!("SELECT corgipile_train('none', '{kind}')"), "22000");
    }
    // an encoding that holds every zero cannot have wide rows
    db.run(
        "CREATE TABLE wide AS SELECT i % 2 AS label, ARRAY[1 + i, 1000000] AS k, ARRAY[1, 2]::real[] AS v
           FROM generate_series(1, 500) i",
    );
    let report = "SELECT string_agg(encoding, ' ' ORDER BY encoding) FROM corgipile_compression_report('wide', features => '{k,v}')
                   WHERE ratio IS NULL AND stored_ratio IS NULL";
    assert_eq!(db.line(report), "den dvi gzip snappy");
    let large = "SELECT corgipile_toc(array_fill(1.5::float8, ARRAY[5000, 4000]), 'den')";
    db.fails_with(large, "54000").says(&["16777216"]);
    assert_eq!(db.line("SELECT corgipile_toc_columns('toc 1x2147483648:'::corgipile.toc)"), "2147483648");
    db.fails_with("SELECT 'toc 1x2147483647:'::corgipile.toc + 1::float8", "54000");
    // rows and mini-batches are not gone on with by each other
    db.line("SELECT corgipile_compress('t', 'c', batch_rows => 50, seed => 1)");
    let rows = db.train("'t', max_epochs => 1")[0].model_id;
    db.rejects(&format!("SELECT corgipile_train('c', warm_start => '{rows}')"), "22023").says(&["on rows"]);
    let packed = db.train("'c', max_epochs => 1")[0].model_id;
    db.rejects(&format!("SELECT corgipile_train('t', warm_start => '{packed}')"), "22023").says(&["compressed"]);
}

/// Each compressed mini-batch is a step: there is no size to be chosen, nor one to be recorded.
#[test]
fn a_network_with_all_defaults_goes_on_from_a_compressed_table() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    db.line("SELECT corgipile_compress('t', 'c', batch_rows => 50, seed => 1)");
    let whole = db.trained("'c', 'mlp', seed => 7, max_epochs => 3").bits();
    let half = db.trained("'c', 'mlp', seed => 7, max_epochs => 2");
    let record = format!("SELECT hyperparameters ? 'batch_size' FROM corgipile.models WHERE model_id = {}", half.id);
    assert_eq!(db.line(&record), "f");
    assert_eq!(db.trained(&format!("'c', warm_start => '{}', max_epochs => 1", half.id)).bits(), whole);
}
