//! Compressed mini-batches: the type, the tables of them, and training on these against training on the rows themselves.

use corgipile_tests::{DataSet, Database, Session, assert_close, clustered, data_directory, skip};
use std::path::Path;

/// The running example of the TOC paper (its Figure 3).
const PAPER: &str = "ARRAY[[1.1,2,3,1.4],[1.1,2,3,0],[0,1.1,3,1.4],[1.1,2,0,0]]";

const ENCODINGS: [&str; 7] = ["den", "csr", "cvi", "dvi", "toc", "gzip", "snappy"];

#[test]
fn products_of_the_papers_example_are_as_computed_by_hand() {
    let mut db = Database::new();
    for encoding in ENCODINGS {
        db.run(&format!("CREATE TABLE m_{encoding} AS SELECT corgipile_toc({PAPER}, '{encoding}') AS a"));
        let mut vector = |sql: &str| -> Vec<f64> { db.value(&format!("SELECT {sql} FROM m_{encoding}")) };
        let close = |given: Vec<f64>, expected: &[f64]| assert_close(&given, expected, 1e-12);
        close(vector("a * ARRAY[1,2,3,4]::float8[]"), &[19.7, 14.1, 16.8, 5.1]);
        close(vector("ARRAY[1,2,3,4]::float8[] * a"), &[7.7, 17.3, 18.0, 5.6]);
        let flat = |sql: &str| format!("(SELECT array_agg(e ORDER BY i) FROM unnest({sql}) WITH ORDINALITY u(e, i))");
        close(
            vector(&flat("a * ARRAY[[0,1],[2,3],[4,5],[6,7]]::float8[]")),
            &[24.4, 31.9, 16.0, 22.1, 22.6, 28.1, 4.0, 7.1],
        );
        close(
            vector(&flat("ARRAY[[0,1,2,3],[4,5,6,7]]::float8[] * a")),
            &[4.4, 10.2, 9.0, 2.8, 17.6, 38.6, 45.0, 14.0],
        );
        let said = "corgipile_toc_rows(a) || ' ' || corgipile_toc_columns(a) || ' ' || corgipile_toc_encoding(a)
                    || ' ' || corgipile_toc_element(a, 3, 2) || ' ' || corgipile_toc_element(a, 4, 3)";
        assert_eq!(db.line(&format!("SELECT {said} FROM m_{encoding}")), format!("4 4 {encoding} 1.1 0"));
        let same = format!(
            "SELECT corgipile_toc_decompress(a) = {PAPER}::float8[], (corgipile_toc_decompress(a * 2))[1][3],
                    (corgipile_toc_decompress(a + 1))[4][3], (2 * a)::text = (a * 2)::text, (1 + a)::text = (a + 1)::text, a::text::corgipile.toc::text = a::text,
                    corgipile_toc_bytes(a) = octet_length(corgipile.toc_send(a)),
                    corgipile_toc_ratio(a) = 128 / corgipile_toc_bytes(a)::float8
               FROM m_{encoding}"
        );
        assert_eq!(db.line(&same), "t|6|1|t|t|t|t|t");
    }
}

#[test]
fn every_bit_of_a_value_comes_back() {
    let mut db = Database::new();
    let array = "ARRAY[['-0', 'NaN'], ['Infinity', '-Infinity'], [5e-324, 1.7976931348623157e308], [0.1, 0]]::float8[]";
    for encoding in ENCODINGS {
        let sql = format!(
            "SELECT corgipile_toc_decompress(a)::text = {array}::text, corgipile_toc_decompress(a::text::corgipile.toc)::text = {array}::text
               FROM corgipile_toc({array}, '{encoding}') a"
        );
        assert_eq!(db.line(&sql), "t|t", "{encoding}");
        // 0 times a factor that is negative or infinite is not 0
        let negative = format!(
            "SELECT (corgipile_toc_decompress(a * -1))[4][2]::text FROM corgipile_toc({array}, '{encoding}') a"
        );
        assert_eq!(db.line(&negative), "-0", "{encoding}");
        // nor is 0 times such a number in a vector
        let products = "SELECT a * '{0,Infinity}'::float8[], '{NaN,1}'::float8[] * a, a * '{{NaN},{2}}'::float8[]
                          FROM corgipile_toc(ARRAY[[1,0],[0,3]]::float8[], '{}') a";
        let products = products.replace("'{}')", &format!("'{encoding}')"));
        assert_eq!(db.line(&products), "{NaN,Infinity}|{NaN,NaN}|{{NaN},{NaN}}", "{encoding}");
    }
    assert_eq!(db.line("SELECT corgipile_toc('{}'::float8[])::text"), "den 0x1:");
    assert_eq!(db.line("SELECT 'csr 2x3: ; 3:7'::corgipile.toc::text"), "csr 2x3:; 3:7.0");
}

#[test]
fn a_malicious_value_is_refused() {
    let mut db = Database::new();
    for text in ["", "toc", "toc 1x1: 2:1", "toc 1x1", "zip 1x1: 1:1", "toc 2x2: 1:1; 2:x", "toc 1x1: 1:1; 1:1", "x"] {
        db.fails_with(&format!("SELECT '{text}'::corgipile.toc"), "22P02");
    }
    db.fails_with("SELECT 'toc 4000000000x4000000000: 1:1'::corgipile.toc", "22P02");
    db.fails_with("SELECT corgipile_toc_decompress('csr 1x2000000000: 1:1'::corgipile.toc)", "54000");
    db.run(
        "CREATE TABLE good AS SELECT corgipile.toc_send(corgipile_toc(ARRAY[[1,0,1,2],[1,0,1,3]], e)) AS bytes
              FROM unnest(ARRAY['den','csr','cvi','dvi','toc','gzip','snappy']) e",
    );
    // through COPY, in binary, as a client might send it: every byte changed, and every length
    for bytes in db.column::<Vec<u8>>("SELECT bytes FROM good") {
        let mut refused = 0;
        for i in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[i] ^= 0x55;
            refused += usize::from(receive(&mut db, &changed).is_err());
            assert!(receive(&mut db, &bytes[..i]).is_err(), "{i} bytes of {}", bytes.len());
        }
        assert_eq!(refused, bytes.len(), "the checksum is of all bytes");
        assert_eq!(receive(&mut db, &bytes).unwrap(), 2);
    }
}

/// Rows of a value that is received in binary.
fn receive(db: &mut Session, value: &[u8]) -> Result<i32, String> {
    db.run("CREATE TEMP TABLE IF NOT EXISTS received (v corgipile.toc); TRUNCATE received");
    let mut file = b"PGCOPY\n\xff\r\n\0".to_vec();
    file.extend([0; 8]);
    file.extend(1_i16.to_be_bytes());
    file.extend((value.len() as i32).to_be_bytes());
    file.extend(value);
    file.extend((-1_i16).to_be_bytes());
    let path = format!("/tmp/corgipile_toc_{}", std::process::id());
    std::fs::write(&path, file).expect("/tmp is there to be written to");
    let result = db.attempt(&format!("COPY received FROM '{path}' WITH (FORMAT binary)"));
    std::fs::remove_file(&path).expect("it was just written");
    match result {
        Ok(_) => Ok(db.value("SELECT corgipile_toc_rows(v) FROM received")),
        Err(failure) => {
            assert_eq!(failure.code, "22P03", "{failure:?}");
            Err(failure.code.clone())
        }
    }
}

#[test]
fn a_compressed_table_has_every_row_once_with_its_label() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1103);
    for encoding in ["auto", "den", "csr", "cvi", "dvi", "toc", "gzip", "snappy"] {
        let report = db.line(&format!(
            "SELECT batches, tuples, skipped, bytes > 0, ratio > 1 FROM corgipile_compress('t', 'c_{encoding}',
                batch_rows => 100, encoding => '{encoding}', seed => 3)"
        ));
        assert_eq!(report, "12|1103|0|t|t", "{encoding}");
        db.assert_same_rows(
            &format!(
                "SELECT label[i]::text, (SELECT array_agg(corgipile_toc_element(features_v, i, j) ORDER BY j)
                                           FROM generate_series(1, 5) j)::real[]
                   FROM c_{encoding}, generate_series(1, corgipile_toc_rows(features_v)) i"
            ),
            "SELECT label::text, features_v FROM t",
        );
    }
    // mixed, although the table is sorted by its label
    let shares = "SELECT bool_and(share BETWEEN 0.25 AND 0.75)
                    FROM (SELECT (SELECT avg(l) FROM unnest(label) l) AS share FROM c_auto WHERE cardinality(label) = 100) s";
    assert_eq!(db.line(shares), "t");
    let seed = "SELECT order_seed FROM corgipile_compress('t', 'again', batch_rows => 100, seed => 3)";
    assert_eq!(db.line(seed), "3");
    db.assert_same_rows("SELECT label, features_v::text FROM again", "SELECT label, features_v::text FROM c_auto");
    let drawn: i64 = db.value("SELECT order_seed FROM corgipile_compress('t', 'drawn')");
    db.line(&format!("SELECT corgipile_compress('t', 'drawn_again', seed => {drawn})"));
    db.assert_same_rows("SELECT label, features_v::text FROM drawn_again", "SELECT label, features_v::text FROM drawn");
}

#[test]
fn all_kinds_of_features_are_compressed() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (id int PRIMARY KEY, y text, a int, b numeric, c boolean, k int[], v float8[]);
            INSERT INTO t SELECT i, 'class ' || i % 2, i % 5, i / 8.0, i % 3 = 0, ARRAY[1 + i % 4, 6], ARRAY[i, 0.5]
              FROM generate_series(1, 30) i",
    );
    db.line("SELECT corgipile_compress('t', 'columns', label => 'y', features => '{a,b,c}', batch_rows => 7, \"order\" => 'no_shuffle')");
    assert_eq!(
        db.lines("SELECT y[1], corgipile_toc_element(features, 1, 2) FROM columns ORDER BY ctid LIMIT 2"),
        ["class 1|0.125", "class 0|1"]
    );
    db.line("SELECT corgipile_compress('SELECT * FROM t WHERE id <= 20', 'sparse', label => 'y', features => '{k,v}', \"order\" => 'no_shuffle')");
    assert_eq!(db.line("SELECT corgipile_toc_columns(features), corgipile_toc_rows(features) FROM sparse"), "6|20");
    db.line(
        "SELECT corgipile_compress('t', 'wide', label => 'y', features => '{k,v}', dimensions => 9, index_base => 0)",
    );
    assert_eq!(db.line("SELECT corgipile_toc_columns(features) FROM wide"), "9");
    let epochs = db.train("'sparse', label => 'y', max_epochs => 2, seed => 1");
    assert_eq!(epochs[1].tuples, 20);
    assert_eq!(db.line("SELECT classes, feature_kind FROM corgipile.models"), "{\"class 0\",\"class 1\"}|array");
    // an array's name is kept, also if its type is a domain
    db.run("CREATE DOMAIN vector AS float8[]; CREATE TABLE u AS SELECT y AS label, v::vector AS x FROM t");
    db.line("SELECT corgipile_compress('u', 'arrays')");
    assert_eq!(db.line("SELECT corgipile_toc_columns(x) FROM arrays"), "2");
}

/// Compresses table t in its own order, and compares what each kind of model learns from its mini-batches, packed and not.
fn assert_trains_alike(db: &mut Database, features: &str, label: &str, kinds: &[&str], batch: usize, rate: f64) {
    for encoding in ["auto", "toc", "csr"] {
        db.line(&format!(
            "SELECT corgipile_compress('t', 'c', label => '{label}', features => '{{{features}}}', batch_rows => {batch},
                encoding => '{encoding}', \"order\" => 'no_shuffle')"
        ));
        for kind in kinds {
            for options in
                ["", ", \"l2\": 0.01", ", \"l1\": 0.001, \"optimizer\": \"momentum\"", ", \"optimizer\": \"adam\""]
            {
                let mut train = |table: &str, options: &str| {
                    let epochs = db.train(&format!(
                        "'{table}', '{kind}', label => '{label}', features => '{{{features}}}', shuffle => 'no_shuffle',
                         max_epochs => 4, seed => 1, learning_rate => {rate}, options => '{{{options}}}'"
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
    db.run("CREATE TABLE t AS SELECT label, label % 2 + id % 2 AS class, features_v[1] - features_v[2] AS target, features_v
              FROM source ORDER BY hashint4(id)");
    assert_trains_alike(&mut db, "features_v", "label", &["logistic", "svm"], 64, 0.1);
    assert_trains_alike(&mut db, "features_v", "class", &["softmax"], 50, 0.1);
    assert_trains_alike(&mut db, "features_v", "target", &["linear"], 250, 0.05);
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
        "'c', workers => 2",
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
    db.rejects("SELECT corgipile_train('holes')", "22004").says(&["label", "NULL"]);
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
    for model in ["logistic", "svm"] {
        db.rejects(&format!("SELECT corgipile_train('c', '{model}')"), "22000").says(&["more than two values"]);
    }
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
fn bad_input_to_compress_is_refused() {
    let mut db = Database::new();
    clustered(&mut db, "t", 100);
    db.run("CREATE TABLE n AS SELECT * FROM t; UPDATE n SET features_v[2] = NULL WHERE id = 5; UPDATE n SET label = NULL WHERE id = 6;
            CREATE TABLE inf AS SELECT * FROM t; UPDATE inf SET features_v[3] = 'Infinity' WHERE id = 7;
            CREATE TABLE uneven AS SELECT * FROM t; UPDATE uneven SET features_v = '{1}' WHERE id = 8;
            CREATE TABLE words AS SELECT label, 'x' AS a, 1 AS b FROM t; CREATE TABLE empty (LIKE t)");
    let report = |source: &str, more: &str| format!("SELECT corgipile_compression_report('{source}'{more})");
    for (source, more, code) in [
        ("n", "", "22004"),
        ("inf", "", "22003"),
        ("uneven", "", "2202E"),
        ("words", ", features => '{a,b}'", "42804"),
        ("empty", "", "22000"),
        ("nothing", "", "42P01"),
        ("t", ", label => 'nothing'", "42703"),
        ("t", ", features => '{nothing}'", "42703"),
        ("t", ", features => '{}'", "22023"),
        ("t", ", batch_rows => 0", "22023"),
        ("t", ", batch_rows => NULL", "22004"),
        ("t", ", \"order\" => 'sorted'", "22023"),
        ("t", ", index_base => 2", "22023"),
        ("t", ", dimensions => 7", "22023"),
        ("t", ", nulls => 'drop'", "22023"),
    ] {
        db.fails_with(&report(source, more), code);
        db.fails_with(&format!("SELECT corgipile_compress('{source}', 'c'{more})"), code);
        assert_eq!(db.line("SELECT to_regclass('c') IS NULL"), "t", "nothing is left behind");
    }
    db.fails_with("SELECT corgipile_compress('n', 'c')", "22004")
        .says(&["NULL in row (", ") of n"])
        .hints(&["nulls => 'skip'"]);
    db.fails_with("SELECT corgipile_compress('SELECT * FROM n ORDER BY id', 'c')", "22004")
        .says(&["in the order of reading"]);
    assert_eq!(db.line("SELECT tuples, skipped FROM corgipile_compress('n', 'c', nulls => 'skip')"), "98|2");
    db.fails_with("SELECT corgipile_compress('t', 'c')", "42P07");
    for features in ["{label,id}", "{id,id}", "{}"] {
        let sql = format!("SELECT corgipile_compress('t', 'd', features => '{features}')");
        db.fails_with(&sql, "22023").says(&["features"]);
    }
    db.fails_with("SELECT corgipile_compress('t', 'a.b.c.d')", "22023");
    db.fails_with("SELECT corgipile_compress('t', NULL)", "22004");
    db.fails_with("SELECT corgipile_compress('t', 'd', encoding => 'zip')", "22023").hints(&["toc", "auto"]);
    db.line("SELECT corgipile_compress('t', '\"Odd name\"')");
    assert_eq!(db.line("SELECT sum(corgipile_toc_rows(features_v)) FROM \"Odd name\""), "100");
}

#[test]
fn nobody_compresses_what_he_may_not_read() {
    let mut db = Database::new();
    clustered(&mut db, "t", 100);
    let role = db.role("compressor");
    db.run(&format!(
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON t USING (id <= 60); CREATE SCHEMA own AUTHORIZATION {role}"
    ));
    let mut session = db.session_as(&role);
    session.fails_with("SELECT corgipile_compress('t', 'own.c')", "42501");
    db.run(&format!("GRANT SELECT ON t TO {role}"));
    assert_eq!(session.line("SELECT tuples FROM corgipile_compress('t', 'own.c')"), "60");
    session.fails_with("SELECT corgipile_compress('t', 'c')", "42501");
    assert_eq!(
        session.line("SELECT pg_get_userbyid(relowner)::text FROM pg_class WHERE oid = 'own.c'::regclass"),
        role.trim_matches('"')
    );
    session.fails_with("BEGIN READ ONLY; SELECT corgipile_compress('t', 'own.d')", "25006");
}

/// Ratios of the report against those of an independent implementation (its rows: batches of 50, of 250).
fn assert_ratios(db: &mut Database, table: &str, expected: &[(&str, f64, f64)]) {
    for (encoding, of_50, of_250) in expected {
        for (rows, expected) in [(50, of_50), (250, of_250)] {
            let sql = format!(
                "SELECT ratio, stored_ratio FROM corgipile_compression_report('{table}', batch_rows => {rows})
                  WHERE encoding = lower('{encoding}')"
            );
            let row = &db.rows(&sql, &[])[0];
            let (paper, stored): (f64, f64) = (row.get(0), row.get(1));
            let tolerance = if ["gzip", "snappy"].contains(encoding) { 0.1 } else { 0.01 };
            assert!((paper / expected - 1.0).abs() <= tolerance, "{table} {encoding} {rows}: {paper}, not {expected}");
            assert!(stored >= 0.99 * expected.max(0.99), "{table} {encoding} {rows}: stored {stored}");
        }
    }
}

#[test]
fn ratios_are_those_of_an_independent_implementation() {
    let Some(directory) = data_directory() else {
        return skip(ratios_are_those_of_an_independent_implementation, "no real data sets (CORGIPILE_DATA)");
    };
    let mut db = Database::new();
    agaricus(&mut db, &directory);
    assert_ratios(
        &mut db,
        "agaricus",
        &[
            ("CSR", 3.789, 3.791),
            ("CVI", 8.88, 8.906),
            ("DVI", 7.964, 7.993),
            ("TOC", 49.404, 86.771),
            ("snappy", 10.75, 10.757),
            ("gzip", 49.105, 52.144),
        ],
    );
}

fn agaricus(db: &mut Database, directory: &Path) {
    DataSet::libsvm(directory, "agaricus_train", 127).load(db, "loaded");
    db.run("CREATE TABLE agaricus AS SELECT label, features_v FROM loaded ORDER BY id");
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
fn the_rate_of_theorem1_counts_rows_of_mini_batches() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    db.line("SELECT corgipile_compress('t', 'c', \"order\" => 'no_shuffle')");
    let mut rates = |source: &str, more: &str| -> Vec<f64> {
        let options = format!("{{\"schedule\": \"theorem1\", \"l2\": 0.1{more}}}");
        let epochs = db.train(&format!(
            "'{source}', shuffle => 'no_shuffle', buffer_size => '100%', max_epochs => 3, options => '{options}'"
        ));
        epochs.iter().map(|epoch| epoch.learning_rate).collect()
    };
    assert_close(&rates("c", ""), &rates("t", ", \"batch_size\": 250"), 1e-12);
}

#[test]
fn what_cannot_be_done_with_mini_batches_says_why() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.fails_with("SELECT corgipile_compress('t', 'm', \"order\" => 'mrs')", "22023").says(&["mrs"]);
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

/// A table of two classes, whose last feature is the constant 1 of the intercept, and its rows.
fn overlapping(db: &mut Session) -> Vec<(Vec<f64>, f64)> {
    db.run(
        "CREATE TABLE t (label int, x real[]);
         INSERT INTO t SELECT y, ARRAY[y + normal(i, 1), normal(i, 2) - y, normal(i, 3), normal(i, 4)]::real[]
           FROM (SELECT i, (uniform(i, 0) < 0.4)::int AS y FROM generate_series(1, 5000) i) AS labels;
         ANALYZE t",
    );
    let rows = db.rows("SELECT x, 2 * label - 1 FROM t", &[]);
    let row = |row: &postgres::Row| {
        let x: Vec<f32> = row.get(0);
        (x.into_iter().map(f64::from).chain([1.0]).collect(), f64::from(row.get::<_, i32>(1)))
    };
    rows.iter().map(row).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Mean loss of logistic regression with its penalty, and what Newton's method subtracts from the parameters.
fn newton(rows: &[(Vec<f64>, f64)], w: &[f64], l2: f64) -> (f64, Vec<f64>) {
    let (dim, n) = (w.len(), rows.len() as f64);
    let penalty = |j: usize| if j + 1 < dim { l2 } else { 0.0 };
    let mut objective: f64 = (0..dim).map(|j| penalty(j) / 2.0 * w[j] * w[j]).sum();
    // the Hessian with the gradient as its last column
    let mut matrix = vec![vec![0.0; dim + 1]; dim];
    for j in 0..dim {
        (matrix[j][j], matrix[j][dim]) = (penalty(j), penalty(j) * w[j]);
    }
    for (x, y) in rows {
        let margin = y * dot(x, w);
        objective += (-margin).exp().ln_1p() / n;
        let p = 1.0 / (1.0 + margin.exp());
        for i in 0..dim {
            (0..dim).for_each(|j| matrix[i][j] += p * (1.0 - p) * x[i] * x[j] / n);
            matrix[i][dim] -= y * p * x[i] / n;
        }
    }
    for k in 0..dim {
        let pivot: Vec<f64> = matrix[k].iter().map(|a| a / matrix[k][k]).collect();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = row[k];
            row.iter_mut().zip(&pivot).for_each(|(a, b)| *a -= factor * b);
        }
        matrix[k] = pivot;
    }
    (objective, matrix.iter().map(|row| row[dim]).collect())
}

#[test]
fn theorem1_comes_to_the_optimum_whatever_the_mini_batches() {
    let mut db = Database::new();
    let rows = overlapping(&mut db);
    db.line("SELECT corgipile_compress('t', 'c', features => '{x}', batch_rows => 250, seed => 1)");
    let mut optimum = vec![0.0; 5];
    for _ in 0..20 {
        let (_, step) = newton(&rows, &optimum, 0.01);
        optimum.iter_mut().zip(step).for_each(|(w, step)| *w -= step);
    }
    let (least, _) = newton(&rows, &optimum, 0.01);
    let mut gaps = Vec::new();
    for (source, batch, workers) in [("t", "1", 1), ("t", "32", 1), ("t", "250", 1), ("t", "250", 2), ("c", "null", 1)]
    {
        let options =
            format!("jsonb_strip_nulls('{{\"schedule\": \"theorem1\", \"l2\": 0.01, \"batch_size\": {batch}}}')");
        let model = db.trained(&format!(
            "'{source}', features => '{{x}}', max_epochs => 100, buffer_size => '10%', seed => 1, workers => {workers},
             options => {options}"
        ));
        let w: Vec<f64> = model.weights.iter().chain(&model.intercepts).map(|w| f64::from(*w)).collect();
        let gap = newton(&rows, &w, 0.01).0 - least;
        println!("gap to the optimum after 100 epochs, {source}, batch_size {batch}, {workers} processes: {gap:.1e}");
        gaps.push(gap);
    }
    assert!(gaps.iter().all(|gap| *gap < 1e-6), "{gaps:?}");
}
