//! `corgipile_compress()`: the tables that it makes, their size, and what it refuses.

use corgipile_tests::{DataSet, Database, clustered, data_directory, skip};
use std::path::Path;

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
    let seed = "SELECT shuffle_seed FROM corgipile_compress('t', 'again', batch_rows => 100, seed => 3)";
    assert_eq!(db.line(seed), "3");
    db.assert_same_rows("SELECT label, features_v::text FROM again", "SELECT label, features_v::text FROM c_auto");
    let drawn: i64 = db.value("SELECT shuffle_seed FROM corgipile_compress('t', 'drawn')");
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
    db.line("SELECT corgipile_compress('t', 'columns', label => 'y', features => '{a,b,c}', batch_rows => 7, shuffle => 'no_shuffle')");
    assert_eq!(
        db.lines("SELECT y[1], corgipile_toc_element(features, 1, 2) FROM columns ORDER BY ctid LIMIT 2"),
        ["class 1|0.125", "class 0|1"]
    );
    db.line("SELECT corgipile_compress('SELECT * FROM t WHERE id <= 20', 'sparse', label => 'y', features => '{k,v}', shuffle => 'no_shuffle')");
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
        ("t", ", shuffle => 'sorted'", "22023"),
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

/// One number without end, or one far from the others, in a mini-batch leaves the others as small as before.
#[test]
fn one_odd_number_does_not_spoil_the_others() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE mixed AS SELECT i, 1 AS label, ARRAY(SELECT greatest(hashint8extended(i * 20 + j, 1) % 500, 0) / 4.0
                FROM generate_series(1, 20) j)::float8[] AS x FROM generate_series(1, 1000) i",
    );
    let mut sizes = |odd: &str| -> Vec<i64> {
        db.run(&format!("UPDATE mixed SET x[3] = {odd} WHERE i = 7"));
        ["den", "csr", "toc", "auto"].map(|encoding| {
            let compress = format!(
                "SELECT bytes FROM corgipile_compress('SELECT label, x FROM mixed ORDER BY i', 'c', encoding => '{encoding}',
                    shuffle => 'no_shuffle')"
            );
            let bytes = db.value(&compress);
            let element = db.line("SELECT corgipile_toc_element(x, 7, 3) FROM c WHERE corgipile_toc_rows(x) = 250 LIMIT 1");
            assert_eq!(element, db.line("SELECT x[3] FROM mixed WHERE i = 7"));
            db.run("DROP TABLE c");
            bytes
        })
        .to_vec()
    };
    let usual = sizes("0.5");
    for odd in ["1 / 3::float8", "1e300", "-4e9", "123456789.25", "1e-9"] {
        for (odd_size, size) in sizes(odd).iter().zip(&usual) {
            assert!(*odd_size <= size + 50, "{odd}: {odd_size} bytes, {size} without");
        }
    }
}

/// Rows as the report takes them are those that corgipile_compress would store.
#[test]
fn the_report_shuffles_as_compression_does() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let arguments = "features => '{features_v}', batch_rows => 100, seed => 3";
    let reported: i64 = db.value(&format!(
        "SELECT stored_bytes FROM corgipile_compression_report('t', {arguments}) WHERE encoding = 'csr'"
    ));
    let stored: i64 =
        db.value(&format!("SELECT bytes FROM corgipile_compress('t', 'c', encoding => 'csr', {arguments})"));
    assert_eq!(reported, stored);
}

/// Ratios of the report against those of an independent implementation (its rows: batches of 50, of 250).
fn assert_ratios(db: &mut Database, table: &str, expected: &[(&str, f64, f64)]) {
    for (encoding, of_50, of_250) in expected {
        for (rows, expected) in [(50, of_50), (250, of_250)] {
            let sql = format!(
                "SELECT ratio, stored_ratio FROM corgipile_compression_report('{table}', batch_rows => {rows}, shuffle => 'no_shuffle')
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
            ("TOC", 46.766, 79.743),
            ("snappy", 10.75, 10.757),
            ("gzip", 49.105, 52.144),
        ],
    );
}

fn agaricus(db: &mut Database, directory: &Path) {
    DataSet::libsvm(directory, "agaricus_train", 127).load(db, "loaded");
    db.run("CREATE TABLE agaricus AS SELECT label, features_v FROM loaded ORDER BY id");
}
