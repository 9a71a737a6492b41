//! The cache of decoded tuples: the models are the same without it, and later epochs do not read what it has.

use corgipile_tests::plan::node;
use corgipile_tests::{Database, Session, clustered, in_several_buffers};
use serde_json::Value;

/// What a training came to, to the last bit: per epoch tuples, loss, accuracy and R², and the model.
type Outcome = (Vec<(i64, u64, Option<u64>, Option<u64>)>, Vec<u32>);

fn outcome(session: &mut Session, arguments: &str, options: &str) -> Outcome {
    let epochs = session.train(&format!("{arguments}, seed => 5, options => '{{{options}}}'"));
    let bits =
        epochs.iter().map(|e| (e.tuples, e.loss.to_bits(), e.accuracy.map(f64::to_bits), e.r2.map(f64::to_bits)));
    let model = session.model(epochs[0].model_id);
    (bits.collect(), model.bits())
}

/// What BlockShuffle says of its cache after the same training.
fn cache_of(session: &mut Session, arguments: &str, options: &str) -> Value {
    let train = format!("SELECT * FROM corgipile_train({arguments}, seed => 5, options => '{{{options}}}')");
    node(&session.plan("ANALYZE, BUFFERS", &train), "CorgiPileBlockShuffle").clone()
}

fn number(node: &Value, property: &str) -> i64 {
    // PostgreSQL 18 writes rows with decimals
    node[property].as_f64().map(|number| number as i64).unwrap_or_else(|| panic!("no number {property} in {node:#}"))
}

/// Options, as they come before `"cache"`.
fn with(options: &str, cache: &str) -> String {
    let comma = if options.is_empty() { "" } else { ", " };
    format!("{options}{comma}\"cache\": \"{cache}\"")
}

/// Settings of the cache's memory under which every row is in memory, some are, and none is.
const MEMORIES: [&str; 3] = ["256MB", "64kB", "0"];

/// Asserts that a training is the same without a cache, with one in memory, in memory and a file, and in a file only.
fn same_with_and_without(session: &mut Session, arguments: &str, options: &str) {
    let arguments = &in_several_buffers(arguments);
    let expected = outcome(session, arguments, &with(options, "off"));
    assert_eq!(cache_of(session, arguments, &with(options, "off"))["Cache Off Because"], "as asked");
    for memory in MEMORIES {
        session.run(&format!("SET corgipile.cache_memory = '{memory}'"));
        for mode in ["on", "auto"] {
            let got = outcome(session, arguments, &with(options, mode));
            assert!(got == expected, "{arguments} with {options}: {memory}, {mode} gives {got:?}, not {expected:?}");
        }
    }
    session.run("RESET corgipile.cache_memory");
}

/// A table with a row for everything that a decoder knows: rows of a page or so per block.
fn many_kinds(session: &mut Session) {
    session.run(
        "CREATE TABLE kinds AS
         SELECT i::int AS id, label, CASE label WHEN 0 THEN 'no' ELSE 'yes' END AS word,
                (ARRAY['a', 'b', 'c'])[1 + (label + hashint8extended(i, 77) % 3 + 3) % 3] AS class,
                label + normal(i, 9) AS target, uniform(i, 8)::numeric(8, 4) AS weight,
                ARRAY[label + normal(i, 1), 2 - label + normal(i, 2), normal(i, 3)]::real[] AS reals,
                ARRAY[label + normal(i, 1), 2 - label + normal(i, 2), normal(i, 3)] AS doubles,
                (label + normal(i, 1))::numeric(10, 4) AS amount, (i % 7)::smallint AS day,
                (ARRAY['red', 'green', 'blue'])[1 + i % 3] AS colour,
                ARRAY[1 + (i % 5), 7 + (i % 3), 20 + (i % 11)]::int[] AS features_k,
                ARRAY[label + normal(i, 1), normal(i, 2), 1]::real[] AS features_v
           FROM (SELECT i, (i > 3000)::int AS label FROM generate_series(1, 6000::bigint) i) r;
         ANALYZE kinds;
         CREATE TABLE nulls AS
         SELECT id, label, target, CASE WHEN id % 13 = 0 OR id BETWEEN 500 AND 900 THEN NULL ELSE reals END AS reals
           FROM kinds;",
    );
}

#[test]
fn models_of_every_kind_are_the_same_with_and_without() {
    let mut db = Database::new();
    many_kinds(&mut db);
    for (arguments, options) in [
        ("'kinds', features => '{reals}'", ""),
        ("'kinds', 'svm', 'word', '{reals}'", "\"batch_size\": 16"),
        ("'kinds', 'softmax', 'class', '{doubles}'", "\"optimizer\": \"adam\""),
        ("'kinds', 'linear', 'target', '{amount,day}'", "\"standardize\": true"),
        ("'kinds', features => '{amount,colour,day}'", ""),
        ("'kinds', 'softmax', 'class', '{colour,amount}'", "\"standardize\": true, \"class_weight\": \"balanced\""),
        ("'kinds', features => '{reals}'", "\"weight\": \"weight\""),
        ("'kinds', features => '{features_k,features_v}'", "\"weight\": \"weight\", \"class_weight\": {\"1\": 3}"),
        ("'kinds', features => '{features_k,features_v}'", "\"optimizer\": \"momentum\", \"l1\": 0.001, \"l2\": 0.001"),
        ("'nulls', features => '{reals}'", "\"nulls\": \"skip\""),
        ("'nulls', 'linear', 'target', '{reals}'", "\"nulls\": \"skip\", \"standardize\": true"),
    ] {
        same_with_and_without(&mut db, &format!("{arguments}, max_epochs => 3"), options);
        same_with_and_without(&mut db, &format!("{arguments}, max_epochs => 3, buffer_size => '100%'"), options);
    }
}

#[test]
fn every_strategy_gives_the_same_model_with_and_without() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    for strategy in ["corgipile", "no_shuffle", "block_only", "shuffle_once", "epoch_shuffle", "sliding_window", "mrs"]
    {
        for buffer in ["10%", "100%", "64kB"] {
            let arguments = format!(
                "'t', features => '{{features_v}}', shuffle => '{strategy}', max_epochs => 4, buffer_size => '{buffer}'"
            );
            same_with_and_without(&mut db, &arguments, "");
        }
    }
}

#[test]
fn every_source_gives_the_same_model_with_and_without() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    db.run(
        "CREATE TABLE parts (LIKE t) PARTITION BY LIST (label);
         CREATE TABLE parts_0 PARTITION OF parts FOR VALUES IN (0);
         CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
         INSERT INTO parts SELECT * FROM t;
         CREATE VIEW filtered AS SELECT label, features_v FROM t WHERE id % 3 > 0;
         CREATE TEMP TABLE temporary AS TABLE t;
         CREATE TABLE holes AS TABLE t; DELETE FROM holes WHERE id % 5 = 0 OR id BETWEEN 1000 AND 2000;",
    );
    for source in [
        "parts",
        "filtered",
        "temporary",
        "holes",
        "SELECT label, features_v FROM t WHERE features_v[1] > 0",
        "SELECT label, features_v[1] AS a, exp(features_v[2]) AS b FROM t",
        "SELECT a.label, a.features_v FROM t a JOIN t b USING (id)",
        "SELECT label, features_v FROM t WHERE random() < 2 ORDER BY id",
    ] {
        same_with_and_without(&mut db, &format!("$${source}$$, label => 'label', max_epochs => 3"), "");
    }
}

#[test]
fn toasted_and_compressed_arrays_go_to_a_file_and_give_the_same_model() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE wide (id bigint, label int, features_v real[]);
         ALTER TABLE wide ALTER features_v SET STORAGE EXTERNAL;
         INSERT INTO wide
         SELECT i, (i > 150)::int, ARRAY(SELECT (i > 150)::int + normal(i, j) FROM generate_series(1, 700) j)
           FROM generate_series(1, 300) i;
         CREATE TABLE compressed (LIKE wide);
         INSERT INTO compressed
         SELECT i, (i > 150)::int, array_fill(i::real, ARRAY[1000]) FROM generate_series(1, 300) i;",
    );
    for table in ["wide", "compressed"] {
        let of_table = format!("'{table}', max_epochs => 3, learning_rate => 1e-6");
        let arguments = format!("{of_table}, buffer_size => '10%'");
        same_with_and_without(&mut db, &arguments, "");
        same_with_and_without(&mut db, &of_table, "");
        same_with_and_without(&mut db, &format!("{of_table}, block_size => '8kB', buffer_size => '64kB'"), "");
        db.run("SET corgipile.cache_memory = '768kB'");
        let node = cache_of(&mut db, &arguments, "");
        assert!((1..=768 << 10).contains(&number(&node, "Cache Memory")), "{table}: {node:#}");
        assert!(number(&node, "Cache Disk") > 0, "{table}: {node:#}");
        assert_eq!(node["Cached Blocks"], node["Blocks"], "{table}");
        db.run("RESET corgipile.cache_memory");
    }
}

/// A buffer that is cut by its memory, in the middle of a block, is cut there with the cache, too.
#[test]
fn buffers_end_with_the_same_page() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    db.run("SET corgipile.max_buffer_memory = '64kB'");
    for block in ["8kB", "64kB", "1MB"] {
        let schedule = "\"schedule\": \"theorem1\", \"mu\": 0.1"; // its rates depend on the buffers
        let arguments = format!("'t', features => '{{features_v}}', block_size => '{block}', max_epochs => 4");
        same_with_and_without(&mut db, &arguments, schedule);
        same_with_and_without(&mut db, &format!("{arguments}, buffer_size => '100%'"), schedule);
    }
}

#[test]
fn the_heap_is_not_touched_after_the_first_epoch() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let pages: i64 = db.value("SELECT pg_relation_size('t') / 8192");
    let touched = |node: &Value| number(node, "Shared Hit Blocks") + number(node, "Shared Read Blocks");
    for memory in MEMORIES {
        db.run(&format!("SET corgipile.cache_memory = '{memory}'"));
        for extra in ["", ", buffer_size => '100%'", ", shuffle => 'no_shuffle'", ", shuffle => 'block_only'"] {
            let arguments = format!(
                "'t', features => '{{features_v}}', max_epochs => 5, learning_rate => 0.01, standardize => false{extra}"
            );
            let on = cache_of(&mut db, &arguments, "\"nulls\": \"error\", \"cache\": \"on\"");
            assert!(touched(&on) < 2 * pages, "{memory}{extra}: {pages} pages, {on:#}");
            assert_eq!(on["Cached Blocks"], on["Blocks"], "{memory}{extra}");
            assert_eq!(number(&on, "Actual Rows"), 20_000, "{memory}{extra}");
            let off = cache_of(&mut db, &arguments, "\"nulls\": \"error\", \"cache\": \"off\"");
            assert!(touched(&off) >= 5 * pages, "{memory}{extra}: {pages} pages, {off:#}");
        }
    }
}

#[test]
fn memory_comes_first_then_the_file_then_the_source() {
    let mut db = Database::new();
    clustered(&mut db, "t", 60_000);
    // a worker, which has a cache of its own, is taken by the time that the first epoch takes
    let arguments = "'t', features => '{features_v}', max_epochs => 4, buffer_size => '10%', prefetch => 'off'";
    let all = 60_000 * 72; // a row of 16 floats, a label, a place
    let expected = outcome(&mut db, arguments, "\"cache\": \"off\"");
    let node = cache_of(&mut db, arguments, "");
    assert_eq!((number(&node, "Cache Memory"), number(&node, "Cache Disk")), (all, 0), "{node:#}");
    db.run("SET corgipile.cache_memory = '512kB'");
    // what is fast to decode is not written to a file, unless that is asked for
    let node = cache_of(&mut db, arguments, "");
    assert_eq!(node["Cache Off Because"], "larger than corgipile.cache_memory, and fast to decode", "{node:#}");
    let node = cache_of(&mut db, arguments, "\"cache\": \"on\"");
    let memory = number(&node, "Cache Memory");
    assert!((450_000..=524_288).contains(&memory), "{node:#}");
    // a label and five features, and three words per page
    let disk = (all - memory) / 72 * 24;
    assert!((disk..disk + 12 * number(&node, "Blocks")).contains(&number(&node, "Cache Disk")), "{disk}: {node:#}");
    assert!(number(&node, "Temp Written Blocks") > 0 && number(&node, "Temp Read Blocks") > 0, "{node:#}");
    // half of this is less than the file would be: the rest is read from the table again
    db.run("SET temp_file_limit = '1MB'");
    for (column, dear) in [("{features_v}", false), ("{doubles}", true)] {
        if dear {
            db.run("CREATE TABLE copy AS SELECT *, features_v::float8[] AS doubles FROM t; DROP TABLE t");
            db.run("ALTER TABLE copy RENAME TO t");
        }
        let arguments = &arguments.replace("{features_v}", column);
        let failure = db.attempt(&format!("SELECT corgipile_train({arguments}, options => '{{\"cache\": \"on\"}}')"));
        assert_eq!(failure.expect_err("a limit is exceeded").code, "53400");
        let node = cache_of(&mut db, arguments, "\"cache\": \"auto\"");
        if dear {
            let (cached, blocks) = (number(&node, "Cached Blocks"), number(&node, "Blocks"));
            assert!(cached > blocks / 4 && cached < blocks, "{node:#}");
            assert!((1..=512 << 10).contains(&number(&node, "Cache Disk")), "{node:#}");
        } else {
            assert_eq!(node["Cache"], "off", "{node:#}");
            assert!(outcome(&mut db, arguments, "\"cache\": \"auto\"") == expected);
        }
    }
    let arguments = &arguments.replace("{features_v}", "{doubles}");
    let limited = outcome(&mut db, arguments, "");
    db.run("RESET temp_file_limit");
    assert!(limited == outcome(&mut db, arguments, "\"cache\": \"off\""));
}

/// Others of the session may have used most of what temporary files may take.
#[test]
fn a_cache_makes_do_with_what_is_left_of_the_temporary_files() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    db.run("ALTER TABLE t ALTER features_v TYPE float8[]; SET corgipile.cache_memory = 0");
    let arguments = "'t', features => '{features_v}', max_epochs => 4, buffer_size => '10%'";
    let expected = outcome(&mut db, arguments, "\"cache\": \"off\"");
    // a cursor holds a file of almost a megabyte
    db.run(
        "SET work_mem = '64kB'; BEGIN;
         DECLARE c CURSOR WITH HOLD FOR SELECT repeat('x', 980) FROM generate_series(1, 980); COMMIT;
         SET temp_file_limit = '1MB'",
    );
    let node = cache_of(&mut db, arguments, "");
    assert!(number(&node, "Cached Blocks") < number(&node, "Blocks"), "{node:#}");
    assert!(outcome(&mut db, arguments, "") == expected);
    db.rejects(&format!("SELECT corgipile_train({arguments}, options => '{{\"cache\": \"on\"}}')"), "53400");
    db.run("CLOSE c");
    let node = cache_of(&mut db, arguments, "");
    assert_eq!(node["Cached Blocks"], node["Blocks"], "{node:#}");
}

#[test]
fn errors_and_skipped_rows_are_the_same_in_every_epoch() {
    let mut db = Database::new();
    many_kinds(&mut db);
    let skipped = |db: &mut Database, options: &str| {
        db.run(&format!(
            "SELECT corgipile_train('nulls', features => '{{reals}}', name => 'm', max_epochs => 3, seed => 1,
                                    options => '{{\"nulls\": \"skip\", {options}}}')"
        ));
        let skipped: i64 = db.value("SELECT skipped FROM corgipile.models WHERE name = 'm'");
        db.run("DELETE FROM corgipile.stored_models WHERE name = 'm'");
        skipped
    };
    let expected: i64 = db.value("SELECT count(*) FROM nulls WHERE reals IS NULL");
    for memory in MEMORIES {
        db.run(&format!("SET corgipile.cache_memory = '{memory}'"));
        for mode in ["on", "auto", "off"] {
            assert_eq!(skipped(&mut db, &format!("\"cache\": \"{mode}\"")), expected, "{memory}, {mode}");
        }
    }
    let failing = "SELECT corgipile_train('nulls', features => '{reals}', seed => 1, options => '{\"nulls\": \"error\", \"cache\": \"MODE\"}')";
    let [on, off] = ["on", "off"].map(|mode| db.rejects(&failing.replace("MODE", mode), "22004").message);
    assert_eq!(on, off);
}

/// Compressed mini-batches stay as they are stored where memory is too short for open ones, and open as far as it
/// allows.
#[test]
fn a_small_cache_keeps_compressed_mini_batches_as_they_are_stored() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE rows AS
         SELECT (i % 7 < 3)::int * 2 - 1 AS label,
                ARRAY(SELECT (hashint8extended(i % 40 * 60 + j, 1) % 3 = 0)::int::real FROM generate_series(1, 60) j) AS features_v
           FROM generate_series(1, 40000) i",
    );
    for encoding in ["toc", "csr"] {
        let stored: i64 = db.value(&format!(
            "SELECT bytes FROM corgipile_compress('rows', 'packed_{encoding}', label => 'label', features => '{{features_v}}',
                encoding => '{encoding}', batch_rows => 100, seed => 1)"
        ));
        let arguments = format!(
            "'packed_{encoding}', 'logistic', label => 'label', learning_rate => 0.1, max_epochs => 3, block_size => '8kB',
             buffer_size => '10%'"
        );
        let expected = outcome(&mut db, &arguments, "\"cache\": \"off\"");
        let memory_of = |db: &mut Database, memory: i64| {
            db.run(&format!("SET corgipile.cache_memory = {memory}"));
            let got = outcome(db, &arguments, "\"cache\": \"auto\"");
            assert!(got == expected, "{encoding}, {memory} kB: {got:?}, not {expected:?}");
            let node = cache_of(db, &arguments, "\"cache\": \"auto\"");
            ((number(&node, "Cache Memory") + 1023) / 1024, number(&node, "Cached Blocks") == number(&node, "Blocks"))
        };
        let (open, all) = memory_of(&mut db, 256 << 10);
        assert!(all);
        // labels, and what else there is of each of the 400 mini-batches, are in it too
        let packed = (stored + 400 * 600) / 1024;
        assert!(open > packed + packed / 4, "{encoding}: {open} kB open, {packed} kB packed");
        for memory in [packed + packed / 8, (packed + open) / 2, open + open / 16] {
            let (used, all) = memory_of(&mut db, memory);
            assert!(all && used <= memory, "{encoding}: {used} of {memory} kB");
            assert!(used >= memory.min(open) * 3 / 4, "{encoding}: {used} of {memory} kB, as there are open ones");
        }
        let (used, all) = memory_of(&mut db, packed / 2);
        assert!(!all && used <= packed / 2 && used > packed / 4, "{encoding}: {used} of {packed} kB");
        assert_eq!(memory_of(&mut db, 0).0, 0);
        db.run("RESET corgipile.cache_memory");
    }
}

#[test]
fn explain_says_what_will_be_and_what_was() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    let mut line = |options: &str, explain: &str| -> Vec<String> {
        let train = format!("SELECT * FROM corgipile_train('t', seed => 1, features => '{{features_v}}', {options})");
        let plan = db.lines(&format!("EXPLAIN ({explain}COSTS OFF) {train}"));
        plan.iter().filter_map(|line| line.trim().strip_prefix("Cache: ").map(str::to_owned)).collect()
    };
    assert_eq!(line("max_epochs => 2", ""), ["auto"]);
    assert_eq!(line("options => '{\"cache\": \"on\"}'", ""), ["on"]);
    for explain in ["", "ANALYZE, "] {
        assert_eq!(line("max_epochs => 1", explain), ["off (one epoch)"]);
        assert_eq!(line("max_epochs => 2, options => '{\"cache\": \"off\"}'", explain), ["off (as asked)"]);
        for (strategy, reason) in [
            ("epoch_shuffle", "off (epoch_shuffle makes a new copy for each epoch)"),
            ("sliding_window", "off (sliding_window moves tuples in the buffer)"),
            ("mrs", "off (mrs moves tuples in the buffer)"),
        ] {
            assert_eq!(line(&format!("shuffle => '{strategy}', max_epochs => 2"), explain), [reason]);
        }
    }
    let kept = line("max_epochs => 2", "ANALYZE, ");
    assert!(kept[0].starts_with("memory 211kB, disk 0kB, ") && kept[0].ends_with(" blocks"), "{kept:?}");
    assert!(
        !db.lines("EXPLAIN ANALYZE SELECT * FROM corgipile_shuffle(NULL::t)").iter().any(|line| line.contains("Cache"))
    );
}

#[test]
fn an_unknown_mode_is_an_error_and_so_is_a_cache_of_an_aggregate() {
    let mut db = Database::new();
    clustered(&mut db, "t", 100);
    let failure = db.rejects("SELECT corgipile_train('t', options => '{\"cache\": \"yes\"}')", "22023");
    assert!(
        failure.message.contains("cache") && failure.message.contains("\"auto\", \"on\" or \"off\""),
        "{failure:?}"
    );
    db.rejects("SELECT corgipile_train('t', options => '{\"cache\": true}')", "22023");
    db.rejects("SELECT corgipile_train_uda('t', options => '{\"cache\": \"on\"}')", "0A000");
    db.fails_with("SET corgipile.cache_memory = -1", "22023");
    assert_eq!(db.line("SHOW corgipile.cache_memory"), "256MB");
}

#[test]
fn a_training_that_is_stopped_leaves_no_file() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    db.run("SET corgipile.cache_memory = 0; SET statement_timeout = '200ms'");
    let pid = db.pid();
    let files = format!("SELECT name FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp{pid}.%'");
    let endless = "SELECT * FROM corgipile_train('t', features => '{features_v}', max_epochs => 1000000,
                                                 options => '{\"cache\": \"on\"}')";
    db.rejects(endless, "57014");
    db.run("BEGIN; SAVEPOINT s");
    db.fails_with(endless, "57014");
    db.run("ROLLBACK TO s");
    assert_eq!(db.lines(&files), Vec::<String>::new());
    db.run(&format!("DO $$ BEGIN PERFORM * FROM ({endless}) e; EXCEPTION WHEN query_canceled THEN NULL; END $$"));
    assert_eq!(db.lines(&files), Vec::<String>::new());
    // and one that ends, too, after its file was counted
    db.run("COMMIT; RESET statement_timeout");
    db.run(&endless.replace("1000000", "2"));
    assert_eq!(db.lines(&files), Vec::<String>::new());
}

#[test]
fn of_compressed_mini_batches_as_many_stay_open_as_fit() {
    let mut db = Database::new();
    clustered(&mut db, "t", 60_000);
    db.line("SELECT corgipile_compress('t', 'c', batch_rows => 50, seed => 1)");
    let arguments = "'c', max_epochs => 4, block_size => '8kB', buffer_size => '10%'";
    let expected = outcome(&mut db, arguments, "\"cache\": \"off\"");
    for (memory, all) in [("512kB", false), ("64MB", true)] {
        db.run(&format!("SET corgipile.cache_memory = '{memory}'"));
        let node = cache_of(&mut db, arguments, "");
        let (cached, blocks) = (number(&node, "Cached Blocks"), number(&node, "Blocks"));
        assert!(cached > 0 && (cached == blocks) == all, "{node:#}");
        assert_eq!(number(&node, "Cache Disk"), 0, "{node:#}");
        assert!(outcome(&mut db, arguments, "\"cache\": \"auto\"") == expected, "{memory}");
    }
}
