//! Blocks and buffers by what a seek costs, which settings say.

use corgipile_tests::plan::{node, number};
use corgipile_tests::{Database, Session};

/// A table of 8,400 pages, 66 MB: larger than what the buffer holds as a whole. Sorted by label, with a row a page.
fn large(db: &mut Session) {
    db.run(
        "CREATE TABLE large (id int, label int, x real, filler char(5000)); ALTER TABLE large ALTER filler SET STORAGE plain;
         INSERT INTO large SELECT i, i / 4201, (i % 5 + i / 4201)::real, '' FROM generate_series(1, 8400) i; ANALYZE large",
    );
    assert_eq!(db.value::<i64>("SELECT pg_relation_size('large') / 8192"), 8400);
}

/// Pages of a block, blocks of a buffer, and blocks, as EXPLAIN says before anything is read.
fn sizes(db: &mut Session, call: &str) -> [f64; 3] {
    let plan = db.plan("", &format!("SELECT * FROM {call}"));
    let (tuples, blocks) = (node(&plan, "CorgiPileTupleShuffle"), node(&plan, "CorgiPileBlockShuffle"));
    [number(blocks, "Pages per Block"), number(tuples, "Buffer Blocks"), number(blocks, "Blocks")]
}

const SMALL: [f64; 3] = [8.0, 263.0, 1050.0];
const TENTH: [f64; 3] = [3.0, 280.0, 2800.0];

#[test]
fn blocks_are_small_where_settings_say_that_seeks_are_cheap() {
    let mut db = Database::new();
    large(&mut db);
    let train = "corgipile_train('large', features => '{x}', seed => 1)";
    for call in
        [train, "corgipile_shuffle(NULL::large, seed => 1)", "corgipile_train('SELECT label, x FROM large', seed => 1)"]
    {
        db.run("SET effective_cache_size = '67200kB'");
        assert_eq!(sizes(&mut db, call), SMALL, "{call}: a table that fits");
        db.run("SET effective_cache_size = '67192kB'");
        assert_eq!(sizes(&mut db, call), TENTH, "{call}: one that does not");
        db.run("SET random_page_cost = 2");
        assert_eq!(sizes(&mut db, call), SMALL, "{call}: a disk quick at random reads");
        db.run("SET random_page_cost = 2.1");
        assert_eq!(sizes(&mut db, call), TENTH, "{call}: another");
        db.run("RESET random_page_cost; RESET effective_cache_size");
    }
    // what mixes by the size of the buffer alone has that of the papers
    let sequential = "corgipile_train('large', features => '{x}', seed => 1, shuffle => 'sliding_window')";
    assert_eq!(sizes(&mut db, sequential), TENTH);
    // of sizes that are given, blocks of at most 64 kB, and at least ten blocks
    let with = |sizes: &str| format!("corgipile_train('large', features => '{{x}}', seed => 1, {sizes})");
    assert_eq!(sizes(&mut db, &with("buffer_size => '50%'")), [8.0, 525.0, 1050.0]);
    assert_eq!(sizes(&mut db, &with("block_size => '1MB'")), [128.0, 11.0, 66.0]);
    assert_eq!(sizes(&mut db, &with("block_size => '1MB', buffer_size => '10%'")), [128.0, 6.0, 66.0]);
    db.run("SET corgipile.max_buffer_memory = '4MB'");
    assert_eq!(sizes(&mut db, &with("block_size => '1MB'")), [128.0, 4.0, 66.0]);
    assert_eq!(sizes(&mut db, train), [1.0, 495.0, 8400.0]);
}

#[test]
fn a_tablespace_says_what_seeks_in_its_tables_cost() {
    let mut db = Database::new();
    large(&mut db);
    let space = format!("quick_{}", db.name());
    db.run("SET allow_in_place_tablespaces = on; SET effective_cache_size = '8MB'");
    db.run(&format!("CREATE TABLESPACE {space} LOCATION '' WITH (random_page_cost = 1.1)"));
    let train = "corgipile_train('large', features => '{x}', seed => 1)";
    assert_eq!(sizes(&mut db, train), TENTH);
    db.run(&format!("ALTER TABLE large SET TABLESPACE {space}"));
    assert_eq!(sizes(&mut db, train), SMALL);
    // of a partitioned table all partitions have to be there
    db.run(
        "CREATE TABLE p (LIKE large) PARTITION BY LIST (label); ALTER TABLE p ATTACH PARTITION large FOR VALUES IN (0, 1);
         CREATE TABLE slow PARTITION OF p FOR VALUES IN (2)",
    );
    let of_parts = "corgipile_train('p', features => '{x}', seed => 1)";
    assert_eq!(sizes(&mut db, of_parts), TENTH);
    db.run(&format!("ALTER TABLE slow SET TABLESPACE {space}"));
    assert_eq!(sizes(&mut db, of_parts), SMALL);
    db.run("DROP TABLE p");
    db.run(&format!("DROP TABLESPACE {space}"));
}

/// Anyone who reads it: a worker, several processes, a sample, a warm start.
#[test]
fn all_processes_of_a_training_have_its_blocks() {
    let mut db = Database::new();
    large(&mut db);
    let call = "'large', features => '{x}', seed => 1, learning_rate => 0.01, options => '{\"cache\": \"off\"}'";
    let weights = |db: &mut Session, more: &str| -> String {
        let id = db.train(&format!("{call}{more}")).pop().unwrap().model_id;
        db.value(&format!(
            "SELECT concat(weights, intercepts, hyperparameters->>'pages_per_block') FROM corgipile.models WHERE model_id = {id}"
        ))
    };
    for more in ["", ", sample => 0.99", ", sample => 0.3", ", block_size => '1MB'"] {
        let alone = weights(&mut db, &format!("{more}, prefetch => 'off', max_epochs => 2"));
        assert_eq!(weights(&mut db, &format!("{more}, prefetch => 'on', max_epochs => 2")), alone, "{more}");
        assert_eq!(weights(&mut db, &format!("{more}, prefetch => 'off', max_epochs => 2")), alone, "{more}");
    }
    let together = weights(&mut db, ", workers => 2, max_epochs => 2");
    assert_eq!(weights(&mut db, ", workers => 2, max_epochs => 2"), together);
    assert!(together.ends_with('8'), "{together}");
    let shared = weights(&mut db, ", workers => 2, max_epochs => 2, shared_scan => true");
    assert!(shared.ends_with('8'), "{shared}");
    // blocks that are held out are those of before, and the buffer is that of a call without a block_size
    let held_out = r#", options => '{"validation_fraction": 0.2, "validation_by": "block", "cache": "off"}'"#;
    let call = "'large', features => '{x}', seed => 1, learning_rate => 0.01";
    let uninterrupted = db.train(&format!("{call}, max_epochs => 3{held_out}")).pop().unwrap().model_id;
    let begun = db.train(&format!("{call}, max_epochs => 1{held_out}")).pop().unwrap().model_id;
    let resumed = db.train(&format!("'large', warm_start => '{begun}', max_epochs => 2")).pop().unwrap().model_id;
    let of = |db: &mut Session, id: i64| -> String {
        db.value(&format!("SELECT concat(weights, intercepts) FROM corgipile.models WHERE model_id = {id}"))
    };
    assert_eq!(of(&mut db, resumed), of(&mut db, uninterrupted));
}
