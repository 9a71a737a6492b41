//! `corgipile_cluster_factor()`: 1 for a shuffled table, up to the tuples of a block for a sorted one.

use corgipile_tests::{Database, clustered};

/// h_D of `table`, in blocks of `pages` pages, computed in SQL from its definition for two classes 0 and 1 and five
/// features.
fn by_definition(db: &mut Database, table: &str, pages: u32) -> f64 {
    db.value(&format!(
        "WITH gradients AS (
             SELECT id, (ctid::text::point)[0]::bigint / {pages} AS block, j,
                    (1 - 2 * label) * CASE WHEN j = 0 THEN 1 ELSE features_v[j]::float8 END AS g
             FROM {table}, generate_series(0, 5) j),
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
