//! Whatever the planner's settings: the same results.

use corgipile_tests::{Database, Session, clustered};
use std::time::Duration;

/// Calls, each with what it has to give.
const CALLS: [(&str, &str); 5] = [
    ("SELECT count(*), sum(epoch), min(tuples) FROM corgipile_train('t', max_epochs => 3, seed => 1)", "3|6|2000"),
    ("SELECT count(*), sum(id) FROM corgipile_shuffle(NULL::t, seed => 1) WHERE id % 2 = 0", "1000|1001000"),
    ("SELECT count(*) FROM corgipile_shuffle(NULL::t) s JOIN t USING (id) WHERE t.label = 1", "1000"),
    ("SELECT count(*) FROM (SELECT corgipile_train('t', max_epochs => 3)) s", "3"),
    (
        "SELECT count(*) FROM corgipile_train('t', max_epochs => 4) e, corgipile_shuffle(NULL::t) s
         WHERE s.id = e.epoch",
        "4",
    ),
];

#[test]
fn every_planner_setting_gives_the_same_results() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    db.run("CREATE INDEX ON t (id); ANALYZE t");
    let expected = db.trained("'t', max_epochs => 3, seed => 1").bits();
    let force = if db.major() > 15 { "debug_parallel_query" } else { "force_parallel_mode" };
    let fastest = db.fastest_compression();
    for settings in [
        format!("SET {force} = on").as_str(),
        &format!("SET {force} = regress"),
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0",
        "SET enable_seqscan = off",
        "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = off;
         SET enable_indexonlyscan = off",
        "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off",
        "SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_sort = off",
        "SET plan_cache_mode = force_generic_plan",
        "SET jit = on; SET jit_above_cost = 0; SET jit_inline_above_cost = 0; SET jit_optimize_above_cost = 0",
        "SET default_transaction_isolation = 'serializable'",
        "SET default_transaction_isolation = 'repeatable read'",
        "SET work_mem = '64kB'; SET enable_memoize = off",
        "SET from_collapse_limit = 1; SET join_collapse_limit = 1; SET geqo_threshold = 2",
        "SET default_toast_compression = lz4; SET array_nulls = off; SET standard_conforming_strings = off",
        "SET extra_float_digits = -15; SET datestyle = 'German'; SET intervalstyle = 'iso_8601'",
        "SET constraint_exclusion = on; SET track_io_timing = on; SET synchronize_seqscans = off",
    ] {
        db.run("RESET ALL; SET statement_timeout = '120s'");
        db.run(&settings.replace("lz4", fastest));
        for (call, result) in CALLS {
            assert_eq!(db.line(call), result, "{settings}: {call}");
        }
        assert_eq!(db.trained("'t', max_epochs => 3, seed => 1").bits(), expected, "{settings}");
    }
}

#[test]
fn prepared_statements_with_generic_plans_take_new_parameters() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    db.run(
        "SET plan_cache_mode = force_generic_plan;
            PREPARE s(bigint, int, text) AS
         SELECT id FROM corgipile_shuffle(NULL::t, seed => $1, epoch => $2, shuffle => $3)",
    );
    let first = db.lines("EXECUTE s(1, 1, 'corgipile')");
    assert!(first == db.lines("SELECT id FROM corgipile_shuffle(NULL::t, seed => 1)"));
    assert!(first != db.lines("EXECUTE s(2, 1, 'corgipile')"));
    assert!(first != db.lines("EXECUTE s(1, 2, 'corgipile')"));
    assert!(db.lines("EXECUTE s(1, 1, 'no_shuffle')") == db.lines("SELECT id FROM t"));
    db.fails_with("EXECUTE s(1, 1, 'nope')", "22023");
    assert!(first == db.lines("EXECUTE s(1, 1, 'corgipile')"));
}

#[test]
fn an_update_that_waited_for_another_rechecks_its_join_with_a_shuffle() {
    let mut db = Database::new();
    clustered(&mut db, "t", 200);
    db.run("CREATE TABLE counters AS SELECT id, 0 AS n FROM t; ALTER TABLE counters ADD PRIMARY KEY (id)");
    for join in ["enable_nestloop", "enable_hashjoin"] {
        let mut blocker = db.session();
        let mut waiter = db.session();
        for other in ["enable_nestloop", "enable_hashjoin", "enable_mergejoin"] {
            waiter.run(&format!("SET {other} = {}", join == other));
        }
        blocker.run("BEGIN; UPDATE counters SET n = n + 100 WHERE id IN (5, 6, 7)");
        let thread = std::thread::spawn(move || {
            waiter.run(
                "UPDATE counters c SET n = c.n + 1 FROM corgipile_shuffle(NULL::t) s WHERE s.id = c.id AND s.id <= 10",
            );
        });
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        for _ in 0..500 {
            if db.line(waiting) == "1" {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        blocker.run("COMMIT");
        thread.join().expect("the update succeeds");
    }
    assert_eq!(
        db.line("SELECT count(*) FILTER (WHERE n = 2), count(*) FILTER (WHERE n = 202), sum(n) FROM counters"),
        "7|3|620"
    );
}

#[test]
fn row_locks_of_an_outer_query_work_beside_training_and_shuffling() {
    let mut db = Database::new();
    clustered(&mut db, "t", 200);
    assert_eq!(
        db.lines("SELECT t.id FROM t JOIN corgipile_shuffle(NULL::t) s USING (id) WHERE id < 4 FOR UPDATE OF t").len(),
        3
    );
    let locked =
        db.lines("SELECT t.id FROM t, corgipile_train('t', max_epochs => 2) e WHERE t.id = e.epoch FOR UPDATE OF t");
    assert_eq!(locked.len(), 2);
    db.run("DELETE FROM t USING corgipile_shuffle(NULL::t, seed => 1) s WHERE s.id = t.id AND s.label = 0");
    assert_eq!(db.line("SELECT count(*) FROM t"), "100");
    db.run(
        "MERGE INTO t USING (SELECT * FROM corgipile_shuffle(NULL::t)) s ON s.id = t.id
            WHEN MATCHED THEN UPDATE SET label = 9",
    );
    assert_eq!(db.line("SELECT count(*) FROM t WHERE label = 9"), "100");
}

#[test]
fn a_cursor_with_hold_over_training_keeps_its_rows_and_trains_once() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run("BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT epoch FROM corgipile_train('t', max_epochs => 5)");
    assert_eq!(db.lines("FETCH 2 FROM c"), ["1", "2"]);
    assert_eq!(db.lines("FETCH BACKWARD 1 FROM c"), ["1"]);
    db.run("COMMIT");
    assert_eq!(db.lines("FETCH ALL FROM c"), ["2", "3", "4", "5"]);
    assert_eq!(db.lines("FETCH FIRST FROM c"), ["1"]);
    db.run("CLOSE c");
    assert_eq!(db.models(), 1);
}

#[test]
fn a_view_and_a_rule_over_training_and_shuffling_work() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run(
        "CREATE VIEW shuffled AS SELECT id, label FROM corgipile_shuffle(NULL::t, seed => 3);
            CREATE VIEW trained AS SELECT * FROM corgipile_train('t', max_epochs => 2)",
    );
    assert_eq!(db.line("SELECT count(*), sum(id) FROM shuffled WHERE label = 0"), "250|31375");
    assert_eq!(db.lines("SELECT epoch FROM trained"), ["1", "2"]);
    assert_eq!(db.models(), 1);
}

#[test]
fn serializable_transactions_know_what_training_and_shuffling_have_read() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run("CREATE TABLE u AS SELECT label, features_v FROM t");
    for read in [
        "SELECT count(*) FROM corgipile_shuffle(NULL::{})",
        "SELECT count(*) FROM corgipile_train('{}', max_epochs => 1, features => '{features_v}')",
    ] {
        // Each reads what the other writes: as if one after the other, one would have seen the other's row.
        let mut other = db.session();
        db.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
        other.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
        db.run(&read.replace("{}", "t"));
        other.run(&read.replace("{}", "u"));
        db.run("INSERT INTO u VALUES (1, '{1,2,3,4,5}')");
        other.run("INSERT INTO t VALUES (1000, 1, '{1,2,3,4,5}')");
        db.run("COMMIT");
        other.fails_with("COMMIT", "40001");
    }
}

#[test]
fn auto_explain_and_explain_execute_see_the_nodes_too() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run(
        "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
         SET auto_explain.log_nested_statements = on; SET auto_explain.log_buffers = on;
         SET auto_explain.log_verbose = on;
         SET auto_explain.log_triggers = on; SET auto_explain.log_format = json; SET auto_explain.log_level = 'debug1'",
    );
    for (call, result) in CALLS {
        assert_eq!(db.line(&call.replace("2000", "500")).is_empty(), result.is_empty());
    }
    db.run(
        "SET auto_explain.log_min_duration = -1; PREPARE p(int) AS SELECT * FROM corgipile_train('t',
            max_epochs => $1)",
    );
    for mode in ["force_custom_plan", "force_generic_plan"] {
        db.run(&format!("SET plan_cache_mode = {mode}"));
        let plan = db.lines("EXPLAIN EXECUTE p(7)");
        assert!(plan.iter().any(|line| line.trim() == "Epochs: 7"), "{plan:#?}");
    }
}

#[test]
fn a_row_larger_than_the_buffer_is_trained_on() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, (SELECT array_agg((j % 7 + i % 2)::real) FROM generate_series(1,
         30000) j)
           AS features_v FROM generate_series(1, 20) i; SET corgipile.max_buffer_memory = '64kB'",
    );
    assert_eq!(db.train("'t', max_epochs => 2, learning_rate => 1e-6")[1].tuples, 20);
    assert_eq!(db.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), "20");
}

#[test]
fn the_planner_knows_how_many_rows_a_shuffled_table_has() {
    let mut db = Database::new();
    corgipile_tests::small(&mut db, "t", 3000);
    db.run("ANALYZE t");
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_shuffle(NULL::t)");
    assert!(plan[0].contains("rows=3000 "), "{plan:?}");
}

/// Costs until the first row and the last, and rows, of the node on top of a plan.
fn estimates(db: &mut Session, query: &str) -> [f64; 3] {
    let plan: serde_json::Value = db.value(&format!("EXPLAIN (FORMAT JSON) {query}"));
    ["Startup Cost", "Total Cost", "Plan Rows"].map(|key| plan[0]["Plan"][key].as_f64().expect("a number"))
}

#[test]
fn costs_follow_from_the_table_the_epochs_and_the_settings_of_the_disk() {
    let mut db = Database::new();
    clustered(&mut db, "small", 2_000);
    clustered(&mut db, "large", 40_000);
    db.run("CREATE TABLE parent (LIKE large) PARTITION BY RANGE (id); ANALYZE small; ANALYZE large");
    db.run("ALTER TABLE parent ATTACH PARTITION large FOR VALUES FROM (MINVALUE) TO (MAXVALUE)");
    let train = |table: &str, more: &str| format!("SELECT * FROM corgipile_train('{table}'{more})");
    let scan = |db: &mut Session, table: &str| estimates(db, &format!("SELECT * FROM {table}"))[1];
    for table in ["small", "large"] {
        let [first, total, rows] = estimates(&mut db, &train(table, ", max_epochs => 7"));
        assert_eq!(rows, 7.0);
        let of_scan = scan(&mut db, table);
        assert!(of_scan < total && total < 20.0 * of_scan, "{table}: {total} {of_scan}");
        assert!((first * 7.0 - total).abs() < 0.1, "a row after each epoch");
    }
    let cost = |db: &mut Session, query: &str| estimates(db, query)[1];
    let seven = cost(&mut db, &train("large", ", max_epochs => 7"));
    assert!(cost(&mut db, &train("small", ", max_epochs => 7")) < seven / 5.0);
    assert!(cost(&mut db, &train("large", ", max_epochs => 14")) > seven * 1.3);
    assert!((cost(&mut db, &train("parent", ", max_epochs => 7")) / seven - 1.0).abs() < 0.01, "partitions");
    assert!(cost(&mut db, &train("large", ", max_epochs => 7, sample => 0.5")) < seven * 0.6);
    // a grid is trained in the same passes
    let grid = r#", max_epochs => 7, grid => '[{"l2": 0}, {"l2": 0.1}, {"l2": 1}]'"#;
    let [_, of_grid, rows] = estimates(&mut db, &train("large", grid));
    assert!(rows == 21.0 && seven < of_grid && of_grid < 3.0 * seven, "{of_grid} {rows}");
    // named arguments in any order, and options
    assert_eq!(cost(&mut db, "SELECT * FROM corgipile_train(max_epochs => 7, source => 'large')"), seven);
    assert_eq!(cost(&mut db, &train("large", r#", options => '{"max_epochs": 7}'"#)), seven);
    let shuffle = "SELECT * FROM corgipile_shuffle(NULL::large)";
    let [first, shuffled, rows] = estimates(&mut db, shuffle);
    assert!((rows / 40_000.0 - 1.0).abs() < 0.05, "{rows}");
    let of_scan = scan(&mut db, "large");
    assert!(first < shuffled / 2.0 && of_scan < shuffled && shuffled < 4.0 * of_scan, "{first} {shuffled} {of_scan}");
    let [_, half, rows] = estimates(&mut db, "SELECT * FROM corgipile_shuffle(NULL::large, sample => 0.5)");
    assert!((half / shuffled - 0.5).abs() < 0.01 && (rows / 20_000.0 - 1.0).abs() < 0.05, "{half} {rows}");
    // seeks cost where blocks are read out of order
    db.run("SET random_page_cost = 40");
    assert!(cost(&mut db, shuffle) > shuffled);
    let in_order = "SELECT * FROM corgipile_shuffle(NULL::large, shuffle => 'no_shuffle')";
    let of_order = cost(&mut db, in_order);
    db.run("SET random_page_cost = 400");
    assert_eq!(cost(&mut db, in_order), of_order);
    db.run("RESET random_page_cost; SET seq_page_cost = 3");
    assert!(cost(&mut db, in_order) > of_order);
    db.run("RESET seq_page_cost");
    // what is not known has the declared costs, and fails when it runs
    for unknown in ["nowhere", "SELECT * FROM large", "not a name"] {
        let query = train(&unknown.replace('\'', "''"), "");
        if unknown.starts_with("SELECT") {
            assert_eq!(estimates(&mut db, &query)[1..], [2500.0, 20.0]);
        } else {
            assert!(db.attempt(&query).is_err(), "{unknown}");
        }
    }
    // a join keeps the smaller side, the epochs, in memory
    let join = "SELECT * FROM corgipile_train('large', max_epochs => 7) e JOIN large ON large.id = e.epoch";
    let plan = db.lines(&format!("EXPLAIN {join}")).join("\n");
    let hashed = plan.split_once("->  Hash").map(|(_, inner)| inner.lines().nth(1).unwrap_or_default().to_owned());
    assert!(hashed.is_none_or(|inner| inner.contains("CorgiPileSGD")), "{plan}");
}
