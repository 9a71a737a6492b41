//! What can be trained on: tables of every kind, and queries.

use corgipile_tests::{Database, clustered, program, small};

/// How many tuples an epoch over a source has.
fn tuples(db: &mut Database, source: &str) -> i64 {
    let epochs = db.train(&format!("$source${source}$source$, max_epochs => 2"));
    assert_eq!(epochs[0].tuples, epochs[1].tuples);
    epochs[0].tuples
}

#[test]
fn views_joins_ctes_set_operations_and_values_are_sources() {
    let mut db = Database::with_small_table(300);
    db.run(
        "CREATE VIEW v AS SELECT label, a FROM t WHERE id <= 200;
            CREATE MATERIALIZED VIEW m AS SELECT label, a FROM t WHERE id <= 100;
            CREATE TABLE u AS SELECT id, uniform(id, 7) AS z FROM t WHERE id % 2 = 0",
    );
    for (source, expected) in [
        ("v", 200),
        ("m", 100),
        ("SELECT * FROM v", 200),
        ("SELECT label, a, z FROM t JOIN u USING (id)", 150),
        ("SELECT label, a, coalesce(z, 0) AS z FROM t LEFT JOIN u USING (id)", 300),
        ("WITH w AS (SELECT * FROM t WHERE id > 100) SELECT label, a FROM w", 200),
        ("WITH w AS MATERIALIZED (SELECT * FROM t) SELECT label, a FROM w", 300),
        (
            "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 50)
             SELECT i % 2 AS label, i FROM r",
            50,
        ),
        ("VALUES (0, 1.5), (1, 2.5)", -1),
        ("SELECT column1 AS label, column2 AS x FROM (VALUES (0, 1.5), (1, 2.5)) v", 2),
        ("SELECT label, a FROM t UNION ALL SELECT label, a FROM t", 600),
        ("SELECT label, a FROM t EXCEPT SELECT label, a FROM t WHERE id > 10", 10),
        ("SELECT label, a FROM t ORDER BY a", 300),
        ("SELECT label, a FROM t ORDER BY id LIMIT 120 OFFSET 10", 120),
        ("SELECT DISTINCT label, (id % 5) AS k FROM t", 10),
        ("SELECT label, avg(a) AS a, count(*) AS n FROM t GROUP BY label, id % 10", 20),
        ("SELECT label, a, lag(a, 1, 0::real) OVER (ORDER BY id) AS before FROM t", 300),
        ("(SELECT label, a FROM t)", 300),
        ("  \n\tselect label, a from t", 300),
        ("TABLE t", 300),
        ("table v", 200),
        ("SELECT label, a FROM t TABLESAMPLE BERNOULLI (100)", 300),
        ("SELECT i % 2 AS label, i AS x FROM generate_series(1, 30) i", 30),
        ("SELECT label, a FROM ONLY t", 300),
    ] {
        if expected < 0 {
            // Its columns have names that no one expects, which is said.
            db.rejects(&format!("SELECT * FROM corgipile_train($${source}$$)"), "42703").hints(&["column1"]);
        } else {
            assert_eq!(tuples(&mut db, source), expected, "{source}");
        }
    }
}

#[test]
fn odd_text_around_a_query_does_not_matter() {
    let mut db = Database::with_small_table(100);
    for source in [
        "SELECT label, a FROM t -- a comment at the end",
        "SELECT label, a FROM t /* a comment */",
        "-- a comment first\nSELECT label, a FROM t",
        "/* a comment /* nested */ first */ SELECT label, a FROM t",
        "SELECT label, a FROM t;",
        "SELECT label, a FROM t ;  -- done\n",
        "SELECT label, a AS \"quo\"\"ted 'name'\" FROM t WHERE 'it''s; -- fine' <> ''",
        "SELECT label, length(E'\\'') * a AS a FROM t",
        "SELECT label, a FROM t WHERE 1 = 1 AND $q$;$q$ = ';'",
    ] {
        assert_eq!(tuples(&mut db, source), 100, "{source}");
    }
}

#[test]
fn names_are_read_as_regclass_reads_them() {
    let mut db = Database::new();
    db.run("CREATE SCHEMA \"My Schema\"");
    small(&mut db, "\"My Schema\".\"My Table; -- x\"", 100);
    small(&mut db, "public.\"SELECT\"", 100);
    small(&mut db, "lower", 100);
    db.run("CREATE SCHEMA other");
    small(&mut db, "other.hidden", 50);
    for source in
        ["\"My Schema\".\"My Table; -- x\"", "public.\"SELECT\"", "\"SELECT\"", "LOWER", "Lower", "public.lower"]
    {
        assert_eq!(tuples(&mut db, source), 100, "{source}");
    }
    db.rejects("SELECT * FROM corgipile_train('hidden')", "42P01");
    db.run("SET search_path = other, public");
    assert_eq!(tuples(&mut db, "hidden"), 50);
    small(&mut db, "other.lower", 20);
    assert_eq!(tuples(&mut db, "lower"), 20, "the first in the search path");
    db.run("CREATE TEMP TABLE lower AS SELECT * FROM public.lower LIMIT 10");
    assert_eq!(tuples(&mut db, "lower"), 10, "a temporary table comes first");
}

#[test]
fn a_prepared_training_follows_the_search_path_of_its_execution() {
    let mut db = Database::new();
    db.run("CREATE SCHEMA one; CREATE SCHEMA two");
    small(&mut db, "one.t", 100);
    small(&mut db, "two.t", 200);
    db.run(
        "SET plan_cache_mode = force_generic_plan; SET search_path = one, public;
            PREPARE train AS SELECT tuples FROM corgipile_train('t', max_epochs => 1)",
    );
    assert_eq!(db.line("EXECUTE train"), "100");
    db.run("SET search_path = two, public");
    assert_eq!(db.line("EXECUTE train"), "200");
}

#[test]
fn a_partitioned_table_is_read_whole() {
    let mut db = Database::new();
    clustered(&mut db, "base", 2000);
    db.run(
        "CREATE TABLE p (LIKE base) PARTITION BY LIST (label);
         CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0);
         CREATE TABLE p1 (features_v real[], label int, id int); ALTER TABLE p ATTACH PARTITION p1 FOR VALUES IN (1);
         CREATE TABLE empty PARTITION OF p DEFAULT;
         INSERT INTO p SELECT * FROM base; ANALYZE p",
    );
    for shuffle in ["corgipile", "block_only", "no_shuffle"] {
        let epochs = db.train(&format!("'p', max_epochs => 3, shuffle => '{shuffle}'"));
        assert!(epochs.iter().all(|e| e.tuples == 2000), "{shuffle}: {epochs:?}");
    }
    assert_eq!(tuples(&mut db, "SELECT * FROM p"), 2000);
    let id = db.train("'p', seed => 1, learning_rate => 0.05, buffer_size => '50%'")[0].model_id;
    assert!(db.evaluate(id, "base").accuracy > 0.8, "{:?}", db.evaluate(id, "base"));
    assert_eq!(db.evaluate(id, "p").tuples, 2000.0);
    // A partition by itself has one class.
    db.rejects("SELECT * FROM corgipile_train('p0')", "22000");
}

#[test]
fn an_inherited_table_is_read_with_its_children() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE parent (label int, a real); CREATE TABLE child (extra text) INHERITS (parent);
            INSERT INTO parent SELECT i % 2, i FROM generate_series(1, 100) i;
            INSERT INTO child SELECT i % 2, i, 'x' FROM generate_series(1, 50) i",
    );
    assert_eq!(tuples(&mut db, "parent"), 150);
    assert_eq!(tuples(&mut db, "SELECT * FROM ONLY parent"), 100);
    assert_eq!(tuples(&mut db, "child"), 50);
}

#[test]
fn a_foreign_table_is_a_source() {
    let mut db = Database::new();
    if db.line("SELECT count(*) FROM pg_available_extensions WHERE name = 'file_fdw'") == "0" {
        return corgipile_tests::skip(a_foreign_table_is_a_source, "file_fdw is not installed");
    }
    // A program that the server runs needs no file that both it and the test can reach.
    db.run(
        "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
            CREATE FOREIGN TABLE f (label int, a real) SERVER files
            OPTIONS (program 'for i in $(seq 100); do echo $((i % 2)),$i; done', format 'csv')",
    );
    assert_eq!(tuples(&mut db, "f"), 100);
    assert_eq!(tuples(&mut db, "SELECT * FROM f WHERE a > 50"), 50);
    db.assert_shuffled_or_refused("f");
}

#[test]
fn temporary_unlogged_and_just_created_tables_are_sources() {
    let mut db = Database::with_small_table(200);
    db.run("CREATE TEMP TABLE temporary AS TABLE t; CREATE UNLOGGED TABLE unlogged AS TABLE t");
    let expected = db.trained("'t', features => '{a,b,c}', max_epochs => 2, seed => 1").bits();
    for table in ["temporary", "unlogged"] {
        assert_eq!(
            db.trained(&format!("'{table}', features => '{{a,b,c}}', max_epochs => 2, seed => 1")).bits(),
            expected
        );
    }
    db.run("BEGIN; CREATE TABLE fresh AS TABLE t; INSERT INTO fresh SELECT id + 1000, label, a, b, c FROM t");
    assert_eq!(tuples(&mut db, "fresh"), 400);
    db.run("TRUNCATE fresh; INSERT INTO fresh SELECT * FROM t LIMIT 50");
    assert_eq!(tuples(&mut db, "fresh"), 50);
    db.run("ROLLBACK; BEGIN; CREATE TEMP TABLE dropped ON COMMIT DROP AS TABLE t");
    assert_eq!(tuples(&mut db, "dropped"), 200);
    db.run("COMMIT");
}

#[test]
fn dropped_added_and_generated_columns_are_read_right() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (gone text, id int, label int, also_gone real[], a real,
                         twice real GENERATED ALWAYS AS (a * 2) STORED);
         INSERT INTO t SELECT repeat('x', i % 40), i, i % 2, ARRAY[i], i % 9 FROM generate_series(1, 200) i;
         ALTER TABLE t DROP gone, DROP also_gone, ADD d int DEFAULT 3, ADD e real;
         UPDATE t SET e = 0;
         INSERT INTO t (id, label, a, d, e) SELECT i, i % 2, i % 9, 4, 1 FROM generate_series(201, 300) i;
         ALTER TABLE t ADD late real DEFAULT 5;
         CREATE TABLE clean AS SELECT label, a, twice, d, e, late FROM t",
    );
    let train = |db: &mut Database, table: &str| {
        let features = "features => '{a,twice,d,e,late}'";
        db.trained(&format!("'{table}', {features}, shuffle => 'no_shuffle', max_epochs => 3")).bits()
    };
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
    if db.major() >= 18 {
        // not in the rows, but computed when they are read
        db.run("ALTER TABLE t DROP twice, ADD twice real GENERATED ALWAYS AS (a * 2) VIRTUAL");
        assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
        let filtered = "SELECT label, a, twice, d, e, late FROM %s WHERE twice > 3";
        let [ours, theirs] = ["t", "clean"].map(|table| filtered.replace("%s", table));
        assert_eq!(train(&mut db, &ours), train(&mut db, &theirs));
    }
    db.rejects("SELECT * FROM corgipile_train('t', features => '{also_gone}')", "42703");
    db.rejects("SELECT * FROM corgipile_train('t', features => '{\"........pg.dropped.1........\"}')", "42703");
    // Rows older than the column have no value for it, which is NULL.
    db.run("ALTER TABLE t ADD missing real");
    db.rejects(
        "SELECT * FROM corgipile_train('t', features => '{missing}', options => '{\"nulls\": \"error\"}')",
        "22004",
    );
}

#[test]
fn a_prepared_training_follows_added_and_dropped_columns() {
    let mut db = Database::with_small_table(100);
    db.run(
        "SET plan_cache_mode = force_generic_plan;
            PREPARE by_name AS SELECT model_id FROM corgipile_train('t', max_epochs => 1) LIMIT 1;
            PREPARE by_query AS SELECT model_id FROM corgipile_train('SELECT * FROM t', max_epochs => 1) LIMIT 1",
    );
    let features = |db: &mut Database, statement: &str| {
        let id = db.line(&format!("EXECUTE {statement}"));
        db.line(&format!("SELECT features FROM corgipile.models WHERE model_id = {id}"))
    };
    assert_eq!(features(&mut db, "by_name"), "{a,b,c}");
    assert_eq!(features(&mut db, "by_query"), "{a,b,c}");
    db.run("ALTER TABLE t DROP b, ADD d real DEFAULT 1");
    assert_eq!(features(&mut db, "by_name"), "{a,c,d}");
    assert_eq!(features(&mut db, "by_query"), "{a,c,d}");
    db.run("DROP TABLE t");
    db.rejects("EXECUTE by_name", "42P01");
    small(&mut db, "t", 50);
    assert_eq!(features(&mut db, "by_name"), "{a,b,c}");
}

#[test]
fn a_query_source_is_shuffled() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let query = "SELECT label, features_v FROM t ORDER BY label";
    let id = db.train(&format!("'{query}', seed => 1, learning_rate => 0.01, standardize => false"))[0].model_id;
    let unshuffled = db
        .train(&format!("'{query}', shuffle => 'no_shuffle', learning_rate => 0.01, standardize => false"))[0]
        .model_id;
    let (with, without) = (db.evaluate(id, "t").accuracy, db.evaluate(unshuffled, "t").accuracy);
    assert!(with > 0.83 && without < with - 0.1, "shuffled {with}, not shuffled {without}");
    let a = db.trained(&format!("'{query}, id', seed => 9, max_epochs => 2")).bits();
    let b = db.trained(&format!("'{query}, id', seed => 9, max_epochs => 2")).bits();
    assert_eq!(a, b, "a seed repeats a query's training too");
}

#[test]
fn every_epoch_of_a_volatile_query_sees_the_same_rows() {
    let mut db = Database::with_small_table(500);
    let epochs = db.train("'SELECT label, a FROM t WHERE random() < 0.5', max_epochs => 5");
    assert!(epochs[0].tuples > 100 && epochs[0].tuples < 400, "{epochs:?}");
    assert!(epochs.iter().all(|e| e.tuples == epochs[0].tuples), "{epochs:?}");
}

#[test]
fn a_large_query_source_spills_to_disk_and_leaves_nothing_there() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    db.run("SET work_mem = '64kB'");
    let pid = db.pid();
    assert_eq!(tuples(&mut db, "SELECT t.label, t.features_v FROM t JOIN t u USING (id)"), 20_000);
    assert_eq!(db.lines(&format!("SELECT name FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp{pid}.%'")).len(), 0);
}

#[test]
fn a_source_that_calls_functions_and_trains_itself_works() {
    let mut db = Database::with_small_table(200);
    db.run(
        "CREATE FUNCTION f(real) RETURNS real LANGUAGE plpgsql AS 'BEGIN RETURN $1 + 1; END';
            CREATE FUNCTION g() RETURNS SETOF t LANGUAGE sql AS 'SELECT * FROM t'",
    );
    assert_eq!(tuples(&mut db, "SELECT label, f(a) AS x FROM t"), 200);
    assert_eq!(tuples(&mut db, "SELECT label, a FROM g()"), 200);
    // Stacking: the predictions of one model are the features of the next.
    let id = db.train("'t', max_epochs => 2")[0].model_id;
    let source = format!("SELECT label, corgipile_predict({id}, ARRAY[a, b, c]) AS first, a FROM t");
    assert_eq!(tuples(&mut db, &source), 200);
    // Training within training: a row per epoch as a training set.
    let nested = "SELECT epoch % 2 AS label, loss FROM corgipile_train('t', max_epochs => 6)";
    assert_eq!(tuples(&mut db, nested), 6);
    assert_eq!(
        tuples(
            &mut db,
            "SELECT label, features FROM (SELECT label, ARRAY[a] AS features FROM corgipile_shuffle(NULL::t)) s"
        ),
        200
    );
}

#[test]
fn a_system_catalog_is_a_source_like_any_table() {
    let mut db = Database::new();
    let count: i64 = db.value("SELECT count(*) FROM pg_class");
    assert_eq!(tuples(&mut db, "SELECT relhasindex AS label, relnatts AS x FROM pg_class"), count);
}

#[test]
fn a_relation_without_rows_to_read_is_refused() {
    let mut db = Database::with_small_table(100);
    db.run("CREATE INDEX i ON t (a); CREATE SEQUENCE s; CREATE TYPE pair AS (label int, a real)");
    for relation in ["i", "t_pkey", "pair"] {
        let failure = db.rejects(&format!("SELECT * FROM corgipile_train('{relation}')"), "42809");
        failure.says(&[relation]);
    }
    db.rejects("SELECT * FROM corgipile_train('s')", "42703").says(&["column \"label\" does not exist"]);
}

#[test]
fn psql_scripts_train_too() {
    let mut db = Database::with_small_table(100);
    let output = program("psql")
        .args(["-X", "-At", "-v", "ON_ERROR_STOP=1", "-d", db.name(), "-c"])
        .arg("SELECT count(*) FROM corgipile_train('t', max_epochs => 3)")
        .output()
        .expect("psql runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "3\n", "{output:?}");
    assert_eq!(db.models(), 1);
}

#[test]
fn a_source_of_type_regclass_is_the_relation_whatever_the_search_path() {
    let mut db = Database::with_small_table(100);
    db.run("CREATE SCHEMA \"S p\"; CREATE TABLE \"S p\".\"T-1\" AS SELECT * FROM t; SET search_path = public");
    db.run(
        "SELECT corgipile_train('t'::regclass, 'svm', max_epochs => 2, seed => 1, name => 'm', features => '{a,b}')",
    );
    db.run("SELECT corgipile_train('t', 'svm', max_epochs => 2, seed => 1, name => 'by text', features => '{a,b}')");
    let weights = "SELECT count(DISTINCT weights), string_agg(source, ' ' ORDER BY model_id) FROM corgipile.models";
    assert_eq!(db.line(weights), "1|public.t t");
    let named = "SELECT count(*) FROM corgipile_train('\"S p\".\"T-1\"'::regclass, max_epochs => 3)";
    assert_eq!(db.line(named), "3");
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_train('t'::regclass, batch_size => 3)").join("\n");
    assert!(plan.contains("CorgiPileSGD") && plan.contains("Batch Size: 3"), "{plan}");
    // each of several tables that the catalog lists
    db.run("CREATE TABLE part_1 AS SELECT * FROM t; CREATE TABLE part_2 AS SELECT * FROM t");
    let each =
        "SELECT count(DISTINCT model_id) FROM pg_class c, LATERAL corgipile_train(c.oid::regclass, max_epochs => 1)
                 WHERE relname LIKE 'part\\__'";
    assert_eq!(db.line(each), "2");
    for (by_oid, by_text) in [
        ("corgipile_evaluate('m', 't'::regclass)", "corgipile_evaluate('m', 't')"),
        ("corgipile_evaluate(1, 't'::regclass)", "corgipile_evaluate(1, 't')"),
        ("corgipile_cluster_factor('t'::regclass)", "corgipile_cluster_factor('t')"),
        (
            "(SELECT count(*) FROM corgipile_train_uda('t'::regclass, max_epochs => 2))",
            "(SELECT count(*) FROM corgipile_train_uda('t', max_epochs => 2))",
        ),
    ] {
        assert_eq!(db.lines(&format!("SELECT {by_oid}")), db.lines(&format!("SELECT {by_text}")), "{by_oid}");
    }
    // a parameter without a type is a text
    db.run("PREPARE p AS SELECT count(*) FROM corgipile_train($1, max_epochs => 2)");
    assert_eq!(db.line("EXECUTE p('SELECT * FROM t')"), "2");
    db.fails_with("SELECT corgipile_train(4294967295::oid::regclass)", "42P01").says(&["4294967295"]);
    assert_eq!(
        db.fails_with("SELECT corgipile_train(NULL::regclass)", "22004").message,
        "argument \"source\" must not be null"
    );
}
