//! EXPLAIN of the three nodes: what it shows, and that it is true.

use corgipile_tests::plan::{find_node, node, number};
use corgipile_tests::{Database, clustered, skip};
use serde_json::Value;

const TRAIN: &str =
    "SELECT * FROM corgipile_train('t', max_epochs => 4, seed => 17, buffer_size => '20%', learning_rate => 0.01)";

fn has(node: &Value, properties: &[&str]) {
    for property in properties {
        assert!(node.get(property).is_some(), "no {property} in {node:#}");
    }
}

fn lacks(node: &Value, properties: &[&str]) {
    for property in properties {
        assert!(node.get(property).is_none(), "{property} in {node:#}");
    }
}

/// The line of a text plan that holds a word, with its indentation.
fn line<'a>(plan: &'a [String], word: &str) -> &'a str {
    plan.iter().find(|line| line.contains(word)).unwrap_or_else(|| panic!("no {word} in {plan:#?}"))
}

#[test]
fn the_text_plan_nests_the_three_nodes() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    let plan = db.lines(&format!("EXPLAIN {TRAIN}"));
    let at = |name: &str| {
        let text = line(&plan, &format!("({name})"));
        assert!(text.contains("Custom Scan"), "{text}");
        text.find("Custom Scan").unwrap()
    };
    let (sgd, tuples, blocks) = (at("CorgiPileSGD"), at("CorgiPileTupleShuffle"), at("CorgiPileBlockShuffle"));
    assert!(sgd < tuples && tuples < blocks, "{plan:#?}");
    assert!(line(&plan, "(CorgiPileBlockShuffle)").contains(" on t"), "{plan:#?}");
    for property in [
        "Model: ",
        "Label: ",
        "Features: ",
        "Epochs: 4",
        "Learning Rate: 0.01",
        "Strategy: corgipile",
        "Seed: 17",
        "Buffer Blocks: ",
        "Buffer Tuples: ",
        "Buffer Bytes: ",
        "Blocks: ",
        "Pages per Block: ",
    ] {
        line(&plan, property);
    }
    assert!(line(&plan, "Model: ").contains("auto") && line(&plan, "Label: ").contains("label"), "{plan:#?}");
    assert!(line(&plan, "Features: ").contains("features_v"), "{plan:#?}");
    for property in ["Loss", "Accuracy", "Skipped", "Time", "Blocks Read", "Buffers Filled"] {
        assert!(!plan.iter().any(|line| line.contains(property)), "{property} without ANALYZE: {plan:#?}");
    }
}

#[test]
fn analyze_adds_what_happened_and_times_only_with_timing() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    let plan = db.lines(&format!("EXPLAIN (ANALYZE) {TRAIN}"));
    for property in [
        "Tuples: 12000",
        "Loss: ",
        "Accuracy: ",
        "Skipped Tuples: 0",
        "Opening Time: ",
        "Preparation Time: ",
        "Epochs Time: ",
        "Storing Time: ",
        "Compute Time: ",
        "Buffers Filled: ",
        "Shuffle Time: ",
        "Blocks Read: ",
        "Epochs: 4",
        "Scan Time: ",
        "Decode Time: ",
    ] {
        line(&plan, property);
    }
    let untimed = db.lines(&format!("EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) {TRAIN}"));
    line(&untimed, "Blocks Read: ");
    line(&untimed, "Loss: ");
    assert!(!untimed.iter().any(|line| line.contains("Time: ")), "{untimed:#?}");
}

#[test]
fn json_has_the_nodes_as_objects_with_the_inner_plan_in_its_group() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    let plan = db.plan("", TRAIN);
    let sgd = node(&plan, "CorgiPileSGD");
    has(sgd, &["Model", "Label", "Features", "Epochs", "Learning Rate", "Strategy", "Seed", "Inner Query"]);
    lacks(sgd, &["Tuples", "Loss", "Accuracy", "Skipped Tuples", "Compute Time"]);
    assert_eq!((number(sgd, "Epochs"), number(sgd, "Seed"), number(sgd, "Learning Rate")), (4.0, 17.0, 0.01));
    let tuples = node(&sgd["Inner Query"], "CorgiPileTupleShuffle");
    has(tuples, &["Buffer Blocks", "Buffer Tuples", "Buffer Bytes"]);
    lacks(tuples, &["Buffers Filled", "Shuffle Time"]);
    let blocks = node(&tuples["Plans"], "CorgiPileBlockShuffle");
    has(blocks, &["Strategy", "Seed", "Blocks", "Pages per Block"]);
    lacks(blocks, &["Blocks Read", "Scan Time", "Decode Time"]);
    assert_eq!(blocks["Relation Name"], "t");
    assert_eq!(number(blocks, "Seed"), 17.0);
}

#[test]
fn the_other_formats_are_well_formed() {
    let mut db = Database::new();
    if !db.is_built_with("libxml") {
        return skip(the_other_formats_are_well_formed, "the server was built without libxml");
    }
    clustered(&mut db, "t", 500);
    for analyze in ["", ", ANALYZE", ", ANALYZE, BUFFERS, VERBOSE, SETTINGS, WAL"] {
        let xml = db.lines(&format!("EXPLAIN (FORMAT XML{analyze}) {TRAIN}")).join("\n");
        let well_formed = db.line(&format!("SELECT xml_is_well_formed_document($xml${xml}$xml$)"));
        assert_eq!(well_formed, "t", "{xml}");
        let yaml = db.lines(&format!("EXPLAIN (FORMAT YAML{analyze}) {TRAIN}")).join("\n");
        assert!(yaml.contains("Inner Query"), "{yaml}");
        let text = db.lines(&format!("EXPLAIN (FORMAT TEXT{analyze}) {TRAIN}"));
        line(&text, "CorgiPileBlockShuffle");
        db.plan(analyze.trim_start_matches(", "), TRAIN);
    }
}

#[test]
fn plain_explain_trains_and_stores_nothing() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run(&format!(
        "EXPLAIN {TRAIN}; EXPLAIN (VERBOSE, FORMAT JSON) {TRAIN};
                     EXPLAIN SELECT corgipile_train('t'); EXPLAIN SELECT * FROM corgipile_train('t'), t"
    ));
    // It would take hours.
    db.run("EXPLAIN SELECT * FROM corgipile_train('t', max_epochs => 1000000)");
    assert_eq!(db.models(), 0);
    let explained: i64 = db.value("SELECT corgipile_train.model_id FROM corgipile_train('t', max_epochs => 1)");
    assert!(explained > 0);
    db.run(&format!("EXPLAIN ANALYZE {TRAIN}"));
    assert_eq!(db.models(), 2, "EXPLAIN ANALYZE trains");
}

#[test]
fn plain_explain_reports_bad_input_too_or_plans() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.fails_with("EXPLAIN SELECT * FROM corgipile_train('nowhere')", "42P01");
    db.fails_with("EXPLAIN SELECT * FROM corgipile_train('t', label => 'nope')", "42703");
    db.run("EXPLAIN SELECT * FROM corgipile_train('t') WHERE false");
}

#[test]
fn explain_shows_the_seed_that_was_drawn() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    let plan = db.plan("ANALYZE", "SELECT * FROM corgipile_train('t', max_epochs => 2)");
    let shown = node(&plan, "CorgiPileSGD")["Seed"].as_i64().expect("a seed");
    let stored: i64 = db.value("SELECT (hyperparameters->>'seed')::bigint FROM corgipile.models");
    assert_eq!(shown, stored);
    assert_eq!(node(&plan, "CorgiPileBlockShuffle")["Seed"].as_i64(), Some(stored));
}

#[test]
fn the_numbers_of_analyze_agree_with_each_other_and_with_the_table() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    let pages: f64 = db.value("SELECT (pg_relation_size('t') / 8192)::float8");
    for (strategy, block_size, pages_per_block) in [
        ("corgipile", "auto", 1.0),
        ("corgipile", "32kB", 4.0),
        ("block_only", "8kB", 1.0),
        ("no_shuffle", "16kB", 2.0),
    ] {
        let query = format!(
            "SELECT * FROM corgipile_train('t', max_epochs => 3, shuffle => '{strategy}', block_size => '{block_size}',
             buffer_size => '10%', seed => 1, nulls => 'error', learning_rate => 0.01,
             standardize => false)"
        );
        let plan = db.plan("ANALYZE", &query);
        let (sgd, tuples) = (node(&plan, "CorgiPileSGD"), node(&plan, "CorgiPileTupleShuffle"));
        let blocks = node(&plan, "CorgiPileBlockShuffle");
        assert_eq!(number(sgd, "Tuples"), 18_000.0);
        assert_eq!(number(sgd, "Skipped Tuples"), 0.0);
        assert_eq!(number(sgd, "Actual Rows"), 3.0);
        assert_eq!(sgd["Strategy"], strategy);
        assert_eq!(number(blocks, "Pages per Block"), pages_per_block);
        assert_eq!(number(blocks, "Blocks"), (pages / pages_per_block).ceil());
        assert_eq!(number(blocks, "Blocks Read"), 3.0 * number(blocks, "Blocks"));
        assert_eq!(number(blocks, "Epochs"), 3.0);
        let buffer_blocks = number(tuples, "Buffer Blocks");
        assert!(buffer_blocks >= 1.0 && buffer_blocks * pages_per_block <= 0.1 * pages + pages_per_block);
        let fills = 3.0 * (number(blocks, "Blocks") / buffer_blocks).ceil();
        if strategy == "corgipile" {
            assert_eq!(number(tuples, "Buffers Filled"), fills, "{plan:#}");
        }
        let (loss, accuracy) = (number(sgd, "Loss"), number(sgd, "Accuracy"));
        let last = db.rows(
            "SELECT loss, accuracy FROM corgipile.training_history ORDER BY model_id DESC, epoch DESC LIMIT 1",
            &[],
        );
        assert!((last[0].get::<_, f64>(0) - loss).abs() < 1e-3 * loss, "{plan:#}");
        assert!((last[0].get::<_, f64>(1) - accuracy).abs() < 1e-3, "{plan:#}");
        assert!(number(sgd, "Compute Time") >= 0.0);
        let total = number(sgd, "Actual Total Time");
        let parts = number(sgd, "Compute Time")
            + number(tuples, "Shuffle Time")
            + number(blocks, "Scan Time")
            + number(blocks, "Decode Time");
        assert!(parts <= total * 1.01 + 1.0, "the parts take {parts} ms of {total} ms: {plan:#}");
        let [opening, preparation, epochs, storing] =
            ["Opening Time", "Preparation Time", "Epochs Time", "Storing Time"].map(|phase| number(sgd, phase));
        assert!(epochs >= number(sgd, "Compute Time") && storing > 0.0 && opening > 0.0, "{plan:#}");
        // the node's own time is without opening
        let phases = preparation + epochs + storing;
        assert!(phases > 0.0 && phases <= total * 1.01, "{phases} ms of {total} ms: {plan:#}");
    }
}

#[test]
fn the_automatic_block_leaves_the_buffer_256_blocks() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (label int, features_v real[], filler text); ALTER TABLE t ALTER filler SET STORAGE plain;
         INSERT INTO t SELECT i % 2, ARRAY[i], repeat('x', 2000) FROM generate_series(1, 6000) i; ANALYZE t",
    );
    let pages: f64 = db.value("SELECT (pg_relation_size('t') / 8192)::float8");
    assert!(pages > 1000.0, "{pages} pages");
    for percent in [10.0, 50.0, 100.0] {
        let query = format!("SELECT * FROM corgipile_train('t', buffer_size => '{percent}%')");
        let plan = db.plan("", &query);
        let per_block = number(node(&plan, "CorgiPileBlockShuffle"), "Pages per Block");
        let buffer = number(node(&plan, "CorgiPileTupleShuffle"), "Buffer Blocks");
        let buffer_pages = (pages * percent / 100.0).floor();
        let mixes = per_block == 1.0 || buffer >= 256.0;
        assert!(mixes && buffer * per_block <= buffer_pages + per_block, "{percent}%: {plan:#}");
        assert!(per_block >= (buffer_pages / 512.0).floor(), "a block is not smaller than it has to be: {plan:#}");
    }
}

#[test]
fn skipped_tuples_are_shown() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run("UPDATE t SET features_v = NULL WHERE id % 50 = 0");
    let query = "SELECT * FROM corgipile_train('t', max_epochs => 2, options => '{\"nulls\": \"skip\"}')";
    let plan = db.plan("ANALYZE", query);
    let sgd = node(&plan, "CorgiPileSGD");
    assert_eq!(number(sgd, "Tuples"), 980.0);
    assert_eq!(number(sgd, "Skipped Tuples"), 10.0);
}

#[test]
fn shuffle_is_explained_as_two_nodes() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    let query = "SELECT * FROM corgipile_shuffle(NULL::t, seed => 8, buffer_size => '20%') WHERE label = 1";
    let plan = db.plan("ANALYZE", query);
    let tuples = node(&plan, "CorgiPileTupleShuffle");
    has(tuples, &["Buffer Blocks", "Buffers Filled", "Shuffle Time"]);
    let blocks = node(tuples, "CorgiPileBlockShuffle");
    has(blocks, &["Strategy", "Seed", "Blocks", "Pages per Block", "Blocks Read", "Scan Time"]);
    assert_eq!(number(blocks, "Seed"), 8.0);
    assert_eq!(number(blocks, "Blocks Read"), number(blocks, "Blocks"));
    assert!(find_node(&plan, "CorgiPileSGD").is_none());
    let text = db.lines(&format!("EXPLAIN {query}"));
    assert!(line(&text, "CorgiPileTupleShuffle").find("Custom") < line(&text, "CorgiPileBlockShuffle").find("Custom"));
}

#[test]
fn the_plan_of_a_query_source_is_shown() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run("CREATE TABLE u AS SELECT id, uniform(id, 9)::real AS z FROM t");
    let query = "SELECT * FROM corgipile_train('SELECT label, features_v FROM t JOIN u USING (id) WHERE z < 0.9')";
    let plan = db.lines(&format!("EXPLAIN {query}"));
    line(&plan, "CorgiPileSGD");
    line(&plan, "Join");
    let filtered = db.lines("EXPLAIN SELECT * FROM corgipile_train('SELECT * FROM t WHERE id > 250')");
    line(&filtered, "Filter: (id > 250)");
}

#[test]
fn explain_inside_of_larger_plans_keeps_its_names_apart() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    let plan = db.lines(
        "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF)
         SELECT e.epoch, t.id, s.id FROM corgipile_train('t', max_epochs => 2) e
         JOIN t ON t.id = e.epoch JOIN corgipile_shuffle(NULL::t) s ON s.id = t.id",
    );
    line(&plan, "CorgiPileSGD");
    let scans = plan.iter().filter(|line| line.contains("(CorgiPileBlockShuffle)")).count();
    assert_eq!(scans, 2, "{plan:#?}");
    assert_eq!(db.models(), 1);
}
