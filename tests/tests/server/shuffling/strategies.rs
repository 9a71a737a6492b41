//! The strategies: what they give, train and cost,
//! and that `corgipile_shuffle_order()` tells the truth about them.

use corgipile_tests::plan::node;
use corgipile_tests::{Database, Session, clustered};
use serde_json::Value;

const ALL: [&str; 10] = [
    "no_shuffle",
    "shuffle_once",
    "epoch_shuffle",
    "sliding_window",
    "mrs",
    "block_only",
    "corgipile",
    "block_only_stratified",
    "corgipile_simple",
    "corgipile_one_buffer",
];

/// Those that give every row exactly once in every epoch.
fn permutations() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().filter(|strategy| !["mrs", "corgipile_one_buffer"].contains(strategy))
}

/// A table (id from 0, label, features_v) of `rows` rows with a page for each,
/// so that a block of pages is one of tuples.
fn a_row_per_page(session: &mut Session, table: &str, rows: u32) {
    session.run(&format!(
        "CREATE TABLE {table} (id int, pad text, label int, features_v real[]);
         ALTER TABLE {table} ALTER pad SET STORAGE PLAIN;
         INSERT INTO {table} SELECT i, repeat('x', 5000), (i >= {rows} / 2)::int,
             ARRAY[normal(i, 1) + (i >= {rows} / 2)::int, normal(i, 2)]::real[]
         FROM generate_series(0, {rows} - 1) i;"
    ));
    assert_eq!(session.line(&format!("SELECT pg_relation_size('{table}') / 8192")), rows.to_string());
}

/// Blocks of 3 tuples and a buffer of 100 in such a table.
const SIZES: &str = "block_size => '24kB', buffer_size => '800kB'";

/// The tuples in the order of `epoch`.
fn shuffle_order(session: &mut Session, strategy: &str, tuples: u32, epoch: u32) -> Vec<i32> {
    session.column(&format!(
        "SELECT tuple::int FROM corgipile_shuffle_order('{strategy}', {tuples}, 3, 100, 7, {epoch}) ORDER BY position"
    ))
}

#[test]
fn corgipile_shuffle_gives_the_rows_as_corgipile_shuffle_order_says() {
    let mut db = Database::new();
    a_row_per_page(&mut db, "t", 700);
    for strategy in ALL {
        for epoch in 1..=3 {
            let expected = shuffle_order(&mut db, strategy, 700, epoch);
            let got: Vec<i32> = db.column(&format!(
                "SELECT id FROM corgipile_shuffle(NULL::t, seed => 7, shuffle => '{strategy}', epoch => {epoch}, {SIZES})"
            ));
            assert_eq!(got, expected, "{strategy}, epoch {epoch}");
        }
    }
}

/// Learning from a table in some order gives, bit for bit, the model of learning from a table that lies in that order.
#[test]
fn training_sees_the_rows_as_corgipile_shuffle_order_says_epoch_after_epoch() {
    let mut db = Database::new();
    a_row_per_page(&mut db, "t", 500);
    // sparse tuples with different numbers of entries, too
    db.run(
        "CREATE TABLE sparse (LIKE t INCLUDING STORAGE, features_k int[]);
         INSERT INTO sparse SELECT id, pad, label, features_v || CASE WHEN id % 3 > 0 THEN '{0.5}' ELSE '{}'::real[] END,
             CASE WHEN id % 3 = 0 THEN '{1,7}' ELSE ARRAY[1 + id % 5, 9, 10 + id % 7] END FROM t ORDER BY id",
    );
    let constant = "learning_rate => 0.01, standardize => false, schedule => 'constant'";
    for strategy in ALL {
        for (source, columns) in [("t", "features_v"), ("sparse", "features_k, features_v")] {
            db.run(&format!(
                "DROP TABLE IF EXISTS ordered;
                 CREATE TABLE ordered AS SELECT label, {columns}
                 FROM generate_series(1, 3) e, corgipile_shuffle_order('{strategy}', 500, 3, 100, 7, e) o
                 JOIN {source} s ON s.id = o.tuple ORDER BY e, position"
            ));
            let arguments =
                format!("features => '{{{columns}}}', shuffle => '{strategy}', seed => 7, {SIZES}, {constant}");
            let trained = db.trained(&format!("'{source}', max_epochs => 3, {arguments}"));
            let expected = db.trained(&format!(
                "'ordered', features => '{{{columns}}}', max_epochs => 1, shuffle => 'no_shuffle', {constant}"
            ));
            assert_eq!(trained.bits(), expected.bits(), "{strategy} of {columns}");
        }
    }
}

#[test]
fn rows_that_stay_in_the_buffer_are_standardized_once() {
    let mut db = Database::new();
    a_row_per_page(&mut db, "t", 500);
    // not an UPDATE with VACUUM FULL: anyone who holds a snapshot makes it keep the pages of the old rows
    db.run(
        "CREATE TABLE shifted (LIKE t INCLUDING STORAGE);
         INSERT INTO shifted
         SELECT id, pad, label, ARRAY[1000 + features_v[1], features_v[2] / 50] FROM t ORDER BY id;
         CREATE TABLE standardized (LIKE t INCLUDING STORAGE);
         INSERT INTO standardized
         SELECT id, pad, label, ARRAY[(features_v[1] - m1) / s1, (features_v[2] - m2) / s2]
         FROM shifted, (SELECT avg(features_v[1]) m1, stddev_pop(features_v[1]) s1,
                               avg(features_v[2]) m2, stddev_pop(features_v[2]) s2 FROM shifted) moments ORDER BY id",
    );
    for strategy in ALL {
        let arguments = format!("features => '{{features_v}}', shuffle => '{strategy}', seed => 7, {SIZES}");
        let options = "options => '{\"standardize\": true}'";
        let here = db.trained(&format!("'shifted', max_epochs => 3, {arguments}, {options}"));
        let there = db.trained(&format!("'standardized', max_epochs => 3, {arguments}"));
        for (a, b) in here.weights.iter().zip(&there.weights) {
            assert!((a - b).abs() < 1e-3 * b.abs().max(0.1), "{strategy}: {:?}, {:?}", here.weights, there.weights);
        }
    }
}

#[test]
fn every_strategy_gives_and_trains_every_row_once_from_tables_partitions_views_and_queries() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    db.run(
        "CREATE TABLE parts (LIKE t) PARTITION BY HASH (id);
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE part_2 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
         INSERT INTO parts TABLE t;
         CREATE VIEW joined AS SELECT t.* FROM t JOIN generate_series(1, 3000) g ON g = t.id",
    );
    for strategy in permutations() {
        for source in ["t", "parts", "joined"] {
            for epoch in [1, 2] {
                db.assert_same_rows(
                    &format!(
                        "SELECT * FROM corgipile_shuffle(NULL::{source}, shuffle => '{strategy}', epoch => {epoch})"
                    ),
                    "TABLE t",
                );
            }
        }
        for source in ["t", "parts", "joined", "SELECT * FROM t WHERE id % 2 = 0"] {
            let rows = if source.starts_with("SELECT") { 1500 } else { 3000 };
            let epochs = db
                .train(&format!("'{source}', max_epochs => 2, features => '{{features_v}}', shuffle => '{strategy}'"));
            assert!(epochs.iter().all(|epoch| epoch.tuples == rows), "{strategy} of {source}: {epochs:?}");
        }
    }
}

#[test]
fn mrs_gives_what_it_drops_and_what_it_has_kept_before() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    let mut ids = |epoch: u32| -> Vec<i32> {
        db.column(&format!(
            "SELECT id FROM corgipile_shuffle(NULL::t, seed => 3, shuffle => 'mrs', epoch => {epoch},
             buffer_size => '10%')"
        ))
    };
    let (first, second) = (ids(1), ids(2));
    let mut distinct = first.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), first.len(), "no row twice in the first epoch");
    assert!((2700..3000).contains(&first.len()), "half of a buffer of a tenth stays: {}", first.len());
    assert_eq!(second.len(), 2 * first.len());
    let again: Vec<i32> = second.iter().copied().skip(1).step_by(2).collect();
    assert!(again.iter().all(|id| !first.contains(id)), "those again that the first epoch has kept");
    for source in ["t", "SELECT * FROM t OFFSET 0"] {
        let epochs = db.train(&format!("'{source}', max_epochs => 3, shuffle => 'mrs', features => '{{features_v}}'"));
        assert!(epochs[0].tuples < 3000 && epochs[1].tuples == 2 * epochs[0].tuples, "{epochs:?}");
    }
}

/// The paper's Algorithm 1.
#[test]
fn an_epoch_of_one_buffer_reads_other_blocks_each_time() {
    let mut db = Database::new();
    a_row_per_page(&mut db, "t", 700);
    let mut ids = |epoch: u32| -> Vec<i32> {
        db.column(&format!(
            "SELECT id FROM corgipile_shuffle(NULL::t, seed => 3, shuffle => 'corgipile_one_buffer', epoch => {epoch},
             block_size => '40kB', buffer_size => '10%')"
        ))
    };
    let mut seen = Vec::new();
    for epoch in 1..=100 {
        let mut rows = ids(epoch);
        assert_eq!(rows.len(), 70, "a tenth of the rows: {epoch}");
        rows.sort_unstable();
        let blocks = rows.chunks(5).map(|block| block[0] / 5);
        assert!(rows.chunks(5).all(|block| block[0] % 5 == 0 && block[4] == block[0] + 4), "whole blocks: {rows:?}");
        seen.push(blocks.collect::<Vec<i32>>());
    }
    // each of the 140 blocks in one of ten epochs; 12.2 is four standard deviations
    for block in 0..140 {
        let times = seen.iter().filter(|blocks| blocks.contains(&block)).count();
        assert!(times.abs_diff(10) <= 12, "block {block} in {times} of 100 epochs");
    }
    // an epoch of a training is such a buffer, with a sample before it or without, and the whole table in the end
    for rate in ["", ", learning_rate => 0.1, standardize => false, nulls => 'skip'"] {
        let arguments = "features => '{features_v}', shuffle => 'corgipile_one_buffer', block_size => '40kB', buffer_size => '10%', seed => 3";
        let trained = db.train(&format!("'t', max_epochs => 20, {arguments}{rate}"));
        assert!(trained.iter().all(|epoch| epoch.tuples == 70), "{trained:?}");
    }
    let train = "SELECT corgipile_train('t', features => '{features_v}', shuffle => 'corgipile_one_buffer'";
    db.rejects(&format!("{train}, validation_fraction => 0.1)"), "0A000");
    db.rejects(&format!("{train}, solver => 'newton')"), "22023");
    db.rejects(&format!("{train}, shared_scan => true)"), "0A000");
}

#[test]
fn a_seed_repeats_the_model_of_every_strategy_and_another_changes_it() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    for strategy in ALL {
        let mut bits = |seed: u32| {
            db.trained(&format!(
                "'t', max_epochs => 3, shuffle => '{strategy}', seed => {seed}, features => '{{features_v}}'"
            ))
            .bits()
        };
        let first = bits(1);
        assert_eq!(first, bits(1), "{strategy}");
        assert_eq!(first != bits(2), strategy != "no_shuffle", "{strategy}");
    }
}

#[test]
fn tables_of_no_one_and_few_rows_do_not_confuse_any_strategy() {
    let mut db = Database::new();
    db.run("CREATE TABLE t (id int, label int, features_v real[])");
    for strategy in ALL {
        db.run("TRUNCATE t");
        assert!(db.lines(&format!("SELECT id FROM corgipile_shuffle(NULL::t, shuffle => '{strategy}')")).is_empty());
        let train = format!("SELECT corgipile_train('t', features => '{{features_v}}', shuffle => '{strategy}')");
        db.rejects(&train, "22000");
        db.run("INSERT INTO t VALUES (1, 0, '{1}')");
        for epoch in 1..=3 {
            let sql = format!("SELECT id FROM corgipile_shuffle(NULL::t, shuffle => '{strategy}', epoch => {epoch})");
            assert_eq!(db.lines(&sql), ["1"], "{strategy}, epoch {epoch}");
        }
        db.run("INSERT INTO t VALUES (2, 1, '{2}'), (3, 1, '{3}'), (4, 0, '{4}')");
        db.run(&train);
    }
}

#[test]
fn a_rescan_gives_the_same_epoch_again() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run("SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off");
    for strategy in ALL {
        let call = format!("corgipile_shuffle(NULL::t, seed => 1, shuffle => '{strategy}', epoch => 2)");
        let expected: Vec<i32> = db.column(&format!("SELECT id FROM {call}"));
        let rescanned: Vec<i32> =
            db.column(&format!("SELECT s.id FROM generate_series(1, 3) g(i) LEFT JOIN {call} s ON s.id > g.i - 100"));
        assert_eq!(rescanned, expected.repeat(3), "{strategy}");
        // left in the middle, then again
        let partly: Vec<i32> = db.column(&format!(
            "SELECT s.id FROM generate_series(1, 3) g(i), LATERAL (SELECT id FROM {call} WHERE id > g.i - 100 LIMIT 5) s"
        ));
        assert_eq!(partly, expected[..5].repeat(3), "{strategy}");
    }
}

fn analyzed(db: &mut Database, strategy: &str, name: &str) -> Value {
    let plan = db.plan(
        "ANALYZE",
        &format!(
            "SELECT * FROM corgipile_train('t', max_epochs => 3, features => '{{features_v}}',
             shuffle => '{strategy}', buffer_size => '10%', seed => 1)"
        ),
    );
    node(&plan, name).clone()
}

#[test]
fn explain_shows_what_is_special_about_a_strategy() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    for strategy in ALL {
        let blocks = analyzed(&mut db, strategy, "CorgiPileBlockShuffle");
        assert_eq!(blocks["Strategy"], strategy);
        let sorts = ["shuffle_once", "epoch_shuffle"].contains(&strategy);
        for property in ["Full Shuffle Time", "Full Shuffle Space", "Sort Method", "Sort Space Used"] {
            assert_eq!(blocks.get(property).is_some(), sorts, "{property} in {blocks:#}");
        }
        if sorts {
            // 3000 rows of 5 reals and more
            assert!(blocks["Full Shuffle Space"].as_f64().unwrap() > 3000.0 * 44.0, "{blocks:#}");
            assert!(blocks["Full Shuffle Time"].as_f64().unwrap() > 0.0, "{blocks:#}");
        }
        let tuples = analyzed(&mut db, strategy, "CorgiPileTupleShuffle");
        let property = |name: &str| tuples.get(name).and_then(Value::as_f64);
        assert_eq!(property("Window Tuples").is_some(), strategy == "sliding_window", "{tuples:#}");
        assert_eq!(property("Reservoir Tuples").is_some(), strategy == "mrs", "{tuples:#}");
        if let Some(window) = property("Window Tuples") {
            assert!((200.0..=400.0).contains(&window), "a window is a buffer, a tenth of the pages: {window}");
        }
        if let Some(reservoir) = property("Reservoir Tuples") {
            assert!((100.0..=200.0).contains(&reservoir), "a reservoir is half of a buffer: {reservoir}");
        }
    }
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_shuffle(NULL::t, shuffle => 'shuffle_once')").join("\n");
    assert!(plan.contains("Seq Scan on t"), "what is copied comes from an ordinary plan: {plan}");
}

#[test]
fn time_and_space_of_full_shuffles_are_reported_apart() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    for options in ["{}", "{\"standardize\": true}"] {
        for (strategy, sorts) in
            [("shuffle_once", [true, false, false]), ("epoch_shuffle", [true; 3]), ("mrs", [false; 3])]
        {
            let epochs = db.train(&format!(
                "'t', max_epochs => 3, features => '{{features_v}}', shuffle => '{strategy}', options => '{options}'"
            ));
            let id = epochs[0].model_id;
            let apart: Vec<f64> = db.column(&format!(
                "SELECT (h ->> 'shuffle_seconds')::float8 FROM corgipile.models, json_array_elements(history) h
                 WHERE model_id = {id} ORDER BY (h ->> 'epoch')::int"
            ));
            assert_eq!(apart.iter().map(|seconds| *seconds > 0.0).collect::<Vec<_>>(), sorts, "{strategy}: {apart:?}");
            let bytes: Option<i64> =
                db.value(&format!("SELECT shuffle_bytes FROM corgipile.models WHERE model_id = {id}"));
            assert_eq!(bytes.is_some_and(|bytes| bytes > 20_000 * 44), sorts[0], "{strategy}: {bytes:?}");
        }
    }
}

#[test]
fn a_sort_on_disk_gives_the_order_of_one_in_memory_and_obeys_the_limit_of_temporary_files() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    for strategy in ["shuffle_once", "epoch_shuffle"] {
        let sql = format!("SELECT id FROM corgipile_shuffle(NULL::t, seed => 1, shuffle => '{strategy}', epoch => 2)");
        db.run("SET work_mem = '64MB'");
        let in_memory: Vec<i32> = db.column(&sql);
        db.run("SET work_mem = '64kB'");
        assert_eq!(db.column::<i32>(&sql), in_memory, "{strategy}");
        assert_eq!(analyzed(&mut db, strategy, "CorgiPileBlockShuffle")["Sort Space Type"], "Disk");
        db.run("SET temp_file_limit = '1MB'");
        let train = format!("SELECT corgipile_train('t', features => '{{features_v}}', shuffle => '{strategy}')");
        db.rejects(&train, "53400");
        db.run("RESET temp_file_limit");
        let pid = db.pid();
        let left = db.lines(&format!("SELECT name FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp{pid}.%'"));
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_full_shuffle_is_cancelled_while_it_reads_and_while_it_sorts() {
    let mut db = Database::new();
    let pid = db.pid();
    db.run("SET work_mem = '256MB'");
    let source = |rows: u64| format!("SELECT i % 2 AS label, i::real AS x FROM generate_series(1, {rows}::bigint) i");
    // The whole takes longer than any of these; where it is when it is stopped differs.
    for (rows, timeout) in [(10_000_000_000_u64, 100), (3_000_000, 400), (3_000_000, 1200), (3_000_000, 2000)] {
        for strategy in ["shuffle_once", "epoch_shuffle"] {
            db.run(&format!("SET statement_timeout = {timeout}"));
            let train = format!(
                "SELECT corgipile_train('{}', features => '{{x}}', shuffle => '{strategy}', max_epochs => 1000)",
                source(rows)
            );
            db.fails_with(&train, "57014");
            db.run("RESET statement_timeout");
            let left = db.lines(&format!("SELECT name FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp{pid}.%'"));
            assert!(left.is_empty(), "{left:?}");
        }
    }
    assert_eq!(db.models(), 0);
    let order = "SELECT count(*) FROM corgipile_shuffle_order('epoch_shuffle', 100000000, 20, 1000, 1, 1)";
    db.run("SET statement_timeout = 300");
    db.fails_with(order, "57014");
}

#[test]
fn privileges_and_row_security_hold_for_copies_too() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    let who = db.role("reader");
    let mut reader = db.session_as(&who);
    for strategy in ALL {
        reader.fails_with(&format!("SELECT * FROM corgipile_shuffle(NULL::t, shuffle => '{strategy}')"), "42501");
        reader.rejects(&format!("SELECT corgipile_train('t', shuffle => '{strategy}')"), "42501");
    }
    db.run(&format!(
        "GRANT SELECT ON t TO {who}; ALTER TABLE t ENABLE ROW LEVEL SECURITY;
         CREATE POLICY most ON t FOR SELECT USING (id % 5 > 0)"
    ));
    for strategy in permutations() {
        let visible = reader.line(&format!("SELECT count(*) FROM corgipile_shuffle(NULL::t, shuffle => '{strategy}')"));
        assert_eq!(visible, "800", "{strategy}");
        let epochs =
            reader.train(&format!("'t', max_epochs => 1, features => '{{features_v}}', shuffle => '{strategy}'"));
        assert_eq!(epochs[0].tuples, 800, "{strategy}");
    }
}

#[test]
fn a_copy_has_the_values_that_are_stored_out_of_line() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i AS id, i % 2 AS label,
             (SELECT array_agg(normal(i, k) + i % 2) FROM generate_series(1, 1500) k)::real[] AS features_v
         FROM generate_series(1, 60) i;
         CREATE TABLE ordered AS SELECT label, features_v
         FROM corgipile_shuffle_order('shuffle_once', 60, 1, 6, 5) o JOIN t ON t.id = o.tuple + 1 ORDER BY position",
    );
    assert_ne!(db.line("SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE relname = 't'"), "0");
    let here = db.trained("'t', features => '{features_v}', shuffle => 'shuffle_once', seed => 5, max_epochs => 2");
    let there = db.trained("'ordered', features => '{features_v}', shuffle => 'no_shuffle', max_epochs => 2");
    assert_eq!(here.bits(), there.bits());
    let bytes: i64 = db.value(&format!("SELECT shuffle_bytes FROM corgipile.models WHERE model_id = {}", here.id));
    assert!(bytes > 60 * 1500 * 4, "{bytes}");
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::t, shuffle => 'epoch_shuffle')", "TABLE t");
}

#[test]
fn a_bad_row_of_a_copy_is_named_by_its_number_in_the_source() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    db.run("INSERT INTO t VALUES (1001, 1, NULL)");
    for strategy in ["shuffle_once", "epoch_shuffle"] {
        for options in ["{\"nulls\": \"error\"}", "{\"nulls\": \"error\", \"standardize\": true}"] {
            let train = format!(
                "SELECT corgipile_train('t', features => '{{features_v}}', shuffle => '{strategy}', options => '{options}')"
            );
            db.rejects(&train, "22004").says(&["1001"]);
        }
    }
}

#[test]
fn nulls_are_skipped_in_windows_reservoirs_and_copies() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    db.run("UPDATE t SET features_v = NULL WHERE id % 3 = 0");
    db.run("VACUUM FULL t");
    for strategy in permutations() {
        let epochs = db.train(&format!(
            "'t', max_epochs => 3, features => '{{features_v}}', shuffle => '{strategy}',
             options => '{{\"nulls\": \"skip\"}}'"
        ));
        assert!(epochs.iter().all(|epoch| epoch.tuples == 2000), "{strategy}: {epochs:?}");
    }
    db.run(
        "SELECT corgipile_train('t', features => '{features_v}', shuffle => 'mrs', options => '{\"nulls\": \"skip\"}')",
    );
}

#[test]
fn windows_and_reservoirs_stay_within_the_buffers_memory() {
    let mut db = Database::new();
    clustered(&mut db, "t", 30_000);
    for strategy in ["sliding_window", "mrs"] {
        db.run("SET corgipile.max_buffer_memory = '1MB'");
        let plan: Value = db.value(&format!(
            "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM corgipile_train('t', max_epochs => 2, buffer_size => '100%',
                 features => '{{features_v}}', shuffle => '{strategy}')"
        ));
        let tuples = node(&plan, "CorgiPileTupleShuffle");
        let bytes = tuples["Buffer Bytes"].as_f64().unwrap();
        // but for the rows of a page
        assert!((500_000.0..1_070_000.0).contains(&bytes), "{strategy}: {tuples:#}");
    }
}

#[test]
fn the_papers_example_is_one_query() {
    let mut db = Database::new();
    // Example 1: 1000 tuples, the first half negative, in blocks of 20, a buffer of 10 blocks. Per tenth of the epoch,
    // how many of its 100 tuples are negative.
    let mut negative = |strategy: &str| -> Vec<i64> {
        db.column(&format!(
            "SELECT count(*) FILTER (WHERE tuple < 500) FROM corgipile_shuffle_order('{strategy}', 1000, 20, 200, 42)
             GROUP BY (position - 1) / 100 ORDER BY (position - 1) / 100"
        ))
    };
    assert_eq!(negative("no_shuffle"), [100, 100, 100, 100, 100, 0, 0, 0, 0, 0]);
    for strategy in ["shuffle_once", "epoch_shuffle", "corgipile"] {
        assert!(negative(strategy).iter().all(|n| (25..=75).contains(n)), "{strategy}");
    }
    for strategy in ["sliding_window", "mrs"] {
        let tenths = negative(strategy);
        assert!(tenths[0] == 100 && *tenths.last().unwrap() < 30, "{strategy} leaves the clusters: {tenths:?}");
    }
    assert!(negative("block_only").iter().all(|n| n % 20 == 0), "whole blocks");
}

#[test]
fn an_order_that_cannot_be_is_an_error() {
    let mut db = Database::new();
    for (arguments, code, word) in [
        ("'corgi', 10, 1, 5, 1", "22023", "corgi"),
        ("'mrs', -1, 1, 5, 1", "22023", "tuples"),
        ("'mrs', 9223372036854775807, 1, 5, 1", "22023", "tuples"),
        ("'mrs', 10, 0, 5, 1", "22023", "tuples_per_block"),
        ("'mrs', 10, 1, 0, 1", "22023", "buffer_tuples"),
        ("'mrs', 10, 1, 5, 1, 0", "22023", "epoch"),
        ("NULL, 10, 1, 5, 1", "22004", "shuffle"),
        ("'mrs', NULL, 1, 5, 1", "22004", "tuples"),
        ("'mrs', 10, NULL, 5, 1", "22004", "tuples_per_block"),
        ("'mrs', 10, 1, NULL, 1", "22004", "buffer_tuples"),
        ("'mrs', 10, 1, 5, NULL", "22004", "seed"),
        ("'mrs', 10, 1, 5, 1, NULL", "22004", "epoch"),
    ] {
        db.fails_with(&format!("SELECT * FROM corgipile_shuffle_order({arguments})"), code).says(&[word]);
    }
    for strategy in ALL {
        for arguments in ["0, 1, 5, 1", "0, 2147483647, 9223372036854775807, -9223372036854775808, 2147483647"] {
            let sql = format!("SELECT count(*) FROM corgipile_shuffle_order('{strategy}', {arguments})");
            assert_eq!(db.line(&sql), "0");
        }
        let huge = format!(
            "SELECT count(*) FROM corgipile_shuffle_order('{strategy}', 1000, 2147483647, 9223372036854775807, 1)"
        );
        assert_eq!(db.line(&huge), if strategy == "mrs" { "500" } else { "1000" });
    }
}
