//! `corgipile_shuffle()`: every visible row exactly once, in an order that a seed decides.

use corgipile_tests::{Database, Session, clustered};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Sessions that insert, update, delete and abort in a table as [`clustered`] makes it, until they are stopped.
pub struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Writers {
    pub fn start(db: &Database, table: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..2).map(|writer| {
            let (mut session, stop, table) = (db.session(), Arc::clone(&stop), table.to_owned());
            std::thread::spawn(move || {
                let mut rounds = 0;
                while !stop.load(Ordering::Relaxed) {
                    write(&mut session, &table, writer, rounds);
                    rounds += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                rounds
            })
        });
        Self { threads: threads.collect(), stop }
    }

    /// Ends them; panics if one of them has failed or none has written.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        let rounds: u64 = self.threads.into_iter().map(|t| t.join().expect("a writer does not fail")).sum();
        assert!(rounds > 0, "the writers have written");
    }
}

/// A round of a writer: its rows are those whose id has its parity.
fn write(session: &mut Session, table: &str, writer: u64, round: u64) {
    let mine = format!("id % 2 = {writer} AND id % 37 = {}", round % 37);
    session.run(&format!(
        "UPDATE {table} SET label = 1 - label WHERE {mine};
         BEGIN; DELETE FROM {table} WHERE id % 2 = {writer} AND id % 41 = {1}; ROLLBACK;
         DELETE FROM {table} WHERE id % 2 = {writer} AND id % 997 = {0} % 997;
         INSERT INTO {table} SELECT 100000 + 2 * {0} + {writer}, i % 2, '{{1,2,3,4,5}}' FROM generate_series(1, 7) i;",
        round,
        round % 41
    ));
    if round % 8 == writer {
        session.run(&format!("VACUUM (FREEZE {}) {table}", round % 16 == writer));
    }
}

const ALL: &str = "SELECT id, label, features_v FROM t";
const SHUFFLED: &str = "SELECT id, label, features_v FROM corgipile_shuffle(NULL::t, seed => 1)";

/// The ids in the order in which a query gives them.
fn ids(session: &mut Session, sql: &str) -> Vec<i32> {
    session.column(sql)
}

/// Spearman's rank correlation of a permutation of 1..=n with 1..=n.
fn rank_correlation(order: &[i32]) -> f64 {
    let n = order.len() as f64;
    let mean = (n + 1.0) / 2.0;
    let covariance: f64 =
        order.iter().zip(1..).map(|(&id, place)| (f64::from(id) - mean) * (f64::from(place) - mean)).sum();
    covariance / (n * (n * n - 1.0) / 12.0)
}

#[test]
fn every_row_comes_exactly_once_in_every_epoch_strategy_and_size() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    for arguments in [
        "",
        ", seed => 1, epoch => 1",
        ", seed => 1, epoch => 2",
        ", seed => 1, epoch => 3",
        ", seed => 1, epoch => 1000000",
        ", shuffle => 'no_shuffle'",
        ", shuffle => 'block_only'",
        ", block_size => '24kB', buffer_size => '17%'",
        ", block_size => '10MB'",
        ", buffer_size => '100%'",
        ", buffer_size => '8kB'",
    ] {
        db.assert_same_rows(&format!("SELECT * FROM corgipile_shuffle(NULL::t{arguments})"), "TABLE t");
    }
}

#[test]
fn dead_updated_aborted_and_own_uncommitted_rows_are_seen_as_by_any_query() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    db.run(
        "DELETE FROM t WHERE id % 3 = 0;
         UPDATE t SET label = 5, features_v = '{9}' WHERE id % 5 = 0;
         BEGIN; INSERT INTO t SELECT -id, 9, features_v FROM t; DELETE FROM t WHERE id % 2 = 0; ROLLBACK",
    );
    db.assert_same_rows(SHUFFLED, ALL);
    let mut other = db.session();
    other.run("BEGIN; INSERT INTO t VALUES (-7, 0, '{0}'); UPDATE t SET label = 77 WHERE id < 100");
    db.run(
        "BEGIN; INSERT INTO t SELECT 10000 + i, 1, '{1}' FROM generate_series(1, 500) i;
            DELETE FROM t WHERE id BETWEEN 300 AND 500; UPDATE t SET label = -1 WHERE id BETWEEN 600 AND 800;
            SAVEPOINT s; DELETE FROM t WHERE id > 1500; ROLLBACK TO s",
    );
    db.assert_same_rows(SHUFFLED, ALL);
    other.assert_same_rows(SHUFFLED, ALL);
    db.run("COMMIT");
    other.run("ROLLBACK");
    db.assert_same_rows(SHUFFLED, ALL);
    for statement in ["VACUUM t", "DELETE FROM t", "INSERT INTO t VALUES (1, 1, '{1}')", "VACUUM FREEZE t"] {
        db.run(statement);
    }
    db.assert_same_rows(SHUFFLED, ALL);
}

#[test]
fn every_row_comes_exactly_once_while_others_write() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    let writers = Writers::start(&db, "t");
    for round in 0..10 {
        for epoch in 1..=3 {
            // One statement, one snapshot: both sides have to see the same rows.
            db.assert_same_rows(
                &format!("SELECT * FROM corgipile_shuffle(NULL::t, seed => {round}, epoch => {epoch})"),
                "TABLE t",
            );
        }
    }
    writers.stop();
}

#[test]
fn a_seed_repeats_the_order_and_another_epoch_or_seed_changes_it() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    let mut order = |arguments: &str| ids(&mut db, &format!("SELECT id FROM corgipile_shuffle(NULL::t, {arguments})"));
    let first = order("seed => 5");
    assert!(first == order("seed => 5"));
    assert!(first == order("seed => 5, epoch => 1"));
    let second = order("seed => 5, epoch => 2");
    assert!(first != second);
    assert!(second == order("seed => 5, epoch => 2"));
    assert!(first != order("seed => 6"));
    assert!(order("epoch => 1") != order("epoch => 1"), "without a seed one is drawn");
    // The tuples within the buffers are permuted anew too, not the blocks alone.
    let whole = "block_size => '10MB', seed => 5";
    assert!(order(whole) != order(&format!("{whole}, epoch => 2")));
}

#[test]
fn the_order_mixes_as_far_as_the_strategy_says() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let mut order = |arguments: &str| ids(&mut db, &format!("SELECT id FROM corgipile_shuffle(NULL::t, {arguments})"));
    assert!(order("shuffle => 'no_shuffle'") == (1..=20_000).collect::<Vec<_>>());
    let neighbours = |order: &[i32]| order.windows(2).filter(|w| w[0] + 1 == w[1]).count();
    for seed in 1..=3 {
        let block_only = order(&format!("shuffle => 'block_only', seed => {seed}"));
        let corgipile = order(&format!("seed => {seed}"));
        assert!(rank_correlation(&block_only).abs() < 0.3, "{}", rank_correlation(&block_only));
        assert!(rank_correlation(&corgipile).abs() < 0.3, "{}", rank_correlation(&corgipile));
        assert!(neighbours(&block_only) > 15_000, "the tuples of a block stay as they lie");
        assert!(neighbours(&corgipile) < 200, "the tuples of a buffer are shuffled");
        // Both classes are in every tenth of the epoch, though the table is sorted by class.
        for tenth in corgipile.chunks(2000) {
            let ones = tenth.iter().filter(|id| **id > 10_000).count();
            assert!((500..1500).contains(&ones), "seed {seed}: {ones} of 2000 of class 1");
        }
    }
}

#[test]
fn copy_to_stdout_streams_a_shuffled_table() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let shuffled = db.copy_out("COPY (SELECT id, features_v FROM corgipile_shuffle(NULL::t, seed => 2)) TO STDOUT");
    let plain = db.copy_out("COPY (SELECT id, features_v FROM t) TO STDOUT");
    assert_ne!(shuffled, plain);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&shuffled), sorted(&plain));
}

#[test]
fn cursors_fetch_move_and_survive_their_transaction() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    let order = ids(&mut db, "SELECT id FROM corgipile_shuffle(NULL::t, seed => 3)");
    let text = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>();
    db.run("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t, seed => 3)");
    assert_eq!(db.lines("FETCH 10 FROM c"), text(&order[..10]));
    db.run("MOVE FORWARD 100 IN c");
    assert_eq!(db.lines("FETCH 300 FROM c"), text(&order[110..410]));
    // What happens after the cursor was opened is not in its snapshot.
    db.run("DELETE FROM t");
    assert_eq!(db.lines("FETCH ALL FROM c"), text(&order[410..]));
    assert_eq!(db.lines("FETCH ALL FROM c").len(), 0);
    db.run("ROLLBACK; BEGIN; DECLARE s SCROLL CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t, seed => 3)");
    assert_eq!(db.lines("FETCH 5 FROM s"), text(&order[..5]));
    assert_eq!(db.lines("FETCH PRIOR FROM s"), text(&order[3..4]));
    assert_eq!(db.lines("FETCH LAST FROM s"), text(&order[999..]));
    assert_eq!(db.lines("FETCH FIRST FROM s"), text(&order[..1]));
    db.run(
        "ROLLBACK; BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT id FROM corgipile_shuffle(NULL::t, seed => 3);
            FETCH 2 FROM h; COMMIT",
    );
    assert_eq!(db.lines("FETCH ALL FROM h"), text(&order[2..]));
    db.run("CLOSE h; BEGIN; DECLARE unread CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t); FETCH unread; COMMIT");
}

#[test]
fn limit_offset_where_and_aggregates_work() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let order = ids(&mut db, "SELECT id FROM corgipile_shuffle(NULL::t, seed => 4)");
    let shuffled = |rest: &str| format!("SELECT id FROM corgipile_shuffle(NULL::t, seed => 4) {rest}");
    assert_eq!(ids(&mut db, &shuffled("LIMIT 7 OFFSET 3")), order[3..10]);
    let filtered: Vec<i32> = order.iter().copied().filter(|id| id % 7 == 0).collect();
    assert_eq!(ids(&mut db, &shuffled("WHERE id % 7 = 0")), filtered);
    assert_eq!(ids(&mut db, &shuffled("WHERE false")).len(), 0);
    let in_list = "WHERE id IN (SELECT id FROM t WHERE label = 1)";
    assert_eq!(ids(&mut db, &shuffled(in_list)).len(), 1000);
    assert_eq!(db.line("SELECT count(*), sum(id), max(id) FROM corgipile_shuffle(NULL::t)"), "2000|2001000|2000");
    assert_eq!(
        db.line("SELECT count(*) FROM corgipile_shuffle(NULL::t) s WHERE s.features_v[1] > 1 AND s.label = 1"),
        db.line("SELECT count(*) FROM t s WHERE s.features_v[1] > 1 AND s.label = 1")
    );
    assert_eq!(
        db.lines("SELECT label, count(*) FROM corgipile_shuffle(NULL::t) GROUP BY 1 ORDER BY 1"),
        ["0|1000", "1|1000"]
    );
}

#[test]
fn joins_of_every_kind_and_rescans_give_each_row_as_often_as_a_table_would() {
    let mut db = Database::new();
    clustered(&mut db, "t", 300);
    db.run("CREATE TABLE u AS SELECT i AS id, i % 3 AS label FROM generate_series(1, 100) i; ANALYZE u");
    for join in ["enable_nestloop", "enable_hashjoin", "enable_mergejoin"] {
        for other in ["enable_nestloop", "enable_hashjoin", "enable_mergejoin"] {
            db.run(&format!("SET {other} = {}", join == other));
        }
        for material in ["on", "off"] {
            db.run(&format!("SET enable_material = {material}"));
            for condition in ["u.id = s.id", "u.label = s.label", "u.id < s.id AND u.label = s.label"] {
                db.assert_same_rows(
                    &format!("SELECT u.id, s.id FROM u JOIN corgipile_shuffle(NULL::t) s ON {condition}"),
                    &format!("SELECT u.id, s.id FROM u JOIN t s ON {condition}"),
                );
            }
        }
    }
    db.run("RESET ALL");
    db.assert_same_rows(
        "SELECT a.id, b.id FROM corgipile_shuffle(NULL::t) a, corgipile_shuffle(NULL::t, seed => 1) b
         WHERE a.id = b.id",
        "SELECT id, id FROM t",
    );
    db.assert_same_rows(
        "SELECT u.id, (SELECT count(*) FROM corgipile_shuffle(NULL::t) s WHERE s.id <= u.id) FROM u",
        "SELECT u.id, (SELECT count(*) FROM t s WHERE s.id <= u.id) FROM u",
    );
    db.assert_same_rows(
        "SELECT u.id, s.id FROM u, LATERAL (SELECT id FROM corgipile_shuffle(NULL::t, seed => u.id) OFFSET 0) s",
        "SELECT u.id, t.id FROM u, t",
    );
}

#[test]
fn dropped_added_and_generated_columns_are_as_in_the_table() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (a int, gone text, b text, twice int GENERATED ALWAYS AS (a * 2) STORED);
         INSERT INTO t SELECT i, repeat('x', i % 50), 'b' || i FROM generate_series(1, 500) i;
         ALTER TABLE t DROP gone, ADD fresh int DEFAULT 7, ADD empty text;
         INSERT INTO t SELECT i, 'c' || i FROM generate_series(501, 700) i;",
    );
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::t)", "TABLE t");
    db.assert_same_rows("SELECT fresh, b FROM corgipile_shuffle(NULL::t)", "SELECT fresh, b FROM t");
    db.assert_same_rows("SELECT empty, twice FROM corgipile_shuffle(NULL::t)", "SELECT empty, twice FROM t");
    db.assert_same_rows("SELECT s FROM corgipile_shuffle(NULL::t) s", "SELECT t FROM t");
    db.assert_same_rows("SELECT corgipile_shuffle(NULL::t)", "SELECT t FROM t");
}

#[test]
fn whole_rows_ordinality_and_the_select_list_work() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.assert_same_rows("SELECT s.* FROM (SELECT (corgipile_shuffle(NULL::t, seed => 1)).*) s", "TABLE t");
    db.assert_same_rows("SELECT (r).* FROM (SELECT corgipile_shuffle(NULL::t, seed => 1) AS r) s", "TABLE t");
    db.assert_same_rows("SELECT (s).id FROM (SELECT s FROM corgipile_shuffle(NULL::t) s) x", "SELECT id FROM t");
    let expected = ids(&mut db, "SELECT id FROM corgipile_shuffle(NULL::t, seed => 1)");
    let numbered = ids(
        &mut db,
        "SELECT id FROM corgipile_shuffle(NULL::t, seed => 1) WITH ORDINALITY s(id, label, x, n) ORDER BY n",
    );
    assert_eq!(numbered, expected);
    let listed = ids(&mut db, "SELECT (corgipile_shuffle(NULL::t, seed => 1)).id");
    assert_eq!(listed, expected);
    let rows_from = db
        .line("SELECT count(*) FROM ROWS FROM (corgipile_shuffle(NULL::t), generate_series(1, 600)) AS s(a, b, c, d)");
    assert_eq!(rows_from, "600");
    db.fails_with("SELECT ctid FROM corgipile_shuffle(NULL::t)", "42703");
    assert_eq!(
        db.line("SELECT count(*) FROM corgipile_shuffle(NULL::t) AS s(x, y, z) WHERE x > 0 AND y IS NOT NULL"),
        "500"
    );
}

#[test]
fn an_empty_table_gives_no_rows() {
    let mut db = Database::new();
    db.run("CREATE TABLE t (id int, label int, features_v real[])");
    assert_eq!(db.lines(SHUFFLED).len(), 0);
    db.run("INSERT INTO t VALUES (1, 1, '{}'); DELETE FROM t");
    assert_eq!(db.lines(SHUFFLED).len(), 0);
    db.run("INSERT INTO t VALUES (2, NULL, NULL)");
    assert_eq!(db.lines(SHUFFLED), ["2|NULL|NULL"]);
}

#[test]
fn temporary_unlogged_and_just_created_tables_are_shuffled() {
    let mut db = Database::new();
    for kind in ["TEMP", "UNLOGGED"] {
        db.run(&format!("CREATE {kind} TABLE t AS SELECT i AS id FROM generate_series(1, 3000) i"));
        db.assert_same_rows("SELECT id FROM corgipile_shuffle(NULL::t)", "SELECT id FROM t");
        db.run("DROP TABLE t");
    }
    db.run("BEGIN; CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 3000) i");
    db.assert_same_rows("SELECT id FROM corgipile_shuffle(NULL::t)", "SELECT id FROM t");
    db.run("TRUNCATE t; INSERT INTO t VALUES (1)");
    db.assert_same_rows("SELECT id FROM corgipile_shuffle(NULL::t)", "SELECT id FROM t");
    db.run("COMMIT");
}

/// Asserts that the rows of something that is not simply a heap table come exactly once, or that it is refused as such.
pub fn is_shuffled_or_refused(db: &mut Database, relation: &str) {
    match db.attempt(&format!("SELECT count(*) FROM corgipile_shuffle(NULL::{relation})")) {
        Ok(_) => db.assert_same_rows(
            &format!("SELECT s::text FROM corgipile_shuffle(NULL::{relation}) s"),
            &format!("SELECT s::text FROM {relation} s"),
        ),
        Err(failure) => assert_eq!(failure.code, "42809", "{failure:#?}"),
    }
}

#[test]
fn what_has_no_rows_to_shuffle_gets_a_clear_error() {
    let mut db = Database::new();
    db.run("CREATE TYPE pair AS (a int, b int)");
    db.fails_with("SELECT * FROM corgipile_shuffle(NULL::pair)", "42804").hints(&["NULL::"]);
    db.fails_with("SELECT * FROM corgipile_shuffle(NULL::int)", "42804").hints(&["NULL::"]);
    db.fails_with("SELECT corgipile_shuffle(1)", "42804");
}

#[test]
fn views_partitioned_and_inherited_tables_and_catalogs_are_shuffled_or_refused_clearly() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.run(
        "CREATE VIEW v AS TABLE t; CREATE MATERIALIZED VIEW m AS SELECT id, label FROM t;
         CREATE TABLE p (id int, label int) PARTITION BY LIST (label);
         CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
         INSERT INTO p SELECT i, i % 2 FROM generate_series(1, 500) i;
         CREATE TABLE parent (id int); CREATE TABLE child (more int) INHERITS (parent);
         INSERT INTO parent SELECT generate_series(1, 100);
         INSERT INTO child SELECT i, i FROM generate_series(101, 200) i",
    );
    for relation in ["v", "m", "p", "parent", "pg_class"] {
        is_shuffled_or_refused(&mut db, relation);
    }
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::p1)", "TABLE p1");
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::child)", "TABLE child");
}

#[test]
fn row_security_and_privileges_hold() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    let reader = db.role("reader");
    db.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id % 3 = 1)");
    let mut session = db.session_as(&reader);
    for call in ["SELECT * FROM corgipile_shuffle(NULL::t)", "SELECT corgipile_shuffle(NULL::t)"] {
        session.fails_with(call, "42501").says(&["t"]);
    }
    db.run(&format!("GRANT SELECT ON t TO {reader}"));
    session.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::t)", "SELECT * FROM t");
    session.assert_same_rows("SELECT corgipile_shuffle(NULL::t)", "SELECT t FROM t");
    assert_eq!(session.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), "167");
    // A policy with a subquery is a SubPlan, which a custom scan has to run too.
    db.run(
        "CREATE TABLE allowed AS SELECT generate_series(1, 50) AS id;
            DROP POLICY p ON t; CREATE POLICY p ON t USING (EXISTS (SELECT FROM allowed a WHERE a.id = t.id));
            GRANT SELECT ON allowed TO PUBLIC",
    );
    assert_eq!(session.line("SELECT count(*) FROM corgipile_shuffle(NULL::t)"), "50");
    // A function that may leak what it is given is not called on rows that the policy hides.
    session.run(
        "CREATE FUNCTION pg_temp.leak(int) RETURNS bool COST 0.0001 LANGUAGE plpgsql
                 AS 'BEGIN IF $1 > 50 THEN RAISE EXCEPTION ''leaked %'', $1; END IF; RETURN true; END'",
    );
    let seen = session.line("SELECT count(*) FROM corgipile_shuffle(NULL::t) s WHERE pg_temp.leak(s.id)");
    assert_eq!(seen, "50");
}

#[test]
fn bad_arguments_are_errors() {
    let mut db = Database::new();
    clustered(&mut db, "t", 100);
    for (arguments, code) in [
        ("shuffle => 'riffle'", "22023"),
        ("block_size => '1kB'", "22023"),
        ("block_size => 'big'", "22023"),
        ("buffer_size => '0%'", "22023"),
        ("buffer_size => '-1MB'", "22023"),
        ("epoch => 0", "22023"),
        ("epoch => -1", "22023"),
        ("epoch => NULL", "22004"),
        ("shuffle => NULL", "22004"),
        ("block_size => NULL", "22004"),
        ("buffer_size => NULL", "22004"),
    ] {
        for call in ["SELECT * FROM", "SELECT"] {
            db.fails_with(&format!("{call} corgipile_shuffle(NULL::t, {arguments})"), code);
        }
    }
    db.fails_with("SELECT * FROM corgipile_shuffle(NULL::t, shuffle => 'riffle')", "22023").says(&["riffle"]).hints(&[
        "no_shuffle",
        "block_only",
        "corgipile",
    ]);
}

#[test]
fn a_prepared_shuffle_follows_changes_of_the_table() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 1000) i;
            PREPARE s(bigint) AS SELECT count(*), sum(id) FROM corgipile_shuffle(NULL::t, seed => $1);
            SET plan_cache_mode = force_generic_plan",
    );
    assert_eq!(db.line("EXECUTE s(1)"), "1000|500500");
    db.run("INSERT INTO t SELECT 0 FROM generate_series(1, 5000)");
    assert_eq!(db.line("EXECUTE s(2)"), "6000|500500");
    db.run("TRUNCATE t");
    assert_eq!(db.line("EXECUTE s(2)"), "0|NULL");
    db.run("ALTER TABLE t ADD more text DEFAULT 'x'; INSERT INTO t VALUES (3)");
    assert_eq!(db.line("EXECUTE s(NULL)"), "1|3");
    db.run("DROP TABLE t");
    assert!(db.attempt("EXECUTE s(1)").is_err());
}

#[test]
fn a_shuffle_can_be_written_to_a_table_and_trained_on() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    db.run(
        "CREATE TABLE copy AS SELECT * FROM corgipile_shuffle(NULL::t, seed => 1);
            INSERT INTO copy SELECT * FROM corgipile_shuffle(NULL::t, seed => 1)",
    );
    assert_eq!(db.line("SELECT count(*), count(DISTINCT id) FROM copy"), "4000|2000");
    // Reading and writing one table: the rows that are written are not read.
    db.run("INSERT INTO t SELECT * FROM corgipile_shuffle(NULL::t)");
    assert_eq!(db.line("SELECT count(*) FROM t"), "4000");
    let epochs = db.train("'SELECT label, features_v FROM corgipile_shuffle(NULL::t)', max_epochs => 2");
    assert!(epochs.iter().all(|e| e.tuples == 4000));
}

#[test]
fn a_table_that_a_cursor_is_reading_cannot_be_altered_by_its_session() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    for change in ["ALTER TABLE t ADD more int", "TRUNCATE t", "DROP TABLE t", "CLUSTER t USING t_pkey"] {
        db.run("BEGIN; DECLARE c CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t); FETCH 1 FROM c; SAVEPOINT s");
        let failure = db.attempt(change).expect_err(change);
        assert!(["55006", "42704"].contains(&failure.code.as_str()), "{change}: {failure:#?}");
        db.run("ROLLBACK TO s");
        assert_eq!(db.lines("FETCH ALL FROM c").len(), 999, "{change}");
        db.run("COMMIT");
    }
}

#[test]
fn temporary_tables_of_other_sessions_cannot_be_read() {
    let mut db = Database::new();
    let mut other = db.session();
    other.run("CREATE TEMP TABLE secret AS SELECT i AS id, i % 2 AS label FROM generate_series(1, 10) i");
    let schema = other.line("SELECT pg_my_temp_schema()::regnamespace");
    db.fails_with(&format!("SELECT * FROM corgipile_shuffle(NULL::{schema}.secret)"), "0A000");
    db.rejects(&format!("SELECT * FROM corgipile_train('{schema}.secret')"), "0A000");
}

#[test]
fn a_table_of_another_access_method_is_shuffled_or_refused() {
    let mut db = Database::new();
    db.run(
        "CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler;
         CREATE TABLE t (id int, label int) USING heap2;
         INSERT INTO t SELECT i, i % 2 FROM generate_series(1, 1000) i",
    );
    is_shuffled_or_refused(&mut db, "t");
    assert_eq!(db.train("'t', max_epochs => 2")[1].tuples, 1000);
}

#[test]
fn a_table_full_of_holes_gives_its_few_rows() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    for statement in ["DELETE FROM t WHERE id % 500 <> 0", "VACUUM t", "INSERT INTO t VALUES (-1, 1, '{1,2,3,4,5}')"] {
        db.run(statement);
    }
    db.assert_same_rows(SHUFFLED, ALL);
    assert_eq!(db.train("'t', max_epochs => 3")[2].tuples, 11);
    db.run("DELETE FROM t WHERE id < 2000");
    db.run("VACUUM t");
    db.assert_same_rows(SHUFFLED, ALL);
}

/// Pages that everybody sees are read without asking who sees what; after a change they are like all others again.
#[test]
fn vacuumed_pages_and_changed_ones_give_each_visible_row_once() {
    let mut db = Database::new();
    clustered(&mut db, "t", 30_000);
    // VACUUM runs in no transaction block, and run() sends one statement as it is.
    db.run("VACUUM (FREEZE) t");
    let train = |db: &mut Database, table: &str| {
        let options = "features => '{features_v}', shuffle => 'no_shuffle', max_epochs => 3";
        db.trained(&format!("'{table}', {options}")).bits()
    };
    db.run("CREATE TABLE clean AS TABLE t");
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
    let mut other = db.session();
    other.run("BEGIN; DELETE FROM t WHERE id % 100 = 7; UPDATE t SET label = label WHERE id BETWEEN 100 AND 5000");
    // not committed: nothing has changed for us
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
    other.run("COMMIT");
    db.run("DROP TABLE clean; CREATE TABLE clean AS TABLE t");
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
    for epoch in 1..=3 {
        db.assert_same_rows(
            &format!("SELECT * FROM corgipile_shuffle(NULL::t, seed => 3, epoch => {epoch})"),
            "SELECT * FROM t",
        );
    }
    db.run("VACUUM t");
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
}

/// A fresh session's first statement is not among them: there PostgreSQL itself fails while it looks for the columns of the row
/// type, as it does for jsonb_populate_recordset(NULL::t, ...).
#[test]
fn a_table_that_was_dropped_meanwhile_does_not_exist() {
    const CALLS: [&str; 5] = [
        "SELECT count(*) FROM corgipile_shuffle(NULL::t)",
        "EXECUTE generic",
        "EXECUTE custom(1)",
        "SELECT count(*) FROM (SELECT corgipile_shuffle(NULL::t)) s",
        "SELECT count(*) FROM (VALUES (1)) v(i), LATERAL corgipile_shuffle(NULL::t, seed => v.i)",
    ];
    let mut db = Database::new();
    for ending in ["ROLLBACK", "COMMIT"] {
        if ending == "ROLLBACK" {
            corgipile_tests::small(&mut db, "t", 100);
        }
        let mut sessions: Vec<Session> = CALLS.iter().map(|_| db.session()).collect();
        for (session, call) in sessions.iter_mut().zip(CALLS) {
            session.run(
                "PREPARE custom(int) AS SELECT count(*) FROM corgipile_shuffle(NULL::t, seed => $1);
                 SET plan_cache_mode = force_generic_plan;
                 PREPARE generic AS SELECT count(*) FROM corgipile_shuffle(NULL::t); EXECUTE generic;
                 SET plan_cache_mode = force_custom_plan; EXECUTE custom(1); RESET plan_cache_mode",
            );
            assert_eq!(session.line(call), "100", "{call}");
        }
        db.run("BEGIN; DROP TABLE t");
        let threads: Vec<_> = sessions
            .into_iter()
            .zip(CALLS)
            .map(|(mut session, call)| std::thread::spawn(move || (session.attempt(call), session)))
            .collect();
        db.wait_for_waiters(CALLS.len() as i64);
        db.run(ending);
        for (thread, call) in threads.into_iter().zip(CALLS) {
            let (result, mut session) = thread.join().expect("the session's thread does not panic");
            if ending == "ROLLBACK" {
                assert_eq!(result, Ok(vec!["100".to_owned()]), "{call}");
                continue;
            }
            let failure = result.expect_err(call);
            assert_eq!(failure.code, "42P01", "{call}: {failure:#?}");
            failure.says(&["relation \"t\" does not exist"]).hints(&["dropped"]);
            // and later: what was prepared does not know the name any more
            if call.starts_with("EXECUTE") {
                session.fails_with(call, "42P01").says(&["does not exist"]).hints(&["prepare"]);
            }
        }
    }
}

#[test]
fn a_table_that_is_being_shuffled_is_not_dropped() {
    let mut db = Database::new();
    corgipile_tests::small(&mut db, "t", 100);
    let mut other = db.session();
    for fetched in ["", "FETCH 1 FROM c"] {
        db.run(&format!("BEGIN; DECLARE c CURSOR FOR SELECT * FROM corgipile_shuffle(NULL::t); {fetched}"));
        other.fails_with("SET lock_timeout = '50ms'; DROP TABLE t", "55P03");
        assert_eq!(db.lines("FETCH ALL FROM c").len(), if fetched.is_empty() { 100 } else { 99 });
        db.run("COMMIT");
    }
    other.run("DROP TABLE t");
}
