//! Values out of line are fetched for many rows at once: the models are those of values that PostgreSQL has fetched.

use corgipile_tests::Database;

const TRAINING: &str = "seed => 5, max_epochs => 2, learning_rate => 0.001, standardize => false, buffer_size => '20%'";

/// Asserts that a training on a table has the bits of one on `x[:]`, a copy that PostgreSQL makes of the array: the
/// rows lie on the same pages, and come in the same order.
fn assert_same_model(db: &mut Database, table: &str, what: &str) {
    let model = db.trained(&format!("'{table}', features => '{{x}}', {TRAINING}"));
    let oracle = db.trained(&format!("'SELECT label, x[:] AS x FROM {table}', features => '{{x}}', {TRAINING}"));
    assert!(model.weights.iter().all(|w| *w != 0.0), "{what}: {:?}", &model.weights[..10]);
    assert_eq!(model.bits(), oracle.bits(), "{what}");
}

/// A table of arrays of 2,000 numbers: those of some rows are random, of others only half of them or from few numbers,
/// of others all 1.
fn mixed(db: &mut Database, name: &str, kind: &str, storage: &str, compression: &str, rows: usize) {
    db.run(&format!(
        "CREATE TABLE {name} (gone text, label int, other text, x {kind}[] COMPRESSION {compression}, id int);
         ALTER TABLE {name} ALTER x SET STORAGE {storage}, ALTER other SET STORAGE external;
         INSERT INTO {name} SELECT repeat('x', 3000), (uniform(i, 0) < 0.5)::int, repeat('y', 5000),
                (SELECT array_agg((CASE i % 4 WHEN 0 THEN 10000 * uniform(i, j)
                                              WHEN 1 THEN j % 2 * 10000 * uniform(i, j)
                                              WHEN 2 THEN (9 * uniform(i, j))::int ELSE 1 END)::{kind})
                   FROM generate_series(1, 2000) j), i
           FROM generate_series(1, {rows}) i;
         ALTER TABLE {name} DROP gone;"
    ));
}

#[test]
fn every_storage_gives_the_bits_of_detoasted_values() {
    for (kind, storage, compression) in [
        ("real", "external", "pglz"),
        ("real", "extended", "pglz"),
        ("real", "extended", "fastest"),
        ("real", "main", "pglz"),
        ("double precision", "external", "pglz"),
        ("double precision", "extended", "fastest"),
        ("int", "external", "pglz"),
    ] {
        let mut db = Database::new();
        let compression = if compression == "fastest" { db.fastest_compression() } else { compression };
        mixed(&mut db, "t", kind, storage, compression, 300);
        assert_same_model(&mut db, "t", &format!("{kind}[], {storage}, {compression}"));
    }
}

#[test]
fn values_are_compressed_and_not_in_line_and_out_of_line_in_the_table_of_the_tests() {
    let mut db = Database::new();
    mixed(&mut db, "t", "real", "extended", "pglz", 100);
    let kinds = "SELECT count(DISTINCT pg_column_size(x)), count(*) FILTER (WHERE pg_column_size(x) < 2000),
                        count(*) FILTER (WHERE pg_column_size(x) > 8000),
                        count(*) FILTER (WHERE pg_column_size(x) BETWEEN 2100 AND 7900) FROM t";
    let counts = db.line(kinds);
    let counts: Vec<u32> = counts.split('|').map(|n| n.parse().unwrap()).collect();
    assert!(counts[1] >= 25 && counts[2] >= 25 && counts[3] >= 25, "in line, as they are, compressed: {counts:?}");
}

#[test]
fn nulls_and_the_rows_of_a_later_column_are_as_without_toast() {
    let mut db = Database::new();
    mixed(&mut db, "t", "real", "external", "pglz", 200);
    db.run(
        "UPDATE t SET x = NULL WHERE id % 7 = 0; UPDATE t SET other = NULL WHERE id % 3 = 0; ALTER TABLE t ADD z int",
    );
    let train = |db: &mut Database, source: &str| {
        let arguments = format!(r#"'{source}', features => '{{x}}', options => '{{"nulls": "skip"}}', {TRAINING}"#);
        db.trained(&arguments).bits()
    };
    assert_eq!(train(&mut db, "t"), train(&mut db, "SELECT label, x[:] AS x FROM t"));
}

#[test]
fn updated_deleted_and_rewritten_rows_give_the_bits_of_detoasted_values() {
    let mut db = Database::new();
    mixed(&mut db, "t", "real", "external", "pglz", 300);
    db.run("UPDATE t SET x = x[2:] || 3::real WHERE id % 3 = 0; DELETE FROM t WHERE id % 5 = 0");
    assert_same_model(&mut db, "t", "dead rows");
    db.run("VACUUM t");
    db.run("UPDATE t SET x = x[2:] || 4::real WHERE id % 7 = 1");
    assert_same_model(&mut db, "t", "space used again");
    db.run("BEGIN; UPDATE t SET x = x[2:] || 5::real; SAVEPOINT s; UPDATE t SET x = x[2:] || 6::real; ROLLBACK TO s");
    assert_same_model(&mut db, "t", "rows of this transaction");
    db.run("ROLLBACK");
    db.run("CREATE INDEX t_scattered ON t (uniform(id, 7))");
    db.run("CLUSTER t USING t_scattered");
    assert_same_model(&mut db, "t", "clustered: values are in another order than their ids");
    db.run("VACUUM FULL t");
    assert_same_model(&mut db, "t", "rewritten");
}

#[test]
fn temporary_and_unlogged_tables_and_values_of_every_size_give_the_bits_of_detoasted_values() {
    let mut db = Database::new();
    db.run("CREATE TEMP TABLE t (label int, x real[]); CREATE UNLOGGED TABLE u (LIKE t)");
    // 1,996 bytes are a chunk, of which the header takes 20; values above a megabyte are left to PostgreSQL
    for (elements, rows) in [(494, 50), (495, 50), (525, 50), (993, 50), (60_000, 20), (270_000, 4)] {
        for table in ["t", "u"] {
            db.run(&format!(
                "TRUNCATE {table}; ALTER TABLE {table} ALTER x SET STORAGE external;
                 ALTER TABLE {table} SET (toast_tuple_target = 128);
                 INSERT INTO {table} SELECT (uniform(i, 0) < 0.5)::int,
                        (SELECT array_agg(1 + uniform(i, j % 1000)) FROM generate_series(1, {elements}) j)
                   FROM generate_series(1, {rows}) i"
            ));
            assert_same_model(&mut db, table, &format!("{elements} elements in {table}"));
        }
    }
}

#[test]
fn rows_of_other_plans_keep_their_values_in_several_toast_tables() {
    let mut db = Database::new();
    mixed(&mut db, "a", "real", "external", "pglz", 60);
    mixed(&mut db, "b", "real", "extended", "pglz", 60);
    let in_sequence = |db: &mut Database, source: &str| {
        let arguments = format!("'{source}', features => '{{x}}', shuffle => 'no_shuffle', {TRAINING}");
        db.trained(&arguments).bits()
    };
    let union = "FROM (SELECT * FROM a UNION ALL SELECT * FROM b) u ORDER BY id, label";
    let toasted = in_sequence(&mut db, &format!("SELECT label, x {union}"));
    assert_eq!(toasted, in_sequence(&mut db, &format!("SELECT label, x[:] AS x {union}")), "two tables");
    let join = "FROM a JOIN b ON b.id = a.id % 3 + 1 ORDER BY a.id";
    let toasted = in_sequence(&mut db, &format!("SELECT a.label, b.x {join}"));
    assert_eq!(toasted, in_sequence(&mut db, &format!("SELECT a.label, b.x[:] AS x {join}")), "many rows, one value");
}

#[test]
fn sparse_features_and_labels_are_fetched_too() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (k int[], label text, v double precision[]);
         ALTER TABLE t ALTER k SET STORAGE external, ALTER v SET STORAGE external, ALTER label SET STORAGE external;
         INSERT INTO t SELECT array_agg(1 + 3 * j ORDER BY j), repeat(CASE WHEN uniform(i, 0) < 0.5 THEN 'a' ELSE 'b' END, 3000),
                array_agg(uniform(i, j) ORDER BY j)
           FROM generate_series(1, 100) i, generate_series(0, 1500) j GROUP BY i",
    );
    let train =
        |db: &mut Database, source: &str| db.trained(&format!("'{source}', features => '{{k,v}}', {TRAINING}")).bits();
    assert_eq!(train(&mut db, "t"), train(&mut db, "SELECT k[:] AS k, label || '''' AS label, v[:] AS v FROM t"));
    assert_eq!(db.line("SELECT DISTINCT length(classes[1]) FROM corgipile.models"), "3000");
}

#[test]
fn each_page_of_a_toast_table_is_visited_about_once_per_epoch() {
    let mut db = Database::new();
    mixed(&mut db, "t", "real", "external", "pglz", 400);
    db.run("ALTER TABLE t DROP other");
    db.run("VACUUM FULL t");
    db.run("VACUUM t");
    let visits = |db: &mut Database| -> i64 {
        db.run("SELECT pg_stat_force_next_flush()");
        db.value("SELECT toast_blks_hit + toast_blks_read FROM pg_statio_user_tables WHERE relname = 't'")
    };
    let pages: i64 = db.value("SELECT pg_relation_size(reltoastrelid) / 8192 FROM pg_class WHERE oid = 't'::regclass");
    assert!(pages >= 400, "{pages}");
    let before = visits(&mut db);
    db.train("'t', features => '{x}', max_epochs => 10, seed => 1, options => '{\"cache\": \"off\"}'");
    let visited = visits(&mut db) - before;
    assert!((10 * pages..12 * pages).contains(&visited), "{visited} visits of {pages} pages in 10 epochs");
}

#[test]
fn a_damaged_value_is_the_error_that_it_is_to_postgresql() {
    let mut db = Database::new();
    mixed(&mut db, "t", "real", "external", "pglz", 40);
    db.run("CREATE EXTENSION pg_surgery");
    let toast = db.line("SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 't'::regclass");
    let place = db.line(&format!("SELECT max(ctid) FROM {toast} WHERE chunk_seq = 4"));
    db.run(&format!("SELECT heap_force_kill('{toast}', ARRAY['{place}'::tid])"));
    let expected = db.fails_with("SELECT max(x) FROM t", "XX001");
    assert!(expected.message.starts_with("missing chunk number 4 for toast value"), "{expected:#?}");
    let failure = db.rejects(&format!("SELECT * FROM corgipile_train('t', features => '{{x}}', {TRAINING})"), "XX001");
    assert_eq!(failure.message, expected.message);
}
