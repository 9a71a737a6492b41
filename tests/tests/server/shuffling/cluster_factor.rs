//! `corgipile_cluster_factor()`: 1 for a shuffled table, up to the tuples of a block for a sorted one. The oracle for
//! standardized values, NULLs and trained models is numpy: see tests/golden/cluster_factor.py.

use corgipile_tests::stored::Stored;
use corgipile_tests::{Database, clustered};
use serde_json::Value;

/// h_D of `table`, in blocks of `pages` pages, computed in SQL from its definition for two classes 0 and 1 and five
/// standardized features.
fn by_definition(db: &mut Database, table: &str, pages: u32) -> f64 {
    db.value(&format!(
        "WITH scales AS (
             SELECT j, avg(features_v[j]::float8) AS mean, coalesce(nullif(stddev_pop(features_v[j]::float8), 0), 1) AS scale
             FROM {table}, generate_series(0, 5) j GROUP BY j),
         gradients AS (
             SELECT id, ({table}.ctid::text::point)[0]::bigint / {pages} AS block, j,
                    (1 - 2 * label) * CASE WHEN j = 0 THEN 1 ELSE (features_v[j]::float8 - mean) / scale END AS g
             FROM {table} CROSS JOIN scales),
         means AS (SELECT j, avg(g) AS mean FROM gradients GROUP BY j),
         blocks AS (SELECT block, j, avg(g) AS mean, count(*) AS n FROM gradients GROUP BY block, j),
         m AS (SELECT count(*)::float8 AS m, count(DISTINCT block) AS n FROM gradients WHERE j = 0)
         SELECT m / n * (SELECT sum(b.n / m * (b.mean - means.mean) ^ 2) FROM blocks b JOIN means USING (j))
                / (SELECT sum((g - mean) ^ 2) / m FROM gradients JOIN means USING (j))
         FROM m"
    ))
}

#[test]
fn it_is_about_1_for_a_shuffled_table_and_near_the_tuples_of_a_block_for_a_sorted_one() {
    let mut db = Database::new();
    clustered(&mut db, "sorted", 30_000);
    db.run("CREATE TABLE shuffled AS SELECT * FROM sorted ORDER BY hashint8extended(id, 1)");
    db.run("CREATE TABLE alike AS SELECT id, label, '{1,0,0,0,0}'::real[] AS features_v FROM sorted ORDER BY id");
    for pages in [1, 8, 30] {
        let mut factor = |table: &str| -> f64 {
            db.value(&format!("SELECT corgipile_cluster_factor('{table}', block_size => '{}kB')", 8 * pages))
        };
        let (sorted, shuffled, alike) = (factor("sorted"), factor("shuffled"), factor("alike"));
        let per_page = 30_000.0 / db.value::<i64>("SELECT pg_relation_size('sorted') / 8192") as f64;
        let b = per_page * f64::from(pages);
        assert!((0.6..1.4).contains(&shuffled), "{pages} pages: {shuffled}");
        assert!(sorted > 0.1 * b && sorted <= b, "{pages} pages: {sorted} of {b}");
        // a block in the middle has both classes
        assert!(alike > 0.85 * b && alike <= 1.1 * b, "{pages} pages: {alike} of {b}");
        for (table, found) in [("sorted", sorted), ("shuffled", shuffled), ("alike", alike)] {
            let expected = by_definition(&mut db, table, pages);
            assert!((found - expected).abs() < 1e-6 * expected, "{table}, {pages} pages: {found}, not {expected}");
        }
    }
}

#[test]
fn blocks_that_the_memory_does_not_hold_are_measured_as_a_whole() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let factor = "SELECT corgipile_cluster_factor('t', block_size => '1MB')";
    let whole: f64 = db.value(factor);
    db.run("SET corgipile.max_buffer_memory = '64kB'");
    assert_eq!(db.value::<f64>(factor), whole);
    db.run("DELETE FROM t WHERE id BETWEEN 3000 AND 9000");
    let holes: f64 = db.value(factor);
    let expected = by_definition(&mut db, "t", 128);
    assert!((holes - expected).abs() < 1e-6 * expected, "{holes}, not {expected}");
}

#[test]
fn every_kind_of_model_tuple_and_source_has_one() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    db.run(
        "CREATE TABLE sparse AS SELECT id, label, '{1,2,3,4,5}'::int[] AS features_k, features_v FROM t ORDER BY id;
         CREATE TABLE columns AS SELECT label, features_v[1] AS a, features_v[2] AS b, label::text AS text FROM t;
         CREATE TABLE many AS SELECT id, id / 1000 AS label, features_v FROM t ORDER BY id",
    );
    let mut factor = |arguments: &str| db.value::<f64>(&format!("SELECT corgipile_cluster_factor({arguments})"));
    let logistic = factor("'t', block_size => '64kB'");
    assert!(logistic > 10.0);
    assert_eq!(factor("'t', block_size => '64kB', model => 'svm'"), logistic, "the loss is a factor");
    let softmax = factor("'t', block_size => '64kB', model => 'softmax'");
    assert!((softmax - logistic).abs() < 1e-9 * logistic, "of two classes: {softmax}");
    assert!(factor("'many', model => 'softmax'") > 10.0);
    assert!(factor("'many', model => 'linear'") > 10.0);
    assert!(factor("'sparse'") > 10.0);
    assert!(factor("'columns', features => '{a, b}'") > 10.0);
    assert!(factor("'columns', label => 'text', features => '{a, b}', model => 'softmax'") > 10.0);
    assert!(factor("'columns', label => 'label', features => '{a, text}'") > 10.0);
    assert!(
        factor("'SELECT * FROM t JOIN generate_series(1, 5000) g ON g = id ORDER BY id', features => '{features_v}'")
            > 10.0
    );
    let shuffled = factor("'SELECT * FROM t ORDER BY hashint8extended(id, 1)', features => '{features_v}'");
    assert!((0.5..1.5).contains(&shuffled), "{shuffled}");
}

#[test]
fn a_default_block_is_that_of_training() {
    let mut db = Database::new();
    clustered(&mut db, "t", 60_000);
    let id = db.train("'t', max_epochs => 1")[0].model_id;
    let pages: i64 = db.value(&format!(
        "SELECT (hyperparameters ->> 'pages_per_block')::bigint FROM corgipile.models WHERE model_id = {id}"
    ));
    let auto: f64 = db.value("SELECT corgipile_cluster_factor('t')");
    let same: f64 = db.value(&format!("SELECT corgipile_cluster_factor('t', block_size => '{}kB')", 8 * pages));
    assert_eq!(auto, same);
}

#[test]
fn what_cannot_be_measured_is_null_or_an_error() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    db.run(
        "CREATE TABLE same AS SELECT 7 AS label, 1.5::real AS x FROM generate_series(1, 1000);
         CREATE TABLE none (label int, x real)",
    );
    let none: Option<f64> = db.value("SELECT corgipile_cluster_factor('same', model => 'linear')");
    assert_eq!(none, None, "gradients that are all the same");
    db.fails_with("SELECT corgipile_cluster_factor('same')", "22000").says(&["only one value"]);
    db.fails_with("SELECT corgipile_cluster_factor('none')", "22000").says(&["no rows"]);
    db.fails_with("SELECT corgipile_cluster_factor('nowhere')", "42P01");
    db.fails_with("SELECT corgipile_cluster_factor(NULL)", "22004").says(&["source"]);
    db.fails_with("SELECT corgipile_cluster_factor('t', label => 'gone')", "42703");
    db.fails_with("SELECT corgipile_cluster_factor('t', features => '{}')", "22023").says(&["features"]);
    db.fails_with("SELECT corgipile_cluster_factor('t', features => '{label}')", "22023").says(&["label"]);
    db.fails_with("SELECT corgipile_cluster_factor('t', block_size => '1kB')", "22023").says(&["block_size"]);
    db.fails_with("SELECT corgipile_cluster_factor('t', model => 'tree')", "22023").says(&["tree"]);
    let who = db.role("nobody");
    db.session_as(&who).fails_with("SELECT corgipile_cluster_factor('t')", "42501");
}

#[test]
fn it_measures_what_training_learns_from_as_numpy_does() {
    let golden: Value = serde_json::from_str(include_str!("../../../golden/cluster_factor.json")).expect("JSON");
    let mut db = Database::new();
    let n = golden["rows"].as_i64().expect("rows");
    db.run(&format!(
        "CREATE TABLE r (i int, same int, signal float8, noise float8, target float8);
         INSERT INTO r SELECT i, 0, signal, noise, 1000 + 5.0 * i / {n} + signal
           FROM (SELECT i, (i * 7919::bigint % 1000) / 1000.0::float8 + 2 * (i >= {n} / 2)::int AS signal,
                        ((i * 104729::bigint % 99991) / 99991::float8 - 0.5) * 2e6 AS noise
                   FROM generate_series(0, {n} - 1) i) AS rows"
    ));
    let per_page: i64 = db.value("SELECT count(*) FROM r WHERE (ctid::text::point)[0] = 3");
    assert_eq!(Some(per_page), golden["rows_per_page"].as_i64());
    let numbers = |key: &str| {
        let numbers = golden[key].as_array().expect("numbers").iter().map(Value::to_string).collect::<Vec<_>>();
        format!("'{{{}}}'", numbers.join(","))
    };
    let (mean, scale) = (numbers("mean"), numbers("scale"));
    let binary = Stored {
        model: "logistic",
        label_type: "integer",
        classes: "'{0,1}'",
        features: "'{signal,noise}'",
        kind: "columns",
        categories: "NULL",
        index_base: "NULL",
        options: "{}",
        weights: "'{1.5,-0.25}'",
        intercepts: "'{0.5}'",
        mean: &mean,
        scale: &scale,
    };
    binary.store(&mut db, "at logistic");
    Stored { model: "svm", ..binary }.store(&mut db, "at svm");
    Stored { model: "linear", label_type: "float8", classes: "NULL", ..binary }.store(&mut db, "at linear");
    Stored { model: "poisson", label_type: "integer", classes: "NULL", ..binary }.store(&mut db, "at poisson");
    let softmax = Stored {
        model: "softmax",
        classes: "'{0,1,2}'",
        weights: "'{1,0.5,-0.5,0.25,0,-1}'",
        intercepts: "'{0.1,0.2,-0.3}'",
        ..binary
    };
    softmax.store(&mut db, "at softmax");
    let label = format!("(i >= {n} / 2)::int AS label");
    let kind = format!("(i * 3::bigint / {n})::int");
    for (pages, factors) in golden["factors"].as_object().expect("pages") {
        for (name, rows, more) in [
            ("logistic", label.clone(), ""),
            ("nulls", format!("{label}, CASE WHEN i % 7 <> 0 THEN signal END AS signal"), ""),
            ("linear", "target AS label".to_owned(), ", model => 'linear'"),
            ("softmax", format!("{kind} AS label"), ", model => 'softmax'"),
            ("categories", format!("{label}, 'k' || {kind} AS kind"), ", features => '{signal,noise,kind}'"),
            ("at logistic", label.clone(), ", model => 'at logistic'"),
            ("at svm", label.clone(), ", model => 'at svm'"),
            ("at linear", "target AS label".to_owned(), ", model => 'at linear'"),
            ("at poisson", label.clone(), ", model => 'at poisson'"),
            ("at softmax", format!("{kind} AS label"), ", model => 'at softmax'"),
        ] {
            let signal = if name == "nulls" { "" } else { ", signal" };
            let features =
                if more.contains("at ") || more.contains("features") { "" } else { ", features => '{signal,noise}'" };
            let kilobytes = 8 * pages.parse::<i64>().expect("a number");
            let found: f64 = db.value(&format!(
                "SELECT corgipile_cluster_factor('SELECT {}{signal}, noise FROM r', block_size => '{kilobytes}kB'{features}{more})",
                rows.replace('\'', "''")
            ));
            let expected = factors[name].as_f64().expect("a factor");
            assert!((found - expected).abs() < 1e-4 * expected, "{name}, {pages} pages: {found}, numpy {expected}");
        }
    }
    // a default block, too: the noise alone would say that there is nothing to shuffle
    let sorted: f64 = db.value(&format!("SELECT corgipile_cluster_factor('SELECT {label}, signal, noise FROM r')"));
    assert!(sorted > 60.0, "{sorted}");
}

#[test]
fn a_trained_model_is_named_as_everywhere_and_has_its_own_columns() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    let id = db.train("'t', 'svm', max_epochs => 3, seed => 1, name => 'm'")[0].model_id;
    let mut factor =
        |model: &str| db.value::<f64>(&format!("SELECT corgipile_cluster_factor('t', model => '{model}')"));
    let found = factor("m");
    for model in [id.to_string(), "postgres.m".to_owned()] {
        assert_eq!(factor(&model), found, "{model}");
    }
    assert_ne!(factor("svm"), found, "at zero weights");
    db.train("'t', 'mlp', max_epochs => 1, name => 'net'");
    db.run("ALTER TABLE t RENAME label TO y");
    db.fails_with("SELECT corgipile_cluster_factor('t', model => 'm')", "42703").says(&["label"]);
    let label = db.fails_with("SELECT corgipile_cluster_factor('t', label => 'y', model => 'm')", "22023");
    label.says(&["label", "a trained model has its own"]);
    let features = db.fails_with("SELECT corgipile_cluster_factor('t', features => '{id}', model => 'm')", "22023");
    features.says(&["features", "a trained model has its own"]);
    db.fails_with("SELECT corgipile_cluster_factor('t', model => 'net')", "22023").says(&["network"]);
    db.fails_with("SELECT corgipile_cluster_factor('t', model => '999')", "42704").says(&["999"]);
    let who = db.role("nobody");
    db.run(&format!("GRANT SELECT ON t TO {who}"));
    db.session_as(&who).fails_with("SELECT corgipile_cluster_factor('t', model => 'postgres.m')", "42501");
}
